//! `search`: which passages of the run's files are about something.
//!
//! An index of the files is kept in a file of the grant's, or in memory, and brought up to date before each search. What a
//! run may see of it is what it may read: every file that is searched has passed the run's guard at that search.

mod database;
mod index;
mod meaning;
mod passage;
mod query;
mod walk;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use wattle_rt::{Code, Config, Failure, Run, Service, Target, Unadmitted, capability};

use crate::ai::Inference;
use crate::files::Files;
use crate::fs::Fs;

use index::{Found, Index, PassageId, Sight};
use passage::{Passage, passages};
use query::Query;
use walk::Bounds;

pub use walk::{MOST_BYTES, MOST_FILE_BYTES, MOST_FILES};

capability! {
    /// Finding passages of the run's files.
    pub const SEARCH: "search" 1;

    /// Gives the passages of the run's text files that are most about the words of a query, best first, as JSON [{path, lines, passage, score}]; max is 1 to 20, 0 for 5
    #[example = r#"(fs.write? "pets/cats.md" "Cats sleep a lot.") (ret (json.get? (search.query? "sleeping cat" 0) "[0].path"))"# => "pets/cats.md"]
    #[prompt(name)]
    #[effect(reads)]
    async query(query: file_query, max: int) -> ptr: str ! EBOUND EACCESS ETIME EREMOTE = find;
}

/// How many passages a search gives where it does not say.
const USUAL: usize = 5;

/// The most passages that a search gives.
const MOST: usize = 20;

/// The most characters of a query.
const QUERY_CHARS: usize = 1_000;

/// What is left of the run's time when no further file is taken in, so that there is time to answer.
const RESERVE: Duration = Duration::from_secs(2);

/// Grants `search` on the run's files.
#[derive(Default)]
pub struct Search {
    path: Option<PathBuf>,
    embedder: Option<Embedder>,
    /// Embeddings that were asked for under this grant.
    asked: AtomicU32,
    index: Arc<Mutex<Option<Index>>>,
}

/// A model that places texts by their meaning.
#[derive(Clone)]
pub struct Embedder {
    /// The model's name: what one model says of a text means nothing beside what another says.
    pub name: String,
    /// The model.
    pub model: Arc<dyn Inference>,
}

impl Search {
    /// Keeps the index in that file, which belongs to one workdir, and which it may replace; without one, in memory. With an embedder,
    /// passages are found by meaning as well as by words.
    #[must_use]
    pub fn new(path: Option<PathBuf>, embedder: Option<Embedder>) -> Search {
        Search { path, embedder, ..Search::default() }
    }
}

/// The file in that folder that keeps the index of a workdir, which is named by its canonical path.
#[must_use]
pub fn index_file(folder: &Path, workdir: &Path) -> PathBuf {
    let hash = blake3::hash(workdir.as_os_str().as_encoded_bytes()).to_hex();
    folder.join(format!("{}.db", hash.as_str().get(..32).unwrap_or_default()))
}

impl Config for Search {
    const CAPABILITY: &'static str = "search";
}

async fn find(run: &mut Run, query: Unadmitted<String>, max: i32) -> Result<String, Failure> {
    let (query, gate) = query.open(run);
    let search = run.config::<Search>()?;
    let max = match usize::try_from(max) {
        Ok(0) => USUAL,
        Ok(max) if max <= MOST => max,
        _ => return Err(bad(format!("a search gives 1 to {MOST} passages, not {max}"))),
    };
    let length = query.chars().count();
    if length > QUERY_CHARS {
        return Err(bad(format!(
            "the query has {length} characters; give the words that matter, {QUERY_CHARS} at most"
        )));
    }
    let words = Query::read(&query).ok_or_else(|| bad("the query has no words to look for".to_owned()))?;

    let all = Arc::clone(&run.config::<Fs>()?.0);
    let admitted = crate::fs::confined(run, gate.clone())?;
    let readable = Arc::clone(&admitted);
    let index = Arc::clone(&search.index);
    let path = search.path.clone();
    let deadline = run.deadline().checked_sub(RESERVE).unwrap_or_else(|| run.deadline());
    let stop = walk::Stop::new(deadline);
    let _stops = stop.when_dropped();
    // What is sent to a model is left out where a rule wants it asked about or denied: words alone find something, too.
    let embedder = search.embedder.as_ref().filter(|_| gate.admit(Target::Service(Service::Model), "").is_ok());
    let work = move || {
        let admits = |path: &str| gate.admit(Target::Read, path).is_ok();
        let sight = Sight { all: &all, admitted: &admitted, admits: &admits };
        let mut held = index.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match &mut *held {
            Some(index) => index,
            none => none.insert(Index::open(path)),
        };
        index.search(&sight, &words, &Bounds::default(), &stop)
    };
    let account = run.account().clone();
    let found = match tokio::task::spawn_blocking(move || account.work(work)).await {
        Ok(found) => found.map_err(|why| Failure::new(Code::EREMOTE, format!("the index failed: {why}")))?,
        Err(_) => return Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
    };
    found.notes.iter().for_each(|note| run.log(&format!("search: {note}")));
    if found.late && found.view.is_empty() {
        let why = "the files could not be read in the time that is left; what was read is kept, search again";
        return Err(Failure::new(Code::ETIME, why));
    }

    let ranked = match embedder {
        None => found.by_words.clone(),
        Some(embedder) => match meaning::rank(&search.index, embedder, &search.asked, &query, &found).await {
            Ok(by_meaning) => meaning::fuse(&found.by_words, &by_meaning),
            Err(why) => {
                run.log(&format!("search: found by words alone: {}", why.reason));
                found.by_words.clone()
            }
        },
    };
    let index = Arc::clone(&search.index);
    let work = move || {
        let mut held = index.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_mut().map_or_else(|| Ok(Vec::new()), |index| standing(index, &readable, &ranked, max))
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(top) => {
            top.map(|top| shown(&top)).map_err(|why| Failure::new(Code::EREMOTE, format!("the index failed: {why}")))
        }
        Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
    }
}

/// The first `max` passages that stand in their files as the index has them. An index is a cache: what it says of a file is given out
/// only if the file says it, too.
fn standing(
    index: &mut Index,
    files: &Files,
    ranked: &[(PassageId, f64)],
    max: usize,
) -> Result<Vec<(Found, f64)>, rusqlite::Error> {
    let mut cut: HashMap<String, Vec<Passage>> = HashMap::new();
    let mut top = Vec::new();
    for (id, score) in ranked {
        if top.len() == max {
            break;
        }
        // Another process may have dropped it since.
        let Some(found) = index.passage(*id)? else { continue };
        let passages = cut.entry(found.path.clone()).or_insert_with(|| {
            let data = files.read(&found.path).ok();
            data.as_deref().and_then(index::text_of).map(passages).unwrap_or_default()
        });
        if passages.iter().any(|passage| found.is(passage)) {
            top.push((found, *score));
        } else {
            index.forget(*id, &found)?;
        }
    }
    Ok(top)
}

/// The passages as JSON; the score of the best is 1.
fn shown(top: &[(Found, f64)]) -> String {
    let best = top.first().map_or(1.0, |(_, score)| *score).max(f64::MIN_POSITIVE);
    let items = top.iter().map(|(Found { path, first, last, text, .. }, score)| {
        let score = (score / best * 1_000.0).round() / 1_000.0;
        let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
        json!({"path": path, "lines": lines, "passage": text, "score": score})
    });
    serde_json::Value::Array(items.collect()).to_string()
}

fn bad(why: String) -> Failure {
    Failure::new(Code::EBOUND, why)
}

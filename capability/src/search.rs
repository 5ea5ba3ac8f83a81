//! `search`: ranked search for passages in the run's text files.
//!
//! The index is stored in a file or in memory and updated before each search. A run finds only
//! files that it may read, because every search asks the run's guard about each file.

mod database;
mod index;
mod meaning;
mod passage;
mod query;
mod rank;
mod store;
mod texts;
mod vectors;
mod walk;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use wattle_rt::{Code, Config, Failure, Run, Target, Unadmitted, capability};

use crate::ai::{Inference, MODEL};
use crate::egress;
use crate::files::Files;
use crate::fs::Fs;

use index::Index;
use passage::{Passage, passages};
use rank::PassageId;
use store::StoredPassage;
use vectors::PassageVectors;
use walk::{Bounds, SearchedFiles};

pub use meaning::Nearest;
pub(crate) use meaning::{Allowance, Vectors, rank as rank_by_meaning};
pub use query::{Query, parts};
pub use rank::{POOL, fuse};
pub use texts::TextIndex;
pub(crate) use walk::Stop;
pub use walk::{MAX_BYTES, MAX_FILE_BYTES, MAX_FILES};

capability! {
    /// Search in the run's files.
    pub const SEARCH: "search" 1 for "fs";

    /// Returns the passages of the run's text files that best match a query, best first, as JSON
    /// [{path, lines, passage, score}]; max is 1 to 20, 0 for 5
    #[example = r#"(fs.write "pets/cats.md" "Cats sleep a lot.") (ret (json.get (search.query "sleeping cat" 0) "[0].path"))"# => "pets/cats.md"]
    #[prompt(name)]
    #[effect(reads)]
    async query(query: file_query, max: int) with Search, Fs -> ptr: str ! EBOUND EACCESS ETIME EREMOTE = find;
}

/// Default number of passages in a result.
const DEFAULT_PASSAGES: usize = 5;

/// Maximum number of passages in a result.
const MAX_PASSAGES: usize = 20;

/// Maximum length of a query, in characters.
const MAX_QUERY: usize = 1_000;

/// Time before the run's deadline that is reserved for producing the result. Indexing stops when
/// this time begins.
const RESERVE: Duration = Duration::from_secs(2);

/// The `search` grant: an index of the run's files and, optionally, a model for embeddings.
#[derive(Default)]
pub struct Search {
    path: Option<PathBuf>,
    embedder: Option<Embedder>,
    /// A counter that limits the embeddings requested under this grant.
    allowance: Allowance,
    index: Arc<Mutex<Option<Index>>>,
}

/// A model that computes embeddings.
#[derive(Clone)]
pub struct Embedder {
    /// The model's name. Vectors from different models are not comparable.
    pub name: String,
    /// The model that computes the vectors.
    pub model: Arc<dyn Inference>,
}

impl Search {
    /// Creates a grant. The index is stored in the file at `path`, or in memory if there is no
    /// path. The file must belong to a single workdir, and is replaced if it is invalid. With an
    /// embedder, passages are also found by meaning.
    #[must_use]
    pub fn new(path: Option<PathBuf>, embedder: Option<Embedder>) -> Search {
        Search { path, embedder, ..Search::default() }
    }
}

/// Returns the path of a workdir's index file in `folder`. `workdir` must be a canonical path.
#[must_use]
pub fn index_file(folder: &Path, workdir: &Path) -> PathBuf {
    let hash = blake3::hash(workdir.as_os_str().as_encoded_bytes()).to_hex();
    folder.join(format!("{}.db", hash.as_str().get(..32).unwrap_or_default()))
}

impl Config for Search {
    const CAPABILITIES: &'static [&'static str] = &["search"];
}

async fn find(
    search: Arc<Search>,
    fs: Arc<Fs>,
    run: &mut Run,
    query: Unadmitted<String>,
    max: i32,
) -> Result<String, Failure> {
    let (query, gate) = query.open(run);
    let max = match usize::try_from(max) {
        Ok(0) => DEFAULT_PASSAGES,
        Ok(max) if max <= MAX_PASSAGES => max,
        _ => return Err(bad(format!("max must be 0 to {MAX_PASSAGES}, not {max}"))),
    };
    let length = query.chars().count();
    if length > MAX_QUERY {
        return Err(bad(format!(
            "the query has {length} characters, more than {MAX_QUERY}; use only the words that \
             matter"
        )));
    }
    let words = Query::read(&query).ok_or_else(|| bad("the query has no words".to_owned()))?;

    let all = Arc::clone(&fs.0);
    let admitted = fs.confined(gate.clone());
    let readable = Arc::clone(&admitted);
    let index = Arc::clone(&search.index);
    let path = search.path.clone();
    let deadline = run.deadline().checked_sub(RESERVE).unwrap_or_else(|| run.deadline());
    let stop = walk::Stop::new(run.account(), deadline);
    let _stops = stop.stop_on_drop();
    // If the policy denies the model or requires approval for it, only the keyword search runs.
    let embedder =
        search.embedder.as_ref().filter(|_| gate.admit(Target::Service(&MODEL), "").is_ok());
    let work = move || {
        let admits = |path: &str| gate.admit(Target::Read, path).is_ok();
        let files = SearchedFiles { all: &all, admitted: &admitted, admits: &admits };
        let mut held = index.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match &mut *held {
            Some(index) => index,
            none => none.insert(Index::open(path)),
        };
        index.search(&files, &words, &Bounds::default(), &stop)
    };
    let account = run.account().clone();
    let found = match tokio::task::spawn_blocking(move || account.work(work)).await {
        Ok(found) => {
            found.map_err(|why| Failure::new(Code::EREMOTE, format!("the index failed: {why}")))?
        }
        Err(_) => return Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
    };
    found.notes.iter().for_each(|note| run.log(&format!("search: {note}")));
    if found.timed_out && found.view.is_empty() {
        let why =
            "there was no time to read the files; the index keeps what was read, so search again";
        return Err(Failure::new(Code::ETIME, why));
    }

    let ranked = match embedder {
        None => found.by_words.clone(),
        Some(embedder) => {
            let out = egress::Passage::of(run, SEARCH.name);
            let passages = PassageVectors { index: &search.index, found: &found };
            match rank_by_meaning(&passages, embedder, &search.allowance, &out, &query).await {
                Ok(by_meaning) => fuse(&found.by_words, &by_meaning),
                Err(why) => {
                    run.log(&format!("search: by words only: {}", why.reason));
                    found.by_words.clone()
                }
            }
        }
    };
    let index = Arc::clone(&search.index);
    let work = move || {
        let mut held = index.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_mut()
            .map_or_else(|| Ok(Vec::new()), |index| verified(index, &readable, &ranked, max))
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(top) => top
            .map(|top| render(&top))
            .map_err(|why| Failure::new(Code::EREMOTE, format!("the index failed: {why}"))),
        Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
    }
}

/// Returns at most `max` of the ranked passages, each with its score. The index may be out of date,
/// so a passage that is no longer in its file is skipped, and the content of that file is removed
/// from the index.
fn verified(
    index: &mut Index,
    files: &Files,
    ranked: &[(PassageId, f64)],
    max: usize,
) -> Result<Vec<(StoredPassage, f64)>, rusqlite::Error> {
    let mut passages_of: HashMap<String, Vec<Passage>> = HashMap::new();
    let mut top = Vec::new();
    for (id, score) in ranked {
        if top.len() == max {
            break;
        }
        // Another process may have removed the passage since the search.
        let Some(found) = index.passage(*id)? else { continue };
        let passages = passages_of.entry(found.path.clone()).or_insert_with(|| {
            let data = files.read(&found.path).ok();
            let text = data.as_deref().and_then(store::text_of);
            text.map(|text| passages(&found.path, text)).unwrap_or_default()
        });
        if passages.iter().any(|passage| found.is(passage)) {
            top.push((found, *score));
        } else {
            index.forget(*id, &found)?;
        }
    }
    Ok(top)
}

/// Renders the passages as JSON. The best passage has the score 1.
fn render(top: &[(StoredPassage, f64)]) -> String {
    let best = top.first().map_or(1.0, |(_, score)| *score).max(f64::MIN_POSITIVE);
    let items = top.iter().map(|(StoredPassage { path, first, last, text, .. }, score)| {
        let score = (score / best * 1_000.0).round() / 1_000.0;
        let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
        json!({"path": path, "lines": lines, "passage": text, "score": score})
    });
    serde_json::Value::Array(items.collect()).to_string()
}

fn bad(why: String) -> Failure {
    Failure::new(Code::EBOUND, why)
}

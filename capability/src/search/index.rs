//! The index: what is known of the files, brought up to date, and asked.
//!
//! A row of `file` is one content of a path. Runs with overlays over one workdir share the database, and each looks only at the
//! contents that it sees itself: its *view*.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::database::{self, Cause};
use super::passage::passages;
use super::query::{Query, parts};
use super::walk::{Bounds, Seen, Stop, walk};
use crate::files::Files;

/// How many passages are taken from a list that others are fused with.
pub(super) const POOL: usize = 60;

/// How many files are written in one transaction, so that other processes get their turn.
const BATCH: usize = 100;

/// The bytes at a file's beginning in which a NUL tells that it is no text.
const HEAD: usize = 8 << 10;

/// A file that was written shortly before it was read may have been written again since, within the clock's own precision.
const UNSETTLED: i64 = 2_000_000_000;

/// Seconds after which a content that nobody sees is forgotten, and after which its use is noted anew.
const FORGOTTEN: i64 = 86_400;
const NOTED: i64 = 3_600;

/// The index of one workdir.
pub(super) struct Index {
    connection: Option<Connection>,
    /// Its file; `None` where it is in memory.
    path: Option<PathBuf>,
    /// The contents that were in view at the last search.
    view: HashSet<i64>,
    notes: Vec<String>,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    /// Passages with their scores, best first.
    pub(super) by_words: Vec<(i64, f64)>,
    /// The contents that the run sees.
    pub(super) view: HashSet<i64>,
    /// Whether there was no time for all files.
    pub(super) late: bool,
    /// What is to be told about it.
    pub(super) notes: Vec<String>,
}

/// A passage where it stands.
pub(super) struct Found {
    pub(super) path: String,
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) text: String,
}

/// A content that the database has.
struct Known {
    id: i64,
    size: i64,
    modified: i64,
    hash: Vec<u8>,
    settled: bool,
    used: i64,
}

/// How the files of a run are seen: all of them, and those that one function may read.
pub(super) struct Sight<'a> {
    pub(super) all: &'a Files,
    pub(super) admitted: &'a Files,
    pub(super) admits: &'a dyn Fn(&str) -> bool,
}

impl Index {
    /// Opens the index in a file, or makes one in memory: where no file is given, or it cannot be used.
    pub(super) fn open(path: Option<PathBuf>) -> Index {
        let mut index = Index { connection: None, path, view: HashSet::new(), notes: Vec::new() };
        if let Some(path) = &index.path {
            match database::open(path) {
                Ok(connection) => index.connection = Some(connection),
                Err(cause) => index.leave_file(&cause),
            }
        }
        index
    }

    /// Goes on in memory.
    fn leave_file(&mut self, cause: &Cause) {
        self.notes.push(format!("the index is kept in memory, since its file cannot be used: {cause}"));
        (self.connection, self.path) = (None, None);
        self.view.clear();
    }

    fn connection(&mut self) -> Result<&mut Connection, Cause> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(database::in_memory()?)),
        }
    }

    /// Brings the index up to date with the files that are seen, and looks for the query in them.
    pub(super) fn search(
        &mut self,
        sight: &Sight<'_>,
        query: &Query,
        bounds: &Bounds,
        stop: &Stop,
    ) -> Result<Findings, Cause> {
        let found = match self.attempt(sight, query, bounds, stop) {
            Err(cause) if self.path.is_some() => {
                match self.path.clone().filter(|_| database::is_broken(&cause)) {
                    Some(path) => {
                        self.connection = None;
                        self.view.clear();
                        database::remove(&path);
                        match database::open(&path) {
                            Ok(connection) => self.connection = Some(connection),
                            Err(cause) => self.leave_file(&cause),
                        }
                    }
                    None => self.leave_file(&cause),
                }
                self.attempt(sight, query, bounds, stop)
            }
            found => found,
        };
        let mut found = found?;
        found.notes.append(&mut self.notes);
        Ok(found)
    }

    fn attempt(&mut self, sight: &Sight<'_>, query: &Query, bounds: &Bounds, stop: &Stop) -> Result<Findings, Cause> {
        let walked = walk(sight.all, sight.admits, bounds, stop);
        let before = std::mem::take(&mut self.view);
        let connection = self.connection()?;
        let mut found = Findings { late: walked.late, notes: walked.notes, ..Findings::default() };
        let mut known = known(connection)?;
        let now = now();
        let mut unread = Vec::new();
        let mut noted = Vec::new();
        for seen in walked.files {
            let rows = known.remove(&seen.path).unwrap_or_default();
            match rows.iter().find(|row| row.settled && row.is_like(&seen)) {
                Some(row) => {
                    found.view.insert(row.id);
                    if row.used < now - NOTED {
                        noted.push(row.id);
                    }
                }
                None => unread.push((seen, rows)),
            }
        }
        for batch in unread.chunks(BATCH) {
            if stop.is_now() {
                found.late = true;
                break;
            }
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (seen, rows) in batch {
                let Ok(data) = sight.admitted.read(&seen.path) else { continue };
                found.view.insert(take_in(&transaction, seen, rows, &data, now)?);
            }
            transaction.commit()?;
        }
        let gone: Vec<i64> = match found.late {
            true => Vec::new(),
            false => before.difference(&found.view).copied().collect(),
        };
        tidy(connection, &gone, &noted, now)?;
        if found.late {
            found.notes.push("there was no time for all files; the next search goes on from here".to_owned());
        }
        found.by_words = by_words(connection, query, &found.view)?;
        self.view.clone_from(&found.view);
        Ok(found)
    }

    /// A passage by its number; `None` where it is no longer there.
    pub(super) fn passage(&mut self, id: i64) -> Result<Option<Found>, Cause> {
        let sql = "SELECT file.path, first, last, text FROM passage JOIN file ON file.id = passage.file WHERE passage.id = ?1";
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let found = statement.query_row([id], |row| {
            Ok(Found { path: row.get(0)?, first: row.get(1)?, last: row.get(2)?, text: row.get(3)? })
        });
        found.optional()
    }

    /// At most `most` passages in view that the model has not placed, of these candidates first.
    pub(super) fn unplaced(
        &mut self,
        model: &str,
        candidates: &[(i64, f64)],
        view: &HashSet<i64>,
        most: usize,
    ) -> Result<Vec<(i64, String)>, Cause> {
        let connection = self.connection()?;
        let mut unplaced = Vec::new();
        let sql = "SELECT text FROM passage WHERE id = ?1 AND id NOT IN (SELECT passage FROM vector WHERE model = ?2)";
        let mut one = connection.prepare_cached(sql)?;
        for (id, _) in candidates {
            if unplaced.len() == most {
                return Ok(unplaced);
            }
            let text: Option<String> = one.query_row(params![id, model], |row| row.get(0)).optional()?;
            unplaced.extend(text.map(|text| (*id, text)));
        }
        let sql = "SELECT id, file, text FROM passage WHERE id NOT IN (SELECT passage FROM vector WHERE model = ?1)";
        let mut others = connection.prepare_cached(sql)?;
        let mut rows = others.query([model])?;
        while let Some(row) = rows.next()? {
            if unplaced.len() == most {
                break;
            }
            let (id, file): (i64, i64) = (row.get(0)?, row.get(1)?);
            if view.contains(&file) && !unplaced.iter().any(|(known, _)| *known == id) {
                unplaced.push((id, row.get(2)?));
            }
        }
        Ok(unplaced)
    }

    /// Keeps where a model placed passages.
    pub(super) fn place(&mut self, model: &str, vectors: &[(i64, Vec<u8>)]) -> Result<(), Cause> {
        let transaction = self.connection()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (passage, coordinates) in vectors {
            let sql = "INSERT OR REPLACE INTO vector (passage, model, coordinates) VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute(params![passage, model, coordinates])?;
        }
        transaction.commit()
    }

    /// Gives every place that the model has for a passage in view to `each`.
    pub(super) fn places(
        &mut self,
        model: &str,
        view: &HashSet<i64>,
        mut each: impl FnMut(i64, &[u8]),
    ) -> Result<(), Cause> {
        let sql = "SELECT passage.id, passage.file, coordinates FROM vector JOIN passage ON passage.id = vector.passage WHERE model = ?1";
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let mut rows = statement.query([model])?;
        while let Some(row) = rows.next()? {
            if view.contains(&row.get(1)?) {
                each(row.get(0)?, row.get_ref(2)?.as_blob().unwrap_or_default());
            }
        }
        Ok(())
    }
}

impl Known {
    fn is_like(&self, seen: &Seen) -> bool {
        seen.modified != 0 && self.modified == seen.modified && self.size == size(seen)
    }
}

fn size(seen: &Seen) -> i64 {
    i64::try_from(seen.size).unwrap_or(i64::MAX)
}

fn known(connection: &Connection) -> Result<HashMap<String, Vec<Known>>, Cause> {
    let mut known: HashMap<String, Vec<Known>> = HashMap::new();
    let mut statement = connection.prepare_cached("SELECT path, id, size, modified, hash, settled, used FROM file")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        known.entry(row.get(0)?).or_default().push(Known {
            id: row.get(1)?,
            size: row.get(2)?,
            modified: row.get(3)?,
            hash: row.get(4)?,
            settled: row.get(5)?,
            used: row.get(6)?,
        });
    }
    Ok(known)
}

/// Takes a file's content in, unless it is known; gives its number.
fn take_in(transaction: &Transaction<'_>, seen: &Seen, rows: &[Known], data: &[u8], now: i64) -> Result<i64, Cause> {
    let hash = blake3::hash(data);
    let hash = hash.as_bytes().as_slice();
    let settled = seen.modified != 0 && nanoseconds_now().saturating_sub(seen.modified) > UNSETTLED;
    let stamp = "UPDATE file SET size = ?2, modified = ?3, settled = ?4, used = ?5 WHERE id = ?1";
    let mut stamp = transaction.prepare_cached(stamp)?;
    if let Some(row) = rows.iter().find(|row| row.hash == hash)
        && stamp.execute(params![row.id, size(seen), seen.modified, settled, now])? == 1
    {
        return Ok(row.id);
    }
    // Another process may have taken it in meanwhile.
    let sql = "SELECT id FROM file WHERE path = ?1 AND hash = ?2";
    let there = transaction.prepare_cached(sql)?.query_row(params![seen.path, hash], |row| row.get(0)).optional()?;
    if let Some(id) = there {
        stamp.execute(params![id, size(seen), seen.modified, settled, now])?;
        return Ok(id);
    }
    let sql = "INSERT INTO file (path, size, modified, hash, settled, used) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    transaction.prepare_cached(sql)?.execute(params![seen.path, size(seen), seen.modified, hash, settled, now])?;
    let file = transaction.last_insert_rowid();
    let names = format!("{} {}", seen.path, parts(&seen.path));
    for passage in text_of(data).map(passages).unwrap_or_default() {
        let sql = "INSERT INTO passage (file, first, last, text) VALUES (?1, ?2, ?3, ?4)";
        let line = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let values = params![file, line(passage.first), line(passage.last), passage.text];
        transaction.prepare_cached(sql)?.execute(values)?;
        let id = transaction.last_insert_rowid();
        let sql = "INSERT INTO words (rowid, path, text, parts) VALUES (?1, ?2, ?3, ?4)";
        transaction.prepare_cached(sql)?.execute(params![id, names, passage.text, parts(&passage.text)])?;
    }
    Ok(file)
}

/// The text of a file; `None` where it holds something else.
fn text_of(data: &[u8]) -> Option<&str> {
    if data.len() as u64 > super::MOST_FILE_BYTES || data.get(..HEAD.min(data.len()))?.contains(&0) {
        return None;
    }
    let text = std::str::from_utf8(data).ok()?;
    Some(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Forgets contents that this run has seen change and those that nobody has seen for long, and notes what is in use.
fn tidy(connection: &mut Connection, gone: &[i64], noted: &[i64], now: i64) -> Result<(), Cause> {
    let sql = "SELECT id FROM file WHERE used < ?1";
    let old: Vec<i64> =
        connection.prepare_cached(sql)?.query_map([now - FORGOTTEN], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let old = old.iter().filter(|id| !noted.contains(id));
    let forgotten: Vec<i64> = gone.iter().chain(old).copied().collect();
    if forgotten.is_empty() && noted.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for id in noted {
        transaction.prepare_cached("UPDATE file SET used = ?2 WHERE id = ?1")?.execute(params![id, now])?;
    }
    for id in &forgotten {
        for sql in [
            "DELETE FROM words WHERE rowid IN (SELECT id FROM passage WHERE file = ?1)",
            "DELETE FROM vector WHERE passage IN (SELECT id FROM passage WHERE file = ?1)",
            "DELETE FROM passage WHERE file = ?1",
            "DELETE FROM file WHERE id = ?1",
        ] {
            transaction.prepare_cached(sql)?.execute([id])?;
        }
    }
    transaction.commit()
}

/// The passages in view that have words of the query, best first. A word in a file's name weighs more than one in its text.
fn by_words(connection: &Connection, query: &Query, view: &HashSet<i64>) -> Result<Vec<(i64, f64)>, Cause> {
    let sql = "SELECT passage.id, passage.file, bm25(words, 2.0, 1.0, 0.7) AS score
               FROM words JOIN passage ON passage.id = words.rowid WHERE words MATCH ?1 ORDER BY score, passage.id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([query.expression()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if found.len() == POOL {
            break;
        }
        if view.contains(&row.get(1)?) {
            // The function gives the better the lower.
            found.push((row.get(0)?, -row.get::<_, f64>(2)?));
        }
    }
    Ok(found)
}

fn now() -> i64 {
    nanoseconds_now() / 1_000_000_000
}

fn nanoseconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

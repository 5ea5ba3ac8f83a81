//! A database of the search index, with its queries and updates.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::database::{self, Cause};
use super::passage::{Passage, passages};
use super::query::{Query, parts};
use super::rank::{POOL, PassageId};
use super::walk::{SearchedFiles, SeenFile, Stop};
use crate::files::{Files, Version};

/// Maximum number of files per transaction. Other processes can write between transactions.
const BATCH: usize = 100;

/// Number of bytes at the start of a file that are searched for a NUL byte. If they contain one,
/// the file is treated as binary.
const HEAD: usize = 8 << 10;

/// Minimum age of a file's version before it is recorded, in nanoseconds. A younger file could
/// change again without a visible change of its timestamps.
const UNSETTLED: i128 = 2_000_000_000;

/// Time after which a snapshot is removed if no run has seen it, in seconds.
const RETENTION: i64 = 86_400;
/// Minimum time between two updates of a snapshot's last-use time, in seconds.
const USE_PRECISION: i64 = 3_600;

/// A database of the search index. Each index has two: a database for the files on disk, shared by
/// all runs of the workdir, and a database for the files in the run's overlay.
pub(super) struct Store {
    pub(super) connection: Option<Connection>,
    /// The path of the database file, or `None` if the database is in memory.
    pub(super) path: Option<PathBuf>,
    /// The snapshots that the run saw at the last search.
    pub(super) view: HashSet<i64>,
    /// If true, this is the database of the run's overlay.
    own: bool,
}

/// A passage in the database.
pub(super) struct StoredPassage {
    pub(super) path: String,
    /// The number of the first line, counted from 1.
    pub(super) first: i64,
    /// The number of the last line.
    pub(super) last: i64,
    pub(super) text: String,
    file: i64,
}

impl StoredPassage {
    /// Returns true if the stored passage equals a passage of a file.
    pub(super) fn is(&self, passage: &Passage) -> bool {
        let line = |number: i64| usize::try_from(number).ok();
        (line(self.first), line(self.last)) == (Some(passage.first), Some(passage.last))
            && self.text == passage.text
    }
}

/// A snapshot in the database.
struct ContentRow {
    id: i64,
    version: Vec<u8>,
    hash: Vec<u8>,
    used: i64,
}

impl Store {
    pub(super) fn new(path: Option<PathBuf>, own: bool) -> Store {
        Store { connection: None, path, view: HashSet::new(), own }
    }

    fn connection(&mut self) -> Result<&mut Connection, Cause> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(database::in_memory()?)),
        }
    }

    /// Adds snapshots of new and changed files. Removes snapshots that the run no longer sees.
    /// Returns true if the time ran out before all files were added.
    pub(super) fn update(
        &mut self,
        searched: &SearchedFiles<'_>,
        files: Vec<SeenFile>,
        stop: &Stop,
        mut timed_out: bool,
    ) -> Result<bool, Cause> {
        let before = std::mem::take(&mut self.view);
        if files.is_empty() && before.is_empty() && self.connection.is_none() {
            return Ok(timed_out);
        }
        let mut view = HashSet::new();
        let mut unread = Vec::new();
        let mut used = Vec::new();
        let now = now();
        let connection = self.connection()?;
        let mut known = known(connection)?;
        for seen in files {
            let rows = known.remove(&seen.path).unwrap_or_default();
            let key = seen.version.as_ref().map(Version::key);
            match rows.iter().find(|row| key.is_some_and(|key| row.version == key)) {
                Some(row) => {
                    view.insert(row.id);
                    if row.used < now - USE_PRECISION {
                        used.push(row.id);
                    }
                }
                None => unread.push((seen, rows)),
            }
        }
        for batch in unread.chunks(BATCH) {
            if stop.is_set() {
                timed_out = true;
                break;
            }
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (seen, rows) in batch {
                let Some((data, version)) = content(searched.admitted, seen) else { continue };
                view.insert(add_content(&transaction, &seen.path, &version, rows, &data, now)?);
            }
            transaction.commit()?;
        }
        let gone: Vec<i64> =
            if timed_out { Vec::new() } else { before.difference(&view).copied().collect() };
        clean_up(connection, &gone, &used, now)?;
        self.view = view;
        Ok(timed_out)
    }

    pub(super) fn by_words(&mut self, query: &Query) -> Result<Vec<(PassageId, f64)>, Cause> {
        if self.view.is_empty() {
            return Ok(Vec::new());
        }
        let own = self.own;
        let view = self.view.clone();
        let found = by_words(self.connection()?, query, &view)?;
        Ok(found.into_iter().map(|(id, score)| (PassageId { own, id }, score)).collect())
    }

    /// Returns a passage, or `None` if it has been removed.
    pub(super) fn passage(&mut self, id: i64) -> Result<Option<StoredPassage>, Cause> {
        let sql = "SELECT file.path, first, last, text, file.id FROM passage JOIN file ON file.id \
                   = passage.file WHERE passage.id = ?1";
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let found = statement.query_row([id], |row| {
            Ok(StoredPassage {
                path: row.get(0)?,
                first: row.get(1)?,
                last: row.get(2)?,
                text: row.get(3)?,
                file: row.get(4)?,
            })
        });
        found.optional()
    }

    /// Removes the snapshot that contains a passage.
    pub(super) fn forget(&mut self, passage: &StoredPassage) -> Result<(), Cause> {
        clean_up(self.connection()?, &[passage.file], &[], now())
    }

    /// Returns the ids and texts of at most `max` passages of the run's view that have no vector
    /// from the model. Passages in `candidates` come first.
    pub(super) fn without_vector(
        &mut self,
        model: &str,
        candidates: &[i64],
        view: &HashSet<i64>,
        max: usize,
    ) -> Result<Vec<(i64, String)>, Cause> {
        let connection = self.connection()?;
        let mut found = Vec::new();
        let sql = "SELECT text FROM passage WHERE id = ?1 AND id NOT IN (SELECT passage FROM \
                   vector WHERE model = ?2)";
        let mut one = connection.prepare_cached(sql)?;
        for id in candidates {
            if found.len() == max {
                return Ok(found);
            }
            let text: Option<String> =
                one.query_row(params![id, model], |row| row.get(0)).optional()?;
            found.extend(text.map(|text| (*id, text)));
        }
        let sql = "SELECT id, file, text FROM passage WHERE id NOT IN (SELECT passage FROM vector \
                   WHERE model = ?1)";
        let mut others = connection.prepare_cached(sql)?;
        let mut rows = others.query([model])?;
        while let Some(row) = rows.next()? {
            if found.len() == max {
                break;
            }
            let (id, file): (i64, i64) = (row.get(0)?, row.get(1)?);
            if view.contains(&file) && !found.iter().any(|(known, _)| *known == id) {
                found.push((id, row.get(2)?));
            }
        }
        Ok(found)
    }

    /// Stores vectors that a model computed for passages.
    pub(super) fn add_vectors(
        &mut self,
        model: &str,
        vectors: &[(i64, &[u8])],
    ) -> Result<(), Cause> {
        let transaction =
            self.connection()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (passage, coordinates) in vectors {
            let sql =
                "INSERT OR REPLACE INTO vector (passage, model, coordinates) VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute(params![passage, model, coordinates])?;
        }
        transaction.commit()
    }

    /// Calls `each` with the id and the vector of every passage of the run's view that has a vector
    /// from the model.
    pub(super) fn for_each_vector(
        &mut self,
        model: &str,
        view: &HashSet<i64>,
        mut each: impl FnMut(i64, &[u8]),
    ) -> Result<(), Cause> {
        let sql = "SELECT passage.id, passage.file, coordinates FROM vector JOIN passage ON \
                   passage.id = vector.passage WHERE model = ?1";
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

/// Reads the content of a file and returns it with the key of the file's version. The key is empty
/// for a file in the overlay, for a file that changed while it was read, and for a file that is too
/// new for its version to be reliable. Returns `None` if the file cannot be read, or if it has
/// moved from the base to the overlay or back since the walk.
fn content(files: &Files, seen: &SeenFile) -> Option<(Bytes, Vec<u8>)> {
    let reader = files.open(&seen.path).ok()?;
    let data = reader.read_all().ok()?;
    let Some(version) = reader.version() else {
        // A file that was in the base during the walk may be in the overlay by now. Its content
        // must not enter the shared database.
        return seen.version.is_none().then(|| (data, Vec::new()));
    };
    seen.version.as_ref()?;
    let settled = i128::from(nanoseconds_now()).saturating_sub(version.changed()) > UNSETTLED;
    let known = settled && reader.is_unchanged().unwrap_or(false);
    Some((data, if known { version.key().to_vec() } else { Vec::new() }))
}

/// Returns the snapshots in the database, by path.
fn known(connection: &Connection) -> Result<HashMap<String, Vec<ContentRow>>, Cause> {
    let mut known: HashMap<String, Vec<ContentRow>> = HashMap::new();
    let mut statement =
        connection.prepare_cached("SELECT path, id, version, hash, used FROM file")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        known.entry(row.get(0)?).or_default().push(ContentRow {
            id: row.get(1)?,
            version: row.get(2)?,
            hash: row.get(3)?,
            used: row.get(4)?,
        });
    }
    Ok(known)
}

/// Adds a snapshot of a file unless the database already contains it. Returns its identifier.
fn add_content(
    transaction: &Transaction<'_>,
    path: &str,
    version: &[u8],
    rows: &[ContentRow],
    data: &[u8],
    now: i64,
) -> Result<i64, Cause> {
    let hash = blake3::hash(data);
    let hash = hash.as_bytes().as_slice();
    let stamp = "UPDATE file SET version = ?2, used = ?3 WHERE id = ?1";
    let mut stamp = transaction.prepare_cached(stamp)?;
    if let Some(row) = rows.iter().find(|row| row.hash == hash)
        && stamp.execute(params![row.id, version, now])? == 1
    {
        return Ok(row.id);
    }
    // Another process may have added the snapshot in the meantime.
    let sql = "SELECT id FROM file WHERE path = ?1 AND hash = ?2";
    let existing = transaction
        .prepare_cached(sql)?
        .query_row(params![path, hash], |row| row.get(0))
        .optional()?;
    if let Some(id) = existing {
        stamp.execute(params![id, version, now])?;
        return Ok(id);
    }
    let sql = "INSERT INTO file (path, version, hash, used) VALUES (?1, ?2, ?3, ?4)";
    transaction.prepare_cached(sql)?.execute(params![path, version, hash, now])?;
    let file = transaction.last_insert_rowid();
    let names = format!("{path} {}", parts(path));
    for passage in text_of(data).map(|text| passages(path, text)).unwrap_or_default() {
        let sql = "INSERT INTO passage (file, first, last, text) VALUES (?1, ?2, ?3, ?4)";
        let line = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let values = params![file, line(passage.first), line(passage.last), passage.text];
        transaction.prepare_cached(sql)?.execute(values)?;
        let id = transaction.last_insert_rowid();
        let sql = "INSERT INTO words (rowid, path, text, parts) VALUES (?1, ?2, ?3, ?4)";
        transaction.prepare_cached(sql)?.execute(params![
            id,
            names,
            passage.text,
            parts(&passage.text)
        ])?;
    }
    Ok(file)
}

/// Decodes the text of a file. Returns `None` if the file is binary, too large or not UTF-8.
pub(super) fn text_of(data: &[u8]) -> Option<&str> {
    if data.len() as u64 > super::MAX_FILE_BYTES || data.get(..HEAD.min(data.len()))?.contains(&0) {
        return None;
    }
    let text = std::str::from_utf8(data).ok()?;
    Some(wattle_rt::without_bom(text))
}

/// Removes the snapshots in `gone`, and any snapshots that no run has seen within [`RETENTION`].
/// Records the use of the snapshots in `used`.
fn clean_up(
    connection: &mut Connection,
    gone: &[i64],
    used: &[i64],
    now: i64,
) -> Result<(), Cause> {
    let sql = "SELECT id FROM file WHERE used < ?1";
    let old: Vec<i64> = connection
        .prepare_cached(sql)?
        .query_map([now - RETENTION], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let old = old.iter().filter(|id| !used.contains(id));
    let removed: Vec<i64> = gone.iter().chain(old).copied().collect();
    if removed.is_empty() && used.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for id in used {
        transaction
            .prepare_cached("UPDATE file SET used = ?2 WHERE id = ?1")?
            .execute(params![id, now])?;
    }
    for id in &removed {
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

/// Returns the ids and scores of at most [`POOL`] passages of the run's view that match words in
/// the query, best first. A match in a file's path has more weight than a match in its content.
fn by_words(
    connection: &Connection,
    query: &Query,
    view: &HashSet<i64>,
) -> Result<Vec<(i64, f64)>, Cause> {
    let sql = "SELECT passage.id, passage.file, bm25(words, 2.0, 1.0, 0.7) AS score
               FROM words JOIN passage ON passage.id = words.rowid WHERE words MATCH ?1 ORDER BY \
               score, passage.id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([query.expression()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if found.len() == POOL {
            break;
        }
        if view.contains(&row.get(1)?) {
            // A lower BM25 value is better, so the score is negated.
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

//! The index: what is known of the files, brought up to date, and asked.
//!
//! A row of `file` is one content of a path. Runs over one workdir share the database of its base, and each looks only at the contents
//! that it sees itself: its *view*. A content is known again by the version of the open file that it was read from: its device,
//! number, size and times, of which no program sets the last.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::database::{self, Cause};
use super::meaning::fuse;
use super::passage::{Passage, passages};
use super::query::{Query, parts};
use super::walk::{Bounds, Seen, Stop, walk};
use crate::files::{Files, Version};

/// How many passages are taken from a list that others are fused with.
pub(super) const POOL: usize = 60;

/// How many files are written in one transaction, so that other processes get their turn.
const BATCH: usize = 100;

/// The bytes at a file's beginning in which a NUL tells that it is no text.
const HEAD: usize = 8 << 10;

/// A file that was written shortly before it was read may have been written again since, within the clock's own precision.
const UNSETTLED: i128 = 2_000_000_000;

/// Seconds after which a content that nobody sees is forgotten, and after which its use is noted anew.
const FORGOTTEN: i64 = 86_400;
const NOTED: i64 = 3_600;

/// One passage of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PassageId {
    /// Whether it is of a file of the run's overlay.
    own: bool,
    id: i64,
}

/// The contents that a run sees, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    shared: HashSet<i64>,
    own: HashSet<i64>,
}

impl View {
    pub(super) fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.own.is_empty()
    }
}

/// The index of one workdir, as a run sees it.
///
/// What the base has is kept in a file that later runs use, too. What the run itself wrote to its overlay is kept apart, in memory,
/// and gone with the run: no run puts a passage into what another searches.
pub(super) struct Index {
    shared: Part,
    own: Part,
    notes: Vec<String>,
}

/// One database, and what was seen of it.
struct Part {
    connection: Option<Connection>,
    /// Its file; `None` where it is in memory.
    path: Option<PathBuf>,
    /// The contents that were in view at the last search.
    view: HashSet<i64>,
    own: bool,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    /// Passages with their scores, best first.
    pub(super) by_words: Vec<(PassageId, f64)>,
    /// The contents that the run sees.
    pub(super) view: View,
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
    file: i64,
}

impl Found {
    /// Whether it is that passage of a file.
    pub(super) fn is(&self, passage: &Passage) -> bool {
        let line = |number: i64| usize::try_from(number).ok();
        (line(self.first), line(self.last)) == (Some(passage.first), Some(passage.last)) && self.text == passage.text
    }
}

/// A content that the database has.
struct Known {
    id: i64,
    version: Vec<u8>,
    hash: Vec<u8>,
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
        let part = |path, own| Part { connection: None, path, view: HashSet::new(), own };
        let mut index = Index { shared: part(path, false), own: part(None, true), notes: Vec::new() };
        if let Some(path) = &index.shared.path {
            match database::open(path) {
                Ok(connection) => index.shared.connection = Some(connection),
                Err(cause) => index.leave_file(&cause),
            }
        }
        index
    }

    /// Goes on in memory.
    fn leave_file(&mut self, cause: &Cause) {
        self.notes.push(format!("the index is kept in memory, since its file cannot be used: {cause}"));
        (self.shared.connection, self.shared.path) = (None, None);
        self.shared.view.clear();
    }

    fn part(&mut self, own: bool) -> &mut Part {
        if own { &mut self.own } else { &mut self.shared }
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
            Err(cause) if self.shared.path.is_some() => {
                match self.shared.path.clone().filter(|_| database::is_broken(&cause)) {
                    Some(path) => {
                        self.shared.connection = None;
                        self.shared.view.clear();
                        database::remove(&path);
                        match database::open(&path) {
                            Ok(connection) => self.shared.connection = Some(connection),
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
        let mut found = Findings { late: walked.late, notes: walked.notes, ..Findings::default() };
        let (base, overlay) = walked.files.into_iter().partition(|seen| seen.version.is_some());
        found.late |= self.shared.update(sight, base, stop, found.late)?;
        found.late |= self.own.update(sight, overlay, stop, found.late)?;
        if found.late {
            found.notes.push("there was no time for all files; the next search goes on from here".to_owned());
        }
        let (shared, own) = (self.shared.by_words(query)?, self.own.by_words(query)?);
        // Scores of two databases say nothing beside each other, ranks do.
        found.by_words = match (shared.is_empty(), own.is_empty()) {
            (false, false) => fuse(&shared, &own),
            (true, _) => own,
            (_, true) => shared,
        };
        found.view = View { shared: self.shared.view.clone(), own: self.own.view.clone() };
        Ok(found)
    }

    /// A passage by its number; `None` where it is no longer there.
    pub(super) fn passage(&mut self, id: PassageId) -> Result<Option<Found>, Cause> {
        self.part(id.own).passage(id.id)
    }

    /// Forgets the content that a passage was cut from: the file does not have it.
    pub(super) fn forget(&mut self, id: PassageId, found: &Found) -> Result<(), Cause> {
        tidy(self.part(id.own).connection()?, &[found.file], &[], now())
    }

    /// At most `most` passages in view that the model has not placed, of these candidates first.
    pub(super) fn unplaced(
        &mut self,
        model: &str,
        candidates: &[(PassageId, f64)],
        view: &View,
        most: usize,
    ) -> Result<Vec<(PassageId, String)>, Cause> {
        let mut all = Vec::new();
        for (own, view) in [(true, &view.own), (false, &view.shared)] {
            let of_part: Vec<i64> = candidates.iter().filter(|(id, _)| id.own == own).map(|(id, _)| id.id).collect();
            let most = most.saturating_sub(all.len());
            let unplaced = self.part(own).unplaced(model, &of_part, view, most)?;
            all.extend(unplaced.into_iter().map(|(id, text)| (PassageId { own, id }, text)));
        }
        Ok(all)
    }

    /// Keeps where a model placed passages.
    pub(super) fn place(&mut self, model: &str, vectors: &[(PassageId, Vec<u8>)]) -> Result<(), Cause> {
        for own in [true, false] {
            let of_part: Vec<(i64, &[u8])> =
                vectors.iter().filter(|(id, _)| id.own == own).map(|(id, bytes)| (id.id, bytes.as_slice())).collect();
            if !of_part.is_empty() {
                self.part(own).place(model, &of_part)?;
            }
        }
        Ok(())
    }

    /// Gives every place that the model has for a passage in view to `each`.
    pub(super) fn places(
        &mut self,
        model: &str,
        view: &View,
        mut each: impl FnMut(PassageId, &[u8]),
    ) -> Result<(), Cause> {
        for (own, view) in [(true, &view.own), (false, &view.shared)] {
            if !view.is_empty() {
                self.part(own).places(model, view, |id, bytes| each(PassageId { own, id }, bytes))?;
            }
        }
        Ok(())
    }
}

impl Part {
    fn connection(&mut self) -> Result<&mut Connection, Cause> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(database::in_memory()?)),
        }
    }

    /// Takes in what is new of the files that are seen; tells whether there was no time for all of them.
    fn update(&mut self, sight: &Sight<'_>, files: Vec<Seen>, stop: &Stop, mut late: bool) -> Result<bool, Cause> {
        let before = std::mem::take(&mut self.view);
        if files.is_empty() && before.is_empty() && self.connection.is_none() {
            return Ok(late);
        }
        let (mut view, mut unread, mut noted) = (HashSet::new(), Vec::new(), Vec::new());
        let now = now();
        let connection = self.connection()?;
        let mut known = known(connection)?;
        for seen in files {
            let rows = known.remove(&seen.path).unwrap_or_default();
            let key = seen.version.as_ref().map(Version::key);
            match rows.iter().find(|row| key.is_some_and(|key| row.version == key)) {
                Some(row) => {
                    view.insert(row.id);
                    if row.used < now - NOTED {
                        noted.push(row.id);
                    }
                }
                None => unread.push((seen, rows)),
            }
        }
        for batch in unread.chunks(BATCH) {
            if stop.is_now() {
                late = true;
                break;
            }
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (seen, rows) in batch {
                let Some((data, version)) = content(sight.admitted, seen) else { continue };
                view.insert(take_in(&transaction, &seen.path, &version, rows, &data, now)?);
            }
            transaction.commit()?;
        }
        let gone: Vec<i64> = if late { Vec::new() } else { before.difference(&view).copied().collect() };
        tidy(connection, &gone, &noted, now)?;
        self.view = view;
        Ok(late)
    }

    fn by_words(&mut self, query: &Query) -> Result<Vec<(PassageId, f64)>, Cause> {
        if self.view.is_empty() {
            return Ok(Vec::new());
        }
        let (own, view) = (self.own, self.view.clone());
        let found = by_words(self.connection()?, query, &view)?;
        Ok(found.into_iter().map(|(id, score)| (PassageId { own, id }, score)).collect())
    }

    /// A passage by its number; `None` where it is no longer there.
    fn passage(&mut self, id: i64) -> Result<Option<Found>, Cause> {
        let sql = "SELECT file.path, first, last, text, file.id FROM passage JOIN file ON file.id = passage.file WHERE passage.id = ?1";
        let mut statement = self.connection()?.prepare_cached(sql)?;
        let found = statement.query_row([id], |row| {
            Ok(Found { path: row.get(0)?, first: row.get(1)?, last: row.get(2)?, text: row.get(3)?, file: row.get(4)? })
        });
        found.optional()
    }

    /// At most `most` passages in view that the model has not placed, of these candidates first.
    fn unplaced(
        &mut self,
        model: &str,
        candidates: &[i64],
        view: &HashSet<i64>,
        most: usize,
    ) -> Result<Vec<(i64, String)>, Cause> {
        let connection = self.connection()?;
        let mut unplaced = Vec::new();
        let sql = "SELECT text FROM passage WHERE id = ?1 AND id NOT IN (SELECT passage FROM vector WHERE model = ?2)";
        let mut one = connection.prepare_cached(sql)?;
        for id in candidates {
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
    fn place(&mut self, model: &str, vectors: &[(i64, &[u8])]) -> Result<(), Cause> {
        let transaction = self.connection()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (passage, coordinates) in vectors {
            let sql = "INSERT OR REPLACE INTO vector (passage, model, coordinates) VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute(params![passage, model, coordinates])?;
        }
        transaction.commit()
    }

    /// Gives every place that the model has for a passage in view to `each`.
    fn places(&mut self, model: &str, view: &HashSet<i64>, mut each: impl FnMut(i64, &[u8])) -> Result<(), Cause> {
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

/// The content of a file, with the key of its version: none for a file of the overlay, and for one that may change again without
/// looking so. The content and the version are of one open file, which did not change while it was read.
fn content(files: &Files, seen: &Seen) -> Option<(Bytes, Vec<u8>)> {
    let reader = files.open(&seen.path).ok()?;
    let data = reader.read_all().ok()?;
    let Some(version) = reader.version() else {
        // It was one of the base when the folders were looked at: what is of the overlay stays out of the file.
        return seen.version.is_none().then(|| (data, Vec::new()));
    };
    seen.version.as_ref()?;
    let settled = i128::from(nanoseconds_now()).saturating_sub(version.changed()) > UNSETTLED;
    let known = settled && reader.is_unchanged().unwrap_or(false);
    Some((data, if known { version.key().to_vec() } else { Vec::new() }))
}

fn known(connection: &Connection) -> Result<HashMap<String, Vec<Known>>, Cause> {
    let mut known: HashMap<String, Vec<Known>> = HashMap::new();
    let mut statement = connection.prepare_cached("SELECT path, id, version, hash, used FROM file")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        known.entry(row.get(0)?).or_default().push(Known {
            id: row.get(1)?,
            version: row.get(2)?,
            hash: row.get(3)?,
            used: row.get(4)?,
        });
    }
    Ok(known)
}

/// Takes a file's content in, unless it is known; gives its number.
fn take_in(
    transaction: &Transaction<'_>,
    path: &str,
    version: &[u8],
    rows: &[Known],
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
    // Another process may have taken it in meanwhile.
    let sql = "SELECT id FROM file WHERE path = ?1 AND hash = ?2";
    let there = transaction.prepare_cached(sql)?.query_row(params![path, hash], |row| row.get(0)).optional()?;
    if let Some(id) = there {
        stamp.execute(params![id, version, now])?;
        return Ok(id);
    }
    let sql = "INSERT INTO file (path, version, hash, used) VALUES (?1, ?2, ?3, ?4)";
    transaction.prepare_cached(sql)?.execute(params![path, version, hash, now])?;
    let file = transaction.last_insert_rowid();
    let names = format!("{path} {}", parts(path));
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
pub(super) fn text_of(data: &[u8]) -> Option<&str> {
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

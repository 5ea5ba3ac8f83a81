//! The index of the newest lines of a ledger.
//!
//! Many runs write to one ledger, and each of them must notice seals that another process adds to
//! its own chain. If each run read the lines of all others, the cost of a run would grow with their
//! number. Instead, the process reads each line once and remembers, for each run, the position of
//! its newest seal. Lines that this process writes itself are not read at all.
//!
//! The index forgets the oldest runs, so its size is bounded. A run that was written last before
//! that point reads the lines itself.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use super::file::Ledger;
use super::seal::Seal;
use crate::lines::Line;
use crate::now_ms;

/// Maximum difference between the clocks of processes that share a trace, in milliseconds.
const CLOCKS_MS: u64 = 60_000;
/// Maximum number of runs in one generation of an index.
const RUNS: usize = 1 << 15;
/// Maximum number of ledgers that have an index.
const LEDGERS: usize = 64;

/// Number of ledger lines that this process has read in order to add seals.
static LINES_READ: AtomicU64 = AtomicU64::new(0);

/// The indexes of this process, the least recently used first, with the device and the inode of
/// their files.
static INDEXES: Mutex<Vec<((u64, u64), SharedIndex)>> = Mutex::new(Vec::new());

type SharedIndex = Arc<Mutex<Option<Index>>>;

/// Returns the number of ledger lines that this process has read in order to add seals. It grows
/// with the lines that other processes write, and does not depend on the number of runs that this
/// process drives at the same time.
#[must_use]
pub fn lines_read() -> u64 {
    LINES_READ.load(Ordering::Relaxed)
}

/// Counts a line that was read.
pub(super) fn count_line() {
    LINES_READ.fetch_add(1, Ordering::Relaxed);
}

/// Returns the earliest time of a seal of the run, in milliseconds since 1970, or `None` if the
/// run's id contains no time.
pub(super) fn begin_ms(run: &str) -> Option<u64> {
    let id: ulid::Ulid = run.parse().ok()?;
    Some(id.timestamp_ms().saturating_sub(CLOCKS_MS))
}

/// Returns the byte position up to which the ledger contains no seals of the run after the position
/// `read`, or `None` if it may contain some. `None` for `read` means that the run has no seals that
/// its recorder knows.
///
/// # Errors
/// If the ledger cannot be read.
pub(super) fn read_without(
    ledger: &Ledger,
    run: &str,
    read: Option<u64>,
) -> io::Result<Option<u64>> {
    let shared = of(ledger)?;
    let mut index = lock(&shared);
    let index = Index::updated(&mut index, ledger)?;
    Ok((!index.may_have_unread(run, read)).then_some(index.read))
}

/// Adds a line that this process has written at a byte position while the ledger was locked.
///
/// # Errors
/// If the ledger's metadata cannot be read.
pub(super) fn add(ledger: &Ledger, run: &str, at: Range<u64>) -> io::Result<()> {
    // Without an index, or with lines before this one that have not been read, the line is read with
    // the others.
    let shared = of(ledger)?;
    if let Some(index) = &mut *lock(&shared)
        && index.read == at.start
    {
        index.insert(run, at.end);
        index.read = at.end;
    }
    Ok(())
}

/// Returns the index of a ledger. It is `None` before its first use.
fn of(ledger: &Ledger) -> io::Result<SharedIndex> {
    let identity = ledger.identity()?;
    let mut indexes = lock(&INDEXES);
    let known = indexes.iter().position(|(of, _)| *of == identity).map(|at| indexes.remove(at));
    let (_, index) = known.unwrap_or_default();
    if indexes.len() >= LEDGERS {
        indexes.remove(0);
    }
    indexes.push((identity, Arc::clone(&index)));
    Ok(index)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs with seals in a part of a ledger.
#[derive(Debug)]
struct Generation {
    /// The byte position at which the part begins.
    from: u64,
    /// A run whose seals cannot be older than this time has none before `from`. In milliseconds
    /// since 1970.
    since: u64,
    /// The byte position after the newest seal of each run, by the hash of the run's id. If two
    /// runs have the same hash, one of them reads lines in vain.
    newest: HashMap<u64, u64>,
}

#[derive(Debug)]
struct Index {
    older: Generation,
    recent: Generation,
    /// The byte position up to which the ledger has been read.
    read: u64,
    hasher: RandomState,
}

impl Index {
    fn new(ledger: &Ledger) -> io::Result<Index> {
        // A run that begins now may have seals that are as old as the difference of the clocks.
        let since = now_ms().saturating_sub(2 * CLOCKS_MS);
        let from = ledger.position_after(|line| {
            count_line();
            Seal::parse(line).is_some_and(|seal| seal.time < since)
        })?;
        let generation = || Generation { from, since, newest: HashMap::new() };
        let (older, recent) = (generation(), generation());
        Ok(Index { older, recent, read: from, hasher: RandomState::new() })
    }

    /// Reads the lines that were added to the ledger since the last call.
    fn updated<'a>(index: &'a mut Option<Index>, ledger: &Ledger) -> io::Result<&'a mut Index> {
        let length = ledger.length()?;
        // A file that is shorter than before is another one.
        let known = index.take().filter(|index| index.read <= length);
        let mut next = known.map_or_else(|| Index::new(ledger), Ok)?;
        if next.read < length {
            let mut lines = ledger.lines_from(next.read)?;
            while let Some((_, line)) = lines.next_line()? {
                count_line();
                let run = if let Line::Whole(line) = line { run_of(line) } else { None };
                // Another process may still be writing the last line.
                if lines.is_ended() {
                    next.read = lines.position();
                    run.into_iter().for_each(|run| next.insert(&run, next.read));
                }
            }
        }
        Ok(index.insert(next))
    }

    fn insert(&mut self, run: &str, position: u64) {
        if self.recent.newest.len() >= RUNS {
            let next = Generation { from: self.read, since: now_ms(), newest: HashMap::new() };
            self.older = std::mem::replace(&mut self.recent, next);
        }
        self.recent.newest.insert(self.hasher.hash_one(run), position);
    }

    /// Returns true if the ledger may contain seals of the run after the position `read`.
    fn may_have_unread(&self, run: &str, read: Option<u64>) -> bool {
        let hash = self.hasher.hash_one(run);
        let newest = self.recent.newest.get(&hash).or_else(|| self.older.newest.get(&hash));
        match read {
            Some(read) => read < self.older.from || newest.is_some_and(|newest| *newest > read),
            None => newest.is_some() || begin_ms(run).is_none_or(|begin| begin < self.older.since),
        }
    }
}

/// Returns the run of a seal, or `None` if the line is not a seal.
fn run_of(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct RunField {
        run: String,
    }
    serde_json::from_slice(line).ok().map(|RunField { run }| run)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::fmt::Write as _;
    use std::fs::OpenOptions;
    use std::io::Write as _;
    use std::path::Path;

    use super::*;

    fn write(path: &Path, text: &str) -> u64 {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.metadata().unwrap().len()
    }

    fn seals(runs: &[&str]) -> String {
        runs.iter().fold(String::new(), |mut text, run| {
            writeln!(text, r#"{{"v":2,"run":"{run}"}}"#).unwrap();
            text
        })
    }

    #[test]
    fn seals_of_other_processes_are_found_and_their_lines_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let new = || ulid::Ulid::generate().to_string();
        let (one, other) = (new(), new());
        let end = write(&path, &seals(&[&one]));
        let ledger = Ledger::open(&path).unwrap().unwrap();
        let read = |run: &str, read| read_without(&ledger, run, read).unwrap();
        assert_eq!(read(&one, None), None);
        assert_eq!((read(&one, Some(end)), read(&other, None)), (Some(end), Some(end)));
        let next = write(&path, &seals(&[&other, "third"]));
        assert_eq!((read(&one, Some(end)), read(&other, Some(end))), (Some(next), None));
        // A line that is still being written is read later.
        let whole = seals(&[&one]);
        let (begin, rest) = whole.split_at(9);
        write(&path, begin);
        assert_eq!(read(&one, Some(next)), Some(next));
        write(&path, rest);
        assert_eq!(read(&one, Some(next)), None);
        // The id contains no time, so it may be older than the index.
        assert_eq!(read("fourth", None), None);
        let old = ulid::Ulid::from_parts(1, 1).to_string();
        assert_eq!(read(&old, None), None);
    }

    #[test]
    fn a_run_that_the_index_may_have_forgotten_reads_the_lines_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let end = write(&path, &seals(&["one"]));
        let ledger = Ledger::open(&path).unwrap().unwrap();
        assert_eq!(read_without(&ledger, "one", Some(end)).unwrap(), Some(end));
        for generation in 0..2 {
            let runs: Vec<String> =
                (0..=RUNS).map(|number| format!("{generation}-{number}")).collect();
            let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
            write(&path, &seals(&runs));
            let found = read_without(&ledger, "one", Some(end)).unwrap();
            assert_eq!(found.is_none(), generation == 1);
        }
        let shared = of(&ledger).unwrap();
        let index = lock(&shared);
        let index = index.as_ref().unwrap();
        assert!(index.older.newest.len() + index.recent.newest.len() <= 2 * RUNS);
    }

    #[test]
    fn a_ledger_that_begins_anew_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        let end = write(&path, &seals(&["one", "two"]));
        let ledger = Ledger::open(&path).unwrap().unwrap();
        assert_eq!(read_without(&ledger, "one", Some(end)).unwrap(), Some(end));
        OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        let end = write(&path, &seals(&["two"]));
        assert_eq!(read_without(&ledger, "one", Some(end)).unwrap(), Some(end));
        assert_eq!(read_without(&ledger, "two", Some(0)).unwrap(), None);
    }
}

//! Rotation of a trace. The files of the trace move to a folder of their own, `_rotated/0001` and so
//! on, and the first seal of the next ledger continues the chain of the last one.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use wattle_capability::files::{EVENTS_FILE, ROTATED_FOLDER, TRACE_FILE, open_lines_to_read};

use super::LEDGER_FILE;
use super::file::{Ledger, LockedLedger};
use super::seal::Seal;
use super::verify::run_of;
use crate::lines::{Line, LineReader};

/// The files that move, in this order.
const MOVED: [&str; 3] = [TRACE_FILE, EVENTS_FILE, LEDGER_FILE];

/// Why a trace was not rotated.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// A file cannot be read or moved.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// There is no line to rotate.
    #[error("there is no trace")]
    NoTrace,
    /// Runs have neither ended nor stopped. Their chains must not be divided.
    #[error("a run has not ended: {}", .0.join(", "))]
    InProgress(Vec<String>),
}

/// A trace that is about to be rotated, as far as it was read.
#[derive(Debug)]
pub struct Rotation {
    folder: PathBuf,
    runs: HashMap<String, Progress>,
    /// The byte positions up to which the trace and the ledger were read.
    read: (u64, u64),
}

#[derive(Debug, Default)]
struct Progress {
    lines: u64,
    sealed: u64,
    has_ended: bool,
}

impl Rotation {
    /// Reads the trace in a folder. The ledger is not locked, so runs continue.
    ///
    /// # Errors
    /// If there is no trace, or a file cannot be read.
    pub fn of(folder: &Path) -> Result<Rotation, RotateError> {
        let mut rotation =
            Rotation { folder: folder.to_owned(), runs: HashMap::new(), read: (0, 0) };
        rotation.read()?;
        if rotation.runs.is_empty() { Err(RotateError::NoTrace) } else { Ok(rotation) }
    }

    /// Returns the runs whose end is not sealed. They are in progress, or were stopped.
    #[must_use]
    pub fn unfinished(&self) -> Vec<String> {
        let is_unfinished = |run: &Progress| !run.has_ended || run.lines > run.sealed;
        let runs = self.runs.iter().filter(|(_, run)| is_unfinished(run));
        let mut runs: Vec<String> = runs.map(|(id, _)| id.clone()).collect();
        runs.sort();
        runs
    }

    /// Moves the files of the trace and returns their new folder. `stopped` are the unfinished runs
    /// that will not go on.
    ///
    /// The files get a second name, the ledger last, and then lose their first one. If the process is
    /// killed before the ledger has its second name, nothing has happened. Later, whoever locks the
    /// ledger next removes the first names.
    ///
    /// # Errors
    /// If another unfinished run has written a line, another process keeps the ledger locked, or a
    /// file cannot be moved.
    pub fn finish(mut self, stopped: &HashSet<String>) -> Result<PathBuf, RotateError> {
        // Lines are written under this lock, so no line is added while the files are moved.
        let locked = LockedLedger::open(&self.folder.join(LEDGER_FILE))?;
        self.read()?;
        let mut going_on = self.unfinished();
        going_on.retain(|run| !stopped.contains(run));
        if !going_on.is_empty() {
            return Err(RotateError::InProgress(going_on));
        }
        let parts = parts(&self.folder)?;
        let part = match parts.last() {
            // A rotation that was killed.
            Some((_, part)) if !part.join(LEDGER_FILE).exists() => part.clone(),
            last => {
                let number = last.map_or(0, |(number, _)| *number) + 1;
                self.folder.join(ROTATED_FOLDER).join(format!("{number:04}"))
            }
        };
        fs::create_dir_all(&part)?;
        for name in MOVED {
            if_there(fs::remove_file(part.join(name)))?;
            if_there(fs::hard_link(self.folder.join(name), part.join(name)))?;
            sync(&part)?;
        }
        sync(&self.folder.join(ROTATED_FOLDER))?;
        complete(&self.folder, &locked)?;
        Ok(part)
    }

    /// Reads what was added since the last call.
    fn read(&mut self) -> io::Result<()> {
        let (steps, seals) = self.read;
        let steps = each(&self.folder.join(TRACE_FILE), steps, |line| {
            self.runs.entry(run_of(line)).or_default().lines += 1;
        })?;
        let seals = each(&self.folder.join(LEDGER_FILE), seals, |line| {
            if let Some(seal) = Seal::parse(line) {
                let run = self.runs.entry(seal.run).or_default();
                (run.sealed, run.has_ended) = (seal.count, seal.last);
            }
        })?;
        self.read = (steps, seals);
        Ok(())
    }
}

/// Removes the first names of the files of a trace if its locked ledger belongs to the newest part
/// already. Returns true if it does.
///
/// # Errors
/// If a file cannot be removed.
pub(super) fn complete(folder: &Path, ledger: &Ledger) -> io::Result<bool> {
    let Some((_, part)) = parts(folder)?.pop() else { return Ok(false) };
    if identity(&part.join(LEDGER_FILE))? != Some(ledger.identity()?) {
        return Ok(false);
    }
    for name in MOVED {
        let (first, second) = (folder.join(name), part.join(name));
        let is_moved = identity(&first)?;
        if is_moved.is_some() && is_moved == identity(&second)? {
            fs::remove_file(first)?;
        }
    }
    sync(folder)?;
    Ok(true)
}

/// Returns the device and the inode of a file, or `None` if there is none.
///
/// # Errors
/// If the file's metadata cannot be read.
pub(super) fn identity(path: &Path) -> io::Result<Option<(u64, u64)>> {
    if_there(path.symlink_metadata()).map(|meta| meta.map(|meta| (meta.dev(), meta.ino())))
}

/// Returns `None` if a file does not exist.
fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Writes the names in a folder to the disk.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Passes each whole line after a byte position to `take`. Returns the position after the last one.
fn each(path: &Path, from: u64, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
    let Some(file) = open_lines_to_read(path)? else { return Ok(from) };
    let (mut lines, mut position) = (LineReader::from(file, from)?, from);
    while let Some((_, line)) = lines.next_line()? {
        if let Line::Whole(line) = line
            && !line.is_empty()
        {
            take(line);
        }
        if lines.is_ended() {
            position = lines.position();
        }
    }
    Ok(position)
}

/// Returns the rotated parts of the trace in a folder, each with its number, the oldest first.
///
/// # Errors
/// If the folder cannot be read.
pub(super) fn parts(folder: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let entries = if_there(fs::read_dir(folder.join(ROTATED_FOLDER)))?.into_iter().flatten();
    let mut parts = Vec::new();
    for entry in entries {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|_| entry.path().is_dir()) {
            parts.push((number, entry.path()));
        }
    }
    parts.sort();
    Ok(parts)
}

/// The line of a ledger before its first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// There is none: the ledger is the first one.
    Nothing,
    /// The last line of the part before.
    Line(Vec<u8>),
    /// The part before was removed.
    Removed,
}

/// Returns the line before the first one of the ledger in a folder, which is the folder of a trace or
/// one of its parts.
///
/// # Errors
/// If a ledger cannot be read.
pub(super) fn before(folder: &Path) -> io::Result<Before> {
    let own = folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let is_rotated = |parent: &&Path| parent.file_name().is_some_and(|name| name == ROTATED_FOLDER);
    let rotated = folder.parent().filter(is_rotated);
    let (trace, end) = match (own, rotated.and_then(Path::parent)) {
        (Some(own), Some(trace)) => (trace, own),
        _ => (folder, u32::MAX),
    };
    let mut earlier = parts(trace)?;
    earlier.retain(|(number, _)| *number < end);
    for (_, part) in earlier.iter().rev() {
        if let Some(mut ledger) = Ledger::open(&part.join(LEDGER_FILE))?
            && let Some(line) = ledger.last()?
        {
            return Ok(Before::Line(line));
        }
    }
    let is_first = match earlier.first() {
        Some((number, _)) => *number == 1,
        None => end == 1 || end == u32::MAX,
    };
    Ok(if is_first { Before::Nothing } else { Before::Removed })
}

//! Completes changes that move an entry away from its path. Each moved entry is compared with the
//! one that the run saw, and is restored if it differs.
//!
//! A *record* of each such change is written to disk before the change starts. A process that finds
//! the records of a killed process uses them to complete that process's changes.
//!
//! A workdir may come with a staging folder whose records are forged. Nothing in a record proves
//! who wrote it: a move changes the status-change time of an entry, and the other properties of an
//! entry can be set or guessed. Therefore, completing the changes of another process neither
//! replaces nor removes anything outside staging paths. It only creates entries at unused paths to
//! which runs may write. A staging folder with any other record is left as it is.

use std::io;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::Base;
use super::primitives::Disk;
use crate::error::FilesError;
use crate::host_files::{STAGING_PREFIX, is_staging};
use crate::path::RunPath;
use crate::printable::printable;
use crate::stamp::{CurrentEntry, FileStamp};

/// Name of the records file in a staging folder.
const PLAN: &str = "plan";
/// Name of the records file while it is being written.
const UNFINISHED: &str = "plan-";
/// Maximum number of alternative names that are tried for an entry whose path is occupied.
const MAX_SAVED_NAMES: u32 = 1_000;

/// A change that moves the entry at `path` to `staged`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) path: RunPath,
    pub(crate) staged: RunPath,
    /// The new entry, which is at `staged` until it is moved to `path`. `None` if the change only
    /// removes the old entry.
    pub(crate) new: Option<NewEntry>,
    pub(crate) old: OldEntry,
}

/// An entry that the run creates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum NewEntry {
    /// A file, with the hash of its content.
    File(FileStamp, #[serde(with = "crate::hex")] blake3::Hash),
    Link(String),
}

/// The entry at a record's path, as the run last saw it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum OldEntry {
    /// A file, with the hash of its content. The hash is `None` if the file was too large to be
    /// hashed.
    File(FileStamp, #[serde(with = "crate::hex::option")] Option<blake3::Hash>),
    Link(String),
    Tree(#[serde(with = "crate::hex")] blake3::Hash),
    Other,
}

/// The process that wrote a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    ThisProcess,
    /// A killed process, or whoever created the workdir.
    Unknown,
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The change is complete.
    Done,
    /// The entry that another process wrote to the path has been restored there.
    Restored,
    /// The entry that another process wrote could not be restored, because its original path is
    /// occupied. The entry was saved at the path in this variant instead.
    Saved(RunPath),
}

impl NewEntry {
    /// Returns true if the entry at `path` is the one that the run created, and no other process
    /// has written to it since then.
    fn matches(&self, disk: &impl Disk, path: &RunPath, state: &CurrentEntry) -> io::Result<bool> {
        Ok(match (self, state) {
            (NewEntry::File(new, digest), CurrentEntry::File(now, _)) => {
                new.is_same_after_move(now) && disk.digest(path)?.is_none_or(|now| now == *digest)
            }
            (NewEntry::Link(new), CurrentEntry::Link(now)) => new == now,
            _ => false,
        })
    }
}

impl OldEntry {
    /// Returns true if the entry that was moved to `staged` is the one that the run saw.
    fn matches(
        &self,
        disk: &impl Disk,
        staged: &RunPath,
        state: &CurrentEntry,
    ) -> io::Result<bool> {
        Ok(match (self, state) {
            (OldEntry::File(old, digest), CurrentEntry::File(now, _)) => {
                old.is_same_after_move(now) && (digest.is_none() || disk.digest(staged)? == *digest)
            }
            (OldEntry::Link(old), CurrentEntry::Link(now)) => old == now,
            (OldEntry::Tree(old), CurrentEntry::Folder) => disk.tree(staged)? == *old,
            (OldEntry::Other, CurrentEntry::Other) => true,
            _ => false,
        })
    }
}

impl Record {
    /// Returns the temporary path to which the old entry is moved on file systems that cannot
    /// exchange two entries.
    pub(crate) fn set_aside_path(&self) -> io::Result<RunPath> {
        with_suffix(&self.staged, "-old")
    }

    /// Returns true if the entry at `path` is still the one that the run saw.
    pub(crate) fn is_old(&self, disk: &impl Disk, path: &RunPath) -> io::Result<bool> {
        self.old.matches(disk, path, &disk.current(path)?)
    }

    /// Returns true if the entry at `path` is the one that the run created.
    fn is_new(&self, disk: &impl Disk, path: &RunPath) -> io::Result<bool> {
        let Some(new) = &self.new else { return Ok(false) };
        new.matches(disk, path, &disk.current(path)?)
    }

    /// Completes or undoes the change, regardless of where it was interrupted.
    pub(crate) fn complete(&self, disk: &impl Disk, origin: Origin) -> io::Result<Outcome> {
        let gone = with_suffix(&self.staged, "-gone")?;
        if disk.current(&gone)? != CurrentEntry::Absent {
            remove_all(disk, &gone)?;
        }
        let set_aside = self.complete_set_aside(disk)?;
        let state = disk.current(&self.staged)?;
        let outcome = if state == CurrentEntry::Absent {
            Outcome::Done
        } else if self.is_new(disk, &self.staged)? {
            disk.unlink(&self.staged)?;
            Outcome::Restored
        } else if self.old.matches(disk, &self.staged, &state)? {
            discard(disk, &self.staged, &state)?;
            Outcome::Done
        } else {
            self.restore(disk, origin)?
        };
        Ok(if set_aside == Outcome::Done { outcome } else { set_aside })
    }

    /// Handles the old entry that was set aside because the file system cannot exchange two
    /// entries. Removes it if the change is complete, and puts it back otherwise.
    fn complete_set_aside(&self, disk: &impl Disk) -> io::Result<Outcome> {
        let set_aside = self.set_aside_path()?;
        let state = disk.current(&set_aside)?;
        if state == CurrentEntry::Absent {
            return Ok(Outcome::Done);
        }
        if self.is_new(disk, &self.path)? && self.old.matches(disk, &set_aside, &state)? {
            discard(disk, &set_aside, &state)?;
            return Ok(Outcome::Done);
        }
        put_back(disk, &set_aside, &self.path)
    }

    /// Moves an entry that another process wrote from the staging path back to its original path.
    /// Replaces the run's new entry at that path, but only if this process wrote the record.
    fn restore(&self, disk: &impl Disk, origin: Origin) -> io::Result<Outcome> {
        if origin == Origin::Unknown || !self.is_new(disk, &self.path)? {
            return put_back(disk, &self.staged, &self.path);
        }
        disk.exchange(&self.staged, &self.path)?;
        if self.is_new(disk, &self.staged)? {
            disk.unlink(&self.staged)?;
            return Ok(Outcome::Restored);
        }
        // Meanwhile, another process created an entry at the path, and the exchange moved that
        // entry to the staging path.
        save(disk, &self.staged, &self.path)
    }
}

/// Moves an entry back to `path`, or to a similar unused name in the same folder if `path` is
/// occupied.
fn put_back(disk: &impl Disk, from: &RunPath, path: &RunPath) -> io::Result<Outcome> {
    match disk.rename_new(from, path) {
        Ok(()) => Ok(Outcome::Restored),
        Err(_) => save(disk, from, path),
    }
}

/// Moves an entry to the first unused name of the form `NAME.wattle-saved` or `NAME.wattle-saved-N`
/// in the folder of `path`, because `path` is occupied.
fn save(disk: &impl Disk, from: &RunPath, path: &RunPath) -> io::Result<Outcome> {
    for number in 1..=MAX_SAVED_NAMES {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let name = with_suffix(path, &format!(".wattle-saved{number}"))?;
        match disk.rename_new(from, &name) {
            Err(cause) if Errno::from_io_error(&cause) == Some(Errno::EXIST) => {}
            Err(cause) => return Err(cause),
            Ok(()) => return Ok(Outcome::Saved(name)),
        }
    }
    Err(Errno::EXIST.into())
}

/// Returns a path with a suffix appended to its name.
fn with_suffix(path: &RunPath, suffix: &str) -> io::Result<RunPath> {
    let (folder, name) = path.split().ok_or(Errno::INVAL)?;
    folder.join(&format!("{name}{suffix}")).map_err(|_| Errno::NAMETOOLONG.into())
}

/// Removes an old entry. A folder is renamed first, so that recovery recognizes a partly removed
/// folder.
fn discard(disk: &impl Disk, path: &RunPath, state: &CurrentEntry) -> io::Result<()> {
    if *state != CurrentEntry::Folder {
        return disk.unlink(path);
    }
    let gone = with_suffix(path, "-gone")?;
    disk.rename_new(path, &gone)?;
    remove_all(disk, &gone)
}

/// Removes an entry and everything in it. The maximum depth of a path limits the recursion.
fn remove_all(disk: &impl Disk, path: &RunPath) -> io::Result<()> {
    match disk.current(path)? {
        CurrentEntry::Absent => Ok(()),
        CurrentEntry::Folder => {
            for name in disk.names(path)? {
                remove_all(disk, &path.join(&name).map_err(|_| Errno::NAMETOOLONG)?)?;
            }
            disk.remove_folder(path)
        }
        _ => disk.unlink(path),
    }
}

/// Writes the records to disk.
pub(crate) fn write_records(
    disk: &impl Disk,
    folder: &RunPath,
    records: &[&Record],
) -> io::Result<()> {
    let text = serde_json::to_vec(records).map_err(io::Error::other)?;
    let unfinished = folder.join(UNFINISHED).map_err(|_| Errno::NAMETOOLONG)?;
    disk.create(&unfinished, &text, None)?;
    disk.rename_new(&unfinished, &folder.join(PLAN).map_err(|_| Errno::NAMETOOLONG)?)?;
    disk.sync(folder)
}

/// Completes all changes in a staging folder and removes the folder. Returns messages for the user.
/// Fails without changing anything if a record of unknown origin is invalid.
pub(crate) fn finish(
    disk: &impl Disk,
    folder: &RunPath,
    origin: Origin,
) -> io::Result<Vec<String>> {
    let plan = folder.join(PLAN).map_err(|_| Errno::NAMETOOLONG)?;
    let mut notes = Vec::new();
    if disk.current(&plan)? != CurrentEntry::Absent {
        let records: Vec<Record> =
            serde_json::from_slice(&disk.read(&plan)?).map_err(io::Error::other)?;
        if origin == Origin::Unknown {
            records.iter().try_for_each(|record| record.check(disk, folder))?;
        }
        for record in &records {
            match record.complete(disk, origin)? {
                Outcome::Done => {}
                // The killed process had not started this change. Nobody else changed the entry, so
                // applying the changes again succeeds.
                Outcome::Restored if record.is_old(disk, &record.path).unwrap_or(false) => {}
                Outcome::Restored => {
                    let path = printable(&record.path);
                    notes.push(format!("an unfinished change of `{path}` was undone"));
                }
                Outcome::Saved(name) => {
                    notes.push(FilesError::saved(&record.path, &name).to_string())
                }
            }
        }
        disk.unlink(&plan)?;
    }
    for name in disk.names(folder)? {
        let path = folder.join(&name).map_err(|_| Errno::NAMETOOLONG)?;
        match disk.current(&path)? {
            CurrentEntry::Link(target) if is_registration(&name) => {
                let target = RunPath::parse(&format!("/{target}")).map_err(|_| Errno::INVAL)?;
                if is_staging(&target) && disk.current(&target)? != CurrentEntry::Absent {
                    disk.unlink(&target)?;
                }
                disk.unlink(&path)?;
            }
            _ => remove_all(disk, &path)?,
        }
    }
    disk.remove_folder(folder)?;
    Ok(notes)
}

impl Record {
    /// Checks that this program could have written the record for a change by a run. A staging
    /// folder that came with a workdir may contain anything.
    fn check(&self, disk: &impl Disk, folder: &RunPath) -> io::Result<()> {
        let is_sound = !self.path.is_top()
            && !is_staging(&self.path)
            && (self.staged.parent().as_ref() == Some(folder)
                || is_registered(disk, folder, &self.staged)?)
            && disk.permits_runs(&self.path, &self.staged)?
            && disk.permits_runs(&self.path, &self.set_aside_path()?)?;
        if is_sound {
            return Ok(());
        }
        let path = printable(&self.path);
        Err(io::Error::other(format!("they include one of `{path}` that no run could have made")))
    }
}

/// Returns true if a link in a staging folder points to a staging path on another file system.
fn is_registered(disk: &impl Disk, folder: &RunPath, staged: &RunPath) -> io::Result<bool> {
    if !is_staging(staged) {
        return Ok(false);
    }
    for name in disk.names(folder)?.iter().filter(|name| is_registration(name)) {
        let link = folder.join(name).map_err(|_| Errno::NAMETOOLONG)?;
        if let CurrentEntry::Link(target) = disk.current(&link)?
            && RunPath::parse(&format!("/{target}")).as_ref() == Ok(staged)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if an entry with this name in a staging folder is a link to a staging path on
/// another file system.
fn is_registration(name: &str) -> bool {
    name.starts_with('b')
}

impl Base {
    /// Completes the changes to this workdir that were left unfinished because their process was
    /// killed. Returns messages for the user.
    pub(crate) fn recover(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for path in self.abandoned_folders().unwrap_or_default() {
            if let Ok(Some(_lock)) = self.lock_staging_folder(&path) {
                match finish(self, &path, Origin::Unknown) {
                    Ok(messages) => notes.extend(messages),
                    Err(cause) => notes.push(FilesError::not_recovered(&path, cause).to_string()),
                }
            }
        }
        notes
    }

    /// Returns the staging folders in the root of the workdir.
    fn abandoned_folders(&self) -> io::Result<Vec<RunPath>> {
        let mut folders = Vec::new();
        for entry in rustix::fs::Dir::new(self.jail.listing(&RunPath::top())?)? {
            let entry = entry?;
            let name = entry.file_name().to_str().unwrap_or_default();
            if name.starts_with(STAGING_PREFIX)
                && let Ok(path) = RunPath::top().join(name)
                && self.is_private_folder(&path)
            {
                folders.push(path);
            }
        }
        Ok(folders)
    }

    /// Returns true if only the owner can access the folder. This is the case for every staging
    /// folder.
    fn is_private_folder(&self, path: &RunPath) -> bool {
        self.jail.meta(path).is_ok_and(|meta| {
            meta.kind == rustix::fs::FileType::Directory && meta.mode & 0o777 == 0o700
        })
    }
}

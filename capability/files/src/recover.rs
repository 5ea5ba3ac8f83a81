//! Finishing an exchange: what came out of a place is looked at, and is given back unless it is what the run saw.
//!
//! A *record* of each change that takes something out of its place is on the disk before the change is. So whoever finds the
//! records of a process that was killed ends each change as that process would have: by the same function.

use std::io;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::base::Base;
use super::error::{FilesError, shown};
use super::host_files::{WORKING, is_working};
use super::path::RunPath;
use super::primitives::{Disk, State};
use super::stamp::FileStamp;

/// The file of records, in a folder where changes are prepared, and its name until it is whole.
const PLAN: &str = "plan";
const UNFINISHED: &str = "plan-";
/// The most names that are tried for what cannot be given back.
const SAVED_NAMES: u32 = 1_000;

/// A change that takes what is at `path` out of there, to `staged`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) path: RunPath,
    pub(super) staged: RunPath,
    /// What is to be at `path` instead, and is at `staged` until then; `None` where nothing is to be there.
    pub(super) own: Option<Own>,
    pub(super) old: Old,
}

/// What the run put into a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Own {
    /// A file, with the hash of its content.
    File(FileStamp, #[serde(with = "super::kept::hex")] blake3::Hash),
    Link(String),
}

/// What the run saw in a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Old {
    /// A file; without a digest it was too large for one.
    File(FileStamp, #[serde(with = "super::kept::some_hex")] Option<blake3::Hash>),
    Link(String),
    Tree(#[serde(with = "super::kept::hex")] blake3::Hash),
    Other,
}

/// How a change ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// It is carried out.
    Done,
    /// The place has what somebody else put there.
    Back,
    /// What somebody else put there is under this name, since the place has yet another entry by now.
    Saved(RunPath),
}

impl Own {
    /// Whether this is there as it was made. Somebody may have written into it since it came into its place.
    fn is(&self, disk: &impl Disk, at: &RunPath, state: &State) -> io::Result<bool> {
        Ok(match (self, state) {
            (Own::File(own, digest), State::File(now, _)) => {
                own.is_same_but_moved(now) && disk.digest(at)?.is_none_or(|now| now == *digest)
            }
            (Own::Link(own), State::Link(now)) => own == now,
            _ => false,
        })
    }
}

impl Old {
    /// Whether what was moved to `staged` is this.
    fn is(&self, disk: &impl Disk, staged: &RunPath, state: &State) -> io::Result<bool> {
        Ok(match (self, state) {
            (Old::File(old, digest), State::File(now, _)) => {
                old.is_same_but_moved(now) && (digest.is_none() || disk.digest(staged)? == *digest)
            }
            (Old::Link(old), State::Link(now)) => old == now,
            (Old::Tree(old), State::Folder) => disk.tree(staged)? == *old,
            (Old::Other, State::Other) => true,
            _ => false,
        })
    }
}

impl Record {
    /// Where the old entry waits on file systems that cannot exchange two.
    pub(super) fn away(&self) -> io::Result<RunPath> {
        beside(&self.staged, "-old")
    }

    /// Whether an entry that was taken out is the one that the run saw.
    pub(super) fn is_old(&self, disk: &impl Disk, at: &RunPath) -> io::Result<bool> {
        self.old.is(disk, at, &disk.state(at)?)
    }

    /// Whether what is there is what the run put there.
    fn owns(&self, disk: &impl Disk, at: &RunPath) -> io::Result<bool> {
        let Some(own) = &self.own else { return Ok(false) };
        own.is(disk, at, &disk.state(at)?)
    }

    /// Ends the change, however far it got.
    pub(super) fn settle(&self, disk: &impl Disk) -> io::Result<Settled> {
        let gone = beside(&self.staged, "-gone")?;
        if disk.state(&gone)? != State::Absent {
            remove_all(disk, &gone)?;
        }
        let moved = self.settle_away(disk)?;
        let state = disk.state(&self.staged)?;
        let settled = if state == State::Absent {
            Settled::Done
        } else if self.owns(disk, &self.staged)? {
            disk.unlink(&self.staged)?;
            Settled::Back
        } else if self.old.is(disk, &self.staged, &state)? {
            discard(disk, &self.staged, &state)?;
            Settled::Done
        } else {
            self.give_back(disk)?
        };
        Ok(if moved == Settled::Done { settled } else { moved })
    }

    /// Ends the change on a file system that cannot exchange two entries, as far as the old one is concerned.
    fn settle_away(&self, disk: &impl Disk) -> io::Result<Settled> {
        let away = self.away()?;
        let state = disk.state(&away)?;
        if state == State::Absent {
            return Ok(Settled::Done);
        }
        if self.owns(disk, &self.path)? && self.old.is(disk, &away, &state)? {
            discard(disk, &away, &state)?;
            return Ok(Settled::Done);
        }
        put_back(disk, &away, &self.path)
    }

    /// Puts what somebody else had put into the place back there.
    fn give_back(&self, disk: &impl Disk) -> io::Result<Settled> {
        if !self.owns(disk, &self.path)? {
            return put_back(disk, &self.staged, &self.path);
        }
        disk.exchange(&self.staged, &self.path)?;
        if self.owns(disk, &self.staged)? {
            disk.unlink(&self.staged)?;
            return Ok(Settled::Back);
        }
        // In between, the place got yet another entry, and that has come out.
        save(disk, &self.staged, &self.path)
    }
}

/// Moves an entry to its place, or beside it where that is taken.
fn put_back(disk: &impl Disk, from: &RunPath, path: &RunPath) -> io::Result<Settled> {
    match disk.rename_new(from, path) {
        Ok(()) => Ok(Settled::Back),
        Err(_) => save(disk, from, path),
    }
}

/// Keeps what cannot be put back beside its place, under a name that says so.
fn save(disk: &impl Disk, from: &RunPath, path: &RunPath) -> io::Result<Settled> {
    for number in 1..=SAVED_NAMES {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let name = beside(path, &format!(".wattle-saved{number}"))?;
        match disk.rename_new(from, &name) {
            Err(cause) if Errno::from_io_error(&cause) == Some(Errno::EXIST) => {}
            Err(cause) => return Err(cause),
            Ok(()) => return Ok(Settled::Saved(name)),
        }
    }
    Err(Errno::EXIST.into())
}

/// The path of an entry whose name is that of another with something after it.
fn beside(path: &RunPath, more: &str) -> io::Result<RunPath> {
    let (folder, name) = path.split().ok_or(Errno::INVAL)?;
    folder.join(&format!("{name}{more}")).map_err(|_| Errno::NAMETOOLONG.into())
}

/// Removes an entry that is no longer wanted. A folder is renamed first, so that one which is half removed is known for that.
fn discard(disk: &impl Disk, path: &RunPath, state: &State) -> io::Result<()> {
    if *state != State::Folder {
        return disk.unlink(path);
    }
    let gone = beside(path, "-gone")?;
    disk.rename_new(path, &gone)?;
    remove_all(disk, &gone)
}

/// Removes an entry with all below it. Recurses no deeper than a path may be.
fn remove_all(disk: &impl Disk, path: &RunPath) -> io::Result<()> {
    match disk.state(path)? {
        State::Absent => Ok(()),
        State::Folder => {
            for name in disk.names(path)? {
                remove_all(disk, &path.join(&name).map_err(|_| Errno::NAMETOOLONG)?)?;
            }
            disk.remove_folder(path)
        }
        _ => disk.unlink(path),
    }
}

/// Puts the records on the disk.
pub(super) fn keep_records(disk: &impl Disk, working: &RunPath, records: &[&Record]) -> io::Result<()> {
    let text = serde_json::to_vec(records).map_err(io::Error::other)?;
    let unfinished = working.join(UNFINISHED).map_err(|_| Errno::NAMETOOLONG)?;
    disk.create(&unfinished, &text, None)?;
    disk.rename_new(&unfinished, &working.join(PLAN).map_err(|_| Errno::NAMETOOLONG)?)?;
    disk.sync(working)
}

/// Ends all that was begun in a folder where changes are prepared, and removes the folder; gives what has to be told.
pub(super) fn finish(disk: &impl Disk, working: &RunPath) -> io::Result<Vec<String>> {
    let plan = working.join(PLAN).map_err(|_| Errno::NAMETOOLONG)?;
    let mut notes = Vec::new();
    if disk.state(&plan)? != State::Absent {
        let records: Vec<Record> = serde_json::from_slice(&disk.read(&plan)?).map_err(io::Error::other)?;
        for record in records.iter().filter(|record| record.is_sound()) {
            match record.settle(disk)? {
                Settled::Done => {}
                // The killed process did not get to it: nobody else is in the way, and who applies once more changes it.
                Settled::Back if record.is_old(disk, &record.path).unwrap_or(false) => {}
                Settled::Back => notes.push(format!("`{}` was not changed", shown(&record.path))),
                Settled::Saved(name) => notes.push(FilesError::saved(&record.path, &name).to_string()),
            }
        }
        disk.unlink(&plan)?;
    }
    for name in disk.names(working)? {
        let path = working.join(&name).map_err(|_| Errno::NAMETOOLONG)?;
        match disk.state(&path)? {
            // Says where something is prepared on another file system.
            State::Link(target) if name.starts_with('b') => {
                let target = RunPath::parse(&format!("/{target}")).map_err(|_| Errno::INVAL)?;
                if is_working(&target) && disk.state(&target)? != State::Absent {
                    disk.unlink(&target)?;
                }
                disk.unlink(&path)?;
            }
            _ => remove_all(disk, &path)?,
        }
    }
    disk.remove_folder(working)?;
    Ok(notes)
}

impl Record {
    /// Whether the record can be one of ours. A folder that came with a workdir may have anything in it.
    fn is_sound(&self) -> bool {
        is_working(&self.staged) && !is_working(&self.path) && !super::repository::is_inside(&self.path)
    }
}

impl Base {
    /// Ends what processes had begun in this workdir that were killed, and gives what has to be told about it.
    pub(super) fn recover(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for path in self.left_behind().unwrap_or_default() {
            if let Ok(Some(_lock)) = self.lock_working(&path) {
                match finish(self, &path) {
                    Ok(more) => notes.extend(more),
                    Err(cause) => notes.push(FilesError::not_recovered(&path, cause).to_string()),
                }
            }
        }
        notes
    }

    /// The folders at the top where changes were prepared.
    fn left_behind(&self) -> io::Result<Vec<RunPath>> {
        let mut folders = Vec::new();
        for entry in rustix::fs::Dir::new(self.jail.listing(&RunPath::top())?)? {
            let entry = entry?;
            let name = entry.file_name().to_str().unwrap_or_default();
            if name.starts_with(WORKING)
                && let Ok(path) = RunPath::top().join(name)
                && self.is_own_folder(&path)
            {
                folders.push(path);
            }
        }
        Ok(folders)
    }

    /// Whether a folder is open to its owner alone, as those that are made here.
    fn is_own_folder(&self, path: &RunPath) -> bool {
        self.jail
            .meta(path)
            .is_ok_and(|meta| meta.kind == rustix::fs::FileType::Directory && meta.mode & 0o777 == 0o700)
    }
}

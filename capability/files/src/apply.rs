//! Carrying the overlay's changes out on the base, while others may change it, too.
//!
//! What replaces an entry is prepared beside it, under a name of the host's own, before anything is changed. Then each entry is
//! looked at once more just before its turn, and taken out by an exchange (or, to be removed, by a move), which nobody can get in
//! between; what came out is held against what the run saw, and given back where it is not that. A new entry is never put over one
//! that is there. So a file is the old one or the new one as a whole, and what somebody else wrote is in its place, or under a
//! name that is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::io::Errno;

use super::error::{ApplyError, FilesError, Intent};
use super::layer::{Content, Layer};
use super::path::RunPath;
use super::plan::{Act, Step, plan};
use super::primitives::{Disk, State};
use super::recover::{Old, Own, Record, Settled, keep_records};
use super::stamp::{FileStamp, Stamp};
use super::view::Store;
use super::{Change, ChangeKind, EntryKind};

impl Store {
    pub(super) fn changes(&self) -> Result<Vec<Change>, FilesError> {
        match self {
            Store::Through { base, journal } => journal.changes(base),
            Store::Overlay { base, layer, .. } => {
                let mut changes: Vec<Change> =
                    plan(layer, base.as_ref())?.into_iter().map(|step| step.change).collect();
                changes.sort();
                Ok(changes)
            }
        }
    }

    pub(super) fn apply(&mut self) -> Result<Vec<Change>, ApplyError> {
        let nothing = |reason| ApplyError { done: Vec::new(), failed: vec![(whole(), reason)] };
        let steps = match &*self {
            Store::Overlay { base, layer, .. } => plan(layer, base.as_ref()).map_err(nothing)?,
            Store::Through { .. } => return Ok(Vec::new()),
        };
        let refused = self.refused(&steps);
        let Store::Overlay { base, layer, reads } = self else { return Ok(Vec::new()) };
        if steps.is_empty() {
            layer.clear();
            return Ok(Vec::new());
        }
        let Some(base) = base else {
            let failed = steps.into_iter().map(|step| (step.change, FilesError::no_base())).collect();
            return Err(ApplyError { done: Vec::new(), failed });
        };
        let near = steps.first().map_or_else(RunPath::top, |step| step.path.clone());
        let working = base.working(&near).map_err(|cause| nothing(FilesError::io(Intent::Write, &near, cause)))?;
        let outcomes = carry_out(base, working.path(), steps, &refused);
        drop(working);
        reads.clear();
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        let mut renewed = BTreeSet::new();
        for (step, outcome) in outcomes {
            match outcome {
                Ok(()) => {
                    renewed.insert(step.guard);
                    done.push(step.change);
                }
                Err(reason) => {
                    rebase(layer, &step, &reason);
                    failed.push((step.change, reason));
                }
            }
        }
        done.sort();
        failed.sort_by(|a, b| a.0.cmp(&b.0));
        if failed.is_empty() {
            layer.clear();
            return Ok(done);
        }
        // What was done must not be taken for somebody else's change at the next attempt.
        for guard in renewed {
            if let Ok(seen) = base.stamp(&guard) {
                layer.set_seen(&guard, seen);
            }
        }
        Err(ApplyError { done, failed })
    }

    /// The places that must not be written by now: somebody else may have made a part of a repository since.
    fn refused(&self, steps: &[Step]) -> BTreeSet<RunPath> {
        let made = steps.iter().filter(|step| !matches!(step.act, Act::Remove)).map(|step| &step.path);
        made.filter(|path| !matches!(self.completes_repository(path), Ok(false))).cloned().collect()
    }
}

/// The change that stands for all of them, where they could not even be told apart.
fn whole() -> Change {
    Change { path: String::new(), kind: ChangeKind::Modified, entry: EntryKind::Folder, size: 0 }
}

/// After a conflict, the run's file is a new one: the next attempt makes it once the user has moved theirs away.
fn rebase(layer: &mut Layer, step: &Step, reason: &FilesError) {
    let own = matches!(step.act, Act::File { .. } | Act::Link(_));
    if own && step.guard == step.path && reason.is_conflict() && !step.displaces {
        layer.set_seen(&step.path, Stamp::Absent);
    }
}

/// A step, and what it needs besides.
struct Job {
    step: Step,
    /// What its place has to have just before it; `None` for what is new.
    expected: Option<Stamp>,
    /// The record of what is taken out of its place.
    record: Option<Record>,
    refused: Option<FilesError>,
}

/// Carries the steps out: first what takes nothing away, then what replaces an entry by one of another kind, and last
/// what only removes; the latter two only where all before them was done. `working` is an empty folder to prepare changes in.
pub(super) fn carry_out(
    disk: &impl Disk,
    working: &RunPath,
    steps: Vec<Step>,
    refused: &BTreeSet<RunPath>,
) -> Vec<(Step, Result<(), FilesError>)> {
    let mut jobs = prepare(disk, working, steps);
    for job in jobs.iter_mut().filter(|job| refused.contains(&job.step.path)) {
        job.refused = Some(FilesError::repository(&job.step.path));
    }
    let records: Vec<&Record> = jobs.iter().filter_map(|job| job.record.as_ref()).collect();
    if !records.is_empty()
        && let Err(cause) = keep_records(disk, working, &records)
    {
        let failed = |job: Job| {
            let reason = FilesError::io(Intent::Write, working, io::Error::new(cause.kind(), cause.to_string()));
            (job.step, Err(reason))
        };
        return jobs.into_iter().map(failed).collect();
    }
    let mut outcomes = Vec::new();
    let mut groups = [Vec::new(), Vec::new(), Vec::new()];
    for job in jobs {
        if let Some(group) = groups.get_mut(group(&job.step)) {
            group.push(job);
        }
    }
    let (mut any_failed, mut moved) = (false, Moved::default());
    for (order, group) in groups.into_iter().enumerate() {
        let failed_before = any_failed;
        for job in group {
            let held_back = match order {
                0 => false,
                1 => any_failed,
                _ => failed_before,
            };
            let outcome = match job.refused {
                Some(reason) => Err(reason),
                None if held_back => Err(FilesError::held_back()),
                None => job.step.carry_out(disk, job.expected.as_ref(), job.record.as_ref(), &mut moved),
            };
            any_failed |= outcome.is_err();
            outcomes.push((job.step, outcome));
        }
    }
    sync(disk, &mut outcomes);
    outcomes
}

fn group(step: &Step) -> usize {
    match step.act {
        _ if step.displaces => 1,
        Act::Remove => 2,
        _ => 0,
    }
}

/// Looks at all places, and puts on the disk what is to replace an entry.
fn prepare(disk: &impl Disk, working: &RunPath, steps: Vec<Step>) -> Vec<Job> {
    let (mut still, mut again): (BTreeMap<RunPath, bool>, BTreeMap<RunPath, bool>) = Default::default();
    let each = steps.into_iter().enumerate().map(|(number, step)| {
        let new = matches!(step.act, Act::Folder) && matches!(disk.state(&step.path), Ok(State::Folder));
        let is_still = *still
            .entry(step.guard.clone())
            .or_insert_with(|| new || disk.is_still(&step.guard, &step.seen).unwrap_or(false));
        if !is_still {
            let refused = Some(FilesError::conflict(&step.path, disk.state(&step.path).ok().as_ref()));
            return Job { step, expected: None, record: None, refused };
        }
        match step.prepare(disk, working, number) {
            Ok((expected, record)) => Job { step, expected, record, refused: None },
            Err(refused) => Job { step, expected: None, record: None, refused: Some(refused) },
        }
    });
    let mut jobs: Vec<Job> = each.collect();
    // What lies in a folder that was looked at as a whole was looked at by itself only later.
    for job in jobs.iter_mut().filter(|job| job.refused.is_none() && job.step.guard != job.step.path) {
        let is_still = again
            .entry(job.step.guard.clone())
            .or_insert_with(|| disk.is_still(&job.step.guard, &job.step.seen).unwrap_or(false));
        if !*is_still {
            job.refused = Some(FilesError::conflict(&job.step.path, disk.state(&job.step.path).ok().as_ref()));
        }
    }
    jobs
}

impl Step {
    /// What the place has now, and the record of the change where it takes that out.
    fn prepare(
        &self,
        disk: &impl Disk,
        working: &RunPath,
        number: usize,
    ) -> Result<(Option<Stamp>, Option<Record>), FilesError> {
        let io = |cause| FilesError::io(Intent::Write, &self.path, cause);
        if self.change.kind == ChangeKind::Created {
            return Ok((None, None));
        }
        let state = disk.state(&self.path).map_err(io)?;
        let seen = match &state {
            // What the run saw, not what is there by now.
            _ if self.guard == self.path => self.seen.clone(),
            State::Folder => Stamp::Tree(disk.tree(&self.path).map_err(io)?),
            State::File(stamp, _) => Stamp::File(stamp.clone()),
            State::Link(target) => Stamp::Link(target.clone()),
            State::Other => Stamp::Other,
            State::Absent => Stamp::Absent,
        };
        let old = match &seen {
            Stamp::File(stamp) => Old::File(stamp.clone(), disk.digest(&self.path).map_err(io)?),
            Stamp::Link(target) => Old::Link(target.clone()),
            Stamp::Tree(hash) => Old::Tree(*hash),
            Stamp::Absent | Stamp::Folder | Stamp::Other => Old::Other,
        };
        let staged = disk.staging(working, number, &self.path).map_err(io)?;
        let own = match (&self.act, &state) {
            (Act::File { content, mode }, State::File(_, held)) => {
                disk.check_writable(&self.path).map_err(io)?;
                disk.create(&staged, content.as_ref(), Some(*held).or(*mode)).map_err(io)?;
                match disk.state(&staged).map_err(io)? {
                    State::File(stamp, _) => Some(Own::File(stamp, blake3::hash(content.as_ref()))),
                    _ => return Err(io(Errno::IO.into())),
                }
            }
            (Act::Link(target), _) => {
                disk.link(&staged, target).map_err(io)?;
                Some(Own::Link(target.clone()))
            }
            _ => None,
        };
        let record = Record { path: self.path.clone(), staged, own, old };
        Ok((Some(seen), Some(record)))
    }

    fn carry_out(
        &self,
        disk: &impl Disk,
        expected: Option<&Stamp>,
        record: Option<&Record>,
        moved: &mut Moved,
    ) -> Result<(), FilesError> {
        let io = |cause: io::Error| FilesError::io(Intent::Write, &self.path, cause);
        let (Some(expected), Some(record)) = (expected, record) else { return self.make(disk) };
        if !disk.is_still(&self.path, expected).map_err(io)? && !moved.accounts_for(expected, disk, &self.path) {
            return Err(self.conflict(disk));
        }
        moved.note(expected);
        let taken_out = match record.own {
            Some(_) => exchange(disk, record),
            None => disk.rename_new(&self.path, &record.staged),
        };
        if let Err(cause) = taken_out {
            let gone = Errno::from_io_error(&cause) == Some(Errno::NOENT);
            return Err(if gone { self.conflict(disk) } else { io(cause) });
        }
        // A failure of the disk may have been one of a moment.
        match record.settle(disk).or_else(|_| record.settle(disk)).map_err(io)? {
            Settled::Done => Ok(()),
            Settled::Back => Err(self.conflict(disk)),
            Settled::Saved(name) => Err(FilesError::saved(&self.path, &name)),
        }
    }

    /// Makes what is new.
    fn make(&self, disk: &impl Disk) -> Result<(), FilesError> {
        let made = match &self.act {
            Act::Folder => disk.make_folder(&self.path),
            Act::File { content, mode } => disk.create(&self.path, Content::as_ref(content), *mode),
            Act::Link(target) => disk.link(&self.path, target),
            Act::Remove => Ok(()),
        };
        made.map_err(|cause| match Errno::from_io_error(&cause) {
            Some(Errno::EXIST) => self.conflict(disk),
            _ => FilesError::io(Intent::Write, &self.path, cause),
        })
    }

    fn conflict(&self, disk: &impl Disk) -> FilesError {
        FilesError::conflict(&self.path, disk.state(&self.path).ok().as_ref())
    }
}

/// The files that were taken out of a place. One that has other names in the workdir has a newer time of its last status change
/// under each of them, which is nobody else's doing.
#[derive(Default)]
struct Moved(Vec<FileStamp>);

impl Moved {
    fn note(&mut self, taken: &Stamp) {
        if let Stamp::File(stamp) = taken {
            self.0.push(stamp.clone());
        }
    }

    fn accounts_for(&self, expected: &Stamp, disk: &impl Disk, path: &RunPath) -> bool {
        let (Stamp::File(expected), Ok(State::File(now, _))) = (expected, disk.state(path)) else { return false };
        self.0.iter().any(|moved| moved.is_same_file(expected)) && expected.is_same_but_moved(&now)
    }
}

/// Puts the new entry into its place and takes the old one out.
///
/// Where the file system cannot exchange two, the old one is moved out first: for a moment nothing is in the place, and after a
/// kill in that moment until the next start.
fn exchange(disk: &impl Disk, record: &Record) -> io::Result<()> {
    match disk.exchange(&record.staged, &record.path) {
        Err(cause) if matches!(Errno::from_io_error(&cause), Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)) => {
            let away = record.away()?;
            disk.rename_new(&record.path, &away)?;
            if record.is_old(disk, &away)? {
                // Where the place is taken by now, the record is settled without it.
                let _ = disk.rename_new(&record.staged, &record.path);
            }
            Ok(())
        }
        exchanged => exchanged,
    }
}

/// Waits until the folders of what was done are on the disk, each once.
fn sync(disk: &impl Disk, outcomes: &mut [(Step, Result<(), FilesError>)]) {
    let mut folders: BTreeMap<RunPath, Option<String>> = BTreeMap::new();
    for (step, outcome) in outcomes {
        if outcome.is_err() {
            continue;
        }
        let Some(folder) = step.path.parent() else { continue };
        let failed = folders.entry(folder).or_insert_with_key(|folder| match disk.sync(folder) {
            // What was in a folder that is gone by now needs no name there.
            Err(cause) if !super::jail::is_absent(&cause) => Some(cause.to_string()),
            _ => None,
        });
        if let Some(why) = failed {
            *outcome = Err(FilesError::not_synced(&step.path, why));
        }
    }
}

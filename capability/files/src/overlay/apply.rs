//! Applies the overlay's changes to the base, which other processes may change at the same time.
//!
//! An entry that replaces another is first written to a staging path, before anything is changed.
//! Each old entry is checked again just before its change. It is then moved to the staging path in
//! one atomic step: an exchange, or a move if the entry is removed. The moved entry is compared
//! with the one that the run saw, and put back if it differs. A change that creates an entry never
//! replaces an entry that another process has since created at the same path. Thus each file is
//! completely old or completely new, and anything that another process wrote stays at its path, or
//! is moved to a path that is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::io::Errno;

use super::Overlay;
use super::layer::{Content, Layer};
use super::plan::{Action, Step, plan};
use crate::base::primitives::Disk;
use crate::base::recover::{NewEntry, OldEntry, Origin, Outcome, Record, write_records};
use crate::entry::{Change, ChangeKind, EntryKind};
use crate::error::{ApplyError, FilesError};
use crate::jail::is_absent;
use crate::path::{Intent, RunPath};
use crate::stamp::{CurrentEntry, FileStamp, Stamp};
use crate::tree::Tree as _;

impl Overlay {
    /// Applies the changes for which `chosen` returns true, and returns them. The other changes
    /// stay in the overlay.
    pub(crate) fn apply(
        &mut self,
        chosen: impl Fn(&Change) -> bool,
    ) -> Result<Vec<Change>, ApplyError> {
        let all_failed =
            |reason| ApplyError { done: Vec::new(), failed: vec![(unknown_change(), reason)] };
        self.refresh();
        let steps = plan(&self.layer, self.base.as_ref()).map_err(all_failed)?;
        let (steps, rest): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|step| chosen(&step.change));
        if steps.is_empty() {
            if rest.is_empty() {
                self.layer.clear();
            }
            return Ok(Vec::new());
        }
        let Some(base) = &self.base else {
            let failed =
                steps.into_iter().map(|step| (step.change, FilesError::no_base())).collect();
            return Err(ApplyError { done: Vec::new(), failed });
        };
        let first = steps.first().map_or_else(RunPath::top, |step| step.path.clone());
        let staging = base.staging_folder(&first);
        let staging =
            staging.map_err(|cause| all_failed(FilesError::io(Intent::Write, &first, cause)))?;
        let carried = self.carried_links(&steps);
        let check = |step: &Step| self.check_step(step, &carried);
        let results = apply_steps(base, staging.path(), steps, check);
        drop(staging);
        self.reads.clear();
        let mut done = Vec::new();
        let mut failed = Vec::new();
        let mut applied = BTreeSet::new();
        let mut folders = Vec::new();
        for (step, result) in results {
            match result {
                Ok(()) => {
                    if matches!(step.action, Action::Folder) {
                        folders.push(step.path.clone());
                    }
                    applied.extend([step.basis, step.path]);
                    done.push(step.change);
                }
                Err(reason) => {
                    expect_absent_after_conflict(&mut self.layer, &step, &reason);
                    failed.push((step.change, reason));
                }
            }
        }
        done.sort();
        failed.sort_by(|a, b| a.0.cmp(&b.0));
        if failed.is_empty() && rest.is_empty() {
            self.layer.clear();
            return Ok(done);
        }
        // The next attempt must not mistake the applied changes for changes by another process.
        for basis in applied {
            if let Ok(seen) = base.stamp(&basis) {
                self.layer.set_seen(&basis, seen);
            }
        }
        // What is in a new folder of the base was either applied or created by another process.
        for folder in folders {
            self.layer.merge(&folder);
        }
        if failed.is_empty() { Ok(done) } else { Err(ApplyError { done, failed }) }
    }
}

/// Returns one change that represents all changes, for an error that occurs before the changes are
/// known.
fn unknown_change() -> Change {
    Change { path: String::new(), kind: ChangeKind::Modified, entry: EntryKind::Folder, size: 0 }
}

/// After a conflict, makes the next attempt to apply the changes treat the run's file as new. That
/// attempt succeeds if the user has since moved the conflicting file away.
fn expect_absent_after_conflict(layer: &mut Layer, step: &Step, reason: &FilesError) {
    let replaces = matches!(step.action, Action::File { .. } | Action::Link(_));
    if replaces && step.basis == step.path && reason.is_conflict() && !step.displaces {
        layer.set_seen(&step.path, Stamp::Absent);
    }
}

/// A step and the data prepared for it.
struct Job {
    step: Step,
    /// The state that the base's entry must have just before the step, or `None` for a new entry.
    expected: Option<Stamp>,
    /// The record of the change, if the step moves an existing entry to the staging path.
    record: Option<Record>,
    /// The reason why the step must not be applied, or `None` if the step is allowed.
    refused: Option<FilesError>,
}

/// Applies steps in three groups: first those that remove nothing, then those that replace an entry
/// with one of a different type, and finally those that only remove. The last two groups are
/// applied only if everything before them succeeded. `staging` is an empty staging folder. A step
/// for which `check` returns an error is not applied. Returns each step with its result.
pub(super) fn apply_steps(
    disk: &impl Disk,
    staging: &RunPath,
    steps: Vec<Step>,
    check: impl Fn(&Step) -> Result<(), FilesError>,
) -> Vec<(Step, Result<(), FilesError>)> {
    let mut jobs = prepare(disk, staging, steps);
    for job in &mut jobs {
        if let Err(reason) = check(&job.step) {
            job.refused = Some(reason);
        }
    }
    // A refused step has no record: the process that completes the records would not trust it.
    let applied = jobs.iter().filter(|job| job.refused.is_none());
    let records: Vec<&Record> = applied.filter_map(|job| job.record.as_ref()).collect();
    if !records.is_empty()
        && let Err(cause) = write_records(disk, staging, &records)
    {
        let failed = |job: Job| {
            let reason = FilesError::io(
                Intent::Write,
                staging,
                io::Error::new(cause.kind(), cause.to_string()),
            );
            (job.step, Err(reason))
        };
        return jobs.into_iter().map(failed).collect();
    }
    let mut results = Vec::new();
    let mut groups = [Vec::new(), Vec::new(), Vec::new()];
    for job in jobs {
        if let Some(group) = groups.get_mut(group(&job.step)) {
            group.push(job);
        }
    }
    let mut any_failed = false;
    let mut moved = MovedFiles::default();
    for (order, group) in groups.into_iter().enumerate() {
        let failed_before = any_failed;
        for job in group {
            let held_back = match order {
                0 => false,
                1 => any_failed,
                _ => failed_before,
            };
            let result = match job.refused {
                Some(reason) => Err(reason),
                None if held_back => Err(FilesError::held_back()),
                None => {
                    job.step.apply(disk, job.expected.as_ref(), job.record.as_ref(), &mut moved)
                }
            };
            any_failed |= result.is_err();
            results.push((job.step, result));
        }
    }
    sync(disk, &mut results);
    results
}

fn group(step: &Step) -> usize {
    match step.action {
        _ if step.displaces => 1,
        Action::Remove => 2,
        _ => 0,
    }
}

/// Checks all paths, writes the replacements to their staging paths, and returns a job for each
/// step.
fn prepare(disk: &impl Disk, staging: &RunPath, steps: Vec<Step>) -> Vec<Job> {
    let (mut before, mut after): (BTreeMap<RunPath, bool>, BTreeMap<RunPath, bool>) =
        Default::default();
    let each = steps.into_iter().enumerate().map(|(number, step)| {
        let new = matches!(step.action, Action::Folder)
            && matches!(disk.current(&step.path), Ok(CurrentEntry::Folder));
        let is_unchanged = *before
            .entry(step.basis.clone())
            .or_insert_with(|| new || disk.is_unchanged(&step.basis, &step.seen).unwrap_or(false));
        if !is_unchanged {
            let refused =
                Some(FilesError::conflict(&step.path, disk.current(&step.path).ok().as_ref()));
            return Job { step, expected: None, record: None, refused };
        }
        match step.prepare(disk, staging, number) {
            Ok((expected, record)) => Job { step, expected, record, refused: None },
            Err(refused) => Job { step, expected: None, record: None, refused: Some(refused) },
        }
    });
    let mut jobs: Vec<Job> = each.collect();
    // The entries of a folder that was checked as a whole were read after that check, so the folder
    // is checked again.
    for job in
        jobs.iter_mut().filter(|job| job.refused.is_none() && job.step.basis != job.step.path)
    {
        let is_unchanged = after
            .entry(job.step.basis.clone())
            .or_insert_with(|| disk.is_unchanged(&job.step.basis, &job.step.seen).unwrap_or(false));
        if !*is_unchanged {
            job.refused = Some(FilesError::conflict(
                &job.step.path,
                disk.current(&job.step.path).ok().as_ref(),
            ));
        }
    }
    jobs
}

impl Step {
    /// Writes the replacement for the base's entry, if there is one, to its staging path. Returns
    /// the state that the base's entry must have, or `None` for a new entry. Also returns the
    /// record of the change if the change moves the base's entry to the staging path.
    fn prepare(
        &self,
        disk: &impl Disk,
        staging: &RunPath,
        number: usize,
    ) -> Result<(Option<Stamp>, Option<Record>), FilesError> {
        let io = |cause| FilesError::io(Intent::Write, &self.path, cause);
        if self.change.kind == ChangeKind::Created {
            return Ok((None, None));
        }
        let current = disk.current(&self.path).map_err(io)?;
        let seen = match &current {
            // Uses the state that the run saw, not the current one.
            _ if self.basis == self.path => self.seen.clone(),
            CurrentEntry::Folder => Stamp::Tree(disk.tree(&self.path).map_err(io)?),
            CurrentEntry::File(stamp, _) => Stamp::File(stamp.clone()),
            CurrentEntry::Link(target) => Stamp::Link(target.clone()),
            CurrentEntry::Other => Stamp::Other,
            CurrentEntry::Absent => Stamp::Absent,
        };
        let old = match &seen {
            Stamp::File(stamp) => {
                OldEntry::File(stamp.clone(), disk.digest(&self.path).map_err(io)?)
            }
            Stamp::Link(target) => OldEntry::Link(target.clone()),
            Stamp::Tree(hash) => OldEntry::Tree(*hash),
            Stamp::Absent | Stamp::Folder | Stamp::Other => OldEntry::Other,
        };
        let staged = disk.staging(staging, number, &self.path).map_err(io)?;
        let new = match (&self.action, &current) {
            (Action::File { content, mode }, CurrentEntry::File(_, old_mode)) => {
                disk.check_writable(&self.path).map_err(io)?;
                disk.create(&staged, content.as_ref(), Some(*old_mode).or(*mode)).map_err(io)?;
                match disk.current(&staged).map_err(io)? {
                    CurrentEntry::File(stamp, _) => {
                        Some(NewEntry::File(stamp, blake3::hash(content.as_ref())))
                    }
                    _ => return Err(io(Errno::IO.into())),
                }
            }
            (Action::Link(target), _) => {
                disk.link(&staged, target).map_err(io)?;
                Some(NewEntry::Link(target.clone()))
            }
            _ => None,
        };
        let record = Record { path: self.path.clone(), staged, new, old };
        Ok((Some(seen), Some(record)))
    }

    fn apply(
        &self,
        disk: &impl Disk,
        expected: Option<&Stamp>,
        record: Option<&Record>,
        moved: &mut MovedFiles,
    ) -> Result<(), FilesError> {
        let io = |cause: io::Error| FilesError::io(Intent::Write, &self.path, cause);
        let (Some(expected), Some(record)) = (expected, record) else { return self.create(disk) };
        if !disk.is_unchanged(&self.path, expected).map_err(io)?
            && !moved.accounts_for(expected, disk, &self.path)
        {
            return Err(self.conflict(disk));
        }
        moved.record(expected);
        let moved_out = match record.new {
            Some(_) => exchange(disk, record),
            None => disk.rename_new(&self.path, &record.staged),
        };
        if let Err(cause) = moved_out {
            let gone = Errno::from_io_error(&cause) == Some(Errno::NOENT);
            return Err(if gone { self.conflict(disk) } else { io(cause) });
        }
        // A disk error may be temporary, so the completion is attempted twice.
        let complete = || record.complete(disk, Origin::ThisProcess);
        match complete().or_else(|_| complete()).map_err(io)? {
            Outcome::Done => Ok(()),
            Outcome::Restored => Err(self.conflict(disk)),
            Outcome::Saved(name) => Err(FilesError::saved(&self.path, &name)),
        }
    }

    /// Creates a new entry.
    fn create(&self, disk: &impl Disk) -> Result<(), FilesError> {
        let created = match &self.action {
            Action::Folder => disk.create_folder(&self.path),
            Action::File { content, mode } => {
                disk.create(&self.path, Content::as_ref(content), *mode)
            }
            Action::Link(target) => disk.link(&self.path, target),
            Action::Remove => Ok(()),
        };
        created.map_err(|cause| match Errno::from_io_error(&cause) {
            Some(Errno::EXIST) => self.conflict(disk),
            _ => FilesError::io(Intent::Write, &self.path, cause),
        })
    }

    fn conflict(&self, disk: &impl Disk) -> FilesError {
        FilesError::conflict(&self.path, disk.current(&self.path).ok().as_ref())
    }
}

/// The files that earlier steps have moved to staging paths. A move updates a file's status-change
/// time (`ctime`), which all hard links to the file share. A hard link whose `ctime` was updated by
/// such a move is not a conflict.
#[derive(Default)]
struct MovedFiles(Vec<FileStamp>);

impl MovedFiles {
    fn record(&mut self, moved: &Stamp) {
        if let Stamp::File(stamp) = moved {
            self.0.push(stamp.clone());
        }
    }

    fn accounts_for(&self, expected: &Stamp, disk: &impl Disk, path: &RunPath) -> bool {
        let (Stamp::File(expected), Ok(CurrentEntry::File(now, _))) =
            (expected, disk.current(path))
        else {
            return false;
        };
        self.0.iter().any(|moved| moved.is_same_file(expected)) && expected.is_same_after_move(&now)
    }
}

/// Moves the new entry to its path, and the old one to the staging path.
///
/// If the file system cannot exchange two entries, the old one is first moved to a temporary path.
/// No entry exists at the original path until the new one is moved there. If the process is killed
/// before then, the path stays empty until the base is opened again.
fn exchange(disk: &impl Disk, record: &Record) -> io::Result<()> {
    match disk.exchange(&record.staged, &record.path) {
        Err(cause)
            if matches!(
                Errno::from_io_error(&cause),
                Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
            ) =>
        {
            let set_aside = record.set_aside_path()?;
            disk.rename_new(&record.path, &set_aside)?;
            if record.is_old(disk, &set_aside)? {
                // If the path is occupied by now, completing the record handles it.
                let _ = disk.rename_new(&record.staged, &record.path);
            }
            Ok(())
        }
        exchanged => exchanged,
    }
}

/// Flushes to disk every folder that the applied steps changed. If this fails for a folder, the
/// results of the steps in that folder become errors.
fn sync(disk: &impl Disk, results: &mut [(Step, Result<(), FilesError>)]) {
    let mut folders: BTreeMap<RunPath, Option<String>> = BTreeMap::new();
    for (step, result) in results {
        if result.is_err() {
            continue;
        }
        let Some(folder) = step.path.parent() else { continue };
        let failed = folders.entry(folder).or_insert_with_key(|folder| match disk.sync(folder) {
            // A folder that has since been removed needs no sync.
            Err(cause) if !is_absent(&cause) => Some(cause.to_string()),
            _ => None,
        });
        if let Some(why) = failed {
            *result = Err(FilesError::not_synced(&step.path, why));
        }
    }
}

//! The state of each entry before a write-through run first changed it. These states are needed to
//! list the run's changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use crate::base::{Base, EntryInfo};
use crate::entry::{Change, ChangeKind, EntryKind};
use crate::error::FilesError;
use crate::path::{Intent, RunPath};

/// Maximum number of bytes that are hashed for one operation. A write to a file that is larger than
/// the remaining budget always counts as a change.
const HASH_BUDGET: u64 = 256 << 20;

#[derive(Debug, Default)]
pub(super) struct Journal {
    before: BTreeMap<RunPath, Snapshot>,
}

/// The recorded state of an entry.
#[derive(Debug)]
enum Snapshot {
    Absent,
    File { size: u64, digest: Option<blake3::Hash> },
    Folder,
    Link(String),
    Other,
}

impl Journal {
    /// Records the state of entries that the run has not changed yet. Called before every change.
    pub(super) fn record<'a>(
        &mut self,
        base: &Base,
        paths: impl IntoIterator<Item = &'a RunPath>,
    ) -> Result<(), FilesError> {
        let mut budget = HASH_BUDGET;
        for path in paths {
            if !self.before.contains_key(path) {
                self.before.insert(path.clone(), snapshot(base, path, &mut budget)?);
            }
        }
        Ok(())
    }

    /// Removes the record of an entry that did not exist before the run and does not exist now, so
    /// that the journal of a run that creates and removes many files stays small.
    pub(super) fn forget(&mut self, path: &RunPath) {
        if let Some(Snapshot::Absent) = self.before.get(path) {
            self.before.remove(path);
        }
    }

    /// Returns the differences between the recorded states and the base, sorted by path.
    pub(super) fn changes(&self, base: &Base) -> Result<Vec<Change>, FilesError> {
        let mut changes = Vec::new();
        let mut removed_folders = BTreeSet::new();
        for (path, before) in &self.before {
            let mut budget = HASH_BUDGET;
            let now = snapshot(base, path, &mut budget)?;
            let mut add =
                |kind, snapshot: &Snapshot| changes.push((path, change(path, kind, snapshot)));
            match (before, &now) {
                (Snapshot::Absent, Snapshot::Absent) => {}
                (Snapshot::Absent, now) => add(ChangeKind::Created, now),
                (Snapshot::Folder, Snapshot::Folder) | (Snapshot::Other, Snapshot::Other) => {}
                (Snapshot::Link(a), Snapshot::Link(b)) if a == b => {}
                (
                    Snapshot::File { digest: Some(a), .. },
                    Snapshot::File { digest: Some(b), .. },
                ) if a == b => {}
                (Snapshot::File { .. }, Snapshot::File { .. })
                | (Snapshot::Link(_), Snapshot::Link(_)) => {
                    add(ChangeKind::Modified, &now);
                }
                (before, now) => {
                    add(ChangeKind::Deleted, before);
                    if !matches!(now, Snapshot::Absent) {
                        add(ChangeKind::Created, now);
                    }
                    if matches!(before, Snapshot::Folder) {
                        removed_folders.insert(path.clone());
                    }
                }
            }
        }
        // A removed folder is one change, regardless of its content.
        changes.retain(|(path, change)| {
            change.kind != ChangeKind::Deleted
                || !path.steps().any(|step| step != **path && removed_folders.contains(&step))
        });
        Ok(changes.into_iter().map(|(_, change)| change).collect())
    }
}

fn change(path: &RunPath, kind: ChangeKind, snapshot: &Snapshot) -> Change {
    let (entry, size) = match snapshot {
        Snapshot::File { size, .. } => (EntryKind::File, *size),
        Snapshot::Folder => (EntryKind::Folder, 0),
        Snapshot::Link(_) => (EntryKind::Link, 0),
        Snapshot::Other | Snapshot::Absent => (EntryKind::Other, 0),
    };
    Change { path: path.as_str().to_owned(), kind, entry, size }
}

fn snapshot(base: &Base, path: &RunPath, budget: &mut u64) -> Result<Snapshot, FilesError> {
    let mut read = || -> io::Result<Snapshot> {
        Ok(match base.entry(path)? {
            EntryInfo::Absent => Snapshot::Absent,
            EntryInfo::Folder { .. } => Snapshot::Folder,
            EntryInfo::Link(target) => Snapshot::Link(target),
            EntryInfo::Other(_) => Snapshot::Other,
            EntryInfo::File { size, .. } => {
                Snapshot::File { size, digest: digest(base, path, size, budget) }
            }
        })
    };
    read().map_err(|cause| FilesError::io(Intent::Write, path, cause))
}

/// Returns the hash of a file's content and subtracts `size` from the budget. Returns `None` if
/// `size` exceeds the budget, or the file cannot be read.
fn digest(base: &Base, path: &RunPath, size: u64, budget: &mut u64) -> Option<blake3::Hash> {
    *budget = budget.checked_sub(size)?;
    let (file, _) = base.open_file(path).ok()?;
    let mut hasher = blake3::Hasher::new();
    let mut file = file.take(size.saturating_add(1));
    io::copy(&mut file, &mut hasher).ok()?;
    Some(hasher.finalize())
}

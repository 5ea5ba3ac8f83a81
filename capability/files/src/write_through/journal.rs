//! The state of each entry before a write-through run first changed it. These states are needed to
//! list the run's changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use crate::base::{Base, EntryInfo};
use crate::entry::{Change, ChangeKind, EntryKind};
use crate::error::{AtPath as _, FilesError};
use crate::path::{Intent, RunPath};

/// Maximum number of bytes that are hashed for one operation. A write to a file that is larger than
/// the remaining budget always counts as a change.
const HASH_BUDGET: u64 = 256 << 20;

#[derive(Debug, Default)]
pub(super) struct Journal {
    before: BTreeMap<RunPath, Snapshot>,
}

/// The recorded state of an entry. A file whose content was not hashed has no digest.
#[derive(Debug)]
struct Snapshot {
    entry: EntryInfo,
    digest: Option<blake3::Hash>,
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
        if self.before.get(path).is_some_and(|before| before.entry == EntryInfo::Absent) {
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
            use EntryInfo::{Absent, File, Folder, Link, Other};
            match (&before.entry, &now.entry) {
                (Absent, Absent) | (Folder { .. }, Folder { .. }) | (Other(_), Other(_)) => {}
                (Absent, _) => add(ChangeKind::Created, &now),
                (Link(a), Link(b)) if a == b => {}
                (File { .. }, File { .. })
                    if before.digest.is_some() && before.digest == now.digest => {}
                (File { .. }, File { .. }) | (Link(_), Link(_)) => add(ChangeKind::Modified, &now),
                (old, new) => {
                    add(ChangeKind::Deleted, before);
                    if *new != Absent {
                        add(ChangeKind::Created, &now);
                    }
                    if matches!(old, Folder { .. }) {
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

fn change(path: &RunPath, kind: ChangeKind, Snapshot { entry, .. }: &Snapshot) -> Change {
    let (path, size) = (path.as_str().to_owned(), entry.size());
    Change { path, kind, entry: entry.kind().unwrap_or(EntryKind::Other), size }
}

fn snapshot(base: &Base, path: &RunPath, budget: &mut u64) -> Result<Snapshot, FilesError> {
    let entry = base.entry(path).at(Intent::Write, path)?;
    let digest = match entry {
        EntryInfo::File { size, .. } => digest(base, path, size, budget),
        _ => None,
    };
    Ok(Snapshot { entry, digest })
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

//! What a run that writes through found before its first write to each path, so that its changes can be listed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use super::base::{Base, Found};
use super::error::{FilesError, Intent};
use super::path::RunPath;
use super::{Change, ChangeKind, EntryKind};

/// The most bytes of files that are hashed for one operation. Of what is beyond, any touch counts as a change.
const HASH_BUDGET: u64 = 256 << 20;

#[derive(Debug, Default)]
pub(super) struct Journal {
    before: BTreeMap<RunPath, State>,
}

/// An entry and what it held.
#[derive(Debug)]
enum State {
    Absent,
    File { size: u64, digest: Option<blake3::Hash> },
    Folder,
    Link(String),
    Other,
}

impl Journal {
    /// Remembers these entries as they are, where they were not touched before. Called before the change.
    pub(super) fn touch<'a>(
        &mut self,
        base: &Base,
        paths: impl IntoIterator<Item = &'a RunPath>,
    ) -> Result<(), FilesError> {
        let mut budget = HASH_BUDGET;
        for path in paths {
            if !self.before.contains_key(path) {
                self.before.insert(path.clone(), state(base, path, &mut budget)?);
            }
        }
        Ok(())
    }

    /// Forgets an entry that was not there before and is not there now, so that a run which makes and removes files
    /// without end is not remembered without end.
    pub(super) fn forget(&mut self, path: &RunPath) {
        if let Some(State::Absent) = self.before.get(path) {
            self.before.remove(path);
        }
    }

    /// What differs now, sorted by path.
    pub(super) fn changes(&self, base: &Base) -> Result<Vec<Change>, FilesError> {
        let mut changes = Vec::new();
        let mut gone = BTreeSet::new();
        for (path, before) in &self.before {
            let mut budget = HASH_BUDGET;
            let now = state(base, path, &mut budget)?;
            let mut add = |kind, state: &State| changes.push((path, change(path, kind, state)));
            match (before, &now) {
                (State::Absent, State::Absent) => {}
                (State::Absent, now) => add(ChangeKind::Created, now),
                (State::Folder, State::Folder) | (State::Other, State::Other) => {}
                (State::Link(a), State::Link(b)) if a == b => {}
                (State::File { digest: Some(a), .. }, State::File { digest: Some(b), .. }) if a == b => {}
                (State::File { .. }, State::File { .. }) | (State::Link(_), State::Link(_)) => {
                    add(ChangeKind::Modified, &now);
                }
                (before, now) => {
                    add(ChangeKind::Deleted, before);
                    if !matches!(now, State::Absent) {
                        add(ChangeKind::Created, now);
                    }
                    if matches!(before, State::Folder) {
                        gone.insert(path.clone());
                    }
                }
            }
        }
        // A folder that is gone stands for all that it held.
        changes.retain(|(path, change)| {
            change.kind != ChangeKind::Deleted || !path.steps().any(|step| step != **path && gone.contains(&step))
        });
        Ok(changes.into_iter().map(|(_, change)| change).collect())
    }
}

fn change(path: &RunPath, kind: ChangeKind, state: &State) -> Change {
    let (entry, size) = match state {
        State::File { size, .. } => (EntryKind::File, *size),
        State::Folder => (EntryKind::Folder, 0),
        State::Link(_) => (EntryKind::Link, 0),
        State::Other | State::Absent => (EntryKind::Other, 0),
    };
    Change { path: path.as_str().to_owned(), kind, entry, size }
}

fn state(base: &Base, path: &RunPath, budget: &mut u64) -> Result<State, FilesError> {
    let mut read = || -> io::Result<State> {
        Ok(match base.look(path)? {
            Found::Absent => State::Absent,
            Found::Folder { .. } => State::Folder,
            Found::Link(target) => State::Link(target),
            Found::Other(_) => State::Other,
            Found::File { size, .. } => State::File { size, digest: digest(base, path, size, budget) },
        })
    };
    read().map_err(|cause| FilesError::io(Intent::Write, path, cause))
}

/// The hash of a file's content; `None` where it is too large, or may be written but not read.
fn digest(base: &Base, path: &RunPath, size: u64, budget: &mut u64) -> Option<blake3::Hash> {
    *budget = budget.checked_sub(size)?;
    let (file, _) = base.open_file(path).ok()?;
    let mut hasher = blake3::Hasher::new();
    let mut file = file.take(size.saturating_add(1));
    io::copy(&mut file, &mut hasher).ok()?;
    Some(hasher.finalize())
}

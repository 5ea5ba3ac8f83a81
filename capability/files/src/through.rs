//! Writing through: what a trusted run changes is changed on the base at once, after the journal took note of it.

use std::io;

use super::base::{Base, Found};
use super::edit::moved;
use super::error::{FilesError, Intent};
use super::path::RunPath;
use super::view::Store;

impl Store {
    /// Makes the folders above `path` that are not there.
    pub(super) fn make_above(&mut self, path: &RunPath) -> Result<(), FilesError> {
        let there = self.check_above(path)?;
        let above = path.depth().saturating_sub(1);
        for step in path.steps().take(above).skip(there) {
            self.change_base(&step, |base| base.create_folder(&step))?;
        }
        Ok(())
    }

    pub(super) fn change_base(
        &mut self,
        path: &RunPath,
        change: impl FnOnce(&Base) -> io::Result<()>,
    ) -> Result<(), FilesError> {
        let Store::Through { base, journal } = self else { return Ok(()) };
        journal.touch(base, [path])?;
        change(base).map_err(|cause| FilesError::io(Intent::Write, path, cause))
    }

    pub(super) fn move_in_base(&mut self, from: &RunPath, to: &RunPath) -> Result<(), FilesError> {
        self.make_above(to)?;
        let Store::Through { base, journal } = self else { return Ok(()) };
        let found = base.look(from).map_err(|cause| FilesError::io(Intent::Write, from, cause))?;
        let mut entries = Vec::new();
        if let Found::Folder { .. } = found {
            entries.extend(base.walk(from)?.into_iter().map(|entry| (entry.path, entry.found)));
        }
        entries.insert(0, (from.clone(), found));
        for (old, found) in &entries {
            if let Found::Link(target) = found
                && old.leaves_from(&moved(old, from, to)?, target)
            {
                return Err(FilesError::link_leaves(old));
            }
        }
        let olds: Vec<RunPath> = entries.into_iter().map(|(path, _)| path).collect();
        let news = olds.iter().map(|old| moved(old, from, to)).collect::<Result<Vec<_>, _>>()?;
        journal.touch(base, olds.iter().chain(&news))?;
        base.rename(from, to).map_err(|cause| FilesError::io(Intent::Write, from, cause))?;
        for old in &olds {
            journal.forget(old);
        }
        Ok(())
    }
}

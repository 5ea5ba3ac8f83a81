//! The paths of files that are open for writing. When a file moves, its path is updated.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::path::RunPath;

/// The current path of an open file, or `None` after the file was removed or replaced.
type CurrentPath = Mutex<Option<RunPath>>;

/// An open file's path. The tree updates it until the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct OpenPath(Arc<CurrentPath>);

impl OpenPath {
    /// Returns the current path, or `None` after the file was removed or replaced.
    pub(crate) fn get(&self) -> Option<RunPath> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, path: Option<RunPath>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }
}

/// The paths of all open files of a tree.
#[derive(Debug, Default)]
pub(crate) struct OpenPaths(Vec<Weak<CurrentPath>>);

impl OpenPaths {
    /// Adds a file that was opened at `path`.
    pub(crate) fn open(&mut self, path: RunPath) -> OpenPath {
        self.0.retain(|open| open.strong_count() > 0);
        let path = Arc::new(Mutex::new(Some(path)));
        self.0.push(Arc::downgrade(&path));
        OpenPath(path)
    }

    /// Returns the open files at or under `path`, with their current paths.
    pub(crate) fn below(&self, path: &RunPath) -> Vec<(OpenPath, RunPath)> {
        let open = self.0.iter().filter_map(Weak::upgrade).map(OpenPath);
        open.filter_map(|open| {
            open.get()
                .filter(|current| current.below(path).is_some())
                .map(|current| (open, current))
        })
        .collect()
    }

    /// Marks the open files at or under `path` as removed.
    pub(crate) fn unlink(&self, path: &RunPath) {
        for (open, _) in self.below(path) {
            open.set(None);
        }
    }

    /// Updates the paths of open files after a move from `from` to `to`. `moved` is the result of
    /// [`below`](OpenPaths::below).
    pub(crate) fn relocate(moved: Vec<(OpenPath, RunPath)>, from: &RunPath, to: &RunPath) {
        for (open, old) in moved {
            open.set(old.relocate(from, to).ok());
        }
    }
}

//! The names that the line editor can complete.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The names that can be completed now. They are updated before each input is read.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The programs of the catalog, each with its usage.
    pub(super) programs: Vec<(String, String)>,
    /// The ids of the stored sessions.
    pub(super) sessions: Vec<String>,
    /// The names of models.
    pub(super) models: Vec<String>,
    /// The paths of the session's changes.
    pub(super) changes: Vec<String>,
    /// Number of steps in the last run.
    pub(super) steps: u32,
    /// The source of the open program.
    pub(super) program: String,
    /// The workdir.
    pub(super) root: PathBuf,
}

/// The names, shared with the line editor.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedKnown(Arc<Mutex<Known>>);

impl SharedKnown {
    /// Locks the names.
    pub(super) fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

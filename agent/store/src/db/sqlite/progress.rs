//! The stage of a transaction, which other threads can read.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A stage of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for the lock of the file.
    Locking,
    /// Its statements are executed.
    Working,
    /// Its changes are written to the disk.
    Committing,
}

/// The stage of a connection's transaction.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<Option<(Stage, Instant)>>);

impl Progress {
    pub(super) fn enter(&self, stage: Stage) {
        self.set(Some((stage, Instant::now())));
    }

    pub(super) fn end(&self) {
        self.set(None);
    }

    /// Returns the stage of the transaction, and the time since it began. Returns `None` if there
    /// is no transaction.
    pub(super) fn stage(&self) -> Option<(Stage, Duration)> {
        let stage = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stage.map(|(stage, began)| (stage, began.elapsed()))
    }

    fn set(&self, stage: Option<(Stage, Instant)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }
}

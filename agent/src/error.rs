//! Failures of the host itself and of its store.

use std::path::Path;

use wattle_rt::{Bug, EngineError};
use wattle_shell::ToolboxError;

/// A failure of the host itself. It ends the run and is never reported as a failure of a program or
/// a model.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A host function panicked.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// The engine failed or could not be created.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The shell's commands cannot be loaded.
    #[error(transparent)]
    Toolbox(#[from] ToolboxError),
}

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to {what} the store{}: {cause}",
    .at.as_ref().map(|at| format!(" `{at}`")).unwrap_or_default()
)]
pub struct StoreError {
    what: &'static str,
    /// The path of the file, or the database's URL without the password.
    at: Option<String>,
    cause: Cause,
}

/// The cause of a failure.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

impl StoreError {
    /// Creates the error for a store that cannot be opened.
    pub fn open(path: &Path, cause: impl Into<Cause>) -> StoreError {
        StoreError::at("open", Some(path.display().to_string()), cause.into())
    }

    /// Returns true if the store is temporarily unusable: its database cannot be reached or
    /// written, its disk is full, or it is too slow. The same operation may succeed later.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        crate::store::is_outage(&self.cause)
    }

    /// Returns true if the file of the store is damaged.
    pub(crate) fn is_damage(&self) -> bool {
        crate::store::is_damage(&self.cause)
    }

    /// Returns the reason in a few words, without names of files and servers, so that it can be
    /// shown to any client: for example, `the disk of the store is full`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        crate::store::reason(&self.cause)
    }

    /// Returns true if a write was refused because the run, the tenant or the store would keep more
    /// bytes than its [limit](crate::StoreLimits).
    #[must_use]
    pub fn is_full(&self) -> bool {
        crate::store::is_limit(&self.cause)
    }

    /// Creates the error for invalid content in the store.
    pub(crate) fn unreadable(cause: impl Into<Cause>) -> StoreError {
        StoreError::at("read", None, cause.into())
    }

    pub(crate) fn new(what: &'static str) -> impl FnOnce(Cause) -> StoreError {
        move |cause| StoreError::at(what, None, cause)
    }

    /// Creates the error for a store at a path or a URL. A URL must not contain a password.
    pub(crate) fn at(what: &'static str, at: Option<String>, cause: Cause) -> StoreError {
        StoreError { what, at, cause }
    }
}

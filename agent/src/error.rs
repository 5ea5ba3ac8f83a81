//! Failures of the host itself and of its store.

use std::path::{Path, PathBuf};

use wattle_rt::{Bug, EngineError};
use wattle_shell::ToolboxError;

/// A failure of the host itself. It ends the run, and is not reported to a program or a model as
/// their failure.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A host function panicked.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// The engine cannot be created, or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The shell's commands cannot be loaded.
    #[error(transparent)]
    Toolbox(#[from] ToolboxError),
}

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what} the store{}: {cause}", .path.as_ref().map(|p| format!(" `{}`", p.display())).unwrap_or_default())]
pub struct StoreError {
    what: &'static str,
    path: Option<PathBuf>,
    cause: Cause,
}

/// The cause of a failure.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

impl StoreError {
    /// Creates the error for a store that cannot be opened.
    pub fn open(path: &Path, cause: impl Into<Cause>) -> StoreError {
        StoreError { what: "open", path: Some(path.to_owned()), cause: cause.into() }
    }

    /// Creates the error for content that is invalid.
    pub(crate) fn unreadable(cause: impl Into<Cause>) -> StoreError {
        StoreError { what: "read", path: None, cause: cause.into() }
    }

    pub(crate) fn new(what: &'static str) -> impl FnOnce(Cause) -> StoreError {
        move |cause| StoreError { what, path: None, cause }
    }
}

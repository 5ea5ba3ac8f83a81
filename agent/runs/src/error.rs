//! Failures of the host itself.

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

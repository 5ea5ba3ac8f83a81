//! Failures of the host itself.

use wattle_rt::{Bug, EngineError};
use wattle_shell::ToolboxError;

/// A failure of the host itself. It ends the run; it is not reported to a program or a model as
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

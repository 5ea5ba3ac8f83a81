//! The error returned if the toolbox fails to load.

/// An error that prevents the toolbox from loading or compiling.
#[derive(Debug, thiserror::Error)]
#[error("failed to load the shell's commands: {0}")]
pub struct ToolboxError(pub(super) String);

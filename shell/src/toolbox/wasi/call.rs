//! The result of a host function.

use super::guest::Exit;
use crate::errno::Errno;

/// Result of a host function that returns no value.
pub(super) type CallResult = Result<(), CallError>;

/// Failure of a host function.
pub(super) enum CallError {
    /// The error number that the function returns to the guest.
    Errno(Errno),
    /// The reason to end the guest.
    Exit(Exit),
}

impl From<Errno> for CallError {
    fn from(errno: Errno) -> CallError {
        CallError::Errno(errno)
    }
}

impl From<Exit> for CallError {
    fn from(exit: Exit) -> CallError {
        CallError::Exit(exit)
    }
}

//! The result of a host function.

use std::fmt;

use crate::command::Status;
use crate::errno::Errno;

/// Result of a host function that returns no value.
pub(super) type CallResult = Result<(), CallError>;

/// The error of a host function call: an error number for the guest, or a reason to end the guest.
pub(super) enum CallError {
    /// The error number that the function returns to the guest.
    Errno(Errno),
    /// The reason why the guest must end.
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

/// Reason to end a guest, either from within a host function or at a tick of the engine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The guest called `proc_exit` with a status.
    Status(Status),
    /// The guest wrote to a pipe without a reader.
    Pipe,
    /// The guest exceeded its processor time.
    Time,
    /// The account of the guest's run has no processor time left.
    Account,
    /// The guest's caller cancelled it.
    Cancelled,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "guest ended: {self:?}")
    }
}

impl std::error::Error for Exit {}

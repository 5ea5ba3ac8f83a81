//! The errors of commands: the message on stderr and the exit code.

use std::fmt;

use wattle_agent::host::StoreError;
use wattle_agent::host::rt::Failure;

/// The exit code of the process, which has the same meaning for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done,
    /// There is no answer, or the program failed.
    Failed,
    /// The command line is invalid or names something that does not exist.
    Usage,
    /// A setting is missing or invalid.
    Configuration,
    /// The model's provider failed.
    Provider,
    /// A limit of the run was reached.
    Bound,
    /// A permission is missing.
    Denied,
    /// The run is parked: it is waiting for an approval or a release.
    Parked,
    /// The user interrupted the command.
    Interrupted,
    /// The exit status of a shell script.
    Status(u8),
}

impl Exit {
    /// Returns the exit code of a command that found no problem, or that found one.
    pub(crate) fn of(is_sound: bool) -> Exit {
        if is_sound { Exit::Done } else { Exit::Failed }
    }
}

/// A command without an exit code of its own succeeds.
impl From<()> for Exit {
    fn from((): ()) -> Exit {
        Exit::Done
    }
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> u8 {
        match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Configuration => 3,
            Exit::Provider => 4,
            Exit::Bound => 5,
            Exit::Denied => 6,
            Exit::Parked => 7,
            Exit::Interrupted => 130,
            Exit::Status(status) => status,
        }
    }
}

/// The error that ends a command.
#[derive(Debug)]
pub(crate) enum Fault {
    /// An error that is reported to the user.
    Reported {
        /// The exit code.
        exit: Exit,
        /// The message: lower case, without a full stop.
        message: String,
        /// A hint that suggests an action.
        hint: Option<String>,
    },
    /// The process that reads stdout has closed it, so there is nothing left to do. This is not an
    /// error.
    ReaderGone,
}

impl Fault {
    /// Creates a fault with this exit code.
    pub(crate) fn new(exit: Exit, message: impl ToString) -> Fault {
        Fault::Reported { exit, message: message.to_string(), hint: None }
    }

    /// Creates a fault for an invalid command line.
    pub(crate) fn usage(message: impl ToString) -> Fault {
        Fault::new(Exit::Usage, message)
    }

    /// Creates a fault for invalid settings.
    pub(crate) fn configuration(message: impl ToString) -> Fault {
        Fault::new(Exit::Configuration, message)
    }

    /// Creates a fault for a failed operation.
    pub(crate) fn failed(message: impl ToString) -> Fault {
        Fault::new(Exit::Failed, message)
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Fault {
        match self {
            Fault::Reported { exit, message, .. } => {
                Fault::Reported { exit, message, hint: Some(hint.into()) }
            }
            Fault::ReaderGone => Fault::ReaderGone,
        }
    }

    /// Returns the message without the hint.
    pub(crate) fn message(&self) -> &str {
        match self {
            Fault::Reported { message, .. } => message,
            Fault::ReaderGone => "the reader of the output closed it",
        }
    }

    /// Returns the hint.
    pub(crate) fn hinted(&self) -> Option<&str> {
        match self {
            Fault::Reported { hint, .. } => hint.as_deref(),
            Fault::ReaderGone => None,
        }
    }

    /// Returns the message and the hint in one sentence.
    pub(crate) fn sentence(&self) -> String {
        let parts = [Some(self.message()), self.hinted()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Fault::Reported { exit, .. } => *exit,
            Fault::ReaderGone => Exit::Done,
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::failed(error)
    }
}

/// A failed call to a service of programs, such as the memory.
impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        Fault::failed(failure.reason)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Reported { message, hint: Some(hint), .. } => {
                write!(f, "{message}\nhint: {hint}")
            }
            fault => f.write_str(fault.message()),
        }
    }
}

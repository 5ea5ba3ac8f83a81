//! Why a command did not do what was asked: the words on stderr and the exit code.

use std::fmt;
use std::process::ExitCode;

/// How the process ends; the codes are the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked is done.
    Done,
    /// There is no answer, or the program failed.
    Failed,
    /// The command line asks for something that there is not.
    Usage,
    /// A setting is missing or wrong.
    Configuration,
    /// The model's provider failed.
    Provider,
    /// A bound of the run was reached.
    Bound,
    /// What was asked for was not granted.
    Denied,
    /// The user interrupted it.
    Interrupted,
    /// A script of the shell ended with this status.
    Status(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Configuration => 3,
            Exit::Provider => 4,
            Exit::Bound => 5,
            Exit::Denied => 6,
            Exit::Interrupted => 130,
            Exit::Status(status) => status,
        })
    }
}

/// What ends a command before it is done.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Something to tell the user.
    Told {
        /// How the process ends.
        exit: Exit,
        /// What is wrong: lower case, no full stop.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// Whoever read our output has gone, so nothing is left to do; not an error.
    ReaderGone,
}

impl Fault {
    /// A fault with that exit code.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Fault {
        Fault::Told { exit, message: message.into(), hint: None }
    }

    /// Something that the command line asks for and that there is not.
    pub(crate) fn usage(message: impl Into<String>) -> Fault {
        Fault::new(Exit::Usage, message)
    }

    /// A setting that is missing or wrong.
    pub(crate) fn configuration(message: impl Into<String>) -> Fault {
        Fault::new(Exit::Configuration, message)
    }

    /// Something that was tried and failed.
    pub(crate) fn failed(message: impl Into<String>) -> Fault {
        Fault::new(Exit::Failed, message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Fault {
        match self {
            Fault::Told { exit, message, .. } => Fault::Told { exit, message, hint: Some(hint.into()) },
            Fault::ReaderGone => Fault::ReaderGone,
        }
    }

    /// What is wrong, without what to do about it.
    pub(crate) fn message(&self) -> &str {
        match self {
            Fault::Told { message, .. } => message,
            Fault::ReaderGone => "the reader of the output has gone",
        }
    }

    /// How the process ends.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Fault::Told { exit, .. } => *exit,
            Fault::ReaderGone => Exit::Done,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Told { message, hint: Some(hint), .. } => write!(f, "{message}\nhint: {hint}"),
            fault => f.write_str(fault.message()),
        }
    }
}

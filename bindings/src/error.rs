//! The error of all operations, which a language turns into its own exceptions.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::RunFailure;
use wattle_agent::host::denied;
use wattle_agent::host::rt::{Diagnostic, RunError};

use crate::Outcome;

/// An error. It dereferences to its [details](ErrorDetails).
#[derive(Clone, Debug)]
pub struct Error(Box<ErrorDetails>);

impl Deref for Error {
    type Target = ErrorDetails;

    fn deref(&self) -> &ErrorDetails {
        &self.0
    }
}

/// Everything that the caller may want to know about an [`Error`].
#[derive(Clone, Debug)]
pub struct ErrorDetails {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// A stable name: the error code of a program, such as `ENOENT`, the code of a diagnostic, such
    /// as `unknown-function`, or a word for the reason why a run stopped, such as `timeout`.
    pub code: String,
    /// A sentence that says what is wrong.
    pub reason: String,
    /// A sentence that says what to do, if that is known.
    pub hint: Option<String>,
    /// The line of the program, counted from 1, if the error has a position.
    pub line: Option<u32>,
    /// The column, in characters, counted from 1.
    pub column: Option<u32>,
    /// The full name of the host function that failed, such as `http.get`, if one did.
    pub function: Option<String>,
    /// What the program did before it failed.
    pub outcome: Option<Arc<Outcome>>,
    /// The report of the agent's run that did not complete.
    pub report: Option<Arc<Json>>,
}

/// The kind of an [`Error`]. A language has an exception for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The program does not compile.
    InvalidProgram,
    /// The program may not do what it needs. No instruction was executed.
    Denied,
    /// The program returned an error code or was stopped.
    ProgramFailed,
    /// The run of an agent did not complete.
    RunFailed,
    /// The run of an agent waits for a person's approval.
    Parked,
    /// The caller cancelled the run.
    Cancelled,
    /// An argument or a setting of the caller is invalid.
    Settings,
    /// The host itself failed.
    Host,
}

impl ErrorKind {
    /// Returns the name of the kind, such as `program-failed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::InvalidProgram => "invalid-program",
            ErrorKind::Denied => "denied",
            ErrorKind::ProgramFailed => "program-failed",
            ErrorKind::RunFailed => "run-failed",
            ErrorKind::Parked => "parked",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Settings => "settings",
            ErrorKind::Host => "host",
        }
    }
}

impl ErrorDetails {
    fn new(kind: ErrorKind, code: impl Into<String>, reason: impl Into<String>) -> ErrorDetails {
        ErrorDetails {
            kind,
            code: code.into(),
            reason: reason.into(),
            hint: None,
            line: None,
            column: None,
            function: None,
            outcome: None,
            report: None,
        }
    }
}

impl From<ErrorDetails> for Error {
    fn from(details: ErrorDetails) -> Error {
        Error(Box::new(details))
    }
}

impl Error {
    fn new(kind: ErrorKind, code: impl Into<String>, reason: impl Into<String>) -> Error {
        ErrorDetails::new(kind, code, reason).into()
    }

    /// Returns the error with a sentence that says what to do.
    pub(crate) fn with_hint(mut self, hint: String) -> Error {
        self.0.hint = Some(hint);
        self
    }

    /// Creates an error about an argument or a setting of the caller.
    pub fn settings(reason: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Settings, "settings", reason.to_string())
    }

    /// Creates an error about the host itself.
    pub fn host(reason: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Host, "host", reason.to_string())
    }

    /// Creates the error of a run that was cancelled.
    #[must_use]
    pub fn cancelled(reason: &str) -> Error {
        let reason = if reason.is_empty() { "the run was cancelled" } else { reason };
        Error::new(ErrorKind::Cancelled, "ECANCEL", reason)
    }

    pub(crate) fn invalid(diagnostic: &Diagnostic) -> Error {
        let (kind, message) = (ErrorKind::InvalidProgram, diagnostic.message.as_str());
        let details = ErrorDetails {
            line: Some(diagnostic.position.line),
            column: Some(diagnostic.position.column),
            hint: diagnostic.hint.clone(),
            ..ErrorDetails::new(kind, diagnostic.code, message)
        };
        details.into()
    }

    pub(crate) fn did_not_run(error: RunError) -> Error {
        match error {
            RunError::Denied(missing) => Error::new(ErrorKind::Denied, "EACCESS", denied(&missing)),
            RunError::Refused(why) => {
                Error::new(ErrorKind::Denied, "EACCESS", format!("denied before it ran: {why}"))
            }
            RunError::Bug(bug) => Error::host(bug),
            RunError::Engine(error) => Error::host(error),
        }
    }

    /// Returns the error of a program that did not succeed, or the outcome of one that did.
    pub(crate) fn of_outcome(outcome: Outcome) -> Result<Outcome, Error> {
        let Some(error) = outcome.inner().error() else { return Ok(outcome) };
        let failed = ErrorDetails {
            line: error.position.map(|at| at.line),
            column: error.position.map(|at| at.column),
            function: error.function.map(str::to_owned),
            ..ErrorDetails::new(ErrorKind::ProgramFailed, error.code, error.reason)
        };
        Err(ErrorDetails { outcome: Some(Arc::new(outcome)), ..failed }.into())
    }

    pub(crate) fn of_run(failure: &RunFailure, report: Json) -> Error {
        let stop = report.get("stop").and_then(Json::as_str);
        let (kind, code) = if failure.is_cancelled() {
            (ErrorKind::Cancelled, "ECANCEL")
        } else if failure.pending().is_empty() {
            (ErrorKind::RunFailed, stop.unwrap_or("failed"))
        } else {
            (ErrorKind::Parked, "parked")
        };
        let details = ErrorDetails::new(kind, code, failure.to_string());
        ErrorDetails { report: Some(Arc::new(report)), ..details }.into()
    }

    /// Returns the error as a JSON object, without its outcome and its report.
    #[must_use]
    pub fn to_json(&self) -> Json {
        json!({
            "kind": self.kind.name(), "code": self.code, "reason": self.reason, "hint": self.hint,
            "line": self.line, "column": self.column, "function": self.function,
        })
    }
}

/// Formats the error on one line: `ENOENT: no such file (line 3, column 1); hint: …`.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::InvalidProgram | ErrorKind::ProgramFailed => {
                write!(f, "{}: {}", self.code, self.reason)?;
            }
            _ => f.write_str(&self.reason)?,
        }
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, " (line {line}, column {column})")?;
        }
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; hint: {hint}"))
    }
}

impl std::error::Error for Error {}

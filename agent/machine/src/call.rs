//! The calls that the machine requests, and their outcomes. Both are plain data.

use std::fmt;
use std::num::NonZeroI32;

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::event::Source;
use crate::kept::KeptValue;
use crate::recall::shorten;

/// Maximum length of an error reason, in characters.
const MAX_REASON: usize = 500;

/// A program to run, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Call {
    /// A program that the model wrote.
    Wat {
        /// The program's body.
        body: String,
        /// The call's arguments, in order.
        args: Vec<String>,
    },
    /// A catalog program.
    Catalog {
        /// The program's name, as the model wrote it.
        name: String,
        /// The call's arguments: those given by position, in order, then those given by name.
        /// Defaults of missing arguments are not filled in.
        args: Vec<String>,
        /// The names of the last arguments, as the model wrote them. Empty if all arguments are
        /// given by position.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
    },
}

impl Call {
    /// Returns a call of a catalog program with arguments by position.
    pub fn catalog(name: impl Into<String>, args: Vec<String>) -> Call {
        Call::Catalog { name: name.into(), args, names: Vec::new() }
    }

    /// Returns the label used in events: `wat`, or the name of the catalog program.
    pub fn label(&self) -> &str {
        match self {
            Self::Wat { .. } => "wat",
            Self::Catalog { name, .. } => name,
        }
    }

    /// Returns the text of an inline program, or `None` for a catalog program.
    pub fn body(&self) -> Option<&str> {
        match self {
            Self::Wat { body, .. } => Some(body),
            Self::Catalog { .. } => None,
        }
    }

    /// Returns the values of the arguments, in order.
    pub fn args(&self) -> &[String] {
        match self {
            Self::Wat { args, .. } | Self::Catalog { args, .. } => args,
        }
    }

    /// Returns the names of the last arguments. Empty if all arguments are given by position.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Wat { .. } => &[],
            Self::Catalog { names, .. } => names,
        }
    }

    /// Returns each argument with its name, if it is given by name.
    pub fn named_args(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let by_position = self.args().len().saturating_sub(self.names().len());
        let names = self.names().iter().map(|name| Some(name.as_str()));
        let names = std::iter::repeat_n(None, by_position).chain(names);
        names.zip(self.args().iter().map(String::as_str))
    }

    /// Returns the program's origin.
    pub fn source(&self) -> Source {
        match self {
            Self::Wat { .. } => Source::Wat,
            Self::Catalog { .. } => Source::Catalog,
        }
    }
}

/// The outcome of a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
// The lint fires only on targets with certain pointer sizes, so `expect` cannot be used.
#[allow(clippy::large_enum_variant, reason = "almost every execution is of the largest variant")]
pub enum Execution {
    /// The program ran to completion, with any exit code.
    Ran(Completion),
    /// The program does not compile. If an inline program is the step's only call, the model is
    /// asked to repair it. Otherwise, the diagnostic becomes the observation.
    Rejected {
        /// The diagnostic, with a hint. Its line numbers refer to the text that the author wrote.
        diagnostic: String,
    },
    /// The call was not run because of an unknown name, invalid arguments, or a capability that is
    /// not granted.
    Refused {
        /// The reason, and the valid alternatives.
        reason: String,
    },
    /// The program was stopped by a trap, a time limit or a fuel limit.
    Stopped {
        /// The complete line that the model reads, such as `program error: … at line 3` or `tool
        /// error: web_fetch timed out after 150s (killed)`.
        reason: String,
        /// The results that the program returned before it was stopped.
        results: Vec<String>,
        /// The cost of the execution.
        cost: Cost,
        /// The fixes made to the program before it ran, as in [`Completion::fixes`].
        #[serde(rename = "fixed", default, skip_serializing_if = "Vec::is_empty")]
        fixes: Vec<String>,
        /// The values that the program kept before it was stopped.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<KeptValue>,
    },
}

impl Execution {
    /// Returns the program's exit code, or `None` if the program did not run to completion.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Ran(ran) => Some(ran.exit_code()),
            Self::Rejected { .. } | Self::Refused { .. } | Self::Stopped { .. } => None,
        }
    }

    /// Returns true if the program ran to completion and its exit code is 0.
    pub fn succeeded(&self) -> bool {
        self.exit_code() == Some(0)
    }

    /// Returns the fixes made to the program before it ran.
    pub fn fixes(&self) -> &[String] {
        match self {
            Self::Ran(Completion { fixes, .. }) | Self::Stopped { fixes, .. } => fixes,
            Self::Rejected { .. } | Self::Refused { .. } => &[],
        }
    }

    /// Returns the results if the call succeeded.
    ///
    /// # Errors
    /// If the call failed. The error is the reason, truncated to 500 characters.
    pub fn texts(&self) -> Result<&[String], String> {
        match self.error() {
            None => Ok(self.results()),
            Some(why) => Err(shorten(&why, MAX_REASON)),
        }
    }

    /// Returns the results, even if the program failed.
    pub fn results(&self) -> &[String] {
        match self {
            Self::Ran(Completion { results, .. }) | Self::Stopped { results, .. } => results,
            Self::Rejected { .. } | Self::Refused { .. } => &[],
        }
    }

    /// Returns the full reason why the call failed, or `None` if it succeeded.
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Ran(Completion { failure, .. }) => failure.as_ref().map(ToString::to_string),
            Self::Rejected { diagnostic } => Some(diagnostic.clone()),
            Self::Refused { reason } | Self::Stopped { reason, .. } => Some(reason.clone()),
        }
    }

    /// Returns the answer that ends the run, or `None` if the program failed or set no answer.
    pub fn answer(&self) -> Option<&str> {
        match self {
            Self::Ran(Completion { answer, failure: None, .. }) => answer.as_deref(),
            _ => None,
        }
    }

    /// Returns the artifacts that the program saved for the application.
    pub fn artifacts(&self) -> &[Artifact] {
        match self {
            Self::Ran(Completion { artifacts, .. }) => artifacts,
            Self::Rejected { .. } | Self::Refused { .. } | Self::Stopped { .. } => &[],
        }
    }

    /// Returns the values that the program kept for later programs, even if it failed afterwards.
    pub fn kept(&self) -> &[KeptValue] {
        match self {
            Self::Ran(Completion { kept, .. }) | Self::Stopped { kept, .. } => kept,
            Self::Rejected { .. } | Self::Refused { .. } => &[],
        }
    }

    /// Sets the values that the program kept. Does nothing if the program did not run.
    #[must_use]
    pub fn with_kept(mut self, values: Vec<KeptValue>) -> Self {
        if let Self::Ran(Completion { kept, .. }) | Self::Stopped { kept, .. } = &mut self {
            *kept = values;
        }
        self
    }

    /// Returns the cost of the execution. It is zero if the program did not run.
    pub fn cost(&self) -> Cost {
        match self {
            Self::Ran(Completion { cost, .. }) | Self::Stopped { cost, .. } => *cost,
            Self::Rejected { .. } | Self::Refused { .. } => Cost::default(),
        }
    }
}

/// The outcome of a program that ran to completion, whether it succeeded or failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The program's results, in order.
    pub results: Vec<String>,
    /// The failure, or `None` if the exit code is 0.
    pub failure: Option<Failure>,
    /// The answer with which the program ends the run. It is ignored if the program failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The artifacts that the program saved for the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The values that the program kept for later programs, even if it failed afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptValue>,
    /// The cost of the execution.
    pub cost: Cost,
    /// Warnings for the program's author, one sentence each.
    pub warnings: Vec<String>,
    /// Fixes made to the program before it ran, each with its line number. Only mistakes with
    /// exactly one possible meaning are fixed.
    #[serde(rename = "fixed", default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<String>,
}

impl Completion {
    /// Returns the exit code, which is 0 on success.
    pub fn exit_code(&self) -> i32 {
        self.failure.as_ref().map_or(0, |failure| failure.exit_code.get())
    }
}

/// The failure of a program that returned a nonzero exit code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The program's exit code.
    pub exit_code: NonZeroI32,
    /// The code's name, such as `EREMOTE`, or `None` if the code has no name.
    pub name: Option<String>,
    /// A short explanation of the code.
    pub meaning: Option<String>,
    /// The host function that returned the code, such as `http.get`.
    pub function: Option<String>,
    /// The line that called the function. `None` if it is unknown, or if the model did not write
    /// the program.
    pub line: Option<SourceLine>,
    /// The call that failed, with its arguments, such as `file_read("notes.txt")`. `None` if the
    /// model wrote the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The reason for the failure, such as `http status 500`.
    pub reason: Option<String>,
}

/// Displays the name of the exit code, or its number if it has no name, followed by the reason.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name)?,
            None => write!(f, "{}", self.exit_code)?,
        }
        match &self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

/// A line of a program as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLine {
    /// The line number, counted from 1.
    pub number: u32,
    /// The line's text.
    pub text: String,
}

/// The cost of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Wall-clock time in milliseconds.
    pub dur_ms: u64,
    /// Fuel consumed, or `None` if fuel is not metered.
    pub fuel: Option<u64>,
}

//! The calls that the machine requests, and the reports of their outcome. Both are plain data.

use std::fmt;
use std::num::NonZeroI32;

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::event::Source;
use crate::recall::shorten;

/// Maximum length of the reason for a failure, in characters.
const MAX_REASON: usize = 500;

/// A program to run, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Call {
    /// A program that the model wrote.
    Wat {
        /// The program's body.
        body: String,
        /// The arguments in order.
        args: Vec<String>,
    },
    /// A catalog program.
    Catalog {
        /// The program's name, as the model wrote it.
        name: String,
        /// The arguments in order, without the defaults of missing ones.
        args: Vec<String>,
    },
}

impl Call {
    /// Returns the label in events: `wat`, or the program's name.
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

    /// Returns the arguments in order.
    pub fn args(&self) -> &[String] {
        match self {
            Self::Wat { args, .. } | Self::Catalog { args, .. } => args,
        }
    }

    /// Returns the program's source.
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
#[expect(clippy::large_enum_variant, reason = "almost every execution is of the largest variant")]
pub enum Execution {
    /// The program ended by itself.
    Ran(Completion),
    /// The program does not compile. If it is the only call and inline, the model is asked to
    /// repair it. Otherwise the diagnostic becomes the observation.
    Rejected {
        /// The diagnostic, with line numbers of the author's text and a hint.
        diagnostic: String,
    },
    /// The call was not run: an unknown name, invalid arguments, or a capability that is not
    /// granted.
    Refused {
        /// The reason, and what would be valid.
        reason: String,
    },
    /// The program was stopped by a trap or a limit on time or fuel.
    Stopped {
        /// The whole line that the model reads, such as `program error: … at line 3`, or `tool
        /// error: web_fetch timed out after 150s (killed)`.
        reason: String,
        /// The results of the program before it was stopped.
        results: Vec<String>,
        /// The cost of the execution.
        cost: Cost,
        /// The fixes made before running, as in [`Completion::fixes`].
        #[serde(rename = "mended", default, skip_serializing_if = "Vec::is_empty")]
        fixes: Vec<String>,
    },
}

impl Execution {
    /// Returns the program's exit code, or `None` if the program did not end by itself.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Ran(ran) => Some(ran.exit_code()),
            Self::Rejected { .. } | Self::Refused { .. } | Self::Stopped { .. } => None,
        }
    }

    /// Returns true if the program ended by itself, without a failure.
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

    /// Returns the results of a program that the host called.
    ///
    /// # Errors
    /// If the call failed. The error is the reason, in at most 500 characters.
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

    /// Returns the reason why the call failed, in full.
    pub fn error(&self) -> Option<String> {
        match self {
            Self::Ran(Completion { failure, .. }) => failure.as_ref().map(ToString::to_string),
            Self::Rejected { diagnostic } => Some(diagnostic.clone()),
            Self::Refused { reason } | Self::Stopped { reason, .. } => Some(reason.clone()),
        }
    }

    /// Returns the answer that ends the run, if the program set one and did not fail.
    pub fn answer(&self) -> Option<&str> {
        match self {
            Self::Ran(Completion { answer, failure: None, .. }) => answer.as_deref(),
            _ => None,
        }
    }

    /// Returns the data that the program left for the application.
    pub fn artifacts(&self) -> &[Artifact] {
        match self {
            Self::Ran(Completion { artifacts, .. }) => artifacts,
            Self::Rejected { .. } | Self::Refused { .. } | Self::Stopped { .. } => &[],
        }
    }

    /// Returns the cost, which is zero if the program did not run.
    pub fn cost(&self) -> Cost {
        match self {
            Self::Ran(Completion { cost, .. }) | Self::Stopped { cost, .. } => *cost,
            Self::Rejected { .. } | Self::Refused { .. } => Cost::default(),
        }
    }
}

/// The outcome of a program that ended by itself, with success or failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The program's results in order.
    pub results: Vec<String>,
    /// The failure, or `None` if the exit code is 0.
    pub failure: Option<Failure>,
    /// The answer with which the program ends the run. Ignored if the program failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The data that the program left for the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The cost of the execution.
    pub cost: Cost,
    /// Warnings for the author, one sentence each.
    pub warnings: Vec<String>,
    /// Fixes made to the program before it ran, each with its line. Only mistakes with exactly one
    /// possible meaning are fixed.
    #[serde(rename = "mended", default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<String>,
}

impl Completion {
    /// Returns the exit code. 0 is success.
    pub fn exit_code(&self) -> i32 {
        self.failure.as_ref().map_or(0, |failure| failure.exit_code.get())
    }
}

/// The reason for an exit code other than 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The program's exit code.
    pub exit_code: NonZeroI32,
    /// The code's name, such as `EREMOTE`, or `None` for a code without a name.
    pub name: Option<String>,
    /// The meaning of the code.
    pub meaning: Option<String>,
    /// The host function that returned the code, such as `http.get`.
    pub function: Option<String>,
    /// The line that called the function, of a program that the model wrote.
    pub line: Option<SourceLine>,
    /// The call to a catalog program with its arguments, such as `file_read("notes.txt")`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The reason, such as `http status 500`.
    pub reason: Option<String>,
}

/// The name of the code, and the reason.
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

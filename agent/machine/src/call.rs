//! What the machine wants run, and what it is told about it: plain data on both sides.

use std::num::NonZeroI32;

use serde::{Deserialize, Serialize};

use crate::event::Source;

/// Asks for one program to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Call {
    /// A program that the model wrote.
    Wat {
        /// The program's body.
        body: String,
        /// Its arguments in order.
        args: Vec<String>,
    },
    /// A program of the catalog.
    Catalog {
        /// The program's name, as the model wrote it.
        name: String,
        /// Its arguments in order, defaults not yet filled in.
        args: Vec<String>,
    },
}

impl Call {
    /// Gives what events call it: `wat`, or the program's name.
    pub fn label(&self) -> &str {
        match self {
            Self::Wat { .. } => "wat",
            Self::Catalog { name, .. } => name,
        }
    }

    /// Gives the text of an inline program.
    pub fn body(&self) -> Option<&str> {
        match self {
            Self::Wat { body, .. } => Some(body),
            Self::Catalog { .. } => None,
        }
    }

    /// Gives the arguments in order.
    pub fn args(&self) -> &[String] {
        match self {
            Self::Wat { args, .. } | Self::Catalog { args, .. } => args,
        }
    }

    /// Gives where the program comes from.
    pub fn source(&self) -> Source {
        match self {
            Self::Wat { .. } => Source::Wat,
            Self::Catalog { .. } => Source::Catalog,
        }
    }
}

/// Reports what became of a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Execution {
    /// The program came to its end.
    Ran(Ran),
    /// The program does not compile. A lone inline program goes back to the model; anything else is observed.
    Rejected {
        /// The diagnostic in the author's own lines, with its hint.
        diagnostic: String,
    },
    /// The call was not carried out: an unknown name, arguments that do not fit, a capability that is not granted.
    Refused {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The program ran and was ended from outside: a trap, time, fuel.
    Stopped {
        /// The whole line that the model reads, such as `program error: … at line 3`, or
        /// `tool error: web_fetch timed out after 150s (killed)`.
        reason: String,
        /// What the program had put out.
        results: Vec<String>,
        /// What it cost.
        cost: Cost,
        /// As [`Ran::mended`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mended: Vec<String>,
    },
}

impl Execution {
    /// Gives the code that the program left; `None` where it did not come to its end.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Ran(ran) => Some(ran.exit_code()),
            Self::Rejected { .. } | Self::Refused { .. } | Self::Stopped { .. } => None,
        }
    }

    /// Gives what was put right in the program before it ran.
    pub fn mended(&self) -> &[String] {
        match self {
            Self::Ran(Ran { mended, .. }) | Self::Stopped { mended, .. } => mended,
            Self::Rejected { .. } | Self::Refused { .. } => &[],
        }
    }

    /// Gives the answer that ends the run, where the program gave one and did not fail.
    pub fn answer(&self) -> Option<&str> {
        match self {
            Self::Ran(Ran { answer, failure: None, .. }) => answer.as_deref(),
            _ => None,
        }
    }

    /// Gives what it cost; nothing where the program did not run.
    pub fn cost(&self) -> Cost {
        match self {
            Self::Ran(Ran { cost, .. }) | Self::Stopped { cost, .. } => *cost,
            Self::Rejected { .. } | Self::Refused { .. } => Cost::default(),
        }
    }
}

/// Reports a program that came to its end, well or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// What the program put out, in order.
    pub results: Vec<String>,
    /// Why it did not leave 0; `None` where it did.
    pub failure: Option<Failure>,
    /// The answer that it gives for the run, which ends with it; nothing of a program that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// What it cost.
    pub cost: Cost,
    /// What the author should know though the program ran, one sentence each.
    pub warnings: Vec<String>,
    /// What was put right in the program before it ran, with the line of each, since only one reading of it was possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
}

impl Ran {
    /// Gives the code that the program left; 0 is success.
    pub fn exit_code(&self) -> i32 {
        self.failure.as_ref().map_or(0, |failure| failure.exit_code.get())
    }
}

/// Explains why a program left another code than 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The code that the program left.
    pub exit_code: NonZeroI32,
    /// The code's name, such as `EREMOTE`; `None` for a number that has none.
    pub name: Option<String>,
    /// What the code means, in words.
    pub meaning: Option<String>,
    /// The host function that gave the code, such as `http.get`.
    pub function: Option<String>,
    /// The line that called it.
    pub line: Option<SourceLine>,
    /// The reason in words, such as `http status 500`.
    pub reason: Option<String>,
}

/// Names a line of a program as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLine {
    /// The line's number, counted from 1.
    pub number: u32,
    /// The line's text.
    pub text: String,
}

/// Says what an execution cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Wall-clock time in milliseconds.
    pub dur_ms: u64,
    /// Fuel burnt; `None` where fuel is not counted.
    pub fuel: Option<u64>,
}

//! Attempts. An attempt is the result of one model working on one task.

use std::fmt;

use serde::{Deserialize, Serialize};
use wattle_agent::host::machine::Stop;
use wattle_agent::model::Mask;

/// The approach that a model uses for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approach {
    /// The model answers each step with a program, in the text dialect.
    Programs,
    /// The model answers each step with function calls, in the native dialect.
    Native,
    /// The model calls the host functions one by one as JSON tools. This is the baseline.
    Tools,
}

impl fmt::Display for Approach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Approach::Programs => "programs",
            Approach::Native => "native",
            Approach::Tools => "tools",
        })
    }
}

/// The result of one model working on one task. It is stored as one line of a results file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The task's id.
    pub task: String,
    /// The model's name.
    pub model: String,
    /// The model's approach to the task.
    pub approach: Approach,
    /// The name of the agent that worked on the task, or an empty string if the model worked
    /// without an agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The number of the attempt among the model's attempts at the task, counted from 1.
    pub trial: u32,
    /// If true, the model's answers were read from a recording.
    pub recorded: bool,
    /// The [`Task::fingerprint`](crate::Task::fingerprint) at the time of the attempt.
    pub fingerprint: String,
    /// A hash of the system prompt and the functions that the model received. Empty in old results
    /// files.
    #[serde(default)]
    pub prompt: String,
    /// The verdict on the attempt.
    pub verdict: Verdict,
    /// The expectations that were not met, or the error. Empty if the attempt passed.
    pub problems: Vec<String>,
    /// The answer, truncated to 4,000 characters.
    pub answer: String,
    /// The reason why the run ended, or `None` if it failed.
    pub stop: Option<Stop>,
    /// Number of steps that ran calls.
    pub steps: u32,
    /// Number of programs that the model wrote, excluding repairs. For the baseline, the number of
    /// tool calls.
    pub programs: u32,
    /// Number of programs or tool calls that were valid as written: the program compiles, or the
    /// arguments match the tool's schema.
    pub valid: u32,
    /// Number of failed calls: programs that were stopped or exited with a code other than 0, and
    /// invalid calls.
    pub failures: u32,
    /// Number of model turns that repaired a program that did not compile.
    pub repairs: u32,
    /// The errors that the model made on the first try.
    #[serde(default)]
    pub errors: Vec<FirstTryError>,
    /// The tokens used.
    pub tokens: Tokens,
    /// Wall-clock time in milliseconds.
    pub dur_ms: u64,
    /// The time at which the attempt ended, in milliseconds since 1970-01-01T00:00:00Z.
    pub ended_ms: u64,
}

impl Attempt {
    /// Returns true if all expectations were met.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Passed
    }

    /// Returns a copy of the attempt for the results file, with keys and secrets masked.
    pub(crate) fn masked(&self, mask: &Mask) -> Attempt {
        let problems = self.problems.iter().map(|text| mask.text(text)).collect();
        Attempt { answer: mask.text(&self.answer), problems, ..self.clone() }
    }

    /// Returns the kind of the task: the part of its id before the slash.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.task.split_once('/').map_or("", |(kind, _)| kind)
    }
}

/// An error caused by a call that the model wrote on its first try, before any repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstTryError {
    /// The step, counted from 1.
    pub step: u32,
    /// The class of the error. If the program does not compile, it is the code of the diagnostic,
    /// such as `unknown-function`. If a call returned an exit code, it is the code's name, such as
    /// `ENOENT`, or `exit` and the number. Otherwise, it is `trap`, `time` or `refused`.
    pub class: String,
    /// The line number in the program, counted from 1, if the error has one.
    pub line: Option<u32>,
    /// The text that the model wrote: the line of its program, or its call to a catalog program.
    /// Empty if the line is unknown. At most 200 characters.
    pub text: String,
    /// The reason for the error. At most 200 characters.
    pub message: String,
}

/// The verdict on an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The attempt meets all expectations.
    Passed,
    /// An expectation is not met.
    Failed,
    /// The provider, a recording or the host failed, so the attempt is not evidence about the
    /// model. The next evaluation repeats the attempt.
    Error,
}

/// The tokens of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens that the model read.
    pub input: u64,
    /// Tokens that the model wrote.
    pub output: u64,
    /// If true, some of the counts are estimated at one token per four bytes, because the provider
    /// did not report token counts.
    pub estimated: bool,
}

impl Tokens {
    /// Returns the sum of input and output tokens.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.estimated = self.estimated || other.estimated;
    }
}

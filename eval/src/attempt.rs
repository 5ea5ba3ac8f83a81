//! Attempts: what came of one task, given once to one model.

use std::fmt;

use serde::{Deserialize, Serialize};
use wattle_agent::machine::Stop;

/// How a model is let at a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approach {
    /// It answers each step with a program, as every run does.
    Programs,
    /// It calls the host functions one by one, each a JSON tool: what programs are compared with.
    Tools,
}

impl fmt::Display for Approach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Approach::Programs => "programs",
            Approach::Tools => "tools",
        })
    }
}

/// What came of one task, given once to one model. One line of a results file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The task's id.
    pub task: String,
    /// The model's name.
    pub model: String,
    /// How it was let at the task.
    pub approach: Approach,
    /// Which of the attempts at the task by this model, counted from 1.
    pub trial: u32,
    /// If true, the model's words came from a recording.
    pub recorded: bool,
    /// The task's and the suite's state at the time, as [`Task::fingerprint`](crate::Task::fingerprint) has it.
    pub fingerprint: String,
    /// What came of it.
    pub verdict: Verdict,
    /// What was not as it must be, or what went wrong; nothing where it passed.
    pub problems: Vec<String>,
    /// The answer, cut off after 4,000 characters.
    pub answer: String,
    /// Why the run ended; `None` where it failed.
    pub stop: Option<Stop>,
    /// How many model turns acted.
    pub steps: u32,
    /// How many programs the model wrote: the first of each step, without repairs. For the baseline, how many tools it called.
    pub programs: u32,
    /// How many of them were valid as they were written: the program compiles, the call's arguments fit the tool.
    pub valid: u32,
    /// How many calls came to nothing: programs that left another code than 0 or were ended, calls that could not be made.
    pub failures: u32,
    /// How many model turns went into mending programs that did not compile.
    pub repairs: u32,
    /// The tokens.
    pub tokens: Tokens,
    /// The wall clock, in milliseconds.
    pub dur_ms: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: u64,
}

impl Attempt {
    /// If true, all was as it must be.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Passed
    }

    /// The kind of the task.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.task.split_once('/').map_or("", |(kind, _)| kind)
    }
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All is as it must be.
    Passed,
    /// Something is not.
    Failed,
    /// Nothing was learnt of the model: its provider, a recording or the host failed. It is tried again by the next run.
    Error,
}

/// The tokens of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Those that the model read.
    pub input: u64,
    /// Those that it wrote.
    pub output: u64,
    /// If true, some are estimated, because the provider did not count them: one for every four bytes.
    pub estimated: bool,
}

impl Tokens {
    /// Both directions.
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

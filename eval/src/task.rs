//! Tasks: what is asked, in which world, and what must come of it.

use std::time::Duration;

use wattle_agent::catalog::Fixtures;

use crate::expect::Expectation;

/// One task of a suite.
#[derive(Clone, Debug)]
pub struct Task {
    /// The kind and the name: `text/longest_word`. Unique in its suite.
    pub id: String,
    /// The folder that it stands in; `general` for the suite's own.
    pub kind: String,
    /// What the model is asked.
    pub prompt: String,
    /// The world that its programs meet.
    pub fixtures: Fixtures,
    /// What must hold afterwards.
    pub expect: Expectation,
    /// What it may take.
    pub budget: Budget,
    /// Changes when anything of the task or of the suite's settings does.
    pub fingerprint: String,
}

/// What an attempt at a task may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// How many model turns may act (default 12); after them the model has to answer.
    pub steps: u32,
    /// How many tokens may go in and out in all (default none).
    pub tokens: Option<u64>,
    /// The wall clock (default 300 s).
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { steps: 12, tokens: None, time: Duration::from_secs(300) }
    }
}

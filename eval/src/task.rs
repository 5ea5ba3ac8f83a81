//! Tasks: a prompt, fixtures, expectations and a budget.

use std::path::PathBuf;
use std::time::Duration;

use wattle_agent::Host;
use wattle_agent::host::ExampleWorld;
use wattle_agent::host::catalog::Fixtures;

use crate::expect::Expectation;
use crate::samples::Samples;

/// A task in a suite.
#[derive(Clone, Debug)]
pub struct Task {
    /// The kind and the name, such as `text/longest_word`. Unique in the suite.
    pub id: String,
    /// The name of the task's folder, or `general` for a task directly in the suite's folder.
    pub kind: String,
    /// The prompt for the model.
    pub prompt: String,
    /// The name of the agent that works on the task. If it is `None`, the evaluation's agent is
    /// used.
    pub agent: Option<String>,
    /// The environment of the task's programs: files, state, and responses to their requests.
    pub fixtures: Fixtures,
    /// The expectations for the result.
    pub expect: Expectation,
    /// Right and wrong results, which the expectations must distinguish.
    pub samples: Samples,
    /// The recording of an agent's example. It is used instead of the suite's recording.
    pub(crate) recording: Option<PathBuf>,
    /// The limits on an attempt.
    pub budget: Budget,
    /// A hash of the task, without its samples, and of the suite's settings.
    pub fingerprint: String,
}

impl Task {
    /// Returns the expectations that the result of a run in `scene` does not meet, one sentence
    /// each.
    ///
    /// # Errors
    /// If the expectation's program does not compile, or the engine fails.
    pub async fn problems(
        &self,
        host: &Host,
        scene: &ExampleWorld,
        answer: &str,
    ) -> Result<Vec<String>, String> {
        self.expect.problems(host, scene, &self.fixtures, answer).await
    }
}

/// The limits on an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Maximum number of steps. When they are used up, the model must answer. 12 by default.
    pub steps: u32,
    /// Maximum number of input and output tokens. Unlimited by default.
    pub tokens: Option<u64>,
    /// Maximum wall-clock time. 300 s by default.
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { steps: 12, tokens: None, time: Duration::from_secs(300) }
    }
}

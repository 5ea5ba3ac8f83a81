//! The end of a run.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::event::{Dollars, Event, Stop, Usage};

/// The final outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// The model gave its answer.
    Answered {
        /// The answer.
        text: String,
        /// The JSON value of the answer, or `None` if the run has no output contract.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Box<Json>>,
    },
    /// A limit was reached.
    Exhausted {
        /// The model's final answer after the limit was reached, or `stopped: ` and the limit.
        text: String,
        /// The limit that was reached.
        bound: Bound,
        /// The JSON value of the answer, or `None` if the run has no output contract or no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Box<Json>>,
    },
    /// Neither the answer nor any correction matches the run's output contract.
    Invalid {
        /// The last answer.
        text: String,
        /// The schema violations, at most eight, each with its location.
        errors: Vec<String>,
    },
    /// Moderation blocked the message. No step was run.
    Blocked {
        /// The message for the user.
        text: String,
    },
    /// The run was cancelled.
    Cancelled {
        /// `stopped: cancelled`, followed by the reason if there is one.
        text: String,
    },
    /// The model or the host failed.
    Failed {
        /// The error message, which begins with `error: `.
        message: String,
    },
}

impl Ending {
    /// Returns the run's result as text. Every run has a result.
    pub fn text(&self) -> &str {
        match self {
            Self::Answered { text, .. }
            | Self::Exhausted { text, .. }
            | Self::Invalid { text, .. }
            | Self::Blocked { text }
            | Self::Cancelled { text } => text,
            Self::Failed { message } => message,
        }
    }

    /// Returns the JSON value of the answer, or `None` if the run has no output contract or no
    /// valid answer.
    pub fn data(&self) -> Option<&Json> {
        match self {
            Self::Answered { data, .. } | Self::Exhausted { data, .. } => data.as_deref(),
            _ => None,
        }
    }

    /// Returns the reason why the run ended, or `None` if it failed.
    pub fn stop(&self) -> Option<Stop> {
        match self {
            Self::Answered { .. } => Some(Stop::Answered),
            Self::Exhausted { bound: Bound::Steps, .. } => Some(Stop::MaxSteps),
            Self::Exhausted { bound: Bound::Time, .. } => Some(Stop::Timeout),
            Self::Exhausted { bound: Bound::Tokens, .. } => Some(Stop::MaxTokens),
            Self::Exhausted { bound: Bound::Cost, .. } => Some(Stop::MaxCost),
            Self::Exhausted { bound: Bound::Repetition, .. } => Some(Stop::Repeated),
            Self::Exhausted { bound: Bound::Length, .. } => Some(Stop::Truncated),
            Self::Invalid { .. } => Some(Stop::InvalidOutput),
            Self::Blocked { .. } => Some(Stop::Blocked),
            Self::Cancelled { .. } => Some(Stop::Cancelled),
            Self::Failed { .. } => None,
        }
    }

    /// Returns the last event of a run that ends like this, after `steps` steps and with this usage.
    pub(crate) fn event(&self, session_id: Option<&str>, steps: u32, usage: Usage) -> Event {
        match self.stop() {
            None => Event::Error { message: self.text().to_owned() },
            Some(stop) => Event::Response {
                text: self.text().to_owned(),
                session_id: session_id.map(str::to_owned),
                steps,
                usage,
                stop,
                data: self.data().cloned(),
            },
        }
    }

    pub(crate) fn cancelled(reason: &str) -> Self {
        let reason = reason.trim();
        let text = if reason.is_empty() {
            "stopped: cancelled".to_owned()
        } else {
            format!("stopped: cancelled ({reason})")
        };
        Self::Cancelled { text }
    }

    /// Creates an ending that contains an answer. `bound` is the limit that the run reached, or
    /// `None` if it reached none.
    pub(crate) fn with_answer(text: String, bound: Option<Bound>, data: Option<Json>) -> Self {
        let data = data.map(Box::new);
        match bound {
            Some(bound) => Self::Exhausted { text, bound, data },
            None => Self::Answered { text, data },
        }
    }

    pub(crate) fn expired(limit_ms: u64) -> Self {
        Self::stopped(format!("reached timeout ({limit_ms} ms)"), Bound::Time)
    }

    pub(crate) fn out_of_steps(max_steps: u32) -> Self {
        Self::stopped(format!("reached max_steps ({max_steps})"), Bound::Steps)
    }

    /// Returns the ending of a run that has reached the limit `bound`. `owner` is the agent of the
    /// ancestor that has this limit, or `None` if it is the run's own limit.
    pub(crate) fn out_of_tokens(bound: u64, owner: Option<&str>) -> Self {
        let of = of_owner(owner);
        Self::stopped(format!("reached max_tokens_total ({bound}){of}"), Bound::Tokens)
    }

    /// Returns the ending of a run that has reached the limit `bound`. `owner` is the agent of the
    /// ancestor that has this limit, or `None` if it is the run's own limit.
    pub(crate) fn out_of_money(bound: Dollars, owner: Option<&str>) -> Self {
        let of = of_owner(owner);
        Self::stopped(format!("reached max_cost ({bound}){of}"), Bound::Cost)
    }

    pub(crate) fn repeated(times: u32) -> Self {
        Self::stopped(format!("the same call was repeated {times} times"), Bound::Repetition)
    }

    fn stopped(why: String, bound: Bound) -> Self {
        Self::Exhausted { text: format!("stopped: {why}"), bound, data: None }
    }

    /// Creates the ending of a run that fails with this message.
    pub fn failed(message: &str) -> Self {
        let message = message.trim();
        Self::Failed {
            message: format!("error: {}", message.strip_prefix("error: ").unwrap_or(message)),
        }
    }
}

/// Returns the suffix that names the ancestor's agent in a message about an ancestor's limit.
/// Returns an empty string for the run's own limit.
fn of_owner(owner: Option<&str>) -> String {
    owner.map(|agent| format!(" of the agent `{agent}` above it")).unwrap_or_default()
}

/// A limit on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The maximum number of steps, `max_steps`.
    Steps,
    /// The maximum wall-clock time.
    Time,
    /// The maximum number of tokens, `max_tokens_total`.
    Tokens,
    /// The maximum cost, `max_cost`.
    Cost,
    /// The maximum number of consecutive repetitions of the same call.
    Repetition,
    /// The provider's maximum length of an answer.
    Length,
}

//! The events of a run, as received by sinks, traces, the REPL and the server.
//!
//! The order within a step is `contributed`, `recalled`, `thinking`, followed by `tool_start` and
//! `tool_result` for each call. If a program does not compile and the model is asked to repair it,
//! `retry` replaces `tool_result`. Exactly one `response` or `error` ends a run. After `parked`,
//! only other `parked` events follow until the run is resumed.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::moderation::Verdict;

/// An event of a run, serialized as an object with a snake-case `type`.
///
/// ```
/// use wattle_machine::Event;
///
/// let event = Event::Thinking { step: 1, content: "fetch it first".into() };
/// let json = serde_json::to_string(&event)?;
/// assert_eq!(json, r#"{"type":"thinking","step":1,"content":"fetch it first"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The model gave the reason for its next action.
    Thinking {
        /// The step, counted from 1.
        step: u32,
        /// The thought, without leading and trailing whitespace.
        content: String,
    },
    /// Part of the text of the model's answer arrived.
    Delta {
        /// The step, counted from 1.
        step: u32,
        /// The part of the text, exactly as received.
        text: String,
    },
    /// The next part of a thought arrived. The `thinking` event has the whole thought.
    ThoughtDelta {
        /// The step, counted from 1.
        step: u32,
        /// The part of the thought.
        text: String,
    },
    /// The next part of the answer arrived. The parts since the last `answer_void`, joined, are the
    /// beginning of the answer, and before the `response` event, all of it.
    AnswerDelta {
        /// The step, counted from 1.
        step: u32,
        /// The part of the answer.
        text: String,
        /// If true, this part and all parts before it are the answer, unless the model is asked again.
        /// Otherwise, a call may follow. Absent if false.
        #[serde(rename = "certain", default, skip_serializing_if = "std::ops::Not::not")]
        is_certain: bool,
    },
    /// The parts of the answer so far belong to no answer: the model calls a program, or is asked
    /// again.
    AnswerVoid {
        /// The step, counted from 1.
        step: u32,
    },
    /// A program is about to run.
    ToolStart {
        /// The step, counted from 1.
        step: u32,
        /// The call within the step, counted from 1.
        call: u32,
        /// `wat` for an inline program, otherwise the catalog program's name.
        label: String,
        /// The origin of the program.
        source: Source,
        /// The catalog program's description, or the first line of the thought. May be empty.
        description: String,
        /// The code of an inline program. Absent for a catalog program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// The arguments, as written by the model. Absent if there are none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        /// The names of the last arguments. Absent if all arguments are given by position.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
    },
    /// A program ran or was refused. The event contains the output that the model will read.
    ToolResult {
        /// The step, counted from 1.
        step: u32,
        /// The call within the step, counted from 1.
        call: u32,
        /// The origin of the program.
        source: Source,
        /// If true, the program ran and its exit code is 0.
        success: bool,
        /// The results, or the reason for a failure, truncated as in the model's observation.
        output: String,
        /// The program's exit code, or null if the program did not run to completion.
        exit_code: Option<i32>,
        /// Duration in milliseconds.
        dur_ms: u64,
        /// Fuel consumed, or null if fuel is not metered.
        fuel: Option<u64>,
        /// The fixes applied to the program before it ran. Absent if there are none.
        #[serde(rename = "fixed", default, skip_serializing_if = "Vec::is_empty")]
        fixes: Vec<String>,
    },
    /// The model is asked again within the step, because its program did not compile, because its
    /// answer was empty, truncated or invalid, or because the request failed.
    Retry {
        /// The step, counted from 1.
        step: u32,
        /// The number of the new attempt, counted from 1.
        attempt: u32,
        /// The reason for the retry.
        error: String,
        /// Delay before the request is repeated, in milliseconds, if the request failed. The run
        /// waits for the model's provider until its next event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// The run is parked until a person approves or denies a call. Each call that needs approval
    /// has its own event.
    Parked {
        /// The id of the call: the step and the call within the step, such as `2.1`. The id of a
        /// call by a child run is prefixed with the child run's id and `/`.
        call: String,
        /// A description of what the program would do.
        question: String,
    },
    /// The user's message was moderated before the first step.
    Moderated {
        /// The verdict.
        verdict: Verdict,
    },
    /// Items were recalled from memory before the model was asked, or the recall failed.
    Recalled {
        /// The step, counted from 1.
        step: u32,
        /// The number of items that the model sees for the first time.
        items: u32,
        /// The error message, if the recall failed. The run continues without the items.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A program of one of the agent's traits added text to the conversation, or failed.
    Contributed {
        /// The step, counted from 1.
        step: u32,
        /// The program, such as `house_style.prompt`.
        program: String,
        /// The error message, if the program failed. The run continues without the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The oldest messages of the conversation are left out of the requests to the model, because
    /// they exceed its context window. The session keeps them.
    LeftOut {
        /// The step, counted from 1.
        step: u32,
        /// Number of messages that are left out.
        messages: u64,
    },
    /// A call saved an artifact for the application. The event does not contain its data.
    Artifact {
        /// The step, counted from 1.
        step: u32,
        /// The call within the step, counted from 1.
        call: u32,
        /// The artifact's name. An artifact replaces any earlier artifact of the same name.
        name: String,
        /// The size of the data, in bytes.
        bytes: u64,
    },
    /// The run ended with a result.
    Response {
        /// The result.
        text: String,
        /// The session that the run belongs to.
        session_id: Option<String>,
        /// Number of steps that executed calls.
        steps: u32,
        /// The token usage of the whole run.
        usage: Usage,
        /// The reason why the run ended.
        stop: Stop,
        /// The JSON value in the answer. Absent unless the run has an output schema and the answer
        /// matches it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<serde_json::Value>,
    },
    /// The run ended because the model or the host failed.
    Error {
        /// The error message, which begins with `error: `.
        message: String,
    },
}

impl Event {
    /// Returns true if the event is part of an answer that is being written. Such events are not
    /// recorded.
    pub fn is_part(&self) -> bool {
        matches!(
            self,
            Self::Delta { .. }
                | Self::ThoughtDelta { .. }
                | Self::AnswerDelta { .. }
                | Self::AnswerVoid { .. }
        )
    }
}

/// An event with the identifiers and the time that the driver adds.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The run that the event belongs to.
    pub run_id: String,
    /// The run that a person or a client started. Differs from `run_id` only in a child run.
    pub root_run_id: String,
    /// The number of the event in its run. Recorded events are numbered consecutively. A live event
    /// (a part of an answer, or a `retry` of a failed request) has the number of the
    /// previous recorded event.
    pub seq: u64,
    /// The time, in milliseconds since 1970-01-01T00:00:00Z.
    pub ts: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// Token counts as reported by the provider, and their cost.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Number of tokens in the messages sent, including cached tokens.
    pub prompt: u64,
    /// Number of tokens that the model generated.
    pub completion: u64,
    /// Number of prompt tokens read from the provider's cache.
    pub cached: u64,
    /// The cost. Absent if no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
}

impl Usage {
    /// Returns the sum of prompt and completion tokens.
    pub fn total(&self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }

    /// Returns the part of this usage that exceeds `other`.
    #[must_use]
    pub fn beyond(&self, other: Self) -> Self {
        let known = other.cost.unwrap_or_default();
        Self {
            prompt: self.prompt.saturating_sub(other.prompt),
            completion: self.completion.saturating_sub(other.completion),
            cached: self.cached.saturating_sub(other.cached),
            cost: self.cost.map(|cost| Dollars(cost.0.saturating_sub(known.0))),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.saturating_add(other.prompt),
            completion: self.completion.saturating_add(other.completion),
            cached: self.cached.saturating_add(other.cached),
            cost: match (self.cost, other.cost) {
                (Some(one), Some(other)) => Some(Dollars(one.0.saturating_add(other.0))),
                (one, other) => one.or(other),
            },
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// An amount of US dollars, exact to the billionth. Serialized as a number of dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars(u64);

impl Dollars {
    /// Creates an amount from billionths of a dollar.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates an amount in dollars. Returns `None` if the amount is negative, not a number, or at
    /// least ten billion.
    ///
    /// ```
    /// let amount = wattle_machine::Dollars::new(0.25).map(|amount| amount.to_string());
    /// assert_eq!(amount.as_deref(), Some("$0.25"));
    /// ```
    pub fn new(amount: f64) -> Option<Self> {
        let nanos = amount * 1e9;
        (0.0..1e19).contains(&nanos).then_some(Self(nanos.round() as u64))
    }

    /// Returns the amount in dollars.
    pub fn amount(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the amount in billionths of a dollar.
    pub fn nanos(self) -> u64 {
        self.0
    }
}

/// Displays at least two decimal places, and more if the amount needs them.
impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:09}", self.0 % 1_000_000_000);
        let shown = fraction.trim_end_matches('0').len().max(2);
        write!(f, "${}.{}", self.0 / 1_000_000_000, fraction.get(..shown).unwrap_or_default())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Dollars {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "number", "minimum": 0})
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.amount())
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?)
            .ok_or_else(|| serde::de::Error::custom("not an amount of dollars"))
    }
}

/// The origin of a program.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The model wrote the program in its answer.
    Wat,
    /// The program is in the catalog.
    Catalog,
}

/// The reason why a run with a result ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model gave its answer.
    Answered,
    /// The limit on steps was reached.
    MaxSteps,
    /// The limit on wall-clock time was reached.
    Timeout,
    /// The run was cancelled.
    Cancelled,
    /// The limit on tokens was reached.
    MaxTokens,
    /// The limit on cost was reached.
    MaxCost,
    /// The model kept repeating the same calls with the same results.
    Repeated,
    /// Moderation blocked the message.
    Blocked,
    /// The model's answer was truncated, even after all retries.
    Truncated,
    /// The answer does not match the output schema, even after all corrections.
    InvalidOutput,
}

//! What a run tells the world: the one type that sinks, traces, the REPL and the server see.
//!
//! The order within a step is `thinking`, then for each call `tool_start` … `tool_result`. A call whose program did not
//! compile and goes back to the model is closed by `retry` instead of `tool_result`. Exactly one `response` or `error`
//! ends a run; `parked` ends what this process can do of it.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::moderation::Verdict;

/// Tells one thing that happened in a run; serialised as an object with a snake-case `type`.
///
/// ```
/// use wattle_machine::Event;
///
/// let event = Event::Thinking { step: 1, content: "fetch it first".into() };
/// let json = serde_json::to_string(&event)?;
/// assert_eq!(json, r#"{"type":"thinking","step":1,"content":"fetch it first"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The model said why it does what it does.
    Thinking {
        /// The step, counted from 1.
        step: u32,
        /// The thought, trimmed.
        content: String,
    },
    /// The model's answer grew by a piece of text, while it is streamed.
    Delta {
        /// The step, counted from 1.
        step: u32,
        /// The piece, exactly as it came.
        text: String,
    },
    /// A program is about to run.
    ToolStart {
        /// The step, counted from 1.
        step: u32,
        /// The call within the step, counted from 1.
        call: u32,
        /// `wat` for an inline program, else the catalog program's name.
        label: String,
        /// Where the program comes from.
        source: Source,
        /// The catalog program's description, or the first line of the thought; empty where there is neither.
        description: String,
        /// The text of an inline program; absent for a catalog program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
        /// The arguments as the model gave them; absent where there are none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
    },
    /// A program ran, or could not be run, and this is what the model will read of it.
    ToolResult {
        /// The step, counted from 1.
        step: u32,
        /// The call within the step, counted from 1.
        call: u32,
        /// Where the program came from.
        source: Source,
        /// Whether the program ran and left 0.
        success: bool,
        /// The results or the reason, bounded as in the observation.
        output: String,
        /// The code that the program left; null where it did not come to its end.
        exit_code: Option<i32>,
        /// How long it took, in milliseconds.
        dur_ms: u64,
        /// How much fuel it burnt; null where fuel is not counted.
        fuel: Option<u64>,
        /// What was put right in the program before it ran; absent where it ran as it was written.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mended: Vec<String>,
    },
    /// The model is asked again within the step, because its program did not compile, or its answer was empty or cut off.
    Retry {
        /// The step, counted from 1.
        step: u32,
        /// The attempt that begins, counted from 1.
        attempt: u32,
        /// What was wrong.
        error: String,
    },
    /// The run waits for what a person has to say, and goes on when that is said; it ends the events of this process.
    Parked {
        /// The call that the question is about: the step and the call within it, such as `2.1`.
        call: String,
        /// What its program would do.
        question: String,
    },
    /// The message was looked at before the run's first step.
    Moderated {
        /// What was found.
        verdict: Verdict,
    },
    /// The run ended with a result.
    Response {
        /// The result.
        text: String,
        /// The session that the run belongs to.
        session_id: Option<String>,
        /// How many steps acted.
        steps: u32,
        /// The tokens of the whole run.
        usage: Usage,
        /// Why the run ended.
        stop: Stop,
    },
    /// The run ended because something that it stands on failed.
    Error {
        /// What failed, beginning with `error: `.
        message: String,
    },
}

/// Carries an event together with what the driver stamps on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The run that the event belongs to.
    pub run_id: String,
    /// The run that a person or a client started; `run_id` itself unless the run is a delegate's.
    pub root_run_id: String,
    /// The event's place in the root run, growing by one.
    pub seq: u64,
    /// When it happened, in milliseconds since 1970-01-01T00:00:00Z.
    pub ts: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Counts tokens as the provider reports them, and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the messages sent, cached ones included.
    pub prompt: u64,
    /// Tokens that the model wrote.
    pub completion: u64,
    /// Those of `prompt` that the provider had in its cache.
    pub cached: u64,
    /// What they cost; absent where no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
}

impl Usage {
    /// Gives the tokens of both ways.
    pub fn total(&self) -> u64 {
        self.prompt.saturating_add(self.completion)
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

/// Is an amount of US dollars, exact to the billionth; serialised as a number of dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars(u64);

impl Dollars {
    /// Takes billionths of a dollar.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Takes an amount; `None` where it is negative, no number, or beyond ten billion.
    ///
    /// ```
    /// assert_eq!(wattle_machine::Dollars::new(0.25).map(|amount| amount.to_string()).as_deref(), Some("$0.25"));
    /// ```
    pub fn new(amount: f64) -> Option<Self> {
        let nanos = amount * 1e9;
        (0.0..1e19).contains(&nanos).then_some(Self(nanos.round() as u64))
    }

    /// Gives the amount.
    pub fn amount(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Gives billionths of a dollar.
    pub fn nanos(self) -> u64 {
        self.0
    }
}

/// Shows two digits of cents, and as many more as it takes.
impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:09}", self.0 % 1_000_000_000);
        let shown = fraction.trim_end_matches('0').len().max(2);
        write!(f, "${}.{}", self.0 / 1_000_000_000, fraction.get(..shown).unwrap_or_default())
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.amount())
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).ok_or_else(|| serde::de::Error::custom("not an amount of dollars"))
    }
}

/// Says where a program comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The model wrote it in its answer.
    Wat,
    /// The catalog holds it.
    Catalog,
}

/// Says why a run that has a result ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model gave its answer.
    Answered,
    /// The bound on steps was reached.
    MaxSteps,
    /// The bound on wall-clock time was reached.
    Timeout,
    /// Somebody cancelled it.
    Cancelled,
    /// The bound on tokens was reached.
    MaxTokens,
    /// The bound on cost was reached.
    MaxCost,
    /// The model made the same call again and again.
    Repeated,
    /// The message was not let through.
    Blocked,
    /// The answer is the beginning of one that was cut off, however often the model was asked.
    Truncated,
}

//! What a run tells the world: the one type that sinks, traces, the REPL and the server see.
//!
//! The order within a step is `thinking`, then for each call `tool_start` … `tool_result`. A call whose program did not
//! compile and goes back to the model is closed by `retry` instead of `tool_result`. Exactly one `response` or `error`
//! ends a run; `parked` ends what this process can do of it.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

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
    /// The model is asked again within the step, because its program did not compile or its answer was empty.
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

/// Counts tokens as the provider reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the messages sent, cached ones included.
    pub prompt: u64,
    /// Tokens that the model wrote.
    pub completion: u64,
    /// Those of `prompt` that the provider had in its cache.
    pub cached: u64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.saturating_add(other.prompt),
            completion: self.completion.saturating_add(other.completion),
            cached: self.cached.saturating_add(other.cached),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
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
}

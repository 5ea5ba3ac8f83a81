//! What a run is, what can happen to it, and what it wants done: the machine's whole vocabulary.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    call::{Call, Execution},
    dialect::{Dialect, PlannedCall},
    event::{Dollars, Event, Stop, Usage},
    function::ProgramFunction,
    mark::{Nonce, shown},
    message::{FunctionCall, Message, Role},
    moderation::Verdict,
};

/// Holds everything that a run knows: plain data that can be stored and taken up again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(crate) settings: Settings,
    pub(crate) session_id: Option<String>,
    pub(crate) descriptions: BTreeMap<String, String>,
    pub(crate) dialect: Dialect,
    pub(crate) fallback: Option<String>,
    pub(crate) programs: Vec<ProgramFunction>,
    pub(crate) is_moderated: bool,
    pub(crate) conversation: Vec<Message>,
    pub(crate) nonce: Nonce,
    /// Where in the conversation this run begins: its user's message.
    pub(crate) opening: usize,
    /// If true, the history or the user's message holds what looks like marks.
    pub(crate) opens_escaped: bool,
    /// If true, the model was told how such data is shown.
    pub(crate) knows_escapes: bool,
    pub(crate) steps: u32,
    pub(crate) usage: Usage,
    pub(crate) last: Option<Repeated>,
    pub(crate) phase: Phase,
}

impl State {
    /// Makes a run that waits for [`Input::Begin`].
    pub fn new(setup: Setup) -> Self {
        let (mut conversation, mut opens_escaped) = (Vec::with_capacity(setup.history.len() + 1), false);
        conversation.push(Message::system(setup.system));
        // Earlier turns are data: marks in them, genuine or not, are none of this run's.
        for mut said in setup.dialect.translated(setup.history) {
            if said.role != Role::Assistant
                && let Cow::Owned(content) = shown(&said.content, Some(&setup.nonce))
            {
                opens_escaped = true;
                said.content = content;
            }
            conversation.push(said);
        }
        Self {
            nonce: setup.nonce,
            opening: conversation.len(),
            opens_escaped,
            knows_escapes: opens_escaped,
            settings: setup.settings,
            session_id: setup.session_id,
            descriptions: setup.descriptions,
            dialect: setup.dialect,
            fallback: setup.fallback,
            programs: setup.programs,
            is_moderated: setup.is_moderated,
            conversation,
            steps: 0,
            usage: Usage::default(),
            last: None,
            phase: Phase::Ready,
        }
    }

    /// Gives the conversation so far: the system prompt, the history, and what this run added. Repair turns are not in it, and the
    /// user's message is as it came.
    pub fn conversation(&self) -> &[Message] {
        &self.conversation
    }

    /// Gives the dialect that is spoken now.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Gives how many steps acted.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Gives the tokens used so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Tells whether the run has ended; every further input is without effect.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }
}

/// Gives what a run starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// The bounds and policies.
    pub settings: Settings,
    /// The system prompt.
    pub system: String,
    /// The earlier turns of the session, without a system message.
    pub history: Vec<Message>,
    /// What tells the host's lines in this run from data; made from random bits for each run.
    pub nonce: Nonce,
    /// The session that the run belongs to.
    pub session_id: Option<String>,
    /// What the catalog programs do, by name: shown when one starts.
    pub descriptions: BTreeMap<String, String>,
    /// In which form the model calls programs.
    pub dialect: Dialect,
    /// The system prompt of the text dialect, which is taken up where the model turns out to take no functions. Without one the run
    /// fails there.
    pub fallback: Option<String>,
    /// The catalog programs as functions.
    pub programs: Vec<ProgramFunction>,
    /// Whether the message is looked at before the first step.
    pub is_moderated: bool,
}

/// Sets a run's bounds and policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How many model turns may act; 12 unless said.
    pub max_steps: u32,
    /// What happens after the last of them.
    pub on_max_steps: OnMaxSteps,
    /// How often the model is asked again within one step, for a program that does not compile, or an answer that is empty or cut off;
    /// 2 unless said.
    pub max_retries: u32,
    /// How many characters of a call's output the model reads at most; 4,000 unless said.
    pub observation_limit: usize,
    /// How many tokens the run may take, those of its programs' requests included; any number unless said.
    pub max_tokens_total: Option<u64>,
    /// What the run may cost, as far as prices are known; anything unless said.
    pub max_cost: Option<Dollars>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_steps: 12,
            on_max_steps: OnMaxSteps::default(),
            max_retries: 2,
            observation_limit: 4_000,
            max_tokens_total: None,
            max_cost: None,
        }
    }
}

/// Says what happens when a run has used its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnMaxSteps {
    /// The model gets one last turn, which must answer.
    #[default]
    Answer,
    /// The result is `stopped: reached max_steps (N)`.
    Stop,
}

/// Tells the machine what happened. What does not fit the run's phase is without effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The user's message starts the run.
    Begin {
        /// The message.
        message: String,
    },
    /// What [`Effect::Moderate`] found.
    Moderated(Verdict),
    /// The model answered an [`Effect::Ask`].
    Answer(ModelAnswer),
    /// The model takes no functions; why, in words. The run goes on in the text dialect where its setup allows that.
    WithoutFunctions(String),
    /// Programs of the run used the model; told at any time.
    Spent(Usage),
    /// What the run stands on failed: the model could not be had, the host is broken. The message is without a leading
    /// `error: `.
    Failed(String),
    /// The calls of an [`Effect::Execute`] are done; one report for each call, in call order.
    Executed(Vec<Execution>),
    /// Somebody cancelled the run.
    Cancel {
        /// Who or what, such as `interrupted by the user`; may be empty.
        reason: String,
    },
    /// The run's time is up.
    Expired {
        /// The bound, in milliseconds.
        limit_ms: u64,
    },
}

/// Carries what the model said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text, whole and untouched.
    pub text: String,
    /// The functions that the model calls, in the order in which it named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FunctionCall>,
    /// Whether the answer was cut off because it reached the greatest length that it may have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
    /// What the model thought before, where the provider tells that apart from the text; the thought where the text has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The tokens of this request.
    pub usage: Usage,
}

/// Tells the driver what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Look at the user's message and give back [`Input::Moderated`].
    Moderate {
        /// The message.
        message: String,
    },
    /// Ask the model and give back [`Input::Answer`], [`Input::WithoutFunctions`] or [`Input::Failed`].
    Ask(Ask),
    /// Run the calls and give back [`Input::Executed`].
    Execute {
        /// The step, counted from 1.
        step: u32,
        /// What to run; may run concurrently.
        calls: Vec<Call>,
    },
    /// Send the event to the sinks.
    Emit(Event),
    /// The run is over; no effect follows.
    Finish(Ending),
}

/// Asks the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The step that the answer is for, counted from 1.
    pub step: u32,
    /// 0 for the first time within the step, then counted up to `max_retries`.
    pub attempt: u32,
    /// What the answer is wanted for.
    pub purpose: Purpose,
    /// Whether the model is offered functions.
    pub dialect: Dialect,
    /// Everything that the model is to see.
    pub messages: Vec<Message>,
}

/// Says what an answer is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The next action.
    Act,
    /// A corrected program in place of one that did not compile.
    Repair,
    /// The final answer, because the steps are used up.
    Conclude,
}

/// Says how a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// The model gave its answer.
    Answered {
        /// The answer.
        text: String,
    },
    /// A bound was reached.
    Exhausted {
        /// The answer of the forced last turn, or `stopped: reached …`.
        text: String,
        /// Which bound.
        bound: Bound,
    },
    /// The message was not let through; nothing was done about it.
    Blocked {
        /// What the user is told.
        text: String,
    },
    /// Somebody cancelled it.
    Cancelled {
        /// `stopped: cancelled`, with the reason where one was given.
        text: String,
    },
    /// Something that the run stands on failed.
    Failed {
        /// What failed, beginning with `error: `.
        message: String,
    },
}

impl Ending {
    /// Gives the run's result in words; there is always one.
    pub fn text(&self) -> &str {
        match self {
            Self::Answered { text }
            | Self::Exhausted { text, .. }
            | Self::Blocked { text }
            | Self::Cancelled { text } => text,
            Self::Failed { message } => message,
        }
    }

    /// Gives why the run ended; `None` where it failed.
    pub fn stop(&self) -> Option<Stop> {
        match self {
            Self::Answered { .. } => Some(Stop::Answered),
            Self::Exhausted { bound: Bound::Steps, .. } => Some(Stop::MaxSteps),
            Self::Exhausted { bound: Bound::Time, .. } => Some(Stop::Timeout),
            Self::Exhausted { bound: Bound::Tokens, .. } => Some(Stop::MaxTokens),
            Self::Exhausted { bound: Bound::Cost, .. } => Some(Stop::MaxCost),
            Self::Exhausted { bound: Bound::Repetition, .. } => Some(Stop::Repeated),
            Self::Exhausted { bound: Bound::Length, .. } => Some(Stop::Truncated),
            Self::Blocked { .. } => Some(Stop::Blocked),
            Self::Cancelled { .. } => Some(Stop::Cancelled),
            Self::Failed { .. } => None,
        }
    }
}

/// Names a bound of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// `max_steps`.
    Steps,
    /// The wall clock.
    Time,
    /// `max_tokens_total`.
    Tokens,
    /// `max_cost`.
    Cost,
    /// How often the same call may be made in a row.
    Repetition,
    /// The length of an answer.
    Length,
}

/// Says what the run waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// The user's message.
    Ready,
    /// What is found in it.
    Moderating,
    /// The model's answer.
    Asking(Turn),
    /// The reports of the calls.
    Executing {
        turn: Turn,
        /// The answer as later steps will see it.
        said: Message,
        planned: Vec<PlannedCall>,
        /// What the model is told about its answer's form.
        notes: Vec<String>,
    },
    /// Nothing.
    Ended,
}

/// Counts the attempts of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) purpose: Purpose,
    pub(crate) attempt: u32,
    /// The last program that did not compile, while a better one is awaited.
    pub(crate) broken: Option<FailedProgram>,
    /// Why the same is asked again, where that is not a program.
    #[serde(default)]
    pub(crate) again: Option<Again>,
}

/// Says why an answer was of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Again {
    /// It was empty.
    Empty,
    /// It was cut off in the middle.
    Cut,
}

/// Counts how often the same calls came to the same in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repeated {
    pub(crate) calls: Vec<Call>,
    pub(crate) outputs: Vec<String>,
    pub(crate) times: u32,
}

/// Keeps a program that did not compile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailedProgram {
    pub(crate) said: Message,
    pub(crate) body: String,
    pub(crate) args: Vec<String>,
    pub(crate) diagnostic: String,
}

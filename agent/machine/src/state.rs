//! The state of a run, with its inputs and effects.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    SharedText,
    artifact::Artifact,
    call::{Call, Execution},
    contribution::{Contribution, TraitProgram},
    ending::Ending,
    event::{Dollars, Event, Usage},
    fix::WrittenProgram,
    function::ProgramFunction,
    kept::KeptValue,
    mark::{Nonce, escape_marks},
    message::{Message, Role, is_default},
    moderation::Verdict,
    orientation::Orientation,
    output::OutputContract,
    parts::SystemPrompt,
    phase::{Phase, RepeatedCalls},
    recall::RecallContract,
    request::{Dialect, ModelAnswer, Purpose},
};

/// The complete state of a run. It is plain data, so a run can be stored and resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(crate) settings: Settings,
    pub(crate) session_id: Option<String>,
    pub(crate) dialect: Dialect,
    pub(crate) fallback: Option<SystemPrompt>,
    pub(crate) programs: Arc<Vec<ProgramFunction>>,
    pub(crate) is_moderated: bool,
    #[serde(default = "accepted")]
    pub(crate) accepts_leftovers: bool,
    pub(crate) conversation: Vec<Message>,
    pub(crate) nonce: Nonce,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) orientation: Option<Orientation>,
    /// The contract for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<OutputContract>,
    /// Index of the run's user message in the conversation.
    pub(crate) opening: usize,
    /// Size of the model's context window that a request may use, in tokens, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<u64>,
    /// Number of messages of the session that precede the history.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) left_out_before: u64,
    /// Index of the first message after the system prompt that requests contain. They contain the
    /// run's user message in any case.
    #[serde(default)]
    pub(crate) first_sent: usize,
    /// If true, the history or the user's message contains text that looks like a marker.
    pub(crate) opens_escaped: bool,
    /// If true, the model has been told about escaped markers.
    pub(crate) knows_escapes: bool,
    pub(crate) steps: u32,
    pub(crate) usage: Usage,
    /// The last text that the model wrote in addition to its calls. `None` if there is no such
    /// text, or if `on_max_steps` is not [`OnMaxSteps::Latest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latest: Option<String>,
    pub(crate) last_calls: Option<RepeatedCalls>,
    /// The failed program that a fix would change, or `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<WrittenProgram>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recall: Option<RecallContract>,
    /// The memory items in the system prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) memory: Vec<String>,
    /// Number of messages in the conversation at the last recall, excluding the system message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recall_tried: Option<usize>,
    /// The programs of the agent's traits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) traits: Vec<TraitProgram>,
    /// If true, the build programs of the agent's traits have run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_built: bool,
    /// The last result of each prompt program of the agent's traits, by the program's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) notes: BTreeMap<String, String>,
    /// The names of the catalog programs that build programs added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<String>,
    /// The names of the agents that build programs added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) delegates: Vec<String>,
    /// The artifacts that programs saved for the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) artifacts: Vec<Artifact>,
    /// The values that programs kept for later programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<KeptValue>,
    pub(crate) phase: Phase,
}

impl State {
    /// Creates a run that is waiting for [`Input::Begin`].
    pub fn new(setup: Setup) -> Self {
        let (mut conversation, mut opens_escaped) =
            (Vec::with_capacity(setup.history.len() + 1), false);
        conversation.push(setup.system.into_message());
        opens_escaped |= setup
            .orientation
            .as_ref()
            .is_some_and(|orientation| orientation.has_marks(&setup.nonce));
        // Earlier turns are data. Any markers in them, genuine or not, do not belong to this run.
        for mut message in setup.dialect.translate(setup.history) {
            if message.role != Role::Assistant
                && let Cow::Owned(content) = escape_marks(&message.content, Some(&setup.nonce))
            {
                opens_escaped = true;
                message.content = content.into();
            }
            conversation.push(message);
        }
        Self {
            nonce: setup.nonce,
            orientation: setup.orientation,
            output: setup.output,
            opening: conversation.len(),
            window: setup.window,
            left_out_before: setup.left_out,
            first_sent: 0,
            opens_escaped,
            knows_escapes: opens_escaped,
            settings: setup.settings,
            session_id: setup.session_id,
            dialect: setup.dialect,
            fallback: setup.fallback,
            programs: setup.programs,
            is_moderated: setup.is_moderated,
            accepts_leftovers: setup.accepts_leftovers,
            conversation,
            steps: 0,
            usage: Usage::default(),
            latest: None,
            last_calls: None,
            failed: None,
            recall: setup.recall,
            memory: setup.memory,
            recall_tried: None,
            traits: setup.traits,
            is_built: false,
            notes: BTreeMap::new(),
            tools: Vec::new(),
            delegates: Vec::new(),
            artifacts: Vec::new(),
            kept: Vec::new(),
            phase: Phase::Ready,
        }
    }

    /// Returns the conversation so far: the system prompt, the history, and the messages of this
    /// run. It contains no repair turns, and the user's message is unmodified.
    pub fn conversation(&self) -> &[Message] {
        &self.conversation
    }

    /// Replaces the text of the system prompt with the equal text that `share` returns, so that all
    /// runs with this prompt share a single copy of the text. If `share` returns a different text,
    /// nothing changes.
    pub fn share_prompt(&mut self, share: impl FnOnce(&SharedText) -> SharedText) {
        if let Some(system) = self.conversation.first_mut() {
            let shared = share(&system.content);
            if shared == system.content {
                system.content = shared;
            }
        }
    }

    /// Returns the current dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the programs that the model may call.
    pub fn programs(&self) -> &Arc<Vec<ProgramFunction>> {
        &self.programs
    }

    /// Returns the names of the catalog programs that traits added to the run.
    pub fn added_tools(&self) -> &[String] {
        &self.tools
    }

    /// Returns the names of the agents that traits added to the run.
    pub fn added_delegates(&self) -> &[String] {
        &self.delegates
    }

    /// Returns the artifacts that programs saved for the application, in the order of their last
    /// updates.
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Returns the values that programs kept for later programs, in the order of their last
    /// updates.
    pub fn kept(&self) -> &[KeptValue] {
        &self.kept
    }

    /// Returns the number of completed steps.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns the token usage so far, including the cost.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns true if the run has ended. Further inputs have no effect.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }
}

/// The initial configuration of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Limits and policies.
    pub settings: Settings,
    /// The system prompt.
    pub system: SystemPrompt,
    /// The earlier turns of the session, without a system message.
    pub history: Vec<Message>,
    /// Number of earlier messages of the session that the history does not contain.
    #[serde(skip_serializing_if = "is_default")]
    pub left_out: u64,
    /// Size of the model's context window that a request may use, in tokens, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The nonce that marks the host's lines. It is generated randomly for each run.
    pub nonce: Nonce,
    /// The workdir entries and beginnings of files, shown after the user's message in the first
    /// request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orientation: Option<Orientation>,
    /// The session that the run belongs to.
    pub session_id: Option<String>,
    /// The form in which the model calls programs.
    pub dialect: Dialect,
    /// The system prompt for the text dialect, used if the model does not support functions. If it
    /// is absent, a run with such a model fails.
    pub fallback: Option<SystemPrompt>,
    /// The catalog programs, described as functions. Runs with the same programs can share them.
    pub programs: Arc<Vec<ProgramFunction>>,
    /// If true, the user's message is moderated before the first step.
    pub is_moderated: bool,
    /// If true, an answer with marks of the model's own format, such as special tokens, is final like
    /// any other. If false, it is asked for again once. A recorded setup without this field belongs
    /// to a run that accepted such answers.
    #[serde(default = "accepted")]
    pub accepts_leftovers: bool,
    /// The rules for recalling memory items. Without them, nothing is recalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<RecallContract>,
    /// The memory items in the system prompt. They are never recalled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<String>,
    /// The contract for the run's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputContract>,
    /// The programs of the agent's traits, in the order in which they run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<TraitProgram>,
}

fn accepted() -> bool {
    true
}

/// Limits and policies of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Maximum number of steps, or 0 for no limit. 12 by default.
    pub max_steps: u32,
    /// The behaviour of a run that has used up its steps.
    pub on_max_steps: OnMaxSteps,
    /// Maximum number of retries within a step, for a program that does not compile or an answer
    /// that is empty or truncated. 2 by default.
    pub max_retries: u32,
    /// Maximum length of a call's output in the conversation, in characters. 4,000 by default.
    pub observation_limit: usize,
    /// Maximum number of tokens that the run uses, including those of its programs' model requests.
    /// Unlimited by default.
    pub max_tokens_total: Option<u64>,
    /// Maximum cost of the run. Only requests with a known price are counted. Unlimited by default.
    pub max_cost: Option<Dollars>,
    /// Maximum number of consecutive steps with the same calls and the same results, or 0 for no
    /// limit. 5 by default.
    pub max_repetitions: u32,
}

impl Settings {
    /// Returns true if a run that has taken `steps` steps has reached `max_steps`.
    pub(crate) fn is_last_step(&self, steps: u32) -> bool {
        self.max_steps > 0 && steps >= self.max_steps
    }

    /// Returns the ending of a run whose usage has reached its limit on tokens or on cost, or `None`
    /// if it has reached neither.
    pub(crate) fn over_budget(&self, usage: Usage) -> Option<Ending> {
        let tokens = self.max_tokens_total.filter(|bound| usage.total() >= *bound);
        let cost = self.max_cost.filter(|bound| usage.cost.is_some_and(|cost| cost >= *bound));
        let out_of_tokens = tokens.map(|bound| Ending::out_of_tokens(bound, None));
        out_of_tokens.or_else(|| cost.map(|bound| Ending::out_of_money(bound, None)))
    }
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
            max_repetitions: 5,
        }
    }
}

/// The behaviour of a run that has used up its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnMaxSteps {
    /// The model gets one last turn and must answer in it.
    #[default]
    Answer,
    /// The result is `stopped: reached max_steps (N)`.
    Stop,
    /// The result is the last text that the model wrote. The model gets no additional turn. If the
    /// model wrote only calls, the result is the same as for `Stop`.
    Latest,
}

/// An input to the machine. An input that does not match the run's phase has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The user's message starts the run.
    Begin {
        /// The message.
        message: String,
    },
    /// The result of [`Effect::Moderate`].
    Moderated(Verdict),
    /// The model answered an [`Effect::Ask`].
    Answer(ModelAnswer),
    /// The model does not support functions, for the given reason. The run continues in the text
    /// dialect if its setup has a fallback prompt.
    WithoutFunctions(String),
    /// The request exceeds the model's context window. The run continues without its oldest
    /// messages.
    TooLong {
        /// The error message, without the prefix `error: `.
        error: String,
        /// Size of the context window, in tokens, if the provider reported it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
        /// Size of the request, in tokens, if the provider reported it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<u64>,
    },
    /// The run's programs used tokens. This input is accepted at any time.
    Spent(Usage),
    /// The model is unreachable, or the host failed. The string is the error message, without the
    /// prefix `error: `.
    Failed(String),
    /// The result of [`Effect::Validate`]: the JSON value, or the schema violations.
    Validated(Result<Json, Vec<String>>),
    /// The calls of an [`Effect::Execute`] have ended. There is one outcome per call, in the same
    /// order.
    Executed(Vec<Execution>),
    /// The program of an [`Effect::Recall`] has ended. The run continues even if the program
    /// failed.
    Recalled(Execution),
    /// The programs of an [`Effect::Contribute`] have ended. There is one outcome per call, in the
    /// same order. The run continues even if a program failed.
    Contributed(Vec<Contribution>),
    /// The run was cancelled.
    Cancel {
        /// The cause, such as `interrupted by the user`. May be empty.
        reason: String,
    },
    /// The run or one of its ancestors has used up its tokens. The tokens of a run include those of
    /// its descendants.
    OutOfTokens {
        /// The limit.
        limit: u64,
        /// The agent of the ancestor that has this limit, or `None` if it is the run's own limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
    },
    /// The run or one of its ancestors has reached its maximum cost. The cost of a run includes
    /// that of its descendants.
    OutOfMoney {
        /// The limit.
        limit: Dollars,
        /// The agent of the ancestor that has this limit, or `None` if it is the run's own limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
    },
    /// The run reached its time limit.
    Expired {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
}

impl Input {
    /// Returns the ending of a run that this input stops, or `None` if the run continues.
    pub(crate) fn ending(&self) -> Option<Ending> {
        Some(match self {
            Self::Cancel { reason } => Ending::cancelled(reason),
            Self::Expired { limit_ms } => Ending::expired(*limit_ms),
            Self::OutOfTokens { limit, owner } => Ending::out_of_tokens(*limit, owner.as_deref()),
            Self::OutOfMoney { limit, owner } => Ending::out_of_money(*limit, owner.as_deref()),
            Self::Failed(message) => Ending::failed(message),
            Self::Begin { .. }
            | Self::Moderated(_)
            | Self::Answer(_)
            | Self::WithoutFunctions(_)
            | Self::TooLong { .. }
            | Self::Spent(_)
            | Self::Validated(_)
            | Self::Executed(_)
            | Self::Recalled(_)
            | Self::Contributed(_) => return None,
        })
    }
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// A request to moderate the user's message. Its result is [`Input::Moderated`].
    Moderate {
        /// The message.
        message: String,
    },
    /// A request to the model. Its result is [`Input::Answer`], [`Input::WithoutFunctions`],
    /// [`Input::TooLong`] or [`Input::Failed`].
    Ask(Ask),
    /// A request to run the calls. Its result is [`Input::Executed`].
    Execute {
        /// The step, counted from 1.
        step: u32,
        /// The calls. They may run concurrently.
        calls: Vec<Call>,
    },
    /// A refused call, which is recorded in the trace but not run.
    Refuse {
        /// The step, counted from 1.
        step: u32,
        /// The call.
        call: Call,
        /// The reason, and the valid alternatives.
        reason: String,
    },
    /// A trace entry for a function call that contained the final answer.
    Done {
        /// The step that the call ended, counted from 1.
        step: u32,
        /// The call.
        call: Call,
    },
    /// A request to run the memory-recall program. Its result is [`Input::Recalled`].
    Recall {
        /// The step that the items are for, counted from 1.
        step: u32,
        /// The call, with the recent conversation as its first argument.
        call: Call,
    },
    /// A request to run the programs of the agent's traits one after another. Its result is
    /// [`Input::Contributed`].
    Contribute {
        /// The step before which the programs run, counted from 1.
        step: u32,
        /// The calls.
        calls: Vec<Call>,
    },
    /// A request to validate an answer against the contract. Its result is [`Input::Validated`].
    Validate {
        /// The answer. It may contain text around the JSON value.
        text: String,
    },
    /// An event to send to the sinks.
    Emit(Event),
    /// The run has ended. No further effects follow.
    Finish(Ending),
}

/// A request to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The step that the answer is for, counted from 1.
    pub step: u32,
    /// The attempt within the step, counted from 0.
    pub attempt: u32,
    /// The purpose of the request.
    pub purpose: Purpose,
    /// The dialect of the request. In the native dialect, the request offers the programs as
    /// functions.
    pub dialect: Dialect,
    /// The complete conversation as the model sees it.
    pub messages: Vec<Message>,
}

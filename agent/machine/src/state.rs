//! The state of a run, its inputs, and its effects.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    artifact::Artifact,
    call::{Call, Execution},
    contribution::{Contribution, TraitProgram},
    dialect::Dialect,
    ending::Ending,
    event::{Dollars, Event, Usage},
    fix::WrittenProgram,
    function::ProgramFunction,
    mark::{Nonce, escape_marks},
    message::{FunctionCall, Message, Role},
    moderation::Verdict,
    orientation::Orientation,
    output::OutputContract,
    parts::SystemPrompt,
    phase::{Phase, RepeatedCalls},
    recall::RecallContract,
};

/// The whole state of a run. It is plain data, so a run can be stored and resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(crate) settings: Settings,
    pub(crate) session_id: Option<String>,
    pub(crate) descriptions: BTreeMap<String, String>,
    pub(crate) dialect: Dialect,
    pub(crate) fallback: Option<SystemPrompt>,
    pub(crate) programs: Vec<ProgramFunction>,
    pub(crate) is_moderated: bool,
    pub(crate) conversation: Vec<Message>,
    pub(crate) nonce: Nonce,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) orientation: Option<Orientation>,
    /// The contract on the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<OutputContract>,
    /// Index of the run's user message in the conversation.
    pub(crate) opening: usize,
    /// If true, the history or the user's message contains text that looks like marks.
    pub(crate) opens_escaped: bool,
    /// If true, the model knows about escaped marks.
    pub(crate) knows_escapes: bool,
    pub(crate) steps: u32,
    pub(crate) usage: Usage,
    /// The last text that the model wrote besides its calls, if the run may end with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latest: Option<String>,
    #[serde(rename = "last")]
    pub(crate) last_calls: Option<RepeatedCalls>,
    /// The last program that the model wrote, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<WrittenProgram>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recall: Option<RecallContract>,
    /// The items in the system prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) memory: Vec<String>,
    /// Length of the conversation at the last recall, without the system message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recall_tried: Option<usize>,
    /// The programs of the agent's traits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) traits: Vec<TraitProgram>,
    /// If true, the build programs have run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_built: bool,
    /// The last result of each prompt program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) notes: BTreeMap<String, String>,
    /// The names of catalog programs that build programs added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<String>,
    /// The names of agents that build programs added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) delegates: Vec<String>,
    /// The data that programs left for the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) phase: Phase,
}

impl State {
    /// Creates a run that waits for [`Input::Begin`].
    pub fn new(setup: Setup) -> Self {
        let (mut conversation, mut opens_escaped) =
            (Vec::with_capacity(setup.history.len() + 1), false);
        conversation.push(setup.system.into_message());
        opens_escaped |= setup
            .orientation
            .as_ref()
            .is_some_and(|orientation| orientation.has_marks(&setup.nonce));
        // Earlier turns are data: marks in them, genuine or not, do not belong to this run.
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
            phase: Phase::Ready,
        }
    }

    /// Returns the conversation so far: the system prompt, the history, and this run's messages. It
    /// does not contain repair turns, and the user's message is unchanged.
    pub fn conversation(&self) -> &[Message] {
        &self.conversation
    }

    /// Returns the current dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the programs that the model may call.
    pub fn programs(&self) -> &[ProgramFunction] {
        &self.programs
    }

    /// Returns the names of catalog programs that traits added to the run.
    pub fn added_tools(&self) -> &[String] {
        &self.tools
    }

    /// Returns the names of agents that traits added to the run.
    pub fn added_delegates(&self) -> &[String] {
        &self.delegates
    }

    /// Returns the data that programs left for the application, in the order of their last changes.
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Returns the number of steps that ran calls.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns the tokens used so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns true if the run has ended. Further inputs have no effect.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }
}

/// The initial values of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Limits and policies.
    pub settings: Settings,
    /// The system prompt.
    pub system: SystemPrompt,
    /// The earlier turns of the session, without a system message.
    pub history: Vec<Message>,
    /// The code that marks the host's lines. Created from random bits for each run.
    pub nonce: Nonce,
    /// The files that the first request shows after the user's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orientation: Option<Orientation>,
    /// The session that the run belongs to.
    pub session_id: Option<String>,
    /// Descriptions of the catalog programs by name, for the event at the start of a program.
    pub descriptions: BTreeMap<String, String>,
    /// The form in which the model calls programs.
    pub dialect: Dialect,
    /// The system prompt of the text dialect, for a model that turns out not to support functions.
    /// Without it such a run fails.
    pub fallback: Option<SystemPrompt>,
    /// The catalog programs as functions.
    pub programs: Vec<ProgramFunction>,
    /// If true, the user's message is moderated before the first step.
    pub is_moderated: bool,
    /// The rule for recalling items from memory. Without it, nothing is recalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall: Option<RecallContract>,
    /// The memory items that the system prompt contains. They are not recalled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<String>,
    /// The contract on the run's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputContract>,
    /// The programs of the agent's traits, in the order in which they run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<TraitProgram>,
}

/// Limits and policies of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Maximum number of steps; 0 for no limit. 12 by default.
    pub max_steps: u32,
    /// The behavior after the last step.
    pub on_max_steps: OnMaxSteps,
    /// Maximum number of retries within a step, for a program that does not compile or an answer
    /// that is empty or truncated. 2 by default.
    pub max_retries: u32,
    /// Maximum length of a call's output in the conversation, in characters. 4,000 by default.
    pub observation_limit: usize,
    /// Maximum number of tokens of the run, including its programs' requests. Unlimited by default.
    pub max_tokens_total: Option<u64>,
    /// Maximum cost of the run. Only requests with a known price count. Unlimited by default.
    pub max_cost: Option<Dollars>,
    /// Maximum number of consecutive steps with the same calls and the same results; 0 for no
    /// limit. 5 by default.
    pub max_repetitions: u32,
}

impl Settings {
    /// Returns true if a run with this number of steps has used them up.
    pub(crate) fn is_last_step(&self, steps: u32) -> bool {
        self.max_steps > 0 && steps >= self.max_steps
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

/// The behavior of a run that has used up its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnMaxSteps {
    /// The model gets one last turn, in which it must answer.
    #[default]
    Answer,
    /// The result is `stopped: reached max_steps (N)`.
    Stop,
    /// The result is the last text that the model wrote, without another turn. If the model wrote
    /// only calls, the result is that of `Stop`.
    Latest,
}

/// An input to the machine. An input that does not fit the run's phase has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The user's message starts the run.
    Begin {
        /// The message.
        message: String,
    },
    /// The verdict of [`Effect::Moderate`].
    Moderated(Verdict),
    /// The model answered an [`Effect::Ask`].
    Answer(ModelAnswer),
    /// The model does not support functions, for the reason given. The run continues in the text
    /// dialect if its setup allows that.
    WithoutFunctions(String),
    /// Programs of the run used tokens. Accepted at any time.
    Spent(Usage),
    /// The model is not reachable, or the host failed. The message has no leading `error: `.
    Failed(String),
    /// The outcome of [`Effect::Validate`]: the value, or the violations of the schema.
    Validated(Result<Json, Vec<String>>),
    /// The calls of an [`Effect::Execute`] have ended. There is one report for each call, in the
    /// same order.
    Executed(Vec<Execution>),
    /// The program of an [`Effect::Recall`] has ended. If it failed, the run continues.
    Recalled(Execution),
    /// The programs of an [`Effect::Contribute`] have ended. There is one outcome for each call, in
    /// the same order. If one failed, the run continues.
    Contributed(Vec<Contribution>),
    /// The run was cancelled.
    Cancel {
        /// The cause, such as `interrupted by the user`. May be empty.
        reason: String,
    },
    /// All runs of the run's tree together used up the tokens of the tree.
    OutOfTokens {
        /// The limit.
        limit: u64,
    },
    /// The run reached its time limit.
    Expired {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
}

/// The model's answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text of the answer, complete and unchanged.
    pub text: String,
    /// The model's function calls, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FunctionCall>,
    /// If true, the answer was truncated because it reached the provider's length limit.
    #[serde(rename = "is_cut", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
    /// The model's reasoning, if the provider returns it apart from the text. It is the thought if
    /// the text contains none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The tokens of this request.
    pub usage: Usage,
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Moderate the user's message and return [`Input::Moderated`].
    Moderate {
        /// The message.
        message: String,
    },
    /// Ask the model and return [`Input::Answer`], [`Input::WithoutFunctions`] or
    /// [`Input::Failed`].
    Ask(Ask),
    /// Run the calls and return [`Input::Executed`].
    Execute {
        /// The step, counted from 1.
        step: u32,
        /// The calls. They may run concurrently.
        calls: Vec<Call>,
    },
    /// A call in the model's answer is not run. The trace records it.
    Refuse {
        /// The step, counted from 1.
        step: u32,
        /// The call.
        call: Call,
        /// The reason, and what would be valid.
        reason: String,
    },
    /// The model gave its answer as the argument of a function call. The trace records the call.
    Done {
        /// The step that the call ends, counted from 1.
        step: u32,
        /// The call.
        call: Call,
    },
    /// Run the program that recalls items from memory, and return [`Input::Recalled`].
    Recall {
        /// The step that the items are for, counted from 1.
        step: u32,
        /// The call, with the recent conversation as its first argument.
        call: Call,
    },
    /// Run the programs of the agent's traits, one after the other, and return
    /// [`Input::Contributed`].
    Contribute {
        /// The step that they precede, counted from 1.
        step: u32,
        /// The calls.
        calls: Vec<Call>,
    },
    /// Validate an answer against the contract and return [`Input::Validated`].
    Validate {
        /// The answer, which may contain text around the JSON value.
        text: String,
    },
    /// Send the event to the sinks.
    Emit(Event),
    /// The run has ended. No effect follows.
    Finish(Ending),
}

/// A request to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The step that the answer is for, counted from 1.
    pub step: u32,
    /// The attempt within the step, from 0 to `max_retries`.
    pub attempt: u32,
    /// The purpose of the request.
    pub purpose: Purpose,
    /// The dialect. In the native dialect, the request offers the programs as functions.
    pub dialect: Dialect,
    /// The complete conversation as the model sees it.
    pub messages: Vec<Message>,
}

/// The purpose of a request to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The next action.
    Act,
    /// A corrected program in place of one that did not compile.
    Repair,
    /// The final answer, because the steps are used up.
    Conclude,
    /// A corrected answer in place of one that does not match the contract.
    Amend,
}

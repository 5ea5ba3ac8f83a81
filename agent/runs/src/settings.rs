//! The settings of an agent.

use std::sync::Arc;
use std::time::Duration;

use wattle_capability::ai::Budget;
use wattle_machine::{GuidanceFile, RecallContract, TraitProgram};
use wattle_model::moderation::Moderation;
use wattle_model::output::OutputSettings;
use wattle_model::{DialectSetting, FunctionChoice, Prices, ThinkingEffort, Timeouts};
use wattle_store::journal::DEFAULT_AGENT;

/// The configuration of an agent, shared by all its runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agent's name.
    pub agent: String,
    /// Limits and policies of the state machine.
    pub machine: wattle_machine::Settings,
    /// Maximum duration of a run. `None` means no limit.
    pub timeout: Option<Duration>,
    /// The sampling temperature, from 0 to 2.
    pub temperature: f32,
    /// Maximum number of tokens in one answer.
    pub max_tokens: u32,
    /// The model's reasoning effort, or `None` for the model's default.
    pub thinking_effort: Option<ThinkingEffort>,
    /// The setting that allows, requires or forbids function calls in the native dialect. In the
    /// last turn of a run that has used up its steps, the model must always answer.
    pub tool_call: FunctionChoice,
    /// Deadlines and retries for model requests.
    pub timeouts: Timeouts,
    /// Limits on the model requests of a run's programs.
    pub ai: Budget,
    /// Text that the deployment adds to the prompt, such as a role or house rules.
    pub preamble: Option<String>,
    /// The dialect in which the model calls programs.
    pub dialect: DialectSetting,
    /// If true, the model may call programs. Otherwise, its first answer ends the run, and
    /// `dialect` has no effect.
    pub calls_programs: bool,
    /// Model prices that replace or extend the built-in table.
    pub prices: Prices,
    /// If true, the first request of a run shows the names of the workdir's entries and the
    /// beginnings of the files that the message names.
    pub orient: bool,
    /// The names of the programs that a model with function calling is offered as functions of their
    /// own. It calls the other programs by the function `catalog`.
    pub functions: Vec<String>,
    /// The names of the agents to which programs may delegate.
    pub delegates: Vec<String>,
    /// The content guard that checks messages before their runs begin.
    pub moderation: Option<Moderation>,
    /// The guidance files of the workdir's project, such as `AGENTS.md`, nearest last.
    pub guidance: Arc<[GuidanceFile]>,
    /// Memory items to include in the system prompt.
    pub memory: Vec<String>,
    /// The rule for recalling items from memory, or `None` to recall nothing.
    pub recall: Option<RecallContract>,
    /// The programs of the agent's traits, in the order in which they run. They are identified by
    /// their names in [`Host::internal_programs`].
    ///
    /// [`Host::internal_programs`]: crate::Host::internal_programs
    pub traits: Vec<TraitProgram>,
    /// The required output of the agent's runs. It is described in the part of the prompt that all
    /// sessions share. A job can override the output.
    pub output: Option<OutputSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            agent: DEFAULT_AGENT.to_owned(),
            machine: wattle_machine::Settings::default(),
            timeout: None,
            temperature: 0.3,
            max_tokens: 4_096,
            thinking_effort: None,
            tool_call: FunctionChoice::default(),
            timeouts: Timeouts::default(),
            ai: Budget::default(),
            preamble: None,
            dialect: DialectSetting::default(),
            calls_programs: true,
            prices: Prices::default(),
            orient: true,
            functions: Vec::new(),
            delegates: Vec::new(),
            moderation: None,
            guidance: Arc::default(),
            memory: Vec::new(),
            recall: None,
            traits: Vec::new(),
            output: None,
        }
    }
}

impl Settings {
    /// Returns the settings for runs that answer a message with exactly one request to the model.
    /// No program runs, and the agent's prompt, memory, traits, delegates and output schema do not
    /// apply, nor do the guidance files. The content guard, the budgets and all other limits still apply.
    #[must_use]
    pub fn without_programs(self) -> Settings {
        Settings {
            calls_programs: false,
            machine: wattle_machine::Settings { max_retries: 0, ..self.machine },
            preamble: None,
            orient: false,
            delegates: Vec::new(),
            guidance: Arc::default(),
            memory: Vec::new(),
            recall: None,
            traits: Vec::new(),
            output: None,
            ..self
        }
    }
}

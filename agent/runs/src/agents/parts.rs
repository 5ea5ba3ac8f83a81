//! The components and settings of an agent's runs, created from the agent's declaration.

use std::fmt;
use std::sync::Arc;

use wattle_capability::policy::{Policy, Rule};
use wattle_catalog::{Catalog, SelectError, ToolRef, nearest_name};
use wattle_machine::RecallContract;
use wattle_model::output::{OutputSchema, OutputSettings};
use wattle_model::{Model, Models};

use super::read::OUTPUT;
use super::registry::{Agents, UnknownAgent};
use super::spec::{AgentBudget, AgentPolicy, AgentSpec, Parsed};
use super::traits::TraitParts;
use super::{context, delegate};
use crate::host::{AgentPrograms, Host};
use crate::journal::RunLimits;
use crate::settings::Settings;
use crate::span::Timeout;

/// Programs that every agent is offered: `done` ends a run, and `help` shows the manual.
const ALWAYS: &[&str] = &["done", "help"];

/// The deployment's components and settings, before an agent's declaration is applied.
#[derive(Clone, Copy)]
pub struct AgentBase<'a> {
    /// The host, with all programs.
    pub host: &'a Host,
    /// The deployment's settings for runs.
    pub settings: &'a Settings,
    /// The agents that may be delegates.
    pub agents: &'a Agents,
    /// The step limit that the user or the request sets. The agent's own limit cannot exceed it.
    pub max_steps: Option<u32>,
}

/// The components and settings of an agent's runs.
pub struct AgentParts {
    /// The host, with the agent's programs.
    pub host: Host,
    /// The settings of the agent's runs.
    pub settings: Settings,
    /// The rules that narrow the deployment's policy.
    pub policy: Policy,
}

/// The reason why an agent cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentError {
    /// A tool cannot be selected.
    Tool {
        /// The agent's name.
        agent: String,
        /// The reason why the tool cannot be selected.
        error: SelectError,
    },
    /// A delegate's name is not the name of an agent.
    UnknownDelegate {
        /// The agent's name.
        agent: String,
        /// The delegate's name.
        id: String,
        /// The most similar name of an existing agent, if there is one.
        nearest: Option<String>,
    },
    /// A name in `functions` is not the name of a program that the agent is offered.
    UnknownFunction {
        /// The agent's name.
        agent: String,
        /// The name in `functions`.
        name: String,
        /// The most similar name of an offered program, if there is one.
        nearest: Option<String>,
    },
    /// A trait does not exist.
    UnknownTrait {
        /// The agent's name.
        agent: String,
        /// The trait's name.
        id: String,
        /// The most similar name of an existing trait, if there is one.
        nearest: Option<String>,
    },
    /// A program of a trait cannot be used.
    TraitProgram {
        /// The agent's name.
        agent: String,
        /// The program, such as `house_style.prompt`.
        name: String,
        /// The reason why the program cannot be used.
        why: String,
    },
    /// A string refers to a key that is missing in the context.
    MissingContext {
        /// The agent's name.
        agent: String,
        /// The part of the declaration that contains the string, such as ``the context of
        /// `file_read` ``.
        place: String,
        /// The missing key.
        key: String,
    },
    /// The name of a delegate's program is invalid or already taken by another program. The strings
    /// are the agent's name and the program's name.
    DelegateName(String, String),
    /// The agent does not exist.
    Unknown(UnknownAgent),
    /// The agent of a recorded run does not exist any more.
    Gone(UnknownAgent),
    /// The model cannot be used. The string is a message that names the model.
    Model(String),
    /// The name of an agent is invalid.
    InvalidName(String),
    /// A tool of the application is invalid.
    InvalidTool {
        /// The agent's name.
        agent: String,
        /// The tool's name.
        tool: String,
        /// The rule that the tool violates.
        why: String,
    },
    /// A tool or a delegate's program has the name of another program.
    NameTaken {
        /// The agent's name.
        agent: String,
        /// The name that is already taken.
        name: String,
    },
    /// The schema for the answers cannot be used.
    InvalidOutput {
        /// The agent's name.
        agent: String,
        /// The reason why the schema cannot be used.
        why: String,
    },
    /// The engine cannot be created. The string contains the reason.
    Engine(String),
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentError::Tool { agent, error } => write!(f, "the agent `{agent}`: {error}"),
            AgentError::UnknownDelegate { agent, id, nearest } => {
                write!(f, "the agent `{agent}`: there is no agent `{id}` to delegate to")?;
                suggest(f, nearest.as_deref())
            }
            AgentError::UnknownFunction { agent, name, nearest } => {
                let name = wattle_rt::quote(name, 60);
                write!(f, "the agent `{agent}`: `functions`: it is offered no program {name}")?;
                suggest(f, nearest.as_deref())
            }
            AgentError::UnknownTrait { agent, id, nearest } => {
                write!(f, "the agent `{agent}`: there is no trait `{id}`")?;
                suggest(f, nearest.as_deref())
            }
            AgentError::TraitProgram { agent, name, why } => {
                write!(f, "the agent `{agent}`: `{name}`: {why}")
            }
            AgentError::MissingContext { agent, place, key } => write!(
                f,
                "the agent `{agent}`: {place} uses `${{{key}}}`, which its context does not have; \
                 set it in `context`, or give it with the request"
            ),
            AgentError::DelegateName(agent, name) => write!(
                f,
                "the agent `{agent}`: `{name}` cannot be the name of a delegate's program; give \
                 it another `name`"
            ),
            AgentError::InvalidName(name) => write!(
                f,
                "{} cannot be the name of an agent: it needs a lowercase letter, followed by \
                 lowercase letters, digits, `_`, `-` and `.`",
                wattle_rt::quote(name, 60)
            ),
            AgentError::InvalidTool { agent, tool, why } => {
                write!(
                    f,
                    "the agent `{agent}`: the tool {} is invalid: {why}",
                    wattle_rt::quote(tool, 60)
                )
            }
            AgentError::NameTaken { agent, name } => write!(
                f,
                "the agent `{agent}`: there is another program or delegate `{name}`; give the tool \
                 or the delegate another name"
            ),
            AgentError::InvalidOutput { agent, why } => {
                write!(f, "the agent `{agent}`: the output: {why}")
            }
            AgentError::Unknown(why) => why.fmt(f),
            AgentError::Gone(why) => write!(
                f,
                "the agent of this run was removed or cannot be used: {why}; declare it again, or \
                 start a new run"
            ),
            AgentError::Model(why) => f.write_str(why),
            AgentError::Engine(why) => write!(f, "failed to create the engine: {why}"),
        }
    }
}

/// Writes the most similar name, if there is one.
fn suggest(f: &mut fmt::Formatter<'_>, nearest: Option<&str>) -> fmt::Result {
    nearest.map_or(Ok(()), |nearest| write!(f, "; did you mean `{nearest}`?"))
}

impl std::error::Error for AgentError {}

impl AgentError {
    pub(super) fn context(agent: &AgentSpec, place: impl Into<String>, key: String) -> AgentError {
        AgentError::MissingContext { agent: agent.name.clone(), place: place.into(), key }
    }
}

impl AgentSpec {
    /// Creates the components and settings of the agent's runs.
    ///
    /// # Errors
    /// If a tool, a trait, a delegate or the memory contract's program does not exist, or a context
    /// value is missing.
    pub fn parts(&self, base: AgentBase<'_>) -> Result<AgentParts, AgentError> {
        let agent = self.with_traits(&base.agents.traits())?;
        let catalog = base.host.catalog();
        let traits = TraitParts::of(&agent, &catalog)?;
        let mut settings = agent.settings(base, &traits)?;
        let host = agent.host(base, &catalog, traits)?;
        settings.functions = agent.functions_among(&host.catalog())?;
        Ok(AgentParts { settings, host, policy: agent.policy() })
    }

    /// Returns the names of the programs that are functions of their own.
    ///
    /// # Errors
    /// If one of them is not offered to the agent.
    pub fn functions_among(&self, offered: &Catalog) -> Result<Vec<String>, AgentError> {
        match self.functions.iter().find(|name| offered.get(name).is_none()) {
            None => Ok(self.functions.clone()),
            Some(name) => {
                let names = offered.iter().map(|entry| entry.name().as_str());
                Err(AgentError::UnknownFunction {
                    agent: self.name.clone(),
                    name: name.clone(),
                    nearest: nearest_name(name, names).map(str::to_owned),
                })
            }
        }
    }

    /// Returns the host with the programs that the agent is offered and those that the host calls
    /// on the agent's behalf.
    fn host(
        &self,
        base: AgentBase<'_>,
        catalog: &Catalog,
        traits: TraitParts,
    ) -> Result<Host, AgentError> {
        let tool = |error| AgentError::Tool { agent: self.name.clone(), error };
        let delegates = delegate::programs(self, base.agents)?;
        let tools = self.tool_refs(&traits.tools)?;
        let own = match &self.tools {
            None => catalog.select(&tools).map_err(tool)?,
            Some(_) => {
                let always = ALWAYS.iter().filter(|name| catalog.get(name).is_some());
                let missing = always.filter(|name| !tools.iter().any(|tool| tool.id == **name));
                let missing = missing.map(|name| ToolRef::new(*name));
                let tools: Vec<ToolRef> = tools.iter().cloned().chain(missing).collect();
                catalog.select(&tools).map_err(tool)?
            }
        };
        let own = own.iter().map(|entry| entry.as_ref().clone());
        let offered = match &self.tools {
            None => catalog.with(own),
            Some(_) => Catalog::default().with(own),
        };
        if let Some(contract) = &self.memory_contract
            && offered.get(&contract.program).is_none()
        {
            catalog.select(&[ToolRef::new(contract.program.as_str())]).map_err(tool)?;
        }
        if let Some(taken) = delegates.iter().find(|one| offered.get(one.name().as_str()).is_some())
        {
            let name = taken.name().to_string();
            return Err(AgentError::DelegateName(self.name.clone(), name));
        }
        let changes = self.tools.is_some() || !tools.is_empty() || !delegates.is_empty();
        if !changes && traits.programs.is_empty() && self.context.is_empty() {
            return Ok(base.host.clone());
        }
        Ok(base.host.for_agent(AgentPrograms {
            name: self.name.as_str().into(),
            offered: offered.with(delegates),
            internal: Catalog::default().with(traits.programs.into_iter().map(|(_, entry)| entry)),
            context: self.context.clone(),
        }))
    }

    /// Returns the tools of the agent and its traits, with the context's values filled in.
    fn tool_refs(&self, of_traits: &[ToolRef]) -> Result<Vec<ToolRef>, AgentError> {
        let all = self.tools.iter().flatten().chain(of_traits);
        let filled = |tool: &ToolRef| {
            let context = context::filled(&tool.context, &self.context).map_err(|key| {
                AgentError::context(self, format!("the context of `{}`", tool.id), key)
            })?;
            Ok(ToolRef { context, ..tool.clone() })
        };
        all.map(filled).collect()
    }

    /// Returns the settings of the agent's runs.
    fn settings(&self, base: AgentBase<'_>, traits: &TraitParts) -> Result<Settings, AgentError> {
        let mut settings = base.settings.clone();
        settings.agent.clone_from(&self.name);
        settings.delegates = self.delegates.iter().map(|delegate| delegate.id.clone()).collect();
        let texts = settings.preamble.iter().map(String::as_str).chain([self.prompt.trim()]);
        let texts = texts.chain(traits.prompt.iter().map(String::as_str));
        let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        settings.preamble = (!texts.is_empty()).then(|| texts.join("\n\n"));
        settings.traits = traits.programs.iter().map(|(program, _)| program.clone()).collect();
        settings.memory.extend(self.memory.iter().cloned());
        if let Some(contract) = &self.memory_contract {
            let context = context::filled(&contract.context, &self.context).map_err(|key| {
                AgentError::context(self, "the context of `memory_contract`", key)
            })?;
            settings.recall = Some(RecallContract { context, ..contract.clone() });
        }
        if let Some(schema) = self.output() {
            settings.output = Some(schema);
        }
        settings.thinking_effort = self.thinking_effort.or(settings.thinking_effort);
        settings.tool_call = self.tool_call.unwrap_or(settings.tool_call);
        settings.temperature = self.temperature.unwrap_or(settings.temperature);
        settings.max_tokens = self.max_tokens.unwrap_or(settings.max_tokens);
        settings.dialect = self.dialect.map_or(settings.dialect, |Parsed(dialect)| dialect);
        let timeout = self.timeout.map(|Parsed(span)| span.0);
        settings.timeout = least(settings.timeout, timeout);
        let of_request = self.http_timeout.map(|Parsed(span)| span.0);
        let retry_for = self.retry_for.map(|Parsed(span)| span.0);
        settings.timeouts = settings.timeouts.at_most(of_request, retry_for);
        let machine = &mut settings.machine;
        machine.max_steps =
            least_steps(base.max_steps, self.max_steps).unwrap_or(machine.max_steps);
        machine.on_max_steps = self.on_max_steps.unwrap_or(machine.on_max_steps);
        machine.max_repetitions = self.max_repetitions.unwrap_or(machine.max_repetitions);
        machine.max_retries = self.retries.unwrap_or(machine.max_retries);
        machine.max_tokens_total = least(machine.max_tokens_total, self.budget.max_tokens_total);
        machine.max_cost = least(machine.max_cost, self.budget.max_cost);
        let ai = &mut settings.ai;
        ai.calls = self.budget.ai_calls.map_or(ai.calls, |calls| calls.min(ai.calls));
        ai.tokens = self.budget.ai_tokens.map_or(ai.tokens, |tokens| tokens.min(ai.tokens));
        Ok(settings)
    }

    /// Returns the lower ones of these limits and of the agent's own.
    pub(crate) fn limits(&self, limits: RunLimits) -> RunLimits {
        RunLimits {
            max_steps: least_steps(limits.max_steps, self.max_steps),
            timeout: least(limits.timeout, self.timeout.map(|Parsed(span)| span.0)),
            max_tokens_total: least(limits.max_tokens_total, self.budget.max_tokens_total),
            max_cost: least(limits.max_cost, self.budget.max_cost),
        }
    }

    /// Lowers the agent's limits to those of another declaration.
    pub(super) fn lower(&mut self, other: &AgentSpec) {
        let span = |one: Option<Parsed<Timeout>>, other: Option<Parsed<Timeout>>| match (one, other)
        {
            (Some(one), Some(other)) => Some(if other.0.0 < one.0.0 { other } else { one }),
            (one, other) => one.or(other),
        };
        self.max_steps = least_steps(self.max_steps, other.max_steps);
        self.timeout = span(self.timeout, other.timeout);
        self.http_timeout = span(self.http_timeout, other.http_timeout);
        self.max_tokens = least(self.max_tokens, other.max_tokens);
        let (own, other) = (self.budget, other.budget);
        self.budget = AgentBudget {
            max_tokens_total: least(own.max_tokens_total, other.max_tokens_total),
            max_cost: least(own.max_cost, other.max_cost),
            ai_calls: least(own.ai_calls, other.ai_calls),
            ai_tokens: least(own.ai_tokens, other.ai_tokens),
        };
    }

    /// Returns the output settings of the agent's runs. The schema was checked when the agent was
    /// read. If an application creates an agent with an invalid schema, the agent's output is plain
    /// text.
    fn output(&self) -> Option<OutputSettings> {
        let schema = OutputSchema::new(OUTPUT, self.output_schema.clone()?).ok()?;
        let output = OutputSettings::new(schema);
        let max_attempts = self.repair.map_or(output.max_attempts, |repair| repair.max_attempts);
        Some(OutputSettings { max_attempts, ..output })
    }

    /// Opens the agent's model, or returns the default one if the agent names no model.
    ///
    /// # Errors
    /// If the model class is unknown, or its endpoint cannot be used. The error is a message for
    /// the user.
    pub fn open_model(
        &self,
        models: &dyn Models,
        default: &Arc<dyn Model>,
    ) -> Result<Arc<dyn Model>, String> {
        match &self.model {
            Some(name) => models
                .open(name)
                .map_err(|why| format!("the agent `{}`: `model`: {why}", self.name)),
            None => Ok(Arc::clone(default)),
        }
    }

    /// Returns the agent's own policy, narrowed by the policies of the agents that delegated to it.
    fn policy(&self) -> Policy {
        let rules = |rules: &[Parsed<Rule>]| rules.iter().map(|rule| rule.0.clone()).collect();
        let policy =
            |own: &AgentPolicy| Policy::new(rules(&own.allow), rules(&own.ask), rules(&own.deny));
        self.narrowed_by.iter().fold(policy(&self.policy), |all, by| all.and(policy(by)))
    }
}

/// Returns the lower of two optional limits.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Returns the lower of two optional step limits.
fn least_steps(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) => Some(fewer_steps(one, other)),
        (one, other) => one.or(other),
    }
}

/// Returns the lower of two step limits. A limit of 0 means no limit.
fn fewer_steps(one: u32, other: u32) -> u32 {
    match (one, other) {
        (0, steps) | (steps, 0) => steps,
        (one, other) => one.min(other),
    }
}

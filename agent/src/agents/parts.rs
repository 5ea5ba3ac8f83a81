//! From an agent to the parts of its runs.

use std::fmt;
use std::sync::Arc;

use wattle_capability::policy::{Policy, Rule};
use wattle_catalog::{SelectError, ToolRef};

use super::delegate;
use super::read::OUTPUT;
use super::registry::Agents;
use super::spec::{AgentPolicy, AgentSpec, Parsed};
use crate::host::Host;
use crate::model::{Model, Models};
use crate::output::{OutputSchema, OutputSettings};
use crate::settings::Settings;

/// Programs that every agent is offered: the manual, and the end of a run.
const ALWAYS: &[&str] = &["done", "help"];

/// What a deployment has before an agent changes it.
#[derive(Clone, Copy)]
pub struct AgentBase<'a> {
    /// The host, with all programs.
    pub host: &'a Host,
    /// The settings of runs.
    pub settings: &'a Settings,
    /// The agents that may be delegates.
    pub agents: &'a Agents,
    /// The limit on steps that the user or the request sets. The agent's own limit cannot exceed
    /// it.
    pub max_steps: Option<u32>,
}

/// The parts of an agent's runs.
pub struct AgentParts {
    /// The host, with the agent's programs.
    pub host: Host,
    /// The settings.
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
        /// The reason.
        error: SelectError,
    },
    /// A delegate is not an agent.
    UnknownDelegate {
        /// The agent's name.
        agent: String,
        /// The delegate's name.
        id: String,
        /// The agent with the most similar name.
        nearest: Option<String>,
    },
    /// The name of a delegate's program is invalid, or that of another program.
    DelegateName(String, String),
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentError::Tool { agent, error } => write!(f, "the agent `{agent}`: {error}"),
            AgentError::UnknownDelegate { agent, id, nearest } => {
                write!(f, "the agent `{agent}`: there is no agent `{id}` to delegate to")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None => Ok(()),
                }
            }
            AgentError::DelegateName(agent, name) => write!(
                f,
                "the agent `{agent}`: `{name}` cannot be the name of a delegate's program; give \
                 it another `name`"
            ),
        }
    }
}

impl std::error::Error for AgentError {}

impl AgentSpec {
    /// Returns the parts of the agent's runs.
    ///
    /// # Errors
    /// If a tool or a delegate does not exist.
    pub fn parts(&self, base: AgentBase<'_>) -> Result<AgentParts, AgentError> {
        Ok(AgentParts {
            host: self.host(base)?,
            settings: self.settings(base),
            policy: self.policy(),
        })
    }

    /// Returns the host with the programs that the agent is offered.
    fn host(&self, base: AgentBase<'_>) -> Result<Host, AgentError> {
        let catalog = base.host.catalog();
        let tool = |error| AgentError::Tool { agent: self.name.clone(), error };
        let delegates = delegate::programs(self, base.agents)?;
        let selected = match &self.tools {
            None => catalog.clone(),
            Some(tools) => {
                let always = ALWAYS.iter().filter(|name| catalog.get(name).is_some());
                let missing = always.filter(|name| !tools.iter().any(|tool| tool.id == **name));
                let tools: Vec<ToolRef> =
                    tools.iter().cloned().chain(missing.map(|name| ToolRef::new(*name))).collect();
                catalog.select(&tools).map_err(tool)?
            }
        };
        if let Some(taken) =
            delegates.iter().find(|one| selected.get(one.name().as_str()).is_some())
        {
            let name = taken.name().to_string();
            return Err(AgentError::DelegateName(self.name.clone(), name));
        }
        Ok(match self.tools.is_none() && delegates.is_empty() {
            true => base.host.clone(),
            false => base.host.for_agent(&self.name, selected.with(delegates)),
        })
    }

    /// Returns the settings of the agent's runs.
    fn settings(&self, base: AgentBase<'_>) -> Settings {
        let mut settings = base.settings.clone();
        settings.agent.clone_from(&self.name);
        settings.delegates = self.delegates.iter().map(|delegate| delegate.id.clone()).collect();
        if !self.prompt.trim().is_empty() {
            settings.preamble = Some(match &settings.preamble {
                Some(preamble) => format!("{preamble}\n\n{}", self.prompt.trim()),
                None => self.prompt.trim().to_owned(),
            });
        }
        settings.memory.extend(self.memory.iter().cloned());
        settings.recall = self.memory_contract.clone().or(settings.recall);
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
        let machine = &mut settings.machine;
        machine.max_steps = match (base.max_steps, self.max_steps) {
            (Some(asked), Some(own)) => fewer_steps(asked, own),
            (Some(steps), None) | (None, Some(steps)) => steps,
            (None, None) => machine.max_steps,
        };
        machine.on_max_steps = self.on_max_steps.unwrap_or(machine.on_max_steps);
        machine.max_repetitions = self.max_repetitions.unwrap_or(machine.max_repetitions);
        machine.max_retries = self.retries.unwrap_or(machine.max_retries);
        machine.max_tokens_total = least(machine.max_tokens_total, self.budget.max_tokens_total);
        machine.max_cost = least(machine.max_cost, self.budget.max_cost);
        let ai = &mut settings.ai;
        ai.calls = self.budget.ai_calls.map_or(ai.calls, |calls| calls.min(ai.calls));
        ai.tokens = self.budget.ai_tokens.map_or(ai.tokens, |tokens| tokens.min(ai.tokens));
        settings
    }

    /// Returns the output that the agent's runs must have. The schema was checked when the agent was
    /// read; an agent that an application makes with an invalid one has text as its output.
    fn output(&self) -> Option<OutputSettings> {
        let schema = OutputSchema::new(OUTPUT, self.output_schema.clone()?).ok()?;
        let output = OutputSettings::new(schema);
        let max_attempts = self.repair.map_or(output.max_attempts, |repair| repair.max_attempts);
        Some(OutputSettings { max_attempts, ..output })
    }

    /// Opens the agent's model, or returns the default one if it names none.
    ///
    /// # Errors
    /// A message for the user: the class is unknown, or its endpoint cannot be used.
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

    /// Returns the agent's own policy, narrowed by those of the agents that delegated to it.
    fn policy(&self) -> Policy {
        let rules = |rules: &[Parsed<Rule>]| rules.iter().map(|rule| rule.0.clone()).collect();
        let policy =
            |own: &AgentPolicy| Policy::new(rules(&own.allow), rules(&own.ask), rules(&own.deny));
        self.narrowed_by.iter().fold(policy(&self.policy), |all, by| all.and(policy(by)))
    }
}

/// Returns the lower of two limits, of which each may be absent.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Returns the lower of two limits on steps, of which 0 means no limit.
fn fewer_steps(one: u32, other: u32) -> u32 {
    match (one, other) {
        (0, steps) | (steps, 0) => steps,
        (one, other) => one.min(other),
    }
}

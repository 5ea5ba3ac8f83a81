//! The declaration of an agent.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value as Json;
use wattle_capability::policy::Rule;
use wattle_catalog::{ToolRef, scalar_map};
use wattle_machine::{Dollars, OnMaxSteps, RecallContract};
use wattle_model::{DialectSetting, FunctionChoice, ThinkingEffort};

use super::DEFAULT_AGENT;
use super::traits::TraitRef;
use crate::span::Timeout;

/// The key of the agent's declaration in a run request's data.
const ORIGIN: &str = "agent";

/// A declared agent. Every field except the name is optional; an absent field leaves the
/// deployment's setting unchanged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// The agent's name. It follows the rules for program names, but may also contain `-`.
    pub name: String,
    /// The display name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The purpose of the agent. Other agents that may delegate to it read this.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// A note for the people who maintain the agent. No model sees it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// The version, chosen by the agent's author.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The agent's role and rules, which form the beginning of its prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// The name of a model at the configured endpoint, or a model class, such as `class:fast`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The sampling temperature, from 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Maximum number of tokens in one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The model's reasoning effort, from 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_effort: Option<ThinkingEffort>,
    /// The setting that allows, requires or forbids function calls in the native dialect: `auto`,
    /// `required` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<FunctionChoice>,
    /// The form in which the model calls programs: `text`, `native` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Parsed<DialectSetting>>,
    /// Maximum number of steps of a run; 0 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// The behaviour when a run reaches `max_steps`: `answer`, `stop` or `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_max_steps: Option<OnMaxSteps>,
    /// Maximum number of times that the same calls may be repeated in a row; 0 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_repetitions: Option<u32>,
    /// Maximum number of retries within a step, after a program that does not compile or an answer
    /// that cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Maximum duration of a run, such as `2m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Parsed<Timeout>>,
    /// Maximum duration of one request to the model, such as `90s`. The deployment's limit also
    /// applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_timeout: Option<Parsed<Timeout>>,
    /// Time for which a request to the model that fails temporarily is repeated, such as `1m`. The
    /// deployment's limit also applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_for: Option<Parsed<Timeout>>,
    /// The programs that are offered to the agent. If the field is absent, all programs are
    /// offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolRef>>,
    /// The names of the programs that a model with function calling is offered as functions of their
    /// own, at most 120. The function `catalog` calls the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
    /// Values for the agent's tools, traits and memory. No model sees them. A request may add or
    /// replace values.
    #[serde(default, deserialize_with = "scalar_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// The agent's traits. Several agents can use the same trait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<TraitRef>,
    /// The agents to which this agent may delegate parts of its task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegates: Vec<DelegateRef>,
    /// Memory items to include in the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<String>,
    /// The rule for recalling additional memory items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_contract: Option<RecallContract>,
    /// The JSON Schema of the answer. Without it, the answer is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// The settings for correcting answers that do not match the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<AgentRepair>,
    /// Rules that narrow the permissions of the agent's programs.
    #[serde(default, skip_serializing_if = "AgentPolicy::is_empty")]
    pub policy: AgentPolicy,
    /// The policies of the agents that delegated to this one. They apply in addition to `policy`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub narrowed_by: Vec<AgentPolicy>,
    /// The reference with which the agent was [loaded](super::Agents::load), which finds its
    /// declaration again. `None` for the built-in agent and for agents that were not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Limits on the resources of a run.
    #[serde(default, skip_serializing_if = "AgentBudget::is_empty")]
    pub budget: AgentBudget,
    /// Examples for testing the agent. No model sees them, and they are not stored with runs.
    #[serde(default, rename = "example", skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<AgentExample>,
}

impl AgentSpec {
    /// Creates an agent that sets only a name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> AgentSpec {
        AgentSpec {
            name: name.into(),
            title: String::new(),
            description: String::new(),
            comment: String::new(),
            version: String::new(),
            prompt: String::new(),
            model: None,
            temperature: None,
            max_tokens: None,
            thinking_effort: None,
            tool_call: None,
            dialect: None,
            max_steps: None,
            on_max_steps: None,
            max_repetitions: None,
            retries: None,
            timeout: None,
            http_timeout: None,
            retry_for: None,
            tools: None,
            functions: Vec::new(),
            context: BTreeMap::new(),
            traits: Vec::new(),
            delegates: Vec::new(),
            memory: Vec::new(),
            memory_contract: None,
            output_schema: None,
            repair: None,
            policy: AgentPolicy::default(),
            narrowed_by: Vec::new(),
            reference: None,
            budget: AgentBudget::default(),
            examples: Vec::new(),
        }
    }

    /// Returns a template for a new agent's file.
    #[must_use]
    pub fn skeleton(name: &str) -> String {
        let name = toml::Value::from(name);
        format!(
            "name = {name}\ndescription = \"What the agent is for\"\nprompt = \"\"\"\nYou are a \
             helpful assistant. Be concise.\n\"\"\"\n\n# Programs that the agent is offered; \
             without this line, all of them.\ntools = [\"file_*\", \"text_*\", \
             \"search\"]\n\n# What its programs may not do.\n[policy]\ndeny = [\"http\"]\n"
        )
    }

    /// Returns the agent as a delegate of `other`. The delegate is also bound by the rules of
    /// `other` and inherits those context values of `other` that it does not set itself.
    #[must_use]
    pub fn delegated_by(&self, other: &AgentSpec) -> AgentSpec {
        let mut agent = self.clone();
        agent.narrow(other.narrowed_by.iter().chain([&other.policy]).cloned());
        for (key, value) in &other.context {
            agent.context.entry(key.clone()).or_insert_with(|| value.clone());
        }
        agent
    }

    /// Returns a copy of the agent with a request's context values, which override its own.
    #[must_use]
    pub fn with_context(&self, values: &BTreeMap<String, String>) -> AgentSpec {
        let mut agent = self.clone();
        agent.context.extend(values.clone());
        agent
    }

    /// Returns true if this is the built-in agent.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.name == DEFAULT_AGENT
    }

    /// Stores the agent in a run request's data, so that the run has the same agent when it is
    /// resumed. Replaces any agent in the data. Removes it if `self` is the default agent. The data
    /// must be an object.
    pub fn write_to(&self, origin: &mut Json) {
        let Json::Object(fields) = origin else { return };
        // The order of the other fields is kept.
        fields.shift_remove(ORIGIN);
        let agent = AgentSpec { examples: Vec::new(), ..self.clone() };
        if agent != AgentSpec::default()
            && let Ok(agent) = serde_json::to_value(&agent)
        {
            fields.insert(ORIGIN.to_owned(), agent);
        }
    }

    /// Returns the agent from a run request's data, or the default agent if the data contains none.
    ///
    /// # Errors
    /// If the agent cannot be read.
    pub fn of_origin(origin: &Json) -> Result<AgentSpec, String> {
        match origin.get(ORIGIN) {
            Some(agent) => AgentSpec::of_json(agent)
                .map_err(|error| format!("the agent of the run cannot be read: {error}")),
            None => Ok(AgentSpec::default()),
        }
    }

    /// Returns the display name: the title, or the name if there is no title.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        if self.title.is_empty() { &self.name } else { &self.title }
    }
}

impl Default for AgentSpec {
    fn default() -> Self {
        AgentSpec {
            description: "The deployment's settings, with all of its programs".to_owned(),
            ..AgentSpec::new(DEFAULT_AGENT)
        }
    }
}

/// A reference to a delegate, which is an agent that another agent can call through a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelegateRef {
    /// The agent's name.
    pub id: String,
    /// The program's name. By default, `ask_` followed by the agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The situations in which to delegate to the agent. By default, the agent's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// Rules that narrow the permissions of an agent's programs. An effect is allowed only if both the
/// deployment's policy and these rules allow it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentPolicy {
    /// Rules for effects that are allowed even if a more general rule in this policy denies them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Parsed<Rule>>,
    /// Rules for effects that a person must approve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<Parsed<Rule>>,
    /// Rules for effects that are denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Parsed<Rule>>,
}

impl AgentPolicy {
    /// Returns true if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty()
    }
}

/// The settings for correcting answers that do not match the output schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRepair {
    /// Maximum number of requests for a corrected answer.
    pub max_attempts: u32,
}

/// Limits on the resources of an agent's run. The deployment's limits also apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentBudget {
    /// Maximum number of tokens, including those that programs and delegates use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_total: Option<u64>,
    /// Maximum cost in dollars. Only requests with a known price count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Dollars>,
    /// Maximum number of model requests that programs make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_calls: Option<u32>,
    /// Maximum number of tokens in the model requests that programs make and in the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ai_tokens: Option<u64>,
}

impl AgentBudget {
    /// Returns true if there are no limits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == AgentBudget::default()
    }
}

/// An `[[example]]`: a message to the agent, and the expected result.
///
/// The scene and the expectations are plain data here. Only the code that runs the examples
/// interprets their keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentExample {
    /// The message to the agent.
    pub message: String,
    /// The path of a recording of the model's answers, relative to the folder that contains the
    /// agent's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// The files, state and scripted responses that the agent's programs can access.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub scene: toml::Table,
    /// The expected answer, files and state.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub expect: toml::Table,
}

/// A value that is parsed from a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<T>(pub T);

impl<T: Display> Serialize for Parsed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map(Parsed).map_err(de::Error::custom)
    }
}

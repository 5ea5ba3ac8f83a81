//! Conversations whose agent can change between messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_catalog::ToolRef;
use wattle_machine::{Message, RecallContract};
use wattle_model::Model;
use wattle_runs::agents::{AgentError, AgentSpec};
use wattle_store::Tenant;

use super::agent::Agent;
use super::builder::AgentBuilder;
use super::execute::RunBuilder;
use super::failure::RunFailure;
use super::report::RunReport;
use super::tool::Tool;

/// A conversation: its messages so far, the agent that answers the next message, and the
/// application's additions.
///
/// Added tools, programs, delegates, memory items and context values belong to the conversation and
/// remain when the conversation continues with another agent. An invalid change returns an error
/// and has no effect.
///
/// ```
/// use wattle_agent::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = wattle_agent::model::Cassette::parse(
/// #     "{\"wattle_cassette\":1,\"model\":\"demo\"}\n\
/// #      {\"reply\":\"ToolCall::Response(\\\"Good day.\\\")\"}\n\
/// #      {\"reply\":\"ToolCall::Response(\\\"Arr!\\\")\"}\n",
/// # )?;
/// let mut conversation = Agent::builder(model).prompt("Be polite.").conversation()?;
/// assert_eq!(conversation.execute("Hello").await?.data, "Good day.");
///
/// let pirate = AgentSpec::parse("name = \"pirate\"\nprompt = \"You are a pirate.\"")?;
/// conversation.switch_to_agent(pirate).await?;
/// assert_eq!(conversation.execute("And now?").await?.data, "Arr!");
/// assert_eq!(conversation.messages().len(), 4);
/// # Ok(()) }
/// ```
pub struct Conversation {
    builder: AgentBuilder,
    spec: Arc<AgentSpec>,
    agent: Agent,
    messages: Vec<Message>,
}

impl AgentBuilder {
    /// Starts a conversation with the agent.
    ///
    /// # Errors
    /// If the agent cannot be built.
    pub fn conversation(mut self) -> Result<Conversation, AgentError> {
        // All agents of the conversation share this host.
        self.base.host()?;
        let agent = self.clone().build()?;
        let spec = self.spec.clone().unwrap_or_else(|| AgentSpec::new(agent.name()));
        Ok(Conversation { builder: self, spec: Arc::new(spec), agent, messages: Vec::new() })
    }
}

impl Conversation {
    /// Returns the agent that answers the next message. It includes everything that the application
    /// has added.
    #[must_use]
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Returns the declaration of the current agent as it was loaded, without the application's
    /// additions.
    #[must_use]
    pub fn current_agent(&self) -> &AgentSpec {
        &self.spec
    }

    /// Returns the name of the current model.
    #[must_use]
    pub fn current_model(&self) -> &str {
        self.agent.inner.model.name()
    }

    /// Returns the messages so far, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Replaces the messages so far.
    #[must_use]
    pub fn with_messages(self, messages: Vec<Message>) -> Conversation {
        Conversation { messages, ..self }
    }

    /// Sends a message to the current agent and waits for the report of its run. The messages of
    /// the run are added to the conversation, unless the run failed.
    ///
    /// # Errors
    /// If the run did not complete.
    pub async fn execute(
        &mut self,
        input: impl Into<String>,
    ) -> Result<RunReport<String>, RunFailure> {
        let outcome = self.prepare(input).await;
        match &outcome {
            Ok(report) => self.add(report),
            Err(failure) => self.add(failure.report()),
        }
        outcome
    }

    /// Prepares a run of the current agent with the messages so far, so that it can be streamed,
    /// cancelled or driven step by step. Pass its report to [`add`](Conversation::add).
    pub fn prepare(&self, input: impl Into<String>) -> RunBuilder<String> {
        self.agent.execute(input).history(self.messages.clone())
    }

    /// Adds the messages of a run to the conversation.
    pub fn add<T>(&mut self, report: &RunReport<T>) {
        self.messages.extend(report.messages.iter().cloned());
    }

    /// Finds an agent and returns its declaration. The conversation does not change. `source` is a
    /// reference or a declaration. A reference is passed to the resolver of the
    /// [`agents`](AgentBuilder::agents) first, with the tenant of the agent's store, and then
    /// compared with names and titles.
    ///
    /// # Errors
    /// If there is no such agent, or one of its traits does not exist.
    pub async fn load_agent(
        &self,
        source: impl Into<AgentSource>,
    ) -> Result<Arc<AgentSpec>, AgentError> {
        let agents = &self.builder.base.agents;
        match source.into() {
            AgentSource::Reference(reference) => {
                // Without a store, there are no tenants.
                let store = self.builder.base.store.as_ref();
                let tenant = store.map_or_else(Tenant::default, |store| store.tenant().clone());
                agents.load(&tenant, &reference).await.map_err(AgentError::Unknown)
            }
            AgentSource::Spec(spec) => agents.complete(&spec).map(Arc::new),
        }
    }

    /// Continues the conversation with another agent, which sees the messages so far. If that agent
    /// names no model, the current model is kept. Returns the new agent's declaration.
    ///
    /// # Errors
    /// If there is no such agent, or it cannot be built.
    pub async fn switch_to_agent(
        &mut self,
        source: impl Into<AgentSource>,
    ) -> Result<Arc<AgentSpec>, AgentError> {
        let spec = self.load_agent(source).await?;
        self.change(|builder| builder.spec(spec.as_ref().clone()))?;
        self.spec = Arc::clone(&spec);
        Ok(spec)
    }

    /// Continues the conversation with another model. `name` is the name of a model, or a reference
    /// to a model class, such as `class:fast`.
    ///
    /// # Errors
    /// If the builder has no [`models`](AgentBuilder::models), or the model cannot be used.
    pub fn switch_to_model(&mut self, name: &str) -> Result<(), AgentError> {
        let Some(models) = self.builder.base.models.clone() else {
            let why = format!("`{name}` cannot be used: the agent was built without `models`");
            return Err(AgentError::Model(why));
        };
        let model: Arc<dyn Model> = models.open(name).map_err(AgentError::Model)?;
        self.change(|mut builder| {
            builder.base.model = Ok(model);
            // The declared model is removed, because it would be opened again and used instead.
            builder.spec = builder.spec.map(|spec| AgentSpec { model: None, ..spec });
            builder
        })
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// If the tool is invalid, or its name is taken.
    pub fn add_tool(&mut self, tool: Tool) -> Result<(), AgentError> {
        self.change(|builder| builder.tool(tool))
    }

    /// Adds catalog programs.
    ///
    /// # Errors
    /// If there is no such program, or its name is taken.
    pub fn add_program(&mut self, program: ToolRef) -> Result<(), AgentError> {
        self.change(|builder| builder.program(program))
    }

    /// Adds another agent to which the current one may delegate, through the program `ask_NAME`.
    ///
    /// # Errors
    /// If the name is invalid or taken.
    pub fn add_delegate<U>(
        &mut self,
        name: impl Into<String>,
        agent: Agent<U>,
    ) -> Result<(), AgentError> {
        let name = name.into();
        self.change(|builder| builder.delegate(name, agent))
    }

    /// Adds a memory item to the prompt.
    ///
    /// # Errors
    /// If the agent cannot be built.
    pub fn add_memory(&mut self, item: impl Into<String>) -> Result<(), AgentError> {
        let item = item.into();
        self.change(|builder| builder.memory(item))
    }

    /// Sets how items are recalled from memory, in place of the contract that the agent declares.
    ///
    /// # Errors
    /// If the contract's program does not exist.
    pub fn set_memory_contract(&mut self, contract: RecallContract) -> Result<(), AgentError> {
        self.change(|builder| builder.memory_contract(contract))
    }

    /// Adds or replaces context values for tools, traits and memory. No model sees them.
    ///
    /// # Errors
    /// If a string in the agent's declaration refers to a missing value.
    pub fn update_context(&mut self, values: BTreeMap<String, String>) -> Result<(), AgentError> {
        self.change(|builder| builder.context(values))
    }

    /// Applies a change to the configuration if an agent can be built from the changed
    /// configuration.
    fn change(
        &mut self,
        change: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Result<(), AgentError> {
        let changed = change(self.builder.clone());
        self.agent = changed.clone().build()?;
        self.builder = changed;
        Ok(())
    }
}

/// The agent with which a conversation continues: a reference, such as a name, or a declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentSource {
    /// A reference, such as `assistant`, `The assistant` or `custom:support`.
    Reference(String),
    /// A declaration.
    Spec(Box<AgentSpec>),
}

impl From<&str> for AgentSource {
    fn from(reference: &str) -> AgentSource {
        AgentSource::Reference(reference.to_owned())
    }
}

impl From<String> for AgentSource {
    fn from(reference: String) -> AgentSource {
        AgentSource::Reference(reference)
    }
}

impl From<AgentSpec> for AgentSource {
    fn from(spec: AgentSpec) -> AgentSource {
        AgentSource::Spec(Box::new(spec))
    }
}

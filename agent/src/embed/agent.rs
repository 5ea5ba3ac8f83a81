//! Agents that are declared in code.

use std::path::PathBuf;
use std::sync::Arc;

use wattle_capability::files::Files;
use wattle_capability::policy::{Approver, Policy};
use wattle_model::{IntoModel, Model};
use wattle_runs::service::RunService;
use wattle_runs::{Host, ModelInference, Settings};
use wattle_store::TenantStore;
use wattle_store::journal::new_id;
use wattle_store::ledger::Signer;

use super::assemble::AgentRuns;
use super::builder::AgentBuilder;
use super::event::{Handler, Subscribers, Subscription};
use super::execute::{RunBuilder, Start};
use super::middleware::Middleware;
use super::report::RunReport;
use super::stream::RunStream;
use super::team::Team;
use super::tool::ToolSet;
use crate::wiring::Resources;

/// A function that returns the files of a run.
pub(super) type NewFiles = dyn Fn() -> Arc<Files> + Send + Sync;

/// A function that changes a run's [`Resources`].
pub(super) type ChangeResources = dyn Fn(Resources) -> Resources + Send + Sync;

/// The folder for an agent's traces, with the key that seals them.
#[derive(Clone)]
pub(super) struct TraceFolder {
    /// The folder that contains one subfolder per run.
    pub(super) folder: PathBuf,
    /// The key that seals the traces.
    pub(super) signer: Option<Arc<Signer>>,
}

/// An agent: a model with a prompt, tools and everything else that its runs share.
///
/// An agent is configuration only. It is cheap to clone, and each call to
/// [`execute`](Agent::execute) has its own state. `T` is the type of the answers: text, unless the
/// agent has an [`output`](AgentBuilder::output).
///
/// ```
/// use wattle_agent::{Agent, model::Cassette};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = Cassette::parse(
///     "{\"wattle_cassette\":1,\"model\":\"demo\"}\n\
///      {\"reply\":\"ToolCall::Response(\\\"four\\\")\"}\n",
/// )?;
/// let agent = Agent::builder(model).prompt("Be brief.").build()?;
/// let report = agent.execute("two and two?").await?;
/// assert_eq!((report.data.as_str(), report.model_calls.len()), ("four", 1));
/// # Ok(()) }
/// ```
pub struct Agent<T = String> {
    pub(super) inner: Arc<Inner>,
    pub(super) runs: Arc<AgentRuns>,
    /// The service that drives the agent's runs.
    pub(super) service: RunService,
    pub(super) read: ReadData<T>,
}

/// A function that extracts the typed answer from the report of a completed run.
pub(super) type ReadData<T> = fn(&RunReport) -> Result<T, String>;

/// The configuration of an agent, shared by its clones.
pub(super) struct Inner {
    pub(super) name: String,
    pub(super) fingerprint: String,
    pub(super) host: Host,
    pub(super) model: Arc<dyn Model>,
    pub(super) settings: Settings,
    /// The rules for the agent's programs.
    pub(super) policy: Policy,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) inference: ModelInference,
    pub(super) store: Option<TenantStore>,
    pub(super) trace: Option<TraceFolder>,
    pub(super) files: Arc<NewFiles>,
    pub(super) access: Vec<Arc<ChangeResources>>,
    pub(super) tools: ToolSet,
    /// The delegates of the agent.
    pub(super) team: Team,
    pub(super) middleware: Vec<Arc<dyn Middleware>>,
    pub(super) handlers: Vec<Arc<dyn Handler>>,
    pub(super) subscribers: Arc<Subscribers>,
}

impl Agent {
    /// Creates a builder for an agent that uses `model`: a [`Model`], or the name of one, such as
    /// `openai:gpt-5`. A name begins with a [preset](wattle_model::presets), whose key is in the
    /// environment. If the model cannot be used, [`build`](AgentBuilder::build) fails.
    ///
    /// ```no_run
    /// # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
    /// use wattle_agent::Agent;
    ///
    /// let agent = Agent::builder("openai:gpt-5").prompt("Answer in one sentence.").build()?;
    /// println!("{}", agent.execute("What is a wattle?").await?.data);
    /// # Ok(()) }
    /// ```
    pub fn builder(model: impl IntoModel) -> AgentBuilder {
        AgentBuilder::new(model.into_model().map_err(|error| error.to_string()))
    }
}

impl<T> Agent<T> {
    /// Returns the agent's name. An agent that was built without a name is named after its
    /// [`fingerprint`](Agent::fingerprint).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the fingerprint of the agent's model, prompt, tools and output. Agents with the same
    /// configuration have the same fingerprint, in every process.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.inner.fingerprint
    }

    /// Returns the host with the programs that the agent is offered, including those of its tools
    /// and delegates.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.inner.host
    }

    /// Adds a handler for the events of all runs of this agent and its clones. The handler is
    /// called after the handlers that the agent was built with. It is removed when the subscription
    /// is dropped.
    pub fn subscribe(&self, handler: impl Handler + 'static) -> Subscription {
        self.inner.subscribers.add(Arc::new(handler))
    }
}

impl<T: Send + 'static> Agent<T> {
    /// Prepares a run. The run starts when the returned value is awaited.
    pub fn execute(&self, input: impl Into<String>) -> RunBuilder<T> {
        RunBuilder::new(self, new_id(), Start::New { message: input.into() })
    }

    /// Prepares to resume a run of this agent that is waiting for approvals, or whose process
    /// ended. The run continues when the returned value is awaited. The report contains only the
    /// [model calls](super::ModelCall) since the run was resumed.
    ///
    /// The agent must have the same name as when the run started, so give an explicit name to an
    /// agent whose runs may be resumed.
    pub fn resume(&self, run_id: impl Into<String>) -> RunBuilder<T> {
        RunBuilder::new(self, run_id.into(), Start::Resume { answers: Vec::new() })
    }

    /// Starts a run and returns a stream of its events and answers. Each answer arrives in pieces.
    /// This method must be called within a tokio runtime.
    pub fn stream(&self, input: impl Into<String>) -> RunStream<T> {
        self.execute(input).stream()
    }
}

impl<T> Clone for Agent<T> {
    fn clone(&self) -> Self {
        Agent {
            inner: Arc::clone(&self.inner),
            runs: Arc::clone(&self.runs),
            service: self.service.clone(),
            read: self.read,
        }
    }
}

impl<T> std::fmt::Debug for Agent<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("name", &self.name()).finish_non_exhaustive()
    }
}

//! Agents, their runs, and the events of the runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use wattle_agent::host::capability::policy::{Answer, Approver};
use wattle_agent::host::catalog::ToolRef;
use wattle_agent::host::create_folder;
use wattle_agent::host::journal::Approval;
use wattle_agent::host::machine::{self, Message};
use wattle_agent::model::{Cassette, EndpointSettings, Model, RemoteModel, Timeouts, resolve};
use wattle_agent::{
    AgentBuilder, Cancel, Host, RunBuilder, RunFailure, RunReport, RunStream, Settings, Store,
    StreamItem, Tenant,
};

use crate::process::{PerProcess, engine};
use crate::{Error, GrantSettings, Grants, Scope};

/// The file in an agent's folder that contains its runs.
const STORE_FILE: &str = "wattle.db";

/// The settings of an agent, as the application writes them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSettings {
    /// The agent's name, which identifies its runs in the store. It must start with a lowercase
    /// letter and may contain lowercase letters, digits, `_`, `-` and `.`. By default, it is made of
    /// a hash of the settings.
    pub name: Option<String>,
    /// The model.
    pub model: ModelSettings,
    /// The role and the rules at the beginning of the prompt.
    pub prompt: Option<String>,
    /// The JSON Schema of the answers. Without it, an answer is text.
    pub output: Option<Json>,
    /// The names or patterns, such as `file_*`, of the catalog programs that the model is offered.
    /// By default, it is offered all of them.
    pub programs: Vec<String>,
    /// Items that the prompt lists as memory.
    pub memory: Vec<String>,
    /// What programs may use.
    pub grants: GrantSettings,
    /// The folder that keeps the runs, so that they can be resumed. Without it, a run ends with its
    /// process.
    pub store: Option<PathBuf>,
    /// The folder for the traces of the runs.
    pub traces: Option<PathBuf>,
    /// Maximum number of steps of a run, 12 by default.
    pub max_steps: Option<u32>,
    /// Maximum duration of a run, in seconds.
    pub timeout: Option<f64>,
    /// Maximum number of tokens that a run uses.
    pub max_tokens: Option<u64>,
    /// Maximum number of tokens of one answer, 4,096 by default.
    pub max_answer_tokens: Option<u32>,
    /// The sampling temperature, from 0 to 2.
    pub temperature: Option<f32>,
}

/// The model of an agent: the name of a model and its endpoint, or a recording.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// The model's name, such as `openai:gpt-5`. The part before the colon is a provider, whose key
    /// is in the environment.
    pub name: Option<String>,
    /// The base URL of an endpoint that is compatible with OpenAI.
    pub base_url: Option<String>,
    /// The key for the endpoint.
    pub api_key: Option<String>,
    /// The file of a recording, whose answers replace those of a model.
    pub cassette: Option<PathBuf>,
}

/// An agent. Cheap to clone. Its runs are independent of each other.
#[derive(Clone)]
pub struct Agent(Arc<Parts>);

struct Parts {
    settings: AgentSettings,
    scope: Scope,
    grants: Grants,
    built: PerProcess<Result<Built, Error>>,
}

/// The agent as one process built it.
struct Built {
    agent: TypedAgent,
    store: Option<Store>,
}

/// An agent by the type of its answers.
enum TypedAgent {
    Text(wattle_agent::Agent<String>),
    Value(wattle_agent::Agent<Json>),
}

/// The settings of one run of an agent.
#[derive(Clone, Default)]
pub struct AgentRunOptions {
    /// The messages of the conversation before this run, as a report lists them.
    pub history: Vec<Json>,
    /// A label for the run and its events.
    pub session: Option<String>,
    /// Data for the tools of the run. No model sees it.
    pub context: Json,
    /// The approver of effects that a rule asks about.
    pub approver: Option<Arc<dyn Approver>>,
    /// The handle that cancels the run.
    pub cancel: Cancel,
}

impl Agent {
    /// Creates an agent. Programs may call the programs and the tools of the scope.
    ///
    /// # Errors
    /// If a setting is invalid, or the model cannot be used.
    pub fn new(settings: AgentSettings, scope: Scope) -> Result<Agent, Error> {
        let grants = Grants::new(settings.grants.clone())?;
        let parts = Parts { settings, scope, grants, built: PerProcess::new() };
        parts.built()?;
        Ok(Agent(Arc::new(parts)))
    }

    /// Returns the agent's name.
    ///
    /// # Errors
    /// If a forked process cannot build the agent.
    pub fn name(&self) -> Result<&str, Error> {
        Ok(match &self.0.built()?.agent {
            TypedAgent::Text(agent) => agent.name(),
            TypedAgent::Value(agent) => agent.name(),
        })
    }

    /// Starts a run.
    ///
    /// # Errors
    /// If the history is invalid.
    pub fn start<V>(
        &self,
        message: &str,
        options: AgentRunOptions,
        value: Arc<V>,
    ) -> Result<AgentRun, Error>
    where
        V: Send + Sync + 'static,
    {
        match &self.0.built()?.agent {
            TypedAgent::Text(agent) => begin(agent.execute(message), options, value),
            TypedAgent::Value(agent) => begin(agent.execute(message), options, value),
        }
    }

    /// Resumes a run that waits for approvals, or whose process ended. `answers` are the ids of
    /// pending approvals, each with its answer.
    ///
    /// # Errors
    /// If an answer defers the approval again.
    pub fn resume<V>(
        &self,
        run: &str,
        answers: Vec<(String, Answer)>,
        options: AgentRunOptions,
        value: Arc<V>,
    ) -> Result<AgentRun, Error>
    where
        V: Send + Sync + 'static,
    {
        let answers: Vec<(String, Approval)> =
            answers.into_iter().map(approval).collect::<Result<_, _>>()?;
        match &self.0.built()?.agent {
            TypedAgent::Text(agent) => begin(answered(agent.resume(run), answers), options, value),
            TypedAgent::Value(agent) => begin(answered(agent.resume(run), answers), options, value),
        }
    }

    /// Closes the agent's store: releases its locks, so that another process can resume its runs at
    /// once.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn close(&self) -> Result<(), Error> {
        match self.0.built.existing() {
            Some(Ok(Built { store: Some(store), .. })) => store.close().await.map_err(Error::host),
            _ => Ok(()),
        }
    }
}

fn approval((call, answer): (String, Answer)) -> Result<(String, Approval), Error> {
    let approval = match answer {
        Answer::Yes => Approval::Once,
        Answer::Always => Approval::Session,
        Answer::No(reason) => Approval::Denied(reason),
        Answer::Later => return Err(Error::settings("a resumed run needs an answer, not `later`")),
    };
    Ok((call, approval))
}

fn answered<T: Send + 'static>(
    run: RunBuilder<T>,
    answers: Vec<(String, Approval)>,
) -> RunBuilder<T> {
    answers.into_iter().fold(run, |run, (call, approval)| run.answer(call, approval))
}

fn begin<T, V>(
    run: RunBuilder<T>,
    options: AgentRunOptions,
    value: Arc<V>,
) -> Result<AgentRun, Error>
where
    T: Serialize + Send + 'static,
    V: Send + Sync + 'static,
    AnyStream: From<RunStream<T>>,
{
    let AgentRunOptions { history, session, context, approver, cancel } = options;
    let history: Vec<Message> = history
        .into_iter()
        .map(serde_json::from_value)
        .collect::<Result<_, _>>()
        .map_err(|why| Error::settings(format!("the history is invalid: {why}")))?;
    let mut run = run.history(history).context(context).cancel(cancel.clone()).value(value);
    if let Some(session) = session {
        run = run.session_id(session);
    }
    if let Some(approver) = approver {
        run = run.approver(approver);
    }
    let _in_runtime = engine()?.runtime().enter();
    Ok(AgentRun { stream: run.stream().into(), cancel })
}

impl Parts {
    fn built(&self) -> Result<&Built, Error> {
        self.built.get(|| self.build()).as_ref().map_err(Clone::clone)
    }

    fn build(&self) -> Result<Built, Error> {
        let AgentSettings { output, store, .. } = &self.settings;
        let host = self.scope.base()?;
        let store = store.as_deref().map(open_store).transpose()?;
        let builder = self.builder(host, store.as_ref())?;
        let agent = match output {
            Some(schema) => builder.output_schema(schema.clone()).build().map(TypedAgent::Value),
            None => builder.build().map(TypedAgent::Text),
        };
        Ok(Built { agent: agent.map_err(Error::settings)?, store })
    }

    fn builder(&self, host: &Host, store: Option<&Store>) -> Result<AgentBuilder, Error> {
        let AgentSettings { name, prompt, programs, memory, traces, .. } = &self.settings;
        // Opens the grant's folder, so that a mistake is an error now and not in each run.
        self.grants.files()?;
        let (files, resources) = (self.grants.clone(), (self.grants.clone(), host.clone()));
        let mut builder = wattle_agent::Agent::builder(self.model(host)?)
            .host(host.clone())
            .settings(self.run_settings()?)
            .policy(self.grants.policy().clone())
            .files_with(move || files.files_again())
            .access(move |access| resources.0.change(&resources.1, access));
        if let Some(name) = name {
            builder = builder.name(name);
        }
        if let Some(prompt) = prompt {
            builder = builder.prompt(prompt);
        }
        if let Some(store) = store {
            builder = builder.store(store.tenant(&Tenant::default()));
        }
        if let Some(folder) = traces {
            builder = builder.trace(folder, None);
        }
        builder = self.scope.tools().iter().cloned().fold(builder, AgentBuilder::tool);
        builder = programs.iter().map(ToolRef::new).fold(builder, AgentBuilder::program);
        Ok(memory.iter().fold(builder, AgentBuilder::memory))
    }

    fn model(&self, host: &Host) -> Result<Arc<dyn Model>, Error> {
        let ModelSettings { name, base_url, api_key, cassette } = &self.settings.model;
        if let Some(path) = cassette {
            if name.is_some() || base_url.is_some() {
                return Err(Error::settings("set either a model or a cassette, not both"));
            }
            return Ok(Arc::new(Cassette::open(path).map_err(Error::settings)?));
        }
        let settings = EndpointSettings {
            model: name.as_deref(),
            base_url: base_url.as_deref(),
            api_key_env: api_key.is_some().then_some("api_key"),
            ..EndpointSettings::default()
        };
        let variable = |name: &str| match api_key {
            Some(key) => (name == "api_key").then(|| key.clone()),
            None => std::env::var(name).ok(),
        };
        let endpoint = resolve(&settings, variable).map_err(Error::settings)?;
        let model = RemoteModel::new(endpoint, host.egress(), Timeouts::default());
        Ok(Arc::new(model.map_err(Error::settings)?))
    }

    fn run_settings(&self) -> Result<Settings, Error> {
        let AgentSettings { max_steps, timeout, max_tokens, .. } = &self.settings;
        let AgentSettings { max_answer_tokens, temperature, .. } = &self.settings;
        let usual = Settings::default();
        let timeout = timeout.map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|why| Error::settings(format!("timeout: {why}")))
        });
        if let Some(temperature) = temperature.filter(|it| !(0.0..=2.0).contains(it)) {
            return Err(Error::settings(format!("temperature: {temperature} is not from 0 to 2")));
        }
        Ok(Settings {
            machine: machine::Settings {
                max_steps: max_steps.unwrap_or(usual.machine.max_steps),
                max_tokens_total: *max_tokens,
                ..usual.machine
            },
            timeout: timeout.transpose()?,
            max_tokens: max_answer_tokens.unwrap_or(usual.max_tokens),
            temperature: temperature.unwrap_or(usual.temperature),
            ..usual
        })
    }
}

fn open_store(folder: &Path) -> Result<Store, Error> {
    create_folder(folder).map_err(|why| {
        Error::settings(format!("store: failed to create `{}`: {why}", folder.display()))
    })?;
    Store::open(&folder.join(STORE_FILE), Duration::MAX).map_err(Error::settings)
}

/// A run of an agent in progress, with the events that the application has not read.
///
/// The run is cancelled when this value is dropped.
pub struct AgentRun {
    stream: AnyStream,
    cancel: Cancel,
}

/// A stream by the type of its answer.
enum AnyStream {
    Text(RunStream<String>),
    Value(RunStream<Json>),
}

impl From<RunStream<String>> for AnyStream {
    fn from(stream: RunStream<String>) -> AnyStream {
        AnyStream::Text(stream)
    }
}

impl From<RunStream<Json>> for AnyStream {
    fn from(stream: RunStream<Json>) -> AnyStream {
        AnyStream::Value(stream)
    }
}

impl AgentRun {
    /// Returns the run's id.
    #[must_use]
    pub fn id(&self) -> &str {
        match &self.stream {
            AnyStream::Text(stream) => stream.run_id(),
            AnyStream::Value(stream) => stream.run_id(),
        }
    }

    /// Returns the handle that cancels the run.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Waits for the next event and returns it as a JSON object with a `type`: that of a
    /// [`RunEvent`](wattle_agent::RunEvent), such as `call_started`, or `delta`, `thinking` and
    /// `answer` with a `text`, `void` with a `step`, and `error` with a `text`. Returns `None` after
    /// the last event.
    pub async fn next(&mut self) -> Option<Json> {
        let item = match &mut self.stream {
            AnyStream::Text(stream) => stream.next().await,
            AnyStream::Value(stream) => stream.next().await,
        };
        item.map(event)
    }

    /// Waits until the run has ended and returns its report: `text`, `data`, `usage`, `model_calls`
    /// and the rest of a [`RunReport`], and the `messages` that the next run takes as its history.
    /// Unread events are dropped.
    ///
    /// # Errors
    /// If the run does not complete. The error of a parked run has its `pending` approvals in the
    /// report.
    pub async fn result(self) -> Result<Json, Error> {
        match self.stream {
            AnyStream::Text(stream) => ended(stream.result().await),
            AnyStream::Value(stream) => ended(stream.result().await),
        }
    }
}

fn ended<T: Serialize>(result: Result<RunReport<T>, RunFailure>) -> Result<Json, Error> {
    match result {
        Ok(report) => report_json(&report),
        Err(failure) => {
            let mut report = report_json(failure.report())?;
            if let Some(fields) = report.as_object_mut() {
                fields.insert("pending".to_owned(), json!(failure.pending()));
            }
            Err(Error::of_run(&failure, report))
        }
    }
}

fn report_json<T: Serialize>(report: &RunReport<T>) -> Result<Json, Error> {
    let mut json = serde_json::to_value(report).map_err(Error::host)?;
    if let Some(fields) = json.as_object_mut() {
        fields.insert("messages".to_owned(), json!(report.messages));
    }
    Ok(json)
}

fn event(item: StreamItem) -> Json {
    match item {
        StreamItem::Event(event) => json!(event),
        StreamItem::Delta { delta } => json!({"type": "delta", "text": delta}),
        StreamItem::Thinking { thinking } => json!({"type": "thinking", "text": thinking}),
        StreamItem::Answer { answer } => json!({"type": "answer", "text": answer}),
        StreamItem::Void { void } => json!({"type": "void", "step": void}),
        StreamItem::Error { error } => json!({"type": "error", "text": error}),
    }
}

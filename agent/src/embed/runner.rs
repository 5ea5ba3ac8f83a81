//! Runs that an application drives step by step.
//!
//! Such a run waits at two points: before it sends a request to the model, and before it executes
//! calls that the application wants to inspect first. Otherwise, it behaves like any other run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;
use tokio::sync::mpsc;
use wattle_capability::agent::AGENT;
use wattle_catalog::Catalog;
use wattle_machine::{Call, Completion, Event, Execution, Message, Role, Usage};
use wattle_model::FunctionChoice;

use super::agent::{Agent, Inner};
use super::execute::RunTask;
use super::failure::RunFailure;
use super::report::{CallReport, ModelCall, RunReport};

/// A function that receives the text of an answer in pieces, as they arrive.
type OnDelta = dyn Fn(&str) + Send + Sync;

/// The options of one step. By default, a step behaves like a step of any other run.
#[derive(Clone, Default)]
pub struct StepOptions {
    note: Option<String>,
    tool_call: Option<FunctionChoice>,
    returns_calls: bool,
    on_delta: Option<Arc<OnDelta>>,
}

impl StepOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> StepOptions {
        StepOptions::default()
    }

    /// Adds text to this step's request only. It does not become part of the conversation.
    #[must_use]
    pub fn note(self, text: impl Into<String>) -> StepOptions {
        StepOptions { note: Some(text.into()), ..self }
    }

    /// Allows, requires or forbids function calls in this step. The setting has no effect in the
    /// text dialect.
    #[must_use]
    pub fn tool_call(self, choice: FunctionChoice) -> StepOptions {
        StepOptions { tool_call: Some(choice), ..self }
    }

    /// Sets whether the calls in the answer are executed (default: true). If `execute` is false,
    /// the calls are returned, and the next step executes them, unless [`Runner::submit`] supplies
    /// their results.
    #[must_use]
    pub fn execute(self, execute: bool) -> StepOptions {
        StepOptions { returns_calls: !execute, ..self }
    }

    /// Sets a function that receives the pieces of the model's answer as they arrive. The function
    /// must not block.
    #[must_use]
    pub fn on_delta(self, receive: impl Fn(&str) + Send + Sync + 'static) -> StepOptions {
        StepOptions { on_delta: Some(Arc::new(receive)), ..self }
    }
}

/// A call in the model's answer.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct StepCall {
    /// The step and the number of the call within it, such as `2.1`.
    pub id: String,
    /// The program's name, or `wat` for a program that the model wrote.
    pub name: String,
    /// The arguments, keyed by name. A program that the model wrote has the arguments `body` and
    /// `args`. For an unknown program, the value is an array.
    pub arguments: Json,
    /// The origin of the program: its file, `built-in FILE` or `agent NAME`. `None` for a program
    /// that the model wrote, and for an unknown program.
    pub registry_id: Option<String>,
    /// If true, the call delegates to another agent.
    pub is_delegate: bool,
}

/// The result that an application supplies for a call that it ran itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult(Execution);

impl CallResult {
    /// Creates the result of a call that succeeded.
    #[must_use]
    pub fn success(text: impl Into<String>) -> CallResult {
        let results = vec![text.into()];
        CallResult(Execution::Ran(Completion { results, ..Completion::default() }))
    }

    /// Creates the result of a call that failed. The model reads the reason.
    #[must_use]
    pub fn failure(reason: impl Into<String>) -> CallResult {
        CallResult(Execution::Refused { reason: reason.into() })
    }
}

/// The outcome of one step.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct StepReply<T = String> {
    /// The text that the model wrote in addition to its calls, or the model's answer.
    pub text: String,
    /// Tokens and cost of the step's request.
    pub usage: Usage,
    /// The finish reason, as the provider spells it. `None` if the provider reported none.
    pub finish: Option<String>,
    /// The calls that were returned without being executed. Empty unless [`StepOptions::execute`]
    /// is false.
    pub calls: Vec<StepCall>,
    /// The calls that were executed, starting with those that the previous step returned.
    pub executed: Vec<CallReport>,
    /// Number of items that were recalled from memory before the request.
    pub recalled: u32,
    /// The report of the run, if it ended with this step.
    pub report: Option<RunReport<T>>,
}

impl<T> StepReply<T> {
    fn new() -> StepReply<T> {
        StepReply {
            text: String::new(),
            usage: Usage::default(),
            finish: None,
            calls: Vec::new(),
            executed: Vec::new(),
            recalled: 0,
            report: None,
        }
    }

    /// Returns true if the run has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.report.is_some()
    }
}

/// Statistics of a run, over all steps so far.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerStats {
    /// The run's id.
    pub id: String,
    /// The agent's name.
    pub name: String,
    /// Number of tokens used in all steps so far.
    pub total_tokens: u64,
}

/// A run that advances one step at a time. Dropping it before the end cancels the run.
///
/// ```
/// use wattle_agent::{Agent, StepOptions, model::Cassette};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = Cassette::parse(
///     "{\"wattle_cassette\":1,\"model\":\"demo\"}\n\
///      {\"reply\":\"ToolCall::Catalog(\\\"date_now\\\")\"}\n\
///      {\"reply\":\"ToolCall::Response(\\\"noon\\\")\"}\n",
/// )?;
/// let agent = Agent::builder(model).build()?;
/// let mut runner = agent.runner("What time is it?");
/// let reply = runner.step(StepOptions::new().execute(false)).await?;
/// assert_eq!(reply.calls[0].name, "date_now");
/// runner.submit(vec![wattle_agent::CallResult::success("12:00")])?;
/// let reply = runner.step(StepOptions::new()).await?;
/// assert_eq!(reply.report.map(|report| report.text).as_deref(), Some("noon"));
/// # Ok(()) }
/// ```
pub struct Runner<T = String> {
    agent: Arc<Inner>,
    task: RunTask<T>,
    channels: RunnerChannels,
    /// If true, the run is paused before a request to the model.
    is_ready: bool,
    /// Number of calls that have not been executed yet.
    pending: usize,
    /// Number of model calls whose usage has been counted.
    counted: u32,
    total: Usage,
    is_done: bool,
}

/// The reason why a runner did not perform a step.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The run has ended.
    #[error("the run has ended; begin another one")]
    Ended,
    /// The number of submitted results differs from the number of pending calls.
    #[error("{given} results for {pending} calls that wait")]
    Results {
        /// Number of submitted results.
        given: usize,
        /// Number of pending calls.
        pending: usize,
    },
    /// The run failed, was cancelled, or is waiting for a person.
    #[error(transparent)]
    Failed(#[from] Box<RunFailure>),
}

/// A command that the application sends to the run.
enum Command {
    Ask(StepOptions),
    Execute,
    Results(Vec<CallResult>),
}

/// A point where the run waits for the application.
enum Pause {
    BeforeAsk(Progress),
    BeforeCalls(Progress, Vec<StepCall>),
}

/// The progress of a run since its last pause: the latest model call, the model's text and the
/// number of items that were recalled from memory.
#[derive(Default)]
struct Progress {
    model_call: Option<ModelCall>,
    text: String,
    recalled: u32,
}

/// The run's side of the channels that connect it to its runner.
pub(super) struct Gate {
    agent: Arc<Inner>,
    commands: tokio::sync::Mutex<mpsc::UnboundedReceiver<Command>>,
    pauses: mpsc::UnboundedSender<Pause>,
    options: Mutex<StepOptions>,
    progress: Mutex<Progress>,
}

fn lock<V>(value: &Mutex<V>) -> MutexGuard<'_, V> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    fn take(&self, model_call: Option<ModelCall>) -> Progress {
        Progress { model_call, ..std::mem::take(&mut *lock(&self.progress)) }
    }

    /// Waits for the application's decision. If the runner was dropped, waits forever, because the
    /// run is being cancelled.
    async fn command(&self) -> Command {
        match self.commands.lock().await.recv().await {
            Some(command) => command,
            None => std::future::pending().await,
        }
    }

    /// Waits until the application requests the next step.
    pub(super) async fn before_ask(&self, model_call: Option<ModelCall>) {
        _ = self.pauses.send(Pause::BeforeAsk(self.take(model_call)));
        loop {
            if let Command::Ask(options) = self.command().await {
                *lock(&self.options) = options;
                return;
            }
        }
    }

    /// Returns the results of calls that the application ran itself, or `None` if the run must
    /// execute the calls.
    pub(super) async fn before_calls(
        &self,
        model_call: Option<ModelCall>,
        step: u32,
        calls: &[Call],
    ) -> Option<Vec<Execution>> {
        if !lock(&self.options).returns_calls {
            return None;
        }
        let catalog = self.agent.host.catalog();
        let shown = (1..).zip(calls).map(|(number, call)| shown(&catalog, step, number, call));
        _ = self.pauses.send(Pause::BeforeCalls(self.take(model_call), shown.collect()));
        match self.command().await {
            Command::Results(results) => Some(results.into_iter().map(|one| one.0).collect()),
            Command::Execute | Command::Ask(_) => None,
        }
    }

    /// Returns the function choice that the application set for the current step, or `None` if it
    /// set none.
    pub(super) fn tool_call(&self) -> Option<FunctionChoice> {
        lock(&self.options).tool_call
    }

    /// Returns a request's messages with the note for this step added, or `None` if there is no
    /// note.
    pub(super) fn messages(&self, messages: &[Message]) -> Option<Vec<Message>> {
        let note = lock(&self.options).note.clone()?;
        let mut messages = messages.to_vec();
        match messages.last_mut() {
            // The last message has the user's role, and chat templates require the roles to
            // alternate.
            Some(last) if last.role == Role::User => {
                last.content = format!("{}\n\n{note}", last.content).into()
            }
            _ => messages.push(Message::user(note)),
        }
        Some(messages)
    }

    /// Passes each piece of an answer to the application's function. Records the model's text and
    /// the number of recalled items from other events.
    pub(super) fn event(&self, event: &Event) {
        let mut progress = lock(&self.progress);
        match event {
            Event::Delta { text, .. } => {
                drop(progress);
                let receive = lock(&self.options).on_delta.clone();
                if let Some(receive) = receive {
                    receive(text);
                }
            }
            Event::Thinking { content, .. } => progress.text.clone_from(content),
            Event::Recalled { items, .. } => progress.recalled = *items,
            _ => {}
        }
    }
}

/// Describes a call for the application.
fn shown(catalog: &Catalog, step: u32, number: usize, call: &Call) -> StepCall {
    let entry = catalog.get(call.label()).filter(|_| matches!(call, Call::Catalog { .. }));
    let uses_agents = |entry: &wattle_catalog::Entry| {
        entry.meta().uses.iter().flatten().any(|of| *of == AGENT.name)
    };
    StepCall {
        id: format!("{step}.{number}"),
        name: call.label().to_owned(),
        arguments: wattle_runs::trace::arguments(catalog, call),
        registry_id: entry.map(|entry| entry.origin().to_string()),
        is_delegate: entry.is_some_and(|entry| uses_agents(entry)),
    }
}

impl<T: Send + 'static> Agent<T> {
    /// Starts a run that the application drives step by step. This method must be called within a
    /// tokio runtime.
    pub fn runner(&self, input: impl Into<String>) -> Runner<T> {
        self.execute(input).runner()
    }
}

/// The application's side of the channels that connect a run to its runner.
pub(super) struct RunnerChannels {
    commands: mpsc::UnboundedSender<Command>,
    pauses: mpsc::UnboundedReceiver<Pause>,
}

/// Creates the channels that connect a run to its runner, and returns both sides.
pub(super) fn gate(agent: &Arc<Inner>) -> (Arc<Gate>, RunnerChannels) {
    let (commands, to_run) = mpsc::unbounded_channel();
    let (from_run, pauses) = mpsc::unbounded_channel();
    let gate = Gate {
        agent: Arc::clone(agent),
        commands: tokio::sync::Mutex::new(to_run),
        pauses: from_run,
        options: Mutex::default(),
        progress: Mutex::default(),
    };
    (Arc::new(gate), RunnerChannels { commands, pauses })
}

impl<T> Runner<T> {
    pub(super) fn new(agent: Arc<Inner>, task: RunTask<T>, channels: RunnerChannels) -> Runner<T> {
        Runner {
            agent,
            task,
            channels,
            is_ready: false,
            pending: 0,
            counted: 0,
            total: Usage::default(),
            is_done: false,
        }
    }

    /// Returns the statistics of all steps so far.
    #[must_use]
    pub fn stats(&self) -> RunnerStats {
        RunnerStats {
            id: self.task.run_id().to_owned(),
            name: self.agent.name.clone(),
            total_tokens: self.total.total(),
        }
    }

    /// Submits the results of the calls that the last step returned, in the same order.
    ///
    /// # Errors
    /// If the number of results differs from the number of calls.
    pub fn submit(&mut self, results: Vec<CallResult>) -> Result<(), StepError> {
        if results.len() != self.pending || self.pending == 0 {
            return Err(StepError::Results { given: results.len(), pending: self.pending });
        }
        self.pending = 0;
        _ = self.channels.commands.send(Command::Results(results));
        Ok(())
    }

    /// Sends one request to the model and executes the calls in its answer. Calls that the previous
    /// step returned are executed first.
    ///
    /// # Errors
    /// If the run has ended, fails, or has to wait for a person.
    pub async fn step(&mut self, options: StepOptions) -> Result<StepReply<T>, StepError> {
        if self.is_done {
            return Err(StepError::Ended);
        }
        if std::mem::take(&mut self.pending) > 0 {
            _ = self.channels.commands.send(Command::Execute);
        }
        let mut reply = StepReply::new();
        if !self.is_ready {
            self.wait(&mut reply).await?;
        }
        if self.is_ready {
            self.is_ready = false;
            _ = self.channels.commands.send(Command::Ask(options));
            self.wait(&mut reply).await?;
        }
        Ok(reply)
    }

    /// Waits for the next pause, or for the end of the run.
    async fn wait(&mut self, reply: &mut StepReply<T>) -> Result<(), StepError> {
        let pause = tokio::select! {
            biased;
            Some(pause) = self.channels.pauses.recv() => pause,
            ended = &mut self.task => {
                self.is_done = true;
                let report = ended.map_err(Box::new)?;
                let model_call = report.model_calls.last().cloned();
                let progress = Progress { model_call, text: report.text.clone(), recalled: 0 };
                self.add(reply, progress, true);
                reply.report = Some(report);
                return Ok(());
            }
        };
        match pause {
            Pause::BeforeAsk(progress) => {
                self.is_ready = true;
                self.add(reply, progress, true);
            }
            Pause::BeforeCalls(progress, calls) => {
                self.pending = calls.len();
                self.add(reply, progress, false);
                reply.calls = calls;
            }
        }
        Ok(())
    }

    /// Adds the progress since the last pause to `reply`. `has_run` is true if the model call's
    /// calls have been executed.
    fn add(&mut self, reply: &mut StepReply<T>, progress: Progress, has_run: bool) {
        let Progress { model_call, text, recalled } = progress;
        reply.recalled += recalled;
        if !text.is_empty() {
            reply.text = text;
        }
        let Some(model_call) = model_call else { return };
        if has_run {
            reply.executed.extend(model_call.calls);
        }
        if model_call.index > self.counted {
            self.counted = model_call.index;
            self.total += model_call.usage;
            reply.usage += model_call.usage;
            reply.finish = model_call.finish;
        }
    }
}

//! Execution of an agent's runs by its run service.

use std::any::{Any, TypeId};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use tokio::task::JoinHandle;
use wattle_capability::files::Files;
use wattle_capability::policy::Approver;
use wattle_machine::{Ending, Message, Usage};
use wattle_runs::journal::{Approval, Journal as _, PendingApproval};
use wattle_runs::service::{AnswerError, Outcome, RunService, StartError, pending};
use wattle_runs::{Cancel, ParkedRun, Report};
use wattle_store::journal::RunRequest;
use wattle_store::{Store, StoreError, Tenant};

use super::agent::{Agent, ReadData};
use super::assemble::origin;
use super::event::{Handler, RunEventKind};
use super::failure::RunFailure;
use super::report::{ReportBuilder, ReportStatus, RunReport};
use super::run::AgentRun;
use super::runner::{Gate, Runner, gate};
use super::stream::{CloseOnDrop, RunStream, StreamQueue};

/// The cancellation reason that is recorded if the caller drops a run.
const DROPPED: &str = "nobody waits for the run any more";

/// A run that has not started yet. It starts when it is awaited and then executes in its own task.
/// Dropping the future cancels the run.
#[must_use = "the run begins when this is awaited"]
pub struct RunBuilder<T> {
    agent: Agent<T>,
    id: String,
    start: Start,
    history: Vec<Message>,
    session_id: Option<String>,
    cancel: Cancel,
    files: Option<Arc<Files>>,
    context: Json,
    values: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    approver: Option<Arc<dyn Approver>>,
    handlers: Vec<Arc<dyn Handler>>,
}

impl<T: Send + 'static> RunBuilder<T> {
    pub(super) fn new(agent: &Agent<T>, id: String, start: Start) -> RunBuilder<T> {
        RunBuilder {
            agent: agent.clone(),
            id,
            start,
            history: Vec::new(),
            session_id: None,
            cancel: Cancel::new(),
            files: None,
            context: Json::Null,
            values: Vec::new(),
            approver: None,
            handlers: Vec::new(),
        }
    }

    /// Sets the earlier messages of the conversation, oldest first. A resumed run keeps its own
    /// messages.
    pub fn history(self, messages: Vec<Message>) -> Self {
        RunBuilder { history: messages, ..self }
    }

    /// Answers a pending approval of a resumed run. `call` identifies the
    /// [`pending`](RunFailure::pending) approval.
    pub fn answer(mut self, call: impl Into<String>, approval: Approval) -> Self {
        if let Start::Resume { answers } = &mut self.start {
            answers.push((call.into(), approval));
        }
        self
    }

    /// Labels the run and its events with a session id. This is only a label: no session state is
    /// stored.
    pub fn session_id(self, session_id: impl Into<String>) -> Self {
        RunBuilder { session_id: Some(session_id.into()), ..self }
    }

    /// Sets the handle that cancels the run: a [`Cancel`] or a `CancellationToken`.
    pub fn cancel(self, cancel: impl Into<Cancel>) -> Self {
        RunBuilder { cancel: cancel.into(), ..self }
    }

    /// Sets the files that this run uses instead of the agent's files.
    pub fn files(self, files: Arc<Files>) -> Self {
        RunBuilder { files: Some(files), ..self }
    }

    /// Sets data for the run's tools and middleware, such as the user's id. No model sees it.
    pub fn context(self, context: Json) -> Self {
        RunBuilder { context, ..self }
    }

    /// Sets the run's value of type `V`, which its tools and middleware get from
    /// [`RunState::of`](super::RunState::of).
    pub fn value<V: Any + Send + Sync>(mut self, value: Arc<V>) -> Self {
        self.values.push((TypeId::of::<V>(), value));
        self
    }

    /// Sets the approver of this run, which replaces that of the agent.
    pub fn approver(self, approver: Arc<dyn Approver>) -> Self {
        RunBuilder { approver: Some(approver), ..self }
    }

    /// Adds a handler for the events of this run. It is called after the agent's handlers.
    pub fn on(mut self, handler: impl Handler + 'static) -> Self {
        self.handlers.push(Arc::new(handler));
        self
    }

    /// Starts the run and returns a stream of its events and answers. Each answer arrives in
    /// pieces. This method must be called within a tokio runtime.
    pub fn stream(self) -> RunStream<T> {
        let queue = Arc::new(StreamQueue::default());
        let task = self.start(Some(Arc::clone(&queue)), None);
        RunStream { queue, task }
    }

    /// Starts the run and returns a runner, with which the application drives it step by step. This
    /// method must be called within a tokio runtime.
    pub fn runner(self) -> Runner<T> {
        let agent = Arc::clone(&self.agent.inner);
        let (gate, channels) = gate(&agent);
        Runner::new(agent, self.start(None, Some(gate)), channels)
    }

    fn start(self, stream: Option<Arc<StreamQueue>>, gate: Option<Arc<Gate>>) -> RunTask<T> {
        let Agent { inner, runs, service, read } = self.agent;
        // The run gets a child handle, so that dropping the run does not cancel the caller's
        // handle.
        let cancel = self.cancel.child();
        let (id, context) = (self.id, Arc::new(self.context));
        let ids = (id.clone(), id.clone());
        let mut run = AgentRun::new(&inner, &runs, ids, self.session_id, context, cancel.clone());
        self.values.into_iter().for_each(|(id, value)| run.state.set_any(id, value));
        run.approver = self.approver.or(run.approver);
        run.history = self.history;
        run.files = self.files;
        run.handlers = self.handlers;
        run.stream.clone_from(&stream);
        run.gate = gate;
        let run = Arc::new(run);
        let start = self.start;
        let task = tokio::spawn(async move {
            // Closes the stream after the last event, even if the run panics.
            let _end = stream.map(CloseOnDrop);
            runs.add(&run);
            let outcome = run_in(&service, &run, start).await;
            runs.remove(run.state.run_id());
            finish(&run, outcome).await
        });
        RunTask { id, task, cancel, read }
    }
}

impl<T: Send + 'static> IntoFuture for RunBuilder<T> {
    type Output = Result<RunReport<T>, RunFailure>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move { self.start(None, None).await }.boxed()
    }
}

/// A run in its own task. The run is cancelled when this value is dropped.
pub(super) struct RunTask<T> {
    id: String,
    task: JoinHandle<Finished>,
    cancel: Cancel,
    read: ReadData<T>,
}

impl<T> RunTask<T> {
    pub(super) fn run_id(&self) -> &str {
        &self.id
    }
}

impl<T> Future for RunTask<T> {
    type Output = Result<RunReport<T>, RunFailure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.task.poll_unpin(context).map(|joined| match joined {
            Ok(finished) => finished.into_result(self.read),
            // The run catches its own panics, so this error means that the runtime was shut down.
            Err(stopped) => Err(RunFailure::new(
                ReportBuilder::new((self.id.clone(), self.id.clone()), None, String::new()).finish(
                    &Ending::Failed { message: format!("error: {stopped}") },
                    ("", Usage::default()),
                    Vec::new(),
                ),
            )),
        })
    }
}

impl<T> Drop for RunTask<T> {
    fn drop(&mut self) {
        if !self.task.is_finished() {
            self.cancel.cancel(DROPPED);
        }
    }
}

/// The starting point of a run.
pub(super) enum Start {
    /// The run begins with a message.
    New { message: String },
    /// The run continues from the point where it stopped, with answers to its pending approvals.
    Resume { answers: Vec<(String, Approval)> },
}

/// Starts or resumes a run and waits until it stops. A run without a store is recorded in a store of
/// its own, in memory, which ends with the run.
async fn run_in(service: &RunService, run: &AgentRun, start: Start) -> Result<Outcome, Stopped> {
    let (id, cancel) = (run.state.run_id(), run.state.cancel());
    let handle = match (start, &run.store) {
        (Start::New { message }, store) => {
            run.notify(RunEventKind::RunStarted { input: message.clone() });
            let store = match store {
                Some(store) => store.clone(),
                None => Store::in_memory(Duration::MAX)?.tenant(&Tenant::default()),
            };
            let (id, origin) = (id.to_owned(), origin());
            let request = RunRequest { id, origin, ..RunRequest::new(message) };
            service.start(&store, request, cancel).await?
        }
        (Start::Resume { .. }, None) => return Err(Stopped::NoStore),
        (Start::Resume { answers }, Some(store)) => {
            let record = store.run(id).await?.ok_or(Stopped::Unknown)?;
            if record.start.agent != run.agent.name {
                return Err(Stopped::OtherAgent(record.start.agent));
            }
            run.notify(RunEventKind::RunStarted { input: record.start.message });
            match service.resume(store, id, &answers, false, cancel).await {
                Err(AnswerError::Pending(_)) => {
                    let (run_id, waiting) = (id.to_owned(), pending(store, id).await?.approvals);
                    return Ok(Outcome::Parked(ParkedRun { run_id, waiting, reason: None }));
                }
                resumed => resumed?,
            }
        }
    };
    Ok(handle.outcome().await)
}

async fn finish(run: &AgentRun, outcome: Result<Outcome, Stopped>) -> Finished {
    let failed = |reason: String| Report::failed(run.state.run_id().to_owned(), reason);
    let parked = match outcome {
        Ok(Outcome::Ended(report)) => Err(report),
        Ok(Outcome::Parked(parked)) if run.store.is_some() => Ok(parked),
        Ok(Outcome::Parked(parked)) => Err(Arc::new(failed(format!(
            "no person was available to answer: {}",
            parked.waiting.iter().map(|one| one.question.as_str()).collect::<Vec<_>>().join("; ")
        )))),
        Ok(Outcome::Suspended(reason)) => Err(Arc::new(failed(reason))),
        Err(stopped) => Err(Arc::new(failed(stopped.to_string()))),
    };
    match parked {
        Ok(parked) => {
            let report = run.finish(Err(&parked)).await;
            Finished { report, pending: parked.waiting }
        }
        Err(report) => Finished { report: run.finish(Ok(&report)).await, pending: Vec::new() },
    }
}

/// The reason why a run could not be started or resumed.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error("the agent has no store, so it has no run to resume")]
    NoStore,
    #[error("the store has no such run")]
    Unknown,
    #[error("the run is one of the agent `{0}`; resume it with that agent")]
    OtherAgent(String),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A run that has stopped.
struct Finished {
    report: RunReport,
    /// The pending approvals of a parked run.
    pending: Vec<PendingApproval>,
}

impl Finished {
    fn into_result<T>(self, read: ReadData<T>) -> Result<RunReport<T>, RunFailure> {
        let Finished { mut report, pending, .. } = self;
        match report.status {
            ReportStatus::Completed => match read(&report) {
                Ok(data) => Ok(report.with_data(data)),
                Err(why) => {
                    report.status = ReportStatus::Failed;
                    report.abort_reason = Some(why);
                    Err(RunFailure::new(report))
                }
            },
            ReportStatus::Parked => Err(RunFailure::parked(report, pending)),
            ReportStatus::Failed | ReportStatus::Cancelled => Err(RunFailure::new(report)),
        }
    }
}

//! Execution of an agent's runs.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value as Json, json};
use tokio::task::JoinHandle;
use wattle_capability::files::Files;
use wattle_capability::policy::{Approver, Policy, Preflight};
use wattle_capability::tool::Tools;
use wattle_machine::{Ending, Message, Usage};
use wattle_model::UsageMeter;
use wattle_rt::Grants;
use wattle_runs::journal::{
    Approval, PendingApproval, ResumeError, RunRecord, SharedJournal, Status,
};
use wattle_runs::service::{AnswerError, record_all};
use wattle_runs::{
    Cancel, ParkedRun, Report, RunOutcome, RunParts, RunTree, caught, end, resume, run_journaled,
};
use wattle_store::journal::RunRequest;
use wattle_store::{StoreError, TenantStore, own_session};

use super::agent::{Agent, Inner, ReadData};
use super::children::AgentChildren;
use super::event::{Handler, RunEventKind};
use super::failure::RunFailure;
use super::hooks::{AgentHooks, RunObserver};
use super::middleware::{PANICKED, RunState};
use super::report::{ReportBuilder, ReportStatus, RunReport};
use super::runner::{Gate, Runner, gate};
use super::stream::{CloseOnDrop, RunStream, StreamQueue};
use super::tool::RunTools;
use crate::wiring::Resources;

/// The cancellation reason that is recorded if the caller drops a run.
const DROPPED: &str = "nobody waits for the run any more";

/// A run that has not started yet. It starts when it is awaited and then executes in its own task.
/// Dropping the future cancels the run.
#[must_use = "the run begins when this is awaited"]
pub struct RunBuilder<T> {
    agent: Agent<T>,
    id: String,
    start: Start,
    session_id: Option<String>,
    cancel: Cancel,
    files: Option<Arc<Files>>,
    context: Json,
    handlers: Vec<Arc<dyn Handler>>,
}

impl<T: Send + 'static> RunBuilder<T> {
    pub(super) fn new(agent: &Agent<T>, id: String, start: Start) -> RunBuilder<T> {
        RunBuilder {
            agent: agent.clone(),
            id,
            start,
            session_id: None,
            cancel: Cancel::new(),
            files: None,
            context: Json::Null,
            handlers: Vec::new(),
        }
    }

    /// Sets the earlier messages of the conversation, oldest first. A resumed run keeps its own
    /// messages.
    pub fn history(mut self, messages: Vec<Message>) -> Self {
        if let Start::New { history, .. } = &mut self.start {
            *history = messages;
        }
        self
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
        // The run gets a child handle, so that dropping the run does not cancel the caller's
        // handle.
        let cancel = self.cancel.child();
        let run = Run {
            inner: Arc::clone(&self.agent.inner),
            id: self.id.clone(),
            session_id: self.session_id,
            cancel: cancel.clone(),
            files: self.files.unwrap_or_else(|| (self.agent.inner.files)()),
            context: Arc::new(self.context),
            handlers: self.handlers,
            stream: stream.clone(),
            gate,
            tree: RunTree::default(),
            narrowed: Policy::default(),
            approver: self.agent.inner.approver.clone(),
            store: self.agent.inner.store.clone(),
        };
        let start = self.start;
        let task = tokio::spawn(async move {
            // Closes the stream after the last event, even if the run panics.
            let _end = stream.map(CloseOnDrop);
            run.drive(start).await
        });
        RunTask { id: self.id, task, cancel, read: self.agent.read }
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

/// A run with everything needed to drive it.
pub(super) struct Run {
    pub(super) inner: Arc<Inner>,
    pub(super) id: String,
    pub(super) session_id: Option<String>,
    pub(super) cancel: Cancel,
    pub(super) files: Arc<Files>,
    pub(super) context: Arc<Json>,
    pub(super) handlers: Vec<Arc<dyn Handler>>,
    pub(super) stream: Option<Arc<StreamQueue>>,
    /// The gate at which the run waits for an application that drives it step by step.
    pub(super) gate: Option<Arc<Gate>>,
    pub(super) tree: RunTree,
    /// The combined policy of the agents that delegated to the run's agent.
    pub(super) narrowed: Policy,
    /// The approver, which approves or denies the effects that the policy asks about.
    pub(super) approver: Option<Arc<dyn Approver>>,
    /// The store in which the run is recorded.
    pub(super) store: Option<TenantStore>,
}

/// The starting point of a run.
pub(super) enum Start {
    /// The run begins with a message.
    New { message: String, history: Vec<Message> },
    /// The run continues from the point where it stopped, with answers to its pending approvals.
    Resume { answers: Vec<(String, Approval)> },
}

impl Run {
    /// Drives the run until it stops. The future is boxed because a delegate's run calls this
    /// function recursively.
    pub(super) fn drive(self, start: Start) -> BoxFuture<'static, Finished> {
        async move {
            let inner = &self.inner;
            let ids = (self.id.clone(), self.tree.root(&self.id).to_owned());
            let session_id = self.session_id.clone();
            let report = ReportBuilder::new(ids.clone(), session_id.clone(), inner.name.clone());
            let state = RunState::new(
                ids.clone(),
                session_id.clone(),
                inner.name.clone(),
                (Arc::clone(&self.context), self.cancel.clone()),
            );
            let observer = Arc::new(RunObserver {
                agent: Arc::clone(inner),
                ids,
                session_id,
                handlers: self.handlers.clone(),
                stream: self.stream.clone(),
                report: Mutex::new(report),
                gate: self.gate.clone(),
            });
            let hooks =
                AgentHooks { agent: Arc::clone(inner), state, observer: Arc::clone(&observer) };
            let hooks = Arc::new(hooks);
            let children = AgentChildren::of(&self, &observer);
            // Code passed by the application may panic.
            let outcome = caught(&self.id, self.perform(start, &hooks, &children)).await;
            let outcome = outcome.unwrap_or(Err(Stopped::Panicked));
            children.join().await;
            self.finish(outcome, &observer)
        }
        .boxed()
    }

    /// Creates the folder for the run's trace and returns its path. Returns `None` if the agent's
    /// runs have no traces, or the folder cannot be created.
    fn trace_folder(&self) -> Option<PathBuf> {
        let folder = self.inner.trace.as_ref()?.folder.join(&self.id);
        match std::fs::create_dir_all(&folder) {
            Ok(()) => Some(folder),
            Err(cause) => {
                tracing::warn!(folder = %folder.display(), %cause, "the run has no trace");
                None
            }
        }
    }

    /// Returns the policy for the run's programs.
    pub(super) fn policy(&self) -> Policy {
        self.inner.policy.clone().and(self.narrowed.clone())
    }

    fn grants(&self, hooks: &Arc<AgentHooks>, meter: &UsageMeter) -> Grants {
        let inner = &self.inner;
        let inference = inner.inference.metered(meter.clone());
        let mut access = Resources {
            inference: Some(Arc::new(inference)),
            budget: inner.settings.ai,
            ..Resources::new(&inner.host, Arc::clone(&self.files))
        };
        if let Some(store) = &self.store {
            access.state = Arc::new(store.state(&own_session(&self.id)));
            access.tenant = Arc::new(store.variables());
            access.memory = Arc::new(store.memory(None));
        }
        let access = inner.access.iter().fold(access, |access, change| change(access));
        let grants = if inner.tools.is_empty() {
            access.grants()
        } else {
            access.grants().with(Tools(Arc::new(RunTools(Arc::clone(hooks)))))
        };
        grants.guarded(Arc::new(Preflight::new(self.policy(), self.approver.clone())))
    }

    async fn perform(
        &self,
        start: Start,
        hooks: &Arc<AgentHooks>,
        children: &AgentChildren,
    ) -> Result<RunOutcome, Stopped> {
        let Inner { host, model, settings, trace, .. } = self.inner.as_ref();
        let sink = hooks.observer.as_ref();
        if let Start::New { message, .. } = &start {
            sink.notify(RunEventKind::RunStarted { input: message.clone() });
        }
        let meter = UsageMeter::default();
        let grants = self.grants(hooks, &meter);
        let parts = RunParts {
            settings: settings.clone(),
            meter,
            trace_dir: self.trace_folder(),
            label: self.session_id.clone(),
            signer: trace.as_ref().and_then(|trace| trace.signer.clone()),
            hooks: Some(Arc::<AgentHooks>::clone(hooks)),
            cancel: self.cancel.clone(),
            tree: self.tree.clone(),
            children: Some(Arc::new(children.clone())),
            ..RunParts::new(host.clone(), Arc::clone(model), grants)
        };
        let journal = self.store.clone().map(|store| Arc::new(store) as SharedJournal);
        let outcome = match (start, journal) {
            (Start::New { message, history }, journal) => {
                let parts = RunParts { history, ..parts };
                let request = RunRequest {
                    id: self.id.clone(),
                    origin: json!({ "by": "application" }),
                    ..RunRequest::new(message)
                };
                match journal {
                    None => {
                        let report = wattle_runs::run(parts, &request, sink).await;
                        return Ok(RunOutcome::Done(report));
                    }
                    Some(journal) => run_journaled(parts, &request, sink, &journal).await?,
                }
            }
            (Start::Resume { .. }, None) => return Err(Stopped::NoStore),
            (Start::Resume { answers }, Some(journal)) => {
                let record = journal.run(&self.id).await?.ok_or(Stopped::Unknown)?;
                if record.start.agent != self.inner.name {
                    return Err(Stopped::OtherAgent(record.start.agent));
                }
                sink.notify(RunEventKind::RunStarted { input: record.start.message.clone() });
                self.answer(&record, &answers).await?;
                resume(parts, &self.id, &[], false, sink, &journal).await?
            }
        };
        if let (RunOutcome::Done(report), Some(store)) = (&outcome, &self.store) {
            end(&(Arc::new(store.clone()) as SharedJournal), report, false).await?;
        }
        Ok(outcome)
    }

    /// Records the answers to the pending approvals of the run and its delegates. If answers are
    /// still missing, the run stays parked.
    async fn answer(
        &self,
        record: &RunRecord,
        answers: &[(String, Approval)],
    ) -> Result<(), Stopped> {
        let Some(store) = &self.store else { return Err(Stopped::NoStore) };
        if record.status != Status::Parked && answers.is_empty() {
            return Ok(());
        }
        let pending = record_all(store, &self.id, answers).await?;
        if pending.is_empty() { Ok(()) } else { Err(Stopped::Pending(pending)) }
    }

    fn finish(&self, outcome: Result<RunOutcome, Stopped>, observer: &RunObserver) -> Finished {
        let failed = |message: String| RunOutcome::Done(Report::failed(self.id.clone(), message));
        let outcome = outcome.unwrap_or_else(|stopped| match stopped {
            Stopped::Pending(waiting) => {
                RunOutcome::Parked(ParkedRun { run_id: self.id.clone(), waiting, reason: None })
            }
            other => failed(other.to_string()),
        });
        let (report, ending, pending) = match outcome {
            RunOutcome::Done(Report { ending, usage, artifacts, turns, .. }) => {
                let report = observer.finish(&ending, (self.cancel.reason(), usage), turns);
                (RunReport { artifacts, ..report }, Some(ending), Vec::new())
            }
            RunOutcome::Parked(ParkedRun { waiting, reason, .. }) => {
                let questions = waiting.iter().map(|one| one.question.clone());
                let all: Vec<String> = questions.chain(reason).collect();
                (observer.park(all.join("; ")), None, waiting)
            }
        };
        Finished { report, ending, pending }
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
    #[error("{PANICKED}")]
    Panicked,
    #[error("the run waits for a person")]
    Pending(Vec<PendingApproval>),
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A run that has stopped.
pub(super) struct Finished {
    pub(super) report: RunReport,
    /// The outcome of the run, or `None` if the run is parked.
    pub(super) ending: Option<Ending>,
    /// The pending approvals.
    pub(super) pending: Vec<PendingApproval>,
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

//! A run of an agent, as its process holds it: middleware, handlers, and the report that is built.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use wattle_capability::files::Files;
use wattle_capability::policy::{Approver, Policy, Preflight};
use wattle_machine::{Call, Envelope, Event, Execution, Message, Usage};
use wattle_model::{
    Delta, FunctionChoice, Model, ModelError, ModelReply, ModelRequest, Timeouts, UsageMeter,
    ask_within,
};
use wattle_rt::Grants;
use wattle_runs::{
    Cancel, ChildEnd, ChildError, ChildRequest, HostError, ParkedRun, Perform, Report, RunHooks,
    RunParts,
};
use wattle_store::{TenantStore, own_session};

use super::agent::Inner;
use super::assemble::AgentRuns;
use super::event::{Handler, RunEvent, RunEventKind, deliver};
use super::middleware::{ModelCallRequest, NextCall, NextModelCall, RunState};
use super::report::{Change, ReportBuilder, ReportStatus, RunReport};
use super::runner::Gate;
use super::stream::{StreamItem, StreamQueue};
use crate::wiring::Resources;

/// What a process holds of one run of an agent: what the caller passed for it, and its report so
/// far. As the run's hooks, it applies the middleware, builds the report from the run's events, and
/// passes the events to handlers and to the stream.
pub(super) struct AgentRun {
    pub(super) agent: Arc<Inner>,
    /// The runs that the application waits for, to which child runs are added.
    pub(super) runs: Arc<AgentRuns>,
    pub(super) state: Arc<RunState>,
    /// The earlier messages of the conversation.
    pub(super) history: Vec<Message>,
    /// The files that the caller passed. A child run has those of its parent.
    pub(super) files: Option<Arc<Files>>,
    /// The combined policy of the agents that delegated to the run's agent.
    pub(super) narrowed: Policy,
    /// The approver, which approves or denies the effects that the policy asks about.
    pub(super) approver: Option<Arc<dyn Approver>>,
    /// The store that contains the state and memory of the run's programs.
    pub(super) store: Option<TenantStore>,
    /// The handlers that were added for this run only.
    pub(super) handlers: Vec<Arc<dyn Handler>>,
    pub(super) stream: Option<Arc<StreamQueue>>,
    /// The gate at which the run waits for an application that drives it step by step.
    pub(super) gate: Option<Arc<Gate>>,
    report: Mutex<ReportBuilder>,
    /// The child runs that have not stopped in this process.
    children: TaskTracker,
    /// The name under which the parent run knows the run's agent, and the mark that the run has not
    /// stopped. `None` for a root run.
    above: Option<(String, TaskTrackerToken)>,
}

impl AgentRun {
    /// Creates a run of `agent` with these ids: its own and that of the root run.
    pub(super) fn new(
        agent: &Arc<Inner>,
        runs: &Arc<AgentRuns>,
        ids: (String, String),
        session_id: Option<String>,
        context: Arc<Json>,
        cancel: Cancel,
    ) -> AgentRun {
        let name = agent.name.clone();
        let report = ReportBuilder::new(ids.clone(), session_id.clone(), name.clone());
        AgentRun {
            agent: Arc::clone(agent),
            runs: Arc::clone(runs),
            state: Arc::new(RunState::new(ids, session_id, name, (context, cancel))),
            history: Vec::new(),
            files: None,
            narrowed: Policy::default(),
            approver: agent.approver.clone(),
            store: agent.store.clone(),
            handlers: Vec::new(),
            stream: None,
            gate: None,
            report: Mutex::new(report),
            children: TaskTracker::new(),
            above: None,
        }
    }

    /// Returns the parts of the run. `files` are those of its parent. This calls functions of the
    /// application, which may panic.
    pub(super) fn parts(self: &Arc<Self>, files: Option<&Arc<Files>>) -> RunParts {
        let Inner { host, model, settings, trace, .. } = self.agent.as_ref();
        let files = files.or(self.files.as_ref()).cloned();
        let meter = UsageMeter::default();
        let grants = self.grants(files.unwrap_or_else(|| (self.agent.files)()), &meter);
        RunParts {
            settings: settings.clone(),
            meter,
            trace_dir: self.trace_folder(),
            label: self.state.session_id.clone(),
            signer: trace.as_ref().and_then(|trace| trace.signer.clone()),
            hooks: Some(Arc::<AgentRun>::clone(self)),
            history: self.history.clone(),
            ..RunParts::new(host.clone(), Arc::clone(model), grants)
        }
    }

    fn grants(self: &Arc<Self>, files: Arc<Files>, meter: &UsageMeter) -> Grants {
        let agent = &self.agent;
        let mut access = Resources {
            inference: Some(Arc::new(agent.inference.metered(meter.clone()))),
            budget: agent.settings.ai,
            ..Resources::new(&agent.host, files)
        };
        if let Some(store) = &self.store {
            access.state = Arc::new(store.state(&own_session(self.state.run_id())));
            access.tenant = Arc::new(store.variables());
            access.memory = Arc::new(store.memory(None));
        }
        if !agent.tools.is_empty() {
            access.tools = Some(agent.tools.of_run(Arc::clone(&self.state)));
        }
        let access = agent.access.iter().fold(access, |access, change| change(access));
        access.grants().guarded(Arc::new(Preflight::new(self.policy(), self.approver.clone())))
    }

    /// Returns the policy for the run's programs.
    fn policy(&self) -> Policy {
        self.agent.policy.clone().and(self.narrowed.clone())
    }

    /// Creates the folder for the run's trace and returns its path. Returns `None` if the agent's
    /// runs have no traces, or the folder cannot be created.
    fn trace_folder(&self) -> Option<PathBuf> {
        let folder = self.agent.trace.as_ref()?.folder.join(self.state.run_id());
        match wattle_store::create_folder(&folder) {
            Ok(()) => Some(folder),
            Err(cause) => {
                tracing::warn!(folder = %folder.display(), %cause, "the run has no trace");
                None
            }
        }
    }

    /// Passes an event to the agent's handlers, the subscribed handlers, the handlers of this run,
    /// and then the stream.
    pub(super) fn notify(&self, kind: RunEventKind) {
        let event = RunEvent {
            run_id: self.state.run_id.clone(),
            root_run_id: self.state.root_run_id.clone(),
            session_id: self.state.session_id.clone(),
            agent: self.agent.name.clone(),
            ts: wattle_store::now_ms(),
            kind,
        };
        let subscribed = self.agent.subscribers.list();
        for handler in self.agent.handlers.iter().chain(&subscribed).chain(&self.handlers) {
            deliver(handler.as_ref(), &event);
        }
        if let Some(stream) = &self.stream {
            stream.event(event);
        }
    }

    /// Finishes the report of a run that has stopped. First waits until its child runs have
    /// stopped, too.
    pub(super) async fn finish(&self, outcome: Result<&Report, &ParkedRun>) -> RunReport {
        self.children.close();
        self.children.wait().await;
        let report = match outcome {
            Ok(Report { ending, usage, artifacts, turns, .. }) => {
                let reason = self.state.cancel.reason();
                let report = self.report().finish(ending, (reason, *usage), turns.clone());
                RunReport { artifacts: artifacts.clone(), ..report }
            }
            Err(ParkedRun { waiting, reason, .. }) => {
                let questions = waiting.iter().map(|one| &one.question).chain(reason);
                let all: Vec<&str> = questions.map(String::as_str).collect();
                self.report().park(all.join("; "))
            }
        };
        self.notify(RunEventKind::RunEnded { status: report.status, text: report.text.clone() });
        if let Some(stream) = self.stream.as_ref().filter(|_| report.status == ReportStatus::Failed)
        {
            stream.item(StreamItem::Error { error: report.text.clone() });
        }
        report
    }

    fn gate(&self) -> Option<&Gate> {
        self.gate.as_deref()
    }

    fn report(&self) -> MutexGuard<'_, ReportBuilder> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunHooks for AgentRun {
    fn event(&self, envelope: &Envelope) {
        if let Some(gate) = &self.gate {
            gate.event(&envelope.event);
        }
        let item = match &envelope.event {
            Event::Delta { text, .. } => Some(StreamItem::Delta { delta: text.clone() }),
            Event::ThoughtDelta { text, .. } => {
                Some(StreamItem::Thinking { thinking: text.clone() })
            }
            Event::AnswerDelta { text, .. } => Some(StreamItem::Answer { answer: text.clone() }),
            Event::AnswerVoid { step } => Some(StreamItem::Void { void: *step }),
            _ => None,
        };
        if let (Some(stream), Some(item)) = (&self.stream, item) {
            stream.item(item);
        }
        let changes = self.report().event(&envelope.event);
        for change in changes {
            self.notify(match change {
                Change::CallStarted { model_call, name, args } => {
                    RunEventKind::CallStarted { model_call, name, args }
                }
                Change::CallEnded { model_call, name, success, output, duration_ms } => {
                    RunEventKind::CallEnded { model_call, name, success, output, duration_ms }
                }
                Change::Artifact { name, bytes } => RunEventKind::Artifact { name, bytes },
                Change::Retry { attempt, error } => RunEventKind::Retry { attempt, error },
            });
        }
    }

    fn child_started(&self, child: &ChildRequest) {
        // If there is no such agent, the assembler refuses the child run.
        let Ok(agent) = self.agent.team.agent(&child.agent) else { return };
        self.notify(RunEventKind::ChildStarted {
            child: child.id.clone(),
            name: child.agent.clone(),
            message: child.message.clone(),
        });
        let ids = (child.id.clone(), self.state.root_run_id.clone());
        let (session_id, context) = (self.state.session_id.clone(), self.state.context.clone());
        let run = AgentRun::new(&agent, &self.runs, ids, session_id, context, child.cancel.clone());
        let approver = agent.approver.clone().or_else(|| self.approver.clone());
        let (narrowed, store) = (self.policy(), self.store.clone());
        let above = Some((child.agent.clone(), self.children.token()));
        let run = Arc::new(AgentRun { narrowed, approver, store, above, ..run });
        run.notify(RunEventKind::RunStarted { input: child.message.clone() });
        self.runs.add(&run);
    }

    fn child_ended<'a>(
        &'a self,
        id: &'a str,
        end: &'a Result<ChildEnd, ChildError>,
    ) -> BoxFuture<'a, ()> {
        async move {
            let Some(child) = self.runs.remove(id) else { return };
            let report = match end {
                Ok(ChildEnd::Ended(report)) => child.finish(Ok(report)).await,
                Ok(ChildEnd::Waits(waiting)) => {
                    let (run_id, waiting) = (id.to_owned(), waiting.clone());
                    child.finish(Err(&ParkedRun { run_id, waiting, reason: None })).await
                }
                Err(why) => child.finish(Ok(&Report::failed(id.to_owned(), why.to_string()))).await,
            };
            let status = report.status;
            self.report().child(report);
            let Some((name, _)) = &child.above else { return };
            self.notify(RunEventKind::ChildEnded {
                child: id.to_owned(),
                name: name.clone(),
                status,
            });
        }
        .boxed()
    }

    fn before_ask(&self) -> BoxFuture<'_, ()> {
        async move {
            if let Some(gate) = self.gate() {
                let model_call = self.report().last_model_call();
                gate.before_ask(model_call).await;
            }
        }
        .boxed()
    }

    fn tool_call(&self) -> Option<FunctionChoice> {
        self.gate()?.tool_call()
    }

    fn messages(&self, messages: &[Message]) -> Option<Vec<Message>> {
        self.gate()?.messages(messages)
    }

    fn request_started(&self) {
        let model_call = self.report().model_call_started();
        self.notify(RunEventKind::ModelCallStarted { model_call });
    }

    fn ask<'a>(
        &'a self,
        model: &'a dyn Model,
        timeouts: &'a Timeouts,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        if self.agent.middleware.is_empty() {
            return ask_within(model, timeouts, request, on_delta).boxed();
        }
        async move {
            let (on_delta, is_asked) = (&Mutex::new(on_delta), &AtomicBool::new(false));
            let ask = move |request: ModelCallRequest| {
                async move {
                    let relay = &mut |delta: Delta<'_>| {
                        (on_delta.lock().unwrap_or_else(PoisonError::into_inner))(delta);
                    };
                    // If the middleware repeats the request, the text that was passed on so far is
                    // discarded.
                    if is_asked.swap(true, Ordering::Relaxed) {
                        let reason = "the application repeats the request";
                        relay(Delta::Retry { after: Duration::ZERO, reason });
                    }
                    ask_within(model, timeouts, request.as_request(), relay).await
                }
                .boxed()
            };
            let rest = self.agent.middleware.as_slice();
            let next = NextModelCall { rest, state: &self.state, model: &ask };
            next.run(ModelCallRequest::of(&request)).await
        }
        .boxed()
    }

    fn request_ended(&self, started: Instant, usage: Usage, answer: Result<&ModelReply, String>) {
        let duration = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ended = self.report().model_call_ended(duration, usage, answer);
        if let Some(model_call) = ended {
            self.notify(RunEventKind::ModelCallEnded {
                model_call: model_call.index,
                finish: model_call.finish,
                usage: model_call.usage,
                duration_ms: model_call.duration_ms,
                error: model_call.error,
            });
        }
    }

    fn before_calls<'a>(
        &'a self,
        step: u32,
        calls: &'a [Call],
    ) -> BoxFuture<'a, Option<Vec<Execution>>> {
        async move {
            let gate = self.gate()?;
            let model_call = self.report().last_model_call();
            gate.before_calls(model_call, step, calls).await
        }
        .boxed()
    }

    fn perform<'a>(
        &'a self,
        call: &'a Call,
        perform: &'a Perform<'a>,
    ) -> Option<BoxFuture<'a, Result<(Execution, bool), HostError>>> {
        if self.agent.middleware.is_empty() {
            return None;
        }
        let performed = async move {
            let performed: &Mutex<Option<Result<Execution, HostError>>> = &Mutex::new(None);
            let program = move |changed: Call| {
                async move {
                    let is_same = changed == *call;
                    let (execution, kept) = match perform(changed).await {
                        Ok(execution) => (execution.clone(), is_same.then_some(Ok(execution))),
                        // The host failed, so the run ends regardless of what the middleware
                        // returns.
                        Err(broken) => {
                            let reason = "the host failed".to_owned();
                            (Execution::Refused { reason }, Some(Err(broken)))
                        }
                    };
                    *performed.lock().unwrap_or_else(PoisonError::into_inner) = kept;
                    execution
                }
                .boxed()
            };
            let rest = self.agent.middleware.as_slice();
            let next = NextCall { rest, state: &self.state, program: &program };
            let execution = next.run(call.clone()).await;
            let performed = performed.lock().unwrap_or_else(PoisonError::into_inner).take();
            match performed {
                Some(Err(broken)) => Err(broken),
                Some(Ok(own)) => {
                    let is_changed = own != execution;
                    Ok((execution, is_changed))
                }
                None => Ok((execution, true)),
            }
        };
        Some(performed.boxed())
    }
}

//! The hooks that the driver of a run calls: middleware, and the observer that builds the report of
//! the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_machine::{Call, Ending, Envelope, Event, Execution, Message, Usage};
use wattle_model::{
    Delta, FunctionChoice, Model, ModelError, ModelReply, ModelRequest, Timeouts, ask_within,
};
use wattle_runs::{HostError, Perform, RunHooks, Sink};

use super::agent::Inner;
use super::event::{Handler, RunEvent, RunEventKind, deliver};
use super::middleware::{ModelCallRequest, NextCall, NextModelCall, RunState};
use super::report::{Change, ReportBuilder, ReportStatus, RunReport};
use super::runner::Gate;
use super::stream::StreamQueue;

/// The hooks that an [`Agent`](super::Agent) adds to one of its runs.
pub(super) struct AgentHooks {
    pub(super) agent: Arc<Inner>,
    pub(super) state: RunState,
    pub(super) observer: Arc<RunObserver>,
}

impl AgentHooks {
    fn gate(&self) -> Option<&Gate> {
        self.observer.gate.as_deref()
    }
}

impl RunHooks for AgentHooks {
    fn before_ask(&self) -> BoxFuture<'_, ()> {
        async move {
            if let Some(gate) = self.gate() {
                let model_call = self.observer.report().last_model_call();
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
        let model_call = self.observer.report().model_call_started();
        self.observer.notify(RunEventKind::ModelCallStarted { model_call });
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
                        relay(Delta::Restart);
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
        let ended = self.observer.report().model_call_ended(duration, usage, answer);
        if let Some(model_call) = ended {
            self.observer.notify(RunEventKind::ModelCallEnded {
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
            let model_call = self.observer.report().last_model_call();
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

/// An observer that builds the report of a run from the run's events and passes the events to
/// handlers and to the stream.
pub(super) struct RunObserver {
    pub(super) agent: Arc<Inner>,
    /// The ids of the run and of the root run of its tree.
    pub(super) ids: (String, String),
    pub(super) session_id: Option<String>,
    /// The handlers that were added for this run only.
    pub(super) handlers: Vec<Arc<dyn Handler>>,
    pub(super) stream: Option<Arc<StreamQueue>>,
    pub(super) report: Mutex<ReportBuilder>,
    /// The gate at which the run waits for an application that drives it step by step.
    pub(super) gate: Option<Arc<Gate>>,
}

impl RunObserver {
    /// Passes an event to the agent's handlers, the subscribed handlers, the handlers of this run,
    /// and then the stream.
    pub(super) fn notify(&self, kind: RunEventKind) {
        let event = RunEvent {
            run_id: self.ids.0.clone(),
            root_run_id: self.ids.1.clone(),
            session_id: self.session_id.clone(),
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

    fn report(&self) -> MutexGuard<'_, ReportBuilder> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the report of a delegate's run to the report of this run.
    pub(super) fn child_ended(&self, name: String, report: RunReport) {
        let (child, status) = (report.run_id.clone(), report.status);
        self.report().child(report);
        self.notify(RunEventKind::ChildEnded { child, name, status });
    }

    /// Finishes the report of a run that has ended. `turns` becomes the list of messages in the
    /// report.
    pub(super) fn finish(
        &self,
        ending: &Ending,
        (reason, usage): (&str, Usage),
        turns: Vec<Message>,
    ) -> RunReport {
        let report = self.report().finish(ending, (reason, usage), turns);
        self.end(report)
    }

    /// Finishes the report of a run that is waiting for a person.
    pub(super) fn park(&self, reason: String) -> RunReport {
        let report = self.report().park(reason);
        self.end(report)
    }

    fn end(&self, report: RunReport) -> RunReport {
        let (status, text): (ReportStatus, String) = (report.status, report.text.clone());
        self.notify(RunEventKind::RunEnded { status, text });
        report
    }
}

impl Sink for RunObserver {
    fn emit(&self, envelope: &Envelope) {
        if let Some(gate) = &self.gate {
            gate.event(&envelope.event);
        }
        if let Event::Delta { text, .. } = &envelope.event {
            if let Some(stream) = &self.stream {
                stream.delta(text);
            }
            return;
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
}

//! The hooks that the driver of a run calls: middleware, and the observer that builds the report of
//! the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures_util::FutureExt;
use wattle_machine::{Call, Ending, Envelope, Event, Execution, Message, Usage};

use super::agent::Inner;
use super::event::{Handler, RunEvent, RunEventKind, deliver};
use super::middleware::{NextCall, NextTrip, RunState, TripRequest};
use super::report::{Change, ReportBuilder, ReportStatus, RunReport};
use super::runner::Gate;
use super::stream::StreamQueue;
use crate::error::HostError;
use crate::model::{
    Delta, FunctionChoice, Model, ModelError, ModelReply, ModelRequest, Timeouts, ask_within,
};
use crate::sink::Sink;

/// The hooks that an [`Agent`](super::Agent) adds to its runs. Empty for all other runs.
#[derive(Clone, Default)]
pub struct Hooks(pub(super) Option<Arc<RunHooks>>);

/// The hooks of one run.
pub(super) struct RunHooks {
    pub(super) agent: Arc<Inner>,
    pub(super) state: RunState,
    pub(super) observer: Arc<RunObserver>,
}

impl Hooks {
    /// Sends a request to the model through the middleware.
    pub(crate) async fn ask(
        &self,
        (model, timeouts): (&dyn Model, &Timeouts),
        request: ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<ModelReply, ModelError> {
        let Some(hooks) = self.0.as_ref().filter(|hooks| !hooks.agent.middleware.is_empty()) else {
            return ask_within(model, timeouts, request, on_delta).await;
        };
        let (on_delta, is_asked) = (&Mutex::new(on_delta), &AtomicBool::new(false));
        let ask = move |request: TripRequest| {
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
        let rest = hooks.agent.middleware.as_slice();
        let next = NextTrip { rest, state: &hooks.state, model: &ask };
        next.run(TripRequest::of(&request)).await
    }

    /// Runs a call through the middleware. The returned flag is true if the middleware changed the
    /// call or its outcome.
    pub(crate) async fn perform<'a, F>(
        &'a self,
        call: &'a Call,
        perform: impl Fn(Call) -> F + Send + Sync,
    ) -> Result<(Execution, bool), HostError>
    where
        F: Future<Output = Result<Execution, HostError>> + Send,
    {
        let Some(hooks) = self.0.as_ref().filter(|hooks| !hooks.agent.middleware.is_empty()) else {
            return Ok((perform(call.clone()).await?, false));
        };
        let performed: &Mutex<Option<Result<Execution, HostError>>> = &Mutex::new(None);
        let (perform, performing) = (&perform, call);
        let program = move |call: Call| {
            async move {
                let is_same = call == *performing;
                let (execution, kept) = match perform(call).await {
                    Ok(execution) => (execution.clone(), is_same.then_some(Ok(execution))),
                    // The host failed, so the run ends regardless of what the middleware returns.
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
        let rest = hooks.agent.middleware.as_slice();
        let next = NextCall { rest, state: &hooks.state, program: &program };
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
    }

    fn gate(&self) -> Option<(&Gate, &RunObserver)> {
        let observer = &self.0.as_ref()?.observer;
        Some((observer.gate.as_deref()?, observer))
    }

    /// Waits until the application allows the next request to the model.
    pub(crate) async fn before_ask(&self) {
        if let Some((gate, observer)) = self.gate() {
            let trip = observer.report().last_trip();
            gate.before_ask(trip).await;
        }
    }

    /// Returns the results of calls that the application ran itself, or `None` if the run must
    /// execute the calls.
    pub(crate) async fn before_calls(&self, step: u32, calls: &[Call]) -> Option<Vec<Execution>> {
        let (gate, observer) = self.gate()?;
        let trip = observer.report().last_trip();
        gate.before_calls(trip, step, calls).await
    }

    /// Returns the function choice that the application set for the current step, or `None` if it
    /// set none.
    pub(crate) fn tool_call(&self) -> Option<FunctionChoice> {
        self.gate()?.0.tool_call()
    }

    /// Returns the messages of a request with the application's note for the current step added, or
    /// `None` if there is no note.
    pub(crate) fn messages(&self, messages: &[Message]) -> Option<Vec<Message>> {
        self.gate()?.0.messages(messages)
    }

    /// Reports the start of a trip. If the returned guard is dropped before `end` is called, the
    /// trip is reported as stopped.
    pub(crate) fn begin_trip(&self) -> TripGuard {
        let observer = self.0.as_ref().map(|hooks| Arc::clone(&hooks.observer));
        if let Some(observer) = &observer {
            observer.trip_started();
        }
        TripGuard { observer, started: Instant::now() }
    }
}

/// A guard that reports the end of a trip.
pub(crate) struct TripGuard {
    observer: Option<Arc<RunObserver>>,
    started: Instant,
}

impl TripGuard {
    /// Reports the end of the trip. The usage must include the cost.
    pub(crate) fn end(mut self, answer: Result<(&ModelReply, Usage), &ModelError>) {
        let Some(observer) = self.observer.take() else { return };
        let (usage, answer) = match answer {
            Ok((reply, usage)) => (usage, Ok(reply)),
            Err(error) => (Usage::default(), Err(error.to_string())),
        };
        observer.trip_ended(self.started, usage, answer);
    }
}

/// Reports an unfinished trip as stopped.
impl Drop for TripGuard {
    fn drop(&mut self) {
        if let Some(observer) = self.observer.take() {
            let stopped = "the run ended before the model answered".to_owned();
            observer.trip_ended(self.started, Usage::default(), Err(stopped));
        }
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
            ts: crate::now_ms(),
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

    fn trip_started(&self) {
        let trip = self.report().trip_started();
        self.notify(RunEventKind::TripStarted { trip });
    }

    fn trip_ended(&self, started: Instant, usage: Usage, answer: Result<&ModelReply, String>) {
        let duration = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ended = self.report().trip_ended(duration, usage, answer);
        if let Some(trip) = ended {
            self.notify(RunEventKind::TripEnded {
                trip: trip.index,
                finish: trip.finish,
                usage: trip.usage,
                duration_ms: trip.duration_ms,
                error: trip.error,
            });
        }
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
                Change::CallStarted { trip, name, args } => {
                    RunEventKind::CallStarted { trip, name, args }
                }
                Change::CallEnded { trip, name, success, output, duration_ms } => {
                    RunEventKind::CallEnded { trip, name, success, output, duration_ms }
                }
                Change::Artifact { name, bytes } => RunEventKind::Artifact { name, bytes },
                Change::Retry { attempt, error } => RunEventKind::Retry { attempt, error },
            });
        }
    }
}

//! Execution of the calls of a step.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use futures_util::FutureExt;
use wattle_catalog::Catalog;
use wattle_machine::{Call, Execution, Input, KeptValue};
use wattle_rt::KeptText;

use super::{Performer, Task, limited, lock};
use crate::act::perform_within;
use crate::delegates::approval;
use crate::error::HostError;
use crate::journal::{PendingApproval, RunTape};
use crate::trace::CallOutcome;

impl Performer<'_> {
    /// Writes a trace line for each of the task's calls that has not ended, if `input` stops the
    /// task. `elapsed` is the duration of the task.
    pub(super) fn abort_pending_calls(&self, task: &Task, input: &Input, elapsed: Duration) {
        let cancelled;
        let reason = match input {
            Input::Cancel { reason } if reason.is_empty() => "cancelled",
            Input::Cancel { reason } => {
                cancelled = format!("cancelled ({reason})");
                &cancelled
            }
            Input::Expired { .. } => "the run's time was up",
            Input::Failed(message) => message,
            _ => return,
        };
        let (step, calls) = match task {
            Task::Execute { step, calls } | Task::Contribute { step, calls } => {
                (*step, calls.as_slice())
            }
            Task::Recall { step, call } => (*step, std::slice::from_ref(call)),
            Task::Moderate { .. } | Task::Ask(_) | Task::Validate { .. } | Task::Nothing => return,
        };
        let catalog = match task {
            Task::Execute { .. } => self.catalog.clone(),
            _ => self.parts.host.internal_programs(),
        };
        let execution = Execution::Refused { reason: format!("stopped: {reason}") };
        let outcome = CallOutcome::of(&execution);
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let done = lock(&self.done);
        for (_, call) in calls.iter().enumerate().filter(|(at, _)| !done.contains(at)) {
            self.trace.write((step, call, &catalog), &outcome, elapsed);
        }
    }

    /// Runs a call of a step and writes the call's trace line. `at` is the index of the call within
    /// the step, and `programs` is the catalog that contains the called program. A program without
    /// its own time limit runs for at most `time`. With a name `result`, the call is one of the
    /// model: its program can read and keep values, and the whole results are kept under this name
    /// if the conversation shows only a part of them.
    pub(super) async fn call(
        &self,
        (step, at): (u32, usize),
        call: &Call,
        (programs, time): (&Catalog, Duration),
        result: Option<String>,
    ) -> Result<CallState, String> {
        let (started, from) = (Instant::now(), SystemTime::now());
        let tape = self.recorder.map(|recorder| recorder.tape(at));
        let grants = match &tape {
            Some(tape) => Arc::new(self.grants.as_ref().clone().taped(Arc::<RunTape>::clone(tape))),
            None => Arc::clone(&self.grants),
        };
        let runtime = self.parts.host.runtime();
        let added: Mutex<Vec<KeptText>> = Mutex::default();
        let perform = |call: Call| {
            let (grants, result, added) = (&grants, &result, &added);
            async move {
                let kept = result.clone().map(|result| self.kept.for_call(result));
                let performed =
                    perform_within(runtime, programs, grants, &call, time, kept.as_ref()).await;
                lock(added).extend(kept.iter().flat_map(|kept| kept.values.added()));
                performed.map(limited)
            }
            .boxed()
        };
        let hooks = self.parts.hooks.as_ref();
        let performed = match hooks.and_then(|hooks| hooks.perform(call, &perform)) {
            Some(performed) => performed.await,
            None => perform(call.clone()).await.map(|execution| (execution, false)),
        };
        let (execution, is_changed) = performed.map_err(|broken| {
            if let HostError::Bug(bug) = &broken {
                let (run, function) = (self.trace.run_id(), bug.function);
                tracing::error!(
                    run,
                    function,
                    panic = %bug.message,
                    "a host function panicked, which is a bug"
                );
            }
            broken.to_string()
        })?;
        // Middleware may have returned longer results, or other ones than the kept ones.
        let execution = limited(execution);
        let added = std::mem::take(&mut *lock(&added));
        let is_own = |value: &&KeptValue| {
            let of_value = |text: &KeptText| text.name() == value.name && text.hash() == value.hash;
            added.iter().any(of_value) && !(is_changed && value.is_result)
        };
        let own = execution.kept().iter().filter(is_own).cloned().collect();
        let execution = execution.with_kept(own);
        self.kept.add(added);
        if let Some((recorder, tape)) = self.recorder.zip(tape) {
            if is_changed {
                tape.mark_changed();
            }
            recorder.end_tape(&tape);
            let asked = tape.waiting();
            if !asked.is_empty() {
                let call = format!("{step}.{}", at + 1);
                let waiting = |question| approval(&call, question);
                return Ok(CallState::Pending(asked.into_iter().map(waiting).collect()));
            }
        }
        let elapsed = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let outcome = CallOutcome::of(&execution);
        self.trace.write((step, call, programs), &outcome, elapsed);
        if let Some(spans) = &self.spans {
            spans.tool(from, (step, at + 1), call, &outcome);
        }
        self.history.add(step, call, &outcome, elapsed);
        lock(&self.done).insert(at);
        Ok(CallState::Done(Box::new(execution)))
    }
}

impl Performer<'_> {
    /// Accepts the results that an application supplied for calls that it ran itself. A replay uses
    /// the recorded results.
    pub(super) async fn given(&self, step: u32, calls: &[Call], given: Vec<Execution>) -> Input {
        let own = |execution: Execution| limited(execution).with_kept(Vec::new());
        let given: Vec<Execution> = given.into_iter().map(own).collect();
        for (at, (call, execution)) in calls.iter().zip(&given).enumerate() {
            if let Some(recorder) = self.recorder {
                let tape = recorder.tape(at);
                tape.mark_changed();
                recorder.end_tape(&tape);
            }
            let outcome = CallOutcome::of(execution);
            self.trace.write((step, call, &self.catalog), &outcome, 0);
            self.history.add(step, call, &outcome, 0);
        }
        Input::Executed(given)
    }
}

/// The result of an attempt to execute a call.
pub(super) enum CallState {
    Done(Box<Execution>),
    /// The call is waiting for these approvals.
    Pending(Vec<PendingApproval>),
}

//! The lifecycle events of a run, and their handlers.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};
use wattle_machine::Usage;

use super::report::ReportStatus;

/// An event of a run. Its JSON form is a flat object with a snake-case `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// The id of the run.
    pub run_id: String,
    /// The id of the run at the root of the delegation tree. Differs from `run_id` only in a
    /// delegate's run.
    pub root_run_id: String,
    /// The label of the session. Absent if the caller set none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// The time, in milliseconds since 1970.
    pub ts: u64,
    /// The kind of the event, with its data.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

/// The kind of an event, with its data.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunEventKind {
    /// The run started.
    RunStarted {
        /// The input of the run.
        input: String,
    },
    /// A [model call](super::ModelCall) started: a request is being sent to the model.
    ModelCallStarted {
        /// The number of the model call, counted from 1.
        model_call: u32,
    },
    /// A model call ended: the model answered, or the request failed.
    ModelCallEnded {
        /// The number of the model call, counted from 1.
        model_call: u32,
        /// The finish reason, as the provider spells it. Absent if the provider reported none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish: Option<String>,
        /// Tokens and cost of the model call.
        usage: Usage,
        /// Duration in milliseconds.
        duration_ms: u64,
        /// The error, if the model did not answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A program that the model called has started.
    CallStarted {
        /// The number of the model call in which the model called the program.
        model_call: u32,
        /// The program's name, or `wat` for a program that the model wrote.
        name: String,
        /// The arguments of the call.
        args: Vec<String>,
    },
    /// A program that the model called has ended.
    CallEnded {
        /// The number of the model call in which the model called the program.
        model_call: u32,
        /// The program's name, or `wat` for a program that the model wrote.
        name: String,
        /// If true, the program ran and did not fail.
        success: bool,
        /// The text that the model reads.
        output: String,
        /// Duration in milliseconds.
        duration_ms: u64,
    },
    /// A delegate's run started.
    ChildStarted {
        /// The id of the delegate's run.
        child: String,
        /// The name that the calling agent uses for the delegate.
        name: String,
        /// The message to the delegate.
        message: String,
    },
    /// A delegate's run ended.
    ChildEnded {
        /// The id of the delegate's run.
        child: String,
        /// The name that the calling agent uses for the delegate.
        name: String,
        /// The status of the delegate's run.
        status: ReportStatus,
    },
    /// The model is asked again because its answer was incomplete or unusable.
    Retry {
        /// The number of the new attempt, counted from 1.
        attempt: u32,
        /// The reason for the retry.
        error: String,
    },
    /// A program of the run stored data for the application.
    Artifact {
        /// The artifact's name.
        name: String,
        /// The artifact's size, in bytes. The report contains the artifact's content.
        bytes: u64,
    },
    /// The run ended.
    RunEnded {
        /// The status of the run.
        status: ReportStatus,
        /// The answer, or the reason why there is none.
        text: String,
    },
}

/// A receiver of a run's events. It must not block, because the run waits for it. If it panics, the
/// panic is logged and the run continues.
///
/// A function that takes an event is a handler.
pub trait Handler: Send + Sync {
    /// Handles an event.
    fn on(&self, event: &RunEvent);
}

impl<F: Fn(&RunEvent) + Send + Sync> Handler for F {
    fn on(&self, event: &RunEvent) {
        self(event);
    }
}

/// Passes an event to a handler and catches any panic.
pub(super) fn deliver(handler: &dyn Handler, event: &RunEvent) {
    let handled = std::panic::catch_unwind(AssertUnwindSafe(|| handler.on(event)));
    if handled.is_err() {
        tracing::error!(run = event.run_id, "a handler of the application panicked");
    }
}

/// The handlers that were added to an agent after it was built.
#[derive(Default)]
pub(super) struct Subscribers {
    next: AtomicU64,
    handlers: Mutex<Vec<(u64, Arc<dyn Handler>)>>,
}

impl Subscribers {
    /// Adds a handler, which is removed when the returned subscription is dropped.
    pub(super) fn add(self: &Arc<Self>, handler: Arc<dyn Handler>) -> Subscription {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().push((id, handler));
        Subscription { of: Arc::downgrade(self), id }
    }

    /// Returns the current handlers, in the order in which they were added.
    pub(super) fn list(&self) -> Vec<Arc<dyn Handler>> {
        self.lock().iter().map(|(_, handler)| Arc::clone(handler)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Arc<dyn Handler>)>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The subscription of a handler. The handler receives events until the subscription is dropped.
#[must_use = "the handler is removed when the subscription is dropped"]
pub struct Subscription {
    of: Weak<Subscribers>,
    id: u64,
}

impl Subscription {
    /// Removes the handler by dropping the subscription.
    pub fn unsubscribe(self) {}
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(of) = self.of.upgrade() {
            of.lock().retain(|(id, _)| *id != self.id);
        }
    }
}

//! Receivers of a run's events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wattle_machine::{Envelope, Event};

/// A receiver of a run's events as they happen. A sink must not block for long, because the run
/// waits for it.
pub trait Sink: Send + Sync {
    /// Handles one event.
    fn emit(&self, event: &Envelope);
}

/// A function that takes an event is a sink.
impl<F: Fn(&Envelope) + Send + Sync> Sink for F {
    fn emit(&self, event: &Envelope) {
        self(event);
    }
}

/// A wrapper that adds run id, sequence number and time to each event and passes it to the sink.
pub(crate) struct Stamp<'a> {
    run_id: &'a str,
    root_run_id: &'a str,
    next: AtomicU64,
    sink: &'a dyn Sink,
}

impl<'a> Stamp<'a> {
    /// Creates the stamp of a top-level run whose next event has the number `next`.
    pub(crate) fn from(run_id: &'a str, sink: &'a dyn Sink, next: u64) -> Self {
        Stamp { run_id, root_run_id: run_id, next: AtomicU64::new(next), sink }
    }

    /// Returns the number of the next event.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub(crate) fn emit(&self, event: Event) {
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        let (run_id, root_run_id) = (self.run_id.to_owned(), self.root_run_id.to_owned());
        self.sink.emit(&Envelope { run_id, root_run_id, seq, ts: now_ms(), event });
    }
}

/// Returns the current time in the unit of events: milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

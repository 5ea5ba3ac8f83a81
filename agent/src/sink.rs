//! Where a run's events go.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wattle_machine::{Envelope, Event};

/// Receives the events of a run as they happen. A sink must not block for long: the run waits for it.
pub trait Sink: Send + Sync {
    /// Takes one event.
    fn emit(&self, event: &Envelope);
}

/// Any function of an event is a sink.
impl<F: Fn(&Envelope) + Send + Sync> Sink for F {
    fn emit(&self, event: &Envelope) {
        self(event);
    }
}

/// Stamps events with their run, number and time, and hands them on.
pub(crate) struct Stamp<'a> {
    run_id: &'a str,
    root_run_id: &'a str,
    next: AtomicU64,
    sink: &'a dyn Sink,
}

impl<'a> Stamp<'a> {
    /// Events of that run, which nobody else started, from that number on.
    pub(crate) fn from(run_id: &'a str, sink: &'a dyn Sink, next: u64) -> Self {
        Stamp { run_id, root_run_id: run_id, next: AtomicU64::new(next), sink }
    }

    /// The number of the next event.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    pub(crate) fn emit(&self, event: Event) {
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        let (run_id, root_run_id) = (self.run_id.to_owned(), self.root_run_id.to_owned());
        self.sink.emit(&Envelope { run_id, root_run_id, seq, ts: now_ms(), event });
    }
}

/// Gives the time as events carry it: milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

//! Receivers of a run's events, and the numbering of the events.

use std::sync::atomic::{AtomicU64, Ordering};

use wattle_machine::{Effect, Envelope, Event};
use wattle_store::now_ms;

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

/// The event stamp of a run. It adds the run's id, a sequence number and the time to each event.
///
/// Recorded events are numbered without gaps. A live event, such as a piece of an answer, has the
/// sequence number of the previous recorded event.
pub(crate) struct Stamp<'a> {
    run_id: &'a str,
    root_run_id: String,
    next: AtomicU64,
    sink: &'a dyn Sink,
}

impl<'a> Stamp<'a> {
    /// Creates the stamp of a root run whose next event has the sequence number `next`.
    pub(crate) fn from(run_id: &'a str, sink: &'a dyn Sink, next: u64) -> Self {
        Stamp { run_id, root_run_id: run_id.to_owned(), next: AtomicU64::new(next), sink }
    }

    /// Returns this stamp with `root` as the id of the root run.
    pub(crate) fn under(self, root: &str) -> Self {
        Stamp { root_run_id: root.to_owned(), ..self }
    }

    /// Returns the sequence number of the next event.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Sets the sequence number of the next event.
    pub(crate) fn set_next(&self, next: u64) {
        self.next.store(next, Ordering::Relaxed);
    }

    /// Assigns the next sequence numbers to `events` and returns the numbered events.
    pub(crate) fn number<'e>(&self, events: impl IntoIterator<Item = &'e Event>) -> Vec<Envelope> {
        let number = |event: &Event| {
            let seq = self.next.fetch_add(1, Ordering::Relaxed);
            self.envelope(seq, event.clone())
        };
        events.into_iter().map(number).collect()
    }

    /// Passes numbered events to the sink.
    pub(crate) fn emit(&self, events: &[Envelope]) {
        events.iter().for_each(|event| self.sink.emit(event));
    }

    /// Passes a live event to the sink.
    pub(crate) fn live(&self, event: Event) {
        self.live_after(self.next().saturating_sub(1), event);
    }

    /// Passes a live event to the sink. `seq` is the sequence number of the previous recorded event.
    pub(crate) fn live_after(&self, seq: u64, event: Event) {
        self.sink.emit(&self.envelope(seq, event));
    }

    fn envelope(&self, seq: u64, event: Event) -> Envelope {
        let (run_id, root_run_id) = (self.run_id.to_owned(), self.root_run_id.clone());
        Envelope { run_id, root_run_id, seq, ts: now_ms(), event }
    }
}

/// Returns the events that the effects emit.
pub(crate) fn events_of(effects: &[Effect]) -> impl Iterator<Item = &Event> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Emit(event) => Some(event),
        _ => None,
    })
}

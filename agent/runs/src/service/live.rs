//! A run that is active in this process, and the events that its followers read.
//!
//! All followers share one bounded list of events and the current answer. A follower itself stores
//! only a position, so a client that does not read uses no memory and does not delay other clients.
//! A follower whose position is no longer in the list reads the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wattle_machine::{Envelope, Event};

use crate::cancel::Cancel;
use crate::durable::ParkedRun;
use crate::hooks::RunHooks;
use crate::report::Report;
use crate::sink::Sink;
use crate::tree::RunTree;

/// Maximum number of recorded events that a run keeps in memory.
const MAX_EVENTS: usize = 256;
/// Maximum total size of the answers that a run keeps in memory, in bytes. A piece of an answer
/// that would exceed this limit is dropped. Followers receive the whole answer with the event that
/// records it.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The outcome of driving a run in this process.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The run has ended, and its end is recorded.
    Ended(Arc<Report>),
    /// The run is waiting for a person.
    Parked(ParkedRun),
    /// The run is no longer driven, but has not ended: its process is stopping, the store failed,
    /// or another process drives the run. The string contains the reason.
    Suspended(String),
}

/// An active run.
pub(super) struct LiveRun {
    /// The handle that cancels the run.
    pub(super) cancel: Cancel,
    /// A token that is cancelled when the run has stopped at a turn, so that another process can
    /// resume it.
    pub(super) handed_over: CancellationToken,
    /// The id of the tree's root run.
    pub(super) root: String,
    /// The run's view of its tree. Set once the run is driven.
    pub(super) tree: OnceLock<RunTree>,
    /// The hooks of the application that takes part in the run. Set once the run is driven.
    pub(super) hooks: OnceLock<Arc<dyn RunHooks>>,
    state: Mutex<State>,
    version: watch::Sender<()>,
}

struct State {
    /// The latest recorded events, oldest first.
    kept: VecDeque<Kept>,
    /// The sequence number of the latest recorded event that is only in the store, not in memory.
    floor: u64,
    /// The sequence number of the latest recorded event.
    newest: u64,
    answer: Answer,
    /// Total size of all answers in memory, in bytes.
    answer_bytes: usize,
    outcome: Option<Outcome>,
}

/// A recorded event, and the model's answer that precedes it.
struct Kept {
    event: Arc<Envelope>,
    answer: Answer,
}

/// The model's answer, collected from the live events between two recorded events.
#[derive(Default)]
struct Answer {
    step: u32,
    text: String,
    /// Number of times that the answer was restarted.
    restarts: u32,
    /// The latest restart event, or the answer's first piece if the answer was never restarted.
    first: Option<Arc<Envelope>>,
}

/// A follower's position in the current answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnswerPosition {
    /// The sequence number of the recorded event before the answer.
    after: u64,
    restarts: u32,
    /// Number of answer bytes that the follower has received.
    offset: usize,
}

/// The new events for a follower, or the reason why there are none in memory.
pub(super) enum News {
    /// New events that are in memory.
    Events(Vec<Arc<Envelope>>),
    /// The new events are no longer in memory.
    InStore,
    /// There are no new events yet.
    Nothing,
    /// The run is no longer active, and the follower has received all of its events.
    Over(Outcome),
}

impl LiveRun {
    /// Creates an active run in the tree of the root run `root`. The store already contains the
    /// run's events up to the sequence number `recorded`.
    pub(super) fn new(root: &str, recorded: u64, cancel: Cancel) -> LiveRun {
        let state = State {
            kept: VecDeque::new(),
            floor: recorded,
            newest: recorded,
            answer: Answer::default(),
            answer_bytes: 0,
            outcome: None,
        };
        LiveRun {
            cancel,
            handed_over: CancellationToken::new(),
            root: root.to_owned(),
            tree: OnceLock::new(),
            hooks: OnceLock::new(),
            state: Mutex::new(state),
            version: watch::Sender::new(()),
        }
    }

    /// Returns a receiver that is notified when the run emits an event or gets its outcome.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.version.subscribe()
    }

    /// Sets the outcome. After that, the run has no more events.
    pub(super) fn finish(&self, outcome: Outcome) {
        self.lock().outcome = Some(outcome);
        self.version.send_replace(());
    }

    /// Waits for the outcome.
    pub(super) async fn outcome(&self) -> Outcome {
        let mut changes = self.changes();
        loop {
            if let Some(outcome) = &self.lock().outcome {
                return outcome.clone();
            }
            // The channel is open, because `self` owns the sender.
            drop(changes.changed().await);
        }
    }

    /// Returns true if the run has ended, and its end is recorded.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.lock().outcome, Some(Outcome::Ended(_)))
    }

    /// Returns the events after the event with the sequence number `seen`. The last event of a run
    /// is returned only once the end of the run is recorded, so that the session is already saved
    /// when a client receives the event.
    pub(super) fn news(&self, seen: u64, position: &mut AnswerPosition) -> News {
        let state = self.lock();
        if seen < state.floor {
            return News::InStore;
        }
        let has_ended = matches!(state.outcome, Some(Outcome::Ended(_)));
        let (mut events, mut upto) = (Vec::new(), seen);
        for Kept { event, answer } in state.kept.iter().filter(|kept| kept.event.seq > seen) {
            answer.news(upto, position, &mut events);
            if is_last(&event.event) && !has_ended {
                break;
            }
            upto = event.seq;
            events.push(Arc::clone(event));
        }
        if upto == state.newest {
            state.answer.news(upto, position, &mut events);
        }
        match (&state.outcome, events.is_empty()) {
            (_, false) => News::Events(events),
            (Some(outcome), true) => News::Over(outcome.clone()),
            (None, true) => News::Nothing,
        }
    }

    /// Returns the sequence number of the latest recorded event, and the run's outcome. The outcome
    /// is `None` while the run is active.
    pub(super) fn newest(&self) -> (u64, Option<Outcome>) {
        let state = self.lock();
        (state.newest, state.outcome.clone())
    }

    /// Returns the pieces of an answer that the follower has not received, if they are still in
    /// memory. The answer is the one that follows the recorded event with the sequence number
    /// `seen`.
    pub(super) fn pieces(&self, seen: u64, position: &mut AnswerPosition) -> Vec<Arc<Envelope>> {
        let (state, mut pieces) = (self.lock(), Vec::new());
        let next = state.kept.partition_point(|kept| kept.event.seq <= seen);
        match state.kept.get(next) {
            _ if seen < state.floor => {}
            Some(kept) => kept.answer.news(seen, position, &mut pieces),
            None => state.answer.news(seen, position, &mut pieces),
        }
        pieces
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answer {
    /// Appends to `events` the restart and the text of this answer that a follower at `position`
    /// has not received. `after` is the sequence number of the recorded event before the answer.
    fn news(&self, after: u64, position: &mut AnswerPosition, events: &mut Vec<Arc<Envelope>>) {
        if position.after != after {
            *position = AnswerPosition { after, ..AnswerPosition::default() };
        }
        let Some(first) = &self.first else { return };
        if position.restarts < self.restarts {
            (position.restarts, position.offset) = (self.restarts, 0);
            if matches!(first.event, Event::Retry { .. }) {
                events.push(Arc::clone(first));
            }
        }
        if let Some(rest) = self.text.get(position.offset..).filter(|rest| !rest.is_empty()) {
            let event = Event::Delta { step: self.step, text: rest.to_owned() };
            events.push(Arc::new(Envelope { event, ..first.as_ref().clone() }));
            position.offset = self.text.len();
        }
    }

    /// Adds a live event. A piece of the answer is dropped if it is longer than `room` bytes.
    fn add(&mut self, event: &Envelope, room: usize) {
        match &event.event {
            Event::Delta { step, text } => {
                self.first.get_or_insert_with(|| Arc::new(event.clone()));
                self.step = *step;
                if text.len() <= room {
                    self.text.push_str(text);
                }
            }
            _ => {
                self.text.clear();
                self.restarts = self.restarts.saturating_add(1);
                self.first = Some(Arc::new(event.clone()));
            }
        }
    }
}

impl Sink for LiveRun {
    fn emit(&self, event: &Envelope) {
        let mut state = self.lock();
        if event.seq > state.newest {
            state.newest = event.seq;
            let answer = std::mem::take(&mut state.answer);
            state.kept.push_back(Kept { event: Arc::new(event.clone()), answer });
            while state.kept.len() > MAX_EVENTS || state.answer_bytes > MAX_ANSWER_BYTES / 2 {
                let Some(oldest) = state.kept.pop_front() else { break };
                state.answer_bytes -= oldest.answer.text.len();
                state.floor = oldest.event.seq;
            }
        } else {
            let before = state.answer.text.len();
            let room = MAX_ANSWER_BYTES.saturating_sub(state.answer_bytes);
            state.answer.add(event, room);
            state.answer_bytes = state.answer_bytes - before + state.answer.text.len();
        }
        drop(state);
        self.version.send_replace(());
        if let Some(hooks) = self.hooks.get() {
            hooks.event(event);
        }
    }
}

/// Returns true if an event is the last event of a run.
pub(super) fn is_last(event: &Event) -> bool {
    matches!(event, Event::Response { .. } | Event::Error { .. })
}

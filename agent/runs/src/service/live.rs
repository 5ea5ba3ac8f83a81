//! A run that is active in this process, and the events that its followers read.
//!
//! All followers share one bounded list of events and the current answer. A follower itself stores
//! only a position, so a client that does not read uses no memory and does not delay other clients.
//! A follower whose position is no longer in the list reads the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value as Json;
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
/// Maximum total size of the answers that a run keeps in memory, in bytes. The pieces of an answer
/// that would exceed this limit are dropped. Followers receive the whole answer with the event that
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
    /// The origin of the run's request. Null for a child run.
    pub(super) origin: Json,
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
    /// The text as received, the thought, and the answer in it: one for each of [`PARTS`].
    texts: [String; 3],
    /// If true, the answer so far is certain.
    is_certain: bool,
    /// Number of times that the answer was taken back.
    voids: u32,
    /// Number of times that the model's text was restarted.
    restarts: u32,
    /// The latest restart event, or the answer's first piece if the answer was never restarted.
    first: Option<Arc<Envelope>>,
    /// The time of the latest piece.
    ts: u64,
    /// If true, a piece was dropped, and so are all later ones.
    is_cut: bool,
}

/// The events of the parts of an answer. The last argument is true if the answer is certain.
const PARTS: [fn(u32, String, bool) -> Event; 3] = [
    |step, text, _| Event::Delta { step, text },
    |step, text, _| Event::ThoughtDelta { step, text },
    |step, text, is_certain| Event::AnswerDelta { step, text, is_certain },
];

/// A follower's position in the current answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnswerPosition {
    /// The sequence number of the recorded event before the answer.
    after: u64,
    restarts: u32,
    voids: u32,
    /// Number of bytes of each text that the follower has received.
    offsets: [usize; 3],
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
    pub(super) fn new(root: &str, origin: &Json, recorded: u64, cancel: Cancel) -> LiveRun {
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
            origin: origin.clone(),
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

    /// Returns the failure because of which the run waits for the model's provider, or `None` if the
    /// run does not wait for it.
    pub(super) fn provider_failure(&self) -> Option<String> {
        let state = self.lock();
        match &state.answer.first.as_ref()?.event {
            Event::Retry { error, after_ms: Some(_), .. } if state.answer.size() == 0 => {
                Some(error.clone())
            }
            _ => None,
        }
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
    /// Appends to `events` what a follower at `position` has not received of this answer. `after` is
    /// the sequence number of the recorded event before the answer.
    fn news(&self, after: u64, position: &mut AnswerPosition, events: &mut Vec<Arc<Envelope>>) {
        if position.after != after {
            *position = AnswerPosition { after, ..AnswerPosition::default() };
        }
        let Some(first) = &self.first else { return };
        let mut push = |event| {
            events.push(Arc::new(Envelope { event, ts: self.ts, ..first.as_ref().clone() }));
        };
        let [_, _, shown] = &mut position.offsets;
        if position.voids < self.voids {
            position.voids = self.voids;
            if std::mem::take(shown) > 0 {
                push(Event::AnswerVoid { step: self.step });
            }
        }
        if position.restarts < self.restarts {
            (position.restarts, position.offsets) = (self.restarts, [0; 3]);
            if matches!(first.event, Event::Retry { .. }) {
                push(first.event.clone());
            }
        }
        let texts = self.texts.iter().zip(&mut position.offsets).zip(PARTS);
        for ((text, offset), event) in texts {
            if let Some(rest) = text.get(*offset..).filter(|rest| !rest.is_empty()) {
                push(event(self.step, rest.to_owned(), self.is_certain));
                *offset = text.len();
            }
        }
    }

    /// Returns the size of the texts, in bytes.
    fn size(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }

    /// Adds a live event. If a piece is longer than `room` bytes, it
    /// and all later ones are dropped.
    fn add(&mut self, event: &Envelope, room: usize) {
        self.ts = event.ts;
        let [raw, thought, answer] = &mut self.texts;
        let (text, step, piece) = match &event.event {
            Event::Delta { step, text } => (raw, *step, text.as_str()),
            Event::ThoughtDelta { step, text } => (thought, *step, text.as_str()),
            Event::AnswerDelta { step, text, is_certain } => {
                self.is_certain = *is_certain;
                (answer, *step, text.as_str())
            }
            Event::AnswerVoid { step } => {
                answer.clear();
                self.voids = self.voids.saturating_add(1);
                (answer, *step, "")
            }
            _ => {
                (self.texts, self.is_cut) = (<[String; 3]>::default(), false);
                self.restarts = self.restarts.saturating_add(1);
                self.first = Some(Arc::new(event.clone()));
                return;
            }
        };
        self.step = step;
        self.is_cut |= piece.len() > room;
        if !self.is_cut {
            text.push_str(piece);
        }
        self.first.get_or_insert_with(|| Arc::new(event.clone()));
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
                state.answer_bytes -= oldest.answer.size();
                state.floor = oldest.event.seq;
            }
        } else {
            let before = state.answer.size();
            let room = MAX_ANSWER_BYTES.saturating_sub(state.answer_bytes);
            state.answer.add(event, room);
            state.answer_bytes = state.answer_bytes - before + state.answer.size();
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

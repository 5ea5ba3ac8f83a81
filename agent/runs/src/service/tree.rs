//! The follower of a tree. It returns the events of a root run and all its child runs, in a single
//! order.
//!
//! ```text
//! store: event(root, run, seq, place) ──► TreeFollower ──► TreeEvent { event, cursor: RUN:SEQ }
//! LiveRun of each active run of the tree: a signal, and the pieces of its answer ──┘
//! ```
//!
//! **The order** of events is the order in which they were recorded. The runs of a tree record
//! their turns one at a time, so this order is the same for every reader and after a restart. The
//! events of each run keep their order, and the events of a child run appear between the
//! `tool_start` and the `tool_result` of the program that started the child run.
//!
//! **A cursor** identifies a recorded event by its run and its sequence number in that run. A
//! reader that follows a tree from a cursor receives exactly the recorded events after it. Recorded
//! events are always read from the store. The active runs only signal that there are new events, so
//! a reader never sees an event before its position is fixed.
//!
//! **Live events**, which are pieces of answers, appear between the recorded events of their run
//! and have no cursor. A slow reader may miss them.
//!
//! **The end**: the last event of the root run, and the events after it, are held back until the
//! end of that run is recorded. Child runs that are still open are ended only after that, possibly
//! by another process. The stream ends once all of them have ended. If they have not ended after a
//! few seconds, the stream ends without their last events, unless one of them is active in this
//! process.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::time::Instant;
use wattle_machine::Envelope;
use wattle_store::{TenantStore, Topic};

use super::follow::{FollowError, PAGE, POLL};
use super::live::{AnswerPosition, LiveRun, Outcome, is_last};
use super::{RunService, Status};

/// Maximum time for which a follower waits for the child runs of an ended root run to end, if none
/// of them is active in this process.
const LINGER: Duration = Duration::from_secs(5);

/// Maximum length of a run's id in a cursor, in bytes.
const MAX_ID: usize = 64;

/// The identity of a recorded event in a tree. It is formatted as `RUN:SEQ`.
///
/// ```
/// use wattle_runs::service::TreeCursor;
///
/// let cursor: TreeCursor = "01JZ8M2Q4T:7".parse().unwrap();
/// assert_eq!((cursor.run.as_str(), cursor.seq), ("01JZ8M2Q4T", 7));
/// assert_eq!(cursor.to_string(), "01JZ8M2Q4T:7");
/// assert!("7".parse::<TreeCursor>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeCursor {
    /// The id of the event's run.
    pub run: String,
    /// The event's sequence number in its run, counted from 1.
    pub seq: u64,
}

impl fmt::Display for TreeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.run, self.seq)
    }
}

impl FromStr for TreeCursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.rsplit_once(':').and_then(|(run, seq)| Some((run, seq.parse().ok()?)));
        let is_id = |run: &str| {
            !run.is_empty() && run.len() <= MAX_ID && run.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        match parts {
            Some((run, seq)) if is_id(run) => Ok(TreeCursor { run: run.to_owned(), seq }),
            _ => Err("expected `RUN:SEQ`, the id of an event of the stream"),
        }
    }
}

/// An event of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEvent {
    /// The event.
    pub event: Arc<Envelope>,
    /// The cursor of a recorded event. A live event has none.
    pub cursor: Option<TreeCursor>,
}

/// A reader of a tree's events. Dropping it does not change the runs.
pub struct TreeFollower {
    service: RunService,
    store: TenantStore,
    root: String,
    /// The latest recorded event that was returned.
    after: Option<TreeCursor>,
    /// If true, `seen` accounts for the events up to `after`.
    is_placed: bool,
    /// For each run id, the sequence number of the run's latest recorded event that was returned,
    /// and the follower's position in the run's current answer.
    seen: BTreeMap<String, (u64, AnswerPosition)>,
    ready: VecDeque<TreeEvent>,
    /// If true, the store may have unread events.
    is_due: bool,
    /// The time at which the follower stops waiting for child runs that are not active in this
    /// process. `None` until the root run has ended.
    lingers_until: Option<Instant>,
    /// If true, the follower ends when the root run is parked.
    ends_when_parked: bool,
    is_over: bool,
}

impl TreeFollower {
    pub(super) fn new(
        service: RunService,
        store: TenantStore,
        root: String,
        after: Option<TreeCursor>,
    ) -> TreeFollower {
        TreeFollower {
            service,
            store,
            root,
            after,
            is_placed: false,
            seen: BTreeMap::new(),
            ready: VecDeque::new(),
            is_due: true,
            lingers_until: None,
            ends_when_parked: false,
            is_over: false,
        }
    }

    /// Makes the follower end when the root run is parked, instead of waiting for an answer.
    #[must_use]
    pub fn until_parked(self) -> TreeFollower {
        TreeFollower { ends_when_parked: true, ..self }
    }

    /// Checks that the run exists, that it is the root of its tree, and that the tree contains the
    /// event after which the follower starts.
    ///
    /// # Errors
    /// If the check fails, or the store cannot be read.
    pub async fn check(&mut self) -> Result<(), FollowError> {
        self.place().await?;
        self.status().await.map(drop)
    }

    /// Returns the next event. Each recorded event of the tree is returned exactly once, in
    /// recording order. Pieces of answers that are still being generated are returned between the
    /// recorded events. Returns `None` after the last event.
    ///
    /// # Errors
    /// If the run is unknown, is a child run or was suspended, or the store cannot be read. The
    /// next call tries again.
    pub async fn next(&mut self) -> Result<Option<TreeEvent>, FollowError> {
        self.place().await?;
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.after = event.cursor.clone().or(self.after.take());
                return Ok(Some(event));
            }
            if self.is_over {
                return Ok(None);
            }
            // Any change from here on ends the wait below.
            let mut changed = self.service.0.changed.subscribe();
            let mut wakes = self.store.file().wakes();
            let live = self.service.live_tree(self.store.tenant(), &self.root);
            let mut signals: Vec<_> = live.iter().map(|(_, live)| live.changes()).collect();
            self.is_due |= live.iter().any(|(run, live)| live.newest().0 > self.seen_of(run));
            if self.is_due && self.read_store(&live).await? {
                continue;
            }
            self.take_pieces(&live);
            if !self.ready.is_empty() || self.is_over {
                continue;
            }
            let top = live.iter().find(|(run, _)| *run == self.root);
            match top.and_then(|(_, top)| top.newest().1) {
                Some(Outcome::Suspended(reason)) => return Err(FollowError::Suspended(reason)),
                Some(Outcome::Parked(_)) if self.ends_when_parked => return Ok(None),
                _ => {}
            }
            let is_driven_here = top.is_some();
            let signals = signals.iter_mut().map(|signal| signal.changed().map(drop).boxed());
            let signals: Vec<_> = signals.collect();
            let signal = async {
                if signals.is_empty() {
                    std::future::pending().await
                } else {
                    drop(select_all(signals).await)
                }
            };
            let news = [Topic::Run(&self.root)];
            tokio::select! {
                () = signal => {}
                _ = changed.changed() => self.is_due = true,
                () = wakes.on(&news), if !is_driven_here => self.is_due = true,
                () = tokio::time::sleep(POLL), if !is_driven_here => self.is_due = true,
            }
        }
    }

    /// Sets `seen` to each run's latest event up to `after`, unless this has already been done.
    async fn place(&mut self) -> Result<(), FollowError> {
        if self.is_placed {
            return Ok(());
        }
        if let Some(after) = &self.after {
            let event = (after.run.clone(), after.seq);
            let seen = self.store.tree_position(&self.root, event).await?;
            let seen = match seen {
                Some(seen) => seen,
                // The run may be unknown, or a child run.
                None => {
                    self.status().await?;
                    return Err(FollowError::UnknownEvent(after.clone()));
                }
            };
            let position = |(run, seq)| (run, (seq, AnswerPosition::default()));
            self.seen = seen.into_iter().map(position).collect();
        }
        self.is_placed = true;
        Ok(())
    }

    fn seen_of(&self, run: &str) -> u64 {
        self.seen.get(run).map_or(0, |(seen, _)| *seen)
    }

    /// Reads the next recorded events. Returns true if there are any.
    async fn read_store(&mut self, live: &[(String, Arc<LiveRun>)]) -> Result<bool, FollowError> {
        // The status is read before the events, so that all events of an ended run are read.
        let status = self.status().await?;
        let has_ended = status.as_ref().is_some_and(|status| status.top == Status::Ended);
        let after = self.after.as_ref().map(|after| (after.run.clone(), after.seq));
        let events = self.store.tree_events(&self.root, after, PAGE).await?;
        let is_held =
            |event: &Envelope| !has_ended && event.run_id == self.root && is_last(&event.event);
        let events: Vec<Envelope> =
            events.into_iter().take_while(|event| !is_held(event)).collect();
        let is_any = !events.is_empty();
        for event in events {
            let live = live.iter().find(|(run, _)| *run == event.run_id);
            let (seen, position) = self.seen.entry(event.run_id.clone()).or_default();
            let pieces = live.map(|(_, live)| live.pieces(*seen, position)).unwrap_or_default();
            self.ready.extend(pieces.into_iter().map(TreeEvent::live));
            *seen = event.seq;
            self.ready.push_back(TreeEvent::kept(event));
        }
        self.is_due = is_any;
        let is_parked = status.as_ref().is_some_and(|status| status.top == Status::Parked);
        self.is_over |= self.ends_when_parked && is_parked && !is_any && live.is_empty();
        if has_ended && !is_any && live.is_empty() {
            let children_ended = status.as_ref().is_none_or(|status| status.children_ended);
            let until = *self.lingers_until.get_or_insert_with(|| Instant::now() + LINGER);
            self.is_over = children_ended || Instant::now() >= until;
        }
        Ok(is_any)
    }

    /// Queues the new pieces of the answers that are being streamed.
    fn take_pieces(&mut self, live: &[(String, Arc<LiveRun>)]) {
        for (run, live) in live {
            let (seen, position) = self.seen.entry(run.clone()).or_default();
            let pieces = live.pieces(*seen, position);
            self.ready.extend(pieces.into_iter().map(TreeEvent::live));
        }
    }

    /// Returns the state of the root run and its child runs, or `None` if the root run is queued.
    async fn status(&self) -> Result<Option<wattle_store::TreeStatus>, FollowError> {
        for _ in 0..2 {
            if let Some(status) = self.store.tree_status(&self.root).await? {
                return match status.above {
                    Some(root) => Err(FollowError::Below(root)),
                    None => Ok(Some(status)),
                };
            }
            if self.store.queued_run(&self.root).await?.is_some() {
                return Ok(None);
            }
            // The run may have left the queue in the meantime.
        }
        Err(FollowError::Unknown)
    }
}

impl TreeEvent {
    fn live(event: Arc<Envelope>) -> TreeEvent {
        TreeEvent { event, cursor: None }
    }

    fn kept(event: Envelope) -> TreeEvent {
        let cursor = Some(TreeCursor { run: event.run_id.clone(), seq: event.seq });
        TreeEvent { event: Arc::new(event), cursor }
    }
}

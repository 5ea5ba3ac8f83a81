//! The follower of a run. It returns the recorded events first, and then the live ones.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use wattle_machine::Envelope;
use wattle_store::{StoreError, TenantStore, Topic};

use super::live::{AnswerPosition, LiveRun, News, Outcome, is_last};
use super::{RunService, TreeCursor};
use crate::journal::{Journal as _, Status};

/// Maximum number of events that a follower reads from the store at once. The follower keeps them
/// in memory until its client has read them.
pub(super) const PAGE: u32 = 64;
/// Interval between reads of the store for a run that is waiting or is driven by another process.
pub(super) const POLL: Duration = Duration::from_millis(500);

/// The reason why a run cannot be followed any further. The caller may follow it again later, from
/// the last event that it received.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// There is no such run.
    #[error("there is no such run")]
    Unknown,
    /// The run is a child run. Its tree must be followed from the root run.
    #[error("it is a child run; follow the tree of the run `{0}`")]
    Below(String),
    /// The tree has no such event.
    #[error("the tree has no event `{0}`; follow it from its beginning")]
    UnknownEvent(TreeCursor),
    /// The run was suspended before it ended. The string contains the reason.
    #[error("{0}")]
    Suspended(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A reader of a run's events. Dropping it does not change the run.
pub struct Follower {
    service: RunService,
    store: TenantStore,
    run: String,
    /// The sequence number of the latest recorded event that was returned.
    seen: u64,
    position: AnswerPosition,
    ready: VecDeque<Arc<Envelope>>,
    /// If true, the follower ends when the run is parked.
    ends_when_parked: bool,
    is_over: bool,
}

impl Follower {
    pub(super) fn new(service: RunService, store: TenantStore, run: String, after: u64) -> Self {
        Follower {
            service,
            store,
            run,
            seen: after,
            position: AnswerPosition::default(),
            ready: VecDeque::new(),
            ends_when_parked: false,
            is_over: false,
        }
    }

    /// Makes the follower end when the run is parked, instead of waiting for an answer.
    #[must_use]
    pub fn until_parked(self) -> Follower {
        Follower { ends_when_parked: true, ..self }
    }

    /// Checks that the run exists.
    ///
    /// # Errors
    /// If the run is unknown, or the store cannot be read.
    pub async fn check(&self) -> Result<(), FollowError> {
        self.status().await.map(drop)
    }

    /// Returns the next event. Each recorded event is returned exactly once, in order. Pieces of
    /// the answer that is still being generated are returned between the recorded events. Returns
    /// `None` after the last event. For a slow reader, several pieces are merged into one.
    ///
    /// # Errors
    /// If the run is unknown or was suspended, or the store cannot be read. The next call tries
    /// again.
    pub async fn next(&mut self) -> Result<Option<Arc<Envelope>>, FollowError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.seen = self.seen.max(event.seq);
                self.is_over |= is_last(&event.event);
                return Ok(Some(event));
            }
            if self.is_over {
                return Ok(None);
            }
            let mut changed = self.service.0.changed.subscribe();
            match self.service.live(self.store.tenant(), &self.run) {
                Some(live) => self.follow_live(&live).await?,
                None => {
                    let mut wakes = self.store.file().wakes();
                    if self.read_store(true).await? == Recorded::Waits {
                        let news = [Topic::Run(&self.run)];
                        tokio::select! {
                            _ = changed.changed() => {}
                            () = wakes.on(&news) => {}
                            () = tokio::time::sleep(POLL) => {}
                        }
                    }
                }
            }
        }
    }

    /// Waits for new events of an active run.
    async fn follow_live(&mut self, live: &LiveRun) -> Result<(), FollowError> {
        let mut changes = live.changes();
        loop {
            match live.news(self.seen, &mut self.position) {
                News::Events(events) => {
                    self.ready.extend(events);
                    return Ok(());
                }
                News::InStore => {
                    return self.read_store(false).await.map(drop);
                }
                // The run owns the sender, so the channel is open.
                News::Nothing => drop(changes.changed().await),
                News::Over(Outcome::Ended(_)) => {
                    self.is_over = true;
                    return Ok(());
                }
                News::Over(Outcome::Parked(_)) if self.ends_when_parked => {
                    self.is_over = true;
                    return Ok(());
                }
                News::Over(Outcome::Parked(_)) => {
                    // The run may be removed from the active runs at any time.
                    tokio::task::yield_now().await;
                    return Ok(());
                }
                News::Over(Outcome::Suspended(reason)) => {
                    return Err(FollowError::Suspended(reason));
                }
            }
        }
    }

    /// Reads the next recorded events. `at_rest` is true if the run is not active in this process.
    async fn read_store(&mut self, at_rest: bool) -> Result<Recorded, FollowError> {
        // The status is read before the events, so that all events of an ended run are read.
        let status = if at_rest { self.status().await? } else { Status::Open };
        let mut events = self.store.events(&self.run, self.seen, PAGE).await?;
        if status != Status::Ended {
            events.retain(|event| !is_last(&event.event));
        }
        let found = !events.is_empty();
        self.ready.extend(events.into_iter().map(Arc::new));
        Ok(match status {
            _ if found => Recorded::Found,
            Status::Ended => {
                self.is_over = true;
                Recorded::Found
            }
            Status::Parked if self.ends_when_parked => {
                self.is_over = true;
                Recorded::Found
            }
            Status::Open | Status::Parked => Recorded::Waits,
        })
    }

    /// Returns the run's status. A queued run counts as open.
    async fn status(&self) -> Result<Status, FollowError> {
        if let Some(status) = self.store.status(&self.run).await? {
            return Ok(status);
        }
        match self.store.queued_run(&self.run).await? {
            Some(_) => Ok(Status::Open),
            // The run may have left the queue in the meantime.
            None => self.store.status(&self.run).await?.ok_or(FollowError::Unknown),
        }
    }
}

/// The result of reading the store.
#[derive(PartialEq, Eq)]
enum Recorded {
    /// There are new events, or the follower has reached its end.
    Found,
    /// There is nothing new yet.
    Waits,
}

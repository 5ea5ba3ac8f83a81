//! The queues of sessions. The runs of a session are driven one after another, in the order in
//! which they were requested.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use wattle_store::{StoreError, Tenant};

use super::error::StartError;
use super::slots::RunSlot;
use crate::journal::{Lock, SharedJournal, lock_session};

/// The key of a session: its tenant and its id.
type Key = (Tenant, String);

/// The queues of the sessions that have an active run.
#[derive(Clone, Default)]
pub(super) struct SessionQueues {
    queues: Arc<Mutex<HashMap<Key, Queue>>>,
}

struct Queue {
    /// A semaphore with one permit. Waiting runs receive it in the order in which they were queued.
    turn: Arc<Semaphore>,
    /// Number of waiting and active runs. A queue is removed when it has none.
    members: usize,
}

/// A position in a session's queue. It is held until the end of its run is recorded, so that the
/// session's next run receives the messages of this run. A run without a session has the default
/// position, and its turn begins immediately.
#[derive(Default)]
pub(super) struct Position {
    /// The lock that gives this process exclusive use of the session. Set once the turn has begun.
    lock: Option<Lock>,
    member: Option<Member>,
}

/// A run's position in the queue of its session, and the run's slot in this process.
pub(super) struct Place {
    /// The position in the session's queue.
    pub(super) position: Position,
    /// The slot that the run occupies in this process. A run that is being cancelled needs no slot.
    pub(super) slot: Option<RunSlot>,
}

struct Member {
    // The permit is dropped before the slot, so that no queue is removed during a turn.
    turn: Turn,
    _slot: Slot,
}

/// The turn of a run in its session. During a turn, no other run of the session is active.
enum Turn {
    Waits(BoxFuture<'static, Permit>),
    Begun(#[expect(dead_code, reason = "only its drop matters")] Permit),
}

type Permit = Result<OwnedSemaphorePermit, AcquireError>;

struct Slot {
    queues: SessionQueues,
    key: Key,
}

impl SessionQueues {
    /// Takes the next position in the session's queue. At most `waiting` runs may wait in it. The
    /// order of the runs is fixed when this method returns, even before their turns begin.
    pub(super) async fn queue(
        &self,
        tenant: &Tenant,
        session: Option<&str>,
        waiting: usize,
    ) -> Result<Position, StartError> {
        let Some(session) = session else { return Ok(Position::default()) };
        let (turn, slot) = self.enter((tenant.clone(), session.to_owned()), waiting)?;
        let mut permit = turn.acquire_owned().boxed();
        // The first poll joins the semaphore's queue.
        let turn = match poll_fn(|cx| Poll::Ready(permit.poll_unpin(cx))).await {
            Poll::Ready(permit) => Turn::Begun(permit),
            Poll::Pending => Turn::Waits(permit),
        };
        Ok(Position { lock: None, member: Some(Member { turn, _slot: slot }) })
    }

    fn enter(&self, key: Key, waiting: usize) -> Result<(Arc<Semaphore>, Slot), StartError> {
        let mut queues = self.lock();
        let queue = queues
            .entry(key.clone())
            .or_insert_with(|| Queue { turn: Arc::new(Semaphore::new(1)), members: 0 });
        if queue.members > waiting {
            return Err(StartError::SessionBusy(waiting));
        }
        queue.members += 1;
        Ok((Arc::clone(&queue.turn), Slot { queues: self.clone(), key }))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Position {
    /// Waits for the run's turn in its session: first until all runs that are ahead of it in this
    /// process have ended, and then until no other process drives a run of the session.
    pub(super) async fn turn(
        &mut self,
        journal: &SharedJournal,
        session: Option<&str>,
    ) -> Result<(), StoreError> {
        self.begin().await;
        if let Some(session) = session {
            self.lock = Some(lock_session(journal, session).await?);
        }
        Ok(())
    }

    /// Waits until all runs that are ahead of this position in the queue have ended.
    async fn begin(&mut self) {
        if let Some(Member { turn, .. }) = &mut self.member
            && let Turn::Waits(permit) = turn
        {
            *turn = Turn::Begun(permit.await);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get_mut(&self.key) {
            queue.members -= 1;
            if queue.members == 0 {
                queues.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn queue(queues: &SessionQueues, session: &str) -> Result<Position, StartError> {
        queues.queue(&Tenant::default(), Some(session), 8).await
    }

    async fn limited(queues: &SessionQueues, session: &str) -> Result<Position, StartError> {
        queues.queue(&Tenant::default(), Some(session), 1).await
    }

    #[tokio::test]
    async fn turns_begin_in_the_order_of_the_queue() {
        let sessions = SessionQueues::default();
        let mut first = queue(&sessions, "a").await.unwrap();
        let mut second = queue(&sessions, "a").await.unwrap();
        let mut third = queue(&sessions, "a").await.unwrap();
        first.begin().await;
        assert!(third.begin().now_or_never().is_none());
        assert!(second.begin().now_or_never().is_none());
        drop(first);
        assert!(third.begin().now_or_never().is_none());
        second.begin().await;
        drop(second);
        third.begin().await;
        drop(third);
        assert!(sessions.lock().is_empty());
    }

    #[tokio::test]
    async fn a_message_that_leaves_the_queue_keeps_the_order_of_the_others() {
        let sessions = SessionQueues::default();
        let held = queue(&sessions, "a").await.unwrap();
        let left = queue(&sessions, "a").await.unwrap();
        let mut last = queue(&sessions, "a").await.unwrap();
        drop(left);
        assert!(last.begin().now_or_never().is_none());
        drop(held);
        last.begin().await;
        drop(last);
        assert!(sessions.lock().is_empty());
    }

    #[tokio::test]
    async fn sessions_run_at_the_same_time_and_queues_are_bounded() {
        let sessions = SessionQueues::default();
        let _held = limited(&sessions, "a").await.unwrap();
        let _waiting = limited(&sessions, "a").await.unwrap();
        assert!(limited(&sessions, "a").await.is_err());
        limited(&sessions, "b").await.unwrap().begin().await;
    }
}

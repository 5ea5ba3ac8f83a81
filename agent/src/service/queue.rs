//! The queues of sessions: the runs of a session are driven one after another, in the order of their
//! requests.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::error::StartError;
use crate::tenant::Tenant;

/// A session of a tenant.
type Key = (Tenant, String);

/// The queues of the sessions that have an active run.
#[derive(Clone, Default)]
pub(super) struct SessionQueues {
    queues: Arc<Mutex<HashMap<Key, Queue>>>,
}

struct Queue {
    /// One permit. Waiters receive it in their order.
    turn: Arc<Semaphore>,
    /// The number of waiting and active runs. A queue without any is removed.
    members: usize,
}

/// A position in a session's queue, held until the run ends. A run without a session has none.
pub(super) struct Position(Option<Waiting>);

struct Waiting {
    // The permit is dropped before the slot, so that no queue is removed during a turn.
    permit: BoxFuture<'static, Permit>,
    slot: Slot,
}

/// The current turn of a session. While it exists, no other run of the session is active.
pub(super) struct Turn(
    #[expect(dead_code, reason = "only its drop matters")] Option<(Permit, Slot)>,
);

type Permit = Result<OwnedSemaphorePermit, AcquireError>;

struct Slot {
    queues: SessionQueues,
    key: Key,
}

impl SessionQueues {
    /// Takes the next position in the session's queue, in which at most `waiting` runs wait. The
    /// order is fixed when this returns, before the turn begins.
    pub(super) async fn queue(
        &self,
        tenant: &Tenant,
        session: Option<&str>,
        waiting: usize,
    ) -> Result<Position, StartError> {
        let Some(session) = session else { return Ok(Position(None)) };
        let (turn, slot) = self.enter((tenant.clone(), session.to_owned()), waiting)?;
        let mut permit = turn.acquire_owned().boxed();
        // The first poll enters the semaphore's own queue.
        let permit = match poll_fn(|cx| Poll::Ready(permit.poll_unpin(cx))).await {
            Poll::Ready(given) => ready(given).boxed(),
            Poll::Pending => permit,
        };
        Ok(Position(Some(Waiting { permit, slot })))
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
    /// Waits until every earlier run of the session has ended.
    pub(super) async fn begin(self) -> Turn {
        match self.0 {
            Some(Waiting { permit, slot }) => Turn(Some((permit.await, slot))),
            None => Turn(None),
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
        let first = queue(&sessions, "a").await.unwrap();
        let second = queue(&sessions, "a").await.unwrap();
        let third = queue(&sessions, "a").await.unwrap();
        let (mut second, mut third) = (Box::pin(second.begin()), Box::pin(third.begin()));
        let held = first.begin().await;
        assert!((&mut third).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        drop(held);
        assert!((&mut third).now_or_never().is_none());
        drop(second.await);
        drop(third.await);
        assert!(sessions.lock().is_empty());
    }

    #[tokio::test]
    async fn a_message_that_leaves_the_queue_keeps_the_order_of_the_others() {
        let sessions = SessionQueues::default();
        let held = queue(&sessions, "a").await.unwrap().begin().await;
        let left = queue(&sessions, "a").await.unwrap();
        let mut last = Box::pin(queue(&sessions, "a").await.unwrap().begin());
        drop(left);
        assert!((&mut last).now_or_never().is_none());
        drop(held);
        drop(last.await);
        assert!(sessions.lock().is_empty());
    }

    #[tokio::test]
    async fn sessions_run_at_the_same_time_and_queues_are_bounded() {
        let sessions = SessionQueues::default();
        let _held = limited(&sessions, "a").await.unwrap().begin().await;
        let _waiting = limited(&sessions, "a").await.unwrap();
        assert!(limited(&sessions, "a").await.is_err());
        drop(limited(&sessions, "b").await.unwrap().begin().await);
    }
}

//! Turns: the messages of a session run one after another, in the order of their requests.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::request::SessionId;

/// The queues of the sessions that have an active message.
#[derive(Clone)]
pub(crate) struct Sessions {
    queues: Arc<Mutex<HashMap<SessionId, Queue>>>,
    waiting: usize,
}

struct Queue {
    /// One permit. Waiters receive it in their order.
    turn: Arc<Semaphore>,
    /// The number of waiting and active messages. A queue without any is removed.
    members: usize,
}

/// A position in a session's queue, held until the run ends.
pub(crate) struct Turn {
    // The permit is dropped before the slot, so that no queue is removed during a turn.
    permit: BoxFuture<'static, Permit>,
    slot: Slot,
}

/// The current turn of a session. While it exists, no other run of the session is active.
pub(crate) struct Held {
    _permit: Permit,
    _slot: Slot,
}

type Permit = Result<OwnedSemaphorePermit, AcquireError>;

struct Slot {
    sessions: Sessions,
    id: SessionId,
}

impl Sessions {
    /// Creates queues in which at most `waiting` messages wait.
    pub(crate) fn new(waiting: usize) -> Self {
        Sessions { queues: Arc::default(), waiting }
    }

    /// Takes the next position in the session's queue. The order is fixed when this returns, before
    /// the turn begins.
    pub(crate) async fn queue(&self, id: &SessionId) -> Result<Turn, ApiError> {
        let (turn, slot) = self.enter(id)?;
        let mut permit = turn.acquire_owned().boxed();
        // The first poll enters the semaphore's own queue.
        let permit = match poll_fn(|cx| Poll::Ready(permit.poll_unpin(cx))).await {
            Poll::Ready(given) => ready(given).boxed(),
            Poll::Pending => permit,
        };
        Ok(Turn { permit, slot })
    }

    fn enter(&self, id: &SessionId) -> Result<(Arc<Semaphore>, Slot), ApiError> {
        let mut queues = self.lock();
        let queue = queues
            .entry(id.clone())
            .or_insert_with(|| Queue { turn: Arc::new(Semaphore::new(1)), members: 0 });
        if queue.members > self.waiting {
            return Err(ApiError::session_busy(self.waiting));
        }
        queue.members += 1;
        Ok((Arc::clone(&queue.turn), Slot { sessions: self.clone(), id: id.clone() }))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Waits until every earlier message of the session has ended.
    pub(crate) async fn begin(self) -> Held {
        Held { _permit: self.permit.await, _slot: self.slot }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut queues = self.sessions.lock();
        if let Some(queue) = queues.get_mut(&self.id) {
            queue.members -= 1;
            if queue.members == 0 {
                queues.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        crate::request::read(format!(r#"{{"message":"m","session_id":"{text}"}}"#).as_bytes())
            .unwrap()
            .session
    }

    #[tokio::test]
    async fn turns_begin_in_the_order_of_the_queue() {
        let sessions = Sessions::new(8);
        let first = sessions.queue(&id("a")).await.unwrap();
        let second = sessions.queue(&id("a")).await.unwrap();
        let third = sessions.queue(&id("a")).await.unwrap();
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
        let sessions = Sessions::new(8);
        let held = sessions.queue(&id("a")).await.unwrap().begin().await;
        let left = sessions.queue(&id("a")).await.unwrap();
        let mut last = Box::pin(sessions.queue(&id("a")).await.unwrap().begin());
        drop(left);
        assert!((&mut last).now_or_never().is_none());
        drop(held);
        drop(last.await);
        assert!(sessions.lock().is_empty());
    }

    #[tokio::test]
    async fn sessions_run_at_the_same_time_and_queues_are_bounded() {
        let sessions = Sessions::new(1);
        let _held = sessions.queue(&id("a")).await.unwrap().begin().await;
        let _waiting = sessions.queue(&id("a")).await.unwrap();
        assert!(sessions.queue(&id("a")).await.is_err());
        drop(sessions.queue(&id("b")).await.unwrap().begin().await);
    }
}

//! Turns: two messages of one session are handled one after the other, in the order they came.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::request::SessionId;

/// The queues of the sessions that have a message under way.
#[derive(Clone)]
pub(crate) struct Sessions {
    queues: Arc<Mutex<HashMap<SessionId, Queue>>>,
    waiting: usize,
}

struct Queue {
    /// One permit, given in the order in which it was asked for.
    turn: Arc<Semaphore>,
    /// Those that wait and the one whose turn it is; a queue without any is forgotten.
    members: usize,
}

/// A place in a session's queue, held until the run is done.
pub(crate) struct Turn {
    // The permit goes before the place, so that a queue is never forgotten while somebody has its turn.
    permit: BoxFuture<'static, Permit>,
    place: Place,
}

/// The session's turn: no other run of it is under way.
pub(crate) struct Held {
    _permit: Permit,
    _place: Place,
}

type Permit = Result<OwnedSemaphorePermit, AcquireError>;

struct Place {
    sessions: Sessions,
    id: SessionId,
}

impl Sessions {
    /// Sessions of which at most so many messages wait.
    pub(crate) fn new(waiting: usize) -> Self {
        Sessions { queues: Arc::default(), waiting }
    }

    /// Takes the next place in the session's queue. It is taken when this comes back, however late its turn is.
    pub(crate) async fn queue(&self, id: &SessionId) -> Result<Turn, ApiError> {
        let (turn, place) = self.enter(id)?;
        let mut permit = turn.acquire_owned().boxed();
        // Asking once is what puts the request into the semaphore's own queue.
        let permit = match poll_fn(|cx| Poll::Ready(permit.poll_unpin(cx))).await {
            Poll::Ready(given) => ready(given).boxed(),
            Poll::Pending => permit,
        };
        Ok(Turn { permit, place })
    }

    fn enter(&self, id: &SessionId) -> Result<(Arc<Semaphore>, Place), ApiError> {
        let mut queues = self.lock();
        let queue = queues.entry(id.clone()).or_insert_with(|| Queue { turn: Arc::new(Semaphore::new(1)), members: 0 });
        if queue.members > self.waiting {
            return Err(ApiError::session_busy(self.waiting));
        }
        queue.members += 1;
        Ok((Arc::clone(&queue.turn), Place { sessions: self.clone(), id: id.clone() }))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Waits until every earlier message of the session is handled.
    pub(crate) async fn begin(self) -> Held {
        Held { _permit: self.permit.await, _place: self.place }
    }
}

impl Drop for Place {
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
        crate::request::read(format!(r#"{{"message":"m","session_id":"{text}"}}"#).as_bytes()).unwrap().session
    }

    #[tokio::test]
    async fn turns_come_in_the_order_of_the_queue() {
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
    async fn one_that_leaves_the_queue_does_not_let_others_overtake() {
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
    async fn sessions_do_not_wait_for_each_other_and_queues_are_bounded() {
        let sessions = Sessions::new(1);
        let _held = sessions.queue(&id("a")).await.unwrap().begin().await;
        let _waiting = sessions.queue(&id("a")).await.unwrap();
        assert!(sessions.queue(&id("a")).await.is_err());
        drop(sessions.queue(&id("b")).await.unwrap().begin().await);
    }
}

//! A run as a stream of its events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use serde::{Deserialize, Serialize};

use super::event::RunEvent;
use super::execute::RunTask;
use super::failure::RunFailure;
use super::report::RunReport;

/// An item of a [`RunStream`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StreamItem {
    /// An event of the run.
    Event(Box<RunEvent>),
    /// The next piece of the model's answer. After a [`Retry`](super::RunEventKind::Retry) event,
    /// the answer starts again from the beginning.
    Delta {
        /// The piece of text. Consecutive unread pieces are joined.
        delta: String,
    },
}

/// A run in progress, as a stream of its events and the pieces of its answers. The stream ends when
/// the run ends. Dropping it earlier cancels the run.
///
/// Unread items are buffered. Their number is bounded only by the run's limits.
#[must_use = "the run is cancelled when the stream is dropped"]
pub struct RunStream<T> {
    pub(super) queue: Arc<StreamQueue>,
    pub(super) task: RunTask<T>,
}

impl<T: Send + 'static> RunStream<T> {
    /// Returns the run's id.
    #[must_use]
    pub fn run_id(&self) -> &str {
        self.task.run_id()
    }

    /// Waits until the run has ended and returns its report. Unread items are dropped.
    ///
    /// # Errors
    /// If the run did not complete.
    pub async fn result(self) -> Result<RunReport<T>, RunFailure> {
        self.task.await
    }
}

impl<T> Stream for RunStream<T> {
    type Item = StreamItem;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        let mut state = self.queue.lock();
        match state.items.pop_front() {
            Some(item) => Poll::Ready(Some(item)),
            None if state.is_closed => Poll::Ready(None),
            None => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A guard that closes a stream when the guard is dropped.
pub(super) struct CloseOnDrop(pub(super) Arc<StreamQueue>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.change(|state| state.is_closed = true);
    }
}

/// A queue of the stream items that have not been read yet.
#[derive(Default)]
pub(super) struct StreamQueue(Mutex<QueueState>);

#[derive(Default)]
struct QueueState {
    items: VecDeque<StreamItem>,
    is_closed: bool,
    reader: Option<Waker>,
}

impl StreamQueue {
    /// Adds an event to the queue.
    pub(super) fn event(&self, event: RunEvent) {
        self.change(|state| state.items.push_back(StreamItem::Event(Box::new(event))));
    }

    /// Adds a piece of an answer. If the last item in the queue is also a piece, the two are
    /// joined.
    pub(super) fn delta(&self, text: &str) {
        self.change(|state| match state.items.back_mut() {
            Some(StreamItem::Delta { delta }) => delta.push_str(text),
            _ => state.items.push_back(StreamItem::Delta { delta: text.to_owned() }),
        });
    }

    fn change(&self, change: impl FnOnce(&mut QueueState)) {
        let mut state = self.lock();
        change(&mut state);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

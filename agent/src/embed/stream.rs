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
    /// The next piece of the model's text, as received. After a
    /// [`Retry`](super::RunEventKind::Retry) event, the text starts again from the beginning.
    Delta {
        /// The piece of text. Consecutive unread pieces are joined.
        delta: String,
    },
    /// The next piece of a thought.
    Thinking {
        /// The piece of text. Consecutive unread pieces are joined.
        thinking: String,
    },
    /// The next piece of the answer. The pieces after the last [`StreamItem::Void`], joined, are the
    /// answer in the end.
    Answer {
        /// The piece of text. Consecutive unread pieces are joined.
        answer: String,
    },
    /// The pieces of the answer so far belong to no answer: the model calls a program, or is asked
    /// again.
    Void {
        /// The step, counted from 1.
        void: u32,
    },
    /// The run failed. This is the last item.
    Error {
        /// The error message.
        error: String,
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

    /// Adds an item other than an event. If the last item in the queue is a piece of the same text,
    /// the two are joined.
    pub(super) fn item(&self, item: StreamItem) {
        use StreamItem::{Answer, Delta, Thinking};
        self.change(|state| match (state.items.back_mut(), &item) {
            (Some(Delta { delta: last }), Delta { delta: text })
            | (Some(Thinking { thinking: last }), Thinking { thinking: text })
            | (Some(Answer { answer: last }), Answer { answer: text }) => last.push_str(text),
            _ => state.items.push_back(item),
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

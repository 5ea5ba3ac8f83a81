//! Tasks: the parallel parts of a shell, such as jobs and pipeline stages.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::JoinHandle;

/// A task that is aborted when it is dropped.
#[derive(Debug)]
pub(crate) struct Task<T = u8>(JoinHandle<T>);

impl<T: Send + 'static> Task<T> {
    pub(crate) fn start(work: impl Future<Output = T> + Send + 'static) -> Task<T> {
        Task(tokio::spawn(work))
    }

    /// Waits for the task and returns its result, or `None` if it panicked.
    pub(crate) async fn finish(mut self) -> Option<T> {
        std::future::poll_fn(|context| self.poll_end(context)).await
    }

    /// Polls the task for its result, which is `None` if the task panicked.
    pub(crate) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(context).map(Result::ok)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

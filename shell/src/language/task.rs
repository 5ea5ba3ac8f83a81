//! Tasks: the parts of a shell that run on their own stacks.
//!
//! A caller's stack may be too small for a deeply nested script: the host functions of a program
//! run on a stack of 256 KiB. Therefore, every shell runs in a task with its own thread, or in a
//! local task on such a thread. A local task is polled at the bottom of the thread's stack.

use std::future::Future;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

/// Stack size of a task's thread, in bytes. The deepest nesting permitted on one stack uses a few
/// MiB in a debug build. Only the pages that are touched take up memory.
const STACK: usize = 32 << 20;

/// A task that is cancelled when it is dropped.
#[derive(Debug)]
pub(crate) struct Task<T = u8> {
    ended: oneshot::Receiver<T>,
    /// Dropping the sender cancels the task.
    guard: oneshot::Sender<()>,
}

impl<T: 'static> Task<T> {
    /// Starts a task on its own thread. If the thread cannot be started, the task has no result.
    pub(crate) fn start(work: impl Future<Output = T> + Send + 'static) -> Task<T>
    where
        T: Send,
    {
        let (task, driven) = Task::prepare(work);
        let runtime = Handle::current();
        let thread = std::thread::Builder::new().name("wattle-shell".to_owned()).stack_size(STACK);
        // If no thread starts, the result's sender is dropped, and `finish` returns `None`.
        let _ = thread.spawn(move || runtime.block_on(LocalSet::new().run_until(driven)));
        task
    }

    /// Starts a task on the thread of the current task. The new task ends no later than the current
    /// one.
    pub(crate) fn start_local(work: impl Future<Output = T> + 'static) -> Task<T> {
        let (task, driven) = Task::prepare(work);
        drop(tokio::task::spawn_local(driven));
        task
    }

    /// Returns a task, and a future that runs `work` until `work` ends or the task is dropped.
    fn prepare<F: Future<Output = T>>(work: F) -> (Task<T>, impl Future<Output = ()>) {
        let (sender, ended) = oneshot::channel();
        let (guard, cancelled) = oneshot::channel::<()>();
        let driven = async move {
            let result = tokio::select! {
                biased;
                _ = cancelled => None,
                result = work => Some(result),
            };
            if let Some(result) = result {
                // The receiver is gone if the task was dropped in the meantime.
                let _ = sender.send(result);
            }
        };
        (Task { ended, guard }, driven)
    }

    /// Waits for the task and returns its result, or `None` if it panicked or could not start.
    pub(crate) async fn finish(mut self) -> Option<T> {
        std::future::poll_fn(|context| self.poll_end(context)).await
    }

    /// Polls the task for its result, which is `None` if the task panicked or could not start.
    pub(crate) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        std::pin::Pin::new(&mut self.ended).poll(context).map(Result::ok)
    }

    /// Returns true if the task has not ended yet.
    pub(crate) fn is_running(&self) -> bool {
        self.ended.is_empty()
    }

    /// Cancels the task and waits until it has stopped.
    pub(crate) async fn cancel(self) {
        let Task { ended, guard } = self;
        drop(guard);
        // The caller does not need the result.
        let _ = ended.await;
    }
}

//! Waits for futures on the thread of a stage, and cancels the stage from another thread.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Instant;

/// A waiter that blocks a stage's thread until a future is ready. It belongs to one thread.
pub(crate) struct Waiter {
    shared: Arc<Shared>,
    waker: Waker,
}

/// A guard that cancels the stage when it is dropped. A running stage ends at the next tick of the
/// engine's clock, and a waiting stage ends immediately.
pub(super) struct CancelGuard(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    thread: OnceLock<Thread>,
}

/// Result of waiting for a future.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WaitResult<T> {
    /// The future's output.
    Done(T),
    /// The deadline passed first.
    TimedOut,
    /// The stage was cancelled.
    Cancelled,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

/// Creates the waiter of a stage, and the guard that cancels the stage.
pub(super) fn cancellable() -> (Waiter, CancelGuard) {
    let shared = Arc::new(Shared::default());
    let waker = Waker::from(Arc::clone(&shared));
    (Waiter { shared: Arc::clone(&shared), waker }, CancelGuard(shared))
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Release);
        self.0.wake_by_ref();
    }
}

impl Waiter {
    /// Binds the waiter to the calling thread.
    pub(super) fn bind_thread(&self) {
        // A second call changes nothing: a stage binds its waiter once, when it starts.
        let _ = self.shared.thread.set(std::thread::current());
    }

    /// Returns true if the stage was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    /// Waits for a future, at most until `deadline`.
    pub(crate) fn wait<T>(
        &self,
        future: impl Future<Output = T>,
        deadline: Option<Instant>,
    ) -> WaitResult<T> {
        let mut future = pin!(future);
        let mut context = Context::from_waker(&self.waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return WaitResult::Done(output);
            }
            if self.is_cancelled() {
                return WaitResult::Cancelled;
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(remaining) if remaining.is_zero() => return WaitResult::TimedOut,
                Some(remaining) => std::thread::park_timeout(remaining),
                None => std::thread::park(),
            }
        }
    }
}

//! Waiting on the thread of a stage: for a pipe, for a while, for a command that it started; and being ended from outside.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Instant;

/// What a stage waits by. It belongs to one thread.
pub(crate) struct Waiter {
    shared: Arc<Shared>,
    waker: Waker,
}

/// Ends the stage when it is dropped: at its next tick, or where it waits.
pub(super) struct Lifeline(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cut: AtomicBool,
    thread: OnceLock<Thread>,
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited<T> {
    /// With what was waited for.
    Done(T),
    /// The time was up.
    Late,
    /// The stage is to end.
    Cut,
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

/// The two sides of a stage's life: what it waits by, and what ends it.
pub(super) fn lifeline() -> (Waiter, Lifeline) {
    let shared = Arc::new(Shared::default());
    let waker = Waker::from(Arc::clone(&shared));
    (Waiter { shared: Arc::clone(&shared), waker }, Lifeline(shared))
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        self.0.cut.store(true, Ordering::Release);
        self.0.wake_by_ref();
    }
}

impl Waiter {
    /// Takes the calling thread for the one that waits.
    pub(super) fn settle(&self) {
        // A second call changes nothing: a waiter is settled once, where its stage begins.
        let _ = self.shared.thread.set(std::thread::current());
    }

    /// Whether the stage is to end.
    pub(crate) fn is_truncated(&self) -> bool {
        self.shared.cut.load(Ordering::Acquire)
    }

    /// Waits for a future, until a time where one is given.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>, until: Option<Instant>) -> Waited<T> {
        let mut future = pin!(future);
        let mut context = Context::from_waker(&self.waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Waited::Done(output);
            }
            if self.is_truncated() {
                return Waited::Cut;
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return Waited::Late,
                Some(left) => std::thread::park_timeout(left),
                None => std::thread::park(),
            }
        }
    }
}

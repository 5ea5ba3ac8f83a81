//! The threads on which stages run. A thread whose stage has ended waits for another stage, because
//! creating and removing a thread takes longer than a short command.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use super::engine::THREAD_STACK;
use crate::lock::lock;

/// Maximum number of threads that wait for work.
const IDLE: usize = 16;
/// Time after which a waiting thread ends.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// A function that runs a stage to its end.
type Work = Box<dyn FnOnce() + Send>;

/// The threads. Their number is not limited: stages of a pipeline wait for each other, so a stage
/// must never wait for a thread.
#[derive(Default)]
pub(super) struct Threads(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    queued: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of waiting threads, not counting those that will take the queued work.
    idle: usize,
    /// Work that waiting threads will take.
    work: VecDeque<Work>,
}

impl Threads {
    /// Runs `work` on a thread of its own.
    ///
    /// # Errors
    /// If the system refuses to start a thread.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let work: Work = Box::new(work);
        let mut state = lock(&self.0.state);
        if let Some(rest) = state.idle.checked_sub(1) {
            state.idle = rest;
            state.work.push_back(work);
            self.0.queued.notify_one();
            return Ok(());
        }
        drop(state);
        let shared = Arc::clone(&self.0);
        let thread = Builder::new().name("wattle-stage".to_owned()).stack_size(THREAD_STACK);
        thread.spawn(move || shared.work_from(work)).map(drop)
    }
}

impl Shared {
    /// Runs `work`, then further work until `next` returns `None`.
    fn work_from(&self, work: Work) {
        work();
        while let Some(work) = self.next() {
            work();
        }
    }

    /// Waits for work. Returns `None` if the thread is no longer needed.
    fn next(&self) -> Option<Work> {
        let mut state = lock(&self.state);
        if state.idle >= IDLE {
            return None;
        }
        state.idle += 1;
        let waited = self.queued.wait_timeout_while(state, IDLE_TIME, |s| s.work.is_empty());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let work = state.work.pop_front();
        if work.is_none() {
            state.idle -= 1;
        }
        work
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failure ends the test")]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_is_used_again() {
        let threads = Threads::default();
        let (sender, receiver) = channel();
        let mut used = Vec::new();
        for _ in 0..3 {
            let sender = sender.clone();
            threads.run(move || sender.send(thread::current().id()).unwrap()).unwrap();
            used.push(receiver.recv().unwrap());
            while lock(&threads.0.state).idle == 0 {
                thread::yield_now();
            }
        }
        assert!(used.iter().all(|id| *id == used[0]), "{used:?}");
    }

    #[test]
    fn work_never_waits_for_other_work() {
        let threads = Threads::default();
        for _ in 0..2 {
            let all = Arc::new(Barrier::new(2 * IDLE + 1));
            for _ in 0..2 * IDLE {
                let all = Arc::clone(&all);
                threads
                    .run(move || {
                        all.wait();
                    })
                    .unwrap();
            }
            all.wait();
        }
        assert!(lock(&threads.0.state).idle <= IDLE);
    }

    #[test]
    fn work_that_panics_takes_no_other_work_with_it() {
        let threads = Threads::default();
        let (sender, receiver) = channel();
        threads.run(|| panic!("on purpose")).unwrap();
        threads.run(move || sender.send(()).unwrap()).unwrap();
        receiver.recv().unwrap();
    }
}

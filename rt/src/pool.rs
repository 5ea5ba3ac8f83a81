//! The threads that compile: a fixed number, apart from those that answer requests.
//!
//! Whoever asks waits for a place in the line and for the outcome, each with a limit. The limits end the *wait*: what a thread has
//! begun it finishes, and no further thread takes its place, so that texts that take long cannot take the machine. Time is looked at
//! by [`Pool::tick`], which the engine's clock calls.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::Unfinished;

/// How much is done at once, and how long is waited for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) threads: usize,
    /// How many may stand in the line.
    pub(crate) line: usize,
    /// How long one may stand in the line.
    pub(crate) patience: Duration,
    /// How long the work may take.
    pub(crate) time: Duration,
}

impl Bounds {
    /// At most half of the processors, and a line that is short enough to be through in time.
    pub(crate) fn new(time: Duration) -> Bounds {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Bounds { threads: (processors / 2).max(1), line: 64, patience: time.saturating_mul(2), time }
    }
}

/// The threads and the line before them. Threads start with the first work and end with the pool.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    bounds: Bounds,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    line: VecDeque<Job>,
    /// What the threads are at: by when, and whom to tell.
    begun: Vec<(u64, Instant, Arc<dyn Ticket>)>,
    threads: usize,
    next: u64,
    closed: bool,
}

struct Job {
    work: Box<dyn FnOnce() + Send>,
    ticket: Arc<dyn Ticket>,
    latest: Instant,
}

/// Whoever waits for an outcome.
trait Ticket: Send + Sync {
    fn give_up(&self, why: Unfinished);
    /// Whether somebody waits still.
    fn is_wanted(&self) -> bool;
}

struct Answer<T>(Mutex<Option<oneshot::Sender<Result<T, Unfinished>>>>);

impl<T> Answer<T> {
    fn send(&self, outcome: Result<T, Unfinished>) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Nobody may wait any more.
        let _ = sender.map(|sender| sender.send(outcome));
    }
}

impl<T: Send> Ticket for Answer<T> {
    fn give_up(&self, why: Unfinished) {
        self.send(Err(why));
    }

    fn is_wanted(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|sender| !sender.is_closed())
    }
}

impl Pool {
    pub(crate) fn new(bounds: Bounds) -> Pool {
        Pool { shared: Arc::new(Shared { bounds, state: Mutex::default(), wake: Condvar::new() }) }
    }

    /// Does work on a thread of the pool. Dropping the future gives up the place in the line.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        let (sender, receiver) = oneshot::channel();
        let answer = Arc::new(Answer(Mutex::new(Some(sender))));
        let ticket: Arc<dyn Ticket> = Arc::<Answer<T>>::clone(&answer);
        let work = Box::new(move || answer.send(caught(work)));
        let latest = Instant::now() + self.shared.bounds.patience;
        self.shared.enter(Job { work, ticket, latest })?;
        receiver.await.unwrap_or(Err(Unfinished::Busy))
    }

    /// Returns what ends the waits whose time is up; it is to be called every now and then.
    pub(crate) fn tick(&self) -> impl Fn() + Send + 'static {
        let shared = Arc::downgrade(&self.shared);
        move || {
            if let Some(shared) = shared.upgrade() {
                shared.expire(Instant::now());
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

/// Does work, with a panic as an outcome.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Unfinished> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| Unfinished::Bug(words(payload.as_ref())))
}

/// What a panic says.
pub(crate) fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

impl Shared {
    /// The state is sound between any two changes, so that a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a job into the line, and starts a thread for it where there may be one more.
    fn enter(self: &Arc<Self>, job: Job) -> Result<(), Unfinished> {
        let mut state = self.lock();
        state.line.retain(|job| job.ticket.is_wanted());
        if state.line.len() >= self.bounds.line {
            return Err(Unfinished::Busy);
        }
        state.line.push_back(job);
        if state.threads < self.bounds.threads && state.begun.len() + state.line.len() > state.threads {
            let shared = Arc::clone(self);
            let started = std::thread::Builder::new().name("wattle-compile".to_owned()).spawn(move || shared.work());
            match started {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads > 0 => {}
                Err(_) => {
                    state.line.pop_back();
                    return Err(Unfinished::Busy);
                }
            }
        }
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// What each thread does.
    fn work(&self) {
        let mut state = self.lock();
        while !state.closed {
            let Some(job) = state.line.pop_front() else {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if !job.ticket.is_wanted() {
                continue;
            }
            let id = state.next;
            state.next += 1;
            state.begun.push((id, Instant::now() + self.bounds.time, job.ticket));
            drop(state);
            (job.work)();
            state = self.lock();
            state.begun.retain(|(begun, ..)| *begun != id);
        }
    }

    /// Ends the waits whose time is up.
    fn expire(&self, now: Instant) {
        let mut state = self.lock();
        state
            .begun
            .iter()
            .filter(|(_, due, _)| *due <= now)
            .for_each(|(.., ticket)| ticket.give_up(Unfinished::Overdue));
        while let Some(job) = state.line.pop_front_if(|job| job.latest <= now) {
            job.ticket.give_up(Unfinished::Busy);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pool(line: usize, time: Duration) -> Pool {
        let pool = Pool::new(Bounds { threads: 1, line, patience: Duration::from_secs(60), time });
        let tick = pool.tick();
        std::thread::spawn(move || {
            loop {
                tick();
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        pool
    }

    /// Work that goes on until it is let go, and what lets it go.
    fn held() -> (impl FnOnce() -> u32 + Send + 'static, mpsc::Sender<()>, mpsc::Receiver<()>) {
        let (go, wait) = mpsc::channel();
        let (begins, begun) = mpsc::channel();
        let work = move || {
            let _ = begins.send(());
            let _ = wait.recv();
            7
        };
        (work, go, begun)
    }

    #[tokio::test]
    async fn work_is_done_on_a_thread_of_the_pool() {
        let pool = pool(4, Duration::from_secs(60));
        let name = pool.run(|| std::thread::current().name().map(str::to_owned)).await;
        assert_eq!(name, Ok(Some("wattle-compile".to_owned())));
    }

    #[tokio::test]
    async fn a_panic_is_an_outcome_and_the_thread_goes_on() {
        let pool = pool(4, Duration::from_secs(60));
        let bug = pool.run(|| -> u32 { panic!("broken {}", 1) }).await;
        assert_eq!(bug, Err(Unfinished::Bug("broken 1".to_owned())));
        assert_eq!(pool.run(|| 1).await, Ok(1));
    }

    #[tokio::test]
    async fn the_wait_ends_when_the_time_is_up_and_the_line_waits_for_the_thread() {
        let pool = Arc::new(pool(4, Duration::from_millis(20)));
        let (work, go, _begun) = held();
        assert_eq!(pool.run(work).await, Err(Unfinished::Overdue));
        let next = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(|| 1).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(pool.shared.lock().threads, 1, "no thread takes the place of one that goes on");
        go.send(()).unwrap();
        assert_eq!(next.await.unwrap(), Ok(1));
    }

    #[tokio::test]
    async fn a_full_line_refuses_and_who_gave_up_makes_room() {
        let pool = Arc::new(pool(1, Duration::from_secs(60)));
        let (work, go, begun) = held();
        let spawn = |work: Box<dyn FnOnce() -> u32 + Send>| {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move { pool.run(work).await })
        };
        let first = spawn(Box::new(work));
        tokio::task::spawn_blocking(move || begun.recv()).await.unwrap().unwrap();
        let second = spawn(Box::new(|| 2));
        tokio::task::yield_now().await;
        assert_eq!(pool.run(|| 3).await, Err(Unfinished::Busy));
        second.abort();
        assert!(second.await.unwrap_err().is_cancelled());
        let third = spawn(Box::new(|| 3));
        tokio::task::yield_now().await;
        go.send(()).unwrap();
        assert_eq!((first.await.unwrap(), third.await.unwrap()), (Ok(7), Ok(3)));
    }

    #[tokio::test]
    async fn who_stands_in_the_line_too_long_is_told_that_the_host_is_busy() {
        let bounds = Bounds { threads: 1, line: 4, patience: Duration::ZERO, time: Duration::from_secs(60) };
        let pool = Arc::new(Pool::new(bounds));
        let (work, go, begun) = held();
        let first = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(work).await }
        });
        tokio::task::spawn_blocking(move || begun.recv()).await.unwrap().unwrap();
        let second = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(|| 2).await }
        });
        tokio::task::yield_now().await;
        pool.tick()();
        assert_eq!(second.await.unwrap(), Err(Unfinished::Busy));
        go.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Ok(7));
    }
}

//! The pool of compiler threads. Their number is limited, and they are separate from the threads
//! that serve requests.
//!
//! A caller first waits in a queue, in which the owners of the work take turns, and then waits for
//! the result. An owner gets at most its share of the queue. Each wait has a time limit, which
//! ends only the *wait*: the thread finishes the work that it has started, and no new thread is
//! started in its place. Slow programs therefore cannot occupy the whole machine. [`Pool::tick`],
//! which the engine's clock calls, ends the waits whose time is up.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::turns::FairQueue;
use crate::{Interruption, Owner, Shares, Usage};

/// The limits of the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Maximum number of threads.
    pub(crate) threads: usize,
    /// Maximum number of jobs in the queue, which the owners share.
    pub(crate) queue: usize,
    /// Maximum time that a job waits in the queue.
    pub(crate) queue_time: Duration,
    /// Maximum time to wait for a job that has started.
    pub(crate) time: Duration,
}

impl Bounds {
    /// Returns the default limits: one thread for every two processors, and a short queue.
    pub(crate) fn new(time: Duration) -> Bounds {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Bounds {
            threads: (processors / 2).max(1),
            queue: 64,
            queue_time: time.saturating_mul(2),
            time,
        }
    }
}

/// The threads and their queue. Threads start when there is work and stop when the pool is dropped.
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
    queue: FairQueue<Job>,
    running: Vec<RunningJob>,
    threads: usize,
    next_id: u64,
    closed: bool,
}

struct Job {
    work: Box<dyn FnOnce() + Send>,
    waiter: Arc<dyn Waiter>,
    deadline: Instant,
}

struct RunningJob {
    id: u64,
    deadline: Instant,
    waiter: Arc<dyn Waiter>,
}

/// A caller that waits for the result of a job.
trait Waiter: Send + Sync {
    /// Ends the wait without a result.
    fn give_up(&self, why: Interruption);
    /// Returns true if the caller is still waiting.
    fn is_waiting(&self) -> bool;
}

struct ResultSender<T>(Mutex<Option<oneshot::Sender<Result<T, Interruption>>>>);

impl<T> ResultSender<T> {
    fn send(&self, outcome: Result<T, Interruption>) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The caller may have stopped waiting.
        let _ = sender.map(|sender| sender.send(outcome));
    }
}

impl<T: Send> Waiter for ResultSender<T> {
    fn give_up(&self, why: Interruption) {
        self.send(Err(why));
    }

    fn is_waiting(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_some_and(|sender| !sender.is_closed())
    }
}

impl Pool {
    pub(crate) fn new(bounds: Bounds) -> Pool {
        Pool { shared: Arc::new(Shared { bounds, state: Mutex::default(), wake: Condvar::new() }) }
    }

    /// Runs work of an owner on a thread of the pool. Dropping the future removes the work from the
    /// queue.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        owner: &Owner,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Interruption> {
        let (sender, receiver) = oneshot::channel();
        let sender = Arc::new(ResultSender(Mutex::new(Some(sender))));
        let waiter: Arc<dyn Waiter> = Arc::<ResultSender<T>>::clone(&sender);
        let work = Box::new(move || sender.send(catch_panic(work)));
        let deadline = Instant::now() + self.shared.bounds.queue_time;
        self.shared.enqueue(owner, Job { work, waiter, deadline })?;
        receiver.await.unwrap_or(Err(Interruption::Busy))
    }

    /// Returns a function that ends the waits whose time is up. The function must be called
    /// regularly.
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

/// Runs work and converts a panic into an error.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Interruption> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|payload| Interruption::Bug(panic_message(payload.as_ref())))
}

/// Returns the message of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

impl Shared {
    /// Locks the state. Each change leaves the state consistent, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job to the queue and starts another thread for it if the limit allows.
    fn enqueue(self: &Arc<Self>, owner: &Owner, job: Job) -> Result<(), Interruption> {
        let mut state = self.lock();
        state.queue.retain(|job| job.waiter.is_waiting());
        let mut queued = Usage::new(Shares::of(self.bounds.queue));
        for waiting in state.queue.owners() {
            queued.take(waiting).map_err(|_| Interruption::Busy)?;
        }
        queued.take(owner).map_err(|_| Interruption::Busy)?;
        state.queue.push(owner, job);
        if state.threads < self.bounds.threads
            && state.running.len() + state.queue.owners().count() > state.threads
        {
            let shared = Arc::clone(self);
            let started = std::thread::Builder::new()
                .name("wattle-compile".to_owned())
                .spawn(move || shared.work());
            match started {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads > 0 => {}
                Err(_) => {
                    // Without a thread, no job can be done.
                    state.queue = FairQueue::default();
                    return Err(Interruption::Busy);
                }
            }
        }
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Runs jobs from the queue until the pool is closed. Each thread runs this function.
    fn work(&self) {
        let mut state = self.lock();
        while !state.closed {
            let Some((_, job)) = state.queue.pop(|_| true) else {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if !job.waiter.is_waiting() {
                continue;
            }
            let id = state.next_id;
            state.next_id += 1;
            let deadline = Instant::now() + self.bounds.time;
            state.running.push(RunningJob { id, deadline, waiter: job.waiter });
            drop(state);
            (job.work)();
            state = self.lock();
            state.running.retain(|job| job.id != id);
        }
    }

    /// Ends the waits whose time is up.
    fn expire(&self, now: Instant) {
        let mut state = self.lock();
        let overdue = state.running.iter().filter(|job| job.deadline <= now);
        overdue.for_each(|job| job.waiter.give_up(Interruption::Overdue));
        state.queue.retain(|job| {
            let is_overdue = job.deadline <= now;
            if is_overdue {
                job.waiter.give_up(Interruption::Busy);
            }
            !is_overdue
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pool(queue: usize, time: Duration) -> Pool {
        let pool =
            Pool::new(Bounds { threads: 1, queue, queue_time: Duration::from_secs(60), time });
        let tick = pool.tick();
        std::thread::spawn(move || {
            loop {
                tick();
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        pool
    }

    /// Returns work that blocks until it is released, a sender that releases it, and a receiver
    /// that gets a message when the work begins.
    fn blocked() -> (impl FnOnce() -> u32 + Send + 'static, mpsc::Sender<()>, mpsc::Receiver<()>) {
        let (release, released) = mpsc::channel();
        let (begin, started) = mpsc::channel();
        let work = move || {
            let _ = begin.send(());
            let _ = released.recv();
            7
        };
        (work, release, started)
    }

    #[tokio::test]
    async fn work_is_done_on_a_thread_of_the_pool() {
        let pool = pool(4, Duration::from_secs(60));
        let name =
            pool.run(&Owner::Operator, || std::thread::current().name().map(str::to_owned)).await;
        assert_eq!(name, Ok(Some("wattle-compile".to_owned())));
    }

    #[tokio::test]
    async fn a_thread_survives_a_panic_of_its_work() {
        let pool = pool(4, Duration::from_secs(60));
        let bug = pool.run(&Owner::Operator, || -> u32 { panic!("broken {}", 1) }).await;
        assert_eq!(bug, Err(Interruption::Bug("broken 1".to_owned())));
        assert_eq!(pool.run(&Owner::Operator, || 1).await, Ok(1));
    }

    #[tokio::test]
    async fn a_wait_ends_on_time_but_the_queue_waits_for_the_thread() {
        let pool = Arc::new(pool(4, Duration::from_millis(20)));
        let (work, release, _begun) = blocked();
        assert_eq!(pool.run(&Owner::Operator, work).await, Err(Interruption::Overdue));
        let next = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(&Owner::Operator, || 1).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(pool.shared.lock().threads, 1, "a busy thread is not replaced");
        release.send(()).unwrap();
        assert_eq!(next.await.unwrap(), Ok(1));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_work_until_a_waiter_gives_up() {
        let pool = Arc::new(pool(1, Duration::from_secs(60)));
        let (work, release, started) = blocked();
        let spawn = |work: Box<dyn FnOnce() -> u32 + Send>| {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move { pool.run(&Owner::Operator, work).await })
        };
        let first = spawn(Box::new(work));
        tokio::task::spawn_blocking(move || started.recv()).await.unwrap().unwrap();
        let second = spawn(Box::new(|| 2));
        tokio::task::yield_now().await;
        assert_eq!(pool.run(&Owner::Operator, || 3).await, Err(Interruption::Busy));
        second.abort();
        assert!(second.await.unwrap_err().is_cancelled());
        let third = spawn(Box::new(|| 3));
        tokio::task::yield_now().await;
        release.send(()).unwrap();
        assert_eq!((first.await.unwrap(), third.await.unwrap()), (Ok(7), Ok(3)));
    }

    #[tokio::test]
    async fn a_job_that_waits_too_long_in_the_queue_fails_as_busy() {
        let bounds = Bounds {
            threads: 1,
            queue: 4,
            queue_time: Duration::ZERO,
            time: Duration::from_secs(60),
        };
        let pool = Arc::new(Pool::new(bounds));
        let (work, release, started) = blocked();
        let first = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(&Owner::Operator, work).await }
        });
        tokio::task::spawn_blocking(move || started.recv()).await.unwrap().unwrap();
        let second = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(&Owner::Operator, || 2).await }
        });
        tokio::task::yield_now().await;
        pool.tick()();
        assert_eq!(second.await.unwrap(), Err(Interruption::Busy));
        release.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Ok(7));
    }

    #[tokio::test]
    async fn owners_take_turns_and_leave_places_in_the_queue_to_others() {
        let pool = Arc::new(pool(8, Duration::from_secs(60)));
        let (work, release, started) = blocked();
        let first = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.run(&Owner::Operator, work).await }
        });
        tokio::task::spawn_blocking(move || started.recv()).await.unwrap().unwrap();
        let done = Arc::new(Mutex::new(Vec::new()));
        let queue = |owner: Owner, number: u32| {
            let (pool, done) = (Arc::clone(&pool), Arc::clone(&done));
            let work = move || done.lock().unwrap().push(number);
            tokio::spawn(async move { pool.run(&owner, work).await })
        };
        let fill = async |owner: &Owner, numbers: std::ops::Range<u32>| {
            let mut jobs = Vec::new();
            for number in numbers {
                jobs.push(queue(owner.clone(), number));
                tokio::task::yield_now().await;
            }
            jobs
        };
        let [flood, other, third] =
            ["flood", "other", "third"].map(|name| Owner::Group(name.into()));
        let mut jobs = fill(&flood, 0..4).await;
        assert_eq!(queue(flood, 4).await.unwrap(), Err(Interruption::Busy), "its share is full");
        jobs.extend(fill(&other, 10..13).await);
        assert_eq!(queue(third, 20).await.unwrap(), Err(Interruption::Busy), "one is reserved");
        jobs.extend(fill(&Owner::Operator, 30..31).await);
        release.send(()).unwrap();
        for job in jobs {
            assert_eq!(job.await.unwrap(), Ok(()));
        }
        assert_eq!(first.await.unwrap(), Ok(7));
        assert_eq!(*done.lock().unwrap(), [0, 10, 30, 1, 11, 2, 12, 3]);
    }
}

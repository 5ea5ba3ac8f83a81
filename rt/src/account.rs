//! Accounts: what a run makes the host hold, compute and receive, within limits.
//!
//! A [`Runtime`](crate::Runtime) has one account for the process. Each run has one below it, which all of its programs share, those
//! that they start among them; whatever is charged to a run's account is charged to the process's as well. Memory is *held* and comes
//! back; processor time and bytes are *spent* and do not.

use std::cell::Cell;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::{Code, Failure};

/// Memory is taken from an account in portions of this size, so that small amounts cost no atomic operation each.
const PORTION: usize = 64 << 10;

/// Limits of one run, all of its programs together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountLimits {
    /// Maximum memory that its programs and the host on their behalf hold at one time, in bytes. Default 384 MiB.
    pub memory: usize,
    /// Maximum processor time of its programs and of host functions on their behalf. Default 10 min.
    pub cpu: Duration,
    /// Maximum bytes that it receives from the network. Default 1 GiB.
    pub received: u64,
}

impl Default for AccountLimits {
    fn default() -> Self {
        AccountLimits { memory: 384 << 20, cpu: Duration::from_secs(600), received: 1 << 30 }
    }
}

/// The account of a run, or of the process. A clone is the same account.
#[derive(Clone)]
pub struct Account(Arc<Inner>);

struct Inner {
    limits: AccountLimits,
    parent: Option<Account>,
    held: AtomicUsize,
    /// In nanoseconds.
    cpu: AtomicU64,
    received: AtomicU64,
    /// Wakes whoever waits for memory.
    released: Notify,
}

/// The account that lacks room for a charge.
struct Full<'a>(&'a Account);

impl Account {
    /// Opens the account of a process whose runs hold at most `memory` bytes together.
    #[must_use]
    pub fn of_process(memory: usize) -> Account {
        Account::open(AccountLimits { memory, cpu: Duration::MAX, received: u64::MAX }, None)
    }

    /// Opens the account of a run below this one.
    #[must_use]
    pub fn open_run(&self, limits: AccountLimits) -> Account {
        Account::open(limits, Some(self.clone()))
    }

    fn open(limits: AccountLimits, parent: Option<Account>) -> Account {
        Account(Arc::new(Inner {
            limits,
            parent,
            held: AtomicUsize::new(0),
            cpu: AtomicU64::new(0),
            received: AtomicU64::new(0),
            released: Notify::new(),
        }))
    }

    /// Returns the memory that is held now, in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.held.load(SeqCst)
    }

    /// Returns the memory that can still be held, in bytes.
    #[must_use]
    pub fn free(&self) -> usize {
        let own = self.0.limits.memory.saturating_sub(self.held());
        self.0.parent.as_ref().map_or(own, |parent| own.min(parent.free()))
    }

    /// Returns the processor time that was spent.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.0.cpu.load(Relaxed))
    }

    /// Returns the bytes that were received.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.0.received.load(Relaxed)
    }

    /// Holds memory until the value is dropped.
    ///
    /// # Errors
    /// `ENOMEM` if a limit would be passed.
    pub fn hold(&self, bytes: usize) -> Result<Held, Failure> {
        let mut held = self.nothing();
        held.grow(bytes)?;
        Ok(held)
    }

    /// Holds nothing yet; it can [grow](Held::grow).
    #[must_use]
    pub fn nothing(&self) -> Held {
        Held { account: self.clone(), bytes: 0, used: 0 }
    }

    /// Holds memory as soon as that leaves `spare` bytes for others, and waits for that at most until then. Whoever waits holds nothing of
    /// the same kind, so that those who have what they need go on.
    ///
    /// # Errors
    /// `ENOMEM` if the account never has so much, or has not by then.
    pub async fn wait_to_hold(&self, bytes: usize, spare: usize, until: Instant) -> Result<Held, Failure> {
        loop {
            let full = match self.take(bytes, spare) {
                Ok(()) => return Ok(Held { account: self.clone(), bytes, used: bytes }),
                Err(Full(full)) => full,
            };
            let why = full.lacks(bytes);
            if bytes.saturating_add(spare) > full.0.limits.memory {
                return Err(why);
            }
            let mut released = pin!(full.0.released.notified());
            released.as_mut().enable();
            // It may have become free before this one listened.
            if self.take(bytes, spare).is_ok() {
                return Ok(Held { account: self.clone(), bytes, used: bytes });
            }
            tokio::time::timeout_at(until.into(), released).await.map_err(|_| why)?;
        }
    }

    fn take(&self, bytes: usize, spare: usize) -> Result<(), Full<'_>> {
        let fits =
            |held: usize| held.checked_add(bytes).filter(|sum| sum.saturating_add(spare) <= self.0.limits.memory);
        self.0.held.fetch_update(SeqCst, SeqCst, fits).map_err(|_| Full(self))?;
        if let Some(parent) = &self.0.parent
            && let Err(full) = parent.take(bytes, spare)
        {
            self.0.held.fetch_sub(bytes, SeqCst);
            return Err(full);
        }
        Ok(())
    }

    fn release(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.0.held.fetch_sub(bytes, SeqCst);
        self.0.released.notify_waiters();
        if let Some(parent) = &self.0.parent {
            parent.release(bytes);
        }
    }

    fn lacks(&self, bytes: usize) -> Failure {
        let (limit, held) = (amount(self.0.limits.memory as u64), amount(self.held() as u64));
        let words = match self.0.parent {
            Some(_) => format!(
                "the run holds {held} of its {limit} of memory, and this takes {} more; work on less at once, or raise the \
                 setting `limits.memory_mb`",
                amount(bytes as u64)
            ),
            None => format!(
                "the runs of this process hold {held} of their {limit} of memory, and this takes {} more; try again when \
                 others have ended, or raise the setting `limits.process_memory_mb`",
                amount(bytes as u64)
            ),
        };
        Failure::new(Code::ENOMEM, words)
    }

    /// Spends processor time.
    ///
    /// # Errors
    /// `EBUDGET` if the run has spent all that it may.
    pub fn spend_cpu(&self, time: Duration) -> Result<(), Failure> {
        self.add_cpu(time);
        match self.is_out_of_cpu() {
            false => Ok(()),
            true => Err(Failure::new(Code::EBUDGET, self.out_of_cpu())),
        }
    }

    fn add_cpu(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.cpu.fetch_add(nanos, Relaxed);
        if let Some(parent) = &self.0.parent {
            parent.add_cpu(time);
        }
    }

    /// Returns whether the run has spent all its processor time.
    #[must_use]
    pub fn is_out_of_cpu(&self) -> bool {
        self.cpu() > self.0.limits.cpu
    }

    /// Describes the limit on processor time.
    #[must_use]
    pub fn out_of_cpu(&self) -> String {
        format!(
            "the run used up its {:?} of processor time, all of its programs together; do less in one run, or raise the setting \
             `limits.cpu`",
            self.0.limits.cpu
        )
    }

    /// Counts bytes that the run received from the network.
    ///
    /// # Errors
    /// `EBUDGET` if the run has received more than it may.
    pub fn take_bytes(&self, bytes: usize) -> Result<(), Failure> {
        let received = self.0.received.fetch_add(bytes as u64, Relaxed).saturating_add(bytes as u64);
        if let Some(parent) = &self.0.parent {
            parent.take_bytes(bytes)?;
        }
        if received <= self.0.limits.received {
            return Ok(());
        }
        let words = format!(
            "the run received more than {} from the network, all of its programs together; fetch less in one run, or raise the \
             setting `limits.received_mb`",
            amount(self.0.limits.received)
        );
        Err(Failure::new(Code::EBUDGET, words))
    }

    /// Spends the time of a future: what its polls take, of the outermost one if one is polled by another. It is read off the wall clock,
    /// which costs a short program nothing, so that on a busy machine it is an upper bound of the processor time.
    pub async fn metered<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            if METERING.replace(true) {
                return work.as_mut().poll(context);
            }
            let _metering = Metering;
            let started = Instant::now();
            let polled = work.as_mut().poll(context);
            self.add_cpu(started.elapsed());
            polled
        })
        .await
    }

    /// Does blocking work on this thread, and spends the time that it keeps a processor busy.
    pub fn work<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = processor_time();
        let done = work();
        self.add_cpu(processor_time().saturating_sub(before));
        done
    }
}

/// Two are equal if they are the same account.
impl PartialEq for Account {
    fn eq(&self, other: &Account) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Account {}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("limits", &self.0.limits).field("held", &self.held()).finish_non_exhaustive()
    }
}

/// An amount of bytes in words.
fn amount(bytes: u64) -> String {
    if bytes >= 10 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes.div_ceil(1024)) }
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Memory that is charged to an account until this is dropped.
#[derive(Debug)]
pub struct Held {
    account: Account,
    /// What is charged.
    bytes: usize,
    /// What of it is used; the rest is what is left of a portion.
    used: usize,
}

impl Held {
    /// Holds more.
    ///
    /// # Errors
    /// `ENOMEM` if a limit would be passed; then nothing changed.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Failure> {
        let used = self.used.saturating_add(bytes);
        if used > self.bytes {
            let lacking = used - self.bytes;
            let portion = lacking.next_multiple_of(PORTION);
            // Close to the limit the exact amount may fit where a portion does not.
            let taken = match self.account.take(portion, 0) {
                Ok(()) => portion,
                Err(_) => self.account.take(lacking, 0).map(|()| lacking).map_err(|Full(full)| full.lacks(bytes))?,
            };
            self.bytes += taken;
        }
        self.used = used;
        Ok(())
    }

    /// Gives back all but that many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.account.release(self.bytes - bytes);
            (self.bytes, self.used) = (bytes, bytes.min(self.used));
        }
    }

    /// Returns what is in use of it, in bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}

thread_local! {
    /// Whether a metered future is being polled on this thread.
    static METERING: Cell<bool> = const { Cell::new(false) };
}

/// Says that a metered future is being polled, until it is dropped.
struct Metering;

impl Drop for Metering {
    fn drop(&mut self) {
        METERING.set(false);
    }
}

/// Polls a future to its end, and reports how long each poll kept a processor busy.
pub(crate) async fn timed<F: Future>(work: F, mut spend: impl FnMut(Duration)) -> F::Output {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        let before = processor_time();
        let polled = work.as_mut().poll(context);
        spend(processor_time().saturating_sub(before));
        polled
    })
    .await
}

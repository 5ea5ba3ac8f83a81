//! Accounts: limits on the memory, the processor time and the network traffic of runs.
//!
//! A process has one account, and each [owner](Owner) of runs has one under it, so that a group of
//! runs holds at most its [share](Shares) of the memory. Each run has an account under that of its
//! owner, which all programs of the run share, including nested ones. Every charge to a run's
//! account is also charged to the accounts above it. Memory is *held* and later released; processor
//! time and received bytes are *spent* and never returned.
//!
//! The processor time and the bytes that a child run spends are also charged to its parent runs.
//! The memory that it holds is not: a parent holds memory while it waits for its child runs, so a
//! shared limit could cause a deadlock.

mod meter;

use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::{Code, Failure, Owner, Shares};
pub use meter::timed;
use meter::{Meter, Metering, processor_time};

/// Number of bytes that a charge takes from its account in advance. They cover many small
/// allocations, which then do not access the account.
const ADVANCE: usize = 16 << 10;

/// The limits on one run, across all of its programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountLimits {
    /// Maximum memory that the programs, and the host on their behalf, hold at any one time, in
    /// bytes. Default 384 MiB.
    pub memory: usize,
    /// Maximum processor time of the programs and of the host functions they call. Default 10 min.
    pub cpu: Duration,
    /// Maximum number of bytes received from the network. Default 1 GiB.
    pub received: u64,
}

impl Default for AccountLimits {
    fn default() -> Self {
        AccountLimits { memory: 384 << 20, cpu: Duration::from_secs(600), received: 1 << 30 }
    }
}

/// The account of a run, of a group of runs, or of the process. Clones share the same account.
#[derive(Clone)]
pub struct Account(Arc<Inner>);

struct Inner {
    limits: AccountLimits,
    holder: Holder,
    owner: Owner,
    /// The account to which all charges are passed on, or `None` if this is the account of the
    /// process.
    above: Option<Account>,
    /// The account of the run that started this run, if this is the account of a child run.
    parent: Option<Account>,
    held: AtomicUsize,
    /// The processor time spent, in nanoseconds.
    cpu: AtomicU64,
    received: AtomicU64,
    /// A notifier that wakes the tasks waiting for memory.
    released: Notify,
    /// The number of tasks waiting for memory. If there are none, releasing memory takes no lock.
    waiters: AtomicUsize,
}

/// The runs whose charges an account sums up.
enum Holder {
    Process,
    /// All groups of the process together.
    Groups,
    /// One group.
    Group,
    Run,
}

/// The accounts of the owners of work in a process. Cheap to clone.
#[derive(Clone)]
pub struct OwnerAccounts(Arc<ByOwner>);

struct ByOwner {
    process: Account,
    /// The account of all groups together, which leaves a reserve to the operator.
    groups: Account,
    /// The accounts of the groups that are in use.
    by_name: Mutex<HashMap<Arc<str>, Weak<Inner>>>,
}

impl OwnerAccounts {
    /// Opens the accounts of a process, whose owners may hold at most `memory` bytes in total.
    #[must_use]
    pub fn new(memory: usize) -> OwnerAccounts {
        let process = Account::of_process(memory);
        let most = Shares::of(memory).groups();
        let groups = process.open(only_memory(most), Holder::Groups, Owner::Operator);
        OwnerAccounts(Arc::new(ByOwner { process, groups, by_name: Mutex::default() }))
    }

    /// Returns the account of an owner. That of the operator is the account of the process. The
    /// account of a group may hold the group's [share](Shares), and exists as long as it is in use.
    #[must_use]
    pub fn of(&self, owner: &Owner) -> Account {
        let ByOwner { process, groups, by_name } = &*self.0;
        let Owner::Group(name) = owner else { return process.clone() };
        let mut by_name = by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = by_name.get(name).and_then(Weak::upgrade) {
            return Account(known);
        }
        by_name.retain(|_, account| account.strong_count() > 0);
        let most = Shares::of(self.memory()).group();
        let account = groups.open(only_memory(most), Holder::Group, owner.clone());
        by_name.insert(Arc::clone(name), Arc::downgrade(&account.0));
        account
    }

    /// Returns the maximum memory of the process, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.0.process.0.limits.memory
    }
}

/// Returns the limits of an account that only limits memory.
fn only_memory(memory: usize) -> AccountLimits {
    AccountLimits { memory, cpu: Duration::MAX, received: u64::MAX }
}

/// A guard that counts a task as waiting for an account's memory. Dropping the guard removes the
/// task from the count.
struct Waiting<'a>(&'a Inner);

impl<'a> Waiting<'a> {
    fn of(inner: &'a Inner) -> Waiting<'a> {
        inner.waiters.fetch_add(1, SeqCst);
        Waiting(inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiters.fetch_sub(1, SeqCst);
    }
}

/// The account whose limit a charge would exceed.
struct FullAccount<'a>(&'a Account);

impl Account {
    /// Opens the account of the process, whose runs may hold at most `memory` bytes in total.
    #[must_use]
    pub fn of_process(memory: usize) -> Account {
        Account::new(only_memory(memory), Holder::Process, Owner::Operator, [None, None])
    }

    /// Opens an account for a run, under this account.
    #[must_use]
    pub fn open_run(&self, limits: AccountLimits) -> Account {
        self.open(limits, Holder::Run, self.0.owner.clone())
    }

    /// Opens an account for a child run of this account's run. The processor time and the received
    /// bytes of the child run are charged to both accounts. Its memory is charged only to the new
    /// one.
    #[must_use]
    pub fn open_child(&self, limits: AccountLimits) -> Account {
        let above = [self.0.above.clone(), Some(self.clone())];
        Account::new(limits, Holder::Run, self.0.owner.clone(), above)
    }

    fn open(&self, limits: AccountLimits, holder: Holder, owner: Owner) -> Account {
        Account::new(limits, holder, owner, [Some(self.clone()), None])
    }

    fn new(
        limits: AccountLimits,
        holder: Holder,
        owner: Owner,
        [above, parent]: [Option<Account>; 2],
    ) -> Account {
        Account(Arc::new(Inner {
            limits,
            holder,
            owner,
            above,
            parent,
            held: AtomicUsize::new(0),
            cpu: AtomicU64::new(0),
            received: AtomicU64::new(0),
            released: Notify::new(),
            waiters: AtomicUsize::new(0),
        }))
    }

    /// Returns the owner of the runs that are charged to the account.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.0.owner
    }

    /// Returns the held memory, in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.held.load(SeqCst)
    }

    /// Returns the memory that can still be held, in bytes.
    #[must_use]
    pub fn free(&self) -> usize {
        let own = self.0.limits.memory.saturating_sub(self.held());
        self.0.above.as_ref().map_or(own, |above| own.min(above.free()))
    }

    /// Returns the processor time spent so far.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.0.cpu.load(Relaxed))
    }

    /// Returns the number of bytes received so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.0.received.load(Relaxed)
    }

    /// Holds memory until the returned charge is dropped.
    ///
    /// # Errors
    /// `ENOMEM` if a limit would be exceeded.
    pub fn hold(&self, bytes: usize) -> Result<MemoryCharge, Failure> {
        let mut held = self.nothing();
        held.grow(bytes)?;
        Ok(held)
    }

    /// Returns a charge of 0 bytes, which can [grow](MemoryCharge::grow).
    #[must_use]
    pub fn nothing(&self) -> MemoryCharge {
        MemoryCharge::nothing(self.clone())
    }

    /// Waits until `bytes` can be held with `spare` bytes left over for others, and then holds
    /// them. The caller must not hold memory from an earlier call to this function, because two
    /// such waiters could deadlock.
    ///
    /// # Errors
    /// `ENOMEM` if the limits can never allow this much memory, or if it cannot be held before the
    /// deadline `until`.
    pub async fn wait_to_hold(
        &self,
        bytes: usize,
        spare: usize,
        until: Instant,
    ) -> Result<MemoryCharge, Failure> {
        loop {
            let full = match self.take(bytes, spare) {
                Ok(()) => return Ok(MemoryCharge { account: self.clone(), bytes, used: bytes }),
                Err(FullAccount(full)) => full,
            };
            let failure = full.out_of_memory(bytes);
            if bytes.saturating_add(spare) > full.0.limits.memory {
                return Err(failure);
            }
            let _waiting = Waiting::of(&full.0);
            let mut released = pin!(full.0.released.notified());
            released.as_mut().enable();
            // Memory may have been released before this waiter started to listen.
            if self.take(bytes, spare).is_ok() {
                return Ok(MemoryCharge { account: self.clone(), bytes, used: bytes });
            }
            tokio::time::timeout_at(until.into(), released).await.map_err(|_| failure)?;
        }
    }

    fn take(&self, bytes: usize, spare: usize) -> Result<(), FullAccount<'_>> {
        let fits = |held: usize| {
            held.checked_add(bytes).filter(|sum| sum.saturating_add(spare) <= self.0.limits.memory)
        };
        self.0.held.fetch_update(SeqCst, SeqCst, fits).map_err(|_| FullAccount(self))?;
        if let Some(above) = &self.0.above
            && let Err(full) = above.take(bytes, spare)
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
        if self.0.waiters.load(SeqCst) > 0 {
            self.0.released.notify_waiters();
        }
        if let Some(above) = &self.0.above {
            above.release(bytes);
        }
    }

    fn out_of_memory(&self, bytes: usize) -> Failure {
        let limit = amount(self.0.limits.memory as u64);
        let held = amount(self.held() as u64);
        let more = amount(bytes as u64);
        let who = match (&self.0.holder, &self.0.owner) {
            (Holder::Run, _) => {
                let reason = format!(
                    "the run holds {held} of its {limit} of memory, and this takes {more} more; \
                     work on less at once, or raise the setting `limits.memory_mb`"
                );
                return Failure::new(Code::ENOMEM, reason);
            }
            (Holder::Group, Owner::Group(name)) => {
                format!("in their share of this process, the runs of `{name}`")
            }
            (Holder::Groups, _) => "the runs that share this process".to_owned(),
            (Holder::Group | Holder::Process, _) => "the runs of this process".to_owned(),
        };
        let reason = format!(
            "{who} hold {held} of their {limit} of memory, and this takes {more} more; try again \
             when others have ended, or raise the setting `limits.process_memory_mb`"
        );
        Failure::new(Code::ENOMEM, reason)
    }

    /// Charges processor time.
    ///
    /// # Errors
    /// `EBUDGET` if the limit on processor time is exceeded.
    pub fn spend_cpu(&self, time: Duration) -> Result<(), Failure> {
        self.add_cpu(time);
        if self.is_out_of_cpu() {
            Err(Failure::new(Code::EBUDGET, self.out_of_cpu()))
        } else {
            Ok(())
        }
    }

    fn add_cpu(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.charged().for_each(|account| _ = account.0.cpu.fetch_add(nanos, Relaxed));
    }

    /// Returns this account, the accounts of the parent runs, and the accounts above them, up to
    /// that of the process, in this order.
    fn charged(&self) -> impl Iterator<Item = &Account> {
        std::iter::successors(Some(self), |account| {
            account.0.parent.as_ref().or(account.0.above.as_ref())
        })
    }

    /// Returns this account and the accounts of the parent runs, nearest parent first.
    fn runs(&self) -> impl Iterator<Item = &Account> {
        std::iter::successors(Some(self), |account| account.0.parent.as_ref())
    }

    /// Returns true if the run or one of its parent runs has spent all of its processor time.
    #[must_use]
    pub fn is_out_of_cpu(&self) -> bool {
        self.runs().any(|account| account.cpu() > account.0.limits.cpu)
    }

    /// Returns the processor time that the run may still spend under its limit and the limits of
    /// its parent runs. Takes into account the work in progress on this thread, which is charged
    /// only when the work ends. A host function that computes for a long time stops when no time is
    /// left.
    #[must_use]
    pub fn cpu_left(&self) -> Duration {
        let in_progress = meter::in_progress();
        let left = self.runs().map(|account| account.0.limits.cpu.saturating_sub(account.cpu()));
        left.min().unwrap_or_default().saturating_sub(in_progress)
    }

    /// Returns the error message if the run or one of its parents has used up its processor time.
    #[must_use]
    pub fn out_of_cpu(&self) -> String {
        let spent = self.runs().find(|run| run.cpu() >= run.0.limits.cpu).unwrap_or(self);
        format!(
            "{} used up its {:?} of processor time, all of its programs together; do less in one \
             run, or raise the setting `limits.cpu`",
            self.name_of(spent),
            spent.0.limits.cpu
        )
    }

    /// Returns the words for the run of `account` in an error message. `account` is this account or
    /// the account of a parent run.
    fn name_of(&self, account: &Account) -> &'static str {
        if account == self { "the run" } else { "a parent run" }
    }

    /// Charges bytes that the run received from the network.
    ///
    /// # Errors
    /// `EBUDGET` if the run or one of its parent runs exceeds its limit on received bytes.
    pub fn take_bytes(&self, bytes: usize) -> Result<(), Failure> {
        self.charged().for_each(|account| _ = account.0.received.fetch_add(bytes as u64, Relaxed));
        let over = self.runs().find(|run| run.received() > run.0.limits.received);
        let Some(over) = over else { return Ok(()) };
        let reason = format!(
            "{} received more than {} from the network, all of its programs together; fetch less \
             in one run, or raise the setting `limits.received_mb`",
            self.name_of(over),
            amount(over.0.limits.received)
        );
        Err(Failure::new(Code::EBUDGET, reason))
    }

    /// Polls a future and charges the time of each poll. If one metered future polls another, only
    /// the outermost one is charged. The time is measured with the wall clock, which is cheap
    /// enough for short programs. On a busy machine, it is an upper bound on the processor time.
    pub async fn metered<F: Future>(&self, work: F) -> F::Output {
        self.metered_since(Instant::now(), work).await.0
    }

    /// Meters a future like [`metered`](Account::metered). The first poll is charged as if it had
    /// begun at `started`. Returns the output and the time at which the future completed.
    pub(crate) async fn metered_since<F: Future>(
        &self,
        started: Instant,
        work: F,
    ) -> (F::Output, Instant) {
        let mut work = pin!(work);
        let mut started = Some(started);
        std::future::poll_fn(|context| {
            let began = started.take().unwrap_or_else(Instant::now);
            let metering = Metering::start(Meter::Wall(began));
            let polled = work.as_mut().poll(context);
            let ended = Instant::now();
            if metering.is_some() {
                self.add_cpu(ended.duration_since(began));
            }
            polled.map(|output| (output, ended))
        })
        .await
    }

    /// Runs blocking work on this thread and charges the processor time that the work takes.
    pub fn work<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = processor_time();
        let _metering = Metering::start(Meter::Processor(before));
        let result = work();
        self.add_cpu(processor_time().saturating_sub(before));
        result
    }
}

/// Compares by identity: two accounts are equal if they are the same account.
impl PartialEq for Account {
    fn eq(&self, other: &Account) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Account {}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("limits", &self.0.limits)
            .field("held", &self.held())
            .finish_non_exhaustive()
    }
}

/// Formats a number of bytes for a message.
fn amount(bytes: u64) -> String {
    if bytes >= 10 << 20 {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{} KiB", bytes.div_ceil(1024))
    }
}

/// Memory that is charged to an account until the charge is dropped.
#[derive(Debug)]
pub struct MemoryCharge {
    account: Account,
    /// The number of bytes charged.
    bytes: usize,
    /// The number of charged bytes in use. The rest was taken in advance.
    used: usize,
}

impl MemoryCharge {
    pub(crate) fn nothing(account: Account) -> MemoryCharge {
        MemoryCharge { account, bytes: 0, used: 0 }
    }

    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Holds more memory.
    ///
    /// # Errors
    /// `ENOMEM` if a limit would be exceeded, in which case the held memory is unchanged.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Failure> {
        let used = self.used.saturating_add(bytes);
        if used > self.bytes {
            let missing = used - self.bytes;
            let ample = missing.saturating_add(ADVANCE);
            // Close to the limit, the exact amount may fit even if more does not.
            let taken = match self.account.take(ample, 0) {
                Ok(()) => ample,
                Err(_) => self
                    .account
                    .take(missing, 0)
                    .map(|()| missing)
                    .map_err(|FullAccount(full)| full.out_of_memory(bytes))?,
            };
            self.bytes += taken;
        }
        self.used = used;
        Ok(())
    }

    /// Holds this many bytes instead of the bytes in use.
    ///
    /// # Errors
    /// `ENOMEM` if a limit would be exceeded, in which case the held memory is unchanged.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Failure> {
        match bytes.checked_sub(self.used) {
            Some(more) => self.grow(more),
            None => {
                self.shrink_to(bytes);
                Ok(())
            }
        }
    }

    /// Releases all but the given number of bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.account.release(self.bytes - bytes);
            (self.bytes, self.used) = (bytes, bytes.min(self.used));
        }
    }

    /// Returns the number of bytes in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        self.account.release(self.bytes);
    }
}

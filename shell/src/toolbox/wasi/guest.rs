//! The host's state for one guest.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wasmtime::ResourceLimiter;
use wattle_capability::files::Files;
use wattle_rt::{Account, Failure, MemoryCharge};

use super::descriptors::Table;
use super::{CallError, Exit};
use crate::bounds::StageBounds;
use crate::command::{Command, Spawn};
use crate::errno::Fault;
use crate::toolbox::wait::{WaitResult, Waiter};

/// State of one guest: a running command.
pub(crate) struct Guest {
    pub(super) command: Command,
    pub(super) files: Arc<Files>,
    pub(super) spawn: Arc<dyn Spawn>,
    pub(super) table: Table,
    pub(super) waiter: Waiter,
    pub(super) started: Instant,
    pub(crate) bounds: StageBounds,
    pub(crate) limiter: MemoryLimiter,
    pub(crate) memory: Option<wasmtime::Memory>,
    /// Message about the first operation that the run's files denied.
    pub(crate) refusal: Option<String>,
    /// Processor time of the thread before the guest started.
    initial_time: Duration,
    /// Processor time that has been charged to the run's account so far.
    charged: Cell<Duration>,
}

/// A limiter that refuses to grow a guest's memory beyond the guest's limit or the limit of the
/// run's account.
pub(crate) struct MemoryLimiter {
    memory: usize,
    /// Memory that the guest holds, charged to the account of its run.
    held: Option<MemoryCharge>,
    /// If true, the guest requested more memory than its limit allows.
    pub(crate) refused: bool,
    /// The failure that the run's account returned if it refused the last growth.
    pub(crate) account_failure: Option<Failure>,
}

/// Maximum number of entries in a guest's function table.
const MAX_TABLE_ENTRIES: usize = 100_000;

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > self.memory {
            self.refused = true;
            return Ok(false);
        }
        self.account_failure =
            self.held.as_mut().and_then(|held| held.grow(desired.saturating_sub(current)).err());
        Ok(self.account_failure.is_none())
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ENTRIES)
    }
}

impl Guest {
    /// Creates the state of a guest that runs on the calling thread.
    pub(crate) fn new(
        command: Command,
        files: &Files,
        spawn: Arc<dyn Spawn>,
        bounds: StageBounds,
        waiter: Waiter,
    ) -> Guest {
        let mut command = command;
        command.env.retain(|(name, _)| name != "PWD");
        command.env.push(("PWD".to_owned(), command.cwd.clone()));
        let table = Table::new(&command.fds, bounds.descriptors);
        Guest {
            table,
            command,
            files: Arc::new(files.rooted()),
            spawn,
            waiter,
            started: Instant::now(),
            limiter: MemoryLimiter {
                memory: bounds.memory,
                held: bounds.account.as_ref().map(Account::nothing),
                refused: false,
                account_failure: None,
            },
            bounds,
            memory: None,
            refusal: None,
            initial_time: processor_time(),
            charged: Cell::new(Duration::ZERO),
        }
    }

    /// Returns the processor time that the guest has used.
    pub(super) fn busy(&self) -> Duration {
        processor_time().saturating_sub(self.initial_time)
    }

    /// Returns the reason to end the guest now, if there is one.
    pub(crate) fn exit_reason(&self) -> Option<Exit> {
        if self.is_cancelled() {
            Some(Exit::Cancelled)
        } else if self.busy() > self.bounds.time {
            Some(Exit::Time)
        } else {
            self.charge().is_err().then_some(Exit::Account)
        }
    }

    /// Charges the run's account for the processor time that the guest has used since the previous
    /// charge.
    ///
    /// # Errors
    /// If the account has no processor time left.
    pub(crate) fn charge(&self) -> Result<(), Failure> {
        let Some(account) = &self.bounds.account else { return Ok(()) };
        let busy = self.busy();
        account.spend_cpu(busy.saturating_sub(self.charged.replace(busy)))
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.waiter.is_cancelled()
    }

    /// Converts a fault to a call error. Keeps the message of the first fault until the guest ends.
    pub(super) fn fail(&mut self, fault: Fault) -> CallError {
        if self.refusal.is_none() {
            self.refusal = fault.refusal;
        }
        CallError::Errno(fault.errno)
    }

    /// Waits for a future. If the guest is cancelled first, returns the [`Exit`] that ends it.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Exit> {
        match self.waiter.wait(future, None) {
            WaitResult::Done(output) => Ok(output),
            WaitResult::TimedOut | WaitResult::Cancelled => Err(Exit::Cancelled),
        }
    }
}

/// Returns the processor time of the calling thread.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

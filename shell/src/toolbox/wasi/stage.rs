//! What the host keeps for one guest.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wasmtime::ResourceLimiter;
use wattle_capability::files::Files;
use wattle_rt::{Account, Failure, Held};

use super::table::Table;
use crate::command::{Command, Spawn, Status};
use crate::toolbox::{StageBounds, Waited, Waiter};

/// The state of a guest.
pub(crate) struct Stage {
    pub(super) command: Command,
    pub(super) files: Arc<Files>,
    pub(super) spawn: Arc<dyn Spawn>,
    pub(super) table: Table,
    pub(super) waiter: Waiter,
    pub(super) started: Instant,
    pub(crate) bounds: StageBounds,
    pub(crate) limit: Limit,
    pub(crate) memory: Option<wasmtime::Memory>,
    /// What the run's files said when they first refused something.
    pub(crate) refusal: Option<String>,
    /// The processor time of the thread before the guest began.
    before: Duration,
    /// What of its time is charged to the account of its run.
    charged: Cell<Duration>,
}

/// Why a guest ends before the end of its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It said so.
    Status(Status),
    /// Nobody reads what it writes.
    Pipe,
    /// It used up its time.
    Time,
    /// The run used up its time.
    Account,
    /// Whoever ran it gave up.
    Cut,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the guest ends: {self:?}")
    }
}

impl std::error::Error for Exit {}

/// Holds a guest to its memory.
pub(crate) struct Limit {
    memory: usize,
    /// What it has on the account of its run.
    held: Option<Held>,
    /// Whether more was asked for.
    pub(crate) refused: bool,
    /// Why the account refused more.
    pub(crate) full: Option<Failure>,
}

/// The most entries of a guest's table of functions.
const TABLE_MOST: usize = 100_000;

impl ResourceLimiter for Limit {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.memory {
            self.refused = true;
            return Ok(false);
        }
        self.full = self.held.as_mut().and_then(|held| held.grow(desired.saturating_sub(current)).err());
        Ok(self.full.is_none())
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_MOST)
    }
}

impl Stage {
    /// Made on the thread that the guest runs on.
    pub(crate) fn new(
        command: Command,
        files: Arc<Files>,
        spawn: Arc<dyn Spawn>,
        bounds: StageBounds,
        waiter: Waiter,
    ) -> Stage {
        let mut command = command;
        command.env.retain(|(name, _)| name != "PWD");
        command.env.push(("PWD".to_owned(), command.cwd.clone()));
        let table = Table::new(&command.fds, bounds.descriptors);
        Stage {
            table,
            command,
            files,
            spawn,
            waiter,
            started: Instant::now(),
            limit: Limit {
                memory: bounds.memory,
                held: bounds.account.as_ref().map(Account::nothing),
                refused: false,
                full: None,
            },
            bounds,
            memory: None,
            refusal: None,
            before: processor_time(),
            charged: Cell::new(Duration::ZERO),
        }
    }

    /// The time that the guest has kept a processor busy.
    pub(super) fn busy(&self) -> Duration {
        processor_time().saturating_sub(self.before)
    }

    /// Why the guest is to end now, if it is.
    pub(crate) fn over(&self) -> Option<Exit> {
        if self.is_truncated() {
            Some(Exit::Cut)
        } else if self.busy() > self.bounds.time {
            Some(Exit::Time)
        } else {
            self.charge().is_err().then_some(Exit::Account)
        }
    }

    /// Spends the time that the guest has kept a processor busy since the last call, on the account of its run.
    ///
    /// # Errors
    /// Where the run has spent all that it may.
    pub(crate) fn charge(&self) -> Result<(), Failure> {
        let Some(account) = &self.bounds.account else { return Ok(()) };
        let busy = self.busy();
        account.spend_cpu(busy.saturating_sub(self.charged.replace(busy)))
    }

    pub(super) fn is_truncated(&self) -> bool {
        self.waiter.is_truncated()
    }

    /// Waits for what is not of the guest's own making.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Exit> {
        match self.waiter.wait(future, None) {
            Waited::Done(output) => Ok(output),
            Waited::Late | Waited::Cut => Err(Exit::Cut),
        }
    }
}

/// The processor time of the calling thread.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

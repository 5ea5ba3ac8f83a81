//! The state that all shells of one session share: commands, files, limits and their counters.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use wattle_capability::files::Files;

use super::pattern::Cache;
use super::task::Task;
use crate::bounds::Bounds;
use crate::command::Commands;
use crate::ledger::Ledger;
use crate::lock::lock;

/// Number of commands and loop iterations after which a shell lets other tasks run. Must be a power
/// of two.
const YIELD_INTERVAL: u64 = 64;

/// Number of steps of arithmetic or of pattern matching after which a shell lets other tasks run.
const LONG_WORK: u64 = 10_000;

/// State that all shells of one session share.
pub(crate) struct Run {
    pub(crate) commands: Arc<dyn Commands>,
    pub(crate) files: Arc<Files>,
    pub(crate) bounds: Bounds,
    /// Byte counter for variables, definitions and positional parameters.
    pub(crate) ledger: Arc<Ledger>,
    /// Byte counter for the expanded words of all commands and loops that are running, and for the
    /// output of substitutions.
    pub(crate) words: Arc<Ledger>,
    /// Byte counter for syntax trees.
    pub(crate) trees: Arc<Ledger>,
    pub(crate) patterns: Cache,
    /// Number of commands, loop iterations and expansions that the session's shells have run.
    steps: AtomicU64,
    pids: AtomicU32,
    /// The number of the current script.
    script: AtomicU64,
    /// Number of commands started by the current script.
    started: AtomicU64,
    /// Number of stages, jobs and process substitutions that are running.
    running: AtomicUsize,
    /// Reason for ending the script early, if it was ended.
    end_reason: Mutex<Option<String>>,
    end_signal: Notify,
    /// Jobs that outlive the shell that started them.
    orphans: Mutex<Vec<Task>>,
}

/// A slot for a parallel task. The number of slots is limited, and dropping a slot frees it.
pub(crate) struct Slot(Arc<Run>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Run {
    pub(crate) fn new(commands: Arc<dyn Commands>, files: &Files, bounds: Bounds) -> Run {
        let account = bounds.stage.account.as_ref();
        let ledger = Ledger::new(bounds.variables, account);
        let words = Ledger::new(bounds.variables, account);
        let trees = Ledger::new(bounds.trees, account);
        Run {
            commands,
            files: Arc::new(files.rooted()),
            bounds,
            ledger,
            words,
            trees,
            patterns: Cache::default(),
            steps: AtomicU64::new(0),
            pids: AtomicU32::new(100),
            script: AtomicU64::new(0),
            started: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            end_reason: Mutex::new(None),
            end_signal: Notify::new(),
            orphans: Mutex::new(Vec::new()),
        }
    }

    /// Prepares for a new script: resets the number of started commands and the reason for ending
    /// the script. Returns the script's number.
    pub(crate) fn begin(&self) -> u64 {
        let mut reason = lock(&self.end_reason);
        *reason = None;
        self.started.store(0, Ordering::Relaxed);
        self.script.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of the current script.
    pub(crate) fn script(&self) -> u64 {
        self.script.load(Ordering::Relaxed)
    }

    /// Ends the whole script. Later calls do not change the reason. Does nothing if `script` is not
    /// the current script, because a job of an earlier script may call this function late.
    pub(crate) fn end(&self, script: u64, reason: String) {
        let mut known = lock(&self.end_reason);
        if script == self.script() {
            known.get_or_insert(reason);
            self.end_signal.notify_one();
        }
    }

    /// Waits until at most `running` parallel tasks are running, or two seconds have passed. A
    /// cancelled task frees its slot as soon as its thread stops.
    pub(crate) async fn wait_for_slots(&self, running: usize) {
        for _ in 0..400 {
            drop(self.orphans());
            if self.running() <= running {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns the number of parallel tasks that are running.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Returns true if the script was ended.
    pub(crate) fn is_ended(&self) -> bool {
        lock(&self.end_reason).is_some()
    }

    /// Returns the reason for ending the script, if it was ended.
    pub(crate) fn reason(&self) -> Option<String> {
        lock(&self.end_reason).clone()
    }

    /// Waits until the script is ended and returns the reason.
    pub(crate) async fn wait_for_end(&self) -> String {
        loop {
            if let Some(reason) = self.reason() {
                return reason;
            }
            self.end_signal.notified().await;
        }
    }

    /// Counts a command or loop iteration. Returns true if the shell must let other tasks run.
    pub(crate) fn count_step(&self) -> bool {
        self.steps.fetch_add(1, Ordering::Relaxed) % YIELD_INTERVAL == YIELD_INTERVAL - 1
    }

    /// Records steps of arithmetic or of pattern matching. If `steps` is at least [`LONG_WORK`],
    /// the next call to [`Run::count_step`] returns true.
    pub(crate) fn charge(&self, steps: u64) {
        if steps >= LONG_WORK {
            self.steps.fetch_or(YIELD_INTERVAL - 1, Ordering::Relaxed);
        }
    }

    pub(crate) fn next_pid(&self) -> u32 {
        self.pids.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts the start of a command.
    ///
    /// # Errors
    /// If the script has started its maximum number of commands.
    pub(crate) fn count_command(&self) -> Result<(), String> {
        if self.started.fetch_add(1, Ordering::Relaxed) >= self.bounds.commands {
            return Err(format!("the line started more than {} commands", self.bounds.commands));
        }
        Ok(())
    }

    /// Counts a command that runs in parallel and takes a slot for it.
    ///
    /// # Errors
    /// If the script has started its maximum number of commands, or the maximum number of parallel
    /// commands is already running.
    pub(crate) fn take_slot(self: &Arc<Run>) -> Result<Slot, String> {
        self.count_command()?;
        if self.running.fetch_add(1, Ordering::Relaxed) >= self.bounds.parallel {
            self.running.fetch_sub(1, Ordering::Relaxed);
            return Err(format!("more than {} commands would run at once", self.bounds.parallel));
        }
        Ok(Slot(Arc::clone(self)))
    }

    /// Returns true if at least half of the slots are taken. In that case a shell waits before it
    /// starts another job.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.load(Ordering::Relaxed) * 2 >= self.bounds.parallel
    }

    /// Takes over the jobs of a shell that has ended.
    pub(crate) fn adopt(&self, tasks: Vec<Task>) {
        lock(&self.orphans).extend(tasks);
    }

    /// Removes and returns the jobs of shells that have ended. Dropping the tasks ends the jobs.
    pub(crate) fn orphans(&self) -> Vec<Task> {
        std::mem::take(&mut *lock(&self.orphans))
    }
}

//! What the shells of one session share: commands, files, bounds, and what was used of them.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use wattle_capability::files::Files;

use super::exec::jobs::Task;
use super::interpreter::Interpreter;
use super::pattern::Cache;
use super::variables::Ledger;
use crate::bounds::Bounds;
use crate::command::{Command, Spawn, Status};
use crate::commands::Commands;

/// What the shells of one session share.
pub(crate) struct Run {
    pub(crate) commands: Arc<dyn Commands>,
    pub(crate) files: Arc<Files>,
    pub(crate) bounds: Bounds,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) patterns: Cache,
    /// Counts the steps of the interpreter.
    pub(crate) steps: AtomicU64,
    pids: AtomicU32,
    started: AtomicU64,
    at_once: AtomicUsize,
    /// Why the line ends before its end.
    ended: Mutex<Option<String>>,
    told: Notify,
    /// Jobs whose shell has ended before them.
    orphans: Mutex<Vec<Task>>,
}

/// A place among what runs at once.
pub(crate) struct Place(Arc<Run>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.at_once.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Run {
    pub(crate) fn new(commands: Arc<dyn Commands>, files: Arc<Files>, bounds: Bounds) -> Run {
        let ledger = Ledger::new(bounds.variables);
        Run {
            commands,
            files,
            bounds,
            ledger,
            patterns: Cache::default(),
            steps: AtomicU64::new(0),
            pids: AtomicU32::new(100),
            started: AtomicU64::new(0),
            at_once: AtomicUsize::new(0),
            ended: Mutex::new(None),
            told: Notify::new(),
            orphans: Mutex::new(Vec::new()),
        }
    }

    /// Begins a line: counts from the beginning.
    pub(crate) fn begin(&self) {
        self.started.store(0, Ordering::Relaxed);
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends the whole line; the first reason counts.
    pub(crate) fn end(&self, words: String) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(words);
        self.told.notify_one();
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Why the line was ended, if it was.
    pub(crate) fn reason(&self) -> Option<String> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the line is ended, and gives the reason.
    pub(crate) async fn ending(&self) -> String {
        loop {
            if let Some(words) = self.reason() {
                return words;
            }
            self.told.notified().await;
        }
    }

    pub(crate) fn next_pid(&self) -> u32 {
        self.pids.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a command that is started.
    pub(crate) fn count(&self) -> Result<(), String> {
        if self.started.fetch_add(1, Ordering::Relaxed) >= self.bounds.commands {
            return Err(format!("the line started more than {} commands", self.bounds.commands));
        }
        Ok(())
    }

    /// Takes a place among what runs at once.
    pub(crate) fn place(self: &Arc<Run>) -> Result<Place, String> {
        self.count()?;
        if self.at_once.fetch_add(1, Ordering::Relaxed) >= self.bounds.at_once {
            self.at_once.fetch_sub(1, Ordering::Relaxed);
            return Err(format!("more than {} commands would run at once", self.bounds.at_once));
        }
        Ok(Place(Arc::clone(self)))
    }

    /// Whether it is time for a shell to wait before it starts another job.
    pub(crate) fn is_busy(&self) -> bool {
        self.at_once.load(Ordering::Relaxed) * 2 >= self.bounds.at_once
    }

    /// Keeps jobs whose shell has ended.
    pub(crate) fn adopt(&self, tasks: Vec<Task>) {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner).extend(tasks);
    }

    /// The jobs whose shells have ended; they are ended when this is dropped.
    pub(crate) fn orphans(&self) -> Vec<Task> {
        std::mem::take(&mut *self.orphans.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Commands that start commands: each is run by a shell of its own.
pub(crate) struct Spawner {
    pub(crate) run: Arc<Run>,
    pub(crate) depth: u32,
}

impl Spawn for Spawner {
    fn spawn(&self, command: Command, timeout: Option<Duration>) -> BoxFuture<'_, Status> {
        async move {
            let mut shell = Interpreter::new(Arc::clone(&self.run), command.fds.iter().cloned().collect());
            shell.depth = self.depth;
            shell.subshell = true;
            shell.cwd = command.cwd.clone();
            for (name, value) in &command.env {
                shell.preset(name, value, true);
            }
            let ran = async {
                if shell.descend().is_ok() {
                    let ended = shell.external(command.argv, command.env).await;
                    shell.status = ended.map_or(shell.status, |ended| ended.status().0);
                }
                Status(shell.status)
            };
            match timeout {
                Some(timeout) => tokio::time::timeout(timeout, ran).await.unwrap_or(Status::TIMED_OUT),
                None => ran.await,
            }
        }
        .boxed()
    }
}

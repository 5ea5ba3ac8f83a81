//! The journal of runs. It records everything that reaches a run from outside, before the run acts
//! on it.
//!
//! A run consists of its [`RunStart`], the [`Turn`]s of its state machine (inputs and effects), and
//! the [`RecordedCall`]s that its programs made to host functions. From these records, another
//! process can resume a stopped run, replay a run without a model or a network, and fork it
//! at any step.
//!
//! Events are recorded with the turn that emits them, so that a client can follow a run across
//! processes without missing any events.
//!
//! [`Journal`] is the port that a store implements.

mod locks;
mod record;
mod turn;

use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wattle_machine::Envelope;

pub use locks::{lock_name, lock_run, lock_session, try_lock_session};
pub use record::{
    CallTime, DEFAULT_AGENT, EngineStart, KeptFiles, ParentRun, Priority, RecordedCall, RunEnd,
    RunFilter, RunRecord, RunRequest, RunStart, RunSummary, Status, Turn, advance, new_id,
    own_session,
};
pub use turn::{EffectRecorder, RecordedAsk, RecordedEffect, describe_difference, excerpts};

use crate::error::StoreError;
use crate::tenant::Tenant;

/// The future of a journal operation.
pub type JournalFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A journal of runs. Each operation is atomic, even if the process is killed during it. A journal
/// belongs to one tenant and contains no runs of other tenants.
pub trait Journal: Send + Sync {
    /// Returns the tenant that owns the runs.
    fn tenant(&self) -> &Tenant;

    /// Adds a run to the queue. The run is stored durably when the returned future completes.
    fn enqueue(&self, run: RunRequest) -> JournalFuture<'_, ()>;

    /// Returns the queued runs, in the order in which they were added.
    fn queued(&self) -> JournalFuture<'_, Vec<RunRequest>>;

    /// Adds a run, and removes it from the queue if it was queued. The caller must hold the run's
    /// lock.
    fn open(&self, run: RunRecord) -> JournalFuture<'_, ()>;

    /// Resets a run's number of attempts because its process deliberately stops driving it. The run
    /// stays open.
    fn pause(&self, run: &str) -> JournalFuture<'_, ()>;

    /// Counts an attempt to drive a run that is about to be resumed, and marks the run as open.
    /// Returns the number of attempts since the run's last turn. The count is durable when the
    /// returned future completes, so that an attempt that later crashes the process or the machine
    /// is counted.
    fn attempt(&self, run: &str) -> JournalFuture<'_, u32>;

    /// Parks a run and adds `events`. If there is a reason, an operator has to release the run.
    /// Otherwise the run waits for approvals, and its number of attempts is reset, because its
    /// process deliberately stops driving it.
    fn park(
        &self,
        run: &str,
        reason: Option<String>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()>;

    /// Reopens a run that was parked with a reason and resets its number of attempts. Returns false
    /// if there is no such run.
    fn release(&self, run: &str) -> JournalFuture<'_, bool>;

    /// Adds the next turn of a run, the events that the turn emits, and `calls`, the calls from
    /// earlier turns that have not been recorded yet. Resets the run's number of attempts.
    fn turn(
        &self,
        run: &str,
        turn: Turn,
        calls: Vec<RecordedCall>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()>;

    /// Records calls, or the results of calls that were recorded before.
    fn calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()>;

    /// Records calls like [`calls`](Journal::calls). The records, and all earlier ones, survive a
    /// crash of the machine when the returned future completes.
    fn durable_calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()> {
        self.calls(run, calls)
    }

    /// Ends a run. The same transaction adds the messages in `end` to the run's session and, if
    /// `end` requests it, also the files that the run changed.
    fn end(&self, run: &str, end: RunEnd) -> JournalFuture<'_, ()>;

    /// Returns a run, or `None` if there is no such run.
    fn run(&self, run: &str) -> JournalFuture<'_, Option<RunRecord>>;

    /// Returns the runs that match the filter, newest first. Unreadable runs are logged and
    /// omitted.
    fn runs(&self, filter: RunFilter) -> JournalFuture<'_, Vec<RunRecord>>;

    /// Returns at most `limit` of a run's events whose numbers are greater than `after`, in order.
    fn events(&self, run: &str, after: u64, limit: u32) -> JournalFuture<'_, Vec<Envelope>>;

    /// Returns the turns of a run, in order. Large file changes may be missing from them;
    /// [`files_of_tree`](Journal::files_of_tree) returns all file changes.
    fn turns(&self, run: &str) -> JournalFuture<'_, Vec<Turn>>;

    /// Returns the last turn of a run and its number, counted from 0, or `None` if the run has no
    /// turns. File changes may be missing, as in [`turns`](Journal::turns).
    fn last_turn(&self, run: &str) -> JournalFuture<'_, Option<(u32, Turn)>> {
        let turns = self.turns(run);
        Box::pin(async move { Ok((0..).zip(turns.await?).last()) })
    }

    /// Returns the file changes recorded in the turns of a run and its descendants, in the order in
    /// which they were recorded. Each change is paired with the number of a turn of this run. For a
    /// change by a child run, this is the turn that receives the child's result.
    fn files_of_tree(&self, run: &str) -> JournalFuture<'_, Vec<(u32, String)>>;

    /// Returns the calls made by the programs that one turn started.
    fn calls_of(&self, run: &str, turn: u32) -> JournalFuture<'_, Vec<RecordedCall>>;

    /// Gives a new fork the state that the run `of.0` had at its turn `of.1`, the last one that both
    /// share. A fork of a session's run returns the session to that state, and to the files with
    /// which the fork begins, when it is first driven. Returns false if the earlier state is not
    /// known any more; the current one is then used.
    fn fork_state(&self, of: (&str, u32), fork: &str) -> JournalFuture<'_, bool>;

    /// Takes the lock with this name, such as the lock on a run or a session. Returns `None` if the
    /// lock is already taken. The lock is released when it is dropped, or when the process ends.
    fn lock(&self, name: &str) -> JournalFuture<'_, Option<Lock>>;
}

/// An exclusive lock on a name. It is released when this value is dropped.
pub struct Lock {
    #[expect(dead_code, reason = "only its drop matters")]
    held: Box<dyn std::any::Any + Send + Sync>,
    lost: CancellationToken,
}

impl Lock {
    /// Creates a lock that is released when `held` is dropped.
    pub fn new(held: impl std::any::Any + Send + Sync) -> Lock {
        Lock { held: Box::new(held), lost: CancellationToken::new() }
    }

    /// Attaches a token. When the token is cancelled, the lock is considered lost.
    pub fn lost_by(self, lost: CancellationToken) -> Lock {
        Lock { lost, ..self }
    }

    /// Waits until another process has taken over the lock, which can happen if this process was
    /// paused for too long. Never returns if no other process takes over the lock.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lock")
    }
}

/// A journal shared by several runs.
pub type SharedJournal = Arc<dyn Journal>;

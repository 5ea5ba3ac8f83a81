//! The connection that writes. Transactions that wait for it share a commit.
//!
//! ```text
//! Writer::run ─► queue ─► one blocking thread: lock the connection, take what is queued
//!                           ├ one transaction:  BEGIN … COMMIT
//!                           └ several:          one BEGIN … COMMIT for all
//!                                               if one fails or is discarded: those before it
//!                                               again, then those from it on
//! ```
//!
//! A commit writes every changed page to the log, and a durable one waits for the disk. Each
//! transaction sees the changes of those before it, and its result is reported only after the
//! commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::super::{Access, Transaction, Work};
use super::progress::{Progress, Stage};
use super::{Session, transact};
use crate::error::{Cause, DbError, FailureKind};

/// Maximum number of transactions that share a commit.
const GROUP: usize = 64;
/// Time after which a shared commit takes no more transactions, and after which other processes get
/// a chance to write.
const SLICE: Duration = Duration::from_millis(20);
/// Duration of a pause in which other processes can write.
const PAUSE: Duration = Duration::from_millis(1);

/// The connection that writes, and the transactions that wait for it.
pub(super) struct Writer {
    session: Mutex<Session>,
    progress: Arc<Progress>,
    /// Locked by the thread that gets the connection next. Without this, a performer would lock the
    /// connection again before a waiting thread wakes up.
    turn: Mutex<()>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Queued>,
    /// If true, a [`Performer`] exists.
    has_performer: bool,
}

/// A transaction in the queue.
struct Queued {
    access: Access,
    /// The tokio runtime of the task that waits for the transaction.
    runtime: Handle,
    work: Work,
    /// The result of the last attempt.
    done: Option<Result<(), Cause>>,
    sender: oneshot::Sender<Result<(), Cause>>,
}

impl Queued {
    /// Performs the transaction's statements and remembers the result. May be called again after
    /// the statements were rolled back. Returns true if their changes are to be committed.
    fn attempt(&mut self, transaction: &mut Transaction<'_>) -> bool {
        let done = catch_unwind(AssertUnwindSafe(|| (self.work)(transaction)));
        let done = done.unwrap_or_else(|_| Err("the transaction panicked".into()));
        let is_kept = done.is_ok() && !transaction.is_discarded;
        self.done = Some(done);
        is_kept
    }

    /// Sends the result of the last attempt or, if the attempt was not committed, the failure.
    fn report(self, committed: Result<(), DbError>) {
        let result = match (committed, self.done) {
            (Err(error), _) => Err(error.into()),
            (Ok(()), Some(done)) => done,
            (Ok(()), None) => Err("the transaction was not attempted".into()),
        };
        // Nobody waits for the result if the caller's future was dropped.
        drop(self.sender.send(result));
    }
}

impl Writer {
    pub(super) fn new(session: Session) -> Writer {
        let progress = Arc::clone(&session.progress);
        let (turn, queue) = (Mutex::default(), Mutex::default());
        Writer { session: Mutex::new(session), progress, turn, queue }
    }

    /// Returns the stage of the current transaction, and the time since it began.
    pub(super) fn progress(&self) -> Option<(Stage, Duration)> {
        self.progress.stage()
    }

    /// Locks the connection for work on the current thread.
    pub(super) fn lock(&self) -> MutexGuard<'_, Session> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in a transaction on a blocking thread. The transaction may share its commit with
    /// others.
    pub(super) async fn run(self: &Arc<Self>, access: Access, work: Work) -> Result<(), Cause> {
        let (sender, result) = oneshot::channel();
        let queued = Queued { access, runtime: Handle::current(), work, done: None, sender };
        if let Some(performer) = self.push(queued) {
            performer.start();
        }
        result.await.map_err(|_| "the process stopped; the transaction may not have been made")?
    }

    /// Adds a transaction to the queue. Returns a performer if there is none yet.
    fn push(self: &Arc<Self>, queued: Queued) -> Option<Performer> {
        let runtime = queued.runtime.clone();
        let mut queue = self.queue();
        queue.waiting.push(queued);
        let is_first = !std::mem::replace(&mut queue.has_performer, true);
        is_first.then(|| Performer { writer: Arc::clone(self), runtime, is_done: false })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The performer of the queued transactions. At any one time, a writer has at most one.
struct Performer {
    writer: Arc<Writer>,
    runtime: Handle,
    /// If true, the queue was empty and the next transaction needs a new performer.
    is_done: bool,
}

impl Performer {
    fn start(self) {
        let runtime = self.runtime.clone();
        drop(runtime.spawn_blocking(move || self.perform_all()));
    }

    fn perform_all(mut self) {
        let writer = Arc::clone(&self.writer);
        let mut began = Instant::now();
        while !self.is_done {
            let mut session = writer.lock();
            // The group includes transactions that were queued while the connection was in use.
            let group = self.take_group();
            let left = perform(&mut session, group);
            drop(session);
            writer.queue().waiting.splice(..0, left);
            if began.elapsed() > SLICE {
                std::thread::sleep(PAUSE);
                began = Instant::now();
            }
        }
    }

    /// Takes the next transactions from the queue. If there are none, the performer is done.
    fn take_group(&mut self) -> Vec<Queued> {
        let mut queue = self.writer.queue();
        let count = queue.waiting.len().min(GROUP);
        self.is_done = count == 0;
        queue.has_performer = !self.is_done;
        queue.waiting.drain(..count).collect()
    }
}

impl Drop for Performer {
    /// If a runtime stops before it starts its performer, its transactions are dropped, and another
    /// runtime performs the rest. Without this, they would wait for ever.
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut queue = self.writer.queue();
        let stopped = self.runtime.id();
        let (lost, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut queue.waiting)
            .into_iter()
            .partition(|queued| queued.runtime.id() == stopped);
        let next = rest.first().map(|queued| queued.runtime.clone());
        queue.waiting = rest;
        queue.has_performer = next.is_some();
        drop(queue);
        drop(lost);
        if let Some(runtime) = next {
            Performer { writer: Arc::clone(&self.writer), runtime, is_done: false }.start();
        }
    }
}

/// Performs a group of transactions and reports their results. Returns those that have to be
/// performed later: the others took long, or one of them failed.
fn perform(session: &mut Session, mut group: Vec<Queued>) -> Vec<Queued> {
    let mut left = Vec::new();
    if group.len() > 1 {
        let mut attempted = 0;
        let done = perform_together(session, &mut group, &mut attempted);
        // If the first transaction cannot begin, neither can the others.
        if attempted > 0 {
            left = group.split_off(attempted);
        }
        let committed = match done {
            Ok(true) => Ok(()),
            Ok(false) => {
                // The last attempt failed, so nothing has changed.
                let failed = group.pop();
                if group.is_empty() {
                    failed.into_iter().for_each(|queued| queued.report(Ok(())));
                    return left;
                }
                let mut later = perform(session, group);
                // It is the first of its next group, so that it spoils no other.
                later.extend(failed);
                later.append(&mut left);
                return later;
            }
            // After a failure of the disk, a second attempt could succeed although earlier changes
            // are lost.
            Err(error) if attempted > 0 && error.kind != FailureKind::Disk => {
                group.into_iter().for_each(|queued| perform_alone(session, queued));
                return left;
            }
            Err(error) => Err(error),
        };
        group.into_iter().for_each(|queued| queued.report(committed.clone()));
        return left;
    }
    group.into_iter().for_each(|queued| perform_alone(session, queued));
    left
}

fn perform_alone(session: &mut Session, mut queued: Queued) {
    let committed = transact(session, queued.access, &mut |transaction| {
        if !queued.attempt(transaction) {
            transaction.discard();
        }
        Ok(())
    });
    queued.report(committed);
}

/// Performs transactions of a group with one commit, until they have taken long, and counts them in
/// `attempted`. Returns false if the last one failed or was discarded. Then nothing has changed.
/// Most groups have no such transaction, and a savepoint for each would cost more than a second
/// attempt.
fn perform_together(
    session: &mut Session,
    group: &mut [Queued],
    attempted: &mut usize,
) -> Result<bool, DbError> {
    let is_durable = group.iter().any(|queued| queued.access == Access::Durable);
    let access = if is_durable { Access::Durable } else { Access::Write };
    let mut is_kept = true;
    transact(session, access, &mut |transaction| {
        let began = Instant::now();
        for queued in group.iter_mut() {
            if *attempted > 0 && began.elapsed() > SLICE {
                break;
            }
            *attempted += 1;
            is_kept = queued.attempt(&mut Transaction::new(&mut *transaction.statements));
            if !is_kept {
                transaction.discard();
                break;
            }
        }
        Ok(())
    })?;
    Ok(is_kept)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failure ends the test")]
mod tests {
    use std::path::Path;
    use std::task::{Context, Waker};

    use futures_util::future::{BoxFuture, join_all};
    use rusqlite::Connection;

    use super::super::super::Database;
    use super::super::Sqlite;
    use super::*;

    /// Creates a database in a folder. A `child` must refer to a `parent` when its transaction is
    /// committed.
    fn database(folder: &tempfile::TempDir) -> Sqlite {
        let prepare = |_: &Path, connection: &mut Connection| {
            connection.execute_batch(
                "CREATE TABLE parent (id INTEGER PRIMARY KEY);
                 CREATE TABLE child (of INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);",
            )?;
            Ok("id".to_owned())
        };
        Sqlite::open(folder.path().join("s.db"), prepare).unwrap()
    }

    fn add(sqlite: &Sqlite, sql: &'static str) -> BoxFuture<'static, Result<u64, Cause>> {
        let database = Database::from(sqlite.clone());
        Box::pin(async move {
            let work = move |transaction: &mut Transaction<'_>| {
                let changed = transaction.execute(sql, &[])?;
                if sql.ends_with("/* discard */") {
                    transaction.discard();
                }
                assert!(!sql.ends_with("/* panic */"), "on purpose");
                Ok(changed)
            };
            database.run(Access::Write, work).await
        })
    }

    /// Queues transactions while the connection is in use, so that they form a group. Returns true
    /// for each one that succeeds.
    async fn in_a_group(sqlite: &Sqlite, statements: &[&'static str]) -> Vec<bool> {
        let mut all = Box::pin(join_all(statements.iter().map(|sql| add(sqlite, sql))));
        {
            let _in_use = sqlite.writer.lock();
            let queued = all.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(queued.is_pending());
            assert_eq!(sqlite.writer.queue().waiting.len(), statements.len());
        }
        all.await.iter().map(Result::is_ok).collect()
    }

    async fn ids(sqlite: &Sqlite) -> Vec<i64> {
        let query = |transaction: &mut Transaction<'_>| {
            transaction.query("SELECT id FROM parent ORDER BY id", &[], |row| row.get(0))
        };
        Database::from(sqlite.clone()).run(Access::Read, query).await.unwrap()
    }

    #[tokio::test]
    async fn in_a_group_each_transaction_fails_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = database(&folder);
        let statements = [
            "INSERT INTO parent VALUES (1)",
            "INSERT INTO parent VALUES (1)",
            "INSERT INTO parent VALUES (2) /* discard */",
            "INSERT INTO parent VALUES (3) /* panic */",
            "INSERT INTO parent VALUES (4)",
        ];
        let succeeded = in_a_group(&sqlite, &statements).await;
        assert_eq!(succeeded, [true, false, true, false, true]);
        assert_eq!(ids(&sqlite).await, [1, 4]);
    }

    #[tokio::test]
    async fn if_a_group_cannot_be_committed_only_the_cause_fails() {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = database(&folder);
        let statements = [
            "INSERT INTO parent VALUES (1)",
            "INSERT INTO child VALUES (9)",
            "INSERT INTO parent VALUES (2)",
        ];
        assert_eq!(in_a_group(&sqlite, &statements).await, [true, false, true]);
        assert_eq!(ids(&sqlite).await, [1, 2]);
    }

    #[test]
    fn if_a_runtime_stops_the_transactions_of_others_run() {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = database(&folder);
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (stopped, other) = (runtime(), runtime());
        let queue = |runtime: &tokio::runtime::Runtime, sql: &'static str| {
            let work: Work = Box::new(move |transaction| {
                transaction.execute(sql, &[])?;
                Ok(())
            });
            let (sender, result) = oneshot::channel();
            let (access, runtime) = (Access::Write, runtime.handle().clone());
            let queued = Queued { access, runtime, work, done: None, sender };
            (sqlite.writer.push(queued), result)
        };
        let (performer, lost) = queue(&stopped, "INSERT INTO parent VALUES (1)");
        let (none, kept) = queue(&other, "INSERT INTO parent VALUES (2)");
        assert!(none.is_none());
        drop(performer.unwrap());
        assert!(lost.blocking_recv().is_err());
        kept.blocking_recv().unwrap().unwrap();
        assert_eq!(other.block_on(add(&sqlite, "INSERT INTO parent VALUES (3)")).unwrap(), 1);
        assert_eq!(other.block_on(ids(&sqlite)), [2, 3]);
    }
}

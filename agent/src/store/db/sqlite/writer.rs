//! The connection that writes. Transactions that wait for it share a commit.
//!
//! ```text
//! Writer::run ─► queue ─► one blocking thread: lock the connection, take what is queued
//!                           ├ one transaction:  BEGIN … COMMIT
//!                           └ several:          BEGIN, (SAVEPOINT … RELEASE)*, COMMIT
//!                                               if that fails: each in a transaction of its own
//! ```
//!
//! A commit costs more than the statements of a typical transaction. Each transaction sees the
//! changes of those before it, and its result is reported only after the commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::super::error::DbError;
use super::super::{Access, Transaction};
use super::transact;
use crate::error::Cause;

/// Maximum number of transactions that share a commit.
const GROUP: usize = 64;

/// The connection that writes, and the transactions that wait for it.
pub(super) struct Writer {
    connection: Mutex<Connection>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Box<dyn Waiting>>,
    /// If true, a [`Performer`] exists.
    has_performer: bool,
}

/// A transaction in the queue.
trait Waiting: Send {
    fn access(&self) -> Access;

    /// Performs the transaction's statements, and remembers the result. May be called again after
    /// the statements were rolled back. Returns true if their changes are to be committed.
    fn attempt(&mut self, transaction: &mut Transaction<'_>) -> bool;

    /// Sends the result of the last attempt or, if the attempt was not committed, the failure.
    fn report(self: Box<Self>, committed: Result<(), DbError>);
}

impl Writer {
    pub(super) fn new(connection: Connection) -> Writer {
        Writer { connection: Mutex::new(connection), queue: Mutex::default() }
    }

    /// Locks the connection, for work on the current thread.
    pub(super) fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in a transaction on a blocking thread. It may share its commit with others.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        access: Access,
        work: impl FnMut(&mut Transaction<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, Cause> {
        let (sender, result) = oneshot::channel();
        let queued = Box::new(Queued { access, work, done: None, sender });
        if let Some(performer) = self.push(queued) {
            tokio::task::spawn_blocking(move || performer.perform_all());
        }
        result.await.map_err(|_| "the process stopped before the transaction began")?
    }

    /// Adds a transaction to the queue. Returns a performer if there is none yet.
    fn push(self: &Arc<Self>, queued: Box<dyn Waiting>) -> Option<Performer> {
        let mut queue = self.queue();
        queue.waiting.push(queued);
        let is_first = !std::mem::replace(&mut queue.has_performer, true);
        is_first.then(|| Performer { writer: Arc::clone(self), is_done: false })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The performer of the queued transactions. At any one time, a writer has at most one.
struct Performer {
    writer: Arc<Writer>,
    /// If true, the queue was empty and the next transaction needs a new performer.
    is_done: bool,
}

impl Performer {
    fn perform_all(mut self) {
        while !self.is_done {
            let mut connection = self.writer.lock();
            // Transactions that were queued while the connection was in use are taken, too.
            let mut queue = self.writer.queue();
            let count = queue.waiting.len().min(GROUP);
            let group: Vec<_> = queue.waiting.drain(..count).collect();
            if group.is_empty() {
                queue.has_performer = false;
            }
            drop(queue);
            let is_empty = group.is_empty();
            perform(&mut connection, group);
            drop(connection);
            self.is_done = is_empty;
        }
    }
}

impl Drop for Performer {
    /// Without this, later transactions would wait for ever if the tokio runtime stops before it
    /// starts the performer.
    fn drop(&mut self) {
        if !self.is_done {
            let mut queue = self.writer.queue();
            queue.has_performer = false;
            let waiting = std::mem::take(&mut queue.waiting);
            drop(queue);
            drop(waiting);
        }
    }
}

/// Performs a group of transactions, and reports the result of each.
fn perform(connection: &mut Connection, mut group: Vec<Box<dyn Waiting>>) {
    if group.len() > 1 && perform_together(connection, &mut group).is_ok() {
        group.into_iter().for_each(|queued| queued.report(Ok(())));
        return;
    }
    for mut queued in group {
        let committed = transact(connection, queued.access(), &mut |transaction| {
            if !queued.attempt(transaction) {
                transaction.discard();
            }
            Ok(())
        });
        queued.report(committed);
    }
}

/// Performs a group of transactions with one commit. If this fails, nothing has changed.
fn perform_together(
    connection: &mut Connection,
    group: &mut [Box<dyn Waiting>],
) -> Result<(), DbError> {
    let is_durable = group.iter().any(|queued| queued.access() == Access::Durable);
    let access = if is_durable { Access::Durable } else { Access::Write };
    transact(connection, access, &mut |transaction| {
        for queued in group.iter_mut() {
            transaction.execute("SAVEPOINT queued", &[])?;
            if !queued.attempt(&mut Transaction::new(&mut *transaction.statements)) {
                // After some failures, SQLite has rolled back everything. This fails then.
                transaction.execute("ROLLBACK TO queued", &[])?;
            }
            transaction.execute("RELEASE queued", &[])?;
        }
        Ok(())
    })
}

struct Queued<T, W> {
    access: Access,
    work: W,
    /// The result of the last attempt.
    done: Option<Result<T, Cause>>,
    sender: oneshot::Sender<Result<T, Cause>>,
}

impl<T, W> Waiting for Queued<T, W>
where
    T: Send,
    W: FnMut(&mut Transaction<'_>) -> Result<T, Cause> + Send,
{
    fn access(&self) -> Access {
        self.access
    }

    fn attempt(&mut self, transaction: &mut Transaction<'_>) -> bool {
        let done = catch_unwind(AssertUnwindSafe(|| (self.work)(transaction)));
        let done = done.unwrap_or_else(|_| Err("the transaction panicked".into()));
        let is_kept = done.is_ok() && !transaction.is_discarded;
        self.done = Some(done);
        is_kept
    }

    fn report(self: Box<Self>, committed: Result<(), DbError>) {
        let result = match (committed, self.done) {
            (Err(error), _) => Err(error.into()),
            (Ok(()), Some(done)) => done,
            (Ok(()), None) => Err("the transaction was not attempted".into()),
        };
        // Nobody waits for the result if the caller's future was dropped.
        drop(self.sender.send(result));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failure ends the test")]
mod tests {
    use std::task::{Context, Waker};
    use std::time::{Duration, Instant};

    use futures_util::future::{BoxFuture, join_all};

    use super::super::Sqlite;
    use super::*;

    /// Creates an in-memory database. A `child` must refer to a `parent` when its transaction is
    /// committed.
    fn database() -> Sqlite {
        let prepare = |connection: &mut Connection| {
            connection.execute_batch(
                "CREATE TABLE parent (id INTEGER PRIMARY KEY);
                 CREATE TABLE child (of INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);",
            )?;
            Ok(())
        };
        Sqlite::in_memory(prepare).unwrap()
    }

    fn add(sqlite: &Sqlite, sql: &'static str) -> BoxFuture<'static, Result<u64, Cause>> {
        let sqlite = sqlite.clone();
        Box::pin(async move {
            let work = move |transaction: &mut Transaction<'_>| {
                let changed = transaction.execute(sql, &[])?;
                if sql.ends_with("/* discard */") {
                    transaction.discard();
                }
                assert!(!sql.ends_with("/* panic */"), "on purpose");
                Ok(changed)
            };
            sqlite.run(Access::Write, work).await
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
        sqlite.run(Access::Read, query).await.unwrap()
    }

    #[tokio::test]
    async fn in_a_group_each_transaction_fails_by_itself() {
        let sqlite = database();
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
        let sqlite = database();
        let statements = [
            "INSERT INTO parent VALUES (1)",
            "INSERT INTO child VALUES (9)",
            "INSERT INTO parent VALUES (2)",
        ];
        assert_eq!(in_a_group(&sqlite, &statements).await, [true, false, true]);
        assert_eq!(ids(&sqlite).await, [1, 2]);
    }

    #[test]
    fn transactions_run_after_the_runtime_of_the_first_one_has_stopped() {
        let sqlite = database();
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        // The only thread is busy, so the performer never starts.
        let busy = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build();
        let busy = busy.unwrap();
        let (started, is_started) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        busy.spawn_blocking(move || {
            started.send(()).unwrap();
            drop(ends.recv());
        });
        is_started.recv().unwrap();
        let lost = busy.spawn(add(&sqlite, "INSERT INTO parent VALUES (1)"));
        busy.block_on(tokio::task::yield_now());
        assert_eq!(sqlite.writer.queue().waiting.len(), 1);
        busy.shutdown_background();
        drop((lost, end));
        let deadline = Instant::now() + Duration::from_secs(60);
        while sqlite.writer.queue().has_performer {
            assert!(Instant::now() < deadline, "the performer is never dropped");
            std::thread::yield_now();
        }
        let added = runtime().block_on(add(&sqlite, "INSERT INTO parent VALUES (2)"));
        assert_eq!(added.unwrap(), 1);
        assert_eq!(runtime().block_on(ids(&sqlite)), [2]);
    }
}

//! The database of the store: one interface for two engines.
//!
//! ```text
//! a function of the store ─► Database::run(access, work) ─► work(&mut Transaction) ─► commit
//!                               │ SQLite: one writer, several readers, on blocking threads;
//!                               │   a group shares a commit, and is repeated if one fails
//!                               └ PostgreSQL: a bounded pool; failed transactions are repeated
//! ```
//!
//! `work` is a function that takes a [`Transaction`]. Its SQL must work with both engines:
//! parameters are `?1`, `?2`, …; a row that is read in order to be changed is first locked by an
//! update, unless [`Transaction::excludes_writers`]; no statement relies on a rowid, on
//! `SELECT *`, or on a function that only one engine supports. `work` may be called again if its
//! transaction must be repeated, so it must not move captured values.
//!
//! All changes made by `work` are committed together when it returns. If it fails or calls
//! [`Transaction::discard`], none of them are kept.

#[cfg(test)]
pub(crate) mod faults;
pub(crate) mod mark;
pub(crate) mod postgres;
pub(crate) mod sqlite;
mod value;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;

use postgres::Postgres;
use sqlite::Sqlite;
#[cfg(test)]
pub(crate) use value::FromValue;
pub(crate) use value::{Row, ToValue, Value, params};

use crate::error::{Cause, DbError, FailureKind};

/// The rights that a transaction needs, and the durability of its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The transaction only reads, and sees one consistent state of the database.
    Read,
    /// The transaction may write. A crash of the machine may lose the changes: with SQLite, until
    /// its log is on disk, at the next durable transaction or when the log is written back; with
    /// PostgreSQL, only if the server is configured so.
    Write,
    /// The transaction may write, and its changes survive a crash of the machine.
    Durable,
}

/// The version of the tables. Lower versions belong to programs that were never released.
pub(crate) const VERSION: u32 = 100;

/// The purpose for which a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Normal use. Missing tables are created. The target of an unfinished copy is rejected.
    Use,
    /// The source of a copy. The tables must exist.
    Source,
    /// The target of a copy. Missing tables are created.
    Target,
}

impl Opening {
    /// Returns true if the tables must be created. `version` is the version of the existing tables,
    /// or 0 if there are none.
    ///
    /// # Errors
    /// If tables of this version cannot be used for the purpose `self`.
    pub(crate) fn must_create(self, version: u32) -> Result<bool, DbError> {
        let refused = match version {
            VERSION => return Ok(false),
            0 if self != Opening::Source => return Ok(true),
            0 => "it has no tables of a store".to_owned(),
            1..VERSION => format!(
                "it has version {version}, which a program before Wattle 0.1.0 wrote\nhint: name a \
                 new store, and keep the other program as long as you need this one"
            ),
            _ => format!(
                "it has version {version}, but this program supports version {VERSION}; use a newer \
                 program"
            ),
        };
        Err(DbError::new(FailureKind::Other, refused))
    }
}

/// A finished transaction of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTransaction {
    /// If true, the transaction was allowed to write.
    pub writes: bool,
    /// If true, the transaction waited until its changes were on disk.
    pub is_durable: bool,
    /// Duration, including retries and the time spent waiting for a connection.
    pub duration: Duration,
    /// If true, the transaction failed and had no effect.
    pub has_failed: bool,
}

/// A callback that receives each finished transaction of a store.
pub(crate) type StoreObserver = dyn Fn(StoreTransaction) + Send + Sync;

/// A callback that receives rows. It can stop the query early.
pub(crate) type RowSink<'a> = dyn FnMut(Row) -> Result<ControlFlow<()>, Cause> + 'a;

/// The work of a transaction, which keeps its own result. Without a type of its own for each
/// transaction, the code of the engines is compiled only once.
type Work = Box<dyn FnMut(&mut Transaction<'_>) -> Result<(), Cause> + Send>;

/// The operations that an engine provides within an open transaction.
pub(crate) trait Statements {
    /// Executes a query and passes its rows to `row` one by one.
    fn each(&mut self, sql: &str, params: &[Value], row: &mut RowSink<'_>) -> Result<(), Cause>;

    /// Executes a statement and returns the number of changed rows.
    fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, DbError>;

    /// Returns true if no other transaction writes while a transaction with write access is open.
    fn excludes_writers(&self) -> bool;

    /// Returns the database's time, in milliseconds since 1970.
    fn now(&self) -> i64;
}

/// An open transaction.
pub(crate) struct Transaction<'a> {
    statements: &'a mut dyn Statements,
    is_discarded: bool,
    /// Number of bytes in the parameters of the executed statements.
    written: u64,
}

impl<'a> Transaction<'a> {
    fn new(statements: &'a mut dyn Statements) -> Transaction<'a> {
        Transaction { statements, is_discarded: false, written: 0 }
    }

    /// Executes a statement and returns the number of changed rows.
    pub(crate) fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        let size = |value: &Value| match value {
            Value::Null | Value::Integer(_) | Value::Real(_) => 0,
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
        };
        self.written += params.iter().map(size).sum::<usize>() as u64;
        self.statements.execute(sql, params)
    }

    /// Returns the number of bytes in the parameters of the statements that were executed so far.
    /// It is at least the number of bytes that the transaction has added.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Executes a query and passes its rows to `row` one by one until `row` returns
    /// `ControlFlow::Break`.
    pub(crate) fn each(
        &mut self,
        sql: &str,
        params: &[Value],
        mut row: impl FnMut(Row) -> Result<ControlFlow<()>, Cause>,
    ) -> Result<(), Cause> {
        self.statements.each(sql, params, &mut row)
    }

    /// Executes a query and returns its rows, each converted by `read`.
    pub(crate) fn query<T>(
        &mut self,
        sql: &str,
        params: &[Value],
        mut read: impl FnMut(&Row) -> Result<T, Cause>,
    ) -> Result<Vec<T>, Cause> {
        let mut rows = Vec::new();
        self.each(sql, params, |row| {
            rows.push(read(&row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }

    /// Executes a query and returns its first row, or `None` if there are no rows.
    pub(crate) fn first(&mut self, sql: &str, params: &[Value]) -> Result<Option<Row>, Cause> {
        let mut first = None;
        self.each(sql, params, |row| {
            first = Some(row);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    /// Executes a query and returns its only row.
    ///
    /// # Errors
    /// If the query fails or returns no row.
    pub(crate) fn one(&mut self, sql: &str, params: &[Value]) -> Result<Row, Cause> {
        Ok(self.first(sql, params)?.ok_or("the expected row is missing")?)
    }

    /// Returns true if no other transaction writes while one with write access is open, so that
    /// rows need not be locked.
    pub(crate) fn excludes_writers(&self) -> bool {
        self.statements.excludes_writers()
    }

    /// Returns the database's time, in milliseconds since 1970. All processes that share a store
    /// agree about it, so it decides what is too old.
    pub(crate) fn now(&self) -> i64 {
        self.statements.now()
    }

    /// Returns true if the transaction is rolled back when its `work` returns.
    pub(crate) fn is_discarded(&self) -> bool {
        self.is_discarded
    }

    /// Makes the transaction roll back when its `work` returns, regardless of the result.
    pub(crate) fn discard(&mut self) {
        self.is_discarded = true;
    }
}

/// A database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Database {
    engine: Engine,
    observer: Arc<OnceLock<Box<StoreObserver>>>,
    #[cfg(test)]
    faults: Option<faults::Faults>,
}

#[derive(Clone)]
enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl From<Sqlite> for Database {
    fn from(engine: Sqlite) -> Database {
        Database {
            engine: Engine::Sqlite(engine),
            observer: Arc::default(),
            #[cfg(test)]
            faults: None,
        }
    }
}

impl From<Postgres> for Database {
    fn from(engine: Postgres) -> Database {
        Database {
            engine: Engine::Postgres(engine),
            observer: Arc::default(),
            #[cfg(test)]
            faults: None,
        }
    }
}

impl Database {
    /// Runs `work` in a transaction, on a thread where blocking is allowed.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        access: Access,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, Cause> {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let work: Work = Box::new(move |transaction| {
            let done = work(transaction)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            Ok(())
        });
        self.perform(access, work).await?;
        let done = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        done.ok_or_else(|| "the transaction was not attempted".into())
    }

    async fn perform(&self, access: Access, work: Work) -> Result<(), Cause> {
        #[cfg(test)]
        let work = faults::inject(self.faults.clone(), work);
        let began = self.observer.get().map(|observer| (observer, Instant::now()));
        let done = match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.run(access, work).await,
            Engine::Postgres(postgres) => postgres.run(access, work).await,
        };
        if let Some((observer, began)) = began {
            let (writes, is_durable) = (access != Access::Read, access == Access::Durable);
            let (duration, has_failed) = (began.elapsed(), done.is_err());
            observer(StoreTransaction { writes, is_durable, duration, has_failed });
        }
        done
    }

    /// Sends a notification with `topic` to all processes that share the database, including this
    /// one. Does nothing for SQLite.
    pub(crate) fn wake(&self, topic: &str) {
        if let Engine::Postgres(postgres) = &self.engine {
            postgres.notices().send(topic);
        }
    }

    /// Returns a receiver that yields the topic of each future notification, or `None` for SQLite,
    /// which sends no notifications.
    pub(crate) fn wakes(&self) -> Option<broadcast::Receiver<Arc<str>>> {
        match &self.engine {
            Engine::Sqlite(_) => None,
            Engine::Postgres(postgres) => Some(postgres.notices().subscribe()),
        }
    }

    /// Reports each finished transaction to `observer` from now on. Only the first observer
    /// registered with a database is used.
    pub(crate) fn observe(&self, observer: Box<StoreObserver>) {
        drop(self.observer.set(observer));
    }

    /// Reclaims unused space. In SQLite, this shrinks the whole file. In PostgreSQL, the unused
    /// space of `tables` becomes available for new rows.
    pub(crate) async fn vacuum(&self, tables: &[&str]) -> Result<(), Cause> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.vacuum().await,
            Engine::Postgres(postgres) => Ok(postgres.vacuum(tables).await?),
        }
    }

    /// Checks, in a transaction, that an SQLite file still contains the store that was opened. If it
    /// does not, all transactions fail until it does.
    pub(crate) fn check_id(&self, transaction: &mut Transaction<'_>) -> Result<(), Cause> {
        self.sqlite().map_or(Ok(()), |sqlite| sqlite.check_id(transaction))
    }

    /// Writes the log of an SQLite file back to the file, as far as other connections allow it. If
    /// `all` is true, waits for them for a short time. Returns the size of the log afterwards, in
    /// bytes, which is 0 for PostgreSQL.
    pub(crate) async fn checkpoint(&self, all: bool) -> Result<u64, Cause> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.checkpoint(all).await,
            Engine::Postgres(_) => Ok(0),
        }
    }

    /// Finds out whether the database can be written: there is space, and `work` succeeds in a
    /// durable transaction, which is hardly repeated.
    pub(crate) async fn probe(
        &self,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<(), Cause> + Send + 'static,
    ) -> Result<(), Cause> {
        let db = self.clone();
        let work: Work = Box::new(move |transaction| {
            db.check_id(transaction)?;
            work(transaction)
        });
        #[cfg(test)]
        let work = faults::inject(self.faults.clone(), work);
        match &self.engine {
            Engine::Sqlite(sqlite) => {
                sqlite.check_space().await?;
                sqlite.run(Access::Durable, work).await
            }
            Engine::Postgres(postgres) => postgres.probe(work).await,
        }
    }

    /// Returns the error for a transaction that has not ended after `waited`.
    pub(crate) async fn explain_delay(&self, waited: Duration) -> DbError {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.explain_delay(waited).await,
            Engine::Postgres(_) => {
                let message = format!("the database did not respond for {} ms", waited.as_millis());
                DbError::new(FailureKind::Slow, message)
            }
        }
    }

    /// Returns the SQLite engine, or `None` for PostgreSQL.
    pub(crate) fn sqlite(&self) -> Option<&Sqlite> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Some(sqlite),
            Engine::Postgres(_) => None,
        }
    }

    /// Returns the URL of a PostgreSQL database, with the password masked, or `None` for SQLite.
    pub(crate) fn shown(&self) -> Option<&str> {
        match &self.engine {
            Engine::Sqlite(_) => None,
            Engine::Postgres(postgres) => Some(postgres.shown()),
        }
    }
}

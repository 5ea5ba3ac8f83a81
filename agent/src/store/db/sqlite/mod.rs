//! SQLite in WAL mode: one connection writes and several read, so readers do not wait for writers.
//! An in-memory store uses one connection for both.

mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, TransactionBehavior, params_from_iter};
use tokio::sync::Semaphore;

use super::error::{DbError, FailureKind};
use super::{Access, Row, RowSink, Statements, Transaction, Value, Work};
use crate::error::Cause;
use writer::Writer;

/// Maximum number of connections that read at the same time.
const READERS: usize = 4;
/// Maximum number of prepared statements that a connection caches.
const STATEMENTS: usize = 128;
/// Number of pages in the write-ahead log after which it is written back to the file. A page that
/// changes often is written back once for all its changes in the log. The log has 16 MiB then, and
/// the commit that writes it back takes longer than others.
const LOGGED: u32 = 4_000;
/// Maximum time that a connection waits for a lock that another process holds.
const BUSY: Duration = Duration::from_secs(10);
/// Interval between attempts at a statement in which SQLite itself does not wait for locks.
const PAUSE: Duration = Duration::from_millis(2);

/// The connections to a file or to an in-memory database. Cheap to clone.
#[derive(Clone)]
pub(in crate::store) struct Sqlite {
    writer: Arc<Writer>,
    /// The connections that only read, or `None` for an in-memory database.
    readers: Option<Arc<Readers>>,
}

struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    /// The permits to read: one for each connection.
    permits: Semaphore,
}

impl Sqlite {
    /// Opens a file. Creates it if it does not exist. `prepare` migrates the file.
    pub(in crate::store) fn open(
        path: PathBuf,
        prepare: impl FnOnce(&mut Connection) -> Result<(), Cause>,
    ) -> Result<Sqlite, Cause> {
        let flags = OpenFlags::SQLITE_OPEN_CREATE;
        let mut connection = connect(&path, flags)?;
        prepare(&mut connection)?;
        let (idle, permits) = (Mutex::default(), Semaphore::new(READERS));
        let readers = Some(Arc::new(Readers { path, idle, permits }));
        Ok(Sqlite { writer: Arc::new(Writer::new(connection)), readers })
    }

    /// Creates an in-memory database. `prepare` creates its tables.
    pub(in crate::store) fn in_memory(
        prepare: impl FnOnce(&mut Connection) -> Result<(), Cause>,
    ) -> Result<Sqlite, Cause> {
        let mut connection = Connection::open_in_memory()?;
        configure(&connection)?;
        prepare(&mut connection)?;
        Ok(Sqlite { writer: Arc::new(Writer::new(connection)), readers: None })
    }

    pub(super) async fn run(&self, access: Access, mut work: Work) -> Result<(), Cause> {
        let Some(readers) = self.readers.clone().filter(|_| access == Access::Read) else {
            return self.writer.run(access, work).await;
        };
        let _permit = readers.permits.acquire().await?;
        let readers = Arc::clone(&readers);
        tokio::task::spawn_blocking(move || readers.read(&mut work)).await?
    }

    /// Rewrites the file without unused space.
    pub(super) async fn vacuum(&self) -> Result<(), Cause> {
        let sqlite = self.clone();
        let vacuum = move || {
            let connection = sqlite.writer.lock();
            connection.execute_batch("VACUUM").map_err(failure)?;
            // The file shrinks only when its log is written back, and a reader can delay that.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failure)
        };
        Ok(tokio::task::spawn_blocking(vacuum).await??)
    }

    /// Runs `work` on the current thread, with the write connection.
    pub(in crate::store) fn run_here<T>(
        &self,
        access: Access,
        work: &mut dyn FnMut(&mut Transaction<'_>) -> Result<T, Cause>,
    ) -> Result<T, Cause> {
        perform(&mut self.writer.lock(), access, work)
    }
}

impl Readers {
    fn read(&self, work: &mut Work) -> Result<(), Cause> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => {
                let connection = connect(&self.path, OpenFlags::empty())?;
                connection.pragma_update(None, "query_only", true).map_err(failure)?;
                connection
            }
        };
        let done = perform(&mut connection, Access::Read, work);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        done
    }
}

/// Opens a connection to a file. Links are not followed.
fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, Cause> {
    let flags = flags
        | OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags).map_err(failure)?;
    configure(&connection)?;
    Ok(connection)
}

/// Configures a connection to use a write-ahead log and to wait for other processes.
fn configure(connection: &Connection) -> Result<(), Cause> {
    // `until_unlocked` waits instead of SQLite.
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Otherwise a cached statement is prepared again whenever the values of its parameters change.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let pragma = |name, value: &dyn ToSql| connection.pragma_update(None, name, value);
    until_unlocked(|| pragma("journal_mode", &"WAL"))
        .and_then(|()| connection.busy_timeout(BUSY))
        .and_then(|()| pragma("synchronous", &"NORMAL"))
        .and_then(|()| pragma("wal_autocheckpoint", &LOGGED))
        .and_then(|()| pragma("foreign_keys", &true))
        // The process may not be permitted to create temporary files.
        .and_then(|()| pragma("temp_store", &"MEMORY"))
        .map_err(|error| failure(error).into())
}

/// Repeats a statement while another process holds a lock, for at most [`BUSY`]. SQLite itself does
/// not wait in a statement that reads before it writes, such as the one that sets up the log of a
/// new file.
fn until_unlocked(statement: impl Fn() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        match statement() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < BUSY =>
            {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// Runs `work` in a transaction, and returns its result.
fn perform<T>(
    connection: &mut Connection,
    access: Access,
    work: &mut dyn FnMut(&mut Transaction<'_>) -> Result<T, Cause>,
) -> Result<T, Cause> {
    let mut done = None;
    transact(connection, access, &mut |transaction| {
        let result = work(transaction);
        if result.is_err() {
            transaction.discard();
        }
        done = Some(result);
        Ok(())
    })?;
    done.unwrap_or_else(|| Err("the transaction was not attempted".into()))
}

/// Runs `work` in a transaction, and commits it unless `work` fails or discards it.
fn transact(
    connection: &mut Connection,
    access: Access,
    work: &mut dyn FnMut(&mut Transaction<'_>) -> Result<(), DbError>,
) -> Result<(), DbError> {
    let set_durable = |connection: &Connection, is_durable: bool| match access {
        Access::Durable => connection
            .pragma_update(None, "synchronous", if is_durable { "FULL" } else { "NORMAL" })
            .map_err(failure),
        Access::Read | Access::Write => Ok(()),
    };
    set_durable(connection, true)?;
    let done = commit(connection, access, work);
    if let Err(error) = set_durable(connection, false) {
        tracing::warn!(%error, "later transactions are as durable as this one, and slower");
    }
    done
}

fn commit(
    connection: &mut Connection,
    access: Access,
    work: &mut dyn FnMut(&mut Transaction<'_>) -> Result<(), DbError>,
) -> Result<(), DbError> {
    let behavior = match access {
        Access::Read => TransactionBehavior::Deferred,
        Access::Write | Access::Durable => TransactionBehavior::Immediate,
    };
    let open = connection.transaction_with_behavior(behavior).map_err(failure)?;
    let mut statements = Open(&open);
    let mut transaction = Transaction::new(&mut statements);
    // A transaction without a commit is rolled back.
    work(&mut transaction)?;
    if !transaction.is_discarded {
        open.commit().map_err(failure)?;
    }
    Ok(())
}

/// An open transaction on a connection.
struct Open<'a>(&'a Connection);

impl Statements for Open<'_> {
    fn each(&mut self, sql: &str, params: &[Value], row: &mut RowSink<'_>) -> Result<(), Cause> {
        let mut statement = self.0.prepare_cached(sql).map_err(failure)?;
        let names: Arc<[String]> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query(params_from_iter(params)).map_err(failure)?;
        while let Some(found) = rows.next().map_err(failure)? {
            let values = (0..names.len()).map(|at| found.get_ref(at).map(own));
            let values = values.collect::<rusqlite::Result<_>>().map_err(failure)?;
            if row(Row::new(Arc::clone(&names), values))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        let mut statement = self.0.prepare_cached(sql).map_err(failure)?;
        let changed = statement.execute(params_from_iter(params)).map_err(failure)?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    fn excludes_writers(&self) -> bool {
        true
    }

    fn now(&mut self) -> Result<i64, DbError> {
        // All processes that share a file are on one machine, and share its clock.
        Ok(i64::try_from(crate::now_ms()).unwrap_or(i64::MAX))
    }
}

fn own(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        // Text that is not valid UTF-8 is returned as bytes.
        ValueRef::Text(text) => String::from_utf8(text.to_owned())
            .map_or_else(|error| Value::Bytes(error.into_bytes()), Value::Text),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_owned()),
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(rusqlite::types::ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn failure(error: rusqlite::Error) -> DbError {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FailureKind::Slow,
        Some(ErrorCode::DiskFull) => FailureKind::Full,
        Some(ErrorCode::SystemIoFailure) => FailureKind::Disk,
        Some(ErrorCode::ReadOnly) => FailureKind::ReadOnly,
        _ => FailureKind::Other,
    };
    DbError::new(kind, error.to_string())
}

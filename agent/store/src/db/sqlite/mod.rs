//! SQLite in WAL mode: one connection writes and several read, so readers do not wait for writers.
//! An in-memory store uses one connection for both.

mod file;
mod progress;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, ToSql, TransactionBehavior, ffi, params_from_iter,
};
use tokio::sync::Semaphore;

use super::{Access, Row, RowSink, Statements, Transaction, Value, Work};
use crate::error::Cause;
use crate::error::{DbError, FailureKind};
pub(crate) use file::beside;
use file::{Files, NO_LOCKS};
use progress::{Progress, Stage};
use writer::Writer;

/// Maximum number of connections that read at the same time.
const READERS: usize = 4;
/// Maximum number of prepared statements that a connection caches.
const STATEMENTS: usize = 128;
/// Number of pages in the write-ahead log after which it is written back to the file. A page that
/// changes often is written back once for all its changes in the log. The log has 16 MiB then, and
/// the commit that writes it back takes longer than others.
const LOGGED: u32 = 4_000;
/// Maximum size of the log after it was written back to the file, in bytes. If readers kept it from
/// being reused, it is larger until then.
const LOG_BYTES: u64 = 64 << 20;
/// Maximum time that writing back the log waits for other connections.
const CHECKPOINT: Duration = Duration::from_millis(500);
/// Maximum time to find out why a transaction takes long.
const EXPLAINING: Duration = Duration::from_millis(150);
/// Maximum time that a connection waits for a lock that another process holds.
const BUSY: Duration = Duration::from_secs(10);
/// Interval between attempts at a statement in which SQLite itself does not wait for locks.
const PAUSE: Duration = Duration::from_millis(2);

/// The connections to a file or to an in-memory database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sqlite {
    writer: Arc<Writer>,
    /// The connections that only read, or `None` for an in-memory database.
    readers: Option<Arc<Readers>>,
}

/// A connection, and the state of its transaction.
struct Session {
    connection: Connection,
    /// The files of the database, or `None` if it is in memory.
    files: Option<Arc<Files>>,
    progress: Arc<Progress>,
}

impl Session {
    fn new(connection: Connection, files: Option<Arc<Files>>) -> Session {
        Session { connection, files, progress: Arc::default() }
    }
}

struct Readers {
    files: Arc<Files>,
    idle: Mutex<Vec<Session>>,
    /// The permits to read: one for each connection.
    permits: Semaphore,
}

impl Sqlite {
    /// Opens a file. Creates it if it does not exist. `prepare` migrates the file and returns the id
    /// of the database.
    pub(crate) fn open(
        path: PathBuf,
        prepare: impl FnOnce(&Path, &mut Connection) -> Result<String, Cause>,
    ) -> Result<Sqlite, Cause> {
        let files = Arc::new(Files::new(path));
        // Otherwise each statement would wait for a lock that it never gets.
        if !files.locks_work() {
            return Err(DbError::new(FailureKind::NoLocks, NO_LOCKS).into());
        }
        let opened = connect(&files, OpenFlags::SQLITE_OPEN_CREATE).and_then(|mut connection| {
            let id = prepare(files.path(), &mut connection).map_err(in_words)?;
            Ok((id, connection))
        });
        let (id, connection) = opened?;
        files.remember(id);
        let writer = Writer::new(Session::new(connection, Some(Arc::clone(&files))));
        let (idle, permits) = (Mutex::default(), Semaphore::new(READERS));
        let readers = Some(Arc::new(Readers { files, idle, permits }));
        Ok(Sqlite { writer: Arc::new(writer), readers })
    }

    /// Creates an in-memory database. `prepare` creates its tables.
    pub(crate) fn in_memory(
        prepare: impl FnOnce(&mut Connection) -> Result<(), Cause>,
    ) -> Result<Sqlite, Cause> {
        let mut connection = Connection::open_in_memory()?;
        configure(&connection)?;
        prepare(&mut connection)?;
        let writer = Arc::new(Writer::new(Session::new(connection, None)));
        Ok(Sqlite { writer, readers: None })
    }

    pub(super) async fn run(&self, access: Access, mut work: Work) -> Result<(), Cause> {
        let Some(readers) = self.readers.clone().filter(|_| access == Access::Read) else {
            return self.writer.run(access, work).await;
        };
        let _permit = readers.permits.acquire().await?;
        let readers = Arc::clone(&readers);
        tokio::task::spawn_blocking(move || readers.read(&mut work)).await?
    }

    /// Returns the files of the database, or `None` if it is in memory.
    fn files(&self) -> Option<&Arc<Files>> {
        self.readers.as_deref().map(|readers| &readers.files)
    }

    /// Checks, in a transaction, that the database is still the one that was opened. If it is not,
    /// all transactions fail until it is.
    pub(super) fn check_id(&self, transaction: &mut Transaction<'_>) -> Result<(), Cause> {
        let Some(files) = self.files() else { return Ok(()) };
        let id: String = transaction.one("SELECT id FROM store", &[])?.get(0)?;
        Ok(files.check_id(&id)?)
    }

    /// Checks that the file system has space for new data.
    pub(super) async fn check_space(&self) -> Result<(), Cause> {
        let Some(files) = self.files().cloned() else { return Ok(()) };
        Ok(tokio::task::spawn_blocking(move || files.check_space()).await??)
    }

    /// Returns the error for a transaction that has not ended after `waited`: what the connection
    /// that writes is waiting for.
    pub(super) async fn explain_delay(&self, waited: Duration) -> DbError {
        let late = |kind, what: &str, time: Duration| {
            DbError::new(kind, format!("{what} for {:.1} s", time.as_secs_f64()))
        };
        match self.writer.progress() {
            Some((Stage::Locking, time)) => {
                let files = self.files().cloned();
                let works = tokio::task::spawn_blocking(move || {
                    files.is_none_or(|files| files.locks_work())
                });
                match tokio::time::timeout(EXPLAINING, works).await {
                    Ok(Ok(false)) => DbError::new(FailureKind::NoLocks, NO_LOCKS),
                    _ => late(FailureKind::Locked, "another process has held the lock", time),
                }
            }
            Some((Stage::Working, time)) => {
                late(FailureKind::Slow, "a transaction has been running", time)
            }
            Some((Stage::Committing, time)) => {
                late(FailureKind::Disk, "the disk has not confirmed a change", time)
            }
            None => late(FailureKind::Slow, "the disk did not respond", waited),
        }
    }

    /// Rewrites the file without unused space.
    pub(super) async fn vacuum(&self) -> Result<(), Cause> {
        let sqlite = self.clone();
        let vacuum = move || {
            let session = sqlite.writer.lock();
            session.connection.execute_batch("VACUUM").map_err(failure)?;
            // The file shrinks only when its log is written back, and a reader can delay that.
            write_back(&session.connection, "TRUNCATE").map(drop)
        };
        Ok(tokio::task::spawn_blocking(vacuum).await??)
    }

    /// Writes the log back to the file, as far as other connections allow it. If `all` is true, or
    /// the log is large, waits for them for a short time, and empties the log. Returns the size of
    /// the log afterwards, in bytes.
    pub(super) async fn checkpoint(&self, all: bool) -> Result<u64, Cause> {
        let Some(files) = self.files().cloned() else { return Ok(0) };
        let sqlite = self.clone();
        let checkpoint = move || {
            if files.log_bytes() == 0 {
                return Ok(0);
            }
            files.check()?;
            let session = sqlite.writer.lock();
            let mode = if all || files.log_bytes() > LOG_BYTES { "TRUNCATE" } else { "PASSIVE" };
            session.connection.busy_timeout(CHECKPOINT).map_err(failure)?;
            let done = write_back(&session.connection, mode);
            session.connection.busy_timeout(BUSY).map_err(failure)?;
            done.map(|()| files.log_bytes())
        };
        Ok(tokio::task::spawn_blocking(checkpoint).await??)
    }
}

/// Writes the log back to the file. Other connections may keep a part of it from being written.
fn write_back(connection: &Connection, mode: &str) -> Result<(), DbError> {
    let checkpoint = format!("PRAGMA wal_checkpoint({mode})");
    connection.query_row(&checkpoint, [], |_| Ok(())).map_err(failure)
}

impl Readers {
    fn read(&self, work: &mut Work) -> Result<(), Cause> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut session = match idle {
            Some(session) => session,
            None => {
                self.files.check()?;
                let connection = connect(&self.files, OpenFlags::empty())?;
                connection.pragma_update(None, "query_only", true).map_err(failure)?;
                Session::new(connection, Some(Arc::clone(&self.files)))
            }
        };
        let done = perform(&mut session, Access::Read, work);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        done
    }
}

/// Opens a connection to a file. Links are not followed.
fn connect(files: &Files, flags: OpenFlags) -> Result<Connection, Cause> {
    let flags = flags
        | OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(files.path(), flags).map_err(failure)?;
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
        .and_then(|()| pragma("journal_size_limit", &LOG_BYTES.cast_signed()))
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
    session: &mut Session,
    access: Access,
    work: &mut dyn FnMut(&mut Transaction<'_>) -> Result<T, Cause>,
) -> Result<T, Cause> {
    let mut done = None;
    transact(session, access, &mut |transaction| {
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
    session: &mut Session,
    access: Access,
    work: &mut dyn FnMut(&mut Transaction<'_>) -> Result<(), DbError>,
) -> Result<(), DbError> {
    if let Some(files) = &session.files {
        files.check()?;
    }
    let set_durable = |connection: &Connection, is_durable: bool| match access {
        Access::Durable => connection
            .pragma_update(None, "synchronous", if is_durable { "FULL" } else { "NORMAL" })
            .map_err(failure),
        Access::Read | Access::Write => Ok(()),
    };
    set_durable(&session.connection, true)?;
    let done = commit(session, access, work);
    session.progress.end();
    if let Err(error) = set_durable(&session.connection, false) {
        tracing::warn!(%error, "later transactions are as durable as this one, and slower");
    }
    match (done, &session.files) {
        (Err(error), Some(files)) => Err(files.explain(error)),
        (done, _) => done,
    }
}

fn commit(
    Session { connection, progress, .. }: &mut Session,
    access: Access,
    work: &mut dyn FnMut(&mut Transaction<'_>) -> Result<(), DbError>,
) -> Result<(), DbError> {
    let behavior = match access {
        Access::Read => TransactionBehavior::Deferred,
        Access::Write | Access::Durable => TransactionBehavior::Immediate,
    };
    progress.enter(Stage::Locking);
    let open = connection.transaction_with_behavior(behavior).map_err(failure)?;
    progress.enter(Stage::Working);
    let mut statements = Open(&open);
    let mut transaction = Transaction::new(&mut statements);
    // A transaction without a commit is rolled back.
    work(&mut transaction)?;
    if !transaction.is_discarded {
        progress.enter(Stage::Committing);
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

    fn now(&self) -> i64 {
        // All processes that share a file are on one machine, and share its clock.
        i64::try_from(crate::now_ms()).unwrap_or(i64::MAX)
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

/// Turns an error of SQLite that a function of the schema returned into one with a kind.
fn in_words(cause: Cause) -> Cause {
    match cause.downcast::<rusqlite::Error>() {
        Ok(error) => failure(*error).into(),
        Err(cause) => cause,
    }
}

fn failure(error: rusqlite::Error) -> DbError {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::FileLockingProtocolFailed) => FailureKind::NoLocks,
        Some(ErrorCode::SystemIoFailure) if extended.is_some_and(is_of_locks) => {
            FailureKind::NoLocks
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FailureKind::Locked,
        Some(ErrorCode::DiskFull) => FailureKind::Full,
        Some(ErrorCode::SystemIoFailure) => FailureKind::Disk,
        Some(ErrorCode::ReadOnly) if extended == Some(ffi::SQLITE_READONLY_DBMOVED) => {
            FailureKind::Gone
        }
        Some(ErrorCode::ReadOnly) => FailureKind::ReadOnly,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => FailureKind::Damaged,
        _ => FailureKind::Other,
    };
    // The error of a statement that cannot be prepared contains the statement.
    let message = match (kind, &error) {
        (FailureKind::NoLocks, _) => format!("{NO_LOCKS} ({})", short(&error)),
        (FailureKind::Other, _) => error.to_string(),
        _ => short(&error),
    };
    DbError::new(kind, message)
}

/// Returns the message of an error without the statement.
fn short(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { error, msg, .. } => {
            format!("{msg} (code {})", error.extended_code)
        }
        rusqlite::Error::SqliteFailure(error, Some(message)) => {
            format!("{message} (code {})", error.extended_code)
        }
        error => error.to_string(),
    }
}

/// Returns true for the extended codes of failures to lock a file.
fn is_of_locks(extended: i32) -> bool {
    [
        ffi::SQLITE_IOERR_LOCK,
        ffi::SQLITE_IOERR_UNLOCK,
        ffi::SQLITE_IOERR_RDLOCK,
        ffi::SQLITE_IOERR_CHECKRESERVEDLOCK,
        ffi::SQLITE_IOERR_SHMLOCK,
    ]
    .contains(&extended)
}

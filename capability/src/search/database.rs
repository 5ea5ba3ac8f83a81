//! The database of an index: its tables, and opening a file that may contain anything.

use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

/// The application id in the databases of the index.
const APPLICATION: i32 = 0x5754_4c53;

/// The version of the tables and of the indexed text. A database of a different version is
/// recreated.
const VERSION: i32 = 3;

/// Maximum time to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The tables. A row of `file` is the content of a path at one time, and its `version` is the
/// version of the host's file with this content. A row without a version is always read again.
const TABLES: &str = "
    CREATE TABLE file (
        id INTEGER PRIMARY KEY,
        path TEXT NOT NULL,
        version BLOB NOT NULL,
        hash BLOB NOT NULL,
        used INTEGER NOT NULL,
        UNIQUE (path, hash)
    ) STRICT;
    CREATE TABLE passage (
        id INTEGER PRIMARY KEY,
        file INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX passage_of_file ON passage (file);
    CREATE TABLE vector (
        passage INTEGER NOT NULL,
        model TEXT NOT NULL,
        coordinates BLOB NOT NULL,
        PRIMARY KEY (passage, model)
    ) STRICT, WITHOUT ROWID;
    CREATE VIRTUAL TABLE words USING fts5 (
        path, text, parts,
        content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
    );
";

/// An error from the database.
pub(super) type Cause = rusqlite::Error;

/// Opens the database in a file. The file is replaced if it is corrupt, is not an index, can be
/// read by others, or has a different version.
pub(super) fn open(path: &Path) -> Result<Connection, Cause> {
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        // The index contains text of the files, so only the owner may read it.
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // If this fails, opening the file reports it.
        let _ = builder.create(folder);
    }
    // If another process creates the file at the same time, that one is used.
    for _ in 0..2 {
        if std::fs::symlink_metadata(path).is_err() {
            make_private(path);
        }
        if is_private(path) {
            match connect(path) {
                Ok(Some(connection)) => return Ok(connection),
                Ok(None) => {}
                Err(cause) if is_broken(&cause) => {}
                Err(cause) => return Err(cause),
            }
        }
        remove(path);
    }
    make_private(path);
    let made = connect(path)?;
    made.ok_or_else(|| Cause::InvalidPath(path.to_owned()))
}

/// Creates a file that only its owner can access. If this fails, opening the file reports it.
fn make_private(path: &Path) {
    let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

/// Returns true if a path is a plain file with one link that only its owner can access.
fn is_private(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| {
        meta.is_file() && meta.nlink() == 1 && meta.permissions().mode() & 0o777 == 0o600
    })
}

/// Creates a database in memory.
pub(super) fn in_memory() -> Result<Connection, Cause> {
    let mut connection = Connection::open_in_memory()?;
    prepare(&mut connection)?;
    Ok(connection)
}

/// Returns true if the file is not a database, or is corrupt.
pub(super) fn is_broken(cause: &Cause) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Removes the files of a database. A process that has the database open can still use it.
pub(super) fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        // A missing file is fine; any other failure shows when the file is opened again.
        let _ = std::fs::remove_file(PathBuf::from(file));
    }
}

/// Opens a file. Returns `None` if it contains a different database, or one of a different version.
fn connect(path: &Path) -> Result<Option<Connection>, Cause> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    // The user may have made a parent folder a link.
    let path =
        path.parent().and_then(|folder| Some(folder.canonicalize().ok()?.join(path.file_name()?)));
    let mut connection = Connection::open_with_flags(path.unwrap_or_default(), flags)?;
    // Nothing in the file's schema may run code.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(prepare(&mut connection)?.then_some(connection))
}

/// Creates the tables of a new database. Returns true if the database has the tables of this
/// version.
fn prepare(connection: &mut Connection) -> Result<bool, Cause> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let found = (number("application_id")?, number("user_version")?);
    let tables: u32 =
        transaction.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    if tables > 0 {
        return Ok(found == (APPLICATION, VERSION) && schema(&transaction)? == own_schema()?);
    }
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(true)
}

/// Returns the schema of a database.
fn schema(connection: &Connection) -> Result<Vec<(String, Option<String>)>, Cause> {
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_master ORDER BY name")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn own_schema() -> Result<Vec<(String, Option<String>)>, Cause> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    schema(&connection)
}

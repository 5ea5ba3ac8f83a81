//! The database of an index: the definition of its tables, and safe access to its untrusted file.

use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

/// The SQLite application id of an index database.
const APPLICATION: i32 = 0x5754_4c53;

/// The version of the tables and of the indexed text. A database of a different version is
/// recreated.
const VERSION: i32 = 3;

/// Maximum time to wait while another process writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The tables of an index. A row of `file` is a snapshot: the content of a path at one time. Its
/// `version` is the version of the file on disk that has this content. If `version` is empty, the
/// file is always read again.
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

/// Opens the database in a file. The file is replaced if it is corrupt, is not an index of this
/// version, or is accessible to other users.
pub(super) fn open(path: &Path) -> Result<Connection, Cause> {
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        // The index contains text of the files, so only the owner may read it.
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // A failure is reported when the file is opened.
        let _ = builder.create(folder);
    }
    // If another process creates the file at the same time, that file is used.
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

/// Creates a file that only its owner can access. A failure is reported when the file is opened.
fn make_private(path: &Path) {
    let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

/// Returns true if the path is a regular file that has a single hard link and that only its owner
/// can access.
fn is_private(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| {
        meta.is_file() && meta.nlink() == 1 && meta.permissions().mode() & 0o777 == 0o600
    })
}

/// Creates an in-memory database.
pub(super) fn in_memory() -> Result<Connection, Cause> {
    let mut connection = Connection::open_in_memory()?;
    prepare(&mut connection)?;
    Ok(connection)
}

/// Returns true if the error means that the file is corrupt or is not a database.
pub(super) fn is_broken(cause: &Cause) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Removes the files of a database. Processes that have the database open can still use it.
pub(super) fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        // A missing file is not an error. Any other failure is reported when the file is opened
        // again.
        let _ = std::fs::remove_file(PathBuf::from(file));
    }
}

/// Opens a database file. Returns `None` if it is not an index of this version.
fn connect(path: &Path) -> Result<Option<Connection>, Cause> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    // A parent folder may be a link that the user created.
    let path =
        path.parent().and_then(|folder| Some(folder.canonicalize().ok()?.join(path.file_name()?)));
    let mut connection = Connection::open_with_flags(path.unwrap_or_default(), flags)?;
    // The schema in the file is untrusted and must not be able to run code.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(prepare(&mut connection)?.then_some(connection))
}

/// Creates the tables if the database is empty. Returns true if the database has the tables of this
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

/// Returns the schema of a database: the names and SQL definitions of its objects.
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

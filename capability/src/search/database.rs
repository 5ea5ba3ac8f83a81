//! The database of an index: its tables, and how one is opened that may be anything.

use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

/// Tells our databases from those of others.
const APPLICATION: i32 = 0x5754_4c53;

/// Raised when tables or texts are made in another way; a database of another version is made anew.
const VERSION: i32 = 2;

/// How long another process that writes is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A row of `file` is one content of a path. `version` is that of the file on the host which the content was read from; a row without
/// one is always read again.
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

/// Why the database did not do what was asked.
pub(super) type Cause = rusqlite::Error;

/// Opens the database in a file; one that is broken, foreign, open to others or of another version is replaced.
pub(super) fn open(path: &Path) -> Result<Connection, Cause> {
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        // What files say is for their owner alone.
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // Where the folder cannot be made, opening says so.
        let _ = builder.create(folder);
    }
    // Another process may make the file at the same time: what it made is as good as ours.
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

/// Makes a file that nobody else can read from its first moment on. Where it cannot be made, opening it says so.
fn make_private(path: &Path) {
    let _ = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

/// Whether a file is a plain one under this name alone, which its owner alone may read and write. What is not is not ours.
fn is_private(path: &Path) -> bool {
    std::fs::symlink_metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.nlink() == 1 && meta.permissions().mode() & 0o777 == 0o600)
}

/// Makes a database that is gone with the process.
pub(super) fn in_memory() -> Result<Connection, Cause> {
    let mut connection = Connection::open_in_memory()?;
    prepare(&mut connection)?;
    Ok(connection)
}

/// Whether the file is no database, or one whose pages contradict each other.
pub(super) fn is_broken(cause: &Cause) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Removes the files of a database. A process that has it open keeps what it has.
pub(super) fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        // What is not there need not be removed; what cannot be removed shows when it is opened again.
        let _ = std::fs::remove_file(PathBuf::from(file));
    }
}

/// Opens a file; `None` where what it holds is not ours.
fn connect(path: &Path) -> Result<Option<Connection>, Cause> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    // The folders above may be links of the user's.
    let path = path.parent().and_then(|folder| Some(folder.canonicalize().ok()?.join(path.file_name()?)));
    let mut connection = Connection::open_with_flags(path.unwrap_or_default(), flags)?;
    // What the file says of itself runs nothing.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(prepare(&mut connection)?.then_some(connection))
}

/// Makes the tables of a new database; tells whether they are those of this version.
fn prepare(connection: &mut Connection) -> Result<bool, Cause> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let found = (number("application_id")?, number("user_version")?);
    let tables: u32 = transaction.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    if tables > 0 {
        return Ok(found == (APPLICATION, VERSION) && schema(&transaction)? == own_schema()?);
    }
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(true)
}

/// What a database says its tables are.
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

//! The database of an index: its tables, and how one is opened that may be anything.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

/// Tells our databases from those of others.
const APPLICATION: i32 = 0x5754_4c53;

/// Raised when tables or texts are made in another way; a database of another version is made anew.
const VERSION: i32 = 1;

/// How long another process that writes is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

const TABLES: &str = "
    CREATE TABLE file (
        id INTEGER PRIMARY KEY,
        path TEXT NOT NULL,
        size INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        hash BLOB NOT NULL,
        settled INTEGER NOT NULL,
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

/// Opens the database in a file; one that is broken, foreign or of another version is replaced.
pub(super) fn open(path: &Path) -> Result<Connection, Cause> {
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        // What files say is for their owner alone.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // Where the folder cannot be made, opening says so.
        let _ = builder.create(folder);
    }
    match connect(path) {
        Ok(Some(connection)) => return Ok(connection),
        Ok(None) => {}
        Err(cause) if is_broken(&cause) => {}
        Err(cause) => return Err(cause),
    }
    remove(path);
    let made = connect(path)?;
    made.ok_or_else(|| Cause::InvalidPath(path.to_owned()))
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
    let mut connection = Connection::open(path)?;
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
        return Ok(found == (APPLICATION, VERSION));
    }
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(true)
}

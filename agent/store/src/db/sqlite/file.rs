//! The files of a database: whether they are still those that were opened, whether their file
//! system has space, and whether its locks work.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{DbError, FailureKind};

/// The suffixes of the files that SQLite uses while a database in WAL mode is open.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Size of the file with which the space of the file system is tested, in bytes: that of a typical
/// turn.
const ROOM: usize = 64 << 10;

/// The identity of a file: its device and its inode.
type Identity = (u64, u64);

/// A database when it was opened.
struct Opened {
    id: String,
    /// The files, each with its identity.
    files: Vec<(PathBuf, Identity)>,
}

/// The files of an open database.
pub(super) struct Files {
    path: PathBuf,
    /// The database that was opened. Set once all of its files exist.
    opened: OnceLock<Opened>,
    /// If true, the file contains another database than the one that was opened.
    is_replaced: AtomicBool,
}

impl Files {
    pub(super) fn new(path: PathBuf) -> Files {
        Files { path, opened: OnceLock::new(), is_replaced: AtomicBool::new(false) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Remembers the id of the database and the identities of its files. Must be called after the
    /// first transaction, which creates the log.
    pub(super) fn remember(&self, id: String) {
        let found = |suffix| {
            let path = beside(&self.path, suffix);
            let identity = identity(&path).ok()?;
            Some((path, identity))
        };
        // Only one thread opens a database.
        let files = SUFFIXES.into_iter().filter_map(found).collect();
        drop(self.opened.set(Opened { id, files }));
    }

    /// Checks that the files are still those that were opened. Otherwise changes would be written
    /// to files that nobody finds again.
    pub(super) fn check(&self) -> Result<(), DbError> {
        let gone = |message: String| Err(DbError::new(FailureKind::Gone, message));
        for (path, opened) in self.opened.get().into_iter().flat_map(|opened| &opened.files) {
            let problem = match identity(path) {
                Ok(found) if found == *opened => continue,
                Ok(_) => "was replaced by another file".to_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => "was removed".to_owned(),
                Err(error) => format!("cannot be found: {error}"),
            };
            return gone(format!("`{}` {problem} while it was in use", path.display()));
        }
        if self.is_replaced.load(Ordering::Relaxed) {
            gone(format!("`{}` contains another store now", self.path.display()))
        } else {
            Ok(())
        }
    }

    /// Compares the id that the database has now with the one that it had when it was opened. If
    /// they differ, [`check`](Files::check) fails from now on.
    pub(super) fn check_id(&self, id: &str) -> Result<(), DbError> {
        let is_replaced = self.opened.get().is_some_and(|opened| opened.id != id);
        self.is_replaced.store(is_replaced, Ordering::Relaxed);
        self.check()
    }

    /// Returns the size of the log, in bytes.
    pub(super) fn log_bytes(&self) -> u64 {
        std::fs::metadata(beside(&self.path, "-wal")).map_or(0, |meta| meta.len())
    }

    /// Writes a file beside the database and removes it. The log may have space that was allocated
    /// earlier, so that a small transaction succeeds although the disk is full.
    pub(super) fn check_space(&self) -> Result<(), DbError> {
        let path = beside(&self.path, "-check");
        let write = || {
            let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600).custom_flags(flags);
            let mut file = options.open(&path)?;
            file.write_all(&[0; ROOM])?;
            file.sync_all()
        };
        let written = write();
        drop(std::fs::remove_file(&path));
        written.map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::FileTooLarge => FailureKind::Full,
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                    FailureKind::ReadOnly
                }
                _ => FailureKind::Disk,
            };
            DbError::new(kind, format!("failed to write a file beside the store: {error}"))
        })
    }

    /// Explains an error that reports a lock. If a new database in the same folder, which nobody
    /// else knows, is locked, too, the file system has no locks.
    pub(super) fn explain(&self, error: DbError) -> DbError {
        if error.kind != FailureKind::Locked || self.locks_work() {
            return error;
        }
        DbError::new(FailureKind::NoLocks, NO_LOCKS)
    }

    /// Returns false if the file system refuses to lock a file that nobody else uses.
    pub(super) fn locks_work(&self) -> bool {
        let suffix = format!("-lock-{}", ulid::Ulid::generate());
        let path = beside(&self.path, &suffix);
        let flags = OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let locked = Connection::open_with_flags(&path, flags)
            .and_then(|connection| connection.execute_batch("BEGIN EXCLUSIVE; ROLLBACK"));
        for suffix in ["", "-journal"] {
            drop(std::fs::remove_file(beside(&path, suffix)));
        }
        // Any other failure says nothing about locks.
        !locked.is_err_and(|error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
    }
}

/// The message for a file system whose locks do not work.
pub(super) const NO_LOCKS: &str = "the file system of the store refuses to lock files";

fn identity(path: &Path) -> io::Result<Identity> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// Returns the path of a file whose name is that of another file with a suffix.
pub(crate) fn beside(path: &Path, suffix: impl AsRef<OsStr>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

//! Failures of the store and of its database. Most of the messages contain a hint for the operator.

use std::fmt;
use std::path::Path;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to {what} the store{}: {cause}",
    .at.as_ref().map(|at| format!(" `{at}`")).unwrap_or_default()
)]
pub struct StoreError {
    what: &'static str,
    /// The path of the file, or the database's URL without the password.
    at: Option<String>,
    cause: Cause,
}

/// The cause of a failure.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

impl StoreError {
    /// Creates the error for a store that cannot be opened.
    pub fn open(path: &Path, cause: impl Into<Cause>) -> StoreError {
        StoreError::at("open", Some(path.display().to_string()), cause.into())
    }

    /// Returns true if the store is temporarily unusable: its database cannot be reached or
    /// written, its disk is full, or it is too slow. The same operation may succeed later.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        !matches!(kind_of(&self.cause), FailureKind::Other | FailureKind::Damaged)
    }

    /// Returns true if the file of the store is damaged.
    pub(crate) fn is_damage(&self) -> bool {
        kind_of(&self.cause) == FailureKind::Damaged
    }

    /// Returns the reason in a few words, without names of files and servers, so that it can be
    /// shown to any client: for example, `the disk of the store is full`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        kind_of(&self.cause).reason()
    }

    /// Returns true if a write was refused because the run, the tenant or the store would keep more
    /// bytes than its [limit](crate::StoreLimits).
    #[must_use]
    pub fn is_full(&self) -> bool {
        is_limit(&self.cause)
    }

    /// Creates the error for invalid content in the store.
    pub fn unreadable(cause: impl Into<Cause>) -> StoreError {
        StoreError::at("read", None, cause.into())
    }

    /// Returns a function that creates the error for an operation from its cause. `what` is the
    /// operation's verb: `open`, `read` or `write`.
    pub fn new(what: &'static str) -> impl FnOnce(Cause) -> StoreError {
        move |cause| StoreError::at(what, None, cause)
    }

    /// Creates the error for a store at a path or a URL. A URL must not contain a password.
    pub(crate) fn at(what: &'static str, at: Option<String>, cause: Cause) -> StoreError {
        StoreError { what, at, cause }
    }
}

/// The kind of a failure, which determines how the failure is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The transaction conflicts with another one. It may succeed if it is repeated.
    Conflict,
    /// The connection was lost or could not be opened. If a commit was in progress, its outcome is
    /// unknown.
    Lost,
    /// The database rejects the user or the password.
    Credentials,
    /// The database does not exist on the server.
    NoDatabase,
    /// The database is not writable: it is a standby, or its file is read-only.
    ReadOnly,
    /// The disk is full.
    Full,
    /// The disk failed to read or write.
    Disk,
    /// A statement or a lock took longer than its timeout.
    Slow,
    /// Another process holds the lock of a file.
    Locked,
    /// The file system does not support the locks that a file needs.
    NoLocks,
    /// The files were removed or replaced while they were in use.
    Gone,
    /// The content of the file is damaged.
    Damaged,
    /// The server has no free connection.
    Busy,
    /// The user is not allowed to execute the statement.
    Permission,
    /// The objects outside the database cannot be read or written.
    Objects,
    /// Any other failure.
    Other,
}

/// An error from a database.
#[derive(Clone, Debug)]
pub(crate) struct DbError {
    pub(crate) kind: FailureKind,
    message: String,
}

impl DbError {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> DbError {
        DbError { kind, message: message.into() }
    }

    /// Returns a hint for fixing the cause, or `None` if the cause is unknown.
    fn hint(&self) -> Option<&'static str> {
        Some(match self.kind {
            FailureKind::Conflict => "other processes change the same rows; try again",
            FailureKind::Lost => "check that the database server runs and can be reached",
            FailureKind::Credentials => "check the user and the password in the store's URL",
            FailureKind::NoDatabase => {
                "create the database, or name another one in the store's URL"
            }
            FailureKind::ReadOnly => {
                "name a database that can be written; a standby of PostgreSQL cannot"
            }
            FailureKind::Full => "free space on the disk of the store",
            FailureKind::Disk => "check the disk of the store",
            FailureKind::Slow => {
                "the database is overloaded, or another transaction holds a lock; try again"
            }
            FailureKind::Locked => {
                "wait, or end the process that holds the lock; `fuser -v FILE` names it"
            }
            FailureKind::NoLocks => {
                "keep the store on a local disk, since network file systems often have no locks, or \
                 in PostgreSQL with `--store postgres://…`"
            }
            FailureKind::Gone => {
                "stop what uses the store, put its files back, from a back-up if they are lost, and \
                 start again"
            }
            FailureKind::Damaged => {
                "stop what uses the store and restore a back-up; `wattle store check` lists what is \
                 damaged, and `wattle store copy` saves the content if all of it can be read. If \
                 the file is not a store, name another with `--store FILE|URL`"
            }
            FailureKind::Busy => {
                "raise `max_connections` of the database server, or start fewer processes"
            }
            FailureKind::Permission => "grant the user of the store's URL all rights on its schema",
            FailureKind::Objects => {
                "check that the location of `--blobs` can be reached, and its keys and rights"
            }
            FailureKind::Other => return None,
        })
    }
}

impl FailureKind {
    /// Returns the reason of a failure for clients, without names of files and servers.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            FailureKind::Conflict => "other processes change the same rows",
            FailureKind::Lost => "the database cannot be reached",
            FailureKind::Credentials => "the database rejects the user or the password",
            FailureKind::NoDatabase => "the database does not exist",
            FailureKind::ReadOnly => "the store is read-only",
            FailureKind::Full => "the disk of the store is full",
            FailureKind::Disk => "the disk of the store fails or is too slow",
            FailureKind::Slow => "the store did not respond in time",
            FailureKind::Locked => "another process holds the lock of the store",
            FailureKind::NoLocks => "the file system of the store does not support locks",
            FailureKind::Gone => "the files of the store were removed or replaced",
            FailureKind::Damaged => "the file of the store is damaged",
            FailureKind::Busy => "the database has no free connection",
            FailureKind::Permission => "the database refuses the statement to this user",
            FailureKind::Objects => "the location of large files failed",
            FailureKind::Other => "the store failed",
        }
    }
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.hint() {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DbError {}

/// Returns the kind of a transaction's failure.
pub(crate) fn kind_of(cause: &Cause) -> FailureKind {
    cause.downcast_ref::<DbError>().map_or(FailureKind::Other, |error| error.kind)
}

/// The error for data that would exceed a limit.
#[derive(Debug, thiserror::Error)]
#[error(
    "{owner} would keep {} MiB, more than its limit of {} MiB (`{setting}`)\nhint: {hint}, or raise \
     the setting", .bytes.div_ceil(1 << 20), .limit >> 20
)]
pub(crate) struct LimitReached {
    pub(crate) owner: String,
    pub(crate) bytes: u64,
    pub(crate) limit: u64,
    pub(crate) setting: &'static str,
    pub(crate) hint: &'static str,
}

/// Returns true if a write failed because it would have exceeded a limit.
pub(crate) fn is_limit(cause: &Cause) -> bool {
    cause.is::<LimitReached>()
}

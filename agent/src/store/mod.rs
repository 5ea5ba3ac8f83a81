//! The store: sessions with their key-value state, the state of tenants, and the journal of runs, in one SQLite file that every process
//! which opens it shares.
//!
//! A [`Store`] is the file; what it holds belongs to tenants. [`Store::tenant`] gives a [`TenantStore`], which has all functions on data:
//! a function without a tenant does not exist.

mod hold;
mod journal;
mod private;
mod schema;
mod secret;
mod session;
mod state;
mod tenant;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use wattle_machine::Role;

pub use journal::own_session;
pub(crate) use private::make_folder;
pub use private::{Privacy, privacy};
pub use secret::{LazySecrets, StoredSecrets};
pub use session::{Exported, Kept, SESSION_ID, SessionLine, is_session_id};
pub use state::{LazyState, State};
pub use tenant::{DEFAULT_TENANT, Tenant, TenantError, TenantStore};

/// The file of a store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    connection: Arc<Mutex<Connection>>,
    ttl: Duration,
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what} the store{}: {cause}", .path.as_ref().map(|p| format!(" `{}`", p.display())).unwrap_or_default())]
pub struct StoreError {
    what: &'static str,
    path: Option<PathBuf>,
    cause: Cause,
}

/// Why the database did not do what was asked.
type Cause = Box<dyn std::error::Error + Send + Sync>;

impl StoreError {
    /// The store in that file cannot be opened.
    pub fn open(path: &Path, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
        StoreError { what: "open", path: Some(path.to_owned()), cause: cause.into() }
    }

    /// What the store holds is not what it should be.
    pub(crate) fn unreadable(cause: impl Into<Cause>) -> StoreError {
        StoreError { what: "read", path: None, cause: cause.into() }
    }

    pub(crate) fn new(what: &'static str) -> impl FnOnce(Cause) -> StoreError {
        move |cause| StoreError { what, path: None, cause }
    }
}

impl Store {
    /// Opens the file, making it and its folder if they are absent, readable by their owner alone. Sessions that nobody used for `ttl`
    /// are dropped.
    ///
    /// # Errors
    /// If the file cannot be opened, is a link, is not a store, is one of a newer version, or is in a folder that others can write.
    pub fn open(path: &Path, ttl: Duration) -> Result<Store, StoreError> {
        let open = || -> Result<Connection, Cause> {
            let path = private::make_ready(path)?;
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_NOFOLLOW;
            Ok(Connection::open_with_flags(path, flags)?)
        };
        let ready = open().and_then(|connection| Store::ready(connection, ttl));
        ready.map_err(|cause| StoreError::open(path, cause))
    }

    /// Makes a store that is gone with the process.
    ///
    /// # Errors
    /// Where SQLite cannot give memory.
    pub fn in_memory(ttl: Duration) -> Result<Store, StoreError> {
        let ready =
            Connection::open_in_memory().map_err(Cause::from).and_then(|connection| Store::ready(connection, ttl));
        ready.map_err(StoreError::new("open"))
    }

    fn ready(mut connection: Connection, ttl: Duration) -> Result<Store, Cause> {
        schema::prepare(&mut connection)?;
        Ok(Store { connection: Arc::new(Mutex::new(connection)), ttl })
    }

    /// Works on the database away from the threads that run programs.
    async fn with<T: Send + 'static, E>(
        &self,
        failed: impl FnOnce(Cause) -> E,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, E> {
        let shared = Arc::clone(&self.connection);
        let worked = tokio::task::spawn_blocking(move || {
            // A transaction that did not come to its end was rolled back.
            work(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
        });
        match worked.await {
            Ok(done) => done.map_err(|cause| failed(cause.into())),
            Err(stopped) => Err(failed(stopped.into())),
        }
    }
}

impl TenantStore {
    /// Checks that the store can be written.
    ///
    /// # Errors
    /// If it cannot.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.store.with(StoreError::new("write"), |c| c.execute_batch("BEGIN IMMEDIATE; ROLLBACK")).await
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        _ => "assistant",
    }
}

/// Milliseconds since 1970, as the database keeps them.
fn now() -> i64 {
    i64::try_from(crate::now_ms()).unwrap_or(i64::MAX)
}

//! The store: sessions with their key-value state, the state and the memory of tenants, and the
//! journal of runs. All of it is in one SQLite file, which several processes can share.
//!
//! A [`Store`] is the file; its content belongs to tenants. [`Store::tenant`] returns a
//! [`TenantStore`], which has all functions that access data. So no function accesses data without
//! a tenant.

mod client;
mod files;
mod lock;
mod memory;
mod private;
mod rows;
mod runs;
mod schema;
mod seal;
mod secret;
mod session;
mod state;
mod token;
mod tree;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use wattle_machine::Role;

use crate::error::{Cause, StoreError};
use crate::tenant::Tenant;

pub use client::Integration;
pub use files::SessionFiles;
pub use memory::{LazyMemory, StoredMemory};
pub use private::{Privacy, privacy};
pub use runs::own_session;
pub use secret::{LazySecrets, StoredSecrets};
pub use session::{ExportedSession, SESSION_ID, SessionLine, StateValue, is_session_id};
pub use state::{LazyState, State};
pub use token::TokenLine;
pub(crate) use tree::TreeStatus;

/// The file of a store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    connection: Arc<Mutex<Connection>>,
    ttl: Duration,
}

impl Store {
    /// Opens the store. A missing file and its folder are created, with access for their owner
    /// only. Sessions that were not used for `ttl` are dropped.
    ///
    /// # Errors
    /// The file cannot be opened, is a link, is not a store, has a newer version, or is in a folder
    /// that others can write.
    pub fn open(path: &Path, ttl: Duration) -> Result<Store, StoreError> {
        let open = || -> Result<Connection, Cause> {
            let path = private::prepare(path)?;
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_NOFOLLOW;
            Ok(Connection::open_with_flags(path, flags)?)
        };
        let ready = open().and_then(|connection| Store::ready(connection, ttl));
        ready.map_err(|cause| StoreError::open(path, cause))
    }

    /// Creates a store in memory.
    ///
    /// # Errors
    /// SQLite cannot allocate memory.
    pub fn in_memory(ttl: Duration) -> Result<Store, StoreError> {
        let ready = Connection::open_in_memory()
            .map_err(Cause::from)
            .and_then(|connection| Store::ready(connection, ttl));
        ready.map_err(StoreError::new("open"))
    }

    fn ready(mut connection: Connection, ttl: Duration) -> Result<Store, Cause> {
        schema::prepare(&mut connection)?;
        Ok(Store { connection: Arc::new(Mutex::new(connection)), ttl })
    }

    /// Runs `work` on the database, on a thread that does not run programs.
    async fn with<T: Send + 'static, E>(
        &self,
        failed: impl FnOnce(Cause) -> E,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, E> {
        let shared = Arc::clone(&self.connection);
        let task = tokio::task::spawn_blocking(move || {
            // A transaction without a commit is rolled back.
            work(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
        });
        match task.await {
            Ok(done) => done.map_err(|cause| failed(cause.into())),
            Err(stopped) => Err(failed(stopped.into())),
        }
    }
}

/// One tenant's part of a store: its sessions, state, secrets and runs. Cheap to clone.
///
/// Rows of other tenants are unreachable from here, because each statement has the tenant in its
/// key.
#[derive(Clone)]
pub struct TenantStore {
    store: Store,
    tenant: Tenant,
    /// The encryption of records, or `None` to keep all of them as they are.
    seal: Option<Arc<seal::RecordSeal>>,
}

impl TenantStore {
    /// Returns the tenant.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }
}

impl Store {
    /// Returns the tenants that have open or queued runs.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn tenants_with_open_runs(&self) -> Result<Vec<Tenant>, StoreError> {
        let names = self.with(StoreError::new("read"), |connection| {
            let mut statement = connection.prepare(
                "SELECT tenant FROM run WHERE status = 'open' UNION SELECT tenant FROM queue",
            )?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            names.collect::<rusqlite::Result<Vec<_>>>()
        });
        Ok(names.await?.iter().filter_map(|name| Tenant::new(name).ok()).collect())
    }

    /// Returns the part of the store that belongs to `tenant`.
    #[must_use]
    pub fn tenant(&self, tenant: &Tenant) -> TenantStore {
        TenantStore { store: self.clone(), tenant: tenant.clone(), seal: None }
    }
}

impl fmt::Debug for TenantStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantStore({})", self.tenant)
    }
}

impl TenantStore {
    /// Checks that the store can be written.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.store
            .with(StoreError::new("write"), |c| c.execute_batch("BEGIN IMMEDIATE; ROLLBACK"))
            .await
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        _ => "assistant",
    }
}

/// Returns the current time in the unit of the database: milliseconds since 1970.
fn now() -> i64 {
    i64::try_from(crate::now_ms()).unwrap_or(i64::MAX)
}

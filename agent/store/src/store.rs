//! The handles to a store: [`Store`] for the whole database, and [`TenantStore`] for the part of one
//! tenant.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use wattle_capability::secrets::Mask;

use crate::blob::BlobStore;
use crate::clock::Clock;
use crate::db::postgres::Postgres;
use crate::db::sqlite::Sqlite;
use crate::db::{Access, Database, Opening, StoreTransaction, Transaction};
use crate::error::{Cause, StoreError};
use crate::keep::Retention;
use crate::lease::Leases;
use crate::probe::Probe;
use crate::seal::RecordSeal;
use crate::tenant::Tenant;
use crate::usage::Usage;
use crate::{address, db, schema};

/// A handle to a store's database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(crate) db: Database,
    pub(crate) leases: Arc<Leases>,
    pub(crate) ttl: Duration,
    pub(crate) retention: Retention,
    pub(crate) clock: Arc<Clock>,
    pub(crate) probe: Arc<Probe>,
    pub(crate) blobs: Option<BlobStore>,
    pub(crate) usage: Usage,
}

/// The tenant whose rows a transaction accesses, and the encryption of its records.
pub(crate) type Owner<'a> = (&'a str, Option<&'a RecordSeal>);

impl Store {
    /// Opens the store in a file. A missing file and its folder are created, with access for their
    /// owner only. Sessions that have not been used for `ttl` are removed.
    ///
    /// A file with the suffix `-id` beside the store repeats the store's id. It shows if the store
    /// is lost.
    ///
    /// # Errors
    /// - If the file cannot be opened, is a link, is not a store, or has a version that this
    ///   program does not support.
    /// - If the file is in a folder that other users can write to.
    /// - If the file is missing, empty, or another store, and a store was here.
    pub fn open(path: &Path, ttl: Duration) -> Result<Store, StoreError> {
        let opened = address::open_file(path, Opening::Use);
        let opened = opened.map(|sqlite| Store::of(sqlite.into(), ttl));
        opened.map_err(|cause| StoreError::open(path, cause))
    }

    /// Opens the store in the PostgreSQL database at `url`. The process connects on first use, and
    /// the first process creates the schema. The store must be used within a tokio runtime.
    ///
    /// The URL has the form `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with the parameters
    /// `sslmode` (`disable`, `prefer`, `require`, `verify-full`), `sslrootcert` (a file of trusted
    /// certificates), `schema` (default `wattle`) and `pooler` (`transaction`, if the URL leads to a
    /// pooler that gives each transaction another session; replicas then find each other's changes by
    /// polling only).
    ///
    /// # Errors
    /// If the URL is invalid.
    pub fn connect(url: &str, ttl: Duration) -> Result<Store, StoreError> {
        let postgres = Postgres::new(url, Opening::Use, schema::postgres);
        let shown = || db::postgres::shown(url);
        let postgres = postgres.map_err(|cause| StoreError::at("open", Some(shown()), cause))?;
        Ok(Store::of(postgres.into(), ttl))
    }

    /// Returns a store's URL for printing, with the password masked.
    #[must_use]
    pub fn shown_url(url: &str) -> String {
        db::postgres::shown(url)
    }

    /// Returns the file of trusted certificates that a store's URL names, if any.
    #[must_use]
    pub fn certificates_of_url(url: &str) -> Option<PathBuf> {
        db::postgres::certificates(url)
    }

    /// Creates an in-memory store.
    ///
    /// # Errors
    /// If SQLite cannot allocate memory.
    pub fn in_memory(ttl: Duration) -> Result<Store, StoreError> {
        let prepare = |connection: &mut _| schema::prepare(connection, Opening::Use);
        let sqlite = Sqlite::in_memory(prepare).map_err(StoreError::new("open"))?;
        Ok(Store::of(sqlite.into(), ttl))
    }

    pub(crate) fn of(db: Database, ttl: Duration) -> Store {
        let (leases, usage) = (Leases::new(db.clone()), Usage::default());
        let (clock, probe) = (Arc::default(), Arc::default());
        let retention = Retention::default();
        Store { db, leases, ttl, retention, clock, probe, blobs: None, usage }
    }

    /// Runs `work` in a read-only transaction.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Transaction<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.db.run(Access::Read, work).await.map_err(|cause| self.failed("read", cause))
    }

    /// Runs `work` in a read-write transaction.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Transaction<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.db.run(Access::Write, work).await.map_err(|cause| self.failed("write", cause))
    }

    pub(crate) fn failed(&self, what: &'static str, cause: Cause) -> StoreError {
        StoreError::at(what, self.db.shown().map(str::to_owned), cause)
    }

    /// Returns true if processes on other machines can share the store.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.db.sqlite().is_none()
    }

    /// Reports each finished transaction to `observer`, for metrics. Only the first observer
    /// registered with a store is used.
    pub fn observe(&self, observer: impl Fn(StoreTransaction) + Send + Sync + 'static) {
        self.db.observe(Box::new(observer));
    }

    /// Releases all locks that were acquired through this handle or its clones, so that other
    /// processes can take them immediately. Writes the log of an SQLite file back to the file, so
    /// that the file alone is complete if no other process uses it. Call this method when the
    /// process stops.
    ///
    /// # Errors
    /// If the store cannot be written. The locks then become free when this process ends or, with
    /// PostgreSQL, when its lease expires. A log stays beside the file.
    pub async fn close(&self) -> Result<(), StoreError> {
        let closed = self.leases.close().await;
        let written = self.db.checkpoint(true).await.map(drop);
        closed.and(written).map_err(|cause| self.failed("write", cause))
    }
}

/// The part of a store that belongs to a tenant: its sessions, state, secrets and runs. Cheap to
/// clone.
///
/// A `TenantStore` cannot access rows of other tenants, because each of its statements selects only
/// the tenant's rows.
#[derive(Clone)]
pub struct TenantStore {
    pub(crate) store: Store,
    pub(crate) tenant: Tenant,
    /// The encryption of records, or `None` to store all of them unencrypted.
    pub(crate) seal: Option<Arc<RecordSeal>>,
    /// The mask for the tenant's records, if one was set.
    pub(crate) mask: Option<Mask>,
}

impl TenantStore {
    /// Returns the tenant.
    #[must_use]
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }
}

impl TenantStore {
    /// Runs `work` in a read-only transaction.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Transaction<'_>, Owner<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(Access::Read, work).await.map_err(|cause| self.store.failed("read", cause))
    }

    /// Runs `work` in a read-write transaction.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Transaction<'_>, Owner<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(Access::Write, work).await.map_err(|cause| self.store.failed("write", cause))
    }

    /// Runs `work`, which adds data for a user, in a read-write transaction.
    ///
    /// # Errors
    /// If the tenant or the store would keep more bytes than its limit.
    pub(crate) async fn grow<T: Send + 'static>(
        &self,
        access: Access,
        mut work: impl FnMut(&mut Transaction<'_>, Owner<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, StoreError> {
        let usage = self.store.usage.clone();
        let work = move |transaction: &mut Transaction<'_>, of: Owner<'_>| {
            usage.grow(transaction, of.0, |transaction| work(transaction, of))
        };
        self.run(access, work).await.map_err(|cause| self.store.failed("write", cause))
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        access: Access,
        mut work: impl FnMut(&mut Transaction<'_>, Owner<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, Cause> {
        let (tenant, seal) = (self.tenant.clone(), self.seal.clone());
        let work = move |transaction: &mut Transaction<'_>| {
            work(transaction, (tenant.as_str(), seal.as_deref()))
        };
        self.store.db.run(access, work).await
    }
}

impl Store {
    /// Returns the tenants that have open runs, queued runs, or runs parked for approvals. A parked
    /// run may have no pending approvals left, because its process may have ended after recording
    /// the last answer.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn tenants_with_open_runs(&self) -> Result<Vec<Tenant>, StoreError> {
        let names = self.read(|transaction| {
            let query = "SELECT tenant FROM run
                         WHERE status = 'open' OR status = 'parked' AND reason IS NULL
                         UNION SELECT tenant FROM queue";
            transaction.query(query, &[], |row| row.get::<String>(0))
        });
        Ok(names.await?.iter().filter_map(|name| Tenant::new(name).ok()).collect())
    }

    /// Returns the part of the store that belongs to `tenant`.
    #[must_use]
    pub fn tenant(&self, tenant: &Tenant) -> TenantStore {
        TenantStore { store: self.clone(), tenant: tenant.clone(), seal: None, mask: None }
    }
}

impl fmt::Debug for TenantStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantStore({})", self.tenant)
    }
}

impl TenantStore {
    /// Checks that the store is writable; see [`Store::check`].
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }
}

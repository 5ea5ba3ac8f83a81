//! Key-value state of sessions and tenants, the backend of the `kv` capability.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::OnceCell;
use wattle_capability::PortFuture;
use wattle_capability::kv::{Backend, Change};
use wattle_rt::{Code, Failure};

use super::{TenantStore, now};
use crate::error::{Cause, StoreError};

/// Maximum size of the state of one session or one tenant, in bytes.
const STATE_BYTES: i64 = 64 << 20;

/// The state of one session, or of the tenant itself. Writes are visible to every process that
/// opens the store.
pub struct State {
    of: TenantStore,
    tables: &'static Tables,
    /// The session's id. Empty for the tenant's own state.
    session: String,
}

/// The SQL statements for one kind of owner. Parameter 1 is the tenant, 2 the session, 3 the key.
struct Tables {
    get: &'static str,
    set: &'static str,
    remove: &'static str,
    /// A query of the keys that are not less than ?3, in byte order.
    keys: &'static str,
    /// A statement that adds ?3 to the owner's size at time ?4, creates the owner if it is new, and
    /// returns the new size.
    grow: &'static str,
}

const SESSION: Tables = Tables {
    get: "SELECT value FROM state WHERE tenant = ?1 AND session = ?2 AND key = ?3",
    set: "INSERT INTO state (tenant, session, key, value) VALUES (?1, ?2, ?3, ?4)
          ON CONFLICT (tenant, session, key) DO UPDATE SET value = excluded.value",
    remove: "DELETE FROM state WHERE tenant = ?1 AND session = ?2 AND key = ?3",
    keys: "SELECT key FROM state WHERE tenant = ?1 AND session = ?2 AND key >= ?3 ORDER BY key",
    grow: "INSERT INTO session (tenant, id, bytes, made, used) VALUES (?1, ?2, ?3, ?4, ?4)
           ON CONFLICT (tenant, id) DO UPDATE SET used = excluded.used, bytes = bytes + \
           excluded.bytes RETURNING bytes",
};

const TENANT: Tables = Tables {
    get: "SELECT value FROM variable WHERE tenant = ?1 AND key = ?3",
    set: "INSERT INTO variable (tenant, key, value) VALUES (?1, ?3, ?4)
          ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value",
    remove: "DELETE FROM variable WHERE tenant = ?1 AND key = ?3",
    keys: "SELECT key FROM variable WHERE tenant = ?1 AND key >= ?3 ORDER BY key",
    grow: "INSERT INTO tenant (name, bytes, made, used) VALUES (?1, ?3, ?4, ?4)
           ON CONFLICT (name) DO UPDATE SET used = excluded.used, bytes = bytes + excluded.bytes \
           RETURNING bytes",
};

impl TenantStore {
    /// Returns the state that all sessions of the tenant share. It is kept until its keys are
    /// deleted.
    #[must_use]
    pub fn variables(&self) -> State {
        State { of: self.clone(), tables: &TENANT, session: String::new() }
    }
}

impl State {
    pub(super) fn of_session(of: TenantStore, session: String) -> Self {
        State { of, tables: &SESSION, session }
    }

    /// Changes a key and records the call in the same transaction. If the call is recorded already,
    /// nothing changes.
    async fn change(
        &self,
        call: Option<String>,
        key: String,
        change: Change,
    ) -> Result<(), Failure> {
        let (tables, session, tenant) = (self.tables, self.session.clone(), self.of.tenant.clone());
        let work = self.of.store.with(store_failure, move |connection| {
            let tenant = tenant.as_str();
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if let Some(found) = call
                .as_ref()
                .map(|call| value_before(&transaction, tenant, call))
                .transpose()?
                .flatten()
            {
                return Ok(change(found).map(drop));
            }
            let old = tables.value(&transaction, tenant, &session, &key)?;
            let old_size = old.as_ref().map_or(0, |value| size(&key, value));
            if let Some(call) = &call {
                let record = "INSERT INTO changed (tenant, call, met) VALUES (?1, ?2, ?3)";
                transaction.execute(record, params![tenant, call, old])?;
            }
            let new = match change(old) {
                Ok(new) => new,
                Err(failure) => return Ok(Err(failure)),
            };
            let grown = new.as_ref().map_or(0, |value| size(&key, value)) - old_size;
            let owner = params![tenant, session, grown, now()];
            let bytes: i64 = transaction.query_row(tables.grow, owner, |row| row.get(0))?;
            if bytes > STATE_BYTES && grown > 0 {
                // The transaction ends here without a commit, so all its changes are rolled back.
                return Ok(Err(Failure::new(
                    Code::EBUDGET,
                    "the state is full (64 MiB); delete keys first",
                )));
            }
            match new {
                Some(value) => {
                    transaction.execute(tables.set, params![tenant, session, key, value])?
                }
                None => transaction.execute(tables.remove, params![tenant, session, key])?,
            };
            transaction.commit()?;
            Ok(Ok(()))
        });
        work.await?
    }
}

/// Returns the value that a recorded call found, or `None` if the call is not recorded.
fn value_before(
    connection: &Connection,
    tenant: &str,
    call: &str,
) -> rusqlite::Result<Option<Option<Vec<u8>>>> {
    let query = "SELECT met FROM changed WHERE tenant = ?1 AND call = ?2";
    connection.query_row(query, params![tenant, call], |row| row.get(0)).optional()
}

impl Tables {
    fn value(
        &self,
        connection: &Connection,
        tenant: &str,
        session: &str,
        key: &str,
    ) -> rusqlite::Result<Option<Vec<u8>>> {
        connection.query_row(self.get, params![tenant, session, key], |row| row.get(0)).optional()
    }
}

/// Returns the size of an entry, in bytes.
fn size(key: &str, value: &[u8]) -> i64 {
    i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX)
}

fn store_failure(cause: Cause) -> Failure {
    Failure::new(Code::EREMOTE, format!("the store failed: {cause}"))
}

impl Backend for State {
    fn get(&self, key: String) -> PortFuture<'_, Option<Vec<u8>>> {
        let (tables, session, tenant) = (self.tables, self.session.clone(), self.of.tenant.clone());
        let get = move |connection: &mut Connection| {
            tables.value(connection, tenant.as_str(), &session, &key)
        };
        Box::pin(self.of.store.with(store_failure, get))
    }

    fn update(&self, key: String, change: Change) -> PortFuture<'_, ()> {
        Box::pin(self.change(None, key, change))
    }

    fn update_once(&self, call: String, key: String, change: Change) -> PortFuture<'_, ()> {
        Box::pin(self.change(Some(call), key, change))
    }

    fn keys(&self, prefix: String) -> PortFuture<'_, Vec<String>> {
        let (tables, session, tenant) = (self.tables, self.session.clone(), self.of.tenant.clone());
        Box::pin(self.of.store.with(store_failure, move |connection| {
            let mut statement = connection.prepare(tables.keys)?;
            let from = params![tenant.as_str(), session, prefix];
            let keys = statement.query_map(from, |row| row.get::<_, String>(0))?;
            keys.take_while(|key| key.as_ref().map_or(true, |key| key.starts_with(&prefix)))
                .collect()
        }))
    }
}

/// A function that opens the store of a tenant.
type OpenStore = Arc<dyn Fn() -> Result<TenantStore, StoreError> + Send + Sync>;

/// The state of a tenant in a store that is opened at its first use. Most runs do not use it.
pub struct LazyState {
    open: OpenStore,
    state: OnceCell<State>,
}

impl LazyState {
    /// Creates the lazy state. `open` may block.
    pub fn new(open: impl Fn() -> Result<TenantStore, StoreError> + Send + Sync + 'static) -> Self {
        LazyState { open: Arc::new(open), state: OnceCell::new() }
    }

    async fn state(&self) -> Result<&State, Failure> {
        let open = async || {
            let open = Arc::clone(&self.open);
            match tokio::task::spawn_blocking(move || open()).await {
                Ok(Ok(store)) => Ok(store.variables()),
                Ok(Err(error)) => Err(Failure::new(Code::EREMOTE, error.to_string())),
                Err(stopped) => Err(store_failure(stopped.into())),
            }
        };
        self.state.get_or_try_init(open).await
    }
}

impl Backend for LazyState {
    fn get(&self, key: String) -> PortFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move { self.state().await?.get(key).await })
    }

    fn update(&self, key: String, change: Change) -> PortFuture<'_, ()> {
        Box::pin(async move { self.state().await?.update(key, change).await })
    }

    fn update_once(&self, call: String, key: String, change: Change) -> PortFuture<'_, ()> {
        Box::pin(async move { self.state().await?.update_once(call, key, change).await })
    }

    fn keys(&self, prefix: String) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move { self.state().await?.keys(prefix).await })
    }
}

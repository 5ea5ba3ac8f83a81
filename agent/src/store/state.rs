//! Key-value state of sessions and tenants, as the `kv` capability sees it.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::OnceCell;
use wattle_capability::Answer;
use wattle_capability::kv::{Backend, Change};
use wattle_rt::{Code, Failure};

use super::{Store, StoreError, now};

/// The most bytes that the state of one session or of one tenant may hold.
const STATE_BYTES: i64 = 64 << 20;

/// The state of one session or of one tenant. What is written is there for every process that opens the store.
pub struct State {
    store: Store,
    tables: &'static Tables,
    owner: String,
}

/// The statements on the tables of one kind of owner; the first parameter is the owner, the second the key.
struct Tables {
    get: &'static str,
    set: &'static str,
    remove: &'static str,
    /// The keys from ?2 on, in the order of their bytes.
    keys: &'static str,
    /// Adds ?2 to the bytes that the owner holds at the time ?3, makes the owner where it is new, and gives the sum.
    grow: &'static str,
}

const SESSION: Tables = Tables {
    get: "SELECT value FROM state WHERE session = ?1 AND key = ?2",
    set: "INSERT INTO state (session, key, value) VALUES (?1, ?2, ?3)
          ON CONFLICT (session, key) DO UPDATE SET value = excluded.value",
    remove: "DELETE FROM state WHERE session = ?1 AND key = ?2",
    keys: "SELECT key FROM state WHERE session = ?1 AND key >= ?2 ORDER BY key",
    grow: "INSERT INTO session (id, bytes, made, used) VALUES (?1, ?2, ?3, ?3)
           ON CONFLICT (id) DO UPDATE SET used = excluded.used, bytes = bytes + excluded.bytes RETURNING bytes",
};

const TENANT: Tables = Tables {
    get: "SELECT value FROM variable WHERE tenant = ?1 AND key = ?2",
    set: "INSERT INTO variable (tenant, key, value) VALUES (?1, ?2, ?3)
          ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value",
    remove: "DELETE FROM variable WHERE tenant = ?1 AND key = ?2",
    keys: "SELECT key FROM variable WHERE tenant = ?1 AND key >= ?2 ORDER BY key",
    grow: "INSERT INTO tenant (name, bytes, made, used) VALUES (?1, ?2, ?3, ?3)
           ON CONFLICT (name) DO UPDATE SET used = excluded.used, bytes = bytes + excluded.bytes RETURNING bytes",
};

impl State {
    pub(super) fn of_session(store: Store, session: String) -> Self {
        State { store, tables: &SESSION, owner: session }
    }

    pub(super) fn of_tenant(store: Store, tenant: String) -> Self {
        State { store, tables: &TENANT, owner: tenant }
    }
}

impl State {
    /// Changes a key, in the same transaction as it notes the call that wanted it; a call that is noted already changes nothing.
    async fn change(&self, call: Option<String>, key: String, change: Change) -> Result<(), Failure> {
        let (tables, owner) = (self.tables, self.owner.clone());
        let work = self.store.with(broken, move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if let Some(met) = call.as_ref().map(|call| met(&transaction, call)).transpose()?.flatten() {
                return Ok(change(met).map(drop));
            }
            let old = tables.value(&transaction, &owner, &key)?;
            let held = old.as_ref().map_or(0, |value| size(&key, value));
            if let Some(call) = &call {
                transaction.execute("INSERT INTO changed (call, met) VALUES (?1, ?2)", params![call, old])?;
            }
            let new = match change(old) {
                Ok(new) => new,
                Err(told) => return Ok(Err(told)),
            };
            let grown = new.as_ref().map_or(0, |value| size(&key, value)) - held;
            let bytes: i64 = transaction.query_row(tables.grow, params![owner, grown, now()], |row| row.get(0))?;
            if bytes > STATE_BYTES && grown > 0 {
                // The transaction ends here without a commit, so nothing of it stays.
                return Ok(Err(Failure::new(Code::EBUDGET, "the state is full (64 MiB); delete keys first")));
            }
            match new {
                Some(value) => transaction.execute(tables.set, params![owner, key, value])?,
                None => transaction.execute(tables.remove, params![owner, key])?,
            };
            transaction.commit()?;
            Ok(Ok(()))
        });
        work.await?
    }
}

/// The value that a call met when it was made; `None` where it was not made.
fn met(connection: &Connection, call: &str) -> rusqlite::Result<Option<Option<Vec<u8>>>> {
    connection.query_row("SELECT met FROM changed WHERE call = ?1", params![call], |row| row.get(0)).optional()
}

impl Tables {
    fn value(&self, connection: &Connection, owner: &str, key: &str) -> rusqlite::Result<Option<Vec<u8>>> {
        connection.query_row(self.get, params![owner, key], |row| row.get(0)).optional()
    }
}

/// What an entry counts for, in bytes.
fn size(key: &str, value: &[u8]) -> i64 {
    i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX)
}

fn broken(cause: super::Cause) -> Failure {
    Failure::new(Code::EREMOTE, format!("the store failed: {cause}"))
}

impl Backend for State {
    fn get(&self, key: String) -> Answer<'_, Option<Vec<u8>>> {
        let (tables, owner) = (self.tables, self.owner.clone());
        Box::pin(self.store.with(broken, move |connection| tables.value(connection, &owner, &key)))
    }

    fn update(&self, key: String, change: Change) -> Answer<'_, ()> {
        Box::pin(self.change(None, key, change))
    }

    fn update_once(&self, call: String, key: String, change: Change) -> Answer<'_, ()> {
        Box::pin(self.change(Some(call), key, change))
    }

    fn keys(&self, prefix: String) -> Answer<'_, Vec<String>> {
        let (tables, owner) = (self.tables, self.owner.clone());
        Box::pin(self.store.with(broken, move |connection| {
            let mut statement = connection.prepare(tables.keys)?;
            let keys = statement.query_map(params![owner, prefix], |row| row.get::<_, String>(0))?;
            keys.take_while(|key| key.as_ref().map_or(true, |key| key.starts_with(&prefix))).collect()
        }))
    }
}

/// The state of a tenant in a store that is opened at the first use of it: most runs have none.
pub struct LateState {
    open: Arc<dyn Fn() -> Result<Store, StoreError> + Send + Sync>,
    tenant: String,
    state: OnceCell<State>,
}

impl LateState {
    /// The state of that tenant, in the store that `open` opens.
    pub fn new(tenant: String, open: impl Fn() -> Result<Store, StoreError> + Send + Sync + 'static) -> Self {
        LateState { open: Arc::new(open), tenant, state: OnceCell::new() }
    }

    async fn state(&self) -> Result<&State, Failure> {
        let open = async || {
            let open = Arc::clone(&self.open);
            match tokio::task::spawn_blocking(move || open()).await {
                Ok(Ok(store)) => Ok(State::of_tenant(store, self.tenant.clone())),
                Ok(Err(error)) => Err(Failure::new(Code::EREMOTE, error.to_string())),
                Err(stopped) => Err(broken(stopped.into())),
            }
        };
        self.state.get_or_try_init(open).await
    }
}

impl Backend for LateState {
    fn get(&self, key: String) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(async move { self.state().await?.get(key).await })
    }

    fn update(&self, key: String, change: Change) -> Answer<'_, ()> {
        Box::pin(async move { self.state().await?.update(key, change).await })
    }

    fn update_once(&self, call: String, key: String, change: Change) -> Answer<'_, ()> {
        Box::pin(async move { self.state().await?.update_once(call, key, change).await })
    }

    fn keys(&self, prefix: String) -> Answer<'_, Vec<String>> {
        Box::pin(async move { self.state().await?.keys(prefix).await })
    }
}

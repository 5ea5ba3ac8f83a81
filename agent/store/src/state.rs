//! The backend of the `kv` capability: the key-value state of sessions and tenants.

use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::OnceCell;
use wattle_capability::PortFuture;
use wattle_capability::kv::{Backend, Change, Kept};
use wattle_rt::{Code, Failure};

use super::db::{Access, ToValue, Transaction, Value, params};
use super::rewind::{needs_record, record_change};
use super::{Owner, TenantStore};
use crate::error::{Cause, StoreError, is_limit};

/// Maximum size of the state of a session or a tenant, in bytes.
const STATE_BYTES: i64 = 64 << 20;

/// The key-value state of a session or a tenant. Writes are visible to every process that opens the
/// store.
pub struct State {
    of: TenantStore,
    owner: StateOwner,
}

/// The owner of key-value state: a session or a tenant.
#[derive(Clone)]
pub(super) struct StateOwner {
    tables: &'static Tables,
    /// The session's id, or `None` for the tenant's own state.
    session: Option<String>,
}

/// The SQL statements for one kind of owner. The first parameters are the owner's key: the tenant,
/// and for a session also its id.
struct Tables {
    /// A query for the value of a key. The key is the next parameter.
    get: &'static str,
    /// A statement that sets a key to a value.
    set: &'static str,
    /// A statement that removes a key.
    remove: &'static str,
    /// A query for the keys that are greater than or equal to the next parameter, in byte order.
    keys: &'static str,
    /// A statement that locks the owner's row, creates it if missing, and sets the time of its last
    /// use to the next parameter.
    lock: &'static str,
    /// A statement that adds the next parameter to the recorded size of the owner's state, in
    /// bytes, and returns the new size. For a session, it also adds the parameter after it to the
    /// number of recorded changes, and returns that number.
    grow: &'static str,
}

const SESSION: Tables = Tables {
    get: "SELECT value FROM state WHERE tenant = ?1 AND session = ?2 AND key = ?3",
    set: "INSERT INTO state (tenant, session, key, value) VALUES (?1, ?2, ?3, ?4)
          ON CONFLICT (tenant, session, key) DO UPDATE SET value = excluded.value",
    remove: "DELETE FROM state WHERE tenant = ?1 AND session = ?2 AND key = ?3",
    keys: "SELECT key FROM state WHERE tenant = ?1 AND session = ?2 AND key >= ?3 ORDER BY key",
    lock: "INSERT INTO session (tenant, id, created, used) VALUES (?1, ?2, ?3, ?3)
           ON CONFLICT (tenant, id) DO UPDATE SET used = excluded.used",
    grow: "UPDATE session SET bytes = bytes + ?3, changes = changes + ?4
           WHERE tenant = ?1 AND id = ?2 RETURNING bytes, changes",
};

const TENANT: Tables = Tables {
    get: "SELECT value FROM variable WHERE tenant = ?1 AND key = ?2",
    set: "INSERT INTO variable (tenant, key, value) VALUES (?1, ?2, ?3)
          ON CONFLICT (tenant, key) DO UPDATE SET value = excluded.value",
    remove: "DELETE FROM variable WHERE tenant = ?1 AND key = ?2",
    keys: "SELECT key FROM variable WHERE tenant = ?1 AND key >= ?2 ORDER BY key",
    lock: "INSERT INTO tenant (name, created, used) VALUES (?1, ?2, ?2)
           ON CONFLICT (name) DO UPDATE SET used = excluded.used",
    grow: "UPDATE tenant SET bytes = bytes + ?2 WHERE name = ?1 RETURNING bytes",
};

impl TenantStore {
    /// Returns the state that all sessions of the tenant share. It is kept until its keys are
    /// deleted.
    #[must_use]
    pub fn variables(&self) -> State {
        State { of: self.clone(), owner: StateOwner { tables: &TENANT, session: None } }
    }

    /// Returns the keys of the state that all sessions share, each with the size of its value in
    /// bytes, sorted by key. No value is loaded.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn variable_sizes(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.read(|transaction, (tenant, _)| {
            let query = "SELECT key, CAST(OCTET_LENGTH(value) AS BIGINT) FROM variable
                         WHERE tenant = ?1 ORDER BY key";
            let mut found = Vec::new();
            transaction.each(query, params![tenant], |row| {
                found.push((row.get(0)?, row.get::<i64>(1)?.max(0).cast_unsigned()));
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        })
        .await
    }
}

impl State {
    pub(super) fn of_session(of: TenantStore, session: String) -> Self {
        State { of, owner: StateOwner::of_session(session) }
    }

    /// Changes the value of a key and records the call in the same transaction. If the call is
    /// already recorded, nothing changes.
    async fn change(
        &self,
        call: Option<(String, Kept)>,
        key: String,
        mut change: Change,
    ) -> Result<(), Failure> {
        let (owner, usage) = (self.owner.clone(), self.of.store.usage.clone());
        let work = move |transaction: &mut Transaction<'_>, (tenant, _): Owner<'_>| {
            // The owner's row is locked first, so that no other change happens between reading the
            // old value and writing the new one.
            owner.lock(transaction, tenant)?;
            if let Some((call, kept)) = &call
                && let Some(record) = record_of(transaction, tenant, call)?
            {
                return Ok(change(kept.restore(record)).map(drop));
            }
            let old = owner.value(transaction, tenant, &key)?;
            let old_size = old.as_ref().map_or(0, |value| size(&key, value));
            let before = old.clone();
            if let Some((call, kept)) = &call {
                let insert = "INSERT INTO changed (tenant, call, seen) VALUES (?1, ?2, ?3)";
                let record = kept.record(old.as_deref());
                transaction.execute(insert, params![tenant, call, record])?;
            }
            let new = match change(old) {
                Ok(new) => new,
                Err(failure) => {
                    transaction.discard();
                    return Ok(Err(failure));
                }
            };
            let grown = new.as_ref().map_or(0, |value| size(&key, value)) - old_size;
            let origin = call.as_ref().and_then(|(call, _)| program_of(call));
            let replace = |transaction: &mut Transaction<'_>| {
                owner.replace(transaction, (tenant, origin), &key, before, new)
            };
            let bytes = if grown > 0 {
                usage.grow(transaction, tenant, replace)?
            } else {
                replace(transaction)?
            };
            if bytes > STATE_BYTES && grown > 0 {
                transaction.discard();
                return Ok(Err(Failure::new(
                    Code::EBUDGET,
                    "the state is full (64 MiB); delete keys first",
                )));
            }
            Ok(Ok(()))
        };
        self.of.run(Access::Write, work).await.map_err(store_failure)?
    }
}

/// Returns the recorded information about a key's value before a call; see [`Kept`]. Returns `None`
/// if the call is not recorded.
fn record_of(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    call: &str,
) -> Result<Option<Option<Vec<u8>>>, Cause> {
    let query = "SELECT seen FROM changed WHERE tenant = ?1 AND call = ?2";
    transaction.first(query, params![tenant, call])?.map(|row| row.get(0)).transpose()
}

/// Returns the part of a call's key that identifies the program that makes the call: the run, and
/// the program's number in the run.
fn program_of(call: &str) -> Option<&str> {
    let (at, _) = call.match_indices('/').nth(1)?;
    call.get(..at)
}

impl StateOwner {
    pub(super) fn of_session(session: String) -> StateOwner {
        StateOwner { tables: &SESSION, session: Some(session) }
    }

    /// Locks the owner's row until the transaction ends.
    pub(super) fn lock(
        &self,
        transaction: &mut Transaction<'_>,
        tenant: &str,
    ) -> Result<(), Cause> {
        transaction.execute(self.tables.lock, &self.key(tenant, params![transaction.now()]))?;
        Ok(())
    }

    /// Replaces the value `old` of a key with `new`, and returns the new size of the state in
    /// bytes. For a session, records `old`, unless the program `origin` has already changed the
    /// key.
    pub(super) fn replace(
        &self,
        transaction: &mut Transaction<'_>,
        (tenant, origin): (&str, Option<&str>),
        key: &str,
        old: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    ) -> Result<i64, Cause> {
        let size_of = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, |value| size(key, value));
        let grown = size_of(&new) - size_of(&old);
        let bytes = match &self.session {
            Some(session) => {
                let of = (tenant, session.as_str());
                let is_recorded = old != new && needs_record(transaction, of, origin, key)?;
                let count = self.key(tenant, params![grown, i64::from(is_recorded)]);
                let grown_to = transaction.one(self.tables.grow, &count)?;
                if is_recorded {
                    let number = grown_to.get(1)?;
                    record_change(transaction, of, (number, origin), (key, old))?;
                }
                grown_to.get(0)?
            }
            None => transaction.one(self.tables.grow, &self.key(tenant, params![grown]))?.get(0)?,
        };
        match new {
            Some(value) => {
                transaction.execute(self.tables.set, &self.key(tenant, params![key, value]))?
            }
            None => transaction.execute(self.tables.remove, &self.key(tenant, params![key]))?,
        };
        Ok(bytes)
    }

    /// Returns the parameters of a statement: the owner's key, followed by `rest`.
    fn key(&self, tenant: &str, rest: &[Value]) -> Vec<Value> {
        let session = self.session.iter().map(ToValue::to_value);
        [tenant.to_value()].into_iter().chain(session).chain(rest.iter().cloned()).collect()
    }

    pub(super) fn value(
        &self,
        transaction: &mut Transaction<'_>,
        tenant: &str,
        key: &str,
    ) -> Result<Option<Vec<u8>>, Cause> {
        let found = transaction.first(self.tables.get, &self.key(tenant, params![key]))?;
        found.map(|row| row.get(0)).transpose()
    }
}

/// Returns the combined size of a key and its value, in bytes.
fn size(key: &str, value: &[u8]) -> i64 {
    i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX)
}

pub(super) fn store_failure(cause: Cause) -> Failure {
    if is_limit(&cause) {
        return Failure::new(Code::EBUDGET, cause.to_string());
    }
    Failure::new(Code::EREMOTE, format!("the store failed: {cause}"))
}

impl Backend for State {
    fn get(&self, key: String) -> PortFuture<'_, Option<Vec<u8>>> {
        let owner = self.owner.clone();
        let get = move |transaction: &mut Transaction<'_>, (tenant, _): Owner<'_>| {
            owner.value(transaction, tenant, &key)
        };
        Box::pin(async { self.of.run(Access::Read, get).await.map_err(store_failure) })
    }

    fn update(&self, key: String, change: Change) -> PortFuture<'_, ()> {
        Box::pin(self.change(None, key, change))
    }

    fn update_once(
        &self,
        call: String,
        key: String,
        kept: Kept,
        change: Change,
    ) -> PortFuture<'_, ()> {
        Box::pin(self.change(Some((call, kept)), key, change))
    }

    fn keys(&self, prefix: String) -> PortFuture<'_, Vec<String>> {
        let owner = self.owner.clone();
        let list = move |transaction: &mut Transaction<'_>, (tenant, _): Owner<'_>| {
            let mut keys = Vec::new();
            let from = owner.key(tenant, params![prefix]);
            transaction.each(owner.tables.keys, &from, |row| {
                let key: String = row.get(0)?;
                if !key.starts_with(&prefix) {
                    return Ok(ControlFlow::Break(()));
                }
                keys.push(key);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(keys)
        };
        Box::pin(async { self.of.run(Access::Read, list).await.map_err(store_failure) })
    }
}

/// A function that opens the store of a tenant.
type OpenStore = Arc<dyn Fn() -> Result<TenantStore, StoreError> + Send + Sync>;

/// The state of a tenant. Its store is opened on first use, because most runs do not use the state.
pub struct LazyState {
    open: OpenStore,
    state: OnceCell<State>,
}

impl LazyState {
    /// Creates the state without opening the store. `open` may block.
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

    fn update_once(
        &self,
        call: String,
        key: String,
        kept: Kept,
        change: Change,
    ) -> PortFuture<'_, ()> {
        Box::pin(async move { self.state().await?.update_once(call, key, kept, change).await })
    }

    fn keys(&self, prefix: String) -> PortFuture<'_, Vec<String>> {
        Box::pin(async move { self.state().await?.keys(prefix).await })
    }
}

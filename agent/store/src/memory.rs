//! The backend of the `memory` capability: the memory of tenants and sessions.
//!
//! A search depends only on the items that its caller can see. Therefore no index covers the words
//! of several tenants or sessions: the statistics of such an index would show a caller which words
//! others remember, through the order of its own items and the duration of the search. Instead, each
//! search indexes the visible items in memory. There are at most [`MAX_ITEMS`] of them, 10,000, with at
//! most 4,000 characters each. With that many items of 200 characters, a search takes 0.2 s of
//! processor time and 4 MiB; with the longest ones, 4 s and 20 MiB in common scripts.
//!
//! Like any other record, an item is encrypted if it contains an API key or a secret. Its embedding
//! is not stored, because that would reveal its content. Equal items have equal ciphertexts, so the
//! same text is stored once, encrypted or not.

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]
mod tests;

use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::OnceCell;
use wattle_capability::PortFuture;
use wattle_capability::memory::{Item, MAX_ITEMS, Memory, NewItem, Scope, full};
use wattle_capability::search::{Nearest, Query, TextIndex};
use wattle_rt::{Code, Failure};

use super::TenantStore;
use super::db::{Access, Row, ToValue as _, Transaction, Value, params};
use super::seal::{RecordSeal, SEALED_PREFIX, SameText, open_text};
use super::session::touch;
use super::state::store_failure;
use crate::error::Cause;

/// The condition for the items that are visible to a session. ?1 is the tenant, and ?2 is the
/// session.
const VISIBLE: &str = "tenant = ?1 AND (session IS NULL OR session = ?2)";

/// The condition for unencrypted items: ?3 is [`SEALED_PREFIX`], and ?4 is the smallest string that
/// is greater than all strings with this prefix.
const PLAIN: &str = "(text < ?3 OR text >= ?4)";

/// The part of a tenant's memory that is visible to a session.
#[derive(Clone)]
pub struct StoredMemory {
    of: TenantStore,
    session: Option<String>,
}

impl TenantStore {
    /// Returns the tenant's memory, including the items of `session` if it is given.
    #[must_use]
    pub fn memory(&self, session: Option<&str>) -> StoredMemory {
        StoredMemory { of: self.clone(), session: session.map(str::to_owned) }
    }
}

/// The tenant and the session whose rows a statement reads or writes, and the encryption of these
/// rows.
#[derive(Clone)]
struct View {
    tenant: String,
    session: Option<String>,
    seal: Option<Arc<RecordSeal>>,
}

impl StoredMemory {
    /// Runs `work` in a transaction.
    fn run<T: Send + 'static>(
        &self,
        access: Access,
        mut work: impl FnMut(&View, &mut Transaction<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> PortFuture<'_, T> {
        let view = View {
            tenant: self.of.tenant.as_str().to_owned(),
            session: self.session.clone(),
            seal: self.of.seal.clone(),
        };
        let work = move |transaction: &mut Transaction<'_>| work(&view, transaction);
        Box::pin(async move { self.of.store.db.run(access, work).await.map_err(store_failure) })
    }

    /// Runs `work` in a transaction, and records its result under the call id `call`, if there is
    /// one. If a result is already recorded under this id, returns that result and does not run
    /// `work`. If `work` fails, nothing changes.
    fn once(
        &self,
        call: Option<String>,
        mut work: impl FnMut(&View, &mut Transaction<'_>) -> Result<Result<i32, Failure>, Cause>
        + Send
        + 'static,
    ) -> PortFuture<'_, i32> {
        let call = call.map(|call| format!("{call}/memory"));
        let done = self.run(Access::Write, move |view, transaction| {
            if let Some(call) = &call
                && let Some(done) = result_of(transaction, &view.tenant, call)?
            {
                return Ok(Ok(done));
            }
            let result = match work(view, transaction)? {
                Ok(result) => result,
                Err(failure) => {
                    transaction.discard();
                    return Ok(Err(failure));
                }
            };
            if let Some(call) = &call {
                let record = "INSERT INTO changed (tenant, call, seen) VALUES (?1, ?2, ?3)";
                transaction.execute(record, params![view.tenant, call, result.to_be_bytes()])?;
            }
            Ok(Ok(result))
        });
        Box::pin(async { done.await? })
    }
}

/// Returns the result of a recorded call, or `None` if the call is not recorded.
fn result_of(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    call: &str,
) -> Result<Option<i32>, Cause> {
    let query = "SELECT seen FROM changed WHERE tenant = ?1 AND call = ?2";
    let found = transaction.first(query, params![tenant, call])?;
    found.map(|row| row.get(0).map(i32::from_be_bytes)).transpose()
}

impl Memory for StoredMemory {
    fn add(&self, call: Option<String>, item: NewItem) -> PortFuture<'_, i32> {
        if item.scope == Scope::Session && self.session.is_none() {
            let why = "this run has no session; use the scope `tenant`";
            return Box::pin(async move { Err(Failure::new(Code::EBOUND, why)) });
        }
        let usage = self.of.store.usage.clone();
        self.once(call, move |view, transaction| {
            usage.grow(transaction, &view.tenant, |transaction| view.add(transaction, &item))
        })
    }

    fn remove(&self, call: Option<String>, id: i32) -> PortFuture<'_, bool> {
        let done = self.once(call, move |view, transaction| {
            let sql = format!("DELETE FROM memory WHERE {VISIBLE} AND id = ?3");
            let removed = transaction.execute(&sql, params![view.tenant, view.session, id])?;
            Ok(Ok(i32::from(removed > 0)))
        });
        Box::pin(async { Ok(done.await? != 0) })
    }

    fn list(&self, max: usize) -> PortFuture<'_, Vec<Item>> {
        self.run(Access::Read, move |view, transaction| {
            let sql = format!("{ITEMS} WHERE {VISIBLE} ORDER BY id DESC LIMIT ?3");
            let of = params![view.tenant, view.session, limit(max)];
            transaction.query(&sql, of, |row| view.item(row))
        })
    }

    fn items(&self, ids: Vec<i32>) -> PortFuture<'_, Vec<Item>> {
        self.run(Access::Read, move |view, transaction| {
            let sql = format!("{ITEMS} WHERE {VISIBLE} AND id = ?3");
            let mut found = Vec::new();
            for id in &ids {
                let row = transaction.first(&sql, params![view.tenant, view.session, id])?;
                found.extend(row.map(|row| view.item(&row)).transpose()?);
            }
            Ok(found)
        })
    }

    fn by_words(&self, query: Query) -> PortFuture<'_, Vec<(i32, f64)>> {
        self.run(Access::Read, move |view, transaction| view.by_words(transaction, &query))
    }

    fn without_vector(
        &self,
        model: String,
        first: Vec<i32>,
        max: usize,
    ) -> PortFuture<'_, Vec<(i32, String)>> {
        self.run(Access::Read, move |view, transaction| {
            let missing = format!(
                "SELECT id, text FROM memory WHERE {VISIBLE} AND {PLAIN} AND NOT EXISTS
                 (SELECT 1 FROM memory_vector WHERE memory = number AND model = ?5)"
            );
            let one = format!("{missing} AND id = ?6");
            let key = |last: Value| {
                let of = params![view.tenant, view.session, SEALED_PREFIX, after_sealed(), model];
                [of, &[last]].concat()
            };
            let read = |row: &Row| Ok((row.get(0)?, row.get(1)?));
            let mut found: Vec<(i32, String)> = Vec::new();
            for id in first.iter().take(max) {
                let row = transaction.first(&one, &key(id.to_value()))?;
                found.extend(row.as_ref().map(read).transpose()?);
            }
            let others = format!("{missing} ORDER BY number LIMIT ?6");
            let limit = limit(max.saturating_add(found.len()));
            for (id, text) in transaction.query(&others, &key(limit.to_value()), read)? {
                if found.len() < max && !found.iter().any(|(known, _)| *known == id) {
                    found.push((id, text));
                }
            }
            Ok(found)
        })
    }

    fn add_vectors(&self, model: String, vectors: Vec<(i32, Vec<u8>)>) -> PortFuture<'_, ()> {
        let usage = self.of.store.usage.clone();
        let add = move |view: &View, transaction: &mut Transaction<'_>| {
            let number = format!("SELECT number FROM memory WHERE {VISIBLE} AND id = ?3");
            for (id, vector) in &vectors {
                let row = transaction.first(&number, params![view.tenant, view.session, id])?;
                // An item that was removed in the meantime gets no vector.
                let Some(row) = row else { continue };
                transaction.execute(
                    "INSERT INTO memory_vector (memory, model, coordinates) VALUES (?1, ?2, ?3)
                     ON CONFLICT (memory, model) DO UPDATE SET coordinates = excluded.coordinates",
                    params![row.get::<i64>(0)?, model, vector],
                )?;
            }
            Ok(())
        };
        self.run(Access::Write, move |view, transaction| {
            usage.grow(transaction, &view.tenant, |transaction| add(view, transaction))
        })
    }

    fn nearest(&self, model: String, nearest: Nearest<i32>) -> PortFuture<'_, Vec<(i32, f64)>> {
        self.run(Access::Read, move |view, transaction| {
            let sql = format!(
                "SELECT id, coordinates FROM memory JOIN memory_vector ON memory = number
                 WHERE {VISIBLE} AND model = ?3"
            );
            let mut nearest = nearest.clone();
            transaction.each(&sql, params![view.tenant, view.session, model], |row| {
                nearest.compare(row.get(0)?, &row.get::<Vec<u8>>(1)?);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(nearest.ranked())
        })
    }
}

/// The start of every query for items.
const ITEMS: &str = "SELECT id, session, created, text FROM memory";

/// Converts a maximum number of rows to an SQL parameter.
fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}

/// Returns the smallest string that is greater than all strings with the prefix [`SEALED_PREFIX`].
/// The prefix ends with `:`, and the next ASCII character is `;`.
fn after_sealed() -> String {
    format!("{};", SEALED_PREFIX.trim_end_matches(':'))
}

impl View {
    /// Reads an item from a row that contains its id, session, creation time and text.
    fn item(&self, row: &Row) -> Result<Item, Cause> {
        let session: Option<String> = row.get(1)?;
        Ok(Item {
            id: row.get(0)?,
            scope: if session.is_some() { Scope::Session } else { Scope::Tenant },
            made: row.get(2)?,
            text: open_text(self.seal.as_deref(), row.get(3)?)?,
        })
    }

    fn add(
        &self,
        transaction: &mut Transaction<'_>,
        item: &NewItem,
    ) -> Result<Result<i32, Failure>, Cause> {
        let text = item.text.as_str();
        let session = self.session.as_deref().filter(|_| item.scope == Scope::Session);
        let SameText { stored, other } = SameText::new(self.seal.as_deref(), text)?;
        // The tenant's row is locked first, so that concurrent calls do not add the same text
        // twice.
        let lock = "INSERT INTO tenant (name, created, used) VALUES (?1, ?2, ?2)
                    ON CONFLICT (name) DO UPDATE SET used = excluded.used";
        transaction.execute(lock, params![self.tenant, transaction.now()])?;
        // An equal item may have been stored in the other form, because the secrets of the tenant
        // change.
        let same = match session {
            Some(session) => transaction.first(
                "SELECT id FROM memory WHERE tenant = ?1 AND text IN (?2, ?3) AND session = ?4",
                params![self.tenant, stored, other, session],
            )?,
            None => transaction.first(
                "SELECT id FROM memory WHERE tenant = ?1 AND text IN (?2, ?3) AND session IS NULL",
                params![self.tenant, stored, other],
            )?,
        };
        if let Some(row) = same {
            return Ok(Ok(row.get(0)?));
        }
        let count = "SELECT COUNT(*) FROM memory WHERE tenant = ?1";
        let count: i64 = transaction.one(count, params![self.tenant])?.get(0)?;
        if usize::try_from(count).is_ok_and(|count| count >= MAX_ITEMS) {
            return Ok(Err(full()));
        }
        let next = "UPDATE tenant SET memories = memories + 1 WHERE name = ?1 RETURNING memories";
        let id: i64 = transaction.one(next, params![self.tenant])?.get(0)?;
        let Ok(id) = i32::try_from(id) else { return Ok(Err(full())) };
        if let Some(session) = session {
            touch(transaction, &self.tenant, session)?;
        }
        let insert = "INSERT INTO memory (tenant, id, session, created, text)
                      VALUES (?1, ?2, ?3, ?4, ?5)";
        transaction
            .execute(insert, params![self.tenant, id, session, transaction.now(), stored])?;
        Ok(Ok(id))
    }

    /// Ranks the visible items by words. A higher score is better.
    fn by_words(
        &self,
        transaction: &mut Transaction<'_>,
        query: &Query,
    ) -> Result<Vec<(i32, f64)>, Cause> {
        let index = TextIndex::new()?;
        // The index is filled fastest in the order of the ids.
        let sql = format!("SELECT id, text FROM memory WHERE {VISIBLE} ORDER BY id");
        transaction.each(&sql, params![self.tenant, self.session], |row| {
            index.add(row.get(0)?, &open_text(self.seal.as_deref(), row.get(1)?)?)?;
            Ok(ControlFlow::Continue(()))
        })?;
        let id = |(id, score)| i32::try_from(id).ok().map(|id| (id, score));
        Ok(index.rank(query)?.into_iter().filter_map(id).collect())
    }
}

/// A function that opens the store of a tenant.
type OpenStore = Arc<dyn Fn() -> Result<TenantStore, String> + Send + Sync>;

/// The memory of a tenant. Its store is opened on first use, because most runs do not use the
/// memory.
pub struct LazyMemory {
    open: OpenStore,
    memory: OnceCell<StoredMemory>,
}

impl LazyMemory {
    /// Creates the memory without opening the store. `open` may block.
    pub fn new(open: impl Fn() -> Result<TenantStore, String> + Send + Sync + 'static) -> Self {
        LazyMemory { open: Arc::new(open), memory: OnceCell::new() }
    }

    async fn memory(&self) -> Result<&StoredMemory, Failure> {
        let open = async || {
            let open = Arc::clone(&self.open);
            match tokio::task::spawn_blocking(move || open()).await {
                Ok(Ok(store)) => Ok(store.memory(None)),
                Ok(Err(error)) => Err(Failure::new(Code::EREMOTE, error)),
                Err(stopped) => Err(store_failure(stopped.into())),
            }
        };
        self.memory.get_or_try_init(open).await
    }
}

impl Memory for LazyMemory {
    fn add(&self, call: Option<String>, item: NewItem) -> PortFuture<'_, i32> {
        Box::pin(async move { self.memory().await?.add(call, item).await })
    }

    fn remove(&self, call: Option<String>, id: i32) -> PortFuture<'_, bool> {
        Box::pin(async move { self.memory().await?.remove(call, id).await })
    }

    fn list(&self, max: usize) -> PortFuture<'_, Vec<Item>> {
        Box::pin(async move { self.memory().await?.list(max).await })
    }

    fn items(&self, ids: Vec<i32>) -> PortFuture<'_, Vec<Item>> {
        Box::pin(async move { self.memory().await?.items(ids).await })
    }

    fn by_words(&self, query: Query) -> PortFuture<'_, Vec<(i32, f64)>> {
        Box::pin(async move { self.memory().await?.by_words(query).await })
    }

    fn without_vector(
        &self,
        model: String,
        first: Vec<i32>,
        max: usize,
    ) -> PortFuture<'_, Vec<(i32, String)>> {
        Box::pin(async move { self.memory().await?.without_vector(model, first, max).await })
    }

    fn add_vectors(&self, model: String, vectors: Vec<(i32, Vec<u8>)>) -> PortFuture<'_, ()> {
        Box::pin(async move { self.memory().await?.add_vectors(model, vectors).await })
    }

    fn nearest(&self, model: String, nearest: Nearest<i32>) -> PortFuture<'_, Vec<(i32, f64)>> {
        Box::pin(async move { self.memory().await?.nearest(model, nearest).await })
    }
}

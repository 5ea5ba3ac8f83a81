//! The memory of tenants and sessions, the backend of the `memory` capability.
//!
//! An item that contains a key or a secret is encrypted like other records, and such an item is in
//! neither of the two indexes on disk: words of a text, and its embedding, reveal the text. A
//! search decrypts these items and ranks them in memory. The statistics of the words' index are
//! those of all tenants together, so the order of results, and nothing else, can depend on other
//! tenants.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use tokio::sync::OnceCell;
use wattle_capability::PortFuture;
use wattle_capability::memory::{Item, MAX_ITEMS, Memory, NewItem, Scope, full};
use wattle_capability::search::{Nearest, POOL, Query, fuse, parts, rank_texts};
use wattle_rt::{Code, Failure};

use super::seal::{RecordSeal, SEALED_PREFIX, open_text, seal_text};
use super::session::{broken, touch};
use super::{TenantStore, now};
use crate::error::Cause;

/// The condition for the items that the memory's session sees: ?1 is the tenant, ?2 the session.
const VISIBLE: &str = "tenant = ?1 AND (session IS NULL OR session = ?2)";

/// The condition for encrypted items: ?3 is [`SEALED_PREFIX`].
const SEALED: &str = "substr(text, 1, length(?3)) = ?3";

/// The memory of a tenant, as one of its sessions sees it.
#[derive(Clone)]
pub struct StoredMemory {
    of: TenantStore,
    session: Option<String>,
}

impl TenantStore {
    /// Returns the tenant's memory, together with the items of one session if it is named.
    #[must_use]
    pub fn memory(&self, session: Option<&str>) -> StoredMemory {
        StoredMemory { of: self.clone(), session: session.map(str::to_owned) }
    }
}

/// The owner of the rows that a statement reads or writes, with the encryption of the rows.
struct View {
    tenant: String,
    /// The term of the words' index that selects the tenant.
    term: String,
    session: Option<String>,
    seal: Option<Arc<RecordSeal>>,
}

impl StoredMemory {
    /// Works on the database.
    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&View, &mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> PortFuture<'_, T> {
        let view = View {
            tenant: self.of.tenant.as_str().to_owned(),
            term: self.of.tenant.file_name(),
            session: self.session.clone(),
            seal: self.of.seal.clone(),
        };
        Box::pin(self.of.store.with(store_failure, move |connection| work(&view, connection)))
    }

    /// Works on the database in a transaction, once per `call`. A repeated call returns the result
    /// of the first one. If the work fails, nothing changes.
    fn once(
        &self,
        call: Option<String>,
        work: impl FnOnce(&View, &Transaction<'_>) -> rusqlite::Result<Result<i32, Failure>>
        + Send
        + 'static,
    ) -> PortFuture<'_, i32> {
        let done = self.with(move |view, connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let call = call.map(|call| format!("{call}/memory"));
            if let Some(call) = &call
                && let Some(done) = result_of(&transaction, &view.tenant, call)?
            {
                return Ok(Ok(done));
            }
            let result = match work(view, &transaction)? {
                Ok(result) => result,
                // Without a commit, all changes are rolled back.
                Err(failure) => return Ok(Err(failure)),
            };
            if let Some(call) = &call {
                let record = "INSERT INTO changed (tenant, call, met) VALUES (?1, ?2, ?3)";
                transaction.execute(record, params![view.tenant, call, result.to_be_bytes()])?;
            }
            transaction.commit()?;
            Ok(Ok(result))
        });
        Box::pin(async { done.await? })
    }
}

/// Returns the result of a recorded call, or `None` if the call is not recorded.
fn result_of(connection: &Connection, tenant: &str, call: &str) -> rusqlite::Result<Option<i32>> {
    let query = "SELECT met FROM changed WHERE tenant = ?1 AND call = ?2";
    let found: Option<[u8; 4]> =
        connection.query_row(query, params![tenant, call], |row| row.get(0)).optional()?;
    Ok(found.map(i32::from_be_bytes))
}

impl Memory for StoredMemory {
    fn add(&self, call: Option<String>, item: NewItem) -> PortFuture<'_, i32> {
        if item.scope == Scope::Session && self.session.is_none() {
            let why = "this run has no session; use the scope `tenant`";
            return Box::pin(async move { Err(Failure::new(Code::EBOUND, why)) });
        }
        self.once(call, move |view, transaction| view.add(transaction, &item))
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
        self.with(move |view, connection| {
            let sql = format!(
                "SELECT id, session, made, text FROM memory WHERE {VISIBLE} ORDER BY id DESC \
                 LIMIT ?3"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let max = i64::try_from(max).unwrap_or(i64::MAX);
            let rows = statement
                .query_map(params![view.tenant, view.session, max], |row| view.item(row))?;
            rows.collect()
        })
    }

    fn items(&self, ids: Vec<i32>) -> PortFuture<'_, Vec<Item>> {
        self.with(move |view, connection| {
            let sql =
                format!("SELECT id, session, made, text FROM memory WHERE {VISIBLE} AND id = ?3");
            let mut statement = connection.prepare_cached(&sql)?;
            let mut found = Vec::new();
            for id in ids {
                let of = params![view.tenant, view.session, id];
                found.extend(statement.query_row(of, |row| view.item(row)).optional()?);
            }
            Ok(found)
        })
    }

    fn by_words(&self, query: Query) -> PortFuture<'_, Vec<(i32, f64)>> {
        self.with(move |view, connection| {
            let plain = view.plain_by_words(connection, &query)?;
            let sealed = view.sealed_by_words(connection, &query)?;
            // The scores of two indexes are not comparable, but ranks are.
            Ok(if sealed.is_empty() { plain } else { fuse(&plain, &sealed) })
        })
    }

    fn without_vector(
        &self,
        model: String,
        first: Vec<i32>,
        max: usize,
    ) -> PortFuture<'_, Vec<(i32, String)>> {
        self.with(move |view, connection| {
            let missing = format!(
                "SELECT id, text FROM memory WHERE {VISIBLE} AND NOT {SEALED} AND number NOT IN
                 (SELECT memory FROM memory_vector WHERE model = ?4)"
            );
            let mut one = connection.prepare_cached(&format!("{missing} AND id = ?5"))?;
            let of = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let mut found: Vec<(i32, String)> = Vec::new();
            for id in first.iter().take(max) {
                let key = params![view.tenant, view.session, SEALED_PREFIX, model, id];
                found.extend(one.query_row(key, of).optional()?);
            }
            let mut others = connection.prepare_cached(&format!("{missing} LIMIT ?5"))?;
            let limit = i64::try_from(max.saturating_add(found.len())).unwrap_or(i64::MAX);
            let key = params![view.tenant, view.session, SEALED_PREFIX, model, limit];
            for other in others.query_map(key, of)? {
                let (id, text) = other?;
                if found.len() < max && !found.iter().any(|(known, _)| *known == id) {
                    found.push((id, text));
                }
            }
            Ok(found)
        })
    }

    fn add_vectors(&self, model: String, vectors: Vec<(i32, Vec<u8>)>) -> PortFuture<'_, ()> {
        self.with(move |view, connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // An item that was removed since gets no vector.
            let sql = format!(
                "INSERT OR REPLACE INTO memory_vector (memory, model, coordinates)
                 SELECT number, ?4, ?5 FROM memory WHERE {VISIBLE} AND id = ?3"
            );
            for (id, vector) in vectors {
                let row = params![view.tenant, view.session, id, model, vector];
                transaction.prepare_cached(&sql)?.execute(row)?;
            }
            transaction.commit()
        })
    }

    fn nearest(&self, model: String, mut nearest: Nearest<i32>) -> PortFuture<'_, Vec<(i32, f64)>> {
        self.with(move |view, connection| {
            let sql = format!(
                "SELECT id, coordinates FROM memory JOIN memory_vector ON memory = number
                 WHERE {VISIBLE} AND model = ?3"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![view.tenant, view.session, model])?;
            while let Some(row) = rows.next()? {
                nearest.compare(row.get(0)?, row.get_ref(1)?.as_blob()?);
            }
            Ok(nearest.ranked())
        })
    }
}

impl View {
    /// Reads an item from a row with its id, session, time and text.
    fn item(&self, row: &Row<'_>) -> rusqlite::Result<Item> {
        let session: Option<String> = row.get(1)?;
        Ok(Item {
            id: row.get(0)?,
            scope: if session.is_some() { Scope::Session } else { Scope::Tenant },
            made: row.get(2)?,
            text: open_text(self.seal.as_deref(), row.get(3)?).map_err(broken)?,
        })
    }

    fn add(
        &self,
        transaction: &Transaction<'_>,
        item: &NewItem,
    ) -> rusqlite::Result<Result<i32, Failure>> {
        let text = item.text.as_str();
        let session = self.session.as_deref().filter(|_| item.scope == Scope::Session);
        let stored = seal_text(self.seal.as_deref(), text).map_err(broken)?;
        // An encrypted text differs each time, so it may be stored twice.
        let same = "SELECT id FROM memory WHERE tenant = ?1 AND session IS ?2 AND text = ?3";
        let of = params![self.tenant, session, stored];
        if let Some(id) = transaction.query_row(same, of, |row| row.get(0)).optional()? {
            return Ok(Ok(id));
        }
        let count = "SELECT count(*) FROM memory WHERE tenant = ?1";
        let count: i64 = transaction.query_row(count, [&self.tenant], |row| row.get(0))?;
        if usize::try_from(count).is_ok_and(|count| count >= MAX_ITEMS) {
            return Ok(Err(full()));
        }
        let next = "INSERT INTO tenant (name, made, used, memories) VALUES (?1, ?2, ?2, 1)
                    ON CONFLICT (name) DO UPDATE SET used = excluded.used, memories = memories + 1
                    RETURNING memories";
        let id: i64 = transaction.query_row(next, params![self.tenant, now()], |row| row.get(0))?;
        let Ok(id) = i32::try_from(id) else { return Ok(Err(full())) };
        if let Some(session) = session {
            touch(transaction, &self.tenant, session)?;
        }
        let insert =
            "INSERT INTO memory (tenant, id, session, made, text) VALUES (?1, ?2, ?3, ?4, ?5)";
        transaction.execute(insert, params![self.tenant, id, session, now(), stored])?;
        if !stored.starts_with(SEALED_PREFIX) {
            let words = "INSERT INTO memory_words (rowid, tenant, text, parts) VALUES (?1, ?2, ?3, \
                         ?4)";
            let number = transaction.last_insert_rowid();
            transaction.execute(words, params![number, self.term, text, parts(text)])?;
        }
        Ok(Ok(id))
    }

    /// Ranks the plain items by the words' index.
    fn plain_by_words(
        &self,
        connection: &Connection,
        query: &Query,
    ) -> rusqlite::Result<Vec<(i32, f64)>> {
        // The tenant's term selects rows, and has no weight.
        let sql = format!(
            "SELECT id, bm25(memory_words, 0.0, 1.0, 0.7) AS score
             FROM memory_words JOIN memory ON number = memory_words.rowid
             WHERE memory_words MATCH ?3 AND memory.{VISIBLE} ORDER BY score, id LIMIT {POOL}"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let expression =
            format!("tenant : \"{}\" AND {{text parts}} : ({})", self.term, query.expression());
        let of = params![self.tenant, self.session, expression];
        // A lower value of bm25 is better.
        let rows = statement.query_map(of, |row| Ok((row.get(0)?, -row.get::<_, f64>(1)?)))?;
        rows.collect()
    }

    /// Decrypts the encrypted items, and ranks them in memory.
    fn sealed_by_words(
        &self,
        connection: &Connection,
        query: &Query,
    ) -> rusqlite::Result<Vec<(i32, f64)>> {
        let sql = format!("SELECT id, text FROM memory WHERE {VISIBLE} AND {SEALED}");
        let mut statement = connection.prepare_cached(&sql)?;
        let of = params![self.tenant, self.session, SEALED_PREFIX];
        let rows =
            statement.query_map(of, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let mut opened = Vec::new();
        for row in rows {
            let (id, text) = row?;
            opened.push((id, open_text(self.seal.as_deref(), text).map_err(broken)?));
        }
        if opened.is_empty() {
            return Ok(Vec::new());
        }
        let ranked = rank_texts(query, opened.iter().map(|(id, text)| (*id, text.as_str())))?;
        let id = |(id, score)| i32::try_from(id).ok().map(|id| (id, score));
        Ok(ranked.into_iter().filter_map(id).collect())
    }
}

fn store_failure(cause: Cause) -> Failure {
    Failure::new(Code::EREMOTE, format!("the store failed: {cause}"))
}

/// A function that opens the store of a tenant.
type OpenStore = Arc<dyn Fn() -> Result<TenantStore, String> + Send + Sync>;

/// The memory of a tenant in a store that is opened at its first use. Most runs do not use it.
pub struct LazyMemory {
    open: OpenStore,
    memory: OnceCell<StoredMemory>,
}

impl LazyMemory {
    /// Creates the lazy memory. `open` may block.
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

//! Limits on the bytes that a run, a tenant and the whole store keep.
//!
//! ```text
//! insert, update, delete ─► trigger ─► usage (tenant, bytes)
//!                                        ▲
//! a transaction that adds data ─► grow ──┘ reads the count before and after, if it is near a limit
//! ```
//!
//! The count is exact, because triggers change it in the transaction that changes a row, whichever
//! process or statement that is. Reading it in each transaction would be slow, so a process reads it
//! again only after it has written some megabytes, or near a limit. Therefore the bytes that are kept
//! can exceed a limit by a few megabytes for each process that shares the store.
//!
//! Only transactions that add data on behalf of a user are limited. Deleting always works, and so
//! does everything that a run needs to end: its last turn, its end, and the result of a call that was
//! made and must not be repeated.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::db::{Transaction, params};
use super::{Owner, Store, TenantStore};
use crate::error::{Cause, LimitReached, StoreError};

const MIB: u64 = 1 << 20;

/// Number of bytes that a process adds before it reads the count again.
const UNREAD: u64 = 4 * MIB;
/// Distance to a limit from which the count is read in each transaction, in bytes.
const NEAR: u64 = 32 * MIB;
/// Maximum number of runs whose counts are in memory.
const RUNS: usize = 10_000;

/// The limits on the bytes that a store keeps. They count texts as they are stored, and 100 bytes or
/// more for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Maximum number of bytes that the record of a run has: its turns, calls and events.
    pub run: u64,
    /// Maximum number of bytes that a tenant has: sessions, state, memory, runs, and all other data.
    pub tenant: u64,
    /// Maximum number of bytes that all tenants together have.
    pub store: u64,
}

/// 1 GiB for a run, 16 GiB for a tenant, and 64 GiB for the store.
impl Default for StoreLimits {
    fn default() -> StoreLimits {
        StoreLimits { run: 1_024 * MIB, tenant: 16 * 1_024 * MIB, store: 64 * 1_024 * MIB }
    }
}

/// The counts that a process has read, and the limits. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Usage {
    limits: StoreLimits,
    read: Arc<Mutex<Counts>>,
}

#[derive(Default)]
struct Counts {
    store: Count,
    tenants: HashMap<String, Count>,
    runs: HashMap<(String, String), Count>,
}

/// A count of bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// The count when it was read, or `None` if it was not read yet.
    read: Option<u64>,
    /// Number of bytes that this process has added since then.
    added: u64,
}

impl Count {
    /// Returns true if the count must be read before data is added.
    fn must_be_read(self, limit: u64) -> bool {
        self.read.is_none_or(|read| read.saturating_add(self.added).saturating_add(NEAR) >= limit)
            || self.added >= UNREAD
    }

    fn of(bytes: u64) -> Count {
        Count { read: Some(bytes), added: 0 }
    }
}

impl Usage {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work`, which adds data of a tenant.
    ///
    /// # Errors
    /// If `work` fails, or if the tenant or the store would keep more bytes than its limit, and more
    /// than before. The caller must then roll the transaction back.
    pub(super) fn grow<T>(
        &self,
        transaction: &mut Transaction<'_>,
        tenant: &str,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Cause>,
    ) -> Result<T, Cause> {
        let (is_tenant_near, is_store_near) = {
            let counts = self.counts();
            let count = counts.tenants.get(tenant).copied().unwrap_or_default();
            (count.must_be_read(self.limits.tenant), counts.store.must_be_read(self.limits.store))
        };
        let before = is_tenant_near.then(|| of_tenant(transaction, tenant)).transpose()?;
        let written = transaction.written();
        let done = work(transaction)?;
        if transaction.is_discarded() {
            return Ok(done);
        }
        let written = transaction.written().saturating_sub(written);
        let is_large = written >= UNREAD;
        let of_tenant =
            if is_tenant_near || is_large { Some(of_tenant(transaction, tenant)?) } else { None };
        let of_store = if is_store_near || is_large { Some(of_store(transaction)?) } else { None };
        let mut counts = self.counts();
        let check = |count: &mut Count, bytes: Option<u64>, limit: u64| match bytes {
            Some(bytes) => {
                *count = Count::of(bytes);
                (bytes > limit && before.is_none_or(|before| of_tenant > Some(before)))
                    .then_some(bytes)
            }
            None => {
                count.added = count.added.saturating_add(written);
                None
            }
        };
        let count = counts.tenants.entry(tenant.to_owned()).or_default();
        let tenant_is_over = check(count, of_tenant, self.limits.tenant);
        let store_is_over = check(&mut counts.store, of_store, self.limits.store);
        if let Some(bytes) = tenant_is_over {
            return Err(Cause::from(LimitReached {
                owner: format!("the tenant `{tenant}`"),
                bytes,
                limit: self.limits.tenant,
                setting: "limits.tenant_store_mb",
                hint: "remove sessions with `wattle session rm`, state or memory, or old runs with `wattle \
                       prune` and a shorter `keep.runs`",
            }));
        }
        if let Some(bytes) = store_is_over {
            return Err(Cause::from(LimitReached {
                owner: "the store".to_owned(),
                bytes,
                limit: self.limits.store,
                setting: "limits.store_mb",
                hint: "remove old runs with `wattle prune` and a shorter `keep.runs`",
            }));
        }
        Ok(done)
    }

    /// Checks the record of a run after a transaction has added `written` bytes to it.
    ///
    /// # Errors
    /// If the record has more bytes than its limit. The caller must then roll the transaction back.
    pub(super) fn check_run(
        &self,
        transaction: &mut Transaction<'_>,
        (tenant, run): (&str, &str),
        written: u64,
    ) -> Result<(), Cause> {
        let key = (tenant.to_owned(), run.to_owned());
        let mut count = self.counts().runs.get(&key).copied().unwrap_or_default();
        count.added = count.added.saturating_add(written);
        if count.must_be_read(self.limits.run) {
            count = Count::of(bytes(transaction, RUN, params![tenant, run])?);
        }
        let mut counts = self.counts();
        if counts.runs.len() >= RUNS {
            counts.runs.clear();
        }
        counts.runs.insert(key, count);
        match count.read {
            Some(bytes) if bytes > self.limits.run => Err(Cause::from(LimitReached {
                owner: format!("the record of the run `{run}`"),
                bytes,
                limit: self.limits.run,
                setting: "limits.run_store_mb",
                hint: "let the run read and fetch less",
            })),
            _ => Ok(()),
        }
    }

    /// Removes the count of a run that has ended from memory.
    pub(super) fn forget_run(&self, (tenant, run): (&str, &str)) {
        self.counts().runs.remove(&(tenant.to_owned(), run.to_owned()));
    }
}

impl Store {
    /// Sets the limits on the bytes that the store keeps.
    #[must_use]
    pub fn limited(self, limits: StoreLimits) -> Store {
        Store { usage: Usage { limits, ..self.usage }, ..self }
    }
}

impl TenantStore {
    /// Returns the number of bytes that the tenant keeps.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn kept_bytes(&self) -> Result<u64, StoreError> {
        self.read(|transaction, (tenant, _): Owner<'_>| of_tenant(transaction, tenant)).await
    }
}

/// The query for the size of a run's record.
const RUN: &str = "
    SELECT CAST(COALESCE((
        SELECT SUM(OCTET_LENGTH(body)) FROM opening WHERE tenant = ?1 AND run = ?2), 0) + COALESCE((
        SELECT SUM(100 + OCTET_LENGTH(turn.body) + COALESCE(blob.bytes, 0))
        FROM turn LEFT JOIN blob ON blob.object = turn.object
        WHERE turn.tenant = ?1 AND turn.run = ?2), 0) + COALESCE((
        SELECT SUM(100 + OCTET_LENGTH(args) + COALESCE(OCTET_LENGTH(outcome), 0)) FROM call
        WHERE tenant = ?1 AND run = ?2), 0) + COALESCE((
        SELECT SUM(100 + OCTET_LENGTH(body)) FROM call_value
        WHERE tenant = ?1 AND run = ?2), 0) + COALESCE((
        SELECT SUM(100 + OCTET_LENGTH(body)) FROM event
        WHERE tenant = ?1 AND run = ?2), 0) AS BIGINT)";

fn of_tenant(transaction: &mut Transaction<'_>, tenant: &str) -> Result<u64, Cause> {
    let query = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM usage WHERE tenant = ?1";
    bytes(transaction, query, params![tenant])
}

fn of_store(transaction: &mut Transaction<'_>) -> Result<u64, Cause> {
    bytes(transaction, "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM usage", &[])
}

fn bytes(
    transaction: &mut Transaction<'_>,
    query: &str,
    params: &[super::db::Value],
) -> Result<u64, Cause> {
    Ok(transaction.one(query, params)?.get::<i64>(0)?.max(0).cast_unsigned())
}

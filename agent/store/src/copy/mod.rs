//! A function that copies a whole store, within one database engine or from one engine to the
//! other.
//!
//! ```text
//! mark the target ─► each table: batch, batch, … ─► compare the hashes of both ─► remove the mark
//!                       │ one transaction: the rows, and their number in the mark
//! ```
//!
//! Rows are copied in key order, so an interrupted copy continues after the highest key in the
//! target. While the target is marked, only a copy operation can open it.
//!
//! Another process could still change the source. Therefore the rows of each store are hashed at
//! the end, from one snapshot, and the copy fails if the hashes differ.

mod batch;
mod mark;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

pub(super) use self::batch::{BatchLimits, LIMITS, Values, key_of, last_key, read};
use self::batch::{Digest, digests, write};
use super::address::StoreAddress;
use super::db::{Access, Opening, Transaction};
use super::lease::{check_fence, check_unused};
use super::tables::{TABLES, Table};
use super::{Store, lease};
use crate::error::{Cause, StoreError};
use crate::journal::Lock;
use crate::tenant::Tenant;

/// The name of the lock on a store that is being copied. The lock belongs to the default tenant.
const LOCK: &str = "store:copy";

/// The phase of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPhase {
    /// Rows are being copied.
    Copying,
    /// The rows of both stores are being compared.
    Verifying,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The current phase.
    pub phase: CopyPhase,
    /// Number of rows processed in this phase, including rows that an interrupted copy processed.
    pub done: u64,
    /// Total number of rows in this phase, as counted at its start.
    pub total: u64,
}

/// A table that was copied and verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopiedTable {
    /// The table's name.
    pub table: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// The BLAKE3 hash of all rows in key order, as 64 hexadecimal digits. Equal content has the
    /// same hash in both engines.
    pub hash: String,
}

/// A finished copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreCopy {
    /// The tables, in a fixed order.
    pub tables: Vec<CopiedTable>,
    /// Number of rows that were already in the target, from an interrupted copy.
    pub resumed: u64,
}

/// A callback for the progress of a copy. It may block.
type OnProgress = Arc<dyn Fn(CopyProgress) + Send + Sync>;

/// Copies the content of a store, without its locks, to a new or empty store. Records are copied
/// unchanged, so encrypted records still require the same keys.
///
/// If a copy is interrupted, the next call continues it. Until the copy is complete, the target
/// cannot be opened for any other purpose. Must be called within a tokio runtime.
///
/// # Errors
/// - If the source does not exist, or is the same store as the target.
/// - If the target contains data that does not come from an interrupted copy of this source.
/// - If another process uses one of the stores.
/// - If a store is not empty and its version differs from the one that this program uses.
/// - If the source changes during the copy. The target is then unusable.
/// - If a store cannot be read or written.
pub async fn copy_store(
    from: &StoreAddress,
    to: &StoreAddress,
    on_progress: impl Fn(CopyProgress) + Send + Sync + 'static,
) -> Result<StoreCopy, StoreError> {
    if from.name() == to.name() {
        return Err(StoreError::at("copy", Some(from.to_string()), SAME.into()));
    }
    let source = from.open(Opening::Source)?;
    // Checks that the source exists before a target is created.
    source.read(|_| Ok(())).await?;
    let target = to.open(Opening::Target)?;
    let copy = Copy { from: from.name(), to: to.to_string(), limits: LIMITS };
    let done = copy.run(&source, &target, Arc::new(on_progress)).await;
    // Locks that cannot be released expire.
    let closed = (source.close().await, target.close().await);
    let done = done?;
    closed.0.and(closed.1)?;
    Ok(done)
}

const SAME: &str = "the source and the target are the same store\nhint: name another target";

/// A copy of one store to another.
struct Copy {
    /// The name of the source.
    from: String,
    /// The name of the target, for error messages.
    to: String,
    limits: BatchLimits,
}

impl Copy {
    fn failed(&self, cause: Cause) -> StoreError {
        StoreError::at("copy to", Some(self.to.clone()), cause)
    }

    fn source_failed(&self, cause: Cause) -> StoreError {
        StoreError::at("copy", Some(self.from.clone()), cause)
    }

    async fn run(
        &self,
        source: &Store,
        target: &Store,
        on_progress: OnProgress,
    ) -> Result<StoreCopy, StoreError> {
        let _locks = self.lock(source, target).await?;
        let name = self.from.clone();
        let begin =
            target.db.run(Access::Durable, move |transaction| mark::begin(transaction, &name));
        let resumed = begin.await.map_err(|cause| self.failed(cause))?;
        // A process that opened the target before it was marked may still be using it.
        check_unused(target).await.map_err(|cause| self.failed(cause))?;
        let total = source.db.run(Access::Read, count_rows).await;
        let total = total.map_err(|cause| self.source_failed(cause))?;
        let steps = Steps::new(CopyPhase::Copying, resumed, total, &on_progress);
        for table in TABLES {
            self.copy_table(source, target, table, &steps).await?;
        }
        let tables = self.verify(source, target, total, &on_progress).await?;
        let is_postgres = target.is_shared();
        let finish = target.db.run(Access::Durable, move |transaction| {
            if is_postgres {
                set_counters(transaction)?;
                // Without statistics, the planner assumes that all tables are small.
                for table in TABLES {
                    transaction.execute(&format!("ANALYZE {}", table.name), &[])?;
                }
            }
            Ok(mark::finish(transaction)?)
        });
        finish.await.map_err(|cause| self.failed(cause))?;
        Ok(StoreCopy { tables, resumed })
    }

    /// Locks both stores and checks that no other process uses them.
    async fn lock(&self, source: &Store, target: &Store) -> Result<[Option<Lock>; 2], StoreError> {
        let locked = |store: &Store| lease::acquire(store.tenant(&Tenant::default()), LOCK.into());
        source.leases.join().await.map_err(|cause| self.source_failed(cause))?;
        let is_same = target.leases.knows(&source.leases).await;
        if is_same.map_err(|cause| self.failed(cause))? {
            return Err(self.source_failed(SAME.into()));
        }
        check_unused(source).await.map_err(|cause| self.source_failed(cause))?;
        check_unused(target).await.map_err(|cause| self.failed(cause))?;
        let locks = [locked(source).await?, locked(target).await?];
        if locks.iter().all(Option::is_some) {
            Ok(locks)
        } else {
            Err(self.failed("another copy is running\nhint: wait for its end".into()))
        }
    }

    async fn copy_table(
        &self,
        source: &Store,
        target: &Store,
        table: &'static Table,
        steps: &Steps,
    ) -> Result<(), StoreError> {
        let found = target.db.run(Access::Read, |transaction| last_key(transaction, table)).await;
        let mut after = found.map_err(|cause| self.failed(cause))?;
        let limits = self.limits;
        loop {
            let key = after.clone();
            let next = source.db.run(Access::Read, move |transaction| {
                read(transaction, table, key.as_deref(), limits)
            });
            let rows = next.await.map_err(|cause| self.source_failed(cause))?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(key_of(table, last));
            let count = rows.len();
            self.write_batch(target, table, rows).await?;
            steps.add(count);
        }
    }

    async fn write_batch(
        &self,
        target: &Store,
        table: &'static Table,
        rows: Vec<Values>,
    ) -> Result<(), StoreError> {
        let tenant = Tenant::default();
        let fence = target.leases.fence(tenant.as_str(), LOCK);
        let written = target.db.run(Access::Write, move |transaction| {
            check_fence(transaction, (tenant.as_str(), LOCK), fence)?;
            write(transaction, table, &rows)?;
            Ok(mark::count(transaction, rows.len())?)
        });
        written.await.map_err(|cause| self.failed(cause))
    }

    /// Compares all rows of both stores by their hashes and returns the verified tables.
    async fn verify(
        &self,
        source: &Store,
        target: &Store,
        total: u64,
        on_progress: &OnProgress,
    ) -> Result<Vec<CopiedTable>, StoreError> {
        let steps = Steps::new(CopyPhase::Verifying, 0, total.saturating_mul(2), on_progress);
        let limits = self.limits;
        let of = |store: &Store| {
            let (steps, db) = (steps.clone(), store.db.clone());
            async move {
                db.run(Access::Read, move |transaction| {
                    digests(transaction, limits, &|rows| steps.add(rows))
                })
                .await
            }
        };
        let ours: Vec<Digest> = of(source).await.map_err(|cause| self.source_failed(cause))?;
        let theirs: Vec<Digest> = of(target).await.map_err(|cause| self.failed(cause))?;
        let mut tables = Vec::new();
        for (table, (from, to)) in TABLES.iter().zip(ours.into_iter().zip(theirs)) {
            if from != to {
                return Err(self.failed(differs(table, &from, &to).into()));
            }
            tables.push(CopiedTable {
                table: table.name,
                rows: from.rows,
                hash: from.hash.to_hex().to_string(),
            });
        }
        Ok(tables)
    }
}

fn differs(table: &Table, from: &Digest, to: &Digest) -> String {
    format!(
        "the table `{}` differs: the source has {} rows, and the target {}, with another hash; the \
         source was changed during the copy\nhint: delete the target, stop what uses the source, \
         and copy again",
        table.name, from.rows, to.rows
    )
}

fn count_rows(transaction: &mut Transaction<'_>) -> Result<u64, Cause> {
    let mut total = 0;
    for table in TABLES {
        let query = format!("SELECT COUNT(*) FROM {}", table.name);
        total += transaction.one(&query, &[])?.get::<i64>(0)?.cast_unsigned();
    }
    Ok(total)
}

/// Sets PostgreSQL's sequences to continue after the highest number in each table. SQLite does this
/// automatically.
fn set_counters(transaction: &mut Transaction<'_>) -> Result<(), Cause> {
    for table in TABLES.iter().filter(|table| table.is_numbered) {
        let (name, key) = (table.name, table.key_names());
        let statement = format!(
            "SELECT setval(pg_get_serial_sequence('{name}', '{key}'),
             COALESCE((SELECT MAX({key}) FROM {name}), 0) + 1, false)"
        );
        transaction.one(&statement, &[])?.get::<i64>(0)?;
    }
    Ok(())
}

/// A counter of the rows processed in a phase. It reports the progress of the copy. Cheap to clone.
#[derive(Clone)]
struct Steps {
    phase: CopyPhase,
    done: Arc<AtomicU64>,
    total: u64,
    on_progress: OnProgress,
}

impl Steps {
    fn new(phase: CopyPhase, done: u64, total: u64, on_progress: &OnProgress) -> Steps {
        let (done, on_progress) = (Arc::new(AtomicU64::new(done)), Arc::clone(on_progress));
        let steps = Steps { phase, done, total, on_progress };
        steps.add(0);
        steps
    }

    fn add(&self, rows: usize) {
        let done = self.done.fetch_add(rows as u64, Ordering::Relaxed) + rows as u64;
        (self.on_progress)(CopyProgress { phase: self.phase, done, total: self.total });
    }
}

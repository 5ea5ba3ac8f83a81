//! Statistics about a whole store.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Store;
use super::db::{Transaction, params};
use super::tables::TABLES;
use crate::error::{Cause, StoreError};

/// The size of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableStats {
    /// The table's name.
    pub table: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// Size on disk, including the table's indexes, in bytes.
    pub bytes: u64,
}

/// Statistics about a store, for all tenants together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreStats {
    /// The tables, in a fixed order.
    pub tables: Vec<TableStats>,
    /// Size of the store on disk, in bytes.
    pub bytes: u64,
    /// Number of runs by their status: `open`, `parked` and `ended`.
    pub runs: BTreeMap<String, u64>,
    /// Number of sessions, including sessions that contain only the state of one run.
    pub sessions: u64,
    /// Number of queued runs.
    pub queued: u64,
    /// Start time of the oldest run, in milliseconds since 1970, or `None` if there are no runs.
    pub oldest_run: Option<u64>,
    /// Number of other processes that use the store: servers, and commands that drive a run.
    pub replicas: u64,
}

impl Store {
    /// Returns statistics about the store.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn stats(&self) -> Result<StoreStats, StoreError> {
        let is_shared = self.is_shared();
        let others = self.leases.others().await.map_err(|cause| self.failed("read", cause))?;
        let stats = self.read(move |transaction| of_content(transaction, is_shared)).await?;
        Ok(StoreStats { replicas: others.len() as u64, ..stats })
    }

    /// Reclaims unused space. In SQLite, rewrites the file while other processes wait. In
    /// PostgreSQL, makes the space of deleted rows available again. Returns the size of the store
    /// before and after, in bytes.
    ///
    /// # Errors
    /// If the store cannot be written, or another process uses it for too long.
    pub async fn vacuum(&self) -> Result<(u64, u64), StoreError> {
        let before = self.stored_bytes().await?;
        let tables: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        let vacuumed = self.db.vacuum(&tables).await;
        vacuumed.map_err(|cause| self.failed("vacuum", cause))?;
        Ok((before, self.stored_bytes().await?))
    }

    /// Returns the size of the store on disk, in bytes.
    pub(super) async fn stored_bytes(&self) -> Result<u64, StoreError> {
        let is_shared = self.is_shared();
        self.read(move |transaction| size(transaction, is_shared)).await
    }
}

fn of_content(transaction: &mut Transaction<'_>, is_shared: bool) -> Result<StoreStats, Cause> {
    let mut tables = Vec::new();
    for table in TABLES {
        let rows = number(transaction, &format!("SELECT COUNT(*) FROM {}", table.name))?;
        let bytes = table_size(transaction, table.name, is_shared)?;
        tables.push(TableStats { table: table.name, rows, bytes });
    }
    let by_status = "SELECT status, COUNT(*) FROM run GROUP BY status";
    let runs = transaction.query(by_status, &[], |row| {
        Ok((row.get::<String>(0)?, row.get::<i64>(1)?.cast_unsigned()))
    })?;
    let oldest: Option<i64> = transaction.one("SELECT MIN(created) FROM run", &[])?.get(0)?;
    Ok(StoreStats {
        bytes: size(transaction, is_shared)?,
        runs: runs.into_iter().collect(),
        sessions: number(transaction, "SELECT COUNT(*) FROM session")?,
        queued: number(transaction, "SELECT COUNT(*) FROM queue")?,
        oldest_run: oldest.map(i64::cast_unsigned),
        tables,
        replicas: 0,
    })
}

/// Returns the size of a table and its indexes on disk, in bytes.
fn table_size(
    transaction: &mut Transaction<'_>,
    table: &str,
    is_shared: bool,
) -> Result<u64, Cause> {
    if is_shared {
        return number(transaction, &format!("SELECT pg_total_relation_size('{table}')"));
    }
    let pages = "SELECT COALESCE(SUM(pgsize), 0) FROM dbstat('main', 1) WHERE name IN (
                     SELECT name FROM sqlite_schema WHERE tbl_name = ?1)";
    Ok(transaction.one(pages, params![table])?.get::<i64>(0)?.cast_unsigned())
}

/// Returns the size of the database on disk, in bytes, excluding SQLite's write-ahead log.
fn size(transaction: &mut Transaction<'_>, is_shared: bool) -> Result<u64, Cause> {
    number(
        transaction,
        if is_shared {
            "SELECT CAST(COALESCE(SUM(pg_total_relation_size(pg_class.oid)), 0) AS BIGINT)
             FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
             WHERE nspname = current_schema() AND relkind = 'r'"
        } else {
            "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        },
    )
}

fn number(transaction: &mut Transaction<'_>, query: &str) -> Result<u64, Cause> {
    Ok(transaction.one(query, &[])?.get::<i64>(0)?.cast_unsigned())
}

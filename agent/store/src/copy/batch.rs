//! Functions that read, write and hash rows in batches, in key order.

use std::ops::ControlFlow;

use blake3::Hasher;

use super::super::db::{ToValue as _, Transaction, Value};
use super::super::tables::{Kind, TABLES, Table};
use crate::error::Cause;

/// The limits of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    /// Maximum number of rows.
    pub(crate) rows: usize,
    /// Maximum total size of the text and binary values, in bytes. A single row may be larger.
    pub(crate) bytes: i64,
}

/// The default limits of a batch.
pub(crate) const LIMITS: BatchLimits = BatchLimits { rows: 500, bytes: 8 << 20 };

/// Number of rows that one statement inserts.
const ROWS_AT_ONCE: usize = 64;

/// The values of a row, in the order of the table's columns.
pub(crate) type Values = Vec<Value>;

/// Reads the next batch of rows after a key, or the first batch if there is no key. The batch is
/// empty at the end of the table.
pub(crate) fn read(
    transaction: &mut Transaction<'_>,
    table: &Table,
    after: Option<&[Value]>,
    limits: BatchLimits,
) -> Result<Vec<Values>, Cause> {
    let count = rows_that_fit(transaction, table, after, limits)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let query = selection(table, &table.names(), after);
    transaction.query(&query, &parameters(after, count), |row| {
        let values = row.values().iter().zip(table.columns);
        Ok(values.map(|(value, column)| column.kind.canonical(value.clone())).collect())
    })
}

/// Returns the number of rows after a key that fit into a batch: at least one, if any rows are
/// left. The database computes the sizes of the rows, so no more than one batch is ever in memory.
fn rows_that_fit(
    transaction: &mut Transaction<'_>,
    table: &Table,
    after: Option<&[Value]>,
    limits: BatchLimits,
) -> Result<usize, Cause> {
    let sizes = table.columns.iter().filter(|column| column.kind != Kind::Integer);
    let sizes: Vec<String> =
        sizes.map(|column| format!("COALESCE(OCTET_LENGTH({}), 0)", column.name)).collect();
    let size = format!("CAST({} AS BIGINT)", sizes.join(" + "));
    let query = selection(table, &size, after);
    let (mut count, mut bytes) = (0, 0_i64);
    transaction.each(&query, &parameters(after, limits.rows), |row| {
        bytes = bytes.saturating_add(row.get(0)?);
        if count > 0 && bytes > limits.bytes {
            return Ok(ControlFlow::Break(()));
        }
        count += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(count)
}

/// Returns the query for the rows after a key. Its last parameter is the maximum number of rows.
fn selection(table: &Table, columns: &str, after: Option<&[Value]>) -> String {
    let (name, key) = (table.name, table.key_names());
    match after {
        None => format!("SELECT {columns} FROM {name} ORDER BY {key} LIMIT ?1"),
        Some(_) => format!(
            "SELECT {columns} FROM {name} WHERE ({key}) > ({}) ORDER BY {key} LIMIT ?{}",
            placeholders(1, table.keys),
            table.keys + 1
        ),
    }
}

fn parameters(after: Option<&[Value]>, count: usize) -> Vec<Value> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    after.unwrap_or_default().iter().cloned().chain([count.to_value()]).collect()
}

/// Returns `count` placeholders for parameters, numbered from `first`.
fn placeholders(first: usize, count: usize) -> String {
    (first..first + count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}

/// Returns the key of a row.
pub(crate) fn key_of(table: &Table, row: &[Value]) -> Vec<Value> {
    row.iter().take(table.keys).cloned().collect()
}

/// Returns the last key of a table in key order, or `None` if the table is empty.
pub(crate) fn last_key(
    transaction: &mut Transaction<'_>,
    table: &Table,
) -> Result<Option<Vec<Value>>, Cause> {
    let key: Vec<String> = table.key().map(|column| format!("{} DESC", column.name)).collect();
    let query = format!(
        "SELECT {} FROM {} ORDER BY {} LIMIT 1",
        table.key_names(),
        table.name,
        key.join(", ")
    );
    let found = transaction.first(&query, &[])?;
    let canonical = |row: super::super::db::Row| {
        let values = row.values().iter().zip(table.columns);
        values.map(|(value, column)| column.kind.canonical(value.clone())).collect()
    };
    Ok(found.map(canonical))
}

/// Adds rows to a table.
pub(super) fn write(
    transaction: &mut Transaction<'_>,
    table: &Table,
    rows: &[Values],
) -> Result<(), Cause> {
    let (chunks, rest) = rows.as_chunks::<ROWS_AT_ONCE>();
    for chunk in chunks {
        insert(transaction, table, chunk)?;
    }
    // The remaining rows are inserted one by one. Otherwise, a separate statement would be cached
    // for each possible number of rows.
    for row in rest.chunks(1) {
        insert(transaction, table, row)?;
    }
    Ok(())
}

fn insert(transaction: &mut Transaction<'_>, table: &Table, rows: &[Values]) -> Result<(), Cause> {
    let width = table.columns.len();
    let tuples = (0..rows.len()).map(|row| format!("({})", placeholders(row * width + 1, width)));
    let tuples: Vec<String> = tuples.collect();
    let statement =
        format!("INSERT INTO {} ({}) VALUES {}", table.name, table.names(), tuples.join(", "));
    let inserted = transaction.execute(&statement, &rows.concat());
    inserted
        .map_err(|error| format!("failed to add rows to the table `{}`: {error}", table.name))?;
    Ok(())
}

/// The number of rows in a table, and a hash over all of them in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) rows: u64,
    pub(super) hash: blake3::Hash,
}

/// Computes the digests of all tables from one snapshot of the database. Calls `step` with the
/// number of rows in each batch.
pub(super) fn digests(
    transaction: &mut Transaction<'_>,
    limits: BatchLimits,
    step: &dyn Fn(usize),
) -> Result<Vec<Digest>, Cause> {
    TABLES.iter().map(|table| digest(transaction, table, limits, step)).collect()
}

fn digest(
    transaction: &mut Transaction<'_>,
    table: &Table,
    limits: BatchLimits,
    step: &dyn Fn(usize),
) -> Result<Digest, Cause> {
    let (mut hasher, mut rows, mut after) = (Hasher::new(), 0, None);
    loop {
        let batch = read(transaction, table, after.as_deref(), limits)?;
        let Some(last) = batch.last() else { break };
        after = Some(key_of(table, last));
        batch.iter().flatten().for_each(|value| hash_value(&mut hasher, value));
        rows += batch.len() as u64;
        step(batch.len());
    }
    Ok(Digest { rows, hash: hasher.finalize() })
}

/// Adds the canonical form of a value to a hash: a type byte, followed by the content. A string has
/// the same form as a binary value with the same bytes, because PostgreSQL stores some strings as
/// bytes.
fn hash_value(hasher: &mut Hasher, value: &Value) {
    let mut content = |bytes: &[u8]| {
        hasher.update(&[2]).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    };
    match value {
        Value::Text(text) => content(text.as_bytes()),
        Value::Bytes(bytes) => content(bytes),
        Value::Null => _ = hasher.update(&[0]),
        Value::Integer(number) => _ = hasher.update(&[1]).update(&number.to_le_bytes()),
        Value::Real(number) => _ = hasher.update(&[3]).update(&number.to_le_bytes()),
    }
}

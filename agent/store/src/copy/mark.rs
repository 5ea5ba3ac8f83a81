//! The marker of a store that is the target of an unfinished copy: a row in the table `copying`
//! that names the source and counts the copied rows. It is written before the first row is copied,
//! and removed when the copy is verified.

use crate::db::mark::MARK;
use crate::db::{Transaction, params};
use crate::error::{Cause, DbError};
use crate::tables::TABLES;

/// Marks an empty store as an unfinished copy of `source`, unless it is already marked as one.
/// Returns the number of rows copied so far.
pub(super) fn begin(transaction: &mut Transaction<'_>, source: &str) -> Result<u64, Cause> {
    // If two copies start at the same time, only one of them can insert the row.
    transaction.execute(
        "INSERT INTO copying (one, source, copied) VALUES (1, ?1, 0) ON CONFLICT (one) DO NOTHING",
        params![source],
    )?;
    let row = transaction.one(MARK, &[])?;
    let (marked, copied): (String, i64) = (row.get(0)?, row.get(1)?);
    if marked != source {
        return Err(format!(
            "it is an unfinished copy of another store, `{marked}`\nhint: name a new store, or \
             delete this one"
        )
        .into());
    }
    if copied == 0 {
        for table in TABLES {
            let query = format!("SELECT 1 FROM {} LIMIT 1", table.name);
            if transaction.first(&query, &[])?.is_some() {
                return Err("it has content\nhint: name a new or an empty store".into());
            }
        }
    }
    Ok(copied.cast_unsigned())
}

/// Adds `rows`, the number of rows that this transaction copied, to the count in the marker of the
/// unfinished copy.
pub(super) fn count(transaction: &mut Transaction<'_>, rows: usize) -> Result<(), DbError> {
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    transaction.execute("UPDATE copying SET copied = copied + ?1", params![rows]).map(drop)
}

/// Removes the marker of the unfinished copy.
pub(super) fn finish(transaction: &mut Transaction<'_>) -> Result<(), DbError> {
    transaction.execute("DELETE FROM copying", &[]).map(drop)
}

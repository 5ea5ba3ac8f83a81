//! The tables, and how an older file becomes a newer one.

use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

/// Each entry leads from the version of its index to the next one. Entries are never changed, only added.
const STEPS: &[&str] = &[
    "
    CREATE TABLE session (
        id TEXT PRIMARY KEY,
        made INTEGER NOT NULL,
        used INTEGER NOT NULL,
        bytes INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE message (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
        content TEXT NOT NULL
    ) STRICT;
    CREATE INDEX message_of_session ON message (session, id);
    CREATE TABLE state (
        session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (session, key)
    ) STRICT, WITHOUT ROWID;
",
    "
    CREATE TABLE tenant (
        name TEXT PRIMARY KEY,
        made INTEGER NOT NULL,
        used INTEGER NOT NULL,
        bytes INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE variable (
        tenant TEXT NOT NULL REFERENCES tenant (name) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (tenant, key)
    ) STRICT, WITHOUT ROWID;
",
    // A message that its role and content do not tell wholly, as JSON.
    "
    ALTER TABLE message ADD COLUMN whole TEXT;
",
];

/// Brings the file to the newest version and sets the connection up: write-ahead log, other processes waited for.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), super::Cause> {
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: usize = transaction.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))? as usize;
    let missing = STEPS.get(version..).ok_or_else(|| {
        let words =
            format!("the file has version {version}, this program knows up to {}; use a newer program", STEPS.len());
        rusqlite::Error::InvalidParameterName(words)
    })?;
    for step in missing {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", u32::try_from(STEPS.len()).unwrap_or(u32::MAX))?;
    Ok(transaction.commit()?)
}

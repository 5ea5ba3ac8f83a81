//! The tables in PostgreSQL, and their migrations.
//!
//! Versions are counted from 1, independently of the versions of SQLite files. All steps of a
//! migration run in one transaction, which locks the version row. Therefore, if several processes
//! start at the same time, only one of them migrates the schema.

use std::time::Duration;

use tokio_postgres::{Client, Error};

use super::super::Opening;
use super::super::error::{DbError, FailureKind};
use super::describe;
use crate::store::copy::{MARK, unfinished};

/// The migrations. The entry at index n migrates version n to version n + 1. Entries are never
/// changed, only added.
const MIGRATIONS: &[&str] = &[
    include_str!("tables.sql"),
    // The marker of a store that is the target of an unfinished copy.
    "CREATE TABLE copying (
        one BIGINT PRIMARY KEY CHECK (one = 1),
        source TEXT NOT NULL,
        copied BIGINT NOT NULL
    )",
    // Objects outside the database, and the rows that refer to them.
    "CREATE TABLE blob (
        object TEXT COLLATE \"C\" PRIMARY KEY,
        tenant TEXT COLLATE \"C\" NOT NULL,
        digest TEXT COLLATE \"C\" NOT NULL,
        bytes BIGINT NOT NULL,
        used BIGINT NOT NULL,
        status TEXT COLLATE \"C\" NOT NULL
    );
    CREATE INDEX blob_of_content ON blob (tenant, digest);
    ALTER TABLE turn ADD COLUMN object TEXT COLLATE \"C\";
    ALTER TABLE session_file ADD COLUMN object TEXT COLLATE \"C\";
    CREATE INDEX turn_of_object ON turn (object) WHERE object IS NOT NULL;
    CREATE INDEX file_of_object ON session_file (object) WHERE object IS NOT NULL",
    // The start of each run, in a table of its own as in SQLite, and an index of sessions by their
    // last use.
    "CREATE TABLE opening (
        tenant TEXT COLLATE \"C\" NOT NULL,
        run TEXT COLLATE \"C\" NOT NULL,
        body TEXT NOT NULL
    );
    INSERT INTO opening (tenant, run, body) SELECT tenant, id, opening FROM run;
    ALTER TABLE opening ADD PRIMARY KEY (tenant, run);
    ALTER TABLE opening ADD FOREIGN KEY (tenant, run) REFERENCES run (tenant, id) ON DELETE CASCADE;
    ALTER TABLE run DROP COLUMN opening;
    CREATE INDEX session_of_use ON session (tenant, used)",
    // Number of ends of processes for which a run is suspected since its last turn. Negative while
    // the run is isolated.
    "ALTER TABLE run ADD COLUMN suspected BIGINT NOT NULL DEFAULT 0",
    // The number of checks that the store can be written, and the moments by which its clock is
    // judged.
    "CREATE TABLE store (
        one BIGINT PRIMARY KEY CHECK (one = 1),
        checks BIGINT NOT NULL DEFAULT 0,
        seen_time BIGINT,
        seen_boot TEXT NOT NULL DEFAULT '',
        seen_uptime BIGINT NOT NULL DEFAULT 0,
        ahead_time BIGINT,
        ahead_boot TEXT NOT NULL DEFAULT '',
        ahead_uptime BIGINT NOT NULL DEFAULT 0
    );
    INSERT INTO store (one) VALUES (1)",
    // Conversations by their digests, as in SQLite.
    "DROP TABLE conversation;
    CREATE TABLE conversation (
        tenant TEXT COLLATE \"C\" NOT NULL,
        digest BYTEA NOT NULL,
        session TEXT COLLATE \"C\",
        taken BIGINT NOT NULL,
        used BIGINT NOT NULL,
        PRIMARY KEY (tenant, digest)
    );
    CREATE INDEX conversation_of_use ON conversation (used)",
    // The identity of each session, and of the session in which each run began, as in SQLite.
    "ALTER TABLE session ADD COLUMN instance TEXT NOT NULL
        DEFAULT md5(random()::text || clock_timestamp()::text);
    ALTER TABLE run ADD COLUMN instance TEXT NOT NULL DEFAULT ''",
    // The process whose client waits for the run, as in SQLite.
    "ALTER TABLE queue ADD COLUMN client TEXT COLLATE \"C\";
    ALTER TABLE run ADD COLUMN client TEXT COLLATE \"C\";
    CREATE INDEX queue_of_client ON queue (client) WHERE client IS NOT NULL;
    CREATE INDEX run_of_client ON run (client) WHERE client IS NOT NULL AND status <> 'ended'",
    // The earlier values of changed keys in the states of sessions, as in SQLite.
    "CREATE TABLE state_change (
        tenant TEXT COLLATE \"C\" NOT NULL,
        session TEXT COLLATE \"C\" NOT NULL,
        number BIGINT NOT NULL,
        origin TEXT COLLATE \"C\",
        key BYTEA NOT NULL,
        old BYTEA,
        total BIGINT NOT NULL,
        PRIMARY KEY (tenant, session, number),
        FOREIGN KEY (tenant, session) REFERENCES session (tenant, id) ON DELETE CASCADE
    );
    CREATE INDEX state_change_of_key ON state_change (tenant, session, key, number);
    ALTER TABLE session ADD COLUMN changes BIGINT NOT NULL DEFAULT 0;
    ALTER TABLE turn ADD COLUMN changes BIGINT;
    ALTER TABLE run ADD COLUMN rewind BIGINT",
    // Large results of calls, which equal results of a run share, and the number of bytes that each
    // tenant keeps.
    include_str!("usage.sql"),
];

/// Maximum number of attempts to create the schema while other processes do the same.
const ATTEMPTS: u32 = 5;

/// Creates the schema if it is absent, then migrates it to the latest version. [`Opening`]
/// describes the different rules for the source and the target of a copy.
pub(super) async fn prepare(
    client: &Client,
    schema: &str,
    opening: Opening,
) -> Result<(), DbError> {
    let version = version(client, schema).await?.unwrap_or(0);
    opening.check_version(version, MIGRATIONS.len())?;
    if version < MIGRATIONS.len() {
        create_or_migrate(client, schema).await?;
    }
    match found(client.query_opt(MARK, &[]).await)? {
        Some(mark) if opening != Opening::Target => {
            let message = unfinished(mark.get(0), mark.get(1));
            Err(DbError::new(FailureKind::Other, message))
        }
        _ => Ok(()),
    }
}

async fn create_or_migrate(client: &Client, schema: &str) -> Result<(), DbError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match migrate(client, schema).await {
            Err(error) if error.kind == FailureKind::Conflict && attempt < ATTEMPTS => {
                // Gives the other processes time to make progress.
                let delay = fastrand::u64(..20 * u64::from(attempt));
                tokio::time::sleep(Duration::from_millis(delay)).await;
            }
            migrated => return migrated,
        }
    }
}

/// Returns the version of the schema, or `None` if the schema has no version table.
///
/// # Errors
/// If the version is newer than this program supports.
async fn version(client: &Client, schema: &str) -> Result<Option<usize>, DbError> {
    let exists = "SELECT 1 FROM information_schema.tables
                  WHERE table_schema = $1 AND table_name = 'version'";
    if found(client.query_opt(exists, &[&schema]).await)?.is_none() {
        return Ok(None);
    }
    let row = found(client.query_opt("SELECT number FROM version", &[]).await)?;
    row.map_or(Ok(None), |row| known(row.get(0), schema).map(Some))
}

fn known(number: i64, schema: &str) -> Result<usize, DbError> {
    let newest = MIGRATIONS.len();
    let known = usize::try_from(number).ok().filter(|number| *number <= newest);
    known.ok_or_else(|| {
        let message = format!(
            "the schema `{schema}` has version {number}, but this program supports versions up to \
             {newest}; use a newer program"
        );
        DbError::new(FailureKind::Other, message)
    })
}

async fn migrate(client: &Client, schema: &str) -> Result<(), DbError> {
    let exists = "SELECT 1 FROM information_schema.schemata WHERE schema_name = $1";
    if found(client.query_opt(exists, &[&schema]).await)?.is_none() {
        found(client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"")).await)?;
    }
    found(client.batch_execute(VERSION_TABLE).await)?;
    let done = steps(client, schema).await;
    if done.is_err() {
        // If the rollback fails because the connection is lost, the server rolls the transaction
        // back.
        drop(client.batch_execute("ROLLBACK").await);
    }
    done
}

const VERSION_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS version (one BIGINT PRIMARY KEY CHECK (one = 1), number BIGINT NOT \
                             NULL);
    INSERT INTO version (one, number) VALUES (1, 0) ON CONFLICT DO NOTHING";

async fn steps(client: &Client, schema: &str) -> Result<(), DbError> {
    // Moving the content of a large table takes longer than a statement may take otherwise.
    found(client.batch_execute("BEGIN; SET LOCAL statement_timeout = 0").await)?;
    let row = found(client.query_one("SELECT number FROM version FOR UPDATE", &[]).await)?;
    let version = known(row.get(0), schema)?;
    for step in MIGRATIONS.get(version..).unwrap_or_default() {
        found(client.batch_execute(step).await)?;
    }
    let newest = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    found(client.execute("UPDATE version SET number = $1", &[&newest]).await)?;
    found(client.batch_execute("COMMIT").await)
}

fn found<T>(result: Result<T, Error>) -> Result<T, DbError> {
    result.map_err(|error| describe(&error))
}

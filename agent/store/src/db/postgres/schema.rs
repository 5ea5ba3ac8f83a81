//! The creation of the tables in PostgreSQL, and the check of their version.
//!
//! The tables are created in one transaction, which locks the row with the version. Therefore, if
//! several processes start at the same time, only one of them creates the tables.

use std::time::Duration;

use tokio_postgres::{Client, Error};

use super::super::{Opening, VERSION};
use super::describe;
use crate::db::mark::{MARK, unfinished};
use crate::error::{DbError, FailureKind};

/// Maximum number of attempts to create the schema while other processes do the same.
const ATTEMPTS: u32 = 5;

/// Creates the schema and its tables with the statements `tables` if they are absent, or checks
/// their version.
pub(super) async fn prepare(
    client: &Client,
    schema: &str,
    opening: Opening,
    tables: fn() -> String,
) -> Result<(), DbError> {
    let exists = "SELECT 1 FROM information_schema.tables
                  WHERE table_schema = $1 AND table_name = 'version'";
    let version = match found(client.query_opt(exists, &[&schema]).await)? {
        Some(_) => version(client, "").await?,
        None => 0,
    };
    if opening.must_create(version)? {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match create(client, schema, opening, tables).await {
                Err(error) if error.kind == FailureKind::Conflict && attempt < ATTEMPTS => {
                    // Gives the other processes time to make progress.
                    let delay = fastrand::u64(..20 * u64::from(attempt));
                    tokio::time::sleep(Duration::from_millis(delay)).await;
                }
                created => break created?,
            }
        }
    }
    match found(client.query_opt(MARK, &[]).await)? {
        Some(mark) if opening != Opening::Target => {
            let message = unfinished(mark.get(0), mark.get(1));
            Err(DbError::new(FailureKind::Other, message))
        }
        _ => Ok(()),
    }
}

/// Returns the version of the tables, or 0 if there are none. `lock` is the clause that locks the
/// row with the version.
async fn version(client: &Client, lock: &str) -> Result<u32, DbError> {
    let query = format!("SELECT number FROM version{lock}");
    let row = found(client.query_opt(&query, &[]).await)?;
    Ok(row.map_or(0, |row| u32::try_from(row.get::<_, i64>(0)).unwrap_or(u32::MAX)))
}

async fn create(
    client: &Client,
    schema: &str,
    opening: Opening,
    tables: fn() -> String,
) -> Result<(), DbError> {
    let exists = "SELECT 1 FROM information_schema.schemata WHERE schema_name = $1";
    if found(client.query_opt(exists, &[&schema]).await)?.is_none() {
        found(client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"")).await)?;
    }
    found(client.batch_execute(VERSION_TABLE).await)?;
    let created = create_tables(client, opening, tables).await;
    if created.is_err() {
        // If the rollback fails because the connection is lost, the server rolls the transaction
        // back.
        drop(client.batch_execute("ROLLBACK").await);
    }
    created
}

const VERSION_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS version (
        one BIGINT PRIMARY KEY CHECK (one = 1), number BIGINT NOT NULL
    );
    INSERT INTO version (one, number) VALUES (1, 0) ON CONFLICT DO NOTHING";

async fn create_tables(
    client: &Client,
    opening: Opening,
    tables: fn() -> String,
) -> Result<(), DbError> {
    found(client.batch_execute("BEGIN").await)?;
    if opening.must_create(version(client, " FOR UPDATE").await?)? {
        found(client.batch_execute(&tables()).await)?;
        let set = "UPDATE version SET number = $1";
        found(client.execute(set, &[&i64::from(VERSION)]).await)?;
    }
    found(client.batch_execute("COMMIT").await)
}

fn found<T>(result: Result<T, Error>) -> Result<T, DbError> {
    result.map_err(|error| describe(&error))
}

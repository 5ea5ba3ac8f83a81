//! The creation of the tables in PostgreSQL, and the check of their version.
//!
//! The tables are created in one transaction, which locks the row with the version. Therefore, if
//! several processes start at the same time, only one of them creates the tables.

use std::time::Duration;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use super::super::{Opening, VERSION};
use super::describe;
use crate::db::mark::{MARK, unfinished};
use crate::error::{DbError, FailureKind};

/// Maximum number of attempts to create the schema while other processes do the same.
const ATTEMPTS: u32 = 5;

/// The tables to prepare.
pub(super) struct Tables<'a> {
    /// The name of their schema.
    pub(super) schema: &'a str,
    /// The statements that begin a transaction in this schema.
    pub(super) begin: String,
    pub(super) opening: Opening,
    /// Returns the statements that create the tables.
    pub(super) create: fn() -> String,
}

/// Creates the schema and its tables if they are absent, or checks their version.
pub(super) async fn prepare(client: &Client, tables: &Tables<'_>) -> Result<(), DbError> {
    let Tables { schema, opening, .. } = *tables;
    let exists = "SELECT 1 FROM information_schema.tables
                  WHERE table_schema = $1 AND table_name = 'version'";
    let version = within(client, tables, async || {
        match found(client.query_typed_opt(exists, &[(&schema, Type::TEXT)]).await)? {
            Some(_) => version(client, "").await,
            None => Ok(0),
        }
    });
    let version = version.await?;
    if opening.must_create(version)? {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match create(client, tables).await {
                Err(error) if error.kind == FailureKind::Conflict && attempt < ATTEMPTS => {
                    // Gives the other processes time to make progress.
                    let delay = fastrand::u64(..20 * u64::from(attempt));
                    tokio::time::sleep(Duration::from_millis(delay)).await;
                }
                created => break created?,
            }
        }
    }
    let mark = async || found(client.query_typed_opt(MARK, &[]).await);
    match within(client, tables, mark).await? {
        Some(mark) if opening != Opening::Target => {
            let message = unfinished(mark.get(0), mark.get(1));
            Err(DbError::new(FailureKind::Other, message))
        }
        _ => Ok(()),
    }
}

/// Does work in a transaction.
async fn within<T>(
    client: &Client,
    tables: &Tables<'_>,
    work: impl AsyncFnOnce() -> Result<T, DbError>,
) -> Result<T, DbError> {
    let done = match found(client.batch_execute(&tables.begin).await) {
        Ok(()) => work().await,
        Err(error) => Err(error),
    };
    if done.is_err() {
        // If the rollback fails because the connection is lost, the server rolls the transaction
        // back.
        drop(client.batch_execute("ROLLBACK").await);
        return done;
    }
    found(client.batch_execute("COMMIT").await)?;
    done
}

/// Returns the version of the tables, or 0 if there are none. `lock` is the clause that locks the
/// row with the version.
async fn version(client: &Client, lock: &str) -> Result<u32, DbError> {
    let query = format!("SELECT number FROM version{lock}");
    let row = found(client.query_typed_opt(&query, &[]).await)?;
    Ok(row.map_or(0, |row| u32::try_from(row.get::<_, i64>(0)).unwrap_or(u32::MAX)))
}

async fn create(client: &Client, tables: &Tables<'_>) -> Result<(), DbError> {
    let Tables { schema, opening, create, .. } = tables;
    let exists = "SELECT 1 FROM information_schema.schemata WHERE schema_name = $1";
    if found(client.query_typed_opt(exists, &[(schema, Type::TEXT)]).await)?.is_none() {
        found(client.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"")).await)?;
    }
    let version_table = async || found(client.batch_execute(VERSION_TABLE).await);
    within(client, tables, version_table).await?;
    let create_tables = async || {
        if opening.must_create(version(client, " FOR UPDATE").await?)? {
            found(client.batch_execute(&create()).await)?;
            let set = format!("UPDATE version SET number = {VERSION}");
            found(client.batch_execute(&set).await)?;
        }
        Ok(())
    };
    within(client, tables, create_tables).await
}

const VERSION_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS version (
        one BIGINT PRIMARY KEY CHECK (one = 1), number BIGINT NOT NULL
    );
    INSERT INTO version (one, number) VALUES (1, 0) ON CONFLICT DO NOTHING";

fn found<T>(result: Result<T, Error>) -> Result<T, DbError> {
    result.map_err(|error| describe(&error))
}

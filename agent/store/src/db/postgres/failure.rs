//! Conversion of errors from the driver and the server into [`DbError`]s. The kind of a [`DbError`]
//! determines how it is handled.

use std::error::Error as _;

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::error::{DbError, FailureKind};

/// Creates a [`DbError`] from the error that a pool returns if it cannot provide a connection.
pub(super) fn of_pool(error: PoolError) -> DbError {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            no_connection(&error)
        }
        PoolError::Timeout(TimeoutType::Wait) => {
            DbError::new(FailureKind::Slow, "no connection of this process became free in time")
        }
        PoolError::Timeout(_) => {
            DbError::new(FailureKind::Lost, "the server did not answer in time")
        }
        other => DbError::new(FailureKind::Other, other.to_string()),
    }
}

/// Creates a [`DbError`] from the error of a failed attempt to connect.
pub(super) fn no_connection(error: &Error) -> DbError {
    let failed = describe(error);
    match (failed.kind, error.code()) {
        (FailureKind::Other, None) => DbError::new(FailureKind::Lost, text(error)),
        _ => failed,
    }
}

/// Creates a [`DbError`] from the error of a failed statement.
pub(super) fn describe(error: &Error) -> DbError {
    let kind = match error.code() {
        _ if creates_twice(error) => FailureKind::Conflict,
        Some(code) => kind_of_state(code),
        None if error.is_closed() || is_io(error) => FailureKind::Lost,
        None => FailureKind::Other,
    };
    DbError::new(kind, text(error))
}

/// Describes an error and its causes. The driver's messages never contain the password.
fn text(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("{} ({})", error.message(), error.code().code());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Returns true if a statement failed because another process created the same object at the same
/// time. The server then reports a duplicate entry in its own catalog, even for `IF NOT EXISTS`.
fn creates_twice(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| {
        *error.code() == SqlState::UNIQUE_VIOLATION && error.schema() == Some("pg_catalog")
    })
}

fn is_io(error: &Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

fn kind_of_state(state: &SqlState) -> FailureKind {
    match state.code() {
        // Serialization failure, deadlock, and the creation of an object that already exists.
        "40001" | "40P01" | "42P06" | "42P07" | "42710" => FailureKind::Conflict,
        // The server is stopping or starting, or has ended the session.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => FailureKind::Lost,
        code if code.starts_with("08") => FailureKind::Lost,
        code if code.starts_with("28") => FailureKind::Credentials,
        "3D000" => FailureKind::NoDatabase,
        "25006" => FailureKind::ReadOnly,
        "53100" => FailureKind::Full,
        "53300" => FailureKind::Busy,
        "57014" | "55P03" => FailureKind::Slow,
        "42501" => FailureKind::Permission,
        _ => FailureKind::Other,
    }
}

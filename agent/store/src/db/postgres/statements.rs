//! The statements of an open transaction, executed on a thread where blocking is allowed.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use deadpool_postgres::Object;
use futures_util::TryStreamExt as _;
use tokio::runtime::Handle;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Error, SimpleQueryMessage, Statement};

use super::super::{Row, RowSink, Statements, Value};
use super::{ANSWER, describe};
use crate::error::{Cause, DbError, FailureKind};

/// Waits for a response from the server, with a timeout.
pub(super) fn within<T>(
    handle: &Handle,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, DbError> {
    let late = || DbError::new(FailureKind::Lost, "the server did not answer in time");
    let answer = async { tokio::time::timeout(ANSWER, answer).await };
    handle.block_on(answer).map_err(|_| late())?.map_err(|error| describe(&error))
}

/// An open transaction on a connection.
pub(super) struct Open<'a> {
    client: &'a Object,
    handle: &'a Handle,
    /// The types of parameters, if the connection is pooled by transaction.
    types: Option<&'a ParameterTypes>,
    /// The server's time when the transaction began, in milliseconds since 1970.
    now: i64,
    /// If true, a statement has failed, so the server will roll the transaction back.
    failed: bool,
}

impl<'a> Open<'a> {
    pub(super) fn new(
        client: &'a Object,
        handle: &'a Handle,
        types: Option<&'a ParameterTypes>,
        now: i64,
    ) -> Open<'a> {
        Open { client, handle, types, now, failed: false }
    }

    pub(super) fn failed(&self) -> bool {
        self.failed
    }

    /// Waits for the response to a request. If the request fails, marks the transaction as failed.
    fn ask<T>(&mut self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, DbError> {
        let answer = within(self.handle, answer);
        self.failed |= answer.is_err();
        answer
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, DbError> {
        let client = self.client;
        // SQLite writes parameters as `?1`, and PostgreSQL as `$1`.
        let sql = sql.replace('?', "$");
        let Some(types) = self.types else {
            return self.ask(client.prepare_cached(&sql)).map(Prepared::Named);
        };
        if let Some(known) = types.of(&sql) {
            return Ok(Prepared::Unnamed(sql, known));
        }
        let found = self.ask(client.simple_query(&format!(
            "PREPARE wattle_types AS {sql};
             SELECT CAST(CAST(parameter_types AS oid[]) AS TEXT) FROM pg_prepared_statements
             WHERE name = 'wattle_types';
             DEALLOCATE wattle_types"
        )))?;
        let found = found.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let numbers = found.unwrap_or_default().trim_matches(['{', '}']).split(',');
        let numbers = numbers.filter_map(|number| number.parse().ok());
        let found = numbers.map(|number| Type::from_oid(number).unwrap_or(Type::UNKNOWN));
        Ok(Prepared::Unnamed(sql.clone(), types.add(sql, found.collect())))
    }
}

/// A statement that can be executed.
enum Prepared {
    /// A statement that the session keeps under a name.
    Named(Statement),
    /// A text with the types of its parameters, which the session does not keep.
    Unnamed(String, Arc<[Type]>),
}

/// The types of the parameters of the statements that were executed so far. A session that a pooler
/// gives to one transaction only keeps no prepared statements, which would tell them.
#[derive(Default)]
pub(super) struct ParameterTypes(Mutex<HashMap<String, Arc<[Type]>>>);

impl ParameterTypes {
    fn of(&self, sql: &str) -> Option<Arc<[Type]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned()
    }

    fn add(&self, sql: String, types: Arc<[Type]>) -> Arc<[Type]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(sql, Arc::clone(&types));
        types
    }
}

impl Statements for Open<'_> {
    fn each(&mut self, sql: &str, params: &[Value], row: &mut RowSink<'_>) -> Result<(), Cause> {
        let client = self.client;
        let rows = match self.prepare(sql)? {
            Prepared::Named(statement) => self.ask(client.query_raw(&statement, params)),
            Prepared::Unnamed(sql, types) => {
                let params = params.iter().zip(types.iter().cloned());
                self.ask(client.query_typed_raw(&sql, params))
            }
        };
        let mut rows = pin!(rows?);
        let mut names: Arc<[String]> = Arc::default();
        while let Some(found) = self.ask(rows.try_next())? {
            if names.len() != found.len() {
                let columns = found.columns().iter();
                names = columns.map(|column| column.name().to_owned()).collect();
            }
            let values = (0..names.len()).map(|at| found.try_get(at));
            let values = values.collect::<Result<_, _>>().map_err(|error| describe(&error))?;
            if row(Row::new(Arc::clone(&names), values))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        let client = self.client;
        match self.prepare(sql)? {
            Prepared::Named(statement) => self.ask(client.execute_raw(&statement, params)),
            Prepared::Unnamed(sql, types) => {
                let params = params.iter().map(|param| -> &(dyn ToSql + Sync) { param });
                let params: Vec<_> = params.zip(types.iter().cloned()).collect();
                self.ask(client.execute_typed(&sql, &params))
            }
        }
    }

    fn excludes_writers(&self) -> bool {
        false
    }

    fn now(&self) -> i64 {
        self.now
    }
}

/// Creates the error for a value that cannot be converted. Its message contains the types but not
/// the value.
fn mismatch(what: &str, ty: &Type) -> Box<dyn StdError + Sync + Send> {
    format!("{what} is not a value of the type {ty}").into()
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(number) => match *ty {
                Type::INT8 => number.to_sql(ty, out),
                Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
                Type::INT2 => i16::try_from(*number)?.to_sql(ty, out),
                Type::BOOL => (*number != 0).to_sql(ty, out),
                _ => Err(mismatch("an integer", ty)),
            },
            Value::Real(number) => match *ty {
                Type::FLOAT8 => number.to_sql(ty, out),
                _ => Err(mismatch("a real number", ty)),
            },
            Value::Text(text) => match *ty {
                Type::BYTEA => text.as_bytes().to_sql(ty, out),
                _ if <&str as ToSql>::accepts(ty) => text.as_str().to_sql(ty, out),
                _ => Err(mismatch("a text", ty)),
            },
            Value::Bytes(bytes) => match *ty {
                Type::BYTEA => bytes.as_slice().to_sql(ty, out),
                _ => Err(mismatch("bytes", ty)),
            },
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *ty {
            Type::BOOL => Value::Integer(bool::from_sql(ty, raw)?.into()),
            Type::INT2 => Value::Integer(i16::from_sql(ty, raw)?.into()),
            Type::INT4 => Value::Integer(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => Value::Integer(i64::from_sql(ty, raw)?),
            Type::FLOAT8 => Value::Real(f64::from_sql(ty, raw)?),
            Type::BYTEA => Value::Bytes(Vec::from_sql(ty, raw)?),
            _ if <String as FromSql>::accepts(ty) => Value::Text(String::from_sql(ty, raw)?),
            _ => return Err(mismatch("a column", ty)),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Value::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

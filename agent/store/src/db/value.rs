//! The values of parameters and rows.

use std::sync::Arc;

use crate::error::Cause;

/// A value of a column or a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A type whose values can be parameters of a statement.
pub(crate) trait ToValue {
    fn to_value(&self) -> Value;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value {
        T::to_value(self)
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }
}

impl ToValue for str {
    fn to_value(&self) -> Value {
        Value::Text(self.to_owned())
    }
}

impl ToValue for String {
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> Value {
        Value::Bytes(self.to_owned())
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> Value {
        Value::Bytes(self.clone())
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self) -> Value {
        Value::Bytes(self.to_vec())
    }
}

impl ToValue for i64 {
    fn to_value(&self) -> Value {
        Value::Integer(*self)
    }
}

impl ToValue for i32 {
    fn to_value(&self) -> Value {
        Value::Integer((*self).into())
    }
}

impl ToValue for u32 {
    fn to_value(&self) -> Value {
        Value::Integer((*self).into())
    }
}

/// Creates a statement's parameters from borrowed values.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::db::ToValue::to_value(&$value)),*][..]
    };
}
pub(crate) use params;

/// A row of a query's result.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    names: Arc<[String]>,
    values: Vec<Value>,
}

/// A selector for a column of a row: the column's position, counted from 0, or the column's name.
pub(crate) trait Column {
    fn position(&self, names: &[String]) -> Option<usize>;
    fn describe(&self) -> String;
}

impl Column for usize {
    fn position(&self, names: &[String]) -> Option<usize> {
        (*self < names.len()).then_some(*self)
    }

    fn describe(&self) -> String {
        self.to_string()
    }
}

impl Column for &str {
    fn position(&self, names: &[String]) -> Option<usize> {
        names.iter().position(|name| name == self)
    }

    fn describe(&self) -> String {
        (*self).to_owned()
    }
}

impl Row {
    pub(crate) fn new(names: Arc<[String]>, values: Vec<Value>) -> Row {
        Row { names, values }
    }

    /// Returns the values, in the order of the columns.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Returns the value of a column.
    ///
    /// # Errors
    /// If there is no such column, or its value has a different type.
    pub(crate) fn get<T: FromValue>(&self, column: impl Column) -> Result<T, Cause> {
        let value = column.position(&self.names).and_then(|at| self.values.get(at));
        let wrong = || format!("the column `{}` of a row has another type", column.describe());
        let value = value.ok_or_else(|| format!("a row has no column `{}`", column.describe()))?;
        Ok(T::from_value(value).ok_or_else(wrong)?)
    }
}

/// A type to which the value of a column can be converted.
pub(crate) trait FromValue: Sized {
    /// Returns the value, or `None` if it has a different type.
    fn from_value(value: &Value) -> Option<Self>;
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Integer(number) = value { Some(*number) } else { None }
    }
}

impl FromValue for i32 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value)?.try_into().ok()
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        Some(i64::from_value(value)? != 0)
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Real(number) = value { Some(*number) } else { None }
    }
}

/// Accepts text, and bytes that are valid UTF-8. In PostgreSQL, a string that may contain a zero
/// byte is stored as bytes.
impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text.clone()),
            Value::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
            _ => None,
        }
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Bytes(bytes) = value { Some(bytes.clone()) } else { None }
    }
}

impl<const N: usize> FromValue for [u8; N] {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Bytes(bytes) = value { bytes.as_slice().try_into().ok() } else { None }
    }
}

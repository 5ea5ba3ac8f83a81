//! The values of awk: numbers, strings, and strings that look like numbers.

use std::cell::RefCell;
use std::rc::Rc;

use indexmap::IndexMap;

use super::format;

pub(crate) type Text = Rc<str>;
pub(crate) type Array = Rc<RefCell<IndexMap<Text, Value>>>;

/// A value. Input that looks like a number (`Either`) is compared as a number.
#[derive(Clone, Debug, Default)]
pub(crate) enum Value {
    #[default]
    Nothing,
    Number(f64),
    Text(Text),
    Either(Text, f64),
    /// A regular expression, `@/…/`.
    Regex(Text),
    /// An array within an array.
    Array(Array),
}

/// The content of a variable.
#[derive(Clone, Debug, Default)]
pub(crate) enum Cell {
    #[default]
    Unused,
    Scalar(Value),
    Array(Array),
}

impl Value {
    pub(crate) fn text(text: impl Into<Text>) -> Value {
        Value::Text(text.into())
    }

    /// Converts input text to a value. Text that looks like a number becomes an `Either`.
    pub(crate) fn outside(text: impl Into<Text>) -> Value {
        let text = text.into();
        let bare = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        match prefix(bare) {
            Some((number, length)) if length == bare.len() => Value::Either(text, number),
            _ => Value::Text(text),
        }
    }

    pub(crate) fn number(&self) -> f64 {
        match self {
            Value::Nothing | Value::Array(_) => 0.0,
            Value::Number(number) | Value::Either(_, number) => *number,
            Value::Text(text) | Value::Regex(text) => {
                prefix(text.trim_start()).map_or(0.0, |found| found.0)
            }
        }
    }

    /// Returns the value's text. `conversion` formats a number that is not an integer.
    pub(crate) fn to_text(&self, conversion: &str) -> Text {
        match self {
            Value::Nothing | Value::Array(_) => Rc::from(""),
            Value::Text(text) | Value::Either(text, _) | Value::Regex(text) => text.clone(),
            Value::Number(number) => Rc::from(number_text(*number, conversion)),
        }
    }

    pub(crate) fn truth(&self) -> bool {
        match self {
            Value::Nothing | Value::Array(_) => false,
            Value::Number(number) | Value::Either(_, number) => *number != 0.0,
            Value::Text(text) | Value::Regex(text) => !text.is_empty(),
        }
    }

    /// Returns true if the value compares as a number.
    pub(crate) fn numeric(&self) -> bool {
        !matches!(self, Value::Text(_) | Value::Regex(_))
    }
}

/// Formats a number: an integer in full, any other number with the format `conversion`.
pub(crate) fn number_text(number: f64, conversion: &str) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan" } else { "+nan" }.to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "+inf" }.to_owned();
    }
    if number == number.trunc() {
        return format!("{:.0}", if number == 0.0 { 0.0 } else { number });
    }
    format::float(conversion, number)
}

/// Parses the decimal number at the start of a text. Returns the number and its length in bytes.
pub(crate) fn prefix(text: &str) -> Option<(f64, usize)> {
    let bytes = text.as_bytes();
    let digits =
        |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number = text.get(..end)?.parse().ok()?;
    Some((number, end))
}

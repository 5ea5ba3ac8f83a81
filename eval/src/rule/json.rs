//! The rule `json`: values in a JSON document.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use super::clean::unfenced;
use super::item::is_near;
use super::quoted;

/// A JSON value written as TOML. TOML has no null, so a document that contains a null is written as
/// a [`Document`].
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "toml::Value")]
pub(super) struct Value(pub(super) Json);

impl TryFrom<toml::Value> for Value {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let nested = |value| Value::try_from(value).map(|Value(json)| json);
        Ok(Value(match value {
            toml::Value::String(text) => text.into(),
            toml::Value::Integer(n) => n.into(),
            toml::Value::Float(x) => x.into(),
            toml::Value::Boolean(b) => b.into(),
            toml::Value::Datetime(_) => {
                return Err("JSON has no dates; write the date in quotes".to_owned());
            }
            toml::Value::Array(items) => {
                Json::Array(items.into_iter().map(nested).collect::<Result<_, _>>()?)
            }
            toml::Value::Table(entries) => Json::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| Ok((key, nested(value)?)))
                    .collect::<Result<_, String>>()?,
            ),
        }))
    }
}

/// A whole JSON document, written as JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Document(pub(super) Json);

impl TryFrom<String> for Document {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        serde_json::from_str(&text).map(Document).map_err(|why| format!("invalid JSON: {why}"))
    }
}

/// Compares the JSON in the text with the expected values at the given pointers and, if `whole` is
/// set, with a whole document. Returns a message for each difference.
pub(super) fn wrong(
    subject: &str,
    text: &str,
    expected: &BTreeMap<String, Value>,
    whole: Option<&Document>,
    within: f64,
) -> Vec<String> {
    if expected.is_empty() && whole.is_none() {
        return Vec::new();
    }
    let document: Json = match serde_json::from_str(unfenced(text).trim()) {
        Ok(document) => document,
        Err(why) => return vec![format!("{subject} is not JSON ({why}): {}", quoted(text))],
    };
    let wrong = |(pointer, Value(expected)): (&String, &Value)| match document.pointer(pointer) {
        Some(found) if is_same(found, expected, within) => None,
        Some(found) => Some(format!("{subject} has {found} at `{pointer}`, expected {expected}")),
        None => Some(format!("{subject} has nothing at `{pointer}`, expected {expected}")),
    };
    let whole = whole
        .filter(|Document(whole)| !is_same(&document, whole, within))
        .map(|Document(whole)| format!("{subject} is {document}, expected {whole}"));
    expected.iter().filter_map(wrong).chain(whole).collect()
}

/// Returns true if two values are equal. Ignores the notation of numbers and the order of keys.
fn is_same(a: &Json, b: &Json, within: f64) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => is_near(a, b, within),
            _ => a == b,
        },
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b, within))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b, within)))
        }
        (a, b) => a == b,
    }
}

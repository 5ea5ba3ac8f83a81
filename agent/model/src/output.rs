//! Structured output: answers that are JSON values and match a schema.
//!
//! A run with an [`OutputSettings`] ends with a value that matches the schema, in
//! the report of the run, or with [`Ending::Invalid`] if no attempt matched.
//!
//! ```
//! use wattle_model::output::OutputSchema;
//! use serde_json::json;
//!
//! let fields = json!({"n": {"type": "integer"}});
//! let schema = json!({"type": "object", "properties": fields, "required": ["n"]});
//! let schema = OutputSchema::new("count", schema)?;
//! assert_eq!(schema.validate("Here it is:\n```json\n{\"n\": 4}\n```"), Ok(json!({"n": 4})));
//! assert_eq!(schema.validate("{}"), Err(vec!["\"n\" is a required property".to_owned()]));
//! # Ok::<(), wattle_model::output::SchemaError>(())
//! ```

mod value;

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;
use wattle_machine::{Ending, OutputContract};
use wattle_schema::{Schema, SchemaLimits};

/// Maximum length of a serialized schema, in bytes.
const MAX_TEXT: usize = 256 << 10;

/// Maximum number of values in a schema, with references expanded.
const MAX_PARTS: usize = 16_384;

/// Maximum number of violations that are reported.
const MAX_FAULTS: usize = 8;

/// Maximum length of a schema's name, in characters.
const MAX_NAME: usize = 64;

/// Default maximum number of requests for a corrected answer.
const DEFAULT_ATTEMPTS: u32 = 2;

/// The schema of a run's answer: a compiled JSON Schema. Cheap to clone.
///
/// No external schema is fetched, and a recursive schema is rejected, so that validation has a
/// bounded cost. Formats such as `date-time` are checked. Patterns are regular expressions without
/// backreferences or look-around.
#[derive(Clone)]
pub struct OutputSchema {
    name: Arc<str>,
    schema: Arc<Json>,
    compiled: Arc<Schema>,
}

impl OutputSchema {
    /// Compiles a schema. The name consists of 1 to 64 letters, digits, `_` and `-`.
    ///
    /// # Errors
    /// If the name or the schema is invalid, or the schema is too large. The error names the
    /// violated rule.
    pub fn new(name: impl Into<String>, schema: Json) -> Result<Self, SchemaError> {
        let name = name.into();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
            return Err(SchemaError(format!(
                "the name of a schema has 1 to {MAX_NAME} letters, digits, `_` and `-`, not {:?}",
                wattle_rt::truncate(&name, MAX_NAME)
            )));
        }
        let limits = SchemaLimits { text: MAX_TEXT, parts: MAX_PARTS, checks_formats: true };
        let compiled = Schema::compile(&schema, limits)
            .map_err(|why| SchemaError(format!("the schema `{name}` cannot be used: {why}")))?;
        let (schema, compiled) = (Arc::new(schema), Arc::new(compiled));
        Ok(Self { name: name.into(), schema, compiled })
    }

    /// Compiles the schema of a type. The schema is named after the type.
    ///
    /// # Errors
    /// If the schema is too large, or the type is recursive.
    pub fn of<T: schemars::JsonSchema>() -> Result<Self, SchemaError> {
        let name: String = T::schema_name().chars().take(MAX_NAME).collect();
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
        Self::new(name, schemars::schema_for!(T).to_value())
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the schema as JSON.
    #[must_use]
    pub fn schema(&self) -> &Json {
        &self.schema
    }

    /// Returns the value of an answer: the whole text, the only code fence with JSON, or the only
    /// JSON object or array in the text.
    ///
    /// # Errors
    /// If the value cannot be determined unambiguously, or it violates the schema. The error is the
    /// reason, or the first violations of the schema, each with its location as a JSON pointer.
    pub fn validate(&self, answer: &str) -> Result<Json, Vec<String>> {
        let value = value::of_answer(answer).map_err(|why| vec![why])?;
        match self.compiled.faults(&value, MAX_FAULTS) {
            faults if faults.is_empty() => Ok(value),
            faults => Err(faults),
        }
    }

    /// Returns true if providers can guarantee that answers match the schema: each object lists all
    /// of its fields, requires them, and allows no others.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        is_strict(&self.schema)
    }
}

fn is_strict(schema: &Json) -> bool {
    let fields = match schema {
        Json::Object(fields) => fields,
        Json::Array(items) => return items.iter().all(is_strict),
        _ => return true,
    };
    let is_object = fields.get("type").is_some_and(|kind| kind == "object");
    let properties = fields.get("properties").and_then(Json::as_object);
    let required = fields.get("required").and_then(Json::as_array);
    let is_closed = || {
        fields.get("additionalProperties") == Some(&Json::Bool(false))
            && properties.is_none_or(|properties| {
                properties.keys().all(|key| {
                    required.is_some_and(|required| required.iter().any(|name| name == key))
                })
            })
    };
    (!(is_object || properties.is_some()) || is_closed()) && fields.values().all(is_strict)
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputSchema")
            .field("name", &self.name)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.schema == other.schema
    }
}

/// The reason why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(String);

/// The reason why a report's answer cannot be converted to a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutputError(String);

impl OutputError {
    /// Creates the error for a run without a valid value.
    pub fn missing(ending: &Ending) -> Self {
        Self(match ending {
            Ending::Invalid { errors, .. } => {
                format!("the answer does not match its schema: {}", errors.join("; "))
            }
            ending => format!("the run has no value: {}", ending.text()),
        })
    }

    /// Creates the error for a value that does not match the type.
    pub fn unfit(why: &serde_json::Error) -> Self {
        Self(format!("the value of the answer does not fit the type: {why}"))
    }
}

/// The schema that a run's answer must match, with a limit on correction requests.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSettings {
    /// The schema that the answer must match.
    pub schema: OutputSchema,
    /// Maximum number of requests for a corrected answer (default 2).
    pub max_attempts: u32,
}

impl OutputSettings {
    /// Creates settings that allow at most 2 requests for a corrected answer.
    #[must_use]
    pub fn new(schema: OutputSchema) -> Self {
        Self { schema, max_attempts: DEFAULT_ATTEMPTS }
    }

    /// Converts these settings to the contract that the state machine enforces. `native` is true if
    /// the model's provider can constrain answers to a schema.
    pub fn contract(&self, native: bool) -> OutputContract {
        OutputContract {
            name: self.schema.name.to_string(),
            schema: Json::clone(&self.schema.schema),
            max_attempts: self.max_attempts,
            native,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strict_schemas_close_every_object() {
        let point = json!({"type": "object", "properties": {"x": {"type": "number"}},
            "required": ["x"], "additionalProperties": false});
        let open = json!({"type": "object", "properties": {"x": {"type": "number"}}});
        for (schema, strict) in [
            (json!({"type": "array", "items": point}), true),
            (json!({"anyOf": [point, {"type": "null"}]}), true),
            (json!({"anyOf": [point, open]}), false),
            (open, false),
            (json!({"type": "object"}), false),
            (json!(true), true),
        ] {
            assert_eq!(is_strict(&schema), strict, "{schema}");
        }
    }

    #[test]
    fn names_and_sizes_are_checked() {
        for (name, schema, words) in [
            ("", json!({}), "1 to 64"),
            ("a b", json!({}), "\"a b\""),
            (&"n".repeat(65), json!({}), "1 to 64"),
            ("s", json!({"type": "strin"}), "the schema `s` cannot be used"),
            ("s", json!({"$ref": "#"}), "refers to itself"),
            ("s", json!({"$ref": "https://example.com/s.json"}), "leaves the schema"),
            ("s", json!({"pattern": "(?=a)"}), "the schema `s`"),
            ("s", json!({"description": "x".repeat(MAX_TEXT)}), "bytes"),
            ("s", json!({"enum": vec![0; MAX_PARTS]}), "too large"),
        ] {
            let why = OutputSchema::new(name, schema).unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_type_has_a_schema() {
        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Point {
            x: i32,
            label: Option<String>,
        }
        let schema = OutputSchema::of::<Vec<Point>>().unwrap();
        assert_eq!(schema.name(), "Array_of_Point");
        assert!(schema.validate("[{\"x\": 1}]").is_ok());
        let faults = schema.validate("[{\"x\": \"1\"}]").unwrap_err();
        assert!(faults[0].starts_with("at /0/x: "), "{faults:?}");
    }
}

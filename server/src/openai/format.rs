//! The format of an answer: text, any JSON object, or JSON that matches a schema.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::origin::OutputOrigin;

/// The name of the schema used for `json_object`.
const OBJECT: &str = "json_object";

/// The format of an answer, in `response_format` of chat completions.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ChatFormat {
    /// `text`, `json_object` or `json_schema`.
    #[serde(rename = "type")]
    kind: String,
    /// The schema, if the type is `json_schema`.
    #[serde(default)]
    json_schema: Option<NamedSchema>,
}

/// A schema with a name.
#[derive(Debug, Deserialize, JsonSchema)]
struct NamedSchema {
    /// The name.
    name: String,
    /// The JSON Schema. Every answer is validated, whether `strict` is set or not.
    schema: Value,
}

/// The format of an answer, in `text.format` of responses.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TextFormat {
    /// `text`, `json_object` or `json_schema`.
    #[serde(rename = "type")]
    kind: String,
    /// The name of the schema, if the type is `json_schema`.
    #[serde(default)]
    name: Option<String>,
    /// The schema, if the type is `json_schema`.
    #[serde(default)]
    schema: Option<Value>,
}

impl ChatFormat {
    /// Returns the required output of the run, or `None` if any text is accepted.
    pub(super) fn output(self) -> Result<Option<OutputOrigin>, ApiError> {
        let given = self.json_schema.map(|given| (given.name, given.schema));
        output("response_format", &self.kind, given)
    }
}

impl TextFormat {
    /// Returns the required output of the run, or `None` if any text is accepted.
    pub(super) fn output(self) -> Result<Option<OutputOrigin>, ApiError> {
        output("text.format", &self.kind, self.name.zip(self.schema))
    }
}

fn output(
    field: &str,
    kind: &str,
    given: Option<(String, Value)>,
) -> Result<Option<OutputOrigin>, ApiError> {
    let (name, schema) = match (kind, given) {
        ("text", _) => return Ok(None),
        ("json_object", _) => (OBJECT.to_owned(), json!({"type": "object"})),
        ("json_schema", Some(given)) => given,
        ("json_schema", None) => {
            let why = format!("`{field}`: `json_schema` needs a name and a schema");
            return Err(ApiError::invalid_field(why));
        }
        _ => {
            let why = format!("`{field}`: the type is `text`, `json_object` or `json_schema`");
            return Err(ApiError::invalid_field(why));
        }
    };
    OutputOrigin::checked(field, name, schema).map(Some)
}

//! Field types that validate their values.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};
use wattle_agent::host::{SESSION_ID, is_session_id};

/// A message with at least one non-whitespace character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageText(pub(crate) String);

/// A session id that is safe in a header, a URL and a file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionId(pub(crate) String);

impl SessionId {
    /// Generates an id that sorts by time and cannot be guessed.
    pub(crate) fn generate() -> Self {
        SessionId(ulid::Ulid::generate().to_string())
    }

    pub(crate) fn new(text: String) -> Option<Self> {
        is_session_id(&text).then_some(SessionId(text))
    }
}

impl<'de> Deserialize<'de> for MessageText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.trim().is_empty() {
            Err(D::Error::custom("the text is empty"))
        } else {
            Ok(MessageText(text))
        }
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        SessionId::new(text)
            .ok_or_else(|| D::Error::custom(format_args!("a session id is {SESSION_ID}")))
    }
}

impl JsonSchema for MessageText {
    fn schema_name() -> Cow<'static, str> {
        "MessageText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "\\S", "minLength": 1})
    }
}

impl JsonSchema for SessionId {
    fn schema_name() -> Cow<'static, str> {
        "SessionId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[A-Za-z0-9._:-]{1,128}$",
            "not": {"enum": [".", ".."]},
        })
    }
}

//! The fields of a model's messages that its provider requires in the next requests: reasoning,
//! signed thoughts, and signatures of calls.
//!
//! They are stored as one JSON object:
//! ```text
//! {"message": {"reasoning_content": "…", "reasoning_details": […]},
//!  "calls": [{"id": "call_1", "extra_content": {…}}],
//!  "thinking": [{"type": "thinking", "thinking": "…", "signature": "…"}]}
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wattle_machine::{Message, ProviderFields, SharedText};

/// The fields of a chat-completions message that are sent back.
const MESSAGE_FIELDS: &[&str] = &[
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
    "extra_content",
    "thought_signature",
    "encrypted_content",
];

/// The fields of a call that are sent back.
const CALL_FIELDS: &[&str] =
    &["extra_content", "thought_signature", "signature", "provider_specific_fields"];

/// Maximum size of a message's fields, in bytes. Larger fields are dropped as a whole, because a
/// signature covers all of its text.
const MAX_FIELDS: usize = 512 << 10;

/// Returns true if an endpoint's error is about one of the fields. `message` is in lower case.
pub(super) fn are_named(message: &str) -> bool {
    let names = MESSAGE_FIELDS.iter().chain(CALL_FIELDS).chain(&["redacted_thinking"]);
    names.into_iter().any(|name| message.contains(name))
}

/// The stored form of a message's fields.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptFields {
    /// The fields of the message.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) message: Map<String, Value>,
    /// The fields of its calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<KeptCall>,
    /// The blocks with thoughts, in the messages protocol.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) thinking: Vec<Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptCall {
    /// The call's id. Empty if the provider assigned none.
    #[serde(default)]
    id: String,
    /// The position of the call in the message.
    at: usize,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl KeptFields {
    /// Returns the fields of a message that belong to the model `origin`.
    pub(super) fn of_message(message: &Message, origin: &str) -> Self {
        let own = message.provider.as_ref().filter(|own| own.origin == *origin);
        // The fields were written by this module. Any others are not known to the provider.
        own.and_then(|own| serde_json::from_str(&own.fields).ok()).unwrap_or_default()
    }

    /// Returns the fields of the call with this id, or else of the call at this position if it has no
    /// id of its own.
    pub(super) fn of_call(&self, at: usize, id: &str) -> Option<&Map<String, Value>> {
        let by_id = self.calls.iter().find(|call| !call.id.is_empty() && call.id == id);
        let by_position = || self.calls.iter().find(|call| call.id.is_empty() && call.at == at);
        by_id.or_else(by_position).map(|call| &call.fields)
    }
}

/// The fields of a message that is being received.
#[derive(Debug, Default)]
pub(super) struct PartialFields {
    message: Map<String, Value>,
    calls: BTreeMap<usize, Map<String, Value>>,
    /// The blocks with thoughts, each with its index in the message.
    thinking: Vec<(u64, Map<String, Value>)>,
    /// The size of all texts, in bytes. Above the limit, nothing more is added.
    size: usize,
}

impl PartialFields {
    /// Adds the fields of a message or of a piece of it.
    pub(super) fn absorb_message(&mut self, piece: &Value) {
        if self.admits(size_of(piece, MESSAGE_FIELDS)) {
            absorb(&mut self.message, piece, MESSAGE_FIELDS);
        }
    }

    /// Adds the fields of the call at the position `at`, or of a piece of it.
    pub(super) fn absorb_call(&mut self, at: usize, piece: &Value) {
        for part in [Some(piece), piece.get("function")].into_iter().flatten() {
            let size = size_of(part, CALL_FIELDS);
            if size > 0 && self.admits(size) {
                absorb(self.calls.entry(at).or_default(), part, CALL_FIELDS);
            }
        }
    }

    /// Adds a block with thoughts.
    pub(super) fn add_thinking(&mut self, index: u64, block: &Value) {
        if let Some(fields) = block.as_object()
            && self.admits(text_size(block))
        {
            self.thinking.push((index, fields.clone()));
        }
    }

    /// Adds text to a field of a block with thoughts.
    pub(super) fn extend_thinking(&mut self, index: u64, field: &str, text: &str) {
        if !self.admits(text.len()) {
            return;
        }
        let block = self.thinking.iter_mut().rev().find(|(known, _)| *known == index);
        let Some((_, block)) = block else { return };
        match block.get_mut(field) {
            Some(Value::String(known)) => known.push_str(text),
            _ => drop(block.insert(field.to_owned(), Value::from(text))),
        }
    }

    /// Counts more bytes. Returns true if they are within the limit.
    fn admits(&mut self, size: usize) -> bool {
        self.size = self.size.saturating_add(size);
        self.size <= MAX_FIELDS
    }

    /// Returns the fields, without their origin. `ids` are the ids of the message's calls. Returns
    /// `None` if there are no fields, or too many.
    pub(super) fn into_fields<'a>(
        self,
        ids: impl Iterator<Item = &'a str>,
    ) -> Option<ProviderFields> {
        let Self { message, mut calls, thinking, size } = self;
        if size > MAX_FIELDS {
            return None;
        }
        let call = |(at, id): (usize, &str)| {
            let fields = calls.remove(&at)?;
            Some(KeptCall { id: id.to_owned(), at, fields })
        };
        let calls = ids.enumerate().filter_map(call).collect();
        // A thought without a signature cannot be verified, so no provider requires it.
        let is_signed = |block: &Map<String, Value>| {
            let is_filled = |field: &str| {
                block.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
            };
            is_filled("signature") || is_filled("data")
        };
        let thinking = thinking.into_iter().map(|(_, block)| block).filter(is_signed);
        let thinking = thinking.map(Value::Object).collect();
        let kept = KeptFields { message, calls, thinking };
        if kept.message.is_empty() && kept.calls.is_empty() && kept.thinking.is_empty() {
            return None;
        }
        let fields = serde_json::to_string(&kept).ok()?;
        Some(ProviderFields { origin: SharedText::default(), fields: fields.into() })
    }
}

/// Adds the named fields of a piece.
fn absorb(fields: &mut Map<String, Value>, piece: &Value, names: &[&str]) {
    for name in names {
        let Some(new) = piece.get(*name).filter(|new| !new.is_null()) else { continue };
        match fields.get_mut(*name) {
            Some(known) => merge(known, new),
            None => drop(fields.insert((*name).to_owned(), new.clone())),
        }
    }
}

/// Returns the size of the named fields of a piece, in bytes.
fn size_of(piece: &Value, names: &[&str]) -> usize {
    let fields = names.iter().filter_map(|name| piece.get(*name)).filter(|field| !field.is_null());
    fields.map(text_size).sum()
}

fn text_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 8 + text_size(item)).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| 8 + key.len() + text_size(field)).sum()
        }
        _ => 8,
    }
}

/// The texts that arrive in pieces. All other texts of an object arrive as a whole.
const STREAMED: &[&str] = &["text", "summary", "thinking", "data", "signature"];

/// Merges a piece into the value so far: texts are appended, and entries of lists are merged if they
/// have the same index and type.
fn merge(known: &mut Value, new: &Value) {
    match (known, new) {
        (Value::String(known), Value::String(new)) => known.push_str(new),
        (Value::Object(known), Value::Object(new)) => {
            for (key, new) in new.iter().filter(|(_, new)| !new.is_null()) {
                match known.get_mut(key) {
                    Some(known) if !known.is_string() || STREAMED.contains(&key.as_str()) => {
                        merge(known, new)
                    }
                    _ => drop(known.insert(key.clone(), new.clone())),
                }
            }
        }
        (Value::Array(known), Value::Array(new)) => {
            for new in new {
                let is_same = |entry: &&mut Value| {
                    new.get("index").is_some_and(|index| entry.get("index") == Some(index))
                        && entry.get("type") == new.get("type")
                };
                match known.iter_mut().rev().find(is_same) {
                    Some(entry) => merge(entry, new),
                    None => known.push(new.clone()),
                }
            }
        }
        (known, new) => *known = new.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use serde_json::json;

    use super::*;

    fn kept(fields: PartialFields, ids: &[&str]) -> Value {
        let fields = fields.into_fields(ids.iter().copied()).unwrap();
        serde_json::from_str(&fields.fields).unwrap()
    }

    #[test]
    fn pieces_are_put_together() {
        let mut fields = PartialFields::default();
        let detail = |text: &str| json!([{"type": "reasoning.text", "index": 0, "text": text}]);
        for piece in [
            json!({"reasoning_content": "two ", "reasoning_details": detail("two ")}),
            json!({"reasoning_content": "and two", "reasoning_details": detail("and two")}),
            json!({"reasoning_content": null, "reasoning_details": [
                {"type": "reasoning.text", "index": 0, "signature": "s", "format": "f"},
                {"type": "reasoning.encrypted", "index": 1, "data": "d"},
            ]}),
        ] {
            fields.absorb_message(&piece);
        }
        fields.absorb_call(1, &json!({"extra_content": {"google": {"thought_signature": "t"}}}));
        assert_eq!(
            kept(fields, &["a", "b"]),
            json!({
                "message": {
                    "reasoning_content": "two and two",
                    "reasoning_details": [
                        {"type": "reasoning.text", "index": 0, "text": "two and two",
                         "signature": "s", "format": "f"},
                        {"type": "reasoning.encrypted", "index": 1, "data": "d"},
                    ],
                },
                "calls": [{"id": "b", "at": 1,
                           "extra_content": {"google": {"thought_signature": "t"}}}],
            })
        );
    }

    #[test]
    fn only_the_same_model_gets_the_fields() {
        let mut fields = PartialFields::default();
        fields.absorb_message(&json!({"reasoning_content": "hm"}));
        let mut own = fields.into_fields(std::iter::empty()).unwrap();
        own.origin = "url model".into();
        let message = Message { provider: Some(own), ..Message::assistant("four") };
        assert_eq!(KeptFields::of_message(&message, "url model").message.len(), 1);
        assert!(KeptFields::of_message(&message, "url other").message.is_empty());
    }

    #[test]
    fn fields_without_bound_are_dropped() {
        let mut fields = PartialFields::default();
        fields.absorb_message(&json!({"reasoning_content": "a".repeat(MAX_FIELDS)}));
        fields.absorb_message(&json!({"reasoning_content": "b"}));
        assert_eq!(fields.into_fields(std::iter::empty()), None);
    }
}

//! An endpoint's key, which is sent but never printed.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use wattle_capability::egress::HeaderValue;

/// The replacement of a key.
const MASK: &str = "***";

/// Minimum length of a key that is masked, in bytes. A shorter key could be part of ordinary text.
const MIN_MASKED_BYTES: usize = 8;

/// A secret that is sent in one header and nowhere else. It prints and serializes as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    secret: Arc<str>,
    header: HeaderValue,
}

impl ApiKey {
    /// Creates a key from a trimmed text. Returns `None` if it is empty or not valid in a header.
    pub fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim();
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut header = HeaderValue::try_from(format!("Bearer {secret}")).ok()?;
        header.set_sensitive(true);
        Some(Self { secret: secret.into(), header })
    }

    /// Returns the value of the `authorization` header, marked as sensitive.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Returns the bare key as a header value, marked as sensitive.
    pub(super) fn bare_header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from(&*self.secret).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Returns true if the key is too short to be distinguished from other text. Such a key is
    /// never masked.
    pub fn is_short(&self) -> bool {
        self.secret.len() < MIN_MASKED_BYTES
    }

    /// Masks the key in a text that is recorded or quoted.
    pub fn scrub(&self, text: &str) -> String {
        if self.is_short() { text.to_owned() } else { text.replace(&*self.secret, MASK) }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for ApiKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

/// A mask for an endpoint's key in recorded data. Without a key it changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Mask(Option<ApiKey>);

impl Mask {
    /// Creates a mask for a key that is long enough to be distinguished from other text.
    pub(super) fn of(key: Option<ApiKey>) -> Self {
        Self(key.filter(|key| !key.is_short()))
    }

    /// Masks the key in a string.
    pub fn text(&self, text: &str) -> String {
        self.0.as_ref().map_or_else(|| text.to_owned(), |key| key.scrub(text))
    }

    /// Masks all texts of a JSON value, including field names.
    pub fn json(&self, value: Value) -> Value {
        if self.0.is_none() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, item)| (self.text(&name), self.json(item))).collect()
            }
            plain => plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_prints_as_a_mask() {
        let key = ApiKey::new(" sk-secret\n").unwrap();
        let shown = format!(
            "{key} {key:?} {key:#?} {:?} {}",
            Some(&key),
            serde_json::to_string(&key).unwrap()
        );
        assert_eq!(shown, "*** *** *** Some(***) \"***\"");
        assert!(key.header().is_sensitive());
        assert_eq!(key.header(), "Bearer sk-secret");
        assert_eq!(key.scrub("a sk-secret, sk-secret!"), "a ***, ***!");
    }

    #[test]
    fn a_text_that_no_header_can_carry_is_not_a_key() {
        for text in ["", "  \n", "two words", "line\nbreak", "ключ", "nul\0"] {
            assert!(ApiKey::new(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_key_that_is_part_of_other_words_is_not_masked() {
        for (key, text, masked) in [
            ("k", "ok", "ok"),
            ("sk-1234", "a sk-1234", "a sk-1234"),
            ("sk-12345", "a sk-12345", "a ***"),
        ] {
            let key = ApiKey::new(key).unwrap();
            assert_eq!(key.is_short(), text == masked);
            assert_eq!(key.scrub(text), masked);
            assert_eq!(Mask::of(Some(key)).text(text), masked);
        }
    }

    #[test]
    fn a_mask_covers_every_text_of_a_value() {
        let mask = Mask::of(ApiKey::new("sk-secret"));
        let value =
            serde_json::json!({"sk-secret": ["a sk-secret", {"b": "sk-secretsk-secret"}, 1, null]});
        assert_eq!(
            mask.json(value.clone()),
            serde_json::json!({"***": ["a ***", {"b": "******"}, 1, null]})
        );
        assert_eq!(Mask::default().json(value.clone()), value);
    }
}

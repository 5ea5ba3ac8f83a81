//! The key for an endpoint that the operator configured. It is sent but never printed.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::clean::{Cleaner, Spellings};
use super::secret::MIN_CHARS;
use crate::client::HeaderValue;

/// Replacement for a key in output.
pub(super) const MARK: &str = "***";

/// A key that is sent to one endpoint and nowhere else. It prints as `***`.
#[derive(Clone)]
pub struct ApiKey(Arc<Inner>);

struct Inner {
    value: String,
    bearer: HeaderValue,
    bare: HeaderValue,
    /// The cleaner that replaces this key with [`MARK`].
    cleaner: OnceLock<Cleaner>,
}

impl ApiKey {
    /// Creates a key from a string. Surrounding whitespace is removed. Returns `None` if the result
    /// is empty or not valid in a header.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let value = text.trim();
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let header = |text: &str| {
            let mut header = HeaderValue::try_from(text).ok()?;
            header.set_sensitive(true);
            Some(header)
        };
        Some(ApiKey(Arc::new(Inner {
            bearer: header(&format!("Bearer {value}"))?,
            bare: header(value)?,
            value: value.to_owned(),
            cleaner: OnceLock::new(),
        })))
    }

    /// Returns the key itself, for use in a request.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0.value
    }

    /// Returns `Bearer KEY` as a header value, marked as sensitive.
    #[must_use]
    pub fn bearer(&self) -> HeaderValue {
        self.0.bearer.clone()
    }

    /// Returns the bare key as a header value, marked as sensitive.
    #[must_use]
    pub fn bare(&self) -> HeaderValue {
        self.0.bare.clone()
    }

    /// Returns true if the key is too short to be distinguished from other text. Such a key is
    /// never masked.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.0.value.len() < MIN_CHARS
    }

    /// Masks the key, in every spelling, in a string that is recorded or quoted.
    #[must_use]
    pub fn scrub(&self, text: &str) -> String {
        if self.is_short() {
            return text.to_owned();
        }
        let Inner { value, cleaner, .. } = &*self.0;
        let made = || {
            let markers = Arc::from([MARK.as_bytes().to_vec()]);
            Spellings::marked(markers, std::iter::once(value.as_str())).cleaner()
        };
        cleaner.get_or_init(made).clean_text(text)
    }
}

impl PartialEq for ApiKey {
    fn eq(&self, other: &ApiKey) -> bool {
        self.0.value == other.0.value
    }
}

impl Eq for ApiKey {}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MARK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_prints_as_a_mask() {
        let key = ApiKey::new(" sk-secret\n").unwrap();
        let shown = format!("{key:?} {key:#?} {:?}", Some(&key));
        assert_eq!(shown, "*** *** Some(***)");
        assert!(key.bearer().is_sensitive() && key.bare().is_sensitive());
        assert_eq!(
            (key.bearer().as_bytes(), key.bare().as_bytes()),
            (&b"Bearer sk-secret"[..], &b"sk-secret"[..])
        );
        assert_eq!(key.scrub("a sk-secret, sk-secret!"), "a ***, ***!");
        assert_eq!(key.scrub("?k=sk%2Dsecret"), "?k=***");
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
        }
    }
}

//! The key of an endpoint: usable, never printable.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use wattle_capability::egress::HeaderValue;

/// What stands where a key stood.
const MASK: &str = "***";

/// Holds a secret that goes out in one header and nowhere else: printed or serialised it reads `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    secret: Arc<str>,
    header: HeaderValue,
}

impl ApiKey {
    /// Takes a key; blanks around it are dropped. `None` where it is empty or no header could carry it.
    pub fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim();
        if secret.is_empty() || !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut header = HeaderValue::try_from(format!("Bearer {secret}")).ok()?;
        header.set_sensitive(true);
        Some(Self { secret: secret.into(), header })
    }

    /// Gives the value of the `authorization` header, marked as sensitive.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Gives the value of a header that holds the bare key, marked as sensitive. `None` where no header can carry it.
    pub(super) fn bare_header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from(&*self.secret).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Masks the key wherever it stands in a text.
    pub fn scrub(&self, text: &str) -> String {
        text.replace(&*self.secret, MASK)
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

/// Masks a key in a text that comes in pieces. It holds back what may be the beginning of the key.
pub(super) struct Scrubber<'a> {
    secret: &'a str,
    held: String,
}

impl<'a> Scrubber<'a> {
    pub(super) fn new(key: Option<&'a ApiKey>) -> Self {
        Self { secret: key.map_or("", |key| &key.secret), held: String::new() }
    }

    /// Takes a piece and gives what is safe to show.
    pub(super) fn push(&mut self, piece: &str) -> String {
        if self.secret.is_empty() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let mut text = self.held.replace(self.secret, MASK);
        // The key is ASCII, so an ending that is a beginning of the key starts at a character.
        let longest = (self.secret.len() - 1).min(text.len());
        let open = (1..=longest).rev().find(|&n| self.secret.get(..n).is_some_and(|start| text.ends_with(start)));
        self.held = open.map(|n| text.split_off(text.len() - n)).unwrap_or_default();
        text
    }

    /// Gives what was held back and did not become the key.
    pub(super) fn finish(self) -> String {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_prints_as_a_mask() {
        let key = ApiKey::new(" sk-secret\n").unwrap();
        let shown = format!("{key} {key:?} {key:#?} {:?} {}", Some(&key), serde_json::to_string(&key).unwrap());
        assert_eq!(shown, "*** *** *** Some(***) \"***\"");
        assert!(key.header().is_sensitive());
        assert_eq!(key.header(), "Bearer sk-secret");
        assert_eq!(key.scrub("a sk-secret, sk-secret!"), "a ***, ***!");
    }

    #[test]
    fn what_cannot_be_a_header_is_no_key() {
        for text in ["", "  \n", "two words", "line\nbreak", "ключ", "nul\0"] {
            assert!(ApiKey::new(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_key_in_pieces_is_masked_wherever_it_is_cut() {
        let key = ApiKey::new("sk-sk-key").unwrap();
        let text = "äsk-sk-sk-key and sk-sk-keysk-sk-key, sk-sk-ke";
        let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        for &first in &bounds {
            for &second in bounds.iter().filter(|&&at| at >= first) {
                let mut scrubber = Scrubber::new(Some(&key));
                let mut shown = String::new();
                for piece in [&text[..first], &text[first..second], &text[second..]] {
                    shown += &scrubber.push(piece);
                }
                shown += &scrubber.finish();
                assert_eq!(shown, key.scrub(text), "cut at {first} and {second}");
            }
        }
        assert_eq!(Scrubber::new(None).push("sk-sk-key"), "sk-sk-key");
    }
}

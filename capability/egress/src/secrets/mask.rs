//! The masking of keys and secrets in recorded text: traces, telemetry, recordings and logs.

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value as Json;

use super::clean::{Cleaner, Spellings, reference};
use super::key::{ApiKey, MARK};
use super::secret::Secret;

/// A mask for text that is recorded. It replaces each endpoint key with `***` and each secret with
/// its reference, in every spelling.
///
/// Clones share their values, and values can be added at any time. Neither the source of a running
/// program nor the text that the user reads is masked.
///
/// A process with several tenants has several masks, because masking reveals the masked values: who
/// sees that their own text was masked knows that it contains a secret.
///
/// ```text
/// whole mask ── logs, telemetry, recordings: only the operator reads them
///  ├─ part ──── records of the operator: the keys, and the operator's secrets
///  ├─ part ──── records of a tenant: the secrets that this tenant may use
///  └─ part ──── records of another tenant
/// ```
///
/// A value that is added to a part is also added to the whole mask, but not to other parts.
///
/// ```
/// # use wattle_egress::secrets::{Mask, Secret};
/// let whole = Mask::default();
/// let (one, other) = (whole.part(), whole.part());
/// one.add_secrets([&Secret::new("pin", "48151623", Vec::new())?]);
/// assert_eq!(one.text("48151623"), "${secret:pin}");
/// assert_eq!(other.text("48151623"), "48151623");
/// assert_eq!(other.whole().text("48151623"), "${secret:pin}");
/// # Ok::<(), wattle_egress::secrets::SecretError>(())
/// ```
#[derive(Clone, Default)]
pub struct Mask {
    own: Arc<RwLock<Masked>>,
    /// The whole mask that this mask is a part of, or `None` if this is a whole mask.
    whole: Option<Arc<Mask>>,
}

#[derive(Default)]
struct Masked {
    /// The keys and secrets to mask, each with its replacement.
    values: Vec<(String, String)>,
    cleaner: Option<(Arc<Spellings>, Cleaner)>,
}

impl Mask {
    /// Returns a new, empty part of the whole mask.
    #[must_use]
    pub fn part(&self) -> Mask {
        Mask { own: Arc::default(), whole: Some(Arc::new(self.whole())) }
    }

    /// Returns this mask if it is a part. Otherwise returns a new part that has the values of this
    /// mask.
    #[must_use]
    pub fn as_part(&self) -> Mask {
        if self.whole.is_some() {
            return self.clone();
        }
        let part = self.part();
        let values = self.own.read().unwrap_or_else(PoisonError::into_inner).values.clone();
        part.add(values);
        part
    }

    /// Returns the whole mask that this mask is a part of, or this mask if it is not a part.
    #[must_use]
    pub fn whole(&self) -> Mask {
        self.whole.as_deref().unwrap_or(self).clone()
    }

    /// Adds a key, unless it is too short to be distinguished from other text.
    pub fn add_key(&self, key: &ApiKey) {
        if !key.is_short() {
            self.add([(key.reveal().to_owned(), MARK.to_owned())]);
        }
    }

    /// Adds secrets.
    pub fn add_secrets<'a>(&self, secrets: impl IntoIterator<Item = &'a Secret>) {
        self.add(secrets.into_iter().map(|s| (s.reveal().to_owned(), reference(s.name()))));
    }

    /// Adds the current value of a secret that changes from time to time, such as a token. Of its
    /// earlier values, only the last one stays.
    pub fn renew_secret(&self, secret: &Secret) {
        let mark = reference(secret.name());
        let mut masked = self.own.write().unwrap_or_else(PoisonError::into_inner);
        if masked.values.iter().any(|(known, _)| known == secret.reveal()) {
            return;
        }
        let last = masked.values.iter().rposition(|(_, of)| *of == mark);
        let mut positions = 0..;
        let removed: Vec<(String, String)> = masked
            .values
            .extract_if(.., |(_, of)| {
                let position = positions.next();
                *of == mark && position != last
            })
            .collect();
        drop(masked);
        if let Some(whole) = &self.whole {
            let mut masked = whole.own.write().unwrap_or_else(PoisonError::into_inner);
            masked.values.retain(|value| !removed.contains(value));
        }
        self.add_secrets([secret]);
    }

    fn add(&self, more: impl IntoIterator<Item = (String, String)>) {
        let more: Vec<(String, String)> = more.into_iter().collect();
        if let Some(whole) = &self.whole {
            whole.add(more.iter().cloned());
        }
        let mut masked = self.own.write().unwrap_or_else(PoisonError::into_inner);
        let before = masked.values.len();
        for (value, mark) in more {
            if !masked.values.iter().any(|(known, _)| *known == value) {
                masked.values.push((value, mark));
            }
        }
        if masked.values.len() > before {
            let marks = masked.values.iter().map(|(_, mark)| mark.clone().into_bytes()).collect();
            let values = masked.values.iter().map(|(value, _)| value.as_str());
            let spellings = Arc::new(Spellings::marked(marks, values));
            let cleaner = spellings.cleaner();
            masked.cleaner = Some((spellings, cleaner));
        }
    }

    /// Returns the spellings to search for and the cleaner that replaces them, or `None` if there
    /// is nothing to mask.
    fn parts(&self) -> Option<(Arc<Spellings>, Cleaner)> {
        self.own.read().unwrap_or_else(PoisonError::into_inner).cleaner.clone()
    }

    /// Returns true if there is nothing to mask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts().is_none()
    }

    /// Returns true if a string contains a key or a secret.
    #[must_use]
    pub fn finds(&self, text: &[u8]) -> bool {
        self.parts().is_some_and(|(spellings, _)| spellings.find([text]).is_some())
    }

    /// Returns true if a string, number or field name in a JSON value contains a key or a secret.
    #[must_use]
    pub fn finds_in(&self, value: &Json) -> bool {
        self.parts().is_some_and(|(spellings, _)| is_in(&spellings, value))
    }

    /// Masks a string.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        self.parts().map_or_else(|| text.to_owned(), |(_, cleaner)| cleaner.clean_text(text))
    }

    /// Masks all strings and numbers in a JSON value, including field names, and JSON within its
    /// strings.
    #[must_use]
    pub fn json(&self, value: Json) -> Json {
        match self.parts() {
            Some((_, cleaner)) => masked(&cleaner, value),
            None => value,
        }
    }
}

fn is_in(spellings: &Spellings, value: &Json) -> bool {
    let finds = |text: &str| spellings.find([text.as_bytes()]).is_some();
    match value {
        Json::String(text) => finds(text) || nested(text).is_some_and(|v| is_in(spellings, &v)),
        Json::Array(items) => items.iter().any(|item| is_in(spellings, item)),
        Json::Object(fields) => {
            fields.iter().any(|(name, item)| finds(name) || is_in(spellings, item))
        }
        Json::Number(number) => finds(&number.to_string()),
        Json::Bool(_) | Json::Null => false,
    }
}

/// Parses a string that contains a JSON array or object, such as the arguments of a call. Returns
/// `None` for any other string.
fn nested(text: &str) -> Option<Json> {
    text.trim_start().starts_with(['[', '{']).then(|| serde_json::from_str(text).ok())?
}

fn masked(cleaner: &Cleaner, value: Json) -> Json {
    match value {
        Json::String(text) => {
            let inner = nested(&text).and_then(|inner| {
                let clean = masked(cleaner, inner.clone());
                (clean != inner).then(|| clean.to_string())
            });
            Json::String(inner.unwrap_or_else(|| cleaner.clean_text(&text)))
        }
        Json::Array(items) => items.into_iter().map(|item| masked(cleaner, item)).collect(),
        Json::Object(fields) => fields
            .into_iter()
            .map(|(name, item)| (cleaner.clean_text(&name), masked(cleaner, item)))
            .collect(),
        Json::Number(number) => {
            let digits = number.to_string();
            let clean = cleaner.clean_text(&digits);
            if clean == digits { Json::Number(number) } else { Json::String(clean) }
        }
        plain => plain,
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values = self.own.read().unwrap_or_else(PoisonError::into_inner).values.len();
        write!(f, "Mask({values} values)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mask() -> Mask {
        let mask = Mask::default();
        mask.add_key(&ApiKey::new("sk-secret").unwrap());
        mask.add_secrets([&Secret::new("pin", "12345678", Vec::new()).unwrap()]);
        mask
    }

    #[test]
    fn a_mask_covers_every_text_and_number_of_a_value() {
        let texts = json!(["a sk-secret", {"b": "sk-secretsk%2dsecret"}, 1, null]);
        let value = json!({"sk-secret": texts, "n": 12345678});
        let masked = json!({"***": ["a ***", {"b": "******"}, 1, null], "n": "${secret:pin}"});
        assert_eq!(mask().json(value.clone()), masked);
        assert_eq!(Mask::default().json(value.clone()), value);
        assert!(mask().finds_in(&value) && mask().finds(value.to_string().as_bytes()));
        assert!(!mask().finds_in(&masked) && !mask().finds(masked.to_string().as_bytes()));
        let nested = json!({"body": "(ret \"\\73\\6b-secret\")"});
        assert!(mask().finds_in(&nested));
        assert_eq!(mask().json(nested.clone()), json!({"body": "(ret \"***\")"}));
        let arguments = json!(nested.to_string());
        assert!(mask().finds_in(&arguments));
        assert_eq!(mask().json(arguments), json!("{\"body\":\"(ret \\\"***\\\")\"}"));
    }

    #[test]
    fn a_value_that_is_added_later_is_masked_by_every_clone() {
        let mask = mask();
        let clone = mask.clone();
        assert_eq!(clone.text("sk-other, sk-secret"), "sk-other, ***");
        mask.add_key(&ApiKey::new("sk-other").unwrap());
        mask.add_key(&ApiKey::new("other").unwrap());
        assert_eq!(clone.text("sk-other, sk-secret, other"), "***, ***, other");
        assert_eq!(format!("{clone:?}"), "Mask(3 values)");
    }

    #[test]
    fn a_part_masks_only_its_own_values_and_the_whole_mask_masks_all() {
        let whole = mask();
        let (operators, tenants, others) = (whole.as_part(), whole.part(), whole.part().part());
        let secret = |value: &str| Secret::new("t", value, Vec::new()).unwrap();
        tenants.renew_secret(&secret("token-of-a-tenant"));
        for value in ["token-one", "token-two", "token-three"] {
            others.renew_secret(&secret(value));
        }
        operators.as_part().add_key(&ApiKey::new("sk-later").unwrap());
        let text = "sk-secret sk-later token-of-a-tenant token-one token-three";
        assert_eq!(operators.text(text), "*** *** token-of-a-tenant token-one token-three");
        assert_eq!(tenants.text(text), "sk-secret sk-later ${secret:t} token-one token-three");
        assert_eq!(others.text(text), "sk-secret sk-later token-of-a-tenant token-one ${secret:t}");
        for whole in [whole, operators.whole(), others.whole().whole()] {
            assert_eq!(whole.text(text), "*** *** ${secret:t} token-one ${secret:t}");
        }
    }

    #[test]
    fn a_secret_that_is_renewed_keeps_its_last_value() {
        let mask = mask();
        for value in ["token-one", "token-two", "token-two", "token-three"] {
            mask.renew_secret(&Secret::new("t", value, Vec::new()).unwrap());
        }
        assert_eq!(
            mask.text("token-one token-two token-three 12345678"),
            "token-one ${secret:t} ${secret:t} ${secret:pin}"
        );
    }
}

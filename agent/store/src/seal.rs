//! The encryption of records that contain an API key or a secret.
//!
//! A journal must be exact, because runs are resumed from it. The messages of a session must be
//! exact, too. Therefore a record that contains an API key or a secret is not masked, but encrypted
//! with the tenant's encryption key, which is stored next to the store. All other records are
//! stored unencrypted.
//!
//! A process that has read an encrypted record encrypts all records that it writes afterwards,
//! because they may contain the secret value, which the process does not know.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::Serialize;
use serde_json::Value as Json;
use wattle_capability::secrets::Mask;

use super::TenantStore;
use crate::error::Cause;
use crate::ledger::{Cipher, Keys};
use crate::tenant::Tenant;

/// The prefix of an encrypted record. The nonce and the ciphertext follow it, encoded in base64.
pub(super) const SEALED_PREFIX: &str = "\x01wattle:sealed:";

/// The encryption of one tenant's records.
pub(super) struct RecordSeal {
    mask: Mask,
    keys: Keys,
    tenant: Tenant,
    /// The tenant's key, set when the first record needs it.
    cipher: OnceLock<Cipher>,
    /// If true, this process has read an encrypted record.
    opened: AtomicBool,
}

impl RecordSeal {
    pub(super) fn new(mask: Mask, keys: Keys, tenant: Tenant) -> RecordSeal {
        RecordSeal { mask, keys, tenant, cipher: OnceLock::new(), opened: AtomicBool::new(false) }
    }

    /// Returns true if a record must be encrypted. If the record is JSON, its strings are also
    /// searched in decoded form, because they may contain escapes.
    fn needs(&self, record: &[u8]) -> bool {
        let in_json =
            || serde_json::from_slice(record).is_ok_and(|value: Json| self.mask.finds_in(&value));
        self.opened.load(Ordering::Relaxed)
            || !self.mask.is_empty() && (self.mask.finds(record) || in_json())
    }

    /// Returns true if a value must be encrypted: its strings contain an API key or a secret, or
    /// this process has read an encrypted record.
    pub(super) fn needs_for(&self, value: &impl Serialize) -> Result<bool, Cause> {
        Ok(self.opened.load(Ordering::Relaxed)
            || !self.mask.is_empty() && self.mask.finds_in(&serde_json::to_value(value)?))
    }

    /// Encrypts a string.
    pub(super) fn seal_text(&self, text: &str) -> Result<String, Cause> {
        Ok(String::from_utf8(self.seal(text.as_bytes())?)?)
    }

    fn cipher(&self) -> Result<&Cipher, Cause> {
        if let Some(cipher) = self.cipher.get() {
            return Ok(cipher);
        }
        let cipher = self.keys.cipher(self.tenant.as_str())?;
        Ok(self.cipher.get_or_init(|| cipher))
    }

    /// Returns the associated data that is authenticated with each record.
    fn context(&self) -> Vec<u8> {
        [self.tenant.as_str().as_bytes(), b"\0\0record"].concat()
    }

    fn seal(&self, record: &[u8]) -> Result<Vec<u8>, Cause> {
        let sealed = self.cipher()?.seal(&self.context(), record)?;
        Ok(stored_form(&sealed).into_bytes())
    }

    /// Encrypts a text like [`seal_text`](RecordSeal::seal_text), but always to the same string.
    fn seal_same(&self, text: &str) -> Result<String, Cause> {
        Ok(stored_form(&self.cipher()?.seal_same(&self.context(), text.as_bytes())?))
    }

    fn open(&self, text: &[u8]) -> Result<Vec<u8>, Cause> {
        const CHANGED: &str = "an encrypted record or its key was changed";
        if !self.keys.has_cipher(self.tenant.as_str()) {
            return Err("the key of an encrypted record is missing".into());
        }
        let sealed = STANDARD_NO_PAD.decode(text).map_err(|_| CHANGED)?;
        let record = self.cipher()?.open(&self.context(), &sealed);
        self.opened.store(true, Ordering::Relaxed);
        Ok(record.ok_or(CHANGED)?)
    }
}

/// Returns the stored form of a ciphertext.
fn stored_form(sealed: &[u8]) -> String {
    format!("{SEALED_PREFIX}{}", STANDARD_NO_PAD.encode(sealed))
}

/// The stored forms of a text that is stored only once. The work to find them is the same whether
/// the text must be encrypted or not, and so is the result of a search for them. Therefore a caller
/// cannot observe if a text contains a secret.
pub(super) struct SameText {
    /// The form in which the text must be stored now.
    pub(super) stored: String,
    /// The form in which an equal text may have been stored earlier, or `None` if there is no such
    /// form.
    pub(super) other: Option<String>,
}

impl SameText {
    pub(super) fn new(seal: Option<&RecordSeal>, text: &str) -> Result<SameText, Cause> {
        let Some(seal) = seal else {
            return Ok(SameText { stored: seal_text(None, text)?, other: None });
        };
        if text.starts_with(SEALED_PREFIX) {
            // It is never stored unencrypted.
            return Ok(SameText { stored: seal.seal_same(text)?, other: None });
        }
        let needs = seal.needs(text.as_bytes());
        let has_key = seal.keys.has_cipher(seal.tenant.as_str());
        let sealed = (needs || has_key).then(|| seal.seal_same(text)).transpose()?;
        Ok(match sealed {
            Some(sealed) if needs => SameText { stored: sealed, other: Some(text.to_owned()) },
            other => SameText { stored: text.to_owned(), other },
        })
    }
}

impl TenantStore {
    /// Makes the store encrypt each record, such as a turn, a call or a message, that contains a
    /// value from `mask`. The tenant's key comes from `keys`, and is created when it is first
    /// needed. Reading an encrypted record requires the key, but not the values in `mask`.
    ///
    /// The mask must contain no secrets of other tenants. Otherwise the tenant could find them out by
    /// observing which of its records are encrypted, for example by their size.
    #[must_use]
    pub fn sealing(self, mask: Mask, keys: Keys) -> TenantStore {
        let seal = RecordSeal::new(mask.clone(), keys, self.tenant.clone());
        TenantStore { seal: Some(Arc::new(seal)), mask: Some(mask), ..self }
    }

    /// Replaces the mask for the tenant's records. If the store encrypts records, it now encrypts
    /// those that contain a value from `mask`, and none because of values in the earlier mask.
    #[must_use]
    pub fn with_mask(self, mask: Mask) -> TenantStore {
        match self.seal.as_deref() {
            Some(RecordSeal { keys, .. }) => {
                let keys = keys.clone();
                self.sealing(mask, keys)
            }
            None => TenantStore { mask: Some(mask), ..self },
        }
    }

    /// Returns the mask for the tenant's records, or `None` if no mask was set.
    #[must_use]
    pub fn mask(&self) -> Option<&Mask> {
        self.mask.as_ref()
    }
}

/// Returns the stored form of a record, encrypted if necessary.
pub(super) fn seal_bytes(seal: Option<&RecordSeal>, record: Vec<u8>) -> Result<Vec<u8>, Cause> {
    let is_ambiguous = record.starts_with(SEALED_PREFIX.as_bytes());
    match seal {
        Some(seal) if is_ambiguous || seal.needs(&record) => seal.seal(&record),
        None if is_ambiguous => Err("a record starts like an encrypted one".into()),
        _ => Ok(record),
    }
}

/// Restores a record from its stored form, decrypting it if necessary.
pub(super) fn open_bytes(seal: Option<&RecordSeal>, stored: Vec<u8>) -> Result<Vec<u8>, Cause> {
    match (stored.strip_prefix(SEALED_PREFIX.as_bytes()), seal) {
        (None, _) => Ok(stored),
        (Some(text), Some(seal)) => seal.open(text),
        (Some(_), None) => {
            Err("a record is encrypted, and the store was opened without keys".into())
        }
    }
}

/// Returns the stored form of a string, encrypted if necessary.
pub(super) fn seal_text<'a>(
    seal: Option<&RecordSeal>,
    text: impl Into<Cow<'a, str>>,
) -> Result<String, Cause> {
    Ok(String::from_utf8(seal_bytes(seal, text.into().into_owned().into_bytes())?)?)
}

/// Restores a string from its stored form, decrypting it if necessary.
pub(super) fn open_text(seal: Option<&RecordSeal>, stored: String) -> Result<String, Cause> {
    Ok(String::from_utf8(open_bytes(seal, stored.into_bytes())?)?)
}

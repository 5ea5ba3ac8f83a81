//! Secrets by reference: a program writes `${secret:NAME}` in a header or a body, and never sees
//! the value.
//!
//! When the request is sent, the reference is replaced with the value, but only if the secret may
//! be sent to the requested host. In the response, every spelling of a value is replaced with the
//! reference again. This applies to all secrets for the requested hosts, and to all secrets that
//! the run has sent. A request is denied if the program itself wrote the value of a secret into
//! it. The secrets are kept in a [`Secrets`] store.
//!
//! There are three mechanisms, and each finds a value in every spelling:
//! - for requests, `KnownSecrets::refuse_request` denies a request that contains a value;
//! - for responses, `KnownSecrets::cleaner` replaces values with references;
//! - for records, a [`Mask`] replaces keys and secrets. The source of a running program is never
//!   masked.

mod automaton;
mod clean;
mod escape;
mod key;
mod mask;
#[cfg(test)]
mod reference;
mod secret;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vault_tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use memchr::memmem;
use url::Url;
use wattle_rt::{Code, Config, Failure, Guard, PortFuture};

use crate::client::{HeaderName, HeaderValue};
use crate::request::Request;

use clean::Spellings;
pub(crate) use clean::{CleanStream, Cleaner};
pub use key::ApiKey;
pub use mask::Mask;
use secret::MAX_NAME;
pub use secret::{Secret, SecretError, SecretHost};

/// Maximum number of body bytes that are searched together with the URL and the headers. A secret
/// in any common encoding fits within this limit.
const MAX_JOINED: usize = 64 << 10;

/// Prefix of a reference.
const PREFIX: &[u8] = b"${secret:";

/// A store of secrets.
pub trait Secrets: Send + Sync {
    /// Returns the secret with the given name, or `None` if it does not exist. Fails with `EACCESS`
    /// or `EREMOTE` if the secret is not available.
    fn find(&self, name: String) -> PortFuture<'_, Option<Secret>>;

    /// Returns all secrets in the store. A program's request that contains the value of one of them
    /// is denied, and values are replaced with references in responses. If the store cannot be
    /// read, no request is sent.
    fn all(&self) -> PortFuture<'_, Vec<Secret>>;
}

/// A fixed list of secrets. An entry may be an error that says why the secret is not available.
#[derive(Clone, Debug, Default)]
pub struct SecretList(BTreeMap<String, Result<Secret, String>>);

impl SecretList {
    /// Creates a list from pairs of a name and a secret or an error.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = (String, Result<Secret, String>)>) -> Self {
        SecretList(entries.into_iter().collect())
    }
}

impl Secrets for SecretList {
    fn find(&self, name: String) -> PortFuture<'_, Option<Secret>> {
        let found =
            self.0.get(&name).cloned().transpose().map_err(|why| Failure::new(Code::EACCESS, why));
        Box::pin(async { found })
    }

    fn all(&self) -> PortFuture<'_, Vec<Secret>> {
        let all = self.0.values().filter_map(|entry| entry.as_ref().ok()).cloned().collect();
        Box::pin(async { Ok(all) })
    }
}

/// A sequence of stores. A lookup returns the secret from the first store that contains the name.
pub struct SecretChain(pub Vec<Arc<dyn Secrets>>);

impl Secrets for SecretChain {
    fn find(&self, name: String) -> PortFuture<'_, Option<Secret>> {
        Box::pin(async move {
            for store in &self.0 {
                if let Some(secret) = store.find(name.clone()).await? {
                    return Ok(Some(secret));
                }
            }
            Ok(None)
        })
    }

    fn all(&self) -> PortFuture<'_, Vec<Secret>> {
        Box::pin(async move {
            let mut all = Vec::new();
            for store in &self.0 {
                all.extend(store.all().await?);
            }
            Ok(all)
        })
    }
}

/// A run's view of a store of secrets. It keeps track of the secrets that the run has sent.
pub struct Vault {
    secrets: Arc<dyn Secrets>,
    /// The secrets in the store, which is read on the first request.
    known: Mutex<Option<Arc<KnownSecrets>>>,
    /// The mask for the run's records.
    mask: OnceLock<Mask>,
}

/// All secrets of a store, prepared for searching.
pub(crate) struct KnownSecrets {
    secrets: Vec<Secret>,
    /// For each secret, true if the run has sent it.
    sent: Vec<AtomicBool>,
    spellings: Spellings,
}

impl KnownSecrets {
    fn new(secrets: Vec<Secret>) -> KnownSecrets {
        let spellings =
            Spellings::new(secrets.iter().map(|secret| (secret.name(), secret.reveal())));
        KnownSecrets {
            sent: secrets.iter().map(|_| AtomicBool::new(false)).collect(),
            secrets,
            spellings,
        }
    }

    /// Returns a copy that also contains `secret`, even if another secret has the same name.
    fn with(&self, secret: Secret) -> KnownSecrets {
        let more = KnownSecrets::new(self.secrets.iter().cloned().chain([secret]).collect());
        for (to, from) in more.sent.iter().zip(&self.sent) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        more
    }

    fn position(&self, secret: &Secret) -> Option<usize> {
        self.secrets
            .iter()
            .position(|known| known.name() == secret.name() && known.reveal() == secret.reveal())
    }

    /// Returns the cleaner for responses from `urls`. It replaces the secrets for the hosts of
    /// those URLs, and the secrets that the run has sent.
    pub(crate) fn cleaner(&self, urls: &[Url]) -> Cleaner {
        let wanted = self.secrets.iter().zip(&self.sent).map(|(secret, sent)| {
            sent.load(Ordering::Relaxed) || urls.iter().any(|url| secret.is_for(url))
        });
        self.spellings.cleaner_of(wanted.collect())
    }

    /// Returns the cleaner that replaces every secret.
    pub(crate) fn cleaner_of_all(&self) -> Cleaner {
        self.spellings.cleaner()
    }

    /// Checks that a program's request contains no secret, in any single part or across parts.
    pub(crate) fn refuse_request(&self, request: &Request) -> Result<(), Failure> {
        let Request { method, url, headers, body } = request;
        self.refuse("the method", method.as_str().as_bytes())?;
        self.refuse("the URL", url.as_bytes())?;
        // The URL parser removes line breaks and tabs and decodes hosts.
        let joined: String = url.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
        self.refuse("the URL", joined.as_bytes())?;
        let parsed = Url::parse(url).map(String::from).unwrap_or_default();
        self.refuse("the URL", parsed.as_bytes())?;
        for (name, value) in headers {
            self.refuse("the name of a header", name.as_str().as_bytes())?;
            self.refuse(&format!("the header `{name}`"), value.as_bytes())?;
        }
        self.refuse("the body", body)?;
        let across = |parts: Vec<&[u8]>| {
            self.refuse_parts("the request, across its URL, headers and body,", parts)
        };
        let head = body.get(..body.len().min(MAX_JOINED)).unwrap_or_default();
        let values = headers.values().map(HeaderValue::as_bytes);
        // The host adds this header to those of the program.
        let is_own = |name: &HeaderName| name.as_str() != "idempotency-key";
        let own = headers.iter().filter(|(name, _)| is_own(name)).map(|(_, v)| v.as_bytes());
        across([joined.as_bytes()].into_iter().chain(values).chain([head]).collect())?;
        across(vec![joined.as_bytes(), head])?;
        across(own.chain([head]).collect())
    }

    /// Checks that a part of a request contains no secret. `what` names the part in the error.
    pub(crate) fn refuse(&self, what: &str, text: &[u8]) -> Result<(), Failure> {
        self.refuse_parts(what, [text])
    }

    fn refuse_parts<'a>(
        &self,
        what: &str,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Failure> {
        let found = self.spellings.find(parts).and_then(|found| self.secrets.get(found));
        let Some(name) = found.map(Secret::name) else { return Ok(()) };
        let words = format!(
            "{what} contains the value of the secret `{name}`, which no program may send; write \
             `${{secret:{name}}}` into a header or the body in its place"
        );
        Err(Failure::new(Code::EACCESS, words))
    }

    /// Checks that the URL of a redirect contains no secret that belongs to other hosts.
    pub(crate) fn refuse_redirect(&self, url: &Url) -> Result<(), String> {
        let found = self
            .spellings
            .find([url.as_str().as_bytes()])
            .and_then(|found| self.secrets.get(found));
        match found.filter(|secret| !secret.is_for(url)) {
            Some(secret) => Err(format!(
                "its URL contains the value of the secret `{}`, which is not for that host",
                secret.name()
            )),
            None => Ok(()),
        }
    }
}

impl Config for Vault {
    const CAPABILITIES: &'static [&'static str] = &[];
}

impl Default for Vault {
    /// Creates a vault without secrets.
    fn default() -> Self {
        Vault::new(Arc::new(SecretList::default()))
    }
}

/// The parts of a request in which references were replaced with the values of secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilledParts {
    /// If true, the body contains a secret.
    pub(crate) body: bool,
}

impl Vault {
    /// Creates a vault with the secrets of a store.
    #[must_use]
    pub fn new(secrets: Arc<dyn Secrets>) -> Self {
        Vault { secrets, known: Mutex::default(), mask: OnceLock::new() }
    }

    /// Adds all secrets to the mask for the run's records. A secret that is set later is added when
    /// the run sends it.
    ///
    /// # Errors
    /// If the secrets cannot be read.
    pub async fn mask_in(&self, mask: &Mask) -> Result<(), Failure> {
        mask.add_secrets(&self.known().await?.secrets);
        self.mask.get_or_init(|| mask.clone());
        Ok(())
    }

    /// Returns all secrets. Reads the store only once.
    pub(crate) async fn known(&self) -> Result<Arc<KnownSecrets>, Failure> {
        let read = || self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = read() {
            return Ok(known);
        }
        let all = KnownSecrets::new(self.secrets.all().await?);
        Ok(Arc::clone(
            self.known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_with(|| Arc::new(all)),
        ))
    }

    /// Records that the run sends a secret.
    async fn mark_sent(&self, secret: &Secret) -> Result<(), Failure> {
        let known = self.known().await?;
        let known = match known.position(secret) {
            Some(_) => known,
            None => {
                self.mask.get().inspect(|mask| mask.add_secrets([secret]));
                let mut slot = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(slot.insert(Arc::new(known.with(secret.clone()))))
            }
        };
        let sent = known.position(secret).and_then(|at| known.sent.get(at));
        sent.into_iter().for_each(|sent| sent.store(true, Ordering::Relaxed));
        Ok(())
    }

    /// Replaces references in a request with the values of the secrets that `guard` allows. Marks
    /// each header that contains a secret as sensitive, so that it is not sent to another origin.
    pub(crate) async fn fill(
        &self,
        request: &mut Request,
        guard: Option<&dyn Guard>,
    ) -> Result<FilledParts, Failure> {
        if memmem::find(request.url.as_bytes(), PREFIX).is_some() {
            let words = "a URL carries no secret: servers and proxies write URLs down; put it \
                         into a header or the body";
            return Err(Failure::new(Code::EACCESS, words));
        }
        let mut filled = FilledParts::default();
        let refers = |bytes: &[u8]| memmem::find(bytes, PREFIX).is_some();
        if !refers(&request.body) && !request.headers.values().any(|value| refers(value.as_bytes()))
        {
            return Ok(filled);
        }
        let url = Url::parse(&request.url).map_err(|why| {
            Failure::new(Code::EPARSE, format!("a secret needs a URL to go to: {why}"))
        })?;
        for (name, value) in &mut request.headers {
            let Some(text) = self.replace_references(value.as_bytes(), &url, guard).await? else {
                continue;
            };
            *value = HeaderValue::from_bytes(&text).map_err(|_| {
                let words = format!(
                    "a secret for the header {name:?} has a character that headers cannot carry"
                );
                Failure::new(Code::EPARSE, words)
            })?;
            value.set_sensitive(true);
        }
        if let Some(body) = self.replace_references(&request.body, &url, guard).await? {
            request.body = body.into();
            filled.body = true;
        }
        Ok(filled)
    }

    /// Returns a string with its references replaced, or `None` if it contains no references. An
    /// incomplete reference remains unchanged.
    async fn replace_references(
        &self,
        text: &[u8],
        url: &Url,
        guard: Option<&dyn Guard>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let mut out = Vec::new();
        let mut rest = text;
        let mut any = false;
        while let Some((before, after_prefix)) = split_prefix(rest) {
            out.extend_from_slice(before);
            let Some((name, after)) = split_name(after_prefix) else {
                out.extend_from_slice(PREFIX);
                rest = after_prefix;
                continue;
            };
            guard
                .map_or(Ok(()), |guard| guard.secret(name))
                .map_err(|why| Failure::new(Code::EACCESS, why))?;
            out.extend_from_slice(self.secret_for(name, url).await?.reveal().as_bytes());
            (rest, any) = (after, true);
        }
        out.extend_from_slice(rest);
        Ok(any.then_some(out))
    }

    /// Returns the secret with the given name and records that the run sends it. Fails if the
    /// secret does not exist or may not be sent to the URL.
    async fn secret_for(&self, name: &str, url: &Url) -> Result<Secret, Failure> {
        let denied = |words: String| Failure::new(Code::EACCESS, words);
        let Some(secret) = self.secrets.find(name.to_owned()).await? else {
            let words = format!(
                "there is no secret `{name}`; the operator defines it as `[secrets.{name}]` in \
                 the user file, or by `wattle vars set --secret`"
            );
            return Err(denied(words));
        };
        secret.admits(url).map_err(denied)?;
        self.mark_sent(&secret).await?;
        Ok(secret)
    }
}

/// Splits a string at the first `${secret:`. Returns the parts before and after this prefix, or
/// `None` if the string does not contain it.
fn split_prefix(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memmem::find(text, PREFIX)?;
    Some((text.get(..at)?, text.get(at + PREFIX.len()..)?))
}

/// Splits the text that follows `${secret:` into the secret's name and the text after the
/// reference. Returns `None` if the reference is incomplete.
fn split_name(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text.iter().take(MAX_NAME + 1).position(|byte| *byte == b'}')?;
    let name = std::str::from_utf8(text.get(..end)?).ok().filter(|name| Secret::is_name(name))?;
    Some((name, text.get(end + 1..)?))
}

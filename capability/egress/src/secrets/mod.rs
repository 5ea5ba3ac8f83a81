//! Secrets by reference: a program says `${secret:NAME}` in a header or a body, and never holds what stands for it.
//!
//! The host puts the value in where the request leaves, for the hosts that the secret is for and for no others, and takes it out of
//! everything that comes back: whatever spelling it has there, every secret that is for a host that was asked. A request in which a
//! program spells a secret itself is refused. Where secrets are kept is the affair of a [`Secrets`] store.

mod automaton;
mod escape;
#[cfg(test)]
mod reference;
mod secret;
mod spellings;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use wattle_rt::{Code, Config, Failure};

use crate::backend::Request;
use crate::{HeaderValue, Url};
use wattle_rt::PortFuture;

pub use secret::{Secret, SecretError, SecretHost};
use spellings::Spellings;
pub use spellings::{CleanStream, Cleaner};

/// What a reference begins with.
const BEGIN: &[u8] = b"${secret:";

/// The longest name of a secret, in bytes.
const NAME: usize = 64;

/// Where secrets are kept.
pub trait Secrets: Send + Sync {
    /// The secret of that name; `None` where there is none. One that cannot be had is told as `EACCESS` or `EREMOTE`.
    fn find(&self, name: String) -> PortFuture<'_, Option<Secret>>;

    /// All secrets that there are: what no program may spell, and no answer show. If they cannot be read, nothing is sent.
    fn all(&self) -> PortFuture<'_, Vec<Secret>>;
}

/// Secrets that are all known from the start. An entry without a secret says why.
#[derive(Clone, Debug, Default)]
pub struct Listed(BTreeMap<String, Result<Secret, String>>);

impl Listed {
    /// Takes the secrets by their names.
    #[must_use]
    pub fn new(entries: impl IntoIterator<Item = (String, Result<Secret, String>)>) -> Self {
        Listed(entries.into_iter().collect())
    }
}

impl Secrets for Listed {
    fn find(&self, name: String) -> PortFuture<'_, Option<Secret>> {
        let found = self.0.get(&name).cloned().transpose().map_err(|why| Failure::new(Code::EACCESS, why));
        Box::pin(async { found })
    }

    fn all(&self) -> PortFuture<'_, Vec<Secret>> {
        let all = self.0.values().filter_map(|entry| entry.as_ref().ok()).cloned().collect();
        Box::pin(async { Ok(all) })
    }
}

/// Several stores: the first that has a secret of that name gives it.
pub struct FirstOf(pub Vec<Arc<dyn Secrets>>);

impl Secrets for FirstOf {
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

/// Grants the secrets of a store to the requests of one run.
pub struct Vault {
    secrets: Arc<dyn Secrets>,
    /// What the store has, read at the first request.
    known: Mutex<Option<Arc<Known>>>,
}

/// All secrets of a store, ready to be found in texts.
pub struct Known {
    secrets: Vec<Secret>,
    /// For each of them, whether it has left in this run.
    used: Vec<AtomicBool>,
    spellings: Spellings,
}

impl Known {
    fn new(secrets: Vec<Secret>) -> Known {
        let spellings = Spellings::new(secrets.iter().map(|secret| (secret.name(), secret.reveal())));
        Known { used: secrets.iter().map(|_| AtomicBool::new(false)).collect(), secrets, spellings }
    }

    /// These and one more, or with another value of its name.
    fn and(&self, secret: Secret) -> Known {
        let more = Known::new(self.secrets.iter().cloned().chain([secret]).collect());
        for (to, from) in more.used.iter().zip(&self.used) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        more
    }

    fn position(&self, secret: &Secret) -> Option<usize> {
        self.secrets.iter().position(|own| own.name() == secret.name() && own.reveal() == secret.reveal())
    }

    /// Returns what cleans answers of those URLs: of every secret that is for one of them, and of those that have left in this run.
    pub fn cleaner(&self, urls: &[Url]) -> Cleaner {
        let wanted = self
            .secrets
            .iter()
            .zip(&self.used)
            .map(|(secret, used)| used.load(Ordering::Relaxed) || urls.iter().any(|url| secret.is_for(url)));
        self.spellings.cleaner_of(wanted.collect())
    }

    /// Refuses a part of a request that spells a secret; `what` names the part.
    pub fn refuse(&self, what: &str, text: &[u8]) -> Result<(), Failure> {
        let Some(secret) = self.spellings.find(text).and_then(|found| self.secrets.get(found)) else { return Ok(()) };
        let name = secret.name();
        let words = format!(
            "{what} contains the value of the secret `{name}`, which no program may send; write `${{secret:{name}}}` into a header or \
             the body in its place"
        );
        Err(Failure::new(Code::EACCESS, words))
    }

    /// Refuses a redirect whose URL takes a secret to a host that it is not for.
    pub fn refuse_redirect(&self, url: &Url) -> Result<(), String> {
        let found = self.spellings.find(url.as_str().as_bytes()).and_then(|found| self.secrets.get(found));
        match found.filter(|secret| !secret.is_for(url)) {
            Some(secret) => {
                Err(format!("its URL contains the value of the secret `{}`, which is not for that host", secret.name()))
            }
            None => Ok(()),
        }
    }
}

impl Config for Vault {
    const CAPABILITY: &'static str = "http";
}

impl Default for Vault {
    /// Holds no secrets.
    fn default() -> Self {
        Vault::new(Arc::new(Listed::default()))
    }
}

/// What was put into a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// The body has a secret in it.
    pub body: bool,
}

impl Vault {
    /// Grants those secrets.
    #[must_use]
    pub fn new(secrets: Arc<dyn Secrets>) -> Self {
        Vault { secrets, known: Mutex::default() }
    }

    /// Returns all secrets.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn known(&self) -> Result<Arc<Known>, Failure> {
        let read = || self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = read() {
            return Ok(known);
        }
        let all = Known::new(self.secrets.all().await?);
        Ok(Arc::clone(self.known.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| Arc::new(all))))
    }

    /// Notes that a secret leaves.
    async fn use_up(&self, secret: &Secret) -> Result<(), Failure> {
        let known = self.known().await?;
        let known = match known.position(secret) {
            Some(_) => known,
            None => {
                let mut slot = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(slot.insert(Arc::new(known.and(secret.clone()))))
            }
        };
        let used = known.position(secret).and_then(|at| known.used.get(at));
        used.into_iter().for_each(|used| used.store(true, Ordering::Relaxed));
        Ok(())
    }

    /// Puts the values in place of the references of a request. A header that gets one is marked as sensitive, so that it stays with
    /// its origin.
    pub async fn fill(&self, request: &mut Request) -> Result<Filled, Failure> {
        if memmem::find(request.url.as_bytes(), BEGIN).is_some() {
            let words =
                "a URL carries no secret: servers and proxies write URLs down; put it into a header or the body";
            return Err(Failure::new(Code::EACCESS, words));
        }
        let mut filled = Filled::default();
        let refers = |bytes: &[u8]| memmem::find(bytes, BEGIN).is_some();
        if !refers(&request.body) && !request.headers.values().any(|value| refers(value.as_bytes())) {
            return Ok(filled);
        }
        let url = Url::parse(&request.url)
            .map_err(|why| Failure::new(Code::EPARSE, format!("a secret needs a URL to go to: {why}")))?;
        for (name, value) in &mut request.headers {
            let Some(text) = self.replaced(value.as_bytes(), &url).await? else { continue };
            *value = HeaderValue::from_bytes(&text).map_err(|_| {
                let words = format!("a secret for the header {name:?} has a character that headers cannot carry");
                Failure::new(Code::EPARSE, words)
            })?;
            value.set_sensitive(true);
        }
        if let Some(body) = self.replaced(&request.body, &url).await? {
            request.body = body;
            filled.body = true;
        }
        Ok(filled)
    }

    /// The text with its references replaced; `None` where it has none. What only looks like the beginning of one stays.
    async fn replaced(&self, text: &[u8], url: &Url) -> Result<Option<Vec<u8>>, Failure> {
        let mut made = Vec::new();
        let mut rest = text;
        let mut any = false;
        while let Some((before, behind)) = split(rest, memmem::find(rest, BEGIN)) {
            made.extend_from_slice(before);
            let Some((name, after)) = name_of(behind) else {
                made.extend_from_slice(BEGIN);
                rest = behind;
                continue;
            };
            made.extend_from_slice(self.admitted(name, url).await?.reveal().as_bytes());
            (rest, any) = (after, true);
        }
        made.extend_from_slice(rest);
        Ok(any.then_some(made))
    }

    /// The secret of that name, where it may go to that URL.
    async fn admitted(&self, name: &str, url: &Url) -> Result<Secret, Failure> {
        let denied = |words: String| Failure::new(Code::EACCESS, words);
        let Some(secret) = self.secrets.find(name.to_owned()).await? else {
            let words = format!(
                "there is no secret `{name}`; the operator defines it as `[secrets.{name}]` in the user file, or by `wattle vars set --secret`"
            );
            return Err(denied(words));
        };
        secret.admits(url).map_err(denied)?;
        self.use_up(&secret).await?;
        Ok(secret)
    }
}

fn split(text: &[u8], at: Option<usize>) -> Option<(&[u8], &[u8])> {
    let at = at?;
    Some((text.get(..at)?, text.get(at + BEGIN.len()..)?))
}

/// The name of a reference and what stands behind it.
fn name_of(text: &[u8]) -> Option<(&str, &[u8])> {
    let end = text.iter().take(NAME + 1).position(|byte| *byte == b'}')?;
    let name = std::str::from_utf8(text.get(..end)?).ok().filter(|name| Secret::is_name(name))?;
    Some((name, text.get(end + 1..)?))
}

#[cfg(test)]
mod vault_tests {
    use super::*;
    use crate::{HeaderMap, Method};

    fn vault() -> Vault {
        let hosts = |list: &[&str]| list.iter().map(|host| host.parse().unwrap()).collect::<Vec<_>>();
        let secret = |name: &str, value: &str, list: &[&str]| {
            (name.to_owned(), Ok(Secret::new(name, value, hosts(list)).unwrap()))
        };
        Vault::new(Arc::new(Listed::new([
            secret("api", "s3cr3t-value", &["api.example.com", "*.example.org"]),
            secret("lines", "first line\nsecond", &["api.example.com"]),
            ("gone".to_owned(), Err("the variable `GONE`, which holds the secret `gone`, is not set".to_owned())),
        ])))
    }

    fn request(url: &str, header: &str, body: &str) -> Request {
        let mut headers = HeaderMap::new();
        if !header.is_empty() {
            headers.insert("authorization", header.parse().unwrap());
        }
        Request { method: Method::POST, url: url.to_owned(), headers, body: body.as_bytes().to_vec() }
    }

    #[tokio::test]
    async fn references_are_replaced_in_headers_and_bodies() {
        for (header, body, expected_header, expected_body, in_body) in [
            ("Bearer ${secret:api}", "", "Bearer s3cr3t-value", "", false),
            ("", "a=${secret:api}&b=${secret:api}", "", "a=s3cr3t-value&b=s3cr3t-value", true),
            (
                "",
                "${secret:} ${secret:a b} ${secret:api $${secret:api}",
                "",
                "${secret:} ${secret:a b} ${secret:api $s3cr3t-value",
                true,
            ),
            ("x", "$secret {secret:api} ${SECRET:api}", "x", "$secret {secret:api} ${SECRET:api}", false),
        ] {
            let mut request = request("https://api.example.com/v1", header, body);
            let filled = vault().fill(&mut request).await.unwrap();
            let got = request.headers.get("authorization").map(|value| value.to_str().unwrap()).unwrap_or_default();
            assert_eq!(
                (got, request.body.as_slice(), filled.body),
                (expected_header, expected_body.as_bytes(), in_body)
            );
            let sensitive = request.headers.values().any(HeaderValue::is_sensitive);
            assert_eq!(sensitive, expected_header.contains("s3cr3t"), "{header}");
        }
    }

    #[tokio::test]
    async fn what_is_refused_says_which_setting_decides() {
        for (url, header, body, words) in [
            (
                "https://evil.example/",
                "${secret:api}",
                "",
                "the secret `api` is not for evil.example; the operator adds that to `hosts` of `[secrets.api]`",
            ),
            ("https://api.example.com.evil.example/", "", "${secret:api}", "is not for api.example.com.evil.example"),
            ("https://example.org/", "", "${secret:api}", "is not for example.org"),
            ("https://notexample.org/", "", "${secret:api}", "is not for notexample.org"),
            ("http://api.example.com/", "${secret:api}", "", "goes over https only"),
            ("https://api.example.com/?k=${secret:api}", "", "", "a URL carries no secret"),
            (
                "https://api.example.com/",
                "",
                "${secret:other}",
                "there is no secret `other`; the operator defines it as `[secrets.other]`",
            ),
            ("https://api.example.com/", "", "${secret:gone}", "the variable `GONE`"),
            ("https://api.example.com/", "${secret:lines}", "", "a character that headers cannot carry"),
            ("nowhere", "", "${secret:api}", "needs a URL"),
        ] {
            let mut request = request(url, header, body);
            let why = vault().fill(&mut request).await.unwrap_err().to_string();
            assert!(why.contains(words) && !why.contains("s3cr3t"), "{url}: {why}");
        }
        for url in ["https://a.example.org/", "https://API.example.com./", "https://api.example.com:8443/"] {
            assert!(vault().fill(&mut request(url, "", "${secret:api}")).await.unwrap().body, "{url}");
        }
    }

    #[tokio::test]
    async fn an_answer_is_cleaned_of_what_is_for_its_host_and_of_what_has_left() {
        let vault = vault();
        let clean = async |url: &str| {
            vault.known().await.unwrap().cleaner(&[url.parse().unwrap()]).clean_text("you sent s3cr3t-value!")
        };
        assert_eq!(clean("https://other.example/").await, "you sent s3cr3t-value!");
        for url in ["https://api.example.com/", "https://a.example.org:8443/", "http://api.example.com/"] {
            assert_eq!(clean(url).await, "you sent ${secret:api}!", "{url}");
        }
        vault.fill(&mut request("https://api.example.com/", "${secret:api}", "")).await.unwrap();
        assert_eq!(clean("https://other.example/").await, "you sent ${secret:api}!");
    }

    #[tokio::test]
    async fn a_secret_that_is_set_while_the_run_goes_on_is_known_once_it_has_left() {
        let vault = vault();
        let before = vault.known().await.unwrap();
        vault.use_up(&Secret::new("late", "later-value", Vec::new()).unwrap()).await.unwrap();
        assert!(before.refuse("the body", b"later-value").is_ok());
        let why = vault.known().await.unwrap().refuse("the body", b"x=later%2Dvalue").unwrap_err().to_string();
        assert!(why.contains("the body contains the value of the secret `late`") && !why.contains("later-"), "{why}");
    }
}

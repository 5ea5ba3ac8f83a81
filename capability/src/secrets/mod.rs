//! Secrets by reference: a program says `${secret:NAME}` in a header or a body, and never holds what stands for it.
//!
//! The host puts the value in where the request leaves, for the hosts that the secret is for and for no others, and takes it out of
//! everything that comes back. Where secrets are kept is the affair of a [`Secrets`] store.

mod secret;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use wattle_rt::{Code, Config, Failure};

use crate::Answer;
use crate::egress::{HeaderValue, Url};
use crate::http::{Request, Response};

pub use secret::{Secret, SecretError, SecretHost};

/// What a reference begins with.
const BEGIN: &[u8] = b"${secret:";

/// The longest name of a secret, in bytes.
const NAME: usize = 64;

/// Where secrets are kept.
pub trait Secrets: Send + Sync {
    /// The secret of that name; `None` where there is none. One that cannot be had is told as `EACCESS` or `EREMOTE`.
    fn find(&self, name: String) -> Answer<'_, Option<Secret>>;
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
    fn find(&self, name: String) -> Answer<'_, Option<Secret>> {
        let found = self.0.get(&name).cloned().transpose().map_err(|why| Failure::new(Code::EACCESS, why));
        Box::pin(async { found })
    }
}

/// Several stores: the first that has a secret of that name gives it.
pub struct FirstOf(pub Vec<Arc<dyn Secrets>>);

impl Secrets for FirstOf {
    fn find(&self, name: String) -> Answer<'_, Option<Secret>> {
        Box::pin(async move {
            for store in &self.0 {
                if let Some(secret) = store.find(name.clone()).await? {
                    return Ok(Some(secret));
                }
            }
            Ok(None)
        })
    }
}

/// Grants the secrets of a store to the requests of one run, and remembers which of them have left.
pub struct Vault {
    secrets: Arc<dyn Secrets>,
    used: Mutex<Vec<Secret>>,
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
pub(crate) struct Filled {
    /// The body has a secret in it.
    pub(crate) body: bool,
}

impl Vault {
    /// Grants those secrets.
    #[must_use]
    pub fn new(secrets: Arc<dyn Secrets>) -> Self {
        Vault { secrets, used: Mutex::default() }
    }

    /// Puts the values in place of the references of a request. A header that gets one is marked as sensitive, so that it stays with
    /// its origin.
    pub(crate) async fn fill(&self, request: &mut Request) -> Result<Filled, Failure> {
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
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.iter().any(|known| known.name() == name) {
            used.push(secret.clone());
        }
        Ok(secret)
    }

    fn used(&self) -> Vec<Secret> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes every secret that has left in this run out of what came back.
    pub(crate) fn scrub(&self, answer: Result<Response, Failure>) -> Result<Response, Failure> {
        let used = self.used();
        if used.is_empty() {
            return answer;
        }
        match answer {
            Ok(mut response) => {
                for secret in &used {
                    response.body = secret.scrub(response.body);
                    for value in response.headers.values_mut() {
                        let clean = secret.scrub(value.as_bytes().to_vec());
                        // A name stands in place of the value, which every header can carry.
                        if let Ok(clean) = HeaderValue::from_bytes(&clean) {
                            *value = clean;
                        }
                    }
                }
                Ok(response)
            }
            Err(failure) => {
                let clean = |reason: String, secret: &Secret| secret.scrub_text(&reason);
                Err(Failure::new(failure.code, used.iter().fold(failure.reason.to_string(), clean)))
            }
        }
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
mod tests {
    use super::*;
    use crate::egress::{HeaderMap, Method};

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
    async fn what_comes_back_is_scrubbed_of_what_left() {
        let vault = vault();
        let answer = || {
            let mut headers = HeaderMap::new();
            headers.insert("x-echo", HeaderValue::from_static("got s3cr3t-value"));
            Response { status: 200, headers, body: b"you sent s3cr3t-value!".to_vec() }
        };
        assert_eq!(vault.scrub(Ok(answer())).unwrap().body, answer().body, "nothing has left yet");
        vault.fill(&mut request("https://api.example.com/", "${secret:api}", "")).await.unwrap();
        let clean = vault.scrub(Ok(answer())).unwrap();
        assert_eq!(clean.body, b"you sent ${secret:api}!");
        assert_eq!(clean.headers.get("x-echo").unwrap(), "got ${secret:api}");
        let failure = vault.scrub(Err(Failure::new(Code::EREMOTE, "no: s3cr3t-value"))).unwrap_err();
        assert_eq!(failure.to_string(), "EREMOTE (6): no: ${secret:api}");
    }
}

//! Search engines: their requests, and the detection of failures in their responses.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use url::Url;
use wattle_rt::{Account, Code, Failure};

use super::guest;
use crate::egress::{Egress, HeaderMap, HeaderName, HeaderValue, Limits, Passage, header};
use crate::http::{Backend, ChargedResponse, Request, Response, receive};
use crate::secrets::ApiKey;

/// Maximum number of results per search.
const MAX_RESULTS: usize = 8;

/// Maximum size of a response, in bytes.
const MAX_ANSWER: usize = 4 << 20;

/// Brave's request header for the key.
const TOKEN: HeaderName = HeaderName::from_static("x-subscription-token");

/// A kind of search engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// A SearXNG instance, which must allow the format `json` in its settings.
    Searxng,
    /// The Brave Search API, which needs a key.
    Brave,
    /// A search engine's HTML page for browsers, which needs no key.
    Page,
}

impl EngineKind {
    /// All kinds of search engines.
    pub const ALL: [EngineKind; 3] = [EngineKind::Searxng, EngineKind::Brave, EngineKind::Page];

    /// Returns the name that is used in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Searxng => "searxng",
            EngineKind::Brave => "brave",
            EngineKind::Page => "page",
        }
    }

    /// Returns the default URL, if there is one.
    fn url(self) -> Option<&'static str> {
        match self {
            EngineKind::Searxng => None,
            EngineKind::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            EngineKind::Page => Some("https://html.duckduckgo.com/html/"),
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = String;

    fn from_str(text: &str) -> Result<EngineKind, String> {
        let same = |kind: &EngineKind| kind.name().eq_ignore_ascii_case(text.trim());
        EngineKind::ALL
            .into_iter()
            .find(same)
            .ok_or_else(|| format!("expected `searxng`, `brave` or `page`, found {text:?}"))
    }
}

/// The operator's settings for the search engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings<'a> {
    /// The kind of search engine.
    pub kind: EngineKind,
    /// The URL to use instead of the default one.
    pub url: Option<&'a str>,
    /// The name of the environment variable that contains the key.
    pub key_variable: &'a str,
}

/// A client for the configured search engine.
pub struct Engine {
    kind: EngineKind,
    url: Url,
    key: Option<ApiKey>,
    backend: Arc<dyn Backend>,
}

impl Engine {
    /// Creates an engine with its own backend, which can reach only the engine's host and uses the
    /// egress guard.
    ///
    /// # Errors
    /// If the settings are invalid or incomplete.
    pub fn new(
        settings: &EngineSettings<'_>,
        egress: &Egress,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Engine, String> {
        let url = search_url(settings)?;
        let limits = Limits { body: MAX_ANSWER, time: super::TIMEOUT, redirects: 0 };
        let backend = egress
            .endpoint(&url)
            .map_err(|why| format!("the search engine's URL cannot be used: {why}"))?;
        let key = match settings.kind {
            EngineKind::Brave => Some(key(settings.key_variable, variable)?),
            EngineKind::Searxng | EngineKind::Page => None,
        };
        Ok(Engine { kind: settings.kind, url, key, backend: Arc::new(backend.with_limits(limits)) })
    }

    /// Creates an engine that has no key and uses the given backend.
    ///
    /// # Errors
    /// If the URL is invalid.
    pub fn with_backend(
        backend: Arc<dyn Backend>,
        kind: EngineKind,
        url: &str,
    ) -> Result<Engine, String> {
        let url = search_url(&EngineSettings { kind, url: Some(url), key_variable: "" })?;
        Ok(Engine { kind, url, key: None, backend })
    }

    /// Returns the engine's key, if it needs one.
    #[must_use]
    pub fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref()
    }

    /// Returns the URL for queries.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a query and charges the response to the run's account. Fails if the response status
    /// does not indicate success.
    pub(super) async fn ask(
        &self,
        account: &Account,
        passage: &Passage,
        query: &str,
        until: Instant,
    ) -> Result<ChargedResponse, Failure> {
        let response =
            receive(account, until, passage.ask(&*self.backend, self.request(query))).await;
        let response = response.map_err(|failure| self.without_key(failure))?;
        self.check(&response).map_err(|why| self.without_key(Failure::new(Code::EREMOTE, why)))?;
        Ok(response)
    }

    /// Parses at most 8 results from a response and returns them as JSON.
    pub(super) async fn results(
        &self,
        account: &Account,
        response: &Response,
        until: Instant,
    ) -> Result<String, Failure> {
        let found = guest::results(account, self.guest_request(), &response.body, until).await;
        let remote = |why| self.without_key(Failure::new(Code::EREMOTE, why));
        found.map_err(|why| why.map_or_else(|failure| failure, remote))
    }

    /// Returns the request that makes the guest parse a response from this kind of engine.
    fn guest_request(&self) -> serde_json::Value {
        let json = |at: &str, snippet: &str| {
            json!({
                "entry": "results_json", "at": at, "snippet": snippet, "most": MAX_RESULTS,
            })
        };
        match self.kind {
            EngineKind::Searxng => json("/results", "content"),
            EngineKind::Brave => json("/web/results", "description"),
            EngineKind::Page => {
                json!({"entry": "results_page", "url": self.url.as_str(), "most": MAX_RESULTS})
            }
        }
    }

    fn request(&self, query: &str) -> Request {
        let mut url = self.url.clone();
        let mut headers = HeaderMap::new();
        let accept = if self.kind == EngineKind::Page { "text/html" } else { "application/json" };
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        {
            let mut pairs = url.query_pairs_mut();
            pairs.append_pair("q", query);
            match self.kind {
                EngineKind::Searxng => drop(pairs.append_pair("format", "json")),
                EngineKind::Brave => drop(pairs.append_pair("count", "8")),
                EngineKind::Page => {}
            }
        }
        if let Some(key) = &self.key {
            headers.insert(TOKEN, key.bare());
        }
        Request { headers, ..Request::get(url) }
    }

    /// Checks the status of a response.
    fn check(&self, response: &Response) -> Result<(), String> {
        let Engine { kind, .. } = self;
        let status = response.status.as_u16();
        match status {
            429 => {
                let after =
                    response.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
                let after = after
                    .filter(|text| text.len() < 40)
                    .map(|text| format!(", retry after {text}"));
                let after = after.unwrap_or_default();
                Err(format!(
                    "the search engine limits requests (status 429{after}); search less, or later"
                ))
            }
            401 | 403 => {
                let hint = match kind {
                    EngineKind::Searxng => {
                        "the instance must allow the format `json` in its settings"
                    }
                    EngineKind::Brave => "the operator must check the key",
                    EngineKind::Page => {
                        "it may reject programs; the operator can configure another engine"
                    }
                };
                Err(format!("the search engine denied the request (status {status}): {hint}"))
            }
            200..300 => Ok(()),
            _ => Err(format!("the search engine answered with status {status}")),
        }
    }

    /// Removes the engine's key from a failure's message.
    fn without_key(&self, failure: Failure) -> Failure {
        match &self.key {
            Some(key) => Failure { reason: key.scrub(&failure.reason), ..failure },
            None => failure,
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("kind", &self.kind)
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

/// Returns the URL for queries. For SearXNG, `/search` is appended if the URL in the settings does
/// not end with it.
fn search_url(settings: &EngineSettings<'_>) -> Result<Url, String> {
    let kind = settings.kind;
    let text = settings.url.map(str::trim).filter(|url| !url.is_empty()).or_else(|| kind.url());
    let text = text
        .ok_or_else(|| format!("the search engine `{kind}` needs its address: set `search.url`"))?;
    let mut url = Url::parse(text).map_err(|why| format!("invalid `search.url`: {why}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("`search.url` must start with `http://` or `https://`".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "`search.url` contains a user name or password; put the key into a variable".to_owned()
        );
    }
    url.set_fragment(None);
    if kind == EngineKind::Searxng
        && url.path().trim_end_matches('/').rsplit('/').next() != Some("search")
    {
        let path = format!("{}/search", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

fn key(variable: &str, get: impl Fn(&str) -> Option<String>) -> Result<ApiKey, String> {
    let value = get(variable).filter(|value| !value.trim().is_empty()).ok_or_else(|| {
        format!("the search engine needs a key, and the variable `{variable}` is empty")
    })?;
    ApiKey::new(&value)
        .ok_or_else(|| format!("the variable `{variable}` does not contain a valid key"))
}

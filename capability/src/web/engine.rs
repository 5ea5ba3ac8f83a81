//! Search engines: how each is asked, and what it answers where it does not answer.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use url::Url;
use wattle_rt::{Account, Code, Failure};

use super::guest;
use crate::egress::{Egress, HeaderMap, HeaderName, HeaderValue, Limits, Method, Passage, header};
use crate::http::{Backend, Received, Request, Response, receive};

/// The most results of a search.
const MOST: usize = 8;

/// The most bytes of an answer.
const ANSWER_BYTES: usize = 4 << 20;

/// Brave's header for the key.
const TOKEN: HeaderName = HeaderName::from_static("x-subscription-token");

/// The kinds of search engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// A SearXNG instance whose settings allow the format `json`.
    Searxng,
    /// The API of Brave Search; it takes a key.
    Brave,
    /// A page of results that is made for people, without a key.
    Page,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [EngineKind; 3] = [EngineKind::Searxng, EngineKind::Brave, EngineKind::Page];

    /// The name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Searxng => "searxng",
            EngineKind::Brave => "brave",
            EngineKind::Page => "page",
        }
    }

    /// Where it is asked if nothing else is set; `None` where there is no such place.
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

/// What an operator sets about the search engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings<'a> {
    /// Its kind.
    pub kind: EngineKind,
    /// Where it is asked, in place of the kind's own place.
    pub url: Option<&'a str>,
    /// The variable that its key is read from.
    pub key_variable: &'a str,
}

/// A search engine that can be asked.
pub struct Engine {
    kind: EngineKind,
    url: Url,
    key: Option<Key>,
    way: Arc<dyn Backend>,
}

/// A secret that goes out in one header and nowhere else.
struct Key {
    secret: String,
    header: HeaderValue,
}

impl Engine {
    /// Makes the engine that the settings mean, with a way of its own through the guard: to that host and no other.
    ///
    /// # Errors
    /// What is wrong with the settings, or missing.
    pub fn new(
        settings: &EngineSettings<'_>,
        egress: &Egress,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Engine, String> {
        let url = place(settings)?;
        let limits = Limits { body: ANSWER_BYTES, time: super::PATIENCE, redirects: 0 };
        let way = egress.endpoint(&url).map_err(|why| format!("the search engine's URL cannot be used: {why}"))?;
        let key = match settings.kind {
            EngineKind::Brave => Some(key(settings.key_variable, variable)?),
            EngineKind::Searxng | EngineKind::Page => None,
        };
        Ok(Engine { kind: settings.kind, url, key, way: Arc::new(way.with_limits(limits)) })
    }

    /// The engine of that kind at that place, asked without a key by another way.
    ///
    /// # Errors
    /// Where the URL cannot be read.
    pub fn by(way: Arc<dyn Backend>, kind: EngineKind, url: &str) -> Result<Engine, String> {
        let url = place(&EngineSettings { kind, url: Some(url), key_variable: "" })?;
        Ok(Engine { kind, url, key: None, way })
    }

    /// Where it is asked.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Asks on the account of a run.
    pub(super) async fn ask(
        &self,
        account: &Account,
        passage: &Passage,
        query: &str,
        until: Instant,
    ) -> Result<Received, Failure> {
        let response = receive(account, until, passage.ask(&*self.way, self.request(query))).await;
        let response = response.map_err(|failure| self.scrubbed(failure))?;
        self.accepted(&response).map_err(|why| self.scrubbed(Failure::new(Code::EREMOTE, why)))?;
        Ok(response)
    }

    /// Reads at most 8 results from an answer, as JSON.
    pub(super) async fn results(
        &self,
        account: &Account,
        response: &Response,
        until: Instant,
    ) -> Result<String, Failure> {
        let found = guest::results(account, self.reading(), &response.body, until).await;
        let remote = |why| self.scrubbed(Failure::new(Code::EREMOTE, why));
        found.map_err(|why| why.map_or_else(|failure| failure, remote))
    }

    /// How the guest reads an answer of this kind of engine.
    fn reading(&self) -> serde_json::Value {
        let json =
            |at: &str, snippet: &str| json!({"entry": "results_json", "at": at, "snippet": snippet, "most": MOST});
        match self.kind {
            EngineKind::Searxng => json("/results", "content"),
            EngineKind::Brave => json("/web/results", "description"),
            EngineKind::Page => json!({"entry": "results_page", "url": self.url.as_str(), "most": MOST}),
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
            headers.insert(TOKEN, key.header.clone());
        }
        Request { headers, ..Request::get(url) }
    }

    /// Checks that an answer has results.
    fn accepted(&self, response: &Response) -> Result<(), String> {
        let Engine { kind, .. } = self;
        let status = response.status.as_u16();
        match status {
            429 => {
                let after = response.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
                let after = after.filter(|text| text.len() < 40).map(|text| format!(", again after {text}"));
                let after = after.unwrap_or_default();
                Err(format!("the search engine asks for fewer requests (status 429{after}); search less, or later"))
            }
            401 | 403 => {
                let mend = match kind {
                    EngineKind::Searxng => "the instance must allow the format `json` in its settings",
                    EngineKind::Brave => "the operator has to look at the key",
                    EngineKind::Page => {
                        "it may not want to be asked by programs; the operator can set up another engine"
                    }
                };
                Err(format!("the search engine refused (status {status}): {mend}"))
            }
            200..300 => Ok(()),
            _ => Err(format!("the search engine answered with status {status}")),
        }
    }

    /// Keeps the key out of what is told.
    fn scrubbed(&self, failure: Failure) -> Failure {
        match &self.key {
            Some(key) => Failure { reason: failure.reason.replace(&key.secret, "***"), ..failure },
            None => failure,
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("kind", &self.kind).field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// The URL that is asked. An instance of SearXNG is named by its own address, or by that of its search.
fn place(settings: &EngineSettings<'_>) -> Result<Url, String> {
    let kind = settings.kind;
    let text = settings.url.map(str::trim).filter(|url| !url.is_empty()).or_else(|| kind.url());
    let text = text.ok_or_else(|| format!("the search engine `{kind}` needs its address: set `search.url`"))?;
    let mut url = Url::parse(text).map_err(|why| format!("`search.url` cannot be read: {why}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("`search.url` has to begin with `http://` or `https://`".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`search.url` carries a user name or password; put the key into a variable".to_owned());
    }
    url.set_fragment(None);
    if kind == EngineKind::Searxng && url.path().trim_end_matches('/').rsplit('/').next() != Some("search") {
        let path = format!("{}/search", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

fn key(variable: &str, get: impl Fn(&str) -> Option<String>) -> Result<Key, String> {
    let secret = get(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let secret =
        secret.ok_or_else(|| format!("the search engine needs a key, and the variable `{variable}` has none"))?;
    let unfit = || format!("the variable `{variable}` holds something that is no key");
    if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unfit());
    }
    let mut header = HeaderValue::from_str(&secret).map_err(|_| unfit())?;
    header.set_sensitive(true);
    Ok(Key { secret, header })
}

//! `web`: pages as readable text, and web search.
//!
//! Pages are fetched through the run's `http` grant, and the guard checks the URL and every
//! redirect. The operator configures the search engine. Its requests use a separate backend, to
//! which programs have no access.

mod engine;
pub(crate) mod guest;

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_rt::{Code, Config, Failure, Run, Service, Target, capability, truncate};

use crate::egress::{HeaderMap, HeaderValue, Passage, header};
use crate::http::{ChargedResponse, Http, Request, receive};
use guest::{NoText, Page, Text};

pub use engine::{Engine, EngineKind, EngineSettings};

/// A web search engine.
pub const ENGINE: Service = Service {
    name: "engine",
    label: "search engine",
    verb: "ask the search engine",
    capability: "web",
    is_class: false,
    depends_on: &["http"],
    leaves_machine: true,
    kept_in: None,
};

capability! {
    /// Pages as readable text, and web search.
    pub const WEB: "web" 1 for "http";

    /// Fetches a URL as text, HTML as Markdown; returns at most 4,000 characters from offset, then
    /// a line with the total length
    #[example = r#"(ret (web.fetch "https://example.com/" 0))"# => "Example Domain\n\n[characters 0–14 of 14]"]
    #[prompt(name)]
    #[effect(reads)]
    async fetch(url: url, offset: int) with Http -> ptr: str ! EREMOTE EACCESS ETIME EPARSE EBOUND ENOMEM EBUDGET = fetch;

    /// Queries the operator's search engine and returns at most 8 results as JSON [{title, url,
    /// snippet}]
    #[example = r#"(ret (json.get (web.search "example") "[0].url"))"# => "https://example.com/"]
    #[prompt(name)]
    #[effect(reads)]
    #[touches(ENGINE)]
    async search(query: str) with Web -> ptr: str ! EACCESS EREMOTE ETIME EBOUND ENOMEM EBUDGET = search;
}

/// Maximum length of the piece of a page that a call returns, in characters.
const PIECE: usize = 4_000;

/// Maximum time for fetching a page or for a search.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum memory for the conversion of a page to text, in bytes.
pub(crate) const CONVERSION: usize = guest::MEMORY;

pub(crate) use guest::decoded;

/// Maximum length of a query, in characters.
const MAX_QUERY: usize = 400;

/// The accepted content types, in order of preference.
const ACCEPT: &str =
    "text/html, application/xhtml+xml, text/markdown, text/plain, application/json, */*;q=0.5";

/// The `web` grant: a search engine, if one is configured. Pages are fetched through the run's
/// `http` grant.
pub struct Web {
    engine: Result<Arc<Engine>, String>,
}

impl Web {
    /// Creates a grant with a search engine, or with the reason why no search engine is available.
    #[must_use]
    pub fn new(engine: Result<Arc<Engine>, String>) -> Web {
        Web { engine }
    }
}

impl Config for Web {
    const CAPABILITIES: &'static [&'static str] = &["web"];
}

async fn fetch(
    http: Arc<Http>,
    run: &mut Run,
    url: String,
    offset: i32,
) -> Result<String, Failure> {
    let offset = usize::try_from(offset).map_err(|_| {
        Failure::new(Code::EBOUND, format!("the offset must be 0 or more, not {offset}"))
    })?;
    let until = deadline(run);
    guest::prepare();
    let (response, base) = within(run, until, get(&http, run, &url, until)).await?;
    // The wait for the guest's compilation does not count towards the time for the conversion.
    guest::ready().await?;
    let until = deadline(run);
    let status = response.status.as_u16();
    let content_type =
        response.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let page =
        Page { url: &base, content_type: content_type.unwrap_or_default(), body: &response.body };
    let read = guest::text(run.account(), &page, until).await;
    // The text may contain a secret that was hidden by markup or an encoding in the page.
    let passage = Passage::of(run, WEB.name);
    let read = match read {
        Ok(Text { text, plain }) => {
            Ok(Text { text: passage.clean_text(&text, &[&url, &base]).await?, plain })
        }
        Err(why) => Err(why),
    };
    if status >= 400 {
        let text = read.map(|text| text.text).unwrap_or_default();
        let text = truncate(text.trim(), 300);
        let detail = if text.is_empty() { String::new() } else { format!(": {text}") };
        return Err(Failure::new(
            Code::EREMOTE,
            format!("{url} answered with status {status}{detail}"),
        ));
    }
    match read {
        Ok(text) => piece(&text, offset, response.body.len()),
        Err(NoText::Other(what)) => Err(Failure::new(Code::EPARSE, format!("{url} {what}"))),
        Err(NoText::Failed(failure)) => Err(failure),
    }
}

/// Returns the piece of the text that starts at `offset`, followed by a line that states the range
/// of the piece and the text's total length.
fn piece(Text { text, plain }: &Text, offset: usize, bytes: usize) -> Result<String, Failure> {
    let all = text.chars().count();
    if offset > 0 && offset >= all {
        let why = format!("offset {offset} is out of range: the text has {all} characters");
        return Err(Failure::new(Code::EBOUND, why));
    }
    let piece: String = text.chars().skip(offset).take(PIECE).collect();
    let end = offset + piece.chars().count();
    let more = if end < all { format!("; continue at offset {end}") } else { String::new() };
    let cut = if bytes > guest::PAGE_BYTES { "; of the page's first 5 MiB" } else { "" };
    let plain =
        if *plain { "; tags removed, because the page is too large to be parsed" } else { "" };
    Ok(format!("{}\n\n[characters {offset}–{end} of {all}{more}{cut}{plain}]", piece.trim_end()))
}

/// Fetches a URL and returns the response and the final URL. The run's guard checks the URL and
/// every redirect.
async fn get(
    http: &Http,
    run: &Run,
    url: &str,
    until: Instant,
) -> Result<(ChargedResponse, String), Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPT));
    let request = Request { headers, ..Request::get(url) };
    let mut last = String::new();
    let passage = Passage::of(run, WEB.name);
    let sending = async {
        let (response, to) = passage.send_with_url(&*http.backend, "web.fetch", request).await?;
        last = to;
        Ok(response)
    };
    let response = receive(run.account(), until, sending).await?;
    Ok((response, last))
}

async fn search(web: Arc<Web>, run: &mut Run, query: String) -> Result<String, Failure> {
    let engine = web.engine.as_ref().map_err(|why| Failure::new(Code::EACCESS, why.as_str()))?;
    let query = query.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = query.chars().count();
    if length == 0 || length > MAX_QUERY {
        let why =
            format!("a query must have 1 to {MAX_QUERY} characters, and this one has {length}");
        return Err(Failure::new(Code::EBOUND, why));
    }
    run.admit("web.search", Target::Service(&ENGINE), engine.url().as_str())?;
    let passage = Passage::of(run, WEB.name);
    passage.check_text("the query", query.as_bytes()).await?;
    guest::prepare();
    let until = deadline(run);
    let response = within(run, until, engine.ask(run.account(), &passage, &query, until)).await?;
    guest::ready().await?;
    let found = engine.results(run.account(), &response, deadline(run)).await?;
    passage.clean_text(&found, &[engine.url().as_str()]).await
}

/// Returns the deadline of a call. It precedes the run's deadline, so that the program still
/// receives the failure if the call times out.
fn deadline(run: &Run) -> Instant {
    let reserve = Duration::from_millis(200);
    let latest = run.deadline().checked_sub(reserve).unwrap_or_else(|| run.deadline());
    latest.min(Instant::now() + TIMEOUT)
}

async fn within<T>(
    _: &Run,
    until: Instant,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    match tokio::time::timeout_at(until.into(), work).await {
        Ok(done) => done,
        Err(_) => {
            Err(Failure::new(Code::ETIME, format!("no response within {} s", TIMEOUT.as_secs())))
        }
    }
}

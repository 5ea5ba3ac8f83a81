//! `web`: pages as text to read, and what a search engine finds.
//!
//! Pages come by the run's own way out, held to its guard hop by hop. The search engine is the operator's: it is reached by a way of
//! its own, which programs do not have.

mod engine;
mod guest;

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_rt::{Code, Config, Failure, Run, Service, Target, capability, truncate};

use crate::egress::{HeaderMap, HeaderValue, Method, Passage, header};
use crate::http::{Http, Received, Request, receive};
use guest::{NoText, Text};

pub use engine::{Engine, EngineKind, EngineSettings};

capability! {
    /// Pages as readable text, and web search.
    pub const WEB: "web" 1;

    /// Fetches a page and gives its text as Markdown, other texts as they are: 4,000 characters from offset on, with a last line that tells how much there is
    #[example = r#"(ret (web.fetch? "https://example.com/" 0))"# => "Example Domain\n\n[characters 0–14 of 14]"]
    #[prompt(name)]
    #[effect(reads)]
    async fetch(url: url, offset: int) -> ptr: str ! EREMOTE EACCESS ETIME EPARSE EBOUND ENOMEM EBUDGET = fetch;

    /// Asks the search engine that the operator has set up and gives at most 8 results as JSON [{title, url, snippet}]
    #[example = r#"(ret (json.get? (web.search? "example") "[0].url"))"# => "https://example.com/"]
    #[prompt(name)]
    #[effect(reads)]
    #[touches(engine)]
    async search(query: str) -> ptr: str ! EACCESS EREMOTE ETIME EBOUND ENOMEM EBUDGET = search;
}

/// How much of a text one call gives, in characters.
const PIECE: usize = 4_000;

/// How long a page is waited for, and a search.
const PATIENCE: Duration = Duration::from_secs(20);

/// The memory that a conversion holds, in bytes.
pub(crate) const CONVERSION: usize = guest::MEMORY;

/// Maximum size of a body that the guest converts, in bytes; of a larger one, its beginning.
const PAGE_BYTES: usize = 5 << 20;

/// The most characters of a query.
const QUERY_CHARS: usize = 400;

/// What is asked for where a server has a choice.
const ACCEPT: &str = "text/html, application/xhtml+xml, text/markdown, text/plain, application/json, */*;q=0.5";

/// Grants `web`; pages come through the run's `http`.
pub struct Web {
    engine: Result<Arc<Engine>, String>,
}

impl Web {
    /// Grants pages, and searches with that engine, or with none for that reason.
    #[must_use]
    pub fn new(engine: Result<Arc<Engine>, String>) -> Web {
        Web { engine }
    }
}

impl Config for Web {
    const CAPABILITY: &'static str = "web";
}

async fn fetch(run: &mut Run, url: String, offset: i32) -> Result<String, Failure> {
    let offset = usize::try_from(offset)
        .map_err(|_| Failure::new(Code::EBOUND, format!("an offset is 0 or more, and {offset} is not")))?;
    let until = deadline(run);
    guest::prepare();
    let (response, base) = within(run, until, get(run, &url, until)).await?;
    // To compile the guest may take longer than a page does.
    guest::ready().await?;
    let until = deadline(run);
    let status = response.status.as_u16();
    let content_type = response.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default();
    let read = guest::text(run.account(), (&base, content_type), &response.body, until).await;
    // Markup or an encoding may have hidden a secret in the page that its text shows.
    let passage = Passage::of(run, WEB.name);
    let read = match read {
        Ok(Text { text, plain }) => Ok(Text { text: passage.clean_text(&text, &[&url, &base]).await?, plain }),
        Err(why) => Err(why),
    };
    if status >= 400 {
        let said = read.map(|text| text.text).unwrap_or_default();
        let said = truncate(said.trim(), 300);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        return Err(Failure::new(Code::EREMOTE, format!("{url} answered with status {status}{said}")));
    }
    match read {
        Ok(text) => piece(&text, offset, response.body.len()),
        Err(NoText::Other(what)) => Err(Failure::new(Code::EPARSE, format!("{url} {what}"))),
        Err(NoText::Failed(failure)) => Err(failure),
    }
}

/// A piece of a text, with a last line that tells where it stands and what is missing.
fn piece(Text { text, plain }: &Text, offset: usize, bytes: usize) -> Result<String, Failure> {
    let all = text.chars().count();
    if offset > 0 && offset >= all {
        let why = format!("the text has {all} characters, and nothing stands at offset {offset}");
        return Err(Failure::new(Code::EBOUND, why));
    }
    let piece: String = text.chars().skip(offset).take(PIECE).collect();
    let end = offset + piece.chars().count();
    let more = if end < all { format!("; read on with offset {end}") } else { String::new() };
    let cut = if bytes > PAGE_BYTES { "; of the page's first 5 MiB" } else { "" };
    let plain = if *plain { "; the page is too large for its structure to be read" } else { "" };
    Ok(format!("{}\n\n[characters {offset}–{end} of {all}{more}{cut}{plain}]", piece.trim_end()))
}

/// Gets a URL, each hop of it held to the run's guard; gives the URL that answered, too.
async fn get(run: &Run, url: &str, until: Instant) -> Result<(Received, String), Failure> {
    let http = run.config::<Http>()?;
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

async fn search(run: &mut Run, query: String) -> Result<String, Failure> {
    let web = run.config::<Web>()?;
    let engine = web.engine.as_ref().map_err(|why| Failure::new(Code::EACCESS, why.as_str()))?;
    let query = query.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = query.chars().count();
    if length == 0 || length > QUERY_CHARS {
        let why = format!("a query has 1 to {QUERY_CHARS} characters, and this one has {length}");
        return Err(Failure::new(Code::EBOUND, why));
    }
    run.admit("web.search", Target::Service(Service::Engine), engine.url().as_str())?;
    let passage = Passage::of(run, WEB.name);
    passage.check_text("the query", query.as_bytes()).await?;
    guest::prepare();
    let until = deadline(run);
    let response = within(run, until, engine.ask(run.account(), &passage, &query, until)).await?;
    guest::ready().await?;
    let found = engine.results(run.account(), &response, deadline(run)).await?;
    passage.clean_text(&found, &[engine.url().as_str()]).await
}

/// When a call gives up: before the run's own time is up, so that the program is told.
fn deadline(run: &Run) -> Instant {
    let reserve = Duration::from_millis(200);
    let latest = run.deadline().checked_sub(reserve).unwrap_or_else(|| run.deadline());
    latest.min(Instant::now() + PATIENCE)
}

async fn within<T>(_: &Run, until: Instant, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match tokio::time::timeout_at(until.into(), work).await {
        Ok(done) => done,
        Err(_) => Err(Failure::new(Code::ETIME, format!("nothing came within {} s", PATIENCE.as_secs()))),
    }
}

//! `http`: requests to the network, through the egress guard. A header or a body may refer to a secret (see [`secrets`](crate::secrets)).

use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use serde_json::{Map, Value as Json, json};
use wattle_rt::{Account, Code, Config, Failure, Held, Run, Unadmitted, capability, truncate};

use crate::arr::{Arrays, Handle};
pub use crate::egress::{Backend, Request, Response};
use crate::egress::{self, HeaderMap, HeaderName, HeaderValue, Method, Passage};

capability! {
    /// Requests over http and https; an answer of 400 and above fails as EREMOTE.
    pub const HTTP: "http" 2;

    /// Fetches a URL and gives the body
    #[example = r#"(ret (http.get? "https://example.com/"))"# => "Example Domain"]
    #[prompt(signature)]
    #[effect(reads)]
    async get(url: url) -> ptr: bytes ! EREMOTE EACCESS ETIME EPARSE ENOMEM EBUDGET = get;

    /// Posts a body and gives the answer's body
    #[example = r#"(ret (http.post? "https://example.com/echo" "{\"a\":1}" "application/json"))"# => r#"{"a":1}"#]
    #[prompt(signature)]
    #[effect(once)]
    async post(url: url, body: bytes, content_type: str) -> ptr: bytes ! EREMOTE EACCESS ETIME EPARSE ENOMEM EBUDGET = post;

    /// Sends any request and gives JSON {status, headers, body}, whatever the status; headers is 0 or a JSON object
    #[example = r#"(ret (http.request? "HEAD" "https://example.com/" 0 ""))"# => r#"{"status":200,"headers":{},"body":""}"#]
    #[effect(once)]
    async request(method: str, url: url, headers: opt_str, body: bytes) -> ptr: str ! EREMOTE EACCESS ETIME EPARSE ENOMEM EBUDGET = request;

    /// Fetches URLs at the same time and gives, in order, JSON {url, status, body} for each, {url, status, code, error} where `http.get` would fail
    #[example = r#"(each $page (http.get_all? (str.split? "https://example.com/ https://example.com/b" " ")) (out (json.get? $page "body")))"# => "Example Domain", "b"]
    #[effect(reads)]
    async get_all(urls: urls) -> arr: arr ! EBOUND ENOMEM EBUDGET = get_all;
}

/// Grants `http` on a backend.
pub struct Http {
    /// What carries the requests.
    pub backend: Arc<dyn Backend>,
    /// How many requests of one `get_all` are under way at once.
    pub at_once: NonZeroUsize,
}

impl Http {
    /// Grants `http` on that backend, with 16 requests of a `get_all` at once.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Http { backend, at_once: crate::AT_ONCE }
    }
}

impl Config for Http {
    const CAPABILITY: &'static str = "http";
}

/// A response whose body is held on an account.
pub(crate) struct Received {
    response: Response,
    _held: Held,
}

impl Deref for Received {
    type Target = Response;

    fn deref(&self) -> &Response {
        &self.response
    }
}

/// Receives a response on the account of a run. The largest possible body is held before anything is sent, and of that what came until
/// the response is dropped; requests that find no room wait for it, and leave as much as a conversion takes.
///
/// # Errors
/// As the sending; `ENOMEM` if there is no room by then, `EBUDGET` if the run has received too much.
pub(crate) async fn receive(
    account: &Account,
    until: Instant,
    sending: impl Future<Output = Result<Response, Failure>>,
) -> Result<Received, Failure> {
    let largest = egress::Limits::default().body;
    let mut held = account.wait_to_hold(largest, crate::web::CONVERSION, until).await?;
    let response = sending.await?;
    account.take_bytes(response.body.len())?;
    held.shrink_to(response.body.len());
    Ok(Received { response, _held: held })
}

async fn send(run: &mut Run, function: &'static str, request: Request) -> Result<Received, Failure> {
    let http = run.config::<Http>()?;
    Way::of(run).send(&*http.backend, function, request).await
}

/// What every request of a run passes, and the account that it is charged to.
#[derive(Clone)]
struct Way {
    passage: Passage,
    account: Account,
    until: Instant,
}

impl Way {
    fn of(run: &Run) -> Way {
        Way { passage: Passage::of(run, HTTP.name), account: run.account().clone(), until: run.deadline() }
    }

    async fn send(&self, backend: &dyn Backend, function: &'static str, request: Request) -> Result<Received, Failure> {
        receive(&self.account, self.until, self.passage.send(backend, function, request)).await
    }
}

/// The header by which a server tells a repeated request from a new one.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Adds an `Idempotency-Key` to a request that does something anew each time, if the program has not set one. The key is the same if
/// the call is made once more because its process was stopped, and differs from that of every other call.
fn mark_once(run: &mut Run, request: &mut Request) -> Result<(), Failure> {
    let anew = request.method == Method::POST || request.method == Method::PATCH;
    if !anew || request.headers.contains_key(IDEMPOTENCY_KEY) {
        return Ok(());
    }
    let key = match run.change_key() {
        Some(call) => *blake3::hash(call.as_bytes()).as_bytes(),
        None => {
            let mut random = [0; 32];
            let failed = |why| Failure::new(Code::EREMOTE, format!("the system gives no randomness: {why}"));
            getrandom::fill(&mut random).map_err(failed)?;
            random
        }
    };
    let key: String = key.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    request.headers.insert(IDEMPOTENCY_KEY, header_value(IDEMPOTENCY_KEY.as_str(), &key)?);
    Ok(())
}

/// The body of an answer below 400; the failure quotes the beginning of any other.
fn accepted(url: &str, answer: Received) -> Result<Vec<u8>, Failure> {
    if answer.status.as_u16() < 400 {
        return Ok(answer.response.body.into());
    }
    let body = String::from_utf8_lossy(&answer.body);
    let quoted = truncate(body.trim(), 200);
    let said = if quoted.is_empty() { String::new() } else { format!(": {quoted}") };
    Err(Failure::new(Code::EREMOTE, format!("{url} answered with status {}{said}", answer.status.as_u16())))
}

fn get_request(url: &str) -> Request {
    Request::get(url)
}

async fn get(run: &mut Run, url: String) -> Result<Vec<u8>, Failure> {
    accepted(&url, send(run, "http.get", get_request(&url)).await?)
}

async fn get_all(run: &mut Run, urls: Unadmitted<i32>) -> Result<Handle, Failure> {
    // Each URL is admitted on its way out.
    let (urls, _) = urls.open(run);
    let http = run.config::<Http>()?;
    let urls = Arrays::of(run).get(Handle(urls))?.clone();
    let mut items = vec![String::new(); urls.len()];
    let (mut room, mut held) = (run.remaining_memory(), run.account().nothing());
    let way = Way::of(run);
    let count = urls.len();
    let answers = urls.into_iter().enumerate().map(|(at, url)| {
        let (http, way) = (Arc::clone(&http), way.clone());
        async move { (at, fetched(&*http.backend, &way, &url).await) }
    });
    let mut answers = futures_util::stream::iter(answers).buffer_unordered(http.at_once.get());
    while let Some((at, answer)) = answers.next().await {
        room = room.checked_sub(answer.len()).ok_or_else(|| {
            let words = format!("the answers to {count} URLs take more than the run's memory limit; fetch fewer");
            Failure::new(Code::ENOMEM, words)
        })?;
        held.grow(answer.len())?;
        if let Some(item) = items.get_mut(at) {
            *item = answer;
        }
    }
    drop(answers);
    Arrays::make(run, items)
}

/// One of many: what was answered, or why nothing was, as JSON.
async fn fetched(backend: &dyn Backend, way: &Way, url: &[u8]) -> String {
    let mut item = Map::new();
    item.insert("url".to_owned(), String::from_utf8_lossy(url).into());
    let body = match std::str::from_utf8(url) {
        Err(_) => Err(Failure::new(Code::EPARSE, "the URL is not UTF-8")),
        Ok(url) => match way.send(backend, "http.get_all", get_request(url)).await {
            Err(failure) => Err(failure),
            Ok(answer) => {
                item.insert("status".to_owned(), answer.status.as_u16().into());
                accepted(url, answer)
            }
        },
    };
    match body {
        Ok(body) => drop(item.insert("body".to_owned(), String::from_utf8_lossy(&body).into())),
        Err(failure) => {
            item.insert("code".to_owned(), failure.code.name().into());
            item.insert("error".to_owned(), failure.reason.into());
        }
    }
    Json::Object(item).to_string()
}

async fn post(run: &mut Run, url: String, body: Vec<u8>, content_type: String) -> Result<Vec<u8>, Failure> {
    let kind = if content_type.is_empty() { "text/plain; charset=utf-8" } else { &content_type };
    let mut headers = HeaderMap::new();
    headers.insert(egress::header::CONTENT_TYPE, header_value("content-type", kind)?);
    let mut request = Request { method: Method::POST, url: url.clone(), headers, body: body.into() };
    mark_once(run, &mut request)?;
    accepted(&url, send(run, "http.post", request).await?)
}

async fn request(
    run: &mut Run,
    method: String,
    url: String,
    headers: Option<String>,
    body: Vec<u8>,
) -> Result<String, Failure> {
    let method = Method::from_bytes(method.trim().to_ascii_uppercase().as_bytes())
        .map_err(|_| Failure::new(Code::EPARSE, format!("{method:?} is no HTTP method")))?;
    let headers = read_headers(headers.as_deref().unwrap_or_default())?;
    let mut request = Request { method, url, headers, body: body.into() };
    mark_once(run, &mut request)?;
    let answer = send(run, "http.request", request).await?;
    let mut shown = Map::new();
    for (name, value) in &answer.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        match shown.get_mut(name.as_str()) {
            Some(Json::String(all)) => *all = format!("{all}, {value}"),
            _ => drop(shown.insert(name.as_str().to_owned(), value.into())),
        }
    }
    Ok(json!({"status": answer.status.as_u16(), "headers": shown, "body": String::from_utf8_lossy(&answer.body)}).to_string())
}

fn read_headers(json: &str) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    if json.trim().is_empty() {
        return Ok(headers);
    }
    let given: Map<String, Json> = serde_json::from_str(json)
        .map_err(|e| Failure::new(Code::EPARSE, format!("the headers are no JSON object: {e}")))?;
    for (name, value) in given {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Failure::new(Code::EPARSE, format!("{name:?} is no header name")))?;
        headers.append(key, header_value(&name, &crate::json::plain(&value))?);
    }
    Ok(headers)
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(value).map_err(|_| {
        Failure::new(
            Code::EPARSE,
            format!("the value of the header {name:?} has a character that headers cannot carry"),
        )
    })
}

//! `http`: HTTP requests, which pass through the egress guard. Headers and bodies may contain
//! references to secrets (see [`secrets`](crate::secrets)).

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use serde_json::{Map, Value as Json, json};
use wattle_rt::{
    Account, Code, Config, Failure, MemoryCharge, Run, Unadmitted, capability, truncate,
};

use crate::arr::{Arrays, Handle};
use crate::egress::{self, HeaderMap, HeaderName, HeaderValue, Method, Passage};
pub use crate::egress::{Backend, Request, Response};
use crate::json::document::Document;

capability! {
    /// HTTP requests; a status of 400 or above, such as 404, fails with EREMOTE.
    pub const HTTP: "http" 2;

    /// Fetches a URL and returns the body
    #[example = r#"(ret (http.get "https://example.com/"))"# => "Example Domain"]
    #[prompt(signature)]
    #[effect(reads)]
    async get(url: url) with Http -> ptr: bytes ! EREMOTE EACCESS ETIME EPARSE ENOMEM EBUDGET = get;

    /// Like `http.get` with a form: "text", as without it, decodes text of up to 5 MiB to UTF-8 from
    /// the charset of its content type; "bytes" leaves the body as it is
    #[example = r#"(ret (http.get "https://example.com/" "bytes"))"# => "Example Domain"]
    #[prompt(omitted)]
    #[effect(reads)]
    async get/2(url: url, form: opt_str) with Http -> ptr: bytes ! EREMOTE EACCESS ETIME EPARSE ENOMEM EBUDGET = get_in_form;

    /// Posts a body and returns the response body; sends an `Idempotency-Key` header that stays the
    /// same if the call is repeated after a crash, as `http.request` does for POST and PATCH unless
    /// headers has one
    #[example = r#"(ret (http.post "https://example.com/echo" "{\"a\":1}" "application/json"))"# => r#"{"a":1}"#]
    #[prompt(signature)]
    #[effect(once)]
    async post(url: url, body: bytes, content_type: str) with Http -> ptr: bytes ! EREMOTE EACCESS ETIME EPARSE ENOMEM EBUDGET = post;

    /// Sends any request and returns JSON {status, headers, body}, whatever the status; headers is
    /// a JSON object
    #[example = r#"(ret (http.request "HEAD" "https://example.com/" 0 ""))"# => r#"{"status":200,"headers":{},"body":""}"#]
    #[effect(once)]
    async request(method: str, url: url, headers: opt_str, body: bytes) with Http -> ptr: str ! EREMOTE EACCESS ETIME EPARSE ENOMEM EBUDGET = request;

    /// Fetches URLs concurrently; returns, in order, JSON {url, status, body}, or {url, status,
    /// code, error} if `http.get` would fail
    #[example = r#"(each $page (http.get_all (str.split "https://example.com/ https://example.com/b" " ")) (out (json.get $page "body")))"# => "Example Domain", "b"]
    #[effect(reads)]
    async get_all(urls: urls) with Http -> arr: arr ! EBOUND ENOMEM EBUDGET = get_all;
}

/// The `http` grant: a backend for requests.
pub struct Http {
    /// The transport for requests.
    pub backend: Arc<dyn Backend>,
    /// Maximum number of concurrent requests per call to `get_all`.
    pub max_concurrent: NonZeroUsize,
}

impl Http {
    /// Creates a grant that allows 16 concurrent requests per call to `get_all`.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Http { backend, max_concurrent: crate::MAX_CONCURRENT }
    }
}

impl Config for Http {
    const CAPABILITIES: &'static [&'static str] = &["http"];
}

/// A response whose body is charged to the run's account.
pub(crate) struct ChargedResponse {
    response: Response,
    _held: MemoryCharge,
}

impl Deref for ChargedResponse {
    type Target = Response;

    fn deref(&self) -> &Response {
        &self.response
    }
}

/// Sends a request and charges the response to a run's account.
///
/// Memory for the largest possible body is reserved before the request is sent. Once the response
/// has arrived, only the memory for the actual body stays reserved, until the response is dropped.
/// A request is not sent until the account has enough memory for the response and for the
/// conversion of one HTML page.
///
/// # Errors
/// Any error returned by `sending`; `ENOMEM` if there is not enough memory by `until`; `EBUDGET` if
/// the run has received too many bytes.
pub(crate) async fn receive(
    account: &Account,
    until: Instant,
    sending: impl Future<Output = Result<Response, Failure>>,
) -> Result<ChargedResponse, Failure> {
    let largest = egress::Limits::default().body;
    let mut held = account.wait_to_hold(largest, crate::web::CONVERSION, until).await?;
    let response = sending.await?;
    account.take_bytes(response.body.len())?;
    held.shrink_to(response.body.len());
    Ok(ChargedResponse { response, _held: held })
}

async fn send(
    http: &Http,
    run: &mut Run,
    function: &'static str,
    request: Request,
) -> Result<ChargedResponse, Failure> {
    Sender::of(run).send(&*http.backend, function, request).await
}

/// The context in which a run's requests are sent: its [`Passage`], account and deadline.
#[derive(Clone)]
struct Sender {
    passage: Passage,
    account: Account,
    until: Instant,
}

impl Sender {
    fn of(run: &Run) -> Sender {
        Sender {
            passage: Passage::of(run, HTTP.name),
            account: run.account().clone(),
            until: run.deadline(),
        }
    }

    async fn send(
        &self,
        backend: &dyn Backend,
        function: &'static str,
        request: Request,
    ) -> Result<ChargedResponse, Failure> {
        receive(&self.account, self.until, self.passage.send(backend, function, request)).await
    }
}

/// The header that lets a server recognize a repeated request.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Adds an `Idempotency-Key` to a request that is not idempotent, unless the program has set one. A
/// call that is repeated after a crash gets the same key. Every other call gets a different one.
fn add_idempotency_key(run: &mut Run, request: &mut Request) -> Result<(), Failure> {
    let is_idempotent = request.method != Method::POST && request.method != Method::PATCH;
    if is_idempotent || request.headers.contains_key(IDEMPOTENCY_KEY) {
        return Ok(());
    }
    let key = match run.change_key() {
        Some(call) => *blake3::hash(call.as_bytes()).as_bytes(),
        None => {
            let mut random = [0; 32];
            let failed = |why| {
                Failure::new(Code::EREMOTE, format!("the system has no random numbers: {why}"))
            };
            getrandom::fill(&mut random).map_err(failed)?;
            random
        }
    };
    let key: String = key.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    request.headers.insert(IDEMPOTENCY_KEY, header_value(IDEMPOTENCY_KEY.as_str(), &key)?);
    Ok(())
}

/// Returns the body of a response with a status below 400, as `decoded` if it is given. For any
/// other status, fails with a message that quotes the body.
fn successful_body(
    url: &str,
    answer: ChargedResponse,
    decoded: Option<String>,
) -> Result<Vec<u8>, Failure> {
    if answer.status.as_u16() < 400 {
        return Ok(decoded.map_or_else(|| answer.response.body.into(), String::into_bytes));
    }
    let body = decoded.map_or_else(|| String::from_utf8_lossy(&answer.body), Cow::Owned);
    let quoted = truncate(body.trim(), 200);
    let detail = if quoted.is_empty() { String::new() } else { format!(": {quoted}") };
    Err(Failure::new(
        Code::EREMOTE,
        format!("{url} answered with status {}{detail}", answer.status.as_u16()),
    ))
}

fn get_request(url: &str) -> Request {
    Request::get(url)
}

async fn get(http: Arc<Http>, run: &mut Run, url: String) -> Result<Vec<u8>, Failure> {
    get_in_form(http, run, url, None).await
}

async fn get_in_form(
    http: Arc<Http>,
    run: &mut Run,
    url: String,
    form: Option<String>,
) -> Result<Vec<u8>, Failure> {
    let is_text = match form.as_deref() {
        None | Some("" | "text") => true,
        Some("bytes") => false,
        Some(other) => {
            let message = format!("the form is \"text\" or \"bytes\", not {other:?}");
            return Err(Failure::new(Code::EPARSE, message));
        }
    };
    let answer = send(&http, run, "http.get", get_request(&url)).await?;
    let decoded =
        if is_text { decoded(run.account(), &answer, run.deadline()).await? } else { None };
    successful_body(&url, answer, decoded)
}

/// Returns the text of a response whose content type declares an encoding other than UTF-8.
async fn decoded(
    account: &Account,
    answer: &Response,
    until: Instant,
) -> Result<Option<String>, Failure> {
    let content_type = answer.headers.get(egress::header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    crate::web::decoded(account, content_type, &answer.body, until).await
}

async fn get_all(http: Arc<Http>, run: &mut Run, urls: Unadmitted<i32>) -> Result<Handle, Failure> {
    // Each URL is admitted when it is fetched.
    let (urls, _) = urls.open(run);
    let urls = Arrays::of(run).get(Handle(urls))?.clone();
    let mut items = vec![String::new(); urls.len()];
    let mut room = run.remaining_memory();
    let mut held = run.account().nothing();
    let sender = Sender::of(run);
    let count = urls.len();
    let answers = urls.into_iter().enumerate().map(|(at, url)| {
        let http = Arc::clone(&http);
        let sender = sender.clone();
        async move { (at, fetch_item(&*http.backend, &sender, &url).await) }
    });
    let mut answers =
        futures_util::stream::iter(answers).buffer_unordered(http.max_concurrent.get());
    while let Some((at, answer)) = answers.next().await {
        room = room.checked_sub(answer.len()).ok_or_else(|| {
            let message =
                format!("the responses of {count} URLs exceed the run's memory limit; fetch fewer");
            Failure::new(Code::ENOMEM, message)
        })?;
        held.grow(answer.len())?;
        if let Some(item) = items.get_mut(at) {
            *item = answer;
        }
    }
    drop(answers);
    Arrays::make(run, items)
}

/// Fetches one URL of a `get_all` call. Returns the response or the failure as JSON.
async fn fetch_item(backend: &dyn Backend, sender: &Sender, url: &[u8]) -> String {
    let mut item = Map::new();
    item.insert("url".to_owned(), String::from_utf8_lossy(url).into());
    let body = match std::str::from_utf8(url) {
        Err(_) => Err(Failure::new(Code::EPARSE, "the URL is not UTF-8")),
        Ok(url) => match sender.send(backend, "http.get_all", get_request(url)).await {
            Err(failure) => Err(failure),
            Ok(answer) => {
                item.insert("status".to_owned(), answer.status.as_u16().into());
                match decoded(&sender.account, &answer, sender.until).await {
                    Ok(decoded) => successful_body(url, answer, decoded),
                    Err(failure) => Err(failure),
                }
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

async fn post(
    http: Arc<Http>,
    run: &mut Run,
    url: String,
    body: Vec<u8>,
    content_type: String,
) -> Result<Vec<u8>, Failure> {
    let kind = if content_type.is_empty() { "text/plain; charset=utf-8" } else { &content_type };
    let mut headers = HeaderMap::new();
    headers.insert(egress::header::CONTENT_TYPE, header_value("content-type", kind)?);
    let mut request =
        Request { method: Method::POST, url: url.clone(), headers, body: body.into() };
    add_idempotency_key(run, &mut request)?;
    let answer = send(&http, run, "http.post", request).await?;
    let decoded = decoded(run.account(), &answer, run.deadline()).await?;
    successful_body(&url, answer, decoded)
}

async fn request(
    http: Arc<Http>,
    run: &mut Run,
    method: String,
    url: String,
    headers: Option<String>,
    body: Vec<u8>,
) -> Result<String, Failure> {
    let method = Method::from_bytes(method.trim().to_ascii_uppercase().as_bytes())
        .map_err(|_| Failure::new(Code::EPARSE, format!("{method:?} is not an HTTP method")))?;
    let headers = read_headers(headers.as_deref().unwrap_or_default())?;
    let mut request = Request { method, url, headers, body: body.into() };
    add_idempotency_key(run, &mut request)?;
    let answer = send(&http, run, "http.request", request).await?;
    let mut shown = Map::new();
    for (name, value) in &answer.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        match shown.get_mut(name.as_str()) {
            Some(Json::String(all)) => *all = format!("{all}, {value}"),
            _ => drop(shown.insert(name.as_str().to_owned(), value.into())),
        }
    }
    let body = match decoded(run.account(), &answer, run.deadline()).await? {
        Some(body) => body,
        None => String::from_utf8_lossy(&answer.body).into_owned(),
    };
    Ok(json!({"status": answer.status.as_u16(), "headers": shown, "body": body}).to_string())
}

fn read_headers(json: &str) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    if json.trim().is_empty() {
        return Ok(headers);
    }
    let bad =
        |why: &str| Failure::new(Code::EPARSE, format!("the headers are not a JSON object: {why}"));
    let given = match Document::read(json).map_err(|failure| bad(&failure.reason))? {
        Document::Object(given) => given,
        other => return Err(bad(&format!("the JSON is {}", other.a_kind()))),
    };
    for (name, value) in *given {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Failure::new(Code::EPARSE, format!("{name:?} is not a header name")))?;
        headers.append(key, header_value(&name, &value.plain())?);
    }
    Ok(headers)
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(value).map_err(|_| {
        Failure::new(
            Code::EPARSE,
            format!(
                "the value of the header {name:?} has a character that is not allowed in headers"
            ),
        )
    })
}

//! The guest that converts untrusted content: web pages, text in any encoding, and search engine
//! responses. The host itself does not decode or parse this content.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use wattle_rt::{Account, Code, Failure, GuestAnswer, GuestBounds, GuestFault};

use crate::guests::LazyGuest;

/// The guest built from `shell/toolbox/pages`.
static PAGES: LazyGuest = LazyGuest::new("pages", include_bytes!("pages.wasm.zst"));

/// Maximum memory of a conversion, in bytes.
pub(crate) const MEMORY: usize = 64 << 20;

/// Maximum processor time for parsing a page. This is about four times the time needed for 5 MiB of
/// tags.
const STRUCTURE: Duration = Duration::from_secs(2);
/// Maximum processor time for removing the tags of a page without parsing it.
const PLAIN: Duration = Duration::from_secs(4);

/// Maximum length of the output, in bytes.
const OUTPUT: usize = 16 << 20;

/// Maximum size of a body that the guest converts, in bytes. The rest of a larger body is ignored.
pub(crate) const PAGE_BYTES: usize = 5 << 20;

/// The guest's status for a converted body. The guest's source code defines the same status codes.
const DONE: i32 = 0;
/// The guest's status for a body that is not text.
const NOT_TEXT: i32 = 1;
/// The guest's status for a search engine response without results.
const NO_RESULTS: i32 = 2;
/// The guest's status for a page that is nested too deeply to be searched.
const TOO_DEEP: i32 = 4;
/// The guest's status for an invalid selector.
const BAD_SELECTOR: i32 = 5;

/// A response body to convert, with its URL and content type.
pub(super) struct Page<'a> {
    pub(super) url: &'a str,
    pub(super) content_type: &'a str,
    pub(super) body: &'a [u8],
}

/// The text of a body.
pub(super) struct Text {
    pub(super) text: String,
    /// If true, the page was too expensive to parse, and only its tags were removed.
    pub(super) plain: bool,
}

/// The reason why a body has no text.
pub(super) enum NoText {
    /// The body is not text. The string is the reason, worded to follow the URL in a sentence.
    Other(String),
    /// The conversion failed.
    Failed(Failure),
}

/// Starts compiling the guest in the background, because a call will need it soon.
pub(super) fn prepare() {
    PAGES.prepare();
}

/// Waits until the guest is compiled.
///
/// # Errors
/// `EREMOTE` if the host cannot compile it.
pub(super) async fn ready() -> Result<(), Failure> {
    PAGES.get().await.map(drop)
}

/// Converts a body to text. If parsing a page takes too much memory or time, only its tags are
/// removed.
pub(super) async fn text(
    account: &Account,
    page: &Page<'_>,
    until: Instant,
) -> Result<Text, NoText> {
    let Page { url, content_type, body } = *page;
    let request = |plain: bool| {
        json!({
            "entry": "text", "url": url, "content_type": content_type, "plain": plain,
        })
    };
    let (answer, plain) = match ask(account, &request(false), body, STRUCTURE, until).await {
        Err(GuestFault::Time | GuestFault::Stack | GuestFault::Memory | GuestFault::Crash) => {
            (ask(account, &request(true), body, PLAIN, until).await, true)
        }
        answer => (answer, false),
    };
    let GuestAnswer { status, output } =
        answer.map_err(|fault| NoText::Failed(failed(&fault, url)))?;
    let text = String::from_utf8_lossy(&output);
    match status {
        DONE => Ok(Text { text: text.into_owned(), plain }),
        NOT_TEXT => Err(NoText::Other(text.into_owned())),
        _ => Err(NoText::Failed(Failure::new(
            Code::EREMOTE,
            format!("failed to convert {url}: {text}"),
        ))),
    }
}

/// Parses the results in a search engine's response. Returns them as JSON: `[{title, url,
/// snippet}]`. `request` contains the guest's entry point and its parameters.
///
/// # Errors
/// `Err(Ok(reason))` if there are no results or the response cannot be parsed; `Err(Err(failure))`
/// if a limit of the run's account is exceeded or the guest cannot be compiled.
pub(super) async fn results(
    account: &Account,
    request: Json,
    body: &[u8],
    until: Instant,
) -> Result<String, Result<String, Failure>> {
    match ask(account, &request, body, STRUCTURE, until).await {
        Ok(GuestAnswer { status: DONE, output }) => {
            Ok(String::from_utf8_lossy(&output).into_owned())
        }
        Ok(GuestAnswer { status: NO_RESULTS, output }) => {
            Err(Ok(String::from_utf8_lossy(&output).into_owned()))
        }
        Ok(GuestAnswer { output, .. }) => {
            Err(Ok(format!("the answer is invalid: {}", String::from_utf8_lossy(&output))))
        }
        Err(GuestFault::Account(failure)) => Err(Err(failure)),
        Err(fault) => Err(Ok(format!("the search engine's answer is too large to parse: {fault}"))),
    }
}

/// Returns the text of a body whose content type declares an encoding other than UTF-8. Returns
/// `None` if there is nothing to decode: the body is no text, its content type declares no such
/// encoding, or it is longer than [`PAGE_BYTES`].
///
/// # Errors
/// If the conversion takes too much time or memory.
pub(crate) async fn decoded(
    account: &Account,
    content_type: &str,
    body: &[u8],
    until: Instant,
) -> Result<Option<String>, Failure> {
    let Some(label) = declared_charset(content_type) else { return Ok(None) };
    // These encodings write other characters as ASCII.
    let hides = label.starts_with("utf-16") || body.contains(&0x1b);
    if matches!(label.as_str(), "utf-8" | "utf8")
        || body.len() > PAGE_BYTES
        || (body.is_ascii() && !hides)
    {
        return Ok(None);
    }
    let request = json!({"entry": "decode", "label": label});
    let answer = ask(account, &request, body, STRUCTURE, until).await;
    let answer = answer.map_err(|fault| too_expensive(fault, "to decode the body"))?;
    Ok(Some(String::from_utf8_lossy(&answer.output).into_owned()))
}

/// Returns the label of the encoding that the content type of a text declares, in lower case.
fn declared_charset(content_type: &str) -> Option<String> {
    let content_type = content_type.to_ascii_lowercase();
    let (kind, parameters) = content_type.split_once(';')?;
    let kind = kind.trim();
    let is_text = kind.starts_with("text/")
        || ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "csv", "sql"]
            .iter()
            .any(|text| kind.ends_with(text));
    if !is_text {
        return None;
    }
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let label = value.trim().trim_matches(['"', '\'']);
        (name.trim() == "charset" && !label.is_empty()).then(|| label.to_owned())
    })
}

/// Returns a page for the guest, which takes the encoding that a page declares. A page that is
/// already UTF-8 gets a byte-order mark: it may have been decoded, and still declare the encoding
/// that it was in.
fn marked(html: &[u8]) -> Cow<'_, [u8]> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if html.is_ascii() || html.starts_with(MARK) || std::str::from_utf8(html).is_err() {
        return Cow::Borrowed(html);
    }
    Cow::Owned([MARK, html].concat())
}

/// Returns the visible text of a page. If parsing the page takes too much memory or time, returns
/// the page with only its tags removed.
pub(crate) async fn page_text(
    account: &Account,
    html: &[u8],
    until: Instant,
) -> Result<String, Failure> {
    let request = |plain: bool| json!({"entry": "page_text", "plain": plain});
    let html = &marked(html);
    let answer = match ask(account, &request(false), html, STRUCTURE, until).await {
        Err(GuestFault::Time | GuestFault::Stack | GuestFault::Memory | GuestFault::Crash) => {
            ask(account, &request(true), html, PLAIN, until).await
        }
        answer => answer,
    };
    let answer = answer.map_err(|fault| too_expensive(fault, "to convert the page to text"))?;
    Ok(String::from_utf8_lossy(&answer.output).into_owned())
}

/// Returns the absolute URLs of a page's links. `base` is the URL of the page.
pub(crate) async fn links(
    account: &Account,
    base: &str,
    html: &[u8],
    until: Instant,
) -> Result<Vec<String>, Failure> {
    let request = json!({"entry": "links", "base": base});
    let answer = ask(account, &request, &marked(html), STRUCTURE, until).await;
    list(answer.map_err(|fault| too_expensive(fault, "to read the page's links"))?)
}

/// Returns the text of each element that a selector matches or, if `attribute` is given, the value
/// of that attribute.
pub(crate) async fn select(
    account: &Account,
    css: &str,
    attribute: Option<&str>,
    html: &[u8],
    until: Instant,
) -> Result<Vec<String>, Failure> {
    let request = json!({"entry": "select", "css": css, "attribute": attribute});
    let answer = ask(account, &request, &marked(html), STRUCTURE, until).await;
    list(answer.map_err(|fault| too_expensive(fault, "to search the page"))?)
}

/// Parses the guest's answer as a list of strings.
fn list(GuestAnswer { status, output }: GuestAnswer) -> Result<Vec<String>, Failure> {
    let reason = || String::from_utf8_lossy(&output).into_owned();
    match status {
        DONE => serde_json::from_slice(&output).map_err(|error| {
            Failure::new(Code::EREMOTE, format!("the guest returned an invalid list: {error}"))
        }),
        BAD_SELECTOR => Err(Failure::new(Code::EPARSE, reason())),
        TOO_DEEP => Err(Failure::new(Code::EBOUND, reason())),
        _ => Err(Failure::new(Code::EREMOTE, format!("the page cannot be read: {}", reason()))),
    }
}

fn too_expensive(fault: GuestFault, what: &str) -> Failure {
    let hint = "pass a part of the page";
    match fault {
        GuestFault::Account(failure) => failure,
        GuestFault::Time => Failure::new(Code::ETIME, format!("it takes too long {what}; {hint}")),
        GuestFault::Memory | GuestFault::Output => {
            Failure::new(Code::ENOMEM, format!("it takes too much memory {what}; {hint}"))
        }
        fault => Failure::new(Code::EREMOTE, format!("failed {what}: {fault}")),
    }
}

async fn ask(
    account: &Account,
    request: &Json,
    body: &[u8],
    cpu: Duration,
    until: Instant,
) -> Result<GuestAnswer, GuestFault> {
    let guest = PAGES.get().await.map_err(GuestFault::Account)?;
    let bounds = GuestBounds { memory: MEMORY, cpu, output: OUTPUT, until };
    guest.call(account, request.to_string().as_bytes(), body, 0.0, bounds).await
}

fn failed(fault: &GuestFault, url: &str) -> Failure {
    let too_much = |code, what: &str| {
        Failure::new(
            code,
            format!(
                "failed to convert {url} to text: {what}; `http.get` returns the page unchanged"
            ),
        )
    };
    match fault {
        GuestFault::Account(failure) => failure.clone(),
        GuestFault::Time => too_much(Code::ETIME, "the conversion takes too long"),
        GuestFault::Memory => too_much(Code::ENOMEM, "the conversion takes more than 64 MiB"),
        fault => too_much(Code::EREMOTE, &fault.to_string()),
    }
}

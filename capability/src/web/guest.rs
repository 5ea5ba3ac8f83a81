//! The guest that converts what strangers wrote: pages, texts in any encoding, and the answers of search engines. Nothing of them is
//! decoded or parsed in the host.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use wattle_rt::{Account, Code, Failure, GuestAnswer, GuestBounds, GuestFault};

use crate::guests::LazyGuest;

/// Built from `shell/toolbox/pages`.
static PAGES: LazyGuest = LazyGuest::new("pages", include_bytes!("pages.wasm"));

/// Maximum memory of a conversion, in bytes.
pub(crate) const MEMORY: usize = 64 << 20;

/// Maximum processor time in which a page is read by its structure, and in which its tags are taken out: some four times what 5 MiB of
/// tags take.
const STRUCTURE: Duration = Duration::from_secs(2);
const PLAIN: Duration = Duration::from_secs(4);

/// Maximum length of what is converted, in bytes.
const OUTPUT: usize = 16 << 20;

/// Statuses of the guest, which has the same list.
const DONE: i32 = 0;
const NOT_TEXT: i32 = 1;
const NO_RESULTS: i32 = 2;

/// The text of a body.
pub(super) struct Text {
    pub(super) text: String,
    /// If true, the page was too much to be read by its structure, and this is its text without tags.
    pub(super) plain: bool,
}

/// Why there is no text.
pub(super) enum NoText {
    /// The body is something else; the words go on from the URL.
    Other(String),
    /// The conversion failed.
    Failed(Failure),
}

/// Begins to compile the guest, for a call that is about to need it.
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

/// Converts a body to text. A page that takes too much memory or time by its structure is read without it.
pub(super) async fn text(
    account: &Account,
    (url, content_type): (&str, &str),
    body: &[u8],
    until: Instant,
) -> Result<Text, NoText> {
    let request = |plain: bool| json!({"entry": "text", "url": url, "content_type": content_type, "plain": plain});
    let (answer, plain) = match ask(account, &request(false), body, STRUCTURE, until).await {
        Err(GuestFault::Time | GuestFault::Stack | GuestFault::Memory | GuestFault::Crash) => {
            (ask(account, &request(true), body, PLAIN, until).await, true)
        }
        answer => (answer, false),
    };
    let GuestAnswer { status, output } = answer.map_err(|fault| NoText::Failed(failed(&fault, url)))?;
    let said = String::from_utf8_lossy(&output);
    match status {
        DONE => Ok(Text { text: said.into_owned(), plain }),
        NOT_TEXT => Err(NoText::Other(said.into_owned())),
        _ => Err(NoText::Failed(Failure::new(Code::EREMOTE, format!("{url} cannot be converted: {said}")))),
    }
}

/// Reads the results of a search from an engine's answer: at most `most`, as JSON [{title, url, snippet}]. `how` is the entry of the guest
/// with its parameters.
///
/// # Errors
/// What is wrong with the answer.
pub(super) async fn results(
    account: &Account,
    how: Json,
    body: &[u8],
    until: Instant,
) -> Result<String, Result<String, Failure>> {
    match ask(account, &how, body, STRUCTURE, until).await {
        Ok(GuestAnswer { status: DONE, output }) => Ok(String::from_utf8_lossy(&output).into_owned()),
        Ok(GuestAnswer { status: NO_RESULTS, output }) => Err(Ok(String::from_utf8_lossy(&output).into_owned())),
        Ok(GuestAnswer { output, .. }) => {
            Err(Ok(format!("the answer cannot be read: {}", String::from_utf8_lossy(&output))))
        }
        Err(GuestFault::Account(failure)) => Err(Err(failure)),
        Err(fault) => Err(Ok(format!("the search engine's answer is too large to be read: {fault}"))),
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
    guest.call(account, (request.to_string().as_bytes(), body), 0.0, bounds).await
}

fn failed(fault: &GuestFault, url: &str) -> Failure {
    let too_much = |code, what: &str| {
        Failure::new(code, format!("{url} cannot be converted to text: {what}; `http.get` returns it as it is"))
    };
    match fault {
        GuestFault::Account(failure) => failure.clone(),
        GuestFault::Time => too_much(Code::ETIME, "it takes more than its share of time"),
        GuestFault::Memory => too_much(Code::ENOMEM, "it takes more than 64 MiB"),
        fault => too_much(Code::EREMOTE, &fault.to_string()),
    }
}

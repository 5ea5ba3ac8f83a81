//! What goes wrong between the runtime and a model, and the words for it.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use wattle_capability::egress::{EgressError, EgressErrorKind};

use super::key::ApiKey;

/// Tells why a model gave no reply. No key ever stands in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    kind: ModelErrorKind,
    text: String,
}

/// Sorts the ways in which a model gives no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing, wrong, or not allowed to do this (401, 403).
    Key,
    /// The account has no credit left (402).
    Credit,
    /// The endpoint knows no such model or path (404), or moved.
    NotFound,
    /// The conversation is longer than the model reads.
    TooLong,
    /// The endpoint or its model takes no functions.
    Functions,
    /// The endpoint says that the request is wrong (any other 4xx).
    Request,
    /// The endpoint is busy or broken (408, 409, 425, 429, 5xx), again after all repetitions.
    Unavailable,
    /// The endpoint could not be reached, or the connection broke.
    Network,
    /// The endpoint may not be reached, by the policy of what may leave.
    Refused,
    /// A single request took too long.
    Timeout,
    /// The whole turn took too long: `llm hard timeout`.
    HardTimeout,
    /// The response is not a chat completion, or it is too large.
    Malformed,
    /// A recording cannot be read, written, or has no fitting turn.
    Cassette,
}

impl ModelError {
    /// Tells which kind of failure this is.
    pub fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// Tells whether a setting (key, model, URL, recording) has to change before asking again makes sense.
    pub fn is_configuration(&self) -> bool {
        use ModelErrorKind::*;
        matches!(self.kind, Key | NotFound | Refused | Cassette)
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for ModelError {}

fn error(kind: ModelErrorKind, text: String) -> ModelError {
    ModelError { kind, text }
}

/// Holds what an error text may say about the endpoint that was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) url: &'a str,
    pub(super) model: &'a str,
    pub(super) key_variable: &'a str,
    pub(super) with_key: bool,
}

/// The wording, by kind.
impl ModelError {
    pub(super) fn of_status(asked: Asked<'_>, status: u16, said: &str) -> Self {
        use ModelErrorKind::*;
        let Asked { url, model, key_variable, with_key } = asked;
        let (kind, text) = match status {
            401 | 403 if !with_key => (Key, format!("the provider wants a key ({status}): set `{key_variable}`")),
            401 | 403 => (Key, format!("the provider refused the key ({status}): check `{key_variable}`")),
            402 => (Credit, "the provider wants payment (402): the account of this key has no credit left".to_owned()),
            // What relays requests says so where no endpoint behind it takes functions.
            404 | 405 | 501 if said.to_ascii_lowercase().contains("tool") => {
                (Request, format!("the provider refused the request ({status})"))
            }
            404 => (NotFound, format!("nothing at {url} for model `{model}` (404): check the base URL and the model")),
            400 | 413 | 422 if speaks_of_length(said) || status == 413 => {
                (TooLong, format!("the conversation is longer than model `{model}` reads ({status})"))
            }
            429 => (Unavailable, "the provider limits the rate of requests (429)".to_owned()),
            529 | 503 => (Unavailable, format!("the provider is overloaded ({status})")),
            408 | 409 | 425 | 500.. => (Unavailable, format!("the provider failed ({status})")),
            300..400 => (NotFound, format!("{url} redirects ({status}): set the base URL to where it leads")),
            _ => (Request, format!("the provider refused the request ({status})")),
        };
        error(kind, quoting(text, said))
    }

    /// An error that came inside of a response with status 200.
    pub(super) fn in_answer(unavailable: bool, said: &str) -> Self {
        let kind = match (unavailable, speaks_of_length(said)) {
            (_, true) => ModelErrorKind::TooLong,
            (true, _) => ModelErrorKind::Unavailable,
            (false, _) => ModelErrorKind::Request,
        };
        error(kind, quoting("the provider reported an error in its answer".to_owned(), said))
    }

    pub(super) fn malformed(url: &str, why: &str, head: &str) -> Self {
        let text = format!("{url} gave no chat completion: {why}");
        error(ModelErrorKind::Malformed, quoting(text, head))
    }

    /// An answer whose end is missing.
    pub(super) fn broke_off(url: &str) -> Self {
        let text = format!("the answer of {url} broke off: the connection closed before the message had ended");
        error(ModelErrorKind::Network, text)
    }

    pub(super) fn no_embedding(url: &str, head: &str) -> Self {
        error(ModelErrorKind::Malformed, quoting(format!("{url} gave no embedding"), head))
    }

    pub(super) fn embeds_nothing(model: &str) -> Self {
        error(ModelErrorKind::Request, format!("model `{model}` gives no embeddings"))
    }

    pub(super) fn of_egress(why: &EgressError, limit: Duration) -> Self {
        use EgressErrorKind as E;
        let kind = match why.kind() {
            E::Refused => ModelErrorKind::Refused,
            E::Redirect | E::BadUrl => ModelErrorKind::NotFound,
            E::TooLarge => ModelErrorKind::Malformed,
            E::BadRequest => ModelErrorKind::Request,
            E::Timeout => {
                let text = format!("the model gave no complete answer within {} ms", limit.as_millis());
                return error(ModelErrorKind::Timeout, text);
            }
            _ => ModelErrorKind::Network,
        };
        error(kind, why.to_string())
    }

    pub(super) fn hard_timeout() -> Self {
        error(ModelErrorKind::HardTimeout, "llm hard timeout".to_owned())
    }

    pub(super) fn unwritable_request(why: &serde_json::Error) -> Self {
        error(ModelErrorKind::Request, format!("failed to write the request: {why}"))
    }

    /// Tells whether the endpoint complains about functions.
    pub(super) fn speaks_of_functions(&self) -> bool {
        const SIGNS: &[&str] = &["tool", "function call", "function_call", "functions"];
        let said = self.text.to_ascii_lowercase();
        SIGNS.iter().any(|sign| said.contains(sign))
    }

    /// The same as a refusal of functions.
    pub(super) fn of_functions(self) -> Self {
        Self { kind: ModelErrorKind::Functions, ..self }
    }

    /// Says how often the question was asked, where that was more than once.
    pub(super) fn after(mut self, attempts: u32) -> Self {
        if attempts > 1 {
            self.text.push_str(&format!(" (asked {attempts} times)"));
        }
        self
    }

    /// Masks the key, whatever text it came in by.
    pub(super) fn scrubbed(self, key: Option<&ApiKey>) -> Self {
        match key {
            Some(key) => Self { text: key.scrub(&self.text), ..self },
            None => self,
        }
    }

    pub(super) fn no_recording(path: &str, why: &std::io::Error) -> Self {
        error(ModelErrorKind::Cassette, format!("failed to open the recording `{path}`: {why}"))
    }

    pub(super) fn bad_recording(line: usize, why: &str) -> Self {
        error(ModelErrorKind::Cassette, format!("failed to read the recording: line {line}: {why}"))
    }

    pub(super) fn recording_over(turns: usize) -> Self {
        let text =
            format!("the recording is over: it has {turns} turns, and the run asks for one more; record it anew");
        error(ModelErrorKind::Cassette, text)
    }

    pub(super) fn recording_differs(turn: usize, what: &str) -> Self {
        error(ModelErrorKind::Cassette, format!("the run differs from the recording at turn {turn}: {what}"))
    }

    pub(super) fn unwritable_recording(why: &std::io::Error) -> Self {
        error(ModelErrorKind::Cassette, format!("failed to write the recording: {why}"))
    }
}

fn speaks_of_length(said: &str) -> bool {
    const SIGNS: &[&str] = &[
        "context length",
        "context_length",
        "context window",
        "context size",
        "context_size",
        "maximum context",
        "too many tokens",
        "prompt is too long",
        "input is too long",
        "reduce the length",
        "max_model_len",
        "n_ctx",
    ];
    let said = said.to_ascii_lowercase();
    SIGNS.iter().any(|sign| said.contains(sign))
}

/// Adds what the other side said, on one line and at most 300 characters of it.
fn quoting(mut text: String, said: &str) -> String {
    const LIMIT: usize = 300;
    let mut words = said.split_whitespace().peekable();
    if words.peek().is_none() {
        return text;
    }
    text.push_str(": ");
    let mut left = LIMIT;
    let mut first = true;
    for word in words {
        let gap = if std::mem::take(&mut first) { "" } else { " " };
        for char in gap.chars().chain(word.chars()) {
            if left == 0 {
                text.push('…');
                return text;
            }
            text.push(char);
            left -= 1;
        }
    }
    text
}

/// Tells what is missing or wrong in the settings of the model's endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointError {
    kind: EndpointErrorKind,
    text: String,
}

/// Sorts what can be wrong with an endpoint's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointErrorKind {
    /// Neither an endpoint nor a key that tells one is set.
    NothingSet,
    /// The preset's name is unknown.
    UnknownPreset,
    /// The base URL cannot be used.
    BadUrl,
    /// The key is missing, or cannot be one.
    NoKey,
    /// No model is named.
    NoModel,
}

impl EndpointError {
    /// Tells which setting is the matter.
    pub fn kind(&self) -> EndpointErrorKind {
        self.kind
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for EndpointError {}

/// The wording of settings.
impl EndpointError {
    pub(super) fn nothing_set() -> Self {
        let text = "no model endpoint is set: give `--provider NAME` or `--base-url URL`, or set a provider's key";
        Self { kind: EndpointErrorKind::NothingSet, text: text.to_owned() }
    }

    pub(super) fn key_without_endpoint(variable: &str) -> Self {
        let text = format!(
            "`{variable}` is set, but not which endpoint it is for: give `--provider NAME` or `--base-url URL`"
        );
        Self { kind: EndpointErrorKind::NothingSet, text }
    }

    pub(super) fn unknown_preset<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.collect();
        let text = format!(
            "unknown provider `{name}`: give one of {}, or `--base-url URL` for another endpoint",
            known.join(", ")
        );
        Self { kind: EndpointErrorKind::UnknownPreset, text }
    }

    pub(super) fn bad_url(url: &str, why: &str) -> Self {
        let text =
            format!("invalid base URL `{}`: {why}; it looks like `http://127.0.0.1:8080/v1`", without_userinfo(url));
        Self { kind: EndpointErrorKind::BadUrl, text }
    }

    pub(super) fn key_in_url() -> Self {
        let text =
            "invalid base URL: it carries a user name or password; name a variable by `--api-key-env VAR` instead";
        Self { kind: EndpointErrorKind::BadUrl, text: text.to_owned() }
    }

    pub(super) fn unreachable(url: &str, why: &EgressError) -> Self {
        Self { kind: EndpointErrorKind::BadUrl, text: format!("invalid base URL `{url}`: {why}") }
    }

    pub(super) fn no_key(preset: Option<&str>, variables: &[&str]) -> Self {
        let list: Vec<String> = variables.iter().map(|variable| format!("`{variable}`")).collect();
        let list = list.join(" or ");
        let text = match preset {
            Some(name) => format!("no key for {name}: set {list}"),
            None => format!("no key: {list} is not set"),
        };
        Self { kind: EndpointErrorKind::NoKey, text }
    }

    pub(super) fn bad_key(variable: &str) -> Self {
        let text = format!(
            "the value of `{variable}` cannot be a key: it holds blanks, line ends or other than ASCII characters"
        );
        Self { kind: EndpointErrorKind::NoKey, text }
    }

    pub(super) fn no_model() -> Self {
        Self { kind: EndpointErrorKind::NoModel, text: "no model is named: give `--model NAME`".to_owned() }
    }
}

fn without_userinfo(url: &str) -> &str {
    url.rsplit('@').next().unwrap_or(url)
}

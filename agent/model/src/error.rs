//! Errors of model requests and of endpoint settings, with their messages.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use wattle_egress::{EgressError, EgressErrorKind};

use super::ApiKey;

/// A failed model request. Its text never contains a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelError {
    kind: ModelErrorKind,
    text: String,
}

/// The kinds of failed model requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The key is missing, wrong, or lacks a permission (401, 403).
    Key,
    /// The account has no credit left (402).
    Credit,
    /// The endpoint does not have this model or path (404), or it redirects.
    NotFound,
    /// The conversation exceeds the model's context window.
    TooLong,
    /// The endpoint or its model does not support functions.
    Functions,
    /// The endpoint rejects the request (any other 4xx).
    Request,
    /// The endpoint is busy or failing (408, 409, 425, 429, 5xx), even after all retries.
    Unavailable,
    /// The endpoint could not be reached, or the connection was lost.
    Network,
    /// The network policy does not allow the endpoint.
    Refused,
    /// A single request took too long.
    Timeout,
    /// The whole turn took too long: `llm hard timeout`.
    HardTimeout,
    /// The response is not a chat completion, or it is too large.
    Malformed,
    /// A recording cannot be read or written, or has no matching turn.
    Cassette,
    /// The application did not allow the request.
    Application,
}

impl ModelError {
    /// Returns the kind of failure.
    pub fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// Creates the error for a request that the application does not allow.
    #[must_use]
    pub fn application(reason: impl Into<String>) -> ModelError {
        error(ModelErrorKind::Application, reason.into())
    }

    /// Returns true if retrying is pointless until the key, the model, the URL or the recording is
    /// changed.
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

/// The parts of a request that an error may mention.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestContext<'a> {
    pub(super) url: &'a str,
    pub(super) model: &'a str,
    pub(super) key_variable: &'a str,
    pub(super) with_key: bool,
}

/// Constructors that define the wording of the errors.
impl ModelError {
    pub(super) fn of_status(context: RequestContext<'_>, status: u16, message: &str) -> Self {
        use ModelErrorKind::*;
        let RequestContext { url, model, key_variable, with_key } = context;
        let (kind, text) = match status {
            401 | 403 if !with_key => {
                (Key, format!("the provider requires a key ({status}): set `{key_variable}`"))
            }
            401 | 403 => {
                (Key, format!("the provider rejected the key ({status}): check `{key_variable}`"))
            }
            402 => (
                Credit,
                "the provider requires payment (402): the account of this key has no credit left"
                    .to_owned(),
            ),
            // A relay reports this if none of its endpoints supports functions.
            404 | 405 | 501 if message.to_ascii_lowercase().contains("tool") => {
                (Request, format!("the provider rejected the request ({status})"))
            }
            404 => (
                NotFound,
                format!("{url} has no model `{model}` (404): check the base URL and the model"),
            ),
            400 | 413 | 422 if is_about_length(message) || status == 413 => (
                TooLong,
                format!(
                    "the conversation exceeds the context window of model `{model}` ({status})"
                ),
            ),
            429 => (Unavailable, "the provider limits the rate of requests (429)".to_owned()),
            529 | 503 => (Unavailable, format!("the provider is overloaded ({status})")),
            408 | 409 | 425 | 500.. => (Unavailable, format!("the provider failed ({status})")),
            300..400 => (
                NotFound,
                format!(
                    "{url} redirects ({status}): set the base URL to the target of the redirect"
                ),
            ),
            _ => (Request, format!("the provider rejected the request ({status})")),
        };
        error(kind, quoting(text, message))
    }

    /// Creates the error for a failure that was reported in a response with status 200.
    pub(super) fn in_answer(unavailable: bool, message: &str) -> Self {
        let kind = match (unavailable, is_about_length(message)) {
            (_, true) => ModelErrorKind::TooLong,
            (true, _) => ModelErrorKind::Unavailable,
            (false, _) => ModelErrorKind::Request,
        };
        error(kind, quoting("the provider reported an error in its answer".to_owned(), message))
    }

    /// Creates the error for a response that is not a list of models.
    pub(super) fn no_models(url: &str, why: &str) -> Self {
        let text = format!("{url} returned no list of models: {why}");
        error(ModelErrorKind::Malformed, text)
    }

    pub(super) fn malformed(url: &str, why: &str, head: &str) -> Self {
        let text = format!("{url} returned no chat completion: {why}");
        error(ModelErrorKind::Malformed, quoting(text, head))
    }

    /// Creates the error for a truncated answer.
    pub(super) fn broke_off(url: &str) -> Self {
        let text = format!(
            "the answer of {url} broke off: the connection closed before the message had ended"
        );
        error(ModelErrorKind::Network, text)
    }

    pub(super) fn no_embedding(url: &str, head: &str) -> Self {
        error(ModelErrorKind::Malformed, quoting(format!("{url} returned no embedding"), head))
    }

    pub(super) fn no_embeddings(model: &str) -> Self {
        error(ModelErrorKind::Request, format!("model `{model}` does not support embeddings"))
    }

    pub(super) fn of_egress(why: &EgressError, limit: Duration) -> Self {
        use EgressErrorKind as E;
        let kind = match why.kind() {
            E::Refused => ModelErrorKind::Refused,
            E::Redirect | E::BadUrl => ModelErrorKind::NotFound,
            E::TooLarge => ModelErrorKind::Malformed,
            E::BadRequest => ModelErrorKind::Request,
            E::Timeout => {
                let text = format!(
                    "the model did not complete its answer within {} ms",
                    limit.as_millis()
                );
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

    /// Returns true if the error's text mentions functions or tools.
    pub(super) fn is_about_functions(&self) -> bool {
        const SIGNS: &[&str] = &["tool", "function call", "function_call", "functions"];
        let message = self.text.to_ascii_lowercase();
        SIGNS.iter().any(|sign| message.contains(sign))
    }

    /// Sets the kind of the error to [`ModelErrorKind::Functions`].
    pub(super) fn of_functions(self) -> Self {
        Self { kind: ModelErrorKind::Functions, ..self }
    }

    /// Appends the number of attempts to the error's text if there was more than one attempt.
    pub(super) fn after(mut self, attempts: u32) -> Self {
        if attempts > 1 {
            self.text.push_str(&format!(" (asked {attempts} times)"));
        }
        self
    }

    /// Masks the key in the error's text.
    pub(super) fn scrubbed(self, key: Option<&ApiKey>) -> Self {
        match key {
            Some(key) => Self { text: key.scrub(&self.text), ..self },
            None => self,
        }
    }

    pub(super) fn recording_masked(turn: usize) -> Self {
        let text = format!(
            "turn {turn} of the recording contains a masked key or secret, so it is not what the \
             model said, and is not played"
        );
        error(ModelErrorKind::Cassette, text)
    }

    pub(super) fn no_recording(path: &std::path::Path, why: &std::io::Error) -> Self {
        let text = format!("failed to open the recording `{}`: {why}", path.display());
        error(ModelErrorKind::Cassette, text)
    }

    pub(super) fn bad_recording(line: usize, why: &str) -> Self {
        error(ModelErrorKind::Cassette, format!("failed to read the recording: line {line}: {why}"))
    }

    pub(super) fn recording_ended(turns: usize) -> Self {
        let text = format!(
            "the recording has ended: it has {turns} turns, and the run asks for another one; \
             record it again"
        );
        error(ModelErrorKind::Cassette, text)
    }

    pub(super) fn recording_differs(turn: usize, what: &str) -> Self {
        error(
            ModelErrorKind::Cassette,
            format!("the run differs from the recording at turn {turn}: {what}"),
        )
    }

    pub(super) fn unwritable_recording(why: &std::io::Error) -> Self {
        error(ModelErrorKind::Cassette, format!("failed to write the recording: {why}"))
    }
}

fn is_about_length(message: &str) -> bool {
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
    let message = message.to_ascii_lowercase();
    SIGNS.iter().any(|sign| message.contains(sign))
}

/// Appends the provider's message to `text`, on one line and truncated to 300 characters.
fn quoting(mut text: String, message: &str) -> String {
    const LIMIT: usize = 300;
    let mut words = message.split_whitespace().peekable();
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

/// A missing or invalid setting of the model's endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointError {
    kind: EndpointErrorKind,
    text: String,
}

/// The kinds of invalid endpoint settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointErrorKind {
    /// Neither an endpoint nor the key of a preset is set.
    NothingSet,
    /// The preset's name is unknown.
    UnknownPreset,
    /// The base URL is invalid.
    BadUrl,
    /// The key is missing or malformed.
    NoKey,
    /// Neither the settings nor the preset names a model.
    NoModel,
}

impl EndpointError {
    /// Returns the kind of error.
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

/// Constructors that define the wording of the errors.
impl EndpointError {
    pub(super) fn nothing_set() -> Self {
        let text = "no model endpoint is set: give `--provider NAME` or `--base-url URL`, or set \
                    a provider's key";
        Self { kind: EndpointErrorKind::NothingSet, text: text.to_owned() }
    }

    pub(super) fn key_without_endpoint(variable: &str) -> Self {
        let text = format!(
            "`{variable}` is set, but no endpoint: give `--provider NAME` or `--base-url URL`"
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
        let text = format!(
            "invalid base URL `{}`: {why}; it looks like `http://127.0.0.1:8080/v1`",
            without_userinfo(url)
        );
        Self { kind: EndpointErrorKind::BadUrl, text }
    }

    pub(super) fn key_in_url() -> Self {
        let text = "invalid base URL: it contains a user name or password; name a variable by \
                    `--api-key-env VAR` instead";
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
            "the value of `{variable}` is not a valid key: it contains whitespace or characters \
             outside ASCII"
        );
        Self { kind: EndpointErrorKind::NoKey, text }
    }

    pub(super) fn no_model() -> Self {
        Self {
            kind: EndpointErrorKind::NoModel,
            text: "no model is named: give `--model NAME`".to_owned(),
        }
    }
}

fn without_userinfo(url: &str) -> &str {
    url.rsplit('@').next().unwrap_or(url)
}

//! The types and functions that all endpoint protocols share.

use serde::Deserialize;
use serde_json::Value;
use wattle_machine::{Dollars, FunctionCall, Usage};

use super::provider_fields::{self, PartialFields};
use super::{FunctionChoice, ModelReply, ModelRequest};

/// The request field for the maximum length of an answer. Its name differs between endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LengthField {
    #[default]
    MaxTokens,
    MaxCompletionTokens,
}

/// The field that specifies the reasoning effort in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ThinkingField {
    /// `reasoning_effort`: one of three levels.
    ReasoningEffort,
    /// `reasoning`: an object with one of three levels.
    Reasoning,
    /// `thinking`: an object with a number of tokens.
    Budget,
}

/// The protocol of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Protocol {
    /// The chat-completions protocol.
    #[default]
    Chat,
    /// The messages protocol.
    Messages,
}

impl Protocol {
    /// Returns the path relative to the base URL.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Messages => "messages",
        }
    }
}

/// A builder that assembles a message from the frames of a response. Each protocol has its own
/// implementation.
pub(super) trait ReplyBuilder: Send {
    /// Adds the data of one event, or of a whole body, to the message.
    fn absorb(&mut self, frame: &str) -> Result<(), ReplyFault>;

    /// Returns the parts of the message so far.
    fn partial(&self) -> &PartialReply;

    /// Returns true if the provider marked the end of the stream.
    fn is_done(&self) -> bool;

    /// Returns true if the message is complete, so that no more data is needed.
    fn is_whole(&self) -> bool;

    /// Returns true if the message is complete. Called if the body is JSON instead of a stream.
    fn is_whole_document(&self) -> bool {
        self.is_whole()
    }

    /// Returns the message, or `None` if it is empty.
    fn into_reply(self: Box<Self>) -> Option<ModelReply>;
}

/// The parts of a message that have arrived, in the form that all protocols share.
#[derive(Debug, Default)]
pub(super) struct PartialReply {
    pub(super) text: String,
    pub(super) reasoning: String,
    /// The calls, each with the index by which later pieces refer to it.
    pub(super) calls: Vec<(u64, FunctionCall)>,
    pub(super) finish: Option<String>,
    pub(super) provider: PartialFields,
    /// If true, a part of a message arrived, even if it was empty.
    pub(super) has_begun: bool,
}

impl PartialReply {
    /// Returns the size of the text, the reasoning and the calls, in bytes.
    pub(super) fn size(&self) -> usize {
        let call = |call: &FunctionCall| call.id.len() + call.name.len() + call.arguments.len();
        let calls: usize = self.calls.iter().map(|(_, one)| call(one)).sum();
        self.text.len() + self.reasoning.len() + calls
    }

    /// Returns the message, or `None` if it is empty.
    pub(super) fn into_reply(self, usage: Usage) -> Option<ModelReply> {
        let Self { text, reasoning, calls, finish, provider, has_begun } = self;
        let ids = calls.iter().map(|(_, call)| call.id.as_str());
        let provider = provider.into_fields(ids);
        let is_empty =
            text.is_empty() && reasoning.is_empty() && calls.is_empty() && finish.is_none();
        (has_begun && !is_empty).then(|| ModelReply {
            text,
            calls: calls.into_iter().map(|(_, call)| call).collect(),
            reasoning: (!reasoning.is_empty()).then_some(reasoning),
            usage,
            finish,
            provider,
        })
    }
}

/// The optional fields that an endpoint accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OptionalFields {
    pub(super) length: LengthField,
    pub(super) temperature: bool,
    pub(super) stream_options: bool,
    /// If true, requests mark the parts to cache. Most providers of the chat-completions protocol
    /// cache without markers.
    pub(super) cache_marks: bool,
    /// The field for the reasoning effort, if there is one.
    pub(super) thinking: Option<ThinkingField>,
    /// If true, a request may force or forbid function calls.
    pub(super) function_choice: bool,
    /// If true, a request may contain a schema for the answer.
    pub(super) json_schema: bool,
    /// If true, requests contain the provider's own fields of the model's earlier messages.
    pub(super) provider_fields: bool,
}

/// Returns true if an endpoint's error is about the answer schema. The endpoint may accept a
/// different schema, or the same schema in a request without functions.
pub(super) fn rejects_schema(message: &str) -> bool {
    const SIGNS: &[&str] =
        &["response_format", "output_config", "json_schema", "json mode", "schema"];
    let message = message.to_ascii_lowercase();
    SIGNS.iter().any(|sign| message.contains(sign))
}

impl OptionalFields {
    /// Returns the function choice to send with a request. Returns `None` if the endpoint does not
    /// accept the field, if there are no functions, or if the choice is `auto`, which is the
    /// default of every endpoint.
    pub(super) fn function_choice(self, request: &ModelRequest<'_>) -> Option<FunctionChoice> {
        let choice = Some(request.function_choice);
        choice.filter(|choice| {
            self.function_choice && !request.functions.is_empty() && *choice != FunctionChoice::Auto
        })
    }

    /// Returns the fields without the one that the endpoint rejected, or `None` if the error
    /// message is about something else.
    pub(super) fn without_rejected(self, message: &str) -> Option<Self> {
        const SIGNS: &[&str] = &[
            "support",
            "unknown",
            "unrecognized",
            "unexpected",
            "permitted",
            "allowed",
            "deprecated",
            "extra",
            "invalid",
        ];
        let message = message.to_ascii_lowercase();
        if !SIGNS.iter().any(|sign| message.contains(sign)) {
            return None;
        }
        let mut fields = self;
        if message.contains("stream_options") {
            fields.stream_options = false;
        } else if message.contains("cache_control") {
            fields.cache_marks = false;
        } else if message.contains("max_completion_tokens") {
            let names_both = message.replace("max_completion_tokens", "").contains("max_tokens");
            fields.length =
                if names_both { LengthField::MaxCompletionTokens } else { LengthField::MaxTokens };
        } else if fields.provider_fields && provider_fields::are_named(&message) {
            fields.provider_fields = false;
        } else if message.contains("temperature") {
            fields.temperature = false;
        } else if message.contains("reasoning") || message.contains("thinking") {
            fields.thinking = None;
        } else if message.contains("tool_choice") {
            fields.function_choice = false;
        }
        (fields != self).then_some(fields)
    }
}

/// An error in a response body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyFault {
    /// The provider reports a failure. If `unavailable` is true, a retry may succeed.
    Reported { unavailable: bool, status: Option<u16>, message: String },
    /// A frame is not JSON.
    NotJson(String),
    /// The message exceeds a limit. The string names the limit.
    Excessive(String),
    /// The message began, but its end is missing.
    BrokeOff,
    /// The body contains no message.
    Nothing,
}

/// Maximum number of calls in one message.
pub(super) const MAX_CALLS: usize = 256;

/// Maximum size of one message: its text, its reasoning and its calls, in bytes. The time and
/// memory that a run needs to process a message are proportional to this size.
const MAX_MESSAGE: usize = 2 << 20;

/// Checks that a message of `size` bytes is not too large.
pub(super) fn admit_size(size: usize) -> Result<(), ReplyFault> {
    if size <= MAX_MESSAGE {
        Ok(())
    } else {
        Err(ReplyFault::Excessive(format!(
            "its message is larger than the limit of {MAX_MESSAGE} bytes"
        )))
    }
}

/// Checks that a message that already contains `known` calls may contain one more.
pub(super) fn admit_call(known: usize) -> Result<(), ReplyFault> {
    if known < MAX_CALLS {
        Ok(())
    } else {
        Err(ReplyFault::Excessive(format!("it has more than {MAX_CALLS} calls")))
    }
}

/// Parses the token counts of a response, whose field names differ between providers.
pub(super) fn read_usage(usage: &Value) -> Usage {
    let count = |value: &Value| {
        value
            .as_u64()
            .or_else(|| value.as_f64().map(|count| count as u64))
            .or_else(|| value.as_str()?.trim().parse().ok())
    };
    let field =
        |names: &[&str]| names.iter().find_map(|name| count(usage.pointer(name)?)).unwrap_or(0);
    Usage {
        prompt: field(&["/prompt_tokens", "/input_tokens"]),
        completion: field(&["/completion_tokens", "/output_tokens"]),
        cached: field(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ]),
        // Some relays report the cost of a request.
        cost: usage.get("cost").and_then(Value::as_f64).and_then(Dollars::new),
    }
}

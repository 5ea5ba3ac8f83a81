//! The chat-completions protocol as endpoints really speak it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_machine::{Dollars, FunctionCall, Message, Role, Usage};

use super::sse::Events;
use super::{FunctionTool, ModelReply, ModelRequest};

/// Names the field for an answer's greatest length, on which endpoints differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LengthField {
    #[default]
    MaxTokens,
    MaxCompletionTokens,
}

/// Names the protocol that an endpoint speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Protocol {
    /// Chat completions.
    #[default]
    Chat,
    /// Messages.
    Messages,
}

impl Protocol {
    /// The path below the base URL.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Messages => "messages",
        }
    }
}

/// Gathers a message from the frames of a response, whatever the protocol.
pub(super) trait Gather: Send {
    /// Takes the data of one event, or a whole body.
    fn absorb(&mut self, frame: &str) -> Result<(), Wrong>;

    /// What the model has said so far.
    fn text(&self) -> &str;

    /// Whether the provider said that nothing more comes.
    fn is_done(&self) -> bool;

    /// Whether the message is whole, even if the connection breaks now.
    fn is_whole(&self) -> bool;

    /// Gives the message; `None` where nothing came that belongs to one.
    fn into_reply(self: Box<Self>) -> Option<ModelReply>;
}

/// Says which optional fields an endpoint takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) length: LengthField,
    pub(super) temperature: bool,
    pub(super) stream_options: bool,
}

impl Fields {
    /// Gives the fields without the one that an endpoint does not know; `None` where it complains about something else.
    pub(super) fn without_refused(self, said: &str) -> Option<Self> {
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
        let said = said.to_ascii_lowercase();
        if !SIGNS.iter().any(|sign| said.contains(sign)) {
            return None;
        }
        let mut fields = self;
        if said.contains("stream_options") {
            fields.stream_options = false;
        } else if said.contains("max_completion_tokens") {
            let names_both = said.replace("max_completion_tokens", "").contains("max_tokens");
            fields.length = if names_both { LengthField::MaxCompletionTokens } else { LengthField::MaxTokens };
        } else if said.contains("temperature") {
            fields.temperature = false;
        }
        (fields != self).then_some(fields)
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Said<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Offered<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Is a message of the conversation.
#[derive(Serialize)]
struct Said<'a> {
    role: Role,
    content: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Called<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Called<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Offered<'a> {
    r#type: &'static str,
    function: &'a FunctionTool,
}

impl<'a> From<&'a Message> for Said<'a> {
    fn from(message: &'a Message) -> Self {
        let called = |call: &'a FunctionCall| Called {
            id: &call.id,
            r#type: "function",
            function: CalledFunction { name: &call.name, arguments: &call.arguments },
        };
        Said {
            role: message.role,
            content: &message.content,
            tool_calls: message.calls.iter().map(called).collect(),
            tool_call_id: message.answers.as_deref(),
        }
    }
}

/// Writes a request's body.
pub(super) fn body(
    model: &str,
    request: &ModelRequest<'_>,
    fields: Fields,
    stream: bool,
) -> Result<Vec<u8>, serde_json::Error> {
    let length = |field| (fields.length == field).then_some(request.max_tokens);
    serde_json::to_vec(&Body {
        model,
        messages: request.messages.iter().map(Said::from).collect(),
        tools: request.functions.iter().map(|function| Offered { r#type: "function", function }).collect(),
        temperature: fields.temperature.then_some(request.temperature),
        max_tokens: length(LengthField::MaxTokens),
        max_completion_tokens: length(LengthField::MaxCompletionTokens),
        stream,
        stream_options: (stream && fields.stream_options).then_some(StreamOptions { include_usage: true }),
    })
}

/// Splits a response's body into frames: the JSON texts of its events, or the whole of it where it is one JSON text.
/// The first character decides; what the content type says is as often wrong as right.
#[derive(Debug, Default)]
pub(super) enum Frames {
    #[default]
    Undecided,
    Json(Vec<u8>),
    Events(Events),
}

/// Maximum size of a frame in bytes: as JSON it takes up to 64 times its size in memory.
pub(super) const FRAME_LIMIT: usize = 4 << 20;

/// Maximum number of calls in one message.
pub(super) const CALLS: usize = 256;

/// Refuses a message with one more call than there may be.
pub(super) fn admit_call(known: usize) -> Result<(), Wrong> {
    if known < CALLS { Ok(()) } else { Err(Wrong::Excessive(format!("it has more than {CALLS} calls"))) }
}

impl Frames {
    /// Takes the next bytes and returns the frames that end in them.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, Wrong> {
        let frames = self.split(piece);
        let pending = match self {
            Self::Undecided => 0,
            Self::Json(text) => text.len(),
            Self::Events(events) => events.pending(),
        };
        match frames.iter().map(String::len).chain([pending]).all(|size| size <= FRAME_LIMIT) {
            true => Ok(frames),
            false => Err(Wrong::Excessive(format!("a part of it is larger than the limit of {FRAME_LIMIT} bytes"))),
        }
    }

    /// If true, the body is a stream of events, whose end the provider tells.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Events(_))
    }

    fn split(&mut self, mut piece: &[u8]) -> Vec<String> {
        if let Self::Undecided = self {
            // A byte order mark counts as blank.
            let is_blank = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(byte);
            let blank = piece.iter().take_while(|byte| is_blank(byte)).count();
            piece = piece.get(blank..).unwrap_or_default();
            *self = match piece.first() {
                None => return Vec::new(),
                Some(b'{' | b'[') => Self::Json(Vec::new()),
                Some(_) => Self::Events(Events::default()),
            };
        }
        match self {
            Self::Undecided => Vec::new(),
            Self::Json(text) => {
                text.extend_from_slice(piece);
                Vec::new()
            }
            Self::Events(events) => events.push(piece),
        }
    }

    pub(super) fn finish(self) -> Option<String> {
        match self {
            Self::Undecided => None,
            Self::Json(text) => Some(String::from_utf8_lossy(&text).trim_matches('\u{feff}').to_owned()),
            Self::Events(events) => events.finish(),
        }
    }
}

/// Tells why a frame brought no part of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The provider says that it failed: whether it may pass, and its words.
    Reported { unavailable: bool, status: Option<u16>, said: String },
    /// The frame is not JSON.
    NotJson(String),
    /// The message is larger than any that is taken; how.
    Excessive(String),
    /// The message began and its end is missing.
    BrokeOff,
    /// There is no message.
    Nothing,
}

/// Gathers a message from frames.
#[derive(Debug)]
pub(super) struct Answer {
    /// The fields that hold what the model thought.
    reasoning_fields: Vec<String>,
    text: String,
    reasoning: String,
    calls: Vec<(u64, FunctionCall)>,
    usage: Usage,
    finish: Option<String>,
    /// Whether anything came that belongs to a chat completion.
    begun: bool,
    /// Whether the provider said that nothing more comes.
    done: bool,
}

impl Gather for Answer {
    /// Lines that are no JSON object (`ping`) are passed over.
    fn absorb(&mut self, frame: &str) -> Result<(), Wrong> {
        let frame = frame.trim();
        if frame == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        if !frame.starts_with(['{', '[']) {
            return Ok(());
        }
        match serde_json::from_str::<Value>(frame) {
            Ok(value) => self.absorb_value(&value),
            // Some servers leave out the empty line between events.
            Err(_) if frame.contains('\n') && !frame.starts_with('[') => {
                for line in frame.lines().map(str::trim).filter(|line| !line.is_empty()) {
                    if line == "[DONE]" {
                        self.done = true;
                        return Ok(());
                    }
                    let value = serde_json::from_str(line).map_err(|why| Wrong::NotJson(why.to_string()))?;
                    self.absorb_value(&value)?;
                }
                Ok(())
            }
            Err(why) => Err(Wrong::NotJson(why.to_string())),
        }
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done || self.finish.is_some()
    }

    fn into_reply(self: Box<Self>) -> Option<ModelReply> {
        let Self { text, reasoning, calls, usage, finish, begun, .. } = *self;
        let said_nothing = text.is_empty() && reasoning.is_empty() && calls.is_empty() && finish.is_none();
        (begun && !said_nothing).then(|| ModelReply {
            text,
            calls: calls.into_iter().map(|(_, call)| call).collect(),
            reasoning: (!reasoning.is_empty()).then_some(reasoning),
            usage,
            finish,
        })
    }
}

impl Answer {
    pub(super) fn new(reasoning_fields: Vec<String>) -> Self {
        let (text, reasoning) = (String::new(), String::new());
        let (calls, usage, finish) = (Vec::new(), Usage::default(), None);
        Self { reasoning_fields, text, reasoning, calls, usage, finish, begun: false, done: false }
    }

    fn absorb_value(&mut self, value: &Value) -> Result<(), Wrong> {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        if let Some(wrong) = reported(value) {
            return Err(wrong);
        }
        if let Some(usage) = value.get("usage").filter(|usage| usage.is_object()) {
            self.usage = read_usage(usage);
            self.begun = true;
        }
        let choices = value.get("choices").and_then(Value::as_array).into_iter().flatten();
        let Some(choice) = choices.into_iter().find(|choice| index(choice) == 0) else { return Ok(()) };
        if let Some(wrong) = reported(choice) {
            return Err(wrong);
        }
        self.begun = true;
        if choice.get("finish_reason").and_then(Value::as_str) == Some("error") {
            // What a relaying provider says of the one behind it, in the middle of a message.
            let said = "the provider ended the answer with an error".to_owned();
            return Err(Wrong::Reported { unavailable: true, status: None, said });
        }
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty()) {
            self.finish = Some(finish.to_owned());
        }
        if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()) {
            self.absorb_message(delta)?;
        } else if self.text.is_empty() && self.calls.is_empty() {
            // A whole message; at the end of a stream it only repeats what the pieces said.
            match choice.get("message") {
                Some(message) if message.is_object() => self.absorb_message(message)?,
                _ => self.text.push_str(choice.get("text").and_then(Value::as_str).unwrap_or_default()),
            }
        }
        Ok(())
    }

    fn absorb_message(&mut self, message: &Value) -> Result<(), Wrong> {
        let thought = self.reasoning_fields.iter().find_map(|name| message.get(name)?.as_str());
        self.reasoning.push_str(thought.unwrap_or_default());
        let before = self.text.len();
        match message.get("content") {
            Some(Value::String(text)) => self.text.push_str(text),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.absorb_part(part)),
            _ => {}
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        calls.into_iter().flatten().enumerate().try_for_each(|(at, call)| self.absorb_call(at, call))?;
        if self.text.len() == before {
            self.text.push_str(message.get("refusal").and_then(Value::as_str).unwrap_or_default());
        }
        Ok(())
    }

    /// Takes what came of a call: the whole of it, or a piece that belongs to the call with the same index.
    fn absorb_call(&mut self, position: usize, piece: &Value) -> Result<(), Wrong> {
        let text = |pointer: &str| piece.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let index = piece.get("index").and_then(Value::as_u64).unwrap_or(position as u64);
        // Some servers give each call the index 0, and tell them apart by the id alone.
        let same = |id: &str| id.is_empty() || text("/id").is_empty() || id == text("/id");
        let at = match self.calls.iter().rposition(|(known, call)| *known == index && same(&call.id)) {
            Some(at) => at,
            None => {
                admit_call(self.calls.len())?;
                let empty = FunctionCall { id: String::new(), name: String::new(), arguments: String::new() };
                self.calls.push((index, empty));
                self.calls.len() - 1
            }
        };
        let Some((_, call)) = self.calls.get_mut(at) else { return Ok(()) };
        for (field, piece) in [(&mut call.id, text("/id")), (&mut call.name, text("/function/name"))] {
            // Some servers send them again with every piece.
            if field.is_empty() {
                field.push_str(piece);
            }
        }
        match piece.pointer("/function/arguments") {
            Some(Value::String(piece)) => call.arguments.push_str(piece),
            // Some servers send the object itself in place of its text.
            Some(whole @ Value::Object(_)) => call.arguments = whole.to_string(),
            _ => {}
        }
        Ok(())
    }

    fn absorb_part(&mut self, part: &Value) {
        if let Some(text) = part.as_str().or_else(|| part.get("text")?.as_str()) {
            self.text.push_str(text);
        }
        let thoughts = part.get("thinking");
        let thoughts = thoughts.and_then(Value::as_array).into_iter().flatten().chain(thoughts);
        for thought in thoughts.filter_map(|thought| thought.as_str().or_else(|| thought.get("text")?.as_str())) {
            self.reasoning.push_str(thought);
        }
    }
}

/// Takes the words of an error from whatever body an endpoint gave it; `None` where the text is not JSON.
pub(super) fn words_of_error(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body.trim_start_matches('\u{feff}').trim()).ok()?;
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
    ["error", "message", "detail", "errors", "msg"].iter().find_map(|name| words(value.get(name)?))
}

fn words(error: &Value) -> Option<String> {
    match error {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(list) => list.first().and_then(words),
        Value::Object(fields) => {
            let message = ["message", "msg", "detail", "error"].iter().find_map(|name| words(fields.get(*name)?));
            // A relaying provider puts the words of the one behind it there.
            let behind = fields.get("metadata").and_then(|data| data.get("raw")).and_then(words);
            let code = ["code", "type"].iter().find_map(|name| words(fields.get(*name)?));
            let all: Vec<String> = [message, behind].into_iter().flatten().collect();
            if all.is_empty() { code } else { Some(all.join(": ")) }
        }
        _ => None,
    }
}

/// Tells what a provider reports as its failure inside of a response that says it succeeded.
pub(super) fn reported(value: &Value) -> Option<Wrong> {
    let flat = value.get("object").and_then(Value::as_str) == Some("error");
    let error = if flat { value } else { value.get("error").filter(|error| is_set(error))? };
    let field = |name: &str| error.get(name).unwrap_or(&Value::Null);
    let status = [field("code"), field("status"), field("status_code")].iter().find_map(|code| {
        code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|code| u16::try_from(code).ok())
    });
    let status = status.filter(|status| (400..600).contains(status));
    let said = words(error).unwrap_or_else(|| error.to_string());
    let signs = format!("{} {} {said}", field("code"), field("type")).to_ascii_lowercase();
    const PASSING: &[&str] =
        &["server_error", "overloaded", "rate_limit", "rate limit", "timeout", "timed out", "unavailable", "internal"];
    let unavailable = match status {
        Some(status) => passes(status),
        None => PASSING.iter().any(|sign| signs.contains(sign)),
    };
    Some(Wrong::Reported { unavailable, status, said })
}

/// `"error": null`, `false`, `""` and `{}` stand for none.
fn is_set(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// Tells whether a request with this status may succeed when it is repeated.
pub(super) fn passes(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

fn index(choice: &Value) -> u64 {
    choice.get("index").and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn read_usage(usage: &Value) -> Usage {
    let count = |value: &Value| {
        value
            .as_u64()
            .or_else(|| value.as_f64().map(|count| count as u64))
            .or_else(|| value.as_str()?.trim().parse().ok())
    };
    let field = |names: &[&str]| names.iter().find_map(|name| count(usage.pointer(name)?)).unwrap_or(0);
    Usage {
        prompt: field(&["/prompt_tokens", "/input_tokens"]),
        completion: field(&["/completion_tokens", "/output_tokens"]),
        cached: field(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ]),
        // Some that relay requests say what one cost.
        cost: usage.get("cost").and_then(Value::as_f64).and_then(Dollars::new),
    }
}

//! The chat-completions protocol, with its variations between endpoints.

use serde::Serialize;
use serde_json::{Map, Value, json};
use wattle_machine::{FunctionCall, Message, Role, SharedText, Usage};

use super::protocol::{
    LengthField, OptionalFields, PartialReply, ReplyBuilder, ReplyFault, ThinkingField, admit_call,
    read_usage,
};
use super::provider_error::reported_error;
use super::provider_fields::KeptFields;
use super::{FunctionChoice, FunctionTool, ModelReply, ModelRequest, ThinkingEffort};
use crate::output::OutputSchema;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<RequestMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<FunctionChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
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
struct Reasoning {
    effort: &'static str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// A message of the conversation.
#[derive(Serialize)]
struct RequestMessage<'a> {
    role: Role,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    /// The provider's own fields of the model's message.
    #[serde(flatten)]
    provider: Map<String, Value>,
}

/// The content of a message: a string, or several parts, one of which is marked for caching.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<TextPart<'a>>),
}

#[derive(Serialize)]
struct TextPart<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

impl<'a> Content<'a> {
    /// Splits a string at byte `at` and marks the first part for caching. An empty part is omitted.
    fn marked(text: &'a str, at: usize) -> Self {
        if text.trim().is_empty() {
            return Content::Text(text);
        }
        let (marked, rest) = match text.split_at_checked(at) {
            Some((marked, rest)) if !marked.is_empty() => (marked, rest),
            _ => (text, ""),
        };
        let part = |text, cache_control| TextPart { r#type: "text", text, cache_control };
        let marked = part(marked, Some(CacheControl { r#type: "ephemeral" }));
        let rest = (!rest.trim().is_empty()).then(|| part(rest, None));
        Content::Parts([marked].into_iter().chain(rest).collect())
    }
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: ToolCallFunction<'a>,
    /// The provider's own fields of the call.
    #[serde(flatten)]
    provider: Map<String, Value>,
}

#[derive(Serialize)]
struct ToolCallFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: &'a FunctionTool,
}

impl<'a> RequestMessage<'a> {
    /// Converts a message to its form in a request to the model `origin`. Without an origin, the
    /// provider's own fields are omitted.
    fn new(message: &'a Message, origin: Option<&str>) -> Self {
        let kept = origin.map(|origin| KeptFields::of_message(message, origin));
        let kept = kept.unwrap_or_default();
        let tool_call = |(at, call): (usize, &'a FunctionCall)| ToolCall {
            id: &call.id,
            r#type: "function",
            function: ToolCallFunction { name: &call.name, arguments: &call.arguments },
            provider: kept.of_call(at, &call.id).cloned().unwrap_or_default(),
        };
        RequestMessage {
            role: message.role,
            content: Content::Text(&message.content),
            tool_calls: message.calls.iter().enumerate().map(tool_call).collect(),
            tool_call_id: message.answers.as_deref(),
            provider: kept.message,
        }
    }

    /// Marks text for caching. A request contains at most two marked texts: the system text shared
    /// by all sessions of an agent, and the last message, if it is the user's.
    fn marked(self, message: &'a Message, is_last: bool) -> Self {
        let end = match message.role {
            Role::System => message.stable,
            Role::User if is_last => message.content.len(),
            _ => return self,
        };
        RequestMessage { content: Content::marked(&message.content, end), ..self }
    }
}

/// Serializes a request's body.
pub(super) fn body(
    model: &str,
    origin: &str,
    request: &ModelRequest<'_>,
    fields: OptionalFields,
    stream: bool,
) -> Result<Vec<u8>, serde_json::Error> {
    let length = |field| (fields.length == field).then_some(request.max_tokens);
    let level = |field| {
        request
            .thinking_effort
            .filter(|_| fields.thinking == Some(field))
            .map(ThinkingEffort::level)
    };
    serde_json::to_vec(&Body {
        model,
        messages: request
            .messages
            .iter()
            .enumerate()
            .map(|(at, message)| {
                let origin = fields.provider_fields.then_some(origin);
                let sent = RequestMessage::new(message, origin);
                let is_last = at + 1 == request.messages.len();
                if fields.cache_marks { sent.marked(message, is_last) } else { sent }
            })
            .collect(),
        tools: request
            .functions
            .iter()
            .map(|function| Tool { r#type: "function", function })
            .collect(),
        tool_choice: fields.function_choice(request),
        reasoning_effort: level(ThinkingField::ReasoningEffort),
        reasoning: level(ThinkingField::Reasoning).map(|effort| Reasoning { effort }),
        response_format: request.output.filter(|_| fields.json_schema).map(response_format),
        temperature: fields.temperature.then_some(request.temperature),
        max_tokens: length(LengthField::MaxTokens),
        max_completion_tokens: length(LengthField::MaxCompletionTokens),
        stream,
        stream_options: (stream && fields.stream_options)
            .then_some(StreamOptions { include_usage: true }),
    })
}

/// Returns the field that constrains the answer to a schema. Endpoints accept only some schemas as
/// strict.
fn response_format(output: &OutputSchema) -> Value {
    json!({"type": "json_schema", "json_schema": {
        "name": output.name(), "schema": output.schema(), "strict": output.is_strict(),
    }})
}

/// A builder that assembles a message from the frames of a stream.
#[derive(Debug)]
pub(super) struct ChatBuilder {
    /// The fields that contain the model's reasoning.
    reasoning_fields: Vec<String>,
    reply: PartialReply,
    usage: Usage,
    /// If true, the provider marked the end of the stream.
    done: bool,
    /// If true, a frame contained a complete message, not just a piece of a message.
    has_message: bool,
}

impl ReplyBuilder for ChatBuilder {
    /// Adds a frame to the message. Skips frames that are not JSON objects or arrays, such as
    /// `ping`.
    fn absorb(&mut self, frame: &str) -> Result<(), ReplyFault> {
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
            // Some servers omit the empty line between events.
            Err(_) if frame.contains('\n') && !frame.starts_with('[') => {
                for line in frame.lines().map(str::trim).filter(|line| !line.is_empty()) {
                    if line == "[DONE]" {
                        self.done = true;
                        return Ok(());
                    }
                    let value = serde_json::from_str(line)
                        .map_err(|why| ReplyFault::NotJson(why.to_string()))?;
                    self.absorb_value(&value)?;
                }
                Ok(())
            }
            Err(why) => Err(ReplyFault::NotJson(why.to_string())),
        }
    }

    fn partial(&self) -> &PartialReply {
        &self.reply
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done || self.reply.finish.is_some()
    }

    /// Returns true if the body contained a complete message. A complete JSON line is not enough:
    /// some servers send a streamed message as lines of JSON, and such a body may be cut off after
    /// any line.
    fn is_whole_document(&self) -> bool {
        self.has_message || self.is_whole()
    }

    fn into_reply(self: Box<Self>) -> Option<ModelReply> {
        self.reply.into_reply(self.usage)
    }
}

impl ChatBuilder {
    pub(super) fn new(reasoning_fields: Vec<String>) -> Self {
        let (reply, usage) = (PartialReply::default(), Usage::default());
        Self { reasoning_fields, reply, usage, done: false, has_message: false }
    }

    fn absorb_value(&mut self, value: &Value) -> Result<(), ReplyFault> {
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        if let Some(fault) = reported_error(value) {
            return Err(fault);
        }
        if let Some(usage) = value.get("usage").filter(|usage| usage.is_object()) {
            self.usage = read_usage(usage);
            self.reply.has_begun = true;
        }
        let choices = value.get("choices").and_then(Value::as_array).into_iter().flatten();
        let Some(choice) = choices.into_iter().find(|choice| index(choice) == 0) else {
            return Ok(());
        };
        if let Some(fault) = reported_error(choice) {
            return Err(fault);
        }
        self.reply.has_begun = true;
        if choice.get("finish_reason").and_then(Value::as_str) == Some("error") {
            // A relay reports a failure of its provider in the middle of a message.
            let message = "the provider ended the answer with an error".to_owned();
            return Err(ReplyFault::Reported { unavailable: true, status: None, message });
        }
        if let Some(finish) =
            choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty())
        {
            self.reply.finish = Some(finish.to_owned());
        }
        if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()) {
            self.absorb_message(delta)?;
        } else if self.reply.text.is_empty() && self.reply.calls.is_empty() {
            // The frame contains a complete message. If text or calls have already arrived, this
            // message only repeats them, so it is not read.
            match choice.get("message").filter(|message| message.is_object()) {
                Some(message) => {
                    self.has_message = true;
                    self.absorb_message(message)?;
                }
                None => {
                    let text = choice.get("text").and_then(Value::as_str);
                    self.has_message |= text.is_some();
                    self.reply.text.push_str(text.unwrap_or_default());
                }
            }
        }
        Ok(())
    }

    fn absorb_message(&mut self, message: &Value) -> Result<(), ReplyFault> {
        let reasoning = self.reasoning_fields.iter().find_map(|name| message.get(name)?.as_str());
        self.reply.reasoning.push_str(reasoning.unwrap_or_default());
        self.reply.provider.absorb_message(message);
        let before = self.reply.text.len();
        match message.get("content") {
            Some(Value::String(text)) => self.reply.text.push_str(text),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.absorb_part(part)),
            _ => {}
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let calls = calls.map(Vec::as_slice).unwrap_or_default();
        calls.iter().enumerate().try_for_each(|(at, call)| {
            // Several calls in one frame are different calls, even without an index.
            let position = (calls.len() > 1).then_some(at as u64);
            self.absorb_call(position, call)
        })?;
        if self.reply.text.len() == before {
            self.reply
                .text
                .push_str(message.get("refusal").and_then(Value::as_str).unwrap_or_default());
        }
        Ok(())
    }

    /// Adds a complete call, or a piece that continues an earlier call. `position` is the position of
    /// the piece if its frame has pieces of several calls.
    fn absorb_call(&mut self, position: Option<u64>, piece: &Value) -> Result<(), ReplyFault> {
        let text =
            |pointer: &str| piece.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let index = piece.get("index").and_then(Value::as_u64).or(position);
        let at = match self.continued_call(index, piece) {
            Some(at) => at,
            None => {
                admit_call(self.reply.calls.len())?;
                let empty = FunctionCall {
                    id: String::new(),
                    name: String::new(),
                    arguments: SharedText::default(),
                };
                self.reply.calls.push((index.unwrap_or(0), empty));
                self.reply.calls.len() - 1
            }
        };
        self.reply.provider.absorb_call(at, piece);
        let Some((_, call)) = self.reply.calls.get_mut(at) else { return Ok(()) };
        for (field, piece) in
            [(&mut call.id, text("/id")), (&mut call.name, text("/function/name"))]
        {
            // Some servers repeat these fields in every piece.
            if field.is_empty() {
                field.push_str(piece);
            }
        }
        match piece.pointer("/function/arguments") {
            Some(Value::String(piece)) => call.arguments.push_str(piece),
            // Some servers send the arguments as an object instead of a string.
            Some(whole @ Value::Object(_)) => call.arguments = whole.to_string().into(),
            _ => {}
        }
        Ok(())
    }

    /// Returns the position of the call that a piece continues, or `None` if it begins a call.
    ///
    /// Some servers omit the index or send 0 for every call, some omit the id or repeat it, and some
    /// repeat the name in every piece. A piece continues the last call with its id, or else with its
    /// index, or else the last call, unless it has another name, or the call is already complete.
    fn continued_call(&self, index: Option<u64>, piece: &Value) -> Option<usize> {
        let text =
            |pointer: &str| piece.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (id, name) = (text("/id"), text("/function/name"));
        let calls = &self.reply.calls;
        let is_at_index = |known: u64| index.is_none_or(|index| index == known);
        let is_same_id = |call: &FunctionCall| call.id.is_empty() || id.is_empty() || call.id == id;
        let at = calls.iter().rposition(|(known, call)| is_at_index(*known) && is_same_id(call))?;
        let (_, call) = calls.get(at)?;
        if name.is_empty() || call.name.is_empty() {
            return Some(at);
        }
        let is_another = if name != call.name {
            true
        } else if !id.is_empty() && id == call.id {
            false
        } else {
            // Some servers send an empty object before the arguments.
            let is_empty = index.is_some() && call.arguments.trim() == "{}";
            has_arguments(piece) && !is_empty && is_object(&call.arguments)
        };
        (!is_another).then_some(at)
    }

    fn absorb_part(&mut self, part: &Value) {
        if let Some(text) = part.as_str().or_else(|| part.get("text")?.as_str()) {
            self.reply.text.push_str(text);
        }
        let thoughts = part.get("thinking");
        let thoughts = thoughts.and_then(Value::as_array).into_iter().flatten().chain(thoughts);
        for thought in thoughts
            .filter_map(|thought| thought.as_str().or_else(|| thought.get("text")?.as_str()))
        {
            self.reply.reasoning.push_str(thought);
        }
    }
}

/// Returns true if a piece of a call has a part of the arguments.
fn has_arguments(piece: &Value) -> bool {
    match piece.pointer("/function/arguments") {
        Some(Value::String(text)) => !text.trim().is_empty(),
        arguments => arguments.is_some_and(Value::is_object),
    }
}

/// Returns true if a text is a complete JSON object.
fn is_object(text: &str) -> bool {
    text.trim_end().ends_with('}') && serde_json::from_str::<Map<String, Value>>(text).is_ok()
}

fn index(choice: &Value) -> u64 {
    choice.get("index").and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

    use wattle_machine::ProviderFields;

    use super::*;

    /// Returns the calls of a stream with these pieces of calls, each in a frame of its own.
    fn calls(pieces: &[Value]) -> Vec<(String, String)> {
        let mut builder = ChatBuilder::new(Vec::new());
        for piece in pieces {
            let pieces = if piece.is_array() { piece.clone() } else { json!([piece]) };
            let frame = json!({"choices": [{"delta": {"tool_calls": pieces}}]});
            builder.absorb(&frame.to_string()).unwrap();
        }
        let reply = Box::new(builder).into_reply().unwrap();
        reply.calls.into_iter().map(|call| (call.name, call.arguments.to_string())).collect()
    }

    fn piece(name: &str, arguments: impl Into<Value>) -> Value {
        json!({"function": {"name": name, "arguments": arguments.into()}})
    }

    fn with(mut piece: Value, field: &str, value: impl Into<Value>) -> Value {
        piece[field] = value.into();
        piece
    }

    /// A title, the pieces, and the expected calls.
    type Case<'a> = (&'a str, Vec<Value>, &'a [(&'a str, &'a str)]);

    #[test]
    fn pieces_are_put_together_whatever_names_them() {
        let index = |at: u64, piece| with(piece, "index", at);
        let id = |id: &str, piece| with(piece, "id", id);
        let (x, y) = (r#"{"a":"x"}"#, r#"{"a":"y"}"#);
        let two: &[(&str, &str)] = &[("f", x), ("g", y)];
        let same: &[(&str, &str)] = &[("f", x), ("f", y)];
        let one: &[(&str, &str)] = &[("f", x)];
        let (x1, x2) = x.split_at(4);
        let (y1, y2) = y.split_at(4);
        let cases: Vec<Case<'_>> = vec![
            ("two whole calls without index and id", vec![piece("f", x), piece("g", y)], two),
            ("the same function twice", vec![piece("f", x), piece("f", y)], same),
            (
                "without index and id, in pieces",
                vec![piece("f", x1), piece("", x2), piece("g", y1), piece("", y2)],
                two,
            ),
            (
                "the name in every piece",
                vec![piece("f", x1), piece("f", x2), piece("g", y1), piece("g", y2)],
                two,
            ),
            (
                "the name in every piece of the same function",
                vec![piece("f", x1), piece("f", x2), piece("f", y1), piece("f", y2)],
                same,
            ),
            (
                "index 0 with different ids",
                vec![index(0, id("a", piece("f", x))), index(0, id("b", piece("f", y)))],
                same,
            ),
            ("index 0 without ids", vec![index(0, piece("f", x)), index(0, piece("g", y))], two),
            (
                "index 0 without ids, the same function",
                vec![index(0, piece("f", x)), index(0, piece("f", y))],
                same,
            ),
            (
                "the id in every piece",
                vec![
                    id("a", piece("f", x1)),
                    id("b", piece("g", y1)),
                    id("a", piece("", x2)),
                    id("b", piece("", y2)),
                ],
                two,
            ),
            (
                "one id for all calls",
                vec![index(0, id("a", piece("f", x))), index(1, id("a", piece("f", y)))],
                same,
            ),
            (
                "interleaved by index",
                vec![
                    index(0, id("a", piece("f", x1))),
                    index(1, id("b", piece("g", y1))),
                    index(0, piece("", x2)),
                    index(1, piece("", y2)),
                ],
                two,
            ),
            (
                "objects as arguments",
                vec![piece("f", json!({"a": "x"})), piece("f", json!({"a": "y"}))],
                same,
            ),
            (
                "an empty name first",
                vec![index(0, id("a", piece("", ""))), index(0, piece("f", x))],
                one,
            ),
            ("an empty name first, without index", vec![piece("", ""), piece("f", x)], one),
            ("two calls in one frame", vec![json!([piece("f", x), piece("f", y)])], same),
            (
                "two calls in each frame",
                vec![
                    json!([piece("f", x1), piece("g", y1)]),
                    json!([piece("", x2), piece("", y2)]),
                ],
                two,
            ),
            (
                "an empty object first",
                vec![index(0, piece("f", "{}")), index(0, piece("f", x))],
                &[("f", r#"{}{"a":"x"}"#)],
            ),
            ("a last piece without arguments", vec![piece("f", x), piece("f", "")], one),
        ];
        for (title, pieces, expected) in cases {
            let found = calls(&pieces);
            let found: Vec<(&str, &str)> =
                found.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            assert_eq!(found, expected, "{title}");
        }
    }

    #[test]
    fn the_providers_fields_are_sent_back_to_the_same_model() {
        let mut builder = ChatBuilder::new(vec!["reasoning_content".to_owned()]);
        for delta in [
            json!({"reasoning_content": "two and "}),
            json!({"reasoning_content": "two", "reasoning_details": [{"index": 0, "text": "t"}]}),
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"},
                "extra_content": {"google": {"thought_signature": "s"}}}]}),
        ] {
            let frame = json!({"choices": [{"delta": delta}]});
            builder.absorb(&frame.to_string()).unwrap();
        }
        let reply = Box::new(builder).into_reply().unwrap();
        let own = reply.provider.unwrap();
        let own = ProviderFields { origin: "url model".into(), ..own };
        let message = Message { provider: Some(own), ..Message::calling("", reply.calls) };
        let stored = serde_json::to_string(&message).unwrap();
        let messages = [Message::user("go"), serde_json::from_str(&stored).unwrap()];
        let fields = OptionalFields {
            length: LengthField::MaxTokens,
            temperature: true,
            stream_options: true,
            cache_marks: false,
            thinking: None,
            function_choice: true,
            json_schema: false,
            provider_fields: true,
        };
        let sent = |origin: &str, fields| {
            let request = ModelRequest::new(&messages);
            let body = body("model", origin, &request, fields, false).unwrap();
            serde_json::from_slice::<Value>(&body).unwrap()["messages"][1].clone()
        };
        let own = sent("url model", fields);
        assert_eq!(own["reasoning_content"], "two and two");
        assert_eq!(own["reasoning_details"], json!([{"index": 0, "text": "t"}]));
        let signature = "/tool_calls/0/extra_content/google/thought_signature";
        assert_eq!(own.pointer(signature).unwrap(), "s");
        let plain = json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
        assert_eq!(sent("url other", fields), plain);
        let without = fields
            .without_rejected("`reasoning_content` is not supported in input messages")
            .unwrap();
        assert!(!without.provider_fields && without.thinking == fields.thinking);
        assert_eq!(sent("url model", without), plain);
    }
}

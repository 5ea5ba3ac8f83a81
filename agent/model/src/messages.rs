//! The messages protocol. The system text has its own field, content is sent in blocks, and
//! function results are blocks of the user's messages.

use serde::Serialize;
use serde_json::{Map, Value, json};
use wattle_machine::{FunctionCall, Message, Role, Usage};

use super::protocol::{
    OptionalFields, PartialReply, ReplyBuilder, ReplyFault, ThinkingField, admit_call,
};
use super::provider_error::reported_error;
use super::provider_fields::KeptFields;
use super::{FunctionChoice, FunctionTool, ModelReply, ModelRequest};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: Vec<Turn>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    stream: bool,
}

/// A turn: consecutive messages with the same role in the protocol.
#[derive(Serialize)]
struct Turn {
    role: &'static str,
    content: Vec<Value>,
}

/// Serializes a request's body. The provider caches everything before a marker. There are two
/// markers: one at the end of the system text shared by all sessions of an agent, and one at the
/// end of the conversation so far.
pub(super) fn body(
    model: &str,
    origin: &str,
    request: &ModelRequest<'_>,
    fields: OptionalFields,
    stream: bool,
) -> Result<Vec<u8>, serde_json::Error> {
    let system = request
        .messages
        .iter()
        .filter(|message| message.role == Role::System && !message.content.is_empty());
    let system: Vec<Value> = system.flat_map(system_blocks).collect();
    let origin = fields.provider_fields.then_some(origin);
    let mut messages = turns(request.messages, origin);
    messages.last_mut().and_then(|turn| turn.content.last_mut()).into_iter().for_each(mark);
    let budget = thinking_budget(request, fields, origin);
    serde_json::to_vec(&Body {
        model,
        // The limit includes the reasoning, so the reasoning budget is added to the maximum length
        // of the answer.
        max_tokens: request.max_tokens.saturating_add(budget.unwrap_or(0)),
        system,
        messages,
        tools: request.functions.iter().map(tool).collect(),
        tool_choice: fields.function_choice(request).and_then(|choice| match choice {
            FunctionChoice::Auto => None,
            // The protocol does not allow forced calls together with thinking.
            FunctionChoice::Required if budget.is_some() => None,
            FunctionChoice::Required => Some(json!({"type": "any"})),
            FunctionChoice::None => Some(json!({"type": "none"})),
        }),
        thinking: budget.map(|tokens| json!({"type": "enabled", "budget_tokens": tokens})),
        output_config: request
            .output
            .filter(|_| fields.json_schema)
            .map(|output| json!({"format": {"type": "json_schema", "schema": output.schema()}})),
        // The protocol allows temperatures up to 1, and no temperature together with thinking.
        temperature: (fields.temperature && budget.is_none())
            .then_some(request.temperature.min(1.0)),
        stream,
    })
}

/// Minimum number of reasoning tokens that the protocol allows.
const MIN_THINKING: u32 = 1_024;

/// Maximum number of reasoning tokens. A larger budget would not fit into a single request.
const MAX_THINKING: u32 = 32_000;

/// Returns the number of reasoning tokens, which is a share of the answer's maximum length. Returns
/// `None` if the request does not ask for reasoning, or the endpoint does not accept a number of
/// reasoning tokens.
///
/// Within a turn that calls functions, the protocol requires the signed reasoning from earlier
/// requests. A request that ends with tool results therefore asks for reasoning only if all calls of
/// the turn have it.
fn thinking_budget(
    request: &ModelRequest<'_>,
    fields: OptionalFields,
    origin: Option<&str>,
) -> Option<u32> {
    let effort = request.thinking_effort.filter(|effort| effort.get() > 0)?;
    let turn = request.messages.iter().rev();
    let turn = turn.take_while(|message| message.role != Role::User);
    let mut calls = turn.filter(|message| !message.calls.is_empty());
    let is_signed = |message: &Message| {
        origin.is_some_and(|origin| !KeptFields::of_message(message, origin).thinking.is_empty())
    };
    let has_results = request.messages.last().is_some_and(|last| last.answers.is_some());
    if fields.thinking != Some(ThinkingField::Budget) || has_results && !calls.all(is_signed) {
        return None;
    }
    let share = u64::from(request.max_tokens) * u64::from(effort.get()) / 100;
    Some(u32::try_from(share).unwrap_or(u32::MAX).clamp(MIN_THINKING, MAX_THINKING))
}

fn tool(function: &FunctionTool) -> Value {
    json!({
        "name": function.name,
        "description": function.description,
        "input_schema": function.parameters,
    })
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Splits a system message at the end of its stable part and marks that part for caching. A message
/// without a stable part is marked as a whole.
fn system_blocks(message: &Message) -> Vec<Value> {
    let (stable, rest) = match message.content.split_at_checked(message.stable) {
        Some((stable, rest)) if !stable.is_empty() => (stable, rest),
        _ => (message.content.as_str(), ""),
    };
    let mut stable = text(stable);
    mark(&mut stable);
    // The protocol does not allow empty text blocks.
    [stable].into_iter().chain((!rest.trim().is_empty()).then(|| text(rest))).collect()
}

fn mark(block: &mut Value) {
    if let Some(fields) = block.as_object_mut() {
        fields.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
    }
}

/// Merges consecutive messages with the same role into turns. A turn without content is dropped.
fn turns(messages: &[Message], origin: Option<&str>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages.iter().filter(|message| message.role != Role::System) {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let content = blocks(message, origin);
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            _ if content.is_empty() => {}
            _ => turns.push(Turn { role, content }),
        }
    }
    turns
}

/// Returns the blocks of a message. Its signed thoughts come first.
fn blocks(message: &Message, origin: Option<&str>) -> Vec<Value> {
    if let Some(id) = &message.answers {
        return vec![
            json!({"type": "tool_result", "tool_use_id": plain(id), "content": message.content}),
        ];
    }
    let spoken = Some(text(&message.content)).filter(|_| !message.content.trim().is_empty());
    let call = |FunctionCall { id, name, arguments }: &FunctionCall| {
        let input: Value = serde_json::from_str(arguments).unwrap_or_default();
        let input = if input.is_object() { input } else { Value::Object(Map::new()) };
        json!({"type": "tool_use", "id": plain(id), "name": name, "input": input})
    };
    let content = spoken.into_iter().chain(message.calls.iter().map(call));
    let thinking = origin.map(|origin| KeptFields::of_message(message, origin).thinking);
    let mut blocks: Vec<Value> = thinking.unwrap_or_default();
    let thoughts = blocks.len();
    blocks.extend(content);
    // A turn must not consist of thoughts alone.
    if blocks.len() == thoughts { Vec::new() } else { blocks }
}

/// Replaces characters that the protocol does not allow in an id.
fn plain(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// A builder that assembles a message from events or from a single body.
#[derive(Debug, Default)]
pub(super) struct MessagesBuilder {
    reply: PartialReply,
    usage: TokenCounts,
    done: bool,
}

/// The most recently reported token counts.
#[derive(Debug, Default)]
struct TokenCounts {
    fresh: u64,
    written: u64,
    cached: u64,
    completion: u64,
}

impl TokenCounts {
    fn read(&mut self, usage: &Value) {
        let fields = [
            (&mut self.fresh, "input_tokens"),
            (&mut self.written, "cache_creation_input_tokens"),
            (&mut self.cached, "cache_read_input_tokens"),
            (&mut self.completion, "output_tokens"),
        ];
        for (count, name) in fields {
            *count = usage.get(name).and_then(Value::as_u64).unwrap_or(*count);
        }
    }

    fn usage(&self) -> Usage {
        let prompt = self.fresh.saturating_add(self.written).saturating_add(self.cached);
        Usage { prompt, completion: self.completion, cached: self.cached, cost: None }
    }
}

impl MessagesBuilder {
    fn event(&mut self, value: &Value) -> Result<(), ReplyFault> {
        let at = value.get("index").and_then(Value::as_u64).unwrap_or(0);
        match value.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => {
                self.reply.has_begun = true;
                self.message(value.get("message").unwrap_or(&Value::Null))?;
            }
            "message" => {
                self.reply.has_begun = true;
                self.message(value)?;
                self.done = true;
            }
            "content_block_start" => {
                self.block(at, value.get("content_block").unwrap_or(&Value::Null))?
            }
            "content_block_delta" => self.delta(at, value.get("delta").unwrap_or(&Value::Null)),
            "message_delta" => {
                self.reply.has_begun = true;
                self.stop(value.get("delta").unwrap_or(&Value::Null));
                value.get("usage").into_iter().for_each(|usage| self.usage.read(usage));
            }
            "message_stop" => self.done = true,
            _ => {}
        }
        Ok(())
    }

    fn message(&mut self, message: &Value) -> Result<(), ReplyFault> {
        message.get("usage").into_iter().for_each(|usage| self.usage.read(usage));
        self.stop(message);
        let content = message.get("content").and_then(Value::as_array);
        (0..).zip(content.into_iter().flatten()).try_for_each(|(at, block)| self.block(at, block))
    }

    fn stop(&mut self, value: &Value) {
        if let Some(reason) = value.get("stop_reason").and_then(Value::as_str) {
            self.reply.finish = Some(reason.to_owned());
        }
    }

    fn block(&mut self, at: u64, block: &Value) -> Result<(), ReplyFault> {
        let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        match field("type") {
            "text" => self.reply.text.push_str(field("text")),
            "thinking" => {
                self.reply.reasoning.push_str(field("thinking"));
                self.reply.provider.add_thinking(at, block);
            }
            "redacted_thinking" => self.reply.provider.add_thinking(at, block),
            "tool_use" => {
                admit_call(self.reply.calls.len())?;
                let input = block
                    .get("input")
                    .filter(|input| input.as_object().is_some_and(|fields| !fields.is_empty()));
                let arguments = input.map(Value::to_string).unwrap_or_default();
                self.reply.calls.push((
                    at,
                    FunctionCall {
                        id: field("id").to_owned(),
                        name: field("name").to_owned(),
                        arguments: arguments.into(),
                    },
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, at: u64, delta: &Value) {
        let field = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        match field("type") {
            "text_delta" => self.reply.text.push_str(field("text")),
            "thinking_delta" => {
                self.reply.reasoning.push_str(field("thinking"));
                self.reply.provider.extend_thinking(at, "thinking", field("thinking"));
            }
            "signature_delta" => {
                self.reply.provider.extend_thinking(at, "signature", field("signature"));
            }
            "input_json_delta" => {
                let call = self.reply.calls.iter_mut().rev().find(|(index, _)| *index == at);
                call.into_iter()
                    .for_each(|(_, call)| call.arguments.push_str(field("partial_json")));
            }
            _ => {}
        }
    }
}

impl ReplyBuilder for MessagesBuilder {
    fn absorb(&mut self, frame: &str) -> Result<(), ReplyFault> {
        let frame = frame.trim();
        if !frame.starts_with('{') {
            return Ok(());
        }
        let value: Value =
            serde_json::from_str(frame).map_err(|why| ReplyFault::NotJson(why.to_string()))?;
        match reported_error(&value) {
            Some(fault) => Err(fault),
            None => self.event(&value),
        }
    }

    fn partial(&self) -> &PartialReply {
        &self.reply
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done
    }

    fn into_reply(self: Box<Self>) -> Option<ModelReply> {
        self.reply.into_reply(self.usage.usage())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

    use wattle_machine::{ProviderFields, ThinkingEffort};

    use super::*;
    use crate::protocol::LengthField;

    #[test]
    fn signed_thoughts_are_sent_back_to_the_same_model() {
        let mut builder = MessagesBuilder::default();
        for event in [
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "thinking_delta", "thinking": "why"}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "signature_delta", "signature": "s"}}),
            json!({"type": "content_block_start", "index": 1,
                "content_block": {"type": "redacted_thinking", "data": "d"}}),
            json!({"type": "content_block_start", "index": 2,
                "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ] {
            builder.absorb(&event.to_string()).unwrap();
        }
        let reply = Box::new(builder).into_reply().unwrap();
        let own = ProviderFields { origin: "url model".into(), ..reply.provider.unwrap() };
        let message = Message { provider: Some(own), ..Message::calling("", reply.calls) };
        let messages = [Message::user("go"), message, Message::tool("a", "four")];
        let fields = OptionalFields {
            length: LengthField::MaxTokens,
            temperature: true,
            stream_options: false,
            cache_marks: false,
            thinking: Some(ThinkingField::Budget),
            function_choice: true,
            json_schema: false,
            provider_fields: true,
        };
        let sent = |origin: &str| {
            let request = ModelRequest {
                thinking_effort: ThinkingEffort::new(50),
                ..ModelRequest::new(&messages)
            };
            let body = body("model", origin, &request, fields, false).unwrap();
            serde_json::from_slice::<Value>(&body).unwrap()
        };
        let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
        let own = sent("url model");
        assert_eq!(
            own["messages"][1]["content"],
            json!([
                {"type": "thinking", "thinking": "why", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
                call,
            ])
        );
        assert_eq!(own["thinking"]["type"], "enabled");
        let other = sent("url other");
        assert_eq!(other["messages"][1]["content"], json!([call]));
        assert_eq!(other["thinking"], Value::Null);
    }
}

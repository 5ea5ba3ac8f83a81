//! Tests the messages protocol: requests, replies as JSON and as events, and errors.

use serde_json::{Value as Json, json};
use wattle_agent::model::{
    EndpointSettings, FunctionTool, Model, ModelErrorKind as Kind, ModelRequest, RemoteModel,
    resolve,
};
use wattle_capability::egress::{Egress, Policy};
use wattle_machine::{FunctionCall, Message, Usage};
use wattle_tests::provider::{Answer, Provider};

use super::client::{KEY, complete, quick, stream};

fn client(provider: &Provider) -> RemoteModel {
    let base = provider.base_url();
    let settings = EndpointSettings {
        provider: Some("anthropic"),
        base_url: Some(&base),
        model: Some("claude-test"),
        ..Default::default()
    };
    let endpoint =
        resolve(&settings, |name| (name == "ANTHROPIC_API_KEY").then(|| KEY.to_owned())).unwrap();
    RemoteModel::new(endpoint, &Egress::new(Policy::default()), quick()).unwrap()
}

/// Returns a stream of events. The name of each event is its `type`.
fn events(events: &[Json]) -> Answer {
    let event =
        |event: &Json| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    Answer::body(events.iter().map(event).collect::<String>())
        .header("content-type", "text/event-stream")
}

fn start() -> Json {
    let usage = json!({
        "input_tokens": 5, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100,
        "output_tokens": 1,
    });
    json!({"type": "message_start", "message": {
        "type": "message", "role": "assistant", "content": [], "usage": usage,
    }})
}

fn end(reason: &str) -> [Json; 2] {
    [
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason},
            "usage": {"output_tokens": 9},
        }),
        json!({"type": "message_stop"}),
    ]
}

fn text(text: &str) -> [Json; 3] {
    [
        json!({
            "type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""},
        }),
        json!({
            "type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": text},
        }),
        json!({"type": "content_block_stop", "index": 0}),
    ]
}

#[tokio::test]
async fn a_conversation_is_sent_in_turns_and_blocks() {
    let provider = Provider::start([events(
        &[vec![start()], text("fine").to_vec(), end("end_turn").to_vec()].concat(),
    )]);
    let parameters = json!({"type": "object", "properties": {"key": {"type": "string"}}});
    let function = FunctionTool {
        name: "kv_get".to_owned(),
        description: "Gives a value".to_owned(),
        parameters: parameters.clone(),
    };
    let call = |id: &str, arguments: &str| FunctionCall {
        id: id.to_owned(),
        name: "kv_get".to_owned(),
        arguments: arguments.into(),
    };
    let messages = [
        Message::system("be brief"),
        Message::user("who?"),
        Message::calling(
            "I look.",
            vec![call("call.1", "{\"key\":\"name\"}"), call("b", "not json")],
        ),
        Message::tool("call.1", "Ada"),
        Message::tool("b", "nothing"),
        Message::user("and now?"),
        Message::assistant(""),
        Message::user("well?"),
    ];
    let request = ModelRequest {
        functions: std::slice::from_ref(&function),
        temperature: 1.5,
        ..ModelRequest::new(&messages)
    };
    let reply = client(&provider).complete(request).await.unwrap();
    assert_eq!(reply.text, "fine");
    let sent = &provider.requests()[0];
    assert_eq!(sent.path, "/v1/messages");
    assert_eq!(sent.header("x-api-key"), Some(KEY));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("authorization"), None);
    let body = sent.json();
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}])
    );
    assert_eq!(
        body["tools"],
        json!([{"name": "kv_get", "description": "Gives a value", "input_schema": parameters}])
    );
    assert_eq!(
        (body["max_tokens"].as_u64(), body["temperature"].as_f64()),
        (Some(4096), Some(1.0))
    );
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "who?"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_1", "name": "kv_get", "input": {"key": "name"}},
                {"type": "tool_use", "id": "b", "name": "kv_get", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "Ada"},
                {"type": "tool_result", "tool_use_id": "b", "content": "nothing"},
                {"type": "text", "text": "and now?"},
                {"type": "text", "text": "well?", "cache_control": {"type": "ephemeral"}},
            ]},
        ])
    );
}

#[tokio::test]
async fn a_message_is_read_from_events_and_from_json() {
    let call = [
        json!({
            "type": "content_block_start", "index": 1,
            "content_block": {"type": "tool_use", "id": "t1", "name": "kv_get", "input": {}},
        }),
        json!({
            "type": "content_block_delta", "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "{\"key\":"},
        }),
        json!({
            "type": "content_block_delta", "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": " \"a\"}"},
        }),
        json!({"type": "content_block_stop", "index": 1}),
    ];
    let thought = [
        json!({
            "type": "content_block_start", "index": 2,
            "content_block": {"type": "thinking", "thinking": ""},
        }),
        json!({
            "type": "content_block_delta", "index": 2,
            "delta": {"type": "thinking_delta", "thinking": "why"},
        }),
        json!({
            "type": "content_block_delta", "index": 2,
            "delta": {"type": "signature_delta", "signature": "x"},
        }),
    ];
    let ping = json!({"type": "ping"});
    let streamed = [
        vec![start(), ping],
        text("I look.").to_vec(),
        call.to_vec(),
        thought.to_vec(),
        end("tool_use").to_vec(),
    ]
    .concat();
    let whole = json!({
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "kv_get", "input": {"key": "a"}},
            {"type": "thinking", "thinking": "why", "signature": "x"},
        ],
        "stop_reason": "tool_use",
        "usage": {
            "input_tokens": 5, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100,
            "output_tokens": 9,
        },
    });
    let provider = Provider::start([
        events(&streamed),
        events(&streamed).pieces(1),
        Answer::body(whole.to_string()),
    ]);
    let model = client(&provider);
    for at in 0..3 {
        let (reply, shown) = stream(&model).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), shown.as_str()), ("I look.", "I look."));
        assert_eq!(reply.reasoning.as_deref(), Some("why"));
        let arguments: Json = serde_json::from_str(&reply.calls[0].arguments).unwrap();
        assert_eq!(
            (reply.calls[0].id.as_str(), reply.calls[0].name.as_str(), arguments),
            ("t1", "kv_get", json!({"key": "a"})),
            "{at}"
        );
        assert_eq!(reply.usage, Usage { prompt: 125, completion: 9, cached: 100, cost: None });
        assert_eq!((reply.finish.as_deref(), reply.is_truncated()), (Some("tool_use"), false));
    }
}

#[tokio::test]
async fn errors_are_reported_and_temporary_ones_are_retried() {
    let error = |kind: &str, words: &str| {
        json!({
            "type": "error", "error": {"type": kind, "message": words},
        })
    };
    let failed = |status: u16, kind: &str, words: &str| {
        Answer::status(status).with_body(error(kind, words).to_string())
    };
    let well =
        || events(&[vec![start()], text("fine").to_vec(), end("max_tokens").to_vec()].concat());
    for (what, answer) in [
        ("529", failed(529, "overloaded_error", "Overloaded")),
        ("429", failed(429, "rate_limit_error", "slow").header("retry-after", "0")),
        ("500", failed(500, "api_error", "oops")),
        (
            "an error in the stream",
            events(
                &[
                    vec![start()],
                    text("ha").to_vec(),
                    vec![error("overloaded_error", "Overloaded")],
                ]
                .concat(),
            ),
        ),
        (
            "without its end",
            events(&[vec![start()], text("ha").to_vec(), end("end_turn")[..1].to_vec()].concat()),
        ),
        ("broken off", events(&[vec![start()], text("ha").to_vec()].concat()).then_break_off()),
        ("nothing", Answer::body("")),
    ] {
        let provider = Provider::start([answer, well()]);
        let (reply, shown) = stream(&client(&provider)).await;
        let reply = reply.unwrap_or_else(|why| panic!("{what}: {why}"));
        assert!(reply.text == "fine" && reply.is_truncated(), "{what}");
        assert!(shown == "fine" || shown == "ha⟲fine", "{what}: {shown}");
    }
    for (answer, kind, words) in [
        (
            failed(401, "authentication_error", "invalid x-api-key"),
            Kind::Key,
            "check `ANTHROPIC_API_KEY`: invalid x-api-key",
        ),
        (
            failed(404, "not_found_error", "model: claude-test"),
            Kind::NotFound,
            "/v1/messages has no model `claude-test` (404)",
        ),
        (
            failed(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            Kind::TooLong,
            "prompt is too long",
        ),
        (failed(400, "invalid_request_error", "messages: first role"), Kind::Request, "first role"),
    ] {
        let provider = Provider::start([answer]);
        let why = complete(&client(&provider)).await.unwrap_err();
        assert_eq!(why.kind(), kind, "{why}");
        assert!(why.to_string().contains(words) && !why.to_string().contains(KEY), "{why}");
        assert_eq!(provider.requests().len(), 1);
    }
    let provider = Provider::start([]);
    let why = client(&provider).embed("x").await.unwrap_err();
    assert_eq!(why.to_string(), "model `claude-test` does not support embeddings");
}

#[tokio::test]
async fn an_unsupported_temperature_is_left_out() {
    let words = json!({"type": "error", "error": {
        "type": "invalid_request_error",
        "message": "temperature is not supported for this model",
    }});
    let well = events(&[vec![start()], text("fine").to_vec(), end("end_turn").to_vec()].concat());
    let provider = Provider::start([Answer::status(400).with_body(words.to_string()), well]);
    assert_eq!(complete(&client(&provider)).await.unwrap().text, "fine");
    assert!(provider.requests()[1].json().get("temperature").is_none());
}

//! Tests function schemas in requests, and function calls in replies.

use wattle_agent::model::{FunctionTool, Model, ModelReply, ModelRequest};
use wattle_machine::{FunctionCall, Message};
use wattle_tests::provider::{Answer, Provider};

use super::client::{KEY, client, complete, delta, stream};

fn call(id: &str, name: &str, arguments: &str) -> FunctionCall {
    FunctionCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.into() }
}

#[tokio::test]
async fn functions_calls_and_results_are_sent_as_endpoints_expect_them() {
    let provider = Provider::start([Answer::text("fine")]);
    let parameters = serde_json::json!({"type": "object", "properties": {"k": {"type": "string"}}});
    let function = FunctionTool {
        name: "kv_get".to_owned(),
        description: "Gives a value".to_owned(),
        parameters: parameters.clone(),
    };
    let messages = [
        Message::user("who?"),
        Message::calling("", vec![call("c1", "kv_get", "{\"k\":\"name\"}")]),
        Message::tool("c1", "Ada"),
    ];
    let request =
        ModelRequest { functions: std::slice::from_ref(&function), ..ModelRequest::new(&messages) };
    assert_eq!(client(&provider).complete(request).await.unwrap().text, "fine");
    let body = provider.requests()[0].json();
    assert_eq!(
        body["tools"],
        serde_json::json!([{"type": "function", "function":
            {"name": "kv_get", "description": "Gives a value", "parameters": parameters}}])
    );
    assert_eq!(
        body["messages"],
        serde_json::json!([
            {"role": "user", "content": "who?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "kv_get", "arguments": "{\"k\":\"name\"}"}}]},
            {"role": "tool", "content": "Ada", "tool_call_id": "c1"},
        ])
    );
}

#[tokio::test]
async fn a_request_without_functions_does_not_mention_them() {
    let provider = Provider::start([Answer::text("fine")]);
    complete(&client(&provider)).await.unwrap();
    let body = &provider.requests()[0].body;
    assert!(!body.contains("tool"), "{body}");
}

/// Returns the replies that the client reads from a complete message, if there is one, and from a
/// stream of pieces.
async fn both(whole: Option<&str>, pieces: &[&str]) -> Vec<ModelReply> {
    let message = |message: &&str| {
        format!(r#"{{"choices":[{{"index":0,"message":{message},"finish_reason":"tool_calls"}}]}}"#)
    };
    let piece = |piece: &&str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{piece}]}}}}]}}"#)
    };
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned();
    let events = Answer::events(pieces.iter().map(piece).chain([end, "[DONE]".to_owned()]));
    let provider = Provider::start(whole.iter().map(|m| Answer::body(message(m))).chain([events]));
    let model = client(&provider);
    let mut replies = Vec::new();
    if whole.is_some() {
        replies.push(complete(&model).await.unwrap());
    }
    replies.push(stream(&model).await.0.unwrap());
    replies
}

#[tokio::test]
async fn calls_are_read_from_a_message_and_from_a_stream() {
    let whole = r#"{"role":"assistant","content":null,"tool_calls":[
        {"id":"a","type":"function","function":{"name":"kv_get","arguments":"{\"k\":\"x\"}"}},
        {"id":"b","type":"function","function":{"name":"kv_del","arguments":"{}"}}]}"#;
    let pieces = [
        r#"{"index":0,"id":"a","type":"function","function":{"name":"kv_get","arguments":""}}"#,
        r#"{"index":0,"function":{"arguments":"{\"k\":"}}"#,
        r#"{"index":1,"id":"b","function":{"name":"kv_del","arguments":"{}"}}"#,
        r#"{"index":0,"id":"a","function":{"name":"kv_get","arguments":"\"x\"}"}}"#,
    ];
    for reply in both(Some(whole), &pieces).await {
        assert_eq!(reply.calls, [call("a", "kv_get", "{\"k\":\"x\"}"), call("b", "kv_del", "{}")]);
        assert_eq!((reply.text.as_str(), reply.finish.as_deref()), ("", Some("tool_calls")));
    }
}

#[tokio::test]
async fn calls_are_distinguished_even_without_proper_ids() {
    let pieces = [
        r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
        r#"{"index":0,"id":"b","function":{"name":"g","arguments":{"n":1}}}"#,
        r#"{"function":{}}"#,
    ];
    let reply = both(None, &pieces).await.remove(0);
    assert_eq!(reply.calls, [call("a", "f", "{}"), call("b", "g", "{\"n\":1}")]);
}

/// Function calls are not masked, even if they contain the API key.
#[tokio::test]
async fn a_call_is_not_masked() {
    let piece = format!(
        r#"{{"index":0,"id":"a","function":{{"name":"f","arguments":"{{\"k\":\"{KEY}\"}}"}}}}"#
    );
    let reply = both(None, &[&piece]).await.remove(0);
    assert_eq!(reply.calls, [call("a", "f", &format!("{{\"k\":\"{KEY}\"}}"))]);
}

#[tokio::test]
async fn an_answer_as_text_has_no_calls() {
    let provider = Provider::start([Answer::events([delta("text"), "[DONE]".to_owned()])]);
    assert!(complete(&client(&provider)).await.unwrap().calls.is_empty());
}

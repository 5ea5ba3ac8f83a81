//! Tests the cache markers in requests. A provider caches everything before a marker.

use serde_json::{Value as Json, json};
use wattle_agent::model::{EndpointSettings, Model, ModelRequest, RemoteModel, resolve};
use wattle_capability::egress::{Egress, Policy};
use wattle_machine::Message;
use wattle_tests::provider::{Answer, Provider};

use super::client::{KEY, quick};

/// Sends a question with a system message and returns the received body. `stable` is the length of
/// the system message's stable part, in bytes.
async fn sent(preset: &str, model: &str, (system, stable): (&str, usize), answer: Answer) -> Json {
    let provider = Provider::start([answer]);
    let base = provider.base_url();
    let settings = EndpointSettings {
        provider: Some(preset),
        base_url: Some(&base),
        model: Some(model),
        ..Default::default()
    };
    let endpoint = resolve(&settings, |name| (name == "WATTLE_API_KEY").then(|| KEY.to_owned()));
    let client = RemoteModel::new(endpoint.unwrap(), &Egress::new(Policy::default()), quick());
    let system = Message { stable, ..Message::system(system) };
    let messages = [system, Message::user("well"), Message::assistant("x"), Message::user("go")];
    client.unwrap().complete(ModelRequest::new(&messages)).await.unwrap();
    provider.requests()[0].json()
}

fn marked(text: &str) -> Json {
    json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}})
}

fn plain(text: &str) -> Json {
    json!({"type": "text", "text": text})
}

/// Returns system messages, each with the length of its stable part and the expected blocks.
fn cases() -> [((&'static str, usize), Json); 6] {
    [
        (("rules\n\ntoday", 6), json!([marked("rules\n"), plain("\ntoday")])),
        (("rules\n", 6), json!([marked("rules\n")])),
        (("rules", 0), json!([marked("rules")])),
        (("rules\n \n", 6), json!([marked("rules\n")])),
        (("größe", 3), json!([marked("größe")])),
        (("rules", 99), json!([marked("rules")])),
    ]
}

#[tokio::test]
async fn the_messages_protocol_marks_the_end_of_the_part_that_sessions_share() {
    for (system, expected) in cases() {
        let answer = json!({"type": "message", "role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "fine"}], "usage": {}});
        let body = sent("anthropic", "claude-test", system, Answer::body(answer.to_string())).await;
        assert_eq!(body["system"], expected, "{system:?}");
        assert_eq!(body["messages"][0]["content"], json!([plain("well")]));
        assert_eq!(body["messages"][2]["content"], json!([marked("go")]));
    }
}

#[tokio::test]
async fn a_relay_gets_marks_for_models_whose_provider_needs_them() {
    for (system, expected) in cases() {
        let body = sent("openrouter", "anthropic/claude-test", system, Answer::text("fine")).await;
        assert_eq!(body["messages"][0]["content"], expected, "{system:?}");
        assert_eq!(body["messages"][1]["content"], "well");
        assert_eq!(body["messages"][3]["content"], json!([marked("go")]));
    }
    for (preset, model) in [("openrouter", "openai/gpt-test"), ("openai", "anthropic/x")] {
        let body = sent(preset, model, ("rules\n\ntoday", 6), Answer::text("fine")).await;
        assert_eq!(body["messages"][0]["content"], "rules\n\ntoday", "{preset} {model}");
        assert_eq!(body["messages"][3]["content"], "go");
    }
}

/// If an endpoint rejects the markers, the request is repeated without them.
#[tokio::test]
async fn an_endpoint_that_rejects_the_marks_is_asked_without_them() {
    let error = json!({"error": {"message": "cache_control: Extra inputs are not permitted"}});
    let rejects = Answer::body(error.to_string()).with_status(400);
    let provider = Provider::start([rejects, Answer::text("fine")]);
    let base = provider.base_url();
    let settings = EndpointSettings {
        provider: Some("openrouter"),
        base_url: Some(&base),
        model: Some("anthropic/claude-test"),
        ..Default::default()
    };
    let endpoint = resolve(&settings, |name| (name == "WATTLE_API_KEY").then(|| KEY.to_owned()));
    let client = RemoteModel::new(endpoint.unwrap(), &Egress::new(Policy::default()), quick());
    let messages = [Message::user("go")];
    let reply = client.unwrap().complete(ModelRequest::new(&messages)).await.unwrap();
    assert_eq!(reply.text, "fine");
    let contents: Vec<Json> = provider
        .requests()
        .iter()
        .map(|request| request.json()["messages"][0]["content"].clone())
        .collect();
    assert_eq!(contents, [json!([marked("go")]), json!("go")]);
}

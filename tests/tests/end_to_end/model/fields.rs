//! Tests the request fields that only some endpoints support: the reasoning effort, the function
//! choice, and the schema of the answer.

use serde_json::{Value as Json, json};
use wattle_agent::model::{
    EndpointSettings, FunctionChoice, FunctionTool, Model, ModelErrorKind, ModelRequest,
    RemoteModel, ThinkingEffort, resolve,
};
use wattle_agent::output::OutputSchema;
use wattle_capability::egress::{Egress, Policy};
use wattle_machine::Message;
use wattle_tests::provider::{Answer, Provider};

use super::client::{KEY, client, question, quick};

/// Returns a client that uses the given preset for the scripted endpoint.
fn client_as(preset: &str, provider: &Provider) -> RemoteModel {
    let base = provider.base_url();
    let settings = EndpointSettings {
        provider: Some(preset),
        base_url: Some(&base),
        model: Some("test-model"),
        ..Default::default()
    };
    let endpoint = resolve(&settings, |_| Some(KEY.to_owned())).unwrap();
    RemoteModel::new(endpoint, &Egress::new(Policy::default()), quick()).unwrap()
}

fn effort(effort: u8) -> Option<ThinkingEffort> {
    Some(ThinkingEffort::new(effort).unwrap())
}

fn function() -> FunctionTool {
    let (name, description) = ("now".to_owned(), "Returns the time".to_owned());
    FunctionTool { name, description, parameters: json!({"type": "object"}) }
}

fn point() -> OutputSchema {
    let schema = json!({"type": "object", "properties": {"x": {"type": "number"}},
        "required": ["x"], "additionalProperties": false});
    OutputSchema::new("point", schema).unwrap()
}

/// Sends a request to an endpoint with scripted answers and returns the bodies that the endpoint
/// received.
async fn sent(preset: &str, answers: Vec<Answer>, request: ModelRequest<'_>) -> Vec<Json> {
    let provider = Provider::start(answers);
    client_as(preset, &provider).complete(request).await.unwrap();
    provider.requests().iter().map(|request| request.json()).collect()
}

/// Returns a valid answer in the protocol of a preset.
fn fine(preset: &str) -> Answer {
    match preset {
        "anthropic" => Answer::body(
            json!({"type": "message", "role": "assistant", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "fine"}]})
            .to_string(),
        ),
        _ => Answer::text("fine"),
    }
}

#[tokio::test]
async fn each_endpoint_gets_the_effort_in_its_own_form() {
    let messages = question();
    for (preset, value, field, expected) in [
        ("openai", 0, "reasoning_effort", json!("low")),
        ("openai", 50, "reasoning_effort", json!("medium")),
        ("openai", 100, "reasoning_effort", json!("high")),
        ("groq", 90, "reasoning_effort", json!("high")),
        ("openrouter", 40, "reasoning", json!({"effort": "medium"})),
        ("anthropic", 0, "thinking", Json::Null),
        ("anthropic", 1, "thinking", json!({"type": "enabled", "budget_tokens": 1_024})),
        ("anthropic", 50, "thinking", json!({"type": "enabled", "budget_tokens": 2_048})),
        ("deepseek", 50, "reasoning_effort", Json::Null),
    ] {
        let request =
            ModelRequest { thinking_effort: effort(value), ..ModelRequest::new(&messages) };
        let bodies = sent(preset, vec![fine(preset)], request).await;
        assert_eq!(bodies[0][field], expected, "{preset} {value}");
        let others = ["reasoning_effort", "reasoning", "thinking"].map(|name| &bodies[0][name]);
        assert!(others.iter().filter(|value| !value.is_null()).count() <= 1, "{preset} {value}");
    }
    let bodies = sent("openai", vec![fine("openai")], ModelRequest::new(&messages)).await;
    assert_eq!(bodies[0]["reasoning_effort"], Json::Null, "without a setting, nothing is sent");
}

#[tokio::test]
async fn a_budget_of_tokens_leaves_room_for_the_answer() {
    let messages = question();
    for (max_tokens, value, budget) in
        [(100, 10, 1_024), (4_096, 100, 4_096), (10_000, 30, 3_000), (200_000, 100, 32_000)]
    {
        let thinking_effort = effort(value);
        let request = ModelRequest { max_tokens, thinking_effort, ..ModelRequest::new(&messages) };
        let body = sent("anthropic", vec![fine("anthropic")], request).await.remove(0);
        assert_eq!(body["thinking"]["budget_tokens"], budget);
        assert_eq!(body["max_tokens"], max_tokens + budget, "the limit includes the budget");
        assert_eq!(body["temperature"], Json::Null, "not allowed together with thinking");
    }
    let results = [
        Message::user("time?"),
        Message::calling(
            "",
            vec![wattle_machine::FunctionCall {
                id: "a".to_owned(),
                name: "now".to_owned(),
                arguments: "{}".into(),
            }],
        ),
        Message::tool("a", "noon"),
    ];
    let functions = [function()];
    let request = ModelRequest {
        functions: &functions,
        function_choice: FunctionChoice::Required,
        thinking_effort: effort(50),
        ..ModelRequest::new(&results)
    };
    let body = sent("anthropic", vec![fine("anthropic")], request).await.remove(0);
    assert_eq!((&body["thinking"], &body["tool_choice"]), (&Json::Null, &json!({"type": "any"})));
}

#[tokio::test]
async fn the_effort_of_a_class_applies_to_requests_that_name_none() {
    let provider = Provider::start([Answer::text("fine"), Answer::text("fine")]);
    let model = client_as("openai", &provider).with_thinking_effort(effort(10));
    let messages = question();
    model.complete(ModelRequest::new(&messages)).await.unwrap();
    let own = ModelRequest { thinking_effort: effort(90), ..ModelRequest::new(&messages) };
    model.complete(own).await.unwrap();
    let sent = provider.requests();
    let levels = [&sent[0], &sent[1]].map(|request| request.json()["reasoning_effort"].clone());
    assert_eq!(levels, [json!("low"), json!("high")]);
}

#[tokio::test]
async fn the_choice_of_functions_is_sent_in_both_protocols() {
    let (messages, functions) = (question(), [function()]);
    for (preset, choice, expected) in [
        ("openai", FunctionChoice::Auto, Json::Null),
        ("openai", FunctionChoice::Required, json!("required")),
        ("openai", FunctionChoice::None, json!("none")),
        ("anthropic", FunctionChoice::Auto, Json::Null),
        ("anthropic", FunctionChoice::Required, json!({"type": "any"})),
        ("anthropic", FunctionChoice::None, json!({"type": "none"})),
    ] {
        let request = ModelRequest {
            functions: &functions,
            function_choice: choice,
            ..ModelRequest::new(&messages)
        };
        let bodies = sent(preset, vec![fine(preset)], request).await;
        assert_eq!(bodies[0]["tool_choice"], expected, "{preset} {choice}");
        let without = ModelRequest { functions: &[], ..request };
        let bodies = sent(preset, vec![fine(preset)], without).await;
        assert_eq!(bodies[0]["tool_choice"], Json::Null, "{preset}: there are no functions");
    }
}

#[tokio::test]
async fn the_schema_of_the_answer_is_sent_to_providers_that_constrain_it() {
    let (messages, schema) = (question(), point());
    let request = ModelRequest { output: Some(&schema), ..ModelRequest::new(&messages) };
    let body = sent("openai", vec![fine("openai")], request).await.remove(0);
    let expected = json!({"type": "json_schema", "json_schema":
        {"name": "point", "schema": schema.schema(), "strict": true}});
    assert_eq!(body["response_format"], expected);
    let body = sent("anthropic", vec![fine("anthropic")], request).await.remove(0);
    let expected = json!({"format": {"type": "json_schema", "schema": schema.schema()}});
    assert_eq!(body["output_config"], expected);
    let body = sent("deepseek", vec![fine("deepseek")], request).await.remove(0);
    assert_eq!(body["response_format"], Json::Null);
    let open = OutputSchema::new("any", json!({"type": "object"})).unwrap();
    let request = ModelRequest { output: Some(&open), ..request };
    let body = sent("openai", vec![fine("openai")], request).await.remove(0);
    assert_eq!(body["response_format"]["json_schema"]["strict"], false);
}

#[tokio::test]
async fn a_rejected_field_is_left_out_of_the_next_request() {
    let (messages, functions, schema) = (question(), [function()], point());
    let request = ModelRequest {
        functions: &functions,
        function_choice: FunctionChoice::Required,
        thinking_effort: effort(50),
        output: Some(&schema),
        ..ModelRequest::new(&messages)
    };
    for (message, field) in [
        ("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort"),
        ("Thinking mode does not support this tool_choice", "reasoning_effort"),
        ("tool_choice `required` is not supported by this model", "tool_choice"),
        ("Invalid schema for response_format 'point'", "response_format"),
        ("json mode cannot be combined with tool calling", "response_format"),
    ] {
        let rejected =
            Answer::status(400).with_body(json!({"error": {"message": message}}).to_string());
        let bodies = sent("openai", vec![rejected, Answer::text("fine")], request).await;
        assert!(!bodies[0][field].is_null(), "{message}");
        assert_eq!((bodies.len(), &bodies[1][field]), (2, &Json::Null), "{message}");
    }
}

#[tokio::test]
async fn a_rejected_schema_is_left_out_of_one_request_only() {
    let rejected = Answer::status(400).with_body("{\"error\":\"invalid json_schema\"}");
    let provider = Provider::start([rejected, Answer::text("fine"), Answer::text("fine")]);
    let (model, messages, schema) = (client_as("openai", &provider), question(), point());
    let request = ModelRequest { output: Some(&schema), ..ModelRequest::new(&messages) };
    for _ in 0..2 {
        model.complete(request).await.unwrap();
    }
    let sent = provider.requests();
    let has_schema: Vec<bool> =
        sent.iter().map(|request| !request.json()["response_format"].is_null()).collect();
    assert_eq!(has_schema, [true, false, true]);
}

#[tokio::test]
async fn a_refusal_of_functions_is_still_recognized() {
    let provider = Provider::start([
        Answer::status(400).with_body("{\"error\":\"this model does not support tools\"}")
    ]);
    let (messages, functions) = (question(), [function()]);
    let request = ModelRequest {
        functions: &functions,
        function_choice: FunctionChoice::None,
        ..ModelRequest::new(&messages)
    };
    let error = client(&provider).complete(request).await.unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::Functions);
}

//! Tests structured output over HTTP, and the choice of a model class.

use serde_json::{Value as Json, json};

use crate::client::{Answer, Client};
use crate::world::{TOKEN, World, api};

fn schema() -> Json {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

/// Sends an API request whose response arrives only when its run ends. Replies to the run's model
/// requests with `answers`, in order. Returns the response.
async fn waiting(world: &mut World, line: &str, body: &Json, answers: &[&str]) -> Answer {
    let (address, request) = (world.address, api(TOKEN, line, &body.to_string()));
    let asked = tokio::spawn(async move {
        let mut client = Client::connect(address).await;
        client.send(request).await;
        client.answer().await
    });
    for answer in answers {
        world.question().await.say(answer);
    }
    asked.await.unwrap()
}

#[tokio::test]
async fn a_run_with_a_schema_has_data_or_errors() {
    let mut world = World::new().await;
    let body = json!({"prompt": "count", "output_schema": schema()});
    let run = world.start(&body).await;
    let question = world.question().await;
    assert!(question.messages[0].content.contains("named `answer`"), "the prompt has the schema");
    question.respond("four");
    let question = world.question().await;
    assert!(question.last().contains("not valid JSON"), "{}", question.last());
    question.say("{\"n\": 4}");
    let view = world.until(&run, "done").await;
    assert_eq!((&view["data"], &view["errors"]), (&json!({"n": 4}), &json!([])), "{view}");

    let run = world.start(&body).await;
    for _ in 0..3 {
        world.question().await.say("{\"n\": \"4\"}");
    }
    let view = world.until(&run, "failed").await;
    assert_eq!(view["stop"], "invalid_output");
    assert_eq!((&view["data"], &view["result"]), (&Json::Null, &"{\"n\": \"4\"}".into()));
    assert!(view["errors"][0].as_str().unwrap().starts_with("at /n: "), "{view}");

    let run = world.start(&json!({"prompt": "count"})).await;
    world.question().await.respond("{\"n\": 4}");
    let view = world.until(&run, "done").await;
    assert_eq!(view["data"], Json::Null, "without a schema there is no value");
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_named() {
    let mut world = World::new().await;
    for (schema, words) in [
        (json!({"type": "strin"}), "`output_schema`"),
        (json!({"$ref": "#"}), "refers to itself"),
        (json!({"$ref": "https://example.com/s.json"}), "leaves the schema"),
    ] {
        let body = json!({"prompt": "count", "output_schema": schema}).to_string();
        let answer = world.api("POST /api/run", &body).await;
        assert_eq!(answer.head.status, 422);
        assert!(answer.json()["error"]["message"].as_str().unwrap().contains(words), "{words}");
    }
    let chat = json!({"model": "wattle", "messages": [{"role": "user", "content": "m"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}});
    let answer = world.api("POST /v1/chat/completions", &chat.to_string()).await;
    assert_eq!(answer.head.status, 422);
    world.no_question();
}

#[tokio::test]
async fn chat_completions_take_a_response_format() {
    let mut world = World::new().await;
    let chat = |format: Json| {
        json!({"model": "wattle", "response_format": format,
        "messages": [{"role": "user", "content": "count"}]})
    };
    let strict = json!({"type": "json_schema",
        "json_schema": {"name": "count", "schema": schema(), "strict": true}});
    for (format, answers) in [
        (strict.clone(), &["Here: ```json\n{\"n\": 4}\n```"][..]),
        (strict.clone(), &["four", "{\"n\":4}"]),
        (json!({"type": "json_object"}), &["[4]", "{\"n\": 4}"]),
    ] {
        let answer = waiting(&mut world, "POST /v1/chat/completions", &chat(format), answers).await;
        let choice = &answer.json()["choices"][0];
        assert_eq!(choice["message"]["content"], "{\"n\":4}", "the value alone");
        assert_eq!(choice["finish_reason"], "stop");
    }
    let answers = ["four", "five", "six"];
    let answer = waiting(&mut world, "POST /v1/chat/completions", &chat(strict), &answers).await;
    answer.refused(502, "run_failed");
}

#[tokio::test]
async fn responses_take_a_text_format() {
    let mut world = World::new().await;
    let format = json!({"type": "json_schema", "name": "count", "schema": schema()});
    let body = json!({"model": "wattle", "input": "count", "text": {"format": format}});
    let answer = waiting(&mut world, "POST /v1/responses", &body, &["{\"n\": 4}"]).await.json();
    assert_eq!(answer["output"][0]["content"][0]["text"], "{\"n\":4}");
    let id = answer["id"].as_str().unwrap();
    let shown = world.api(&format!("GET /v1/responses/{id}"), "").await.json();
    assert_eq!(shown["output"][0]["content"][0]["text"], "{\"n\":4}");
    let answers = ["four", "five", "six"];
    let answer = waiting(&mut world, "POST /v1/responses", &body, &answers).await.json();
    assert_eq!((&answer["status"], answer["error"].is_object()), (&"failed".into(), true));
}

#[tokio::test]
async fn a_run_names_a_known_class_of_models() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "go", "model": "class:balanced"})).await;
    world.question().await.respond("done");
    world.until(&run, "done").await;
    let body = json!({"prompt": "go", "model": "class:fast"}).to_string();
    let answer = world.api("POST /api/run", &body).await;
    assert_eq!(answer.head.status, 422);
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`model`") && message.contains("`class:balanced`"), "{message}");
}

//! Tests the operator's limit on the number of steps.

use serde_json::json;
use wattle_server::TenantParts;

use crate::world::{TOKEN, World, api, store};

/// Starts a server whose runs have at most `steps` steps.
async fn limited(steps: u32) -> World {
    let make = move |app: wattle_server::App| app.with_max_steps(Some(steps));
    let world = World::of(TenantParts::new(store()), make, |_| {}).await;
    let created = world.api("POST /api/integrations", r#"{"name":"help"}"#).await;
    assert_eq!(created.head.status, 201, "{created:?}");
    world
}

/// Starts a run with a request and asserts the limit that the run's prompt states.
async fn has_limit(world: &mut World, line: &str, body: &serde_json::Value, steps: u32) {
    let mut client = world.client().await;
    client.send(api(TOKEN, line, &body.to_string())).await;
    let question = world.question().await;
    let prompt = &question.messages[0].content;
    let words = format!("At most {steps} calls before the final answer.");
    assert!(prompt.contains(&words), "{line} {body} has another limit than {steps}: {prompt}");
    question.respond("done");
}

#[tokio::test]
async fn the_operators_step_limit_holds_for_every_route() {
    let messages = json!([{"role": "user", "content": "m"}]);
    let requests = [
        ("POST /api/run", json!({"prompt": "m"})),
        ("POST /api/run", json!({"prompt": "m", "max_steps": 10_000})),
        ("POST /chat", json!({"message": "m"})),
        ("POST /i/help", json!({"message": "m"})),
        ("POST /i/help/chat", json!({"message": "m"})),
        ("POST /v1/chat/completions", json!({"model": "wattle", "messages": messages})),
        ("POST /v1/responses", json!({"model": "wattle", "input": "m"})),
    ];
    // The limit is also the default, so it may be higher than a route's own default.
    for limit in [2, 100] {
        let mut world = limited(limit).await;
        for (line, body) in &requests {
            has_limit(&mut world, line, body, limit).await;
        }
        has_limit(&mut world, "POST /api/run", &json!({"prompt": "m", "max_steps": 1}), 1).await;
    }
}

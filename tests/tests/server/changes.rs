//! Tests the stream of changes to runs.

use serde_json::{Value as Json, json};

use crate::api::wat;
use crate::client::Client;
use crate::tenants::two_tenants;
use crate::world::{TOKEN, World, api, store};

/// Follows the changes to a tenant's runs and reads the event `ready`.
async fn follow(world: &World, token: &str) -> Client {
    let mut client = world.client().await;
    client.send(api(token, "GET /api/runs/stream", "")).await;
    let head = client.head().await;
    assert_eq!(head.status, 200);
    assert_eq!(head.get("content-type"), Some("text/event-stream"));
    assert_eq!(client.event().await.unwrap(), json!({"type": "ready"}));
    client
}

/// Reads changes until `is_it` returns true for a change to `run`, and returns that change.
async fn until(client: &mut Client, run: &str, is_it: impl Fn(&Json) -> bool) -> Json {
    loop {
        let change = client.event().await.expect("the stream ended");
        assert_eq!(change["type"], "run", "{change}");
        if change["run"]["id"] == run && is_it(&change["run"]) {
            return change["run"].clone();
        }
    }
}

#[tokio::test]
async fn each_change_of_a_run_is_sent() {
    let mut world = World::new().await;
    let mut stream = follow(&world, TOKEN).await;
    let run = world.start(&json!({"prompt": "count", "session_id": "s"})).await;
    let begun = until(&mut stream, &run, |line| line["status"] == "running").await;
    assert_eq!((&begun["prompt"], &begun["session_id"]), (&json!("count"), &json!("s")));
    world.question().await.say(&wat("(out 1)"));
    let question = world.question().await;
    until(&mut stream, &run, |line| line["steps"] == 1).await;
    question.respond("one");
    let ended = until(&mut stream, &run, |line| line["status"] == "done").await;
    assert_eq!(ended["result"], "one");
    let listed = world.api("GET /api/runs", "").await.json();
    assert_eq!(listed["runs"][0], ended, "a change has the line of the list");
}

#[tokio::test]
async fn runs_of_another_process_are_found() {
    let store = store();
    let world = World::on(store.clone(), |_| {}).await;
    let mut other = World::on(store, |_| {}).await;
    let mut stream = follow(&world, TOKEN).await;
    let run = other.start(&json!({"prompt": "elsewhere"})).await;
    other.question().await.respond("found");
    let ended = until(&mut stream, &run, |line| line["status"] == "done").await;
    assert_eq!(ended["result"], "found");
}

#[tokio::test]
async fn a_stream_has_the_runs_of_its_tenant_alone() {
    let mut world = two_tenants(|_| {}).await;
    let mut stream = follow(&world, "bobs-read").await;
    let alices = world.start(&json!({"prompt": "alices-secret"})).await;
    world.question().await.respond("alices-secret");
    world.until(&alices, "done").await;
    let started = world.ask(api("bobs-run", "POST /api/run", r#"{"prompt":"bob's"}"#)).await;
    let bobs = started.json()["id"].as_str().unwrap().to_owned();
    world.question().await.respond("for bob");
    loop {
        let change = stream.event().await.unwrap();
        assert_eq!(change["run"]["id"], bobs, "{change}");
        if change["run"]["status"] == "done" {
            break;
        }
    }
}

#[tokio::test]
async fn the_stream_ends_with_the_server() {
    let world = World::new().await;
    let mut stream = follow(&world, TOKEN).await;
    world.shutdown.cancel();
    assert!(stream.event().await.is_none());
    world.ended().await;
}

//! Tests the shutdown of the server.

use std::time::Duration;

use tokio::net::TcpStream;

use crate::world::{TOKEN, World, api, bare, message, post, store};

#[tokio::test]
async fn a_server_without_work_stops_at_once() {
    let world = World::with(|settings| settings.limits.grace = Duration::from_secs(3_600)).await;
    let mut idle = world.client().await;
    idle.send(bare("GET /healthz", &["Host: localhost"])).await;
    idle.answer().await;
    let untouched = world.client().await;
    let address = world.address;
    world.shutdown.cancel();
    world.ended().await;
    idle.closed().await;
    drop(untouched);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn runs_get_a_grace_period() {
    if wattle_cases::postgres::is_switched() {
        // Servers that share a store hand their runs over instead.
        return;
    }
    let mut world =
        World::with(|settings| settings.limits.grace = Duration::from_secs(3_600)).await;
    let mut busy = world.client().await;
    // This request is still incomplete when the server starts to shut down.
    let late = post(&message("late", "t"));
    let (head, body) = late.split_at(late.len() - 5);
    busy.send(head).await;
    let mut client = world.chat(&message("hello", "s")).await;
    let question = world.question().await;
    world.shutdown.cancel();
    while TcpStream::connect(world.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    busy.send(body).await;
    busy.answer().await.refused(503, "stopping");
    question.respond("in time");
    let events = client.events().await;
    assert_eq!(events.last().unwrap()["text"], "in time");
    client.closed().await;
    world.ended().await;
}

#[tokio::test]
async fn after_the_grace_period_runs_are_suspended_and_the_next_server_goes_on() {
    let store = store();
    let mut world = World::on(store.clone(), |_| {}).await;
    let mut running = world.chat(&message("one", "s")).await;
    let question = world.question().await;
    let mut waiting = world.chat(&message("two", "s")).await;
    world.shutdown.cancel();
    question.abandoned().await;
    for client in [&mut running, &mut waiting] {
        let last = client.events().await.pop().unwrap();
        assert_eq!(last["type"], "suspended", "{last}");
    }
    world.ended().await;

    let mut world = World::on(store.clone(), |_| {}).await;
    for (text, answer) in [("one", "first"), ("two", "second")] {
        let question = world.question().await;
        assert_eq!(question.last(), text, "the order of the requests is kept");
        question.respond(answer);
    }
    let ended = async || store.history("s", None).await.unwrap().messages.len() == 4;
    tokio::time::timeout(Duration::from_secs(10), async {
        while !ended().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_request_whose_run_is_suspended_is_not_to_be_repeated() {
    let mut world = World::new().await;
    let created = world.api("POST /api/integrations", r#"{"name":"help"}"#).await;
    assert_eq!(created.head.status, 201, "{created:?}");
    let message = serde_json::json!({"role": "user", "content": "hello"});
    let chat = serde_json::json!({"model": "wattle", "messages": [message]}).to_string();
    let mut waiting = Vec::new();
    for (line, body) in [
        ("POST /i/help", r#"{"message":"hello"}"#),
        ("POST /v1/chat/completions", chat.as_str()),
        ("POST /v1/responses", r#"{"model":"wattle","input":"hello"}"#),
    ] {
        let mut client = world.client().await;
        client.send(api(TOKEN, line, body)).await;
        waiting.push((line, client, world.question().await));
    }
    world.shutdown.cancel();
    for (line, mut client, _question) in waiting {
        let answer = client.answer().await;
        answer.refused(503, "stopping");
        // The programs of the run may have had effects.
        let headers = ["retry-after", "x-should-retry"].map(|name| answer.head.get(name));
        assert_eq!(headers, [None, Some("false")], "{line}");
        assert!(answer.body.contains("/api/run/"), "{answer:?}");
    }
    world.ended().await;
}

//! Tests clients that follow runs. Each client receives every recorded event once, even if it
//! disconnects, other clients never read, or the server stops.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value as Json, json};
use wattle_agent::host::Retention;

use crate::api::wat;
use crate::world::{TOKEN, World, api, bare, store};

/// Returns true if an event is recorded, and not part of an answer that is being written.
fn is_kept(event: &Json) -> bool {
    let kind = event["type"].as_str().unwrap();
    !["delta", "thought_delta", "answer_delta", "answer_void"].contains(&kind)
}

fn numbers(events: &[Json]) -> Vec<u64> {
    let kept = events.iter().filter(|event| is_kept(event));
    kept.map(|event| event["seq"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_client_that_comes_back_gets_every_event_once() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "go"})).await;
    let mut first = world.follow(&run, 0).await;
    world.question().await.say(&wat("(out 1)"));
    let question = world.question().await;
    let mut events = Vec::new();
    while events.last().is_none_or(|event: &Json| event["type"] != "tool_result") {
        events.push(first.event().await.unwrap());
    }
    drop(first);
    question.say(&wat("(out 2)"));
    world.question().await.respond("done");
    world.until(&run, "done").await;
    let last = numbers(&events).last().copied().unwrap();
    let mut again = world.client().await;
    let request = bare(
        &format!("GET /api/run/{run}/stream"),
        &[
            "Host: localhost",
            &format!("Authorization: Bearer {TOKEN}"),
            &format!("Last-Event-ID: {last}"),
        ],
    );
    again.send(request).await;
    assert_eq!(again.head().await.status, 200);
    events.extend(again.events().await);
    let all = numbers(&events);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["text"], "done");
    let whole = world.follow(&run, 0).await.events().await;
    assert_eq!(numbers(&whole), all, "the record has the same events");
    let page = world.api(&format!("GET /api/run/{run}/events?after=2&limit=2"), "").await.json();
    assert_eq!((&page["last"], &page["done"]), (&4.into(), &false.into()));
}

#[tokio::test]
async fn every_stream_has_the_headers_of_a_stream() {
    let world = World::new().await;
    let run = world.start(&json!({"prompt": "go"})).await;
    let integration = r#"{"name":"ask"}"#;
    assert_eq!(world.api("POST /api/integrations", integration).await.head.status, 201);
    let chat = json!({
        "model": "wattle", "stream": true, "messages": [{"role": "user", "content": "hello"}],
    });
    let response = json!({"model": "wattle", "stream": true, "input": "hello"});
    for (line, body) in [
        ("POST /chat", json!({"message": "hello", "session_id": "a"}).to_string()),
        ("POST /v1/chat/completions", chat.to_string()),
        ("POST /v1/responses", response.to_string()),
        ("POST /i/ask/chat", json!({"message": "hello"}).to_string()),
        ("GET /api/runs/stream", String::new()),
        (&format!("GET /api/run/{run}/stream"), String::new()),
        (&format!("GET /api/run/{run}/stream?tree=true"), String::new()),
    ] {
        let mut client = world.client().await;
        client.send(api(TOKEN, line, &body)).await;
        let head = client.head().await;
        assert_eq!(head.status, 200, "{line}");
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-store"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(head.get(name), Some(value), "{line}: {name}");
        }
    }
}

#[tokio::test]
async fn a_run_without_its_old_events_still_has_its_end() {
    let store = store();
    let mut world = World::on(store.clone(), |_| {}).await;
    let run = world.start(&json!({"prompt": "go"})).await;
    world.question().await.say(&wat("(out 1)"));
    world.question().await.respond("done");
    world.until(&run, "done").await;
    let whole = numbers(&world.follow(&run, 0).await.events().await);
    let kept = Retention { runs: None, events: Some(Duration::ZERO) };
    let file = store.file().clone().keeping(kept);
    while file.prune().await.unwrap().runs_without_events == 0 {}
    let left = world.follow(&run, 0).await.events().await;
    assert_eq!(numbers(&left), whole[whole.len() - 1..]);
    assert_eq!(left[0]["text"], "done");
    let mut tree = world.client().await;
    let headers = ["Host: localhost", &format!("Authorization: Bearer {TOKEN}")];
    tree.send(bare(&format!("GET /api/run/{run}/stream?tree=true"), &headers)).await;
    assert_eq!(tree.head().await.status, 200);
    let (_, event) = tree.identified().await.unwrap();
    assert_eq!(event["text"], "done");
    assert_eq!(tree.identified().await, None);
    let shown = world.api(&format!("GET /api/run/{run}"), "").await.json();
    assert_eq!((&shown["status"], &shown["result"]), (&"done".into(), &"done".into()));
    // A replay needs only the turns and the calls.
    let replay = world.api(&format!("POST /api/run/{run}/replay"), "").await.json();
    assert_eq!((&replay["same"], &replay["programs"]), (&true.into(), &1.into()), "{replay}");
}

#[tokio::test]
async fn a_stream_goes_on_after_the_server_was_stopped() {
    let store = store();
    let mut world = World::on(store.clone(), |_| {}).await;
    let run = world.start(&json!({"prompt": "go", "session_id": "s"})).await;
    let mut client = world.follow(&run, 0).await;
    world.question().await.say(&wat("(out 1)"));
    let _unanswered = world.question().await;
    let mut events = Vec::new();
    while events.last().is_none_or(|event: &Json| event["type"] != "tool_result") {
        events.push(client.event().await.unwrap());
    }
    // The server stops during a request to the model.
    world.shutdown.cancel();
    assert_eq!(client.event().await.unwrap()["type"], "suspended");
    world.ended().await;
    let mut world = World::on(store, |_| {}).await;
    let last = numbers(&events).last().copied().unwrap();
    let mut client = world.follow(&run, last).await;
    world.question().await.respond("done");
    events.extend(client.events().await);
    let all = numbers(&events);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["text"], "done");
}

#[tokio::test]
async fn many_clients_follow_many_runs_and_none_loses_an_event() {
    let mut world = World::new().await;
    let mut runs = Vec::new();
    for number in 0..5 {
        runs.push(world.start(&json!({"prompt": format!("run {number}")})).await);
    }
    let mut clients = Vec::new();
    for at in 0..40 {
        clients.push(world.follow(&runs[at % runs.len()], 0).await);
    }
    // These clients never read.
    let mut idle = Vec::new();
    for run in &runs {
        idle.push(world.follow(run, 0).await);
    }
    for _ in 0..4 * runs.len() {
        let question = world.question().await;
        let steps = question
            .messages
            .iter()
            .skip(1)
            .filter(|message| message.content.starts_with("[Observation (step "));
        match steps.count() {
            3 => question.respond("done"),
            _ => question.say(&wat("(out (str.repeat \"x\" 3000))")),
        }
    }
    let all = join_all(clients.iter_mut().map(|client| client.events())).await;
    let expected = numbers(&all[0]);
    for events in &all {
        assert_eq!(numbers(events), expected);
        let ids: BTreeSet<&str> =
            events.iter().map(|event| event["run_id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 1);
    }
    // Each step emits a thought, a start and a result. Afterwards, the run emits a thought and the
    // answer.
    assert_eq!(expected.len(), 3 * 3 + 2);
}

#[tokio::test]
async fn a_web_socket_has_the_same_events_and_then_done() {
    use futures_util::StreamExt as _;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "go"})).await;
    let mut request =
        format!("ws://{}/api/run/{run}/stream", world.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    world.question().await.say(&wat("(out 1)"));
    world.question().await.respond("done");
    let mut events = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        if let Ok(text) = message.to_text()
            && !text.is_empty()
        {
            events.push(serde_json::from_str::<Json>(text).unwrap());
        }
    }
    assert_eq!(events.pop().unwrap(), json!({"type": "done"}));
    let whole = world.follow(&run, 0).await.events().await;
    let kept: Vec<Json> = events.into_iter().filter(is_kept).collect();
    assert_eq!(kept, whole);
}

#[tokio::test]
async fn the_frames_of_a_websocket_client_are_small() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "wait"})).await;
    let _question = world.question().await;
    let mut client = world.client().await;
    let request = bare(
        &format!("GET /api/run/{run}/stream"),
        &[
            "Host: localhost",
            &format!("Authorization: Bearer {TOKEN}"),
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
        ],
    );
    client.send(request).await;
    assert_eq!(client.head().await.status, 101);
    // The header of a masked frame of 15 MiB whose content never arrives.
    let length = (15_u64 << 20).to_be_bytes();
    client.send([&[0x82_u8, 0xff][..], &length, b"mask"].concat()).await;
    client.closed().await;
}

#[tokio::test]
async fn an_answer_arrives_in_pieces_each_with_its_time() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "go"})).await;
    world.question().await.say(&format!("I look first.|\n\n{}", wat("(out 1)")));
    let question = world.question().await;
    // This client comes while the model writes nothing, and gets no part of an earlier answer twice.
    let mut follower = world.follow(&run, 0).await;
    question.say("<reasoning>add</reasoning>\n|ToolCall::Response(\"\"\"two |and |two\"\"\")");
    let events = follower.events().await;
    let text = |kind: &str| -> String {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| event["text"].as_str().unwrap()).collect()
    };
    assert_eq!(text("answer_delta").replace("I look first.", ""), "two |and |two");
    assert!(text("thought_delta").ends_with("add"), "{events:?}");
    let certain = events.iter().filter(|event| event["type"] == "answer_delta");
    assert_eq!(certain.last().unwrap()["certain"], true, "{events:?}");
    assert!(events.iter().all(|event| event["ts"].as_u64().unwrap() > 0));
}

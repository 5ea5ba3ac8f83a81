//! Tests streams that deliver a run's events as chunks.

use serde_json::{Value as Json, json};

use crate::api::wat;
use crate::client::Client;
use crate::world::{TOKEN, World, bare};

/// Reads all remaining frames of the stream.
async fn frames(client: &mut Client) -> Vec<(Option<String>, Json)> {
    let mut frames = Vec::new();
    while let Some(frame) = client.identified().await {
        frames.push(frame);
    }
    frames
}

async fn follow(world: &World, run: &str, last: Option<&str>) -> Client {
    let mut client = world.client().await;
    let authorization = format!("Authorization: Bearer {TOKEN}");
    let last = last.map(|last| format!("Last-Event-ID: {last}"));
    let headers: Vec<&str> =
        ["Host: localhost", &authorization].into_iter().chain(last.as_deref()).collect();
    client.send(bare(&format!("GET /api/run/{run}/stream?view=chunks"), &headers)).await;
    assert_eq!(client.head().await.status, 200);
    client
}

fn kinds(frames: &[(Option<String>, Json)]) -> Vec<&str> {
    frames.iter().map(|(_, chunk)| chunk["type"].as_str().unwrap()).collect()
}

/// Joins the pieces of the answer. A piece at offset 0 starts the answer anew.
fn answer(frames: &[(Option<String>, Json)]) -> String {
    let mut answer = String::new();
    for (_, chunk) in frames.iter().filter(|(_, chunk)| chunk["type"] == "chunk") {
        if chunk["offset"] == 0 {
            answer.clear();
        }
        assert_eq!(chunk["offset"], answer.chars().count());
        answer.push_str(chunk["content"].as_str().unwrap());
    }
    answer
}

#[tokio::test]
async fn a_run_is_followed_as_chunks_and_its_answer_arrives_in_pieces() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "go"})).await;
    let mut client = follow(&world, &run, None).await;
    world.question().await.say(&wat("(out 1)"));
    let question = world.question().await;
    let (mut seen, mut last) = (Vec::new(), None);
    while seen.last().is_none_or(|(_, chunk): &(_, Json)| chunk["type"] != "tool_call") {
        let (id, chunk) = client.identified().await.unwrap();
        last = id.clone().or(last);
        seen.push((id, chunk));
    }
    assert_eq!(kinds(&seen), ["thinking", "tool_call"]);
    let call = &seen[1].1;
    assert_eq!((&call["call"], &call["name"]), (&json!("1.1"), &json!("wat")));
    assert_eq!((&call["program"], &call["run_id"]), (&json!("(out 1)"), &json!(run)));
    question.say("<reasoning>done</reasoning>\nToolCall::Response(\"\"\"\nOne |and |two.\n\"\"\")");
    let rest = frames(&mut client).await;
    assert_eq!(answer(&rest), "One |and |two.");
    assert_eq!(rest[0].0, None, "the pieces of an answer are live: {rest:?}");
    let (id, done) = rest.last().unwrap();
    assert_eq!((&done["type"], &done["text"]), (&json!("done"), &json!("One |and |two.")));
    assert_eq!((&done["stop"], &done["steps"]), (&json!("answered"), &json!(1)));
    assert_eq!(id.as_deref(), Some(done["seq"].to_string().as_str()));

    // A client that reconnects gets the chunks of all events after the event that it names.
    let mut again = follow(&world, &run, last.as_deref()).await;
    let again = frames(&mut again).await;
    assert_eq!(kinds(&again), ["thinking", "chunk", "done"]);
    assert_eq!(answer(&again), "One |and |two.");
    // Only the last chunk of an event carries the event's id, so a client that received only the
    // first chunk gets both chunks again.
    assert_eq!((&again[1].0, again[1].1["seq"].clone()), (&None, again[2].1["seq"].clone()));
    let whole = frames(&mut follow(&world, &run, None).await).await;
    assert_eq!(kinds(&whole), ["thinking", "tool_call", "thinking", "chunk", "done"]);
}

#[tokio::test]
async fn a_chat_is_answered_with_chunks_and_a_failed_run_with_an_error() {
    let mut world = World::new().await;
    let body = json!({"message": "hello"}).to_string();
    let mut client = world.client().await;
    let request = crate::world::api(TOKEN, "POST /chat?view=chunks", &body).replacen(
        "\r\n",
        "\r\nContent-Type: application/json\r\n",
        1,
    );
    client.send(request).await;
    assert_eq!(client.head().await.status, 200);
    world.question().await.fail();
    let frames = frames(&mut client).await;
    assert_eq!(kinds(&frames), ["error", "done"]);
    assert_eq!((&frames[0].1["fatal"], &frames[1].1["stop"]), (&json!(true), &Json::Null));
    let message = world.api("POST /chat?view=pieces", &body).await.refused(422, "invalid_field");
    assert!(message.contains("view"), "{message}");
}

#[tokio::test]
async fn a_web_socket_has_the_same_chunks() {
    use futures_util::StreamExt as _;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "go"})).await;
    world.question().await.respond("One");
    world.until(&run, "done").await;
    let url = format!("ws://{}/api/run/{run}/stream?view=chunks", world.address);
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    let mut chunks = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        if let Ok(text) = message.to_text()
            && !text.is_empty()
        {
            chunks.push(serde_json::from_str::<Json>(text).unwrap());
        }
    }
    assert_eq!(chunks.pop().unwrap(), json!({"type": "done"}));
    let whole = frames(&mut follow(&world, &run, None).await).await;
    assert_eq!(chunks, whole.into_iter().map(|(_, chunk)| chunk).collect::<Vec<_>>());
}

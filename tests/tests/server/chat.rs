//! Tests chats over HTTP: streamed frames, sessions, and clients that disconnect.

use std::time::Duration;

use crate::client::Frame;
use crate::world::{World, bare, message, post};

const SAVE: &str =
    "<reasoning>keep it</reasoning>\nToolCall::Wat(```wat\n(call $kv.set \"city\" \"Oslo\")\n```)";
const LOAD: &str = "<reasoning>look it up</reasoning>\nToolCall::Wat(```wat\n(local $e i32) \
                    (local $v i32)\n(call $kv.get \"city\") (local.set $e) (local.set $v)\n(call \
                    $sys.resv (local.get $v))\n(local.get $e)\n```)";

#[tokio::test]
async fn events_are_streamed_during_the_run() {
    let mut world = World::new().await;
    let mut client = world.client().await;
    client.send(post(r#"{"message":"remember Oslo"}"#)).await;
    let head = client.head().await;
    assert_eq!((head.status, head.get("content-type")), (200, Some("text/event-stream")));
    assert_eq!(head.get("cache-control"), Some("no-store"));
    let session = head.get("x-session-id").unwrap().to_owned();

    let question = world.question().await;
    assert_eq!(question.last(), "remember Oslo");
    question.say(SAVE);
    // The model's next request is still unanswered, so these events arrive before the run ends.
    let question = world.question().await;
    assert_eq!(client.event().await.unwrap()["type"], "delta");
    assert_eq!(client.event().await.unwrap()["type"], "thought_delta");
    let thought = client.event().await.unwrap();
    assert_eq!((&thought["type"], &thought["content"]), (&"thinking".into(), &"keep it".into()));
    assert_eq!(client.event().await.unwrap()["type"], "tool_start");
    let result = client.event().await.unwrap();
    assert_eq!(
        (&result["type"], &result["success"]),
        (&"tool_result".into(), &true.into()),
        "{result}"
    );

    question.respond("done");
    let rest = client.events().await;
    let last = rest.last().unwrap();
    assert_eq!(
        (&last["type"], &last["text"], &last["stop"]),
        (&"response".into(), &"done".into(), &"answered".into())
    );
    assert_eq!((&last["session_id"], &last["steps"]), (&session.into(), &1.into()));
    assert!(rest.iter().all(|event| event["run_id"] == thought["run_id"]));
    assert!(rest.iter().map(|event| event["seq"].as_u64().unwrap()).is_sorted());
}

#[tokio::test]
async fn a_connection_serves_one_chat_after_another() {
    let mut world = World::new().await;
    let mut client = world.client().await;
    for text in ["one", "two"] {
        client.send(post(&message(text, "s"))).await;
        assert_eq!(client.head().await.status, 200);
        world.question().await.respond(text);
        assert_eq!(client.events().await.last().unwrap()["text"], text);
    }
}

#[tokio::test]
async fn a_run_ends_when_its_client_disconnects_if_the_client_asked_for_that() {
    let mut world = World::new().await;
    let client = world.chat(&cancelling("hello", "s")).await;
    let question = world.question().await;
    drop(client);
    question.abandoned().await;
    // The session accepts the next message, and its history contains the cancelled run.
    let mut client = world.chat(&message("again", "s")).await;
    let question = world.question().await;
    let messages: Vec<&str> =
        question.messages.iter().skip(1).map(|message| message.content.as_str()).collect();
    assert_eq!(
        messages,
        ["hello", "stopped: cancelled (the client closed the connection)", "again"]
    );
    question.respond("yes");
    assert_eq!(client.events().await.last().unwrap()["text"], "yes");
}

/// Returns the body of a request whose run is cancelled when the client disconnects.
fn cancelling(text: &str, session: &str) -> String {
    let body = serde_json::json!({
        "message": text, "session_id": session, "on_disconnect": "cancel",
    });
    body.to_string()
}

#[tokio::test]
async fn a_run_goes_on_without_its_client() {
    let mut world = World::new().await;
    let mut client = world.client().await;
    client.send(crate::world::post(&message("hello", "s"))).await;
    let run = client.head().await.get("x-run-id").unwrap().to_owned();
    let question = world.question().await;
    drop(client);
    question.respond("still here");
    let events = world.follow(&run, 0).await.events().await;
    assert_eq!(events.last().unwrap()["text"], "still here");
    let view = world.api(&format!("GET /api/run/{run}"), "").await.json();
    assert_eq!((&view["status"], &view["result"]), (&"done".into(), &"still here".into()));
}

#[tokio::test]
async fn a_model_that_fails_ends_the_stream_with_an_error() {
    let mut world = World::new().await;
    let mut client = world.chat(&message("hello", "s")).await;
    world.question().await.fail();
    let events = client.events().await;
    let last = events.last().unwrap();
    assert_eq!(last["type"], "error");
    assert!(last["message"].as_str().unwrap().starts_with("error: "), "{last}");
    // The message can be sent again. The failed message is not part of the session.
    let mut client = world.chat(&message("hello", "s")).await;
    let question = world.question().await;
    assert_eq!(question.messages.len(), 2);
    question.respond("hello");
    client.events().await;
}

#[tokio::test]
async fn a_client_that_disconnects_while_it_waits_runs_nothing() {
    let mut world = World::new().await;
    let mut first = world.chat(&message("first", "s")).await;
    let question = world.question().await;
    drop(world.chat(&cancelling("second", "s")).await);
    let mut third = world.chat(&message("third", "s")).await;
    question.respond("one");
    assert_eq!(first.events().await.last().unwrap()["text"], "one");
    let question = world.question().await;
    assert_eq!(question.last(), "third");
    question.respond("three");
    assert_eq!(third.events().await.last().unwrap()["text"], "three");
    world.no_question();
}

#[tokio::test]
async fn messages_of_a_session_run_one_after_the_other() {
    let mut world = World::new().await;
    let mut first = world.chat(&message("first", "s")).await;
    let question = world.question().await;
    let mut second = world.chat(&message("second", "s")).await;
    let mut third = world.chat(&message("third", "s")).await;
    // Other sessions do not wait.
    let mut other = world.chat(&message("other", "t")).await;
    let from_other = world.question().await;
    assert_eq!(from_other.last(), "other");
    from_other.respond("of another session");
    assert_eq!(other.events().await.last().unwrap()["text"], "of another session");
    world.no_question();

    question.respond("one");
    assert_eq!(first.events().await.last().unwrap()["text"], "one");
    let question = world.question().await;
    assert_eq!(question.last(), "second");
    // The session contains its earlier messages, and no messages of other sessions.
    let messages = question.messages.iter().skip(1); // the system prompt
    let messages: Vec<&str> = messages.map(|message| message.content.as_str()).collect();
    assert!(
        messages.contains(&"first") && messages.iter().any(|text| text.contains("one")),
        "{messages:?}"
    );
    assert!(!messages.iter().any(|text| text.contains("other")), "{messages:?}");
    question.respond("two");
    assert_eq!(second.events().await.last().unwrap()["text"], "two");
    let question = world.question().await;
    assert_eq!(question.last(), "third");
    question.respond("three");
    assert_eq!(third.events().await.last().unwrap()["text"], "three");
}

#[tokio::test]
async fn sessions_do_not_share_state() {
    let mut world = World::new().await;
    for (session, program) in [("s", SAVE), ("s", LOAD), ("t", LOAD)] {
        let mut client = world.chat(&message("go on", session)).await;
        world.question().await.say(program);
        let observation = world.question().await;
        let seen = observation.last().to_owned();
        observation.respond("done");
        let events = client.events().await;
        if program == LOAD {
            let found = session == "s";
            assert_eq!(seen.contains("Oslo"), found, "{seen}");
            let result = events.iter().find(|event| event["type"] == "tool_result").unwrap();
            assert_eq!(result["success"], found);
        }
    }
}

#[tokio::test]
async fn a_run_over_http_sees_no_files_of_the_host() {
    let mut world = World::new().await;
    let mut client = world.chat(&message("read it", "s")).await;
    let program = "(local $e i32) (local $v i32)\n(call $fs.read \"Cargo.toml\") (local.set $e) \
                   (local.set $v)\n(local.get $e)";
    world.question().await.say(&format!("ToolCall::Wat(```wat\n{program}\n```)"));
    let observation = world.question().await;
    assert!(observation.last().contains("ENOENT"), "{}", observation.last());
    observation.respond("there is none");
    client.events().await;
}

#[tokio::test]
async fn an_idle_stream_sends_heartbeats() {
    let mut world =
        World::with(|settings| settings.limits.heartbeat = Duration::from_millis(20)).await;
    let mut client = world.chat(&message("hello", "s")).await;
    let question = world.question().await;
    for _ in 0..2 {
        assert!(matches!(client.frame().await, Some(Frame::Comment(text)) if text == "heartbeat"));
    }
    question.respond("hello");
    assert_eq!(client.events().await.last().unwrap()["text"], "hello");
}

#[tokio::test]
async fn health_needs_no_token() {
    let world = World::new().await;
    let answer = world.ask(bare("GET /healthz", &["Host: localhost"])).await;
    assert_eq!((answer.head.status, &answer.json()["status"]), (200, &"ok".into()));
}

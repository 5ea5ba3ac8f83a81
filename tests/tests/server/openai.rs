//! Tests the routes for clients of the OpenAI API.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::Settings;
use wattle_agent::host::moderation::{MessageFilter, Moderation, OnFailure, Patterns};

use crate::api::wat;
use crate::client::Frame;
use crate::world::{TOKEN, World, api};

const CHAT: &str = "POST /v1/chat/completions";
/// A message that a chat page sends without any user action.
const TASK: &str = "### Task:\nGenerate a title.";

fn user(text: &str) -> Json {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Json {
    json!({"role": "assistant", "content": text})
}

fn chat(messages: &[Json]) -> String {
    json!({"model": "wattle", "messages": messages}).to_string()
}

#[tokio::test]
async fn a_conversation_continues_its_session_and_another_branch_begins_a_new_one() {
    let mut world = World::new().await;
    let address = world.address;
    let ask = |body: String| async move {
        let mut client = crate::client::Client::connect(address).await;
        client.send(api(TOKEN, CHAT, &body)).await;
        client.answer().await
    };
    let asked = tokio::spawn(ask(chat(&[
        json!({"role": "system", "content": "be kind"}),
        user("remember 7"),
    ])));
    let question = world.question().await;
    assert!(question.messages[0].content.contains("be kind"));
    question.say(&wat(r#"(kv.set "n" "7")"#));
    world.question().await.respond("noted");
    let first = asked.await.unwrap();
    let session = first.head.get("x-session-id").unwrap().to_owned();
    let answer = first.json();
    assert_eq!(answer["choices"][0]["message"]["content"], "noted");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");

    let history = [
        json!({"role": "system", "content": "be kind"}),
        user("remember 7"),
        assistant("noted "),
        user("which?"),
    ];
    let asked = tokio::spawn(ask(chat(&history)));
    world.question().await.say(&wat(r#"(out (kv.get "n"))"#));
    let question = world.question().await;
    assert!(question.last().contains('7'), "{}", question.last());
    question.respond("seven");
    assert_eq!(asked.await.unwrap().head.get("x-session-id"), Some(session.as_str()));

    // The client asks for another answer to the second message. The session has continued since
    // then, so this request starts a new session.
    let asked = tokio::spawn(ask(chat(&history)));
    let question = world.question().await;
    let texts: Vec<&str> =
        question.messages.iter().skip(1).map(|message| message.content.as_str()).collect();
    assert_eq!(texts, ["remember 7", "noted ", "which?"]);
    question.respond("7");
    assert_ne!(asked.await.unwrap().head.get("x-session-id"), Some(session.as_str()));
}

/// The body of the first message of a conversation, or of its second one.
fn turn(message: &str, is_first: bool) -> Json {
    let system = json!({"role": "system", "content": "be kind"});
    let messages = match is_first {
        true => vec![system, user(message)],
        false => vec![system, user("hello"), assistant("hi"), user(message)],
    };
    json!({"model": "wattle", "messages": messages})
}

#[tokio::test]
async fn a_session_is_continued_only_for_the_same_token_person_instructions_and_model() {
    let mut world = World::new().await;
    let created = world.api("POST /api/tokens", r#"{"name":"other","scope":"run"}"#).await.json();
    let other = created["token"].as_str().unwrap().to_owned();
    let person = |mut body: Json, name: &str| {
        body["user"] = name.into();
        body
    };
    for is_named in [false, true] {
        let own = |body: Json| if is_named { person(body, "alice") } else { body };
        let (first, _) = world
            .completion(TOKEN, &own(turn("hello", true)), Some(r#"(kv.set "n" "secret")"#))
            .await;
        let mut otherwise = turn("which?", false);
        otherwise["messages"][0]["content"] = "be rude".into();
        let mut without = turn("which?", false);
        without["messages"].as_array_mut().unwrap().remove(0);
        let mut model = turn("which?", false);
        model["model"] = "default".into();
        for (name, token, body) in [
            ("token", other.as_str(), own(turn("which?", false))),
            ("person", TOKEN, person(turn("which?", false), "bob")),
            ("instructions", TOKEN, own(otherwise)),
            ("no instructions", TOKEN, own(without)),
            ("model", TOKEN, own(model)),
        ] {
            let (session, seen) = world.completion(token, &body, Some(READ)).await;
            assert!(session != first && !seen.contains("secret"), "another {name}: {seen}");
        }
        let body = own(turn("which?", false));
        let (session, seen) = world.completion(TOKEN, &body, Some(READ)).await;
        assert!(session == first && seen.contains("secret"), "{seen}");
    }
}

#[tokio::test]
async fn people_who_share_a_token_and_a_conversation_get_no_session_of_the_other() {
    let world = &mut World::new().await;
    let mut seen = Vec::new();
    let mut step = async |world: &mut World, is_first: bool, program: &str| {
        let message = if is_first { "hello" } else { "which?" };
        let (session, text) =
            world.completion(TOKEN, &turn(message, is_first), Some(program)).await;
        let is_new = !seen.contains(&session);
        seen.push(session);
        (is_new, text)
    };
    // Alice continues her session. Bob then has the same conversation.
    assert!(step(world, true, r#"(kv.set "n" "secret")"#).await.0);
    assert!(!step(world, false, r#"(kv.set "n" "secret")"#).await.0);
    assert!(step(world, true, r#"(kv.set "n" "secret")"#).await.0);
    for _ in 0..2 {
        // It is unknown who of them asks.
        let (is_new, text) = step(world, false, READ).await;
        assert!(is_new && !text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn a_conversation_of_a_removed_session_is_not_continued_in_a_later_one() {
    let mut world = World::new().await;
    let (removed, _) = world.completion(TOKEN, &turn("hello", true), None).await;
    let delete = format!("DELETE /api/sessions/{removed}");
    assert_eq!(world.api(&delete, "").await.head.status, 204);
    let (later, _) =
        world.completion(TOKEN, &turn("hello", true), Some(r#"(kv.set "n" "secret")"#)).await;
    let (session, text) = world.completion(TOKEN, &turn("which?", false), Some(READ)).await;
    assert!(![removed, later].contains(&session) && !text.contains("secret"), "{text}");

    // A person can have the same conversation again, and continues the newest one.
    let named = |mut body: Json| {
        body["user"] = "alice".into();
        body
    };
    world.completion(TOKEN, &named(turn("hello", true)), None).await;
    let (newest, _) = world.completion(TOKEN, &named(turn("hello", true)), None).await;
    let (session, _) = world.completion(TOKEN, &named(turn("which?", false)), None).await;
    assert_eq!(session, newest);
}

#[tokio::test]
async fn a_request_that_failed_is_repeated_in_its_session() {
    let mut world = World::new().await;
    let (first, _) = world.completion(TOKEN, &turn("hello", true), None).await;
    for stream in [false, true] {
        let mut body = turn("which?", false);
        body["stream"] = stream.into();
        let mut client = world.client().await;
        client.send(api(TOKEN, CHAT, &body.to_string())).await;
        if stream {
            assert_eq!(client.head().await.status, 200);
            world.question().await.fail();
            let mut frames = Vec::new();
            while let Some(data) = client.data().await {
                frames.push(data);
            }
            assert!(frames.concat().contains("run_failed"), "{frames:?}");
        } else {
            world.question().await.fail();
            client.answer().await.refused(502, "run_failed");
        }
    }
    let (session, _) = world.completion(TOKEN, &turn("which?", false), None).await;
    assert_eq!(session, first);
}

#[tokio::test]
async fn a_conversation_of_responses_continues_its_session() {
    let mut world = World::new().await;
    let (mut sessions, messages) = (Vec::new(), [user("hello"), assistant("hi"), user("which?")]);
    for (messages, stream) in [(&messages[..1], true), (&messages[..], false)] {
        let body = json!({"model": "wattle", "input": messages, "stream": stream, "user": "alice"});
        let mut client = world.client().await;
        client.send(api(TOKEN, "POST /v1/responses", &body.to_string())).await;
        if stream {
            assert_eq!(client.head().await.status, 200);
        }
        world.question().await.respond("hi");
        if stream {
            while client.data().await.is_some() {}
        } else {
            assert_eq!(client.answer().await.head.status, 200);
        }
        let run = world.runs().await.swap_remove(0);
        sessions.push(world.until(&run, "done").await["session_id"].clone());
    }
    assert_eq!(sessions[0], sessions[1]);
}

#[tokio::test]
async fn a_streamed_completion_has_progress_the_answer_and_usage() {
    let mut world = World::new().await;
    let body = json!({
        "model": "wattle", "messages": [user("go")], "stream": true,
        "stream_options": {"include_usage": true},
    });
    let mut client = world.client().await;
    client.send(api(TOKEN, CHAT, &body.to_string())).await;
    assert_eq!(client.head().await.status, 200);
    world.question().await.say(&wat("(out 1)"));
    world.question().await.respond("done");
    let (mut reasoning, mut content, mut finish, mut usage) =
        (String::new(), String::new(), Json::Null, Json::Null);
    loop {
        let text = client.data().await.expect("the stream has no end");
        if text == "[DONE]" {
            break;
        }
        let chunk: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(chunk["object"], "chat.completion.chunk");
        let choice = &chunk["choices"][0];
        reasoning += choice["delta"]["reasoning_content"].as_str().unwrap_or_default();
        content += choice["delta"]["content"].as_str().unwrap_or_default();
        if choice["finish_reason"].is_string() {
            finish = choice["finish_reason"].clone();
        }
        if chunk["usage"].is_object() {
            usage = chunk["usage"].clone();
        }
    }
    assert_eq!((content.as_str(), &finish), ("done", &"stop".into()));
    assert!(reasoning.contains("do it") && reasoning.contains("▸ wat"), "{reasoning}");
    assert!(usage["total_tokens"].is_u64(), "{usage}");
}

#[tokio::test]
async fn a_marked_answer_is_streamed_and_plain_text_waits_for_its_end() {
    let mut world = World::new().await;
    let words = "word, |".repeat(40);
    let marked = format!("ToolCall::Response(\"\"\"{words}end\"\"\")");
    for (say, is_streamed) in [(marked, true), (format!("{words}end"), false)] {
        let body = json!({"model": "wattle", "messages": [user("go")], "stream": true});
        let mut client = world.client().await;
        client.send(api(TOKEN, CHAT, &body.to_string())).await;
        assert_eq!(client.head().await.status, 200);
        world.question().await.say(&say);
        let mut pieces = Vec::new();
        while let Some(text) = client.data().await.filter(|text| text != "[DONE]") {
            let chunk: Json = serde_json::from_str(&text).unwrap();
            let content = chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
            pieces.extend(Some(content.to_owned()).filter(|text| !text.is_empty()));
        }
        assert_eq!(pieces.concat(), format!("{words}end"));
        // Pieces that arrive together are joined.
        assert!(is_streamed || pieces.len() == 1, "{pieces:?}");
    }
}

#[tokio::test]
async fn a_streamed_response_has_its_reasoning_and_its_text() {
    let mut world = World::new().await;
    let body = json!({"model": "wattle", "input": "go", "stream": true});
    let mut client = world.client().await;
    client.send(api(TOKEN, "POST /v1/responses", &body.to_string())).await;
    assert_eq!(client.head().await.status, 200);
    world.question().await.say(&wat("(out 1)"));
    world.question().await.say("ToolCall::Response(\"\"\"two |and two\"\"\")");
    let mut events: Vec<Json> = Vec::new();
    while let Some(text) = client.data().await {
        events.push(serde_json::from_str(&text).unwrap());
    }
    let joined = |kind: &str| -> String {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| event["delta"].as_str().unwrap()).collect()
    };
    let reasoning = joined("response.reasoning_summary_text.delta");
    assert!(reasoning.contains("do it") && reasoning.contains("▸ wat"), "{reasoning}");
    assert_eq!(joined("response.output_text.delta"), "two |and two");
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    let output = &last["response"]["output"];
    assert_eq!((&output[0]["type"], &output[1]["type"]), (&"reasoning".into(), &"message".into()));
    assert_eq!(output[0]["summary"][0]["text"], reasoning);
    assert_eq!(output[1]["content"][0]["text"], "two |and two");
    let numbers = events.iter().map(|event| event["sequence_number"].as_u64().unwrap());
    assert!(numbers.zip(0..).all(|(number, expected)| number == expected), "{events:?}");
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_completion() {
    let mut world = World::new().await;
    for stream in [true, false] {
        for message in ["go", TASK] {
            let body = json!({"model": "wattle", "messages": [user(message)], "stream": stream});
            let mut client = world.client().await;
            client.send(api(TOKEN, CHAT, &body.to_string())).await;
            let question = world.question().await;
            drop(client);
            question.abandoned().await;
        }
    }
}

#[tokio::test]
async fn a_task_of_a_chat_page_is_a_run_with_one_request_and_without_programs() {
    let mut world = World::new().await;
    for answer in ["{\"title\": \"A title\"}".to_owned(), wat(r#"(kv.set "n" "7")"#)] {
        let mut client = world.client().await;
        client.send(api(TOKEN, CHAT, &chat(&[user(TASK)]))).await;
        let question = world.question().await;
        assert_eq!((question.messages.len(), question.last()), (2, TASK));
        assert!(!question.messages[0].content.contains("ToolCall"), "{:?}", question.messages);
        question.say(&answer);
        let answered = client.answer().await;
        assert_eq!(answered.head.get("x-session-id"), None);
        let json = answered.json();
        let choice = &json["choices"][0];
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&Json::from(answer), &"stop".into())
        );
    }
    world.no_question();
    let runs = world.runs().await;
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let run = world.until(run, "done").await;
        assert_eq!(
            (&run["session_id"], &run["steps"], &run["prompt"]),
            (&Json::Null, &0.into(), &TASK.into())
        );
    }
    assert_eq!(world.api("GET /api/sessions", "").await.json()["sessions"], json!([]));

    // A message of a longer conversation is an ordinary one.
    let history = [user("hello"), json!({"role": "assistant", "content": "hi"}), user(TASK)];
    let mut client = world.client().await;
    client.send(api(TOKEN, CHAT, &chat(&history))).await;
    let question = world.question().await;
    assert_eq!(question.messages.len(), 4);
    question.respond("done");
    assert!(client.answer().await.head.get("x-session-id").is_some());
}

#[tokio::test]
async fn a_task_of_a_chat_page_is_streamed() {
    let mut world = World::new().await;
    let body = json!({"model": "wattle", "messages": [user(TASK)], "stream": true});
    let mut client = world.client().await;
    client.send(api(TOKEN, CHAT, &body.to_string())).await;
    assert_eq!(client.head().await.status, 200);
    world.question().await.say("A title");
    let mut content = String::new();
    while let Some(text) = client.data().await.filter(|text| text != "[DONE]") {
        let chunk: Json = serde_json::from_str(&text).unwrap();
        content += chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
    }
    assert_eq!(content, "A title");
}

#[tokio::test]
async fn a_task_of_a_chat_page_passes_the_content_guard() {
    let patterns = Patterns::new([("secret plan", "plans")]).unwrap();
    let filters: Vec<Arc<dyn MessageFilter>> = vec![Arc::new(patterns)];
    let moderation = Moderation::new(filters, BTreeMap::new(), OnFailure::Close);
    let settings = Settings { moderation: Some(moderation), ..Settings::default() };
    let mut world = World::with_settings(settings).await;
    let task = format!("{TASK} The conversation is about a secret plan.");
    let answer = world.api(CHAT, &chat(&[user(&task)])).await.json();
    assert_eq!(answer["choices"][0]["finish_reason"], "content_filter", "{answer}");
    world.no_question();
    world.until(&world.runs().await[0], "blocked").await;
}

#[tokio::test]
async fn a_task_of_a_chat_page_counts_as_a_run() {
    let mut world = World::with(|settings| settings.limits.runs = 1).await;
    let run = world.start(&json!({"prompt": "busy"})).await;
    let question = world.question().await;
    world.api(CHAT, &chat(&[user(TASK)])).await.refused(503, "overloaded");
    question.respond("done");
    world.until(&run, "done").await;
    assert_eq!(world.api("POST /admin/drain", "").await.head.status, 202);
    world.api(CHAT, &chat(&[user(TASK)])).await.refused(503, "stopping");
    world.no_question();
}

#[tokio::test]
async fn responses_are_created_streamed_continued_and_retrieved() {
    let mut world = World::new().await;
    let body =
        json!({"model": "wattle", "input": "hello", "stream": true, "instructions": "be brief"});
    let mut client = world.client().await;
    client.send(api(TOKEN, "POST /v1/responses", &body.to_string())).await;
    assert_eq!(client.head().await.status, 200);
    let question = world.question().await;
    assert!(question.messages[0].content.contains("be brief"));
    question.respond("hi");
    let (mut kinds, mut id) = (Vec::new(), String::new());
    while let Some(text) = client.data().await {
        let event: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(event["sequence_number"], kinds.len());
        if event["type"] == "response.completed" {
            id = event["response"]["id"].as_str().unwrap().to_owned();
        }
        kinds.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds.first().unwrap(), "response.created");
    assert_eq!(kinds.last().unwrap(), "response.completed");
    let shown = world.api(&format!("GET /v1/responses/{id}"), "").await.json();
    assert_eq!(
        (&shown["status"], &shown["output"][0]["content"][0]["text"]),
        (&"completed".into(), &"hi".into())
    );

    let body =
        json!({"model": "default", "input": "again", "previous_response_id": id}).to_string();
    let mut client = world.client().await;
    client.send(api(TOKEN, "POST /v1/responses", &body)).await;
    let question = world.question().await;
    assert!(
        question.messages.iter().any(|message| message.content == "hello"),
        "the session goes on"
    );
    question.respond("hi again");
    assert_eq!(client.answer().await.json()["output"][0]["content"][0]["text"], "hi again");
}

#[tokio::test]
async fn what_cannot_be_honoured_is_an_error() {
    let mut world = World::new().await;
    for (body, status, code) in [
        (json!({"model": "gpt-9", "messages": [user("m")]}), 404, "model_not_found"),
        (json!({"model": "wattle", "messages": []}), 422, "invalid_field"),
        (
            json!({"model": "wattle", "messages": [json!({"role": "tool", "content": "x"})]}),
            422,
            "invalid_field",
        ),
        (json!({"model": "wattle", "messages": [user("m")], "tools": [{}]}), 422, "invalid_field"),
        (
            json!({
                "model": "wattle", "messages": [user("m")],
                "response_format": {"type": "json_schema"},
            }),
            422,
            "invalid_field",
        ),
        (
            json!({"model": "wattle", "messages": [
                {"role": "user", "content": [{"type": "image_url"}]},
            ]}),
            422,
            "invalid_field",
        ),
    ] {
        world.api(CHAT, &body.to_string()).await.refused(status, code);
    }
    let failing = tokio::spawn({
        let (address, request) = (world.address, api(TOKEN, CHAT, &chat(&[user("m")])));
        async move {
            let mut client = crate::client::Client::connect(address).await;
            client.send(request).await;
            client.answer().await
        }
    });
    world.question().await.fail();
    failing.await.unwrap().refused(502, "run_failed");
}

/// A program that reads the variable of the session.
const READ: &str = r#"(out "read:" (default (kv.get "n") "none"))"#;

impl World {
    /// Sends a chat request, runs the program if there is one, and answers with `hi`. Returns the
    /// session and the result of the program.
    async fn completion(
        &mut self,
        token: &str,
        body: &Json,
        program: Option<&str>,
    ) -> (String, String) {
        let mut client = self.client().await;
        client.send(api(token, CHAT, &body.to_string())).await;
        let mut seen = String::new();
        if let Some(program) = program {
            self.question().await.say(&wat(program));
            let question = self.question().await;
            seen = question.last().to_owned();
            question.respond("hi");
        } else {
            self.question().await.respond("hi");
        }
        let answer = client.answer().await;
        (answer.head.get("x-session-id").unwrap().to_owned(), seen)
    }

    /// Returns the ids of the runs, newest first.
    pub(crate) async fn runs(&self) -> Vec<String> {
        let list = self.api("GET /api/runs", "").await.json();
        let runs = list["runs"].as_array().unwrap();
        runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    }
}

impl crate::client::Client {
    /// Reads the data of the next frame, skipping heartbeats. Returns `None` at the proper end of
    /// the stream.
    pub(crate) async fn data(&mut self) -> Option<String> {
        loop {
            match self.any_frame().await? {
                Frame::Comment(_) => {}
                Frame::Event { data, .. } => return Some(data.as_str().unwrap().to_owned()),
            }
        }
    }
}

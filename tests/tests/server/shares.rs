//! Tests the limits on each token's and each tenant's share of programs, streams and memory.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use serde_json::json;
use wattle_agent::host::Integration;
use wattle_agent::host::capability::kv::Backend as _;

use crate::client::{Answer, Client};
use crate::tenants::{tenants_of, two_tenants};
use crate::world::{TOKEN, World, api, message, store};

/// Repeats a request until the response has the given status. Returns that response.
async fn until(world: &World, request: &str, status: u16) -> Answer {
    for _ in 0..500 {
        let answer = world.ask(request).await;
        if answer.head.status == status {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no response has the status {status}: {request:.200}");
}

/// Creates another token of the tenant to which `admin` belongs.
pub(crate) async fn new_token(world: &World, admin: &str, name: &str) -> String {
    let body = json!({"name": name, "scope": "admin"}).to_string();
    let created = world.ask(api(admin, "POST /api/tokens", &body)).await.json();
    created["token"].as_str().unwrap().to_owned()
}

/// Sends a request without waiting for the response.
async fn begin(world: &World, request: &str) -> Client {
    let mut client = world.client().await;
    client.send(request).await;
    client
}

/// Sends a request over several connections at the same time. Returns the first response, and the
/// connections that are still waiting for a response.
pub(crate) async fn first_answer(
    world: &World,
    request: &str,
    count: usize,
) -> (Answer, Vec<Client>) {
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(begin(world, request).await);
    }
    let answers = clients.iter_mut().map(|client| client.answer().boxed());
    let (answer, index, _) = select_all(answers).await;
    clients.remove(index);
    (answer, clients)
}

#[tokio::test]
async fn programs_of_a_token_or_a_tenant_leave_slots_to_others() {
    let world = two_tenants(|settings| settings.limits.programs = 8).await;
    let line = "POST /api/exec";
    let endless = json!({"body": "(loop $l (sys.sleep 60000) (br $l))"}).to_string();
    let short = json!({"body": "(out 1)"}).to_string();
    let mut clients = Vec::new();
    for token in ["bobs-run", "bobs-admin"] {
        let (answer, waiting) = first_answer(&world, &api(token, line, &endless), 3).await;
        let words = answer.refused(429, "too_many_programs");
        clients.extend(waiting);
        assert!(words.contains("2 programs of this token"), "{words}");
    }
    // Another token does not give the tenant more programs.
    let third = new_token(&world, "bobs-admin", "third").await;
    let words = world.ask(api(&third, line, &short)).await.refused(429, "too_many_programs");
    assert!(words.contains("4 programs of this tenant"), "{words}");
    let body = json!({"body": ";;; name = \"a\""}).to_string();
    world.ask(api(&third, "POST /api/test", &body)).await.refused(429, "too_many_programs");
    // Another tenant is not affected.
    assert_eq!(world.api(line, &short).await.head.status, 200);
}

#[tokio::test]
async fn a_tenant_with_many_runs_leaves_slots_to_others_and_the_operator() {
    let mut world = tenants_of(
        &["bob", "carol"],
        |app| app,
        |settings| {
            settings.limits.runs = 8;
        },
    )
    .await;
    let mut bobs = Vec::new();
    for number in 0..10 {
        let body = json!({"prompt": format!("bob {number}")}).to_string();
        let started = world.ask(api("bobs-run", "POST /api/run", &body)).await;
        bobs.push(started.json()["id"].as_str().unwrap().to_owned());
    }
    let mut questions = Vec::new();
    for _ in 0..4 {
        questions.push(world.question().await);
    }
    let (chat, v1) = (
        message("now", "s"),
        json!({
            "model": "wattle",
            "messages": [{"role": "user", "content": "now"}],
        })
        .to_string(),
    );
    for (line, body) in [("POST /chat", &chat), ("POST /v1/chat/completions", &v1)] {
        let refused = world.ask(api("bobs-run", line, body)).await;
        assert_eq!(refused.head.status, 429, "{refused:?}");
        assert!(refused.head.get("retry-after").is_some(), "{line}");
    }
    // The messages and the background runs of others begin at once.
    for token in ["carols-run", TOKEN] {
        for (line, body) in [("POST /chat", &chat), ("POST /v1/chat/completions", &v1)] {
            let mut client = begin(&world, &api(token, line, body)).await;
            world.question().await.respond("hello");
            assert_eq!(client.answer().await.head.status, 200, "{token} {line}");
        }
        let body = json!({"prompt": token}).to_string();
        assert_eq!(world.ask(api(token, "POST /api/run", &body)).await.head.status, 202);
        let question = world.question().await;
        assert!(question.last().contains(token), "{}", question.last());
        questions.push(question);
    }
    world.no_question();
    // The tenant's next run begins once one of its own has ended.
    questions.remove(0).respond("done");
    assert!(world.question().await.last().contains("bob"));
}

#[tokio::test]
async fn streams_of_a_token_or_a_tenant_leave_slots_to_others() {
    let world = two_tenants(|settings| settings.limits.connections = 64).await;
    let line = "GET /api/runs/stream";
    let mut clients = Vec::new();
    let tokens = ["bobs-read".to_owned(), "bobs-run".to_owned(), "bobs-admin".to_owned()];
    let more = new_token(&world, "bobs-admin", "more").await;
    for token in tokens.iter().chain([&more]) {
        for _ in 0..4 {
            let mut client = begin(&world, &api(token, line, "")).await;
            assert_eq!(client.head().await.status, 200);
            clients.push(client);
        }
        let words = world.ask(api(token, line, "")).await.refused(429, "too_many_streams");
        assert!(words.contains("4 streams of this token"), "{words}");
    }
    let last = new_token(&world, "bobs-admin", "last").await;
    let words = world.ask(api(&last, line, "")).await.refused(429, "too_many_streams");
    assert!(words.contains("16 streams of this tenant"), "{words}");
    // A message to an integration also counts as a stream, because its client waits for the run.
    let message = r#"{"message":"hello"}"#;
    world.ask(api(&last, "POST /i/help", message)).await.refused(429, "too_many_streams");
    // Other requests, and other tenants, are not affected.
    assert_eq!(world.ask(api(&last, "GET /api/runs", "")).await.head.status, 200);
    let mut own = begin(&world, &api(TOKEN, line, "")).await;
    assert_eq!(own.head().await.status, 200);
    // The slot of a stream that ended is free again.
    clients.remove(0);
    until(&world, &api("bobs-read", line, ""), 200).await;
}

#[tokio::test]
async fn bodies_that_never_arrive_hold_the_memory_of_their_tenant_alone() {
    let world = World::with_memory(64 << 20).await;
    let token = new_token(&world, TOKEN, "n").await;
    // The memory is held as soon as the head has been read.
    let head = api(&token, "PUT /api/sessions/s/files/a", "");
    let announced = head.replace("Content-Length: 0", "Content-Length: 16777216");
    let (answer, waiting) = first_answer(&world, &announced, 2).await;
    answer.refused(503, "overloaded");
    // Small bodies are not charged, and the server's own token has memory of its own.
    let line = "PUT /api/sessions/s/files/small";
    assert_eq!(world.ask(api(&token, line, "x")).await.head.status, 204);
    let whole = "x".repeat(1 << 20);
    let line = "PUT /api/sessions/s/files/large";
    assert_eq!(world.api(line, &whole).await.head.status, 204);
    assert_eq!(world.api(&line.replace("PUT", "GET"), "").await.body, whole);
    // A request that was given up releases its memory.
    drop(waiting);
    until(&world, &api(&token, line, &whole), 204).await;
    // A body without a declared length holds memory as soon as it is not small.
    let chunked = head.replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let part = format!("20000\r\n{}\r\n", "x".repeat(0x20000));
    let (answer, _waiting) = first_answer(&world, &format!("{chunked}{part}"), 2).await;
    answer.refused(503, "overloaded");
}

#[tokio::test]
async fn the_files_of_requests_hold_the_memory_of_their_tenant_alone() {
    let world = World::with_memory(256 << 20).await;
    let token = new_token(&world, TOKEN, "n").await;
    let whole = "x".repeat(4 << 20);
    for name in ["a", "b", "c", "d"] {
        let line = format!("PUT /api/sessions/s/files/{name}");
        assert_eq!(world.api(&line, &whole).await.head.status, 204);
    }
    // The clients read the heads alone.
    let archive = api(&token, "GET /api/sessions/s/files.tar", "");
    let mut clients = Vec::new();
    let refused = loop {
        let mut client = begin(&world, &archive).await;
        let head = client.head().await;
        if head.status != 200 {
            break head;
        }
        clients.push(client);
        assert!(clients.len() < 10, "the memory of archives is not limited");
    };
    assert_eq!(refused.status, 503);
    assert!(refused.get("retry-after").is_some());
    let list = api(&token, "GET /api/sessions/s/files", "");
    world.ask(&list).await.refused(503, "overloaded");
    assert_eq!(world.api("GET /api/sessions/s/files", "").await.head.status, 200);
    drop(clients);
    until(&world, &list, 200).await;
}

#[tokio::test]
async fn stored_data_that_is_too_large_for_a_tenant_is_not_loaded() {
    let store = store();
    let state = store.state("s");
    let value = vec![b'x'; 5 << 20];
    state.update("key".to_owned(), Box::new(move |_| Ok(Some(value.clone())))).await.unwrap();
    for name in ["one", "two", "three", "four", "five"] {
        let system_prompt = Some("p".repeat(1 << 20));
        let (agent, session_id) = (None, None);
        let integration = Integration { name: name.to_owned(), system_prompt, agent, session_id };
        assert!(store.add_integration(&integration).await.unwrap());
    }
    let world = World::with_memory_on(store, 64 << 20).await;
    let token = new_token(&world, TOKEN, "n").await;
    for line in ["GET /api/sessions/s/export", "GET /api/sessions/s", "GET /api/integrations"] {
        world.ask(api(&token, line, "")).await.refused(413, "memory_exceeded");
        assert_eq!(world.api(line, "").await.head.status, 200, "{line}");
    }
    assert_eq!(world.ask(api(&token, "GET /i/one", "")).await.head.status, 200);
}

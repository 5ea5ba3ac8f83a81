//! Tests what is under way with a token when the token is revoked.

use serde_json::{Value as Json, json};
use wattle_agent::host::capability::policy::Policy;
use wattle_server::{App, TenantParts};

use crate::api::wat;
use crate::world::{World, api, store};

/// Creates a token of the server's own tenant.
async fn token(world: &World, scope: &str) -> String {
    let body = json!({"name": "n", "scope": scope}).to_string();
    let created = world.api("POST /api/tokens", &body).await;
    assert_eq!(created.head.status, 201, "{created:?}");
    created.json()["token"].as_str().unwrap().to_owned()
}

async fn revoke(world: &World) {
    assert_eq!(world.api("DELETE /api/tokens/n", "").await.head.status, 204);
}

#[tokio::test]
async fn a_body_that_ends_after_its_token_was_revoked_does_nothing() {
    let world = World::new().await;
    let document: Json = serde_json::from_str(wattle_server::document()).unwrap();
    let mut refused = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if operation["x-scope"].is_null() || operation["requestBody"].is_null() {
                continue;
            }
            let token = token(&world, "admin").await;
            let (line, path) = (method.to_uppercase(), path.replace(['{', '}'], ""));
            let mut client = world.client().await;
            let head = format!(
                "{line} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
                 Content-Type: application/json\r\nAccept: application/json, \
                 text/event-stream\r\nContent-Length: 2\r\n\r\n{{"
            );
            client.send(head).await;
            revoke(&world).await;
            client.send_in_vain("}").await;
            let status = client.answer().await.head.status;
            // Some routes look first whether there is a run or a session of this name.
            assert!([401, 404].contains(&status), "{line} {path}: {status}");
            refused += usize::from(status == 401);
        }
    }
    assert!(refused > 10, "{refused}");
}

#[tokio::test]
async fn a_program_ends_when_its_token_is_revoked() {
    let mut world = World::new().await;
    let program = r#"(out (ai.assist "a" "wait" 0)) (kv.set "late" "1")"#;
    let exec = json!({"body": program, "session_id": "s"}).to_string();
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "run_program", "arguments": {"program": program}},
    });
    for (line, body) in [("POST /api/exec", exec), ("POST /mcp", call.to_string())] {
        let token = token(&world, "run").await;
        let mut client = world.client().await;
        let accept = "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\
                      \r\nContent-Length";
        client.send(api(&token, line, &body).replacen("\r\nContent-Length", accept, 1)).await;
        let question = world.question().await;
        revoke(&world).await;
        question.abandoned().await;
        assert_eq!(client.answer().await.head.status, 401, "{line}");
    }
}

/// Starts a server whose policy requires approval for each write, and which allows a token one active
/// run.
async fn asking() -> World {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    World::of(
        TenantParts::new(store()),
        |app: App| app.with_policy(policy),
        |settings| settings.limits.runs_per_token = 1,
    )
    .await
}

#[tokio::test]
async fn a_run_that_was_approved_counts_as_active_and_ends_when_its_token_is_revoked() {
    let mut world = asking().await;
    let token = token(&world, "run").await;
    let start = api(&token, "POST /api/run", r#"{"prompt":"write"}"#);
    let run = world.ask(&start).await.json()["id"].as_str().unwrap().to_owned();
    world.question().await.say(&wat(r#"(fs.write "a.txt" "x")"#));
    world.until(&run, "parked").await;
    let approval = format!("POST /api/run/{run}/approvals/1.1");
    assert_eq!(world.api(&approval, r#"{"approve":true}"#).await.head.status, 200);
    let question = world.question().await;
    world.ask(&start).await.refused(429, "too_many_runs");
    revoke(&world).await;
    question.abandoned().await;
    let ended = world.until(&run, "cancelled").await;
    assert!(ended.to_string().contains("revoked"), "{ended}");
}

#[tokio::test]
async fn a_queued_run_ends_when_its_token_is_revoked_after_it_became_active() {
    let mut world = World::with(|settings| settings.limits.runs = 1).await;
    let token = token(&world, "run").await;
    world.start(&json!({"prompt": "first"})).await;
    let first = world.question().await;
    let start = api(&token, "POST /api/run", r#"{"prompt":"second"}"#);
    let second = world.ask(&start).await.json()["id"].as_str().unwrap().to_owned();
    world.no_question();
    first.respond("done");
    let question = world.question().await;
    revoke(&world).await;
    question.abandoned().await;
    world.until(&second, "cancelled").await;
}

#[tokio::test]
async fn an_unfinished_message_of_an_mcp_client_ends_like_any_other_body() {
    let world = World::with(|settings| {
        settings.limits.body_time = std::time::Duration::from_millis(50);
    })
    .await;
    let mut client = world.client().await;
    let head = api(crate::world::TOKEN, "POST /mcp", "").replace("Length: 0", "Length: 9");
    client.send(head).await;
    assert_eq!(client.answer().await.head.status, 408);
}

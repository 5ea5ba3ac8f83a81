//! Tests the files of sessions over HTTP.

use serde_json::json;

use crate::api::wat;
use crate::world::{TOKEN, World, api};

#[tokio::test]
async fn what_a_run_writes_is_there_in_the_next_run_and_can_be_downloaded() {
    let mut world = World::new().await;
    let body = json!({"prompt": "go", "session_id": "s", "files": {"in/a.txt": "given"}});
    let run = world.start(&body).await;
    world.question().await.say(&wat(r#"(fs.write "out.txt" (str.upper (fs.read "in/a.txt")))"#));
    world.question().await.respond("done");
    world.until(&run, "done").await;
    let file = |path: &str| format!("GET /api/sessions/s/files/{path}");
    let answer = world.api(&file("out.txt"), "").await;
    assert_eq!(answer.body, "GIVEN");
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(answer.head.get(name), Some(value));
    }
    let run = world.start(&json!({"prompt": "again", "session_id": "s"})).await;
    world.question().await.say(&wat(r#"(out (fs.read "out.txt")) (fs.remove "in/a.txt")"#));
    let question = world.question().await;
    assert!(question.last().contains("GIVEN"), "{}", question.last());
    question.respond("done");
    world.until(&run, "done").await;
    world.api(&file("in/a.txt"), "").await.refused(404, "not_found");
    let list = world.api("GET /api/sessions/s/files", "").await.json();
    assert_eq!(list["files"][0]["path"], "out.txt", "{list}");
    assert_eq!(list["files"].as_array().unwrap().len(), 1, "{list}");
}

#[tokio::test]
async fn the_size_of_a_session_includes_its_files() {
    let world = World::new().await;
    let file = "x".repeat(5_000);
    world.ask(api(TOKEN, "PUT /api/sessions/s/files/a.txt", &file)).await;
    let sessions = world.api("GET /api/sessions", "").await.json();
    assert!(sessions["sessions"][0]["bytes"].as_u64().unwrap() >= 5_000, "{sessions}");
}

#[tokio::test]
async fn files_are_written_removed_and_limited() {
    let world = World::with(|settings| settings.limits.file_bytes = 100).await;
    let path = "/api/sessions/s/files/deep/in/a.bin";
    assert_eq!(world.api(&format!("PUT {path}"), "bytes \u{1}").await.head.status, 204);
    assert_eq!(world.api(&format!("GET {path}"), "").await.body, "bytes \u{1}");
    let large = "x".repeat(101);
    world.ask(api(TOKEN, &format!("PUT {path}"), &large)).await.refused(413, "body_too_large");
    assert_eq!(world.api(&format!("GET {path}"), "").await.body, "bytes \u{1}", "it is unchanged");
    for path in ["..%2Fx", "%2e%2e/x", "a%00b"] {
        let message = world
            .api(&format!("PUT /api/sessions/s/files/{path}"), "x")
            .await
            .refused(422, "invalid_field");
        assert!(!message.is_empty());
    }
    assert_eq!(world.api(&format!("DELETE {path}"), "").await.head.status, 204);
    world.api(&format!("GET {path}"), "").await.refused(404, "not_found");
    assert_eq!(world.api("DELETE /api/sessions/s", "").await.head.status, 204);
    world.api("GET /api/sessions/s", "").await.refused(404, "not_found");
}

#[tokio::test]
async fn many_changes_are_joined_and_a_fork_has_them_all() {
    let world = World::new().await;
    for number in 0..50 {
        let path = format!("PUT /api/sessions/s/files/{}.txt", number % 7);
        assert_eq!(world.api(&path, &number.to_string()).await.head.status, 204);
    }
    let forked = world.api("POST /api/sessions/s/fork", r#"{"id":"t"}"#).await;
    assert_eq!(forked.head.status, 201);
    world.api("POST /api/sessions/s/fork", r#"{"id":"t"}"#).await.refused(409, "conflict");
    assert_eq!(world.api("DELETE /api/sessions/s", "").await.head.status, 204);
    for number in 43..50 {
        let path = format!("GET /api/sessions/t/files/{}.txt", number % 7);
        assert_eq!(world.api(&path, "").await.body, number.to_string());
    }
}

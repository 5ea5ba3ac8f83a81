//! Tests the files of sessions over HTTP.

use serde_json::json;

use crate::api::wat;
use crate::world::{TOKEN, World, api, store};
use wattle_server::TenantParts;

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

#[tokio::test]
async fn changes_are_applied_to_the_folder_by_its_operator_unless_somebody_else_changed_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("plan.md"), "one").unwrap();
    let base = folder.path().to_owned();
    let mut world = World::of(TenantParts::new(store()), |app| app.with_base(base), |_| {}).await;
    let settings = world.api("GET /api/settings", "").await.json();
    assert_eq!(settings["applies"], true, "{settings}");
    let written = [("plan.md", "two"), ("new/a.txt", "mine"), ("Makefile", "all:"), ("b.txt", "b")];
    for (path, text) in written {
        world.ask(api(TOKEN, &format!("PUT /api/sessions/s/files/{path}"), text)).await;
    }
    std::fs::write(at("b.txt"), "theirs").unwrap();
    let applied = world.api("POST /api/sessions/s/apply", "").await.json();
    assert_eq!(applied["applied"], json!(["new", "new/a.txt", "plan.md"]), "{applied}");
    let left = applied["left"].as_array().unwrap();
    let reason = |path: &str| {
        let change = left.iter().find(|change| change["path"] == path);
        change.map(|change| change["reason"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    assert!(reason("Makefile").contains("a build file"), "{applied}");
    assert!(!reason("b.txt").is_empty() && left.len() == 2, "{applied}");
    let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
    assert_eq!((read("plan.md"), read("new/a.txt")), ("two".into(), "mine".into()));
    assert_eq!(read("b.txt"), "theirs");
    // What was applied has left the session, and the rest stays in it.
    let list = world.api("GET /api/sessions/s/files", "").await.json();
    let paths: Vec<&str> =
        list["files"].as_array().unwrap().iter().filter_map(|file| file["path"].as_str()).collect();
    assert_eq!(paths, ["Makefile", "b.txt"]);
    world.api("POST /api/sessions/none/apply", "").await.refused(404, "not_found");

    // A run of the session may be writing its files.
    let run = world.start(&json!({"prompt": "go", "session_id": "s"})).await;
    let question = world.question().await;
    world.api("POST /api/sessions/s/apply", "").await.refused(409, "held");
    question.respond("done");
    world.until(&run, "done").await;
}

#[tokio::test]
async fn a_server_without_a_folder_applies_nothing() {
    let world = World::new().await;
    world.ask(api(TOKEN, "PUT /api/sessions/s/files/a.txt", "x")).await;
    assert_eq!(world.api("GET /api/settings", "").await.json()["applies"], false);
    world.api("POST /api/sessions/s/apply", "").await.refused(403, "forbidden");
}

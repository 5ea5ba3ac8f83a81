//! Tests programs that clients test and save, and the settings shown to administrators.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};
use wattle_agent::agents::Agents;
use wattle_agent::host::catalog::Folders;
use wattle_server::{App, Operator, SettingLine, TenantParts};

use crate::api::wat;
use crate::client::Client;
use crate::tenants::two_tenants;
use crate::world::{TOKEN, World, api, store};

async fn exec(world: &World, body: Json) -> Json {
    let answer = world.api("POST /api/exec", &body.to_string()).await;
    assert_eq!(answer.head.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn a_program_with_fixtures_sees_them_and_nothing_else() {
    let world = World::new().await;
    let fixtures = json!({
        "files": {"notes/a.txt": "one"},
        "kv": {"n": "41"},
        "http": [{"url": "https://a.example", "body": "page"}],
        "now": "2026-01-02T03:04:05Z",
        "random": [7],
        "ai": ["hello", {"when": "tea", "reply": "hot"}],
        "shell": [{"line": "ls", "stdout": "a.txt\n"}],
    });
    let body =
        r#"(out (fs.read "notes/a.txt")) (out (kv.get "n")) (out (http.get "https://a.example/"))"#;
    let done = exec(&world, json!({"body": body, "fixtures": fixtures})).await;
    assert_eq!(done["output"], "one\n41\npage", "{done}");
    let elsewhere = r#"(out (http.get "https://b.example/"))"#;
    let done = exec(&world, json!({"body": elsewhere, "fixtures": fixtures})).await;
    assert!(done["error"].as_str().unwrap().contains("no fixture answers"), "{done}");
    let done = exec(&world, json!({"body": "(fs.write \"x\" \"y\")", "fixtures": {}})).await;
    assert_eq!(done["success"], true);
    let done = exec(&world, json!({"body": "(out (fs.read \"x\"))", "fixtures": {}})).await;
    assert_eq!(done["success"], false, "nothing stays");
    for (fixtures, session) in [
        (json!({"files": {"../a": ""}}), None),
        (json!({"now": "noon"}), None),
        (json!({"http": [{"url": "https://a.example", "status": 9}]}), None),
        (json!({"files": {}}), Some("s")),
        (json!({"file": {}}), None),
    ] {
        let body = json!({"body": "(out 1)", "fixtures": fixtures, "session_id": session});
        let why = world.api("POST /api/exec", &body.to_string()).await;
        let why = why.refused(422, "invalid_field");
        assert!(why.contains("fixtures"), "{why}");
    }
}

/// A program that changes its session and then waits for the model.
const WAITING: &str =
    r#"(kv.set "n" "7") (fs.write "a.txt" "x") (out (ai.assist "text" "task" 0))"#;

/// Runs [`WAITING`] and disconnects while it waits.
async fn disconnect(world: &mut World, session: Option<&str>) {
    let body = json!({"body": WAITING, "session_id": session}).to_string();
    let mut client = world.client().await;
    client.send(api(TOKEN, "POST /api/exec", &body)).await;
    let question = world.question().await;
    drop(client);
    question.abandoned().await;
}

#[tokio::test]
async fn a_program_whose_client_disconnects_leaves_no_session() {
    let store = store();
    let mut world = World::on(store.clone(), |_| {}).await;
    disconnect(&mut world, None).await;
    let sessions = async || store.file().stats().await.unwrap().sessions;
    for _ in 0..1_000 {
        if sessions().await == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(sessions().await, 0);
}

#[tokio::test]
async fn a_session_keeps_all_changes_of_a_program_whose_client_disconnects() {
    let mut world = World::new().await;
    disconnect(&mut world, Some("s")).await;
    let body = json!({
        "body": r#"(out (kv.get "n")) (out (fs.read "a.txt"))"#, "session_id": "s",
    });
    let mut last = Json::Null;
    for _ in 0..1_000 {
        last = exec(&world, body.clone()).await;
        if last["success"] == true {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(last["output"], "7\nx", "{last}");
}

#[tokio::test]
async fn the_requests_of_programs_count_towards_the_budget_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let agent = "name = \"default\"\n[budget]\nmax_tokens_total = 100\n";
    std::fs::write(folder.path().join("default.toml"), agent).unwrap();
    let agents = Agents::open(&[folder.path().to_owned()]);
    let parts = TenantParts::new(store());
    let mut world = World::of(parts, |app: App| app.with_agents(agents), |_| {}).await;
    let ask = r#"(out (default (ai.assist "a" "b" 0) "refused"))"#;
    let program = format!("{ask} {ask} {ask}");

    let (address, body) = (world.address, json!({"body": program}).to_string());
    let asked = tokio::spawn(async move {
        let mut client = Client::connect(address).await;
        client.send(api(TOKEN, "POST /api/exec", &body)).await;
        client.answer().await
    });
    world.question().await.say_using(60, "one");
    world.question().await.say_using(60, "two");
    assert_eq!(asked.await.unwrap().json()["output"], "one\ntwo\nrefused");

    let run = world.start(&json!({"prompt": "m"})).await;
    world.question().await.say_using(10, &wat(&program));
    world.question().await.say_using(95, "one");
    world.until(&run, "stopped").await;
    world.no_question();
}

#[tokio::test]
async fn a_server_that_stops_settles_the_sessions_of_programs() {
    let store = store();
    let mut world = World::on(store.clone(), |_| {}).await;
    let body = json!({"body": WAITING}).to_string();
    let mut client = world.client().await;
    client.send(api(TOKEN, "POST /api/exec", &body)).await;
    let question = world.question().await;
    world.shutdown.cancel();
    drop(client);
    question.abandoned().await;
    world.ended().await;
    assert_eq!(store.file().stats().await.unwrap().sessions, 0);
}

/// Returns a catalog program that has an example with the given expected result.
fn program(name: &str, result: &str) -> String {
    format!(
        ";;; name = \"{name}\"\n;;; description = \"Greet\"\n;;; [[example]]\n;;; args = []\n;;; \
         results = [\"{result}\"]\n\n(ret \"hello\")\n"
    )
}

#[tokio::test]
async fn the_examples_of_a_program_are_run() {
    let world = World::new().await;
    let test =
        async |body: &str| world.api("POST /api/test", &json!({"body": body}).to_string()).await;
    let passed = test(&program("greet", "hello")).await.json();
    assert_eq!(passed["examples"], json!([{"line": 3, "passed": true, "differences": []}]));
    let failed = test(&program("greet", "bye")).await.json();
    assert_eq!(failed["examples"][0]["passed"], false);
    let why = failed["examples"][0]["differences"][0].as_str().unwrap();
    assert!(why.contains("hello") && why.contains("bye"), "{why}");
    test("(ret 1)").await.refused(422, "invalid_field");
    let broken = test(&program("greet", "x").replace("(ret", "(rett")).await;
    let why = broken.refused(422, "invalid_field");
    assert!(why.contains("line 7"), "{why}");
}

/// Starts a server whose catalog reads the given folders.
async fn with_folders(folders: &[PathBuf]) -> World {
    let operator = Operator { programs: folders.to_vec(), ..Operator::default() };
    let read = Folders::open(folders, &|_, _| Ok(()));
    let make = |app: App| app.with_operator(operator);
    World::with_programs(read, TenantParts::new(store()), make, |_| {}).await
}

async fn save(world: &World, name: &str, source: &str, replace: bool) -> crate::client::Answer {
    let body = json!({"source": source, "replace": replace}).to_string();
    world.api(&format!("PUT /api/catalog/{name}"), &body).await
}

fn files(folder: &std::path::Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap()
    };
    std::fs::read_dir(folder).unwrap().map(name).collect()
}

#[tokio::test]
async fn a_saved_program_is_in_the_catalog_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let world = with_folders(&[dir.path().join("missing"), dir.path().to_owned()]).await;
    let first = program("greet", "hello");
    let saved = save(&world, "greet", &first, false).await;
    assert_eq!(saved.head.status, 201, "{saved:?}");
    let path = dir.path().join("greet.wat");
    assert_eq!(saved.json(), json!({"name": "greet", "file": path.display().to_string()}));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
    let ran = world.api("POST /api/catalog/greet/run", "{}").await.json();
    assert_eq!(ran["output"], "hello", "{ran}");

    let second = first.replace("(ret \"hello\")", "(ret \"good day\")");
    let why = save(&world, "greet", &second, false).await;
    why.refused(409, "conflict");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
    assert_eq!(save(&world, "greet", &second, true).await.head.status, 200);
    let ran = world.api("POST /api/catalog/greet/run", "{}").await.json();
    assert_eq!(ran["output"], "good day", "{ran}");
    let shown = world.api("GET /api/catalog/greet", "").await.json();
    assert_eq!(shown["source"], second);
    assert_eq!(files(dir.path()), ["greet.wat"], "nothing unfinished stays");
}

#[tokio::test]
async fn a_program_that_the_catalog_would_refuse_is_not_saved() {
    let dir = tempfile::tempdir().unwrap();
    let world = with_folders(&[dir.path().to_owned()]).await;
    let good = program("greet", "hello");
    for (name, source, status, code) in [
        ("other", good.clone(), 422, "invalid_field"),
        ("Greet", good.clone(), 422, "invalid_field"),
        ("..%2Fgreet", good.clone(), 422, "invalid_field"),
        ("greet", "(ret \"hello\")".to_owned(), 422, "invalid_field"),
        ("greet", good.replace("(ret", "(rett"), 422, "invalid_field"),
        ("file_read", program("file_read", "hello"), 409, "conflict"),
    ] {
        save(&world, name, &source, true).await.refused(status, code);
    }
    assert_eq!(files(dir.path()), [] as [&str; 0]);
}

#[tokio::test]
async fn of_two_new_programs_with_one_name_one_is_saved() {
    let dir = tempfile::tempdir().unwrap();
    let world = with_folders(&[dir.path().to_owned()]).await;
    let source = program("greet", "hello");
    let (one, other) =
        tokio::join!(save(&world, "greet", &source, false), save(&world, "greet", &source, false));
    let mut statuses = [one.head.status, other.head.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
}

#[tokio::test]
async fn a_server_without_a_folder_of_programs_saves_none() {
    let dir = tempfile::tempdir().unwrap();
    for folders in [Vec::new(), vec![dir.path().join("missing")]] {
        let world = with_folders(&folders).await;
        let saved = save(&world, "greet", &program("greet", "hello"), false).await;
        saved.refused(403, "read_only");
    }
    let world = two_tenants(|_| {}).await;
    let body = json!({"source": program("greet", "hello")}).to_string();
    let line = "PUT /api/catalog/greet";
    world.ask(api("bobs-admin", line, &body)).await.refused(403, "forbidden");
}

#[tokio::test]
async fn administrators_of_the_servers_tenant_see_the_settings() {
    let line = SettingLine {
        key: "root".to_owned(),
        value: "/home/alice".into(),
        origin: "WATTLE_ROOT".to_owned(),
    };
    let operator = Operator { settings: vec![line], ..Operator::default() };
    let make = |app: App| app.with_operator(operator.clone());
    let world = World::of(TenantParts::new(store()), make, |_| {}).await;
    let settings = world.api("GET /api/settings", "").await.json();
    let expected = json!([{"key": "root", "value": "/home/alice", "origin": "WATTLE_ROOT"}]);
    assert_eq!(settings["settings"], expected);
    let token = world.api("POST /api/tokens", r#"{"name":"n","scope":"run"}"#).await.json();
    let of_run = world.ask(api(token["token"].as_str().unwrap(), "GET /api/settings", "")).await;
    assert_eq!(of_run.json()["settings"], json!([]));

    let world = crate::tenants::two_tenants_of(|app| app.with_operator(operator), |_| {}).await;
    let of_bob = world.ask(api("bobs-admin", "GET /api/settings", "")).await;
    assert_eq!(of_bob.json()["settings"], json!([]));
}

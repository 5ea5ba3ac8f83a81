//! Tests forks of runs and of sessions.

use serde_json::json;
use wattle_agent::agents::Agents;
use wattle_agent::host::TenantStore;
use wattle_agent::host::catalog::Catalog;
use wattle_server::TenantParts;

use crate::api::wat;
use crate::shares::{first_answer, new_token};
use crate::world::{TOKEN, World, api, store};

/// Starts a run and answers its only question.
async fn ended(world: &mut World, body: &serde_json::Value) -> String {
    let run = world.start(body).await;
    world.question().await.respond("done");
    world.until(&run, "done").await;
    run
}

#[tokio::test]
async fn a_fork_of_a_run_has_no_more_steps_than_the_operator_allows() {
    let store = store();
    let mut world = World::on(store.clone(), |_| {}).await;
    let run = ended(&mut world, &json!({"prompt": "m", "max_steps": 9})).await;
    world.shutdown.cancel();
    world.ended().await;
    let limited = |app: wattle_server::App| app.with_max_steps(Some(2));
    let world = World::of(TenantParts::new(store.clone()), limited, |_| {}).await;
    for body in [r#"{"step":0}"#, r#"{"step":0,"message":"again"}"#] {
        let forked = world.api(&format!("POST /api/run/{run}/fork"), body).await;
        assert_eq!(forked.head.status, 422, "{forked:?}");
        assert!(forked.json().to_string().contains("start a new run"), "{forked:?}");
    }
    let runs = world.api("GET /api/runs", "").await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
}

/// A store and a folder of agents, which servers use one after the other.
struct Agency {
    store: TenantStore,
    folder: tempfile::TempDir,
}

impl Agency {
    fn new() -> Agency {
        Agency { store: store(), folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(format!("{name}.toml"))
    }

    fn declare(&self, name: &str, rest: &str) {
        let text = format!("name = \"{name}\"\nprompt = \"You are a clerk.\"\n{rest}");
        std::fs::write(self.file(name), text).unwrap();
    }

    async fn serve(&self) -> World {
        let agents = Agents::open(&[self.folder.path().to_owned()]);
        let (parts, programs) = (TenantParts::new(self.store.clone()), Catalog::built_in().into());
        World::with_programs(programs, parts, |app| app.with_agents(agents), |_| {}).await
    }

    /// Ends a server and starts the next one.
    async fn restart(&self, world: World) -> World {
        world.shutdown.cancel();
        world.ended().await;
        self.serve().await
    }
}

#[tokio::test]
async fn a_fork_has_no_higher_limits_than_its_agent_has_now() {
    let agency = Agency::new();
    agency.declare("clerk", "");
    let mut world = agency.serve().await;
    let run = ended(&mut world, &json!({"prompt": "m", "agent": "clerk"})).await;
    let fork = format!("POST /api/run/{run}/fork");
    for (rest, is_allowed) in [
        ("max_steps = 1\n", false),
        ("max_steps = 5000\n", true),
        ("[budget]\nmax_tokens_total = 10\n", false),
        ("[budget]\nmax_cost = 0.01\n", false),
        ("[budget]\nai_calls = 0\n", true),
    ] {
        agency.declare("clerk", rest);
        world = agency.restart(world).await;
        let forked = world.api(&fork, r#"{"step":0}"#).await;
        if !is_allowed {
            assert_eq!(forked.head.status, 422, "{rest}: {forked:?}");
            assert!(forked.json().to_string().contains("start a new run"), "{forked:?}");
            continue;
        }
        assert_eq!(forked.head.status, 202, "{rest}: {forked:?}");
        let id = forked.json()["id"].as_str().unwrap().to_owned();
        world.question().await.say(&wat(r#"(out (default (ai.assist "x" "y" 0) "refused"))"#));
        let question = world.question().await;
        if rest.contains("ai_calls") {
            assert!(question.last().contains("refused"), "{}", question.last());
            question.respond("done");
        } else {
            question.respond("asked");
            world.question().await.respond("done");
        }
        world.until(&id, "done").await;
    }
}

#[tokio::test]
async fn a_fork_has_the_schema_that_its_agent_gives_to_a_program_now() {
    let agency = Agency::new();
    agency.declare("clerk", "tools = [\"file_*\"]\n");
    let mut world = agency.serve().await;
    let run = ended(&mut world, &json!({"prompt": "m", "agent": "clerk"})).await;
    let schema = "[[tools]]\nid = \"file_write\"\n[tools.schema.properties.path]\npattern = \
                  \"^notes/\"\n";
    agency.declare("clerk", schema);
    world = agency.restart(world).await;
    let forked = world.api(&format!("POST /api/run/{run}/fork"), r#"{"step":0}"#).await.json();
    let id = forked["id"].as_str().unwrap().to_owned();
    world.question().await.say(r#"ToolCall::Catalog("file_write", "secret/x.txt", "text")"#);
    let question = world.question().await;
    assert!(question.last().contains("does not match"), "{}", question.last());
    question.say(r#"ToolCall::Catalog("file_write", "notes/x.txt", "text")"#);
    let question = world.question().await;
    assert!(!question.last().contains("does not match"), "{}", question.last());
    question.respond("done");
    world.until(&id, "done").await;
}

#[tokio::test]
async fn the_default_agent_is_narrowed_also_if_a_request_changed_it() {
    let agency = Agency::new();
    let mut world = agency.serve().await;
    let run = ended(&mut world, &json!({"prompt": "m", "context": {"a": "b"}})).await;
    agency.declare("default", "[policy]\ndeny = [\"fs\"]\n");
    world = agency.restart(world).await;
    let forked = world.api(&format!("POST /api/run/{run}/fork"), r#"{"step":0}"#).await.json();
    let id = forked["id"].as_str().unwrap().to_owned();
    world.question().await.say(&wat(r#"(fs.write "note" "text")"#));
    let question = world.question().await;
    assert!(question.last().contains("denied"), "{}", question.last());
    question.respond("done");
    world.until(&id, "done").await;
}

#[tokio::test]
async fn a_fork_may_do_no_more_than_its_agent_may_do_now() {
    let agency = Agency::new();
    let calls = [
        wat(r#"(fs.write "note" "text")"#),
        wat(r#"(out (fs.read "note"))"#),
        r#"ToolCall::Catalog("file_write", "note", "text")"#.to_owned(),
    ];
    agency.declare("clerk", "");
    let mut world = agency.serve().await;
    let run = ended(&mut world, &json!({"prompt": "m", "agent": "clerk"})).await;
    let fork = format!("POST /api/run/{run}/fork");
    // For each declaration: the calls that are denied, and the reason.
    for (rest, denied, why) in [
        ("", [false, false, false], ""),
        ("[policy]\ndeny = [\"fs.write\"]\n", [true, false, true], "fs.write"),
        ("tools = [\"file_read\"]\n", [false, false, true], "program:file_write"),
    ] {
        agency.declare("clerk", rest);
        world = agency.restart(world).await;
        let forked = world.api(&fork, r#"{"step":0}"#).await;
        assert_eq!(forked.head.status, 202, "{forked:?}");
        let id = forked.json()["id"].as_str().unwrap().to_owned();
        for (call, is_denied) in calls.iter().zip(denied) {
            world.question().await.say(call);
            let question = world.question().await;
            let result = question.last();
            assert_eq!(result.contains("denied"), is_denied, "{rest} {call}: {result}");
            assert!(!is_denied || result.contains(why), "{rest} {call}: {result}");
            question.say(&wat("(out 1)"));
        }
        world.question().await.respond("done");
        world.until(&id, "done").await;
    }
    std::fs::remove_file(agency.file("clerk")).unwrap();
    world = agency.restart(world).await;
    let refused = world.api(&fork, r#"{"step":0}"#).await.refused(409, "no_agent");
    assert!(refused.contains("`clerk`") && refused.contains("start a new run"), "{refused}");
    assert_eq!(world.api("GET /api/runs", "").await.json()["runs"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_deleted_session_takes_its_runs_with_it() {
    let mut world = World::new().await;
    let run = ended(&mut world, &json!({"prompt": "m", "session_id": "s"})).await;
    let active = world.start(&json!({"prompt": "m", "session_id": "s"})).await;
    let question = world.question().await;
    let queued = world.start(&json!({"prompt": "m", "session_id": "s"})).await;
    assert_eq!(world.api("DELETE /api/sessions/s", "").await.head.status, 204);
    question.abandoned().await;
    for run in [run, active, queued] {
        assert_eq!(world.api(&format!("GET /api/run/{run}"), "").await.head.status, 404, "{run}");
        let fork = format!("POST /api/run/{run}/fork");
        world.api(&fork, r#"{"step":0}"#).await.refused(404, "not_found");
    }
    world.no_question();
    assert_eq!(world.api("GET /api/sessions/s", "").await.head.status, 404);
}

#[tokio::test]
async fn a_refused_fork_of_a_run_leaves_no_run() {
    let mut world = World::with(|settings| settings.limits.runs = 1).await;
    let run = ended(&mut world, &json!({"prompt": "m"})).await;
    let active = world.start(&json!({"prompt": "m"})).await;
    let question = world.question().await;
    let forked = world.api(&format!("POST /api/run/{run}/fork"), r#"{"step":0}"#).await;
    forked.refused(503, "overloaded");
    let runs = world.api("GET /api/runs", "").await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2, "{runs}");
    question.respond("done");
    world.until(&active, "done").await;
    world.no_question();
}

#[tokio::test]
async fn a_refused_fork_of_a_session_leaves_no_session() {
    let world = World::with_memory(64 << 20).await;
    let token = new_token(&world, TOKEN, "n").await;
    let stored = world.api("PUT /api/sessions/s/files/a", &"x".repeat(2 << 20)).await;
    assert_eq!(stored.head.status, 204, "{stored:?}");
    // A body that never arrives holds the memory that the copy needs.
    let head = api(&token, "PUT /api/sessions/other/files/a", "");
    let announced = head.replace("Content-Length: 0", "Content-Length: 14680064");
    let (answer, waiting) = first_answer(&world, &announced, 2).await;
    answer.refused(503, "overloaded");
    let request = api(&token, "POST /api/sessions/s/fork", r#"{"id":"copy"}"#);
    world.ask(&request).await.refused(503, "overloaded");
    assert_eq!(world.api("GET /api/sessions/copy", "").await.head.status, 404);
    drop(waiting);
    let mut forked = world.ask(&request).await;
    for _ in 0..500 {
        if forked.head.status != 503 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        forked = world.ask(&request).await;
    }
    assert_eq!(forked.head.status, 201, "{forked:?}");
}

#[tokio::test]
async fn a_fork_is_driven_by_the_server_that_created_it() {
    let store = store();
    let mut one = World::on(store.clone(), |_| {}).await;
    let mut other = World::on(store.clone(), |_| {}).await;
    let run = ended(&mut one, &json!({"prompt": "m"})).await;
    for _ in 0..20 {
        let forked = one.api(&format!("POST /api/run/{run}/fork"), r#"{"step":0}"#).await;
        assert_eq!((forked.head.status, &forked.json()["status"]), (202, &json!("running")));
        let question = one.question().await;
        other.no_question();
        question.respond("done");
        one.until(forked.json()["id"].as_str().unwrap(), "done").await;
    }
}

#[tokio::test]
async fn a_run_that_is_too_large_for_a_tenant_is_not_forked() {
    let store = store();
    let file = "x".repeat(5 << 20);
    let mut world = World::with_memory_on(store.clone(), 64 << 20).await;
    let token = new_token(&world, TOKEN, "n").await;
    let stored = world.api("PUT /api/sessions/s/files/a", &file).await;
    assert_eq!(stored.head.status, 204, "{stored:?}");
    // The first turn of the run contains the files.
    let run = ended(&mut world, &json!({"prompt": "m", "session_id": "s"})).await;
    let line = format!("POST /api/run/{run}/fork");
    let refused = world.ask(api(&token, &line, r#"{"step":0}"#)).await;
    refused.refused(413, "memory_exceeded");
    let runs = world.api("GET /api/runs", "").await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
}

#[tokio::test]
async fn a_fork_of_a_run_returns_its_session_to_the_step() {
    let program = |text: &str| format!("ToolCall::Wat(```wat\n{text}\n(i32.const 0)\n```)");
    let set = |n: &str| {
        program(&format!(
            "(kv.set? \"n\" \"{n}\") (kv.set? \"tenant:t\" \"{n}\") (fs.write? \"{n}.txt\" \"\")"
        ))
    };
    let mut world = World::on(store(), |_| {}).await;
    let run = world.start(&json!({"prompt": "m", "session_id": "s"})).await;
    world.question().await.say(&set("1"));
    world.question().await.say(&set("2"));
    world.question().await.respond("done");
    world.until(&run, "done").await;
    let paths = async |world: &World| {
        let files = world.api("GET /api/sessions/s/files", "").await.json();
        let files = files["files"].as_array().unwrap().clone();
        files.iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&world).await, ["1.txt", "2.txt"]);
    for body in [r#"{"step":1}"#, r#"{"step":1,"message":"again"}"#] {
        let forked = world.api(&format!("POST /api/run/{run}/fork"), body).await;
        assert_eq!(forked.head.status, 202, "{forked:?}");
        assert_eq!(forked.json()["state_restored"], true, "{forked:?}");
        let show = "(resv (kv.get? \"n\")) (resv (kv.get? \"tenant:t\"))";
        world.question().await.say(&program(show));
        let question = world.question().await;
        assert!(question.last().ends_with("1\n2"), "{}", question.last());
        question.respond("done");
        world.until(forked.json()["id"].as_str().unwrap(), "done").await;
        assert_eq!(paths(&world).await, ["1.txt"]);
    }
}

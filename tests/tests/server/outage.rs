//! Tests servers whose PostgreSQL database fails or is slow. Each failure is reported, `/readyz`
//! returns an error, nothing is lost, and the runs resume automatically after the failure. The
//! tests are skipped if PostgreSQL is not installed.

use std::time::Duration;

use serde_json::json;
use wattle_agent::{Store, Tenant};
use wattle_cases::postgres;
use wattle_tests::proxy::Proxy;

use crate::client::Answer;
use crate::world::{World, bare, message};

const HOUR: Duration = Duration::from_secs(3_600);
/// Maximum time until a server has recovered.
const MENDED: Duration = Duration::from_secs(40);

/// Starts a server whose store is a PostgreSQL schema.
async fn world(url: &str) -> World {
    World::on(Store::connect(url, HOUR).unwrap().tenant(&Tenant::default()), |_| {}).await
}

/// Returns a proxy for PostgreSQL, and the URL of a schema that is reached through the proxy.
/// Returns `None` if PostgreSQL is not installed.
fn proxy() -> Option<(Proxy, String)> {
    let url = postgres::own_url()?;
    let schema = url.rsplit_once("schema=").unwrap().1;
    let proxy = Proxy::start(postgres::socket().unwrap());
    let port = proxy.port;
    let through =
        format!("postgres://wattle@127.0.0.1:{port}/postgres?sslmode=disable&schema={schema}");
    Some((proxy, through))
}

/// Waits until the server is ready. Its first connections to a busy database can take a while.
async fn until_ready(world: &World) {
    for _ in 0..300 {
        if readiness(world).await.head.status == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the server is not ready");
}

async fn readiness(world: &World) -> Answer {
    world.ask(bare("GET /readyz", &["Host: localhost"])).await
}

/// Waits until a run has ended with an answer, and checks that the server is ready. Answers the
/// requests to the model, because a request is repeated if its answer could not be recorded.
async fn goes_on(world: &mut World, run: &str) {
    let mut seen = String::new();
    let done = async {
        loop {
            if let Some(question) = world.try_question() {
                question.respond("hi");
            }
            let view = world.api(&format!("GET /api/run/{run}"), "").await;
            if view.head.status == 200 && view.json()["status"] == "done" {
                break;
            }
            seen = view.body;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        until_ready(world).await;
    };
    let ended = tokio::time::timeout(MENDED, done).await;
    assert!(ended.is_ok(), "the run does not go on: {seen}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_waiting_message_finds_its_sessions_messages_on_a_slow_database() {
    let (proxy, through) = proxy().unwrap();
    let mut world = world(&through).await;
    let mut clients = vec![world.chat(&message("0", "s")).await];
    proxy.slow();
    let mut expected = vec!["0".to_owned()];
    for next in 1..4 {
        let question = world.question().await;
        clients.push(world.chat(&message(&next.to_string(), "s")).await);
        let seen: Vec<&str> =
            question.messages.iter().skip(1).map(|message| message.content.as_str()).collect();
        assert_eq!(seen.len(), expected.len(), "{seen:?}");
        assert!(seen.iter().zip(&expected).all(|(seen, text)| seen.contains(text)), "{seen:?}");
        let answer = format!("answer {next}");
        question.respond(&answer);
        expected.extend([answer, next.to_string()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_server_that_was_cut_off_from_its_database_goes_on() {
    let (proxy, through) = proxy().unwrap();
    let mut world = world(&through).await;
    until_ready(&world).await;
    let run = world.start(&json!({"prompt": "hello"})).await;
    let question = world.question().await;
    proxy.cut();
    readiness(&world).await.refused(503, "unavailable");
    assert_eq!(world.api("POST /api/run", r#"{"prompt":"lost"}"#).await.head.status, 503);
    assert_eq!(world.ask(bare("GET /healthz", &["Host: localhost"])).await.head.status, 200);
    question.respond("an answer that cannot be recorded");
    proxy.open();
    goes_on(&mut world, &run).await;
    let runs = world.api("GET /api/runs", "").await.json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "a refused run is not started: {runs}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_run_whose_turn_finds_the_disk_full_goes_on() {
    let url = postgres::own_url().unwrap();
    let mut world = world(&url).await;
    let run = world.start(&json!({"prompt": "hello"})).await;
    let question = world.question().await;
    postgres::sql(
        &url,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER full_disk BEFORE INSERT ON turn EXECUTE FUNCTION full_disk();
         CREATE TRIGGER full_disk BEFORE UPDATE ON tenant EXECUTE FUNCTION full_disk();
         CREATE TRIGGER full_disk BEFORE UPDATE ON run EXECUTE FUNCTION full_disk();",
    );
    question.respond("an answer that cannot be recorded");
    let answer = readiness(&world).await;
    answer.refused(503, "unavailable");
    assert!(answer.body.contains("the disk of the store is full"), "{}", answer.body);
    postgres::sql(
        &url,
        "DROP TRIGGER full_disk ON turn; DROP TRIGGER full_disk ON tenant;
         DROP TRIGGER full_disk ON run;",
    );
    goes_on(&mut world, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_server_whose_database_became_read_only_is_not_ready() {
    let url = postgres::own_url().unwrap();
    let mut world = world(&url).await;
    let run = world.start(&json!({"prompt": "hello"})).await;
    let question = world.question().await;
    let end_sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE application_name = 'wattle'";
    // The server's database sessions are terminated after the change is visible, so that it applies
    // to all new sessions.
    postgres::sql(&url, "ALTER ROLE wattle SET default_transaction_read_only = on");
    postgres::sql(&url, end_sessions);
    question.respond("an answer that cannot be recorded");
    readiness(&world).await.refused(503, "unavailable");
    assert_eq!(world.api("POST /api/run", r#"{"prompt":"lost"}"#).await.head.status, 503);
    let ends = "ALTER ROLE wattle RESET default_transaction_read_only";
    postgres::sql(&url, &format!("SET TRANSACTION READ WRITE; {ends}"));
    postgres::sql(&url, end_sessions);
    goes_on(&mut world, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_statement_that_waits_too_long_fails_and_the_run_goes_on() {
    let url = postgres::own_url().unwrap();
    let mut world = world(&url).await;
    let run = world.start(&json!({"prompt": "hello"})).await;
    let question = world.question().await;
    // The lock is held for longer than a statement waits for a lock.
    let locking = std::thread::spawn({
        let url = url.clone();
        move || postgres::sql(&url, "BEGIN; LOCK TABLE turn, tenant; SELECT pg_sleep(12); COMMIT")
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    question.respond("an answer that cannot be recorded");
    readiness(&world).await.refused(503, "unavailable");
    locking.join().unwrap();
    goes_on(&mut world, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_program_whose_files_cannot_be_saved_is_not_to_be_repeated() {
    let url = postgres::own_url().unwrap();
    let world = world(&url).await;
    // The first request creates the tables.
    world.api("GET /api/sessions", "").await.json();
    postgres::sql(
        &url,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER full_disk BEFORE INSERT ON session_file EXECUTE FUNCTION full_disk();",
    );
    let program = r#"(kv.set "done" "yes") (fs.write "a.txt" "x")"#;
    let body = json!({"body": program, "session_id": "s"}).to_string();
    let answer = world.api("POST /api/exec", &body).await;
    answer.refused(500, "files_not_saved");
    assert_eq!(answer.head.get("x-should-retry"), Some("false"));
    postgres::sql(&url, "DROP TRIGGER full_disk ON session_file;");
    let body = json!({"body": r#"(out (kv.get "done"))"#, "session_id": "s"}).to_string();
    assert_eq!(world.api("POST /api/exec", &body).await.json()["output"], "yes");
}

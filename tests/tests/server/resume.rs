//! Tests that the next server resumes the open runs of a killed server.

use std::time::Duration;

use serde_json::json;
use wattle_agent::host::TenantStore;
use wattle_agent::host::journal::{
    Journal as _, ParentRun, RunEnd, RunFilter, RunRecord, RunStart, Status, Turn,
};
use wattle_agent::host::machine::{Effect, Ending, Input, Message, Setup, State, Usage, step};
use wattle_agent::{Store, Tenant};
use wattle_tests::empty_store;

use crate::world::{World, store};

/// Stores a run in the state that remains if its server is killed during a model request.
async fn left_open(store: &TenantStore, id: &str, session: &str, by: &str) {
    left_open_below(store, id, session, by, None).await;
}

/// Stores the same run as [`left_open`], but as a child run if `parent` is given.
async fn left_open_below(
    store: &TenantStore,
    id: &str,
    session: &str,
    by: &str,
    parent: Option<ParentRun>,
) {
    let setup =
        Setup { system: "prompt".into(), session_id: Some(session.to_owned()), ..Setup::default() };
    let start = RunStart {
        setup: setup.clone(),
        model: "m".to_owned(),
        temperature: 0.3,
        max_tokens: 100,
        parent,
        ..RunStart::new("hello", serde_json::json!({"by": by}))
    };
    let run = RunRecord {
        session: Some(session.to_owned()),
        created: 0,
        used: 0,
        ..RunRecord::new(id, start)
    };
    store.open(run).await.unwrap();
    let input = Input::Begin { message: "hello".to_owned() };
    let (_, effects) = step(State::new(setup), input.clone());
    assert!(matches!(effects.as_slice(), [Effect::Ask(_)]));
    store
        .turn(
            id,
            Turn {
                spent: Usage::default(),
                input,
                effects: Vec::new(),
                seq: 1,
                elapsed_ms: 0,
                files: None,
            },
            Vec::new(),
            Vec::new(),
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn open_runs_are_resumed_once() {
    let store = store();
    for (id, session, by) in
        [("r1", "a", "serve"), ("r2", "a", "serve"), ("r3", "b", "serve"), ("r4", "c", "run")]
    {
        left_open(&store, id, session, by).await;
    }
    let lock = store.lock("run:r3").await.unwrap().unwrap();
    let mut world = World::on(store.clone(), |_| {}).await;
    world.question().await.respond("one");
    world.question().await.respond("two");
    let done = async |id: &str| store.run(id).await.unwrap().unwrap().status == Status::Ended;
    tokio::time::timeout(Duration::from_secs(4), async {
        while !(done("r1").await && done("r2").await) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    let contents: Vec<String> = store
        .history("a", None)
        .await
        .unwrap()
        .messages
        .into_iter()
        .map(|message| message.content.to_string())
        .collect();
    assert_eq!(contents.len(), 4, "{contents:?}");
    world.no_question();
    assert!(!done("r3").await, "another process is driving it");
    assert!(!done("r4").await, "it was not started by a server");
    drop(lock);
}

#[tokio::test]
async fn child_runs_that_outlived_the_run_at_the_top_are_ended() {
    let store = store();
    left_open(&store, "top", "a", "serve").await;
    let below = |run: &str| Some(ParentRun { run: run.to_owned(), root: "top".to_owned() });
    left_open_below(&store, "child", "", "serve", below("top")).await;
    left_open_below(&store, "grandchild", "", "serve", below("child")).await;
    // The process was killed after it had recorded the end of the root run.
    store.end("top", RunEnd::default()).await.unwrap();
    let mut world = World::on(store.clone(), |_| {}).await;
    let tree = RunFilter { tree_of: Some("top".to_owned()), ..RunFilter::default() };
    let ended = async {
        loop {
            let runs = store.runs(tree.clone()).await.unwrap();
            if runs.iter().all(|run| run.status == Status::Ended) {
                return runs;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let runs = tokio::time::timeout(Duration::from_secs(30), ended).await.unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let ending = run.summary.unwrap().ending;
        assert!(matches!(ending, Ending::Cancelled { .. }), "{}: {ending:?}", run.id);
    }
    world.no_question();
}

#[tokio::test]
async fn the_end_of_a_run_in_the_middle_ends_the_runs_below_it() {
    let store = store();
    left_open(&store, "top", "a", "serve").await;
    let below = |run: &str| Some(ParentRun { run: run.to_owned(), root: "top".to_owned() });
    for (run, parent) in [("middle", "top"), ("beside", "top"), ("leaf", "middle")] {
        left_open_below(&store, run, "", "serve", below(parent)).await;
    }
    let mut world = World::on(store.clone(), |_| {}).await;
    let question = world.question().await;
    world.api("DELETE /api/run/middle", "").await;
    let ended = async |run: &str| store.run(run).await.unwrap().unwrap().status == Status::Ended;
    tokio::time::timeout(Duration::from_secs(30), async {
        while !(ended("middle").await && ended("leaf").await) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    assert!(!ended("top").await && !ended("beside").await);
    question.respond("done");
}

#[tokio::test]
async fn two_servers_try_a_run_once_and_park_the_one_that_ended_their_process() {
    let store = store();
    for (id, session) in [("poison", "a"), ("good", "b")] {
        left_open(&store, id, session, "serve").await;
    }
    // Records a second attempt at the run `poison`, as if two processes had ended during its turn.
    assert_eq!(store.attempt("poison").await.unwrap(), 2);
    let mut one = World::on(store.clone(), |_| {}).await;
    let mut other = World::on(store.clone(), |_| {}).await;
    let run = async |id: &str| store.run(id).await.unwrap().unwrap();
    tokio::time::timeout(Duration::from_secs(4), async {
        loop {
            for world in [&mut one, &mut other] {
                if let Some(question) = world.try_question() {
                    question.respond("fine");
                }
            }
            if run("good").await.status == Status::Ended
                && run("poison").await.status == Status::Parked
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    assert!(
        run("poison")
            .await
            .reason
            .unwrap()
            .starts_with("this run ended its process 2 times; it is parked")
    );
    assert_eq!(store.history("b", None).await.unwrap().messages.len(), 2);
    one.no_question();
    other.no_question();
    let answer = one.ask(crate::world::bare("GET /healthz", &["Host: localhost"])).await;
    assert_eq!(answer.head.status, 200, "the server serves");
}

#[tokio::test]
async fn a_run_whose_end_cannot_be_recorded_is_not_parked_and_ends_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path, Duration::from_secs(3_600)).unwrap();
    let mut world = World::on(store.tenant(&Tenant::default()), |_| {}).await;
    let database = rusqlite::Connection::open(&path).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    database
        .execute_batch(
            "CREATE TRIGGER full BEFORE UPDATE OF status ON run WHEN new.status = 'ended'
             BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
        )
        .unwrap();
    let run = world.start(&json!({"prompt": "hello"})).await;
    world.question().await.respond("fine");
    // The end is tried again about once a second.
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    let view = world.api(&format!("GET /api/run/{run}"), "").await.json();
    assert_ne!(view["status"], "parked", "{view}");
    database.execute_batch("DROP TRIGGER full").unwrap();
    world.until(&run, "done").await;
    world.no_question();
}

#[tokio::test]
async fn a_run_that_needs_its_client_is_cancelled_after_its_server_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path, Duration::from_secs(3_600)).unwrap();
    let of = store.tenant(&Tenant::default());
    left_open(&of, "r", "a", "serve").await;
    let database = rusqlite::Connection::open(&path).unwrap();
    let connect = "UPDATE run SET client = 'another-boot 900000001 1 store'";
    assert_eq!(database.execute(connect, []).unwrap(), 1);
    let mut world = World::on(of.clone(), |_| {}).await;
    let ended = async {
        while of.run("r").await.unwrap().unwrap().status != Status::Ended {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.unwrap();
    world.no_question();
    let view = world.api("GET /api/run/r", "").await.body;
    assert!(view.contains("the process to which its client was connected has ended"), "{view}");
}

#[tokio::test]
async fn all_runs_that_ended_their_process_are_released_at_once() {
    let store = store();
    let runs = ["a", "b", "c"];
    for run in runs {
        left_open(&store, run, run, "serve").await;
        store.park(run, Some("it ended its process".to_owned()), Vec::new()).await.unwrap();
    }
    let mut world = World::on(store.clone(), |_| {}).await;
    let released = world.api("POST /api/runs/release", "").await;
    assert_eq!(released.head.status, 202, "{released:?}");
    assert_eq!(released.json()["run_ids"].as_array().unwrap().len(), 3);
    for _ in runs {
        world.question().await.respond("fine");
    }
    for run in runs {
        world.until(run, "done").await;
    }
    let none = world.api("POST /api/runs/release", "").await.json();
    assert_eq!(none, json!({"run_ids": []}));
}

#[tokio::test]
async fn a_request_gets_nothing_of_another_tenants_session() {
    let file = empty_store();
    let (alice, bob) =
        (file.tenant(&Tenant::new("alice").unwrap()), file.tenant(&Tenant::new("bob").unwrap()));
    let turns = vec![Message::user("alice's question"), Message::assistant("alice's answer")];
    alice.extend("main", turns).await.unwrap();
    left_open(&alice, "r", "main", "serve").await;
    let mut world = World::on(bob.clone(), |_| {}).await;
    let _chat = world.chat(&crate::world::message("hello", "main")).await;
    let question = world.question().await;
    let text = format!("{:?}", question.messages);
    assert!(!text.contains("alice"), "{text}");
    question.respond("for bob");
    world.no_question();
    let health = world.ask(crate::world::bare("GET /healthz", &["Host: localhost"])).await;
    assert!(!health.body.contains("alice"));
    assert_eq!(alice.history("main", None).await.unwrap().messages.len(), 2);
    assert_eq!(
        alice.run("r").await.unwrap().unwrap().status,
        Status::Open,
        "its run is not resumed for another"
    );
}

#[tokio::test]
async fn a_run_that_waits_for_an_operator_can_be_cancelled() {
    let store = store();
    left_open(&store, "poison", "a", "serve").await;
    let reason = "this run ended its process 2 times; it is parked".to_owned();
    store.park("poison", Some(reason), Vec::new()).await.unwrap();
    let mut world = World::on(store.clone(), |_| {}).await;
    let cancelled = world.api("DELETE /api/run/poison", "").await;
    assert_eq!(cancelled.head.status, 202, "{cancelled:?}");
    let view = world.until("poison", "cancelled").await;
    assert_eq!(view["result"], "stopped: cancelled (requested over HTTP)");
    let page = world.api("GET /api/run/poison/events", "").await.json();
    assert_eq!(page["done"], true);
    assert_eq!(page["events"].as_array().unwrap().len(), 1);
    let last = ["type", "stop"].map(|field| page["events"][0][field].as_str());
    assert_eq!(last, [Some("response"), Some("cancelled")]);
    world.no_question();
}

#[tokio::test]
async fn a_cancelled_run_ends_although_its_record_cannot_be_read() {
    let store = store();
    left_open(&store, "broken", "a", "serve").await;
    let turn = Turn {
        spent: Usage::default(),
        input: Input::Begin { message: "hello".to_owned() },
        effects: Vec::new(),
        seq: 1,
        elapsed_ms: 0,
        files: Some("no file changes".to_owned()),
    };
    store.turn("broken", turn, Vec::new(), Vec::new()).await.unwrap();
    let mut world = World::on(store.clone(), |_| {}).await;
    world.until("broken", "running").await;
    let cancelled = world.api("DELETE /api/run/broken", "").await;
    assert_eq!(cancelled.head.status, 202, "{cancelled:?}");
    world.until("broken", "cancelled").await;
    world.no_question();
}

#[tokio::test]
async fn a_run_is_cancelled_through_another_server() {
    let store = store();
    let mut one = World::on(store.clone(), |_| {}).await;
    let other = World::on(store.clone(), |_| {}).await;
    let run = one.start(&serde_json::json!({"prompt": "go", "session_id": "s"})).await;
    let question = one.question().await;
    for _ in 0..2 {
        let cancelled = other.api(&format!("DELETE /api/run/{run}"), "").await;
        assert_eq!(cancelled.head.status, 202, "{cancelled:?}");
    }
    question.abandoned().await;
    let view = other.until(&run, "cancelled").await;
    assert_eq!(view["result"], "stopped: cancelled (requested over HTTP)");
    let again = one.api(&format!("DELETE /api/run/{run}"), "").await;
    assert_eq!(again.head.status, 200, "{again:?}");
    assert_eq!(again.json()["status"], "cancelled");
    // A cancellation has no effect on later runs of the session.
    let later = one.start(&serde_json::json!({"prompt": "again", "session_id": "s"})).await;
    one.question().await.respond("done");
    other.until(&later, "done").await;
}

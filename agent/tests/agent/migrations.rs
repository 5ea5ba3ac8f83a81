//! Tests of database files that were written by an older version or are damaged.

use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use wattle_agent::capability::kv::{Backend as _, Kept};
use wattle_agent::journal::{
    Journal as _, ParentRun, RunFilter, RunRecord, RunStart, Status, Turn,
};
use wattle_agent::machine::{Envelope, Event, Input, Usage};
use wattle_agent::{Store, Tenant};

const HOUR: Duration = Duration::from_secs(3_600);

fn opened(id: &str) -> RunRecord {
    RunRecord::new(id, RunStart::new("a message", serde_json::Value::Null))
}

fn turn() -> Turn {
    let input = Input::Begin { message: "alice's message".to_owned() };
    Turn { spent: Usage::default(), input, effects: Vec::new(), seq: 1, elapsed_ms: 0, files: None }
}

/// Creates a store in the old format, in which keys do not contain the tenant.
fn old_store(path: &Path) {
    let old = rusqlite::Connection::open(path).unwrap();
    old.execute_batch(include_str!("../data/store-5.sql")).unwrap();
}

#[tokio::test]
async fn a_store_without_tenants_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    old_store(&path);
    let store = Store::open(&path, Duration::from_secs(1 << 40)).unwrap();
    let of = |name: &str| store.tenant(&Tenant::new(name).unwrap());
    let sessions = async |name: &str| -> Vec<String> {
        of(name).sessions().await.unwrap().into_iter().map(|session| session.id).collect()
    };
    assert_eq!(sessions("alice").await, ["of-alice"]);
    assert_eq!(sessions("bob").await, ["of-bob"]);
    assert_eq!(sessions("default").await, ["of-both", "of-nobody"]);
    let runs = async |name: &str| -> Vec<String> {
        of(name).runs(RunFilter::default()).await.unwrap().into_iter().map(|run| run.id).collect()
    };
    assert_eq!(
        (runs("alice").await, runs("bob").await),
        (vec!["a2".into(), "a1".into()], vec!["b2".into(), "b1".into(), "b3".into()])
    );
    assert_eq!(runs("default").await, ["d1"]);

    let history = of("alice").history("of-alice").await.unwrap();
    assert_eq!(
        history.iter().map(|message| message.content.as_str()).collect::<Vec<_>>(),
        ["hello", "hello, alice"]
    );
    let get = async |name: &str, session: &str, key: &str| {
        of(name).state(session).get(key.to_owned()).await.unwrap()
    };
    assert_eq!(get("alice", "of-alice", "k").await.as_deref(), Some(&b"v"[..]));
    assert_eq!(get("default", "of-alice", "k").await, None);
    assert_eq!(
        get("bob", "run/b1", "own").await.as_deref(),
        Some(&b"1"[..]),
        "a run's own state is its tenant's"
    );
    assert_eq!(of("alice").variables().keys(String::new()).await.unwrap(), ["v"]);
    assert_eq!(of("bob").turns("b1").await.unwrap().len(), 1);
    assert_eq!(of("bob").calls_of("b1", 0).await.unwrap().len(), 1);
    // A recorded change of state is not repeated.
    of("bob")
        .state("run/b1")
        .update_once(
            "b1/0.0//1".to_owned(),
            "own".to_owned(),
            Kept::Nothing,
            Box::new(|_| Ok(None)),
        )
        .await
        .unwrap();
    assert_eq!(get("bob", "run/b1", "own").await.as_deref(), Some(&b"1"[..]));
    assert!(of("bob").lock("run:b1").await.unwrap().is_some());
    drop(store);
    let file = rusqlite::Connection::open(&path).unwrap();
    let wrong: i64 = file
        .query_row("SELECT COUNT(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(wrong, 0);
    Store::open(&path, HOUR).unwrap();
}

#[test]
fn a_migration_that_fails_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    old_store(&path);
    let old = rusqlite::Connection::open(&path).unwrap();
    // Near its end, the migration creates a table with this name. It fails because the table
    // already exists.
    old.execute_batch("CREATE TABLE new_changed (x)").unwrap();
    let tables = |file: &rusqlite::Connection| -> String {
        file.query_row(
            "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema ORDER BY name)",
            [],
            |row| row.get(0),
        )
        .unwrap()
    };
    let before = tables(&old);
    assert!(Store::open(&path, HOUR).err().unwrap().to_string().contains("new_changed"));
    assert_eq!(tables(&old), before);
    let version: u32 = old.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 5);
    old.execute_batch("DROP TABLE new_changed").unwrap();
    Store::open(&path, HOUR).unwrap();
}

/// SQLite does not wait for another process that sets up the write-ahead log of the same new file.
#[test]
fn a_new_file_is_opened_by_several_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let path = folder.path().join(format!("{round}.db"));
        let all = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    all.wait();
                    Store::open(&path, HOUR).unwrap();
                });
            }
        });
    }
}

#[tokio::test]
async fn an_unreadable_run_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let of = Store::open(&path, HOUR).unwrap().tenant(&Tenant::default());
    of.open(opened("broken")).await.unwrap();
    of.open(opened("good")).await.unwrap();
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute("UPDATE opening SET body = '{' WHERE run = 'broken'", []).unwrap();
    let ids: Vec<String> = of
        .runs(RunFilter::status(Status::Open))
        .await
        .unwrap()
        .into_iter()
        .map(|run| run.id)
        .collect();
    assert_eq!(ids, ["good"]);
    assert!(of.run("broken").await.is_err());
}

#[tokio::test]
async fn the_events_of_an_older_file_get_their_place_in_a_tree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let of = Store::open(&path, HOUR).unwrap().tenant(&Tenant::default());
    let event = |run: &str| Envelope {
        run_id: run.to_owned(),
        root_run_id: "top".to_owned(),
        seq: 1,
        ts: 0,
        event: Event::Thinking { step: 1, content: "x".to_owned() },
    };
    let child = |run: &str| {
        let mut child = opened(run);
        let (run, root) = ("top".to_owned(), "top".to_owned());
        child.start.parent = Some(ParentRun { run, root });
        child
    };
    for run in [opened("top"), child("below"), opened("other")] {
        let id = run.id.clone();
        of.open(run).await.unwrap();
        of.turn(&id, turn(), Vec::new(), vec![event(&id)]).await.unwrap();
    }
    let top = of.run("top").await.unwrap();
    assert!(top.is_some());
    drop(of);
    let file = rusqlite::Connection::open(&path).unwrap();
    let roots = || -> Vec<(String, String)> {
        let mut statement =
            file.prepare("SELECT run, root FROM event ORDER BY root, place").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let recorded = roots();
    let expected = [("other", "other"), ("top", "top"), ("below", "top")];
    assert_eq!(recorded, expected.map(|(run, root)| (run.to_owned(), root.to_owned())));
    // Restores the file format of a version before the migration.
    let triggers = "SELECT 'DROP TRIGGER ' || name || ';' FROM sqlite_schema
                    WHERE type = 'trigger' AND name <> 'memory_removed'";
    let triggers: Vec<String> = {
        let mut statement = file.prepare(triggers).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    file.execute_batch(&triggers.concat()).unwrap();
    file.execute_batch(
        "DROP TABLE state_change;
         ALTER TABLE session DROP COLUMN changes;
         ALTER TABLE turn DROP COLUMN changes;
         ALTER TABLE run DROP COLUMN rewind;
         DROP TABLE usage;
         DROP TABLE call_value;
         ALTER TABLE call DROP COLUMN shared;
         ALTER TABLE run DROP COLUMN suspected;
         ALTER TABLE session DROP COLUMN instance;
         ALTER TABLE run DROP COLUMN instance;
         DROP INDEX run_of_client;
         DROP INDEX queue_of_client;
         ALTER TABLE run DROP COLUMN client;
         ALTER TABLE queue DROP COLUMN client;
         ALTER TABLE run ADD COLUMN opening TEXT NOT NULL DEFAULT '';
         UPDATE run SET opening = (SELECT body FROM opening WHERE run = id);
         DROP TABLE opening;
         DROP INDEX session_of_use;
         DROP INDEX queue_of_place;
         ALTER TABLE run DROP COLUMN places;
         ALTER TABLE run DROP COLUMN needs;
         ALTER TABLE queue DROP COLUMN needs;
         ALTER TABLE queue DROP COLUMN priority;
         ALTER TABLE queue DROP COLUMN position;
         DROP INDEX turn_of_object;
         DROP INDEX file_of_object;
         ALTER TABLE turn DROP COLUMN object;
         ALTER TABLE session_file DROP COLUMN object;
         DROP TABLE blob;
         ALTER TABLE turn DROP COLUMN place;
         DROP TABLE copying;
         DROP TABLE replica;
         DROP TABLE cancellation;
         DROP TABLE hold;
         CREATE TABLE hold (x);
         DROP INDEX run_of_use;
         ALTER TABLE call DROP COLUMN began;
         ALTER TABLE call DROP COLUMN took;
         DROP INDEX event_of_tree;
         ALTER TABLE event DROP COLUMN place;
         ALTER TABLE event DROP COLUMN root;
         PRAGMA user_version = 10;",
    )
    .unwrap();
    let migrated = Store::open(&path, HOUR).unwrap();
    assert_eq!(roots(), recorded);
    assert_eq!(migrated.tenant(&Tenant::default()).run("top").await.unwrap(), top);
}

//! Atomicity tests: each function that writes makes either all of its changes or none, no matter
//! which statement fails.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use wattle_capability::kv::{Backend as _, Kept};
use wattle_capability::memory::{Memory as _, MemoryText, NewItem, Scope as Reach};
use wattle_machine::{Envelope, Event, Input, Message, Usage};
use wattle_rt::tape::{CallId, RecordedValue};
use wattle_rt::{CallEffect, Failure};

use super::db::faults::Faults;
use super::db::{Access, Transaction, Value, params};
use super::*;
use crate::journal::{
    Journal as _, KeptFiles, RecordedCall, RunEnd, RunRecord, RunRequest, RunStart, Turn,
};
use crate::scope::Scope;

const HOUR: Duration = Duration::from_secs(3_600);

/// The tables that the tests compare, each with the number of its leading columns that are
/// compared.
const TABLES: &[(&str, usize)] = &[
    ("session", 5),
    ("message", 6),
    ("state", 4),
    ("tenant", 5),
    ("variable", 3),
    ("run", 15),
    ("opening", 3),
    ("turn", 5),
    ("call", 15),
    ("call_value", 4),
    ("event", 6),
    ("queue", 6),
    ("changed", 3),
    ("session_file", 4),
    ("token", 6),
    ("conversation", 4),
    ("integration", 4),
    ("memory", 6),
    ("memory_vector", 3),
    ("replica", 2),
    ("hold", 4),
    ("cancellation", 3),
];

/// Returns the content of the [compared tables](TABLES).
async fn content(store: &Store) -> Vec<String> {
    let read = store.read(|transaction| {
        let mut all = Vec::new();
        for (table, columns) in TABLES {
            let query = format!("SELECT * FROM {table}");
            let mut rows = transaction.query(&query, params![], |row| {
                let values = (0..*columns).map(|column| row.get::<Value>(column));
                Ok(format!("{table} {:?}", values.collect::<Result<Vec<_>, _>>()?))
            })?;
            rows.sort();
            all.extend(rows);
        }
        Ok(all)
    });
    read.await.unwrap()
}

impl db::FromValue for Value {
    fn from_value(value: &Value) -> Option<Value> {
        Some(value.clone())
    }
}

fn run(id: &str) -> RunRecord {
    let start = RunStart::new("go", serde_json::Value::Null);
    RunRecord { session: Some("s".to_owned()), ..RunRecord::new(id, start) }
}

fn queued() -> RunRequest {
    RunRequest { id: "r".to_owned(), ..RunRequest::new("go") }
}

fn event(seq: u64) -> Envelope {
    let (run_id, event) = ("r".to_owned(), Event::Error { message: "x".to_owned() });
    Envelope { root_run_id: run_id.clone(), run_id, seq, ts: 0, event }
}

fn turn() -> Turn {
    let input = Input::Begin { message: "go".to_owned() };
    let files = Some("[]".to_owned());
    Turn { spent: Usage::default(), input, effects: Vec::new(), seq: 1, elapsed_ms: 0, files }
}

fn call(number: u32) -> RecordedCall {
    let id = CallId {
        path: [].into(),
        number,
        function: "kv.set".into(),
        effect: CallEffect::Changes,
        digest: [1; 16],
        args: "zero \u{0}".to_owned(),
    };
    let result = Some(Ok(RecordedValue::Unit));
    RecordedCall { turn: 0, program: 0, id, times: 1, result, time: None }
}

fn failed(failure: Failure) -> String {
    failure.reason
}

fn error(error: StoreError) -> String {
    error.to_string()
}

type Step = fn(&TenantStore) -> BoxFuture<'_, Result<(), String>>;

/// A step for each function that writes to the store. The steps are ordered so that each of them
/// changes something.
const STEPS: &[(&str, Step)] = &[
    ("extend", |of| {
        let messages = vec![Message::user("q"), Message::assistant("zero \u{0}")];
        async { of.extend("s", messages).await.map_err(error) }.boxed()
    }),
    ("state", |of| {
        async {
            let set = Box::new(|_| Ok(Some(b"v".to_vec())));
            let (call, key) = ("r/1".into(), "k\u{0}".into());
            of.state("s").update_once(call, key, Kept::Nothing, set).await.map_err(failed)
        }
        .boxed()
    }),
    ("variables", |of| {
        async {
            let set = Box::new(|_| Ok(Some(b"v".to_vec())));
            of.variables().update("k".into(), set).await.map_err(failed)
        }
        .boxed()
    }),
    ("enqueue", |of| async { of.enqueue(queued()).await.map_err(error) }.boxed()),
    ("open", |of| async { of.open(run("r")).await.map_err(error) }.boxed()),
    ("attempt", |of| async { of.attempt("r").await.map(drop).map_err(error) }.boxed()),
    ("turn", |of| {
        async { of.turn("r", turn(), Vec::new(), vec![event(1), event(2)]).await.map_err(error) }
            .boxed()
    }),
    ("calls", |of| async { of.calls("r", vec![call(1), call(2)]).await.map_err(error) }.boxed()),
    ("durable_calls", |of| {
        let large = Some(Ok(RecordedValue::Bytes(vec![b'x'; 5_000])));
        let calls = [3, 4].map(|number| RecordedCall { result: large.clone(), ..call(number) });
        async move { of.durable_calls("r", calls.to_vec()).await.map_err(error) }.boxed()
    }),
    ("park", |of| {
        let reason = Some("zero \u{0}".to_owned());
        async { of.park("r", reason, vec![event(3)]).await.map_err(error) }.boxed()
    }),
    ("release", |of| async { of.release("r").await.map(drop).map_err(error) }.boxed()),
    ("pause", |of| async { of.pause("r").await.map_err(error) }.boxed()),
    ("end", |of| {
        let turns = vec![Message::user("q")];
        let end = RunEnd { turns, files: KeptFiles::Added, ..RunEnd::default() };
        async { of.end("r", end).await.map_err(error) }.boxed()
    }),
    ("replace_session_files", |of| {
        async {
            let known = of.session_files("s").await.map_err(error)?;
            of.replace_session_files("s", known.newest(), Some("[]".into())).await.map_err(error)
        }
        .boxed()
    }),
    ("fork_session", |of| {
        async { of.fork_session("s", "f", Vec::new()).await.map(drop).map_err(error) }.boxed()
    }),
    ("rewind_state", |of| {
        async {
            let now = of.state_position("s").await.map_err(error)?;
            of.rewind_state("s", 0, now).await.map(drop).map_err(error)
        }
        .boxed()
    }),
    ("replace_first_messages", |of| {
        let messages = vec![Message::user("new")];
        let replaced = of.replace_first_messages("new", Vec::new(), messages);
        async { replaced.await.map(drop).map_err(error) }.boxed()
    }),
    ("replace_conversation", |of| {
        let messages = vec![Message::user("again")];
        async { of.replace_conversation("s", messages).await.map_err(error) }.boxed()
    }),
    ("import", |of| {
        async {
            let session = of.export("s").await.map_err(error)?.unwrap();
            of.import("i", session).await.map(drop).map_err(error)
        }
        .boxed()
    }),
    ("memory", |of| {
        async {
            let text = MemoryText::new("tea").unwrap();
            let item = NewItem { text, scope: Reach::Session };
            of.memory(Some("s")).add(Some("r/2".into()), item).await.map(drop).map_err(failed)
        }
        .boxed()
    }),
    ("add_vectors", |of| {
        async {
            let vectors = vec![(1, vec![0; 4])];
            of.memory(Some("s")).add_vectors("m".into(), vectors).await.map_err(failed)
        }
        .boxed()
    }),
    ("set_conversation", |of| {
        let same = SameConversation::Neither;
        async move { of.set_conversation("s", [7; 32], same).await.map_err(error) }.boxed()
    }),
    ("take_conversation", |of| {
        async { of.take_conversation([7; 32]).await.map(drop).map_err(error) }.boxed()
    }),
    ("return_conversation", |of| {
        async { of.return_conversation("s", [7; 32]).await.map_err(error) }.boxed()
    }),
    ("add_token", |of| {
        async { of.add_token("t", Scope::Run, "secret").await.map(drop).map_err(error) }.boxed()
    }),
    ("lock", |of| async { of.lock("name").await.map(drop).map_err(error) }.boxed()),
    ("history", |of| async { of.history("new", None).await.map(drop).map_err(error) }.boxed()),
    ("remove", |of| async { of.remove("s").await.map(drop).map_err(error) }.boxed()),
];

/// Runs each step with a failure at each of its statements and checks that a failed step changes
/// nothing.
async fn all_or_nothing(store: Store) {
    let faults = Faults::default();
    let store = Store::of(store.db.with_faults(&faults), HOUR);
    let of = store.tenant(&Tenant::default());
    for (name, step) in STEPS {
        let before = content(&store).await;
        for n in 1.. {
            assert!(n < 100, "{name} has no end");
            faults.arm(n, false);
            let done = step(&of).await;
            let is_untouched = faults.disarm();
            match done {
                Ok(()) if is_untouched => break,
                Ok(()) => panic!("{name} ignored the failure of its statement {n}"),
                Err(_) => {
                    assert_eq!(content(&store).await, before, "{name}, statement {n}");
                }
            }
        }
        // Otherwise the lock of a step would be released in the background.
        store.close().await.unwrap();
    }
}

/// Runs all steps except `lock` and `remove`. Each step loses its connection at its `n`th
/// statement, if it has that many. Returns the content of the store.
async fn with_cuts(store: Store, n: Option<u32>) -> Vec<String> {
    let faults = Faults::default();
    let store = Store::of(store.db.with_faults(&faults), HOUR);
    let of = store.tenant(&Tenant::default());
    for (name, step) in STEPS.iter().filter(|(name, _)| !["lock", "remove"].contains(name)) {
        n.iter().for_each(|n| faults.arm(*n, true));
        step(&of).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        faults.disarm();
    }
    content(&store).await
}

#[tokio::test]
async fn a_function_that_fails_at_any_statement_changes_nothing() {
    all_or_nothing(Store::in_memory(HOUR).unwrap()).await;
    if let Some(url) = wattle_cases::postgres::url() {
        all_or_nothing(Store::connect(&url, HOUR).unwrap()).await;
    }
}

#[tokio::test]
async fn a_function_whose_connection_is_lost_is_repeated_and_changes_everything_once() {
    let store = || Some(Store::connect(&wattle_cases::postgres::url()?, HOUR).unwrap());
    let Some(undisturbed) = store() else { return };
    let expected = with_cuts(undisturbed, None).await;
    for n in [1, 2, 3, 5, 8] {
        // Numbers that the server assigns have gaps, so only the row counts are compared.
        let content = with_cuts(store().unwrap(), Some(n)).await;
        let tables = |rows: &[String]| -> Vec<String> {
            rows.iter().filter_map(|row| row.split(' ').next().map(str::to_owned)).collect()
        };
        assert_eq!(tables(&content), tables(&expected), "statement {n}");
    }
}

/// Returns the number of bytes that each tenant keeps, as counted in its rows, and as recorded.
async fn kept(store: &Store) -> [Vec<(String, i64)>; 2] {
    let counted = tables::TABLES.iter().filter_map(|table| {
        let bytes = table.kept_bytes(table.name)?;
        Some(format!("SELECT tenant, {bytes} AS size FROM {} UNION ALL ", table.name))
    });
    let by_rows = format!(
        "SELECT tenant, CAST(SUM(size) AS BIGINT) FROM (
            {} SELECT memory.tenant, OCTET_LENGTH(coordinates) FROM memory_vector
            JOIN memory ON memory.number = memory_vector.memory
        ) AS kept GROUP BY tenant",
        counted.collect::<String>()
    );
    let counts = store.read(move |transaction| {
        let recorded = "SELECT tenant, CAST(SUM(bytes) AS BIGINT) FROM usage GROUP BY tenant
                        HAVING SUM(bytes) <> 0";
        let mut counts = [by_rows.as_str(), recorded].map(|query| {
            let row = |row: &db::Row| Ok((row.get::<String>(0)?, row.get::<i64>(1)?));
            transaction.query(query, &[], row).unwrap()
        });
        counts.iter_mut().for_each(|counts| counts.sort());
        Ok(counts)
    });
    counts.await.unwrap()
}

#[tokio::test]
async fn the_count_of_kept_bytes_is_that_of_the_rows() {
    let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, HOUR).unwrap());
    for store in [Store::in_memory(HOUR).unwrap()].into_iter().chain(postgres) {
        let of = store.tenant(&Tenant::default());
        for (name, step) in STEPS {
            step(&of).await.unwrap();
            let [rows, recorded] = kept(&store).await;
            assert_eq!(rows, recorded, "{name}");
        }
        let delete = Box::new(|_| Ok(None));
        of.variables().update("k".into(), delete).await.unwrap();
        of.memory(None).remove(None, 1).await.unwrap();
        let ended = Store { ttl: Duration::ZERO, ..store.clone() };
        let retention = Retention { runs: Some(Duration::ZERO), events: Some(Duration::ZERO) };
        tokio::time::sleep(Duration::from_millis(5)).await;
        ended.keeping(retention).prune().await.unwrap();
        let [rows, recorded] = kept(&store).await;
        assert_eq!(rows, recorded, "after everything old is removed");
        assert!(recorded[0].1 < 1_000, "{recorded:?}");
    }
}

#[tokio::test]
async fn equal_results_of_a_run_are_stored_once() {
    let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, HOUR).unwrap());
    for store in [Store::in_memory(HOUR).unwrap()].into_iter().chain(postgres) {
        let of = store.tenant(&Tenant::default());
        of.open(run("r")).await.unwrap();
        let value = RecordedValue::Bytes(vec![b'x'; 100_000]);
        let read = |number| RecordedCall { result: Some(Ok(value.clone())), ..call(number) };
        let calls: Vec<RecordedCall> = (0..257).map(read).collect();
        of.calls("r", calls.clone()).await.unwrap();
        assert!(of.kept_bytes().await.unwrap() < 200_000);
        assert_eq!(of.calls_of("r", 0).await.unwrap(), calls);
        let loaded = of.stored_bytes(Stored::Record("r")).await.unwrap();
        assert!(loaded > 257 * 100_000, "a reader needs memory for each of them: {loaded}");
    }
}

#[tokio::test]
async fn one_process_at_a_time_sweeps_a_shared_store() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = wattle_cases::postgres::url();
    let open = || match &postgres {
        Some(url) => Store::connect(url, Duration::ZERO).unwrap(),
        None => Store::open(&folder.path().join("store"), Duration::ZERO).unwrap(),
    };
    let (first, second) = (open(), open());
    let of = first.tenant(&Tenant::default());
    of.add_session_files("s", "[]".to_owned()).await.unwrap();
    let sessions = async || second.prunable().await.unwrap().sessions;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let lock = lease::acquire(of, keep::LOCK.to_owned()).await.unwrap().unwrap();
    second.sweep().await.unwrap();
    assert_eq!(sessions().await, 1, "the first process sweeps");
    drop(lock);
    // The lock is released in the background.
    for _ in 0..500 {
        second.sweep().await.unwrap();
        if sessions().await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the lock is not released");
}

/// Returns a store for each installed engine, with the faults of its clock.
fn with_clocks() -> Vec<(Store, Faults)> {
    let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, HOUR).unwrap());
    let stores = [Store::in_memory(HOUR).unwrap()].into_iter().chain(postgres);
    let with_faults = |store: Store| {
        let faults = Faults::default();
        (Store::of(store.db.with_faults(&faults), HOUR), faults)
    };
    stores.map(with_faults).collect()
}

#[tokio::test]
async fn a_clock_that_is_ahead_removes_nothing_until_a_person_confirms_it() {
    const DAY_MS: i64 = 24 * 3_600 * 1_000;
    for (store, faults) in with_clocks() {
        let of = store.tenant(&Tenant::default());
        of.extend("s", vec![Message::user("q")]).await.unwrap();
        of.open(run("r")).await.unwrap();
        of.end("r", RunEnd::default()).await.unwrap();
        let expected = Pruned { runs: 1, sessions: 1, ..Pruned::default() };
        for ahead in [2 * 3_600 * 1_000, 40 * DAY_MS] {
            // A process that starts with a wrong clock knows only what the store remembers.
            let started = Store::of(store.db.clone(), HOUR);
            faults.set_clock_ahead(ahead);
            started.sweep().await.unwrap();
            store.sweep().await.unwrap();
            let of = started.tenant(&Tenant::default());
            of.history("other", None).await.unwrap();
            let other = RunRecord { session: None, ..run(&format!("r{ahead}")) };
            of.open(other).await.unwrap();
            assert!(of.export("s").await.unwrap().is_some(), "{ahead}");
            assert!(of.status("r").await.unwrap().is_some(), "{ahead}");
            of.remove("other").await.unwrap();
        }
        assert_eq!(store.prunable().await.unwrap(), expected);
        assert_eq!(store.prune().await.unwrap(), expected);
        store.sweep().await.unwrap();
        // A clock that goes back keeps data for longer, and is trusted.
        faults.set_clock_ahead(0);
        of.extend("s", vec![Message::user("q")]).await.unwrap();
        store.sweep().await.unwrap();
        assert!(of.export("s").await.unwrap().is_some());
        faults.set_clock_ahead(2 * 3_600 * 1_000);
        store.sweep().await.unwrap();
        assert!(of.export("s").await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_clock_that_jumps_takes_no_locks_from_running_processes() {
    let faults = Faults::default();
    let db = Store::in_memory(HOUR).unwrap().db.with_faults(&faults);
    let (first, second) = (Store::of(db.clone(), HOUR), Store::of(db, HOUR));
    let lock = first.tenant(&Tenant::default()).lock("name").await.unwrap().unwrap();
    faults.set_clock_ahead(2 * 24 * 3_600 * 1_000);
    let of = second.tenant(&Tenant::default());
    assert!(of.lock("other").await.unwrap().is_some());
    assert!(of.lock("name").await.unwrap().is_none());
    drop(lock);
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_lease_from_before_the_clock_went_back_expires() {
    let url = wattle_cases::postgres::url().unwrap();
    let faults = Faults::default();
    let db = Store::connect(&url, HOUR).unwrap().db.with_faults(&faults);
    faults.set_clock_ahead(40 * 24 * 3_600 * 1_000);
    let insert = |transaction: &mut Transaction<'_>| {
        let expires = transaction.now();
        transaction.execute("INSERT INTO replica VALUES ('gone', ?1)", params![expires])?;
        transaction.execute("INSERT INTO hold VALUES ('default', 'name', 'gone', 1)", &[])?;
        Ok(())
    };
    db.run(Access::Write, insert).await.unwrap();
    faults.set_clock_ahead(0);
    let store = Store::of(db, HOUR);
    let of = store.tenant(&Tenant::default());
    assert!(of.lock("name").await.unwrap().is_none());
    faults.set_clock_ahead(16_000);
    assert!(of.lock("name").await.unwrap().is_some());
}

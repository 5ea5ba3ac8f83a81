//! Tests of copies between the engines, with a failure injected at every statement.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use wattle_capability::memory::{Memory as _, MemoryText, NewItem, Scope};
use wattle_capability::search::Query;
use wattle_machine::Message;

use super::super::db::faults::Faults;
use super::super::db::{Value, params};
use super::super::tables::Kind;
use super::*;

const HOUR: Duration = Duration::from_secs(3_600);
/// Limits for small batches, so that each table needs several batches.
const SMALL: BatchLimits = BatchLimits { rows: 4, bytes: 700 };

/// The tables that are not copied: the version, the state of the store itself, the marker, the
/// processes that hold locks, the locks, the cancellation requests, and the counts of bytes.
const OTHERS: &[&str] =
    &["version", "store", "copying", "replica", "hold", "cancellation", "usage"];

fn memory() -> Store {
    Store::in_memory(HOUR).unwrap()
}

fn postgres() -> Option<Store> {
    Some(Store::connect(&wattle_cases::postgres::url()?, HOUR).unwrap())
}

fn copy(limits: BatchLimits) -> Copy {
    Copy { from: "FROM".to_owned(), to: "TO".to_owned(), limits }
}

async fn run(copy: &Copy, source: &Store, target: &Store) -> Result<StoreCopy, StoreError> {
    let done = copy.run(source, target, Arc::new(|_| ())).await;
    source.close().await.unwrap();
    target.close().await.unwrap();
    done
}

/// Adds a row to a table.
fn put(transaction: &mut Transaction<'_>, table: &str, values: &[Value]) -> Result<(), Cause> {
    let table = TABLES.iter().find(|known| known.name == table).unwrap();
    write(transaction, table, &[values.to_vec()])
}

/// Adds content to every table, including `runs` runs of two tenants.
async fn fill(store: &Store, runs: i64) {
    let filled = store.db.run(Access::Write, move |transaction| {
        for number in 0..(runs / 10).max(2) {
            fill_session(transaction, number)?;
        }
        (0..runs).try_for_each(|number| fill_run(transaction, number))
    });
    filled.await.unwrap();
    let set = "SELECT setval(pg_get_serial_sequence('message', 'id'), 1000000)";
    if store.is_shared() {
        let set = store.db.run(Access::Write, move |transaction| transaction.one(set, &[]));
        set.await.unwrap();
    }
}

fn fill_session(transaction: &mut Transaction<'_>, n: i64) -> Result<(), Cause> {
    let tenant = format!("tenant{n}");
    let (session, bytes) = (format!("s{n}"), vec![0_u8, 255, u8::try_from(n % 256)?]);
    let text = format!("zero \u{0} and é {n}");
    let number = n * 3 + 1;
    let mut put = |table, values: &[Value]| put(transaction, table, values);
    put("session", params![tenant, session, n, n, 5_i64, "i", 2_i64])?;
    put("state_change", params![tenant, session, 1_i64, "r/1", text, bytes, 9_i64])?;
    put("state_change", params![tenant, session, 2_i64, None::<i64>, text, None::<i64>, 9_i64])?;
    put("message", params![number, tenant, session, "user", text, None::<i64>])?;
    put("message", params![number + 1, tenant, session, "assistant", text, "{}"])?;
    put("state", params![tenant, session, text, bytes])?;
    put("state", params![tenant, session, "", Vec::<u8>::new()])?;
    put("tenant", params![tenant, n, n, 4_i64, n])?;
    put("variable", params![tenant, text, bytes])?;
    put(
        "queue",
        params![tenant, format!("q{n}"), session, n, text, "{}", n % 3 - 1, n, "serve", "p"],
    )?;
    put("changed", params![tenant, format!("r{n}/1"), None::<i64>])?;
    put("changed", params![tenant, format!("r{n}/2"), bytes])?;
    put("secret", params![tenant, "token", "[]", bytes, bytes])?;
    put("tenant_key", params![tenant, "encryption", "0123456789abcdef"])?;
    let object = format!("object{n}");
    put("blob", params![object, tenant, "digest", 9_i64, n, "ready"])?;
    put("session_file", params![number, tenant, session, "[]", None::<i64>])?;
    put("session_file", params![number + 1, tenant, session, "", object])?;
    put("token", params![bytes_of(n), tenant, "laptop", "run", n, None::<i64>])?;
    put("conversation", params![tenant, bytes_of(n), session, 0_i64, n])?;
    put("integration", params![tenant, format!("shop{n}"), n, "{}"])?;
    let text = "green tea in the morning";
    put("memory", params![number, tenant, 1_i64, None::<i64>, n, text])?;
    put("memory_vector", params![number, "m", bytes])
}

fn bytes_of(n: i64) -> Vec<u8> {
    blake3::hash(&n.to_le_bytes()).as_bytes().to_vec()
}

fn fill_run(transaction: &mut Transaction<'_>, n: i64) -> Result<(), Cause> {
    let (tenant, run) = (format!("tenant{}", n % 2), format!("r{n}"));
    let none = None::<i64>;
    let mut put = |table, values: &[Value]| put(transaction, table, values);
    let opening = format!("{{\"text\":\"{}\"}}", "x".repeat(300));
    put(
        "run",
        params![
            tenant,
            run,
            "s0",
            "ended",
            n,
            n,
            0_i64,
            -1_i64,
            "why \u{0}",
            none,
            none,
            none,
            none,
            9_i64,
            "serve",
            "i",
            none,
            none
        ],
    )?;
    put("opening", params![tenant, run, opening])?;
    put("call_value", params![tenant, run, vec![7_u8; 16], vec![0_u8, 255]])?;
    for k in 0..2_i64 {
        put("turn", params![tenant, run, k, k + 1, "{}", none, k])?;
        put("event", params![tenant, run, k + 1, run, k + 3, "{}"])?;
        put("event", params![tenant, run, k + 10, run, k + 13, "{}"])?;
        let digest = vec![7_u8; 16];
        put(
            "call",
            params![
                tenant, run, k, 0_i64, "1.2", k, 1_i64, "kv.set", "changes", digest, "a \u{0}",
                none, none, 5_i64, digest
            ],
        )?;
    }
    Ok(())
}

async fn digests_of(store: &Store) -> Vec<Digest> {
    let work = |transaction: &mut Transaction<'_>| digests(transaction, LIMITS, &|_| ());
    store.db.run(Access::Read, work).await.unwrap()
}

/// Returns the names that a query selects.
async fn names(store: &Store, query: String) -> Vec<String> {
    let read = store.db.run(Access::Read, move |transaction| {
        transaction.query(&query, &[], |row| row.get::<String>(0))
    });
    read.await.unwrap()
}

fn is_copied(table: &str) -> bool {
    !OTHERS.contains(&table)
}

#[tokio::test]
async fn the_list_of_tables_has_every_table_and_column() {
    let sqlite = memory();
    let listed: BTreeSet<String> = TABLES.iter().map(|table| table.name.to_owned()).collect();
    let query = "SELECT name FROM sqlite_schema WHERE type = 'table'".to_owned();
    let found = names(&sqlite, query).await.into_iter().filter(|name| is_copied(name));
    assert_eq!(found.collect::<BTreeSet<_>>(), listed, "add the tables to `TABLES`");
    for table in TABLES {
        let query = format!("SELECT name FROM pragma_table_info('{}')", table.name);
        same_columns(table, names(&sqlite, query).await);
    }
    let Some(postgres) = postgres() else { return };
    let of_schema = "table_schema = current_schema()";
    let query = format!("SELECT table_name FROM information_schema.tables WHERE {of_schema}");
    let found = names(&postgres, query).await.into_iter().filter(|name| is_copied(name));
    assert_eq!(found.collect::<BTreeSet<_>>(), listed, "add the tables to `TABLES`");
    for table in TABLES {
        let of_table = format!("{of_schema} AND table_name = '{}'", table.name);
        let columns = |kind: &str| {
            format!("SELECT column_name FROM information_schema.columns WHERE {of_table} {kind}")
        };
        same_columns(table, names(&postgres, columns("")).await);
        let numbers = names(&postgres, columns("AND data_type = 'bigint'")).await;
        for column in table.columns {
            let name = column.name;
            assert_eq!(column.kind == Kind::Integer, numbers.contains(&name.to_owned()), "{name}");
        }
        let key = "SELECT column_name FROM information_schema.key_column_usage WHERE";
        let key =
            format!("{key} {of_table} AND constraint_name LIKE '%_pkey' ORDER BY ordinal_position");
        assert_eq!(
            names(&postgres, key).await,
            table.key().map(|column| column.name).collect::<Vec<_>>()
        );
    }
}

fn same_columns(table: &Table, mut found: Vec<String>) {
    let mut listed: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    listed.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, listed, "add the columns of `{}` to `TABLES`", table.name);
}

#[tokio::test]
async fn a_copy_has_the_same_content_on_both_engines() {
    let source = memory();
    fill(&source, 20).await;
    let expected = digests_of(&source).await;
    assert!(expected.iter().all(|table| table.rows > 0), "each table has content");
    let middle = postgres().unwrap_or_else(memory);
    let there = run(&copy(SMALL), &source, &middle).await.unwrap();
    assert_eq!(digests_of(&middle).await, expected);
    let back = memory();
    assert_eq!(run(&copy(LIMITS), &middle, &back).await.unwrap().tables, there.tables);
    assert_eq!(digests_of(&back).await, expected);
    // New rows get higher numbers than the copied ones, and memory items are found.
    for store in [&middle, &back] {
        let of = store.tenant(&Tenant::new("tenant1").unwrap());
        of.extend("s1", vec![Message::user("hello")]).await.unwrap();
        let messages = of.export("s1").await.unwrap().unwrap().messages;
        assert_eq!(messages.last().unwrap().content.as_str(), "hello");
        of.add_session_files("s1", "[]".to_owned()).await.unwrap();
        let found = of.memory(None).by_words(Query::read("tea").unwrap()).await.unwrap();
        assert_eq!(found.len(), 1);
        let text = MemoryText::new("coffee").unwrap();
        let item = NewItem { text, scope: Scope::Tenant };
        of.memory(None).add(None, item).await.unwrap();
    }
}

/// Checks that a copy can be continued, no matter at which statement on the target or on the source
/// it failed.
async fn continued(on_target: bool, new: impl Fn() -> Store) {
    let source = memory();
    fill(&source, 4).await;
    let expected = digests_of(&source).await;
    for n in 1.. {
        assert!(n < 3_000, "the copy has no end");
        let (target, faults) = (new(), Faults::default());
        let faulty = |store: &Store| Store::of(store.db.clone().with_faults(&faults), HOUR);
        let (from, to) = if on_target {
            (source.clone(), faulty(&target))
        } else {
            (faulty(&source), target.clone())
        };
        faults.arm(n, false);
        let copy = copy(SMALL);
        let first = copy.run(&from, &to, Arc::new(|_| ())).await;
        let is_untouched = faults.disarm();
        from.close().await.unwrap();
        to.close().await.unwrap();
        if first.is_err() {
            assert!(!is_untouched);
            run(&copy, &from, &to).await.unwrap();
        }
        assert_eq!(digests_of(&target).await, expected, "statement {n}");
        if is_untouched {
            break;
        }
    }
}

#[tokio::test]
async fn a_copy_that_fails_at_any_statement_is_continued() {
    continued(true, memory).await;
    continued(false, memory).await;
}

/// A batch executes the same statements as in SQLite, where each statement is tested, so it is
/// enough to interrupt the copy at each batch.
#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_copy_that_is_killed_at_any_batch_is_continued_in_postgres() {
    let target = postgres().unwrap();
    let source = memory();
    fill(&source, 4).await;
    let (copy, faults) = (copy(SMALL), Faults::default());
    let faulty = Store::of(target.db.clone().with_faults(&faults), HOUR);
    let mut copied = 0;
    for attempt in 0.. {
        assert!(attempt < 500, "the copy makes no progress");
        // Enough statements to restart, find the position, and copy a batch.
        faults.arm(28, false);
        let done = copy.run(&source, &faulty, Arc::new(|_| ())).await;
        faults.disarm();
        source.close().await.unwrap();
        faulty.close().await.unwrap();
        let rows = digests_of(&target).await.iter().map(|table| table.rows).sum::<u64>();
        assert!(rows >= copied, "rows are lost");
        copied = rows;
        if let Err(error) = &done {
            assert!(error.to_string().contains("a failure on purpose"), "{error}");
        }
        if done.is_ok() || attempt == 60 {
            break;
        }
    }
    let done = run(&copy, &source, &target).await;
    // A finished copy is not empty, so it is rejected as a target.
    if let Err(error) = done {
        assert!(error.to_string().contains("it has content"), "{error}");
    }
    assert_eq!(digests_of(&target).await, digests_of(&source).await);
}

#[tokio::test]
async fn a_source_that_changes_is_noticed() {
    let (source, target) = (memory(), memory());
    fill(&source, 3).await;
    let (writer, done) = (source.clone(), Mutex::new(false));
    let on_progress = move |progress: CopyProgress| {
        let mut done = done.lock().unwrap();
        if progress.phase == CopyPhase::Verifying && !*done {
            *done = true;
            let change = |transaction: &mut Transaction<'_>| {
                transaction.execute("UPDATE run SET attempts = 5 WHERE id = 'r1'", &[])?;
                Ok(())
            };
            // The callback is not asynchronous, and blocks the runtime of the copy.
            let db = writer.db.clone();
            let changing = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(db.run(Access::Write, change)).unwrap();
            });
            changing.join().unwrap();
        }
    };
    let copy = copy(LIMITS);
    let error = copy.run(&source, &target, Arc::new(on_progress)).await.unwrap_err().to_string();
    assert!(error.contains("the table `run` differs") && error.contains("hint: delete"), "{error}");
    source.close().await.unwrap();
    target.close().await.unwrap();
    // The target stays marked, and continuing the copy does not repair it.
    assert!(run(&copy, &source, &target).await.is_err());
}

#[tokio::test]
async fn ten_thousand_runs_are_copied_both_ways() {
    let source = memory();
    fill(&source, 10_000).await;
    let middle = postgres().unwrap_or_else(memory);
    let there = run(&copy(LIMITS), &source, &middle).await.unwrap();
    let back = run(&copy(LIMITS), &middle, &memory()).await.unwrap();
    assert_eq!(there.tables, back.tables);
}

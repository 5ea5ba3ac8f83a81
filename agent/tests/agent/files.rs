//! Tests of database files: several processes that open one, damaged records, and other versions.

use std::sync::Barrier;
use std::time::Duration;

use wattle_agent::host::journal::{Journal as _, RunFilter, RunRecord, RunStart, Status};
use wattle_agent::{Store, Tenant};

const HOUR: Duration = Duration::from_secs(3_600);

fn opened(id: &str) -> RunRecord {
    RunRecord::new(id, RunStart::new("a message", serde_json::Value::Null))
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

#[test]
fn a_file_of_another_version_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let older =
        "it has version 23, which a program before Wattle 0.1.0 wrote\nhint: name a new store";
    let newer = "it has version 101, but this program supports version 100; use a newer program";
    for (version, expected) in [(23, older), (101, newer)] {
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch("CREATE TABLE IF NOT EXISTS session (id TEXT)").unwrap();
        file.pragma_update(None, "user_version", version).unwrap();
        let why = Store::open(&path, HOUR).err().unwrap().to_string();
        assert!(why.contains(expected), "{why}");
        let count = "SELECT COUNT(*) FROM sqlite_schema";
        let tables: i64 = file.query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 1);
    }
}

//! Tests of copying a store: between the database engines in both directions, after an
//! interruption, and in cases that must be rejected.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::place::Place;
use wattle_agent::host::capability::kv::Backend as _;
use wattle_agent::host::capability::memory::{Memory as _, MemoryText, NewItem, Scope as Reach};
use wattle_agent::host::capability::secrets::Secrets as _;
use wattle_agent::host::journal::{
    Journal as _, KeptFiles, Priority, RunEnd, RunFilter, RunRecord, RunRequest, RunStart, Turn,
};
use wattle_agent::host::ledger::Keys;
use wattle_agent::host::machine::{Envelope, Event, Input, Message, Usage};
use wattle_agent::host::{
    SameConversation, Scope, StoreAddress, StoreCopy, StoreError, StoredSecrets, TenantStore,
    copy_store,
};
use wattle_agent::model::{ApiKey, Mask};
use wattle_agent::{Store, Tenant};

const HOUR: Duration = Duration::from_secs(3_600);
const KEY: &str = "sk-0123456789";

fn file(path: &Path) -> StoreAddress {
    StoreAddress::File(path.to_owned())
}

async fn copy(from: &StoreAddress, to: &StoreAddress) -> Result<StoreCopy, StoreError> {
    copy_store(from, to, |_| ()).await
}

async fn refused(from: &StoreAddress, to: &StoreAddress) -> String {
    copy(from, to).await.unwrap_err().to_string()
}

fn of(store: &Store, keys: &Path) -> TenantStore {
    let mask = Mask::default();
    mask.add_key(&ApiKey::new(KEY).unwrap());
    store.tenant(&Tenant::default()).sealing(mask, Keys::new(keys))
}

fn run(id: &str) -> RunRecord {
    let start = RunStart::new(format!("look at {KEY}"), serde_json::Value::Null);
    RunRecord { session: Some("s".to_owned()), ..RunRecord::new(id, start) }
}

fn event(run: &str, seq: u64) -> Envelope {
    let (run_id, event) = (run.to_owned(), Event::Error { message: KEY.to_owned() });
    Envelope { root_run_id: run_id.clone(), run_id, seq, ts: 0, event }
}

fn turn() -> Turn {
    let input = Input::Begin { message: KEY.to_owned() };
    let files = Some("[]".to_owned());
    Turn { spent: Usage::default(), input, effects: Vec::new(), seq: 1, elapsed_ms: 0, files }
}

/// Fills a store with records, some of which are encrypted.
async fn fill(of: &TenantStore, keys: &Path) {
    of.extend("s", vec![Message::user(KEY), Message::assistant("zero \u{0}")]).await.unwrap();
    for state in [of.state("s"), of.variables()] {
        state.update("k".to_owned(), Box::new(|_| Ok(Some(vec![0, 255])))).await.unwrap();
    }
    for id in ["r1", "r2"] {
        of.open(run(id)).await.unwrap();
        of.turn(id, turn(), Vec::new(), vec![event(id, 1), event(id, 2)]).await.unwrap();
    }
    of.end("r1", RunEnd { files: KeptFiles::Added, ..RunEnd::default() }).await.unwrap();
    let (id, session) = ("q".to_owned(), Some("s".to_owned()));
    let origin = serde_json::json!({});
    of.enqueue(RunRequest {
        session,
        priority: Priority::High,
        id: id.to_owned(),
        origin,
        ..RunRequest::new("go")
    })
    .await
    .unwrap();
    of.add_token("laptop", Scope::Run, "secret of a token").await.unwrap();
    of.set_conversation("s", [7; 32], SameConversation::Neither).await.unwrap();
    for text in ["green tea", KEY] {
        let item = NewItem { text: MemoryText::new(text).unwrap(), scope: Reach::Session };
        of.memory(Some("s")).add(None, item).await.unwrap();
    }
    of.memory(Some("s")).add_vectors("m".to_owned(), vec![(1, vec![0; 4])]).await.unwrap();
    let secrets = StoredSecrets::new(of.clone(), Keys::new(keys).cipher("default").unwrap());
    secrets.set("token", "a secret value", vec!["a.example".parse().unwrap()]).await.unwrap();
}

/// Returns all of the tenant's data as text, decrypted.
async fn dump(of: &TenantStore, keys: &Path) -> String {
    let secrets = StoredSecrets::new(of.clone(), Keys::new(keys).cipher("default").unwrap());
    let secret = secrets.find("token".to_owned()).await.unwrap();
    let memory = of.memory(Some("s"));
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {}",
        of.export("s").await.unwrap(),
        of.runs(RunFilter::default()).await.unwrap(),
        of.events("r1", 0, 99).await.unwrap(),
        of.turns("r2").await.unwrap(),
        of.queued().await.unwrap(),
        of.session_files("s").await.unwrap(),
        of.tokens().await.unwrap(),
        of.variables().get("k".to_owned()).await.unwrap(),
        memory.list(9).await.unwrap(),
        memory.without_vector("m".to_owned(), Vec::new(), 9).await.unwrap(),
        secret.is_some(),
    )
}

/// Creates the file `name` in `folder`, which contains a store with records. Returns the store's
/// address.
async fn filled(folder: &Path, name: &str) -> StoreAddress {
    let path = folder.join(name);
    let store = Store::open(&path, HOUR).unwrap();
    fill(&of(&store, &folder.join("keys")), &folder.join("keys")).await;
    store.close().await.unwrap();
    file(&path)
}

/// Executes SQL statements on a database file without opening the store.
fn sql(path: &Path, statements: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(statements).unwrap();
}

#[tokio::test]
async fn a_store_moves_to_postgres_and_back_with_its_encrypted_records() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let first = filled(folder.path(), "a.db").await;
    let expected = {
        let store = Store::open(&folder.path().join("a.db"), HOUR).unwrap();
        dump(&of(&store, &keys), &keys).await
    };
    assert!(expected.contains(KEY) && expected.ends_with("true"));
    let middle = match wattle_cases::postgres::url() {
        Some(url) => StoreAddress::Database(url),
        None => file(&folder.path().join("m.db")),
    };
    let there = copy(&first, &middle).await.unwrap();
    if let StoreAddress::Database(url) = &middle {
        let store = Store::connect(url, HOUR).unwrap();
        assert_eq!(dump(&of(&store, &keys), &keys).await, expected);
        assert_eq!(store.inspect(Some(Keys::new(&keys))).await.unwrap().findings, []);
    }
    let last = folder.path().join("b.db");
    let back = copy(&middle, &file(&last)).await.unwrap();
    assert_eq!(back, there);
    assert_eq!((back.resumed, back.tables.len()), (0, 23));
    let store = Store::open(&last, HOUR).unwrap();
    assert_eq!(dump(&of(&store, &keys), &keys).await, expected);
    let conversation = of(&store, &keys).take_conversation([7; 32]).await.unwrap();
    assert_eq!(conversation.as_deref(), Some("s"));
    let inspection = store.inspect(Some(Keys::new(&keys))).await.unwrap();
    assert_eq!((inspection.findings, inspection.locked), (Vec::new(), 0));
    assert!(store.inspect(None).await.unwrap().locked > 0);
}

#[tokio::test]
async fn an_unfinished_copy_is_opened_by_nothing_but_its_continuation() {
    let folder = tempfile::tempdir().unwrap();
    let from = filled(folder.path(), "a.db").await;
    let path = folder.path().join("b.db");
    let to = file(&path);
    let whole = copy(&from, &to).await.unwrap();
    let source = folder.path().canonicalize().unwrap().join("a.db");
    sql(
        &path,
        &format!(
            "DELETE FROM memory_vector; DELETE FROM event WHERE run = 'r2';
             INSERT INTO copying VALUES (1, '{}', 7);",
            source.display()
        ),
    );
    let why = Store::open(&path, HOUR).err().unwrap().to_string();
    assert!(why.contains("it is an unfinished copy of") && why.contains("with 7 rows"), "{why}");
    assert!(why.contains("hint: run the same `wattle store copy FROM TO` again"), "{why}");
    let why = refused(&to, &file(&folder.path().join("c.db"))).await;
    assert!(why.contains("it is an unfinished copy of"), "{why}");
    assert!(!folder.path().join("c.db").exists());
    let other = filled(folder.path(), "other.db").await;
    let why = refused(&other, &to).await;
    assert!(why.contains("an unfinished copy of another store"), "{why}");
    let continued = copy(&from, &to).await.unwrap();
    assert_eq!((continued.tables, continued.resumed), (whole.tables, 7));
    Store::open(&path, HOUR).unwrap();
}

#[tokio::test]
async fn a_copy_to_the_same_store_or_one_with_content_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let from = filled(folder.path(), "a.db").await;
    let other: PathBuf = folder.path().join(".").join("a.db");
    let why = refused(&from, &file(&other)).await;
    assert!(why.contains("are the same store") && why.contains("hint: name another"), "{why}");
    let full = filled(folder.path(), "b.db").await;
    let why = refused(&from, &full).await;
    assert!(why.contains("it has content") && why.contains("hint: name a new"), "{why}");
    Store::open(&folder.path().join("b.db"), HOUR).unwrap();
    let Some(url) = wattle_cases::postgres::url() else { return };
    let database = StoreAddress::Database(url.clone());
    copy(&from, &database).await.unwrap();
    let same = StoreAddress::Database(format!("{url}&connect_timeout=3"));
    assert!(refused(&database, &same).await.contains("are the same store"));
    assert!(refused(&from, &database).await.contains("it has content"));
}

#[tokio::test]
async fn a_source_that_does_not_exist_is_refused_and_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.db"), folder.path().join("b.db"));
    let why = refused(&file(&from), &file(&to)).await;
    assert!(why.contains("there is no such file"), "{why}");
    assert!(!from.exists() && !to.exists());
    let Some(url) = wattle_cases::postgres::url() else { return };
    let why = refused(&StoreAddress::Database(url), &file(&to)).await;
    assert!(why.contains("it has no tables of a store"), "{why}");
    assert!(!to.exists());
}

#[tokio::test]
async fn a_store_in_use_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let from = filled(folder.path(), "a.db").await;
    let path = folder.path().join("a.db");
    let user = Store::open(&path, HOUR).unwrap();
    let lock = user.tenant(&Tenant::default()).lock("run:r2").await.unwrap();
    let why = refused(&from, &file(&folder.path().join("b.db"))).await;
    assert!(why.contains("it is in use by 1 other process"), "{why}");
    assert!(why.contains("hint: stop the servers and commands"), "{why}");
    drop(lock);
    user.close().await.unwrap();
    // A process that has ended does not count, even if its entry in the store remains.
    sql(&path, "INSERT INTO replica VALUES ('boot 999999999 1 x', 9000000000000)");
    copy(&from, &file(&folder.path().join("b.db"))).await.unwrap();
    let Some(place) = Place::in_postgres() else { return };
    let server = place.open(HOUR);
    let looking = tokio::spawn({
        let server = server.clone();
        async move { server.keep_tidy().await }
    });
    while place.open(HOUR).stats().await.unwrap().replicas == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let why = refused(&from, &address(&place)).await;
    assert!(why.contains("it is in use by 1 other process"), "{why}");
    looking.abort();
}

fn address(place: &Place) -> StoreAddress {
    StoreAddress::Database(place.url().unwrap().to_owned())
}

#[tokio::test]
async fn a_store_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let from = filled(folder.path(), "a.db").await;
    let path = folder.path().join("a.db");
    let to = file(&folder.path().join("b.db"));
    let good = filled(folder.path(), "c.db").await;
    for version in [13, 101] {
        sql(&path, &format!("PRAGMA user_version = {version}"));
        let expected = format!("it has version {version}");
        assert!(refused(&from, &to).await.contains(&expected));
        assert!(refused(&good, &from).await.contains(&expected));
    }
    assert!(refused(&to, &from).await.contains("there is no such file"));
}

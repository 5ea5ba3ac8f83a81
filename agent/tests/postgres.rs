//! Tests of the store on a PostgreSQL server: concurrent first starts, lost connections, leases,
//! and errors with hints. Skipped if PostgreSQL is not installed. The tests are a separate program,
//! because one of them ends all connections to the server that the tests of one process share.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]

#[allow(dead_code, reason = "the other tests use all of it")]
#[path = "agent/place.rs"]
mod place;

use std::sync::Arc;
use std::time::Duration;

use place::Place;
use tokio_postgres::NoTls;
use wattle_agent::host::capability::kv::Backend as _;
use wattle_agent::host::journal::{Journal as _, RunRequest};
use wattle_agent::host::machine::Message;
use wattle_agent::host::{StoreError, TenantStore};
use wattle_agent::{Store, Tenant};
use wattle_cases::{pooler, postgres};

const HOUR: Duration = Duration::from_secs(3_600);

/// Returns a location on this process's own server, or `None` if PostgreSQL is not installed.
fn own_place() -> Option<Place> {
    Some(Place::at(postgres::own_url()?))
}

fn of(store: &Store) -> TenantStore {
    store.tenant(&Tenant::default())
}

/// Executes SQL statements in the schema of a location, as an operator would.
async fn sql(place: &Place, statements: &str) {
    let (url, schema) = place.url().unwrap().rsplit_once("&schema=").unwrap();
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path TO {schema}; {statements}")).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

fn queued(id: &str) -> RunRequest {
    RunRequest { id: id.to_owned(), ..RunRequest::new("go") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs PostgreSQL"]
async fn many_processes_can_start_at_the_same_time() {
    let place = own_place().unwrap();
    let place = Arc::new(place);
    let starts: Vec<_> = (0..8)
        .map(|number| {
            let store = of(&place.open(HOUR));
            tokio::spawn(async move {
                store.extend(&format!("s{number}"), vec![Message::user("hello")]).await.unwrap();
            })
        })
        .collect();
    for start in starts {
        start.await.unwrap();
    }
    assert_eq!(of(&place.open(HOUR)).sessions().await.unwrap().len(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs PostgreSQL"]
async fn each_change_is_made_once_although_connections_are_lost() {
    let place = own_place().unwrap();
    let place = Arc::new(place);
    let store = of(&place.open(HOUR));
    patiently_checked(&store).await.unwrap();
    let cutting = tokio::spawn({
        let place = Arc::clone(&place);
        async move {
            loop {
                let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                           WHERE application_name = 'wattle'";
                sql(&place, cut).await;
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
        }
    });
    let adding: Vec<_> = (0..4)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..50 {
                    store.enqueue(queued(&format!("{task}-{number}"))).await.unwrap();
                }
            })
        })
        .collect();
    for task in adding {
        // Adding a run twice would fail, because its id is unique.
        task.await.unwrap();
    }
    cutting.abort();
    assert_eq!(of(&place.open(HOUR)).queued().await.unwrap().len(), 200);
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_process_that_was_paused_too_long_cannot_write_to_its_run() {
    let place = own_place().unwrap();
    let (paused, other) = (of(&place.open(HOUR)), of(&place.open(HOUR)));
    paused.enqueue(queued("r")).await.unwrap();
    let lock = paused.lock("run:r").await.unwrap().unwrap();
    assert!(other.lock("run:r").await.unwrap().is_none(), "its lease has not expired");
    paused.pause("r").await.unwrap();
    sql(&place, "UPDATE replica SET expires = 0").await;
    let taken = other.lock("run:r").await.unwrap();
    assert!(taken.is_some(), "the lease has expired");
    let why = paused.pause("r").await.unwrap_err().to_string();
    assert!(why.contains("lost its lease of `run:r`"), "{why}");
    let why = paused.calls("r", Vec::new()).await.unwrap_err().to_string();
    assert!(why.contains("lost its lease of `run:r`"), "{why}");
    tokio::time::timeout(Duration::from_secs(30), lock.lost()).await.unwrap();
    assert!(paused.lock("run:r").await.unwrap().is_none());
    drop(lock);
    other.pause("r").await.unwrap();
    drop(taken);
    // PostgreSQL takes a moment to release a lock.
    while paused.lock("run:r").await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_process_that_stops_releases_its_locks_at_once() {
    let place = own_place().unwrap();
    let store = place.open(HOUR);
    let (stopping, other) = (of(&store), of(&place.open(HOUR)));
    let _lock = stopping.lock("run:r").await.unwrap().unwrap();
    assert!(other.lock("run:r").await.unwrap().is_none());
    store.close().await.unwrap();
    assert!(other.lock("run:r").await.unwrap().is_some());
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_schema_of_another_version_is_refused() {
    let place = own_place().unwrap();
    patiently_checked(&of(&place.open(HOUR))).await.unwrap();
    for (version, expected) in
        [(11, "which a program before Wattle 0.1.0 wrote"), (101, "use a newer program")]
    {
        sql(&place, &format!("UPDATE version SET number = {version}")).await;
        let why = patiently_checked(&of(&place.open(HOUR))).await.unwrap_err().to_string();
        assert!(
            why.contains(&format!("it has version {version}")) && why.contains(expected),
            "{why}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs PostgreSQL"]
async fn a_pooler_by_transaction_is_refused_unless_the_url_names_it() {
    let direct = postgres::own_url().unwrap();
    let pooled = pooler::before(&direct);
    let unnamed = of(&Store::connect(&pooled, HOUR).unwrap());
    let why = patiently_checked(&unnamed).await.unwrap_err().to_string();
    assert!(why.contains("hint: add `pooler=transaction`"), "{why}");

    let named = Arc::new(Place::at(format!("{pooled}&pooler=transaction")));
    let text = "a \\ backslash, \\x41 and 'quotes'";
    let works: Vec<_> = (0..4)
        .map(|task| {
            let named = Arc::clone(&named);
            tokio::spawn(async move {
                let store = of(&named.open(HOUR));
                for number in 0..20 {
                    store.enqueue(queued(&format!("{task}-{number}"))).await.unwrap();
                    let message = vec![Message::user(text)];
                    store.extend(&format!("s{task}"), message).await.unwrap();
                }
                let set = Box::new(move |_| Ok(Some(text.as_bytes().to_vec())));
                store.variables().update(format!("k{task}"), set).await.unwrap();
            })
        })
        .collect();
    for work in works {
        work.await.unwrap();
    }
    let pooled = named.open(HOUR);
    pooled.prune().await.unwrap();
    for store in [of(&pooled), of(&Store::connect(&direct, HOUR).unwrap())] {
        assert_eq!(store.queued().await.unwrap().len(), 80);
        assert_eq!(store.sessions().await.unwrap().len(), 4);
        let value = store.variables().get("k3".to_owned()).await.unwrap();
        assert_eq!(value.as_deref(), Some(text.as_bytes()));
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_an_error_without_the_password() {
    let store = Store::connect("postgres://u:hunter2@127.0.0.1:1/x", HOUR).unwrap();
    let why = patiently_checked(&of(&store)).await.unwrap_err().to_string();
    assert!(why.contains("postgres://u:***@127.0.0.1:1/x"), "{why}");
    assert!(why.contains("hint: check that the database server runs"), "{why}");
    assert!(!why.contains("hunter2"), "{why}");
    let failure = of(&store).variables().get("k".to_owned()).await.unwrap_err();
    assert!(!failure.reason.contains("hunter2"), "{failure}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_wrong_user_and_a_wrong_database_are_errors_that_say_so() {
    let place = own_place().unwrap();
    let url = place.url().unwrap();
    let refused = async |url: String| {
        let store = Store::connect(&url, HOUR).unwrap();
        patiently_checked(&of(&store)).await.unwrap_err().to_string()
    };
    let why = refused(url.replace("user=wattle", "user=nobody")).await;
    assert!(why.contains("hint: check the user and the password"), "{why}");
    let why = refused(url.replace("///postgres", "///missing")).await;
    assert!(why.contains("hint: create the database"), "{why}");
    let why = refused(url.replace("?", "?sslmode=require&")).await;
    assert!(why.contains("TLS") || why.contains("tls"), "{why}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_database_that_becomes_read_only_can_be_written_again_later() {
    let place = own_place().unwrap();
    let role = "CREATE ROLE reader LOGIN SUPERUSER";
    patiently_checked(&of(&place.open(HOUR))).await.unwrap();
    sql(&place, role).await;
    let url = place.url().unwrap().replace("user=wattle", "user=reader");
    let store = Store::connect(&url, HOUR).unwrap();
    patiently_checked(&of(&store)).await.unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'";
    sql(&place, &format!("ALTER ROLE reader SET default_transaction_read_only = on; {cut}")).await;
    let why = patiently_checked(&of(&store)).await.unwrap_err().to_string();
    assert!(why.contains("hint: name a database that can be written"), "{why}");
    assert_eq!(of(&store).sessions().await.unwrap(), [], "it can still be read");
    sql(&place, &format!("ALTER ROLE reader RESET ALL; {cut}")).await;
    patiently_checked(&of(&store)).await.unwrap();
}

/// Checks a store, again if the server is slow to accept new connections.
async fn patiently_checked(store: &TenantStore) -> Result<(), StoreError> {
    loop {
        match store.check().await {
            Err(why) if why.to_string().contains("did not respond") => {}
            checked => return checked,
        }
    }
}

#[tokio::test]
async fn a_url_with_a_wrong_parameter_is_refused() {
    let why = Store::connect("postgres://u:hunter2@db/x?schema=A-B", HOUR).err().unwrap();
    let why = why.to_string();
    assert!(why.contains("the schema `A-B` is not a valid name"), "{why}");
    assert!(!why.contains("hunter2"), "{why}");
}

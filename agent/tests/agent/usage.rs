//! Tests of the limits on the bytes that a run, a tenant and a store keep, on both database
//! engines.

use std::time::Duration;

use wattle_agent::host::capability::kv::Backend as _;
use wattle_agent::host::capability::memory::{Memory as _, MemoryText, NewItem, Scope};
use wattle_agent::host::journal::{
    Journal as _, RecordedCall, RecordedEffect, RunRecord, RunRequest, RunStart, Turn,
};
use wattle_agent::host::machine::{Ending, Input, Message, Usage};
use wattle_agent::host::rt::tape::{CallId, RecordedValue};
use wattle_agent::host::rt::{CallEffect, Code, Failure};
use wattle_agent::host::{Retention, StoreError, StoreLimits, TenantStore};
use wattle_agent::{Store, Tenant};

use crate::place::Place;

const HOUR: Duration = Duration::from_secs(3_600);
const MIB: u64 = 1 << 20;

fn places() -> Vec<Place> {
    [Some(Place::new()), Place::in_postgres()].into_iter().flatten().collect()
}

fn limited(place: &Place, limits: StoreLimits) -> Store {
    place.open(HOUR).limited(limits)
}

fn of(store: &Store, tenant: &str) -> TenantStore {
    store.tenant(&Tenant::new(tenant).unwrap())
}

async fn set(of: &TenantStore, key: &str, value: Option<Vec<u8>>) -> Result<(), Failure> {
    of.variables().update(key.to_owned(), Box::new(move |_| Ok(value.clone()))).await
}

fn turn(message: String) -> Turn {
    let input = Input::Begin { message };
    Turn { spent: Usage::default(), input, effects: Vec::new(), seq: 1, elapsed_ms: 0, files: None }
}

fn last_turn() -> Turn {
    let ending = Ending::Answered { text: "done".to_owned(), data: None };
    Turn { effects: vec![RecordedEffect::Finish(ending)], ..turn("x".repeat(1_000)) }
}

fn call(number: u32, effect: CallEffect, result: Option<Vec<u8>>) -> RecordedCall {
    let id = CallId {
        path: [].into(),
        number,
        function: "http.post".into(),
        effect,
        digest: [1; 16],
        args: String::new(),
    };
    let result = result.map(|bytes| Ok(RecordedValue::Bytes(bytes)));
    RecordedCall { turn: 0, program: 0, id, times: 1, result, time: None }
}

fn record(id: &str) -> RunRecord {
    RunRecord::new(id, RunStart::new("go", serde_json::Value::Null))
}

/// Adds data until the store refuses it. Returns the error and the number of additions.
async fn until_full(add: impl AsyncFn(usize) -> Result<(), StoreError>) -> (StoreError, usize) {
    for number in 0..1_000 {
        if let Err(error) = add(number).await {
            return (error, number);
        }
    }
    panic!("the store never is full")
}

#[tokio::test]
async fn a_tenant_that_is_full_can_delete_and_go_on() {
    for place in places() {
        let limits = StoreLimits { tenant: MIB, ..StoreLimits::default() };
        let store = limited(&place, limits);
        let (alice, bob) = (of(&store, "alice"), of(&store, "bob"));
        let value = || Some(vec![b'x'; 100_000]);
        let mut refused = None;
        for number in 0..20 {
            if let Err(failure) = set(&alice, &format!("k{number}"), value()).await {
                refused = Some((number, failure));
                break;
            }
        }
        let (number, failure) = refused.unwrap();
        assert_eq!((number, failure.code), (10, Code::EBUDGET), "{failure}");
        for part in
            ["the tenant `alice`", "its limit of 1 MiB", "`limits.tenant_store_mb`", "hint: "]
        {
            assert!(failure.reason.contains(part), "{failure}");
        }
        set(&bob, "k", value()).await.unwrap();
        let mut full = Ok(0);
        for number in 0..20 {
            let text = MemoryText::new(&format!("{number} {}", "t".repeat(3_900))).unwrap();
            full = alice.memory(None).add(None, NewItem { text, scope: Scope::Tenant }).await;
            if full.is_err() {
                break;
            }
        }
        assert_eq!(full.unwrap_err().code, Code::EBUDGET);
        let messages = vec![Message::user("m".repeat(100_000))];
        assert!(alice.extend("s", messages.clone()).await.unwrap_err().is_full());
        // A smaller value, and the removal of one, always work, and make room.
        set(&alice, "k0", Some(b"small".to_vec())).await.unwrap();
        set(&alice, "k1", None).await.unwrap();
        alice.extend("s", messages).await.unwrap();
        assert!(alice.remove("s").await.unwrap());
        set(&alice, "k1", value()).await.unwrap();
    }
}

#[tokio::test]
async fn queued_runs_with_long_messages_fill_their_tenant_and_then_the_store() {
    for place in places() {
        let store = limited(&place, StoreLimits { tenant: 2 * MIB, store: 3 * MIB, run: MIB });
        let (alice, bob) = (of(&store, "alice"), of(&store, "bob"));
        let add = async |of: &TenantStore, number: usize| {
            let message = "m".repeat(100_000);
            of.enqueue(RunRequest { id: format!("r{number}"), ..RunRequest::new(message) }).await
        };
        let (error, added) = until_full(async |number| add(&alice, number).await).await;
        assert!(error.is_full() && error.to_string().contains("the tenant `alice`"), "{error}");
        assert_eq!(added, 20);
        let (error, _) = until_full(async |number| add(&bob, number).await).await;
        assert!(error.to_string().contains("`limits.store_mb`"), "{error}");
        assert!(!error.is_outage());
        // Another process that shares the store counts the same.
        let other = limited(&place, StoreLimits { tenant: 2 * MIB, ..StoreLimits::default() });
        assert!(add(&of(&other, "alice"), 100).await.unwrap_err().is_full());
        assert!(alice.kept_bytes().await.unwrap() <= 2 * MIB);
    }
}

#[tokio::test]
async fn a_run_that_is_full_can_still_end_and_keeps_the_results_of_its_calls() {
    for place in places() {
        let store = limited(&place, StoreLimits { run: MIB, ..StoreLimits::default() });
        let of = of(&store, "alice");
        of.open(record("r")).await.unwrap();
        of.turn("r", turn("go".to_owned()), Vec::new(), Vec::new()).await.unwrap();
        let reads = async |number: usize| {
            let number = u32::try_from(number).unwrap();
            let result = format!("{number} {}", "x".repeat(100_000)).into_bytes();
            of.calls("r", vec![call(number, CallEffect::Reads, Some(result))]).await
        };
        let (error, added) = until_full(reads).await;
        assert_eq!(added, 10);
        for part in ["the record of the run `r`", "its limit of 1 MiB", "`limits.run_store_mb`"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        let large = turn("m".repeat(100_000));
        assert!(of.turn("r", large, Vec::new(), Vec::new()).await.unwrap_err().is_full());
        let posted = vec![call(100, CallEffect::Once, Some(vec![b'y'; 100_000]))];
        of.durable_calls("r", posted).await.unwrap();
        let read = call(101, CallEffect::Reads, Some(b"a small result".to_vec()));
        let next = vec![read, call(102, CallEffect::Once, None)];
        assert!(of.durable_calls("r", next).await.unwrap_err().is_full(), "no call is begun");
        of.turn("r", last_turn(), Vec::new(), Vec::new()).await.unwrap();
        of.end("r", Default::default()).await.unwrap();
        // Other runs are not affected.
        of.open(record("other")).await.unwrap();
        of.turn("other", turn("m".repeat(100_000)), Vec::new(), Vec::new()).await.unwrap();
        // What is removed over time no longer counts.
        let before = of.kept_bytes().await.unwrap();
        let retention = Retention { runs: Some(Duration::ZERO), events: None };
        tokio::time::sleep(Duration::from_millis(5)).await;
        store.clone().keeping(retention).prune().await.unwrap();
        assert!(of.kept_bytes().await.unwrap() + MIB < before);
    }
}

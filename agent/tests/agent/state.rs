//! Tests of the store's key-value state: its ownership by tenants and sessions, and the atomicity
//! of updates.

use std::sync::Arc;
use std::time::Duration;

use wattle_agent::host::capability::kv::{Backend, Kept};
use wattle_agent::host::rt::Code;
use wattle_agent::host::{LazyState, StoreError, TenantStore};
use wattle_agent::{Store, Tenant};

use crate::place::Place;

const HOUR: Duration = Duration::from_secs(3_600);

fn of(store: &Store, tenant: &str) -> TenantStore {
    store.tenant(&Tenant::new(tenant).unwrap())
}

async fn set(state: &dyn Backend, key: &str, value: &str) {
    let value = value.as_bytes().to_vec();
    state.update(key.to_owned(), Box::new(move |_| Ok(Some(value.clone())))).await.unwrap();
}

async fn get(state: &dyn Backend, key: &str) -> Option<String> {
    state.get(key.to_owned()).await.unwrap().map(|value| String::from_utf8(value).unwrap())
}

#[tokio::test]
async fn a_tenants_state_outlives_its_sessions_and_is_invisible_to_other_tenants() {
    let place = Place::new();
    let store = place.open(Duration::ZERO);
    set(&of(&store, "a").variables(), "k", "of a").await;
    set(&of(&store, "b").variables(), "k", "of b").await;
    set(&of(&store, "a").state("a"), "k", "of the session a").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    // Starting a session removes expired sessions.
    of(&store, "a").history("new", None).await.unwrap();
    assert_eq!(get(&of(&store, "a").state("a"), "k").await, None);
    drop(store);
    let store = place.open(HOUR);
    assert_eq!(get(&of(&store, "a").variables(), "k").await.as_deref(), Some("of a"));
    assert_eq!(get(&of(&store, "b").variables(), "k").await.as_deref(), Some("of b"));
    assert_eq!(get(&of(&store, "c").variables(), "k").await, None);
}

#[tokio::test]
async fn keys_are_listed_by_prefix_in_byte_order() {
    let place = Place::new();
    let store = place.open(HOUR);
    for state in [of(&store, "t").state("s"), of(&store, "t").variables()] {
        for key in ["b", "a%", "ab", "a_", "ä", "a\0b", "a", "aä", "B"] {
            set(&state, key, "").await;
        }
        for (prefix, expected) in [
            ("", &["B", "a", "a\0b", "a%", "a_", "ab", "aä", "b", "ä"][..]),
            ("a", &["a", "a\0b", "a%", "a_", "ab", "aä"]),
            ("a%", &["a%"]),
            ("a\0", &["a\0b"]),
            ("c", &[]),
        ] {
            assert_eq!(state.keys(prefix.to_owned()).await.unwrap(), expected, "{prefix:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn updates_are_atomic_across_connections() {
    let place = Place::new();
    // Two stores in one location behave like two processes.
    let stores: Vec<Store> = (0..2).map(|_| place.open(HOUR)).collect();
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let state = of(&stores[n % 2], "t").variables();
            tokio::spawn(async move {
                for _ in 0..25 {
                    let add = |old: Option<Vec<u8>>| {
                        let old: u32 =
                            old.map_or(0, |old| String::from_utf8(old).unwrap().parse().unwrap());
                        Ok(Some((old + 1).to_string().into_bytes()))
                    };
                    state.update("count".to_owned(), Box::new(add)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(get(&of(&stores[0], "t").variables(), "count").await.as_deref(), Some("200"));
}

#[tokio::test]
async fn a_repeated_call_has_the_result_of_the_first() {
    let place = Place::new();
    let state = of(&place.open(HOUR), "t").state("s");
    set(&state, "k", "before").await;
    let swap = async |call: &str, expected: &str, new: &str| {
        let expected = Some(expected.as_bytes().to_vec());
        let (kept, new) = (Kept::Equality(expected.clone()), Some(new.as_bytes().to_vec()));
        let swapped = Arc::new(std::sync::Mutex::new(None));
        let out = Arc::clone(&swapped);
        let change = Box::new(move |found: Option<Vec<u8>>| {
            *out.lock().unwrap() = Some(found == expected);
            Ok(if found == expected { new.clone() } else { found })
        });
        state.update_once(call.to_owned(), "k".to_owned(), kept, change).await.unwrap();
        swapped.lock().unwrap().unwrap()
    };
    assert!(swap("r/1", "before", "after").await);
    assert!(!swap("r/2", "before", "never").await);
    set(&state, "k", "before").await;
    for _ in 0..2 {
        assert!(swap("r/1", "before", "after").await, "the first call swapped the value");
        assert!(!swap("r/2", "before", "never").await, "the second call did not");
    }
    assert_eq!(get(&state, "k").await.as_deref(), Some("before"), "nothing is replaced again");
}

#[tokio::test]
async fn a_tenants_state_is_bounded() {
    let place = Place::new();
    let store = place.open(HOUR);
    let state = of(&store, "t").variables();
    let fill =
        |n: usize| state.update(format!("k{n}"), Box::new(|_| Ok(Some(vec![0; (8 << 20) - 2]))));
    for n in 0..8 {
        fill(n).await.unwrap();
    }
    assert_eq!(fill(8).await.unwrap_err().code, Code::EBUDGET);
    state.update("k0".to_owned(), Box::new(|_| Ok(None))).await.unwrap();
    fill(8).await.unwrap();
}

#[tokio::test]
async fn a_lazy_store_is_opened_at_its_first_use_and_reports_its_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let lazy = {
        let path = path.clone();
        Arc::new(LazyState::new(move || Ok(of(&Store::open(&path, HOUR)?, "t"))))
    };
    assert!(!path.exists());
    let (one, two) = tokio::join!(set(&*lazy, "k", "v"), async {
        lazy.keys(String::new()).await.unwrap().len()
    });
    assert_eq!(((), two <= 1), (one, true));
    assert_eq!(
        get(&of(&Store::open(&path, HOUR).unwrap(), "t").variables(), "k").await.as_deref(),
        Some("v")
    );

    let broken =
        LazyState::new(|| Err(StoreError::open("/nowhere/s.db".as_ref(), "no such folder")));
    let failure = broken.get("k".to_owned()).await.unwrap_err();
    assert_eq!(failure.code, Code::EREMOTE);
    assert!(failure.reason.contains("/nowhere/s.db"), "{failure}");
}

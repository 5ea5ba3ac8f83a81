//! Tests that the store conforms to the requirements for a journal.

use std::time::Duration;

use wattle_agent::{Store, Tenant};
use wattle_tests::journal::conformance;

#[tokio::test]
async fn the_store_is_a_journal() {
    conformance(&|| {
        std::sync::Arc::new(
            Store::in_memory(Duration::from_secs(60)).unwrap().tenant(&Tenant::default()),
        )
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let count = std::sync::atomic::AtomicUsize::new(0);
    conformance(&|| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::sync::Arc::new(
            Store::open(&dir.path().join(format!("{number}.db")), Duration::from_secs(60))
                .unwrap()
                .tenant(&Tenant::default()),
        )
    })
    .await;
}

#[tokio::test]
async fn the_store_in_postgres_is_a_journal() {
    if wattle_cases::postgres::url().is_none() {
        return;
    }
    conformance(&|| {
        let url = wattle_cases::postgres::url().unwrap();
        let store = Store::connect(&url, Duration::from_secs(60)).unwrap();
        std::sync::Arc::new(store.tenant(&Tenant::default()))
    })
    .await;
}

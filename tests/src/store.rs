//! Empty stores for tests.

#![allow(clippy::unwrap_used, reason = "a test cannot go on without its store")]

use std::time::Duration;

use wattle_agent::Store;
use wattle_cases::postgres;

/// Time after which a test's store drops an unused session.
const TTL: Duration = Duration::from_secs(3_600);

/// Returns an empty store: in PostgreSQL if [`postgres::SWITCH`] is set, and otherwise in memory.
///
/// # Panics
/// Panics if the switch is set and PostgreSQL is not installed.
#[must_use]
pub fn empty_store() -> Store {
    match postgres::url_if_switched() {
        Some(url) => Store::connect(&url, TTL).unwrap(),
        None => Store::in_memory(TTL).unwrap(),
    }
}

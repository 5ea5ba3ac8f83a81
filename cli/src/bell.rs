//! The terminal's bell, which calls a user who has waited for long: when a run ends or asks.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::config::Config;
use crate::output;

/// Minimum time that the user has waited before the bell rings.
const LONG: Duration = Duration::from_secs(10);

/// The time at which the user began to wait, or `None` if the user does not wait, or the setting
/// `bell` is off.
static SINCE: Mutex<Option<Instant>> = Mutex::new(None);

/// Records that the user waits for a run from now on.
pub(crate) fn begin(config: &Config) {
    *SINCE.lock() = config.bell.value.then(Instant::now);
}

/// Rings if the user has waited for long, because a run needs the user now. The wait begins again
/// with the user's reply.
pub(crate) fn call() -> Called {
    ring(SINCE.lock().take())
}

/// Rings like [`call`] at the end of a run. The user no longer waits.
pub(crate) fn end() {
    ring(SINCE.lock().take()).0 = false;
}

/// A guard for the user's reply.
pub(crate) struct Called(bool);

impl Drop for Called {
    fn drop(&mut self) {
        if self.0 {
            *SINCE.lock() = Some(Instant::now());
        }
    }
}

fn ring(since: Option<Instant>) -> Called {
    if is_due(since, Instant::now()) {
        output::bell();
    }
    Called(since.is_some())
}

fn is_due(since: Option<Instant>, now: Instant) -> bool {
    since.is_some_and(|since| now.saturating_duration_since(since) >= LONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_rings_only_for_a_user_who_has_waited_for_long() {
        let began = Instant::now();
        for (since, waited, rings) in
            [(Some(began), 10, true), (Some(began), 9, false), (None, 60, false)]
        {
            assert_eq!(is_due(since, began + Duration::from_secs(waited)), rings, "{waited} s");
        }
    }

    #[test]
    fn a_wait_begins_again_with_a_reply_and_ends_with_the_run() {
        *SINCE.lock() = Some(Instant::now());
        let called = call();
        assert!(SINCE.lock().is_none(), "the user replies");
        drop(called);
        assert!(SINCE.lock().is_some(), "the user waits again");
        end();
        assert!(SINCE.lock().is_none());
        drop(call());
        assert!(SINCE.lock().is_none(), "nobody waits");
    }
}

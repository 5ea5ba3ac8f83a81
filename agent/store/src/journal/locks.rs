//! Locks on runs and sessions.

use std::time::Duration;

use super::{Journal, Lock, SharedJournal};
use crate::error::StoreError;

/// Delay between the first two attempts to lock a session. It doubles with each attempt.
const FIRST_DELAY: Duration = Duration::from_millis(25);
/// Maximum delay between two attempts to lock a session.
const MAX_DELAY: Duration = Duration::from_millis(400);

/// Returns the name of a run's lock.
pub fn lock_name(run: &str) -> String {
    format!("run:{run}")
}

/// Locks a run, so that only one process drives it. Returns `None` if the run is already locked.
///
/// # Errors
/// If the journal cannot be written.
pub async fn lock_run(journal: &dyn Journal, run: &str) -> Result<Option<Lock>, StoreError> {
    journal.lock(&lock_name(run)).await
}

/// Locks a session, so that only one of its messages is handled at a time. Waits until the lock is
/// free.
///
/// # Errors
/// If the journal cannot be written.
pub async fn lock_session(journal: &SharedJournal, session: &str) -> Result<Lock, StoreError> {
    let mut delay = FIRST_DELAY;
    loop {
        if let Some(lock) = try_lock_session(&**journal, session).await? {
            return Ok(lock);
        }
        tokio::time::sleep(delay).await;
        delay = MAX_DELAY.min(delay * 2);
    }
}

/// Locks a session like [`lock_session`]. Returns `None` if the session is already locked.
///
/// # Errors
/// If the journal cannot be written.
pub async fn try_lock_session(
    journal: &dyn Journal,
    session: &str,
) -> Result<Option<Lock>, StoreError> {
    journal.lock(&format!("session:{session}")).await
}

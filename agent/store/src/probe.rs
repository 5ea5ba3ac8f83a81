//! The check that a store can be written, for readiness and `wattle doctor`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

use super::Store;
use super::db::{Database, Transaction};
use crate::error::{Cause, DbError, FailureKind, StoreError, kind_of};

/// Maximum time that a check waits for the database. With the time to find out why it takes longer,
/// a check fails within a second.
const LIMIT: Duration = Duration::from_millis(700);

/// A running check. All callers share its result.
type Running = Shared<BoxFuture<'static, Result<(), DbError>>>;

/// The check of a store. At most one runs at a time, since each one waits for the disk, and clients
/// without a token may ask for it.
#[derive(Default)]
pub(super) struct Probe(Mutex<Option<Running>>);

impl Probe {
    /// Returns the running check, or starts one. It continues if the caller stops waiting.
    fn join(&self, db: &Database) -> Running {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = current.as_ref().filter(|running| running.peek().is_none()) {
            return running.clone();
        }
        let task = tokio::spawn(write(db.clone()));
        let result = async {
            match task.await {
                Ok(written) => written.map_err(shared),
                Err(stopped) => Err(DbError::new(FailureKind::Other, stopped.to_string())),
            }
        };
        let running = result.boxed().shared();
        // It must make progress even if nobody waits for it, so that it is seen to have ended.
        tokio::spawn(running.clone().map(drop));
        *current = Some(running.clone());
        running
    }
}

/// Turns the cause of a failure into one that several callers can get.
fn shared(cause: Cause) -> DbError {
    match cause.downcast::<DbError>() {
        Ok(error) => *error,
        Err(cause) => DbError::new(kind_of(&cause), cause.to_string()),
    }
}

/// Changes a page of the database, and waits until the change is on the disk.
async fn write(db: Database) -> Result<(), Cause> {
    let work = |transaction: &mut Transaction<'_>| {
        transaction.execute("UPDATE store SET checks = checks + 1", &[])?;
        // A table of the content may be locked, or refuse changes, although others do not.
        transaction.execute("UPDATE tenant SET used = used WHERE name = ''", &[])?;
        Ok(())
    };
    db.probe(work).await
}

impl Store {
    /// Checks that the store is writable: that a change reaches the disk, that there is space for
    /// more, and that the files of an SQLite store are still those that were opened. Returns within
    /// a second.
    ///
    /// # Errors
    /// If the store cannot be written, or does not respond in time.
    pub async fn check(&self) -> Result<(), StoreError> {
        let checked = match tokio::time::timeout(LIMIT, self.probe.join(&self.db)).await {
            Ok(checked) => checked,
            Err(_) => Err(self.db.explain_delay(LIMIT).await),
        };
        checked.map_err(|error| self.failed("write", error.into()))
    }
}

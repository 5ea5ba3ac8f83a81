//! A session's key-value state, as the `kv` capability sees it.

use rusqlite::{TransactionBehavior, params};
use wattle_capability::kv::{Answer, Backend, Change};
use wattle_rt::{Code, Failure};

use super::{Store, now, value_of};

/// The most bytes that the state of one session may hold.
const STATE_BYTES: i64 = 64 << 20;

/// The state of one session. What is written is there for every process that opens the store.
pub struct SessionState {
    store: Store,
    session: String,
}

impl SessionState {
    pub(super) fn new(store: Store, session: String) -> Self {
        SessionState { store, session }
    }
}

/// What an entry counts for, in bytes.
fn size(key: &str, value: &[u8]) -> i64 {
    i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX)
}

fn broken(cause: super::Cause) -> Failure {
    Failure::new(Code::EREMOTE, format!("the store failed: {cause}"))
}

impl Backend for SessionState {
    fn get(&self, key: String) -> Answer<'_, Option<Vec<u8>>> {
        let session = self.session.clone();
        Box::pin(self.store.with(broken, move |connection| value_of(connection, &session, &key)))
    }

    fn update(&self, key: String, change: Change) -> Answer<'_, ()> {
        let session = self.session.clone();
        let work = self.store.with(broken, move |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let old = value_of(&transaction, &session, &key)?;
            let held = old.as_ref().map_or(0, |value| size(&key, value));
            let new = match change(old) {
                Ok(new) => new,
                Err(told) => return Ok(Err(told)),
            };
            let grown = new.as_ref().map_or(0, |value| size(&key, value)) - held;
            let bytes: i64 = transaction.query_row(
                "INSERT INTO session (id, made, used, bytes) VALUES (?1, ?2, ?2, ?3)
                 ON CONFLICT (id) DO UPDATE SET used = ?2, bytes = bytes + ?3 RETURNING bytes",
                params![session, now(), grown],
                |row| row.get(0),
            )?;
            if bytes > STATE_BYTES && grown > 0 {
                // The transaction ends here without a commit, so nothing of it stays.
                return Ok(Err(Failure::new(Code::EBUDGET, "the session's state is full (64 MiB); delete keys first")));
            }
            match new {
                Some(value) => transaction.execute(
                    "INSERT INTO state (session, key, value) VALUES (?1, ?2, ?3)
                     ON CONFLICT (session, key) DO UPDATE SET value = ?3",
                    params![session, key, value],
                )?,
                None => {
                    transaction.execute("DELETE FROM state WHERE session = ?1 AND key = ?2", params![session, key])?
                }
            };
            transaction.commit()?;
            Ok(Ok(()))
        });
        Box::pin(async { work.await? })
    }

    fn keys(&self, prefix: String) -> Answer<'_, Vec<String>> {
        let session = self.session.clone();
        Box::pin(self.store.with(broken, move |connection| {
            let mut statement = connection
                .prepare("SELECT key FROM state WHERE session = ?1 AND substr(key, 1, length(?2)) = ?2 ORDER BY key")?;
            let keys = statement.query_map(params![session, prefix], |row| row.get(0))?;
            keys.collect()
        }))
    }
}

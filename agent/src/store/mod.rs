//! The store: sessions with their key-value state, the state of tenants, and the journal of runs, in one SQLite file, shared by every process that opens it.

mod hold;
mod journal;
mod schema;
mod secret;
mod session;
mod state;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, params};
use wattle_machine::{Message, Role};

pub use journal::own_session;
pub use secret::{LateSecrets, StoredSecrets};
pub use session::{Exported, Kept, SESSION_ID, SessionLine, is_session_id};
pub use state::{LateState, State};

/// The most characters of earlier turns that a session gives to a new run; older turns are left out.
const HISTORY_CHARS: usize = 100_000;

/// The tenant of a run that names none.
pub const DEFAULT_TENANT: &str = "default";

/// Sessions with their conversation and state, and the state of tenants. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    connection: Arc<Mutex<Connection>>,
    ttl: Duration,
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what} the store{}: {cause}", .path.as_ref().map(|p| format!(" `{}`", p.display())).unwrap_or_default())]
pub struct StoreError {
    what: &'static str,
    path: Option<PathBuf>,
    cause: Cause,
}

/// Why the database did not do what was asked.
type Cause = Box<dyn std::error::Error + Send + Sync>;

impl StoreError {
    /// The store in that file cannot be opened.
    pub fn open(path: &Path, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
        StoreError { what: "open", path: Some(path.to_owned()), cause: cause.into() }
    }

    /// What the store holds is not what it should be.
    pub(crate) fn unreadable(cause: impl Into<Cause>) -> StoreError {
        StoreError { what: "read", path: None, cause: cause.into() }
    }

    pub(crate) fn new(what: &'static str) -> impl FnOnce(Cause) -> StoreError {
        move |cause| StoreError { what, path: None, cause }
    }
}

impl Store {
    /// Opens the file, making it and its folder where they are absent. Sessions that saw nothing for `ttl` are forgotten.
    ///
    /// # Errors
    /// Where the file cannot be opened, is no store, or is one of a newer version.
    pub fn open(path: &Path, ttl: Duration) -> Result<Store, StoreError> {
        let open = || -> Result<Connection, Cause> {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            Ok(Connection::open(path)?)
        };
        let ready = open().and_then(|connection| Store::ready(connection, ttl));
        ready.map_err(|cause| StoreError::open(path, cause))
    }

    /// Makes a store that is gone with the process.
    ///
    /// # Errors
    /// Where SQLite cannot give memory.
    pub fn in_memory(ttl: Duration) -> Result<Store, StoreError> {
        let ready =
            Connection::open_in_memory().map_err(Cause::from).and_then(|connection| Store::ready(connection, ttl));
        ready.map_err(StoreError::new("open"))
    }

    fn ready(mut connection: Connection, ttl: Duration) -> Result<Store, Cause> {
        schema::prepare(&mut connection)?;
        Ok(Store { connection: Arc::new(Mutex::new(connection)), ttl })
    }

    /// The earlier turns of a session, oldest first, and empty for a new one. Using it keeps the session alive.
    ///
    /// # Errors
    /// Where the file cannot be read or written.
    pub async fn history(&self, session: &str) -> Result<Vec<Message>, StoreError> {
        let (session, ttl) = (session.to_owned(), self.ttl);
        self.with(StoreError::new("read"), move |connection| {
            let transaction = connection.transaction()?;
            let now = now();
            let oldest = now.saturating_sub(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
            // A run that is not at its end needs what it had.
            transaction.execute(
                "DELETE FROM session WHERE used < ?1 AND NOT EXISTS (SELECT 1 FROM run
                 WHERE status <> 'ended' AND (run.session = session.id OR 'run/' || run.id = session.id))",
                params![oldest],
            )?;
            transaction.execute(
                "INSERT INTO session (id, made, used) VALUES (?1, ?2, ?2) ON CONFLICT (id) DO UPDATE SET used = ?2",
                params![session, now],
            )?;
            let history = read_history(&transaction, &session)?;
            transaction.commit()?;
            Ok(history)
        })
        .await
    }

    /// Adds the turns of a finished run to a session.
    ///
    /// # Errors
    /// Where the file cannot be written; then none of them was added.
    pub async fn extend(&self, session: &str, messages: Vec<Message>) -> Result<(), StoreError> {
        let session = session.to_owned();
        self.with(StoreError::new("write"), move |connection| {
            let transaction = connection.transaction()?;
            write_turns(&transaction, &session, &messages)?;
            transaction.commit()
        })
        .await
    }

    /// The state of a session, for the `kv` capability. It goes with the session.
    #[must_use]
    pub fn state(&self, session: &str) -> State {
        State::of_session(self.clone(), session.to_owned())
    }

    /// The state that all sessions of a tenant share. It stays until its keys are deleted.
    #[must_use]
    pub fn tenant(&self, name: &str) -> State {
        State::of_tenant(self.clone(), name.to_owned())
    }

    /// Tells whether the store can be written.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.with(StoreError::new("write"), |c| c.execute_batch("BEGIN IMMEDIATE; ROLLBACK")).await
    }

    /// Works on the database away from the threads that run programs.
    async fn with<T: Send + 'static, E>(
        &self,
        failed: impl FnOnce(Cause) -> E,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, E> {
        let shared = Arc::clone(&self.connection);
        let worked = tokio::task::spawn_blocking(move || {
            // A transaction that did not come to its end was rolled back.
            work(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
        });
        match worked.await {
            Ok(done) => done.map_err(|cause| failed(cause.into())),
            Err(stopped) => Err(failed(stopped.into())),
        }
    }
}

fn write_turns(connection: &Connection, session: &str, messages: &[Message]) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO session (id, made, used) VALUES (?1, ?2, ?2) ON CONFLICT (id) DO UPDATE SET used = ?2",
        params![session, now()],
    )?;
    for message in messages {
        connection.execute(
            "INSERT INTO message (session, role, content, whole) VALUES (?1, ?2, ?3, ?4)",
            params![session, role_name(message.role), message.content, whole(message)],
        )?;
    }
    Ok(())
}

fn read_history(connection: &Connection, session: &str) -> rusqlite::Result<Vec<Message>> {
    let mut statement =
        connection.prepare("SELECT role, content, whole FROM message WHERE session = ?1 ORDER BY id DESC")?;
    let mut rows = statement.query(params![session])?;
    let (mut newest_first, mut chars) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let (role, content, whole): (String, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        chars += content.len() + whole.as_ref().map_or(0, String::len);
        if chars > HISTORY_CHARS {
            break;
        }
        let whole = whole.and_then(|whole| serde_json::from_str(&whole).ok());
        if let Some(message) = whole {
            newest_first.push(message);
            continue;
        }
        newest_first.push(if role == "user" { Message::user(content) } else { Message::assistant(content) });
    }
    newest_first.reverse();
    // A history begins with what a user said, not in the middle of a turn.
    let begin = newest_first.iter().position(|m| m.role == Role::User).unwrap_or(newest_first.len());
    Ok(newest_first.split_off(begin))
}

/// A message with calls of functions, or with the result of one, as JSON.
fn whole(message: &Message) -> Option<String> {
    let is_plain = message.calls.is_empty() && message.answers.is_none();
    if is_plain { None } else { serde_json::to_string(message).ok() }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        _ => "assistant",
    }
}

/// Milliseconds since 1970, as the database keeps them.
fn now() -> i64 {
    i64::try_from(crate::now_ms()).unwrap_or(i64::MAX)
}

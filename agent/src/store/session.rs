//! Sessions as their owner handles them: listed, copied, taken to another store, removed.

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use wattle_machine::{Message, Role};

use super::{State, StoreError, TenantStore, now, role_name};

/// Maximum number of characters of earlier turns that a session gives to a new run; older turns are left out.
const HISTORY_CHARS: usize = 100_000;

/// What a session's id is made of, in words.
pub const SESSION_ID: &str = "1 to 128 letters, digits, `.`, `_`, `:` and `-`";

/// Whether a text can be a session's id: something that a header, a URL and a file can carry.
#[must_use]
pub fn is_session_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(plain)
}

/// One session in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionLine {
    /// Its id.
    pub id: String,
    /// How many messages its conversation has.
    pub messages: u64,
    /// How many bytes its state holds.
    pub bytes: u64,
    /// When it began, in milliseconds since 1970.
    pub made: u64,
    /// When it saw something last.
    pub used: u64,
}

/// A session as a whole, to be kept outside a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exported {
    /// The version of this form; 1.
    pub wattle_session: u32,
    /// The session's id.
    pub id: String,
    /// Its conversation, oldest message first.
    pub messages: Vec<Message>,
    /// Its state, sorted by key.
    pub state: Vec<(String, Kept)>,
}

/// A value of a session's state: a text as itself, anything else as its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Kept {
    /// A text.
    Text(String),
    /// Bytes that are none.
    Bytes(Vec<u8>),
}

impl From<Vec<u8>> for Kept {
    fn from(bytes: Vec<u8>) -> Kept {
        String::from_utf8(bytes).map_or_else(|error| Kept::Bytes(error.into_bytes()), Kept::Text)
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        match self {
            Kept::Text(text) => text.as_bytes(),
            Kept::Bytes(bytes) => bytes,
        }
    }
}

impl TenantStore {
    /// The earlier turns of a session, oldest first, and empty for a new one. Using it keeps the session alive.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub async fn history(&self, session: &str) -> Result<Vec<Message>, StoreError> {
        let (tenant, session, ttl) = (self.tenant.clone(), session.to_owned(), self.store.ttl);
        self.store
            .with(StoreError::new("read"), move |connection| {
                let transaction = connection.transaction()?;
                let (tenant, now) = (tenant.as_str(), now());
                let oldest = now.saturating_sub(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
                // A run that has not ended needs what it had.
                transaction.execute(
                    "DELETE FROM session WHERE tenant = ?1 AND used < ?2 AND NOT EXISTS (SELECT 1 FROM run
                     WHERE run.tenant = ?1 AND status <> 'ended'
                     AND (run.session = session.id OR 'run/' || run.id = session.id))",
                    params![tenant, oldest],
                )?;
                touch(&transaction, tenant, &session)?;
                let history = read_history(&transaction, tenant, &session)?;
                transaction.commit()?;
                Ok(history)
            })
            .await
    }

    /// Adds the turns of a finished run to a session.
    ///
    /// # Errors
    /// If the file cannot be written; then none of them was added.
    pub async fn extend(&self, session: &str, messages: Vec<Message>) -> Result<(), StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        self.store
            .with(StoreError::new("write"), move |connection| {
                let transaction = connection.transaction()?;
                write_turns(&transaction, tenant.as_str(), &session, &messages)?;
                transaction.commit()
            })
            .await
    }

    /// The state of a session, for the `kv` capability. It is dropped with the session.
    #[must_use]
    pub fn state(&self, session: &str) -> State {
        State::of_session(self.clone(), session.to_owned())
    }

    /// The sessions, the one that was used last first. States that belong to a run alone are not listed.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn sessions(&self) -> Result<Vec<SessionLine>, StoreError> {
        let tenant = self.tenant.clone();
        self.store
            .with(StoreError::new("read"), move |connection| {
                let mut statement = connection.prepare(
                    "SELECT id, (SELECT COUNT(*) FROM message WHERE tenant = ?1 AND message.session = session.id),
                     bytes, made, used
                     FROM session WHERE tenant = ?1 AND id NOT LIKE 'run/%' ORDER BY used DESC, id",
                )?;
                let number = |value: i64| u64::try_from(value).unwrap_or(0);
                let lines = statement.query_map([tenant.as_str()], |row| {
                    Ok(SessionLine {
                        id: row.get(0)?,
                        messages: number(row.get(1)?),
                        bytes: number(row.get(2)?),
                        made: number(row.get(3)?),
                        used: number(row.get(4)?),
                    })
                })?;
                lines.collect()
            })
            .await
    }

    /// A session as a whole; `None` if there is no such session.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn export(&self, session: &str) -> Result<Option<Exported>, StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        self.store
            .with(StoreError::new("read"), move |connection| {
                let transaction = connection.transaction()?;
                exported(&transaction, tenant.as_str(), &session)
            })
            .await
    }

    /// Adds a session that was exported, under that id. Returns false, and changes nothing, if the tenant has one of that id.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub async fn import(&self, id: &str, session: Exported) -> Result<bool, StoreError> {
        let (tenant, id) = (self.tenant.clone(), id.to_owned());
        self.store
            .with(StoreError::new("write"), move |connection| {
                let (transaction, tenant) = (connection.transaction()?, tenant.as_str());
                let bytes: usize = session.state.iter().map(|(key, value)| key.len() + value.as_ref().len()).sum();
                let made = transaction.execute(
                    "INSERT INTO session (tenant, id, made, used, bytes) VALUES (?1, ?2, ?3, ?3, ?4)
                     ON CONFLICT (tenant, id) DO NOTHING",
                    params![tenant, id, now(), i64::try_from(bytes).unwrap_or(i64::MAX)],
                )?;
                if made == 0 {
                    return Ok(false);
                }
                write_turns(&transaction, tenant, &id, &session.messages)?;
                for (key, value) in &session.state {
                    transaction.execute(
                        "INSERT INTO state (tenant, session, key, value) VALUES (?1, ?2, ?3, ?4)",
                        params![tenant, id, key, value.as_ref()],
                    )?;
                }
                transaction.commit()?;
                Ok(true)
            })
            .await
    }

    /// Removes a session with its state. Returns whether there was one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub async fn remove(&self, session: &str) -> Result<bool, StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        let delete = "DELETE FROM session WHERE tenant = ?1 AND id = ?2";
        let removed = self.store.with(StoreError::new("write"), move |connection| {
            connection.execute(delete, params![tenant.as_str(), session])
        });
        removed.await.map(|gone| gone > 0)
    }
}

/// Makes the session if it is new, and notes that it was used.
fn touch(connection: &Connection, tenant: &str, session: &str) -> rusqlite::Result<()> {
    connection
        .execute(
            "INSERT INTO session (tenant, id, made, used) VALUES (?1, ?2, ?3, ?3)
             ON CONFLICT (tenant, id) DO UPDATE SET used = excluded.used",
            params![tenant, session, now()],
        )
        .map(drop)
}

pub(super) fn write_turns(
    connection: &Connection,
    tenant: &str,
    session: &str,
    messages: &[Message],
) -> rusqlite::Result<()> {
    touch(connection, tenant, session)?;
    for message in messages {
        connection.execute(
            "INSERT INTO message (tenant, session, role, content, whole) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![tenant, session, role_name(message.role), message.content, whole(message)],
        )?;
    }
    Ok(())
}

fn read_history(connection: &Connection, tenant: &str, session: &str) -> rusqlite::Result<Vec<Message>> {
    let mut statement = connection
        .prepare("SELECT role, content, whole FROM message WHERE tenant = ?1 AND session = ?2 ORDER BY id DESC")?;
    let mut rows = statement.query(params![tenant, session])?;
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

fn exported(connection: &Connection, tenant: &str, session: &str) -> rusqlite::Result<Option<Exported>> {
    let of = params![tenant, session];
    let there = "SELECT 1 FROM session WHERE tenant = ?1 AND id = ?2";
    if connection.query_row(there, of, |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    let mut statement =
        connection.prepare("SELECT role, content FROM message WHERE tenant = ?1 AND session = ?2 ORDER BY id")?;
    let messages = statement.query_map(of, |row| {
        let (role, content): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(if role == role_name(Role::User) { Message::user(content) } else { Message::assistant(content) })
    })?;
    let messages = messages.collect::<rusqlite::Result<_>>()?;
    let mut statement =
        connection.prepare("SELECT key, value FROM state WHERE tenant = ?1 AND session = ?2 ORDER BY key")?;
    let state = statement.query_map(of, |row| Ok((row.get(0)?, Kept::from(row.get::<_, Vec<u8>>(1)?))))?;
    let state = state.collect::<rusqlite::Result<_>>()?;
    Ok(Some(Exported { wattle_session: 1, id: session.to_owned(), messages, state }))
}

//! Operations on whole sessions: list, export, import, fork, remove; and on their conversations.

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use wattle_machine::{Message, Role};

use super::seal::{RecordSeal, open_text, seal_text};
use super::{State, TenantStore, now, role_name};
use crate::error::{Cause, StoreError};

/// Maximum size of the history that a new run gets, in bytes. Older turns are left out.
const HISTORY_BYTES: usize = 100_000;

/// The allowed form of a session's id, in words.
pub const SESSION_ID: &str = "1 to 128 letters, digits, `.`, `_`, `:` and `-`";

/// Returns true if the text is a valid session id, which headers, URLs and file names can carry.
#[must_use]
pub fn is_session_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(plain)
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionLine {
    /// The session's id.
    pub id: String,
    /// Number of messages in the conversation.
    pub messages: u64,
    /// Size of the session's state, in bytes.
    pub bytes: u64,
    /// Creation time, in milliseconds since 1970.
    pub made: u64,
    /// Time of the last use.
    pub used: u64,
}

/// A session with all its data, for storage outside a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedSession {
    /// The version of the format, which is 1.
    pub wattle_session: u32,
    /// The session's id.
    pub id: String,
    /// The conversation, oldest message first.
    pub messages: Vec<Message>,
    /// The state, sorted by key.
    pub state: Vec<(String, StateValue)>,
}

/// A value of a session's state: as text if it is UTF-8, otherwise as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StateValue {
    /// UTF-8 text.
    Text(String),
    /// Any other bytes.
    Bytes(Vec<u8>),
}

impl From<Vec<u8>> for StateValue {
    fn from(bytes: Vec<u8>) -> StateValue {
        String::from_utf8(bytes)
            .map_or_else(|error| StateValue::Bytes(error.into_bytes()), StateValue::Text)
    }
}

impl AsRef<[u8]> for StateValue {
    fn as_ref(&self) -> &[u8] {
        match self {
            StateValue::Text(text) => text.as_bytes(),
            StateValue::Bytes(bytes) => bytes,
        }
    }
}

impl TenantStore {
    /// Returns the earlier turns of a session, oldest first; none for a new session. The session
    /// counts as used.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub async fn history(&self, session: &str) -> Result<Vec<Message>, StoreError> {
        let (tenant, session, ttl) = (self.tenant.clone(), session.to_owned(), self.store.ttl);
        let seal = self.seal.clone();
        self.store
            .with(StoreError::new("read"), move |connection| {
                let transaction = connection.transaction()?;
                let (tenant, now) = (tenant.as_str(), now());
                let oldest = now.saturating_sub(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
                // A run that has not ended needs its session.
                transaction.execute(
                    "DELETE FROM session WHERE tenant = ?1 AND used < ?2 AND NOT EXISTS (SELECT 1 \
                     FROM run
                     WHERE run.tenant = ?1 AND status <> 'ended'
                     AND (run.session = session.id OR 'run/' || run.id = session.id))",
                    params![tenant, oldest],
                )?;
                touch(&transaction, tenant, &session)?;
                let history = read_history(&transaction, (tenant, seal.as_deref()), &session)?;
                transaction.commit()?;
                Ok(history)
            })
            .await
    }

    /// Adds the turns of a finished run to a session.
    ///
    /// # Errors
    /// The file cannot be written. In that case no turn was added.
    pub async fn extend(&self, session: &str, messages: Vec<Message>) -> Result<(), StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        let seal = self.seal.clone();
        self.store
            .with(StoreError::new("write"), move |connection| {
                let transaction = connection.transaction()?;
                write_turns(&transaction, (tenant.as_str(), seal.as_deref()), &session, &messages)?;
                transaction.commit()
            })
            .await
    }

    /// Returns the state of a session, for the `kv` capability. It is dropped with the session.
    #[must_use]
    pub fn state(&self, session: &str) -> State {
        State::of_session(self.clone(), session.to_owned())
    }

    /// Returns the sessions, the last used first. The own states of runs are not listed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn sessions(&self) -> Result<Vec<SessionLine>, StoreError> {
        let tenant = self.tenant.clone();
        self.store
            .with(StoreError::new("read"), move |connection| {
                let mut statement = connection.prepare(
                    "SELECT id, (SELECT COUNT(*) FROM message WHERE tenant = ?1 AND \
                     message.session = session.id),
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

    /// Returns true if there is such a session.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn has_session(&self, session: &str) -> Result<bool, StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        self.store
            .with(StoreError::new("read"), move |connection| {
                let query = "SELECT 1 FROM session WHERE tenant = ?1 AND id = ?2";
                let found =
                    connection.query_row(query, params![tenant.as_str(), session], |_| Ok(()));
                Ok(found.optional()?.is_some())
            })
            .await
    }

    /// Returns the first message of a session's user.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn first_message(&self, session: &str) -> Result<Option<String>, StoreError> {
        let (tenant, session, seal) = (self.tenant.clone(), session.to_owned(), self.seal.clone());
        self.store
            .with(StoreError::new("read"), move |connection| {
                let query = "SELECT content FROM message WHERE tenant = ?1 AND session = ?2 AND \
                             role = 'user' ORDER BY id LIMIT 1";
                let content: Option<String> = connection
                    .query_row(query, params![tenant.as_str(), session], |row| row.get(0))
                    .optional()?;
                content.map(|text| open_text(seal.as_deref(), text).map_err(broken)).transpose()
            })
            .await
    }

    /// Returns a whole session, or `None` if there is no such session.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn export(&self, session: &str) -> Result<Option<ExportedSession>, StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        let seal = self.seal.clone();
        self.store
            .with(StoreError::new("read"), move |connection| {
                let transaction = connection.transaction()?;
                export(&transaction, (tenant.as_str(), seal.as_deref()), &session)
            })
            .await
    }

    /// Returns the whole conversation of a session, oldest message first. Unlike
    /// [`history`](TenantStore::history), it is complete, and the session does not count as used.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn conversation(&self, session: &str) -> Result<Vec<Message>, StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        let seal = self.seal.clone();
        self.store
            .with(StoreError::new("read"), move |connection| {
                read_messages(connection, (tenant.as_str(), seal.as_deref()), &session, usize::MAX)
            })
            .await
    }

    /// Replaces the conversation of a session. Its state stays.
    ///
    /// # Errors
    /// The file cannot be written. In that case nothing was replaced.
    pub async fn replace_conversation(
        &self,
        session: &str,
        messages: Vec<Message>,
    ) -> Result<(), StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        let seal = self.seal.clone();
        self.store
            .with(StoreError::new("write"), move |connection| {
                let (transaction, tenant) = (connection.transaction()?, tenant.as_str());
                let delete = "DELETE FROM message WHERE tenant = ?1 AND session = ?2";
                transaction.execute(delete, params![tenant, session])?;
                write_turns(&transaction, (tenant, seal.as_deref()), &session, &messages)?;
                transaction.commit()
            })
            .await
    }

    /// Creates the session `id` with these messages and the state of `session`. Returns false
    /// without a change if the tenant has a session with this id.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn fork_session(
        &self,
        session: &str,
        id: &str,
        messages: Vec<Message>,
    ) -> Result<bool, StoreError> {
        let tenant = self.tenant.clone();
        let (session, id, seal) = (session.to_owned(), id.to_owned(), self.seal.clone());
        self.store
            .with(StoreError::new("write"), move |connection| {
                let (transaction, tenant) = (connection.transaction()?, tenant.as_str());
                let created = transaction.execute(
                    "INSERT INTO session (tenant, id, made, used, bytes)
                     SELECT ?1, ?2, ?4, ?4, COALESCE((SELECT bytes FROM session WHERE tenant = ?1 \
                     AND id = ?3), 0) WHERE true
                     ON CONFLICT (tenant, id) DO NOTHING",
                    params![tenant, id, session, now()],
                )?;
                if created == 0 {
                    return Ok(false);
                }
                write_turns(&transaction, (tenant, seal.as_deref()), &id, &messages)?;
                transaction.execute(
                    "INSERT INTO state (tenant, session, key, value)
                     SELECT tenant, ?2, key, value FROM state WHERE tenant = ?1 AND session = ?3",
                    params![tenant, id, session],
                )?;
                transaction.commit()?;
                Ok(true)
            })
            .await
    }

    /// Adds an exported session under `id`. Returns false without a change if the tenant has a
    /// session with this id.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn import(&self, id: &str, session: ExportedSession) -> Result<bool, StoreError> {
        let (tenant, id) = (self.tenant.clone(), id.to_owned());
        let seal = self.seal.clone();
        self.store
            .with(StoreError::new("write"), move |connection| {
                let (transaction, tenant) = (connection.transaction()?, tenant.as_str());
                let bytes: usize =
                    session.state.iter().map(|(key, value)| key.len() + value.as_ref().len()).sum();
                let created = transaction.execute(
                    "INSERT INTO session (tenant, id, made, used, bytes) VALUES (?1, ?2, ?3, ?3, \
                     ?4)
                     ON CONFLICT (tenant, id) DO NOTHING",
                    params![tenant, id, now(), i64::try_from(bytes).unwrap_or(i64::MAX)],
                )?;
                if created == 0 {
                    return Ok(false);
                }
                write_turns(&transaction, (tenant, seal.as_deref()), &id, &session.messages)?;
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

    /// Removes a session with its state. Returns false if there is no such session.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn remove(&self, session: &str) -> Result<bool, StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        let delete = "DELETE FROM session WHERE tenant = ?1 AND id = ?2";
        let removed = self.store.with(StoreError::new("write"), move |connection| {
            connection.execute(delete, params![tenant.as_str(), session])
        });
        removed.await.map(|rows| rows > 0)
    }
}

/// Turns a failure to encrypt or decrypt a record into a failure of the database.
pub(super) fn broken(cause: Cause) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(cause)
}

/// Creates the session if it is new, and records its use.
pub(super) fn touch(connection: &Connection, tenant: &str, session: &str) -> rusqlite::Result<()> {
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
    (tenant, seal): (&str, Option<&RecordSeal>),
    session: &str,
    messages: &[Message],
) -> rusqlite::Result<()> {
    touch(connection, tenant, session)?;
    for message in messages {
        let content = seal_text(seal, &message.content).map_err(broken)?;
        let whole = whole(message).map(|text| seal_text(seal, text)).transpose().map_err(broken)?;
        connection.execute(
            "INSERT INTO message (tenant, session, role, content, whole) VALUES (?1, ?2, ?3, ?4, \
             ?5)",
            params![tenant, session, role_name(message.role), content, whole],
        )?;
    }
    Ok(())
}

fn read_history(
    connection: &Connection,
    of: (&str, Option<&RecordSeal>),
    session: &str,
) -> rusqlite::Result<Vec<Message>> {
    let mut messages = read_messages(connection, of, session, HISTORY_BYTES)?;
    // A history begins with a user's message, not in the middle of a turn.
    let begin = messages.iter().position(|m| m.role == Role::User).unwrap_or(messages.len());
    Ok(messages.split_off(begin))
}

/// Reads the last messages of a session, up to `most` bytes, oldest first.
fn read_messages(
    connection: &Connection,
    (tenant, seal): (&str, Option<&RecordSeal>),
    session: &str,
    most: usize,
) -> rusqlite::Result<Vec<Message>> {
    let mut statement = connection.prepare(
        "SELECT role, content, whole FROM message WHERE tenant = ?1 AND session = ?2 ORDER BY id \
         DESC",
    )?;
    let mut rows = statement.query(params![tenant, session])?;
    let (mut newest_first, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let (role, content, whole): (String, String, Option<String>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let content = open_text(seal, content).map_err(broken)?;
        let whole = whole.map(|text| open_text(seal, text)).transpose().map_err(broken)?;
        bytes += content.len() + whole.as_ref().map_or(0, String::len);
        if bytes > most {
            break;
        }
        let whole = whole.and_then(|whole| serde_json::from_str(&whole).ok());
        if let Some(message) = whole {
            newest_first.push(message);
            continue;
        }
        newest_first.push(if role == "user" {
            Message::user(content)
        } else {
            Message::assistant(content)
        });
    }
    newest_first.reverse();
    Ok(newest_first)
}

/// Serializes a message that calls functions, is the result of a call, or was added by the host.
/// Other messages need only their role and text.
fn whole(message: &Message) -> Option<String> {
    let is_plain = message.calls.is_empty() && message.answers.is_none() && !message.is_added();
    if is_plain { None } else { serde_json::to_string(message).ok() }
}

fn export(
    connection: &Connection,
    (tenant, seal): (&str, Option<&RecordSeal>),
    session: &str,
) -> rusqlite::Result<Option<ExportedSession>> {
    let of = params![tenant, session];
    let exists = "SELECT 1 FROM session WHERE tenant = ?1 AND id = ?2";
    if connection.query_row(exists, of, |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    let mut statement = connection.prepare(
        "SELECT role, content, whole FROM message WHERE tenant = ?1 AND session = ?2 ORDER BY id",
    )?;
    let messages = statement.query_map(of, |row| {
        let (role, content): (String, String) = (row.get(0)?, row.get(1)?);
        let content = open_text(seal, content).map_err(broken)?;
        let whole: Option<String> = row.get(2)?;
        let whole = whole.map(|whole| open_text(seal, whole).map_err(broken)).transpose()?;
        let whole: Option<Message> = whole.and_then(|whole| serde_json::from_str(&whole).ok());
        // A run after an import recalls for itself, and its traits contribute anew.
        let is_added = whole.is_some_and(|whole| whole.is_added());
        Ok((!is_added).then(|| match role == role_name(Role::User) {
            true => Message::user(content),
            false => Message::assistant(content),
        }))
    })?;
    let messages = messages.filter_map(Result::transpose).collect::<rusqlite::Result<_>>()?;
    let mut statement = connection
        .prepare("SELECT key, value FROM state WHERE tenant = ?1 AND session = ?2 ORDER BY key")?;
    let state = statement
        .query_map(of, |row| Ok((row.get(0)?, StateValue::from(row.get::<_, Vec<u8>>(1)?))))?;
    let state = state.collect::<rusqlite::Result<_>>()?;
    Ok(Some(ExportedSession { wattle_session: 1, id: session.to_owned(), messages, state }))
}

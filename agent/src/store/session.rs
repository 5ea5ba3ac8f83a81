//! Sessions as their owner handles them: listed, copied, taken to another store, removed.

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use wattle_machine::{Message, Role};

use super::{Store, StoreError, now, role_name, write_turns};

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

impl Store {
    /// The sessions, the one that was used last first. States that belong to a run alone are none.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn sessions(&self) -> Result<Vec<SessionLine>, StoreError> {
        self.with(StoreError::new("read"), |connection| {
            let mut statement = connection.prepare(
                "SELECT id, (SELECT COUNT(*) FROM message WHERE message.session = session.id), bytes, made, used
                 FROM session WHERE id NOT LIKE 'run/%' ORDER BY used DESC, id",
            )?;
            let number = |value: i64| u64::try_from(value).unwrap_or(0);
            let lines = statement.query_map([], |row| {
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

    /// A session as a whole; `None` where there is no such session.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn export(&self, session: &str) -> Result<Option<Exported>, StoreError> {
        let session = session.to_owned();
        self.with(StoreError::new("read"), move |connection| {
            let transaction = connection.transaction()?;
            exported(&transaction, &session)
        })
        .await
    }

    /// Takes in a session that was exported, under that id. Gives false, and changes nothing, where there is one of that id.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub async fn import(&self, id: &str, session: Exported) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.with(StoreError::new("write"), move |connection| {
            let transaction = connection.transaction()?;
            let bytes: usize = session.state.iter().map(|(key, value)| key.len() + value.as_ref().len()).sum();
            let made = transaction.execute(
                "INSERT INTO session (id, made, used, bytes) VALUES (?1, ?2, ?2, ?3) ON CONFLICT (id) DO NOTHING",
                params![id, now(), i64::try_from(bytes).unwrap_or(i64::MAX)],
            )?;
            if made == 0 {
                return Ok(false);
            }
            write_turns(&transaction, &id, &session.messages)?;
            for (key, value) in &session.state {
                transaction.execute(
                    "INSERT INTO state (session, key, value) VALUES (?1, ?2, ?3)",
                    params![id, key, value.as_ref()],
                )?;
            }
            transaction.commit()?;
            Ok(true)
        })
        .await
    }

    /// Removes a session with its state, and tells whether there was one.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub async fn remove(&self, session: &str) -> Result<bool, StoreError> {
        let session = session.to_owned();
        self.with(StoreError::new("write"), move |connection| {
            connection.execute("DELETE FROM session WHERE id = ?1", params![session]).map(|gone| gone > 0)
        })
        .await
    }
}

fn exported(connection: &Connection, session: &str) -> rusqlite::Result<Option<Exported>> {
    let there: Option<i64> =
        connection.query_row("SELECT 1 FROM session WHERE id = ?1", params![session], |row| row.get(0)).optional()?;
    if there.is_none() {
        return Ok(None);
    }
    let mut statement = connection.prepare("SELECT role, content FROM message WHERE session = ?1 ORDER BY id")?;
    let messages = statement.query_map(params![session], |row| {
        let (role, content): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(if role == role_name(Role::User) { Message::user(content) } else { Message::assistant(content) })
    })?;
    let messages = messages.collect::<rusqlite::Result<_>>()?;
    let mut statement = connection.prepare("SELECT key, value FROM state WHERE session = ?1 ORDER BY key")?;
    let state =
        statement.query_map(params![session], |row| Ok((row.get(0)?, Kept::from(row.get::<_, Vec<u8>>(1)?))))?;
    let state = state.collect::<rusqlite::Result<_>>()?;
    Ok(Some(Exported { wattle_session: 1, id: session.to_owned(), messages, state }))
}

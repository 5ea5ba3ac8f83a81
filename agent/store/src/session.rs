//! Operations on whole sessions (list, export, import, fork, remove) and on their conversations.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wattle_machine::{Message, Role};

use super::db::{Access, Row, Transaction, Value, params};
use super::keep::remove_tree;
use super::keep::{UNUSED, cutoff};
use super::rewind::{copy_state, rewind_copy};
use super::rows::millis;
use super::seal::{SEALED_PREFIX, open_text, seal_text};
use super::{Owner, State, TenantStore};
use crate::error::{Cause, DbError, StoreError};

/// Maximum size of the history that a new run receives, in bytes, if its model's context window is
/// unknown. Older turns are left out.
const HISTORY_BYTES: usize = 100_000;

/// Maximum size of the history that a new run receives, in bytes.
const MAX_HISTORY_BYTES: usize = 300_000;

/// The size of a session's state and files, for a query in which ?1 is the tenant. The row of an
/// object has the size of its text.
macro_rules! bytes_of {
    ($session:literal) => {
        concat!(
            $session,
            ".bytes + (SELECT CAST(COALESCE(SUM(COALESCE(blob.bytes, OCTET_LENGTH(session_file.delta))), 0)
                AS BIGINT) FROM session_file LEFT JOIN blob ON blob.object = session_file.object
                WHERE session_file.tenant = ?1 AND session_file.session = ",
            $session,
            ".id)"
        )
    };
}

/// A description of valid session ids, for error messages.
pub const SESSION_ID: &str = "1 to 128 letters, digits, `.`, `_`, `:` and `-`, except `.` and `..`";

/// Returns true if a string is a valid session id, which can be used in headers, URLs and file
/// names. Names of integrations and tokens follow the same rule. `.` and `..` are invalid, because
/// clients resolve them as parts of a path.
#[must_use]
pub fn is_session_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=128).contains(&text.len()) && text.bytes().all(plain) && !matches!(text, "." | "..")
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionLine {
    /// The session's id.
    pub id: String,
    /// Number of messages in the conversation.
    pub messages: u64,
    /// Size of the session's state, and of its files as they are stored, in bytes.
    pub bytes: u64,
    /// Creation time, in milliseconds since 1970.
    pub created: u64,
    /// Time of the last use, in milliseconds since 1970.
    pub used: u64,
}

/// A session's conversation and state, for storage outside a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportedSession {
    /// The version of the export format, which is 1.
    pub wattle_session: u32,
    /// The session's id.
    pub id: String,
    /// The conversation, oldest message first.
    pub messages: Vec<Message>,
    /// The state, sorted by key.
    pub state: Vec<(String, StateValue)>,
}

/// A value of a session's state: a string if it is UTF-8, otherwise bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StateValue {
    /// A UTF-8 string.
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

/// Maximum time for which the database computes the end of a session, in milliseconds.
const MAX_KEPT: i64 = i64::MAX / 4;
/// The latest messages of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Number of older messages of the session.
    pub left_out: u64,
}

impl TenantStore {
    /// Returns the latest messages of a session. `window` is the size of the model's context window,
    /// in tokens: the messages have at most three bytes per token in total, and at most 300,000
    /// bytes, or 100,000 if the window is unknown. Removes the tenant's expired sessions. Creates the session if it does not exist. Records a
    /// use of the session.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn history(&self, session: &str, window: Option<u64>) -> Result<History, StoreError> {
        let (session, ttl) = (session.to_owned(), self.store.ttl);
        let clock = Arc::clone(&self.store.clock);
        self.write(move |transaction, (tenant, seal)| {
            if let Some(oldest) = cutoff(transaction.now(), Some(ttl))
                && clock.is_trusted(transaction)?
            {
                let delete = format!("DELETE FROM session WHERE tenant = ?2 AND {UNUSED}");
                transaction.execute(&delete, params![oldest, tenant])?;
                // The run that asks has been recorded already. If it began when the session had
                // expired, it does not keep the session.
                let expired = "DELETE FROM session WHERE tenant = ?2 AND id = ?3 AND used < ?1
                     AND NOT EXISTS (SELECT 1 FROM run WHERE run.tenant = session.tenant
                         AND status <> 'ended' AND run.session = session.id
                         AND run.created <= session.used + ?4)
                     AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.tenant = session.tenant
                         AND queue.session = session.id AND queue.created <= session.used + ?4)";
                let kept = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX).min(MAX_KEPT);
                transaction.execute(expired, params![oldest, tenant, session, kept])?;
            }
            touch(transaction, tenant, &session)?;
            let most = window.and_then(|tokens| usize::try_from(tokens.saturating_mul(3)).ok());
            let most = most.map_or(HISTORY_BYTES, |most| most.min(MAX_HISTORY_BYTES));
            read_history(transaction, (tenant, seal), &session, most)
        })
        .await
    }

    /// Adds the messages of a finished run to a session.
    ///
    /// # Errors
    /// If the store cannot be written. In that case, no message is added.
    pub async fn extend(&self, session: &str, messages: Vec<Message>) -> Result<(), StoreError> {
        let session = session.to_owned();
        let add = move |transaction: &mut Transaction<'_>, of: Owner<'_>| {
            write_turns(transaction, of, &session, &messages)
        };
        self.grow(Access::Write, add).await
    }

    /// Returns the state of a session, for the `kv` capability. The state is removed with the
    /// session.
    #[must_use]
    pub fn state(&self, session: &str) -> State {
        State::of_session(self.clone(), session.to_owned())
    }

    /// Returns the sessions, most recently used first. Sessions that contain only the state of one
    /// run are omitted.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn sessions(&self) -> Result<Vec<SessionLine>, StoreError> {
        self.read(|transaction, (tenant, _)| {
            let query = concat!(
                "SELECT id, (SELECT COUNT(*) FROM message WHERE tenant = ?1
                 AND message.session = session.id), ",
                bytes_of!("session"),
                ", created, used FROM session WHERE tenant = ?1 AND id NOT LIKE 'run/%'
                 ORDER BY used DESC, id"
            );
            transaction.query(query, params![tenant], session_line)
        })
        .await
    }

    /// Returns at most `limit` sessions, most recently used first, each with the beginning of its
    /// first user message. `after` is the last session of the previous page: the time of its last
    /// use and its id. Sessions that contain only the state of one run are omitted.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn session_page(
        &self,
        after: Option<(u64, &str)>,
        limit: u32,
    ) -> Result<Vec<(SessionLine, String)>, StoreError> {
        let (used, id) = after.map_or((i64::MAX, ""), |(used, id)| (millis(used), id));
        let id = id.to_owned();
        self.read(move |transaction, (tenant, seal)| {
            let page = transaction.query(PAGE, params![tenant, used, id, limit], |row| {
                let beginning = match row.values().get(5) {
                    Some(Value::Text(text)) => text.clone(),
                    Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
                    _ => String::new(),
                };
                Ok((session_line(row)?, beginning))
            })?;
            let whole = |(line, beginning): (SessionLine, String)| -> Result<_, Cause> {
                if !beginning.starts_with(SEALED_PREFIX) {
                    return Ok((line, beginning));
                }
                let first = first_message(transaction, (tenant, seal), &line.id)?;
                Ok((line, first.unwrap_or_default()))
            };
            page.into_iter().map(whole).collect()
        })
        .await
    }

    /// Returns true if the tenant has a session with this id.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn has_session(&self, session: &str) -> Result<bool, StoreError> {
        let session = session.to_owned();
        self.read(move |transaction, (tenant, _)| exists(transaction, tenant, &session)).await
    }

    /// Returns the identity of the session in which a run began, or of the current session with this
    /// id if there is no such run. A session that is created after the removal of another one with
    /// the same id has another identity. Returns `None` if there is no such session either.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn session_instance(
        &self,
        run: &str,
        session: &str,
    ) -> Result<Option<String>, StoreError> {
        let (run, session) = (run.to_owned(), session.to_owned());
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT COALESCE(
                             (SELECT instance FROM run WHERE tenant = ?1 AND id = ?2),
                             (SELECT instance FROM session WHERE tenant = ?1 AND id = ?3))";
            transaction.one(query, params![tenant, run, session])?.get(0)
        })
        .await
    }

    /// Returns a session's conversation and state, or `None` if there is no such session.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn export(&self, session: &str) -> Result<Option<ExportedSession>, StoreError> {
        let session = session.to_owned();
        self.read(move |transaction, of| export(transaction, of, &session)).await
    }

    /// Returns the whole conversation of a session, oldest message first. Unlike
    /// [`history`](TenantStore::history), this method returns all messages and does not record a
    /// use of the session.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn conversation(&self, session: &str) -> Result<Vec<Message>, StoreError> {
        let session = session.to_owned();
        self.read(move |transaction, of| read_messages(transaction, of, &session, usize::MAX)).await
    }

    /// Replaces the conversation of a session. The session's state does not change.
    ///
    /// # Errors
    /// If the store cannot be written. In that case, nothing is replaced.
    pub async fn replace_conversation(
        &self,
        session: &str,
        messages: Vec<Message>,
    ) -> Result<(), StoreError> {
        let session = session.to_owned();
        self.write(move |transaction, (tenant, seal)| {
            let delete = "DELETE FROM message WHERE tenant = ?1 AND session = ?2";
            transaction.execute(delete, params![tenant, session])?;
            write_turns(transaction, (tenant, seal), &session, &messages)
        })
        .await
    }

    /// Replaces the first messages of a conversation, which are `old`, by `new`. The later ones stay.
    /// If the conversation no longer begins with `old`, changes nothing and returns false.
    ///
    /// # Errors
    /// If the store cannot be written. In that case, nothing is replaced.
    pub async fn replace_first_messages(
        &self,
        session: &str,
        old: Vec<Message>,
        new: Vec<Message>,
    ) -> Result<bool, StoreError> {
        let session = session.to_owned();
        self.write(move |transaction, (tenant, seal)| {
            let current = read_messages(transaction, (tenant, seal), &session, usize::MAX)?;
            let Some(later) = current.strip_prefix(old.as_slice()) else { return Ok(false) };
            let delete = "DELETE FROM message WHERE tenant = ?1 AND session = ?2";
            transaction.execute(delete, params![tenant, session])?;
            write_turns(transaction, (tenant, seal), &session, &new)?;
            write_turns(transaction, (tenant, seal), &session, later)?;
            Ok(true)
        })
        .await
    }

    /// Creates the session `id` with the given messages and copies of the state and the files of
    /// `session`. If the tenant already has a session with this id, changes nothing and returns
    /// false.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn fork_session(
        &self,
        session: &str,
        id: &str,
        messages: Vec<Message>,
    ) -> Result<bool, StoreError> {
        let (session, id) = (session.to_owned(), id.to_owned());
        self.grow(Access::Write, move |transaction, (tenant, seal)| {
            if !copy_state(transaction, tenant, &session, &id)? {
                return Ok(false);
            }
            write_turns(transaction, (tenant, seal), &id, &messages)?;
            transaction.execute(
                "INSERT INTO session_file (tenant, session, delta, object)
                 SELECT tenant, CAST(?2 AS TEXT), delta, object FROM session_file
                 WHERE tenant = ?1 AND session = ?3 ORDER BY number",
                params![tenant, id, session],
            )?;
            Ok(true)
        })
        .await
    }

    /// Creates a copy of a session like [`fork_session`](TenantStore::fork_session), with the state
    /// and the files that the session had at a turn of one of its runs. If the tenant already has a
    /// session with this id, changes nothing and returns `None`. Returns false if the state at that
    /// turn is not known any more, so that the current one was copied.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn fork_session_at(
        &self,
        session: &str,
        id: &str,
        messages: Vec<Message>,
        (run, turn): (&str, u32),
    ) -> Result<Option<bool>, StoreError> {
        let (session, id, run) = (session.to_owned(), id.to_owned(), run.to_owned());
        self.grow(Access::Write, move |transaction, (tenant, seal)| {
            if !copy_state(transaction, tenant, &session, &id)? {
                return Ok(None);
            }
            write_turns(transaction, (tenant, seal), &id, &messages)?;
            rewind_copy(transaction, (tenant, seal), (&session, &id), (&run, turn)).map(Some)
        })
        .await
    }

    /// Adds an exported session under `id`. If the tenant already has a session with this id,
    /// changes nothing and returns false.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn import(&self, id: &str, session: ExportedSession) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.grow(Access::Write, move |transaction, (tenant, seal)| {
            let bytes: usize =
                session.state.iter().map(|(key, value)| key.len() + value.as_ref().len()).sum();
            let created = transaction.execute(
                "INSERT INTO session (tenant, id, created, used, bytes) VALUES (?1, ?2, ?3, ?3, ?4)
                 ON CONFLICT (tenant, id) DO NOTHING",
                params![tenant, id, transaction.now(), i64::try_from(bytes).unwrap_or(i64::MAX)],
            )?;
            if created == 0 {
                return Ok(false);
            }
            write_turns(transaction, (tenant, seal), &id, &session.messages)?;
            for (key, value) in &session.state {
                transaction.execute(
                    "INSERT INTO state (tenant, session, key, value) VALUES (?1, ?2, ?3, ?4)",
                    params![tenant, id, key, value.as_ref()],
                )?;
            }
            Ok(true)
        })
        .await
    }

    /// Removes a session and its data, and its runs that have ended, with their child runs, events
    /// and artifacts. Returns false if there is no such session.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn remove(&self, session: &str) -> Result<bool, StoreError> {
        let session = session.to_owned();
        self.write(move |transaction, (tenant, _)| {
            let roots = "SELECT id FROM run WHERE tenant = ?1 AND session = ?2 AND root IS NULL";
            let roots =
                transaction.query(roots, params![tenant, session], |row| row.get::<String>(0))?;
            for root in roots {
                remove_tree(transaction, (tenant, &root), i64::MAX, u64::MAX)?;
            }
            let delete = "DELETE FROM session WHERE tenant = ?1 AND id = ?2";
            Ok(transaction.execute(delete, params![tenant, session])? > 0)
        })
        .await
    }

    /// Returns the ids of a session's root runs that have not ended, including queued ones.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn unended_runs(&self, session: &str) -> Result<Vec<String>, StoreError> {
        let session = session.to_owned();
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT id FROM queue WHERE tenant = ?1 AND session = ?2
                         UNION SELECT id FROM run WHERE tenant = ?1 AND session = ?2
                         AND root IS NULL AND status <> 'ended'";
            transaction.query(query, params![tenant, session], |row| row.get::<String>(0))
        })
        .await
    }
}

/// The query for a page of sessions. ?2 and ?3 are the time and the id of the last session of the
/// previous page, and ?4 is the maximum number of sessions. The last column is the beginning of the
/// first user message, which may be encrypted, and may end within a character.
const PAGE: &str = concat!(
    "SELECT page.id, (
        SELECT COUNT(*) FROM message WHERE message.tenant = ?1 AND message.session = page.id), ",
    bytes_of!("page"),
    ", page.created, page.used, (
        SELECT SUBSTR(content, 1, 4096) FROM message WHERE message.tenant = ?1
        AND message.session = page.id AND message.role = 'user' ORDER BY message.id LIMIT 1)
    FROM (SELECT id, bytes, created, used FROM session WHERE tenant = ?1 AND id NOT LIKE 'run/%'
          AND (used < ?2 OR used = ?2 AND id > ?3) ORDER BY used DESC, id LIMIT ?4) AS page
    ORDER BY page.used DESC, page.id"
);

fn session_line(row: &Row) -> Result<SessionLine, Cause> {
    let number = |at: usize| row.get::<i64>(at).map(|value| u64::try_from(value).unwrap_or(0));
    Ok(SessionLine {
        id: row.get(0)?,
        messages: number(1)?,
        bytes: number(2)?,
        created: number(3)?,
        used: number(4)?,
    })
}

/// Returns the text of a session's first user message, or `None` if there is none.
fn first_message(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    session: &str,
) -> Result<Option<String>, Cause> {
    let query = "SELECT content FROM message WHERE tenant = ?1 AND session = ?2
                 AND role = 'user' ORDER BY id LIMIT 1";
    let found = transaction.first(query, params![tenant, session])?;
    found.map(|row| open_text(seal, row.get(0)?)).transpose()
}

fn exists(transaction: &mut Transaction<'_>, tenant: &str, session: &str) -> Result<bool, Cause> {
    let query = "SELECT 1 FROM session WHERE tenant = ?1 AND id = ?2";
    Ok(transaction.first(query, params![tenant, session])?.is_some())
}

/// Creates the session if it does not exist. Records a use of the session.
pub(super) fn touch(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    session: &str,
) -> Result<(), DbError> {
    transaction
        .execute(
            "INSERT INTO session (tenant, id, created, used) VALUES (?1, ?2, ?3, ?3)
             ON CONFLICT (tenant, id) DO UPDATE SET used = excluded.used",
            params![tenant, session, transaction.now()],
        )
        .map(drop)
}

pub(super) fn write_turns(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    session: &str,
    messages: &[Message],
) -> Result<(), Cause> {
    touch(transaction, tenant, session)?;
    for message in messages {
        let content = seal_text(seal, message.content.as_str())?;
        let whole = whole(message).map(|text| seal_text(seal, text)).transpose()?;
        transaction.execute(
            "INSERT INTO message (tenant, session, role, content, whole) VALUES (?1, ?2, ?3, ?4, \
             ?5)",
            params![tenant, session, role_name(message.role), content, whole],
        )?;
    }
    Ok(())
}

fn read_history(
    transaction: &mut Transaction<'_>,
    of: Owner<'_>,
    session: &str,
    most: usize,
) -> Result<History, Cause> {
    let mut messages = read_messages(transaction, of, session, most)?;
    // A history begins with a user message, not in the middle of a turn.
    let begin = messages.iter().position(|m| m.role == Role::User).unwrap_or(messages.len());
    let messages = messages.split_off(begin);
    let count = "SELECT COUNT(*) FROM message WHERE tenant = ?1 AND session = ?2";
    let all: i64 = transaction.one(count, params![of.0, session])?.get(0)?;
    let all = u64::try_from(all).unwrap_or_default();
    Ok(History { left_out: all.saturating_sub(messages.len() as u64), messages })
}

/// Reads the latest messages of a session, at most `most` bytes in total. Returns them oldest
/// first.
fn read_messages(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    session: &str,
    most: usize,
) -> Result<Vec<Message>, Cause> {
    let query = "SELECT role, content, whole FROM message WHERE tenant = ?1 AND session = ?2
                 ORDER BY id DESC";
    let (mut newest_first, mut bytes) = (Vec::new(), 0);
    transaction.each(query, params![tenant, session], |row| {
        let role: String = row.get(0)?;
        let content = open_text(seal, row.get(1)?)?;
        let whole: Option<String> = row.get(2)?;
        let whole = whole.map(|text| open_text(seal, text)).transpose()?;
        bytes += content.len() + whole.as_ref().map_or(0, String::len);
        if bytes > most {
            return Ok(ControlFlow::Break(()));
        }
        let whole = whole.and_then(|whole| serde_json::from_str(&whole).ok());
        newest_first.push(whole.unwrap_or_else(|| plain_message(&role, content)));
        Ok(ControlFlow::Continue(()))
    })?;
    newest_first.reverse();
    Ok(newest_first)
}

fn plain_message(role: &str, content: String) -> Message {
    if role == role_name(Role::User) { Message::user(content) } else { Message::assistant(content) }
}

/// Serializes a message that calls functions, is the result of a call, was added by the host, or has
/// the provider's own fields. Returns `None` for any other message, which can be restored from its
/// role and its text.
fn whole(message: &Message) -> Option<String> {
    let is_plain = message.calls.is_empty()
        && message.answers.is_none()
        && message.provider.is_none()
        && !message.is_added();
    if is_plain { None } else { serde_json::to_string(message).ok() }
}

fn export(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    session: &str,
) -> Result<Option<ExportedSession>, Cause> {
    if !exists(transaction, tenant, session)? {
        return Ok(None);
    }
    let query =
        "SELECT role, content, whole FROM message WHERE tenant = ?1 AND session = ?2 ORDER BY id";
    let messages = transaction.query(query, params![tenant, session], |row| {
        let (role, content): (String, String) = (row.get(0)?, open_text(seal, row.get(1)?)?);
        let whole: Option<String> = row.get(2)?;
        let whole = whole.map(|whole| open_text(seal, whole)).transpose()?;
        let whole: Option<Message> = whole.and_then(|whole| serde_json::from_str(&whole).ok());
        // Messages that the host added are omitted: after an import, a run recalls memory items
        // itself, and its traits contribute again.
        let is_added = whole.is_some_and(|whole| whole.is_added());
        Ok((!is_added).then(|| plain_message(&role, content)))
    })?;
    let query = "SELECT key, value FROM state WHERE tenant = ?1 AND session = ?2 ORDER BY key";
    let state = transaction.query(query, params![tenant, session], |row| {
        Ok((row.get(0)?, StateValue::from(row.get::<Vec<u8>>(1)?)))
    })?;
    let (id, messages) = (session.to_owned(), messages.into_iter().flatten().collect());
    Ok(Some(ExportedSession { wattle_session: 1, id, messages, state }))
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        _ => "assistant",
    }
}

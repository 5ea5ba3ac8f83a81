//! The earlier values of the state of sessions, with which a fork or `/undo` returns to an earlier
//! state.
//!
//! Each change of a session's state has a number. A *position* in the history of a state is the
//! number of changes so far, and a turn records the position at which it was recorded. A row of
//! `state_change` has the value that a key had before a change. Returning to a position is itself a
//! sequence of changes, so positions never lose their meaning.
//!
//! Of all changes that one program makes to a key, only the first one is recorded, because no turn
//! is recorded between them.

use std::collections::BTreeMap;

use super::db::{Transaction, params};
use super::files::add_delta;
use super::rows::tree_files;
use super::state::StateOwner;
use super::{Owner, TenantStore, own_session};
use crate::error::{Cause, StoreError};

/// Maximum size of the recorded values and keys of a session, in bytes. It is exceeded by at most
/// the values of a few changes.
const MAX_BYTES: i64 = 64 << 20;

/// Maximum number of recorded changes of a session.
const MAX_CHANGES: i64 = 10_000;

/// Number of small changes after which the size of the recorded values is checked.
const CHECKED: i64 = 64;

/// Minimum size of a change after which the size is checked at once, in bytes.
const LARGE: i64 = 64 << 10;

/// The values of keys at an earlier position, or `None` for a key that was missing.
pub(super) type EarlierValues = BTreeMap<String, Option<Vec<u8>>>;

/// The outcome of returning to an earlier state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewind {
    /// The state is as it was.
    Done,
    /// Nothing was changed, because the state has changed since.
    Changed,
    /// Nothing was changed, because the earlier values are no longer recorded.
    Forgotten,
}

impl TenantStore {
    /// Returns the current position in the history of a session's state.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn state_position(&self, session: &str) -> Result<i64, StoreError> {
        let session = session.to_owned();
        self.read(move |transaction, (tenant, _)| position(transaction, tenant, &session)).await
    }

    /// Returns the position in the history of its session's state at which a turn of a run was
    /// recorded, or `None` if it is not known.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn turn_position(&self, run: &str, turn: u32) -> Result<Option<i64>, StoreError> {
        let run = run.to_owned();
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT changes FROM turn WHERE tenant = ?1 AND run = ?2 AND number = ?3";
            let found = transaction.first(query, params![tenant, run, turn])?;
            found.map_or(Ok(None), |row| row.get(0))
        })
        .await
    }

    /// Returns a session's state to an earlier position, if the current position is `expected`. The
    /// caller must hold the session's lock.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn rewind_state(
        &self,
        session: &str,
        to: i64,
        expected: i64,
    ) -> Result<Rewind, StoreError> {
        let session = session.to_owned();
        self.write(move |transaction, (tenant, _)| {
            StateOwner::of_session(session.clone()).lock(transaction, tenant)?;
            if position(transaction, tenant, &session)? != expected {
                return Ok(Rewind::Changed);
            }
            match earlier(transaction, tenant, &session, to)? {
                Some(values) => {
                    set_values(transaction, tenant, &session, &values)?;
                    Ok(Rewind::Done)
                }
                None => Ok(Rewind::Forgotten),
            }
        })
        .await
    }

    /// Returns the state and the files of a fork's session to what they were at the step after
    /// which the run was forked. Has no effect after the first call for a run. The caller must hold
    /// the session's lock. The files are only changed if `has_overlay` is true.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn rewind_session(&self, run: &str, has_overlay: bool) -> Result<(), StoreError> {
        let run = run.to_owned();
        self.write(move |transaction, (tenant, seal)| {
            let query = "SELECT session, rewind FROM run WHERE tenant = ?1 AND id = ?2";
            let Some(row) = transaction.first(query, params![tenant, run])? else { return Ok(()) };
            let (session, to): (Option<String>, Option<i64>) = (row.get(0)?, row.get(1)?);
            let Some((session, to)) = session.zip(to) else { return Ok(()) };
            StateOwner::of_session(session.clone()).lock(transaction, tenant)?;
            if to >= 0 {
                match earlier(transaction, tenant, &session, to)? {
                    Some(values) => set_values(transaction, tenant, &session, &values)?,
                    None => tracing::warn!(run, session, "the earlier state is forgotten"),
                }
            }
            if has_overlay {
                let remove = "DELETE FROM session_file WHERE tenant = ?1 AND session = ?2";
                transaction.execute(remove, params![tenant, session])?;
                let began_with = tree_files(transaction, (tenant, seal), (&run, 0))?;
                for (_, delta) in began_with.iter().filter(|(turn, _)| *turn == 0) {
                    add_delta(transaction, (tenant, seal), &session, delta)?;
                }
            }
            let done = "UPDATE run SET rewind = NULL WHERE tenant = ?1 AND id = ?2";
            transaction.execute(done, params![tenant, run])?;
            Ok(())
        })
        .await
    }
}

/// Prepares the state of the run `fork`, whose turns up to `turn` are copies of those of the run
/// `of`, or which has one turn that begins after `turn`. The state of a session changes when the
/// run is first driven, because only then does the run hold the session. A run without a session
/// gets a copy. Returns false if the state at that turn is not known any more.
pub(super) fn fork_state(
    transaction: &mut Transaction<'_>,
    (tenant, _): Owner<'_>,
    (of, turn): (&str, u32),
    fork: &str,
) -> Result<bool, Cause> {
    let query = "SELECT turn.changes, run.session, run.created FROM turn
                 JOIN run ON run.tenant = turn.tenant AND run.id = turn.run
                 WHERE turn.tenant = ?1 AND turn.run = ?2 AND turn.number = ?3";
    let row = transaction.one(query, params![tenant, of, turn])?;
    let (to, session, began): (Option<i64>, Option<String>, i64) =
        (row.get(0)?, row.get(1)?, row.get(2)?);
    let last = "SELECT MAX(number) FROM turn WHERE tenant = ?1 AND run = ?2";
    let last: i64 = transaction.one(last, params![tenant, fork])?.get(0)?;
    transaction.execute(
        "UPDATE turn SET changes = (
             SELECT source.changes FROM turn AS source
             WHERE source.tenant = ?1 AND source.run = ?2 AND source.number = turn.number + ?4)
         WHERE tenant = ?1 AND run = ?3",
        params![tenant, of, fork, i64::from(turn) - last],
    )?;
    let has_session = session.is_some();
    let state = session.unwrap_or_else(|| own_session(of));
    // A session that was removed and created again has another history.
    let created = "SELECT created FROM session WHERE tenant = ?1 AND id = ?2";
    let created = transaction.first(created, params![tenant, state])?;
    let is_same = match (&created, has_session) {
        (Some(row), true) => row.get::<i64>(0)? <= began,
        _ => true,
    };
    let values = match to.filter(|_| is_same) {
        Some(to) => earlier(transaction, tenant, &state, to)?.map(|values| (to, values)),
        None => None,
    };
    if has_session {
        let to = values.as_ref().map_or(-1, |(to, _)| *to);
        let update = "UPDATE run SET rewind = ?3 WHERE tenant = ?1 AND id = ?2";
        transaction.execute(update, params![tenant, fork, to])?;
        return Ok(values.is_some());
    }
    let Some((to, values)) = values else { return Ok(false) };
    if created.is_some() {
        let own = own_session(fork);
        copy_state(transaction, tenant, &state, &own)?;
        transaction.execute(
            "INSERT INTO state_change (tenant, session, number, origin, key, old, total)
             SELECT tenant, CAST(?3 AS TEXT), number, origin, key, old, total FROM state_change
             WHERE tenant = ?1 AND session = ?2 AND number <= ?4",
            params![tenant, state, own, to],
        )?;
        let update = "UPDATE session SET changes = ?3 WHERE tenant = ?1 AND id = ?2";
        transaction.execute(update, params![tenant, own, to])?;
        set_values(transaction, tenant, &own, &values)?;
        // Setting the values has counted as changes, but the copy begins at the position.
        let remove = "DELETE FROM state_change WHERE tenant = ?1 AND session = ?2 AND number > ?3";
        transaction.execute(remove, params![tenant, own, to])?;
        transaction.execute(update, params![tenant, own, to])?;
    }
    Ok(true)
}

/// Creates the session `to` with a copy of the state of the session `from`. Returns false if the
/// session `to` exists.
pub(super) fn copy_state(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    from: &str,
    to: &str,
) -> Result<bool, Cause> {
    let created = transaction.execute(
        "INSERT INTO session (tenant, id, created, used, bytes)
         VALUES (?1, ?2, ?4, ?4, COALESCE(
             (SELECT bytes FROM session WHERE tenant = ?1 AND id = ?3), 0))
         ON CONFLICT (tenant, id) DO NOTHING",
        params![tenant, to, from, transaction.now()],
    )?;
    if created == 0 {
        return Ok(false);
    }
    transaction.execute(
        "INSERT INTO state (tenant, session, key, value)
         SELECT tenant, CAST(?2 AS TEXT), key, value FROM state
         WHERE tenant = ?1 AND session = ?3",
        params![tenant, to, from],
    )?;
    Ok(true)
}

/// Makes the new session `id`, which has a copy of the state of `session`, what `session` was after
/// a turn of a run: its state and its files. Returns false if the state is not known any more.
pub(super) fn rewind_copy(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    (session, id): (&str, &str),
    (run, turn): (&str, u32),
) -> Result<bool, Cause> {
    for (_, delta) in
        tree_files(transaction, (tenant, seal), (run, 0))?.iter().filter(|(at, _)| *at <= turn)
    {
        add_delta(transaction, (tenant, seal), id, delta)?;
    }
    let query = "SELECT changes FROM turn WHERE tenant = ?1 AND run = ?2 AND number = ?3";
    let to = transaction.first(query, params![tenant, run, turn])?;
    let to: Option<i64> = to.map_or(Ok(None), |row| row.get(0))?;
    let values = match to {
        Some(to) => earlier(transaction, tenant, session, to)?,
        None => None,
    };
    values.map_or(Ok(false), |values| {
        set_values(transaction, tenant, id, &values)?;
        Ok(true)
    })
}

fn position(transaction: &mut Transaction<'_>, tenant: &str, session: &str) -> Result<i64, Cause> {
    let query = "SELECT changes FROM session WHERE tenant = ?1 AND id = ?2";
    let found = transaction.first(query, params![tenant, session])?;
    found.map_or(Ok(0), |row| row.get(0))
}

/// Returns the earlier values of all keys that have changed since a position, or `None` if some are
/// no longer recorded.
fn earlier(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    session: &str,
    to: i64,
) -> Result<Option<EarlierValues>, Cause> {
    let missing = position(transaction, tenant, session)? - to;
    let query = "SELECT key, old FROM state_change
                 WHERE tenant = ?1 AND session = ?2 AND number > ?3 ORDER BY number DESC";
    let (mut values, mut found) = (EarlierValues::new(), 0);
    // The value before the first of several changes is the one at the position.
    for (key, old) in transaction.query(query, params![tenant, session, to], |row| {
        Ok((row.get::<String>(0)?, row.get::<Option<Vec<u8>>>(1)?))
    })? {
        values.insert(key, old);
        found += 1;
    }
    Ok((found == missing).then_some(values))
}

/// Sets keys of a session to earlier values.
fn set_values(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    session: &str,
    values: &EarlierValues,
) -> Result<(), Cause> {
    let owner = StateOwner::of_session(session.to_owned());
    for (key, value) in values {
        let current = owner.value(transaction, tenant, key)?;
        if current != *value {
            owner.replace(transaction, (tenant, None), key, current, value.clone())?;
        }
    }
    Ok(())
}

/// Returns true if a change of a key must be recorded. `origin` identifies the program that makes
/// the change, if it is known.
pub(super) fn needs_record(
    transaction: &mut Transaction<'_>,
    (tenant, session): (&str, &str),
    origin: Option<&str>,
    key: &str,
) -> Result<bool, Cause> {
    let Some(origin) = origin else { return Ok(true) };
    let query = "SELECT origin FROM state_change WHERE tenant = ?1 AND session = ?2 AND key = ?3
                 ORDER BY number DESC LIMIT 1";
    let last = transaction.first(query, params![tenant, session, key])?;
    let last: Option<String> = last.map_or(Ok(None), |row| row.get(0))?;
    Ok(last.as_deref() != Some(origin))
}

/// Records the change with the given number. Removes the oldest changes if there are too many.
pub(super) fn record_change(
    transaction: &mut Transaction<'_>,
    (tenant, session): (&str, &str),
    (number, origin): (i64, Option<&str>),
    (key, old): (&str, Option<Vec<u8>>),
) -> Result<(), Cause> {
    let size = key.len() + old.as_ref().map_or(0, Vec::len);
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let row = transaction.one(
        "INSERT INTO state_change (tenant, session, number, origin, key, old, total)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, CAST(?7 AS BIGINT) + COALESCE((
             SELECT total FROM state_change WHERE tenant = ?1 AND session = ?2
             ORDER BY number DESC LIMIT 1), 0))
         RETURNING total",
        params![tenant, session, number, origin, key, old, size],
    )?;
    let total: i64 = row.get(0)?;
    if number % CHECKED == 0 || size > LARGE {
        transaction.execute(
            "DELETE FROM state_change WHERE tenant = ?1 AND session = ?2
             AND (number <= ?3 OR total <= ?4)",
            params![tenant, session, number - MAX_CHANGES, total - MAX_BYTES],
        )?;
    }
    Ok(())
}

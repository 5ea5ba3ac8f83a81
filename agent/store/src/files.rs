//! The files of sessions. A session keeps the files that its runs wrote, for use by its next run.
//!
//! A session's files are the deltas of an overlay, in order; see
//! [`Files::restore`](wattle_capability::files::Files::restore).

use super::db::{Access, Transaction, params};
use super::objects::StoredText;
use super::session::touch;
use super::{Owner, TenantStore};
use crate::error::{Cause, StoreError};

/// The files of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFiles {
    /// The deltas of an overlay, in order.
    pub deltas: Vec<String>,
    /// The number of the last delta, or 0 if there are no deltas.
    newest: i64,
}

impl SessionFiles {
    /// Returns the number of the last delta, or 0 if there are no deltas.
    #[must_use]
    pub fn newest(&self) -> i64 {
        self.newest
    }
}

/// The deltas of a session's files, without their texts. They are loaded one at a time with
/// [`TenantStore::next_session_delta`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDeltas {
    /// The number of each delta and the size of its stored text in bytes, in order.
    deltas: Vec<(i64, u64)>,
    /// The index of the delta that is loaded next.
    next: usize,
}

impl SessionDeltas {
    /// Maximum number of deltas per session before they are merged.
    pub const MAX_COUNT: usize = 32;

    /// Returns the number of deltas.
    #[must_use]
    pub fn count(&self) -> usize {
        self.deltas.len()
    }

    /// Returns the number of the last delta, or 0 if there are no deltas.
    #[must_use]
    pub fn newest(&self) -> i64 {
        self.deltas.last().map_or(0, |(number, _)| *number)
    }

    /// Returns the size of the largest delta, in bytes.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.deltas.iter().map(|(_, size)| *size).max().unwrap_or(0)
    }

    /// Returns the size of all deltas, in bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.deltas.iter().fold(0, |sum, (_, size)| sum.saturating_add(*size))
    }
}

/// The result of loading the next delta of a [`SessionDeltas`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextDelta {
    /// The next delta.
    Delta(String),
    /// Some of the listed deltas were replaced or removed in the meantime. The caller must discard
    /// the deltas that it has loaded and start again with a new list, because the remaining deltas
    /// do not continue the loaded ones and may be larger than listed.
    Restart,
    /// All deltas were loaded.
    End,
}

impl TenantStore {
    /// Returns a session's files, with the texts of all deltas. An unknown session has none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn session_files(&self, session: &str) -> Result<SessionFiles, StoreError> {
        let session = session.to_owned();
        let stored = self.read(move |transaction, (tenant, _)| {
            let query = "SELECT number, delta, object FROM session_file
                         WHERE tenant = ?1 AND session = ?2 ORDER BY number";
            transaction.query(query, params![tenant, session], |row| {
                Ok((row.get(0)?, StoredText::of_row(row, "delta", "object")?))
            })
        });
        let mut files = SessionFiles::default();
        for (number, delta) in stored.await? {
            files.newest = number;
            files.deltas.push(self.load_text(delta).await?);
        }
        Ok(files)
    }

    /// Returns the numbers and sizes of the deltas of a session's files. An unknown session has
    /// none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn session_deltas(&self, session: &str) -> Result<SessionDeltas, StoreError> {
        let session = session.to_owned();
        let deltas = self.read(move |transaction, (tenant, _)| {
            // The size of an object's text is in the row of the object.
            let query = "SELECT session_file.number,
                            COALESCE(blob.bytes, CAST(OCTET_LENGTH(session_file.delta) AS BIGINT))
                         FROM session_file
                         LEFT JOIN blob ON blob.object = session_file.object
                         WHERE session_file.tenant = ?1 AND session_file.session = ?2
                         ORDER BY session_file.number";
            transaction.query(query, params![tenant, session], |row| {
                Ok((row.get(0)?, row.get::<i64>(1)?.max(0).cast_unsigned()))
            })
        });
        Ok(SessionDeltas { deltas: deltas.await?, next: 0 })
    }

    /// Loads the next delta of a session's files. If all deltas in a list are loaded without
    /// [`NextDelta::Restart`], they are the deltas that the session had when the list was created.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn next_session_delta(
        &self,
        session: &str,
        files: &mut SessionDeltas,
    ) -> Result<NextDelta, StoreError> {
        let Some(&(number, _)) = files.deltas.get(files.next) else { return Ok(NextDelta::End) };
        let (session, newest) = (session.to_owned(), files.newest());
        let stored = self.read(move |transaction, (tenant, _)| {
            // Deltas are only replaced or removed together with all earlier ones, so their number
            // is smaller then. A single delta has the same content if it was replaced.
            let query = "SELECT delta, object,
                            (SELECT COUNT(*) FROM session_file AS listed
                             WHERE listed.tenant = ?1 AND listed.session = ?2
                                AND listed.number <= ?4)
                         FROM session_file
                         WHERE tenant = ?1 AND session = ?2 AND number = ?3";
            let row = transaction.first(query, params![tenant, session, number, newest])?;
            let Some(row) = row else { return Ok(None) };
            Ok(Some((row.get::<i64>(2)?, StoredText::of_row(&row, "delta", "object")?)))
        });
        match stored.await? {
            Some((count, stored)) if usize::try_from(count) == Ok(files.deltas.len()) => {
                files.next += 1;
                self.load_text(stored).await.map(NextDelta::Delta)
            }
            _ => Ok(NextDelta::Restart),
        }
    }

    /// Adds a delta to a session's files. Creates the session if it does not exist.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn add_session_files(&self, session: &str, delta: String) -> Result<(), StoreError> {
        let (session, delta) = (session.to_owned(), self.store_text(delta).await?);
        let add = move |transaction: &mut Transaction<'_>, of: Owner<'_>| {
            add_delta(transaction, of, &session, &delta)
        };
        self.grow(Access::Write, add).await
    }

    /// Replaces the deltas up to the number `newest` with `delta`, which is relative to an empty
    /// overlay, or removes them if `delta` is `None`. Later deltas are kept. If `newest` is 0, there
    /// were no deltas, and `delta` is added.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn replace_session_files(
        &self,
        session: &str,
        newest: i64,
        delta: Option<String>,
    ) -> Result<(), StoreError> {
        let session = session.to_owned();
        let delta = match delta {
            Some(delta) => Some(self.store_text(delta).await?),
            None => None,
        };
        self.write(move |transaction, of| {
            replace_deltas(transaction, of, &session, newest, delta.as_ref())
        })
        .await
    }
}

/// Replaces the deltas of a session's files up to the number `newest`, within a transaction.
pub(super) fn replace_deltas(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    session: &str,
    newest: i64,
    delta: Option<&StoredText>,
) -> Result<(), Cause> {
    if newest == 0 {
        return delta
            .map_or(Ok(()), |delta| add_delta(transaction, (tenant, seal), session, delta));
    }
    let removed = transaction.execute(
        "DELETE FROM session_file WHERE tenant = ?1 AND session = ?2 AND number <= ?3",
        params![tenant, session, newest],
    )?;
    if let Some(delta) = delta.filter(|_| removed > 0) {
        delta.keep(transaction)?;
        transaction.execute(
            "INSERT INTO session_file (number, tenant, session, delta, object)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![newest, tenant, session, delta.inline(), delta.object()],
        )?;
    }
    Ok(())
}

/// Adds a delta to a session's files, within a transaction.
pub(super) fn add_delta(
    transaction: &mut Transaction<'_>,
    (tenant, _): Owner<'_>,
    session: &str,
    delta: &StoredText,
) -> Result<(), Cause> {
    touch(transaction, tenant, session)?;
    delta.keep(transaction)?;
    transaction.execute(
        "INSERT INTO session_file (tenant, session, delta, object) VALUES (?1, ?2, ?3, ?4)",
        params![tenant, session, delta.inline(), delta.object()],
    )?;
    Ok(())
}

//! The files of sessions. A session keeps the files that its runs wrote, for use by its next run.
//!
//! A session's files are the deltas of an overlay, in order; see
//! [`Files::restore`](wattle_capability::files::Files::restore).

use super::blob::StoredText;
use super::db::{Transaction, params};
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

impl TenantStore {
    /// Returns a session's files. An unknown session has none.
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

    /// Adds a delta to a session's files. Creates the session if it does not exist.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn add_session_files(&self, session: &str, delta: String) -> Result<(), StoreError> {
        let (session, delta) = (session.to_owned(), self.store_text(delta).await?);
        self.write(move |transaction, of| add_delta(transaction, of, &session, &delta)).await
    }

    /// Replaces the deltas in `known` with `delta`, which is relative to an empty overlay, or
    /// removes them if `delta` is `None`. Deltas that were added after `known` was read are kept.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn replace_session_files(
        &self,
        session: &str,
        known: &SessionFiles,
        delta: Option<String>,
    ) -> Result<(), StoreError> {
        let (session, newest) = (session.to_owned(), known.newest);
        let delta = match delta {
            Some(delta) => Some(self.store_text(delta).await?),
            None => None,
        };
        self.write(move |transaction, (tenant, _)| {
            let removed = transaction.execute(
                "DELETE FROM session_file WHERE tenant = ?1 AND session = ?2 AND number <= ?3",
                params![tenant, session, newest],
            )?;
            if let Some(delta) = delta.as_ref().filter(|_| removed > 0) {
                delta.keep(transaction)?;
                transaction.execute(
                    "INSERT INTO session_file (number, tenant, session, delta, object)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![newest, tenant, session, delta.inline(), delta.object()],
                )?;
            }
            Ok(())
        })
        .await
    }
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

//! The files of sessions. A session keeps the files that its runs wrote, for use by its next run.
//!
//! A session's files are the deltas of an overlay, in order; see
//! [`Files::restore`](wattle_capability::files::Files::restore).

use std::ops::ControlFlow;

use super::db::{Transaction, params};
use super::seal::{open_text, seal_text};
use super::session::touch;
use super::{Owner, TenantStore};
use crate::error::{Cause, StoreError};

/// The files of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFiles {
    /// The deltas of an overlay, in order.
    pub deltas: Vec<String>,
    /// The number of the newest delta.
    newest: i64,
}

impl TenantStore {
    /// Returns a session's files. An unknown session has none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn session_files(&self, session: &str) -> Result<SessionFiles, StoreError> {
        let session = session.to_owned();
        self.read(move |transaction, (tenant, seal)| {
            let query = "SELECT number, delta FROM session_file WHERE tenant = ?1 AND session = ?2
                         ORDER BY number";
            let mut files = SessionFiles::default();
            transaction.each(query, params![tenant, session], |row| {
                files.newest = row.get(0)?;
                files.deltas.push(open_text(seal, row.get(1)?)?);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(files)
        })
        .await
    }

    /// Adds a delta to a session's files. The session is created if it is new.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn add_session_files(&self, session: &str, delta: String) -> Result<(), StoreError> {
        let session = session.to_owned();
        self.write(move |transaction, of| add_delta(transaction, of, &session, &delta)).await
    }

    /// Replaces the deltas of `known` with one delta of an empty overlay, or with none. Deltas that
    /// were added after `known` was read are kept, after the new one.
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
        self.write(move |transaction, (tenant, seal)| {
            let removed = transaction.execute(
                "DELETE FROM session_file WHERE tenant = ?1 AND session = ?2 AND number <= ?3",
                params![tenant, session, newest],
            )?;
            if let Some(delta) = delta.as_deref().filter(|_| removed > 0) {
                let delta = seal_text(seal, delta)?;
                transaction.execute(
                    "INSERT INTO session_file (number, tenant, session, delta)
                     VALUES (?1, ?2, ?3, ?4)",
                    params![newest, tenant, session, delta],
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
    (tenant, seal): Owner<'_>,
    session: &str,
    delta: &str,
) -> Result<(), Cause> {
    touch(transaction, tenant, session)?;
    transaction.execute(
        "INSERT INTO session_file (tenant, session, delta) VALUES (?1, ?2, ?3)",
        params![tenant, session, seal_text(seal, delta)?],
    )?;
    Ok(())
}

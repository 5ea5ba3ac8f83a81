//! The files of sessions. A session keeps the files that its runs wrote for its next run.
//!
//! A session's files are the deltas of an overlay, in order; see
//! [`Files::restore`](wattle_capability::files::Files::restore).

use rusqlite::{Transaction, TransactionBehavior, params};

use super::TenantStore;
use super::seal::{RecordSeal, open_text, seal_text};
use super::session::{broken, touch};
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
    /// Returns a session's files. Empty for an unknown session.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn session_files(&self, session: &str) -> Result<SessionFiles, StoreError> {
        let (tenant, session, seal) = (self.tenant.clone(), session.to_owned(), self.seal.clone());
        self.store
            .with(StoreError::new("read"), move |connection| {
                let mut statement = connection.prepare(
                    "SELECT number, delta FROM session_file WHERE tenant = ?1 AND session = ?2 \
                     ORDER BY number",
                )?;
                let mut rows = statement.query(params![tenant.as_str(), session])?;
                let mut files = SessionFiles::default();
                while let Some(row) = rows.next()? {
                    files.newest = row.get(0)?;
                    files.deltas.push(open_text(seal.as_deref(), row.get(1)?).map_err(broken)?);
                }
                Ok(files)
            })
            .await
    }

    /// Adds a delta to a session's files. The session is created if it is new.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn add_session_files(&self, session: &str, delta: String) -> Result<(), StoreError> {
        let (tenant, session, seal) = (self.tenant.clone(), session.to_owned(), self.seal.clone());
        self.store
            .with(StoreError::new("write"), move |connection| {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                add_delta(&transaction, (tenant.as_str(), seal.as_deref()), &session, &delta)
                    .map_err(broken)?;
                transaction.commit()
            })
            .await
    }

    /// Replaces the deltas of `known` by one delta of an empty overlay, or by none. Deltas that
    /// were added since `known` was read stay, after it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn replace_session_files(
        &self,
        session: &str,
        known: &SessionFiles,
        delta: Option<String>,
    ) -> Result<(), StoreError> {
        let (tenant, session, seal) = (self.tenant.clone(), session.to_owned(), self.seal.clone());
        let newest = known.newest;
        self.store
            .with(StoreError::new("write"), move |connection| {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let removed = transaction.execute(
                    "DELETE FROM session_file WHERE tenant = ?1 AND session = ?2 AND number <= ?3",
                    params![tenant.as_str(), session, newest],
                )?;
                if let Some(delta) = delta.filter(|_| removed > 0) {
                    let delta = seal_text(seal.as_deref(), delta).map_err(broken)?;
                    transaction.execute(
                        "INSERT INTO session_file (number, tenant, session, delta)
                         VALUES (?1, ?2, ?3, ?4)",
                        params![newest, tenant.as_str(), session, delta],
                    )?;
                }
                transaction.commit()
            })
            .await
    }
}

/// Adds a delta to a session's files, within a transaction.
pub(super) fn add_delta(
    transaction: &Transaction<'_>,
    (tenant, seal): (&str, Option<&RecordSeal>),
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

//! Queries that read only parts of a run's record.

use std::ops::ControlFlow;
use std::path::Path;

use wattle_machine::{Envelope, Event};

use super::db::params;
use super::rows::{known_status, parse};
use super::seal::open_text;
use super::{Store, TenantStore};
use crate::error::StoreError;
use crate::journal::Status;
use crate::ledger::FinalSeal;

impl Store {
    /// Returns the final seals of all tenants' runs whose traces are in `folder`. Tenants that use
    /// the same folder share its ledger, so the ledger must contain the seals of all of them.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn sealed(&self, folder: &Path) -> Result<Vec<FinalSeal>, StoreError> {
        let folder = folder.to_owned();
        self.read(move |transaction| {
            let query = "SELECT sealed FROM run WHERE status = 'ended' AND sealed IS NOT NULL
                         ORDER BY created, tenant, id";
            let mut found = Vec::new();
            transaction.each(query, &[], |row| {
                let sealed: FinalSeal = parse(&row.get::<String>(0)?)?;
                found.extend((sealed.folder == folder).then_some(sealed));
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        })
        .await
    }
}

impl TenantStore {
    /// Returns the status of a run, or `None` if no run with this id has begun.
    pub async fn status(&self, run: &str) -> Result<Option<Status>, StoreError> {
        let run = run.to_owned();
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT status FROM run WHERE tenant = ?1 AND id = ?2";
            let found = transaction.first(query, params![tenant, run])?;
            found.map(|row| known_status(&row.get::<String>(0)?)).transpose()
        })
        .await
    }

    /// Returns the number of the latest step that contains a finished call, according to the run's
    /// events, or 0 if there is no such step. The run must not have ended.
    pub async fn steps(&self, run: &str) -> Result<u32, StoreError> {
        let run = run.to_owned();
        self.read(move |transaction, (tenant, seal)| {
            let query = "SELECT body FROM event WHERE tenant = ?1 AND run = ?2 ORDER BY seq DESC";
            let mut newest = 0;
            transaction.each(query, params![tenant, run], |row| {
                let event: Envelope = parse(&open_text(seal, row.get(0)?)?)?;
                Ok(match event.event {
                    Event::ToolResult { step, .. } => {
                        newest = step;
                        ControlFlow::Break(())
                    }
                    _ => ControlFlow::Continue(()),
                })
            })?;
            Ok(newest)
        })
        .await
    }

    /// Returns the sequence number of a run's latest event, or 0 if the run has no events.
    pub async fn last_event(&self, run: &str) -> Result<u64, StoreError> {
        let run = run.to_owned();
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT MAX(seq) FROM event WHERE tenant = ?1 AND run = ?2";
            let newest: Option<i64> = transaction.one(query, params![tenant, run])?.get(0)?;
            Ok(newest.unwrap_or(0).cast_unsigned())
        })
        .await
    }
}

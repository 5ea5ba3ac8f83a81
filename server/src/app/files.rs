//! Opens the files of sessions.

use wattle_agent::host::capability::files::{Files, FilesError, OVERLAY_LIMIT};
use wattle_agent::host::{SessionDeltas, SessionFilesError, TenantStore};

use super::App;
use crate::caller::Caller;
use crate::error::ApiError;

impl App {
    /// Returns the files of a session, including changes by its runs.
    pub(crate) async fn files(
        &self,
        store: &TenantStore,
        session: &str,
    ) -> Result<Files, SessionFilesError> {
        let files = self.no_changes()?;
        store.load_files(session, &files).await?;
        Ok(files)
    }

    /// Returns the files of a session. The request of `caller` holds the memory for them until the
    /// request is over.
    pub(crate) async fn files_for(
        &self,
        caller: &Caller,
        session: &str,
    ) -> Result<Files, ApiError> {
        let files = self.no_changes()?;
        let charge = |deltas: &SessionDeltas| caller.memory.charge(restore_cost(deltas));
        let (_, charge) = caller.store.load_files_with(session, &files, charge).await?;
        caller.memory.keep(charge, usize::try_from(files.used()).unwrap_or(usize::MAX))?;
        Ok(files)
    }

    /// Returns an empty overlay on the base folder.
    pub(crate) fn no_changes(&self) -> Result<Files, FilesError> {
        let base = match &self.0.base {
            Some(folder) => Some(Files::open_protected_base(folder, self.0.host_files.clone())?),
            None => None,
        };
        Ok(Files::overlay(base, OVERLAY_LIMIT))
    }
}

/// Returns the memory that loading and decoding a delta of this size takes, in bytes.
pub(crate) fn delta_cost(size: u64) -> usize {
    // The delta's text, and the largest file as text and as bytes.
    usize::try_from(size.saturating_mul(3)).unwrap_or(usize::MAX)
}

/// Returns the memory that restoring a session's files takes, in bytes.
fn restore_cost(deltas: &SessionDeltas) -> usize {
    let all = deltas.total().min(OVERLAY_LIMIT);
    let merged = if deltas.count() > SessionDeltas::MAX_COUNT { all } else { 0 };
    let restored = usize::try_from(all).unwrap_or(usize::MAX);
    delta_cost(deltas.largest().max(merged)).saturating_add(restored)
}

//! Opens the files of sessions.

use std::path::Path;

use wattle_agent::host::capability::files::{Change, Files, FilesError, OVERLAY_LIMIT};
use wattle_agent::host::capability::fs;
use wattle_agent::host::{SessionDeltas, SessionFilesError, TenantStore};

use super::App;
use crate::caller::Caller;
use crate::error::ApiError;

/// The result of applying changes, as the paths of the changes.
pub(crate) struct AppliedChanges {
    pub(crate) done: Vec<String>,
    /// The changes that were not applied, each with the reason.
    pub(crate) left: Vec<(String, String)>,
}

impl App {
    /// Returns the files of a session, including changes by its runs.
    pub(crate) async fn files(
        &self,
        store: &TenantStore,
        session: &str,
    ) -> Result<Files, SessionFilesError> {
        let files = self.no_changes()?;
        // The run's own account is opened later. It then takes over the charge.
        let account = self.host(store.tenant()).runtime().account().clone();
        fs::charge(&files, &account, 0)?;
        store.load_files(session, &files).await?;
        Ok(files)
    }

    /// Returns the files of a session. Their memory is charged to the request of `caller`.
    pub(crate) async fn files_for(
        &self,
        caller: &Caller,
        session: &str,
    ) -> Result<Files, ApiError> {
        self.numbered_files(caller, session).await.map(|(files, _)| files)
    }

    /// Opens the files of a session like [`files_for`](App::files_for). Also returns the number of
    /// its newest delta.
    pub(crate) async fn numbered_files(
        &self,
        caller: &Caller,
        session: &str,
    ) -> Result<(Files, i64), ApiError> {
        let files = self.no_changes()?;
        let charge = |deltas: &SessionDeltas| caller.memory.charge(restore_cost(deltas));
        let (newest, charge) = caller.store.load_files_with(session, &files, charge).await?;
        drop(charge);
        caller.memory.charge_files(&files)?;
        Ok((files, newest))
    }

    /// Applies the changes of a session to the base folder, except changes of protected files.
    pub(crate) fn apply(&self, folder: &Path, files: &Files) -> Result<AppliedChanges, FilesError> {
        let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let changes = files.changes()?;
        let protected = |change: &Change| self.0.policy.protects_change(&root, change);
        let path = |change: &Change| change.path.clone();
        let mut left: Vec<(String, String)> = changes
            .iter()
            .filter_map(|change| {
                let what = protected(change)?;
                let why = format!("{what} is only applied after a question, by `wattle apply`");
                Some((path(change), why))
            })
            .collect();
        let done = match files.apply_chosen(|change| protected(change).is_none()) {
            Ok(done) => done,
            Err(error) => {
                let failed = error.failed.iter();
                left.extend(failed.map(|(change, why)| (path(change), why.to_string())));
                error.done
            }
        };
        Ok(AppliedChanges { done: done.iter().map(path).collect(), left })
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

//! Restores the files of sessions from their deltas.

use wattle_agent::capability::files::{Files, FilesError, OVERLAY_LIMIT};
use wattle_agent::{NextDelta, SessionDeltas, StoreError, TenantStore};

use super::App;
use crate::caller::Caller;
use crate::error::ApiError;

/// Maximum number of file deltas per session before they are merged.
const MAX_DELTAS: usize = 32;

/// Maximum number of attempts to restore a session's files. An attempt fails if the deltas are
/// replaced meanwhile.
const MAX_ATTEMPTS: usize = 4;

/// The reason why a session's files cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesFault {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error("the session's files were replaced while they were read")]
    Replaced,
}

impl App {
    /// Returns the files of a session, including changes by its runs.
    pub(crate) async fn files(
        &self,
        store: &TenantStore,
        session: &str,
    ) -> Result<Files, FilesFault> {
        let (files, ()) = self.restored(store, session, |_| Ok::<_, FilesFault>(())).await?;
        Ok(files)
    }

    /// Returns the files of a session. The request of `caller` holds the memory for them until the
    /// request is over.
    pub(crate) async fn files_for(
        &self,
        caller: &Caller,
        session: &str,
    ) -> Result<Files, ApiError> {
        let charge = |deltas: &SessionDeltas| caller.memory.charge(restore_cost(deltas));
        let (files, charge) = self.restored(&caller.store, session, charge).await?;
        caller.memory.keep(charge, usize::try_from(files.used()).unwrap_or(usize::MAX))?;
        Ok(files)
    }

    /// Restores the files of a session. Tries again if the session's deltas are replaced meanwhile.
    /// Calls `prepare` before each attempt and returns its result for the successful attempt.
    async fn restored<T, E: From<FilesFault> + From<StoreError>>(
        &self,
        store: &TenantStore,
        session: &str,
        prepare: impl Fn(&SessionDeltas) -> Result<T, E>,
    ) -> Result<(Files, T), E> {
        for _ in 0..MAX_ATTEMPTS {
            let deltas = store.session_deltas(session).await?;
            let prepared = prepare(&deltas)?;
            if let Some(files) = self.restore(store, session, deltas).await? {
                return Ok((files, prepared));
            }
        }
        Err(FilesFault::Replaced.into())
    }

    /// Restores the files of a session. Loads the deltas one at a time and merges them if there are
    /// many. Returns `None` if the deltas were replaced or removed meanwhile.
    async fn restore(
        &self,
        store: &TenantStore,
        session: &str,
        mut deltas: SessionDeltas,
    ) -> Result<Option<Files>, FilesFault> {
        let base = match &self.0.base {
            Some(folder) => Some(Files::open_protected_base(folder, self.0.host_files.clone())?),
            None => None,
        };
        let files = Files::overlay(base, OVERLAY_LIMIT);
        loop {
            match store.next_session_delta(session, &mut deltas).await? {
                NextDelta::Delta(delta) => files.restore(&delta)?,
                NextDelta::Restart => return Ok(None),
                NextDelta::End => break,
            }
        }
        if deltas.count() > MAX_DELTAS {
            files.mark_all_changed();
            let joined = files.take_delta();
            // The merge is optional: without it, the session is only slower to open.
            let replaced = store.replace_session_files(session, deltas.newest(), joined).await;
            if let Err(error) = replaced {
                tracing::warn!(session, %error, "failed to join the file changes of a session");
            }
        }
        // Restored files are not changes made by the next run.
        drop(files.take_delta());
        Ok(Some(files))
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
    let merged = if deltas.count() > MAX_DELTAS { all } else { 0 };
    let restored = usize::try_from(all).unwrap_or(usize::MAX);
    delta_cost(deltas.largest().max(merged)).saturating_add(restored)
}

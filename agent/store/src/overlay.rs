//! Loads the files of a session into an overlay.

use wattle_capability::files::{Files, FilesError};

use super::{NextDelta, SessionDeltas, TenantStore};
use crate::error::StoreError;

/// Maximum number of attempts to load a session's files. An attempt fails if the deltas are
/// replaced meanwhile.
const MAX_ATTEMPTS: usize = 4;

/// The reason why a session's files cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SessionFilesError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A delta is invalid.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// Other processes replaced the session's files in each attempt.
    #[error("the session's files were replaced while they were read")]
    Replaced,
}

impl TenantStore {
    /// Replaces the content of an overlay with the files of a session, and returns the number of
    /// the newest delta, or 0 if the session has no files. Merges the deltas if there are many.
    ///
    /// # Errors
    /// If the store cannot be read, or `files` is not an overlay.
    pub async fn load_files(&self, session: &str, files: &Files) -> Result<i64, SessionFilesError> {
        let prepare = |_: &SessionDeltas| Ok::<_, SessionFilesError>(());
        let (newest, ()) = self.load_files_with(session, files, prepare).await?;
        Ok(newest)
    }

    /// Loads the files of a session like [`load_files`](TenantStore::load_files). Calls `prepare`
    /// before each attempt, for example to reserve memory, and returns its result for the
    /// successful attempt.
    ///
    /// # Errors
    /// If `prepare` fails, the store cannot be read, or `files` is not an overlay.
    pub async fn load_files_with<T, E: From<SessionFilesError>>(
        &self,
        session: &str,
        files: &Files,
        prepare: impl Fn(&SessionDeltas) -> Result<T, E>,
    ) -> Result<(i64, T), E> {
        for _ in 0..MAX_ATTEMPTS {
            let deltas = self.session_deltas(session).await.map_err(SessionFilesError::from)?;
            let prepared = prepare(&deltas)?;
            let newest = deltas.newest();
            if self.load_deltas(session, files, deltas).await? {
                return Ok((newest, prepared));
            }
        }
        Err(SessionFilesError::Replaced.into())
    }

    /// Loads the deltas one at a time. Returns false if they were replaced or removed meanwhile.
    async fn load_deltas(
        &self,
        session: &str,
        files: &Files,
        mut deltas: SessionDeltas,
    ) -> Result<bool, SessionFilesError> {
        files.discard(".")?;
        loop {
            match self.next_session_delta(session, &mut deltas).await? {
                NextDelta::Delta(delta) => files.restore(&delta)?,
                NextDelta::Restart => return Ok(false),
                NextDelta::End => break,
            }
        }
        if deltas.count() > SessionDeltas::MAX_COUNT {
            files.mark_all_changed();
            let joined = files.take_delta();
            // The merge is optional: without it, the session is only slower to open.
            let replaced = self.replace_session_files(session, deltas.newest(), joined).await;
            if let Err(error) = replaced {
                tracing::warn!(session, %error, "failed to join the file changes of a session");
            }
        }
        // Loaded files are not changes made by the next run.
        drop(files.take_delta());
        Ok(true)
    }
}

//! The files of sessions, and of runs without a session. The store keeps the changes that were not
//! applied to the workdir.

use std::sync::Arc;

use wattle_agent::host::capability::files::Files;
use wattle_agent::host::journal::{self, Lock, SharedJournal};
use wattle_agent::host::{TenantStore, own_session};

use super::Session;
use crate::changes::{self, Fate, Rules};
use crate::fault::Fault;
use crate::output;

impl Session {
    /// Returns the session that keeps the state and the files of a run. A run that belongs to no
    /// session has one of its own.
    pub(crate) fn of_run(store: &TenantStore, run: &str, session: Option<&str>) -> Session {
        let id = session.map_or_else(|| own_session(run), str::to_owned);
        Session { id, store: store.clone() }
    }

    /// Returns the id by which commands name the session, or the run whose own session it is.
    pub(crate) fn name(&self) -> &str {
        // Ids of other sessions contain no `/`.
        self.id.split_once('/').map_or(&self.id, |(_, run)| run)
    }

    /// Locks the session, because another process may be processing a message in it.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(crate) async fn lock(&self) -> Result<Lock, Fault> {
        let journal: SharedJournal = Arc::new(self.store.clone());
        Ok(journal::lock_session(&journal, &self.id).await?)
    }

    /// Replaces the content of an overlay with the session's changes. Returns the number of the
    /// newest one. Does nothing if programs write to the workdir directly.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn load_files(&self, files: &Files) -> Result<i64, Fault> {
        if !files.is_overlay() {
            return Ok(0);
        }
        self.store.load_files(&self.id, files).await.map_err(|error| {
            let message = format!("failed to read the files of the session `{}`", self.id);
            Fault::failed(format!("{message}: {error}"))
        })
    }

    /// Warns if the session has changes that programs do not see, because they write to the workdir
    /// directly.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn warn_of_hidden_changes(&self, files: &Files) -> Result<(), Fault> {
        if files.is_overlay() {
            return Ok(());
        }
        if self.store.session_deltas(&self.id).await?.count() > 0 {
            output::warn(&format!(
                "the session `{}` has changes that were not applied; programs do not see them, \
                 because they write to the workdir directly",
                self.id
            ));
        }
        Ok(())
    }

    /// Adds the changes since the files were loaded to the session.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(crate) async fn add_changes(&self, files: &Files) -> Result<(), Fault> {
        let Some(delta) = files.take_delta() else { return Ok(()) };
        let added = self.store.add_session_files(&self.id, delta).await;
        added.map_err(|error| self.not_kept(files, &error))
    }

    /// Replaces the session's changes up to `newest` with those in the overlay.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(crate) async fn replace_changes(&self, files: &Files, newest: i64) -> Result<(), Fault> {
        let replaced = self.store.replace_session_files(&self.id, newest, files.take_all()).await;
        replaced.map_err(|error| self.not_kept(files, &error))
    }

    fn not_kept(&self, files: &Files, error: &wattle_agent::host::StoreError) -> Fault {
        // The next attempt must contain all changes.
        files.mark_all_changed();
        let message = format!("failed to keep the files of the session `{}`", self.id);
        Fault::failed(format!("{message}: {error}")).hint("`/apply` writes them to the workdir")
    }

    /// Changes the session's unapplied changes. `work` gets the overlay with all of them. What it
    /// leaves in the overlay is stored even if it fails.
    ///
    /// # Errors
    /// If `work` fails, or the store cannot be read or written.
    pub(crate) async fn edit_changes<T>(
        &self,
        files: &Files,
        work: impl FnOnce(&Files) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let _held = self.lock().await?;
        let newest = self.load_files(files).await?;
        let done = work(files);
        if files.is_overlay() {
            self.replace_changes(files, newest).await?;
        }
        done
    }
}

/// Lists or applies the changes of a program, and keeps the rest in its session. `newest` is the
/// result of [`Session::load_files`].
///
/// # Errors
/// If the changes cannot be applied, or the store cannot be written.
pub(crate) async fn settle_program(
    session: Option<&Session>,
    (files, rules): (&Files, &Rules),
    newest: i64,
    fate: &Fate,
) -> Result<(), Fault> {
    let settled = changes::settle(files, rules, fate);
    match (session, fate) {
        (None, _) | (_, Fate::Written) => {}
        (Some(session), Fate::Apply) => session.replace_changes(files, newest).await?,
        (Some(session), Fate::Leave(_)) => session.add_changes(files).await?,
    }
    settled
}

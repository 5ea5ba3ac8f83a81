//! The operations on the changes of a run: listing, applying and discarding them.

use super::Files;
use crate::entry::Change;
use crate::error::{ApplyError, FilesError};
use crate::path::{Intent, RunPath};
use crate::store::Store;

impl Files {
    /// Returns the differences from the original base, sorted by path. In a run without a base,
    /// returns everything that the run created.
    ///
    /// # Errors
    /// If the base cannot be read.
    pub fn changes(&self) -> Result<Vec<Change>, FilesError> {
        self.store.lock().tree().changes()
    }

    /// Applies the overlay's changes to the base and returns them sorted by path. Each file appears
    /// as a whole or not at all. An entry that another process has changed since the run read it is
    /// left unchanged, and nothing is removed unless everything else succeeded. In a write-through
    /// run, all changes are already in the base, so the list is empty.
    ///
    /// # Errors
    /// If a change could not be applied. The error lists the changes that were applied and those
    /// that were not.
    pub fn apply(&self) -> Result<Vec<Change>, ApplyError> {
        match &mut *self.store.lock() {
            Store::Overlay(overlay) => overlay.apply(|_| true),
            Store::WriteThrough(_) => Ok(Vec::new()),
        }
    }

    /// Applies only the changes for which `chosen` returns true, in the same way as
    /// [`Files::apply`]. The other changes stay in the overlay. If a chosen change is in a new
    /// folder, the change that creates the folder must be chosen, too.
    ///
    /// ```
    /// use wattle_files::{Files, OVERLAY_LIMIT};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let workdir = dir.path();
    /// let files = Files::overlay(Some(Files::open_base(workdir)?), OVERLAY_LIMIT);
    /// files.write("notes/a.txt", b"rain")?;
    /// files.write("notes/b.txt", b"snow")?;
    /// files.apply_chosen(|change| change.path != "notes/b.txt").unwrap();
    /// assert!(workdir.join("notes/a.txt").exists() && !workdir.join("notes/b.txt").exists());
    /// assert_eq!(files.changes()?.len(), 1);
    /// # Ok::<(), wattle_files::FilesError>(())
    /// ```
    ///
    /// # Errors
    /// If a chosen change could not be applied. The error lists the chosen changes that were
    /// applied and those that were not.
    pub fn apply_chosen(
        &self,
        chosen: impl Fn(&Change) -> bool,
    ) -> Result<Vec<Change>, ApplyError> {
        match &mut *self.store.lock() {
            Store::Overlay(overlay) => overlay.apply(chosen),
            Store::WriteThrough(_) => Ok(Vec::new()),
        }
    }

    /// Discards the overlay's changes at a path and under it, so that the run sees the base's
    /// entries there again. Keeps all other changes. Does nothing if there is no such change, or in
    /// a write-through run.
    ///
    /// ```
    /// use wattle_files::{Files, OVERLAY_LIMIT};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let workdir = dir.path();
    /// std::fs::write(workdir.join("a.txt"), "rain").unwrap();
    /// let files = Files::overlay(Some(Files::open_base(workdir)?), OVERLAY_LIMIT);
    /// files.remove("a.txt")?;
    /// files.write("b.txt", b"snow")?;
    /// files.discard("a.txt")?;
    /// assert_eq!(files.read("a.txt")?, "rain");
    /// assert_eq!(files.changes()?.len(), 1);
    /// # Ok::<(), wattle_files::FilesError>(())
    /// ```
    ///
    /// # Errors
    /// If the path leads out of the workdir, the base cannot be read, or the overlay is full. Also
    /// fails if the run replaced a parent folder and another process has changed that folder since.
    /// If this function fails, no change is discarded.
    pub fn discard(&self, path: &str) -> Result<(), FilesError> {
        let entry = RunPath::parse(path);
        let entry = entry.map_err(|fault| FilesError::path(Intent::Write, path, fault))?;
        match &mut *self.store.lock() {
            Store::Overlay(overlay) => overlay.discard(&entry),
            Store::WriteThrough(_) => Ok(()),
        }
    }
}

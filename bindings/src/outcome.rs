//! The outcome of a program.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_agent::host::capability::files::{Change, ChangeKind, Files};
use wattle_agent::host::machine::Artifact;
use wattle_agent::host::rt;

use crate::Error;

/// The outcome of a program: what it printed, logged and left, and the files that it worked on.
#[derive(Clone)]
pub struct Outcome {
    inner: rt::Outcome,
    /// The files of the run, or `None` if the program has none.
    files: Option<Arc<Files>>,
}

impl Outcome {
    pub(crate) fn new(inner: rt::Outcome, files: Option<Arc<Files>>) -> Outcome {
        Outcome { inner, files }
    }

    /// Returns the runtime's own outcome.
    #[must_use]
    pub fn inner(&self) -> &rt::Outcome {
        &self.inner
    }

    /// Returns everything that the program printed, one result per line.
    #[must_use]
    pub fn text(&self) -> String {
        self.inner.texts().join("\n")
    }

    /// Returns the changes that the program made to its files: an array of objects with `path`,
    /// `kind` (`created`, `modified` or `deleted`) and `size`.
    ///
    /// # Errors
    /// If the files cannot be compared with those in the granted folder.
    pub fn changes(&self) -> Result<Json, Error> {
        let changes = self.files.as_ref().map_or(Ok(Vec::new()), |files| files.changes());
        let one = |change: &Change| {
            let kind = match change.kind {
                ChangeKind::Created => "created",
                ChangeKind::Modified => "modified",
                ChangeKind::Deleted => "deleted",
            };
            json!({"path": change.path, "kind": kind, "size": change.size})
        };
        Ok(changes.map_err(Error::host)?.iter().map(one).collect())
    }

    /// Reads a file as the program left it.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn file(&self, path: &str) -> Result<Vec<u8>, Error> {
        let files = self.files.as_ref().ok_or_else(|| Error::settings("the run has no files"))?;
        files.read(path).map(|bytes| bytes.to_vec()).map_err(Error::settings)
    }

    /// Writes the changes to the granted folder. Without such a folder, or if the program wrote to
    /// it directly, this does nothing.
    ///
    /// # Errors
    /// If a file cannot be written, or was changed by others in the meantime.
    pub fn apply(&self) -> Result<(), Error> {
        match self.files.as_ref().filter(|files| files.is_overlay() && !files.is_memory()) {
            Some(files) => files.apply().map(drop).map_err(Error::host),
            None => Ok(()),
        }
    }

    /// Returns the outcome as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let rt::Outcome { log, fuel, memory_bytes, duration, calls, artifacts, .. } = &self.inner;
        let calls = calls
            .iter()
            .map(|one| json!({"function": one.function, "calls": one.calls, "failed": one.failed}));
        let artifacts = artifacts.iter();
        let artifacts =
            artifacts.map(|one| Artifact { name: one.name.clone(), data: one.data.clone() });
        json!({
            "results": self.inner.texts(),
            "log": log,
            "fuel": fuel,
            "memory_bytes": memory_bytes,
            "duration_us": u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            "calls": calls.collect::<Vec<_>>(),
            "artifacts": artifacts.collect::<Vec<_>>(),
        })
    }
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Outcome").field(&self.inner).finish()
    }
}

//! The guests of host functions: each compiled at its first use, once per process, and kept on disk for the next one.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wattle_rt::{Code, Failure, Guest};

/// The folder that keeps compiled guests; none by default.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Keeps compiled guests in that folder for other processes. The first call in a process counts, if it comes before the first guest is
/// used.
pub fn keep_compiled_in(folder: &Path) {
    FOLDER.get_or_init(|| folder.to_owned());
}

/// A guest that is compiled when it is first needed.
pub(crate) struct LazyGuest {
    name: &'static str,
    module: &'static [u8],
    compiled: OnceLock<Arc<Guest>>,
    /// Held by whoever compiles.
    compiling: Mutex<()>,
}

impl LazyGuest {
    /// Names a guest and its module.
    pub(crate) const fn new(name: &'static str, module: &'static [u8]) -> LazyGuest {
        LazyGuest { name, module, compiled: OnceLock::new(), compiling: Mutex::new(()) }
    }

    /// Begins to compile the guest, for a call that is about to need it.
    pub(crate) fn prepare(&'static self) {
        if self.compiled.get().is_none() {
            drop(tokio::task::spawn_blocking(|| self.compile()));
        }
    }

    /// Returns the guest.
    ///
    /// # Errors
    /// `EREMOTE` if the host cannot compile it.
    pub(crate) async fn get(&'static self) -> Result<Arc<Guest>, Failure> {
        if let Some(guest) = self.compiled.get() {
            return Ok(Arc::clone(guest));
        }
        // It goes on if this is dropped, so that the next call finds it done.
        let compiled = tokio::task::spawn_blocking(|| self.compile()).await;
        compiled
            .unwrap_or_else(|stopped| Err(stopped.to_string()))
            .map_err(|why| Failure::new(Code::EREMOTE, format!("the guest `{}` cannot be started: {why}", self.name)))
    }

    fn compile(&self) -> Result<Arc<Guest>, String> {
        let _held = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(guest) = self.compiled.get() {
            return Ok(Arc::clone(guest));
        }
        let guest = Guest::new(self.name, self.module, FOLDER.get().map(PathBuf::as_path));
        let guest = Arc::new(guest.map_err(|error| error.to_string())?);
        Ok(Arc::clone(self.compiled.get_or_init(|| guest)))
    }
}

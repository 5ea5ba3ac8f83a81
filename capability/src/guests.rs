//! The WebAssembly guests that host functions use. Each guest is compiled on first use, once per
//! process, and cached on disk for later processes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wattle_rt::{Code, Failure, Guest, HostModule};

/// Maximum size of an uncompressed module, in bytes.
const MAX_MODULE: usize = 64 << 20;

/// The cache folder for compiled guests. If it is not set, nothing is cached on disk.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the folder where compiled guests are cached for other processes. Only the first call in a
/// process has an effect, and only on guests that are compiled after it.
pub fn keep_compiled_in(folder: &Path) {
    FOLDER.get_or_init(|| folder.to_owned());
}

/// A guest that is compiled on first use.
pub(crate) struct LazyGuest {
    name: &'static str,
    /// The module, compressed with zstd.
    packed: &'static [u8],
    compiled: OnceLock<Arc<Guest>>,
    /// The lock held during compilation.
    compiling: Mutex<()>,
}

impl LazyGuest {
    /// Creates a guest from its name and its compressed module, without compiling it.
    pub(crate) const fn new(name: &'static str, packed: &'static [u8]) -> LazyGuest {
        LazyGuest { name, packed, compiled: OnceLock::new(), compiling: Mutex::new(()) }
    }

    /// Starts compiling the guest in the background, so that later calls wait less.
    pub(crate) fn prepare(&'static self) {
        if self.compiled.get().is_none() {
            drop(tokio::task::spawn_blocking(|| self.compile()));
        }
    }

    /// Returns the compiled guest.
    ///
    /// # Errors
    /// `EREMOTE` if the host cannot compile it.
    pub(crate) async fn get(&'static self) -> Result<Arc<Guest>, Failure> {
        if let Some(guest) = self.compiled.get() {
            return Ok(Arc::clone(guest));
        }
        // The compilation continues if this future is dropped, so that a later call can use the
        // result.
        let compiled = tokio::task::spawn_blocking(|| self.compile()).await;
        compiled.unwrap_or_else(|stopped| Err(stopped.to_string())).map_err(|why| {
            Failure::new(Code::EREMOTE, format!("failed to start the guest `{}`: {why}", self.name))
        })
    }

    fn compile(&self) -> Result<Arc<Guest>, String> {
        let _held = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(guest) = self.compiled.get() {
            return Ok(Arc::clone(guest));
        }
        let module = HostModule { name: self.name, identity: self.packed };
        let cache = FOLDER.get().map(PathBuf::as_path);
        let guest = Guest::new(module, cache, || unpack(self.packed));
        let guest = Arc::new(guest.map_err(|error| error.to_string())?);
        Ok(Arc::clone(self.compiled.get_or_init(|| guest)))
    }
}

/// Decompresses a module that was compressed with zstd.
///
/// # Errors
/// If the bytes are not compressed data, or if the module has more than 64 MiB.
pub fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(packed, MAX_MODULE)
}

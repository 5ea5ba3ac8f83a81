//! The folder in which processes share the compiled modules of the host's own guests.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use wasmtime::{Cache, CacheConfig, Config};

/// The folder of compiled modules, locked against other processes. If several processes start at
/// the same time, one of them compiles and the others read its result.
pub struct CompiledFolder {
    folder: PathBuf,
    _lock: File,
}

impl CompiledFolder {
    /// Locks the folder, and creates it if it is missing. Each `module` has its own lock, so that
    /// different modules do not wait for each other.
    ///
    /// # Errors
    /// If the folder cannot be created or belongs to another user.
    pub fn lock(folder: &Path, module: &str) -> io::Result<CompiledFolder> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // The files in the folder are executed. Only the owner of a folder can set its permissions,
        // so a folder of another user is never used.
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        let folder = std::fs::canonicalize(folder)?;
        let lock = File::create(folder.join(format!("{module}.lock")))?;
        lock.lock()?;
        Ok(CompiledFolder { folder, _lock: lock })
    }

    /// Configures an engine to store its compiled modules in the folder and to load them from it.
    ///
    /// # Errors
    /// If the engine does not accept the folder.
    pub fn configure(&self, config: &mut Config) -> wasmtime::Result<()> {
        let mut settings = CacheConfig::new();
        settings.with_directory(&self.folder);
        config.cache(Some(Cache::new(settings)?));
        Ok(())
    }
}

//! The folder that keeps compiled modules of the host's own for other processes.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use wasmtime::{Cache, CacheConfig, Config};

/// The folder of compiled modules, locked against other processes: of those that start at the same time one compiles, and the others
/// find its result.
pub struct CompiledFolder {
    folder: PathBuf,
    _lock: File,
}

impl CompiledFolder {
    /// Locks the folder, and makes it if it is missing. `module` names the lock, so that different modules do not wait for each other.
    ///
    /// # Errors
    /// If the folder cannot be made, or is not this user's.
    pub fn lock(folder: &Path, module: &str) -> io::Result<CompiledFolder> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // What is read from there is executed. Only the owner of a folder can set its permissions, so nobody else's is used.
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        let folder = std::fs::canonicalize(folder)?;
        let lock = File::create(folder.join(format!("{module}.lock")))?;
        lock.lock()?;
        Ok(CompiledFolder { folder, _lock: lock })
    }

    /// Has an engine keep its modules in the folder, and read them from there.
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

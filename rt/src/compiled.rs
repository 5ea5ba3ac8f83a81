//! The folder in which processes share the compiled modules of the host's own guests.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use wasmtime::{Cache, CacheConfig, Config};

/// The folder of compiled modules, locked against other processes. If several processes start at
/// the same time, one of them compiles and the others read its result.
pub struct CompiledFolder {
    folder: PathBuf,
    _lock: File,
}

/// The engine's subfolder, which has a folder for each of its versions.
const MODULES: &str = "modules";

/// Part of the names of files that the engine has not written completely.
const INCOMPLETE: &str = ".wip-";

/// The time after which an incomplete file is abandoned.
const ABANDONED: Duration = Duration::from_secs(60);

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
        remove_abandoned(&folder.join(MODULES));
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

/// Removes incomplete files that no process writes. A process that was killed, or a full disk,
/// leaves them, and the engine never stores a module whose incomplete file exists.
fn remove_abandoned(modules: &Path) {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    for file in entries(modules).flat_map(|version| entries(&version.path()).collect::<Vec<_>>()) {
        let is_incomplete = file.file_name().to_string_lossy().contains(INCOMPLETE);
        let modified = file.metadata().and_then(|data| data.modified()).ok();
        let age = modified.and_then(|time| time.elapsed().ok());
        if is_incomplete && age.is_some_and(|age| age > ABANDONED) {
            // If this fails, the module is compiled again.
            _ = std::fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use std::time::SystemTime;

    use super::*;

    #[test]
    fn an_incomplete_file_is_removed_once_it_is_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let version = folder.path().join("modules/wasmtime-1");
        std::fs::create_dir_all(&version).unwrap();
        let file = |name: &str, age: Duration| {
            let file = File::create(version.join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        file("a.wip-atomic-write-mod", Duration::from_secs(3_600));
        file("b.wip-atomic-write-mod", Duration::ZERO);
        file("c", Duration::from_secs(3_600));
        drop(CompiledFolder::lock(folder.path(), "commands").unwrap());
        let mut left: Vec<String> = std::fs::read_dir(&version)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["b.wip-atomic-write-mod", "c"]);
    }
}

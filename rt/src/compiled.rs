//! Compiled WebAssembly modules that belong to the host, stored in files that processes share.
//!
//! Compiling a large module takes seconds, and a built-in program some milliseconds. The machine
//! code is stored in a file, which later processes read into their memory. It is not mapped, since a
//! file that somebody shortens, for example to free space, would end the process. The name of the
//! file contains two hashes: one of the module together with the engine's version and settings, and
//! one of the file's content.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::engine::settings_hasher;

/// Time after which an unused file of another version of a module is removed, even if the file is
/// incomplete.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Maximum size of a file, in bytes.
const MAX_FILE: u64 = 256 << 20;

/// A module that belongs to the host: a guest, or a built-in program.
#[derive(Clone, Copy, Debug)]
pub struct HostModule<'a> {
    /// The module's name in the cache folder, such as `jq`. It consists of letters, digits and `_`.
    pub name: &'a str,
    /// Bytes that identify the module: its binary, or a compressed form of it.
    pub identity: &'a [u8],
}

impl HostModule<'_> {
    /// Reads the compiled module from its file in the folder `cache`. If there is no valid file,
    /// calls `binary`, compiles the result and stores it. Creates a missing folder with access only
    /// for its owner. If the folder cannot be used, compiles the module but does not store it.
    ///
    /// Compiling blocks the calling thread for about a second per megabyte of binary.
    ///
    /// # Errors
    /// If `binary` fails, or if the module does not compile.
    pub fn load(
        &self,
        engine: &Engine,
        cache: Option<&Path>,
        binary: impl FnOnce() -> wasmtime::Result<Vec<u8>>,
    ) -> wasmtime::Result<Module> {
        self.load_as(engine, cache, binary)
    }

    /// Reads or compiles a component like [`load`](HostModule::load).
    ///
    /// # Errors
    /// The same as for [`load`](HostModule::load).
    pub fn load_component(
        &self,
        engine: &Engine,
        cache: Option<&Path>,
        binary: impl FnOnce() -> wasmtime::Result<Vec<u8>>,
    ) -> wasmtime::Result<Component> {
        self.load_as(engine, cache, binary)
    }

    fn load_as<T: Compiled>(
        &self,
        engine: &Engine,
        cache: Option<&Path>,
        binary: impl FnOnce() -> wasmtime::Result<Vec<u8>>,
    ) -> wasmtime::Result<T> {
        let Some(folder) = cache.and_then(|folder| CompiledFolder::open(folder).ok()) else {
            return T::compile(engine, &binary()?);
        };
        let prefix = format!("{}-{}-", self.name, self.key(engine));
        if let Some(module) = folder.find(engine, &prefix) {
            return Ok(module);
        }
        // If several processes start at the same time, only one of them compiles the module.
        let lock = folder.lock(self.name);
        if lock.is_ok()
            && let Some(module) = folder.find(engine, &prefix)
        {
            return Ok(module);
        }
        let module = T::compile(engine, &binary()?)?;
        if lock.is_ok() {
            folder.remove_incomplete(self.name);
        }
        if lock.is_ok()
            && let Err(error) = folder.store(&prefix, &module.serialize()?)
        {
            tracing::warn!(%error, module = self.name, "failed to store a compiled module");
        }
        folder.remove_unused(self.name, &prefix);
        Ok(module)
    }

    /// Returns the hash of everything that determines the machine code.
    fn key(&self, engine: &Engine) -> String {
        short(settings_hasher(engine).update(self.identity).finalize())
    }
}

/// Returns the first half of a hash in hexadecimal digits.
fn short(hash: blake3::Hash) -> String {
    hash.to_hex().chars().take(32).collect()
}

/// The folder for compiled modules.
struct CompiledFolder(PathBuf);

impl CompiledFolder {
    /// Creates the folder if it is missing and makes it accessible only to its owner.
    fn open(folder: &Path) -> io::Result<CompiledFolder> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // The files in the folder are executed. Only the owner of a folder can set its permissions,
        // so a folder of another user is never used.
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        Ok(CompiledFolder(std::fs::canonicalize(folder)?))
    }

    /// Waits until no other process is compiling this module, then locks the module until the
    /// returned file is closed.
    fn lock(&self, name: &str) -> io::Result<File> {
        let lock = File::create(self.0.join(format!("{name}.lock")))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Returns the module from the first valid file whose name starts with `prefix`, or `None` if
    /// there is no such file. Removes any invalid file that it encounters.
    fn find<T: Compiled>(&self, engine: &Engine, prefix: &str) -> Option<T> {
        let files = self.files(|name| name.starts_with(prefix) && is_complete(name));
        files.into_iter().find_map(|path| {
            let module = read_checked(&path).and_then(|code| deserialize(engine, code));
            if let Err(error) = &module {
                tracing::warn!(
                    %error,
                    path = %path.display(),
                    "a compiled module is compiled again"
                );
                // If this fails, the new file either has a different name or replaces this one.
                _ = std::fs::remove_file(&path);
            }
            module.ok()
        })
    }

    /// Stores the machine code of a module atomically. If that fails, removes the incomplete file.
    fn store(&self, prefix: &str, code: &[u8]) -> io::Result<()> {
        let path = self.0.join(format!("{prefix}{}", short(blake3::hash(code))));
        let incomplete = path.with_extension(INCOMPLETE);
        let stored = write_new(&incomplete, code).and_then(|()| std::fs::rename(&incomplete, path));
        if stored.is_err() {
            _ = std::fs::remove_file(&incomplete);
        }
        stored
    }

    /// Removes the incomplete files of a module, which a killed process left behind. The module must
    /// be locked, so that no other process is writing one.
    fn remove_incomplete(&self, name: &str) {
        let module = format!("{name}-");
        for path in self.files(|file| file.starts_with(&module) && !is_complete(file)) {
            _ = std::fs::remove_file(path);
        }
    }

    /// Removes the files of a module's other versions if they have not been used for a long time.
    fn remove_unused(&self, name: &str, prefix: &str) {
        let module = format!("{name}-");
        for path in self.files(|file| file.starts_with(&module) && !file.starts_with(prefix)) {
            let Ok(data) = path.metadata() else { continue };
            let used = data.accessed().ok().max(data.modified().ok());
            if used.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > UNUSED) {
                // A file that cannot be removed only takes up space.
                _ = std::fs::remove_file(path);
            }
        }
    }

    /// Returns the files in the folder whose names satisfy `wanted`.
    fn files(&self, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let wanted = entries.filter(|entry| entry.file_name().to_str().is_some_and(&wanted));
        wanted.map(|entry| entry.path()).collect()
    }
}

/// The extension of files that are still being written.
const INCOMPLETE: &str = "incomplete";

fn is_complete(name: &str) -> bool {
    !name.ends_with(INCOMPLETE)
}

/// Writes a file that only this user can access to the disk. Does not follow links.
fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Reads a file of machine code and verifies it: the user of this process must own the file, only the owner may
/// write to it, and the hash of its content must match the hash at the end of its name.
fn read_checked(path: &Path) -> wasmtime::Result<Vec<u8>> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    let data = file.metadata()?;
    let is_own = data.uid() == rustix::process::geteuid().as_raw();
    if !data.is_file() || !is_own || data.mode() & 0o022 != 0 || data.len() > MAX_FILE {
        return Err(wasmtime::Error::msg("it is not a file that only this user can write"));
    }
    let mut content = Vec::with_capacity(usize::try_from(data.len())?);
    Read::by_ref(&mut file).take(MAX_FILE).read_to_end(&mut content)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.ends_with(&format!("-{}", short(blake3::hash(&content)))) {
        return Err(wasmtime::Error::msg("its content was changed"));
    }
    Ok(content)
}

/// A compiled module or component.
trait Compiled: Sized {
    /// The engine's function that creates the module from a copy of its machine code.
    const DESERIALIZE: unsafe fn(&Engine, Vec<u8>) -> wasmtime::Result<Self>;

    fn compile(engine: &Engine, binary: &[u8]) -> wasmtime::Result<Self>;

    /// Returns the machine code.
    fn serialize(&self) -> wasmtime::Result<Vec<u8>>;
}

impl Compiled for Module {
    const DESERIALIZE: unsafe fn(&Engine, Vec<u8>) -> wasmtime::Result<Module> =
        Module::deserialize;

    fn compile(engine: &Engine, binary: &[u8]) -> wasmtime::Result<Module> {
        Module::new(engine, binary)
    }

    fn serialize(&self) -> wasmtime::Result<Vec<u8>> {
        Module::serialize(self)
    }
}

impl Compiled for Component {
    const DESERIALIZE: unsafe fn(&Engine, Vec<u8>) -> wasmtime::Result<Component> =
        Component::deserialize;

    fn compile(engine: &Engine, binary: &[u8]) -> wasmtime::Result<Component> {
        Component::new(engine, binary)
    }

    fn serialize(&self) -> wasmtime::Result<Vec<u8>> {
        Component::serialize(self)
    }
}

/// Creates a module or component from a copy of its machine code.
#[expect(unsafe_code, reason = "machine code can only be checked by where it comes from")]
fn deserialize<T: Compiled>(engine: &Engine, code: Vec<u8>) -> wasmtime::Result<T> {
    // SAFETY: the engine requires machine code that it compiled itself. `read_checked` found that
    // the code is what this user stored under the hash of the module and of the engine's settings,
    // in a folder and a file that only this user can write. `store` is the only code that writes
    // there. The engine itself compares its version and settings with those in the code, and whether
    // it is that of a module or of a component.
    unsafe { T::DESERIALIZE(engine, code) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

    use std::time::SystemTime;

    use wasmtime::{Instance, Store};

    use super::*;

    /// A module that exports a function `answer`, which returns 42.
    const BINARY: &[u8] = b"\0asm\x01\0\0\0\x01\x05\x01\x60\0\x01\x7f\x03\x02\x01\0\x07\x0a\x01\
        \x06answer\0\0\x0a\x06\x01\x04\0\x41\x2a\x0b";

    const NAMED: HostModule<'static> = HostModule { name: "test", identity: BINARY };

    fn load(folder: &Path) -> (Module, bool) {
        let mut compiled = false;
        let module = NAMED.load(&Engine::default(), Some(folder), || {
            compiled = true;
            Ok(BINARY.to_vec())
        });
        let module = module.unwrap();
        call(&module);
        (module, compiled)
    }

    fn call(module: &Module) {
        let mut store = Store::new(module.engine(), ());
        let instance = Instance::new(&mut store, module, &[]).unwrap();
        let answer = instance.get_typed_func::<(), i32>(&mut store, "answer").unwrap();
        assert_eq!(answer.call(&mut store, ()).unwrap(), 42);
    }

    fn stored(folder: &Path) -> PathBuf {
        let files = CompiledFolder::open(folder).unwrap().files(|name| name.starts_with("test-"));
        let [only] = files.as_slice() else { panic!("{files:?}") };
        only.clone()
    }

    #[test]
    fn a_module_is_compiled_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(load(folder.path()).1);
        assert!(!load(folder.path()).1);
        assert_eq!(folder.path().metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(stored(folder.path()).metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_was_changed_or_that_others_can_write_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        assert!(load(folder.path()).1);
        let path = stored(folder.path());
        let mut code = std::fs::read(&path).unwrap();
        let middle = code.len() / 2;
        code[middle] ^= 1;
        std::fs::write(&path, &code).unwrap();
        assert!(load(folder.path()).1, "one bit was flipped");
        std::fs::write(stored(folder.path()), b"short").unwrap();
        assert!(load(folder.path()).1, "the file was cut");
        std::fs::set_permissions(stored(folder.path()), Permissions::from_mode(0o622)).unwrap();
        assert!(load(folder.path()).1, "others can write the file");
        let (path, target) = (stored(folder.path()), folder.path().join("elsewhere"));
        std::fs::rename(&path, &target).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(load(folder.path()).1, "the file is a link");
        assert!(!load(folder.path()).1, "each time, a new file replaced it");
    }

    #[test]
    fn a_module_outlives_the_content_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(load(folder.path()).1);
        let (module, compiled) = load(folder.path());
        assert!(!compiled);
        OpenOptions::new().write(true).open(stored(folder.path())).unwrap().set_len(0).unwrap();
        call(&module);
    }

    #[test]
    fn incomplete_files_of_the_module_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("test-new-1.incomplete");
        let other = folder.path().join("other-new-1.incomplete");
        std::fs::write(&left, "left by a killed process").unwrap();
        std::fs::write(&other, "being written").unwrap();
        assert!(load(folder.path()).1);
        assert!(!left.exists() && other.exists());
        // The file cannot replace a folder.
        let folder = CompiledFolder::open(folder.path()).unwrap();
        let path = folder.0.join(format!("full-{}", short(blake3::hash(b"code"))));
        DirBuilder::new().create(&path).unwrap();
        folder.store("full-", b"code").unwrap_err();
        assert!(folder.files(|name| name.starts_with("full-") && !is_complete(name)).is_empty());
    }

    #[test]
    fn old_files_of_other_versions_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, age: Duration| {
            let file = File::create(folder.path().join(name)).unwrap();
            let time = SystemTime::now() - age;
            file.set_times(std::fs::FileTimes::new().set_accessed(time).set_modified(time))
                .unwrap();
        };
        file("test-old-1", UNUSED * 2);
        file("test-old-2.incomplete", UNUSED * 2);
        file("test-new-3", UNUSED / 2);
        file("other-old-4", UNUSED * 2);
        load(folder.path());
        let left = CompiledFolder::open(folder.path()).unwrap();
        assert_eq!(left.files(|name| name.starts_with("test-old")), Vec::<PathBuf>::new());
        assert_eq!(left.files(|name| name == "test-new-3" || name == "other-old-4").len(), 2);
    }

    #[test]
    fn without_a_usable_folder_the_module_is_compiled() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        File::create(&file).unwrap();
        assert!(load(&file).1);
        assert!(load(&file).1);
    }
}

//! The public operations on a run's files. Each operation holds the store's lock while it resolves
//! its paths, asks the guard about them, and accesses the tree.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use wattle_lang::Target;

use crate::base::Base;
use crate::entry::{Change, Entry, EntryKind, Stat};
use crate::error::{ApplyError, AtPath as _, FilesError};
use crate::host_files::HostFiles;
use crate::overlay::{MemoryCharge, Overlay};
use crate::path::{Intent, RunPath};
use crate::reader::Reader;
use crate::store::{SharedStore, Store};
use crate::tree::resolve::{FinalLink, check_inside, check_names_file, resolve};
use crate::tree::{Edit, PathGuard, Tree, change, lookup};
use crate::write_through::WriteThrough;
use crate::writer::Writer;
use crate::{READ_LIMIT, TRACE_FILE};

/// Maximum number of attempts at an operation. Each attempt resolves the paths again.
const MAX_ATTEMPTS: usize = 8;

/// A function that returns the lines of a run's trace up to now. It fails if they cannot be read or
/// are larger than the given number of bytes.
pub type TraceView = Arc<dyn Fn(u64) -> io::Result<Bytes> + Send + Sync>;

/// The files of one run. Threads can share them: each operation completes before the next one
/// starts.
pub struct Files {
    store: SharedStore,
    guard: Option<PathGuard>,
    /// If true, every absolute path names an entry in the workdir.
    rooted: bool,
    trace: Option<TraceView>,
}

impl Files {
    /// Creates a file system for a run as an overlay over `base`. Reads fall through to the base,
    /// and writes stay in memory. Without a base, the file system is initially empty. The overlay
    /// uses at most `limit` bytes for content and metadata.
    #[must_use]
    pub fn overlay(base: Option<Base>, limit: u64) -> Files {
        Files::new(Store::Overlay(Overlay::new(base, limit)))
    }

    /// Creates a handle to the files of a run whose writes go directly to `base`.
    /// [`Files::changes`] also lists these writes.
    #[must_use]
    pub fn write_through(base: Base) -> Files {
        Files::new(Store::WriteThrough(WriteThrough::new(base)))
    }

    fn new(store: Store) -> Files {
        Files { store: SharedStore::new(store), guard: None, rooted: false, trace: None }
    }

    /// Returns a handle to the same files. The handle asks `guard` about each path of an operation:
    /// as written, after each link that is followed, and fully resolved.
    #[must_use]
    pub fn guarded(&self, guard: PathGuard) -> Files {
        Files { guard: Some(guard), ..self.handle() }
    }

    /// Returns a handle to the same files for a shell, which makes all paths absolute itself. Every
    /// absolute path names an entry in the workdir, even one such as `/etc/shadow`. A shell checks
    /// the paths that its user wrote with [`Files::check_inside`].
    #[must_use]
    pub fn rooted(&self) -> Files {
        Files { rooted: true, ..self.handle() }
    }

    /// Returns a handle to the same files in which [`TRACE_FILE`] in the root of the workdir is the
    /// trace that `view` returns, whatever the workdir contains. Like the other files that the host
    /// writes, it can be read by name, but neither listed nor changed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use wattle_files::{Files, OVERLAY_LIMIT, TRACE_FILE};
    /// let files = Files::overlay(None, OVERLAY_LIMIT);
    /// let of_run = files.with_trace(Arc::new(|_| Ok("{}\n".into())));
    /// assert_eq!(of_run.read(TRACE_FILE)?, "{}\n");
    /// assert!(of_run.list("/")?.is_empty());
    /// assert!(of_run.write(TRACE_FILE, b"").is_err());
    /// assert!(files.read(TRACE_FILE).is_err());
    /// # Ok::<(), wattle_files::FilesError>(())
    /// ```
    #[must_use]
    pub fn with_trace(&self, view: TraceView) -> Files {
        Files { trace: Some(view), ..self.handle() }
    }

    /// Returns another handle to the same files.
    fn handle(&self) -> Files {
        let Files { store, guard, rooted, trace } = self;
        let store = store.clone();
        let guard = guard.clone();
        let trace = trace.clone();
        Files { store, guard, rooted: *rooted, trace }
    }

    /// Returns the run's trace if `path` names it.
    fn trace_at(&self, path: &RunPath) -> Option<Result<Bytes, FilesError>> {
        let view = self.trace.as_ref().filter(|_| is_trace(path))?;
        Some(view(READ_LIMIT).at(Intent::Read, path))
    }

    /// Checks that an absolute path, as the user wrote it, names an entry in the workdir. A path
    /// into a top-level folder of the operating system, such as `/etc/shadow`, is rejected unless
    /// the workdir contains that folder. For writing, common folders such as `/bin` are accepted
    /// even if the workdir does not contain them. A relative path is always accepted.
    ///
    /// # Errors
    /// If an absolute path leads out of the workdir.
    pub fn check_inside(&self, path: &str, write: bool) -> Result<(), FilesError> {
        let intent = if write { Intent::Write } else { Intent::Read };
        check_inside(self.store.lock().tree(), path, intent)
    }

    /// Opens the workdir at a host path as a base. None of its files are protected as the host's
    /// own.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be opened.
    pub fn open_base(path: &Path) -> Result<Base, FilesError> {
        Base::open(path, HostFiles::default())
    }

    /// Opens the workdir at a host path as a base. Protects the host's own files in it from runs,
    /// and from the completion of changes that killed processes left unfinished.
    ///
    /// # Errors
    /// If the folder does not exist or cannot be opened.
    pub fn open_protected_base(path: &Path, files: HostFiles) -> Result<Base, FilesError> {
        Base::open(path, files)
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// If the file does not exist, cannot be read, or is larger than
    /// [`READ_LIMIT`](crate::READ_LIMIT).
    pub fn read(&self, path: &str) -> Result<Bytes, FilesError> {
        self.open(path)?.read_all()
    }

    /// Reads `len` bytes from `offset`, but at most [`READ_LIMIT`](crate::READ_LIMIT). Returns
    /// fewer bytes only at the end of the file, and none beyond it.
    ///
    /// # Errors
    /// If the file does not exist or cannot be read.
    pub fn read_at(&self, path: &str, offset: u64, len: u64) -> Result<Bytes, FilesError> {
        self.open(path)?.read_at(offset, len)
    }

    /// Opens a file for reading in parts. The reader always reads the file that was opened: a file
    /// in the overlay is read from a snapshot, and a file in the base stays readable even if it is
    /// moved or removed.
    ///
    /// # Errors
    /// If the file does not exist or cannot be read.
    pub fn open(&self, path: &str) -> Result<Reader, FilesError> {
        self.on_file(path, Target::Read, |tree, path| match self.trace_at(path) {
            Some(trace) => Ok(Reader::memory(path.clone(), trace?)),
            None => lookup::open(tree, path),
        })
    }

    /// Writes a whole file and replaces any file at the path. Creates missing parent folders.
    ///
    /// # Errors
    /// If the path or a parent is an entry of a different type, the overlay is full, or the base
    /// does not allow the change.
    pub fn write(&self, path: &str, data: &[u8]) -> Result<(), FilesError> {
        self.on_file(path, Target::Write, |tree, path| change::write(tree, path, data))
    }

    /// Checks in advance whether [`Files::write`] can write a file. The write may still fail.
    ///
    /// # Errors
    /// The same as for [`Files::write`].
    pub fn check_write(&self, path: &str) -> Result<(), FilesError> {
        self.on_file(path, Target::Write, |tree, path| change::file_size(tree, path).map(drop))
    }

    /// Creates an empty file in an existing folder.
    ///
    /// # Errors
    /// The same as for [`Files::write`]. Also fails if an entry exists at the path (even a link
    /// whose target does not exist), or the folder does not exist.
    pub fn create_new(&self, path: &str) -> Result<(), FilesError> {
        let create =
            |tree: &mut dyn Tree, resolved: &RunPath| change::create_file(tree, resolved, path);
        self.on_path(path, Target::Write, FinalLink::Keep, create)
    }

    /// Appends to a file. Creates the file and its missing parent folders.
    ///
    /// # Errors
    /// The same as for [`Files::write`]. Also fails if the file is in the base and is too large to
    /// copy into the overlay.
    pub fn append(&self, path: &str, data: &[u8]) -> Result<(), FilesError> {
        self.edit(path, Edit::Append(data))
    }

    /// Writes to a file at an offset. A gap before the offset is filled with zeros. Creates the
    /// file and its missing parent folders.
    ///
    /// # Errors
    /// The same as for [`Files::append`].
    pub fn write_at(&self, path: &str, offset: u64, data: &[u8]) -> Result<(), FilesError> {
        self.edit(path, Edit::WriteAt(offset, data))
    }

    /// Truncates a file to `size` bytes, or extends it with zeros.
    ///
    /// # Errors
    /// The same as for [`Files::append`]. Also fails if the file does not exist.
    pub fn truncate(&self, path: &str, size: u64) -> Result<(), FilesError> {
        self.edit(path, Edit::Truncate(size))
    }

    fn edit(&self, path: &str, edit: Edit<'_>) -> Result<(), FilesError> {
        self.on_file(path, Target::Write, |tree, path| change::edit(tree, path, edit).map(drop))
    }

    /// Opens an existing file for writing in parts.
    ///
    /// # Errors
    /// If the file does not exist or cannot be written.
    pub fn writer(&self, path: &str) -> Result<Writer, FilesError> {
        let file = self.on_file(path, Target::Write, change::open)?;
        Ok(Writer::new(self.store.clone(), file))
    }

    /// Lists a folder, sorted by name.
    ///
    /// # Errors
    /// If the folder does not exist, or has more than [`ENTRY_LIMIT`](crate::ENTRY_LIMIT) entries.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, FilesError> {
        self.on_path(path, Target::Read, FinalLink::Follow, |tree, path| lookup::list(tree, path))
    }

    /// Returns the metadata of the entry that a path leads to, following links.
    ///
    /// # Errors
    /// If the entry does not exist.
    pub fn stat(&self, path: &str) -> Result<Stat, FilesError> {
        self.metadata(path, FinalLink::Follow)
    }

    /// Returns the metadata of an entry, without following a link at the end of the path.
    ///
    /// # Errors
    /// If the entry does not exist.
    pub fn stat_link(&self, path: &str) -> Result<Stat, FilesError> {
        self.metadata(path, FinalLink::Keep)
    }

    fn metadata(&self, path: &str, final_link: FinalLink) -> Result<Stat, FilesError> {
        self.on_path(path, Target::Read, final_link, |tree, path| match self.trace_at(path) {
            Some(trace) => {
                Ok(Stat { kind: EntryKind::File, size: trace?.len() as u64, modified: None })
            }
            None => lookup::stat(tree, path),
        })
    }

    /// Returns the stored target of a link.
    ///
    /// # Errors
    /// If the entry does not exist or is not a link.
    pub fn read_link(&self, path: &str) -> Result<String, FilesError> {
        self.on_path(path, Target::Read, FinalLink::Keep, |tree, path| {
            lookup::read_link(tree, path)
        })
    }

    /// Returns the absolute path of an entry in the workdir, such as `/a/b`, without links. The
    /// path may contain names that do not exist.
    ///
    /// # Errors
    /// If the path, or a link on it, leads out of the workdir.
    pub fn real_path(&self, path: &str) -> Result<String, FilesError> {
        self.on_path(path, Target::Read, FinalLink::Follow, |_, path| {
            Ok(format!("/{}", path.as_str()))
        })
    }

    /// Creates a link at `path`. Creates missing parent folders. An absolute target starts at the
    /// root of the workdir and is stored relative to the link. The target need not exist.
    ///
    /// # Errors
    /// If an entry exists at the path, the target leads out of the workdir, the overlay is full, or
    /// the base does not allow the change.
    pub fn symlink(&self, target: &str, path: &str) -> Result<(), FilesError> {
        let create = |tree: &mut dyn Tree, resolved: &RunPath| {
            change::create_link(tree, target, resolved, path)
        };
        self.on_path(path, Target::Write, FinalLink::Keep, create)
    }

    /// Creates a folder and its missing parents. Does nothing if the folder exists.
    ///
    /// # Errors
    /// If an entry of a different type exists at the path, the overlay is full, or the base does
    /// not allow the change.
    pub fn mkdir(&self, path: &str) -> Result<(), FilesError> {
        self.on_path(path, Target::Write, FinalLink::Follow, change::create_folders)
    }

    /// Creates a folder in an existing folder.
    ///
    /// # Errors
    /// The same as for [`Files::mkdir`]. Also fails if an entry exists at the path, or the parent
    /// folder does not exist.
    pub fn create_folder(&self, path: &str) -> Result<(), FilesError> {
        self.on_path(path, Target::Write, FinalLink::Keep, change::create_folder)
    }

    /// Sets a file's modification time. Does nothing for a folder. [`Files::changes`] does not list
    /// a changed modification time.
    ///
    /// # Errors
    /// If the entry does not exist, the overlay is full, or the base does not allow the change.
    pub fn set_modified(&self, path: &str, time: SystemTime) -> Result<(), FilesError> {
        let set = |tree: &mut dyn Tree, path: &RunPath| change::set_modified(tree, path, time);
        self.on_path(path, Target::Write, FinalLink::Follow, set)
    }

    /// Removes a file, a link (not its target) or an empty folder.
    ///
    /// # Errors
    /// If the entry does not exist, the folder is not empty, or the base does not allow the change.
    pub fn remove(&self, path: &str) -> Result<(), FilesError> {
        self.on_path(path, Target::Write, FinalLink::Keep, change::remove)
    }

    /// Removes an entry. A folder is removed with everything in it. Links in the folder are
    /// removed, not followed.
    ///
    /// # Errors
    /// If the entry does not exist, if the folder contains a repository, a project file, a name
    /// that is not UTF-8 or more than [`ENTRY_LIMIT`](crate::ENTRY_LIMIT) entries, or if the base
    /// does not allow the removal.
    pub fn remove_all(&self, path: &str) -> Result<(), FilesError> {
        self.on_path(path, Target::Tree, FinalLink::Keep, change::remove_all)
    }

    /// Moves an entry (a link, not its target) and creates missing parent folders. A file replaces
    /// a file at `to`, and a folder replaces an empty folder. In an overlay, the content of base
    /// files is copied into memory.
    ///
    /// # Errors
    /// If `from` does not exist, the entry at `to` may not be replaced, the overlay is full, or the
    /// base does not allow the change. Also fails if a folder contains a repository, a project file
    /// or more than [`ENTRY_LIMIT`](crate::ENTRY_LIMIT) entries.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), FilesError> {
        self.retry(from, |tree| {
            let source = self.resolve(tree, from, Target::Tree, FinalLink::Keep)?;
            let entry = change::check_movable(tree, &source)?;
            let target = self.resolve(tree, to, Target::Tree, FinalLink::Keep)?;
            change::rename(tree, &source, &entry, &target, to)
        })
    }

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
        self.apply_chosen(|_| true)
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

    /// Returns the number of bytes that the overlay uses for content and metadata. Returns 0 in a
    /// write-through run.
    #[must_use]
    pub fn used(&self) -> u64 {
        match &*self.store.lock() {
            Store::Overlay(overlay) => overlay.used(),
            Store::WriteThrough(_) => 0,
        }
    }

    /// Charges the memory of the overlay to an account, now and after each change, until the files
    /// are dropped or charged to another account. Does nothing in a write-through run.
    ///
    /// # Errors
    /// If the account has no memory for the bytes in use. They are then charged to no account.
    pub fn charge(&self, charge: Box<dyn MemoryCharge>) -> Result<(), FilesError> {
        match &mut *self.store.lock() {
            Store::Overlay(overlay) => overlay.charge(charge),
            Store::WriteThrough(_) => Ok(()),
        }
    }

    /// Returns true if the memory of the overlay is charged to an account, or if there is no overlay.
    #[must_use]
    pub fn is_charged(&self) -> bool {
        match &*self.store.lock() {
            Store::Overlay(overlay) => overlay.is_charged(),
            Store::WriteThrough(_) => true,
        }
    }

    /// Returns true if all files are in memory, so that no operation waits for a disk.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        self.store.lock().tree().base().is_none()
    }

    /// Returns true if the run's writes stay in memory and are lost when the process ends.
    #[must_use]
    pub fn is_overlay(&self) -> bool {
        matches!(&*self.store.lock(), Store::Overlay(_))
    }

    /// Checks, in a write-through run, that the workdir is still the folder that was opened. If it
    /// was removed, renamed or replaced, no operation changes it any longer.
    ///
    /// # Errors
    /// If another folder or none is at the workdir's path.
    pub fn check_workdir(&self) -> Result<(), FilesError> {
        match &*self.store.lock() {
            Store::Overlay(_) => Ok(()),
            Store::WriteThrough(write_through) => write_through.check_place(),
        }
    }

    /// Returns the paths of a write-through run's changes that failed in the host's file system since
    /// the last call, for example because the disk is full. A path is left out if the file was
    /// written as a whole or removed since. An overlay has no such paths, since
    /// [`apply`](Files::apply) reports them.
    #[must_use]
    pub fn take_unwritten(&self) -> Vec<String> {
        match &mut *self.store.lock() {
            Store::Overlay(_) => Vec::new(),
            Store::WriteThrough(write_through) => {
                let paths = write_through.take_unwritten();
                paths.into_iter().map(|path| path.as_str().to_owned()).collect()
            }
        }
    }

    /// Returns the changes to the overlay since the last call, as a string for [`Files::restore`].
    /// Returns `None` if there are no changes, or in a write-through run.
    #[must_use]
    pub fn take_delta(&self) -> Option<String> {
        match &mut *self.store.lock() {
            Store::Overlay(overlay) => overlay.take_delta(),
            Store::WriteThrough(_) => None,
        }
    }

    /// Returns all changes in the overlay, as a string for [`Files::restore`] into an empty overlay.
    /// Returns `None` if there are none, or in a write-through run.
    #[must_use]
    pub fn take_all(&self) -> Option<String> {
        self.mark_all_changed();
        let all = self.take_delta();
        all.filter(|_| self.used() > 0)
    }

    /// Makes the next [`Files::take_delta`] return the whole content of the overlay, so that it can
    /// be restored into an empty overlay. A write-through run has no deltas.
    pub fn mark_all_changed(&self) {
        match &mut *self.store.lock() {
            Store::Overlay(overlay) => overlay.mark_all_changed(),
            Store::WriteThrough(_) => {}
        }
    }

    /// Applies a delta from an overlay over the same base. Deltas must be applied in the order in
    /// which [`Files::take_delta`] returned them.
    ///
    /// # Errors
    /// If `delta` is not a delta, or the run is a write-through run.
    pub fn restore(&self, delta: &str) -> Result<(), FilesError> {
        match &mut *self.store.lock() {
            Store::Overlay(overlay) => overlay.restore(delta),
            Store::WriteThrough(_) => Err(FilesError::bad_delta()),
        }
    }

    /// Performs an operation on a file. Rejects a path that can only name a folder, such as `a/`.
    fn on_file<T>(
        &self,
        path: &str,
        target: Target,
        mut operation: impl FnMut(&mut dyn Tree, &RunPath) -> Result<T, FilesError>,
    ) -> Result<T, FilesError> {
        self.on_path(path, target, FinalLink::Follow, |tree, resolved| {
            check_names_file(resolved, path, target)?;
            operation(tree, resolved)
        })
    }

    /// Performs an operation on the entry at a path.
    fn on_path<T>(
        &self,
        path: &str,
        target: Target,
        final_link: FinalLink,
        mut operation: impl FnMut(&mut dyn Tree, &RunPath) -> Result<T, FilesError>,
    ) -> Result<T, FilesError> {
        self.retry(path, |tree| {
            let resolved = self.resolve(tree, path, target, final_link)?;
            operation(tree, &resolved)
        })
    }

    fn resolve(
        &self,
        tree: &dyn Tree,
        path: &str,
        target: Target,
        final_link: FinalLink,
    ) -> Result<RunPath, FilesError> {
        if self.trace.is_some()
            && Intent::of(target) == Intent::Read
            && let Some(trace) = RunPath::parse(path).ok().filter(is_trace)
        {
            if let Some(guard) = &self.guard {
                guard(target, TRACE_FILE).map_err(|why| FilesError::guarded(Intent::Read, &why))?;
            }
            return Ok(trace);
        }
        let resolved = resolve(tree, path, final_link, target, self.guard.as_ref())?;
        if !self.rooted {
            check_inside(tree, path, Intent::of(target))?;
        }
        Ok(resolved)
    }

    /// Performs an operation and retries it if a link appeared on a path after the path was
    /// resolved. Fails after [`MAX_ATTEMPTS`] attempts.
    fn retry<T>(
        &self,
        path: &str,
        mut operation: impl FnMut(&mut dyn Tree) -> Result<T, FilesError>,
    ) -> Result<T, FilesError> {
        for _ in 0..MAX_ATTEMPTS {
            let mut store = self.store.lock();
            let tree = store.tree_mut();
            tree.refresh();
            match operation(tree) {
                Err(error) if error.is_raced() => {}
                done => return done,
            }
        }
        Err(FilesError::unstable_links(path))
    }
}

/// Returns true if the path is the name of the run's own trace.
fn is_trace(path: &RunPath) -> bool {
    path.as_str() == TRACE_FILE
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("guarded", &self.guard.is_some()).finish_non_exhaustive()
    }
}

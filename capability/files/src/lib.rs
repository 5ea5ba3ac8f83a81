//! The run's files: one file system per run, which everything in the run sees.
//!
//! It is a *base* (the workdir, jailed by the operating system's own means) under an *overlay* in memory. Reads fall
//! through to the base, writes stay in the overlay; at the end of the run [`Files::changes`] lists what became of them,
//! and [`Files::apply`] carries them out. A trusted run writes through to the base instead, and a run without a base has
//! only the overlay. Callers cannot tell the three apart but by where the bytes end up.
//!
//! ```
//! use wattle_files::{Files, OVERLAY_LIMIT};
//! let files = Files::overlay(None, OVERLAY_LIMIT);
//! files.write("/notes/today.txt", b"rain")?;
//! files.append("notes/today.txt", b", then sun")?;
//! assert_eq!(files.read("notes/../notes/today.txt")?, "rain, then sun");
//! let refused = files.read("../etc/passwd").unwrap_err();
//! assert_eq!(refused.to_string(), "read blocked: path escapes your working dir");
//! # Ok::<(), wattle_files::FilesError>(())
//! ```
//!
//! # Paths
//! A path is relative to the workdir; `/` is the workdir's top, and nothing outside exists. `.` and `..` are taken from
//! the text before links are followed. A link inside the base is followed as long as it stays inside: a relative one from
//! where it stands, an absolute one where its target lies in the workdir as the host spells it. Any other is refused, as
//! is a path that climbs above the top. Devices, fifos and sockets are listed but never opened. A name in the base that
//! is not UTF-8 is listed with replacement characters as [`EntryKind::Other`] and cannot be opened.
//!
//! # What counts as a change
//! The end result against the base: writing what is there already, or making and removing an entry, is no change. A
//! folder that is gone is one change, whatever it held. Moving an entry deletes it in one place and creates it in
//! another. Permissions are kept, and are not a change.
//!
//! All functions may block on the base's disk; asynchronous callers run them where blocking is allowed.

mod apply;
#[cfg(test)]
mod apply_model;
mod base;
mod disk;
mod edit;
mod error;
mod guarded;
mod host_files;
mod jail;
mod journal;
mod kept;
mod layer;
mod overlay;
mod path;
mod plan;
mod primitives;
mod reader;
mod recover;
mod repository;
mod stamp;
mod through;
mod view;
mod working;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;

pub use base::Base;
pub use disk::{append_line, cut_torn_line, own_lines, read_own};
pub use error::{ApplyError, ErrorKind, FilesError};
pub use guarded::PathGuard;
pub use host_files::HostFiles;
pub use reader::Reader;
pub use stamp::FileStamp as Version;
pub use writer::Writer;

use wattle_lang::Target;

use error::Intent;
use guarded::Guarded;
use journal::Journal;
use layer::Layer;
use view::{Last, Reads, Store};

/// The bytes that an overlay holds unless its maker says otherwise: 64 MiB.
pub const OVERLAY_LIMIT: u64 = 64 << 20;
/// The most bytes that one read gives: 64 MiB. A larger file is read in parts, with [`Files::read_at`].
pub const READ_LIMIT: u64 = 64 << 20;
/// The most bytes that a file may grow to in a run that writes through: 16 GiB.
pub const FILE_LIMIT: u64 = 16 << 30;
/// The run's trace at the top of the workdir: the host writes it, and the files of a run can be read but not changed there.
pub const TRACE_FILE: &str = "_steps.jsonl";
/// The tickets that runs filed, at the top of the workdir: written by the host alone, as the trace.
pub const ISSUES_FILE: &str = "_issues.jsonl";
/// The seals of the run's trace, at the top of the workdir: written by the host alone.
pub const LEDGER_FILE: &str = "_ledger.jsonl";
/// The outline of runs, at the top of the workdir: written by the host alone.
pub const EVENTS_FILE: &str = "events.org";
/// A repository's folder, wherever it stands and however its letters are written: no run writes to it or below it, since what it holds
/// can make `git` start programs.
pub const REPOSITORY: &str = ".git";
/// The name of project files: in whatever folder one lies, it holds the settings of later runs there, so no run writes it.
pub const PROJECT_FILE: &str = "wattle.toml";
/// The most entries that a listing gives, and that a folder which is moved or removed as a whole may hold.
pub const ENTRY_LIMIT: usize = 100_000;

/// The files of one run. Shared freely between threads; every operation is carried out as a whole before the next.
#[derive(Debug)]
pub struct Files {
    store: Arc<Mutex<Store>>,
    guard: Guarded,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// A plain file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a fifo, a socket, or an entry whose name is not UTF-8; it cannot be opened.
    Other,
}

/// One entry of a folder. A link is given as itself, not as what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in its folder.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// A file's size in bytes, else 0.
    pub size: u64,
    /// When its content changed last; `None` for a link, and where the host does not say.
    pub modified: Option<SystemTime>,
    /// Which version of a file of the base it is; `None` for all else, a file of the overlay among them.
    pub version: Option<Version>,
}

/// What is known about one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: EntryKind,
    /// A file's size in bytes, else 0.
    pub size: u64,
    /// When its content changed last; `None` where the host does not say.
    pub modified: Option<SystemTime>,
}

/// What became of an entry of the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is gone; a folder with all that it held.
    Deleted,
    /// It is new.
    Created,
    /// It was there and has other content.
    Modified,
}

/// One difference between the base as it was and the run's files. An entry that became one of another kind is two:
/// deleted, then created.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Change {
    /// The path from the workdir's top, without a leading `/`.
    pub path: String,
    /// What became of it.
    pub kind: ChangeKind,
    /// What the entry is, or was.
    pub entry: EntryKind,
    /// A file's size in bytes: the new one, or the last one where it is gone. 0 for everything else.
    pub size: u64,
}

/// One line: `created a/b.txt (12 bytes)`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ChangeKind::Deleted => "deleted",
            ChangeKind::Created => "created",
            ChangeKind::Modified => "modified",
        };
        let path = error::shown(&self.path);
        match self.entry {
            EntryKind::File if self.size == 1 => write!(f, "{kind} {path} (1 byte)"),
            EntryKind::File => write!(f, "{kind} {path} ({} bytes)", self.size),
            EntryKind::Folder => write!(f, "{kind} {path}/"),
            other => write!(f, "{kind} {path} ({})", error::kind_name(other)),
        }
    }
}

impl Files {
    /// Makes the files of a run whose writes stay in memory, over `base` where there is one. The overlay holds at most
    /// `limit` bytes of content and of what it takes to keep it.
    #[must_use]
    pub fn overlay(base: Option<Base>, limit: u64) -> Files {
        let layer = Box::new(Layer::new(base.is_some(), limit));
        Files::of(Store::Overlay { base, layer, reads: Reads::default() })
    }

    /// Makes the files of a run whose writes go to `base`, each at once. [`Files::changes`] lists them all the same.
    #[must_use]
    pub fn write_through(base: Base) -> Files {
        Files::of(Store::Through { base, journal: Journal::default() })
    }

    fn of(store: Store) -> Files {
        Files { store: Arc::new(Mutex::new(store)), guard: Guarded::default() }
    }

    /// Opens a workdir as a base: the one place where a path of the host's own is opened.
    ///
    /// # Errors
    /// Where there is no such folder, or it may not be opened.
    pub fn open_base(path: &Path) -> Result<Base, FilesError> {
        Base::open(path)
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// Where there is no such file, or it may not be read, or it is larger than [`READ_LIMIT`].
    pub fn read(&self, path: &str) -> Result<Bytes, FilesError> {
        self.open(path)?.read_all()
    }

    /// Reads at most `len` bytes, and no more than [`READ_LIMIT`], from `offset` on; fewer only at the end of the file,
    /// and none beyond it.
    ///
    /// # Errors
    /// Where there is no such file, or it may not be read.
    pub fn read_at(&self, path: &str, offset: u64, len: u64) -> Result<Bytes, FilesError> {
        self.open(path)?.read_at(offset, len)
    }

    /// Opens a file for reading in parts. The reader keeps the file that it opened: a file of the overlay as it was then,
    /// a file of the base whatever happens to its name.
    ///
    /// # Errors
    /// Where there is no such file, or it may not be read.
    pub fn open(&self, path: &str) -> Result<Reader, FilesError> {
        self.on(path, Target::Read, |store| {
            let path = store.resolve_file(path, Intent::Read)?;
            store.open(&path)
        })
    }

    /// Writes a whole file, in place of the one that is there. Missing folders on the way are made.
    ///
    /// # Errors
    /// Where a folder is in the way, the overlay is full, or the base does not allow it.
    pub fn write(&self, path: &str, data: &[u8]) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.write(path, data))
    }

    /// Tells whether [`Files::write`] could write there, as far as that is known before.
    ///
    /// # Errors
    /// Where it could not: with the same words.
    pub fn check_write(&self, path: &str) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.check_write(path))
    }

    /// Makes an empty file where nothing is, in a folder that is there.
    ///
    /// # Errors
    /// Where something is there already (also a link that leads nowhere), or the folder is not; else as [`Files::write`].
    pub fn create_new(&self, path: &str) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.create_new(path))
    }

    /// Adds to the end of a file; makes it, and missing folders on the way, where it is not there.
    ///
    /// # Errors
    /// As [`Files::write`]; also where a file of the base is too large to be kept in the overlay.
    pub fn append(&self, path: &str, data: &[u8]) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.edit(path, edit::Edit::Append(data)))
    }

    /// Writes at an offset, over what is there; a gap before it is filled with zeros. Makes the file, and missing folders
    /// on the way, where it is not there.
    ///
    /// # Errors
    /// As [`Files::append`].
    pub fn write_at(&self, path: &str, offset: u64, data: &[u8]) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.edit(path, edit::Edit::WriteAt(offset, data)))
    }

    /// Cuts a file to `size` bytes, or fills it up to that with zeros.
    ///
    /// # Errors
    /// As [`Files::append`]; also where there is no such file.
    pub fn truncate(&self, path: &str, size: u64) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.edit(path, edit::Edit::Truncate(size)))
    }

    /// Opens a file that is there for writing in parts.
    ///
    /// # Errors
    /// Where there is no such file, or it may not be written.
    pub fn writer(&self, path: &str) -> Result<Writer, FilesError> {
        self.on(path, Target::Write, |store| {
            let path = store.resolve_file(path, Intent::Write)?;
            store.writer(path, &self.store)
        })
    }

    /// Lists a folder, sorted by name.
    ///
    /// # Errors
    /// Where there is no such folder, or it has more than [`ENTRY_LIMIT`] entries.
    pub fn list(&self, path: &str) -> Result<Vec<Entry>, FilesError> {
        self.on(path, Target::Read, |store| {
            let path = store.resolve(path, Last::Follow, Intent::Read)?;
            store.list(&path)
        })
    }

    /// Tells what an entry is; a link is followed.
    ///
    /// # Errors
    /// Where nothing is there.
    pub fn stat(&self, path: &str) -> Result<Stat, FilesError> {
        self.on(path, Target::Read, |store| {
            let path = store.resolve(path, Last::Follow, Intent::Read)?;
            store.stat(&path)
        })
    }

    /// Tells what an entry is; a link is told as itself.
    ///
    /// # Errors
    /// Where nothing is there.
    pub fn stat_link(&self, path: &str) -> Result<Stat, FilesError> {
        self.on(path, Target::Read, |store| {
            let path = store.resolve(path, Last::Keep, Intent::Read)?;
            store.stat(&path)
        })
    }

    /// Gives the target of a link, as it is written.
    ///
    /// # Errors
    /// Where nothing is there, or it is not a link.
    pub fn read_link(&self, path: &str) -> Result<String, FilesError> {
        self.on(path, Target::Read, |store| {
            let path = store.resolve(path, Last::Keep, Intent::Read)?;
            store.read_link(&path)
        })
    }

    /// Gives the path of an entry from the top, such as `/a/b`, with the links on it followed. What is not there is taken as it stands.
    ///
    /// # Errors
    /// Where the path, or a link on it, leads out of the workdir.
    pub fn real_path(&self, path: &str) -> Result<String, FilesError> {
        self.on(path, Target::Read, |store| {
            let path = store.resolve(path, Last::Follow, Intent::Read)?;
            Ok(format!("/{}", path.as_str()))
        })
    }

    /// Makes a link at `path`; missing folders on the way are made. An absolute target is taken from the workdir's top, and kept as it
    /// leads from where the link stands. The target need not be there.
    ///
    /// # Errors
    /// Where something has the name already, the target leads out of the workdir, the overlay is full, or the base does not allow it.
    pub fn symlink(&self, target: &str, path: &str) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.symlink(target, path))
    }

    /// Makes a folder, and those above it. A folder that is there already is fine.
    ///
    /// # Errors
    /// Where something else has the name, the overlay is full, or the base does not allow it.
    pub fn mkdir(&self, path: &str) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.mkdir(path))
    }

    /// Makes a folder where nothing is, in one that is there.
    ///
    /// # Errors
    /// Where something is there already, or the folder above is not; else as [`Files::mkdir`].
    pub fn create_folder(&self, path: &str) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.create_folder(path))
    }

    /// Sets when a file's content changed last. A folder is left as it is. It is no change that [`Files::changes`] lists.
    ///
    /// # Errors
    /// Where nothing is there, the overlay is full, or the base does not allow it.
    pub fn set_modified(&self, path: &str, time: SystemTime) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.set_modified(path, time))
    }

    /// Removes a file, a link (not what it leads to) or an empty folder.
    ///
    /// # Errors
    /// Where nothing is there, the folder is not empty, or the base does not allow it.
    pub fn remove(&self, path: &str) -> Result<(), FilesError> {
        self.on(path, Target::Write, |store| store.remove(path))
    }

    /// Removes an entry and, where it is a folder, all that it holds; links in it are removed, not followed.
    ///
    /// # Errors
    /// Where nothing is there, the folder holds more than [`ENTRY_LIMIT`] entries or names that are not UTF-8, or the
    /// base does not allow it.
    pub fn remove_all(&self, path: &str) -> Result<(), FilesError> {
        self.on(path, Target::Tree, |store| store.remove_all(path))
    }

    /// Moves an entry (a link as itself); missing folders on the way are made. A file that is at `to` is replaced by a
    /// file, an empty folder by a folder. In an overlay the content of a folder of the base is copied into it.
    ///
    /// # Errors
    /// Where nothing is at `from`, something else is at `to`, the overlay is full, or the base does not allow it.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), FilesError> {
        self.on(to, Target::Tree, |_| Ok(()))?;
        self.on(from, Target::Tree, |store| store.rename(from, to))
    }

    /// Lists what differs from the base as it was, sorted by path; in a run without a base, all that the run made.
    ///
    /// # Errors
    /// Where the base cannot be read.
    pub fn changes(&self) -> Result<Vec<Change>, FilesError> {
        self.lock().changes()
    }

    /// Carries the overlay's changes out on the base and gives them, sorted by path. Each file is written beside its
    /// place and moved there, so that it is there as a whole or not at all. An entry of the base that somebody else has
    /// changed since the run looked at it is left as it is, and nothing is removed unless all else was carried out. In a
    /// run that writes through there is nothing left to carry out.
    ///
    /// # Errors
    /// Where a change was not carried out: with what was and what was not.
    pub fn apply(&self) -> Result<Vec<Change>, ApplyError> {
        self.lock().apply()
    }

    /// The bytes that the overlay holds, content and what it takes to keep it; 0 in a run that writes through.
    #[must_use]
    pub fn used(&self) -> u64 {
        match &*self.lock() {
            Store::Overlay { layer, .. } => layer.used(),
            Store::Through { .. } => 0,
        }
    }

    /// Whether everything is in memory, so that no operation waits for a disk.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        self.lock().base().is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }
}

fn lock(store: &Mutex<Store>) -> MutexGuard<'_, Store> {
    // No operation leaves the store half changed by a panic of its own, so a poisoned lock is as good as any.
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

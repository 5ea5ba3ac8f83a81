//! The interface to a tree of files, and the rules that every tree follows.
//!
//! A [`Tree`] looks up entries and changes them. Its methods take resolved paths, and assume that
//! the rules in [`change`] permit the operation. The rules are functions over a `dyn Tree`, so they
//! are the same for an overlay and for a write-through tree.

pub(crate) mod change;
pub(crate) mod contents;
pub(crate) mod lookup;
pub(crate) mod open_paths;
pub(crate) mod resolve;

use std::fs::File;
use std::time::SystemTime;

use crate::base::{Base, EntryInfo};
use crate::entry::Change;
use crate::error::FilesError;
use crate::path::{Intent, RunPath};
use crate::reader::Reader;
use open_paths::OpenPath;
pub use resolve::PathGuard;

/// The files of a run: an overlay, or a base that the run changes directly.
pub(crate) trait Tree {
    /// Returns the base, or `None` if the tree has none.
    fn base(&self) -> Option<&Base>;

    /// Updates the inodes of the host's own files. Called at the start of each operation.
    fn refresh(&mut self);

    /// Looks up an entry without following a link at the end of the path. The folders on the path
    /// must not be links.
    fn entry(&self, path: &RunPath, intent: Intent) -> Result<EntryInfo, FilesError>;

    /// Opens a file for reading. The entry must be a file.
    fn open_file(&mut self, path: &RunPath) -> Result<Reader, FilesError>;

    /// Returns the entries of a folder, sorted by name, or `None` if there are more than `max`. An
    /// entry whose name cannot be used is [`EntryInfo::Other`].
    fn children(
        &self,
        path: &RunPath,
        max: usize,
        intent: Intent,
    ) -> Result<Option<Vec<(String, EntryInfo)>>, FilesError>;

    /// Returns true if a folder contains an entry called `name`, which must be one of the names in
    /// a repository's layout. An entry in the base that an overlay hides also counts, because it
    /// exists until the changes are applied.
    fn has_repository_part(&self, folder: &RunPath, name: &str) -> Result<bool, FilesError>;

    /// Writes a whole file and creates its missing parent folders.
    fn write_file(&mut self, path: &RunPath, data: &[u8]) -> Result<(), FilesError>;

    /// Changes part of a file that has `old_size` bytes. If the file does not exist, `old_size` is
    /// 0, and the file and its missing parent folders are created.
    fn edit_file(
        &mut self,
        path: &RunPath,
        old_size: u64,
        edit: Edit<'_>,
    ) -> Result<(), FilesError>;

    /// Creates an empty file. Its parent folder must exist.
    fn create_file(&mut self, path: &RunPath) -> Result<(), FilesError>;

    /// Creates a folder and its missing parents.
    fn create_folder(&mut self, path: &RunPath) -> Result<(), FilesError>;

    /// Creates a link and its missing parent folders.
    fn create_link(&mut self, path: &RunPath, target: &str) -> Result<(), FilesError>;

    /// Sets a file's modification time. In an overlay, the file must have been written or copied
    /// into the overlay before.
    fn set_modified(&mut self, path: &RunPath, time: SystemTime) -> Result<(), FilesError>;

    /// Removes a file, a link or an empty folder.
    fn remove(&mut self, path: &RunPath, entry: &EntryInfo) -> Result<(), FilesError>;

    /// Removes an entry and everything in it.
    fn remove_all(&mut self, path: &RunPath, entry: &EntryInfo) -> Result<(), FilesError>;

    /// Moves an entry to `to`, replaces any entry there, and creates missing parent folders of
    /// `to`.
    fn rename(&mut self, from: &RunPath, to: &RunPath) -> Result<(), FilesError>;

    /// Opens an existing file for writing.
    fn open_for_writing(&mut self, path: &RunPath) -> Result<OpenFile, FilesError>;

    /// Returns the differences from the base, sorted by path.
    fn changes(&self) -> Result<Vec<Change>, FilesError>;
}

/// A file that is open for writing.
#[derive(Debug)]
pub(crate) enum OpenFile {
    /// A file in an overlay, identified by its current path.
    Overlay(OpenPath),
    /// A file in the base, identified by a handle.
    Base { path: RunPath, file: File },
}

/// A change to part of a file.
#[derive(Clone, Copy)]
pub(crate) enum Edit<'a> {
    Append(&'a [u8]),
    WriteAt(u64, &'a [u8]),
    Truncate(u64),
}

impl Edit<'_> {
    /// Returns a file's size after the edit. `old` is its size before the edit. Both are in bytes.
    pub(crate) fn new_size(self, old: u64) -> u64 {
        match self {
            Edit::Append(data) => old.saturating_add(data.len() as u64),
            Edit::WriteAt(_, []) => old,
            Edit::WriteAt(offset, data) => old.max(offset.saturating_add(data.len() as u64)),
            Edit::Truncate(size) => size,
        }
    }
}

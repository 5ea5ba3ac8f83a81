//! The primitive operations that apply changes. The base performs them on disk, and tests perform
//! them in memory. Between any two of them, another process may change the files, the disk may
//! fail, or this process may end.

use std::io;

use crate::path::RunPath;
use crate::stamp::{CurrentEntry, Stamp};

/// Maximum size in bytes of a file whose content is compared. Larger files are compared by inode,
/// size and times.
pub(crate) const MAX_COMPARED: u64 = 64 << 20;

/// A tree of files with atomic operations. No operation follows a link. Only [`Disk::exchange`]
/// replaces an entry, and it keeps both entries.
pub(crate) trait Disk {
    /// Returns the current state of an entry.
    fn current(&self, path: &RunPath) -> io::Result<CurrentEntry>;
    /// Returns the hash of a file's content, or `None` if the file is larger than [`MAX_COMPARED`].
    fn digest(&self, path: &RunPath) -> io::Result<Option<blake3::Hash>>;
    /// Returns the hash of a folder and everything in it, for comparison with [`Stamp::Tree`].
    fn tree(&self, path: &RunPath) -> io::Result<blake3::Hash>;
    /// Returns the names of a folder's entries.
    fn names(&self, path: &RunPath) -> io::Result<Vec<String>>;
    /// Reads one of the host's own small files.
    fn read(&self, path: &RunPath) -> io::Result<Vec<u8>>;
    /// Returns true if the rules for runs permit a change to the entry at `path`, and a move of the
    /// entry at `staged` to `path`. Neither may be or contain one of the host's own files or a
    /// repository, be on the path to such a file, or complete a repository.
    fn permits_runs(&self, path: &RunPath, staged: &RunPath) -> io::Result<bool>;
    /// Checks that a file is writable.
    fn check_writable(&self, path: &RunPath) -> io::Result<()>;
    /// Returns a staging path for the entry that will be moved to `path`. Both paths are on the
    /// same file system.
    fn staging(&self, folder: &RunPath, number: usize, path: &RunPath) -> io::Result<RunPath>;
    /// Creates a file with the given content and syncs it to disk. Fails if `path` exists.
    fn create(&self, path: &RunPath, data: &[u8], mode: Option<u32>) -> io::Result<()>;
    /// Creates a link. Fails if `path` exists.
    fn link(&self, path: &RunPath, target: &str) -> io::Result<()>;
    /// Creates a folder unless it exists.
    fn create_folder(&self, path: &RunPath) -> io::Result<()>;
    /// Moves an entry. Fails if `to` exists.
    fn rename_new(&self, from: &RunPath, to: &RunPath) -> io::Result<()>;
    /// Exchanges two entries.
    fn exchange(&self, one: &RunPath, other: &RunPath) -> io::Result<()>;
    /// Removes a file or a link.
    fn unlink(&self, path: &RunPath) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, path: &RunPath) -> io::Result<()>;
    /// Flushes a folder's list of entries to disk.
    fn sync(&self, folder: &RunPath) -> io::Result<()>;

    /// Returns true if the entry is still in the state that the run saw.
    fn is_unchanged(&self, path: &RunPath, seen: &Stamp) -> io::Result<bool> {
        Ok(match (seen, self.current(path)?) {
            (Stamp::Absent, CurrentEntry::Absent)
            | (Stamp::Folder, CurrentEntry::Folder)
            | (Stamp::Other, CurrentEntry::Other) => true,
            (Stamp::File(seen), CurrentEntry::File(now, _)) => *seen == now,
            (Stamp::Link(seen), CurrentEntry::Link(now)) => *seen == now,
            (Stamp::Tree(seen), CurrentEntry::Folder) => self.tree(path)? == *seen,
            _ => false,
        })
    }
}

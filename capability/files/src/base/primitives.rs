//! The primitive operations that are used to apply changes. The base performs them on the disk.
//! Tests perform them in memory. Between any two of them, another user may act, the disk may fail
//! or the process may end.

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
    /// Hashes a folder with everything in it, as [`Stamp::Tree`] does.
    fn tree(&self, path: &RunPath) -> io::Result<blake3::Hash>;
    /// Returns the names in a folder.
    fn names(&self, path: &RunPath) -> io::Result<Vec<String>>;
    /// Reads a small file of the host's own.
    fn read(&self, path: &RunPath) -> io::Result<Vec<u8>>;
    /// Checks that a file is writable.
    fn check_writable(&self, path: &RunPath) -> io::Result<()>;
    /// Returns a staging path for the entry that will be at `path`, on the same file system.
    fn staging(&self, folder: &RunPath, number: usize, path: &RunPath) -> io::Result<RunPath>;
    /// Creates a whole file. Nothing may exist at `path`. The content is on the disk on return.
    fn create(&self, path: &RunPath, data: &[u8], mode: Option<u32>) -> io::Result<()>;
    /// Creates a link. Nothing may exist at `path`.
    fn link(&self, path: &RunPath, target: &str) -> io::Result<()>;
    /// Creates a folder, unless it exists.
    fn create_folder(&self, path: &RunPath) -> io::Result<()>;
    /// Moves an entry. Nothing may exist at `to`.
    fn rename_new(&self, from: &RunPath, to: &RunPath) -> io::Result<()>;
    /// Exchanges two entries.
    fn exchange(&self, one: &RunPath, other: &RunPath) -> io::Result<()>;
    /// Removes a file or a link.
    fn unlink(&self, path: &RunPath) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_folder(&self, path: &RunPath) -> io::Result<()>;
    /// Waits until the list of entries of a folder is on the disk.
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

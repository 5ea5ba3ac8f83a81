//! Types that describe entries and changes to callers.

use std::fmt;
use std::time::SystemTime;

use crate::printable::printable;
use crate::stamp::FileStamp as Version;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a FIFO, a socket, or an entry whose name is not UTF-8. It cannot be opened.
    Other,
}

/// An entry of a folder. A link is listed as a link, not as its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in the folder.
    pub name: String,
    /// The type of the entry.
    pub kind: EntryKind,
    /// The size of a file in bytes. 0 for every other type.
    pub size: u64,
    /// The time when the content last changed. `None` for a link, or if the host does not know the
    /// time.
    pub modified: Option<SystemTime>,
    /// The version of a file in the base. `None` for a file in the overlay, and for every other
    /// type of entry.
    pub version: Option<Version>,
}

/// The metadata of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The type of the entry.
    pub kind: EntryKind,
    /// The size of a file in bytes. 0 for every other type.
    pub size: u64,
    /// The time when the content last changed, or `None` if the host does not know it.
    pub modified: Option<SystemTime>,
}

/// The type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeKind {
    /// The entry was removed. A folder was removed with everything in it.
    Deleted,
    /// The entry is new.
    Created,
    /// The entry existed and its content changed.
    Modified,
}

/// A difference between the original base and the run's files. Replacing an entry with one of a
/// different type counts as two changes: a deletion, then a creation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Change {
    /// The path relative to the workdir's root, without a leading `/`.
    pub path: String,
    /// The type of the change.
    pub kind: ChangeKind,
    /// The type of the entry. For a deleted entry, its type before the run.
    pub entry: EntryKind,
    /// The size of a file in bytes. For a deleted file, its last size. 0 for every other type.
    pub size: u64,
}

/// Formats the change on one line: `created a/b.txt (12 bytes)`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ChangeKind::Deleted => "deleted",
            ChangeKind::Created => "created",
            ChangeKind::Modified => "modified",
        };
        let path = printable(&self.path);
        match self.entry {
            EntryKind::File if self.size == 1 => write!(f, "{kind} {path} (1 byte)"),
            EntryKind::File => write!(f, "{kind} {path} ({} bytes)", self.size),
            EntryKind::Folder => write!(f, "{kind} {path}/"),
            EntryKind::Link => write!(f, "{kind} {path} (link)"),
            EntryKind::Other => write!(f, "{kind} {path} (special file)"),
        }
    }
}

//! Records of the state that an entry in the base had when the run relied on it. They show whether
//! another process has changed the entry since then.

use serde::{Deserialize, Serialize};

use crate::jail::Meta;

/// The state of a base entry at one point in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stamp {
    Absent,
    File(FileStamp),
    /// A folder whose content the run did not use. It matches every folder.
    Folder,
    /// A folder and everything in it, identified by a hash.
    Tree(#[serde(with = "crate::hex")] blake3::Hash),
    Link(String),
    Other,
}

/// The current state of a base entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CurrentEntry {
    Absent,
    /// A regular file, with its permissions.
    File(FileStamp, u32),
    Folder,
    Link(String),
    Other,
}

/// A version of a file on the host: device, inode, size and times. It changes whenever the file is
/// replaced or written, because a program cannot set the time of the last status change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// Returns the size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the time when the file's content or metadata last changed, in nanoseconds since
    /// 1970.
    #[must_use]
    pub fn changed(&self) -> i128 {
        i128::from(self.changed.0) * 1_000_000_000 + i128::from(self.changed.1)
    }

    /// Returns a key that is equal only for equal versions.
    #[must_use]
    pub fn key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        self.feed(&mut hasher);
        *hasher.finalize().as_bytes()
    }

    #[cfg(test)]
    pub(crate) fn for_tests(inode: u64, size: u64, modified: i64, changed: i64) -> FileStamp {
        FileStamp { device: 1, inode, size, modified: (modified, 0), changed: (changed, 0) }
    }

    pub(crate) fn of(meta: &Meta) -> FileStamp {
        let Meta { device, inode, size, modified, changed, .. } = *meta;
        FileStamp { device, inode, size, modified, changed }
    }

    /// Returns true if both stamps are versions of the same file, regardless of its content.
    pub(crate) fn is_same_file(&self, other: &FileStamp) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Returns true if both stamps are versions of the same file with the same content. Ignores the
    /// time of the last status change, which a move updates.
    pub(crate) fn is_same_after_move(&self, other: &FileStamp) -> bool {
        self.is_same_file(other) && (self.size, self.modified) == (other.size, other.modified)
    }

    pub(crate) fn feed(&self, hasher: &mut blake3::Hasher) {
        for number in [self.device, self.inode, self.size] {
            hasher.update(&number.to_le_bytes());
        }
        for number in [self.modified.0, self.modified.1, self.changed.0, self.changed.1] {
            hasher.update(&number.to_le_bytes());
        }
    }
}

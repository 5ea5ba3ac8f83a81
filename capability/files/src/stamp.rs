//! What an entry of the base looked like when the run relied on it, to tell whether somebody else has changed it since.

use serde::{Deserialize, Serialize};

use super::ENTRY_LIMIT;
use super::base::{Base, Found};
use super::error::{FilesError, Intent};
use super::jail::Meta;
use super::path::RunPath;

/// The state of an entry of the base at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stamp {
    Absent,
    File(FileStamp),
    /// A folder whose content the run has not taken in: any folder matches.
    Folder,
    /// A folder with all that it held.
    Tree(#[serde(with = "super::kept::hex")] blake3::Hash),
    Link(String),
    Other,
}

/// A version of a file on the host: its numbers, which change whenever it is replaced or written to. The time of the last status
/// change cannot be set by a program.
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

    /// Returns when anything about the file changed last, in nanoseconds since 1970.
    #[must_use]
    pub fn changed(&self) -> i128 {
        i128::from(self.changed.0) * 1_000_000_000 + i128::from(self.changed.1)
    }

    /// Returns the numbers as a key: equal for equal versions only.
    #[must_use]
    pub fn key(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        self.feed(&mut hasher);
        *hasher.finalize().as_bytes()
    }

    #[cfg(test)]
    pub(super) fn for_tests(inode: u64, size: u64, modified: i64, changed: i64) -> FileStamp {
        FileStamp { device: 1, inode, size, modified: (modified, 0), changed: (changed, 0) }
    }

    pub(super) fn of(meta: &Meta) -> FileStamp {
        let Meta { device, inode, size, modified, changed, .. } = *meta;
        FileStamp { device, inode, size, modified, changed }
    }

    /// Whether both are of one file, whatever its content.
    pub(super) fn is_same_file(&self, other: &FileStamp) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether both are of one file that was not written to in between, as far as can be told after the file was moved: that
    /// renews the time of the last status change.
    pub(super) fn is_same_but_moved(&self, other: &FileStamp) -> bool {
        self.is_same_file(other) && (self.size, self.modified) == (other.size, other.modified)
    }

    fn feed(&self, hasher: &mut blake3::Hasher) {
        for number in [self.device, self.inode, self.size] {
            hasher.update(&number.to_le_bytes());
        }
        for number in [self.modified.0, self.modified.1, self.changed.0, self.changed.1] {
            hasher.update(&number.to_le_bytes());
        }
    }
}

/// One entry below a folder that was walked.
pub(super) struct Walked {
    pub(super) path: RunPath,
    pub(super) found: Found,
    stamp: FileStamp,
}

impl Base {
    /// The entry's state now.
    pub(super) fn stamp(&self, path: &RunPath) -> Result<Stamp, FilesError> {
        let io = |cause| FilesError::io(Intent::Write, path, cause);
        let Some(meta) = self.meta(path).map_err(io)? else { return Ok(Stamp::Absent) };
        Ok(match self.look(path).map_err(io)? {
            Found::Absent => Stamp::Absent,
            Found::File { .. } => Stamp::File(FileStamp::of(&meta)),
            Found::Folder { .. } => Stamp::Tree(self.tree_hash(path)?),
            Found::Link(target) => Stamp::Link(target),
            Found::Other(_) => Stamp::Other,
        })
    }

    /// Hashes a folder with all that it holds.
    pub(super) fn tree_hash(&self, path: &RunPath) -> Result<blake3::Hash, FilesError> {
        Ok(tree(path, &self.walk(path)?))
    }

    /// All entries below a folder, each after the folder that holds it, in an order of their own. No link is followed.
    pub(super) fn walk(&self, top: &RunPath) -> Result<Vec<Walked>, FilesError> {
        let mut walked = Vec::new();
        let mut folders = vec![top.clone()];
        while let Some(folder) = folders.pop() {
            let mut children = self
                .list(&folder, ENTRY_LIMIT.saturating_sub(walked.len()), |_| true)
                .map_err(|cause| FilesError::io(Intent::Write, &folder, cause))?
                .ok_or_else(|| FilesError::too_many(top, ENTRY_LIMIT))?;
            children.sort_by(|a, b| a.name.cmp(&b.name));
            for child in children {
                if child.foreign {
                    return Err(FilesError::foreign_name(&folder));
                }
                let path = folder
                    .join(&child.name)
                    .map_err(|fault| FilesError::path(Intent::Write, folder.as_str(), fault))?;
                if let Found::Folder { .. } = child.found {
                    folders.push(path.clone());
                }
                walked.push(Walked { path, found: child.found, stamp: FileStamp::of(&child.meta) });
            }
        }
        Ok(walked)
    }
}

fn tree(top: &RunPath, walked: &[Walked]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for entry in walked {
        for name in entry.path.below(top).into_iter().flatten() {
            hasher.update(name.as_bytes()).update(b"/");
        }
        match &entry.found {
            Found::Folder { .. } => hasher.update(b"\0d"),
            Found::Link(target) => hasher.update(b"\0l").update(target.as_bytes()).update(b"\0"),
            Found::File { .. } | Found::Other(_) | Found::Absent => {
                entry.stamp.feed(hasher.update(b"\0f"));
                &mut hasher
            }
        };
    }
    hasher.finalize()
}

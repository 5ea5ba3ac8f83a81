//! Functions that walk a folder of the base, or hash the folder with everything in it.

use std::collections::BTreeMap;

use super::{Base, EntryInfo};
use crate::ENTRY_LIMIT;
use crate::error::{AtPath as _, FilesError};
use crate::git_names::{has_repository_layout, is_named, is_repository, is_repository_part};
use crate::host_files::is_project_file;
use crate::path::{Intent, RunPath};
use crate::stamp::{FileStamp, Stamp};

/// An entry found by walking a folder.
pub(crate) struct WalkedEntry {
    pub(crate) path: RunPath,
    pub(crate) entry: EntryInfo,
    stamp: FileStamp,
}

impl Base {
    /// Returns the current state of an entry.
    pub(crate) fn stamp(&self, path: &RunPath) -> Result<Stamp, FilesError> {
        let Some(meta) = self.meta(path).at(Intent::Write, path)? else { return Ok(Stamp::Absent) };
        Ok(match self.entry(path).at(Intent::Write, path)? {
            EntryInfo::Absent => Stamp::Absent,
            EntryInfo::File { .. } => Stamp::File(FileStamp::of(&meta)),
            EntryInfo::Folder { .. } => Stamp::Tree(self.tree_hash(path)?),
            EntryInfo::Link(target) => Stamp::Link(target),
            EntryInfo::Other(_) => Stamp::Other,
        })
    }

    /// Returns the entries of a folder, sorted by name, or `None` if there are more than `max`.
    pub(crate) fn children(
        &self,
        path: &RunPath,
        max: usize,
        intent: Intent,
    ) -> Result<Option<Vec<(String, EntryInfo)>>, FilesError> {
        let listed = self.list(path, max, |_| true).at(intent, path)?;
        Ok(listed.map(|listed| {
            let mut children: Vec<(String, EntryInfo)> =
                listed.into_iter().map(|child| (child.name, child.entry)).collect();
            children.sort_by(|a, b| a.0.cmp(&b.0));
            children
        }))
    }

    /// Hashes a folder and everything in it.
    pub(crate) fn tree_hash(&self, path: &RunPath) -> Result<blake3::Hash, FilesError> {
        Ok(hash(path, &self.walk(path)?))
    }

    /// Returns true if a folder is a repository, or contains a repository or a project file at any
    /// depth.
    pub(crate) fn holds_protected(&self, folder: &RunPath) -> Result<bool, FilesError> {
        let mut parts: BTreeMap<RunPath, Vec<String>> = BTreeMap::new();
        for found in self.walk(folder)? {
            let Some((parent, name)) = found.path.split() else { continue };
            if is_repository(name) || is_project_file(name) {
                return Ok(true);
            }
            if is_repository_part(name) {
                parts.entry(parent).or_default().push(name.to_owned());
            }
        }
        for names in parts.values() {
            let has = |part: &str| -> Result<bool, FilesError> {
                Ok(names.iter().any(|name| is_named(name, part)))
            };
            if has_repository_layout(has)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns all entries under a folder in a fixed order, each folder before its entries. Follows
    /// no links.
    pub(crate) fn walk(&self, top: &RunPath) -> Result<Vec<WalkedEntry>, FilesError> {
        let mut walked = Vec::new();
        let mut folders = vec![top.clone()];
        while let Some(folder) = folders.pop() {
            let mut children = self
                .list(&folder, ENTRY_LIMIT.saturating_sub(walked.len()), |_| true)
                .at(Intent::Write, &folder)?
                .ok_or_else(|| FilesError::too_many(top, ENTRY_LIMIT))?;
            children.sort_by(|a, b| a.name.cmp(&b.name));
            for child in children {
                if child.not_utf8 {
                    return Err(FilesError::name_not_utf8(&folder));
                }
                let path = folder.child(&child.name, Intent::Write)?;
                if let EntryInfo::Folder { .. } = child.entry {
                    folders.push(path.clone());
                }
                walked.push(WalkedEntry {
                    path,
                    entry: child.entry,
                    stamp: FileStamp::of(&child.meta),
                });
            }
        }
        Ok(walked)
    }
}

fn hash(top: &RunPath, walked: &[WalkedEntry]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for entry in walked {
        for name in entry.path.below(top).into_iter().flatten() {
            hasher.update(name.as_bytes()).update(b"/");
        }
        match &entry.entry {
            EntryInfo::Folder { .. } => hasher.update(b"\0d"),
            EntryInfo::Link(target) => {
                hasher.update(b"\0l").update(target.as_bytes()).update(b"\0")
            }
            EntryInfo::File { .. } | EntryInfo::Other(_) | EntryInfo::Absent => {
                entry.stamp.feed(hasher.update(b"\0f"));
                &mut hasher
            }
        };
    }
    hasher.finalize()
}

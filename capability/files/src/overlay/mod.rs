//! The overlay: a file tree, with or without a base, whose changes are kept in memory.

mod apply;
#[cfg(test)]
mod apply_model;
mod charge;
mod check;
mod delta;
mod discard;
mod layer;
mod plan;
mod reads;
mod relocate;

use std::time::SystemTime;

use crate::base::{Base, EntryInfo};
use crate::entry::Change;
use crate::error::{AtPath as _, FilesError};
use crate::jail::is_absent;
use crate::path::{Intent, RunPath};
use crate::reader::Reader;
use crate::stamp::{FileStamp, Stamp};
use crate::tree::open_paths::OpenPaths;
use crate::tree::{Edit, OpenFile, Tree};
use charge::Charged;
pub use charge::MemoryCharge;
use layer::{Body, Content, Layer, Lookup, Node};
use reads::Reads;

/// Default maximum size of an overlay, in bytes: 64 MiB.
pub const OVERLAY_LIMIT: u64 = 64 << 20;

/// A tree whose changes are stored as nodes of a [`Layer`]. Each node adds a new entry, or replaces
/// or hides an entry in the base.
#[derive(Debug)]
pub(crate) struct Overlay {
    base: Option<Base>,
    layer: Layer,
    charged: Charged,
    reads: Reads,
    open_paths: OpenPaths,
}

impl Overlay {
    /// Creates an empty overlay. Its nodes use at most `limit` bytes.
    pub(crate) fn new(base: Option<Base>, limit: u64) -> Overlay {
        Overlay {
            layer: Layer::new(base.is_some(), limit),
            base,
            charged: Charged::default(),
            reads: Reads::default(),
            open_paths: OpenPaths::default(),
        }
    }

    /// Returns the number of bytes that the nodes use.
    pub(crate) fn used(&self) -> u64 {
        self.layer.used()
    }

    /// Sets the node at `path`. `size` is the maximum size of its content. `body` creates the
    /// content only after the size has been checked against the limit.
    fn put(
        &mut self,
        path: &RunPath,
        size: u64,
        body: impl FnOnce(&mut Overlay) -> Result<Body, FilesError>,
    ) -> Result<(), FilesError> {
        let merged = self.merged_parents(path)?;
        let growth = self.layer.growth(path, Node::new(Body::Gone).cost().saturating_add(size));
        self.check_room(path, growth)?;
        let body = body(self)?;
        let seen = self.seen(path)?;
        self.layer.place(path, Node { seen, ..Node::new(body) }, merged);
        Ok(())
    }

    /// Checks that the limit allows `growth` more bytes for `path`, and charges them.
    fn check_room(&mut self, path: &RunPath, growth: u64) -> Result<(), FilesError> {
        let used = self.layer.used();
        if !self.layer.has_room(growth) {
            return Err(FilesError::full(path, growth, used, self.layer.limit));
        }
        self.charged.grow_to(Some(path), used.saturating_add(growth))
    }

    /// Returns the number of ancestors of `path`, not counting the root, that exist in the layer or
    /// as visible folders in the base. Returns 0 without a base.
    fn merged_parents(&self, path: &RunPath) -> Result<usize, FilesError> {
        let Some(base) = &self.base else { return Ok(0) };
        let mut merged = 0;
        for parent in path.parents() {
            let exists = match self.layer.lookup(&parent) {
                Lookup::Node(_) => true,
                Lookup::Hidden => false,
                Lookup::Base => {
                    let entry = base.entry(&parent).at(Intent::Write, &parent)?;
                    matches!(entry, EntryInfo::Folder { .. })
                }
            };
            if !exists {
                break;
            }
            merged += 1;
        }
        Ok(merged)
    }

    /// Returns the state of the base's entry at `path` that the run relies on. This is the state at
    /// the run's first change to the entry. If the run has not changed the entry, it is the state
    /// at the last read. If the run has not read it either, it is the current state.
    fn seen(&self, path: &RunPath) -> Result<Stamp, FilesError> {
        let Some(base) = &self.base else { return Ok(Stamp::Absent) };
        if !self.layer.shows_base(path) {
            return Ok(Stamp::Absent);
        }
        match self.layer.node(path).map(|node| &node.seen) {
            None => self.reads.get(path).map_or_else(|| base.stamp(path), Ok),
            Some(Stamp::Folder) => base.stamp(path),
            Some(seen) => Ok(seen.clone()),
        }
    }

    /// Removes an entry and everything in it from the tree.
    fn hide(&mut self, path: &RunPath) -> Result<(), FilesError> {
        let merged = self.merged_parents(path)?;
        let seen = self.seen(path)?;
        let in_base = match &self.base {
            Some(base) if self.layer.shows_base(path) => {
                let entry = base.entry(path).at(Intent::Write, path)?;
                entry != EntryInfo::Absent
            }
            _ => false,
        };
        self.layer.remove(path);
        self.open_paths.unlink(path);
        if in_base {
            self.layer.place(path, Node { seen, ..Node::new(Body::Gone) }, merged);
        }
        Ok(())
    }

    /// Reads at most `max` bytes of a file. Also returns its permissions if it is in the base.
    /// Returns no bytes if the file does not exist.
    fn copy_up(&mut self, path: &RunPath, max: u64) -> Result<(Vec<u8>, Option<u32>), FilesError> {
        if self.entry(path, Intent::Write)? == EntryInfo::Absent {
            return Ok((Vec::new(), None));
        }
        let reader = self.open_file(path)?;
        let mode = self.base.as_ref().map(|base| base.mode(path)).transpose();
        let mode = mode.at(Intent::Write, path)?.flatten();
        Ok((reader.read_at(0, max)?.into(), mode))
    }
}

impl Tree for Overlay {
    fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    fn refresh(&mut self) {
        if let Some(base) = &mut self.base {
            base.host_files.refresh();
        }
    }

    fn entry(&self, path: &RunPath, intent: Intent) -> Result<EntryInfo, FilesError> {
        match (self.layer.lookup(path), &self.base) {
            (Lookup::Node(node), _) => Ok(node.entry()),
            (Lookup::Base, Some(base)) => base.entry(path).at(intent, path),
            (Lookup::Hidden, _) | (Lookup::Base, None) => Ok(EntryInfo::Absent),
        }
    }

    fn open_file(&mut self, path: &RunPath) -> Result<Reader, FilesError> {
        if let Lookup::Node(Node { body: Body::File { content, .. }, .. }) = self.layer.lookup(path)
        {
            return Ok(Reader::memory(path.clone(), content.bytes()));
        }
        let io = |cause| FilesError::io(Intent::Read, path, cause);
        let Some(base) = &self.base else { return Err(io(rustix::io::Errno::NOENT.into())) };
        let (file, meta) = base.open_file(path).map_err(io)?;
        self.reads.record(path, FileStamp::of(&meta));
        Ok(Reader::base(path.clone(), file, FileStamp::of(&meta)))
    }

    fn children(
        &self,
        path: &RunPath,
        max: usize,
        intent: Intent,
    ) -> Result<Option<Vec<(String, EntryInfo)>>, FilesError> {
        let (folder, base) = match self.layer.lookup(path) {
            Lookup::Hidden => (None, None),
            Lookup::Base => (None, self.base.as_ref()),
            Lookup::Node(Node { body: Body::Folder(folder), .. }) => {
                (Some(folder), self.base.as_ref().filter(|_| !folder.opaque))
            }
            Lookup::Node(_) => (None, None),
        };
        let mut children: Vec<(String, EntryInfo)> = Vec::new();
        for name in folder.iter().flat_map(|folder| folder.children.keys()) {
            let child = path.child(name, intent)?;
            let entry = self.entry(&child, intent)?;
            if entry != EntryInfo::Absent {
                children.push((name.clone(), entry));
            }
        }
        if let Some(base) = base {
            let not_covered =
                |name: &str| folder.is_none_or(|folder| !folder.children.contains_key(name));
            let listed = match base.list(path, max, not_covered) {
                // Another process removed a merged folder from the base. The overlay's own entries
                // in the folder remain.
                Err(cause) if folder.is_some() && is_absent(&cause) => Some(Vec::new()),
                listed => listed.at(intent, path)?,
            };
            let Some(listed) = listed else { return Ok(None) };
            children.extend(listed.into_iter().map(|child| (child.name, child.entry)));
        }
        children.sort_by(|a, b| a.0.cmp(&b.0));
        Ok((children.len() <= max).then_some(children))
    }

    fn has_repository_part(&self, folder: &RunPath, name: &str) -> Result<bool, FilesError> {
        if self.layer.has_child(folder, name) {
            return Ok(true);
        }
        // An entry that the overlay hides counts too, because it is in the base until the changes
        // have been applied.
        let Some(base) = &self.base else { return Ok(false) };
        let path = folder.child(name, Intent::Write)?;
        // If the lookup fails, the folder exists only in the overlay.
        Ok(base.entry(&path).is_ok_and(|entry| entry != EntryInfo::Absent))
    }

    fn write_file(&mut self, path: &RunPath, data: &[u8]) -> Result<(), FilesError> {
        let mode = match self.layer.node(path).map(|node| &node.body) {
            Some(Body::File { mode, .. }) => *mode,
            _ => None,
        };
        self.put(path, data.len() as u64, |_| {
            Ok(Body::File { content: Content::new(data.to_vec()), mode })
        })
    }

    fn edit_file(
        &mut self,
        path: &RunPath,
        old_size: u64,
        edit: Edit<'_>,
    ) -> Result<(), FilesError> {
        let size = edit.new_size(old_size);
        if let Lookup::Node(_) = self.layer.lookup(path) {
            self.check_room(path, size.saturating_sub(old_size))?;
            // A size within the limit fits into memory.
            self.layer.edit(path, |content| perform(edit, content, size as usize));
            return Ok(());
        }
        let copied = if let Edit::Truncate(size) = edit { size.min(old_size) } else { old_size };
        self.put(path, size.max(copied), |overlay| {
            let (mut content, mode) = overlay.copy_up(path, copied)?;
            perform(edit, &mut content, size as usize);
            Ok(Body::File { content: Content::new(content), mode })
        })
    }

    fn create_file(&mut self, path: &RunPath) -> Result<(), FilesError> {
        self.put(path, 0, |_| Ok(Body::File { content: Content::new(Vec::new()), mode: None }))
    }

    fn create_folder(&mut self, path: &RunPath) -> Result<(), FilesError> {
        self.put(path, 0, |_| Ok(Node::folder(true).body))
    }

    fn create_link(&mut self, path: &RunPath, target: &str) -> Result<(), FilesError> {
        self.put(path, target.len() as u64, |_| Ok(Body::Link(target.to_owned())))
    }

    fn set_modified(&mut self, path: &RunPath, time: SystemTime) -> Result<(), FilesError> {
        self.layer.set_modified(path, time);
        Ok(())
    }

    fn remove(&mut self, path: &RunPath, _: &EntryInfo) -> Result<(), FilesError> {
        self.hide(path)
    }

    fn remove_all(&mut self, path: &RunPath, _: &EntryInfo) -> Result<(), FilesError> {
        self.hide(path)
    }

    fn rename(&mut self, from: &RunPath, to: &RunPath) -> Result<(), FilesError> {
        self.relocate(from, to)
    }

    fn open_for_writing(&mut self, path: &RunPath) -> Result<OpenFile, FilesError> {
        Ok(OpenFile::Overlay(self.open_paths.open(path.clone())))
    }

    fn changes(&self) -> Result<Vec<Change>, FilesError> {
        let steps = plan::plan(&self.layer, self.base.as_ref())?;
        let mut changes: Vec<Change> = steps.into_iter().map(|step| step.change).collect();
        changes.sort();
        Ok(changes)
    }
}

/// Performs an edit in memory. `size` is the size of the content after the edit.
fn perform(edit: Edit<'_>, content: &mut Vec<u8>, size: usize) {
    match edit {
        Edit::Append(data) => content.extend_from_slice(data),
        Edit::Truncate(_) => content.resize(size, 0),
        Edit::WriteAt(offset, data) => {
            content.resize(size, 0);
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            if let Some(range) =
                content.get_mut(start..).and_then(|rest| rest.get_mut(..data.len()))
            {
                range.copy_from_slice(data);
            }
        }
    }
}

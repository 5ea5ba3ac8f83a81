//! Moves entries in the overlay. Content from the base is copied into the overlay.

use std::collections::BTreeMap;

use super::Overlay;
use super::layer::{Body, Content, Folder, Lookup, Node};
use crate::ENTRY_LIMIT;
use crate::base::EntryInfo;
use crate::error::FilesError;
use crate::path::{Intent, RunPath};
use crate::reader::BoundedReadError;
use crate::tree::open_paths::OpenPaths;
use crate::tree::{Tree, lookup};

/// A move in progress.
struct Move<'a> {
    from: &'a RunPath,
    to: &'a RunPath,
    /// The number of bytes that the copies may still use.
    room: u64,
    /// The number of entries that were copied.
    entries: usize,
}

impl Overlay {
    /// Moves an entry with everything in it.
    pub(super) fn relocate(&mut self, from: &RunPath, to: &RunPath) -> Result<(), FilesError> {
        let freed = self.layer.node(from).map_or(0, Node::cost);
        let room = self.layer.limit.saturating_sub(self.layer.used()).saturating_add(freed);
        let node = self.copy(from, &mut Move { from, to, room, entries: 0 })?;
        // All lookups in the base precede the first change, so that an error changes nothing.
        self.seen(from)?;
        let merged = self.merged_parents(to)?;
        let seen = self.seen(to)?;
        self.open_paths.unlink(to);
        let open = self.open_paths.below(from);
        self.hide(from)?;
        OpenPaths::relocate(open, from, to);
        self.layer.place(to, Node { seen, ..node }, merged);
        Ok(())
    }

    /// Returns a copy of an entry, with everything in it, as a node for its new path. The folders
    /// of the copy are opaque, so that entries in the base at the new path stay hidden. The maximum
    /// depth of a path limits the recursion.
    fn copy(&mut self, path: &RunPath, progress: &mut Move<'_>) -> Result<Node, FilesError> {
        let target = path.relocate(progress.from, progress.to);
        let target =
            target.map_err(|fault| FilesError::path(Intent::Write, path.as_str(), fault))?;
        progress.entries += 1;
        if progress.entries > ENTRY_LIMIT {
            return Err(FilesError::too_many(progress.from, ENTRY_LIMIT));
        }
        let entry = self.entry(path, Intent::Write)?;
        let name = target.split().map_or(0, |(_, name)| name.len() as u64);
        self.spend(Node::new(Body::Gone).cost() + name + entry.size(), progress)?;
        let body = match entry {
            EntryInfo::Folder { .. } => self.copy_folder(path, progress)?,
            EntryInfo::File { size, .. } => self.copy_file(path, size)?,
            EntryInfo::Link(leads_to) => {
                if path.leaves_from(&target, &leads_to) {
                    return Err(FilesError::link_leaves(path));
                }
                self.spend(leads_to.len() as u64, progress)?;
                Body::Link(leads_to)
            }
            EntryInfo::Other(what) => return Err(FilesError::special(Intent::Write, path, what)),
            EntryInfo::Absent => return Err(lookup::missing(self, path)),
        };
        Ok(Node::new(body))
    }

    fn copy_folder(&mut self, path: &RunPath, progress: &mut Move<'_>) -> Result<Body, FilesError> {
        let children = self.children(path, ENTRY_LIMIT, Intent::Write)?;
        let mut folder = Folder { children: BTreeMap::new(), opaque: true };
        for (name, entry) in children.ok_or_else(|| FilesError::too_many(path, ENTRY_LIMIT))? {
            if let EntryInfo::Other(what) = entry {
                return Err(FilesError::special(Intent::Write, path, what));
            }
            let child = path.child(&name, Intent::Write)?;
            folder.children.insert(name, self.copy(&child, progress)?);
        }
        Ok(Body::Folder(folder))
    }

    fn copy_file(&mut self, path: &RunPath, size: u64) -> Result<Body, FilesError> {
        if let Lookup::Node(Node { body: Body::File { content, mode }, .. }) =
            self.layer.lookup(path)
        {
            return Ok(Body::File { content: content.clone(), mode: *mode });
        }
        let reader = self.open_file(path)?;
        let (_, mode) = self.copy_up(path, 0)?;
        let content = reader.read_bounded(size).map_err(|error| match error {
            BoundedReadError::Failed(error) => error,
            BoundedReadError::TooLarge(_) => FilesError::conflict(path, None),
        })?;
        Ok(Body::File { content: Content::new(content.into()), mode })
    }

    fn spend(&mut self, cost: u64, progress: &mut Move<'_>) -> Result<(), FilesError> {
        let full = || FilesError::full(progress.from, cost, self.layer.used(), self.layer.limit);
        progress.room = progress.room.checked_sub(cost).ok_or_else(full)?;
        self.charged.grow_to(Some(progress.from), self.layer.limit.saturating_sub(progress.room))
    }
}

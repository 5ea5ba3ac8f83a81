//! Discards changes, so that the run sees the base's entries again.
//!
//! A folder that the run removed and created again is opaque: it hides all entries of the base's
//! folder at the same path. Before an entry in such a folder can be shown again, the folder becomes
//! a merged one, in which each hidden entry is marked as removed. This conversion does not alter
//! the run's files and changes.

use super::Overlay;
use super::layer::{Body, Node};
use crate::ENTRY_LIMIT;
use crate::base::EntryInfo;
use crate::base::primitives::Disk as _;
use crate::error::{AtPath as _, FilesError};
use crate::path::{Intent, RunPath};
use crate::stamp::Stamp;

impl Overlay {
    /// Discards the changes at a path and under it.
    ///
    /// # Errors
    /// If the base cannot be read, the limit allows no more nodes, or another process has changed a
    /// replaced parent folder since the run replaced it. In that case, no change is discarded.
    pub(crate) fn discard(&mut self, path: &RunPath) -> Result<(), FilesError> {
        if path.is_top() {
            self.layer.clear();
        } else {
            if self.is_in_base(path)? {
                for folder in path.parents() {
                    if let Some(Node { body: Body::Folder(inner), .. }) = self.layer.node(&folder)
                        && inner.opaque
                    {
                        self.merge_with_base(&folder)?;
                    }
                }
            }
            self.layer.remove(path);
        }
        self.open_paths.unlink(path);
        Ok(())
    }

    /// Returns true if the base has an entry at a path, whether or not the overlay hides it.
    fn is_in_base(&self, path: &RunPath) -> Result<bool, FilesError> {
        let Some(base) = &self.base else { return Ok(false) };
        let entry = |path: &RunPath| base.entry(path).at(Intent::Write, path);
        for parent in path.parents() {
            if !matches!(entry(&parent)?, EntryInfo::Folder { .. }) {
                return Ok(false);
            }
        }
        Ok(entry(path)? != EntryInfo::Absent)
    }

    /// Turns an opaque folder into a merged one. The base must have a folder at the same path.
    fn merge_with_base(&mut self, folder: &RunPath) -> Result<(), FilesError> {
        let (Some(base), Some(node)) = (&self.base, self.layer.node(folder)) else { return Ok(()) };
        let mut stamps = Vec::new();
        // A folder that the run created at an unused path hides nothing. Entries that another
        // process has since created there are not changes of the run.
        if node.seen != Stamp::Absent {
            let io = |cause| FilesError::io(Intent::Write, folder, cause);
            let listed = base.list(folder, ENTRY_LIMIT, |_| true).map_err(io)?;
            for child in listed.ok_or_else(|| FilesError::too_many(folder, ENTRY_LIMIT))? {
                if child.not_utf8 {
                    return Err(FilesError::name_not_utf8(folder));
                }
                let path = folder.child(&child.name, Intent::Write)?;
                let seen = base.stamp(&path)?;
                stamps.push((path, seen));
            }
            // The folder's stamp covered its entries. The entries' own stamps now replace it, so
            // they must describe the state that the run saw.
            if !base.is_unchanged(folder, &node.seen).map_err(io)? {
                return Err(FilesError::conflict(folder, base.current(folder).ok().as_ref()));
            }
        }
        let cost = Node::new(Body::Gone).cost();
        let hidden = stamps.iter().filter(|(path, _)| self.layer.node(path).is_none());
        let growth: u64 = hidden.map(|(path, _)| self.layer.growth(path, cost)).sum();
        self.check_room(folder, growth)?;
        self.layer.merge(folder);
        for (path, seen) in stamps {
            match self.layer.node(&path) {
                Some(_) => self.layer.set_seen(&path, seen),
                None => self.layer.place(&path, Node { seen, ..Node::new(Body::Gone) }, 0),
            }
        }
        Ok(())
    }
}

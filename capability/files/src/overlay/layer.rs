//! The layer: an in-memory tree of the entries that the run wrote, moved and removed.
//!
//! The node of a folder is either *opaque* and hides all entries in the base under the folder, or
//! *merged* and shows them unless other nodes replace or hide them.
//!
//! Invariants: every parent of a node is a node; the base had a folder at the path of each merged
//! folder when the node was created; `used` is the total cost of all nodes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::base::EntryInfo;
use crate::git_names::is_named;
use crate::path::RunPath;
use crate::stamp::Stamp;

/// Fixed cost of a node, in bytes, added to the size of its name and content. It prevents a run
/// from filling the memory with empty files.
const NODE_COST: u64 = 256;

#[derive(Debug)]
pub(super) struct Layer {
    pub(super) root: Node,
    pub(super) used: u64,
    pub(super) limit: u64,
    /// The paths that changed since the last delta.
    pub(super) changed: BTreeSet<RunPath>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Node {
    /// The state of the base's entry at this path when the run first relied on it. This stamp is
    /// not used under an opaque folder, whose own stamp covers everything that the folder hides.
    pub(super) seen: Stamp,
    pub(super) body: Body,
    pub(super) modified: SystemTime,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Body {
    /// A file, with its permissions if it was copied from the base.
    File {
        content: Content,
        mode: Option<u32>,
    },
    Folder(Folder),
    Link(String),
    /// An entry in the base that the run removed.
    Gone,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Folder {
    pub(super) children: BTreeMap<String, Node>,
    pub(super) opaque: bool,
}

/// The bytes of a file. Readers share them. A write copies them only while a reader holds them.
#[derive(Clone)]
pub(super) struct Content(Arc<Vec<u8>>);

impl Content {
    pub(super) fn new(data: Vec<u8>) -> Content {
        Content(Arc::new(data))
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn bytes(&self) -> Bytes {
        Bytes::from_owner(self.clone())
    }

    fn edit(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        let data = Arc::make_mut(&mut self.0);
        change(data);
        // The limit counts lengths, so unused capacity must be freed.
        if data.capacity() / 2 > data.len() {
            data.shrink_to_fit();
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The result of looking up a path in the layer.
pub(super) enum Lookup<'a> {
    Node(&'a Node),
    /// The entry does not exist in the run's files, even if it exists in the base.
    Hidden,
    /// The layer has no node at the path, so the base's entry is visible.
    Base,
}

impl Node {
    pub(super) fn new(body: Body) -> Node {
        Node { seen: Stamp::Absent, body, modified: SystemTime::now() }
    }

    pub(super) fn folder(opaque: bool) -> Node {
        let seen = if opaque { Stamp::Absent } else { Stamp::Folder };
        Node { seen, ..Node::new(Body::Folder(Folder { children: BTreeMap::new(), opaque })) }
    }

    /// Returns the entry that the node represents.
    pub(super) fn entry(&self) -> EntryInfo {
        let modified = Some(self.modified);
        match &self.body {
            Body::File { content, .. } => {
                EntryInfo::File { size: content.len(), modified, version: None }
            }
            Body::Folder(_) => EntryInfo::Folder { modified },
            Body::Link(target) => EntryInfo::Link(target.clone()),
            Body::Gone => EntryInfo::Absent,
        }
    }

    /// Returns the cost in bytes of the node and all of its descendants, without the node's own
    /// name.
    pub(super) fn cost(&self) -> u64 {
        NODE_COST
            + match &self.body {
                Body::File { content, .. } => content.len(),
                Body::Folder(folder) => {
                    folder.children.iter().map(|(name, node)| name.len() as u64 + node.cost()).sum()
                }
                Body::Link(target) => target.len() as u64,
                Body::Gone => 0,
            }
    }
}

impl Layer {
    pub(super) fn new(over_base: bool, limit: u64) -> Layer {
        Layer { root: Node::folder(!over_base), used: 0, limit, changed: BTreeSet::new() }
    }

    /// Returns the total cost of all nodes, in bytes.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the root node, which is always a folder.
    pub(super) fn root(&self) -> &Node {
        &self.root
    }

    /// Removes all nodes except the root.
    pub(super) fn clear(&mut self) {
        if let Body::Folder(folder) = &mut self.root.body {
            folder.children.clear();
        }
        self.used = 0;
        self.changed.insert(RunPath::top());
    }

    pub(super) fn lookup(&self, path: &RunPath) -> Lookup<'_> {
        let mut node = &self.root;
        for name in path.names() {
            let Body::Folder(folder) = &node.body else { return Lookup::Hidden };
            match folder.children.get(name) {
                Some(child) => node = child,
                None if folder.opaque => return Lookup::Hidden,
                None => return Lookup::Base,
            }
        }
        if matches!(node.body, Body::Gone) { Lookup::Hidden } else { Lookup::Node(node) }
    }

    /// Returns the node at a path, or `None` if the layer has no node there. The node may mark a
    /// removed entry.
    pub(super) fn node(&self, path: &RunPath) -> Option<&Node> {
        path.names().try_fold(&self.root, |node, name| match &node.body {
            Body::Folder(folder) => folder.children.get(name),
            _ => None,
        })
    }

    pub(super) fn node_mut(&mut self, path: &RunPath) -> Option<&mut Node> {
        path.names().try_fold(&mut self.root, |node, name| match &mut node.body {
            Body::Folder(folder) => folder.children.get_mut(name),
            _ => None,
        })
    }

    /// Returns true if a folder has an entry called `name`, in any spelling.
    pub(super) fn has_child(&self, folder: &RunPath, name: &str) -> bool {
        let Some(Body::Folder(folder)) = self.node(folder).map(|node| &node.body) else {
            return false;
        };
        let mut existing =
            folder.children.iter().filter(|(_, node)| !matches!(node.body, Body::Gone));
        existing.any(|(child, _)| is_named(child, name))
    }

    /// Returns true if entries in the base are visible in the parent folder of `path`.
    pub(super) fn shows_base(&self, path: &RunPath) -> bool {
        let Some(parent) = path.parent() else { return true };
        match self.lookup(&parent) {
            Lookup::Base => true,
            Lookup::Hidden => false,
            Lookup::Node(node) => matches!(&node.body, Body::Folder(folder) if !folder.opaque),
        }
    }

    /// Returns the number of bytes that a new node at `path` with the given cost would add,
    /// including missing parents.
    pub(super) fn growth(&self, path: &RunPath, cost: u64) -> u64 {
        let missing = path.steps().filter(|step| self.node(step).is_none()).map(|step| {
            let name = step.split().map_or(0, |(_, name)| name.len() as u64);
            if step == *path { name } else { name + NODE_COST }
        });
        let old = self.node(path).map_or(0, Node::cost);
        missing.sum::<u64>().saturating_add(cost).saturating_sub(old)
    }

    /// Returns true if the limit allows `growth` more bytes.
    pub(super) fn has_room(&self, growth: u64) -> bool {
        growth == 0 || self.used.saturating_add(growth) <= self.limit
    }

    /// Sets the node at a path and creates missing parents. A parent that is created becomes a
    /// merged folder if it is one of the first `merged` parents, and an opaque folder otherwise.
    pub(super) fn place(&mut self, path: &RunPath, node: Node, merged: usize) {
        let Some((parent, name)) = path.split() else { return };
        let mut added = node.cost();
        self.changed.insert(path.clone());
        let mut parent_node = &mut self.root;
        for ((depth, part), above) in parent.names().enumerate().zip(path.steps()) {
            let Body::Folder(folder) = &mut parent_node.body else { return };
            parent_node = match folder.children.entry(part.to_owned()) {
                Entry::Occupied(existing) => existing.into_mut(),
                Entry::Vacant(vacant) => {
                    added += NODE_COST + part.len() as u64;
                    self.changed.insert(above.clone());
                    vacant.insert(Node::folder(depth >= merged))
                }
            };
            if matches!(parent_node.body, Body::Gone) {
                self.changed.insert(above);
                parent_node.body = Body::Folder(Folder { children: BTreeMap::new(), opaque: true });
            }
        }
        let Body::Folder(folder) = &mut parent_node.body else { return };
        let removed = match folder.children.insert(name.to_owned(), node) {
            Some(old) => old.cost(),
            None => {
                added += name.len() as u64;
                0
            }
        };
        self.used = (self.used + added).saturating_sub(removed);
    }

    /// Removes a node and all of its descendants.
    pub(super) fn remove(&mut self, path: &RunPath) {
        let Some((parent, name)) = path.split() else { return };
        let Some(Node { body: Body::Folder(folder), .. }) = self.node_mut(&parent) else { return };
        if let Some(node) = folder.children.remove(name) {
            self.used = self.used.saturating_sub(node.cost() + name.len() as u64);
            self.changed.insert(path.clone());
        }
    }

    /// Edits the content of a file.
    pub(super) fn edit(&mut self, path: &RunPath, change: impl FnOnce(&mut Vec<u8>)) {
        let Some(Node { body: Body::File { content, .. }, modified, .. }) = self.node_mut(path)
        else {
            return;
        };
        let before = content.len();
        content.edit(change);
        let after = content.len();
        *modified = SystemTime::now();
        self.used = (self.used + after).saturating_sub(before);
        self.changed.insert(path.clone());
    }

    pub(super) fn set_modified(&mut self, path: &RunPath, time: SystemTime) {
        if let Some(node) = self.node_mut(path) {
            node.modified = time;
            self.changed.insert(path.clone());
        }
    }

    /// Turns a folder into a merged one. The base must have a folder at the same path.
    pub(super) fn merge(&mut self, path: &RunPath) {
        if let Some(Node { body: Body::Folder(folder), seen, .. }) = self.node_mut(path) {
            folder.opaque = false;
            *seen = Stamp::Folder;
            self.changed.insert(path.clone());
        }
    }

    /// Replaces the recorded stamp of the base's entry at `path`. Does nothing if the layer has no
    /// node at that path.
    pub(super) fn set_seen(&mut self, path: &RunPath, seen: Stamp) {
        if let Some(node) = self.node_mut(path) {
            node.seen = seen;
            self.changed.insert(path.clone());
        }
    }
}

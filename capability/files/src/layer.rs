//! The overlay: a tree in memory of what the run wrote, moved and removed.
//!
//! Invariants: every folder above a node is a node; a folder is *merged* only where the base had a folder in that place
//! when the node was made, and below one that is *opaque* nothing of the base shows; `used` is the cost of all nodes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::path::RunPath;
use super::stamp::Stamp;
use super::writer::Writers;

/// What a node costs beside its name and content, so that a run cannot fill the memory with empty files.
const NODE_COST: u64 = 256;

#[derive(Debug)]
pub(super) struct Layer {
    pub(super) root: Node,
    pub(super) used: u64,
    pub(super) limit: u64,
    /// What has changed since it was kept last.
    pub(super) changed: BTreeSet<RunPath>,
    pub(super) writers: Writers,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Node {
    /// The base's entry in this place when the run first relied on it; not read below an opaque folder, whose own
    /// stamp stands for all that it hides.
    pub(super) seen: Stamp,
    pub(super) body: Body,
    pub(super) modified: SystemTime,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Body {
    /// A file, with the permissions that it brings along where it was copied from the base.
    File {
        content: Content,
        mode: Option<u32>,
    },
    Folder(Folder),
    Link(String),
    /// The base's entry in this place is removed.
    Gone,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Folder {
    pub(super) children: BTreeMap<String, Node>,
    pub(super) opaque: bool,
}

/// A file's bytes. Readers share them; a write copies them only while a reader holds them.
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
        // The bound counts lengths, so that what a cut leaves over must not be kept.
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

/// Where a path leads in the overlay.
pub(super) enum Spot<'a> {
    Node(&'a Node),
    /// Nothing is there, whatever the base has.
    Hidden,
    /// The overlay has nothing to say: the base's entry shows.
    Below,
}

impl Node {
    pub(super) fn new(body: Body) -> Node {
        Node { seen: Stamp::Absent, body, modified: SystemTime::now() }
    }

    pub(super) fn folder(opaque: bool) -> Node {
        let seen = if opaque { Stamp::Absent } else { Stamp::Folder };
        Node { seen, ..Node::new(Body::Folder(Folder { children: BTreeMap::new(), opaque })) }
    }

    /// What the node and all below it cost, without the node's own name.
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
        Layer { root: Node::folder(!over_base), used: 0, limit, changed: BTreeSet::new(), writers: Writers::default() }
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The root's node, which is always a folder.
    pub(super) fn root(&self) -> &Node {
        &self.root
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        if let Body::Folder(folder) = &mut self.root.body {
            folder.children.clear();
        }
        self.used = 0;
        self.changed.insert(RunPath::top());
    }

    pub(super) fn find(&self, path: &RunPath) -> Spot<'_> {
        let mut node = &self.root;
        for name in path.names() {
            let Body::Folder(folder) = &node.body else { return Spot::Hidden };
            match folder.children.get(name) {
                Some(child) => node = child,
                None if folder.opaque => return Spot::Hidden,
                None => return Spot::Below,
            }
        }
        if matches!(node.body, Body::Gone) { Spot::Hidden } else { Spot::Node(node) }
    }

    /// The node in this place, also where it says that the base's entry is gone.
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

    /// Whether the base shows in the folder that holds `path`, as far as the overlay knows.
    pub(super) fn is_open(&self, path: &RunPath) -> bool {
        let Some(parent) = path.parent() else { return true };
        match self.find(&parent) {
            Spot::Below => true,
            Spot::Hidden => false,
            Spot::Node(node) => matches!(&node.body, Body::Folder(folder) if !folder.opaque),
        }
    }

    /// The bytes that a new node of `cost` at `path` would add, with the folders that it needs.
    pub(super) fn growth(&self, path: &RunPath, cost: u64) -> u64 {
        let missing = path.steps().filter(|step| self.node(step).is_none()).map(|step| {
            let name = step.split().map_or(0, |(_, name)| name.len() as u64);
            if step == *path { name } else { name + NODE_COST }
        });
        let old = self.node(path).map_or(0, Node::cost);
        missing.sum::<u64>().saturating_add(cost).saturating_sub(old)
    }

    /// Whether that many more bytes fit.
    pub(super) fn has_room(&self, growth: u64) -> bool {
        growth == 0 || self.used.saturating_add(growth) <= self.limit
    }

    /// Puts a node in its place, over what is there. Missing folders above it are made: the first `merged` of the path's
    /// folders merged with the base's, the others opaque.
    pub(super) fn place(&mut self, path: &RunPath, node: Node, merged: usize) {
        let Some((parent, name)) = path.split() else { return };
        let mut added = node.cost();
        self.changed.insert(path.clone());
        let mut at = &mut self.root;
        for ((depth, part), above) in parent.names().enumerate().zip(path.steps()) {
            let Body::Folder(folder) = &mut at.body else { return };
            at = match folder.children.entry(part.to_owned()) {
                Entry::Occupied(held) => held.into_mut(),
                Entry::Vacant(free) => {
                    added += NODE_COST + part.len() as u64;
                    self.changed.insert(above.clone());
                    free.insert(Node::folder(depth >= merged))
                }
            };
            if matches!(at.body, Body::Gone) {
                self.changed.insert(above);
                at.body = Body::Folder(Folder { children: BTreeMap::new(), opaque: true });
            }
        }
        let Body::Folder(folder) = &mut at.body else { return };
        let removed = match folder.children.insert(name.to_owned(), node) {
            Some(old) => old.cost(),
            None => {
                added += name.len() as u64;
                0
            }
        };
        self.used = (self.used + added).saturating_sub(removed);
    }

    /// Takes a node away, with all below it.
    pub(super) fn take(&mut self, path: &RunPath) {
        let Some((parent, name)) = path.split() else { return };
        let Some(Node { body: Body::Folder(folder), .. }) = self.node_mut(&parent) else { return };
        if let Some(node) = folder.children.remove(name) {
            self.used = self.used.saturating_sub(node.cost() + name.len() as u64);
            self.changed.insert(path.clone());
        }
    }

    /// Changes the content of a file of the overlay.
    pub(super) fn edit(&mut self, path: &RunPath, change: impl FnOnce(&mut Vec<u8>)) {
        let Some(Node { body: Body::File { content, .. }, modified, .. }) = self.node_mut(path) else { return };
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

    /// Renews what is known of the base's entry in a node's place.
    pub(super) fn set_seen(&mut self, path: &RunPath, seen: Stamp) {
        if let Some(node) = self.node_mut(path) {
            node.seen = seen;
            self.changed.insert(path.clone());
        }
    }
}

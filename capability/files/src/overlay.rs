//! Writing to the overlay: nodes that stand over the base's entries, hide them, or copy them from there.

use super::ENTRY_LIMIT;
use super::base::Found;
use super::edit::moved;
use super::error::{FilesError, Intent};
use super::layer::{Body, Content, Node, Spot};
use super::path::RunPath;
use super::reader::Beyond;
use super::stamp::Stamp;
use super::view::Store;

impl Store {
    /// Makes a node at `path`, whose folders are there or can be made. `size` is what its content costs at most; the
    /// content itself is made only once that is known to fit.
    pub(super) fn put(
        &mut self,
        path: &RunPath,
        body: impl FnOnce(&mut Store) -> Result<Body, FilesError>,
        size: u64,
    ) -> Result<(), FilesError> {
        let merged = self.merged_above(path)?;
        let Store::Overlay { layer, .. } = self else { return Ok(()) };
        let growth = layer.growth(path, Node::new(Body::Gone).cost().saturating_add(size));
        if !layer.has_room(growth) {
            return Err(FilesError::full(path, growth, layer.used(), layer.limit));
        }
        let body = body(self)?;
        let seen = self.seen(path)?;
        let Store::Overlay { layer, .. } = self else { return Ok(()) };
        layer.place(path, Node { seen, ..Node::new(body) }, merged);
        Ok(())
    }

    /// How many of the folders above `path`, from the top, the base has where it shows.
    fn merged_above(&self, path: &RunPath) -> Result<usize, FilesError> {
        let Store::Overlay { base: Some(base), layer, .. } = self else { return Ok(0) };
        let mut merged = 0;
        for step in path.steps().take(path.depth().saturating_sub(1)) {
            let there = match layer.find(&step) {
                Spot::Node(_) => true,
                Spot::Hidden => false,
                Spot::Below => {
                    let found = base.look(&step).map_err(|cause| FilesError::io(Intent::Write, &step, cause))?;
                    matches!(found, Found::Folder { .. })
                }
            };
            if !there {
                break;
            }
            merged += 1;
        }
        Ok(merged)
    }

    /// What the base has at `path` as the run knows it: as it was when the run first changed it, else last read it, else
    /// now.
    fn seen(&self, path: &RunPath) -> Result<Stamp, FilesError> {
        let Store::Overlay { base: Some(base), layer, reads } = self else { return Ok(Stamp::Absent) };
        if !layer.is_open(path) {
            return Ok(Stamp::Absent);
        }
        match layer.node(path).map(|node| &node.seen) {
            None => reads.get(path).map_or_else(|| base.stamp(path), Ok),
            Some(Stamp::Folder) => base.stamp(path),
            Some(seen) => Ok(seen.clone()),
        }
    }

    /// Takes an entry out of sight, with all below it.
    pub(super) fn hide(&mut self, path: &RunPath) -> Result<(), FilesError> {
        let merged = self.merged_above(path)?;
        let seen = self.seen(path)?;
        let Store::Overlay { base, layer, .. } = self else { return Ok(()) };
        let shows = match base {
            Some(base) if layer.is_open(path) => {
                base.look(path).map_err(|cause| FilesError::io(Intent::Write, path, cause))? != Found::Absent
            }
            _ => false,
        };
        layer.take(path);
        layer.writers.unlink(path);
        if shows {
            layer.place(path, Node { seen, ..Node::new(Body::Gone) }, merged);
        }
        Ok(())
    }

    /// At most `most` bytes of a file of the base, with its permissions; nothing where it is not there.
    pub(super) fn copy_up(&mut self, path: &RunPath, most: u64) -> Result<(Vec<u8>, Option<u32>), FilesError> {
        if self.found(path, Intent::Write)? == Found::Absent {
            return Ok((Vec::new(), None));
        }
        let reader = self.open(path)?;
        let mode = self.base().map(|base| base.mode(path)).transpose();
        let mode = mode.map_err(|cause| FilesError::io(Intent::Write, path, cause))?.flatten();
        Ok((reader.read_at(0, most)?.into(), mode))
    }

    pub(super) fn move_in_layer(&mut self, from: &RunPath, to: &RunPath) -> Result<(), FilesError> {
        let mut room = match self {
            Store::Overlay { layer, .. } => {
                let kept = layer.node(from).map_or(0, Node::cost);
                layer.limit.saturating_sub(layer.used()).saturating_add(kept)
            }
            Store::Through { .. } => 0,
        };
        let mut count = 0;
        let node = self.lift(from, from, to, &mut room, &mut count)?;
        // Both looks come before the first change, so that a failure leaves all as it was.
        self.seen(from)?;
        let merged = self.merged_above(to)?;
        let seen = self.seen(to)?;
        let Store::Overlay { layer, .. } = self else { return Ok(()) };
        layer.writers.unlink(to);
        let moved = layer.writers.below(from);
        self.hide(from)?;
        let Store::Overlay { layer, .. } = self else { return Ok(()) };
        layer.writers.relink(moved, from, to);
        layer.place(to, Node { seen, ..node }, merged);
        Ok(())
    }

    /// Copies an entry, with all below it, as it will stand at `to`: folders opaque, since nothing of the base belongs
    /// into them there. `room` is what it may still cost. Recurses no deeper than a path may be.
    fn lift(
        &mut self,
        path: &RunPath,
        from: &RunPath,
        to: &RunPath,
        room: &mut u64,
        count: &mut usize,
    ) -> Result<Node, FilesError> {
        let target = moved(path, from, to)?;
        *count += 1;
        if *count > ENTRY_LIMIT {
            return Err(FilesError::too_many(from, ENTRY_LIMIT));
        }
        let found = self.found(path, Intent::Write)?;
        let name = target.split().map_or(0, |(_, name)| name.len() as u64);
        let own = Node::new(Body::Gone).cost() + name + found.size();
        self.spend(from, own, room)?;
        let body = match found {
            Found::Folder { .. } => {
                let children = self.children(path, ENTRY_LIMIT, Intent::Write)?;
                let children = children.ok_or_else(|| FilesError::too_many(path, ENTRY_LIMIT))?;
                let mut folder = Node::folder(true);
                if let Body::Folder(folder) = &mut folder.body {
                    for (name, found) in children {
                        if let Found::Other(what) = found {
                            return Err(FilesError::special(Intent::Write, path, what));
                        }
                        let child = path.join(&name);
                        let child = child.map_err(|fault| FilesError::path(Intent::Write, path.as_str(), fault))?;
                        let node = self.lift(&child, from, to, room, count)?;
                        folder.children.insert(name, node);
                    }
                }
                folder.body
            }
            Found::File { size, .. } => {
                if let Store::Overlay { layer, .. } = self
                    && let Spot::Node(Node { body: Body::File { content, mode }, .. }) = layer.find(path)
                {
                    Body::File { content: content.clone(), mode: *mode }
                } else {
                    let reader = self.open(path)?;
                    let (_, mode) = self.copy_up(path, 0)?;
                    let content = reader.read_bounded(size).map_err(|beyond| match beyond {
                        Beyond::Failed(error) => error,
                        Beyond::Limit(_) => FilesError::conflict(path, None),
                    })?;
                    Body::File { content: Content::new(content.into()), mode }
                }
            }
            Found::Link(leads) => {
                if path.leaves_from(&target, &leads) {
                    return Err(FilesError::link_leaves(path));
                }
                self.spend(from, leads.len() as u64, room)?;
                Body::Link(leads)
            }
            Found::Other(what) => return Err(FilesError::special(Intent::Write, path, what)),
            Found::Absent => return Err(self.missing(path)),
        };
        Ok(Node::new(body))
    }

    fn spend(&self, path: &RunPath, cost: u64, room: &mut u64) -> Result<(), FilesError> {
        let Store::Overlay { layer, .. } = self else { return Ok(()) };
        *room = room.checked_sub(cost).ok_or_else(|| FilesError::full(path, cost, layer.used(), layer.limit))?;
        Ok(())
    }
}

//! Changing: one set of rules for both kinds of run, then the overlay or the base.

use super::base::Found;
use super::error::{FilesError, Intent};
use super::layer::{Body, Content, Node, Spot};
use super::path::RunPath;
use super::reader::Beyond;
use super::stamp::Stamp;
use super::view::{Last, Store};
use super::{ENTRY_LIMIT, FILE_LIMIT};

/// A change to a part of a file.
#[derive(Clone, Copy)]
pub(super) enum Edit<'a> {
    Append(&'a [u8]),
    WriteAt(u64, &'a [u8]),
    Truncate(u64),
}

impl Edit<'_> {
    /// The size of a file of `old` bytes afterwards.
    fn size(self, old: u64) -> u64 {
        match self {
            Edit::Append(data) => old.saturating_add(data.len() as u64),
            Edit::WriteAt(_, []) => old,
            Edit::WriteAt(offset, data) => old.max(offset.saturating_add(data.len() as u64)),
            Edit::Truncate(size) => size,
        }
    }

    /// Carries the change out in memory, where `size` bytes are known to fit.
    fn carry_out(self, content: &mut Vec<u8>, size: usize) {
        match self {
            Edit::Append(data) => content.extend_from_slice(data),
            Edit::Truncate(_) => content.resize(size, 0),
            Edit::WriteAt(offset, data) => {
                content.resize(size, 0);
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                if let Some(place) = content.get_mut(start..).and_then(|rest| rest.get_mut(..data.len())) {
                    place.copy_from_slice(data);
                }
            }
        }
    }
}

impl Store {
    pub(super) fn write(&mut self, text: &str, data: &[u8]) -> Result<(), FilesError> {
        let path = self.resolve_file(text, Intent::Write)?;
        self.check_file(&path)?;
        match self {
            Store::Overlay { layer, .. } => {
                let mode = match layer.node(&path).map(|node| &node.body) {
                    Some(Body::File { mode, .. }) => *mode,
                    _ => None,
                };
                self.put(&path, |_| Ok(Body::File { content: Content::new(data.to_vec()), mode }), data.len() as u64)
            }
            Store::Through { .. } => {
                if data.len() as u64 > FILE_LIMIT {
                    return Err(FilesError::file_bound(&path, FILE_LIMIT));
                }
                self.make_above(&path)?;
                self.change_base(&path, |base| base.replace(&path, data, None))
            }
        }
    }

    pub(super) fn edit(&mut self, text: &str, edit: Edit<'_>) -> Result<(), FilesError> {
        let path = self.resolve_file(text, Intent::Write)?;
        let old = self.check_file(&path)?;
        if old.is_none() && matches!(edit, Edit::Truncate(_)) {
            return Err(self.missing(&path));
        }
        let old = old.unwrap_or(0);
        let size = edit.size(old);
        match self {
            Store::Through { .. } => {
                if size > FILE_LIMIT {
                    return Err(FilesError::file_bound(&path, FILE_LIMIT));
                }
                self.make_above(&path)?;
                self.change_base(&path, |base| match edit {
                    Edit::Append(data) => base.append(&path, data),
                    Edit::WriteAt(offset, data) => base.write_at(&path, offset, data),
                    Edit::Truncate(size) => base.truncate(&path, size),
                })
            }
            Store::Overlay { layer, .. } => {
                let held = matches!(layer.find(&path), Spot::Node(_));
                if held {
                    let growth = size.saturating_sub(old);
                    if !layer.has_room(growth) {
                        return Err(FilesError::full(&path, growth, layer.used(), layer.limit));
                    }
                    // What fits under the limit fits in memory.
                    layer.edit(&path, |content| edit.carry_out(content, size as usize));
                    return Ok(());
                }
                let copied = if let Edit::Truncate(size) = edit { size.min(old) } else { old };
                self.put(
                    &path,
                    |store| {
                        let (mut content, mode) = store.copy_up(&path, copied)?;
                        edit.carry_out(&mut content, size as usize);
                        Ok(Body::File { content: Content::new(content), mode })
                    },
                    size.max(copied),
                )
            }
        }
    }

    pub(super) fn mkdir(&mut self, text: &str) -> Result<(), FilesError> {
        let path = self.resolve(text, Last::Follow, Intent::Write)?;
        match self.found(&path, Intent::Write)? {
            Found::Folder { .. } => return Ok(()),
            Found::File { .. } | Found::Link(_) => return Err(FilesError::file_exists(&path)),
            Found::Other(what) => return Err(FilesError::special(Intent::Write, &path, what)),
            Found::Absent => self.check_above(&path)?,
        };
        match self {
            Store::Overlay { .. } => self.put(&path, |_| Ok(Node::folder(true).body), 0),
            Store::Through { .. } => {
                self.make_above(&path)?;
                self.change_base(&path, |base| base.create_folder(&path))
            }
        }
    }

    pub(super) fn remove(&mut self, text: &str) -> Result<(), FilesError> {
        let (path, found) = self.removable(text, "removed")?;
        if let Found::Folder { .. } = found
            && !self.children(&path, 0, Intent::Write)?.is_some_and(|children| children.is_empty())
        {
            let (names, more) = self.near(&path, "");
            return Err(FilesError::not_empty(&path, &names, more));
        }
        match self {
            Store::Overlay { .. } => self.hide(&path),
            Store::Through { base, journal } => {
                journal.touch(base, [&path])?;
                base.remove(&path, &found).map_err(|cause| FilesError::io(Intent::Write, &path, cause))?;
                journal.forget(&path);
                Ok(())
            }
        }
    }

    pub(super) fn remove_all(&mut self, text: &str) -> Result<(), FilesError> {
        let (path, found) = self.removable(text, "removed")?;
        match self {
            Store::Overlay { .. } => self.hide(&path),
            Store::Through { base, journal } => {
                let mut all = vec![(path.clone(), found.clone())];
                if let Found::Folder { .. } = found {
                    all.extend(base.walk(&path)?.into_iter().map(|entry| (entry.path, entry.found)));
                }
                journal.touch(base, all.iter().map(|(path, _)| path))?;
                for (path, found) in all.iter().rev() {
                    base.remove(path, found).map_err(|cause| FilesError::io(Intent::Write, path, cause))?;
                    journal.forget(path);
                }
                Ok(())
            }
        }
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), FilesError> {
        let slash = to.ends_with('/');
        let (from, found) = self.removable(from, "moved")?;
        let to_text = to;
        let to = self.resolve(to, Last::Keep, Intent::Write)?;
        if let Found::Other(what) = found {
            return Err(FilesError::special(Intent::Write, &from, what));
        }
        if from == to {
            return Ok(());
        }
        let is_folder = matches!(found, Found::Folder { .. });
        if to.is_top() {
            return Err(FilesError::top("replaced"));
        }
        if to.below(&from).is_some() {
            return Err(if is_folder { FilesError::into_itself(&from, &to) } else { FilesError::not_folder(&from) });
        }
        let target = self.found(&to, Intent::Write)?;
        match &target {
            Found::Absent if slash && !is_folder => return Err(FilesError::names_a_folder(to_text)),
            Found::Absent => {
                self.check_above(&to)?;
            }
            Found::Folder { .. } if !is_folder || from.below(&to).is_some() => {
                let name = from.split().map(|(_, name)| name).unwrap_or_default();
                return Err(FilesError::folder_exists(&to, name));
            }
            Found::Folder { .. } => {
                if !self.children(&to, 0, Intent::Write)?.is_some_and(|children| children.is_empty()) {
                    let (names, more) = self.near(&to, "");
                    return Err(FilesError::not_empty(&to, &names, more));
                }
            }
            Found::File { .. } | Found::Link(_) if is_folder => return Err(FilesError::file_exists(&to)),
            Found::File { .. } | Found::Link(_) => {}
            Found::Other(what) => return Err(FilesError::special(Intent::Write, &to, what)),
        }
        match self {
            Store::Overlay { .. } => self.move_in_layer(&from, &to),
            Store::Through { .. } => self.move_in_base(&from, &to),
        }
    }

    /// The size of the file that is to be written; `None` where it is to be made.
    fn check_file(&self, path: &RunPath) -> Result<Option<u64>, FilesError> {
        match self.found(path, Intent::Write)? {
            Found::File { size, .. } => Ok(Some(size)),
            Found::Absent => self.check_above(path).map(|_| None),
            Found::Folder { .. } => Err(FilesError::is_folder(Intent::Write, path)),
            Found::Link(_) => Err(FilesError::link_loop(path)),
            Found::Other(what) => Err(FilesError::special(Intent::Write, path, what)),
        }
    }

    /// An entry that is there and is not the top, a link as itself.
    fn removable(&self, text: &str, what: &str) -> Result<(RunPath, Found), FilesError> {
        let path = self.resolve(text, Last::Keep, Intent::Write)?;
        if path.is_top() {
            return Err(FilesError::top(what));
        }
        match self.found(&path, Intent::Write)? {
            Found::Absent => Err(self.missing(&path)),
            found => Ok((path, found)),
        }
    }
}

/// The base, where the run writes through.
impl Store {
    /// Makes the folders above `path` that are not there.
    fn make_above(&mut self, path: &RunPath) -> Result<(), FilesError> {
        let there = self.check_above(path)?;
        let above = path.depth().saturating_sub(1);
        for step in path.steps().take(above).skip(there) {
            self.change_base(&step, |base| base.create_folder(&step))?;
        }
        Ok(())
    }

    fn change_base(
        &mut self,
        path: &RunPath,
        change: impl FnOnce(&super::Base) -> std::io::Result<()>,
    ) -> Result<(), FilesError> {
        let Store::Through { base, journal } = self else { return Ok(()) };
        journal.touch(base, [path])?;
        change(base).map_err(|cause| FilesError::io(Intent::Write, path, cause))
    }

    fn move_in_base(&mut self, from: &RunPath, to: &RunPath) -> Result<(), FilesError> {
        self.make_above(to)?;
        let Store::Through { base, journal } = self else { return Ok(()) };
        let mut olds = vec![from.clone()];
        if base.look(from).is_ok_and(|found| matches!(found, Found::Folder { .. })) {
            olds.extend(base.walk(from)?.into_iter().map(|entry| entry.path));
        }
        let news = olds.iter().map(|old| moved(old, from, to)).collect::<Result<Vec<_>, _>>()?;
        journal.touch(base, olds.iter().chain(&news))?;
        base.rename(from, to).map_err(|cause| FilesError::io(Intent::Write, from, cause))?;
        for old in &olds {
            journal.forget(old);
        }
        Ok(())
    }
}

/// The overlay, where the run does not.
impl Store {
    /// Makes a node at `path`, whose folders are there or can be made. `size` is what its content costs at most; the
    /// content itself is made only once that is known to fit.
    fn put(
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
    fn hide(&mut self, path: &RunPath) -> Result<(), FilesError> {
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
        if shows {
            layer.place(path, Node { seen, ..Node::new(Body::Gone) }, merged);
        }
        Ok(())
    }

    /// At most `most` bytes of a file of the base, with its permissions; nothing where it is not there.
    fn copy_up(&mut self, path: &RunPath, most: u64) -> Result<(Vec<u8>, Option<u32>), FilesError> {
        if self.found(path, Intent::Write)? == Found::Absent {
            return Ok((Vec::new(), None));
        }
        let reader = self.open(path)?;
        let mode = self.base().map(|base| base.mode(path)).transpose();
        let mode = mode.map_err(|cause| FilesError::io(Intent::Write, path, cause))?.flatten();
        Ok((reader.read_at(0, most)?.into(), mode))
    }

    fn move_in_layer(&mut self, from: &RunPath, to: &RunPath) -> Result<(), FilesError> {
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
        self.hide(from)?;
        let Store::Overlay { layer, .. } = self else { return Ok(()) };
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
                        Beyond::Limit(_) => FilesError::conflict(path),
                    })?;
                    Body::File { content: Content::new(content.into()), mode }
                }
            }
            Found::Link(target) => {
                self.spend(from, target.len() as u64, room)?;
                Body::Link(target)
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

/// Where `old`, at or below `from`, stands once `from` has moved to `to`.
fn moved(old: &RunPath, from: &RunPath, to: &RunPath) -> Result<RunPath, FilesError> {
    to.join_all(old.below(from).into_iter().flatten())
        .map_err(|fault| FilesError::path(Intent::Write, old.as_str(), fault))
}

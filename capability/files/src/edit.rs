//! Changing: one set of rules for both kinds of run; what they allow goes to the overlay or through to the base.

use std::time::SystemTime;

use super::FILE_LIMIT;
use super::base::Found;
use super::error::{FilesError, Intent};
use super::layer::{Body, Content, Node, Spot};
use super::path::RunPath;
use super::view::{Last, Store};

/// A change to a part of a file.
#[derive(Clone, Copy)]
pub(super) enum Edit<'a> {
    Append(&'a [u8]),
    WriteAt(u64, &'a [u8]),
    Truncate(u64),
}

impl Edit<'_> {
    /// The size of a file of `old` bytes afterwards.
    pub(super) fn size(self, old: u64) -> u64 {
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
                self.change_base(&path, |base| base.replace(&path, data))
            }
        }
    }

    pub(super) fn check_write(&self, text: &str) -> Result<(), FilesError> {
        let path = self.resolve_file(text, Intent::Write)?;
        self.check_file(&path).map(|_| ())
    }

    pub(super) fn edit(&mut self, text: &str, edit: Edit<'_>) -> Result<(), FilesError> {
        let path = self.resolve_file(text, Intent::Write)?;
        self.edit_file(&path, edit).map(drop)
    }

    /// Changes a part of a file; gives its size afterwards.
    pub(super) fn edit_file(&mut self, path: &RunPath, edit: Edit<'_>) -> Result<u64, FilesError> {
        let old = self.check_file(path)?;
        if old.is_none() && matches!(edit, Edit::Truncate(_)) {
            return Err(self.missing(path));
        }
        let old = old.unwrap_or(0);
        let size = edit.size(old);
        match self {
            Store::Through { .. } => {
                if size > FILE_LIMIT {
                    return Err(FilesError::file_bound(path, FILE_LIMIT));
                }
                self.make_above(path)?;
                self.change_base(path, |base| match edit {
                    Edit::Append(data) => base.append(path, data),
                    Edit::WriteAt(offset, data) => base.write_at(path, offset, data),
                    Edit::Truncate(size) => base.truncate(path, size),
                })?;
            }
            Store::Overlay { layer, .. } if matches!(layer.find(path), Spot::Node(_)) => {
                let growth = size.saturating_sub(old);
                if !layer.has_room(growth) {
                    return Err(FilesError::full(path, growth, layer.used(), layer.limit));
                }
                // What fits under the limit fits in memory.
                layer.edit(path, |content| edit.carry_out(content, size as usize));
            }
            Store::Overlay { .. } => {
                let copied = if let Edit::Truncate(size) = edit { size.min(old) } else { old };
                self.put(
                    path,
                    |store| {
                        let (mut content, mode) = store.copy_up(path, copied)?;
                        edit.carry_out(&mut content, size as usize);
                        Ok(Body::File { content: Content::new(content), mode })
                    },
                    size.max(copied),
                )?;
            }
        }
        Ok(size)
    }

    pub(super) fn symlink(&mut self, target: &str, text: &str) -> Result<(), FilesError> {
        let path = self.resolve(text, Last::Keep, Intent::Write)?;
        if self.found(&path, Intent::Write)? != Found::Absent {
            return Err(FilesError::taken(&path));
        }
        if text.ends_with('/') {
            return Err(FilesError::names_a_folder(text));
        }
        self.check_above(&path)?;
        let target = path.link_to(target).map_err(|fault| FilesError::path(Intent::Write, target, fault))?;
        match self {
            Store::Overlay { .. } => {
                let size = target.len() as u64;
                self.put(&path, |_| Ok(Body::Link(target)), size)
            }
            Store::Through { .. } => {
                self.make_above(&path)?;
                self.change_base(&path, |base| base.link(&path, &target))
            }
        }
    }

    pub(super) fn create_new(&mut self, text: &str) -> Result<(), FilesError> {
        let path = self.vacant(text)?;
        if text.ends_with('/') {
            return Err(FilesError::names_a_folder(text));
        }
        match self {
            Store::Overlay { .. } => {
                self.put(&path, |_| Ok(Body::File { content: Content::new(Vec::new()), mode: None }), 0)
            }
            Store::Through { .. } => self.change_base(&path, |base| base.create_empty(&path)),
        }
    }

    pub(super) fn create_folder(&mut self, text: &str) -> Result<(), FilesError> {
        let path = self.vacant(text)?;
        match self {
            Store::Overlay { .. } => self.put(&path, |_| Ok(Node::folder(true).body), 0),
            Store::Through { .. } => self.change_base(&path, |base| base.create_folder(&path)),
        }
    }

    /// A path where nothing is, in a folder that is there.
    fn vacant(&self, text: &str) -> Result<RunPath, FilesError> {
        let path = self.resolve(text, Last::Keep, Intent::Write)?;
        if path.is_top() || self.found(&path, Intent::Write)? != Found::Absent {
            return Err(FilesError::taken(&path));
        }
        if self.check_above(&path)? + 1 < path.depth() {
            return Err(self.missing(&path));
        }
        Ok(path)
    }

    pub(super) fn set_modified(&mut self, text: &str, time: SystemTime) -> Result<(), FilesError> {
        let path = self.resolve(text, Last::Follow, Intent::Write)?;
        match self.found(&path, Intent::Write)? {
            Found::Folder { .. } => return Ok(()),
            Found::Absent => return Err(self.missing(&path)),
            _ => {}
        }
        // A file of the base is taken into the overlay; with what it holds it is no change.
        self.edit_file(&path, Edit::WriteAt(0, &[]))?;
        match self {
            Store::Overlay { layer, .. } => layer.set_modified(&path, time),
            Store::Through { .. } => return self.change_base(&path, |base| base.set_modified(&path, time)),
        }
        Ok(())
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
        self.check_below(&to)?;
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
    pub(super) fn check_file(&self, path: &RunPath) -> Result<Option<u64>, FilesError> {
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
            found => {
                self.check_below(&path)?;
                Ok((path, found))
            }
        }
    }

    /// Refuses to move or remove a folder that holds a file of the host's own.
    fn check_below(&self, path: &RunPath) -> Result<(), FilesError> {
        match self.base().and_then(|base| base.kept.below(path)) {
            Some((kept, what)) => Err(FilesError::holds_kept(path, kept, what)),
            None => Ok(()),
        }
    }
}

/// Where `old`, at or below `from`, stands once `from` has moved to `to`.
pub(super) fn moved(old: &RunPath, from: &RunPath, to: &RunPath) -> Result<RunPath, FilesError> {
    to.join_all(old.below(from).into_iter().flatten())
        .map_err(|fault| FilesError::path(Intent::Write, old.as_str(), fault))
}

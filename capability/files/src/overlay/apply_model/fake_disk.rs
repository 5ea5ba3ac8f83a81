//! An in-memory disk. A simulated user changes it between the primitive operations.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::io::Errno;

use crate::base::primitives::Disk;
use crate::path::RunPath;
use crate::stamp::{CurrentEntry, FileStamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    File { inode: u64, data: String, modified: i64, changed: i64 },
    Folder,
    Link(String),
}

/// An event that occurs before a primitive operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The user overwrites a file with other content of the same size.
    Edit(String),
    /// The user overwrites a file as in [`Event::Edit`], and then restores the file's modification
    /// time.
    EditKeepingTime(String),
    /// The user saves a file as editors do: a new file replaces the entry.
    Save(String),
    /// The user removes the entry. Its content may then be lost.
    Delete(String),
    /// The user moves the entry away.
    Move(String),
    /// The user replaces the entry with a folder that contains a file.
    Folder(String),
    /// The user replaces the entry with a link.
    Link(String),
    /// The operation fails once.
    Fail,
    /// The process ends.
    Crash,
}

#[derive(Clone, Default)]
pub(super) struct World {
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) clock: i64,
    pub(super) inodes: u64,
    pub(super) step: usize,
    pub(super) dead: bool,
    pub(super) events: Vec<(usize, Event)>,
    /// The contents that the user wrote and has not overwritten or removed.
    pub(super) wanted: BTreeSet<String>,
    pub(super) can_exchange: bool,
}

impl World {
    /// Creates a file.
    pub(super) fn file(&mut self, path: &str, data: &str) {
        self.clock += 1;
        self.inodes += 1;
        let inode = self.inodes;
        let now = self.clock;
        self.nodes.insert(
            path.into(),
            Node::File { inode, data: data.into(), modified: now, changed: now },
        );
    }

    fn below(&self, path: &str) -> Vec<String> {
        let inside = |other: &&String| *other == path || other.starts_with(&format!("{path}/"));
        self.nodes.keys().filter(inside).cloned().collect()
    }

    /// Removes an entry and everything in it, and returns the removed nodes.
    fn take(&mut self, path: &str) -> Vec<(String, Node)> {
        let all = self.below(path);
        all.into_iter()
            .map(|at| (at[path.len()..].to_owned(), self.nodes.remove(&at).unwrap()))
            .collect()
    }

    fn put(&mut self, path: &str, taken: Vec<(String, Node)>) {
        self.clock += 1;
        for (rest, mut node) in taken {
            if let (true, Node::File { changed, .. }) = (rest.is_empty(), &mut node) {
                *changed = self.clock;
            }
            self.nodes.insert(format!("{path}{rest}"), node);
        }
    }

    fn has_folder_for(&self, path: &str) -> bool {
        path.rsplit_once('/')
            .is_none_or(|(folder, _)| self.nodes.get(folder) == Some(&Node::Folder))
    }

    /// Removes an entry whose content the user no longer wants.
    fn forget(&mut self, path: &str) {
        for (_, node) in self.take(path) {
            if let Node::File { data, .. } = node {
                self.wanted.remove(&data);
            }
        }
    }

    fn new_user_text(&mut self) -> String {
        self.clock += 1;
        let text = format!("user-{:07}", self.clock);
        self.wanted.insert(text.clone());
        text
    }

    fn perform(&mut self, event: &Event) {
        match event {
            Event::Edit(path) | Event::EditKeepingTime(path) => {
                let keeps_time = matches!(event, Event::EditKeepingTime(_));
                if !matches!(self.nodes.get(path), Some(Node::File { .. })) {
                    return;
                }
                let text = self.new_user_text();
                let now = self.clock;
                if let Some(Node::File { data, modified, changed, .. }) = self.nodes.get_mut(path) {
                    self.wanted.remove(data);
                    *data = text;
                    *changed = now;
                    if !keeps_time {
                        *modified = now;
                    }
                }
            }
            Event::Save(path) if self.has_folder_for(path) => {
                self.forget(path);
                let text = self.new_user_text();
                self.file(path, &text);
            }
            Event::Delete(path) => self.forget(path),
            Event::Move(path) => {
                let taken = self.take(path);
                self.put(&format!("{path}.mine"), taken);
            }
            Event::Folder(path) if self.has_folder_for(path) => {
                self.forget(path);
                self.nodes.insert(path.clone(), Node::Folder);
                let text = self.new_user_text();
                self.file(&format!("{path}/inner"), &text);
            }
            Event::Link(path) if self.has_folder_for(path) => {
                self.forget(path);
                self.nodes.insert(path.clone(), Node::Link("elsewhere".into()));
            }
            _ => {}
        }
    }
}

/// An in-memory disk.
pub(super) struct FakeDisk(pub(super) RefCell<World>);

impl FakeDisk {
    /// Counts an operation and performs the events that are due before it. Returns an error if one
    /// of these events makes the operation fail.
    fn tick(&self) -> io::Result<std::cell::RefMut<'_, World>> {
        let mut world = self.0.borrow_mut();
        if world.dead {
            return Err(Errno::IO.into());
        }
        let step = world.step;
        world.step += 1;
        let due: Vec<Event> = world
            .events
            .iter()
            .filter(|(at, _)| *at == step)
            .map(|(_, event)| event.clone())
            .collect();
        let mut failed = false;
        for event in due {
            match event {
                Event::Crash => world.dead = true,
                Event::Fail => failed = true,
                event => world.perform(&event),
            }
        }
        if failed || world.dead { Err(Errno::IO.into()) } else { Ok(world) }
    }
}

fn stamp(node: &Node) -> Option<FileStamp> {
    let Node::File { inode, data, modified, changed } = node else { return None };
    Some(FileStamp::for_tests(*inode, data.len() as u64, *modified, *changed))
}

pub(super) fn current(world: &World, path: &str) -> CurrentEntry {
    match world.nodes.get(path) {
        None => CurrentEntry::Absent,
        Some(Node::Folder) => CurrentEntry::Folder,
        Some(Node::Link(target)) => CurrentEntry::Link(target.clone()),
        Some(node) => CurrentEntry::File(stamp(node).unwrap(), 0o644),
    }
}

pub(super) fn tree(world: &World, path: &str) -> blake3::Hash {
    let text: Vec<String> = world
        .below(path)
        .iter()
        .skip(1)
        .map(|at| format!("{}{:?}", &at[path.len()..], world.nodes[at]))
        .collect();
    blake3::hash(text.join("\n").as_bytes())
}

impl Disk for FakeDisk {
    fn current(&self, path: &RunPath) -> io::Result<CurrentEntry> {
        Ok(current(&*self.tick()?, path.as_str()))
    }

    fn digest(&self, path: &RunPath) -> io::Result<Option<blake3::Hash>> {
        match self.tick()?.nodes.get(path.as_str()) {
            Some(Node::File { data, .. }) => Ok(Some(blake3::hash(data.as_bytes()))),
            _ => Err(Errno::NOENT.into()),
        }
    }

    fn tree(&self, path: &RunPath) -> io::Result<blake3::Hash> {
        Ok(tree(&*self.tick()?, path.as_str()))
    }

    fn names(&self, path: &RunPath) -> io::Result<Vec<String>> {
        let world = self.tick()?;
        let below = world.below(path.as_str()).into_iter();
        Ok(below
            .filter_map(|at| at[path.as_str().len()..].strip_prefix('/').map(str::to_owned))
            .filter(|at| !at.contains('/'))
            .collect())
    }

    fn read(&self, path: &RunPath) -> io::Result<Vec<u8>> {
        match self.tick()?.nodes.get(path.as_str()) {
            Some(Node::File { data, .. }) => Ok(data.clone().into_bytes()),
            _ => Err(Errno::NOENT.into()),
        }
    }

    fn permits_runs(&self, _: &RunPath, _: &RunPath) -> io::Result<bool> {
        Ok(true)
    }

    fn check_writable(&self, path: &RunPath) -> io::Result<()> {
        match self.tick()?.nodes.get(path.as_str()) {
            Some(Node::File { .. }) => Ok(()),
            _ => Err(Errno::NOENT.into()),
        }
    }

    fn staging(&self, folder: &RunPath, number: usize, _: &RunPath) -> io::Result<RunPath> {
        Ok(folder.join(&format!("s{number}")).unwrap())
    }

    fn create(&self, path: &RunPath, data: &[u8], _: Option<u32>) -> io::Result<()> {
        let mut world = self.tick()?;
        if world.nodes.contains_key(path.as_str()) {
            return Err(Errno::EXIST.into());
        }
        if !world.has_folder_for(path.as_str()) {
            return Err(Errno::NOENT.into());
        }
        world.file(path.as_str(), std::str::from_utf8(data).unwrap());
        Ok(())
    }

    fn link(&self, path: &RunPath, target: &str) -> io::Result<()> {
        let mut world = self.tick()?;
        if world.nodes.contains_key(path.as_str()) {
            return Err(Errno::EXIST.into());
        }
        world.nodes.insert(path.as_str().into(), Node::Link(target.into()));
        Ok(())
    }

    fn create_folder(&self, path: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        match world.nodes.get(path.as_str()) {
            None => world.nodes.insert(path.as_str().into(), Node::Folder),
            Some(Node::Folder) => None,
            Some(_) => return Err(Errno::EXIST.into()),
        };
        Ok(())
    }

    fn rename_new(&self, from: &RunPath, to: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        if !world.nodes.contains_key(from.as_str()) || !world.has_folder_for(to.as_str()) {
            return Err(Errno::NOENT.into());
        }
        if world.nodes.contains_key(to.as_str()) {
            return Err(Errno::EXIST.into());
        }
        let taken = world.take(from.as_str());
        world.put(to.as_str(), taken);
        Ok(())
    }

    fn exchange(&self, one: &RunPath, other: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        if !world.can_exchange {
            return Err(Errno::INVAL.into());
        }
        if !world.nodes.contains_key(one.as_str()) || !world.nodes.contains_key(other.as_str()) {
            return Err(Errno::NOENT.into());
        }
        let (a, b) = (world.take(one.as_str()), world.take(other.as_str()));
        world.put(one.as_str(), b);
        world.put(other.as_str(), a);
        Ok(())
    }

    fn unlink(&self, path: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        match world.nodes.get(path.as_str()) {
            None => Err(Errno::NOENT.into()),
            Some(Node::Folder) => Err(Errno::ISDIR.into()),
            Some(_) => {
                world.nodes.remove(path.as_str());
                Ok(())
            }
        }
    }

    fn remove_folder(&self, path: &RunPath) -> io::Result<()> {
        let mut world = self.tick()?;
        match world.below(path.as_str()).len() {
            0 => Err(Errno::NOENT.into()),
            1 => {
                world.nodes.remove(path.as_str());
                Ok(())
            }
            _ => Err(Errno::NOTEMPTY.into()),
        }
    }

    fn sync(&self, _: &RunPath) -> io::Result<()> {
        self.tick().map(drop)
    }
}

//! The descriptor table of a guest.

use std::sync::Arc;

use wattle_capability::files::Entry;

use crate::errno::Errno;
use crate::stream::Stream;

/// Descriptor of the preopened folder: the root of the run's files.
pub(super) const ROOT: u32 = 3;

/// An open descriptor.
#[derive(Clone)]
pub(super) enum Descriptor {
    Stream(Stream),
    Folder(Folder),
}

/// An open folder.
#[derive(Clone)]
pub(super) struct Folder {
    /// Absolute path in the run's files.
    pub(super) path: String,
    /// Snapshot of the entries, taken when the guest began to read the folder. `None` before that.
    pub(super) entries: Option<Arc<[Entry]>>,
}

/// The open descriptors, by number.
pub(super) struct Table {
    slots: Vec<Option<Descriptor>>,
    max: usize,
}

impl Table {
    /// Creates a table with the caller's descriptors 0 to 2, and the root.
    pub(super) fn new(fds: &[(u32, Stream)], max: usize) -> Table {
        let standard = |number: u32| {
            let open = fds.iter().rev().find(|(open, _)| *open == number);
            open.map(|(_, stream)| Descriptor::Stream(stream.clone()))
        };
        let root = Descriptor::Folder(Folder { path: "/".to_owned(), entries: None });
        Table { slots: vec![standard(0), standard(1), standard(2), Some(root)], max: max.max(4) }
    }

    pub(super) fn get(&self, fd: u32) -> Result<&Descriptor, Errno> {
        self.slots.get(fd as usize).and_then(Option::as_ref).ok_or(Errno::BADF)
    }

    /// Returns the stream of a descriptor. Fails with [`Errno::ISDIR`] if it is a folder.
    pub(super) fn stream(&self, fd: u32) -> Result<&Stream, Errno> {
        match self.get(fd)? {
            Descriptor::Stream(stream) => Ok(stream),
            Descriptor::Folder(_) => Err(Errno::ISDIR),
        }
    }

    pub(super) fn folder(&self, fd: u32) -> Result<&Folder, Errno> {
        match self.get(fd)? {
            Descriptor::Folder(folder) => Ok(folder),
            Descriptor::Stream(_) => Err(Errno::NOTDIR),
        }
    }

    pub(super) fn folder_mut(&mut self, fd: u32) -> Result<&mut Folder, Errno> {
        match self.slots.get_mut(fd as usize).and_then(Option::as_mut).ok_or(Errno::BADF)? {
            Descriptor::Folder(folder) => Ok(folder),
            Descriptor::Stream(_) => Err(Errno::NOTDIR),
        }
    }

    /// Returns true if another descriptor can be opened.
    pub(super) fn has_room(&self) -> bool {
        self.slots.len() < self.max || self.slots.iter().any(Option::is_none)
    }

    /// Adds a descriptor under the lowest free number.
    pub(super) fn open(&mut self, descriptor: Descriptor) -> Result<u32, Errno> {
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if free >= self.max {
            return Err(Errno::MFILE);
        }
        match self.slots.get_mut(free) {
            Some(slot) => *slot = Some(descriptor),
            None => self.slots.push(Some(descriptor)),
        }
        u32::try_from(free).map_err(|_| Errno::MFILE)
    }

    pub(super) fn close(&mut self, fd: u32) -> Result<(), Errno> {
        let slot = self.slots.get_mut(fd as usize).ok_or(Errno::BADF)?;
        slot.take().map(drop).ok_or(Errno::BADF)
    }

    /// Moves a descriptor to another number and replaces the descriptor that has that number.
    pub(super) fn renumber(&mut self, from: u32, to: u32) -> Result<(), Errno> {
        self.get(to)?;
        let moved = self.get(from)?.clone();
        if from != to {
            if let Some(slot) = self.slots.get_mut(to as usize) {
                *slot = Some(moved);
            }
            self.close(from)?;
        }
        Ok(())
    }
}

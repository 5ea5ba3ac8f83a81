//! The descriptors of a guest.

use std::sync::Arc;

use wattle_capability::files::Entry;

use crate::errno::Errno;
use crate::stream::Stream;

/// The one folder that is open when a guest starts: the top of the run's files.
pub(super) const TOP: u32 = 3;

/// What a descriptor stands for.
#[derive(Clone)]
pub(super) enum Descriptor {
    Stream(Stream),
    Folder(Folder),
}

/// An open folder.
#[derive(Clone)]
pub(super) struct Folder {
    /// Absolute, in the run's tree.
    pub(super) path: String,
    /// Its entries as they were when reading it began.
    pub(super) listed: Option<Arc<[Entry]>>,
}

/// The open descriptors, by number.
pub(super) struct Table {
    slots: Vec<Option<Descriptor>>,
    most: usize,
}

impl Table {
    /// Descriptors 0 to 2 as the caller has them, and the top.
    pub(super) fn new(fds: &[(u32, Stream)], most: usize) -> Table {
        let standard = |number: u32| {
            let held = fds.iter().rev().find(|(held, _)| *held == number);
            held.map(|(_, stream)| Descriptor::Stream(stream.clone()))
        };
        let top = Descriptor::Folder(Folder { path: "/".to_owned(), listed: None });
        Table { slots: vec![standard(0), standard(1), standard(2), Some(top)], most: most.max(4) }
    }

    pub(super) fn get(&self, fd: u32) -> Result<&Descriptor, Errno> {
        self.slots.get(fd as usize).and_then(Option::as_ref).ok_or(Errno::BADF)
    }

    /// A stream; a folder is told as one.
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

    /// Whether one more fits.
    pub(super) fn has_room(&self) -> bool {
        self.slots.len() < self.most || self.slots.iter().any(Option::is_none)
    }

    /// Takes the lowest number that is free.
    pub(super) fn open(&mut self, descriptor: Descriptor) -> Result<u32, Errno> {
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if free >= self.most {
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

    /// Gives a descriptor another number, in place of what has it.
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

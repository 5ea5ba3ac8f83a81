//! Writing a file that is open: to its place in the overlay, wherever that moves, or to a handle of the base's.
//!
//! The latter is changed where it is, part by part, as a shell's `>` does: others see it grow, and a process that is killed leaves
//! what it wrote so far. What replaces a file as a whole is [`Files::write`](super::Files::write). Each addition to the end, as by
//! `>>`, is one write there, whoever else adds to the file.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use rustix::fs::OFlags;

use super::disk::append_whole;
use super::edit::{Edit, moved};
use super::error::{FilesError, Intent};
use super::path::RunPath;
use super::view::Store;
use super::{FILE_LIMIT, lock};

/// An open file, written in parts at any offset; each part is seen by every reader once it is written. What is written to a file that was
/// removed since goes nowhere.
#[derive(Debug)]
pub struct Writer {
    store: Arc<Mutex<Store>>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Overlay(u64),
    Base { path: RunPath, file: File },
}

/// Where the files stand that are open for writing in an overlay.
#[derive(Debug, Default)]
pub(super) struct Writers {
    /// `None` where the file is removed.
    places: HashMap<u64, Option<RunPath>>,
    next: u64,
}

impl Writers {
    fn open(&mut self, path: RunPath) -> u64 {
        let id = self.next;
        self.next += 1;
        self.places.insert(id, Some(path));
        id
    }

    /// The entry at `path` goes, with all below it.
    pub(super) fn unlink(&mut self, path: &RunPath) {
        for place in self.places.values_mut() {
            if place.as_ref().is_some_and(|at| at.below(path).is_some()) {
                *place = None;
            }
        }
    }

    /// Those at `path` and below it.
    pub(super) fn below(&self, path: &RunPath) -> Vec<(u64, RunPath)> {
        let held = self.places.iter().filter_map(|(id, place)| Some((*id, place.clone()?)));
        held.filter(|(_, at)| at.below(path).is_some()).collect()
    }

    /// These now stand below `to` as they did below `from`.
    pub(super) fn relink(&mut self, held: Vec<(u64, RunPath)>, from: &RunPath, to: &RunPath) {
        for (id, at) in held {
            self.places.insert(id, moved(&at, from, to).ok());
        }
    }
}

impl Store {
    pub(super) fn writer(&mut self, path: RunPath, store: &Arc<Mutex<Store>>) -> Result<Writer, FilesError> {
        if self.check_file(&path)?.is_none() {
            return Err(self.missing(&path));
        }
        let place = match self {
            Store::Overlay { layer, .. } => Place::Overlay(layer.writers.open(path)),
            Store::Through { base, journal } => {
                journal.touch(base, [&path])?;
                let opened = base.open_in_place(&path, OFlags::empty());
                let file = opened.map_err(|cause| FilesError::io(Intent::Write, &path, cause))?;
                Place::Base { path, file }
            }
        };
        Ok(Writer { store: Arc::clone(store), place })
    }

    fn edit_open(&mut self, id: u64, edit: Edit<'_>) -> Result<Option<u64>, FilesError> {
        let Store::Overlay { layer, .. } = self else { return Ok(None) };
        match layer.writers.places.get(&id).cloned().flatten() {
            Some(path) => self.edit_file(&path, edit).map(Some),
            None => Ok(None),
        }
    }
}

impl Writer {
    /// Writes at an offset, over what is there; a gap before it is filled with zeros.
    ///
    /// # Errors
    /// Where the overlay is full, or the base does not allow it.
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), FilesError> {
        self.edit(Edit::WriteAt(offset, data)).map(drop)
    }

    /// Adds to the end, and gives the size afterwards.
    ///
    /// # Errors
    /// As [`Writer::write_at`].
    pub fn append(&self, data: &[u8]) -> Result<u64, FilesError> {
        self.edit(Edit::Append(data))
    }

    /// Cuts the file to `size` bytes, or fills it up to that with zeros.
    ///
    /// # Errors
    /// As [`Writer::write_at`].
    pub fn truncate(&self, size: u64) -> Result<(), FilesError> {
        self.edit(Edit::Truncate(size)).map(drop)
    }

    fn edit(&self, edit: Edit<'_>) -> Result<u64, FilesError> {
        let mut store = lock(&self.store);
        match &self.place {
            Place::Overlay(id) => Ok(store.edit_open(*id, edit)?.unwrap_or(0)),
            Place::Base { path, file } => {
                let io = |cause| FilesError::io(Intent::Write, path, cause);
                let old = file.metadata().map_err(io)?.len();
                let size = edit.size(old);
                if size > FILE_LIMIT {
                    return Err(FilesError::file_bound(path, FILE_LIMIT));
                }
                match edit {
                    Edit::Append(data) => append(file, data),
                    Edit::WriteAt(offset, data) => file.write_all_at(data, offset).map(|()| size),
                    Edit::Truncate(size) => file.set_len(size).map(|()| size),
                }
                .map_err(io)
            }
        }
    }
}

/// Adds to the end of a file, wherever that is by now, and gives the size afterwards. The handle is shared with nobody who does
/// not hold the store's lock.
fn append(file: &File, data: &[u8]) -> io::Result<u64> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags | OFlags::APPEND)?;
    let added = append_whole(file, data);
    rustix::fs::fcntl_setfl(file, flags)?;
    added?;
    Ok(file.metadata()?.len())
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Place::Overlay(id) = self.place
            && let Store::Overlay { layer, .. } = &mut *lock(&self.store)
        {
            layer.writers.places.remove(&id);
        }
    }
}

//! A writer for an open file. It writes through the file's current path in an overlay, or through a
//! handle to the file in the base.
//!
//! A file in the base is changed in place, part by part, like a file that a shell writes with `>`:
//! other processes see it grow, and if this process is killed, the parts written so far remain. In
//! contrast, [`Files::write`](crate::Files::write) replaces a file as a whole. Each append is one
//! write at the current end of the file, even if other processes are appending too.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;

use crate::FILE_LIMIT;
use crate::base::write::append_in_one_write;
use crate::error::FilesError;
use crate::path::{Intent, RunPath};
use crate::store::{SharedStore, Store};
use crate::tree::{Edit, OpenFile, change};

/// An open file that can be written in parts at any offset. Each part is visible in the run's files
/// as soon as it is written. Writes to a file that was removed after it was opened are discarded.
#[derive(Debug)]
pub struct Writer {
    store: SharedStore,
    file: OpenFile,
}

impl Writer {
    pub(crate) fn new(store: SharedStore, file: OpenFile) -> Writer {
        Writer { store, file }
    }

    /// Writes at an offset. A gap before the offset is filled with zeros.
    ///
    /// # Errors
    /// If the overlay is full, or the base does not allow the change.
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), FilesError> {
        self.edit(Edit::WriteAt(offset, data)).map(drop)
    }

    /// Appends to the file and returns the new size.
    ///
    /// # Errors
    /// If the overlay is full, or the base does not allow the change.
    pub fn append(&self, data: &[u8]) -> Result<u64, FilesError> {
        self.edit(Edit::Append(data))
    }

    /// Truncates the file to `size` bytes, or extends it with zeros.
    ///
    /// # Errors
    /// If the overlay is full, or the base does not allow the change.
    pub fn truncate(&self, size: u64) -> Result<(), FilesError> {
        self.edit(Edit::Truncate(size)).map(drop)
    }

    fn edit(&self, edit: Edit<'_>) -> Result<u64, FilesError> {
        let mut store = self.store.lock();
        match &self.file {
            OpenFile::Overlay(path) => match path.get() {
                Some(path) => change::edit(store.tree_mut(), &path, edit),
                None => Ok(0),
            },
            OpenFile::Base { path, file } => {
                let edited = edit_base(path, file, edit);
                if let Store::WriteThrough(write_through) = &mut *store {
                    write_through.note(path, &edited);
                    if edited.is_ok() && matches!(edit, Edit::Truncate(0)) {
                        write_through.forget_failure(path);
                    }
                }
                edited
            }
        }
    }
}

/// Edits an open file in the base and returns the file's new size. The caller holds the store's
/// lock, so no other thread uses the handle.
fn edit_base(path: &RunPath, file: &File, edit: Edit<'_>) -> Result<u64, FilesError> {
    let io = |cause| FilesError::io(Intent::Write, path, cause);
    let size = edit.new_size(file.metadata().map_err(io)?.len());
    if size > FILE_LIMIT {
        return Err(FilesError::exceeds_file_limit(path, FILE_LIMIT));
    }
    match edit {
        Edit::Append(data) => append(file, data),
        Edit::WriteAt(offset, data) => file.write_all_at(data, offset).map(|()| size),
        Edit::Truncate(size) => file.set_len(size).map(|()| size),
    }
    .map_err(io)
}

/// Appends at the current end of the file and returns the new size. Sets the handle's append flag
/// only for this write.
fn append(file: &File, data: &[u8]) -> io::Result<u64> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags | OFlags::APPEND)?;
    let appended = append_in_one_write(file, data);
    rustix::fs::fcntl_setfl(file, flags)?;
    appended?;
    Ok(file.metadata()?.len())
}

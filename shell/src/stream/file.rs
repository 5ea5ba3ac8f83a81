//! An open file of the run: what it reads, where it writes, and the place in it that its descriptors share.

use std::io::SeekFrom;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use wattle_capability::files::{EntryKind, ErrorKind, Files, Reader, Stat, Writer};

use super::lock;
use crate::errno::{Errno, Fault};

/// The bytes that are read ahead of a caller that must not wait for a disk.
const AHEAD: usize = 64 << 10;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// It is read.
    pub read: bool,
    /// It is written.
    pub write: bool,
    /// What is written goes to its end.
    pub append: bool,
    /// It is made where it is not there.
    pub create: bool,
    /// It is emptied.
    pub truncate: bool,
    /// It must not be there.
    pub exclusive: bool,
}

impl OpenHow {
    /// For `< file`.
    pub const READ: OpenHow =
        OpenHow { read: true, write: false, append: false, create: false, truncate: false, exclusive: false };
    /// For `> file`.
    pub const WRITE: OpenHow =
        OpenHow { read: false, write: true, append: false, create: true, truncate: true, exclusive: false };
    /// For `>> file`.
    pub const APPEND: OpenHow =
        OpenHow { read: false, write: true, append: true, create: true, truncate: false, exclusive: false };
    /// For `<> file`.
    pub const BOTH: OpenHow =
        OpenHow { read: true, write: true, append: false, create: true, truncate: false, exclusive: false };
    /// For `> file` under `set -C`.
    pub const NEW: OpenHow =
        OpenHow { read: false, write: true, append: false, create: true, truncate: false, exclusive: true };
}

/// A file that is open.
pub(crate) struct OpenFile {
    files: Arc<Files>,
    path: String,
    memory: bool,
    can_read: bool,
    writer: Option<Writer>,
    state: Mutex<State>,
}

struct State {
    append: bool,
    place: u64,
    /// What it is read by. Not kept over a write: a reader holds the content as it was, which the overlay would have to copy.
    reader: Option<Reader>,
    /// What was read ahead of the place, and where it begins.
    ahead: (u64, Bytes),
}

impl OpenFile {
    pub(super) fn open(files: &Arc<Files>, path: &str, how: OpenHow) -> Result<OpenFile, Fault> {
        let there = match present(files, path) {
            // What is refused to a writer is told as that.
            Err(_) if how.write => return Err(files.writer(path).map_or_else(Fault::from, |_| Errno::IO.into())),
            there => there?,
        };
        match there.as_ref().map(|stat| stat.kind) {
            Some(_) if how.create && how.exclusive => return Err(Errno::EXIST.into()),
            Some(EntryKind::Folder) if how.write || how.create => return Err(Errno::ISDIR.into()),
            Some(EntryKind::File) if path.ends_with('/') => return Err(Errno::NOTDIR.into()),
            None if !how.create => return Err(Errno::NOENT.into()),
            None => make(files, path, how)?,
            Some(_) if how.truncate => files.truncate(path, 0)?,
            Some(_) => {}
        }
        let writer = if how.write { Some(files.writer(path)?) } else { None };
        let reader = if how.read { Some(files.open(path)?) } else { None };
        Ok(OpenFile {
            files: Arc::clone(files),
            path: path.to_owned(),
            memory: files.is_memory(),
            can_read: how.read,
            writer,
            state: Mutex::new(State { append: how.append, place: 0, reader, ahead: (0, Bytes::new()) }),
        })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn is_memory(&self) -> bool {
        self.memory
    }

    /// What `stat` says of it now; where it was removed, of a file of no bytes.
    pub(crate) fn stat(&self) -> Stat {
        let gone = Stat { kind: EntryKind::File, size: 0, modified: None };
        self.files.stat(&self.path).unwrap_or(gone)
    }

    pub(crate) fn can_read(&self) -> bool {
        self.can_read
    }

    pub(crate) fn can_write(&self) -> bool {
        self.writer.is_some()
    }

    /// Whether what is written goes to its end.
    pub(crate) fn appends(&self) -> bool {
        lock(&self.state).append
    }

    pub(crate) fn set_append(&self, append: bool) {
        lock(&self.state).append = append;
    }

    /// Reads at the shared place, and moves it on.
    pub(super) fn read(&self, max: usize) -> Result<Bytes, Errno> {
        let mut state = lock(&self.state);
        let place = state.place;
        let data = self.read_in(&mut state, place, max)?;
        state.place = place.saturating_add(data.len() as u64);
        Ok(data)
    }

    /// Reads at another place, which leaves the shared one as it is.
    pub(crate) fn read_at(&self, place: u64, max: usize) -> Result<Bytes, Errno> {
        self.read_in(&mut lock(&self.state), place, max)
    }

    /// As [`OpenFile::read`], where that needs no disk.
    pub(super) fn read_ready(&self, max: usize) -> Option<Result<Bytes, Errno>> {
        if self.memory {
            return Some(self.read(max));
        }
        let mut state = lock(&self.state);
        let data = state.ahead_at(state.place, max)?;
        state.place = state.place.saturating_add(data.len() as u64);
        Some(Ok(data))
    }

    /// As [`OpenFile::read`], and reads further for what comes next.
    pub(super) fn read_ahead(&self, max: usize) -> Result<Bytes, Errno> {
        let mut state = lock(&self.state);
        let place = state.place;
        let data = self.read_in(&mut state, place, max.max(AHEAD))?;
        let now = data.slice(..max.min(data.len()));
        state.ahead = (place, data);
        state.place = place.saturating_add(now.len() as u64);
        Ok(now)
    }

    fn read_in(&self, state: &mut State, place: u64, max: usize) -> Result<Bytes, Errno> {
        if !self.can_read {
            return Err(Errno::BADF);
        }
        if let Some(data) = state.ahead_at(place, max) {
            return Ok(data);
        }
        if let Some(reader) = &state.reader {
            let data = reader.read_at(place, max as u64).map_err(|error| Errno::from(&error))?;
            if !data.is_empty() || max == 0 {
                return Ok(data);
            }
        }
        // The file may have grown since it was opened for reading, by another hand or by this one's.
        let Ok(now) = self.files.open(&self.path) else { return Ok(Bytes::new()) };
        let data = now.read_at(place, max as u64).map_err(|error| Errno::from(&error))?;
        state.reader = Some(now);
        Ok(data)
    }

    /// Writes at the shared place, or to the end, and moves it on.
    pub(super) fn write(&self, data: &[u8]) -> Result<(), Fault> {
        let writer = self.writer.as_ref().ok_or(Errno::BADF)?;
        let mut state = lock(&self.state);
        if state.append {
            state.place = writer.append(data)?;
        } else {
            writer.write_at(state.place, data)?;
            state.place = state.place.saturating_add(data.len() as u64);
        }
        state.renew();
        Ok(())
    }

    /// Writes at another place, which leaves the shared one as it is.
    pub(crate) fn write_at(&self, place: u64, data: &[u8]) -> Result<(), Fault> {
        self.writer.as_ref().ok_or(Errno::BADF)?.write_at(place, data)?;
        lock(&self.state).renew();
        Ok(())
    }

    /// Cuts it, or fills it up with zeros.
    pub(crate) fn resize(&self, size: u64) -> Result<(), Fault> {
        self.writer.as_ref().ok_or(Errno::BADF)?.truncate(size)?;
        lock(&self.state).renew();
        Ok(())
    }

    pub(super) fn seek(&self, to: SeekFrom) -> Result<u64, Errno> {
        let mut state = lock(&self.state);
        let (from, by) = match to {
            SeekFrom::Start(place) => (place, 0),
            SeekFrom::Current(by) => (state.place, by),
            SeekFrom::End(by) => (self.stat().size, by),
        };
        let place = from.checked_add_signed(by).filter(|place| i64::try_from(*place).is_ok()).ok_or(Errno::INVAL)?;
        state.place = place;
        Ok(place)
    }
}

impl State {
    /// A descriptor that reads as well sees what was written by it.
    fn renew(&mut self) {
        self.ahead = (0, Bytes::new());
        self.reader = None;
    }

    /// What was read ahead at a place; `None` where nothing was.
    fn ahead_at(&self, place: u64, max: usize) -> Option<Bytes> {
        let (start, data) = &self.ahead;
        let skip = usize::try_from(place.checked_sub(*start)?).ok()?;
        (skip < data.len()).then(|| data.slice(skip..skip.saturating_add(max).min(data.len())))
    }
}

/// What is there, links followed.
fn present(files: &Files, path: &str) -> Result<Option<Stat>, Fault> {
    match files.stat(path) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes an empty file in a folder that is there.
fn make(files: &Files, path: &str, how: OpenHow) -> Result<(), Fault> {
    if path.ends_with('/') {
        return Err(Errno::ISDIR.into());
    }
    // Through a link that leads nowhere a file is made where it leads, but no new one.
    let place = if how.exclusive { path.to_owned() } else { files.real_path(path)? };
    match files.create_new(&place) {
        Err(error) if error.kind() == ErrorKind::Exists && !how.exclusive => Ok(()),
        made => Ok(made?),
    }
}

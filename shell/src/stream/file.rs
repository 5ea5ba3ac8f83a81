//! An open file of the run, with the position that its descriptors share.

use std::io::SeekFrom;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use wattle_capability::files::{EntryKind, ErrorKind, Files, Reader, Stat, Writer};

use crate::errno::{Errno, Fault};
use crate::lock::lock;

/// Number of bytes to read ahead from a disk, so that the following reads need not access it.
const READ_AHEAD: usize = 64 << 10;

/// Options for opening a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenMode {
    /// If true, the file is opened for reading.
    pub read: bool,
    /// If true, the file is opened for writing.
    pub write: bool,
    /// If true, all writes go to the end of the file.
    pub append: bool,
    /// If true, a missing file is created.
    pub create: bool,
    /// If true, an existing file is emptied.
    pub truncate: bool,
    /// If true, and `create` is also true, opening an existing file fails.
    pub exclusive: bool,
}

impl OpenMode {
    const NONE: OpenMode = OpenMode {
        read: false,
        write: false,
        append: false,
        create: false,
        truncate: false,
        exclusive: false,
    };
    /// Open options for `< file`.
    pub const READ: OpenMode = OpenMode { read: true, ..OpenMode::NONE };
    /// Open options for `> file`.
    pub const WRITE: OpenMode =
        OpenMode { write: true, create: true, truncate: true, ..OpenMode::NONE };
    /// Open options for `>> file`.
    pub const APPEND: OpenMode =
        OpenMode { write: true, append: true, create: true, ..OpenMode::NONE };
    /// Open options for `<> file`.
    pub const READ_WRITE: OpenMode =
        OpenMode { read: true, write: true, create: true, ..OpenMode::NONE };
    /// Open options for `> file` under `set -C`.
    pub const CREATE_NEW: OpenMode =
        OpenMode { write: true, create: true, exclusive: true, ..OpenMode::NONE };
}

/// An open file.
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
    position: u64,
    /// A snapshot to read from. It is dropped at each write, because the overlay would otherwise
    /// have to copy the content that the reader holds.
    reader: Option<Reader>,
    /// Offset and contents of the bytes that were read ahead.
    ahead: (u64, Bytes),
}

impl OpenFile {
    pub(super) fn open(files: &Arc<Files>, path: &str, mode: OpenMode) -> Result<OpenFile, Fault> {
        let stat = match stat(files, path) {
            // Opens a writer to get the error that describes the refused write.
            Err(_) if mode.write => {
                return Err(files.writer(path).map_or_else(Fault::from, |_| Errno::IO.into()));
            }
            other => other?,
        };
        match stat.as_ref().map(|stat| stat.kind) {
            Some(_) if mode.create && mode.exclusive => return Err(Errno::EXIST.into()),
            Some(EntryKind::Folder) if mode.write || mode.create => return Err(Errno::ISDIR.into()),
            Some(EntryKind::File) if path.ends_with('/') => return Err(Errno::NOTDIR.into()),
            None if !mode.create => return Err(Errno::NOENT.into()),
            None => create(files, path, mode)?,
            Some(_) if mode.truncate => files.truncate(path, 0)?,
            Some(_) => {}
        }
        let writer = if mode.write { Some(files.writer(path)?) } else { None };
        let reader = if mode.read { Some(files.open(path)?) } else { None };
        Ok(OpenFile {
            files: Arc::clone(files),
            path: path.to_owned(),
            memory: files.is_memory(),
            can_read: mode.read,
            writer,
            state: Mutex::new(State {
                append: mode.append,
                position: 0,
                reader,
                ahead: (0, Bytes::new()),
            }),
        })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn is_memory(&self) -> bool {
        self.memory
    }

    /// Returns the current metadata. A removed file is reported as an empty file.
    pub(crate) fn stat(&self) -> Stat {
        let removed = Stat { kind: EntryKind::File, size: 0, modified: None };
        self.files.stat(&self.path).unwrap_or(removed)
    }

    pub(crate) fn can_read(&self) -> bool {
        self.can_read
    }

    pub(crate) fn can_write(&self) -> bool {
        self.writer.is_some()
    }

    /// Returns true if all writes go to the end of the file.
    pub(crate) fn appends(&self) -> bool {
        lock(&self.state).append
    }

    pub(crate) fn set_append(&self, append: bool) {
        lock(&self.state).append = append;
    }

    /// Reads at the shared position and advances it.
    pub(super) fn read(&self, max: usize) -> Result<Bytes, Errno> {
        let mut state = lock(&self.state);
        let position = state.position;
        let data = self.read_in(&mut state, position, max)?;
        state.position = position.saturating_add(data.len() as u64);
        Ok(data)
    }

    /// Reads at an offset. The shared position does not change.
    pub(crate) fn read_at(&self, offset: u64, max: usize) -> Result<Bytes, Errno> {
        self.read_in(&mut lock(&self.state), offset, max)
    }

    /// Reads like [`OpenFile::read`]. Returns `None` if reading would access a disk.
    pub(super) fn try_read(&self, max: usize) -> Option<Result<Bytes, Errno>> {
        if self.memory {
            return Some(self.read(max));
        }
        let mut state = lock(&self.state);
        let data = state.ahead_at(state.position, max)?;
        state.position = state.position.saturating_add(data.len() as u64);
        Some(Ok(data))
    }

    /// Reads like [`OpenFile::read`], and reads ahead for the next call.
    pub(super) fn read_ahead(&self, max: usize) -> Result<Bytes, Errno> {
        let mut state = lock(&self.state);
        let position = state.position;
        let data = self.read_in(&mut state, position, max.max(READ_AHEAD))?;
        let now = data.slice(..max.min(data.len()));
        state.ahead = (position, data);
        state.position = position.saturating_add(now.len() as u64);
        Ok(now)
    }

    fn read_in(&self, state: &mut State, offset: u64, max: usize) -> Result<Bytes, Errno> {
        if !self.can_read {
            return Err(Errno::BADF);
        }
        if let Some(data) = state.ahead_at(offset, max) {
            return Ok(data);
        }
        if let Some(reader) = &state.reader {
            let data = reader.read_at(offset, max as u64).map_err(|error| Errno::from(&error))?;
            if !data.is_empty() || max == 0 {
                return Ok(data);
            }
        }
        // The file may have grown since the snapshot was taken.
        let Ok(now) = self.files.open(&self.path) else { return Ok(Bytes::new()) };
        let data = now.read_at(offset, max as u64).map_err(|error| Errno::from(&error))?;
        state.reader = Some(now);
        Ok(data)
    }

    /// Writes at the shared position and advances it. In append mode, writes to the end.
    pub(super) fn write(&self, data: &[u8]) -> Result<(), Fault> {
        let writer = self.writer.as_ref().ok_or(Errno::BADF)?;
        let mut state = lock(&self.state);
        if state.append {
            state.position = writer.append(data)?;
        } else {
            writer.write_at(state.position, data)?;
            state.position = state.position.saturating_add(data.len() as u64);
        }
        state.invalidate();
        Ok(())
    }

    /// Writes at an offset. The shared position does not change.
    pub(crate) fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), Fault> {
        self.writer.as_ref().ok_or(Errno::BADF)?.write_at(offset, data)?;
        lock(&self.state).invalidate();
        Ok(())
    }

    /// Truncates the file, or extends it with zeros.
    pub(crate) fn resize(&self, size: u64) -> Result<(), Fault> {
        self.writer.as_ref().ok_or(Errno::BADF)?.truncate(size)?;
        lock(&self.state).invalidate();
        Ok(())
    }

    pub(super) fn seek(&self, to: SeekFrom) -> Result<u64, Errno> {
        let mut state = lock(&self.state);
        let (from, by) = match to {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::Current(by) => (state.position, by),
            SeekFrom::End(by) => (self.stat().size, by),
        };
        let position =
            from.checked_add_signed(by).filter(|position| i64::try_from(*position).is_ok());
        state.position = position.ok_or(Errno::INVAL)?;
        Ok(state.position)
    }
}

impl State {
    /// Drops all cached content, so that later reads see the changed file.
    fn invalidate(&mut self) {
        self.ahead = (0, Bytes::new());
        self.reader = None;
    }

    /// Returns bytes at an offset that have already been read ahead, if there are any.
    fn ahead_at(&self, offset: u64, max: usize) -> Option<Bytes> {
        let (start, data) = &self.ahead;
        let skip = usize::try_from(offset.checked_sub(*start)?).ok()?;
        (skip < data.len()).then(|| data.slice(skip..skip.saturating_add(max).min(data.len())))
    }
}

/// Returns the metadata of the file or folder at a path, following symbolic links, or `None` if
/// nothing exists there.
fn stat(files: &Files, path: &str) -> Result<Option<Stat>, Fault> {
    match files.stat(path) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Creates an empty file in an existing folder.
fn create(files: &Files, path: &str, mode: OpenMode) -> Result<(), Fault> {
    if path.ends_with('/') {
        return Err(Errno::ISDIR.into());
    }
    // For a dangling link, creates the file at the link's target, unless the file must be new. The
    // path is checked first, because a rule may deny writing to it but not to the link's target.
    let target = if mode.exclusive {
        path.to_owned()
    } else {
        files.check_write(path)?;
        files.real_path(path)?
    };
    match files.create_new(&target) {
        Err(error) if error.kind() == ErrorKind::Exists && !mode.exclusive => Ok(()),
        made => Ok(made?),
    }
}

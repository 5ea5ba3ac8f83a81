//! The open descriptors of a guest, and the host functions that read, write, seek, list and close
//! them.

use std::io::SeekFrom;
use std::sync::Arc;

use wattle_capability::files::Entry;

use super::guest::Guest;
use super::paths::APPEND;
use super::stat::{FOLDER_TYPE, file_type, inode_of};
use super::{Call, CallError, CallResult, Exit};
use crate::errno::{Errno, Fault};
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

pub(super) fn read(call: &mut Call<'_>, fd: u32, buffers: u32, count: u32, out: u32) -> CallResult {
    let stream = call.guest.table.stream(fd)?;
    let buffers = call.memory.buffers(buffers, count)?;
    call.memory.bytes(out, 4)?;
    let room = buffers.iter().map(|(_, len)| *len as usize).sum();
    let data = match stream.try_read(room) {
        Some(data) => data?,
        None => call.guest.wait(stream.read(room))??,
    };
    call.memory.scatter(&buffers, &data)?;
    call.memory.put_u32(out, data.len() as u32)
}

pub(super) fn write(
    call: &mut Call<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    out: u32,
) -> CallResult {
    let stream = call.guest.table.stream(fd)?.clone();
    let buffers = call.memory.buffers(buffers, count)?;
    call.memory.bytes(out, 4)?;
    let gathered;
    let data = match buffers.as_slice() {
        [(at, len)] => call.memory.bytes(*at, *len)?,
        buffers => {
            gathered = call.memory.gather(buffers)?;
            &gathered
        }
    };
    let written = data.len();
    write_all(call.guest, &stream, data)?;
    call.memory.put_u32(out, written as u32)
}

fn write_all(guest: &mut Guest, stream: &Stream, data: &[u8]) -> CallResult {
    let written = match stream.try_write(data) {
        Some(written) => written,
        None => guest.wait(stream.write(data))?.map_err(Fault::from),
    };
    match written {
        Ok(()) => Ok(()),
        // Like SIGPIPE: a write to a pipe without a reader ends the guest.
        Err(fault) if fault.errno == Errno::PIPE => Err(Exit::Pipe.into()),
        Err(fault) => Err(guest.fail(fault)),
    }
}

pub(super) fn read_at(
    call: &mut Call<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    offset: u64,
    out: u32,
) -> CallResult {
    let file = call.guest.table.stream(fd)?.file().ok_or(Errno::SPIPE)?;
    let buffers = call.memory.buffers(buffers, count)?;
    let room = buffers.iter().map(|(_, len)| *len as usize).sum();
    let data = file.read_at(offset, room)?;
    call.memory.scatter(&buffers, &data)?;
    call.memory.put_u32(out, data.len() as u32)
}

pub(super) fn write_at(
    call: &mut Call<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    offset: u64,
    out: u32,
) -> CallResult {
    let stream = call.guest.table.stream(fd)?.clone();
    let file = stream.file().ok_or(Errno::SPIPE)?;
    let data = call.memory.gather(&call.memory.buffers(buffers, count)?)?;
    call.memory.bytes(out, 4)?;
    file.write_at(offset, &data).map_err(|fault| call.guest.fail(fault))?;
    call.memory.put_u32(out, data.len() as u32)
}

pub(super) fn seek(call: &mut Call<'_>, fd: u32, by: i64, whence: u32, out: u32) -> CallResult {
    let stream = call.guest.table.stream(fd)?;
    let to = match whence {
        0 => SeekFrom::Start(u64::try_from(by).map_err(|_| Errno::INVAL)?),
        1 => SeekFrom::Current(by),
        2 => SeekFrom::End(by),
        _ => return Err(Errno::INVAL.into()),
    };
    call.memory.bytes(out, 8)?;
    let position = stream.seek(to)?;
    call.memory.put_u64(out, position)
}

pub(super) fn tell(call: &mut Call<'_>, fd: u32, out: u32) -> CallResult {
    seek(call, fd, 0, 1, out)
}

pub(super) fn close(call: &mut Call<'_>, fd: u32) -> CallResult {
    Ok(call.guest.table.close(fd)?)
}

pub(super) fn renumber(call: &mut Call<'_>, from: u32, to: u32) -> CallResult {
    Ok(call.guest.table.renumber(from, to)?)
}

/// Only checks that the descriptor is open, because every write is immediately visible to all
/// readers.
pub(super) fn sync(call: &mut Call<'_>, fd: u32) -> CallResult {
    call.guest.table.get(fd)?;
    Ok(())
}

pub(super) fn advise(call: &mut Call<'_>, fd: u32, _: u64, _: u64, advice: u32) -> CallResult {
    let stream = call.guest.table.stream(fd)?;
    match (stream.file(), advice) {
        (None, _) => Err(Errno::SPIPE.into()),
        (Some(_), 0..=5) => Ok(()),
        (Some(_), _) => Err(Errno::INVAL.into()),
    }
}

pub(super) fn allocate(call: &mut Call<'_>, fd: u32, offset: u64, len: u64) -> CallResult {
    let stream = call.guest.table.stream(fd)?.clone();
    let file = stream.file().ok_or(Errno::SPIPE)?;
    let size = offset.checked_add(len).ok_or(Errno::FBIG)?;
    if len == 0 {
        return Err(Errno::INVAL.into());
    }
    if !file.can_write() {
        return Err(Errno::BADF.into());
    }
    if size > file.stat().size {
        file.resize(size).map_err(|fault| call.guest.fail(fault))
    } else {
        Ok(())
    }
}

pub(super) fn resize(call: &mut Call<'_>, fd: u32, size: u64) -> CallResult {
    let stream = call.guest.table.stream(fd)?.clone();
    let file = stream.file().ok_or(Errno::INVAL)?;
    if i64::try_from(size).is_err() {
        return Err(Errno::INVAL.into());
    }
    file.resize(size).map_err(|fault| call.guest.fail(fault))
}

/// Sets or clears the append flag. The other flags have no effect.
pub(super) fn set_flags(call: &mut Call<'_>, fd: u32, flags: u32) -> CallResult {
    if let Descriptor::Stream(stream) = call.guest.table.get(fd)?
        && let Some(file) = stream.file()
    {
        file.set_append(flags & APPEND != 0);
    }
    Ok(())
}

/// Only checks that the descriptor is open, because a descriptor keeps the rights that it was
/// opened with.
pub(super) fn set_rights(call: &mut Call<'_>, fd: u32, _: u64, _: u64) -> CallResult {
    call.guest.table.get(fd)?;
    Ok(())
}

/// Size of the header of a folder entry, in bytes. The entry's name follows the header.
const HEADER: usize = 24;

/// Writes the type and the name length of the preopened folder to the guest's memory.
///
/// ```text
/// prestat    type u8 (0: folder), 3 unused, name length u32
/// ```
pub(super) fn prestat(call: &mut Call<'_>, fd: u32, out: u32) -> CallResult {
    check_preopened(call.guest, fd)?;
    call.memory.put_u64(out, 1 << 32)
}

pub(super) fn prestat_name(call: &mut Call<'_>, fd: u32, at: u32, len: u32) -> CallResult {
    check_preopened(call.guest, fd)?;
    if len == 0 {
        return Err(Errno::NAMETOOLONG.into());
    }
    call.memory.put(at, b"/")
}

/// Checks that a descriptor is the preopened folder: the root of the run's files.
fn check_preopened(guest: &Guest, fd: u32) -> Result<(), Errno> {
    match guest.table.folder(fd) {
        Ok(folder) if fd == ROOT && folder.path == "/" => Ok(()),
        _ => Err(Errno::BADF),
    }
}

/// Writes the entries of a folder to the guest's buffer, starting with entry number `cookie`, until
/// the buffer is full. The last entry may be truncated.
///
/// ```text
/// entry    next cookie u64, inode u64, name length u32, type u8, 3 unused, then the name
/// ```
pub(super) fn list(
    call: &mut Call<'_>,
    fd: u32,
    at: u32,
    len: u32,
    cookie: u64,
    out: u32,
) -> CallResult {
    call.memory.bytes(out, 4)?;
    let folder = entries(call.guest, fd, cookie == 0)?;
    let target = call.memory.bytes_mut(at, len)?;
    let listed = folder.entries.as_deref().unwrap_or_default();
    let own = [(".", FOLDER_TYPE), ("..", FOLDER_TYPE)];
    let entries = listed.iter().map(|entry| (entry.name.as_str(), file_type(entry.kind)));
    let skip = usize::try_from(cookie).unwrap_or(usize::MAX);
    let mut used = 0;
    let mut next = cookie;
    for (name, kind) in own.into_iter().chain(entries).skip(skip) {
        next = next.saturating_add(1);
        let mut entry = Vec::with_capacity(HEADER + name.len());
        entry.extend_from_slice(&next.to_le_bytes());
        entry.extend_from_slice(
            &inode_of(&format!("{}/{name}", folder.path.trim_end_matches('/'))).to_le_bytes(),
        );
        // A name has at most 255 bytes, or a few more if it contains replacement characters.
        entry.extend_from_slice(&(name.len() as u32).to_le_bytes());
        entry.extend_from_slice(&[kind, 0, 0, 0]);
        entry.extend_from_slice(name.as_bytes());
        let Some(rest) = target.get_mut(used..) else { break };
        let fits = entry.len().min(rest.len());
        if let (Some(slot), Some(part)) = (rest.get_mut(..fits), entry.get(..fits)) {
            slot.copy_from_slice(part);
        }
        used += fits;
        if fits < entry.len() {
            break;
        }
    }
    // `used` is at most `len`, which is a `u32`.
    call.memory.put_u32(out, used as u32)
}

/// Returns the folder that `fd` refers to, with its entries. Reads the entries if `reload` is true
/// or if they have not been read yet.
fn entries(guest: &mut Guest, fd: u32, reload: bool) -> Result<Folder, CallError> {
    let folder = guest.table.folder(fd)?.clone();
    if folder.entries.is_some() && !reload {
        return Ok(folder);
    }
    let listed = guest.files.list(&folder.path).map_err(|error| guest.fail(Fault::from(error)))?;
    let open = guest.table.folder_mut(fd)?;
    open.entries = Some(Arc::from(listed));
    Ok(open.clone())
}

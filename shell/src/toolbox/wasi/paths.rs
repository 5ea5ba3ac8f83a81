//! Host functions that open, create, move and remove files, folders and links by path.

use wattle_capability::files::{EntryKind, FilesError};

use super::call::{CallError, CallResult};
use super::guest::Guest;
use super::memory::Memory;
use super::resolve::{FOLLOW, ResolvedPath};
use super::table::{Descriptor, Folder};
use crate::errno::{Errno, Fault};
use crate::stream::{OpenMode, Stream};

/// `path_open` flag: create the file if it does not exist.
const CREATE: u32 = 1;
/// `path_open` flag: fail if the entry is not a folder.
const FOLDER: u32 = 2;
/// `path_open` flag: fail if the entry already exists.
const EXCLUSIVE: u32 = 4;
/// `path_open` flag: truncate the file to zero bytes.
const TRUNCATE: u32 = 8;

/// The right to read from a descriptor.
const READ: u64 = 1 << 1;
/// The right to write to a descriptor.
const WRITE: u64 = 1 << 6;

/// Descriptor flag: writes go to the end of the file.
pub(super) const APPEND: u32 = 1;

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn open(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    lookup: u32,
    path: u32,
    len: u32,
    how: u32,
    rights: u64,
    _inheriting: u64,
    flags: u32,
    out: u32,
) -> CallResult {
    memory.bytes(out, 4)?;
    if !guest.table.has_room() {
        return Err(Errno::MFILE.into());
    }
    let write = rights & WRITE != 0;
    let folder = how & FOLDER != 0;
    let descriptor = match guest.resolve(memory, (fd, path, len), write)? {
        ResolvedPath::Device(_) if folder => return Err(Errno::NOTDIR.into()),
        ResolvedPath::Device(stream) => Descriptor::Stream(stream),
        ResolvedPath::Entry(path) => {
            let mode = OpenMode {
                // A descriptor opened for neither reading nor writing is opened for reading, so
                // that `fd_filestat_get` works.
                read: rights & READ != 0 || !write,
                write,
                append: flags & APPEND != 0,
                create: how & CREATE != 0,
                truncate: how & TRUNCATE != 0,
                exclusive: how & EXCLUSIVE != 0,
            };
            open_entry(guest, path, mode, lookup & FOLLOW != 0, folder)?
        }
    };
    let number = guest.table.open(descriptor)?;
    memory.put_u32(out, number)?;
    Ok(())
}

fn open_entry(
    guest: &mut Guest,
    path: String,
    mode: OpenMode,
    follow: bool,
    folder: bool,
) -> Result<Descriptor, CallError> {
    let stat = match guest.files.stat_link(&path) {
        Ok(stat) if stat.kind == EntryKind::Link && !follow => return Err(Errno::LOOP.into()),
        Ok(stat) if stat.kind == EntryKind::Link => guest.files.stat(&path),
        other => other,
    };
    match stat.map(|stat| stat.kind) {
        Ok(EntryKind::Folder) if mode.create && mode.exclusive => return Err(Errno::EXIST.into()),
        // The C library requests all rights on a folder that it only wants to read.
        Ok(EntryKind::Folder) if folder || !mode.write => {
            return Ok(Descriptor::Folder(Folder { path, entries: None }));
        }
        Ok(EntryKind::File) if folder => return Err(Errno::NOTDIR.into()),
        Ok(_) => {}
        Err(error) if folder => return Err(guest.fail(error.into())),
        Err(_) => {}
    }
    Stream::open_blocking(&guest.files, &path, mode)
        .map(Descriptor::Stream)
        .map_err(|fault| guest.fail(fault))
}

pub(super) fn create_folder(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    path: u32,
    len: u32,
) -> CallResult {
    let path = guest.entry(memory, fd, path, len)?;
    let made = guest.files.create_folder(&path);
    finish(guest, made)
}

pub(super) fn remove_folder(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    path: u32,
    len: u32,
) -> CallResult {
    let path = guest.entry(memory, fd, path, len)?;
    match guest.files.stat_link(&path) {
        Ok(stat) if stat.kind != EntryKind::Folder => Err(Errno::NOTDIR.into()),
        _ => {
            let removed = guest.files.remove(&path);
            finish(guest, removed)
        }
    }
}

pub(super) fn unlink(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    path: u32,
    len: u32,
) -> CallResult {
    let path = guest.entry(memory, fd, path, len)?;
    match guest.files.stat_link(&path) {
        Ok(stat) if stat.kind == EntryKind::Folder => Err(Errno::ISDIR.into()),
        Ok(_) if path.ends_with('/') => Err(Errno::NOTDIR.into()),
        _ => {
            let removed = guest.files.remove(&path);
            finish(guest, removed)
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn rename(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    old: u32,
    old_len: u32,
    to: u32,
    new: u32,
    new_len: u32,
) -> CallResult {
    let old = guest.entry(memory, fd, old, old_len)?;
    let new = guest.entry(memory, to, new, new_len)?;
    guest.check_parent(&new)?;
    let moved = guest.files.rename(&old, &new);
    finish(guest, moved)
}

/// Always fails, because each of the run's files has exactly one name.
#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn hard_link(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    _flags: u32,
    old: u32,
    old_len: u32,
    to: u32,
    new: u32,
    new_len: u32,
) -> CallResult {
    guest.entry(memory, fd, old, old_len)?;
    guest.entry(memory, to, new, new_len)?;
    Err(Errno::NOTSUP.into())
}

pub(super) fn symlink(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    target: u32,
    target_len: u32,
    fd: u32,
    path: u32,
    len: u32,
) -> CallResult {
    let path = guest.entry(memory, fd, path, len)?;
    guest.check_parent(&path)?;
    let made = guest.files.symlink(memory.text(target, target_len)?, &path);
    finish(guest, made)
}

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn read_link(
    guest: &mut Guest,
    memory: &mut Memory<'_>,
    fd: u32,
    path: u32,
    len: u32,
    at: u32,
    room: u32,
    out: u32,
) -> CallResult {
    let target = match guest.resolve(memory, (fd, path, len), false)? {
        ResolvedPath::Device(_) => return Err(Errno::INVAL.into()),
        ResolvedPath::Entry(path) => guest.files.read_link(&path),
    };
    let target = target.map_err(|error| guest.fail(error.into()))?;
    let bytes = target.as_bytes().get(..room as usize).unwrap_or(target.as_bytes());
    memory.put(at, bytes)?;
    // The length is at most `room`, which is a `u32`.
    memory.put_u32(out, bytes.len() as u32)?;
    Ok(())
}

fn finish(guest: &mut Guest, result: Result<(), FilesError>) -> CallResult {
    result.map_err(|error| guest.fail(Fault::from(error)))
}

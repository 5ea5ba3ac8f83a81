//! The functions on paths: opening, making, moving and removing entries.

use wattle_capability::files::{EntryKind, FilesError};

use super::memory::Memory;
use super::place::{FOLLOW, Place};
use super::stage::Stage;
use super::table::{Descriptor, Folder};
use super::{Done, Fail};
use crate::errno::{Errno, Fault};
use crate::stream::{OpenHow, Stream};

/// How a path is opened: bits of `path_open`.
const CREATE: u32 = 1;
const FOLDER: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;

/// Rights that say what a descriptor is for.
const READ: u64 = 1 << 1;
const WRITE: u64 = 1 << 6;

/// The flag of a descriptor that writes to the end.
pub(super) const APPEND: u32 = 1;

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn open(
    stage: &mut Stage,
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
) -> Done {
    memory.bytes(out, 4)?;
    if !stage.table.has_room() {
        return Err(Errno::MFILE.into());
    }
    let write = rights & WRITE != 0;
    let folder = how & FOLDER != 0;
    let descriptor = match stage.place(memory, (fd, path, len), write)? {
        Place::Device(_) if folder => return Err(Errno::NOTDIR.into()),
        Place::Device(stream) => Descriptor::Stream(stream),
        Place::Entry(path) => {
            let how = OpenHow {
                // A descriptor that is for neither can still be asked about what it stands for.
                read: rights & READ != 0 || !write,
                write,
                append: flags & APPEND != 0,
                create: how & CREATE != 0,
                truncate: how & TRUNCATE != 0,
                exclusive: how & EXCLUSIVE != 0,
            };
            open_entry(stage, path, how, lookup & FOLLOW != 0, folder)?
        }
    };
    let number = stage.table.open(descriptor)?;
    memory.put_u32(out, number)?;
    Ok(())
}

fn open_entry(stage: &mut Stage, path: String, how: OpenHow, follow: bool, folder: bool) -> Result<Descriptor, Fail> {
    let there = match stage.files.stat_link(&path) {
        Ok(stat) if stat.kind == EntryKind::Link && !follow => return Err(Errno::LOOP.into()),
        Ok(stat) if stat.kind == EntryKind::Link => stage.files.stat(&path),
        there => there,
    };
    match there.map(|stat| stat.kind) {
        Ok(EntryKind::Folder) if how.create && how.exclusive => return Err(Errno::EXIST.into()),
        // The C library asks for every right of a folder, and means to look into it.
        Ok(EntryKind::Folder) if folder || !how.write => {
            return Ok(Descriptor::Folder(Folder { path, listed: None }));
        }
        Ok(EntryKind::File) if folder => return Err(Errno::NOTDIR.into()),
        Ok(_) => {}
        Err(error) if folder => return Err(stage.fail(error.into())),
        Err(_) => {}
    }
    Stream::open_here(&stage.files, &path, how).map(Descriptor::Stream).map_err(|fault| stage.fail(fault))
}

pub(super) fn create_folder(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, path: u32, len: u32) -> Done {
    let path = stage.entry(memory, fd, path, len)?;
    let made = stage.files.create_folder(&path);
    done(stage, made)
}

pub(super) fn remove_folder(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, path: u32, len: u32) -> Done {
    let path = stage.entry(memory, fd, path, len)?;
    match stage.files.stat_link(&path) {
        Ok(stat) if stat.kind != EntryKind::Folder => Err(Errno::NOTDIR.into()),
        _ => {
            let removed = stage.files.remove(&path);
            done(stage, removed)
        }
    }
}

pub(super) fn unlink(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, path: u32, len: u32) -> Done {
    let path = stage.entry(memory, fd, path, len)?;
    match stage.files.stat_link(&path) {
        Ok(stat) if stat.kind == EntryKind::Folder => Err(Errno::ISDIR.into()),
        Ok(_) if path.ends_with('/') => Err(Errno::NOTDIR.into()),
        _ => {
            let removed = stage.files.remove(&path);
            done(stage, removed)
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn rename(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    fd: u32,
    old: u32,
    old_len: u32,
    to: u32,
    new: u32,
    new_len: u32,
) -> Done {
    let old = stage.entry(memory, fd, old, old_len)?;
    let new = stage.entry(memory, to, new, new_len)?;
    stage.check_parent(&new)?;
    let moved = stage.files.rename(&old, &new);
    done(stage, moved)
}

/// The run's files have one name each.
#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn hard_link(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    fd: u32,
    _flags: u32,
    old: u32,
    old_len: u32,
    to: u32,
    new: u32,
    new_len: u32,
) -> Done {
    stage.entry(memory, fd, old, old_len)?;
    stage.entry(memory, to, new, new_len)?;
    Err(Errno::NOTSUP.into())
}

pub(super) fn symlink(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    target: u32,
    target_len: u32,
    fd: u32,
    path: u32,
    len: u32,
) -> Done {
    let path = stage.entry(memory, fd, path, len)?;
    stage.check_parent(&path)?;
    let made = stage.files.symlink(memory.text(target, target_len)?, &path);
    done(stage, made)
}

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn read_link(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    fd: u32,
    path: u32,
    len: u32,
    at: u32,
    room: u32,
    out: u32,
) -> Done {
    let target = match stage.place(memory, (fd, path, len), false)? {
        Place::Device(_) => return Err(Errno::INVAL.into()),
        Place::Entry(path) => stage.files.read_link(&path),
    };
    let target = target.map_err(|error| stage.fail(error.into()))?;
    let kept = target.as_bytes().get(..room as usize).unwrap_or(target.as_bytes());
    memory.put(at, kept)?;
    // No more than `room`, which is a `u32`.
    memory.put_u32(out, kept.len() as u32)?;
    Ok(())
}

fn done(stage: &mut Stage, result: Result<(), FilesError>) -> Done {
    result.map_err(|error| stage.fail(Fault::from(error)))
}

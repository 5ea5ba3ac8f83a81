//! What a guest is told about descriptors and entries.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wattle_capability::files::{EntryKind, Stat};

use super::Done;
use super::memory::Memory;
use super::paths::APPEND;
use super::place::{FOLLOW, Place};
use super::stage::Stage;
use super::table::{Descriptor, TOP};
use crate::errno::{Errno, Fault};
use crate::stream::{Stream, StreamKind};

const UNKNOWN_TYPE: u8 = 0;
const DEVICE_TYPE: u8 = 2;
pub(super) const FOLDER_TYPE: u8 = 3;
const FILE_TYPE: u8 = 4;
const LINK_TYPE: u8 = 7;

/// All rights but those of sockets: 0 to 27.
const ALL_RIGHTS: u64 = (1 << 28) - 1;
const RIGHT_READ: u64 = 1 << 1;
const RIGHT_WRITE: u64 = 1 << 6;
/// To move the place in a file and to tell it. A device that has them is not taken for a terminal.
const RIGHT_SEEK: u64 = 1 << 2 | 1 << 5;

pub(super) fn file_type(kind: EntryKind) -> u8 {
    match kind {
        EntryKind::File => FILE_TYPE,
        EntryKind::Folder => FOLDER_TYPE,
        EntryKind::Link => LINK_TYPE,
        EntryKind::Other => UNKNOWN_TYPE,
    }
}

/// The number by which an entry is known to be the same as another: the run's files have no inodes, but one path each.
pub(super) fn number_of(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    // 0 stands for a number that is not known.
    hasher.finish().max(1)
}

/// ```text
/// fdstat    type u8, 1 unused, flags u16, 4 unused, rights u64, rights of what is opened by it u64
/// ```
pub(super) fn fdstat(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, out: u32) -> Done {
    let (kind, flags, rights) = match stage.table.get(fd)? {
        Descriptor::Folder(_) => (FOLDER_TYPE, 0, ALL_RIGHTS & !(RIGHT_READ | RIGHT_WRITE | RIGHT_SEEK)),
        Descriptor::Stream(stream) => match (stream.file(), stream.kind()) {
            (Some(file), _) => {
                let mut rights = ALL_RIGHTS;
                if !file.can_read() {
                    rights &= !RIGHT_READ;
                }
                if !file.can_write() {
                    rights &= !RIGHT_WRITE;
                }
                (FILE_TYPE, if file.appends() { APPEND as u8 } else { 0 }, rights)
            }
            (None, StreamKind::Device) => (DEVICE_TYPE, 0, ALL_RIGHTS),
            (None, _) => (UNKNOWN_TYPE, 0, ALL_RIGHTS & !RIGHT_SEEK),
        },
    };
    memory.put(out, &[kind, 0, flags, 0, 0, 0, 0, 0])?;
    memory.bytes(out, 24)?;
    memory.put_u64(out + 8, rights)?;
    memory.put_u64(out + 16, ALL_RIGHTS)?;
    Ok(())
}

pub(super) fn filestat(stage: &mut Stage, memory: &mut Memory<'_>, fd: u32, out: u32) -> Done {
    let told = match stage.table.get(fd)? {
        Descriptor::Folder(folder) => {
            let path = folder.path.clone();
            let stat = stage.files.stat(&path).map_err(|error| stage.fail(Fault::from(error)))?;
            of_entry(stage, &path, &stat, true)
        }
        Descriptor::Stream(stream) => match stream.file() {
            Some(file) => of_entry(stage, file.path(), &file.stat(), true),
            // As by its path, see below.
            None if fd > TOP => Told { kind: FILE_TYPE, ..of_stream(stream) },
            None => of_stream(stream),
        },
    };
    put(memory, out, &told)
}

pub(super) fn path_filestat(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    fd: u32,
    flags: u32,
    path: u32,
    len: u32,
    out: u32,
) -> Done {
    let follow = flags & FOLLOW != 0;
    let told = match stage.place(memory, (fd, path, len), false)? {
        // A path below `/dev` is told as a file: commands refuse to read what they take for neither file nor folder.
        Place::Device(stream) => Told { kind: FILE_TYPE, ..of_stream(&stream) },
        Place::Entry(path) => {
            let stat = if follow { stage.files.stat(&path) } else { stage.files.stat_link(&path) };
            let stat = stat.map_err(|error| stage.fail(Fault::from(error)))?;
            if path.ends_with('/') && stat.kind != EntryKind::Folder && follow {
                return Err(Errno::NOTDIR.into());
            }
            of_entry(stage, &path, &stat, follow)
        }
    };
    put(memory, out, &told)
}

/// What a `filestat` tells.
struct Told {
    number: u64,
    kind: u8,
    size: u64,
    modified: u64,
}

fn of_entry(stage: &Stage, path: &str, stat: &Stat, follow: bool) -> Told {
    let real = |path: &str| stage.files.real_path(path).unwrap_or_else(|_| path.to_owned());
    let path = path.trim_end_matches('/');
    let whole = match path.rsplit_once('/') {
        Some((parent, name)) if !follow => {
            let parent = if parent.is_empty() { "/" } else { parent };
            format!("{}/{name}", real(parent).trim_end_matches('/'))
        }
        _ => real(if path.is_empty() { "/" } else { path }),
    };
    let modified = stat.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Told {
        number: number_of(&whole),
        kind: file_type(stat.kind),
        size: stat.size,
        modified: u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX),
    }
}

fn of_stream(stream: &Stream) -> Told {
    let kind = match stream.kind() {
        StreamKind::File => FILE_TYPE,
        StreamKind::Device => DEVICE_TYPE,
        StreamKind::Pipe => UNKNOWN_TYPE,
    };
    let size = stream.file().map_or(0, |file| file.stat().size);
    Told { number: stream.number(), kind, size, modified: 0 }
}

/// ```text
/// filestat    device u64, inode u64, type u8, 7 unused, names u64, size u64, accessed u64, modified u64, changed u64
/// ```
fn put(memory: &mut Memory<'_>, out: u32, told: &Told) -> Done {
    let mut stat = Vec::with_capacity(64);
    let kind = u64::from(told.kind);
    for value in [1, told.number, kind, 1, told.size, told.modified, told.modified, told.modified] {
        stat.extend_from_slice(&value.to_le_bytes());
    }
    memory.put(out, &stat)?;
    Ok(())
}

/// Bits that say which times are set, and to what.
const MODIFIED: u32 = 4;
const MODIFIED_NOW: u32 = 8;

pub(super) fn set_times(
    stage: &mut Stage,
    _: &mut Memory<'_>,
    fd: u32,
    _accessed: u64,
    modified: u64,
    which: u32,
) -> Done {
    let path = match stage.table.get(fd)? {
        Descriptor::Folder(folder) => folder.path.clone(),
        Descriptor::Stream(stream) => match stream.file() {
            Some(file) => file.path().to_owned(),
            None => return Ok(()),
        },
    };
    set_modified(stage, &path, modified, which)
}

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn path_set_times(
    stage: &mut Stage,
    memory: &mut Memory<'_>,
    fd: u32,
    _flags: u32,
    path: u32,
    len: u32,
    _accessed: u64,
    modified: u64,
    which: u32,
) -> Done {
    match stage.place(memory, (fd, path, len), true)? {
        Place::Device(_) => Ok(()),
        Place::Entry(path) => set_modified(stage, &path, modified, which),
    }
}

/// The time when an entry was read last is not kept.
fn set_modified(stage: &mut Stage, path: &str, modified: u64, which: u32) -> Done {
    let time = match which & (MODIFIED | MODIFIED_NOW) {
        0 => return stage.files.stat(path).map(drop).map_err(|error| stage.fail(Fault::from(error))),
        MODIFIED => UNIX_EPOCH + Duration::from_nanos(modified),
        MODIFIED_NOW => SystemTime::now(),
        _ => return Err(Errno::INVAL.into()),
    };
    stage.files.set_modified(path, time).map_err(|error| stage.fail(Fault::from(error)))
}

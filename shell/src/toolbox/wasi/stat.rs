//! Host functions that return or set metadata of descriptors, files and folders.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wattle_capability::files::{EntryKind, Stat};

use super::descriptors::{Descriptor, ROOT};
use super::guest::Guest;
use super::memory::Memory;
use super::paths::{APPEND, FOLLOW, GuestPath, ResolvedPath};
use super::{Call, CallResult};
use crate::errno::Errno;
use crate::stream::{Stream, StreamKind};

const UNKNOWN_TYPE: u8 = 0;
const DEVICE_TYPE: u8 = 2;
pub(super) const FOLDER_TYPE: u8 = 3;
const FILE_TYPE: u8 = 4;
const LINK_TYPE: u8 = 7;

/// All rights except those of sockets: bits 0 to 27.
const ALL_RIGHTS: u64 = (1 << 28) - 1;
const RIGHT_READ: u64 = 1 << 1;
const RIGHT_WRITE: u64 = 1 << 6;
/// Rights to seek and to query the position in a file. The C library treats a character device that
/// lacks them as a terminal.
const RIGHT_SEEK: u64 = 1 << 2 | 1 << 5;

pub(super) fn file_type(kind: EntryKind) -> u8 {
    match kind {
        EntryKind::File => FILE_TYPE,
        EntryKind::Folder => FOLDER_TYPE,
        EntryKind::Link => LINK_TYPE,
        EntryKind::Other => UNKNOWN_TYPE,
    }
}

/// Returns the inode number of the file or folder at a path, which is a hash of the path. The run's
/// files have no inode numbers of their own, and each has exactly one path.
pub(super) fn inode_of(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    // 0 means an unknown inode.
    hasher.finish().max(1)
}

/// Writes the type, flags and rights of a descriptor to the guest's memory.
///
/// ```text
/// fdstat    type u8, 1 unused, flags u16, 4 unused, rights u64,
///           rights of descriptors opened through this one u64
/// ```
pub(super) fn fdstat(call: &mut Call<'_>, fd: u32, out: u32) -> CallResult {
    let (kind, flags, rights) = match call.guest.table.get(fd)? {
        Descriptor::Folder(_) => {
            (FOLDER_TYPE, 0, ALL_RIGHTS & !(RIGHT_READ | RIGHT_WRITE | RIGHT_SEEK))
        }
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
    call.memory.put(out, &[kind, 0, flags, 0, 0, 0, 0, 0])?;
    call.memory.bytes(out, 24)?;
    call.memory.put_u64(out + 8, rights)?;
    call.memory.put_u64(out + 16, ALL_RIGHTS)
}

pub(super) fn filestat(call: &mut Call<'_>, fd: u32, out: u32) -> CallResult {
    let stat = match call.guest.table.get(fd)? {
        Descriptor::Folder(folder) => {
            let path = folder.path.clone();
            let stat =
                call.guest.files.stat(&path).map_err(|error| call.guest.fail(error.into()))?;
            of_entry(call.guest, &path, &stat, true)
        }
        Descriptor::Stream(stream) => match stream.file() {
            Some(file) => of_entry(call.guest, file.path(), &file.stat(), true),
            // Reported like the path of a device; see `path_filestat`.
            None if fd > ROOT => FileStat { kind: FILE_TYPE, ..of_stream(stream) },
            None => of_stream(stream),
        },
    };
    put(&mut call.memory, out, &stat)
}

pub(super) fn path_filestat(
    call: &mut Call<'_>,
    fd: u32,
    flags: u32,
    path: u32,
    len: u32,
    out: u32,
) -> CallResult {
    let follow = flags & FOLLOW != 0;
    let stat = match call.resolve(GuestPath { fd, at: path, len }, false)? {
        // A path under `/dev` is reported as a file, because commands refuse to read other kinds of
        // entries.
        ResolvedPath::Device(stream) => FileStat { kind: FILE_TYPE, ..of_stream(&stream) },
        ResolvedPath::Entry(path) => {
            let stat = if follow {
                call.guest.files.stat(&path)
            } else {
                call.guest.files.stat_link(&path)
            };
            let stat = stat.map_err(|error| call.guest.fail(error.into()))?;
            if path.ends_with('/') && stat.kind != EntryKind::Folder && follow {
                return Err(Errno::NOTDIR.into());
            }
            of_entry(call.guest, &path, &stat, follow)
        }
    };
    put(&mut call.memory, out, &stat)
}

/// Metadata that a `filestat` contains.
struct FileStat {
    inode: u64,
    kind: u8,
    size: u64,
    modified: u64,
}

fn of_entry(guest: &Guest, path: &str, stat: &Stat, follow: bool) -> FileStat {
    let real = |path: &str| guest.files.real_path(path).unwrap_or_else(|_| path.to_owned());
    let path = path.trim_end_matches('/');
    let whole = match path.rsplit_once('/') {
        Some((parent, name)) if !follow => {
            let parent = if parent.is_empty() { "/" } else { parent };
            format!("{}/{name}", real(parent).trim_end_matches('/'))
        }
        _ => real(if path.is_empty() { "/" } else { path }),
    };
    let modified =
        stat.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    FileStat {
        inode: inode_of(&whole),
        kind: file_type(stat.kind),
        size: stat.size,
        modified: u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX),
    }
}

fn of_stream(stream: &Stream) -> FileStat {
    let kind = match stream.kind() {
        StreamKind::File => FILE_TYPE,
        StreamKind::Device => DEVICE_TYPE,
        StreamKind::Pipe => UNKNOWN_TYPE,
    };
    let size = stream.file().map_or(0, |file| file.stat().size);
    FileStat { inode: stream.id(), kind, size, modified: 0 }
}

/// Writes metadata to the guest's memory.
///
/// ```text
/// filestat    device u64, inode u64, type u8, 7 unused, links u64, size u64, accessed u64,
///             modified u64, changed u64
/// ```
fn put(memory: &mut Memory<'_>, out: u32, stat: &FileStat) -> CallResult {
    let mut bytes = Vec::with_capacity(64);
    let kind = u64::from(stat.kind);
    for value in [1, stat.inode, kind, 1, stat.size, stat.modified, stat.modified, stat.modified] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    memory.put(out, &bytes)
}

/// Time flag: set the modification time to the passed time.
const MODIFIED: u32 = 4;
/// Time flag: set the modification time to the current time.
const MODIFIED_NOW: u32 = 8;

pub(super) fn set_times(
    call: &mut Call<'_>,
    fd: u32,
    _accessed: u64,
    modified: u64,
    which: u32,
) -> CallResult {
    let path = match call.guest.table.get(fd)? {
        Descriptor::Folder(folder) => folder.path.clone(),
        Descriptor::Stream(stream) => match stream.file() {
            Some(file) => file.path().to_owned(),
            None => return Ok(()),
        },
    };
    set_modified(call.guest, &path, modified, which)
}

#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn path_set_times(
    call: &mut Call<'_>,
    fd: u32,
    _flags: u32,
    path: u32,
    len: u32,
    _accessed: u64,
    modified: u64,
    which: u32,
) -> CallResult {
    match call.resolve(GuestPath { fd, at: path, len }, true)? {
        ResolvedPath::Device(_) => Ok(()),
        ResolvedPath::Entry(path) => set_modified(call.guest, &path, modified, which),
    }
}

/// Sets the modification time. The access time is not stored.
fn set_modified(guest: &mut Guest, path: &str, modified: u64, which: u32) -> CallResult {
    let time = match which & (MODIFIED | MODIFIED_NOW) {
        0 => {
            let found = guest.files.stat(path).map(drop);
            return found.map_err(|error| guest.fail(error.into()));
        }
        MODIFIED => UNIX_EPOCH + Duration::from_nanos(modified),
        MODIFIED_NOW => SystemTime::now(),
        _ => return Err(Errno::INVAL.into()),
    };
    guest.files.set_modified(path, time).map_err(|error| guest.fail(error.into()))
}

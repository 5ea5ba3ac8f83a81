//! Host functions that open, create, move and remove files, folders and links by path. A path is
//! resolved to a path in the run's files, or to a device.

use wattle_capability::files::EntryKind;

use super::descriptors::{Descriptor, Folder};
use super::guest::Guest;
use super::{Call, CallError, CallResult};
use crate::errno::{Errno, Fault};
use crate::stream::{Device, OpenMode, Stream};

/// Lookup flag: follow a symbolic link in the last component of a path.
pub(super) const FOLLOW: u32 = 1;

/// Maximum length of a path, in bytes.
const MAX_PATH: u32 = 64 << 10;

/// A resolved path.
pub(super) enum ResolvedPath {
    /// The stream of a device under `/dev`.
    Device(Stream),
    /// An absolute path in the run's files, not normalized.
    Entry(String),
}

/// A path as a guest passes it: the address and the length of its text, and the descriptor of the
/// folder that it is relative to.
#[derive(Clone, Copy)]
pub(super) struct GuestPath {
    pub(super) fd: u32,
    pub(super) at: u32,
    pub(super) len: u32,
}

impl Call<'_> {
    /// Reads a path from the guest's memory and resolves it against its folder.
    fn path(&self, path: GuestPath) -> Result<String, Errno> {
        let folder = self.guest.table.folder(path.fd)?;
        if path.len > MAX_PATH {
            return Err(Errno::NAMETOOLONG);
        }
        let text = self.memory.text(path.at, path.len)?;
        if text.is_empty() {
            return Err(Errno::NOENT);
        }
        if text.contains('\0') {
            return Err(Errno::INVAL);
        }
        // An absolute path starts at the root, regardless of the folder that is passed with it.
        Ok(if text.starts_with('/') {
            text.to_owned()
        } else {
            format!("{}/{text}", folder.path.trim_end_matches('/'))
        })
    }

    /// Reads a path like [`Call::path`], but also resolves devices.
    pub(super) fn resolve(
        &mut self,
        path: GuestPath,
        write: bool,
    ) -> Result<ResolvedPath, CallError> {
        let path = self.path(path)?;
        let guest = &mut *self.guest;
        if let Some(device) = Device::resolve(&path, &guest.files) {
            let stream = device.stream(write, |number| guest.command.fd(number).cloned());
            return Ok(ResolvedPath::Device(stream));
        }
        if let Err(error) = guest.files.check_inside(&path, write)
            && guest.command.names(&path, write)
        {
            // A command often looks up a path before it writes to it. The message about the write
            // then replaces the message about the lookup.
            guest.refusal = guest.refusal.take().filter(|_| !write);
            return Err(guest.fail(Fault::from(error)));
        }
        Ok(ResolvedPath::Entry(path))
    }

    /// Reads the path of a file, folder or link to create, move or remove. Fails if the path is a
    /// device.
    fn entry(&mut self, path: GuestPath) -> Result<String, CallError> {
        match self.resolve(path, true)? {
            ResolvedPath::Entry(path) => Ok(path),
            ResolvedPath::Device(_) => Err(Errno::PERM.into()),
        }
    }

    /// Checks that the parent of a path is an existing folder.
    fn check_parent(&mut self, path: &str) -> Result<(), CallError> {
        let path = path.trim_end_matches('/');
        let parent = path
            .rsplit_once('/')
            .map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
        match self.guest.files.stat(parent) {
            Ok(stat) if stat.kind == EntryKind::Folder => Ok(()),
            Ok(_) => Err(Errno::NOTDIR.into()),
            Err(error) => Err(self.guest.fail(Fault::from(error))),
        }
    }
}

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
    call: &mut Call<'_>,
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
    call.memory.bytes(out, 4)?;
    if !call.guest.table.has_room() {
        return Err(Errno::MFILE.into());
    }
    let write = rights & WRITE != 0;
    let folder = how & FOLDER != 0;
    let descriptor = match call.resolve(GuestPath { fd, at: path, len }, write)? {
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
            open_entry(call.guest, path, mode, lookup & FOLLOW != 0, folder)?
        }
    };
    let number = call.guest.table.open(descriptor)?;
    call.memory.put_u32(out, number)
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

pub(super) fn create_folder(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> CallResult {
    let path = call.entry(GuestPath { fd, at: path, len })?;
    call.guest.files.create_folder(&path).map_err(|error| call.guest.fail(error.into()))
}

pub(super) fn remove_folder(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> CallResult {
    let path = call.entry(GuestPath { fd, at: path, len })?;
    match call.guest.files.stat_link(&path) {
        Ok(stat) if stat.kind != EntryKind::Folder => Err(Errno::NOTDIR.into()),
        _ => call.guest.files.remove(&path).map_err(|error| call.guest.fail(error.into())),
    }
}

pub(super) fn unlink(call: &mut Call<'_>, fd: u32, path: u32, len: u32) -> CallResult {
    let path = call.entry(GuestPath { fd, at: path, len })?;
    match call.guest.files.stat_link(&path) {
        Ok(stat) if stat.kind == EntryKind::Folder => Err(Errno::ISDIR.into()),
        Ok(_) if path.ends_with('/') => Err(Errno::NOTDIR.into()),
        _ => call.guest.files.remove(&path).map_err(|error| call.guest.fail(error.into())),
    }
}

pub(super) fn rename(
    call: &mut Call<'_>,
    fd: u32,
    old: u32,
    old_len: u32,
    to: u32,
    new: u32,
    new_len: u32,
) -> CallResult {
    let old = call.entry(GuestPath { fd, at: old, len: old_len })?;
    let new = call.entry(GuestPath { fd: to, at: new, len: new_len })?;
    call.check_parent(&new)?;
    call.guest.files.rename(&old, &new).map_err(|error| call.guest.fail(error.into()))
}

/// Always fails, because each of the run's files has exactly one name.
#[expect(clippy::too_many_arguments, reason = "the signature is preview 1's")]
pub(super) fn hard_link(
    call: &mut Call<'_>,
    fd: u32,
    _flags: u32,
    old: u32,
    old_len: u32,
    to: u32,
    new: u32,
    new_len: u32,
) -> CallResult {
    call.entry(GuestPath { fd, at: old, len: old_len })?;
    call.entry(GuestPath { fd: to, at: new, len: new_len })?;
    Err(Errno::NOTSUP.into())
}

pub(super) fn symlink(
    call: &mut Call<'_>,
    target: u32,
    target_len: u32,
    fd: u32,
    path: u32,
    len: u32,
) -> CallResult {
    let path = call.entry(GuestPath { fd, at: path, len })?;
    call.check_parent(&path)?;
    let target = call.memory.text(target, target_len)?;
    call.guest.files.symlink(target, &path).map_err(|error| call.guest.fail(error.into()))
}

pub(super) fn read_link(
    call: &mut Call<'_>,
    fd: u32,
    path: u32,
    len: u32,
    at: u32,
    room: u32,
    out: u32,
) -> CallResult {
    let target = match call.resolve(GuestPath { fd, at: path, len }, false)? {
        ResolvedPath::Device(_) => return Err(Errno::INVAL.into()),
        ResolvedPath::Entry(path) => call.guest.files.read_link(&path),
    };
    let target = target.map_err(|error| call.guest.fail(error.into()))?;
    let bytes = target.as_bytes().get(..room as usize).unwrap_or(target.as_bytes());
    call.memory.put(at, bytes)?;
    // The length is at most `room`, which is a `u32`.
    call.memory.put_u32(out, bytes.len() as u32)
}

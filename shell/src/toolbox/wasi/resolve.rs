//! Resolves a guest's path to a path in the run's files, or to a device.

use wattle_capability::files::EntryKind;

use super::call::CallError;
use super::guest::Guest;
use super::memory::Memory;
use crate::errno::{Errno, Fault};
use crate::stream::{Device, Stream};

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

impl Guest {
    /// Reads a path from the guest's memory and resolves it against the folder `fd`.
    pub(super) fn path(
        &self,
        memory: &Memory<'_>,
        fd: u32,
        at: u32,
        len: u32,
    ) -> Result<String, Errno> {
        let folder = self.table.folder(fd)?;
        if len > MAX_PATH {
            return Err(Errno::NAMETOOLONG);
        }
        let text = memory.text(at, len)?;
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

    /// Reads a path like [`Guest::path`], but also resolves devices.
    pub(super) fn resolve(
        &mut self,
        memory: &Memory<'_>,
        (fd, at, len): (u32, u32, u32),
        write: bool,
    ) -> Result<ResolvedPath, CallError> {
        let path = self.path(memory, fd, at, len)?;
        if let Some(device) = Device::resolve(&path, &self.files) {
            let stream = device.stream(write, |number| self.command.fd(number).cloned());
            return Ok(ResolvedPath::Device(stream));
        }
        if let Err(error) = self.files.check_inside(&path, write)
            && self.command.names(&path, write)
        {
            // A command often looks up a path before it writes to it. The message about the write
            // then replaces the message about the lookup.
            self.refusal = self.refusal.take().filter(|_| !write);
            return Err(self.fail(Fault::from(error)));
        }
        Ok(ResolvedPath::Entry(path))
    }

    /// Reads the path of a file, folder or link to create, move or remove. Fails if the path is a
    /// device.
    pub(super) fn entry(
        &mut self,
        memory: &Memory<'_>,
        fd: u32,
        at: u32,
        len: u32,
    ) -> Result<String, CallError> {
        match self.resolve(memory, (fd, at, len), true)? {
            ResolvedPath::Entry(path) => Ok(path),
            ResolvedPath::Device(_) => Err(Errno::PERM.into()),
        }
    }

    /// Checks that the parent of a path is an existing folder.
    pub(super) fn check_parent(&mut self, path: &str) -> Result<(), CallError> {
        let path = path.trim_end_matches('/');
        let parent = path
            .rsplit_once('/')
            .map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
        match self.files.stat(parent) {
            Ok(stat) if stat.kind == EntryKind::Folder => Ok(()),
            Ok(_) => Err(Errno::NOTDIR.into()),
            Err(error) => Err(self.fail(Fault::from(error))),
        }
    }
}

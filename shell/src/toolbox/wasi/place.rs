//! What a guest's path leads to: an entry of the run's files, or a device.

use wattle_capability::files::EntryKind;

use super::Fail;
use super::memory::Memory;
use super::stage::Stage;
use crate::errno::{Errno, Fault};
use crate::stream::{Device, Stream};

/// Whether a link at the end of a path is followed: the one flag of a look-up.
pub(super) const FOLLOW: u32 = 1;

/// The longest path, in bytes, before it is looked at.
const PATH_MOST: u32 = 64 << 10;

/// What a path names.
pub(super) enum Place {
    Device(Stream),
    /// Absolute in the run's tree, as the guest wrote it.
    Entry(String),
}

impl Stage {
    /// A path of the guest, below the folder that it was given with.
    pub(super) fn path(&self, memory: &Memory<'_>, fd: u32, at: u32, len: u32) -> Result<String, Errno> {
        let folder = self.table.folder(fd)?;
        if len > PATH_MOST {
            return Err(Errno::NAMETOOLONG);
        }
        let text = memory.text(at, len)?;
        if text.is_empty() {
            return Err(Errno::NOENT);
        }
        if text.contains('\0') {
            return Err(Errno::INVAL);
        }
        // An absolute one is taken from the top, where every folder stands.
        Ok(if text.starts_with('/') {
            text.to_owned()
        } else {
            format!("{}/{text}", folder.path.trim_end_matches('/'))
        })
    }

    /// As [`Stage::path`], with the devices told apart.
    pub(super) fn place(
        &self,
        memory: &Memory<'_>,
        (fd, at, len): (u32, u32, u32),
        write: bool,
    ) -> Result<Place, Errno> {
        let path = self.path(memory, fd, at, len)?;
        Ok(match Device::in_run(&path, &self.files) {
            Some(device) => Place::Device(device.stream(write, |number| self.command.fd(number).cloned())),
            None => Place::Entry(path),
        })
    }

    /// A path of an entry that is to be made or removed: a device stays as it is.
    pub(super) fn entry(&self, memory: &Memory<'_>, fd: u32, at: u32, len: u32) -> Result<String, Errno> {
        match self.place(memory, (fd, at, len), true)? {
            Place::Entry(path) => Ok(path),
            Place::Device(_) => Err(Errno::PERM),
        }
    }

    /// Checks that the folder is there that an entry is to be made in.
    pub(super) fn check_parent(&mut self, path: &str) -> Result<(), Fail> {
        let path = path.trim_end_matches('/');
        let parent = path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
        match self.files.stat(parent) {
            Ok(stat) if stat.kind == EntryKind::Folder => Ok(()),
            Ok(_) => Err(Errno::NOTDIR.into()),
            Err(error) => Err(self.fail(Fault::from(error))),
        }
    }
}

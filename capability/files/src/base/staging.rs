//! Staging folders, where a process prepares changes. A staging folder has a name that runs cannot
//! use, and is removed when it is no longer needed. It is in the root of the workdir if the root is
//! writable.
//!
//! The process holds a lock on its staging folder, which the operating system releases when the
//! process ends. A staging folder without a lock was therefore left behind by a killed process. The
//! next process that opens the workdir completes the changes in it; see
//! [`recover`](super::recover).

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::Base;
use super::recover::{self, Origin};
use crate::host_files::STAGING_PREFIX;
use crate::jail::{Meta, NO_SIDE_EFFECTS, is_absent, meta_at};
use crate::path::RunPath;

/// A staging folder of this process. It is removed on drop.
pub(crate) struct StagingFolder<'a> {
    base: &'a Base,
    path: RunPath,
    /// The open folder, whose handle holds the lock.
    _lock: OwnedFd,
    /// Number of names assigned in the folder so far.
    names: Cell<usize>,
}

impl Base {
    /// Creates a staging folder in the workdir's root or, if the root is not writable, in the
    /// parent folder of `path`.
    pub(crate) fn staging_folder(&self, path: &RunPath) -> io::Result<StagingFolder<'_>> {
        match self.staging_folder_in(&RunPath::top()) {
            Err(cause)
                if matches!(
                    Errno::from_io_error(&cause),
                    Some(Errno::ACCESS | Errno::PERM | Errno::ROFS)
                ) =>
            {
                self.staging_folder_in(&path.parent().unwrap_or_else(RunPath::top))
            }
            created => created,
        }
    }

    fn staging_folder_in(&self, folder: &RunPath) -> io::Result<StagingFolder<'_>> {
        loop {
            let path = folder
                .join(staging_name()?.as_str())
                .map_err(|_| io::Error::from(Errno::NAMETOOLONG))?;
            let (parent, name) = self.jail.parent(&path)?;
            rustix::fs::mkdirat(&parent, name, Mode::RWXU)?;
            if let Some(lock) = self.lock_staging_folder(&path)? {
                return Ok(StagingFolder { base: self, path, _lock: lock, names: Cell::new(0) });
            }
            // Between the two calls, another process removed the folder because it looked
            // abandoned.
        }
    }

    /// Locks a staging folder. Returns `None` if another process holds the lock or has removed the
    /// folder.
    pub(crate) fn lock_staging_folder(&self, path: &RunPath) -> io::Result<Option<OwnedFd>> {
        let folder = match self.jail.listing(path) {
            Err(cause) if is_absent(&cause) => return Ok(None),
            opened => opened?,
        };
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        let locked = Meta::from(rustix::fs::fstat(&folder)?);
        let (parent, name) = self.jail.parent(path)?;
        let is_same = meta_at(&parent, name).is_ok_and(|meta| meta.identity() == locked.identity());
        Ok(is_same.then_some(folder))
    }
}

impl StagingFolder<'_> {
    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &RunPath {
        &self.path
    }

    /// Creates a file that will later be moved to `path`. Returns its staging path and the open
    /// file.
    pub(crate) fn create(&self, path: &RunPath) -> io::Result<(RunPath, File)> {
        let number = self.names.get();
        self.names.set(number + 1);
        let staged = staging_path(self.base, &self.path, number, path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | NO_SIDE_EFFECTS;
        let file = self.base.jail.open_entry(&staged, flags, Mode::from_raw_mode(0o666))?;
        Ok((staged, file.into()))
    }
}

/// Returns a staging path for an entry that will be moved to `path`: in the staging folder, or next
/// to `path` if `path` is on another file system. In the latter case, a link in the staging folder
/// points to the staging path.
pub(crate) fn staging_path(
    base: &Base,
    folder: &RunPath,
    number: usize,
    path: &RunPath,
) -> io::Result<RunPath> {
    let too_long = |_| io::Error::from(Errno::NAMETOOLONG);
    let parent = path.parent().unwrap_or_else(RunPath::top);
    if base.jail.meta(&parent)?.device == base.jail.meta(folder)?.device {
        return folder.join(&format!("s{number}")).map_err(too_long);
    }
    let beside = parent.join(staging_name()?.as_str()).map_err(too_long)?;
    base.link(&folder.join(&format!("b{number}")).map_err(too_long)?, beside.as_str())?;
    Ok(beside)
}

impl Drop for StagingFolder<'_> {
    // If the removal fails, the next process that opens the workdir removes the remaining entries.
    fn drop(&mut self) {
        let _ = recover::finish(self.base, &self.path, Origin::ThisProcess);
    }
}

/// Returns a random staging name.
pub(crate) fn staging_name() -> io::Result<RunPath> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    RunPath::parse(&format!("{STAGING_PREFIX}{:016x}", u64::from_le_bytes(random)))
        .map_err(|_| Errno::INVAL.into())
}

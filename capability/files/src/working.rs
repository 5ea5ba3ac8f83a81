//! The folder where changes are prepared: at the top of the workdir, with a name of the host's own, for as long as it is needed.
//!
//! Whoever works in one holds a lock on it, which the operating system drops with the process. So a folder without its lock was
//! left by a process that was killed, and the next one that opens the workdir finishes what that one had begun; see
//! [`recover`](super::recover).

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::base::Base;
use super::host_files::WORKING;
use super::jail::{PLAIN, meta_at};
use super::path::RunPath;
use super::recover;

/// A folder where this process prepares changes; removed at the end, where it is empty by then.
pub(super) struct Working<'a> {
    base: &'a Base,
    path: RunPath,
    /// Holds the lock.
    _lock: OwnedFd,
    /// How many entries got a name in it.
    named: Cell<usize>,
}

impl Base {
    /// Makes a folder to prepare changes in: at the top, or in the folder of `path` where nothing can be made at the top.
    pub(super) fn working(&self, path: &RunPath) -> io::Result<Working<'_>> {
        match self.working_in(&RunPath::top()) {
            Err(cause) if matches!(Errno::from_io_error(&cause), Some(Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
                self.working_in(&path.parent().unwrap_or_else(RunPath::top))
            }
            made => made,
        }
    }

    fn working_in(&self, folder: &RunPath) -> io::Result<Working<'_>> {
        loop {
            let path = folder.join(working_name()?.as_str()).map_err(|_| io::Error::from(Errno::NAMETOOLONG))?;
            let (parent, name) = self.jail.parent(&path)?;
            rustix::fs::mkdirat(&parent, name, Mode::RWXU)?;
            if let Some(lock) = self.lock_working(&path)? {
                return Ok(Working { base: self, path, _lock: lock, named: Cell::new(0) });
            }
            // Another process took it for one that was left behind, between the two calls.
        }
    }

    /// Takes the lock of a folder where changes are prepared; `None` where another process has it, or has removed the folder.
    pub(super) fn lock_working(&self, path: &RunPath) -> io::Result<Option<OwnedFd>> {
        let folder = match self.jail.listing(path) {
            Err(cause) if super::jail::is_absent(&cause) => return Ok(None),
            opened => opened?,
        };
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        let held = super::jail::Meta::from(rustix::fs::fstat(&folder)?);
        let (parent, name) = self.jail.parent(path)?;
        let there = meta_at(&parent, name).is_ok_and(|meta| meta.identity() == held.identity());
        Ok(there.then_some(folder))
    }
}

impl Working<'_> {
    /// The folder's own path.
    pub(super) fn path(&self) -> &RunPath {
        &self.path
    }

    /// Opens a new file for what is to be at `path` later.
    pub(super) fn create(&self, path: &RunPath) -> io::Result<(RunPath, File)> {
        let number = self.named.get();
        self.named.set(number + 1);
        let staged = staging(self.base, &self.path, number, path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | PLAIN;
        let file = self.base.jail.open_entry(&staged, flags, Mode::from_raw_mode(0o666))?;
        Ok((staged, file.into()))
    }
}

/// Returns a name for what is to be at `path` later: in a folder where changes are prepared, or beside `path` where that is on
/// another file system. A link in the folder says where the latter is.
pub(super) fn staging(base: &Base, working: &RunPath, number: usize, path: &RunPath) -> io::Result<RunPath> {
    let too_long = |_| io::Error::from(Errno::NAMETOOLONG);
    let above = path.parent().unwrap_or_else(RunPath::top);
    if base.jail.meta(&above)?.device == base.jail.meta(working)?.device {
        return working.join(&format!("s{number}")).map_err(too_long);
    }
    let beside = above.join(working_name()?.as_str()).map_err(too_long)?;
    base.link(&working.join(&format!("b{number}")).map_err(too_long)?, beside.as_str())?;
    Ok(beside)
}

impl Drop for Working<'_> {
    /// What cannot be removed is left to the next process that opens the workdir.
    fn drop(&mut self) {
        let _ = recover::finish(self.base, &self.path);
    }
}

/// A name that nobody else has.
pub(super) fn working_name() -> io::Result<RunPath> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    RunPath::parse(&format!("{WORKING}{:016x}", u64::from_le_bytes(random))).map_err(|_| Errno::INVAL.into())
}

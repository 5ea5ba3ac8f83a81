//! An open handle to the workdir's folder. The operating system resolves names relative to it
//! without following any link.
//!
//! Every path that reaches this module has passed [`resolve`](crate::tree::resolve), which follows
//! links, treating the base and the overlay as one tree, and asks the run's guard about the
//! resolved path. If there is a link on such a path, it appeared after the check. The operation
//! then fails with `ELOOP`, and the caller resolves the path again.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::path::RunPath;

/// Flags to open a folder only as the starting point for resolving paths.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Flags to open an entry without following a final link, waiting for the other end of a FIFO, or
/// acquiring a controlling terminal.
pub(crate) const NO_SIDE_EFFECTS: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An open folder on the host. No path that is opened through it can lead out of it.
pub(crate) struct Jail {
    top: OwnedFd,
}

/// An entry's metadata from the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) kind: FileType,
    pub(crate) mode: u32,
    pub(crate) links: u64,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// The time when the content last changed: whole seconds since 1970 and additional nanoseconds.
    pub(crate) modified: (i64, i64),
    /// The time when the content or the metadata last changed. No program can set it.
    pub(crate) changed: (i64, i64),
}

impl Meta {
    /// Returns the device and the inode, which identify the entry on this machine under every path.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns the time when the content last changed, or `None` if `SystemTime` cannot represent
    /// it.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        let (seconds, nanoseconds) = self.modified;
        let part = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
        match u64::try_from(seconds) {
            Ok(seconds) => UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?.checked_add(part),
            Err(_) => UNIX_EPOCH
                .checked_sub(Duration::from_secs(seconds.unsigned_abs()))?
                .checked_add(part),
        }
    }
}

impl From<Stat> for Meta {
    #[allow(clippy::unnecessary_cast, reason = "the types of these fields depend on the platform")]
    fn from(stat: Stat) -> Meta {
        Meta {
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}

impl Jail {
    pub(crate) fn open(path: &Path) -> io::Result<Jail> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Jail { top: rustix::fs::openat(CWD, path, flags, Mode::empty())? })
    }

    /// Returns the metadata of the folder itself.
    pub(crate) fn top_meta(&self) -> io::Result<Meta> {
        Ok(rustix::fs::fstat(&self.top)?.into())
    }

    /// Opens an entry. No name on its path may be a link.
    pub(crate) fn open_entry(
        &self,
        path: &RunPath,
        flags: OFlags,
        mode: Mode,
    ) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let beneath =
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match rustix::fs::openat2(&self.top, path.in_base(), flags, mode, beneath) {
                // Old kernels do not have this call, and some sandboxes deny it.
                Err(Errno::NOSYS | Errno::PERM) => {}
                opened => return Ok(opened?),
            }
        }
        self.step_by_step(path, flags, mode)
    }

    /// Opens an entry by resolving its path one name at a time, each relative to the previous
    /// folder. A path contains no `..`, so no step leads out of the root.
    fn step_by_step(&self, path: &RunPath, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let mut folder = self.top.try_clone()?;
        let parents = path.names().count().saturating_sub(1);
        for name in path.names().take(parents) {
            folder = match rustix::fs::openat(
                &folder,
                name,
                FOLDER | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            ) {
                Err(Errno::NOTDIR) => {
                    let meta = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    let link = FileType::from_raw_mode(meta.st_mode) == FileType::Symlink;
                    return Err(if link { Errno::LOOP.into() } else { Errno::NOTDIR.into() });
                }
                opened => opened?,
            };
        }
        let name = path.split().map_or(".", |(_, name)| name);
        Ok(rustix::fs::openat(&folder, name, flags, mode)?)
    }

    /// Opens a folder as the starting point for resolving paths.
    pub(crate) fn folder(&self, path: &RunPath) -> io::Result<OwnedFd> {
        if path.is_top() {
            return self.top.try_clone();
        }
        match self.open_entry(path, FOLDER, Mode::empty()) {
            // Distinguishes a link from another entry that is not a folder.
            Err(cause) if Errno::from_io_error(&cause) == Some(Errno::NOTDIR) => {
                match self.meta(path) {
                    Ok(meta) if meta.kind == FileType::Symlink => Err(Errno::LOOP.into()),
                    _ => Err(cause),
                }
            }
            opened => opened,
        }
    }

    /// Opens the folder that contains an entry. Returns the folder and the entry's name in it.
    pub(crate) fn parent<'a>(&self, path: &'a RunPath) -> io::Result<(OwnedFd, &'a str)> {
        let (parent, name) = path.split().ok_or_else(|| io::Error::from(Errno::ISDIR))?;
        Ok((self.folder(&parent)?, name))
    }

    /// Opens a folder to list it.
    pub(crate) fn listing(&self, path: &RunPath) -> io::Result<OwnedFd> {
        self.open_entry(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// Returns the metadata of an entry, without following a link.
    pub(crate) fn meta(&self, path: &RunPath) -> io::Result<Meta> {
        if path.is_top() {
            return Ok(rustix::fs::fstat(&self.top)?.into());
        }
        let (parent, name) = self.parent(path)?;
        meta_at(&parent, name)
    }
}

/// Returns the metadata of an entry in an open folder, without following a link.
pub(crate) fn meta_at(folder: impl AsFd, name: &str) -> io::Result<Meta> {
    Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
}

/// Returns the metadata of an open file, which must be a regular file.
pub(crate) fn regular_file_meta(file: impl AsFd) -> io::Result<Meta> {
    let meta = Meta::from(rustix::fs::fstat(file)?);
    match meta.kind {
        FileType::RegularFile => Ok(meta),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(Errno::NXIO.into()),
    }
}

/// Returns true if the error means that the entry does not exist, or that one of its parents is not
/// a folder.
pub(crate) fn is_absent(cause: &io::Error) -> bool {
    matches!(Errno::from_io_error(cause), Some(Errno::NOENT | Errno::NOTDIR))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that the single system call and the fallback for old kernels return the same results.
    #[test]
    fn no_name_of_a_path_may_be_a_link() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/b/f"), "x").unwrap();
        for (target, link) in
            [("a", "to_a"), ("b/f", "a/to_f"), ("/", "root"), ("/proc/self/cwd", "magic")]
        {
            std::os::unix::fs::symlink(target, dir.path().join(link)).unwrap();
        }
        let jail = Jail::open(dir.path()).unwrap();
        for (path, expected) in [
            ("a/b/f", None),
            ("to_a/b/f", Some(Errno::LOOP)),
            ("a/to_f", Some(Errno::LOOP)),
            ("root/etc/passwd", Some(Errno::LOOP)),
            ("magic/Cargo.toml", Some(Errno::LOOP)),
            ("a/b/f/x", Some(Errno::NOTDIR)),
            ("a/none", Some(Errno::NOENT)),
        ] {
            let path = RunPath::parse(path).unwrap();
            let open = [
                jail.open_entry(&path, OFlags::RDONLY, Mode::empty()),
                jail.step_by_step(&path, OFlags::RDONLY | NO_SIDE_EFFECTS, Mode::empty()),
            ];
            for opened in open {
                let error = opened.err().and_then(|cause| Errno::from_io_error(&cause));
                assert_eq!(error, expected, "{path}");
            }
        }
        assert!(jail.folder(&RunPath::top()).is_ok() && jail.listing(&RunPath::top()).is_ok());
        let link = RunPath::parse("to_a").unwrap();
        assert_eq!(jail.meta(&link).unwrap().kind, FileType::Symlink);
        assert_eq!(Errno::from_io_error(&jail.folder(&link).unwrap_err()), Some(Errno::LOOP));
    }

    #[test]
    fn times_before_1970_are_converted() {
        let dir = tempfile::tempdir().unwrap();
        let mut meta = Jail::open(dir.path()).unwrap().meta(&RunPath::top()).unwrap();
        meta.modified = (-2, 500_000_000);
        assert_eq!(meta.modified(), UNIX_EPOCH.checked_sub(Duration::from_millis(1_500)));
        meta.modified = (i64::MAX, 2_000_000_000);
        assert_eq!(meta.modified(), None);
    }
}

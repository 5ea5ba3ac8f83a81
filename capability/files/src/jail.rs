//! The workdir's handle. Names below it are resolved by the operating system without following any link.
//!
//! Links are followed by the store, over the base and the overlay as one tree, and each path that it resolves is admitted by the
//! run's guard before it gets here. So a link that is met here appeared after the check: the operation fails with `ELOOP`, and
//! the caller resolves the path again.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::path::RunPath;

/// Opens a folder only to name what is in it.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Keeps an open from following a last link, from waiting for a fifo's other end, and from taking a terminal.
pub(super) const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A folder of the host that nothing leads out of.
pub(super) struct Jail {
    top: OwnedFd,
}

/// What the operating system knows about an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) kind: FileType,
    pub(super) mode: u32,
    pub(super) links: u64,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: u64,
    /// When the content changed last: seconds since 1970, and nanoseconds.
    pub(super) modified: (i64, i64),
    /// When anything about the entry changed last. No program can set it.
    pub(super) changed: (i64, i64),
}

impl Meta {
    /// Returns the numbers that name the entry on this machine, whatever path leads to it.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns when the content changed last; `None` for a time that cannot be told.
    pub(super) fn modified(&self) -> Option<SystemTime> {
        let (seconds, nanoseconds) = self.modified;
        let part = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
        match u64::try_from(seconds) {
            Ok(seconds) => UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?.checked_add(part),
            Err(_) => UNIX_EPOCH.checked_sub(Duration::from_secs(seconds.unsigned_abs()))?.checked_add(part),
        }
    }
}

impl From<Stat> for Meta {
    #[allow(clippy::unnecessary_cast, reason = "the widths of these fields differ from machine to machine")]
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
    pub(super) fn open(path: &Path) -> io::Result<Jail> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Jail { top: rustix::fs::openat(CWD, path, flags, Mode::empty())? })
    }

    /// Opens an entry, none of whose names may be a link.
    pub(super) fn open_entry(&self, path: &RunPath, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match rustix::fs::openat2(&self.top, path.in_base(), flags, mode, beneath) {
                // An old kernel does not have the call, and some sandboxes refuse it.
                Err(Errno::NOSYS | Errno::PERM) => {}
                opened => return Ok(opened?),
            }
        }
        self.step_by_step(path, flags, mode)
    }

    /// Opens an entry name by name, each in the folder that the one before opened. A path has no `..`, so that this leads
    /// nowhere else.
    fn step_by_step(&self, path: &RunPath, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let mut at = self.top.try_clone()?;
        let last = path.names().count().saturating_sub(1);
        for name in path.names().take(last) {
            at = match rustix::fs::openat(&at, name, FOLDER | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
                Err(Errno::NOTDIR) => {
                    let meta = rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    let link = FileType::from_raw_mode(meta.st_mode) == FileType::Symlink;
                    return Err(if link { Errno::LOOP.into() } else { Errno::NOTDIR.into() });
                }
                opened => opened?,
            };
        }
        let name = path.split().map_or(".", |(_, name)| name);
        Ok(rustix::fs::openat(&at, name, flags, mode)?)
    }

    /// Opens a folder to name what is in it.
    pub(super) fn folder(&self, path: &RunPath) -> io::Result<OwnedFd> {
        if path.is_top() {
            return self.top.try_clone();
        }
        match self.open_entry(path, FOLDER, Mode::empty()) {
            // What is a link by now is told apart from what is no folder.
            Err(cause) if Errno::from_io_error(&cause) == Some(Errno::NOTDIR) => match self.meta(path) {
                Ok(meta) if meta.kind == FileType::Symlink => Err(Errno::LOOP.into()),
                _ => Err(cause),
            },
            opened => opened,
        }
    }

    /// Opens the folder that holds an entry, and gives the entry's name in it.
    pub(super) fn parent<'a>(&self, path: &'a RunPath) -> io::Result<(OwnedFd, &'a str)> {
        let (parent, name) = path.split().ok_or_else(|| io::Error::from(Errno::ISDIR))?;
        Ok((self.folder(&parent)?, name))
    }

    /// Opens a folder to read its names.
    pub(super) fn listing(&self, path: &RunPath) -> io::Result<OwnedFd> {
        self.open_entry(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// Looks at an entry; a link is looked at as itself.
    pub(super) fn meta(&self, path: &RunPath) -> io::Result<Meta> {
        if path.is_top() {
            return Ok(rustix::fs::fstat(&self.top)?.into());
        }
        let (parent, name) = self.parent(path)?;
        meta_at(&parent, name)
    }
}

/// Looks at an entry of an open folder; a link is looked at as itself.
pub(super) fn meta_at(folder: impl AsFd, name: &str) -> io::Result<Meta> {
    Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
}

/// Looks at an open file, which must be a plain one.
pub(super) fn plain_meta(file: impl AsFd) -> io::Result<Meta> {
    let meta = Meta::from(rustix::fs::fstat(file)?);
    match meta.kind {
        FileType::RegularFile => Ok(meta),
        FileType::Directory => Err(Errno::ISDIR.into()),
        _ => Err(Errno::NXIO.into()),
    }
}

/// Whether nothing is there: no entry, or a file where a folder on the way should be.
pub(super) fn is_absent(cause: &io::Error) -> bool {
    matches!(Errno::from_io_error(cause), Some(Errno::NOENT | Errno::NOTDIR))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to open agree: the one call, and name by name as where the kernel does not have it.
    #[test]
    fn no_name_of_a_path_may_be_a_link() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/b/f"), "x").unwrap();
        for (target, link) in [("a", "to_a"), ("b/f", "a/to_f"), ("/", "root"), ("/proc/self/cwd", "magic")] {
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
                jail.step_by_step(&path, OFlags::RDONLY | PLAIN, Mode::empty()),
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
    fn times_before_1970_can_be_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut meta = Jail::open(dir.path()).unwrap().meta(&RunPath::top()).unwrap();
        meta.modified = (-2, 500_000_000);
        assert_eq!(meta.modified(), UNIX_EPOCH.checked_sub(Duration::from_millis(1_500)));
        meta.modified = (i64::MAX, 2_000_000_000);
        assert_eq!(meta.modified(), None);
    }
}

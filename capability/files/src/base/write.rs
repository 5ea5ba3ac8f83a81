//! Operations that write to the base. Each operation opens the parent folder of the entry, accesses
//! the entry by its name, and follows no link.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::{Base, EntryInfo};
use crate::jail::{Meta, NO_SIDE_EFFECTS, is_absent, meta_at, regular_file_meta};
use crate::path::RunPath;

/// Permission bits that a new file inherits from the file it replaces. The set-user-ID and
/// set-group-ID bits are not inherited.
pub(crate) const INHERITED_MODE: u32 = 0o777;
/// Permissions of a new file, before the process's umask.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);
/// Permissions of a new folder, before the process's umask.
const NEW_FOLDER: Mode = Mode::from_raw_mode(0o777);

impl Base {
    /// Atomically replaces a file, or creates it. The new file inherits the permissions of the old
    /// one, which must be writable.
    pub(crate) fn replace(&self, path: &RunPath, data: &[u8]) -> io::Result<()> {
        let mode = match self.open_to_write(path, OFlags::empty()) {
            Ok((_, meta)) => meta.mode & INHERITED_MODE,
            Err(cause) if is_absent(&cause) => match self.create(path, data, None) {
                // Another process has just created the file; the last writer wins.
                Err(cause) if Errno::from_io_error(&cause) == Some(Errno::EXIST) => {
                    self.open_to_write(path, OFlags::empty())?.1.mode & INHERITED_MODE
                }
                created => return created,
            },
            Err(cause) => return Err(cause),
        };
        self.replace_by(path, |file| file.write_all(data), mode).map(drop)
    }

    /// Creates a new file and moves it over the file at `path`. Returns the open new file.
    fn replace_by(
        &self,
        path: &RunPath,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
        mode: u32,
    ) -> io::Result<File> {
        let folder = self.staging_folder(path)?;
        let (staged, mut file) = folder.create(path)?;
        fill(&mut file)?;
        set_mode(&file, mode)?;
        self.rename(&staged, path)?;
        Ok(file)
    }

    /// Creates a file with the given content. Fails if the file exists. The file appears
    /// atomically, after its content has been synced to disk.
    ///
    /// If the file system does not support unnamed files, the file is written in a staging folder
    /// and moved.
    pub(crate) fn create(&self, path: &RunPath, data: &[u8], mode: Option<u32>) -> io::Result<()> {
        let (parent, name) = self.jail.parent(path)?;
        let fill = |file: &mut File| -> io::Result<()> {
            file.write_all(data)?;
            mode.map_or(Ok(()), |mode| set_mode(file, mode))?;
            Ok(rustix::fs::fsync(&*file)?)
        };
        if let Some(mut file) = unnamed_file(&parent)? {
            fill(&mut file)?;
            match link_unnamed(&file, &parent, name) {
                // Some sandboxes do not let a process link its open files.
                Err(cause) if Errno::from_io_error(&cause) != Some(Errno::EXIST) => {}
                linked => return linked,
            }
        }
        let folder = self.staging_folder(path)?;
        let (staged, mut file) = folder.create(path)?;
        fill(&mut file)?;
        self.rename_new(&staged, path)
    }

    /// Appends to a file in one write, so that concurrent appends lose nothing. Creates the file if
    /// it does not exist.
    pub(crate) fn append(&self, path: &RunPath, data: &[u8]) -> io::Result<()> {
        append_in_one_write(&self.open_in_place(path, OFlags::APPEND)?, data)
    }

    /// Writes to a file at an offset. Creates the file if it does not exist.
    pub(crate) fn write_at(&self, path: &RunPath, offset: u64, data: &[u8]) -> io::Result<()> {
        self.open_in_place(path, OFlags::empty())?.write_all_at(data, offset)
    }

    /// Truncates a file, or extends it with zeros.
    pub(crate) fn truncate(&self, path: &RunPath, size: u64) -> io::Result<()> {
        self.open_in_place(path, OFlags::empty())?.set_len(size)
    }

    /// Sets a file's modification time.
    pub(crate) fn set_modified(&self, path: &RunPath, time: SystemTime) -> io::Result<()> {
        self.open_in_place(path, OFlags::empty())?.set_modified(time)
    }

    /// Creates an empty file. Fails if `path` exists.
    pub(crate) fn create_empty(&self, path: &RunPath) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | NO_SIDE_EFFECTS;
        self.jail.open_entry(path, flags, NEW_FILE).map(drop)
    }

    /// Creates a link. Fails if `path` exists.
    pub(crate) fn link(&self, path: &RunPath, target: &str) -> io::Result<()> {
        let (parent, name) = self.jail.parent(path)?;
        Ok(rustix::fs::symlinkat(target, &parent, name)?)
    }

    /// Creates a folder unless it exists. Its parent folder must exist.
    pub(crate) fn create_folder(&self, path: &RunPath) -> io::Result<()> {
        let (parent, name) = self.jail.parent(path)?;
        match rustix::fs::mkdirat(&parent, name, NEW_FOLDER) {
            Err(Errno::EXIST) => match self.entry(path)? {
                EntryInfo::Folder { .. } => Ok(()),
                _ => Err(Errno::EXIST.into()),
            },
            created => Ok(created?),
        }
    }

    /// Removes a file, a link or an empty folder.
    pub(crate) fn remove(&self, path: &RunPath, entry: &EntryInfo) -> io::Result<()> {
        let (parent, name) = self.jail.parent(path)?;
        let flags = if let EntryInfo::Folder { .. } = entry {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        Ok(rustix::fs::unlinkat(&parent, name, flags)?)
    }

    /// Moves an entry and replaces any entry at `to`. The operating system's rules for renaming
    /// apply.
    pub(crate) fn rename(&self, from: &RunPath, to: &RunPath) -> io::Result<()> {
        let ((old, from), (new, to)) = (self.jail.parent(from)?, self.jail.parent(to)?);
        Ok(rustix::fs::renameat(&old, from, &new, to)?)
    }

    /// Moves an entry. Fails if `to` exists.
    ///
    /// If the file system cannot do this in one operation, a file is linked at `to` and then
    /// unlinked at `from`, and a folder is moved after a check that `to` does not exist.
    pub(crate) fn rename_new(&self, from: &RunPath, to: &RunPath) -> io::Result<()> {
        let ((old, from), (new, to)) = (self.jail.parent(from)?, self.jail.parent(to)?);
        match rustix::fs::renameat_with(&old, from, &new, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            renamed => return Ok(renamed?),
        }
        if meta_at(&old, from)?.kind != rustix::fs::FileType::Directory {
            rustix::fs::linkat(&old, from, &new, to, AtFlags::empty())?;
            return Ok(rustix::fs::unlinkat(&old, from, AtFlags::empty())?);
        }
        match meta_at(&new, to) {
            Ok(_) => Err(Errno::EXIST.into()),
            Err(cause) if is_absent(&cause) => Ok(rustix::fs::renameat(&old, from, &new, to)?),
            Err(cause) => Err(cause),
        }
    }

    /// Exchanges two entries atomically.
    pub(crate) fn exchange(&self, one: &RunPath, other: &RunPath) -> io::Result<()> {
        let ((a, one), (b, other)) = (self.jail.parent(one)?, self.jail.parent(other)?);
        Ok(rustix::fs::renameat_with(&a, one, &b, other, RenameFlags::EXCHANGE)?)
    }

    /// Flushes a folder's list of entries to disk. Does nothing on file systems that do not support
    /// this.
    pub(crate) fn sync_folder(&self, path: &RunPath) -> io::Result<()> {
        match rustix::fs::fsync(self.jail.listing(path)?) {
            Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            synced => Ok(synced?),
        }
    }

    /// Returns the permissions that a file's replacement inherits, or `None` if the file does not
    /// exist.
    pub(crate) fn mode(&self, path: &RunPath) -> io::Result<Option<u32>> {
        Ok(self.meta(path)?.map(|meta| meta.mode & INHERITED_MODE))
    }

    /// Opens an existing regular file for writing.
    pub(crate) fn open_to_write(
        &self,
        path: &RunPath,
        extra: OFlags,
    ) -> io::Result<(OwnedFd, Meta)> {
        let file =
            self.jail.open_entry(path, OFlags::WRONLY | NO_SIDE_EFFECTS | extra, Mode::empty())?;
        let meta = regular_file_meta(&file)?;
        Ok((file, meta))
    }

    /// Opens a regular file to change it in place. Creates the file if it does not exist. A file
    /// with several hard links, which may be outside the base, is first replaced with a copy, so
    /// that the other names keep the old content.
    pub(crate) fn open_in_place(&self, path: &RunPath, extra: OFlags) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | NO_SIDE_EFFECTS | extra;
        let file = self.jail.open_entry(path, flags, NEW_FILE)?;
        let meta = regular_file_meta(&file)?;
        if meta.links <= 1 {
            return Ok(file.into());
        }
        let shared = File::from(self.jail.open_entry(
            path,
            OFlags::RDONLY | NO_SIDE_EFFECTS,
            Mode::empty(),
        )?);
        regular_file_meta(&shared)?;
        let copy = |file: &mut File| io::copy(&mut shared.take(meta.size), file).map(drop);
        self.replace_by(path, copy, meta.mode & INHERITED_MODE)?;
        Ok(self.open_to_write(path, extra)?.0.into())
    }
}

/// Appends to a file that was opened with `O_APPEND`, in one write.
pub(crate) fn append_in_one_write(file: &File, data: &[u8]) -> io::Result<()> {
    let mut file = file;
    // A write is partial only if the disk is full or a limit is reached. Writing the rest then
    // fails with an error that states the reason.
    file.write_all(data)
}

pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
}

/// Creates an unnamed file in a folder. Returns `None` if the file system does not support unnamed
/// files.
fn unnamed_file(folder: impl AsFd) -> io::Result<Option<File>> {
    #[cfg(target_os = "linux")]
    match rustix::fs::openat(
        folder,
        ".",
        OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC,
        NEW_FILE,
    ) {
        Ok(file) => return Ok(Some(file.into())),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
        Err(cause) => return Err(cause.into()),
    }
    Ok(None)
}

/// Links an unnamed file into a folder as `name`. Fails if the name exists.
fn link_unnamed(file: &File, folder: impl AsFd, name: &str) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let handle = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, handle, &folder, name, AtFlags::SYMLINK_FOLLOW) {
        // Without `/proc`, a process with permission to read every file can link the handle
        // directly.
        #[cfg(target_os = "linux")]
        Err(Errno::NOENT) => Ok(rustix::fs::linkat(file, "", &folder, name, AtFlags::EMPTY_PATH)?),
        linked => Ok(linked?),
    }
}

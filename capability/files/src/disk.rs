//! Writing to the base: each operation in the folder that holds the entry, by the entry's own name, and through no link.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::base::{Base, Found};
use super::jail::{Meta, PLAIN, is_absent, meta_at, plain_meta};
use super::path::RunPath;

/// The permissions that are carried from one file to the next: not those that make a program run as somebody else.
pub(super) const MODE: u32 = 0o777;
/// The permissions of a new file and of a new folder, less the process's mask.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);
const NEW_FOLDER: Mode = Mode::from_raw_mode(0o777);

impl Base {
    /// Puts a whole file in place at once. The file that is there keeps its permissions, and must be one that may be written.
    pub(super) fn replace(&self, path: &RunPath, data: &[u8]) -> io::Result<()> {
        let held = match self.open_to_write(path, OFlags::empty()) {
            Ok((_, meta)) => meta.mode & MODE,
            Err(cause) if is_absent(&cause) => match self.create(path, data, None) {
                // Somebody else made it meanwhile; the last to write wins.
                Err(cause) if Errno::from_io_error(&cause) == Some(Errno::EXIST) => {
                    self.open_to_write(path, OFlags::empty())?.1.mode & MODE
                }
                created => return created,
            },
            Err(cause) => return Err(cause),
        };
        self.replace_by(path, |file| file.write_all(data), held).map(drop)
    }

    /// Makes a new file and moves it over the one at `path`; gives the new one, open.
    fn replace_by(
        &self,
        path: &RunPath,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
        mode: u32,
    ) -> io::Result<File> {
        let working = self.working(path)?;
        let (staged, mut file) = working.create(path)?;
        fill(&mut file)?;
        set_mode(&file, mode)?;
        self.rename(&staged, path)?;
        Ok(file)
    }

    /// Makes a file with this content where nothing is. It appears as a whole, and its content is on the disk by then.
    ///
    /// Where the file system has no files without a name, it is written under one of the host's own and linked.
    pub(super) fn create(&self, path: &RunPath, data: &[u8], mode: Option<u32>) -> io::Result<()> {
        let (parent, name) = self.jail.parent(path)?;
        let fill = |file: &mut File| -> io::Result<()> {
            file.write_all(data)?;
            mode.map_or(Ok(()), |mode| set_mode(file, mode))?;
            Ok(rustix::fs::fsync(&*file)?)
        };
        if let Some(mut file) = nameless(&parent)? {
            fill(&mut file)?;
            match link_nameless(&file, &parent, name) {
                // Some sandboxes do not let a process name its open files.
                Err(cause) if Errno::from_io_error(&cause) != Some(Errno::EXIST) => {}
                linked => return linked,
            }
        }
        let working = self.working(path)?;
        let (staged, mut file) = working.create(path)?;
        fill(&mut file)?;
        self.rename_new(&staged, path)
    }

    /// Adds to the end of a file in one write, so that of several who add nothing is lost; the file is made where it is not there.
    pub(super) fn append(&self, path: &RunPath, data: &[u8]) -> io::Result<()> {
        append_whole(&self.open_in_place(path, OFlags::APPEND)?, data)
    }

    /// Writes at an offset of a file, which is made where it is not there.
    pub(super) fn write_at(&self, path: &RunPath, offset: u64, data: &[u8]) -> io::Result<()> {
        self.open_in_place(path, OFlags::empty())?.write_all_at(data, offset)
    }

    /// Cuts a file, or fills it up with zeros.
    pub(super) fn truncate(&self, path: &RunPath, size: u64) -> io::Result<()> {
        self.open_in_place(path, OFlags::empty())?.set_len(size)
    }

    /// Sets when a file's content changed last.
    pub(super) fn set_modified(&self, path: &RunPath, time: SystemTime) -> io::Result<()> {
        self.open_in_place(path, OFlags::empty())?.set_modified(time)
    }

    /// Makes an empty file where nothing is.
    pub(super) fn create_empty(&self, path: &RunPath) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | PLAIN;
        self.jail.open_entry(path, flags, NEW_FILE).map(drop)
    }

    /// Makes a link where nothing is.
    pub(super) fn link(&self, path: &RunPath, target: &str) -> io::Result<()> {
        let (parent, name) = self.jail.parent(path)?;
        Ok(rustix::fs::symlinkat(target, &parent, name)?)
    }

    /// Makes a folder in one that is there; one that is there already is fine.
    pub(super) fn create_folder(&self, path: &RunPath) -> io::Result<()> {
        let (parent, name) = self.jail.parent(path)?;
        match rustix::fs::mkdirat(&parent, name, NEW_FOLDER) {
            Err(Errno::EXIST) => match self.look(path)? {
                Found::Folder { .. } => Ok(()),
                _ => Err(Errno::EXIST.into()),
            },
            made => Ok(made?),
        }
    }

    /// Removes one entry: a folder only where it is empty.
    pub(super) fn remove(&self, path: &RunPath, found: &Found) -> io::Result<()> {
        let (parent, name) = self.jail.parent(path)?;
        let flags = if let Found::Folder { .. } = found { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        Ok(rustix::fs::unlinkat(&parent, name, flags)?)
    }

    /// Moves an entry over what is at `to`, by the operating system's rules.
    pub(super) fn rename(&self, from: &RunPath, to: &RunPath) -> io::Result<()> {
        let ((old, from), (new, to)) = (self.jail.parent(from)?, self.jail.parent(to)?);
        Ok(rustix::fs::renameat(&old, from, &new, to)?)
    }

    /// Moves an entry to where nothing is.
    ///
    /// Where the file system cannot promise that, a file is linked and then unlinked, and a folder is looked for first.
    pub(super) fn rename_new(&self, from: &RunPath, to: &RunPath) -> io::Result<()> {
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

    /// Exchanges two entries in one step.
    pub(super) fn exchange(&self, one: &RunPath, other: &RunPath) -> io::Result<()> {
        let ((a, one), (b, other)) = (self.jail.parent(one)?, self.jail.parent(other)?);
        Ok(rustix::fs::renameat_with(&a, one, &b, other, RenameFlags::EXCHANGE)?)
    }

    /// Waits until the names of a folder are on the disk. Some file systems cannot say so.
    pub(super) fn sync_folder(&self, path: &RunPath) -> io::Result<()> {
        match rustix::fs::fsync(self.jail.listing(path)?) {
            Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            synced => Ok(synced?),
        }
    }

    /// The permissions of a file, as they are carried along.
    pub(super) fn mode(&self, path: &RunPath) -> io::Result<Option<u32>> {
        Ok(self.meta(path)?.map(|meta| meta.mode & MODE))
    }

    /// Opens a plain file that is there to be written.
    pub(super) fn open_to_write(&self, path: &RunPath, more: OFlags) -> io::Result<(OwnedFd, Meta)> {
        let file = self.jail.open_entry(path, OFlags::WRONLY | PLAIN | more, Mode::empty())?;
        let meta = plain_meta(&file)?;
        Ok((file, meta))
    }

    /// Opens a plain file to be changed where it is; it is made where it is not there. A file that has other names, which may lie
    /// outside of the base, is first replaced by a copy of its own, so that they keep the old content.
    pub(super) fn open_in_place(&self, path: &RunPath, more: OFlags) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | PLAIN | more;
        let file = self.jail.open_entry(path, flags, NEW_FILE)?;
        let meta = plain_meta(&file)?;
        if meta.links <= 1 {
            return Ok(file.into());
        }
        let shared = File::from(self.jail.open_entry(path, OFlags::RDONLY | PLAIN, Mode::empty())?);
        plain_meta(&shared)?;
        let copy = |file: &mut File| io::copy(&mut shared.take(meta.size), file).map(drop);
        self.replace_by(path, copy, meta.mode & MODE)?;
        Ok(self.open_to_write(path, more)?.0.into())
    }
}

/// Adds to the end of a file that was opened for that, in one write.
pub(super) fn append_whole(file: &File, data: &[u8]) -> io::Result<()> {
    let mut file = file;
    // A write is cut short only where the disk is full or a limit is met; what is left is then tried, and fails with the reason.
    file.write_all(data)
}

pub(super) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
}

/// Opens a new file in a folder that has no name there, where the file system has such files.
fn nameless(folder: impl AsFd) -> io::Result<Option<File>> {
    #[cfg(target_os = "linux")]
    match rustix::fs::openat(folder, ".", OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC, NEW_FILE) {
        Ok(file) => return Ok(Some(file.into())),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
        Err(cause) => return Err(cause.into()),
    }
    Ok(None)
}

/// Gives a file without a name its first one, where nothing has it.
fn link_nameless(file: &File, folder: impl AsFd, name: &str) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, itself, &folder, name, AtFlags::SYMLINK_FOLLOW) {
        // Without `/proc`, a process that may read any file can name it by its handle.
        #[cfg(target_os = "linux")]
        Err(Errno::NOENT) => Ok(rustix::fs::linkat(file, "", &folder, name, AtFlags::EMPTY_PATH)?),
        linked => Ok(linked?),
    }
}

/// Appends a line to a file of the host's own in a workdir, such as the trace, in one write. What stands there instead of a plain file is
/// not written to: a link that came with the workdir would lead anywhere.
///
/// # Errors
/// Where it is no plain file, or cannot be written.
pub fn append_line(path: &Path, line: &[u8]) -> io::Result<()> {
    own_file(path, std::fs::OpenOptions::new().create(true).append(true))?.write_all(line)
}

/// Opens a file of the host's own in a workdir for reading and appending; it is made if it is absent. A link in its place is not followed.
///
/// # Errors
/// If it is not a plain file, or cannot be opened.
pub fn own_lines(path: &Path) -> io::Result<std::fs::File> {
    own_file(path, std::fs::OpenOptions::new().create(true).read(true).append(true))
}

/// Opens a file of the host's own in a workdir for reading; `None` if it is absent. A link in its place is not followed.
///
/// # Errors
/// If it is not a plain file, or cannot be opened.
pub fn read_own(path: &Path) -> io::Result<Option<std::fs::File>> {
    match own_file(path, std::fs::OpenOptions::new().read(true)) {
        Err(cause) if is_absent(&cause) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Cuts a last line off that has no line break, because a process was stopped within it. Nothing is done to a file that is absent.
///
/// # Errors
/// If it is not a plain file, or cannot be changed.
pub fn cut_torn_line(path: &Path) -> io::Result<()> {
    const CHUNK: u64 = 1 << 16;
    let file = match own_file(path, std::fs::OpenOptions::new().read(true).write(true)) {
        Err(cause) if is_absent(&cause) => return Ok(()),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    let mut end = length;
    while end > 0 {
        let from = end.saturating_sub(CHUNK);
        let mut chunk = vec![0; usize::try_from(end - from).unwrap_or(0)];
        file.read_exact_at(&mut chunk, from)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            end = from + at as u64 + 1;
            break;
        }
        end = from;
    }
    if end < length { file.set_len(end) } else { Ok(()) }
}

/// Opens a file of the host's own, where a plain one stands there.
fn own_file(path: &Path, how: &mut std::fs::OpenOptions) -> io::Result<File> {
    let flags = (PLAIN & !OFlags::CLOEXEC).bits().cast_signed();
    let file = how.custom_flags(flags).open(path)?;
    plain_meta(&file)?;
    Ok(file)
}

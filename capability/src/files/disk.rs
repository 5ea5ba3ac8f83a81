//! Writing to the base: every file through one handle, opened once, in a folder that is held open.

use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, MetadataExt, OpenOptions, Permissions, PermissionsExt};
use rustix::io::Errno;

use super::base::{Base, Found, is_absent, plain, plain_meta};
use super::path::RunPath;

/// The permissions that are carried from one file to the next: not those that make a program run as somebody else.
const MODE: u32 = 0o777;

impl Base {
    /// Puts a whole file in place at once: written beside it, then moved over it. The file that is there keeps its
    /// permissions, and must be one that may be written; else the new one gets `mode` where given.
    pub(super) fn replace(&self, path: &RunPath, data: &[u8], mode: Option<u32>) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        let held = match parent.open_with(name, plain(OpenOptions::new().write(true))) {
            Ok(file) => Some(plain_meta(&file)?.mode() & MODE),
            Err(cause) if is_absent(&cause) => None,
            Err(cause) => return Err(cause),
        };
        let mut copy = Beside::create(&parent)?;
        copy.file.write_all(data)?;
        copy.finish(name, held.or(mode))
    }

    /// Adds to the end of a file, which is made where it is not there.
    pub(super) fn append(&self, path: &RunPath, data: &[u8]) -> io::Result<()> {
        let file = self.open_in_place(path)?;
        let end = file.metadata()?.len();
        file.write_all_at(data, end)
    }

    /// Writes at an offset of a file, which is made where it is not there.
    pub(super) fn write_at(&self, path: &RunPath, offset: u64, data: &[u8]) -> io::Result<()> {
        self.open_in_place(path)?.write_all_at(data, offset)
    }

    /// Cuts a file, or fills it up with zeros.
    pub(super) fn truncate(&self, path: &RunPath, size: u64) -> io::Result<()> {
        self.open_in_place(path)?.set_len(size)
    }

    /// Sets when a file's content changed last.
    pub(super) fn set_modified(&self, path: &RunPath, time: SystemTime) -> io::Result<()> {
        self.open_in_place(path)?.set_modified(time)
    }

    /// Makes a link, in place of what is there.
    pub(super) fn link(&self, path: &RunPath, target: &str) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        let beside = beside_name()?;
        parent.symlink_contents(target, &beside)?;
        parent.rename(&beside, &parent, name).inspect_err(|_| {
            let _ = parent.remove_file(&beside);
        })
    }

    /// Makes a folder in one that is there; one that is there already is fine.
    pub(super) fn create_folder(&self, path: &RunPath) -> io::Result<()> {
        match self.dir.create_dir(path.in_base()) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => match self.look(path)? {
                Found::Folder { .. } => Ok(()),
                _ => Err(cause),
            },
            made => made,
        }
    }

    /// Removes one entry: a folder only where it is empty.
    pub(super) fn remove(&self, path: &RunPath, found: &Found) -> io::Result<()> {
        match found {
            Found::Folder { .. } => self.dir.remove_dir(path.in_base()),
            _ => self.dir.remove_file(path.in_base()),
        }
    }

    /// Moves an entry over what is at `to`, by the operating system's rules.
    pub(super) fn rename(&self, from: &RunPath, to: &RunPath) -> io::Result<()> {
        self.dir.rename(from.in_base(), &self.dir, to.in_base())
    }

    /// The permissions of a file, as they are carried along.
    pub(super) fn mode(&self, path: &RunPath) -> io::Result<Option<u32>> {
        Ok(self.meta(path)?.map(|meta| meta.mode() & MODE))
    }

    fn parent<'a>(&self, path: &'a RunPath) -> io::Result<(Dir, &'a str)> {
        let (parent, name) = path.split().ok_or_else(|| io::Error::from(Errno::ISDIR))?;
        let parent = if parent.is_top() { self.dir.try_clone()? } else { self.dir.open_dir(parent.in_base())? };
        Ok((parent, name))
    }

    /// Opens a plain file to be changed where it is. A file that has other names, which may lie outside of the base, is
    /// first replaced by a copy of its own, so that they keep the old content.
    pub(super) fn open_in_place(&self, path: &RunPath) -> io::Result<std::fs::File> {
        let (parent, name) = self.parent(path)?;
        let file = match parent.open_with(name, plain(OpenOptions::new().write(true))) {
            Err(cause) if is_absent(&cause) => {
                parent.open_with(name, plain(OpenOptions::new().write(true).create_new(true)))?
            }
            opened => opened?,
        };
        let meta = plain_meta(&file)?;
        if meta.nlink() <= 1 {
            return Ok(file.into_std());
        }
        let shared = parent.open_with(name, plain(OpenOptions::new().read(true)))?;
        plain_meta(&shared)?;
        let mut copy = Beside::create(&parent)?;
        io::copy(&mut shared.take(meta.len()), &mut copy.file)?;
        let kept = copy.file.try_clone()?;
        copy.finish(name, Some(meta.mode() & MODE))?;
        Ok(kept.into_std())
    }
}

/// Appends a line to a file of the host's own in a workdir, such as the trace, in one write. What stands there instead of a plain file is
/// not written to: a link that came with the workdir would lead anywhere.
///
/// # Errors
/// Where it is no plain file, or cannot be written.
pub fn append_line(path: &Path, line: &[u8]) -> io::Result<()> {
    own_file(path, OpenOptions::new().create(true).append(true))?.write_all(line)
}

/// Opens a file of the host's own in a workdir for reading and appending; it is made if it is absent. A link in its place is not followed.
///
/// # Errors
/// If it is not a plain file, or cannot be opened.
pub fn own_lines(path: &Path) -> io::Result<std::fs::File> {
    Ok(own_file(path, OpenOptions::new().create(true).read(true).append(true))?.into_std())
}

/// Opens a file of the host's own in a workdir for reading; `None` if it is absent. A link in its place is not followed.
///
/// # Errors
/// If it is not a plain file, or cannot be opened.
pub fn read_own(path: &Path) -> io::Result<Option<std::fs::File>> {
    match own_file(path, OpenOptions::new().read(true)) {
        Err(cause) if is_absent(&cause) => Ok(None),
        opened => Ok(Some(opened?.into_std())),
    }
}

/// Cuts a last line off that has no line break, because a process was stopped within it. Nothing is done to a file that is absent.
///
/// # Errors
/// If it is not a plain file, or cannot be changed.
pub fn cut_torn_line(path: &Path) -> io::Result<()> {
    const CHUNK: u64 = 1 << 16;
    let file = match own_file(path, OpenOptions::new().read(true).write(true)) {
        Err(cause) if is_absent(&cause) => return Ok(()),
        opened => opened?.into_std(),
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
fn own_file(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::ISDIR.into()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = Dir::open_ambient_dir(folder, ambient_authority())?;
    let file = folder.open_with(name, plain(how))?;
    plain_meta(&file)?;
    Ok(file)
}

/// A new file beside the one that it will replace; removed again unless it is finished.
struct Beside<'a> {
    folder: &'a Dir,
    name: String,
    file: File,
    finished: bool,
}

impl<'a> Beside<'a> {
    fn create(folder: &'a Dir) -> io::Result<Beside<'a>> {
        let name = beside_name()?;
        let file = folder.open_with(&name, plain(OpenOptions::new().write(true).create_new(true)))?;
        Ok(Beside { folder, name, file, finished: false })
    }

    fn finish(mut self, name: &str, mode: Option<u32>) -> io::Result<()> {
        if let Some(mode) = mode {
            self.file.set_permissions(Permissions::from_mode(mode))?;
        }
        self.folder.rename(&self.name, self.folder, name)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        if !self.finished {
            let _ = self.folder.remove_file(&self.name);
        }
    }
}

fn beside_name() -> io::Result<String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(format!(".wattle-{:016x}.tmp", u64::from_le_bytes(random)))
}

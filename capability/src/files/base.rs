//! The workdir: looked at and read through a directory handle that nothing leads out of.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileTypeExt, Metadata, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::EntryKind;
use super::error::FilesError;
use super::path::RunPath;

/// A folder of the host, jailed: names are resolved beneath its open handle by the operating system, so that neither
/// `..` nor a link, nor one that is exchanged between a check and its use, leads out of it.
pub struct Base {
    pub(super) dir: Dir,
    /// The folder's own path where it is known, to tell absolute links that stay inside.
    top: Option<PathBuf>,
}

/// What stands at a path, not following a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Absent,
    File { size: u64, modified: Option<SystemTime> },
    Folder { modified: Option<SystemTime> },
    Link(String),
    Other(&'static str),
}

impl Found {
    pub(super) fn kind(&self) -> Option<EntryKind> {
        match self {
            Found::Absent => None,
            Found::File { .. } => Some(EntryKind::File),
            Found::Folder { .. } => Some(EntryKind::Folder),
            Found::Link(_) => Some(EntryKind::Link),
            Found::Other(_) => Some(EntryKind::Other),
        }
    }

    pub(super) fn modified(&self) -> Option<SystemTime> {
        match self {
            Found::File { modified, .. } | Found::Folder { modified } => *modified,
            _ => None,
        }
    }

    pub(super) fn size(&self) -> u64 {
        if let Found::File { size, .. } = self { *size } else { 0 }
    }
}

/// One entry of a folder of the base.
pub(super) struct Child {
    /// The name; where it is `foreign`, with replacement characters.
    pub(super) name: String,
    /// Whether the name is not UTF-8.
    pub(super) foreign: bool,
    pub(super) found: Found,
    pub(super) meta: Metadata,
}

impl Base {
    pub(super) fn open(path: &Path) -> Result<Base, FilesError> {
        let open = || -> io::Result<Base> {
            let top = std::fs::canonicalize(path)?;
            let dir = Dir::open_ambient_dir(&top, ambient_authority())?;
            Ok(Base { dir, top: Some(top) })
        };
        open().map_err(|cause| FilesError::open_base(path, cause))
    }

    /// The rest of an absolute link's target below the top, where it lies there by the top's own spelling.
    pub(super) fn inside<'a>(&self, target: &'a str) -> Option<&'a str> {
        Path::new(target).strip_prefix(self.top.as_ref()?).ok()?.to_str()
    }

    /// What stands at `path`. Below a file, nothing does.
    pub(super) fn look(&self, path: &RunPath) -> io::Result<Found> {
        match self.meta(path)? {
            None => Ok(Found::Absent),
            Some(meta) => Ok(found(&meta, || self.dir.read_link_contents(path.in_base()))),
        }
    }

    pub(super) fn meta(&self, path: &RunPath) -> io::Result<Option<Metadata>> {
        let looked = if path.is_top() { self.dir.dir_metadata() } else { self.dir.symlink_metadata(path.in_base()) };
        match looked {
            Ok(meta) => Ok(Some(meta)),
            Err(cause) if is_absent(&cause) => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    /// Opens a plain file for reading. Never waits: what is no plain file by now is opened without blocking, and refused.
    pub(super) fn open_file(&self, path: &RunPath) -> io::Result<(File, Metadata)> {
        let file = self.dir.open_with(path.in_base(), plain(OpenOptions::new().read(true)))?;
        plain_meta(&file).map(|meta| (file, meta))
    }

    /// The folder's entries that `shows` lets through by their names, unsorted; `None` where there are more than `most`.
    pub(super) fn list(
        &self,
        path: &RunPath,
        most: usize,
        shows: impl Fn(&str) -> bool,
    ) -> io::Result<Option<Vec<Child>>> {
        let dir = if path.is_top() { self.dir.try_clone()? } else { self.dir.open_dir(path.in_base())? };
        let mut children = Vec::new();
        for entry in dir.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| !shows(name)) {
                continue;
            }
            let meta = match entry.metadata() {
                Ok(meta) => meta,
                // Removed by somebody else since the folder was read.
                Err(cause) if is_absent(&cause) => continue,
                Err(cause) => return Err(cause),
            };
            if children.len() == most {
                return Ok(None);
            }
            let found = match name.to_str() {
                Some(_) => found(&meta, || dir.read_link_contents(&name)),
                None => Found::Other("an entry whose name is not UTF-8"),
            };
            let foreign = name.to_str().is_none();
            children.push(Child { name: name.to_string_lossy().into_owned(), foreign, found, meta });
        }
        Ok(Some(children))
    }
}

impl From<Dir> for Base {
    /// Takes a folder that is open already. Absolute links in it are refused, since its own path is not known.
    fn from(dir: Dir) -> Base {
        Base { dir, top: None }
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").finish_non_exhaustive()
    }
}

/// Adds what keeps an open from following a last link, from waiting for a fifo's other end, and from taking a terminal.
pub(super) fn plain(options: &mut OpenOptions) -> &OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed())
}

/// The metadata of an open file, where it is a plain one.
pub(super) fn plain_meta(file: &File) -> io::Result<Metadata> {
    let meta = file.metadata()?;
    if meta.is_file() {
        Ok(meta)
    } else if meta.is_dir() {
        Err(Errno::ISDIR.into())
    } else {
        Err(Errno::NXIO.into())
    }
}

/// Whether nothing is there: no entry, or a file where a folder on the way should be.
pub(super) fn is_absent(cause: &io::Error) -> bool {
    matches!(Errno::from_io_error(cause), Some(Errno::NOENT | Errno::NOTDIR))
}

fn found(meta: &Metadata, target: impl FnOnce() -> io::Result<PathBuf>) -> Found {
    let modified = meta.modified().ok().map(cap_std::time::SystemTime::into_std);
    let kind = meta.file_type();
    if kind.is_file() {
        Found::File { size: meta.len(), modified }
    } else if kind.is_dir() {
        Found::Folder { modified }
    } else if kind.is_symlink() {
        match target().map(|target| target.into_os_string().into_string()) {
            Ok(Ok(target)) => Found::Link(target),
            _ => Found::Other("a link that cannot be read"),
        }
    } else if kind.is_fifo() {
        Found::Other("a fifo")
    } else if kind.is_socket() {
        Found::Other("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        Found::Other("a device")
    } else {
        Found::Other("neither a file nor a folder")
    }
}

//! The workdir: looked at and read through a directory handle that nothing leads out of.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Dir, FileType, Mode, OFlags};

use super::EntryKind;
use super::error::FilesError;
use super::host_files::Kept;
use super::jail::{Jail, Meta, PLAIN, is_absent, plain_meta};
use super::path::RunPath;
use super::stamp::FileStamp;

/// A folder of the host, jailed: names are resolved beneath its open handle by the operating system, so that neither
/// `..` nor a link, nor one that is exchanged between a check and its use, leads out of it.
pub struct Base {
    pub(super) jail: Jail,
    /// The folder's own path, to tell absolute links that stay inside.
    pub(super) top: PathBuf,
    pub(super) kept: Kept,
    recovered: Vec<String>,
}

/// What stands at a path, not following a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Absent,
    /// A plain file; its version where it is one of the base.
    File {
        size: u64,
        modified: Option<SystemTime>,
        version: Option<FileStamp>,
    },
    Folder {
        modified: Option<SystemTime>,
    },
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
    pub(super) meta: Meta,
}

impl Base {
    pub(super) fn open(path: &Path) -> Result<Base, FilesError> {
        let open = || -> io::Result<Base> {
            let top = std::fs::canonicalize(path)?;
            Ok(Base { jail: Jail::open(&top)?, top, kept: Kept::default(), recovered: Vec::new() })
        };
        let mut base = open().map_err(|cause| FilesError::open_base(path, cause))?;
        base.recovered = base.recover();
        Ok(base)
    }

    /// Returns what a user has to know about changes that another process had begun here when it was killed: each is ended by now.
    #[must_use]
    pub fn recovered(&self) -> &[String] {
        &self.recovered
    }

    /// The rest of an absolute link's target below the top, where it lies there by the top's own spelling.
    pub(super) fn inside<'a>(&self, target: &'a str) -> Option<&'a str> {
        Path::new(target).strip_prefix(&self.top).ok()?.to_str()
    }

    /// What stands at `path`. Below a file, nothing does, and what is hidden is not there.
    pub(super) fn look(&self, path: &RunPath) -> io::Result<Found> {
        match self.meta(path)? {
            None => Ok(Found::Absent),
            Some(meta) => Ok(found(&meta, || self.link_target(path))),
        }
    }

    pub(super) fn link_target(&self, path: &RunPath) -> io::Result<Vec<u8>> {
        let (parent, name) = self.jail.parent(path)?;
        Ok(rustix::fs::readlinkat(&parent, name, Vec::new())?.into_bytes())
    }

    pub(super) fn meta(&self, path: &RunPath) -> io::Result<Option<Meta>> {
        match self.jail.meta(path) {
            Ok(meta) => Ok(Some(meta).filter(|meta| !self.kept.hides(meta))),
            Err(cause) if is_absent(&cause) => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    /// Opens a plain file for reading. Never waits: what is no plain file by now is opened without blocking, and refused.
    pub(super) fn open_file(&self, path: &RunPath) -> io::Result<(File, Meta)> {
        let file = self.jail.open_entry(path, OFlags::RDONLY | PLAIN, Mode::empty())?;
        let meta = plain_meta(&file)?;
        if self.kept.hides(&meta) { Err(rustix::io::Errno::NOENT.into()) } else { Ok((file.into(), meta)) }
    }

    /// The folder's entries that `shows` lets through by their names, unsorted; `None` where there are more than `most`.
    pub(super) fn list(
        &self,
        path: &RunPath,
        most: usize,
        shows: impl Fn(&str) -> bool,
    ) -> io::Result<Option<Vec<Child>>> {
        let mut folder = Dir::new(self.jail.listing(path)?)?;
        let mut children = Vec::new();
        // A hidden folder is listed by the host alone.
        let hides = |name: &str| path.join(name).is_ok_and(|path| self.kept.hides_path(&path));
        let hidden = self.kept.hides_path(path);
        while let Some(entry) = folder.read() {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            let (name, foreign) = match std::str::from_utf8(bytes) {
                Ok("." | "..") => continue,
                Ok(name) => (name.to_owned(), false),
                Err(_) => (String::from_utf8_lossy(bytes).into_owned(), true),
            };
            if !foreign && (!shows(&name) || (!hidden && hides(&name))) {
                continue;
            }
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            let meta: Meta = match rustix::fs::statat(folder.fd()?, entry.file_name(), flags) {
                Ok(meta) => meta.into(),
                Err(cause) if is_absent(&cause.into()) => continue,
                Err(cause) => return Err(cause.into()),
            };
            if self.kept.hides(&meta) {
                continue;
            }
            if children.len() == most {
                return Ok(None);
            }
            let found = if foreign {
                Found::Other("an entry whose name is not UTF-8")
            } else {
                let target = || Ok(rustix::fs::readlinkat(folder.fd()?, entry.file_name(), Vec::new())?.into_bytes());
                found(&meta, target)
            };
            children.push(Child { name, foreign, found, meta });
        }
        Ok(Some(children))
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").finish_non_exhaustive()
    }
}

fn found(meta: &Meta, target: impl FnOnce() -> io::Result<Vec<u8>>) -> Found {
    match meta.kind {
        FileType::RegularFile => {
            Found::File { size: meta.size, modified: meta.modified(), version: Some(FileStamp::of(meta)) }
        }
        FileType::Directory => Found::Folder { modified: meta.modified() },
        FileType::Symlink => match target().map(String::from_utf8) {
            Ok(Ok(target)) => Found::Link(target),
            _ => Found::Other("a link that cannot be read"),
        },
        FileType::Fifo => Found::Other("a fifo"),
        FileType::Socket => Found::Other("a socket"),
        FileType::BlockDevice | FileType::CharacterDevice => Found::Other("a device"),
        FileType::Unknown => Found::Other("neither a file nor a folder"),
    }
}

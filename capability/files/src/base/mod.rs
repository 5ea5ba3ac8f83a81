//! The workdir on disk. All access is relative to an open handle to the workdir's folder, so no
//! path leads out of the workdir.

mod on_disk;
pub(crate) mod primitives;
pub(crate) mod recover;
pub(crate) mod staging;
mod walk;
pub(crate) mod write;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::entry::EntryKind;
use crate::error::FilesError;
use crate::host_files::{HostFileRules, HostFiles, Owner, Refusal};
use crate::jail::{Jail, Meta, NO_SIDE_EFFECTS, is_absent, regular_file_meta};
use crate::path::{Intent, RunPath};
use crate::stamp::FileStamp;

/// A host folder that a run cannot leave. The operating system resolves names relative to the
/// folder's open handle, so neither `..` nor a link leads out, even if another process swaps in a
/// link between the check and the use of a path.
pub struct Base {
    pub(crate) jail: Jail,
    /// The path of the folder on the host, used to recognize absolute links that lead to an entry
    /// in the folder.
    top: PathBuf,
    pub(crate) host_files: HostFileRules,
    recovered: Vec<String>,
}

/// The entry at a path. If it is a link, the link is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntryInfo {
    Absent,
    /// A regular file, with its version if it is in the base.
    File {
        size: u64,
        modified: Option<SystemTime>,
        version: Option<FileStamp>,
    },
    Folder {
        modified: Option<SystemTime>,
    },
    Link(String),
    /// An entry that cannot be used, with a noun that describes it in error messages.
    Other(&'static str),
}

impl EntryInfo {
    pub(crate) fn kind(&self) -> Option<EntryKind> {
        match self {
            EntryInfo::Absent => None,
            EntryInfo::File { .. } => Some(EntryKind::File),
            EntryInfo::Folder { .. } => Some(EntryKind::Folder),
            EntryInfo::Link(_) => Some(EntryKind::Link),
            EntryInfo::Other(_) => Some(EntryKind::Other),
        }
    }

    pub(crate) fn modified(&self) -> Option<SystemTime> {
        match self {
            EntryInfo::File { modified, .. } | EntryInfo::Folder { modified } => *modified,
            _ => None,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        if let EntryInfo::File { size, .. } = self { *size } else { 0 }
    }
}

/// The description of an entry whose name is not UTF-8. Such an entry is listed and not used.
pub(crate) const NAME_NOT_UTF8: &str =
    "an entry whose name is not UTF-8 (`\\xe8` stands for a byte), which has to be renamed first";

/// An entry in a folder of the base.
pub(crate) struct Child {
    /// The name. A byte that is not UTF-8 is written as `\xe8`.
    pub(crate) name: String,
    /// If true, the name on disk is not UTF-8.
    pub(crate) not_utf8: bool,
    pub(crate) entry: EntryInfo,
    pub(crate) meta: Meta,
}

impl Base {
    /// Opens a folder, protects the host's own files in it from runs, and completes the changes
    /// that killed processes left unfinished.
    pub(crate) fn open(path: &Path, files: HostFiles) -> Result<Base, FilesError> {
        let open = || -> io::Result<Base> {
            let top = std::fs::canonicalize(path)?;
            let mut host_files = HostFileRules::new(files, &top);
            host_files.refresh();
            Ok(Base { jail: Jail::open(&top)?, top, host_files, recovered: Vec::new() })
        };
        let mut base = open().map_err(|cause| FilesError::open_base(path, cause))?;
        base.recovered = base.recover();
        Ok(base)
    }

    /// Checks that the folder is still at the path at which it was opened. Otherwise changes would be
    /// written to a folder that nobody finds, while other processes use another one.
    pub(crate) fn check_place(&self) -> Result<(), FilesError> {
        let is_same = match rustix::fs::stat(&self.top) {
            Ok(now) => self
                .jail
                .top_meta()
                .map_or(true, |top| top.identity() == Meta::from(now).identity()),
            Err(Errno::NOENT | Errno::NOTDIR) => false,
            // The folder may be somewhere that this process cannot see.
            Err(_) => true,
        };
        if is_same { Ok(()) } else { Err(FilesError::base_gone(&self.top)) }
    }

    /// Returns messages for the user about the changes in this base that killed processes left
    /// unfinished. These changes were completed or undone when the base was opened.
    #[must_use]
    pub fn recovered(&self) -> &[String] {
        &self.recovered
    }

    /// Returns an error if a run may not use the path for `intent`, because it names one of the
    /// host's own files or folders, or an entry in such a folder. Other names of these files and
    /// folders, such as mounts, are recognized by the inodes of the entries on the path.
    pub(crate) fn check_host_files(
        &self,
        path: &RunPath,
        intent: Intent,
    ) -> Result<(), FilesError> {
        if let Some(refusal) = self.host_files.refusal(path, intent) {
            return Err(FilesError::host_file(intent, &refusal));
        }
        let writes = intent == Intent::Write;
        if !writes && !self.host_files.hides_any() {
            return Ok(());
        }
        let steps = self.steps_on_disk(path);
        let name = path.as_str();
        let refused = |what: &str, hidden: bool| {
            let refusal = Refusal { name, what, hidden, in_folder: false };
            Err(FilesError::host_file(intent, &refusal))
        };
        for (_, identity) in &steps {
            match self.host_files.owner(*identity) {
                Some(Owner::Hidden) => return refused("another name of a hidden file", true),
                Some(Owner::Protected) if writes => {
                    return refused("a file of the host's own", false);
                }
                Some(Owner::Repository) if writes => return Err(FilesError::repository(path)),
                _ => {}
            }
        }
        for other in self.other_paths(path, &steps) {
            if let Some(Refusal { what, hidden, .. }) = self.host_files.refusal(&other, intent) {
                return refused(what, hidden);
            }
        }
        Ok(())
    }

    /// Checks that an entry contains none of the host's own files and is not on the path to one, so
    /// that it may be moved, removed or replaced.
    pub(crate) fn check_no_host_files(&self, entry: &RunPath) -> Result<(), FilesError> {
        for path in self.paths_of(entry) {
            if let Some(what) = self.host_files.passing(&path) {
                return Err(FilesError::leads_to_host_file(entry, what));
            }
            if let Some((file, what)) = self.host_files.below(&path) {
                return Err(FilesError::holds_host_file(entry, file, what));
            }
        }
        Ok(())
    }

    /// Checks that a new link at `path` would not be on the path to one of the host's own files,
    /// even if the file does not exist yet. Otherwise, the host would later follow the link to a
    /// file that a run wrote.
    pub(crate) fn check_leads_to_no_host_file(&self, path: &RunPath) -> Result<(), FilesError> {
        for other in self.paths_of(path) {
            let below = self.host_files.below(&other).map(|(_, what)| what);
            if let Some(what) = self.host_files.passing(&other).or(below) {
                return Err(FilesError::leads_to_host_file(path, what));
            }
        }
        Ok(())
    }

    /// Returns the existing entries on a path, outermost first, with their devices and inodes.
    fn steps_on_disk(&self, path: &RunPath) -> Vec<(RunPath, (u64, u64))> {
        let meta = |step: RunPath| Some((self.jail.meta(&step).ok()?.identity(), step));
        path.steps().map_while(meta).map(|(identity, step)| (step, identity)).collect()
    }

    /// Returns the other paths that lead to the same entry according to the rules for the host's
    /// own files. `steps` are the existing entries on the path.
    fn other_paths(&self, path: &RunPath, steps: &[(RunPath, (u64, u64))]) -> Vec<RunPath> {
        let mut others = Vec::new();
        for (step, identity) in steps {
            let places = self.host_files.places(*identity).filter(|place| *place != step);
            others.extend(places.filter_map(|place| path.relocate(step, place).ok()));
        }
        others
    }

    /// Returns a path and the other paths that lead to the same entry.
    fn paths_of(&self, path: &RunPath) -> Vec<RunPath> {
        let mut paths = self.other_paths(path, &self.steps_on_disk(path));
        paths.insert(0, path.clone());
        paths
    }

    /// Returns the part of an absolute link target that follows the workdir's path on the host, or
    /// `None` if the target is outside the workdir.
    pub(crate) fn strip_top<'a>(&self, target: &'a str) -> Option<&'a str> {
        Path::new(target).strip_prefix(&self.top).ok()?.to_str()
    }

    /// Looks up an entry. Reports the entry as absent if it is hidden or if a parent on its path is
    /// a file.
    pub(crate) fn entry(&self, path: &RunPath) -> io::Result<EntryInfo> {
        match self.meta(path)? {
            None => Ok(EntryInfo::Absent),
            Some(meta) => Ok(entry_info(&meta, || self.link_target(path))),
        }
    }

    pub(crate) fn link_target(&self, path: &RunPath) -> io::Result<Vec<u8>> {
        let (parent, name) = self.jail.parent(path)?;
        Ok(rustix::fs::readlinkat(&parent, name, Vec::new())?.into_bytes())
    }

    /// Returns the metadata of an entry, or `None` if it does not exist or is hidden.
    pub(crate) fn meta(&self, path: &RunPath) -> io::Result<Option<Meta>> {
        match self.jail.meta(path) {
            Ok(meta) => Ok(Some(meta).filter(|meta| !self.host_files.hides(meta))),
            Err(cause) if is_absent(&cause) => Ok(None),
            Err(cause) => Err(cause),
        }
    }

    /// Opens a regular file for reading. An entry of any other type is opened without blocking and
    /// then rejected.
    pub(crate) fn open_file(&self, path: &RunPath) -> io::Result<(File, Meta)> {
        let file = self.jail.open_entry(path, OFlags::RDONLY | NO_SIDE_EFFECTS, Mode::empty())?;
        let meta = regular_file_meta(&file)?;
        if self.host_files.hides(&meta) {
            Err(rustix::io::Errno::NOENT.into())
        } else {
            Ok((file.into(), meta))
        }
    }

    /// Returns the entries of a folder whose names satisfy `filter`, unsorted, or `None` if there
    /// are more than `max`.
    pub(crate) fn list(
        &self,
        path: &RunPath,
        max: usize,
        filter: impl Fn(&str) -> bool,
    ) -> io::Result<Option<Vec<Child>>> {
        let mut folder = Dir::new(self.jail.listing(path)?)?;
        let mut children = Vec::new();
        let hides =
            |name: &str| path.join(name).is_ok_and(|path| self.host_files.hides_path(&path));
        // Only the host lists a hidden folder, and it sees everything there.
        let hidden = self.host_files.hides_path(path);
        while let Some(entry) = folder.read() {
            let entry = entry?;
            let bytes = entry.file_name().to_bytes();
            let (name, not_utf8) = match std::str::from_utf8(bytes) {
                Ok("." | "..") => continue,
                Ok(name) => (name.to_owned(), false),
                Err(_) => (escaped(bytes), true),
            };
            if !not_utf8 && (!filter(&name) || (!hidden && hides(&name))) {
                continue;
            }
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            let meta: Meta = match rustix::fs::statat(folder.fd()?, entry.file_name(), flags) {
                Ok(meta) => meta.into(),
                Err(cause) if is_absent(&cause.into()) => continue,
                Err(cause) => return Err(cause.into()),
            };
            if self.host_files.hides(&meta) {
                continue;
            }
            if children.len() == max {
                return Ok(None);
            }
            let entry = if not_utf8 {
                EntryInfo::Other(NAME_NOT_UTF8)
            } else {
                let target = || {
                    Ok(rustix::fs::readlinkat(folder.fd()?, entry.file_name(), Vec::new())?
                        .into_bytes())
                };
                entry_info(&meta, target)
            };
            children.push(Child { name, not_utf8, entry, meta });
        }
        Ok(Some(children))
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").finish_non_exhaustive()
    }
}

/// Returns a name with each byte that is not UTF-8 written as `\xe8`.
fn escaped(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

fn entry_info(meta: &Meta, target: impl FnOnce() -> io::Result<Vec<u8>>) -> EntryInfo {
    match meta.kind {
        FileType::RegularFile => EntryInfo::File {
            size: meta.size,
            modified: meta.modified(),
            version: Some(FileStamp::of(meta)),
        },
        FileType::Directory => EntryInfo::Folder { modified: meta.modified() },
        FileType::Symlink => match target().map(String::from_utf8) {
            Ok(Ok(target)) => EntryInfo::Link(target),
            _ => EntryInfo::Other("a link that cannot be read"),
        },
        FileType::Fifo => EntryInfo::Other("a fifo"),
        FileType::Socket => EntryInfo::Other("a socket"),
        FileType::BlockDevice | FileType::CharacterDevice => EntryInfo::Other("a device"),
        FileType::Unknown => EntryInfo::Other("neither a file nor a folder"),
    }
}

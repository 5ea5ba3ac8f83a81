//! What can go wrong with the run's files, and every word that is said about it.

use std::fmt;
use std::io;

use rustix::io::Errno;
use wattle_lang::Code;

use super::host_files::Refusal;
use super::path::{PathFault, RunPath};
use super::primitives::State;
use super::{Change, EntryKind};

/// Why an operation on the run's files was refused or failed. Its text is written for the model that reads it: what is
/// wrong, and what to do instead.
#[derive(Debug)]
pub struct FilesError {
    kind: ErrorKind,
    text: String,
    cause: Option<io::Error>,
}

/// The kinds of failure that a caller may have to tell apart, such as a host that owes its guest an error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The path, or a link on it, leads out of the workdir.
    Escape,
    /// The entry is neither a file nor a folder: a device, a fifo, a socket.
    Special,
    /// The operating system, or the kind of run, does not allow it.
    Denied,
    /// More links than are followed, or links in a circle.
    LinkLoop,
    /// Nothing is there.
    NotFound,
    /// A folder is needed and something else is there.
    NotFolder,
    /// A file is needed and a folder is there.
    IsFolder,
    /// The entry is there already, as something that may not be replaced.
    Exists,
    /// The folder holds something.
    NotEmpty,
    /// A file, a folder or a range is beyond a bound.
    TooLarge,
    /// The overlay, or the disk, is full.
    Full,
    /// The path is not one: empty, or with a NUL in it.
    BadPath,
    /// The path, or a name in it, is too long or too deep.
    PathTooLong,
    /// Somebody else changed the base since the run looked at it.
    Conflict,
    /// The host's file system failed.
    Io,
}

/// What the operation wanted, for the words of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Read,
    Write,
}

impl Intent {
    fn verb(self) -> &'static str {
        match self {
            Intent::Read => "read",
            Intent::Write => "write",
        }
    }
}

impl FilesError {
    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The code that a program gets for it.
    #[must_use]
    pub fn code(&self) -> Code {
        match self.kind {
            ErrorKind::Escape | ErrorKind::Special | ErrorKind::Denied | ErrorKind::LinkLoop => Code::EACCESS,
            ErrorKind::NotFound | ErrorKind::NotFolder => Code::ENOENT,
            ErrorKind::IsFolder | ErrorKind::Exists | ErrorKind::NotEmpty | ErrorKind::Conflict => Code::EEXIST,
            ErrorKind::TooLarge | ErrorKind::PathTooLong => Code::EBOUND,
            ErrorKind::Full => Code::ENOMEM,
            ErrorKind::BadPath => Code::EPARSE,
            ErrorKind::Io => Code::ETRFM,
        }
    }

    /// Whether the path would have left the workdir.
    #[must_use]
    pub fn is_escape(&self) -> bool {
        self.kind == ErrorKind::Escape
    }

    /// Whether nothing was there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }

    /// Whether somebody else changed what the operation rests on.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.kind == ErrorKind::Conflict
    }

    /// Whether a link appeared on the path after it had been resolved.
    pub(super) fn is_raced(&self) -> bool {
        self.kind == ErrorKind::LinkLoop && self.cause.is_some()
    }

    fn new(kind: ErrorKind, text: String) -> FilesError {
        FilesError { kind, text, cause: None }
    }

    pub(super) fn escape(intent: Intent) -> FilesError {
        FilesError::new(ErrorKind::Escape, format!("{} blocked: path escapes your working dir", intent.verb()))
    }

    pub(super) fn guarded(intent: Intent, why: &str) -> FilesError {
        FilesError::new(ErrorKind::Denied, format!("{} blocked: {why}", intent.verb()))
    }

    pub(super) fn kept(intent: Intent, refusal: &Refusal<'_>) -> FilesError {
        let Refusal { name, what, hidden } = refusal;
        let whose = if *hidden { "which belongs to the host" } else { "which only the host writes" };
        let text = format!("{} blocked: `{}` is {what}, {whose}", intent.verb(), shown(name));
        FilesError::new(ErrorKind::Denied, text)
    }

    pub(super) fn holds_kept(folder: &RunPath, kept: &RunPath, what: &str) -> FilesError {
        let text = format!(
            "write blocked: the folder `{}` holds `{}`, which is {what}; move or remove the other entries one by one",
            shown(folder),
            shown(kept)
        );
        FilesError::new(ErrorKind::Denied, text)
    }

    /// After links on the path were exchanged again and again between a check and its use.
    pub(super) fn restless(path: &str) -> FilesError {
        let text = format!("a link appears on the path `{}` again and again while it is used", shown(path));
        FilesError::new(ErrorKind::LinkLoop, text)
    }

    pub(super) fn repository(path: &RunPath) -> FilesError {
        let text =
            format!("write blocked: `{}` belongs to a repository, which programs can read but not change", shown(path));
        FilesError::new(ErrorKind::Denied, text)
    }

    pub(super) fn path(intent: Intent, text: &str, fault: PathFault) -> FilesError {
        let text = shown(text);
        match fault {
            PathFault::Escapes => FilesError::escape(intent),
            PathFault::Empty => {
                FilesError::new(ErrorKind::BadPath, "the path is empty; `/` is the top of the working dir".to_owned())
            }
            PathFault::Nul => {
                FilesError::new(ErrorKind::BadPath, format!("the path `{text}` holds a NUL byte; take it out"))
            }
            PathFault::PathTooLong => FilesError::new(
                ErrorKind::PathTooLong,
                format!("the path `{text}` is longer than 4095 bytes; use a shorter one"),
            ),
            PathFault::NameTooLong => FilesError::new(
                ErrorKind::PathTooLong,
                format!("a name in the path `{text}` is longer than 255 bytes; use a shorter one"),
            ),
            PathFault::TooDeep => FilesError::new(
                ErrorKind::PathTooLong,
                format!("the path `{text}` is deeper than 256 folders; use a flatter one"),
            ),
        }
    }

    pub(super) fn names_a_folder(text: &str) -> FilesError {
        FilesError::new(
            ErrorKind::IsFolder,
            format!("`{}` names a folder, and a file is needed; add the file's name", shown(text)),
        )
    }

    /// `near` are names that are there instead; `folder` is the folder that has them.
    pub(super) fn not_found(path: &RunPath, folder: &RunPath, near: &[String], more: bool) -> FilesError {
        let has = match (near, more) {
            ([], _) => "is empty".to_owned(),
            (names, more) => format!("has: {}{}", listed(names), if more { ", …" } else { "" }),
        };
        let text = match path.parent() {
            Some(parent) if parent == *folder => {
                format!("no such file or folder `{}`; the folder `{}` {has}", shown(path), shown(folder))
            }
            _ => format!(
                "no such file or folder `{}`: its folder is missing; the nearest that is there, `{}`, {has}",
                shown(path),
                shown(folder)
            ),
        };
        FilesError::new(ErrorKind::NotFound, text)
    }

    pub(super) fn not_folder(path: &RunPath) -> FilesError {
        FilesError::new(ErrorKind::NotFolder, format!("`{}` is a file, not a folder", shown(path)))
    }

    pub(super) fn is_folder(intent: Intent, path: &RunPath) -> FilesError {
        let hint = match intent {
            Intent::Read => "list it, or read a file in it",
            Intent::Write => "name a file in it",
        };
        FilesError::new(ErrorKind::IsFolder, format!("`{}` is a folder, not a file; {hint}", shown(path)))
    }

    pub(super) fn not_link(path: &RunPath) -> FilesError {
        FilesError::new(ErrorKind::BadPath, format!("`{}` is not a link", shown(path)))
    }

    pub(super) fn special(intent: Intent, path: &RunPath, what: &str) -> FilesError {
        FilesError::new(
            ErrorKind::Special,
            format!("{} blocked: `{}` is {what}; only plain files and folders can be used", intent.verb(), shown(path)),
        )
    }

    pub(super) fn link_loop(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::LinkLoop,
            format!("too many links on the path `{}`; they may lead round in a circle", shown(path)),
        )
    }

    pub(super) fn link_leaves(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Escape,
            format!("write blocked: the link `{}` would lead out of your working dir; remove it first", shown(path)),
        )
    }

    pub(super) fn top(what: &str) -> FilesError {
        FilesError::new(ErrorKind::Denied, format!("the top of the working dir cannot be {what}; name an entry in it"))
    }

    pub(super) fn not_empty(path: &RunPath, names: &[String], more: bool) -> FilesError {
        FilesError::new(
            ErrorKind::NotEmpty,
            format!(
                "the folder `{}` is not empty, it has: {}{}; remove what it holds first",
                shown(path),
                listed(names),
                if more { ", …" } else { "" }
            ),
        )
    }

    pub(super) fn file_exists(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Exists,
            format!("`{}` is a file already; remove it first, or use another name", shown(path)),
        )
    }

    pub(super) fn taken(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Exists,
            format!("`{}` is there already; remove it first, or use another name", shown(path)),
        )
    }

    pub(super) fn folder_exists(path: &RunPath, name: &str) -> FilesError {
        FilesError::new(
            ErrorKind::Exists,
            format!("`{0}` is a folder; to move into it, name the target in full: `{0}/{1}`", shown(path), shown(name)),
        )
    }

    pub(super) fn into_itself(from: &RunPath, to: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Denied,
            format!("the folder `{}` cannot be moved into itself, to `{}`", shown(from), shown(to)),
        )
    }

    pub(super) fn too_large(path: &RunPath, size: u64, limit: u64) -> FilesError {
        FilesError::new(
            ErrorKind::TooLarge,
            format!(
                "`{}` has {size} bytes, and at most {limit} are read at once; read a part of it, or search it",
                shown(path)
            ),
        )
    }

    pub(super) fn file_bound(path: &RunPath, limit: u64) -> FilesError {
        FilesError::new(
            ErrorKind::TooLarge,
            format!("`{}` would grow beyond {limit} bytes, the most that a file may have", shown(path)),
        )
    }

    pub(super) fn too_many(path: &RunPath, limit: usize) -> FilesError {
        FilesError::new(
            ErrorKind::TooLarge,
            format!("the folder `{}` holds more than {limit} entries; name a part of it", shown(path)),
        )
    }

    pub(super) fn full(path: &RunPath, needed: u64, used: u64, limit: u64) -> FilesError {
        FilesError::new(
            ErrorKind::Full,
            format!(
                "no room for `{}`: it needs {needed} more bytes, and this run's changed files have {used} of {limit}; \
                 write less, or remove files that the run wrote",
                shown(path)
            ),
        )
    }

    pub(super) fn foreign_name(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Special,
            format!(
                "the folder `{}` holds a name that is not UTF-8; it cannot be moved or removed as a whole",
                shown(path)
            ),
        )
    }

    pub(super) fn no_base() -> FilesError {
        FilesError::new(
            ErrorKind::Denied,
            "this run has no working dir: its files are in memory only, and there is nothing to apply them to"
                .to_owned(),
        )
    }

    /// `now` is what stands there, where that is known.
    pub(super) fn conflict(path: &RunPath, now: Option<&State>) -> FilesError {
        let now = match now {
            Some(State::Absent) => "nothing is there by now".to_owned(),
            Some(State::File(stamp, _)) => format!("a file of {} bytes is there by now", stamp.size()),
            Some(State::Folder) => "a folder is there by now".to_owned(),
            Some(State::Link(_)) => "a link is there by now".to_owned(),
            Some(State::Other) => "neither a file nor a folder is there by now".to_owned(),
            None => "it cannot be looked at by now".to_owned(),
        };
        let text = format!(
            "`{}` was changed by somebody else since the run looked at it: {now}; it is left as it is",
            shown(path)
        );
        FilesError::new(ErrorKind::Conflict, text)
    }

    pub(super) fn saved(path: &RunPath, name: &RunPath) -> FilesError {
        let text = format!(
            "`{}` was changed by somebody else more than once meanwhile: what was there is kept as `{}`; compare the two",
            shown(path),
            shown(name)
        );
        FilesError::new(ErrorKind::Conflict, text)
    }

    pub(super) fn not_synced(path: &RunPath, why: &str) -> FilesError {
        let text = format!("`{}` is changed, but the disk does not confirm it: {why}", shown(path));
        FilesError::new(ErrorKind::Io, text)
    }

    pub(super) fn not_recovered(folder: &RunPath, cause: io::Error) -> FilesError {
        let text = format!(
            "failed to end the changes that a process had begun when it was killed: {cause}; `{}` has what is left of them",
            shown(folder)
        );
        FilesError { cause: Some(cause), ..FilesError::new(ErrorKind::Io, text) }
    }

    pub(super) fn not_kept() -> FilesError {
        FilesError::new(ErrorKind::Io, "what was kept of the run's files cannot be read".to_owned())
    }

    pub(super) fn held_back() -> FilesError {
        FilesError::new(
            ErrorKind::Conflict,
            "not removed, since other changes could not be carried out; nothing is removed until they are".to_owned(),
        )
    }

    pub(super) fn open_base(path: &std::path::Path, cause: io::Error) -> FilesError {
        let path = shown(path.to_string_lossy());
        let (kind, text) = match cause.kind() {
            io::ErrorKind::NotFound => {
                (ErrorKind::NotFound, format!("no such working dir `{path}`; create it, or name another with --root"))
            }
            io::ErrorKind::NotADirectory => {
                (ErrorKind::NotFolder, format!("the working dir `{path}` is not a folder; name one with --root"))
            }
            io::ErrorKind::PermissionDenied => {
                (ErrorKind::Denied, format!("the working dir `{path}` may not be opened; check its permissions"))
            }
            _ => (ErrorKind::Io, format!("failed to open the working dir `{path}`: {cause}")),
        };
        FilesError { kind, text, cause: Some(cause) }
    }

    /// What the operating system said about `path`.
    pub(super) fn io(intent: Intent, path: &RunPath, cause: io::Error) -> FilesError {
        // The jail's own refusal carries no number of the operating system's.
        if cause.raw_os_error().is_none() && cause.kind() == io::ErrorKind::PermissionDenied {
            return FilesError { cause: Some(cause), ..FilesError::escape(intent) };
        }
        let name = shown(path);
        let (kind, text) = match Errno::from_io_error(&cause) {
            Some(Errno::NOENT) => (ErrorKind::NotFound, format!("no such file or folder `{name}`")),
            Some(Errno::ACCESS | Errno::PERM) => (
                ErrorKind::Denied,
                format!("{} blocked: the operating system does not allow it for `{name}`", intent.verb()),
            ),
            Some(Errno::ROFS) => (ErrorKind::Denied, format!("write blocked: `{name}` is on a read-only file system")),
            Some(Errno::LOOP) => return FilesError { cause: Some(cause), ..FilesError::link_loop(path) },
            Some(Errno::NOTDIR) => (ErrorKind::NotFolder, format!("`{name}` is not a folder, or lies below a file")),
            Some(Errno::ISDIR) => return FilesError { cause: Some(cause), ..FilesError::is_folder(intent, path) },
            Some(Errno::NOTEMPTY) => (ErrorKind::NotEmpty, format!("the folder `{name}` is not empty")),
            Some(Errno::EXIST) => (ErrorKind::Exists, format!("`{name}` exists already")),
            Some(Errno::NAMETOOLONG) => {
                (ErrorKind::PathTooLong, format!("the path `{name}` is too long; use a shorter one"))
            }
            Some(Errno::FBIG) => (ErrorKind::TooLarge, format!("`{name}` would grow beyond what the disk takes")),
            Some(Errno::NOSPC | Errno::DQUOT) => {
                (ErrorKind::Full, format!("no room on the disk for `{name}`; remove files first"))
            }
            Some(Errno::NXIO) => {
                return FilesError { cause: Some(cause), ..FilesError::special(intent, path, "a fifo or a device") };
            }
            _ => (ErrorKind::Io, format!("failed to {} `{name}`: {cause}", intent.verb())),
        };
        FilesError { kind, text, cause: Some(cause) }
    }
}

impl fmt::Display for FilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for FilesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

/// Why not all changes were carried out, with what was and what was not. What was not is still in the overlay, so that
/// it can be tried again.
#[derive(Debug)]
pub struct ApplyError {
    /// The changes that were carried out, sorted by path.
    pub done: Vec<Change>,
    /// The changes that were not, sorted by path, each with its reason.
    pub failed: Vec<(Change, FilesError)>,
}

/// The changes of each sort that the text of an [`ApplyError`] names.
const LISTED: usize = 50;

impl ApplyError {
    /// Whether at least one change was held back because somebody else changed the base.
    #[must_use]
    pub fn has_conflict(&self) -> bool {
        self.failed.iter().any(|(_, reason)| reason.is_conflict())
    }
}

/// A line that counts, then one for each change: first those that were not carried out. At most 50 of each are named.
impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.done.len() + self.failed.len();
        write!(f, "{} of {all} changes were not carried out", self.failed.len())?;
        for (change, reason) in self.failed.iter().take(LISTED) {
            write!(f, "\nnot done: {change}: {reason}")?;
        }
        if self.failed.len() > LISTED {
            write!(f, "\nnot done: {} more", self.failed.len() - LISTED)?;
        }
        for change in self.done.iter().take(LISTED) {
            write!(f, "\ndone: {change}")?;
        }
        if self.done.len() > LISTED {
            write!(f, "\ndone: {} more", self.done.len() - LISTED)?;
        }
        if self.has_conflict() {
            f.write_str("\nhint: move your own version away, or merge the two, then carry the changes out again")?;
        }
        Ok(())
    }
}

impl std::error::Error for ApplyError {}

/// The entry's kind in words.
pub(super) fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Folder => "folder",
        EntryKind::Link => "link",
        EntryKind::Other => "special file",
    }
}

/// A path or a name as it may stand in a message: on one line, and no longer than the reader needs.
pub(super) fn shown(text: impl fmt::Display) -> String {
    let text = text.to_string();
    let mut out = String::new();
    for c in wattle_lang::truncate(&text, 120).chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

fn listed(names: &[String]) -> String {
    names.iter().map(shown).collect::<Vec<_>>().join(", ")
}

//! The errors that operations on the run's files return, with the text of every message.

use std::fmt;
use std::io;

use rustix::io::Errno;
use wattle_lang::Code;

use crate::entry::Change;
use crate::host_files::Refusal;
use crate::path::{Intent, PathFault, RunPath};
use crate::printable::printable;
use crate::stamp::CurrentEntry;

/// An error from an operation on the run's files. The message is written for a model: it says what
/// is wrong and what to do instead.
#[derive(Debug)]
pub struct FilesError {
    kind: ErrorKind,
    text: String,
    /// Size in bytes of the path at the start of the text. 0 if the text does not start with a
    /// path.
    path_size: usize,
    cause: Option<io::Error>,
}

/// The category of an error, for callers that need more detail than the error code, such as a host
/// that returns an error number to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The path, or a link on it, leads out of the workdir.
    Escape,
    /// The entry is neither a file nor a folder: a device, a FIFO or a socket.
    Special,
    /// The operating system, the run's guard or a rule of this crate denies the operation.
    Denied,
    /// The path has too many links, or its links form a loop.
    LinkLoop,
    /// The entry does not exist.
    NotFound,
    /// The operation needs a folder, but the entry is not one.
    NotFolder,
    /// The operation needs a file, but the entry is a folder.
    IsFolder,
    /// The entry exists and may not be replaced.
    Exists,
    /// The folder is not empty.
    NotEmpty,
    /// The size of a file or the number of entries in a folder exceeds a limit.
    TooLarge,
    /// The overlay or the disk is full.
    Full,
    /// The path is empty or contains a NUL.
    BadPath,
    /// The path is too long or too deep, or a name in it is too long.
    PathTooLong,
    /// Another process has changed the base since the run read it.
    Conflict,
    /// The host's file system failed.
    Io,
}

impl FilesError {
    /// Returns the category of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the error code for programs.
    #[must_use]
    pub fn code(&self) -> Code {
        match self.kind {
            ErrorKind::Escape | ErrorKind::Special | ErrorKind::Denied | ErrorKind::LinkLoop => {
                Code::EACCESS
            }
            ErrorKind::NotFound => Code::ENOENT,
            ErrorKind::NotFolder | ErrorKind::IsFolder => Code::EKIND,
            ErrorKind::Exists | ErrorKind::NotEmpty | ErrorKind::Conflict => Code::EEXIST,
            ErrorKind::TooLarge | ErrorKind::PathTooLong => Code::EBOUND,
            ErrorKind::Full => Code::ENOMEM,
            ErrorKind::BadPath => Code::EPARSE,
            ErrorKind::Io => Code::ETRFM,
        }
    }

    /// Returns true if the path would have left the workdir.
    #[must_use]
    pub fn is_escape(&self) -> bool {
        self.kind == ErrorKind::Escape
    }

    /// Returns true if the entry does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }

    /// Returns true if another process changed an entry that the operation depends on.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.kind == ErrorKind::Conflict
    }

    /// Returns true if the host's file system failed, for example because the disk is full. Such an
    /// error does not depend on what the operation asked for.
    pub(crate) fn is_host_failure(&self) -> bool {
        let may_be = matches!(self.kind, ErrorKind::Full | ErrorKind::TooLarge | ErrorKind::Io);
        may_be && self.cause.is_some()
    }

    /// Returns true if a link appeared on the path after the path was resolved.
    pub(crate) fn is_raced(&self) -> bool {
        self.kind == ErrorKind::LinkLoop && self.cause.is_some()
    }

    /// Returns the message without its leading path, such as `is outside the run's folder; …`.
    /// Callers use it to print the path as the user wrote it. Returns `None` if the message does
    /// not begin with a path.
    #[must_use]
    pub fn without_path(&self) -> Option<&str> {
        (self.path_size > 0).then(|| self.text.get(self.path_size..).map(str::trim_start)).flatten()
    }

    fn new(kind: ErrorKind, text: String) -> FilesError {
        FilesError { kind, text, path_size: 0, cause: None }
    }

    fn with_cause(self, cause: io::Error) -> FilesError {
        FilesError { cause: Some(cause), ..self }
    }

    /// Returns the error for a path that is outside the workdir.
    pub(crate) fn outside(intent: Intent, path: &str) -> FilesError {
        FilesError::escape(intent, path, "is")
    }

    /// Returns the error for a path with a link that leads out of the workdir.
    pub(crate) fn leads_outside(intent: Intent, path: &str) -> FilesError {
        FilesError::escape(intent, path, "leads")
    }

    fn escape(intent: Intent, path: &str, verb: &str) -> FilesError {
        let path = printable(path);
        let done = match intent {
            Intent::Read => "read",
            Intent::Write => "written",
        };
        let text =
            format!("{path} {verb} outside the run's folder; only files in it can be {done}");
        FilesError { path_size: path.len(), ..FilesError::new(ErrorKind::Escape, text) }
    }

    pub(crate) fn guarded(intent: Intent, why: &str) -> FilesError {
        FilesError::new(ErrorKind::Denied, format!("{} blocked: {why}", intent.verb()))
    }

    pub(crate) fn host_file(intent: Intent, refusal: &Refusal<'_>) -> FilesError {
        let Refusal { name, what, hidden, in_folder } = refusal;
        let whose =
            if *hidden { "which belongs to the host" } else { "which only the host writes" };
        let is = if *in_folder { "is in" } else { "is" };
        let text = format!("{} blocked: `{}` {is} {what}, {whose}", intent.verb(), printable(name));
        FilesError::new(ErrorKind::Denied, text)
    }

    pub(crate) fn path(intent: Intent, text: &str, fault: PathFault) -> FilesError {
        let text = printable(text);
        let (kind, text) = match fault {
            PathFault::Escapes => return FilesError::outside(intent, &text),
            PathFault::Empty => (
                ErrorKind::BadPath,
                "the path is empty; `/` is the top of the working dir".to_owned(),
            ),
            PathFault::Nul => {
                (ErrorKind::BadPath, format!("the path `{text}` holds a NUL byte; take it out"))
            }
            PathFault::PathTooLong => (
                ErrorKind::PathTooLong,
                format!("the path `{text}` is longer than 4095 bytes; use a shorter one"),
            ),
            PathFault::NameTooLong => (
                ErrorKind::PathTooLong,
                format!("a name in the path `{text}` is longer than 255 bytes; use a shorter one"),
            ),
            PathFault::TooDeep => (
                ErrorKind::PathTooLong,
                format!("the path `{text}` is deeper than 256 folders; use a flatter one"),
            ),
        };
        FilesError::new(kind, text)
    }

    /// Returns the error for a path that does not exist. `folder` is the nearest existing folder,
    /// `names` are some of its entries, and `more` is true if it has other entries.
    pub(crate) fn not_found(
        path: &RunPath,
        folder: &RunPath,
        names: &[String],
        more: bool,
    ) -> FilesError {
        let has = match names {
            [] => "is empty".to_owned(),
            names => format!("has: {}", listed(names, more)),
        };
        let name = printable(path);
        let nearest = printable(folder);
        let text = match path.parent() {
            Some(parent) if parent == *folder => {
                format!("no such file or folder `{name}`; the folder `{nearest}` {has}")
            }
            _ => format!(
                "no such file or folder `{name}`: its folder does not exist; the nearest existing \
                 folder `{nearest}` {has}"
            ),
        };
        FilesError::new(ErrorKind::NotFound, text)
    }

    pub(crate) fn not_empty(path: &RunPath, names: &[String], more: bool) -> FilesError {
        let text = format!(
            "the folder `{}` is not empty, it has: {}; remove what it holds first",
            printable(path),
            listed(names, more)
        );
        FilesError::new(ErrorKind::NotEmpty, text)
    }

    /// Returns the error for an entry that another process changed. `now` is its current state, if
    /// known.
    pub(crate) fn conflict(path: &RunPath, now: Option<&CurrentEntry>) -> FilesError {
        let now = match now {
            Some(CurrentEntry::Absent) => "it no longer exists".to_owned(),
            Some(CurrentEntry::File(stamp, _)) => {
                format!("it is now a file of {} bytes", stamp.size())
            }
            Some(CurrentEntry::Folder) => "it is now a folder".to_owned(),
            Some(CurrentEntry::Link(_)) => "it is now a link".to_owned(),
            Some(CurrentEntry::Other) => "it is now neither a file nor a folder".to_owned(),
            None => "its current state is unknown".to_owned(),
        };
        let text = format!(
            "somebody else changed `{}` since the run read it: {now}; it is left unchanged",
            printable(path)
        );
        FilesError::new(ErrorKind::Conflict, text)
    }

    pub(crate) fn not_recovered(folder: &RunPath, cause: io::Error) -> FilesError {
        let text = format!(
            "failed to complete the changes of a killed process: {cause}; `{}` contains the rest \
             of them",
            printable(folder)
        );
        FilesError::new(ErrorKind::Io, text).with_cause(cause)
    }

    pub(crate) fn open_base(path: &std::path::Path, cause: io::Error) -> FilesError {
        let path = printable(path.to_string_lossy());
        let (kind, text) = match cause.kind() {
            io::ErrorKind::NotFound => (
                ErrorKind::NotFound,
                format!("no such working dir `{path}`; create it, or name another with --root"),
            ),
            io::ErrorKind::NotADirectory => (
                ErrorKind::NotFolder,
                format!("the working dir `{path}` is not a folder; name one with --root"),
            ),
            io::ErrorKind::PermissionDenied => (
                ErrorKind::Denied,
                format!("the working dir `{path}` may not be opened; check its permissions"),
            ),
            _ => (ErrorKind::Io, format!("failed to open the working dir `{path}`: {cause}")),
        };
        FilesError::new(kind, text).with_cause(cause)
    }

    pub(crate) fn base_gone(path: &std::path::Path) -> FilesError {
        let path = printable(path.to_string_lossy());
        let text = format!(
            "the working dir `{path}` was removed, renamed or replaced while the run used it; \
             nothing more is written"
        );
        FilesError::new(ErrorKind::Io, text)
    }

    /// Converts an error that the operating system returned for `path` into a [`FilesError`].
    pub(crate) fn io(intent: Intent, path: &RunPath, cause: io::Error) -> FilesError {
        // Errors that the jail itself returns have no error number.
        if cause.raw_os_error().is_none() && cause.kind() == io::ErrorKind::PermissionDenied {
            return FilesError::leads_outside(intent, &path.to_string()).with_cause(cause);
        }
        let name = printable(path);
        let (kind, text) = match Errno::from_io_error(&cause) {
            Some(Errno::NOENT) => (ErrorKind::NotFound, format!("no such file or folder `{name}`")),
            Some(Errno::ACCESS | Errno::PERM) => (
                ErrorKind::Denied,
                format!(
                    "{} blocked: the operating system does not allow it for `{name}`",
                    intent.verb()
                ),
            ),
            Some(Errno::ROFS) => (
                ErrorKind::Denied,
                format!("write blocked: `{name}` is on a read-only file system"),
            ),
            Some(Errno::LOOP) => return FilesError::link_loop(path).with_cause(cause),
            Some(Errno::NOTDIR) => {
                (ErrorKind::NotFolder, format!("`{name}` is not a folder, or lies below a file"))
            }
            Some(Errno::ISDIR) => return FilesError::is_folder(intent, path).with_cause(cause),
            Some(Errno::NOTEMPTY) => {
                (ErrorKind::NotEmpty, format!("the folder `{name}` is not empty"))
            }
            Some(Errno::EXIST) => (ErrorKind::Exists, format!("`{name}` exists already")),
            Some(Errno::NAMETOOLONG) => (
                ErrorKind::PathTooLong,
                format!("the path `{name}` is too long; use a shorter one"),
            ),
            Some(Errno::FBIG) => (
                ErrorKind::TooLarge,
                format!("`{name}` would exceed the maximum file size of the disk"),
            ),
            Some(Errno::NOSPC | Errno::DQUOT) => {
                (ErrorKind::Full, format!("no room on the disk for `{name}`; remove files first"))
            }
            Some(Errno::NXIO) => {
                return FilesError::special(intent, path, "a fifo or a device").with_cause(cause);
            }
            _ => (ErrorKind::Io, format!("failed to {} `{name}`: {cause}", intent.verb())),
        };
        FilesError::new(kind, text).with_cause(cause)
    }

    /// Returns the error for an entry that is neither a file nor a folder. `what` describes it.
    pub(crate) fn special(intent: Intent, path: &RunPath, what: &str) -> FilesError {
        FilesError::special_entry(intent.verb(), path, what)
    }

    pub(crate) fn is_folder(intent: Intent, path: &RunPath) -> FilesError {
        let hint = match intent {
            Intent::Read => "list it, or read a file in it",
            Intent::Write => "name a file in it",
        };
        FilesError::folder_not_file(path, hint)
    }
}

/// Names the path at which the operating system returned an error.
pub(crate) trait AtPath<T> {
    /// Converts the error into a [`FilesError`] about `path`.
    fn at(self, intent: Intent, path: &RunPath) -> Result<T, FilesError>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, intent: Intent, path: &RunPath) -> Result<T, FilesError> {
        self.map_err(|cause| FilesError::io(intent, path, cause))
    }
}

/// Declares the errors that have one message: for each, a function that makes it. Paths and names in
/// a message are [`printable`].
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) => $kind:ident, $text:literal;)*) => {
        impl FilesError {$(
            $(#[$doc])*
            pub(crate) fn $name($($arg: $ty),*) -> FilesError {
                $(let $arg = printable($arg);)*
                FilesError::new(ErrorKind::$kind, format!($text))
            }
        )*}
    };
}

messages! {
    holds_host_file(folder: &RunPath, path: &RunPath, what: &str) => Denied,
        "write blocked: the folder `{folder}` holds `{path}`, which is {what}; move or remove the \
         other entries one by one";
    /// Returns the error for changing an entry on the path to one of the host's own files.
    leads_to_host_file(entry: &RunPath, what: &str) => Denied,
        "write blocked: `{entry}` is on the path to {what}, which belongs to the host";
    repository(path: &RunPath) => Denied,
        "write blocked: `{path}` belongs to a repository, which programs can read but not change";
    top(what: &str) => Denied,
        "the top of the working dir cannot be {what}; name an entry in it";
    into_itself(from: &RunPath, to: &RunPath) => Denied,
        "the folder `{from}` cannot be moved into itself, to `{to}`";
    no_base() => Denied,
        "this run has no working dir: its files are only in memory and cannot be applied";
    link_leaves(path: &RunPath) => Escape,
        "write blocked: the link `{path}` would lead out of your working dir; remove it first";
    /// Returns the error for a path whose links were repeatedly swapped between the check and the
    /// use of the path.
    unstable_links(path: &str) => LinkLoop,
        "links on the path `{path}` keep changing while it is used";
    link_loop(path: &RunPath) => LinkLoop,
        "too many links on the path `{path}`; they may lead round in a circle";
    special_entry(verb: &str, path: &RunPath, what: &str) => Special,
        "{verb} blocked: `{path}` is {what}; only regular files and folders can be used";
    name_not_utf8(path: &RunPath) => Special,
        "the folder `{path}` holds a name that is not UTF-8; it cannot be moved or removed as a \
         whole";
    not_folder(path: &RunPath) => NotFolder,
        "`{path}` is a file, not a folder";
    names_a_folder(text: &str) => IsFolder,
        "`{text}` names a folder, and a file is needed; add the file's name";
    folder_not_file(path: &RunPath, hint: &str) => IsFolder,
        "`{path}` is a folder, not a file; {hint}";
    not_link(path: &RunPath) => BadPath,
        "`{path}` is not a link";
    file_exists(path: &RunPath) => Exists,
        "`{path}` is already a file; remove it first, or use another name";
    already_exists(path: &RunPath) => Exists,
        "`{path}` is there already; remove it first, or use another name";
    folder_exists(path: &RunPath, name: &str) => Exists,
        "`{path}` is a folder; to move into it, name the target in full: `{path}/{name}`";
    too_large(path: &RunPath, size: u64, limit: u64) => TooLarge,
        "`{path}` has {size} bytes, and at most {limit} are read at once; read a part of it, or \
         search it";
    exceeds_file_limit(path: &RunPath, limit: u64) => TooLarge,
        "`{path}` would exceed {limit} bytes, the maximum size of a file";
    too_many(path: &RunPath, limit: usize) => TooLarge,
        "the folder `{path}` holds more than {limit} entries; name a part of it";
    full(path: &RunPath, needed: u64, used: u64, limit: u64) => Full,
        "no room for `{path}`: it needs {needed} more bytes, and this run's changed files have \
         {used} of {limit}; write less, or remove files that the run wrote";
    no_memory(path: &RunPath, why: &str) => Full,
        "no room for `{path}`, because changed files are kept in memory: {why}";
    no_memory_for_files(why: &str) => Full,
        "no room for the changed files of the run, which are kept in memory: {why}";
    saved(path: &RunPath, name: &RunPath) => Conflict,
        "somebody else changed `{path}` during the update: that version is saved as `{name}`; \
         compare the two";
    held_back() => Conflict,
        "not removed, because other changes failed; nothing is removed until they succeed";
    not_synced(path: &RunPath, why: &str) => Io,
        "`{path}` is changed, but the disk does not confirm it: {why}";
    bad_delta() => Io,
        "failed to restore the run's files: the journal's record of them is not valid";
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

/// Joins the names of some of a folder's entries. `more` is true if the folder has others.
fn listed(names: &[String], more: bool) -> String {
    let names = names.iter().map(printable).collect::<Vec<_>>().join(", ");
    if more { format!("{names}, …") } else { names }
}

/// The error returned if some changes could not be applied. Those changes remain in the overlay, so
/// the caller can try again.
#[derive(Debug)]
pub struct ApplyError {
    /// The changes that were applied, sorted by path.
    pub done: Vec<Change>,
    /// The changes that were not applied, sorted by path, each with the reason.
    pub failed: Vec<(Change, FilesError)>,
}

/// Maximum number of failed changes, and of applied changes, that the message lists.
const MAX_LISTED: usize = 50;

impl ApplyError {
    /// Returns true if a change failed because another process changed the base.
    #[must_use]
    pub fn has_conflict(&self) -> bool {
        self.failed.iter().any(|(_, reason)| reason.is_conflict())
    }
}

/// Formats a line with the number of failed changes and the number of all changes, then one line
/// for each change, failed changes first. Lists at most 50 failed and 50 applied changes.
impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.done.len() + self.failed.len();
        write!(f, "failed to apply {} of {all} changes", self.failed.len())?;
        for (change, reason) in self.failed.iter().take(MAX_LISTED) {
            write!(f, "\nfailed: {change}: {reason}")?;
        }
        if self.failed.len() > MAX_LISTED {
            write!(f, "\nfailed: {} more", self.failed.len() - MAX_LISTED)?;
        }
        for change in self.done.iter().take(MAX_LISTED) {
            write!(f, "\napplied: {change}")?;
        }
        if self.done.len() > MAX_LISTED {
            write!(f, "\napplied: {} more", self.done.len() - MAX_LISTED)?;
        }
        if self.has_conflict() {
            f.write_str(
                "\nhint: move your own version away, or merge the two, then apply the changes \
                 again",
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for ApplyError {}

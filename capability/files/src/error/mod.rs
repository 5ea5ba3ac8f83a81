//! The errors that operations on the run's files return, with the text of every message.

mod access;
mod apply;
mod entries;
mod system;

use std::fmt;
use std::io;

use wattle_lang::Code;

pub use apply::ApplyError;

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

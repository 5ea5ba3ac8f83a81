//! Errors from the operating system.

use std::io;

use rustix::io::Errno;

use super::{ErrorKind, FilesError};
use crate::path::{Intent, RunPath};
use crate::printable::printable;

impl FilesError {
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
        FilesError { cause: Some(cause), ..FilesError::new(kind, text) }
    }

    /// Converts an error that the operating system returned for `path` into a [`FilesError`].
    pub(crate) fn io(intent: Intent, path: &RunPath, cause: io::Error) -> FilesError {
        // Errors that the jail itself returns have no error number.
        if cause.raw_os_error().is_none() && cause.kind() == io::ErrorKind::PermissionDenied {
            return FilesError {
                cause: Some(cause),
                ..FilesError::leads_outside(intent, &path.to_string())
            };
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
            Some(Errno::LOOP) => {
                return FilesError { cause: Some(cause), ..FilesError::link_loop(path) };
            }
            Some(Errno::NOTDIR) => {
                (ErrorKind::NotFolder, format!("`{name}` is not a folder, or lies below a file"))
            }
            Some(Errno::ISDIR) => {
                return FilesError { cause: Some(cause), ..FilesError::is_folder(intent, path) };
            }
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
                return FilesError {
                    cause: Some(cause),
                    ..FilesError::special(intent, path, "a fifo or a device")
                };
            }
            _ => (ErrorKind::Io, format!("failed to {} `{name}`: {cause}", intent.verb())),
        };
        FilesError { cause: Some(cause), ..FilesError::new(kind, text) }
    }
}

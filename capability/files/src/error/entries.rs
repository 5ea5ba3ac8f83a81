//! Errors for entries that do not exist, are of the wrong type, or exceed a limit.

use super::{ErrorKind, FilesError};
use crate::path::{Intent, RunPath};
use crate::printable::printable;

impl FilesError {
    pub(crate) fn names_a_folder(text: &str) -> FilesError {
        FilesError::new(
            ErrorKind::IsFolder,
            format!(
                "`{}` names a folder, and a file is needed; add the file's name",
                printable(text)
            ),
        )
    }

    /// Returns the error for a path that does not exist. `folder` is the nearest existing folder,
    /// `names` are some of its entries, and `more` is true if it has other entries.
    pub(crate) fn not_found(
        path: &RunPath,
        folder: &RunPath,
        names: &[String],
        more: bool,
    ) -> FilesError {
        let has = match (names, more) {
            ([], _) => "is empty".to_owned(),
            (names, more) => format!("has: {}{}", join(names), if more { ", …" } else { "" }),
        };
        let text = match path.parent() {
            Some(parent) if parent == *folder => {
                format!(
                    "no such file or folder `{}`; the folder `{}` {has}",
                    printable(path),
                    printable(folder)
                )
            }
            _ => format!(
                "no such file or folder `{}`: its folder does not exist; the nearest existing \
                 folder `{}` {has}",
                printable(path),
                printable(folder)
            ),
        };
        FilesError::new(ErrorKind::NotFound, text)
    }

    pub(crate) fn not_folder(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::NotFolder,
            format!("`{}` is a file, not a folder", printable(path)),
        )
    }

    pub(crate) fn is_folder(intent: Intent, path: &RunPath) -> FilesError {
        let hint = match intent {
            Intent::Read => "list it, or read a file in it",
            Intent::Write => "name a file in it",
        };
        FilesError::new(
            ErrorKind::IsFolder,
            format!("`{}` is a folder, not a file; {hint}", printable(path)),
        )
    }

    pub(crate) fn not_link(path: &RunPath) -> FilesError {
        FilesError::new(ErrorKind::BadPath, format!("`{}` is not a link", printable(path)))
    }

    pub(crate) fn not_empty(path: &RunPath, names: &[String], more: bool) -> FilesError {
        FilesError::new(
            ErrorKind::NotEmpty,
            format!(
                "the folder `{}` is not empty, it has: {}{}; remove what it holds first",
                printable(path),
                join(names),
                if more { ", …" } else { "" }
            ),
        )
    }

    pub(crate) fn file_exists(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Exists,
            format!(
                "`{}` is already a file; remove it first, or use another name",
                printable(path)
            ),
        )
    }

    pub(crate) fn already_exists(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Exists,
            format!("`{}` is there already; remove it first, or use another name", printable(path)),
        )
    }

    pub(crate) fn folder_exists(path: &RunPath, name: &str) -> FilesError {
        FilesError::new(
            ErrorKind::Exists,
            format!(
                "`{0}` is a folder; to move into it, name the target in full: `{0}/{1}`",
                printable(path),
                printable(name)
            ),
        )
    }

    pub(crate) fn into_itself(from: &RunPath, to: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Denied,
            format!(
                "the folder `{}` cannot be moved into itself, to `{}`",
                printable(from),
                printable(to)
            ),
        )
    }

    pub(crate) fn too_large(path: &RunPath, size: u64, limit: u64) -> FilesError {
        FilesError::new(
            ErrorKind::TooLarge,
            format!(
                "`{}` has {size} bytes, and at most {limit} are read at once; read a part of it, \
                 or search it",
                printable(path)
            ),
        )
    }

    pub(crate) fn exceeds_file_limit(path: &RunPath, limit: u64) -> FilesError {
        FilesError::new(
            ErrorKind::TooLarge,
            format!("`{}` would exceed {limit} bytes, the maximum size of a file", printable(path)),
        )
    }

    pub(crate) fn too_many(path: &RunPath, limit: usize) -> FilesError {
        FilesError::new(
            ErrorKind::TooLarge,
            format!(
                "the folder `{}` holds more than {limit} entries; name a part of it",
                printable(path)
            ),
        )
    }

    pub(crate) fn full(path: &RunPath, needed: u64, used: u64, limit: u64) -> FilesError {
        FilesError::new(
            ErrorKind::Full,
            format!(
                "no room for `{}`: it needs {needed} more bytes, and this run's changed files \
                 have {used} of {limit}; write less, or remove files that the run wrote",
                printable(path)
            ),
        )
    }

    pub(crate) fn name_not_utf8(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Special,
            format!(
                "the folder `{}` holds a name that is not UTF-8; it cannot be moved or removed as \
                 a whole",
                printable(path)
            ),
        )
    }
}

fn join(names: &[String]) -> String {
    names.iter().map(printable).collect::<Vec<_>>().join(", ")
}

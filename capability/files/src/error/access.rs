//! Errors for paths and operations that a run may not use.

use std::fmt::Write as _;

use super::{ErrorKind, FilesError};
use crate::host_files::Refusal;
use crate::path::{Intent, PathFault, RunPath};
use crate::printable::printable;

impl FilesError {
    /// Returns the error for a path that is outside the workdir.
    pub(crate) fn outside(intent: Intent, path: &str) -> FilesError {
        FilesError::escape(intent, path, "is")
    }

    /// Returns the error for a path with a link that leads out of the workdir.
    pub(crate) fn leads_outside(intent: Intent, path: &str) -> FilesError {
        FilesError::escape(intent, path, "leads")
    }

    fn escape(intent: Intent, path: &str, verb: &str) -> FilesError {
        let mut text = printable(path);
        let path_size = text.len();
        let done = match intent {
            Intent::Read => "read",
            Intent::Write => "written",
        };
        let _ = write!(text, " {verb} outside the run's folder; only files in it can be {done}");
        FilesError { path_size, ..FilesError::new(ErrorKind::Escape, text) }
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

    pub(crate) fn holds_host_file(folder: &RunPath, path: &RunPath, what: &str) -> FilesError {
        let text = format!(
            "write blocked: the folder `{}` holds `{}`, which is {what}; move or remove the other \
             entries one by one",
            printable(folder),
            printable(path)
        );
        FilesError::new(ErrorKind::Denied, text)
    }

    /// Returns the error for changing an entry on the path to one of the host's own files.
    pub(crate) fn leads_to_host_file(entry: &RunPath, what: &str) -> FilesError {
        let text = format!(
            "write blocked: `{}` is on the path to {what}, which belongs to the host",
            printable(entry)
        );
        FilesError::new(ErrorKind::Denied, text)
    }

    /// Returns the error for a path whose links were repeatedly swapped between the check and the
    /// use of the path.
    pub(crate) fn unstable_links(path: &str) -> FilesError {
        let text =
            format!("links on the path `{}` keep changing while it is used", printable(path));
        FilesError::new(ErrorKind::LinkLoop, text)
    }

    pub(crate) fn repository(path: &RunPath) -> FilesError {
        let text = format!(
            "write blocked: `{}` belongs to a repository, which programs can read but not change",
            printable(path)
        );
        FilesError::new(ErrorKind::Denied, text)
    }

    pub(crate) fn path(intent: Intent, text: &str, fault: PathFault) -> FilesError {
        let text = printable(text);
        match fault {
            PathFault::Escapes => FilesError::outside(intent, &text),
            PathFault::Empty => FilesError::new(
                ErrorKind::BadPath,
                "the path is empty; `/` is the top of the working dir".to_owned(),
            ),
            PathFault::Nul => FilesError::new(
                ErrorKind::BadPath,
                format!("the path `{text}` holds a NUL byte; take it out"),
            ),
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

    pub(crate) fn special(intent: Intent, path: &RunPath, what: &str) -> FilesError {
        FilesError::new(
            ErrorKind::Special,
            format!(
                "{} blocked: `{}` is {what}; only regular files and folders can be used",
                intent.verb(),
                printable(path)
            ),
        )
    }

    pub(crate) fn link_loop(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::LinkLoop,
            format!(
                "too many links on the path `{}`; they may lead round in a circle",
                printable(path)
            ),
        )
    }

    pub(crate) fn link_leaves(path: &RunPath) -> FilesError {
        FilesError::new(
            ErrorKind::Escape,
            format!(
                "write blocked: the link `{}` would lead out of your working dir; remove it first",
                printable(path)
            ),
        )
    }

    pub(crate) fn top(what: &str) -> FilesError {
        FilesError::new(
            ErrorKind::Denied,
            format!("the top of the working dir cannot be {what}; name an entry in it"),
        )
    }
}

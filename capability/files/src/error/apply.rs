//! Errors returned if an overlay's changes cannot be applied to the base, or if interrupted changes
//! cannot be completed.

use std::fmt;
use std::io;

use super::{ErrorKind, FilesError};
use crate::entry::Change;
use crate::path::RunPath;
use crate::printable::printable;
use crate::stamp::CurrentEntry;

impl FilesError {
    pub(crate) fn no_base() -> FilesError {
        FilesError::new(
            ErrorKind::Denied,
            "this run has no working dir: its files are only in memory and cannot be applied"
                .to_owned(),
        )
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

    pub(crate) fn saved(path: &RunPath, name: &RunPath) -> FilesError {
        let text = format!(
            "somebody else changed `{}` during the update: that version is saved as `{}`; compare \
             the two",
            printable(path),
            printable(name)
        );
        FilesError::new(ErrorKind::Conflict, text)
    }

    pub(crate) fn not_synced(path: &RunPath, why: &str) -> FilesError {
        let text =
            format!("`{}` is changed, but the disk does not confirm it: {why}", printable(path));
        FilesError::new(ErrorKind::Io, text)
    }

    pub(crate) fn not_recovered(folder: &RunPath, cause: io::Error) -> FilesError {
        let text = format!(
            "failed to complete the changes of a killed process: {cause}; `{}` contains the rest \
             of them",
            printable(folder)
        );
        FilesError { cause: Some(cause), ..FilesError::new(ErrorKind::Io, text) }
    }

    pub(crate) fn bad_delta() -> FilesError {
        FilesError::new(
            ErrorKind::Io,
            "failed to restore the run's files: the journal's record of them is not valid"
                .to_owned(),
        )
    }

    pub(crate) fn held_back() -> FilesError {
        FilesError::new(
            ErrorKind::Conflict,
            "not removed, because other changes failed; nothing is removed until they succeed"
                .to_owned(),
        )
    }
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

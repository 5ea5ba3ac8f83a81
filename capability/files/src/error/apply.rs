//! Errors of applying an overlay's changes to the base, and of completing interrupted changes.

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
            "this run has no working dir: its files are in memory only, and there is nothing to apply them to"
                .to_owned(),
        )
    }

    /// Returns the error for an entry that somebody else changed. `now` is its current state, if known.
    pub(crate) fn conflict(path: &RunPath, now: Option<&CurrentEntry>) -> FilesError {
        let now = match now {
            Some(CurrentEntry::Absent) => "nothing is there by now".to_owned(),
            Some(CurrentEntry::File(stamp, _)) => format!("a file of {} bytes is there by now", stamp.size()),
            Some(CurrentEntry::Folder) => "a folder is there by now".to_owned(),
            Some(CurrentEntry::Link(_)) => "a link is there by now".to_owned(),
            Some(CurrentEntry::Other) => "neither a file nor a folder is there by now".to_owned(),
            None => "it cannot be looked at by now".to_owned(),
        };
        let text = format!(
            "`{}` was changed by somebody else since the run looked at it: {now}; it is left as it is",
            printable(path)
        );
        FilesError::new(ErrorKind::Conflict, text)
    }

    pub(crate) fn saved(path: &RunPath, name: &RunPath) -> FilesError {
        let text = format!(
            "`{}` was changed by somebody else more than once meanwhile: what was there is kept as `{}`; compare the two",
            printable(path),
            printable(name)
        );
        FilesError::new(ErrorKind::Conflict, text)
    }

    pub(crate) fn not_synced(path: &RunPath, why: &str) -> FilesError {
        let text = format!("`{}` is changed, but the disk does not confirm it: {why}", printable(path));
        FilesError::new(ErrorKind::Io, text)
    }

    pub(crate) fn not_recovered(folder: &RunPath, cause: io::Error) -> FilesError {
        let text = format!(
            "failed to end the changes that a process had begun when it was killed: {cause}; `{}` has what is left of them",
            printable(folder)
        );
        FilesError { cause: Some(cause), ..FilesError::new(ErrorKind::Io, text) }
    }

    pub(crate) fn bad_delta() -> FilesError {
        FilesError::new(
            ErrorKind::Io,
            "failed to restore the run's files: the journal's record of them is not valid".to_owned(),
        )
    }

    pub(crate) fn held_back() -> FilesError {
        FilesError::new(
            ErrorKind::Conflict,
            "not removed, since other changes could not be carried out; nothing is removed until they are".to_owned(),
        )
    }
}

/// The error if some changes could not be applied. The changes that failed are still in the overlay, so
/// that they can be applied again.
#[derive(Debug)]
pub struct ApplyError {
    /// The changes that were applied, sorted by path.
    pub done: Vec<Change>,
    /// The changes that were not applied, sorted by path, each with the reason.
    pub failed: Vec<(Change, FilesError)>,
}

/// Maximum number of changes of each group that the message lists.
const MAX_LISTED: usize = 50;

impl ApplyError {
    /// Returns true if a change failed because somebody else changed the base.
    #[must_use]
    pub fn has_conflict(&self) -> bool {
        self.failed.iter().any(|(_, reason)| reason.is_conflict())
    }
}

/// Formats one line with the counts, then one line for each change, the failed ones first. Lists at most
/// 50 of each group.
impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.done.len() + self.failed.len();
        write!(f, "{} of {all} changes were not carried out", self.failed.len())?;
        for (change, reason) in self.failed.iter().take(MAX_LISTED) {
            write!(f, "\nnot done: {change}: {reason}")?;
        }
        if self.failed.len() > MAX_LISTED {
            write!(f, "\nnot done: {} more", self.failed.len() - MAX_LISTED)?;
        }
        for change in self.done.iter().take(MAX_LISTED) {
            write!(f, "\ndone: {change}")?;
        }
        if self.done.len() > MAX_LISTED {
            write!(f, "\ndone: {} more", self.done.len() - MAX_LISTED)?;
        }
        if self.has_conflict() {
            f.write_str("\nhint: move your own version away, or merge the two, then carry the changes out again")?;
        }
        Ok(())
    }
}

impl std::error::Error for ApplyError {}

//! Lists the changes of a run and applies them to the workdir.

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use wattle_agent::host::capability::files::{ApplyError, Change, ChangeKind, EntryKind, Files};

use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, NAME, paint};
use crate::progress::counted;
use crate::undone;

/// Maximum number of changes that are listed on stderr. Additional changes are only counted.
const LISTED: usize = 100;

/// The fate of a run's changes: already written, applied, or left as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The changes are already in the workdir.
    Written,
    /// The changes are applied at the end of the run.
    Apply,
    /// The changes stay in the session or are dropped. The string says which, and why.
    Leave(&'static str),
}

impl Fate {
    /// Returns the fate of the changes, which depends on the settings and on whether the run
    /// succeeded. `in_session` is true if a session keeps the changes that are not applied.
    pub(crate) fn of(config: &crate::config::Config, succeeded: bool, in_session: bool) -> Fate {
        match (config.writes_through(), config.apply.value, succeeded, in_session) {
            (true, _, _, _) => Fate::Written,
            (false, true, true, _) => Fate::Apply,
            (false, true, false, false) => {
                Fate::Leave("not applied, because the run did not succeed")
            }
            (false, true, false, true) => {
                Fate::Leave("kept in the session, because the run did not succeed")
            }
            (false, false, _, false) => Fate::Leave("not applied; apply with `--apply`"),
            (false, false, _, true) => Fate::Leave("kept in the session; apply with `--apply`"),
        }
    }
}

/// Returns the changes that a run made to its files.
///
/// # Errors
/// If the workdir cannot be read.
pub(crate) fn of(files: &Files) -> Result<Vec<Change>, Fault> {
    files.changes().map_err(|error| Fault::failed(format!("failed to list the changes: {error}")))
}

/// Applies the changes if `fate` is [`Fate::Apply`], and lists them on stderr.
///
/// # Errors
/// If the changes cannot be listed, or some of them cannot be applied. The error names the changes
/// that could not be applied.
pub(crate) fn settle(files: &Files, fate: Fate) -> Result<(), Fault> {
    let changes = of(files)?;
    if fate == Fate::Apply {
        apply_chosen(files, |_| true)?;
    }
    if !changes.is_empty() {
        list(&changes, fate);
    }
    Ok(())
}

/// Applies the changes for which `chosen` returns true. The others stay in the overlay. If a change
/// to a file cannot be applied, the run's version of the file is saved in the user's state folder
/// for comparison.
///
/// # Errors
/// If some of these changes cannot be applied. The error names them.
pub(crate) fn apply_chosen(files: &Files, chosen: impl Fn(&Change) -> bool) -> Result<(), Fault> {
    let Err(error) = files.apply_chosen(chosen) else { return Ok(()) };
    let mut text = error.to_string();
    match keep(files, &error) {
        Ok(Some(folder)) => {
            text += &format!("\nthe run's version of each file is saved below {}", folder.display())
        }
        Ok(None) => {}
        Err(cause) => {
            text += &format!("\nthe run's version of these files could not be saved: {cause}")
        }
    }
    Err(Fault::new(Exit::Failed, text))
}

/// Creates a folder for the files whose changes could not be applied. Writes the run's version of
/// each file to the folder, and returns the folder's path. Returns `None` if there are no such
/// files, or if the user has no state folder.
fn keep(files: &Files, error: &ApplyError) -> std::io::Result<Option<PathBuf>> {
    let written =
        |change: &&Change| change.entry == EntryKind::File && change.kind != ChangeKind::Deleted;
    let mut failed = error.failed.iter().map(|(change, _)| change).filter(written).peekable();
    if failed.peek().is_none() {
        return Ok(None);
    }
    let Some(folder) = undone::create()? else { return Ok(None) };
    for change in failed {
        let Ok(content) = files.read(&change.path) else { continue };
        let path = folder.join(&change.path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, content)?;
    }
    Ok(Some(folder))
}

fn list(changes: &[Change], fate: Fate) {
    let count = counted(changes.len(), "change");
    let what = match fate {
        Fate::Written => "written to the workdir",
        Fate::Apply => "applied",
        Fate::Leave(why) => why,
    };
    output::note(&format!("{} {}", paint(NAME, &count), paint(DIM, &format!("({what})"))));
    changes
        .iter()
        .take(LISTED)
        .for_each(|change| output::note(&format!("  {}", output::visible(&change.to_string()))));
    if let Some(more) = changes.len().checked_sub(LISTED).filter(|more| *more > 0) {
        output::note(&format!("  … {more} more"));
    }
}

/// Returns the changes as JSON.
pub(crate) fn to_json(changes: &[Change]) -> Json {
    let one = |change: &Change| {
        let kind = match change.kind {
            ChangeKind::Created => "created",
            ChangeKind::Modified => "modified",
            ChangeKind::Deleted => "deleted",
        };
        json!({"path": change.path, "kind": kind, "size": change.size})
    };
    changes.iter().map(one).collect()
}

//! What a run changed: the list on stderr, and carrying the overlay's changes out.

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use wattle_agent::capability::files::{ApplyError, Change, ChangeKind, EntryKind, Files};

use crate::config::Places;
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, NAME, paint};
use crate::progress::counted;
use crate::setup::make_private;

/// The most changes that are listed.
const LISTED: usize = 100;

/// What is to become of the changes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// They stand in the workdir already.
    Written,
    /// They are carried out now.
    Apply,
    /// They are dropped; the text says why, and what would have kept them.
    Drop(&'static str),
}

impl Fate {
    /// What becomes of the changes of a run with these settings, that ended well or not.
    pub(crate) fn of(config: &crate::config::Config, well: bool) -> Fate {
        match (config.writes_through(), config.apply.value, well) {
            (true, _, _) => Fate::Written,
            (false, true, true) => Fate::Apply,
            (false, true, false) => Fate::Drop("not carried out, because it did not end well"),
            (false, false, _) => Fate::Drop("not carried out; `--apply` would"),
        }
    }
}

/// Tells what was changed.
///
/// # Errors
/// Where the workdir cannot be read.
pub(crate) fn of(files: &Files) -> Result<Vec<Change>, Fault> {
    files.changes().map_err(|error| Fault::failed(format!("failed to list the changes: {error}")))
}

/// Carries the changes out where that is their fate, and lists them on stderr where there are any.
///
/// # Errors
/// Where the changes cannot be told, or not all could be carried out: the error says which.
pub(crate) fn settle(files: &Files, fate: Fate) -> Result<(), Fault> {
    let changes = of(files)?;
    if fate == Fate::Apply {
        carry_out(files)?;
    }
    if !changes.is_empty() {
        list(&changes, fate);
    }
    Ok(())
}

/// Carries the changes out. What could not be is kept below the user's data, where the user can compare it.
///
/// # Errors
/// Where not all could be carried out: the error says which.
pub(crate) fn carry_out(files: &Files) -> Result<(), Fault> {
    let Err(error) = files.apply() else { return Ok(()) };
    let mut text = error.to_string();
    match keep(files, &error) {
        Ok(Some(folder)) => text += &format!("\nthe run's version of each file is kept below {}", folder.display()),
        Ok(None) => {}
        Err(cause) => text += &format!("\nthe run's version of these files could not be kept: {cause}"),
    }
    Err(Fault::new(Exit::Failed, text))
}

/// Writes the files of the run that are not in the workdir to a new folder; `None` where there are none.
fn keep(files: &Files, error: &ApplyError) -> std::io::Result<Option<PathBuf>> {
    let written = |change: &&Change| change.entry == EntryKind::File && change.kind != ChangeKind::Deleted;
    let mut undone = error.failed.iter().map(|(change, _)| change).filter(written).peekable();
    let Some(data) = Places::of_user().store.filter(|_| undone.peek().is_some()) else { return Ok(None) };
    let top = data.with_file_name("undone");
    make_private(&top)?;
    let folder = top.join(wattle_agent::journal::new_id());
    for change in undone {
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
        Fate::Apply => "carried out",
        Fate::Drop(why) => why,
    };
    output::note(&format!("{} {}", paint(NAME, &count), paint(DIM, &format!("({what})"))));
    changes.iter().take(LISTED).for_each(|change| output::note(&format!("  {}", output::visible(&change.to_string()))));
    if let Some(more) = changes.len().checked_sub(LISTED).filter(|more| *more > 0) {
        output::note(&format!("  … {more} more"));
    }
}

/// The changes as JSON.
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

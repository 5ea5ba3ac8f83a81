//! What a run changed: the list on stderr, and carrying the overlay's changes out.

use serde_json::{Value as Json, json};
use wattle_agent::capability::files::{Change, ChangeKind, Files};

use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, NAME, paint};

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

/// Carries the changes out where that is their fate, lists them on stderr where there are any, and gives them.
///
/// # Errors
/// Where the changes cannot be told, or not all could be carried out: the error says which.
pub(crate) fn settle(files: &Files, fate: Fate) -> Result<Vec<Change>, Fault> {
    let changes = files.changes().map_err(|error| Fault::failed(format!("failed to list the changes: {error}")))?;
    let applied = if fate == Fate::Apply { files.apply().err() } else { None };
    if !changes.is_empty() && applied.is_none() {
        list(&changes, fate);
    }
    match applied {
        Some(error) => Err(Fault::new(Exit::Failed, error.to_string())),
        None => Ok(changes),
    }
}

fn list(changes: &[Change], fate: Fate) {
    let count = if changes.len() == 1 { "1 change".to_owned() } else { format!("{} changes", changes.len()) };
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

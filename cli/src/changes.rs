//! Lists the changes of a run and applies them to the workdir.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use wattle_agent::host::capability::files::{ApplyError, Change, ChangeKind, EntryKind, Files};
use wattle_agent::host::capability::policy::Policy;

use crate::ask;
use crate::config::Config;
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
    pub(crate) fn of(config: &Config, succeeded: bool, in_session: bool) -> Fate {
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

/// The rules by which changes of protected files are applied to a workdir.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    policy: Policy,
    /// The names of the workdir's path.
    root: Vec<String>,
}

impl Rules {
    /// Returns the rules of a command.
    pub(crate) fn of(config: &Config) -> Rules {
        let root = &config.root.value;
        let root = root.canonicalize().unwrap_or_else(|_| root.clone());
        Rules { policy: config.policy.clone(), root: names(&root) }
    }

    /// Returns a noun phrase that says what a file is, such as `a build file`, if the user must be
    /// asked before its change is applied.
    fn protects(&self, change: &Change) -> Option<&'static str> {
        // An empty folder does nothing, and a link stands for everything below it.
        let is_folder = change.entry == EntryKind::Folder && change.kind != ChangeKind::Deleted;
        let protects =
            || self.policy.protects(&self.root, &change.path, change.entry == EntryKind::Link);
        if is_folder { None } else { protects() }
    }

    /// Asks about each change of a protected file that would be applied. Returns the changes that
    /// are not approved, each with what the file is.
    fn refused<'c>(
        &self,
        changes: &'c [Change],
        chosen: impl Fn(&Change) -> bool,
    ) -> Vec<(&'c Change, &'static str)> {
        let asked = changes.iter().filter(|change| chosen(change));
        let asked = asked.filter_map(|change| Some((change, self.protects(change)?)));
        asked
            .filter(|(change, what)| !ask::confirm(&format!("{change} is {what}; apply it?")))
            .collect()
    }
}

fn names(path: &Path) -> Vec<String> {
    let names = path.components().filter_map(|part| match part {
        std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    names.collect()
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
/// If the changes cannot be listed, or some of them are not applied or could not be written. The error
/// names them.
pub(crate) fn settle(files: &Files, rules: &Rules, fate: Fate) -> Result<(), Fault> {
    let mut changes = of(files)?;
    let applied = if fate == Fate::Apply {
        let applied = apply_chosen(files, rules, |_| true);
        if applied.as_ref().is_err_and(|fault| fault.exit() != Exit::Denied) {
            return applied;
        }
        let left: HashSet<String> = of(files)?.into_iter().map(|change| change.path).collect();
        changes.retain(|change| !left.contains(&change.path));
        applied
    } else {
        Ok(())
    };
    if !changes.is_empty() {
        list(&changes, fate);
    }
    applied.and_then(|()| all_written(files))
}

/// Checks that all changes of a run that writes to the workdir are there: none failed, for example
/// because the disk is full, and the workdir is still the same folder.
fn all_written(files: &Files) -> Result<(), Fault> {
    files.check_workdir().map_err(Fault::failed)?;
    let failed = files.take_unwritten();
    if failed.is_empty() {
        return Ok(());
    }
    let count = counted(failed.len(), "change");
    let shown = failed.iter().take(LISTED);
    let lines: String = shown.map(|path| format!("\n  {}", output::visible(path))).collect();
    let more = failed.len().saturating_sub(LISTED);
    let more = if more > 0 { format!("\n  … {more} more") } else { String::new() };
    Err(Fault::failed(format!("{count} could not be written to the workdir:{lines}{more}"))
        .hint("free space on the disk, then run the command again"))
}

/// Applies the changes for which `chosen` returns true. The others stay in the overlay, and so do
/// changes of protected files, unless a rule allows them or the user approves them one by one. If a
/// change to a file cannot be applied, the run's version of the file is saved in the user's state
/// folder for comparison.
///
/// # Errors
/// If some of these changes are not applied. The error names them. If all others are applied, its
/// exit code is that of a missing permission.
pub(crate) fn apply_chosen(
    files: &Files,
    rules: &Rules,
    chosen: impl Fn(&Change) -> bool,
) -> Result<(), Fault> {
    let changes = of(files)?;
    let refused = rules.refused(&changes, &chosen);
    let is_left = |change: &Change| {
        refused.iter().any(|(other, _)| other.path == change.path)
            || is_only_for(change, &changes, &refused)
    };
    let Err(error) = files.apply_chosen(|change| chosen(change) && !is_left(change)) else {
        return not_approved(&refused);
    };
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

/// Returns true if a change creates a folder for nothing but refused changes.
fn is_only_for(folder: &Change, changes: &[Change], refused: &[(&Change, &str)]) -> bool {
    let prefix = format!("{}/", folder.path);
    let is_below =
        |change: &Change| change.path.starts_with(&prefix) && change.entry != EntryKind::Folder;
    let below = changes.iter().filter(|change| is_below(change)).count();
    let refused = refused.iter().filter(|(change, _)| is_below(change)).count();
    folder.entry == EntryKind::Folder
        && folder.kind == ChangeKind::Created
        && below > 0
        && below == refused
}

/// Returns the error for changes of protected files that the user did not approve.
fn not_approved(refused: &[(&Change, &'static str)]) -> Result<(), Fault> {
    let Some((first, _)) = refused.first() else { return Ok(()) };
    let lines = refused.iter().map(|(change, what)| format!("\n  {change}: {what}"));
    let count = counted(refused.len(), "change");
    let text = format!("{count} of protected files not applied:{}", lines.collect::<String>());
    let hint = format!(
        "approve each of them on a terminal, or allow one by `--allow write:{}`, or all by \
         `--allow protected`",
        first.path
    );
    Err(Fault::new(Exit::Denied, text).hint(hint))
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

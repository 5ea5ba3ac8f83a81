//! Lists the changes of a run and applies them to the workdir.

mod diff;

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use wattle_agent::host::capability::files::{ApplyError, Change, ChangeKind, EntryKind, Files};
use wattle_agent::host::capability::policy::Policy;

use crate::ask;
use crate::config::Config;
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, NAME, paint, width};
use crate::progress::counted;
use crate::undone;

pub(crate) use diff::render;

/// Maximum number of changes that are listed on stderr. Additional changes are only counted.
const LISTED: usize = 100;

/// Minimum number of lines of a diff that are shown before the user is asked about it.
const SHOWN: usize = 10;

/// Number of lines of the screen that a question about changes leaves to other text.
const MARGIN: usize = 6;

/// The fate of a run's changes: already written, applied, or left as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The changes are already in the workdir.
    Written,
    /// The changes are applied at the end of the run.
    Apply,
    /// The changes are kept or dropped. The string says what applies them, or why they were not.
    Leave(String),
}

impl Fate {
    /// Returns the fate of the changes, which depends on the settings and on whether the run
    /// succeeded. `kept_by` is the id of the run or the session that keeps the changes that are not
    /// applied.
    pub(crate) fn of(config: &Config, succeeded: bool, kept_by: Option<&str>) -> Fate {
        if config.writes_through() {
            return Fate::Written;
        }
        let is_wanted = config.apply.value;
        match kept_by {
            _ if is_wanted && succeeded => Fate::Apply,
            None if is_wanted => {
                Fate::Leave("not applied, because the run did not succeed".to_owned())
            }
            None => Fate::Leave("not applied; apply with `--apply`".to_owned()),
            Some(id) if is_wanted => Fate::Leave(format!(
                "not applied, because the run did not succeed; `wattle apply {id}` applies them"
            )),
            Some(id) => Fate::Leave(format!("not applied; `wattle apply {id}` applies them")),
        }
    }
}

/// The rules by which changes of protected files are applied to a workdir.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    policy: Policy,
    /// The workdir.
    root: PathBuf,
}

impl Rules {
    /// Returns the rules of a command.
    pub(crate) fn of(config: &Config) -> Rules {
        let root = &config.root.value;
        let root = root.canonicalize().unwrap_or_else(|_| root.clone());
        Rules { policy: config.policy.clone(), root }
    }

    /// Asks about each change of a protected file that would be applied. Returns the changes that
    /// are not approved, each with what the file is.
    fn refused<'c>(
        &self,
        changes: &'c [Change],
        chosen: impl Fn(&Change) -> bool,
    ) -> Vec<(&'c Change, &'static str)> {
        let asked = changes.iter().filter(|change| chosen(change));
        let asked = asked
            .filter_map(|change| Some((change, self.policy.protects_change(&self.root, change)?)));
        asked
            .filter(|(change, what)| !ask::confirm(&format!("{change} is {what}; apply it?")))
            .collect()
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
/// If the changes cannot be listed, or some of them are not applied or could not be written. The error
/// names them.
pub(crate) fn settle(files: &Files, rules: &Rules, fate: &Fate) -> Result<(), Fault> {
    let mut changes = of(files)?;
    let applied = if *fate == Fate::Apply {
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

/// Selects the changes at the given paths, or all changes if there are no paths. The path of a folder
/// selects all changes in the folder.
///
/// # Errors
/// If the changes cannot be listed, or there is no change at one of the paths.
pub(crate) fn select(files: &Files, paths: &[String]) -> Result<Vec<Change>, Fault> {
    let all = of(files)?;
    let paths: Vec<String> = paths.iter().map(|path| plain(path)).collect();
    for path in &paths {
        if !all.iter().any(|change| is_inside(&change.path, path)) {
            return Err(Fault::usage(format!("there is no change of `{path}`")));
        }
    }
    let is_selected = |change: &Change| {
        paths.is_empty() || paths.iter().any(|path| is_inside(&change.path, path))
    };
    Ok(all.into_iter().filter(is_selected).collect())
}

/// Applies the changes at the given paths like [`apply_chosen`], together with the new folders that
/// contain them. Returns the number of applied changes.
///
/// # Errors
/// The same as for [`select`] and [`apply_chosen`].
pub(crate) fn apply(files: &Files, rules: &Rules, paths: &[String]) -> Result<usize, Fault> {
    let mut chosen = select(files, paths)?;
    let mut above = of(files)?;
    above.retain(|change| {
        let holds = |own: &Change| is_inside(&own.path, &change.path);
        !chosen.contains(change) && chosen.iter().any(holds)
    });
    chosen.extend(above);
    apply_chosen(files, rules, |change| chosen.contains(change))?;
    Ok(chosen.len())
}

/// Discards the changes at the given paths, or all changes if there are no paths. Returns the number
/// of discarded changes.
///
/// # Errors
/// The same as for [`select`].
pub(crate) fn discard(files: &Files, paths: &[String]) -> Result<usize, Fault> {
    let count = select(files, paths)?.len();
    let all = [".".to_owned()];
    for path in if paths.is_empty() { &all } else { paths } {
        files
            .discard(path)
            .map_err(|error| Fault::failed(format!("failed to discard `{path}`: {error}")))?;
    }
    Ok(count)
}

/// Returns a path in the form in which changes are listed. The workdir itself is an empty string.
fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<_>>().join("/")
}

/// Returns true if a path is `folder` or is in it. Every path is in the empty path.
fn is_inside(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Shows the changes of a finished run to the user at the terminal, and asks whether to apply them.
/// `before` are the files without the changes. Returns false if there are no changes.
///
/// # Errors
/// If the changes cannot be listed.
pub(crate) fn is_wanted(before: &Files, after: &Files) -> Result<bool, Fault> {
    let changes = of(after)?;
    if changes.is_empty() {
        return Ok(false);
    }
    list(&changes, &Fate::Leave("not applied yet".to_owned()));
    let shown: String = changes.iter().map(|change| render(change, before, after)).collect();
    let lines: Vec<&str> = shown.lines().collect();
    let room = width::rows().saturating_sub(MARGIN).max(SHOWN);
    lines.iter().take(room).for_each(|line| output::note(line));
    if let Some(more) = lines.len().checked_sub(room).filter(|more| *more > 0) {
        output::aside(&format!("… {}; `v` shows all", counted(more, "more line")));
    }
    let choices =
        "apply the changes to the workdir? [a] apply  [v] view  [k] keep  (default: keep)";
    let wanted = ask::choose(choices, None, |reply| match reply {
        "a" | "apply" | "y" | "yes" => Some(true),
        "" | "k" | "keep" | "n" | "no" => Some(false),
        "v" | "view" => {
            output::note(shown.trim_end());
            None
        }
        _ => None,
    });
    Ok(wanted.unwrap_or(false))
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

fn list(changes: &[Change], fate: &Fate) {
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

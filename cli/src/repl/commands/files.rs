//! `/files`, `/diff`, `/apply`, `/drop`: commands for the session's changes to files.

use similar::{ChangeTag, TextDiff};
use wattle_agent::host::capability::files::{Change, ChangeKind, EntryKind, Files};

use crate::changes;
use crate::fault::Fault;
use crate::output::{self, BAD, DIM, GOOD, NAME, paint, visible};
use crate::progress::counted;
use crate::repl::Repl;
use crate::repl::session::Session;

/// Number of unchanged lines printed before and after each change.
const CONTEXT: usize = 3;

/// Lists the changes.
pub(super) async fn list(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    for change in repl.session.changes(None)? {
        output::text(&visible(&change.to_string()))?;
    }
    Ok(())
}

/// Prints the changes as unified diffs.
pub(super) async fn diff(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let session = &repl.session;
    let before = session.setup.files()?;
    for change in session.changes(path_of(&arguments).as_deref())? {
        output::styled(&paint(NAME, &visible(&change.to_string())))?;
        if change.entry != EntryKind::File {
            continue;
        }
        let read = |files: &Files, is_there: bool| {
            if is_there {
                files.read(&change.path).map(|bytes| bytes.to_vec()).unwrap_or_default()
            } else {
                Vec::new()
            }
        };
        let old = String::from_utf8(read(&before, change.kind != ChangeKind::Created));
        let new = String::from_utf8(read(&session.files, change.kind != ChangeKind::Deleted));
        match (old, new) {
            (Ok(old), Ok(new)) => output::styled(&unified(&old, &new))?,
            _ => output::styled(&paint(DIM, "  the content is not text"))?,
        }
    }
    Ok(())
}

/// Renders the difference between two strings, in colours.
fn unified(old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        text.push_str(&paint(DIM, &hunk.header().to_string()));
        text.push('\n');
        for change in hunk.iter_changes() {
            let line = visible(change.value().trim_end_matches('\n'));
            text.push_str(&match change.tag() {
                ChangeTag::Equal => format!(" {line}"),
                ChangeTag::Delete => paint(BAD, &format!("-{line}")),
                ChangeTag::Insert => paint(GOOD, &format!("+{line}")),
            });
            text.push('\n');
        }
    }
    text
}

/// Applies all changes to the workdir, or only those at a path.
pub(super) async fn apply(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let path = path_of(&arguments);
    let mut chosen = session.changes(path.as_deref())?;
    if let Some(path) = path {
        // A new entry needs its new parent folders.
        let mut above = changes::of(&session.files)?;
        above.retain(|change| !chosen.contains(change) && is_inside(&path, &change.path));
        chosen.extend(above);
    }
    session.apply(|change| chosen.contains(change)).await?;
    note("applied", chosen.len());
    Ok(())
}

/// Drops all changes, or only those at a path.
pub(super) async fn drop_changes(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let path = path_of(&arguments);
    let chosen = session.changes(path.as_deref())?;
    let path = path.unwrap_or_else(|| ".".to_owned());
    let dropped = session.edit_changes(|files| {
        files
            .discard(&path)
            .map_err(|error| Fault::failed(format!("failed to drop `{path}`: {error}")))
    });
    dropped.await?;
    note("dropped", chosen.len());
    Ok(())
}

fn note(what: &str, count: usize) {
    output::aside(&format!("{what} {}", counted(count, "change")));
}

/// Returns the path that a command names, in the form in which changes are listed. Returns `None`
/// if the command names no path, or the workdir itself.
fn path_of(arguments: &[String]) -> Option<String> {
    let parts = arguments.first()?.split('/').filter(|part| !matches!(*part, "" | "."));
    Some(parts.collect::<Vec<_>>().join("/")).filter(|path| !path.is_empty())
}

/// Returns true if a path is `folder` or is in it.
fn is_inside(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Session {
    /// Returns all changes, or only those at a path. The path of a folder selects all changes in
    /// the folder.
    fn changes(&self, path: Option<&str>) -> Result<Vec<Change>, Fault> {
        if !self.files.is_overlay() {
            return Err(Fault::usage("changes are written to the workdir at once")
                .hint("without `--write` they stay in the session until `/apply`"));
        }
        let all = changes::of(&self.files)?;
        let Some(path) = path else {
            if all.is_empty() {
                output::aside("there are no changes");
            }
            return Ok(all);
        };
        let chosen: Vec<Change> =
            all.into_iter().filter(|change| is_inside(&change.path, path)).collect();
        if chosen.is_empty() {
            return Err(Fault::usage(format!("there is no change of `{path}`"))
                .hint("`/files` lists the changes"));
        }
        Ok(chosen)
    }
}

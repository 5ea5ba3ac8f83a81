//! `/files`, `/diff`, `/apply`, `/drop`: commands for the session's changes to files.

use wattle_agent::host::capability::files::Change;

use crate::changes;
use crate::fault::Fault;
use crate::output::{self, visible};
use crate::progress::counted;
use crate::repl::Repl;
use crate::repl::session::Session;

/// Lists the changes.
pub(super) async fn list(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    for change in repl.session.changes(&[])? {
        output::text(&visible(&change.to_string()))?;
    }
    Ok(())
}

/// Prints the changes as unified diffs.
pub(super) async fn diff(repl: &mut Repl, paths: Vec<String>) -> Result<(), Fault> {
    let session = &repl.session;
    let before = session.setup.files()?;
    for change in session.changes(&paths)? {
        output::styled(&changes::render(&change, &before, &session.files))?;
    }
    Ok(())
}

/// Applies all changes to the workdir, or only those at the given paths.
pub(super) async fn apply(repl: &mut Repl, paths: Vec<String>) -> Result<(), Fault> {
    repl.session.changes(&paths)?;
    note("applied", repl.session.apply(&paths).await?);
    Ok(())
}

/// Drops all changes, or only those at the given paths.
pub(super) async fn drop_changes(repl: &mut Repl, paths: Vec<String>) -> Result<(), Fault> {
    repl.session.changes(&paths)?;
    note("dropped", repl.session.edit_changes(|files| changes::discard(files, &paths)).await?);
    Ok(())
}

fn note(what: &str, count: usize) {
    output::aside(&format!("{what} {}", counted(count, "change")));
}

impl Session {
    /// Returns all changes, or only those at the given paths.
    fn changes(&self, paths: &[String]) -> Result<Vec<Change>, Fault> {
        if !self.files.is_overlay() {
            return Err(Fault::usage("changes are written to the workdir at once")
                .hint("without `--write` they stay in the session until `/apply`"));
        }
        let chosen = changes::select(&self.files, paths)
            .map_err(|fault| fault.hint("`/files` lists the changes"))?;
        if chosen.is_empty() {
            output::aside("there are no changes");
        }
        Ok(chosen)
    }
}

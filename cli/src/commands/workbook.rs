//! `wattle workbook`: runs and examines workbooks.

use std::path::Path;

use serde_json::json;
use wattle_agent::host::capability::workbook::{self, ComponentOutline};

use crate::args::{ExecArgs, WorkbookCommand};
use crate::config::Layer;
use crate::fault::{Exit, Fault};
use crate::setup::Setup;
use crate::{files, input, output, threads, trust};

/// Runs a `workbook` command.
pub(crate) fn workbook(command: WorkbookCommand, flags: &[Layer]) -> Result<Exit, Fault> {
    match command {
        WorkbookCommand::Run { file, json } => {
            // The file may be outside the workdir.
            let args = vec![input::text(&file)?];
            let program = "run".to_owned();
            super::exec::exec(ExecArgs { program, artifacts: None, args, json }, flags)
        }
        WorkbookCommand::List { file, json } => list(&components(&file)?, json).map(Exit::from),
        WorkbookCommand::Lint { file } => threads::run(lint(&file, flags)),
        WorkbookCommand::Tangle { file, dir } => tangle(&components(&file)?, &dir).map(Exit::from),
        WorkbookCommand::Query { file, filter } => {
            let document = json!(components(&file)?).to_string();
            threads::run(super::query(&filter, document.as_bytes()))
        }
    }
}

fn components(file: &Path) -> Result<Vec<ComponentOutline>, Fault> {
    Ok(workbook::outline(&input::text(file)?)?)
}

/// Prints each component with its program, its inputs and its exports.
fn list(components: &[ComponentOutline], as_json: bool) -> Result<(), Fault> {
    if as_json {
        return output::json(components);
    }
    for component in components {
        let mut line = component.name.clone();
        if let Some(program) = &component.program {
            line.push_str(&format!("  {program}"));
        }
        for (words, names) in [("needs", &component.needs), ("exports", &component.exports)] {
            if !names.is_empty() {
                line.push_str(&format!("  {words} {}", names.join(", ")));
            }
        }
        output::text(&output::visible(&line))?;
    }
    Ok(())
}

/// Checks the workbook and compiles its programs without running them.
async fn lint(file: &Path, flags: &[Layer]) -> Result<Exit, Fault> {
    let book = input::text(file)?;
    let setup = Setup::new(trust::with_trusted_content(trust::gather(flags)?)?)?;
    let faults = workbook::lint(&book, &*setup.host.programs()).await;
    for fault in &faults {
        output::text(&output::visible(fault))?;
    }
    Ok(Exit::of(faults.is_empty()))
}

/// Writes the components' programs to new files in `dir` and prints the paths of the files.
fn tangle(components: &[ComponentOutline], dir: &Path) -> Result<(), Fault> {
    for component in components {
        let Some(source) = &component.source else { continue };
        let name = &component.name;
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.starts_with('.') || !name.chars().all(plain) {
            return Err(Fault::failed(format!("the component `{name}` has no name for a file"))
                .hint("use letters, digits, `_`, `-` and `.`"));
        }
        let path = dir.join(format!("{name}.wat"));
        files::create(&path, source).map_err(|error| {
            Fault::failed(format!("failed to write `{}`: {error}", path.display()))
                .hint("an existing file is not replaced; name another folder with `--dir DIR`")
        })?;
        output::text(&output::visible(&path.display().to_string()))?;
    }
    Ok(())
}

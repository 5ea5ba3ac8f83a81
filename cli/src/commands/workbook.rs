//! `wattle workbook`: runs and examines workbooks.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use wattle_agent::host::capability::json::jq;
use wattle_agent::host::capability::workbook::{self, ComponentOutline};
use wattle_agent::host::now_ms;
use wattle_agent::host::rt::Failure;

use crate::args::{CatalogFlags, ExecArgs, WorkbookCommand};
use crate::config::Layer;
use crate::fault::{Exit, Fault};
use crate::setup::Setup;
use crate::{input, output, threads, trust};

/// Time limit for a query.
const QUERY: Duration = Duration::from_secs(60);

/// Runs a `workbook` command.
pub(crate) fn workbook(command: WorkbookCommand, outer: Layer) -> Result<Exit, Fault> {
    match command {
        WorkbookCommand::Run { file, json, flags } => {
            // The file may be outside the workdir.
            let book = input::text(&file)?;
            let args = ExecArgs {
                program: "run".to_owned(),
                artifacts: None,
                args: vec![book],
                json,
                flags: *flags,
            };
            super::exec::exec(args, outer)
        }
        WorkbookCommand::List { file, json } => list(&components(&file)?, json),
        WorkbookCommand::Lint { file, flags } => threads::run(lint(file, flags, outer)),
        WorkbookCommand::Tangle { file, dir } => tangle(&components(&file)?, &dir),
        WorkbookCommand::Query { file, filter } => threads::run(query(file, filter)),
    }
}

fn components(file: &Path) -> Result<Vec<ComponentOutline>, Fault> {
    workbook::outline(&input::text(file)?).map_err(invalid)
}

fn invalid(failure: Failure) -> Fault {
    Fault::failed(failure.reason)
}

/// Prints each component with its program, its inputs and its exports.
fn list(components: &[ComponentOutline], as_json: bool) -> Result<Exit, Fault> {
    if as_json {
        output::json(&json!(components))?;
        return Ok(Exit::Done);
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
    Ok(Exit::Done)
}

/// Checks the workbook and compiles its programs without running them.
async fn lint(file: PathBuf, flags: CatalogFlags, outer: Layer) -> Result<Exit, Fault> {
    let book = input::text(&file)?;
    let setup = Setup::new(trust::gather(&[flags.into(), outer])?)?;
    let faults = workbook::lint(&book, &*setup.host.programs()).await;
    for fault in &faults {
        output::text(&output::visible(fault))?;
    }
    Ok(if faults.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Writes the components' programs to new files in `dir` and prints the paths of the files.
fn tangle(components: &[ComponentOutline], dir: &Path) -> Result<Exit, Fault> {
    for component in components {
        let Some(source) = &component.source else { continue };
        let name = &component.name;
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.starts_with('.') || !name.chars().all(plain) {
            return Err(Fault::failed(format!("the component `{name}` has no name for a file"))
                .hint("use letters, digits, `_`, `-` and `.`"));
        }
        let path = dir.join(format!("{name}.wat"));
        let write = std::fs::create_dir_all(dir)
            .and_then(|()| std::fs::File::create_new(&path))
            .and_then(|mut file| std::io::Write::write_all(&mut file, source.as_bytes()));
        write.map_err(|error| {
            Fault::failed(format!("failed to write `{}`: {error}", path.display()))
                .hint("an existing file is not replaced; name another folder with `--dir DIR`")
        })?;
        output::text(&output::visible(&path.display().to_string()))?;
    }
    Ok(Exit::Done)
}

/// Applies a jq filter to the JSON array of the components and prints the result.
async fn query(file: PathBuf, filter: String) -> Result<Exit, Fault> {
    let document = json!(components(&file)?).to_string();
    let until = Instant::now() + QUERY;
    let found = jq(&filter, document.as_bytes(), now_ms() as f64 / 1_000.0, until).await;
    let found = found.map_err(|failure| Fault::usage(failure.reason))?;
    output::text(&String::from_utf8_lossy(&found))?;
    Ok(Exit::Done)
}

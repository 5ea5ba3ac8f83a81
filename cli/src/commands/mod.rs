//! The implementations of the commands, with one module for each.

pub(crate) mod agents;
mod authority;
pub(crate) mod catalog;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod exec;
pub(crate) mod expand;
pub(crate) mod init;
mod kept;
pub(crate) mod ledger;
pub(crate) mod memory;
mod outputs;
pub(crate) mod parse;
pub(crate) mod prune;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod shell;
pub(crate) mod store;
pub(crate) mod token;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod vars;
pub(crate) mod workbook;

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use wattle_agent::host::catalog::Catalog;

use crate::fault::Fault;

/// Writes a string to a new file in a folder and returns the file's path. Creates the folder if it
/// is missing.
///
/// # Errors
/// If the file exists or cannot be written.
fn write_new(folder: &Path, file: &str, text: &str) -> Result<PathBuf, Fault> {
    let path = folder.join(file);
    let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
    let shown = path.display();
    let made = std::fs::create_dir_all(folder).and_then(|()| {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.write_all(text.as_bytes())
    });
    made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Fault::usage(format!("the file `{shown}` already exists"))
            .hint("choose another name, or another `--dir DIR`"),
        _ => Fault::failed(format!("failed to write `{shown}`: {error}"))
            .hint("choose another `--dir DIR`"),
    })?;
    Ok(path)
}

/// The command that lists the programs.
const LIST: &str = "wattle catalog list";

/// Returns the error for an unknown program. `nor` is appended to the error's message. The error's
/// hint names similar programs or, if there are none, `list`, the command that lists all programs.
pub(crate) fn no_program(catalog: &Catalog, name: &str, nor: &str, list: &str) -> Fault {
    let fault = Fault::usage(format!("no program `{name}` in the catalog{nor}"));
    let near: Vec<String> = catalog.nearest(name).iter().map(|near| format!("`{near}`")).collect();
    if near.is_empty() {
        fault.hint(format!("`{list}` shows the programs"))
    } else {
        fault.hint(format!("did you mean {}?", near.join(" or ")))
    }
}

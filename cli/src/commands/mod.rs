//! The implementations of the commands, with one module for each.

pub(crate) mod agents;
mod authority;
pub(crate) mod catalog;
pub(crate) mod changes;
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
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod memory;
mod outputs;
pub(crate) mod parse;
pub(crate) mod prune;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod session;
pub(crate) mod shell;
pub(crate) mod skills;
pub(crate) mod store;
pub(crate) mod token;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod vars;
pub(crate) mod workbook;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use wattle_agent::host::capability::json::jq;
use wattle_agent::host::catalog::Catalog;
use wattle_agent::host::now_ms;

use crate::fault::Fault;
use crate::files;
use crate::output::{self, BAD, GOOD, paint};
use crate::progress::counted;

/// Writes a string to a new file in a folder and returns the file's path. Creates the folder if it
/// is missing.
///
/// # Errors
/// If the file exists or cannot be written.
fn write_new(folder: &Path, file: &str, text: &str) -> Result<PathBuf, Fault> {
    let path = folder.join(file);
    let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
    let shown = path.display();
    files::create(&path, text).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Fault::usage(format!("the file `{shown}` already exists"))
            .hint("choose another name, or another `--dir DIR`"),
        _ => Fault::failed(format!("failed to write `{shown}`: {error}"))
            .hint("choose another `--dir DIR`"),
    })?;
    Ok(path)
}

/// Adds the fields of a JSON object to another one.
fn extend(document: &mut Json, fields: Json) {
    if let (Json::Object(document), Json::Object(fields)) = (document, fields) {
        document.extend(fields);
    }
}

/// Time limit for a query.
const QUERY: Duration = Duration::from_secs(60);

/// Applies a jq filter to a JSON document and prints the result.
async fn query(filter: &str, document: &[u8]) -> Result<(), Fault> {
    let found = jq(filter, document, now_ms() as f64 / 1_000.0, Instant::now() + QUERY).await;
    let found = found.map_err(|failure| Fault::usage(failure.reason))?;
    output::text(&String::from_utf8_lossy(&found))
}

/// Prints the number of tested things and of their examples, and the verdict. `note` follows the
/// numbers.
fn print_verdict(tested: String, examples: usize, note: &str, failed: usize) -> Result<(), Fault> {
    let verdict = match failed {
        0 => paint(GOOD, "all pass"),
        failed => paint(BAD, &format!("{failed} failed")),
    };
    output::styled(&format!("{tested}, {}{note}: {verdict}", counted(examples, "example")))
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

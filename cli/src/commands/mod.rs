//! The commands, one file each.

pub(crate) mod catalog;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod exec;
pub(crate) mod expand;
pub(crate) mod parse;
pub(crate) mod run;

use wattle_agent::catalog::Catalog;
use wattle_agent::rt::Program;

use crate::fault::Fault;

/// There is no program of that name: what comes close.
fn no_program(catalog: &Catalog, name: &str) -> Fault {
    let fault = Fault::usage(format!("no program `{name}` in the catalog, and no such file"));
    let near: Vec<String> = catalog.nearest(name).iter().map(|near| format!("`{near}`")).collect();
    match near.is_empty() {
        true => fault.hint("`wattle catalog list` shows the programs"),
        false => fault.hint(format!("did you mean {}?", near.join(" or "))),
    }
}

//! `wattle catalog`: the programs that a model may call by name.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use wattle_agent::catalog::{Catalog, Entry};

use crate::args::{CatalogCommand, CatalogFlags};
use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::{output, setup};

/// Lists the programs, or shows one.
pub(crate) fn catalog(command: CatalogCommand, outer: Layer) -> Result<Exit, Fault> {
    match command {
        CatalogCommand::List { json, flags } => list(json, flags, outer),
        CatalogCommand::Show { name, json, flags } => show(&name, json, flags, outer),
    }
}

fn list(json: bool, flags: CatalogFlags, outer: Layer) -> Result<Exit, Fault> {
    let catalog = setup::catalog(&Config::gather(&[flags.into(), outer])?);
    if json {
        output::json(&catalog.iter().map(|entry| to_json(entry)).collect())?;
        return Ok(Exit::Done);
    }
    print(&catalog)?;
    Ok(Exit::Done)
}

/// Lists the programs of a catalog for a person.
///
/// # Errors
/// Where stdout cannot be written.
pub(crate) fn print(catalog: &Catalog) -> Result<(), Fault> {
    let width = catalog.iter().map(|entry| entry.name().as_str().len()).max().unwrap_or(0);
    let line = |entry: &Entry| format!("{:<width$}  {}\n", entry.name().as_str(), entry.meta().description);
    output::data(catalog.iter().map(|entry| line(entry)).collect::<String>().as_bytes())
}

fn show(name: &str, json: bool, flags: CatalogFlags, outer: Layer) -> Result<Exit, Fault> {
    let catalog = setup::catalog(&Config::gather(&[flags.into(), outer])?);
    let entry = catalog.get(name).ok_or_else(|| super::no_program(&catalog, name, "", super::LIST))?;
    if json {
        let mut document = to_json(entry);
        if let Some(object) = document.as_object_mut() {
            object.insert("source".to_owned(), json!(entry.source().as_ref()));
        }
        output::json(&document)?;
        return Ok(Exit::Done);
    }
    let mut text = format!("{}\n  {}\n", entry.usage(), entry.meta().description);
    for arg in &entry.meta().args {
        let default = arg.default.as_ref().map(|default| format!(" (default {default:?})")).unwrap_or_default();
        let _ = writeln!(text, "  {}: {}{default}", arg.name, arg.description);
    }
    if let Some(returns) = &entry.meta().returns {
        let _ = writeln!(text, "  gives {returns}");
    }
    let _ = writeln!(text, "  from {}\n\n{}", entry.origin(), entry.body().trim());
    output::text(&text)?;
    Ok(Exit::Done)
}

fn to_json(entry: &Entry) -> Json {
    let args = entry.meta().args.iter();
    json!({
        "name": entry.name().as_str(),
        "description": entry.meta().description,
        "usage": entry.usage(),
        "args": args.map(|arg| json!({
            "name": arg.name, "type_hint": arg.type_hint.to_string(),
            "description": arg.description, "default": arg.default,
        })).collect::<Vec<_>>(),
        "returns": entry.meta().returns,
        "origin": entry.origin().to_string(),
    })
}

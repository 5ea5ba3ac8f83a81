//! `wattle catalog`: lists, searches, shows, creates, tests and formats the programs that a model
//! calls by name.

mod fmt;
mod new;
mod test;

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use wattle_agent::host::catalog::{AiAnswer, Catalog, Entry, Example, Results};

use crate::args::{CatalogCommand, CatalogFlags};
use crate::config::Layer;
use crate::fault::{Exit, Fault};
use crate::output::{DIM, paint, visible};
use crate::{output, setup, trust};

/// Runs a `catalog` command.
pub(crate) async fn catalog(command: CatalogCommand, outer: Layer) -> Result<Exit, Fault> {
    match command {
        CatalogCommand::List { json, flags } => list(json, flags, outer),
        CatalogCommand::Show { name, json, flags } => show(&name, json, flags, outer),
        CatalogCommand::Search { words, json, flags } => {
            search(&words.join(" "), json, flags, outer)
        }
        CatalogCommand::New(args) => new::new(args, outer),
        CatalogCommand::Test { what, json, flags } => test::test(what, json, flags, outer).await,
        CatalogCommand::Fmt(args) => fmt::fmt(args, outer),
    }
}

fn gather(flags: CatalogFlags, outer: Layer) -> Result<Catalog, Fault> {
    Ok(setup::folders(&trust::gather(&[flags.into(), outer])?).catalog().clone())
}

fn list(json: bool, flags: CatalogFlags, outer: Layer) -> Result<Exit, Fault> {
    let catalog = gather(flags, outer)?;
    let entries: Vec<&Entry> = catalog.iter().map(|entry| &**entry).collect();
    if json {
        output::json(&entries.iter().map(|entry| to_json(entry)).collect())?
    } else {
        print(&entries)?
    }
    Ok(Exit::Done)
}

/// Prints a list of programs.
///
/// # Errors
/// If stdout cannot be written.
pub(crate) fn print(entries: &[&Entry]) -> Result<(), Fault> {
    let width = entries.iter().map(|entry| entry.name().as_str().len()).max().unwrap_or(0);
    let line = |entry: &&Entry| {
        let mark =
            if entry.meta().replaces.is_some() { " (replaces the built-in one)" } else { "" };
        format!("{:<width$}  {}{mark}\n", entry.name().as_str(), entry.meta().description)
    };
    output::data(visible(&entries.iter().map(line).collect::<String>()).as_bytes())
}

fn search(words: &str, json: bool, flags: CatalogFlags, outer: Layer) -> Result<Exit, Fault> {
    let catalog = gather(flags, outer)?;
    let found: Vec<&Entry> = catalog.search(words).into_iter().map(|entry| &**entry).collect();
    if json {
        output::json(&found.iter().map(|entry| to_json(entry)).collect())?;
    } else if found.is_empty() {
        let fault = Fault::failed(format!("no program of the catalog is about `{words}`"));
        return Err(fault.hint(format!("`{}` shows all programs", super::LIST)));
    } else {
        print(&found)?;
    }
    Ok(if found.is_empty() { Exit::Failed } else { Exit::Done })
}

fn show(name: &str, json: bool, flags: CatalogFlags, outer: Layer) -> Result<Exit, Fault> {
    let catalog = gather(flags, outer)?;
    let entry =
        catalog.get(name).ok_or_else(|| super::no_program(&catalog, name, "", super::LIST))?;
    if json {
        let mut document = to_json(entry);
        if let Some(object) = document.as_object_mut() {
            object.insert(
                "examples".to_owned(),
                entry.meta().examples.iter().map(example_json).collect(),
            );
            object.insert("source".to_owned(), json!(entry.source().as_ref()));
        }
        output::json(&document)?;
        return Ok(Exit::Done);
    }
    let from = paint(DIM, &format!("from {}", visible(&entry.origin().to_string())));
    output::styled(&format!("{}{from}\n\n", visible(&entry.manual())))?;
    output::text(&visible(entry.body().trim()))?;
    Ok(Exit::Done)
}

fn to_json(entry: &Entry) -> Json {
    let meta = entry.meta();
    let args = meta.args.iter();
    json!({
        "name": entry.name().as_str(),
        "description": meta.description,
        "usage": entry.usage(),
        "args": args.map(|arg| json!({
            "name": arg.name, "type_hint": arg.type_hint.to_string(), "format": arg.format,
            "description": arg.description, "default": arg.default,
        })).collect::<Vec<_>>(),
        "returns": meta.returns,
        "uses": meta.uses,
        "version": meta.version,
        "replaces": meta.replaces,
        "tags": meta.tags,
        "exclusive": meta.exclusive,
        "silent": meta.silent,
        "timeout_ms": meta.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        "origin": entry.origin().to_string(),
    })
}

fn example_json(example: &Example) -> Json {
    let fixtures = &example.fixtures;
    let (results, contains) = match &example.expected.results {
        Results::Any => (Json::Null, Json::Null),
        Results::Exactly(results) => (json!(results), Json::Null),
        Results::Containing(parts) => (Json::Null, json!(parts)),
    };
    let answer = |answer: &AiAnswer| match answer {
        AiAnswer::Next(reply) => json!(reply),
        AiAnswer::When { when, reply } => json!({"when": when, "reply": reply}),
    };
    json!({
        "line": example.line,
        "args": example.args,
        "files": fixtures.files,
        "kv": fixtures.kv,
        "http": fixtures.http.iter().map(|a| json!({
            "method": a.method, "url": a.url, "status": a.status,
            "headers": a.headers, "body": a.body,
        })).collect::<Vec<_>>(),
        "now": fixtures.now,
        "random": fixtures.random,
        "shell": fixtures.shell.iter().map(|a| json!({
            "line": a.line, "stdout": a.stdout, "stderr": a.stderr, "status": a.status,
        })).collect::<Vec<_>>(),
        "ai": fixtures.ai.iter().map(answer).collect::<Vec<_>>(),
        "code": example.expected.code.number(),
        "results": results,
        "contains": contains,
        "files_after": example.expected.files,
        "kv_after": example.expected.kv,
    })
}

/// Returns the program files of a folder, sorted. Like the catalog, omits links and everything else
/// that is not a regular file. Prints a warning for each omission.
///
/// # Errors
/// If the folder cannot be read.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut paths = wattle_agent::host::catalog::files_in(folder, "wat").map_err(|error| {
        Fault::usage(format!("failed to read the folder `{}`: {error}", folder.display()))
    })?;
    paths.retain(|path| {
        let is_file = path.symlink_metadata().is_ok_and(|data| data.is_file());
        if !is_file {
            let message = format!("`{}` is left out: it is not a regular file", path.display());
            output::warn(&message);
        }
        is_file
    });
    Ok(paths)
}

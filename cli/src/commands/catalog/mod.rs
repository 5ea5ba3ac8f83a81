//! `wattle catalog`: lists, searches, shows, creates, tests and formats the programs that a model
//! calls by name.

mod fmt;
mod new;
mod test;

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use wattle_agent::host::capability::policy::{Grant, Privilege, SourceHash};
use wattle_agent::host::catalog::{AiAnswer, Entry, Example, Results};

use crate::args::CatalogCommand;
use crate::config::{Config, Layer, user_path};
use crate::fault::{Exit, Fault};
use crate::output::{DIM, paint, visible};
use crate::{output, setup, trust};

/// Runs a `catalog` command.
pub(crate) async fn catalog(command: CatalogCommand, flags: &[Layer]) -> Result<Exit, Fault> {
    // The tests of programs run in the sandbox, with what the tests name.
    let config = match command {
        CatalogCommand::New(_) => trust::gather(flags)?,
        _ => trust::gather_with_warnings(flags)?,
    };
    match command {
        CatalogCommand::List { json } => {
            let catalog = setup::folders(&config).catalog().clone();
            list(&catalog.iter().map(|entry| &**entry).collect::<Vec<_>>(), json).map(Exit::from)
        }
        CatalogCommand::Show { name, json } => show(&name, json, &config).map(Exit::from),
        CatalogCommand::Search { words, json } => search(&words.join(" "), json, &config),
        CatalogCommand::New(args) => new::new(args, &config).map(Exit::from),
        CatalogCommand::Test { what, json } => test::test(what, json, config).await,
        CatalogCommand::Fmt(args) => fmt::fmt(args, config),
    }
}

fn list(entries: &[&Entry], json: bool) -> Result<(), Fault> {
    if json {
        output::json(&entries.iter().map(|entry| entry.to_json()).collect::<Json>())
    } else {
        print(entries)
    }
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

fn search(words: &str, json: bool, config: &Config) -> Result<Exit, Fault> {
    let catalog = setup::folders(config).catalog().clone();
    let found: Vec<&Entry> = catalog.search(words).into_iter().map(|entry| &**entry).collect();
    if found.is_empty() && !json {
        let fault = Fault::failed(format!("no program of the catalog is about `{words}`"));
        return Err(fault.hint(format!("`{}` shows all programs", super::LIST)));
    }
    list(&found, json)?;
    Ok(Exit::of(!found.is_empty()))
}

fn show(name: &str, json: bool, config: &Config) -> Result<(), Fault> {
    let catalog = setup::folders(config).catalog().clone();
    let entry =
        catalog.get(name).ok_or_else(|| super::no_program(&catalog, name, "", super::LIST))?;
    if json {
        let mut document = entry.to_json();
        let examples: Vec<Json> = entry.meta().examples.iter().map(example_json).collect();
        let source = entry.source().as_ref();
        let (sha256, given) = (SourceHash::of(source).to_string(), texts(given(entry, config)));
        super::extend(
            &mut document,
            json!({"given": given, "sha256": sha256, "examples": examples, "source": source}),
        );
        return output::json(&document);
    }
    let from = paint(DIM, &format!("from {}", visible(&entry.origin().to_string())));
    let privileges = visible(&privileges(entry, config));
    output::styled(&format!("{}{from}\n{privileges}\n", visible(&entry.manual())))?;
    output::text(&visible(entry.body().trim()))
}

/// Returns what the operator gives to the program.
pub(crate) fn given<'c>(entry: &Entry, config: &'c Config) -> &'c [Grant] {
    config.programs.value.given(entry.real_name().as_str(), SourceHash::of(entry.source()))
}

fn texts(grants: &[Grant]) -> Vec<String> {
    grants.iter().map(ToString::to_string).collect()
}

/// Describes what the operator gives to the program, and prints the setting that would give what
/// else it asks for. Returns an empty string if there is neither.
fn privileges(entry: &Entry, config: &Config) -> String {
    let (name, given) = (entry.real_name().as_str(), given(entry, config));
    let asks: Vec<Grant> =
        entry.meta().grants.iter().filter_map(|grant| grant.parse().ok()).collect();
    let mut text = String::new();
    if !given.is_empty() {
        text += &format!("the setting `programs` gives it {}\n", texts(given).join(", "));
    } else if config.programs.value.0.contains_key(name) {
        text += "the setting `programs` gives it nothing, because it names another text\n";
    }
    let lacking: Vec<&Grant> = asks.iter().filter(|ask| !given.contains(ask)).collect();
    if !lacking.is_empty() {
        let lacking: Vec<String> = lacking.iter().map(ToString::to_string).collect();
        let sha256 = SourceHash::of(entry.source());
        let lines = Privilege { sha256, grants: asks }.lines(name).join("\n");
        text += &format!("nobody gives it {}", lacking.join(", "));
        text += &match user_path() {
            Ok(path) => format!("; these lines in {} would:\n{lines}\n", path.display()),
            Err(_) => format!("; these lines in the user file would:\n{lines}\n"),
        };
    }
    text
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
pub(crate) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
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

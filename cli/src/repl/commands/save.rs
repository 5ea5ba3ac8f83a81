//! `/save`, `/edit`: commands that save and edit programs.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::json;
use wattle_agent::host::capability;
use wattle_agent::host::catalog::{Catalog, Entry, Name, Origin, format};
use wattle_agent::host::rt::{CallEffect, Signature};

use super::step;
use crate::fault::Fault;
use crate::files;
use crate::output::highlight::{Kind, pieces};
use crate::output::{self, visible};
use crate::repl::Repl;
use crate::repl::session::Session;

/// Writes the last program, or the program of a step, to a new file in the catalog.
pub(super) async fn save(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let mut arguments = arguments.into_iter();
    let given = arguments.next().unwrap_or_default();
    let name: Name = given.parse().map_err(|rule| {
        Fault::usage(format!("`{given}` is not a valid program name")).hint(format!("{rule}"))
    })?;
    if Catalog::built_in().get(name.as_str()).is_some() {
        return Err(Fault::usage(format!("`{name}` is the name of a built-in program"))
            .hint("choose another name"));
    }
    let number = arguments.next().map(|argument| step(&argument)).transpose()?;
    let body = session.source_of(number)?;
    if Entry::has_front_matter(&body) {
        return Err(Fault::usage("the program is from the catalog already")
            .hint("`/source STEP` prints it"));
    }
    let (text, has_example) = session.with_front_matter(&name, number, &body).await?;
    let folder = session.config().catalog.value.last().cloned();
    let is_listed = folder.is_some();
    let folder = folder.unwrap_or_else(|| session.config().root.value.join("catalog"));
    let path = folder.join(format!("{name}.wat"));
    let entry = Entry::parse(&text, Origin::File(path.clone())).map_err(Fault::failed)?;
    let host = session.setup.host.clone();
    host.check(&entry).await.map_err(Fault::failed)?;
    write(&path, &text)?;
    // The program can be called at once. Others in a folder that is not listed cannot: nobody has
    // chosen to trust them.
    if is_listed {
        host.reload().await
    } else {
        host.add_programs(vec![entry]).await
    }
    let _reported_here = host.refresh().await;
    let shown = path.strip_prefix(".").map(PathBuf::from).unwrap_or(path);
    let test = if is_listed { name.to_string() } else { shown.display().to_string() };
    let what = if has_example { "runs its example" } else { "checks it; it has no example yet" };
    output::note(&visible(&format!(
        "saved {} · `wattle catalog test {test}` {what}",
        shown.display()
    )));
    if !is_listed {
        let folder = shown.parent().unwrap_or(Path::new(".")).display();
        output::aside(&visible(&format!(
            "`/run {name}` calls it; later sessions need `--catalog {folder}`"
        )));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    let shown = path.display();
    files::create(path, text).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Fault::usage(format!("the file `{shown}` already exists")).hint("choose another name")
        }
        ErrorKind::PermissionDenied => Fault::failed(format!("failed to write `{shown}`: {error}"))
            .hint("a session writes only below its workdir; name a catalog folder there"),
        _ => Fault::failed(format!("failed to write `{shown}`: {error}")),
    })
}

/// Opens the last input, or the program of a step, in the editor, and pre-fills the next prompt
/// with the result.
pub(super) async fn edit(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let number = arguments.first().map(|argument| step(argument)).transpose()?;
    let session = &mut repl.session;
    let text = match number {
        None if session.said.is_empty() && repl.editor.is_none() => {
            return Err(Fault::usage("there is no input to edit yet")
                .hint("`/edit STEP` edits the program of a step"));
        }
        None => session.said.clone(),
        number => session.source_of(number)?.trim_end().to_owned(),
    };
    repl.edit(text).await?;
    Ok(())
}

impl Session {
    /// Adds front matter to a program and formats it like a catalog program. Adds an example if
    /// the program depends only on its arguments. The returned flag is true if an example was
    /// added.
    async fn with_front_matter(
        &mut self,
        name: &Name,
        number: Option<u32>,
        body: &str,
    ) -> Result<(String, bool), Fault> {
        let prepared = self.setup.host.prepare(body).await;
        let program = prepared.map_err(|diagnostic| {
            Fault::failed(format!("the program does not compile: {}", diagnostic.message))
        })?;
        let step = self.last.steps.iter().rev().find(|own| number == Some(own.step));
        let about = step.map(|step| step.thought.lines().next().unwrap_or_default().trim());
        let about = about.filter(|about| !about.is_empty()).unwrap_or("A program of a session");
        let given = step.map(|step| step.args.clone()).unwrap_or_default();
        let count = given.len().max(arguments(body));
        // JSON strings and arrays of strings are also valid TOML.
        let mut text = format!(
            ";;; name = {}\n;;; description = {}\n;;; uses = {}\n",
            json!(name.as_str()),
            json!(about),
            json!(program.uses())
        );
        for at in 0..count {
            _ = write!(
                text,
                ";;; [[args]]\n;;; name = \"arg{at}\"\n;;; description = \"Argument {at}\"\n"
            );
        }
        let is_pure = program.imports().iter().all(has_no_effect);
        let results = if is_pure && given.len() == count {
            self.results_of(body, given.clone()).await?
        } else {
            None
        };
        let has_example = results.is_some();
        if let Some(results) = results {
            let (given, results) = (json!(given), json!(results));
            _ = write!(text, ";;; [[example]]\n;;; args = {given}\n;;; results = {results}\n");
        }
        _ = write!(text, "\n{}\n", body.trim());
        // A program that cannot be formatted is saved unchanged.
        let laid_out = format(&text, Origin::File(PathBuf::from(format!("{name}.wat"))));
        Ok((laid_out.unwrap_or(text), has_example))
    }
}

/// Returns the number of arguments that a program reads: one more than the highest N in `(arg N)`.
fn arguments(body: &str) -> usize {
    let words: Vec<&str> = pieces(body)
        .into_iter()
        .filter(|piece| piece.kind != Kind::Comment)
        .map(|piece| piece.text)
        .filter(|word| !word.trim().is_empty())
        .collect();
    let read = words.windows(3).filter_map(|window| match window {
        ["(", "arg", number] => number.parse::<usize>().ok(),
        _ => None,
    });
    read.max().map_or(0, |last| last + 1)
}

/// Returns true if the result of a function depends only on its arguments.
fn has_no_effect(import: &Signature) -> bool {
    let full = format!("{}.{}", import.module, import.name);
    let mut all = capability::ALL.iter().flat_map(|capability| capability.functions);
    all.any(|function| function.name == full && function.effect == CallEffect::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_program_are_counted() {
        assert_eq!(arguments("(ret (str.cat (arg 0) (arg 2))) ;; (arg 7)"), 3);
        assert_eq!(arguments("(ret \"(arg 5)\")"), 0);
    }
}

//! `/run`, `/wat`, `/source`, `/trace`, `/replay`: programs and runs.

use std::sync::Arc;

use wattle_agent::host::journal::{self, Journal as _, SharedJournal};

use super::step;
use crate::commands::replay::as_text;
use crate::fault::Fault;
use crate::output::{self, highlight, visible};
use crate::progress::Step;
use crate::repl::Repl;
use crate::repl::session::{Next, Session};

/// Runs a catalog program.
pub(super) async fn run(repl: &mut Repl, arguments: Vec<String>) -> Result<Next, Fault> {
    let (name, arguments) =
        arguments.split_first().map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
    repl.session.call(name, arguments).await
}

/// Prints the open program, which consists of the session's earlier inputs, or begins a new one.
pub(super) async fn wat(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    match arguments.first().map(String::as_str) {
        None if repl.session.open.text().is_empty() => {
            output::aside("no program is open; a line that begins with ( opens one");
        }
        None => print_program(repl.session.open.text())?,
        Some("new") => repl.session.open.begin_new(),
        Some(other) => {
            return Err(Fault::usage(format!("`/wat` does not know `{other}`"))
                .hint("`/wat` shows the open program, `/wat new` begins a new one"));
        }
    }
    Ok(())
}

/// Prints the program of a step, or the last program.
pub(super) async fn source(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let number = arguments.first().map(|argument| step(argument)).transpose()?;
    print_program(&repl.session.source_of(number)?)?;
    Ok(())
}

fn print_program(text: &str) -> Result<(), Fault> {
    output::styled(&highlight::program(text.trim_end()))
}

/// Prints the steps of the last run, or one step in full.
pub(super) async fn trace(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let steps = repl.session.steps()?;
    let Some(argument) = arguments.first() else {
        for own in steps {
            output::styled(own.shown(false).trim_end())?;
        }
        let note = "/trace N shows a step in full, /source N its program";
        output::aside(note);
        return Ok(());
    };
    let number = step(argument)?;
    let found: Vec<&Step> = steps.iter().filter(|own| own.step == number).collect();
    if found.is_empty() {
        return Err(no_step(number, steps));
    }
    for own in found {
        output::styled(own.shown(true).trim_end())?;
    }
    Ok(())
}

/// Replays the last run and prints the first difference from its record.
pub(super) async fn replay(repl: &mut Repl, _: Vec<String>) -> Result<(), Fault> {
    let session = &repl.session;
    let run = session.last.run.as_deref().ok_or_else(no_run)?;
    let opened = session.kept.store.run(run).await?.ok_or_else(|| {
        Fault::usage("the last run is not recorded")
            .hint("runs are recorded in the store; `--store FILE` names one")
    })?;
    let journal: SharedJournal = Arc::new(session.kept.store.clone());
    let replayed = journal::replay(&session.setup.host, &journal, &opened, 1).await;
    output::text(&visible(&as_text(&opened.id, &replayed?)))
}

fn no_run() -> Fault {
    Fault::usage("this session has had no run yet").hint("send a message to the model first")
}

fn no_step(number: u32, steps: &[Step]) -> Fault {
    let last = steps.last().map_or(0, |step| step.step);
    Fault::usage(format!("the last run has no step {number}"))
        .hint(format!("its last step is {last}; `/trace` lists them"))
}

impl Session {
    /// Returns the steps of the last run.
    fn steps(&self) -> Result<&[Step], Fault> {
        if self.last.run.is_none() {
            return Err(no_run());
        }
        if self.last.steps.is_empty() {
            return Err(Fault::usage("the last run had no steps: the model answered at once"));
        }
        Ok(&self.last.steps)
    }

    /// Returns the program of a step in the last run. If `number` is `None`, returns the last
    /// program that ran without the model or, if there is none, the last program that the model
    /// wrote.
    ///
    /// # Errors
    /// If there is no such program.
    pub(in crate::repl) fn source_of(&self, number: Option<u32>) -> Result<String, Fault> {
        if let (None, Some(ran)) = (number, &self.ran) {
            return Ok(ran.clone());
        }
        let steps = self.steps()?;
        let mut wanted = steps.iter().rev().filter(|own| match number {
            Some(number) => own.step == number,
            None => own.body.is_some(),
        });
        let found = wanted.next().ok_or_else(|| match number {
            Some(number) => no_step(number, steps),
            None => Fault::usage("the last run wrote no program"),
        })?;
        if let Some(body) = &found.body {
            return Ok(body.clone());
        }
        let catalog = self.setup.host.catalog();
        let entry = catalog.get(&found.label);
        entry.map(|entry| entry.source().to_string()).ok_or_else(|| {
            Fault::usage(format!("the program `{}` is not in the catalog any more", found.label))
        })
    }
}

//! Runs programs without the model.

use std::sync::Arc;
use std::time::Duration;

use wattle_agent::Cancel;
use wattle_agent::host::UsageMeter;
use wattle_agent::host::catalog::Origin;
use wattle_agent::host::rt::{Diagnostic, Grants, Kept, Outcome, Program};

use super::interrupt::stoppable;
use super::program::{InputTape, declares};
use super::session::{Next, Session};
use crate::commands::{exec, no_program};
use crate::fault::{Exit, Fault};
use crate::output::visible;
use crate::{keyboard, output};

/// A program that is ready to run.
struct Ready {
    program: Program,
    args: Vec<String>,
    time: Option<Duration>,
    /// The tape of an input, and the values that it can read.
    open: Option<(Arc<InputTape>, Kept)>,
}

/// The result of running a program.
enum Ended {
    /// The program ran to completion.
    Ran(Box<Outcome>),
    /// The program did not run to completion, and there is nothing more to report.
    Reported,
    /// The user left the session.
    Left,
}

impl Session {
    /// Runs a catalog program.
    ///
    /// # Errors
    /// If no program has this name, if the arguments are invalid, or if the program cannot run.
    pub(super) async fn call(&mut self, name: &str, given: &[String]) -> Result<Next, Fault> {
        let catalog = self.setup.host.catalog();
        let entry = catalog.get(name).ok_or_else(|| no_program(&catalog, name, "", "/catalog"))?;
        let args =
            entry.arguments(given).map_err(|error| Fault::usage(&error).hint(error.hint()))?;
        let is_built_in = matches!(entry.origin(), Origin::BuiltIn(_));
        let (source, time) = (entry.source().to_string(), entry.meta().timeout);
        let Some(program) = self.prepare(&source, None, None).await else { return Ok(Next::Go) };
        let program = entry.start(program);
        match self.run(&Ready { program, args, time, open: None }).await? {
            Ended::Ran(outcome) => {
                let shown = Some(source.as_str()).filter(|_| !is_built_in);
                exec::print_outcome(&outcome, shown).map(|()| Next::Go)
            }
            Ended::Reported => Ok(Next::Go),
            Ended::Left => Ok(Next::Leave(Exit::Interrupted)),
        }
    }

    /// Runs an input as the continuation of the open program and prints its results or its errors.
    ///
    /// # Errors
    /// If the program cannot run.
    pub(super) async fn continue_program(&mut self, input: &str) -> Result<Next, Fault> {
        input.clone_into(&mut self.said);
        let mut whole = self.open.with(input);
        let mut values = self.open.values();
        if !self.open.text().is_empty()
            && !self.compiles(&whole, &values).await
            && self.compiles(input, &values).await
        {
            let note = "this input does not continue the earlier ones, and begins a new program";
            output::aside(note);
            self.open.begin_new();
            whole = self.open.with(input);
            values = self.open.values();
        }
        let earlier = Some(self.open.lines());
        let Some(program) = self.prepare(&whole, earlier, Some(&values)).await else {
            return Ok(Next::Go);
        };
        let tape = self.open.tape();
        let open = Some((Arc::clone(&tape), values.clone()));
        let ready = Ready { program, args: Vec::new(), time: None, open };
        let mut outcome = match self.run(&ready).await? {
            Ended::Ran(outcome) => outcome,
            Ended::Reported => return Ok(Next::Go),
            Ended::Left => return Ok(Next::Leave(Exit::Interrupted)),
        };
        self.open.only_new(&mut outcome);
        exec::print_outcome(&outcome, Some(&whole))?;
        for text in self.open.add_values(input, &values, &tape) {
            output::aside(&visible(&format!("kept: ${} {}", text.name(), text.about())));
        }
        self.ran = Some(whole);
        if !outcome.success() {
            return Ok(Next::Go);
        }
        let host = self.setup.host.clone();
        let runtime = host.calling_runtime().with_kept(values.names());
        let is_kept = self.open.keep(input, &outcome, &tape, runtime.signatures());
        if !is_kept && declares(input) {
            let note = "later inputs do not see the variables of this one, because it ends the \
                        program or leaves a value";
            output::aside(note);
        }
        Ok(Next::Go)
    }

    /// Runs a program that depends only on its arguments. Returns its results, or `None` if it does
    /// not compile or fails.
    ///
    /// # Errors
    /// If the program cannot run.
    pub(super) async fn results_of(
        &mut self,
        source: &str,
        args: Vec<String>,
    ) -> Result<Option<Vec<String>>, Fault> {
        let Some(program) = self.prepare(source, None, None).await else { return Ok(None) };
        let ready = Ready { program, args, time: None, open: None };
        Ok(match self.run(&ready).await? {
            Ended::Ran(outcome) if outcome.success() => Some(outcome.texts()),
            _ => None,
        })
    }

    async fn compiles(&self, source: &str, values: &Kept) -> bool {
        self.setup.host.prepare_reading(source, Some(values)).await.is_ok()
    }

    /// Compiles a program and prints its errors and warnings. If `earlier` is given, the program
    /// consists of the session's inputs, and `earlier` is the number of lines in all inputs before
    /// the current one. Warnings about those lines and about unused functions are then omitted.
    /// Returns `None` if the program does not compile. An input can read `values`.
    async fn prepare(
        &self,
        source: &str,
        earlier: Option<usize>,
        values: Option<&Kept>,
    ) -> Option<Program> {
        let is_shown = |warning: &&Diagnostic| match earlier {
            None => true,
            Some(lines) => {
                warning.position.line as usize > lines && warning.code != "unused-function"
            }
        };
        match self.setup.host.prepare_reading(source, values).await {
            Ok(program) => {
                program.warnings().iter().filter(is_shown).for_each(|warning| {
                    output::note(output::diagnostic(warning, source).trim_end());
                });
                Some(program)
            }
            Err(diagnostic) => {
                output::note(output::diagnostic(&diagnostic, source).trim_end());
                if earlier.is_some_and(|lines| lines > 0) {
                    let note = "lines are counted from the first input; /wat shows them, /wat new \
                                begins a new program";
                    output::aside(note);
                }
                None
            }
        }
    }

    async fn run(&mut self, ready: &Ready) -> Result<Ended, Fault> {
        let host = self.setup.host.clone();
        let runtime = host.runtime();
        let (model, why_not) = match self.model() {
            Ok(model) => (Some(model), None),
            Err(fault) => (None, Some(fault.to_string())),
        };
        let model = model.map(|model| (model, UsageMeter::default()));
        let settings = self.setup.settings(super::session::STEPS);
        let files = Arc::clone(&self.files);
        let access = self.setup.access(files, Some(&self.kept), model, &settings)?;
        let grants = opened(self.setup.grants(access), ready.open.clone());
        let limit = runtime.limits().time;
        let time = ready.time.unwrap_or(limit).min(limit);
        let cancel = Cancel::new();
        let work = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                ran = runtime.run_within(&ready.program, &grants, ready.args.clone(), time) => {
                    Some(ran)
                }
            }
        };
        let quiet = keyboard::quiet();
        let ended = stoppable(work, &cancel).await;
        self.next = quiet.end();
        self.kept.add_changes(&self.files).await?;
        match ended {
            None => Ok(Ended::Left),
            Some(None) => Ok(Ended::Reported),
            Some(Some(Ok(outcome))) => Ok(Ended::Ran(Box::new(outcome))),
            Some(Some(Err(error))) => {
                exec::did_not_run(error, why_not, false).map(|_| Ended::Reported)
            }
        }
    }
}

/// Adds the tape of an input and the values that it can read to the grants, if there are any. The
/// tape then replays and records the calls of programs.
fn opened(grants: Arc<Grants>, open: Option<(Arc<InputTape>, Kept)>) -> Arc<Grants> {
    match open {
        Some((tape, values)) => Arc::new(grants.as_ref().clone().taped(tape).with(values)),
        None => grants,
    }
}

//! A session and its state between inputs: conversation, variables, and files that are not applied
//! yet.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wattle_agent::capability::files::{Change, Files};
use wattle_agent::machine::{Ending, Usage};
use wattle_agent::model::Model;
use wattle_agent::rt::RunError;
use wattle_agent::service::{Outcome, RunRequest};
use wattle_agent::{CatalogDiff, Meter, Store};

use super::interrupt::stoppable;
use super::lines::{Line, Lines};
use crate::changes::{self, Fate};
use crate::commands::{catalog, exec, no_program};
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, paint, visible};
use crate::progress::{Live, counted, spent};
use crate::setup::{self, LocalAssembler, LocalRuns, Setup};

/// Default maximum number of steps of a message.
const STEPS: u32 = 10;

/// The continuation after an input.
pub(super) enum Next {
    /// Read the next input.
    Go,
    /// End the session.
    Leave(Exit),
}

/// An interactive session.
pub(super) struct Session {
    setup: Setup,
    kept: setup::Session,
    /// The model, after its first use.
    model: Option<Arc<dyn Model>>,
    files: Arc<Files>,
    /// The changes that the user declined to apply.
    declined: Vec<Change>,
    /// The usage of its runs.
    spent: Usage,
    runs: usize,
}

impl Session {
    /// Opens the session that the settings name, or one that ends with the process.
    ///
    /// # Errors
    /// If the store or the root cannot be opened.
    pub(super) fn new(setup: Setup) -> Result<Session, Fault> {
        let kept = match setup.session()? {
            Some(session) => session,
            None => {
                let store = Store::in_memory(Duration::MAX)
                    .map_err(|error| Fault::failed(error.to_string()))?;
                setup::Session { id: "repl".to_owned(), store: store.tenant(&setup.tenant()?) }
            }
        };
        let files = setup.files()?;
        let host = setup.host.clone();
        tokio::spawn(async move { host.warm().await });
        Ok(Session {
            setup,
            kept,
            model: None,
            files,
            declined: Vec::new(),
            spent: Usage::default(),
            runs: 0,
        })
    }

    /// Waits for pending telemetry to be sent.
    pub(super) async fn flush(&self) {
        self.setup.flush().await;
    }

    /// Runs a message, and prints its events.
    pub(super) async fn message(&mut self, message: String) -> Result<Next, Fault> {
        let model = self.model()?;
        let settings = self.setup.run_settings(STEPS, &model)?;
        let (service, _) = LocalAssembler::service(LocalRuns {
            setup: Arc::new(self.setup.clone()),
            model,
            settings,
            files: Arc::clone(&self.files),
            settle: None,
        });
        let request = RunRequest {
            message,
            session: Some(self.kept.id.clone()),
            origin: self.setup.origin(),
        };
        let failed = |error: &dyn std::fmt::Display| Fault::failed(error.to_string());
        let run = service.start(&self.kept.store, request).await.map_err(|error| failed(&error))?;
        let live = Live::new(self.setup.config.verbose.value);
        let following = async {
            let mut follower = service.follow(&self.kept.store, &run.id, 0).until_parked();
            while let Some(event) = follower.next().await.map_err(|error| failed(&error))? {
                live.show(&event.event);
            }
            Ok(run.outcome().await)
        };
        let Some(ended) = stoppable(following, run.cancel()).await else {
            return Ok(Next::Leave(Exit::Interrupted));
        };
        let report = match ended? {
            Outcome::Ended(report) => report,
            Outcome::Parked(parked) => {
                return Err(Fault::failed(format!(
                    "the run `{}` waits for an answer",
                    parked.run_id
                )));
            }
            Outcome::Suspended(reason) => return Err(Fault::failed(reason)),
        };
        self.spent += report.usage;
        self.runs += 1;
        match &report.ending {
            Ending::Failed { message } => {
                Err(Fault::failed(message.strip_prefix("error: ").unwrap_or(message)))
            }
            Ending::Cancelled { .. } => Ok(Next::Go),
            ending => output::text(&visible(ending.text())).map(|()| Next::Go),
        }
    }

    fn model(&mut self) -> Result<Arc<dyn Model>, Fault> {
        match &self.model {
            Some(model) => Ok(Arc::clone(model)),
            None => self.setup.model().inspect(|model| self.model = Some(Arc::clone(model))),
        }
    }

    /// Runs a program of the catalog.
    pub(super) async fn call(&mut self, name: &str, given: &[String]) -> Result<Next, Fault> {
        let host = self.setup.host.clone();
        let catalog = host.catalog();
        let entry = catalog.get(name).ok_or_else(|| no_program(&catalog, name, "", "/catalog"))?;
        let args = entry
            .arguments(given)
            .map_err(|error| Fault::usage(error.to_string()).hint(error.hint()))?;
        let time = entry.meta().timeout;
        self.program(entry.source(), args, time).await
    }

    /// Runs an inline program, and prints its results or its errors.
    pub(super) async fn program(
        &mut self,
        source: &str,
        args: Vec<String>,
        time: Option<Duration>,
    ) -> Result<Next, Fault> {
        let host = self.setup.host.clone();
        let runtime = host.runtime();
        let program = match runtime.prepare(source).await {
            Ok(program) => program,
            Err(diagnostic) => {
                output::note(output::diagnostic(&diagnostic, source).trim_end());
                return Ok(Next::Go);
            }
        };
        program
            .warnings()
            .iter()
            .for_each(|warning| output::note(output::diagnostic(warning, source).trim_end()));
        let (model, why_not) = match self.model() {
            Ok(model) => (Some(model), None),
            Err(fault) => (None, Some(fault.to_string())),
        };
        let model = model.map(|model| (model, Meter::default()));
        let access = self.setup.access(Arc::clone(&self.files), Some(&self.kept), model)?;
        let grants = self.setup.grants(access);
        let limit = runtime.limits().time;
        let cancel = CancellationToken::new();
        let work = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                ran = runtime.run_within(&program, &grants, args, time.unwrap_or(limit).min(limit)) => Some(ran),
            }
        };
        match stoppable(work, &cancel).await {
            None => Ok(Next::Leave(Exit::Interrupted)),
            Some(None) => Ok(Next::Go),
            Some(Some(Ok(outcome))) => exec::print_outcome(&outcome, source).map(|()| Next::Go),
            Some(Some(Err(RunError::Denied(missing)))) => {
                exec::denied(&missing, why_not, false).map(|_| Next::Go)
            }
            Some(Some(Err(RunError::Refused(why)))) => exec::refused(&why, false).map(|_| Next::Go),
            Some(Some(Err(RunError::Bug(bug)))) => Err(Fault::failed(bug.to_string())),
            Some(Some(Err(RunError::Engine(error)))) => Err(Fault::failed(error.to_string())),
        }
    }

    /// Prints the usage of the session's messages.
    pub(super) fn cost(&self) -> Result<(), Fault> {
        let runs = counted(self.runs, "message");
        output::text(&format!(
            "{runs}: {}",
            spent(self.spent).unwrap_or_else(|| "no tokens were counted".to_owned())
        ))
    }

    /// Prints the list of programs.
    pub(super) fn catalog(&self) -> Result<(), Fault> {
        let catalog = self.setup.host.catalog();
        catalog::print(&catalog.iter().map(|entry| &**entry).collect::<Vec<_>>())
    }

    /// Prints the manual's text about a topic.
    pub(super) fn explain(&self, topic: &str) -> Result<(), Fault> {
        match self.setup.host.manual().about(topic) {
            Some(text) => output::text(&visible(&text)),
            None => Err(Fault::usage(format!("nothing in the manual is about `{topic}`"))
                .hint("`/help \"\"` lists the topics, `/help` the commands")),
        }
    }

    /// Reloads the folders of the catalog, and prints the changes.
    pub(super) async fn refresh(&self) {
        let CatalogDiff { changed, removed, problems } = self.setup.host.refresh().await;
        for (what, names) in [("changed", changed), ("removed", removed)] {
            if !names.is_empty() {
                let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
                output::note(&paint(DIM, &format!("{what} in the catalog: {}", names.join(", "))));
            }
        }
        problems.iter().for_each(|problem| output::warn(&problem.to_string()));
    }

    /// Prints the changes since the last question, and asks whether to apply them. Changes that are
    /// not applied remain in the session's overlay, where later programs see them.
    pub(super) async fn offer(&mut self, lines: Lines) -> (Lines, Result<(), Fault>) {
        let fate = Fate::of(&self.setup.config, true);
        match fate {
            Fate::Written | Fate::Apply => {
                let settled = changes::settle(&self.files, fate);
                (lines, settled.and(self.renew()))
            }
            Fate::Drop(_) => match self.files.changes() {
                Ok(changes) if changes == self.declined => (lines, Ok(())),
                Ok(changes) => self.ask(lines, changes).await,
                Err(error) => {
                    (lines, Err(Fault::failed(format!("failed to list the changes: {error}"))))
                }
            },
        }
    }

    async fn ask(&mut self, lines: Lines, changes: Vec<Change>) -> (Lines, Result<(), Fault>) {
        self.declined = changes;
        if let Err(fault) = changes::settle(&self.files, Fate::Drop("in this session only")) {
            return (lines, Err(fault));
        }
        if self.declined.is_empty() || !lines.is_terminal() {
            return (lines, Ok(()));
        }
        let (lines, answer) = lines.ask("apply them to the workdir? [y/N] ".to_owned()).await;
        let applied = match answer {
            Ok(Line::Text(text))
                if matches!(text.trim().to_ascii_lowercase().as_str(), "y" | "yes") =>
            {
                changes::apply(&self.files).and_then(|()| self.renew())
            }
            answer => answer.map(drop),
        };
        (lines, applied)
    }

    /// Replaces the files with an empty overlay.
    fn renew(&mut self) -> Result<(), Fault> {
        self.declined.clear();
        self.files = self.setup.files()?;
        Ok(())
    }

    /// Returns the number of changes that are not applied.
    pub(super) fn pending(&self) -> usize {
        self.declined.len()
    }
}

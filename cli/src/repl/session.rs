//! A session and its state between inputs: the conversation, variables, the open program, and
//! unapplied changes to files.

use std::sync::Arc;

use wattle_agent::Cancel;
use wattle_agent::host::RunRequest;
use wattle_agent::host::capability::files::{Change, Files};
use wattle_agent::host::machine::{Ending, Usage};
use wattle_agent::host::service::Outcome;
use wattle_agent::host::{CatalogDiff, journal};
use wattle_agent::model::Model;

use super::complete::SharedKnown;
use super::history::Undo;
use super::interrupt::stoppable;
use super::lines::{Line, Lines};
use super::program::OpenProgram;
use crate::ask::is_yes;
use crate::changes::{self, Fate, Rules};
use crate::config::Config;
use crate::fault::{Exit, Fault};
use crate::progress::{Live, Mode, RunView};
use crate::setup::{self, LocalAssembler, LocalRuns, Setup};
use crate::{bell, keyboard, output, writers};

/// Default maximum number of steps per message.
pub(super) const STEPS: u32 = 10;

/// The next action after an input.
pub(super) enum Next {
    /// The session reads the next input.
    Go,
    /// The session ends.
    Leave(Exit),
}

/// A command that does not end the session.
impl From<()> for Next {
    fn from((): ()) -> Next {
        Next::Go
    }
}

/// An interactive session.
pub(super) struct Session {
    pub(super) setup: Setup,
    pub(super) kept: setup::Session,
    /// The model, once it has been opened.
    pub(super) model: Option<Arc<dyn Model>>,
    pub(super) files: Arc<Files>,
    /// The changes that the user declined to apply.
    declined: Vec<Change>,
    /// The token usage of each run in the session.
    pub(super) spent: Vec<Usage>,
    /// A summary of the last run.
    pub(super) last: RunView,
    /// The source of the last program that ran without the model.
    pub(super) ran: Option<String>,
    /// The program that the next input continues.
    pub(super) open: OpenProgram,
    /// The states that `/undo` can restore, oldest first.
    pub(super) undo: Vec<Undo>,
    /// Number of times that changes were applied.
    pub(super) applied: u64,
    /// The initial text of the next input.
    pub(super) next: String,
    /// The last message or program, for `/edit`.
    pub(super) said: String,
    pub(super) known: SharedKnown,
    /// The models of the endpoint, once they have been listed.
    pub(super) models: Vec<String>,
}

impl Session {
    /// Opens the configured session, or a new one. Without a store, the session is lost when the
    /// process ends.
    ///
    /// # Errors
    /// If the store or the workdir cannot be opened.
    pub(super) async fn new(mut setup: Setup, known: SharedKnown) -> Result<Session, Fault> {
        let kept = match setup.session().await? {
            Some(session) => session,
            None => fresh(&mut setup)?,
        };
        writers::set_name(format!("the session {}", kept.name()));
        let files = setup.files()?;
        let host = setup.host.clone();
        tokio::spawn(async move { host.warm().await });
        Ok(Session {
            setup,
            kept,
            model: None,
            files,
            declined: Vec::new(),
            spent: Vec::new(),
            last: RunView::default(),
            ran: None,
            open: OpenProgram::default(),
            undo: Vec::new(),
            applied: 0,
            next: String::new(),
            said: String::new(),
            known,
            models: Vec::new(),
        })
    }

    /// Returns the settings.
    pub(super) fn config(&self) -> &Config {
        &self.setup.config
    }

    /// Returns true if the session outlives the process.
    pub(super) fn is_stored(&self) -> bool {
        self.setup.config.session.value.is_some()
    }

    /// Sends a message to the model. Text that the user types in the meantime becomes the next
    /// input.
    ///
    /// # Errors
    /// If the run fails.
    pub(super) async fn say(&mut self, message: String) -> Result<Next, Fault> {
        self.said.clone_from(&message);
        let before = self.snapshot("the last message").await?;
        let quiet = keyboard::quiet();
        bell::begin(&self.setup.config);
        let done = self.message(message).await;
        bell::end();
        self.next = quiet.end();
        if matches!(done, Ok(Next::Go)) {
            self.push_undo(before).await?;
        }
        done
    }

    /// Starts a run with a message and prints the run's events and its answer.
    async fn message(&mut self, message: String) -> Result<Next, Fault> {
        let model = self.model()?;
        let settings = self.setup.run_settings(STEPS, &model)?;
        let (service, _) = LocalAssembler::service(LocalRuns {
            setup: Arc::new(self.setup.clone()),
            model,
            settings,
            output: None,
            files: Arc::clone(&self.files),
            fate: None,
        });
        let request = RunRequest {
            session: Some(self.kept.id.clone()),
            origin: self.setup.origin(&*self.setup.agent().await?),
            ..RunRequest::new(message)
        };
        let run = service.start(&self.kept.store, request, &Cancel::new()).await;
        let run = run.map_err(Fault::failed)?;
        let live = Live::new(Mode::Session, self.setup.config.verbose.value);
        let following = async {
            let mut follower = service.follow(&self.kept.store, &run.id, 0).until_parked();
            while let Some(event) = follower.next().await.map_err(Fault::failed)? {
                live.follow(&event);
            }
            Ok::<_, Fault>(run.outcome().await)
        };
        let Some(ended) = stoppable(following, run.cancel()).await else {
            return Ok(Next::Leave(Exit::Interrupted));
        };
        let (view, printed) = live.finish();
        self.last = view;
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
        self.spent.push(report.usage);
        match &report.ending {
            Ending::Failed { message } => {
                Err(Fault::failed(message.strip_prefix("error: ").unwrap_or(message)))
            }
            _ => printed.map(|()| Next::Go),
        }
    }

    /// Returns the model. Opens it if it is not open yet.
    ///
    /// # Errors
    /// If no model is set up.
    pub(super) fn model(&mut self) -> Result<Arc<dyn Model>, Fault> {
        match &self.model {
            Some(model) => Ok(Arc::clone(model)),
            None => self.setup.model().inspect(|model| self.model = Some(Arc::clone(model))),
        }
    }

    /// Reloads the folders of the catalog and prints the changes.
    pub(super) async fn refresh(&self) {
        let CatalogDiff { changed, removed, problems } = self.setup.host.refresh().await;
        for (what, names) in [("changed", changed), ("removed", removed)] {
            if !names.is_empty() {
                let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
                output::aside(&format!("{what} in the catalog: {}", names.join(", ")));
            }
        }
        problems.iter().for_each(|problem| output::warn(&problem.to_string()));
    }

    /// Prints the session's changes and asks whether to apply them. Does nothing if the user has
    /// already declined the same changes. Does not ask if the settings `write`, `apply` or `exec`
    /// let changes reach the workdir without approval. Changes that are not applied remain in the
    /// session's overlay, where later programs see them.
    ///
    /// # Errors
    /// If the changes cannot be listed or applied.
    pub(super) async fn offer(&mut self, lines: &mut Lines) -> Result<(), Fault> {
        match Fate::of(&self.setup.config, true, None) {
            Fate::Written => {
                changes::settle(&self.files, &self.rules(), &Fate::Written)?;
                self.files = self.setup.files()?;
                return Ok(());
            }
            Fate::Apply => {
                let rules = self.rules();
                self.edit_changes(|files| changes::settle(files, &rules, &Fate::Apply)).await?;
                self.applied += 1;
                return Ok(());
            }
            Fate::Leave(_) => {}
        }
        let changes = changes::of(&self.files)?;
        if changes == self.declined {
            return Ok(());
        }
        self.declined = changes;
        let fate = Fate::Leave("in this session only; `/diff` shows them".to_owned());
        changes::settle(&self.files, &self.rules(), &fate)?;
        self.ask(lines, "apply them to the workdir? [y/N] ").await
    }

    /// Asks whether to apply the changes before the session ends.
    ///
    /// # Errors
    /// If the changes cannot be applied.
    pub(super) async fn offer_last(&mut self, lines: &mut Lines) -> Result<(), Fault> {
        self.keep_changes()?;
        self.ask(lines, "apply the changes to the workdir before you leave? [y/N] ").await
    }

    async fn ask(&mut self, lines: &mut Lines, question: &str) -> Result<(), Fault> {
        if self.declined.is_empty() || !lines.is_terminal() {
            return Ok(());
        }
        match lines.ask(question.to_owned()).await? {
            Line::Text(text) if is_yes(&text) => self.apply(&[]).await.map(drop),
            _ => Ok(()),
        }
    }

    /// Applies the changes at the given paths to the workdir, or all changes if there are no paths.
    /// They then leave the session. Returns the number of applied changes.
    ///
    /// # Errors
    /// If some of these changes cannot be applied, or the session cannot be written.
    pub(super) async fn apply(&mut self, paths: &[String]) -> Result<usize, Fault> {
        self.applied += 1;
        let rules = self.rules();
        self.edit_changes(|files| changes::apply(files, &rules, paths)).await
    }

    /// Returns the rules by which changes are applied.
    fn rules(&self) -> Rules {
        Rules::of(&self.setup.config)
    }

    /// Changes the session's changes of files in its overlay and in the store.
    ///
    /// # Errors
    /// If `work` fails, or the session cannot be read or written.
    pub(super) async fn edit_changes<T>(
        &mut self,
        work: impl FnOnce(&Files) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let done = self.kept.edit_changes(&self.files, work).await;
        self.keep_changes()?;
        done
    }

    /// Loads the session's changes of files, which another process may have changed.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub(super) async fn load_files(&self) -> Result<(), Fault> {
        self.kept.load_files(&self.files).await.map(drop)
    }

    /// Records the current changes as the ones that the user declined to apply.
    ///
    /// # Errors
    /// If the changes cannot be listed.
    pub(super) fn keep_changes(&mut self) -> Result<(), Fault> {
        self.declined =
            if self.files.is_overlay() { changes::of(&self.files)? } else { Vec::new() };
        Ok(())
    }

    /// Returns the number of unapplied changes.
    pub(super) fn pending(&self) -> usize {
        self.declined.len()
    }
}

/// Creates a session in the store. Its id becomes a setting, as if it had been passed as a flag.
/// Without a store, the session is kept in memory.
fn fresh(setup: &mut Setup) -> Result<setup::Session, Fault> {
    if let Some(store) = setup.journal() {
        let id = journal::new_id();
        setup.config.session.value = Some(id.clone());
        return Ok(setup::Session { id, store });
    }
    Ok(setup::Session { id: "repl".to_owned(), store: setup.memory()? })
}

//! Programs that run without a model.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wattle_agent::host::capability::files::Files;
use wattle_agent::host::capability::policy::{Approver, Preflight};
use wattle_agent::host::capability::pure_grants;
use wattle_agent::host::catalog::Entry;
use wattle_agent::host::{journal, rt};
use wattle_agent::{Cancel, RunState};

use crate::process::PerProcess;
use crate::{Error, Grants, Outcome, Scope};

/// A program that was prepared once and runs any number of times, on any thread. Cheap to clone.
#[derive(Clone)]
pub struct Program(Arc<Parts>);

struct Parts {
    scope: Scope,
    source: String,
    /// The catalog entry, if the program is called by its name.
    entry: Option<Arc<Entry>>,
    prepared: PerProcess<rt::Program>,
}

/// The settings of one run of a program.
#[derive(Clone, Default)]
pub struct RunOptions {
    /// What the program may use.
    pub grants: Grants,
    /// Maximum running time. The limit of the engine, 150 s, also applies.
    pub timeout: Option<Duration>,
    /// The approver of effects that a rule asks about. Without one, they are denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// The state that the tools of the run share, whose handle cancels the run. A run without one
    /// ends when its future is dropped.
    pub state: Option<Arc<RunState>>,
}

impl Program {
    pub(crate) fn new(
        scope: Scope,
        source: String,
        entry: Option<Arc<Entry>>,
        prepared: rt::Program,
    ) -> Program {
        let parts = Parts { scope, source, entry, prepared: PerProcess::new() };
        parts.prepared.get(|| prepared);
        Program(Arc::new(parts))
    }

    /// Returns the source.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Returns true if the program can call tools of the application.
    #[must_use]
    pub fn has_tools(&self) -> bool {
        !self.0.scope.tools().is_empty()
    }

    /// Returns the program as this process compiled it. A process that was forked compiles it
    /// itself.
    async fn prepared(&self) -> Result<&rt::Program, Error> {
        if let Some(prepared) = self.0.prepared.existing() {
            return Ok(prepared);
        }
        let prepared = self.0.scope.compiled(&self.0.source).await?;
        let prepared = match &self.0.entry {
            Some(entry) => entry.start(prepared),
            None => prepared,
        };
        Ok(self.0.prepared.get(|| prepared))
    }

    /// Runs the program.
    ///
    /// # Errors
    /// If the program does not succeed, may not do what it needs, or is cancelled, or if an argument
    /// of a catalog program is invalid.
    pub async fn run(&self, args: Vec<String>, options: RunOptions) -> Result<Outcome, Error> {
        let prepared = self.prepared().await?;
        let args = match &self.0.entry {
            Some(entry) => entry.arguments(&args).map_err(|error| {
                let hint = error.hint();
                Error::settings(error).with_hint(hint)
            })?,
            None => args,
        };
        let host = self.0.scope.host()?;
        let declared = self.0.entry.as_ref().and_then(|entry| entry.meta().timeout);
        let limit = host.runtime().limits().time;
        let time = options.timeout.unwrap_or(limit).min(declared.unwrap_or(limit));
        let cancel = options.state.as_ref().map(|state| state.cancel().clone());
        let (grants, files) = self.grants(prepared, options)?;
        let run = host.runtime().run_within(prepared, &grants, args, time);
        let ran = match cancel {
            Some(cancel) => tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Error::cancelled(cancel.reason())),
                ran = run => ran,
            },
            None => run.await,
        };
        let outcome = ran.map_err(Error::did_not_run)?;
        Error::of_outcome(Outcome::new(outcome, files))
    }

    /// Returns the grants of a run, and its files if it has any.
    fn grants(
        &self,
        program: &rt::Program,
        options: RunOptions,
    ) -> Result<(Arc<rt::Grants>, Option<Arc<Files>>), Error> {
        static COMPUTING: OnceLock<Arc<rt::Grants>> = OnceLock::new();
        let RunOptions { grants, approver, state, .. } = options;
        // A program that only computes needs no resources.
        let computing = COMPUTING.get_or_init(|| Arc::new(pure_grants()));
        if grants.are_default() && program.missing(computing).is_empty() {
            return Ok((Arc::clone(computing), None));
        }
        let host = self.0.scope.host()?;
        let files = grants.files()?;
        let mut resources = grants.resources(host, Arc::clone(&files));
        let tools = self.0.scope.tools();
        if !tools.is_empty() {
            let new = || Arc::new(RunState::of_program(journal::new_id(), Cancel::new()));
            resources.tools = Some(tools.of_run(state.unwrap_or_else(new)));
        }
        let guard = Preflight::new(grants.policy().clone(), approver);
        let guard =
            if grants.writes_through() { guard.asking_about_protected_files() } else { guard };
        Ok((Arc::new(resources.grants().guarded(Arc::new(guard))), Some(files)))
    }
}

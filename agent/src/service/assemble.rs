//! The port through which a deployment gives each run its parts.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value as Json;
use wattle_capability::files::Files;
use wattle_rt::Grants;

use crate::agents::Agents;
use crate::host::Host;
use crate::ledger::Signer;
use crate::meter::Meter;
use crate::model::Model;
use crate::output::OutputSettings;
use crate::report::Report;
use crate::settings::Settings;
use crate::store::TenantStore;

/// Creates the parts of runs: the command line's from its settings, the server's from a tenant and a
/// session.
pub trait RunAssembler: Send + Sync {
    /// Creates the parts of a run, at its start and each time it is resumed.
    ///
    /// # Errors
    /// A message for the user. The run ends with it.
    fn assemble<'a>(&'a self, run: RunSeed<'a>) -> AssembleFuture<'a>;

    /// Returns the agents that runs may delegate to.
    fn agents(&self) -> Agents {
        Agents::default()
    }

    /// Returns true if runs with this origin are resumed by [`RunService::resume_open`]. By default,
    /// all runs are.
    ///
    /// [`RunService::resume_open`]: super::RunService::resume_open
    fn resumes(&self, _origin: &Json) -> bool {
        true
    }
}

/// The future of [`RunAssembler::assemble`].
pub type AssembleFuture<'a> = Pin<Box<dyn Future<Output = Result<RunParts, String>> + Send + 'a>>;

/// What is known about a run before its parts exist.
#[derive(Clone, Copy, Debug)]
pub struct RunSeed<'a> {
    /// The store of the run's tenant.
    pub store: &'a TenantStore,
    /// The run's id.
    pub run: &'a str,
    /// The session that the run belongs to.
    pub session: Option<&'a str>,
    /// The id of the session whose state the run uses: its session, or one of its own.
    pub state: &'a str,
    /// The data of the request.
    pub origin: &'a Json,
    /// The files that a child run shares with its parent.
    pub files: Option<&'a Arc<Files>>,
}

/// The parts of one run.
pub struct RunParts {
    /// The host, with the programs that the run's agent is offered.
    pub host: Host,
    /// The model that the loop asks.
    pub model: Arc<dyn Model>,
    /// The settings of the loop. A resumed run keeps the recorded ones.
    pub settings: Settings,
    /// The capabilities that the run's programs may use.
    pub grants: Arc<Grants>,
    /// Counts the model usage of the run's programs.
    pub meter: Meter,
    /// The folder in which the trace is written.
    pub workdir: Option<PathBuf>,
    /// The session in the trace of a run that belongs to none.
    pub label: Option<String>,
    /// The key that seals the trace.
    pub signer: Option<Arc<Signer>>,
    /// The output that the run must have, instead of that of the settings. A resumed run keeps the
    /// recorded one.
    pub output: Option<OutputSettings>,
    /// If true, the files that the run changed are kept for the next run of its session.
    pub keeps_files: bool,
    /// Handles the consequences of a finished run before its end is recorded, such as writing its
    /// files. It may be called again for the same run if the process ends in between.
    pub settle: Option<Settle>,
}

impl RunParts {
    /// Creates the parts of a run with default settings. It has no workdir, no seal and no output,
    /// and its files end with it.
    #[must_use]
    pub fn new(host: Host, model: Arc<dyn Model>, grants: Grants) -> RunParts {
        RunParts {
            host,
            model,
            settings: Settings::default(),
            grants: Arc::new(grants),
            meter: Meter::default(),
            workdir: None,
            label: None,
            signer: None,
            output: None,
            keeps_files: false,
            settle: None,
        }
    }
}

/// A function that handles the consequences of a finished run.
pub type Settle = Box<dyn FnOnce(&Report) + Send>;

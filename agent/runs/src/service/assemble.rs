//! The port that creates the parts of each run. Each deployment implements it.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value as Json;
use wattle_capability::files::Files;
use wattle_model::output::OutputSettings;
use wattle_model::{Meter, Model};
use wattle_rt::Grants;
use wattle_store::ledger::Signer;
use wattle_store::{StoreError, TenantStore};

use crate::agents::{AgentSpec, Agents};
use crate::host::Host;
use crate::journal::{KeptFiles, RunLimits};
use crate::report::Report;
use crate::settings::Settings;

/// A port that creates the parts of runs. The command line creates them from its settings, and the
/// server from a tenant and a session.
pub trait RunAssembler: Send + Sync {
    /// Creates the parts of a run when the run starts and each time it is resumed.
    ///
    /// # Errors
    /// If the parts cannot be created, or the store fails.
    fn assemble<'a>(&'a self, run: RunSeed<'a>) -> AssembleFuture<'a>;

    /// Returns the agents that runs may delegate to.
    fn agents(&self) -> Agents {
        Agents::default()
    }

    /// Returns the model of an agent's child runs, or `None` if it is unknown or cannot be used. By
    /// default, it is unknown. A question to an agent whose model is at another endpoint than that
    /// of the run leaves the machine, and one to an agent with an unknown model may.
    fn model(&self, _agent: &AgentSpec) -> Option<Arc<dyn Model>> {
        None
    }

    /// Returns the operator's limits for runs. By default, there are none. A forked run keeps the
    /// limits recorded for the original run, lowered to these limits if they are higher. For all
    /// other runs, [`assemble`](RunAssembler::assemble) applies the limits.
    fn limits(&self) -> RunLimits {
        RunLimits::default()
    }

    /// Returns true if a run of the tenant with this origin changes its files in an overlay, which
    /// is the default, and not directly in the workdir.
    fn has_overlay(&self, _store: &TenantStore, _origin: &Json) -> bool {
        true
    }

    /// Returns the name of the requirement that a process must meet to drive a run with this
    /// origin. A requirement may be a setting, a folder or a model. By default, the name is empty.
    fn needs(&self, _origin: &Json) -> String {
        String::new()
    }

    /// Returns the names of all requirements that this process meets. The process drives queued and
    /// open runs that have one of these requirements, including runs of other processes. By
    /// default, it meets only the requirement with the empty name.
    fn offers(&self) -> Vec<String> {
        vec![String::new()]
    }
}

/// The future of [`RunAssembler::assemble`].
pub type AssembleFuture<'a> =
    Pin<Box<dyn Future<Output = Result<RunParts, AssembleError>> + Send + 'a>>;

/// The reason why a run's [parts](RunParts) cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The run is refused and ends. The string is the message for the user.
    #[error("{0}")]
    Refused(String),
    /// The store failed. If it is an [outage](StoreError::is_outage), the run stays queued or open,
    /// and is retried.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<String> for AssembleError {
    fn from(message: String) -> AssembleError {
        AssembleError::Refused(message)
    }
}

/// The data about a run that is known before its parts are created.
#[derive(Clone, Copy, Debug)]
pub struct RunSeed<'a> {
    /// The store of the run's tenant.
    pub store: &'a TenantStore,
    /// The run's id.
    pub run: &'a str,
    /// The session that the run belongs to.
    pub session: Option<&'a str>,
    /// The id of the session whose state the run uses. A run that belongs to no session uses the
    /// state of a session that exists only for that run.
    pub state: &'a str,
    /// The data in the run's request from which the run's parts are created.
    pub origin: &'a Json,
    /// The files that a child run shares with its parent.
    pub files: Option<&'a Arc<Files>>,
}

/// The parts of one run.
pub struct RunParts {
    /// The host, with the programs that are offered to the run's agent.
    pub host: Host,
    /// The model to which the loop sends requests.
    pub model: Arc<dyn Model>,
    /// The settings of the loop. A resumed run keeps its recorded settings.
    pub settings: Settings,
    /// The capabilities that the run's programs may use.
    pub grants: Arc<Grants>,
    /// The meter that counts the model usage of the run's programs.
    pub meter: Meter,
    /// The folder to which the trace is written. Without a folder, the run has no trace.
    pub trace_dir: Option<PathBuf>,
    /// The label that the trace records as the session if the run belongs to no session.
    pub label: Option<String>,
    /// The key that seals the trace.
    pub signer: Option<Arc<Signer>>,
    /// The settings for structured output, which replace those in `settings`. A resumed run keeps
    /// its recorded output settings.
    pub output: Option<OutputSettings>,
    /// If true, the granted files contain the files of the run's session, and the files that the
    /// run changed are kept for the session's next run.
    pub keeps_files: bool,
    /// A function that is called with a finished run's report before the run's end is recorded, for
    /// example to write the run's files. Its result replaces `keeps_files` at the run's end. It may
    /// be called again for the same run if the process ends before the run's end is recorded.
    pub settle: Option<Settle>,
}

impl RunParts {
    /// Creates the parts of a run with default settings. The run has no trace and no structured
    /// output, and its files are not kept.
    #[must_use]
    pub fn new(host: Host, model: Arc<dyn Model>, grants: Grants) -> RunParts {
        RunParts {
            host,
            model,
            settings: Settings::default(),
            grants: Arc::new(grants),
            meter: Meter::default(),
            trace_dir: None,
            label: None,
            signer: None,
            output: None,
            keeps_files: false,
            settle: None,
        }
    }
}

/// A function that is called with the report of a finished run, and returns the changes to files
/// that the run's session keeps. See [`RunParts::settle`].
pub type Settle = Box<dyn FnOnce(&Report) -> KeptFiles + Send>;

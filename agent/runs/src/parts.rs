//! The parts of a run: what a process holds while it drives the run.

use std::path::PathBuf;
use std::sync::Arc;

use wattle_capability::agent::Agents;
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_capability::secrets::Vault;
use wattle_machine::{Message, TraitPurpose};
use wattle_model::output::OutputSettings;
use wattle_model::{Mask, Model, UsageMeter};
use wattle_rt::Grants;
use wattle_store::Tenant;
use wattle_store::journal::KeptFiles;
use wattle_store::ledger::Signer;

use crate::cancel::Cancel;
use crate::delegates::{ChildRuns, DelegateNames, RunDelegates};
use crate::hooks::RunHooks;
use crate::host::Host;
use crate::report::Report;
use crate::settings::Settings;
use crate::tree::RunTree;

/// The parts of one run. No store keeps them: they are created when the run starts and each time it
/// is resumed.
pub struct RunParts {
    /// The host, with the programs that are offered to the run's agent.
    pub host: Host,
    /// The model to which the loop sends requests.
    pub model: Arc<dyn Model>,
    /// The settings of the loop. A resumed run keeps its recorded settings.
    pub settings: Settings,
    /// The capabilities that the run's programs may use. They must be the same each time.
    pub grants: Arc<Grants>,
    /// The meter that counts the model usage of the run's programs. It must be the meter of the
    /// model that the programs use.
    pub meter: UsageMeter,
    /// The settings for structured output, which replace those in `settings`. A resumed run keeps
    /// its recorded output settings.
    pub output: Option<OutputSettings>,
    /// The folder to which the trace is written. Without a folder, the run has no trace.
    pub trace_dir: Option<PathBuf>,
    /// The label that the trace records as the session if the run belongs to no session.
    pub label: Option<String>,
    /// The key that seals the trace. Without a key, the trace is not sealed.
    pub signer: Option<Arc<Signer>>,
    /// The mask that hides secrets in the records of the run. It receives the run's secrets, but no
    /// keys.
    pub mask: Mask,
    /// If true, the granted files contain the files of the run's session, and the files that the
    /// run changed are kept for the session's next run. Otherwise, the files of a resumed run are
    /// restored as a whole.
    pub keeps_files: bool,
    /// A function that is called with a finished run's report before the run's end is recorded, for
    /// example to write the run's files. Its result replaces `keeps_files` at the run's end. It may
    /// be called again for the same run if the process ends before the run's end is recorded.
    pub settle: Option<Settle>,
    /// The hooks of the application that takes part in the run. Only the run service passes events
    /// to them.
    pub hooks: Option<Arc<dyn RunHooks>>,
    /// The tenant that the run belongs to. A journaled run has the tenant of its journal.
    pub tenant: Tenant,
    /// The earlier messages of the conversation, oldest first. The run service replaces them with
    /// those of the run's session, if it has one. A resumed run keeps its own.
    pub history: Vec<Message>,
    /// Number of earlier messages of the session that `history` does not contain.
    pub left_out: u64,
    /// The handle that cancels the run. The run service sets its own.
    pub cancel: Cancel,
    /// The run's view of the tree of runs that it belongs to.
    pub tree: RunTree,
    /// The port that starts the runs of other agents. Without it, programs cannot delegate to other
    /// agents.
    pub children: Option<Arc<dyn ChildRuns>>,
    /// The agents to which programs may delegate, in addition to those named in the settings.
    pub delegates: DelegateNames,
}

/// A function that is called with the report of a finished run, and returns the changes to files
/// that the run's session keeps, or the run itself if it belongs to no session. See
/// [`RunParts::settle`].
pub type Settle = Box<dyn FnOnce(&Report) -> KeptFiles + Send + Sync>;

impl RunParts {
    /// Creates the parts of a root run of the tenant `default` with default settings. The run has
    /// no history, no trace and no structured output, and its files are not kept. Its mask is that of
    /// the host.
    #[must_use]
    pub fn new(host: Host, model: Arc<dyn Model>, grants: impl Into<Arc<Grants>>) -> RunParts {
        RunParts {
            mask: host.mask().clone(),
            host,
            model,
            settings: Settings::default(),
            grants: grants.into(),
            meter: UsageMeter::default(),
            output: None,
            trace_dir: None,
            label: None,
            signer: None,
            keeps_files: false,
            settle: None,
            hooks: None,
            tenant: Tenant::default(),
            history: Vec::new(),
            left_out: 0,
            cancel: Cancel::new(),
            tree: RunTree::default(),
            children: None,
            delegates: DelegateNames::default(),
        }
    }

    /// Returns the files that the run's programs use, or `None` if they have no access to files.
    pub(crate) fn files(&self) -> Option<Arc<Files>> {
        self.grants.config::<Fs>().map(|fs| Arc::clone(&fs.0))
    }

    /// Returns the size of the model's context window that a request may use, in tokens, or `None` if
    /// it is unknown. The rest is for the answer.
    pub(crate) fn window(&self) -> Option<u64> {
        let known = self.model.window().or_else(|| self.settings.prices.window(self.model.name()));
        let answer = u64::from(self.settings.max_tokens);
        known.map(|window| window.saturating_sub(answer).max(window / 4))
    }

    /// Adds the key of the run's model to the host's mask, and the run's secrets to the run's mask.
    /// Call this before anything about the run is recorded.
    pub(crate) async fn fill_masks(&self) {
        self.model.key().inspect(|key| self.host.mask().add_key(key));
        let Some(vault) = self.grants.config::<Vault>() else { return };
        if let Err(why) = vault.mask_in(&self.mask).await {
            let why = why.reason;
            tracing::warn!(why, "failed to read the secrets, so they are not masked in records");
        }
    }

    /// Applies the budgets of the settings to the run with the id `run` and to all its descendants,
    /// and allows its programs to delegate to the agents listed in the settings.
    pub(crate) fn in_tree(mut self, run: &str) -> RunParts {
        let mut grants = self.tree.bind(&self.settings, &self.grants, &self.meter);
        let may_build = self.settings.traits.iter().any(|one| one.purpose == TraitPurpose::Build);
        let may_ask = may_build || !self.settings.delegates.is_empty();
        if let Some(runs) = self.children.as_ref().filter(|_| may_ask) {
            self.delegates.add(&self.settings.delegates);
            grants = grants.with(Agents(Arc::new(RunDelegates {
                run: run.to_owned(),
                names: self.delegates.clone(),
                tree: self.tree.clone(),
                children: Arc::clone(runs),
                cancel: self.cancel.clone(),
                endpoint: self.model.endpoint().to_owned(),
            })));
        }
        self.grants = Arc::new(grants);
        self
    }
}

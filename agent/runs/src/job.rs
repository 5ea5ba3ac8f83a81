//! The input of a run.

use std::path::PathBuf;
use std::sync::Arc;

use wattle_capability::agent::Agents;
use wattle_machine::{Message, TraitPurpose};
use wattle_model::output::OutputSettings;
use wattle_model::{Meter, Model};
use wattle_rt::Grants;
use wattle_store::Tenant;
use wattle_store::ledger::Signer;

use crate::cancel::Cancel;
use crate::delegates::{ChildRuns, DelegateNames, RunDelegates};
use crate::hooks::RunHooks;
use crate::settings::Settings;
use crate::tree::RunTree;

/// The input of one run: the message, the history, and the resources that the run may use.
pub struct Job {
    /// The user's message.
    pub message: String,
    /// The earlier turns of the session, oldest first.
    pub history: Vec<Message>,
    /// The tenant that the run belongs to.
    pub tenant: Tenant,
    /// The session to which the run belongs, if there is one.
    pub session_id: Option<String>,
    /// The session label that the trace contains if the run does not belong to a session. It has no
    /// other effect.
    pub label: Option<String>,
    /// The capabilities that the run's programs may use.
    pub grants: Arc<Grants>,
    /// The folder to which the trace is written. Without a folder, the run has no trace.
    pub trace_dir: Option<PathBuf>,
    /// The key that seals the trace. Without a key, the trace is not sealed.
    pub signer: Option<Arc<Signer>>,
    /// The handle that cancels the run.
    pub cancel: Cancel,
    /// The meter that counts the model usage of the run's programs. It must be the meter of the
    /// model that the programs use.
    pub meter: Meter,
    /// The tree of runs that the run belongs to.
    pub tree: RunTree,
    /// The port that starts the runs of other agents. Without it, programs cannot delegate to other
    /// agents.
    pub children: Option<Arc<dyn ChildRuns>>,
    /// The agents to which programs may delegate, in addition to those named in the settings.
    pub delegates: DelegateNames,
    /// The required output of the run. It overrides the output in the settings.
    pub output: Option<OutputSettings>,
    /// The hooks that an embedding application adds to the run.
    pub hooks: Option<Arc<dyn RunHooks>>,
}

impl Job {
    /// Applies the budgets of `settings` to the job and to all its descendant runs, and allows the
    /// job to delegate to the agents listed in `settings`. `model` is the run's own model.
    pub(crate) fn in_tree(self, run: &str, settings: &Settings, model: &dyn Model) -> Job {
        let grants = Arc::new(self.tree.bind(settings, &self.grants));
        Job { grants, ..self }.with_delegates(run, settings, model)
    }

    fn with_delegates(self, run: &str, settings: &Settings, model: &dyn Model) -> Job {
        let may_build = settings.traits.iter().any(|one| one.purpose == TraitPurpose::Build);
        let may_ask = may_build || !settings.delegates.is_empty();
        let Some(runs) = self.children.as_ref().filter(|_| may_ask) else {
            return self;
        };
        self.delegates.add(&settings.delegates);
        let delegates = RunDelegates {
            run: run.to_owned(),
            names: self.delegates.clone(),
            tree: self.tree.clone(),
            children: Arc::clone(runs),
            cancel: self.cancel.clone(),
            endpoint: model.endpoint().to_owned(),
        };
        let grants = self.grants.as_ref().clone().with(Agents(Arc::new(delegates)));
        Job { grants: Arc::new(grants), ..self }
    }

    /// Creates a job for the tenant `default`, without a history, a session or a trace.
    #[must_use]
    pub fn new(message: impl Into<String>, grants: Grants) -> Self {
        Job {
            message: message.into(),
            history: Vec::new(),
            tenant: Tenant::default(),
            session_id: None,
            label: None,
            grants: Arc::new(grants),
            trace_dir: None,
            signer: None,
            cancel: Cancel::new(),
            meter: Meter::default(),
            tree: RunTree::default(),
            children: None,
            delegates: DelegateNames::default(),
            output: None,
            hooks: None,
        }
    }
}

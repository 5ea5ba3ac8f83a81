//! What the server serves: the parts that its runs are made of.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use wattle_agent::capability::files::{Files, HostFiles, OVERLAY_LIMIT};
use wattle_agent::capability::issue::IssueTracker;
use wattle_agent::capability::policy::{Policy, Preflight};
use wattle_agent::capability::secrets::Secrets;
use wattle_agent::journal::{ResumeOptions, RunRecord, SharedJournal};
use wattle_agent::ledger::Signer;
use wattle_agent::machine::Message;
use wattle_agent::model::Model;
use wattle_agent::rt::Grants;
use wattle_agent::{Access, CatalogDiff, Host, IssueFile, Job, Meter, ModelInference, Settings, TenantStore, Trusted};

use crate::request::SessionId;

/// The parts of the runs that come in over HTTP. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub(crate) host: Host,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: Arc<Settings>,
    /// What the tenant whose runs these are has in the store.
    pub(crate) store: TenantStore,
    inference: Arc<ModelInference>,
    workdir: Option<PathBuf>,
    host_files: HostFiles,
    signer: Option<Arc<Signer>>,
    preflight: Arc<Preflight>,
    secrets: Option<Arc<dyn Secrets>>,
    trusted: Option<Trusted>,
}

impl App {
    /// Runs with that model decide and, through `ai`, help. They all belong to the tenant of that store: so do the sessions that requests
    /// name, their state and the journal. A request has no say in whose they are.
    pub fn new(host: Host, model: Arc<dyn Model>, settings: Settings, store: TenantStore) -> App {
        let inference = Arc::new(ModelInference::new(Arc::clone(&model), &settings));
        App {
            host,
            model,
            settings: Arc::new(settings),
            store,
            inference,
            workdir: None,
            host_files: HostFiles::default(),
            signer: None,
            preflight: Arc::new(Preflight::new(Policy::default(), None)),
            secrets: None,
            trusted: None,
        }
    }

    /// Lets every run leave its `_steps.jsonl` in that folder, which no run has access to.
    #[must_use]
    pub fn with_workdir(self, folder: PathBuf) -> App {
        App { workdir: Some(folder), ..self }
    }

    /// Keeps the host's own files from trusted runs, where they lie in the workdir.
    #[must_use]
    pub fn with_host_files(self, files: HostFiles) -> App {
        App { host_files: files, ..self }
    }

    /// Seals the trace of every run with that key.
    #[must_use]
    pub fn with_signer(self, signer: Arc<Signer>) -> App {
        App { signer: Some(signer), ..self }
    }

    /// Holds the programs of every run to that policy. Nobody can be asked: what the policy wants asked about is refused.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> App {
        App { preflight: Arc::new(Preflight::new(policy, None)), ..self }
    }

    /// Lets the requests of every run refer to those secrets.
    #[must_use]
    pub fn with_secrets(self, secrets: Arc<dyn Secrets>) -> App {
        App { secrets: Some(secrets), ..self }
    }

    /// Lets a request that says `"exec": true` have a trusted run, which writes to the workdir itself and has these parts. Without them,
    /// or without a workdir, every run is a plain one, whatever the request says.
    #[must_use]
    pub fn with_exec(self, trusted: Trusted) -> App {
        App { trusted: Some(trusted), ..self }
    }

    /// What a run has that asks to be a trusted one: its parts and its files; `None` where it is a plain one.
    pub(crate) fn trusted(&self, exec: bool) -> Option<(Trusted, Arc<Files>)> {
        let (trusted, folder) = self.trusted.clone().filter(|_| exec).zip(self.workdir.as_ref())?;
        match Files::open_base(folder) {
            Ok(base) => Some((trusted, Arc::new(Files::write_through(base.protecting(self.host_files.clone()))))),
            Err(cause) => {
                tracing::error!(%cause, "failed to open the workdir of a trusted run");
                None
            }
        }
    }

    /// Takes in what changed in the folders of the catalog; the log tells of it.
    pub(crate) async fn refresh(&self) {
        let CatalogDiff { changed, removed, problems } = self.host.refresh().await;
        if !changed.is_empty() || !removed.is_empty() {
            tracing::info!(?changed, ?removed, "the catalog changed");
        }
        problems.iter().for_each(|problem| tracing::warn!("{problem}"));
    }

    /// What a run for that message is made of. The files of a plain one are an overlay over nothing: a client has no say in what its run
    /// may touch beyond what the operator lets it ask for.
    pub(crate) fn job(
        &self,
        session: &SessionId,
        trusted: Option<(Trusted, Arc<Files>)>,
        message: String,
        history: Vec<Message>,
        cancel: CancellationToken,
    ) -> Job {
        let meter = Meter::default();
        Job {
            message,
            history,
            tenant: self.store.tenant().clone(),
            session_id: Some(session.to_string()),
            grants: self.grants(session.as_str(), &meter, trusted),
            workdir: self.workdir.clone(),
            signer: self.signer.clone(),
            meter,
            cancel,
        }
    }

    fn grants(&self, session: &str, meter: &Meter, trusted: Option<(Trusted, Arc<Files>)>) -> Arc<Grants> {
        let (trusted, files) = trusted.unzip();
        let files = files.unwrap_or_else(|| Arc::new(Files::overlay(None, OVERLAY_LIMIT)));
        let access = Access {
            secrets: self.secrets.clone(),
            trusted,
            state: Arc::new(self.store.state(session)),
            tenant: Arc::new(self.store.variables()),
            inference: Some(Arc::new(self.inference.metered(meter.clone()))),
            budget: self.settings.ai,
            issues: self.workdir.as_deref().map(|dir| Arc::new(IssueFile::of(dir)) as Arc<dyn IssueTracker>),
            ..Access::new(&self.host, files)
        };
        Arc::new(access.grants().guarded(Arc::<Preflight>::clone(&self.preflight)))
    }

    /// Where runs are kept.
    pub(crate) fn journal(&self) -> SharedJournal {
        Arc::new(self.store.clone())
    }

    /// What is kept of a run so that it is known whose it is, and whether it is a trusted one.
    pub(crate) fn origin(exec: bool) -> Json {
        json!({"by": "serve", "exec": exec})
    }

    /// Whether a run was begun by a server.
    pub(crate) fn is_own(run: &RunRecord) -> bool {
        run.start.origin.get("by").is_some_and(|by| by == "serve")
    }

    /// What a run of that session is taken up with. One that was trusted is so still, where the operator lets runs be.
    pub(crate) fn resumed(&self, session: &str, run: &RunRecord, cancel: CancellationToken) -> ResumeOptions {
        let trusted = self.trusted(run.start.origin.get("exec").is_some_and(|exec| exec == true));
        let meter = Meter::default();
        ResumeOptions {
            grants: self.grants(session, &meter, trusted),
            signer: self.signer.clone(),
            cancel,
            settings: self.settings.as_ref().clone(),
            answers: Vec::new(),
            release: false,
            meter,
        }
    }
}

//! The parts that the server's runs share.

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
use wattle_agent::{
    Access, CatalogDiff, Host, IssueFile, Job, Meter, ModelInference, Settings, TenantStore,
    Trusted,
};

use crate::request::SessionId;

/// The parts that runs over HTTP share. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub(crate) host: Host,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: Arc<Settings>,
    /// The part of the store that belongs to the tenant of the runs.
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
    /// Creates the parts of runs that ask `model`, in the loop and through `ai`. All runs, sessions
    /// and their state belong to the tenant of `store`; a request cannot choose another one.
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

    /// Writes the trace of every run, `_steps.jsonl`, to this folder, which no plain run can
    /// access.
    #[must_use]
    pub fn with_workdir(self, folder: PathBuf) -> App {
        App { workdir: Some(folder), ..self }
    }

    /// Protects the host's own files in the workdir from trusted runs.
    #[must_use]
    pub fn with_host_files(self, files: HostFiles) -> App {
        App { host_files: files, ..self }
    }

    /// Seals the trace of every run with this key.
    #[must_use]
    pub fn with_signer(self, signer: Arc<Signer>) -> App {
        App { signer: Some(signer), ..self }
    }

    /// Applies this policy to the programs of every run. Nobody can approve a call, so a call that
    /// needs approval is denied.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> App {
        App { preflight: Arc::new(Preflight::new(policy, None)), ..self }
    }

    /// Allows the requests of every run to refer to these secrets.
    #[must_use]
    pub fn with_secrets(self, secrets: Arc<dyn Secrets>) -> App {
        App { secrets: Some(secrets), ..self }
    }

    /// Allows a request with `"exec": true` to have a trusted run, which writes to the workdir
    /// directly and has these parts. Without them, or without a workdir, every run is a plain one.
    #[must_use]
    pub fn with_exec(self, trusted: Trusted) -> App {
        App { trusted: Some(trusted), ..self }
    }

    /// Returns the parts and the files of a trusted run, or `None` if the run is a plain one.
    pub(crate) fn trusted(&self, exec: bool) -> Option<(Trusted, Arc<Files>)> {
        let (trusted, folder) = self.trusted.clone().filter(|_| exec).zip(self.workdir.as_ref())?;
        match Files::open_base(folder) {
            Ok(base) => Some((
                trusted,
                Arc::new(Files::write_through(base.protecting(self.host_files.clone()))),
            )),
            Err(cause) => {
                tracing::error!(%cause, "failed to open the workdir of a trusted run");
                None
            }
        }
    }

    /// Reloads the folders of the catalog, and logs the changes.
    pub(crate) async fn refresh(&self) {
        let CatalogDiff { changed, removed, problems } = self.host.refresh().await;
        if !changed.is_empty() || !removed.is_empty() {
            tracing::info!(?changed, ?removed, "the catalog changed");
        }
        problems.iter().for_each(|problem| tracing::warn!("{problem}"));
    }

    /// Returns the job of a message. The files of a plain run are an overlay with no workdir below
    /// it, so a client can access only what the operator allows.
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

    fn grants(
        &self,
        session: &str,
        meter: &Meter,
        trusted: Option<(Trusted, Arc<Files>)>,
    ) -> Arc<Grants> {
        let (trusted, files) = trusted.unzip();
        let files = files.unwrap_or_else(|| Arc::new(Files::overlay(None, OVERLAY_LIMIT)));
        let access = Access {
            secrets: self.secrets.clone(),
            trusted,
            state: Arc::new(self.store.state(session)),
            tenant: Arc::new(self.store.variables()),
            inference: Some(Arc::new(self.inference.metered(meter.clone()))),
            budget: self.settings.ai,
            issues: self
                .workdir
                .as_deref()
                .map(|dir| Arc::new(IssueFile::of(dir)) as Arc<dyn IssueTracker>),
            ..Access::new(&self.host, files)
        };
        Arc::new(access.grants().guarded(Arc::<Preflight>::clone(&self.preflight)))
    }

    /// Returns the journal of the runs.
    pub(crate) fn journal(&self) -> SharedJournal {
        Arc::new(self.store.clone())
    }

    /// Returns the journal's record that a server started the run, and whether it is trusted.
    pub(crate) fn origin(exec: bool) -> Json {
        json!({"by": "serve", "exec": exec})
    }

    /// Returns true if a server started the run.
    pub(crate) fn is_own(run: &RunRecord) -> bool {
        run.start.origin.get("by").is_some_and(|by| by == "serve")
    }

    /// Returns the parts that a resumed run gets. A trusted run stays trusted if the operator still
    /// allows trusted runs.
    pub(crate) fn resumed(
        &self,
        session: &str,
        run: &RunRecord,
        cancel: CancellationToken,
    ) -> ResumeOptions {
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

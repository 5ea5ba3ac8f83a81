//! What the server serves: the parts that its runs are made of.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use wattle_agent::capability::ai::Inference;
use wattle_agent::capability::files::{Files, OVERLAY_LIMIT};
use wattle_agent::capability::issue::Desk;
use wattle_agent::capability::policy::{Policy, Preflight};
use wattle_agent::journal::{Opened, Resumed, SharedJournal};
use wattle_agent::machine::Message;
use wattle_agent::model::Model;
use wattle_agent::rt::Grants;
use wattle_agent::{Access, DEFAULT_TENANT, Host, Job, ModelInference, News, Settings, Store, Tickets};

use crate::request::SessionId;

/// The parts of the runs that come in over HTTP. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub(crate) host: Host,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) store: Store,
    tenant: String,
    inference: Arc<dyn Inference>,
    workdir: Option<PathBuf>,
    preflight: Arc<Preflight>,
}

impl App {
    /// Runs with that model decide and, through `ai`, help; sessions and their state are the store's. They all belong to the default tenant.
    pub fn new(host: Host, model: Arc<dyn Model>, settings: Settings, store: Store) -> App {
        let inference = Arc::new(ModelInference::new(Arc::clone(&model), &settings));
        App {
            host,
            model,
            settings: Arc::new(settings),
            store,
            tenant: DEFAULT_TENANT.to_owned(),
            inference,
            workdir: None,
            preflight: Arc::new(Preflight::new(Policy::default(), None)),
        }
    }

    /// Lets every run share the state of that tenant.
    #[must_use]
    pub fn with_tenant(self, tenant: String) -> App {
        App { tenant, ..self }
    }

    /// Lets every run leave its `_steps.jsonl` in that folder, which no run has access to.
    #[must_use]
    pub fn with_workdir(self, folder: PathBuf) -> App {
        App { workdir: Some(folder), ..self }
    }

    /// Holds the programs of every run to that policy. Nobody can be asked: what the policy wants asked about is refused.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> App {
        App { preflight: Arc::new(Preflight::new(policy, None)), ..self }
    }

    /// Takes in what changed in the folders of the catalog; the log tells of it.
    pub(crate) async fn refresh(&self) {
        let News { changed, gone, problems } = self.host.refresh().await;
        if !changed.is_empty() || !gone.is_empty() {
            tracing::info!(?changed, ?gone, "the catalog changed");
        }
        problems.iter().for_each(|problem| tracing::warn!("{problem}"));
    }

    /// What a run for that message is made of. Its files are an overlay over nothing, whoever asks: a client has no say in
    /// what its run may touch.
    pub(crate) fn job(
        &self,
        session: &SessionId,
        message: String,
        history: Vec<Message>,
        cancel: CancellationToken,
    ) -> Job {
        Job {
            message,
            history,
            session_id: Some(session.to_string()),
            grants: self.grants(session.as_str()),
            workdir: self.workdir.clone(),
            cancel,
        }
    }

    fn grants(&self, session: &str) -> Arc<Grants> {
        let access = Access {
            state: Arc::new(self.store.state(session)),
            tenant: Arc::new(self.store.tenant(&self.tenant)),
            inference: Some(Arc::clone(&self.inference)),
            budget: self.settings.ai,
            issues: self.workdir.as_deref().map(|dir| Arc::new(Tickets::of(dir)) as Arc<dyn Desk>),
            ..Access::new(&self.host, Arc::new(Files::overlay(None, OVERLAY_LIMIT)))
        };
        Arc::new(access.grants().guarded(Arc::<Preflight>::clone(&self.preflight)))
    }

    /// Where runs are kept.
    pub(crate) fn journal(&self) -> SharedJournal {
        Arc::new(self.store.clone())
    }

    /// What is kept of a run so that it is known whose it is.
    pub(crate) fn origin() -> Json {
        json!({"by": "serve"})
    }

    /// Whether a run was begun by a server.
    pub(crate) fn is_own(run: &Opened) -> bool {
        run.opening.origin == App::origin()
    }

    /// What a run of that session is taken up with.
    pub(crate) fn resumed(&self, session: &str, cancel: CancellationToken) -> Resumed {
        let (grants, ai) = (self.grants(session), self.settings.ai);
        Resumed { grants, cancel, timeouts: self.settings.timeouts, ai, answers: Vec::new() }
    }
}

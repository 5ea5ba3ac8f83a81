//! The components that the server provides to the run service for runs started over HTTP.

mod files;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value as Json;
use wattle_agent::agents::{AgentBase, AgentParts, AgentSpec, Agents};
use wattle_agent::host::capability::ai::Inference;
use wattle_agent::host::capability::files::{Files, HostFiles};
use wattle_agent::host::capability::issue::IssueTracker;
use wattle_agent::host::capability::policy::{NoApprover, Policy, Preflight};
use wattle_agent::host::capability::search::Embedder;
use wattle_agent::host::capability::secrets::{Secrets, Vault};
use wattle_agent::host::capability::tool::ToolBox;
use wattle_agent::host::journal::{RunLimits, RunRequest};
use wattle_agent::host::ledger::Signer;
use wattle_agent::host::rt::Grants;
use wattle_agent::host::service::{AssembleError, AssembleFuture, RunAssembler, ServiceLimits};
use wattle_agent::host::{
    IssueFile, ModelInference, RunParts, SessionFilesError, StoreError, TenantStore, Trusted,
    UsageMeter,
};
use wattle_agent::model::{CLASS_PREFIX, Mask, Model, Models, OneModel};
use wattle_agent::output::{OutputSchema, OutputSettings};
use wattle_agent::{Host, Resources, Settings, Tenant};

pub(crate) use files::{AppliedChanges, delta_cost};

use crate::operator::Operator;
use crate::origin::{self, OutputOrigin, REVOKED, RunOrigin, needs};

/// Maximum number of tokens in the answer of a run without programs.
const MAX_PLAIN_TOKENS: u32 = 1_000;

/// Maximum number of sessions whose approvals are kept in memory.
const MAX_APPROVALS: usize = 10_000;

/// The components that runs over HTTP share. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Parts>);

#[derive(Clone)]
struct Parts {
    host: Host,
    agents: Agents,
    model: Arc<dyn Model>,
    model_problem: Option<String>,
    models: Arc<dyn Models>,
    settings: Settings,
    default: TenantParts,
    tenants: Option<OpenTenant>,
    opened: Arc<Mutex<HashMap<Tenant, TenantParts>>>,
    base: Option<PathBuf>,
    host_files: HostFiles,
    policy: Policy,
    embed_model: Option<String>,
    operator: Operator,
    max_steps: Option<u32>,
    approvals: Arc<Mutex<Approvals>>,
}

/// The guards of sessions. Each guard keeps the approvals of its session.
type Approvals = HashMap<(Tenant, UsedSession), Arc<Preflight>>;

/// The session whose state a run or a program uses, and the agent that uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UsedSession {
    id: String,
    /// The identity of the session, which no later session with the same id has. Empty if the
    /// session does not exist.
    instance: String,
    /// The name of the agent, or `None` for the default agent.
    agent: Option<String>,
}

impl UsedSession {
    /// Returns the session that a run or a program uses. A run keeps using the session in which it
    /// began, even if another one with the same id has been created since then.
    pub(crate) async fn find(
        store: &TenantStore,
        (run, session): (&str, &str),
        agent: Option<&AgentSpec>,
    ) -> Result<UsedSession, StoreError> {
        Ok(UsedSession {
            id: session.to_owned(),
            instance: store.session_instance(run, session).await?.unwrap_or_default(),
            agent: agent.map(|agent| agent.name.clone()),
        })
    }
}

/// A function that opens the components of a tenant.
pub type OpenTenant = Arc<dyn Fn(&Tenant) -> Result<TenantParts, String> + Send + Sync>;

/// The components of one tenant.
#[derive(Clone)]
pub struct TenantParts {
    /// The tenant's part of the store.
    pub store: TenantStore,
    /// The folder of the tenant's traces. Without it, runs leave no trace.
    pub trace_dir: Option<PathBuf>,
    /// The key that seals the traces.
    pub signer: Option<Arc<Signer>>,
    /// The secrets to which a run's requests may refer.
    pub secrets: Option<Arc<dyn Secrets>>,
    /// The tools outside the sandbox, such as those of MCP servers.
    pub tools: Option<Arc<dyn ToolBox>>,
    /// The components of trusted runs, and their workdir. If `None`, every run is a plain run.
    pub trusted: Option<(Trusted, PathBuf)>,
}

impl TenantParts {
    /// Creates the components of a tenant that has only a store.
    #[must_use]
    pub fn new(store: TenantStore) -> TenantParts {
        TenantParts {
            store,
            trace_dir: None,
            signer: None,
            secrets: None,
            tools: None,
            trusted: None,
        }
    }
}

impl App {
    /// Creates the components of runs that use `model`, both in the agent loop and through the `ai`
    /// capability. The tenant of `parts` is the server's own tenant: requests with the server's own
    /// token belong to it.
    ///
    /// The host's mask, which has the operator's keys, masks the records of this tenant. The records
    /// of each other tenant have a mask of their own, so that no tenant can observe which texts
    /// contain secrets of others. The store's earlier masks are replaced.
    pub fn new(host: Host, model: Arc<dyn Model>, settings: Settings, parts: TenantParts) -> App {
        // The secrets of other tenants are added to the whole mask.
        let mask = host.mask().as_part();
        let host = host.with_mask(mask.clone());
        let parts = TenantParts { store: parts.store.with_mask(mask), ..parts };
        App(Arc::new(Parts {
            host,
            agents: Agents::default(),
            models: Arc::new(OneModel::new(Arc::clone(&model))),
            model,
            model_problem: None,
            settings,
            default: parts,
            tenants: None,
            opened: Arc::default(),
            base: None,
            host_files: HostFiles::default(),
            policy: Policy::default(),
            embed_model: None,
            operator: Operator::default(),
            max_steps: None,
            approvals: Arc::default(),
        }))
    }

    fn with(self, change: impl FnOnce(&mut Parts)) -> App {
        let mut parts = Arc::unwrap_or_clone(self.0);
        change(&mut parts);
        App(Arc::new(parts))
    }

    /// Adds agents that requests may choose.
    #[must_use]
    pub fn with_agents(self, agents: Agents) -> App {
        self.with(|parts| parts.agents = agents)
    }

    /// Adds models that requests may choose by class.
    #[must_use]
    pub fn with_models(self, models: Arc<dyn Models>) -> App {
        self.with(|parts| parts.models = models)
    }

    /// Tells the users of the page why runs cannot ask a model.
    #[must_use]
    pub fn with_model_problem(self, problem: Option<String>) -> App {
        self.with(|parts| parts.model_problem = problem)
    }

    /// Enables requests with tokens of other tenants. The components of a tenant are opened at its
    /// first request.
    #[must_use]
    pub fn with_tenants(self, open: OpenTenant) -> App {
        self.with(|parts| parts.tenants = Some(open))
    }

    /// Gives every plain run read access to this folder. The session's files overlay it.
    #[must_use]
    pub fn with_base(self, folder: PathBuf) -> App {
        self.with(|parts| parts.base = Some(folder))
    }

    /// Protects the host's own files from runs.
    #[must_use]
    pub fn with_host_files(self, files: HostFiles) -> App {
        self.with(|parts| parts.host_files = files)
    }

    /// Applies this policy to the programs of every run. A run that needs approval is parked until
    /// a client answers.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> App {
        self.with(|parts| parts.policy = policy)
    }

    /// Enables semantic search in files and memory. `name` is an embedding model that is served by
    /// the same endpoint as the model.
    #[must_use]
    pub fn with_embed_model(self, name: Option<String>) -> App {
        self.with(|parts| parts.embed_model = name)
    }

    /// Shows the operator's settings to administrators and lets them save programs in the
    /// operator's folders.
    #[must_use]
    pub fn with_operator(self, operator: Operator) -> App {
        self.with(|parts| parts.operator = operator)
    }

    /// Limits the number of steps of every run, regardless of the limit in a request or an agent.
    /// The limit is also the default. With `None`, each route has its own default. 0 means no limit,
    /// also as the default.
    #[must_use]
    pub fn with_max_steps(self, steps: Option<u32>) -> App {
        self.with(|parts| parts.max_steps = steps)
    }

    /// Returns the operator's step limit, or `default` if the operator sets none.
    pub(crate) fn steps(&self, default: u32) -> u32 {
        self.0.max_steps.unwrap_or(default)
    }

    /// Returns the folder below the files of every session, if there is one.
    pub(crate) fn base(&self) -> Option<&Path> {
        self.0.base.as_deref()
    }

    pub(crate) fn operator(&self) -> &Operator {
        &self.0.operator
    }

    /// Returns the host for work of a tenant, which uses the tenant's share of the process.
    pub(crate) fn host(&self, tenant: &Tenant) -> Host {
        let operator = Some(self.own().store.tenant().clone());
        let limits = ServiceLimits { operator, ..ServiceLimits::default() };
        self.0.host.owned_by(&limits.owner_of(tenant))
    }

    /// Returns the agents, after reloading changed files.
    pub(crate) fn agents(&self) -> &Agents {
        for problem in self.0.agents.refresh() {
            tracing::warn!("{problem}");
        }
        &self.0.agents
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn model(&self) -> &Arc<dyn Model> {
        &self.0.model
    }

    pub(crate) fn model_problem(&self) -> Option<&str> {
        self.0.model_problem.as_deref()
    }

    /// Opens the model of an agent's runs.
    pub(crate) fn model_of(&self, agent: &AgentSpec) -> Result<Arc<dyn Model>, String> {
        agent.open_model(&*self.0.models, &self.0.model)
    }

    /// Returns the names of the models that a request may choose: the server's own model and the
    /// classes.
    pub(crate) fn model_names(&self) -> Vec<String> {
        let classes = self.0.models.classes();
        let classes = classes.into_iter().map(|class| format!("{CLASS_PREFIX}{class}"));
        [self.0.model.name().to_owned()].into_iter().chain(classes).collect()
    }

    /// Returns the components of the server's own tenant.
    pub(crate) fn own(&self) -> &TenantParts {
        &self.0.default
    }

    /// Returns the components of a tenant. Opens them at the tenant's first request.
    pub(crate) fn tenant(&self, tenant: &Tenant) -> Result<TenantParts, String> {
        if self.0.default.store.tenant() == tenant {
            return Ok(self.0.default.clone());
        }
        let opened = || self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parts) = opened().get(tenant) {
            return Ok(parts.clone());
        }
        let open = self.0.tenants.as_ref().ok_or("this server has one tenant")?;
        let parts = open(tenant)?;
        let store = parts.store.with_mask(self.0.host.mask().whole().part());
        let parts = TenantParts { store, ..parts };
        // Another request may have opened the tenant in the meantime.
        Ok(opened().entry(tenant.clone()).or_insert(parts).clone())
    }

    /// Returns the mask for the records of the store's tenant.
    fn mask_of<'a>(&'a self, store: &'a TenantStore) -> &'a Mask {
        store.mask().unwrap_or_else(|| self.0.host.mask())
    }

    /// Returns true if the tenant may start trusted runs.
    pub(crate) fn may_trust(&self, tenant: &Tenant) -> bool {
        self.tenant(tenant).is_ok_and(|parts| parts.trusted.is_some())
    }

    /// Returns the components of the agent that the origin of a tenant's run specifies. The number of
    /// steps is at most the operator's limit.
    pub(crate) fn agent_parts(
        &self,
        tenant: &Tenant,
        origin: &RunOrigin,
    ) -> Result<AgentParts, String> {
        let default = AgentSpec::default();
        let agent = origin.agent.as_ref().unwrap_or(&default);
        let base = AgentBase {
            host: &self.host(tenant),
            settings: &self.0.settings,
            agents: &self.0.agents,
            max_steps: [origin.max_steps, self.0.max_steps]
                .into_iter()
                .flatten()
                .filter(|steps| *steps > 0)
                .min(),
        };
        agent.parts(base).map_err(|error| error.to_string())
    }

    /// Returns the grants for an agent's programs in a session, with access to these files. The
    /// programs may send questions to `model`, and `meter` counts the token usage of these
    /// questions.
    pub(crate) fn grants(
        &self,
        agent: &AgentParts,
        parts: &TenantParts,
        session: &UsedSession,
        files: Arc<Files>,
        trusted: Option<Trusted>,
        (model, meter): (&Arc<dyn Model>, &UsageMeter),
    ) -> Arc<Grants> {
        let preflight = self.preflight(parts.store.tenant(), session);
        let preflight = match trusted {
            Some(_) => Arc::new(preflight.asking_about_protected_files()),
            None => preflight,
        };
        let inference = ModelInference::new(Arc::clone(model), &agent.settings);
        let inference: Arc<dyn Inference> = Arc::new(inference.metered(meter.clone()));
        let embedder =
            self.0.embed_model.clone().map(|name| Embedder { name, model: Arc::clone(&inference) });
        let access = Resources {
            embedder,
            secrets: parts.secrets.clone(),
            tools: parts.tools.clone(),
            trusted,
            state: Arc::new(parts.store.state(&session.id)),
            tenant: Arc::new(parts.store.variables()),
            memory: Arc::new(parts.store.memory(Some(&session.id))),
            inference: Some(inference),
            budget: agent.settings.ai,
            issues: parts
                .trace_dir
                .as_deref()
                .map(|dir| Arc::new(IssueFile::of(dir)) as Arc<dyn IssueTracker>),
            ..Resources::new(&agent.host, files)
        };
        let preflight = if agent.policy.is_open() {
            preflight
        } else {
            Arc::new(preflight.narrowed(agent.policy.clone()))
        };
        Arc::new(access.grants().guarded(preflight))
    }

    /// Returns the guard of a session, which keeps the session's approvals. Each agent has its own.
    fn preflight(&self, tenant: &Tenant, session: &UsedSession) -> Arc<Preflight> {
        let mut all = self.0.approvals.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_APPROVALS {
            // It is safe to discard approvals: the user is asked again.
            all.clear();
        }
        let key = (tenant.clone(), session.clone());
        let make = || Preflight::new(self.0.policy.clone(), Some(Arc::new(NoApprover)));
        Arc::clone(all.entry(key).or_insert_with(|| Arc::new(make())))
    }

    async fn parts(
        &self,
        store: &TenantStore,
        run: &RunRequest,
        shared: Option<&Arc<Files>>,
    ) -> Result<RunParts, AssembleError> {
        let origin: RunOrigin = serde_json::from_value(run.origin.clone())
            .map_err(|why| format!("the request of the run is invalid: {why}"))?;
        let origin = if shared.is_some() { origin.of_child() } else { origin };
        let state = run.state_session();
        let agent = self.agent_parts(store.tenant(), &origin)?;
        let session = UsedSession::find(store, (&run.id, &state), origin.agent.as_ref()).await?;
        let parts = self.tenant(store.tenant())?;
        let (files, trusted) = match parts.trusted.clone().filter(|_| origin.exec) {
            Some((trusted, workdir)) => {
                let base = Files::open_protected_base(&workdir, self.0.host_files.clone());
                let base = base.map_err(|why| why.to_string())?;
                (Arc::new(Files::write_through(base)), Some(trusted))
            }
            None => match shared {
                Some(shared) => (Arc::clone(shared), None),
                None => {
                    let files = self.files(store, &state).await.map_err(|why| match why {
                        SessionFilesError::Store(why) => AssembleError::Store(why),
                        why => AssembleError::Refused(why.to_string()),
                    });
                    (Arc::new(files?), None)
                }
            },
        };
        let keeps_files = trusted.is_none() && run.session.is_some();
        let meter = UsageMeter::default();
        let output = match origin.output {
            Some(OutputOrigin { name, schema }) => {
                let schema = OutputSchema::new(name, schema).map_err(|why| why.to_string())?;
                Some(OutputSettings::new(schema))
            }
            None => None,
        };
        let spec = origin.agent.unwrap_or_default();
        let model = match &origin.model {
            Some(name) => self.0.models.open(name)?,
            None => self.model_of(&spec)?,
        };
        let model = model.for_owner(store.tenant().as_str()).unwrap_or(model);
        let asked = (&model, &meter);
        let grants = self.grants(&agent, &parts, &session, files, trusted, asked);
        let AgentParts { host, mut settings, .. } = agent;
        if origin.plain {
            settings = settings.without_programs();
            settings.max_tokens = settings.max_tokens.min(MAX_PLAIN_TOKENS);
        }
        if let Some(ms) = origin.timeout_ms {
            let asked = std::time::Duration::from_millis(ms);
            settings.timeout = Some(settings.timeout.map_or(asked, |limit| limit.min(asked)));
        }
        if let Some(system) = origin.system {
            settings.preamble = Some(match settings.preamble {
                Some(preamble) => format!("{preamble}\n\n{system}"),
                None => system,
            });
        }
        Ok(RunParts {
            settings,
            meter,
            trace_dir: parts.trace_dir,
            signer: parts.signer,
            output,
            mask: self.mask_of(store).clone(),
            keeps_files,
            ..RunParts::new(host, model, grants)
        })
    }
}

impl RunAssembler for App {
    fn assemble<'a>(
        &'a self,
        store: &'a TenantStore,
        run: &'a RunRequest,
        files: Option<&'a Arc<Files>>,
    ) -> AssembleFuture<'a> {
        Box::pin(self.parts(store, run, files))
    }

    fn agents(&self) -> Agents {
        App::agents(self).clone()
    }

    fn model(&self, _: &RunRequest, agent: &str) -> Option<Arc<dyn Model>> {
        self.model_of(App::agents(self).get(agent)?.as_ref()).ok()
    }

    fn mask_secrets<'a>(&'a self, store: &'a TenantStore) -> BoxFuture<'a, ()> {
        let secrets = self.tenant(store.tenant()).ok().and_then(|parts| parts.secrets);
        async move {
            // If they cannot be read, the run fails when it starts.
            if let Some(secrets) = secrets
                && let Err(why) = Vault::new(secrets).mask_in(self.mask_of(store)).await
            {
                tracing::warn!(reason = why.reason, "failed to read the secrets of a tenant");
            }
        }
        .boxed()
    }

    fn refusal<'a>(
        &'a self,
        store: &'a TenantStore,
        origin: &'a Json,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        async move {
            let Some(token) = origin::token(origin) else { return Ok(None) };
            let unknown = store.file().unknown_tokens(vec![token]).await?;
            Ok((!unknown.is_empty()).then(|| REVOKED.to_owned()))
        }
        .boxed()
    }

    fn limits(&self) -> RunLimits {
        RunLimits {
            max_steps: self.0.max_steps,
            timeout: self.0.settings.timeout,
            max_tokens_total: self.0.settings.machine.max_tokens_total,
            max_cost: self.0.settings.machine.max_cost,
        }
    }

    fn has_overlay(&self, store: &TenantStore, origin: &Json) -> bool {
        let is_trusted = RunOrigin::of_server(origin).is_some_and(|origin| origin.exec);
        !(is_trusted && self.may_trust(store.tenant()))
    }

    /// Returns a string that lists what a server needs in order to drive a run with this origin.
    fn needs(&self, origin: &Json) -> String {
        let Some(origin) = RunOrigin::of_server(origin) else { return "other".to_owned() };
        let classes = self.0.models.classes();
        needs(origin.exec, self.0.base.is_some(), origin.required_model(&classes))
    }

    fn offers(&self) -> Vec<String> {
        let models = self.model_names();
        let models = || [None].into_iter().chain(models.iter().map(|name| Some(name.as_str())));
        let has_base = self.0.base.is_some();
        let trusted =
            [false, true].into_iter().filter(|exec| !exec || self.0.default.trusted.is_some());
        trusted.flat_map(|exec| models().map(move |model| needs(exec, has_base, model))).collect()
    }
}

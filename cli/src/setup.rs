//! From settings to the parts of a run: the wiring that `run`, `exec`, `repl` and `serve` share.

use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use etcetera::BaseStrategy as _;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use wattle_agent::capability::ai::{Budget, Inference};
use wattle_agent::capability::egress::{Egress, Policy};
use wattle_agent::capability::files::{Files, HostFiles, OVERLAY_LIMIT};
use wattle_agent::capability::issue::IssueTracker;
use wattle_agent::capability::kv;
use wattle_agent::capability::policy::{NoApprover, Preflight};
use wattle_agent::capability::search::{Embedder, index_file};
use wattle_agent::capability::web::{Engine, EngineSettings};
use wattle_agent::catalog::Folders;
use wattle_agent::ledger::{Keys, Signer};
use wattle_agent::machine;
use wattle_agent::model::{
    ApiKey, Cassette, Endpoint, EndpointError, EndpointErrorKind, EndpointSettings, Model, Recorder, RemoteModel,
    resolve,
};
use wattle_agent::moderation::{Classifier, MessageFilter, Moderation};
use wattle_agent::otel::{Collector, CollectorSettings};
use wattle_agent::rt::{AccountLimits, Grants, Guard as _, Limits};
use wattle_agent::{
    Access, Host, IssueFile, LazyState, Meter, ModelInference, NO_ENGINE, SESSION_ID, Settings, Store, StoreError,
    StoredSecrets, Tenant, TenantStore, is_session_id,
};

use crate::config::{Config, Places};
use crate::fault::{Exit, Fault};
use crate::{ask, output};

/// How many steps a run may take where nothing says otherwise.
pub(crate) const RUN_STEPS: u32 = 12;

/// What is said of a key that is too short to be told from other text.
pub(crate) const SHORT_KEY: &str = "it has fewer than 8 characters, so it is not masked in traces, logs and messages";

/// How long the end of a process waits for telemetry that is on its way.
const FLUSH: Duration = Duration::from_secs(2);

/// What the commands work with.
pub(crate) struct Setup {
    /// The settings.
    pub(crate) config: Config,
    /// Engine, catalog, and the way out.
    pub(crate) host: Host,
    /// Holds programs to the policy, for as long as the process lives.
    preflight: Arc<Preflight>,
}

/// A session of a tenant.
pub(crate) struct Session {
    /// Its id.
    pub(crate) id: String,
    /// Where it is kept.
    pub(crate) store: TenantStore,
}

impl Setup {
    /// Makes the engine, loads the catalog, and warns of programs that were left out.
    ///
    /// # Errors
    /// Where the engine cannot be made.
    pub(crate) fn new(config: Config) -> Result<Setup, Fault> {
        let folders = folders(&config);
        let egress = Egress::new(Policy { allow: config.allow_host.value.clone(), ..Policy::default() });
        let engine = engine(&config, &egress);
        let host = Host::new(limits(&config), folders, egress).map_err(|error| Fault::failed(error.to_string()))?;
        let host = match cache_folder() {
            Some(folder) => host.with_cache(&folder).map_err(|error| Fault::failed(error.to_string()))?,
            None => host,
        };
        let host = host.with_engine(engine);
        let host = match collector(&host)? {
            Some(collector) => host.with_collector(collector),
            None => host,
        };
        let preflight = Arc::new(Preflight::new(config.policy.clone(), ask::terminal()));
        Ok(Setup { config, host, preflight })
    }

    /// Gives telemetry that is on its way the time to be sent.
    pub(crate) async fn flush(&self) {
        if let Some(collector) = self.host.collector() {
            collector.flush(FLUSH).await;
        }
    }

    /// How an agent runs, with the caller's own bound on steps where the settings have none.
    pub(crate) fn settings(&self, max_steps: u32) -> Settings {
        let max_steps = self.config.max_steps.value.map_or(max_steps, std::num::NonZero::get);
        let machine = machine::Settings {
            max_steps,
            max_tokens_total: self.config.max_tokens_total.value.map(|tokens| tokens.get().into()),
            max_cost: self.config.max_cost.value,
            ..machine::Settings::default()
        };
        let ai = Budget { calls: self.config.ai_calls.value.get(), tokens: self.config.ai_tokens.value.get().into() };
        let (dialect, prices) = (self.config.dialect.value, self.config.prices.value.clone());
        let timeout = self.config.timeout.value.map(|span| span.0);
        Settings { machine, ai, timeout, dialect, prices, ..Settings::default() }
    }

    /// The same for runs of that model, with what looks at their messages.
    ///
    /// # Errors
    /// Where what is to be looked for cannot be.
    pub(crate) fn run_settings(&self, max_steps: u32, model: &Arc<dyn Model>) -> Result<Settings, Fault> {
        let settings = self.settings(max_steps);
        let guard = &self.config.guard.value;
        if !guard.enabled {
            return Ok(settings);
        }
        let patterns = guard.patterns().map_err(|why| Fault::configuration(format!("the key `guard`: {why}")))?;
        let mut looks: Vec<Arc<dyn MessageFilter>> = vec![Arc::new(patterns)];
        if guard.classifier {
            let (timeouts, prices) = (settings.timeouts, settings.prices.clone());
            looks.push(Arc::new(Classifier::new(Arc::clone(model), guard.looked_for(), timeouts, prices)));
        }
        let moderation = Moderation::new(looks, guard.messages.clone(), guard.on_failure.into());
        Ok(Settings { moderation: Some(moderation), ..settings })
    }

    /// The model: a recording, or the endpoint; recorded where that is asked.
    ///
    /// # Errors
    /// Where nothing says which model, or what says it is wrong.
    pub(crate) fn model(&self) -> Result<Arc<dyn Model>, Fault> {
        let wrong = |error: wattle_agent::model::ModelError| Fault::configuration(error.to_string());
        let model: Arc<dyn Model> = match &self.config.cassette.value {
            Some(path) => Arc::new(Cassette::open(path).map_err(wrong)?),
            None => {
                let timeouts = Settings::default().timeouts;
                let endpoint = endpoint(&self.config)?;
                if endpoint.key.as_ref().is_some_and(ApiKey::is_short) {
                    output::warn(&format!("the key in `{}`: {SHORT_KEY}", endpoint.key_variable));
                }
                let client = RemoteModel::new(endpoint, self.host.egress(), timeouts);
                Arc::new(client.map_err(|error| Fault::configuration(error.to_string()))?)
            }
        };
        match &self.config.record.value {
            Some(path) => Ok(Arc::new(Recorder::create(model, path).map_err(wrong)?)),
            None => Ok(model),
        }
    }

    /// The files of one run.
    ///
    /// # Errors
    /// Where the root cannot be opened.
    pub(crate) fn files(&self) -> Result<Arc<Files>, Fault> {
        let root = &self.config.root.value;
        let base = Files::open_base(root).map_err(|error| Fault::configuration(error.to_string()))?;
        base.recovered().iter().for_each(|note| output::warn(note));
        let base = base.protecting(host_files(&self.config));
        Ok(Arc::new(match self.config.writes_through() {
            true => Files::write_through(base),
            false => Files::overlay(Some(base), OVERLAY_LIMIT),
        }))
    }

    /// The session that the settings name.
    ///
    /// # Errors
    /// Where the id cannot be one, or the store cannot be opened.
    pub(crate) fn session(&self) -> Result<Option<Session>, Fault> {
        let Some(id) = self.config.session.value.clone() else { return Ok(None) };
        if !is_session_id(&id) {
            return Err(Fault::configuration(format!("a session id is {SESSION_ID}, not {id:?}")));
        }
        Ok(Some(Session { id, store: self.store()? }))
    }

    /// Leaves questions of the policy open, for whoever takes the run up, where nobody can be asked now.
    pub(crate) fn park(&mut self) {
        self.preflight = Arc::new(Preflight::new(self.config.policy.clone(), Some(Arc::new(NoApprover))));
    }

    /// Where runs are kept; `None` where there can be no store, and the run is gone with the process.
    pub(crate) fn journal(&self) -> Option<TenantStore> {
        store_path(&self.config).ok()?;
        self.store().inspect_err(|fault| output::warn(&format!("the run is not kept: {}", fault.message()))).ok()
    }

    /// What a run needs to be taken up by a later command, as it stands in the journal.
    pub(crate) fn origin(&self) -> Json {
        let mut granted = self.config.granted();
        let absolute = |path: &str| std::path::absolute(path).ok().and_then(|path| path.to_str().map(str::to_owned));
        for key in ["root", "catalog"] {
            match granted.get_mut(key) {
                Some(Json::String(path)) => absolute(path).into_iter().for_each(|whole| *path = whole),
                Some(Json::Array(paths)) => paths.iter_mut().for_each(|path| {
                    if let Some(whole) = path.as_str().and_then(absolute) {
                        *path = whole.into();
                    }
                }),
                _ => {}
            }
        }
        json!({"by": "run", "granted": granted})
    }

    /// What the tenant has in the store, which is made if it is absent.
    ///
    /// # Errors
    /// If nothing says where it is, it cannot be opened, or the tenant's name is not one.
    pub(crate) fn store(&self) -> Result<TenantStore, Fault> {
        store(&self.config)
    }

    /// Those files as a shell may see them that no program stands before: held to the policy at each access.
    pub(crate) fn confined(&self, files: &Arc<Files>) -> Arc<Files> {
        if self.preflight.policy().is_open() {
            return Arc::clone(files);
        }
        let preflight = Arc::<Preflight>::clone(&self.preflight);
        let admit = move |target, path: &str| preflight.call("shell", "shell.run", target, path);
        Arc::new(files.guarded(Arc::new(admit)))
    }

    /// The grants of a run that works on that, held to the policy.
    pub(crate) fn grants(&self, access: Access) -> Arc<Grants> {
        Arc::new(access.grants().guarded(Arc::<Preflight>::clone(&self.preflight)))
    }

    /// The tenant that runs belong to.
    ///
    /// # Errors
    /// Where the name cannot be one.
    pub(crate) fn tenant(&self) -> Result<Tenant, Fault> {
        tenant(&self.config)
    }

    /// The key that the tenant's traces are sealed with; `None` where there is no folder to keep keys in.
    ///
    /// # Errors
    /// Where the tenant's name cannot be one, or the key cannot be had.
    pub(crate) fn signer(&self) -> Result<Option<Arc<Signer>>, Fault> {
        let tenant = self.tenant()?;
        let signer = keys(&self.config).map(|keys| keys.signer(tenant.as_str()).map(Arc::new)).transpose();
        signer.map_err(|error| Fault::configuration(error.to_string()))
    }

    /// What a run works on: its files, the session's state or one of its own, the tenant's, the network, and the model if any, with
    /// the meter that counts what programs take of it. Tickets go to the workdir.
    ///
    /// # Errors
    /// Where the tenant's name cannot be one.
    pub(crate) fn access(
        &self,
        files: Arc<Files>,
        session: Option<&Session>,
        model: Option<(Arc<dyn Model>, Meter)>,
    ) -> Result<Access, Fault> {
        let name = self.tenant()?;
        let base = Access::new(&self.host, files);
        let (state, tenant): (Arc<dyn kv::Backend>, Arc<dyn kv::Backend>) = match session {
            Some(Session { id, store }) => (Arc::new(store.state(id)), Arc::new(store.variables())),
            None => (Arc::clone(&base.state), self.variables(name.clone())),
        };
        let settings = self.settings(RUN_STEPS);
        let inference = model.map(|(model, meter)| -> Arc<dyn Inference> {
            Arc::new(ModelInference::new(model, &settings).metered(meter))
        });
        let embeds = self.config.embed_model.value.clone().zip(inference.clone());
        let embedder = embeds.map(|(name, model)| Embedder { name, model });
        let index = index(&name, &self.config.root.value);
        let issues: Option<Arc<dyn IssueTracker>> = Some(Arc::new(IssueFile::of(&self.config.root.value)));
        let trusted = match self.config.exec.value {
            true => {
                Some(crate::trusted::trusted(&self.config, &self.config.root.value, name.as_str(), self.host.egress())?)
            }
            false => None,
        };
        let secrets = Some(crate::trusted::secrets(&self.config)?);
        Ok(Access { state, tenant, inference, budget: settings.ai, issues, index, embedder, secrets, trusted, ..base })
    }

    /// The tenant's state where no store is open yet; where there can be none, a state that is gone with the run.
    fn variables(&self, tenant: Tenant) -> Arc<dyn kv::Backend> {
        match store_path(&self.config) {
            Ok(path) => {
                let (path, ttl) = (path.to_owned(), self.config.session_ttl.value.0);
                Arc::new(LazyState::new(move || Ok(Store::open(&path, ttl)?.tenant(&tenant))))
            }
            Err(_) => Arc::new(kv::InMemory::default()),
        }
    }
}

/// What the tenant that the settings name has in the store, which is made if it is absent.
///
/// # Errors
/// If nothing says where it is, it cannot be opened, or the tenant's name is not one.
pub(crate) fn store(config: &Config) -> Result<TenantStore, Fault> {
    let tenant = tenant(config)?;
    let store = Store::open(store_path(config)?, config.session_ttl.value.0).map_err(no_store)?;
    Ok(store.tenant(&tenant))
}

/// As [`store`]; `None` if the file is absent.
///
/// # Errors
/// As [`store`].
pub(crate) fn store_if_there(config: &Config) -> Result<Option<TenantStore>, Fault> {
    match store_path(config) {
        Ok(path) if path.exists() => store(config).map(Some),
        _ => Ok(None),
    }
}

fn no_store(error: StoreError) -> Fault {
    Fault::configuration(error.to_string()).hint("name another file with `--store FILE`")
}

/// The tenant that the settings name.
///
/// # Errors
/// Where the name cannot be one.
pub(crate) fn tenant(config: &Config) -> Result<Tenant, Fault> {
    Tenant::new(&config.tenant.value).map_err(|error| Fault::configuration(error.to_string()))
}

/// The secrets of the tenant in the store.
///
/// # Errors
/// Where the store or the key cannot be had.
pub(crate) fn stored_secrets(config: &Config) -> Result<StoredSecrets, Fault> {
    let (store, keys) = (store(config)?, keys(config));
    let keys = keys.ok_or_else(|| Fault::configuration("there is no folder that keys are kept in"))?;
    let cipher = keys.cipher(store.tenant().as_str()).map_err(|error| Fault::configuration(error.to_string()))?;
    Ok(StoredSecrets::new(store, cipher))
}

/// Returns false if the tenant has no secrets in the store, as far as that can be seen without opening or making anything.
pub(crate) fn may_have_secrets(config: &Config) -> bool {
    let made = store_path(config).is_ok_and(Path::exists);
    made && tenant(config).is_ok_and(|tenant| keys(config).is_some_and(|keys| keys.has_cipher(tenant.as_str())))
}

/// Where the telemetry of runs goes, as the variables that all programs have in common say.
///
/// # Errors
/// Where they make no sense.
fn collector(host: &Host) -> Result<Option<Collector>, Fault> {
    let given = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
    let Some(endpoint) = given("OTEL_EXPORTER_OTLP_ENDPOINT") else { return Ok(None) };
    let settings = CollectorSettings {
        endpoint,
        headers: given("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default(),
        service: given("OTEL_SERVICE_NAME").unwrap_or_default(),
        content: given("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT").is_some_and(|text| text.trim() == "true"),
    };
    let collector = Collector::new(&settings, host.egress());
    collector.map(Some).map_err(|error| Fault::configuration(error.to_string()))
}

/// What programs and runs may use.
fn limits(config: &Config) -> Limits {
    let bytes = |setting: NonZeroU32| usize::try_from(u64::from(setting.get()) << 20).unwrap_or(usize::MAX);
    let run = AccountLimits {
        memory: bytes(config.limits_memory.value),
        cpu: config.limits_cpu.value.0,
        received: u64::from(config.limits_received.value.get()) << 20,
    };
    Limits { run, process_memory: bytes(config.limits_process.value), ..Limits::default() }
}

/// Where what is compiled is kept for other processes.
fn cache_folder() -> Option<PathBuf> {
    etcetera::base_strategy::Xdg::new().ok().map(|base| base.cache_dir().join("wattle"))
}

/// The keys of traces: beside the store, where there is one.
pub(crate) fn keys(config: &Config) -> Option<Keys> {
    let folder = store_path(config).ok()?.parent()?;
    Some(Keys::new(folder.join("keys")))
}

/// The files of the host's own: where they lie in a workdir, runs do not change what decides about later runs, and do not see the rest.
pub(crate) fn host_files(config: &Config) -> HostFiles {
    let places = Places::of_user();
    let mut files = HostFiles::default();
    for folder in &config.catalog.value {
        files = files.protect(folder, "a folder of programs");
    }
    if let Some(folder) = places.user_file.as_deref().and_then(Path::parent) {
        files = files.protect(folder, "the folder of the user's settings");
    }
    if let Some(trust) = &places.trust {
        files = files.hide(trust, "the list of trusted folders");
    }
    if let Some(state) = &places.state {
        files = files.hide(state, "the folder of the token and of histories");
    }
    if let Ok(store) = store_path(config) {
        files = files.hide_database(store, "the store");
        if let Some(folder) = store.parent() {
            files = files.hide(folder.join("keys"), "the folder of keys");
        }
    }
    match places.cache {
        Some(cache) => files.hide(cache, "the folder of caches"),
        None => files,
    }
}

/// The folders that the settings name, over the built-in programs; what is left out is told.
pub(crate) fn folders(config: &Config) -> Folders {
    let folders = Folders::open(&config.catalog.value, &|_| Ok(()));
    folders.catalog().problems().iter().for_each(|problem| output::warn(&problem.to_string()));
    folders
}

/// The search engine that the settings mean.
///
/// # Errors
/// What is wrong with them; told to whoever searches, since all else works without.
pub(crate) fn engine(config: &Config, egress: &Egress) -> Result<Engine, String> {
    let kind = config.search_engine.value.ok_or_else(|| NO_ENGINE.to_owned())?;
    let url = config.search_url.value.as_deref();
    Engine::new(&EngineSettings { kind, url, key_variable: &config.search_key_env.value }, egress, variable)
}

/// The file for a tenant's index of a workdir's files; `None` if there can be none.
fn index(tenant: &Tenant, root: &Path) -> Option<PathBuf> {
    let folder = Places::of_user().cache?.join("search").join(tenant.file_name());
    Some(index_file(&folder, &root.canonicalize().ok()?))
}

/// The endpoint that the settings mean.
///
/// # Errors
/// Where nothing says which, or what says it is wrong.
pub(crate) fn endpoint(config: &Config) -> Result<Endpoint, Fault> {
    let settings = EndpointSettings {
        provider: config.provider.value.as_deref(),
        base_url: config.base_url.value.as_deref(),
        model: config.model.value.as_deref(),
        api_key_env: config.api_key_env.value.as_deref(),
        embed_model: config.embed_model.value.as_deref(),
    };
    resolve(&settings, variable).map_err(|error| no_endpoint(&error))
}

/// The value of an environment variable that is text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn no_endpoint(error: &EndpointError) -> Fault {
    let key = variable("WATTLE_API_KEY").is_some_and(|key| !key.trim().is_empty());
    if error.kind() == EndpointErrorKind::NothingSet && !key {
        let message = "no model is set up: set a key (`OPENROUTER_API_KEY`, `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, …),\n\
                       or name an endpoint: `--base-url URL --model NAME`, or `--provider ollama --model NAME`";
        return Fault::configuration(message).hint("`wattle demo` plays real runs without a model");
    }
    Fault::configuration(error.to_string())
}

/// The path of the store.
fn store_path(config: &Config) -> Result<&Path, Fault> {
    let Some(path) = config.store.value.as_deref() else {
        return Err(Fault::configuration("there is no home directory to keep the store in").hint("give `--store FILE`"));
    };
    match path.to_str() {
        Some(url) if url.contains("://") => {
            Err(Fault::configuration(format!("the store `{url}` is a URL, and stores are files"))
                .hint("give `--store FILE`"))
        }
        _ => Ok(path),
    }
}

/// Makes a folder that only the user can look into; one that is there stays as it is.
pub(crate) fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Is cancelled when the user interrupts; a second interrupt ends the process. From the call on, no interrupt is missed.
pub(crate) fn interrupt() -> CancellationToken {
    let cancel = CancellationToken::new();
    interrupt_to(&cancel);
    cancel
}

/// Cancels that when the user interrupts, as [`interrupt`] does.
pub(crate) fn interrupt_to(cancel: &CancellationToken) {
    let token = cancel.clone();
    // Where interrupts cannot be had, the system's own way with them stays: the process ends.
    if let Ok(mut interrupts) = interrupts() {
        tokio::spawn(async move {
            interrupts.recv().await;
            token.cancel();
            output::note("stopping … (again to stop at once)");
            interrupts.recv().await;
            std::process::exit(130);
        });
    }
}

#[cfg(unix)]
fn interrupts() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

#[cfg(windows)]
fn interrupts() -> std::io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

/// How the process ends after a run that ended so.
pub(crate) fn exit_of(ending: &machine::Ending) -> Exit {
    match ending {
        machine::Ending::Answered { text } if text.trim().is_empty() => Exit::Failed,
        machine::Ending::Answered { .. } => Exit::Done,
        machine::Ending::Exhausted { .. } => Exit::Bound,
        machine::Ending::Blocked { .. } => Exit::Denied,
        machine::Ending::Cancelled { .. } => Exit::Interrupted,
        machine::Ending::Failed { .. } => Exit::Provider,
    }
}

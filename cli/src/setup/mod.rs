//! Creation of a run's components from the settings, shared by `run`, `exec`, `repl` and `serve`.

mod access;
mod files;
mod interrupt;
mod models;
mod remote;
mod runs;
pub(crate) mod servers;
mod store;
pub(crate) mod trusted;
mod warnings;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use serde_json::{Value as Json, json};
use wattle_agent::agents::{
    AgentBase, AgentError, AgentParts, AgentSpec, Agents, DEFAULT_AGENT, ProgramResolver,
};
use wattle_agent::host::capability::ai::Budget;
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::capability::files::{Base, Files, OVERLAY_LIMIT, read_regular_file};
use wattle_agent::host::capability::policy::{
    Approver, NoApprover, Policy as RunPolicy, Preflight,
};
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::engine::{Bounds, Component, MAX_BINARY};
use wattle_agent::host::machine;
use wattle_agent::host::moderation::{Classifier, MessageFilter, Moderation};
use wattle_agent::host::rt::{AccountLimits, Grants, Limits, decode_text};
use wattle_agent::host::{SESSION_ID, TenantStore, is_session_id};
use wattle_agent::model::{Cassette, Endpoint, Model, Prices, Recorder, Timeouts};
use wattle_agent::{Host, Settings, Store, Tenant};

use crate::args::ContextValue;
use crate::config::{Config, Origin, Places, RETRY_IN_TERMINAL, regular_file};
use crate::fault::{Exit, Fault};
use crate::{ask, output, writers};
use wattle_mcp::Servers;

pub(crate) use crate::api_keys::variable;
pub(crate) use files::settle_program;
pub(crate) use interrupt::{INTERRUPTED, interrupt, interrupt_to};
pub(crate) use models::{client, endpoint};
pub(crate) use remote::{SHORT_KEY, engine, mask_key};
pub(crate) use runs::{LABEL, LocalAssembler, LocalRuns};
pub(crate) use store::{
    check_keys, close_stores, host_files, keys, keys_folder, mask_settings, may_have_secrets,
    store, store_if_there, stored_secrets, tenant, trace_dir, traces_of,
};

pub(crate) use warnings::{EXEC_VARIABLE, LONG_TOKEN, TOKEN_VARIABLE, warnings};

use remote::collector;
use store::{location, usable_keys};

/// Default maximum number of steps per run.
pub(crate) const RUN_STEPS: u32 = 12;

/// Maximum number of programs that a command for a single program runs concurrently: this program
/// and those that it starts.
const INSTANCES_FOR_ONE_PROGRAM: u32 = 32;

/// Maximum time that the process waits at exit for pending telemetry.
const FLUSH: Duration = Duration::from_secs(2);

/// The settings of a command, and the components created from them. This type is cheap to clone.
#[derive(Clone)]
pub(crate) struct Setup {
    /// The settings.
    pub(crate) config: Config,
    /// The engine, the catalog and the network.
    pub(crate) host: Host,
    /// The agents.
    pub(crate) agents: Agents,
    /// The policy check for programs, which remembers the user's answers for the rest of the
    /// session.
    preflight: Arc<Preflight>,
    /// Context values for the agents.
    context: BTreeMap<String, String>,
    /// The MCP servers whose tools programs may call.
    pub(crate) servers: Servers,
}

/// The word that names the session that was used last, or the latest run.
pub(crate) const LAST: &str = "last";

/// Returns the id of the session that `named` denotes: the session that was used last for `last`.
///
/// # Errors
/// If there is no session yet, or the store cannot be read.
pub(crate) async fn session_id(store: &TenantStore, named: String) -> Result<String, Fault> {
    if named != LAST {
        return Ok(named);
    }
    let newest = store.sessions().await?.into_iter().next();
    newest.map(|session| session.id).ok_or_else(|| {
        Fault::usage("the store has no session yet").hint("`--session ID` starts one")
    })
}

/// A session of a tenant.
pub(crate) struct Session {
    /// The session's id.
    pub(crate) id: String,
    /// The store that contains the session.
    pub(crate) store: TenantStore,
}

/// Loads the engine that the settings name, or returns `None` if they name none.
///
/// # Errors
/// If the file cannot be read, or is no engine.
pub(crate) fn agent_engine(config: &Config) -> Result<Option<Component>, Fault> {
    let Some(path) = &config.engine.value else { return Ok(None) };
    let failed = |why: &dyn std::fmt::Display| {
        Fault::configuration(format!("failed to load the engine `{}`: {why}", path.display()))
    };
    let binary = read_regular_file(path, MAX_BINARY as u64).map_err(|why| failed(&why))?;
    let binary = binary.ok_or_else(|| failed(&"there is no such file"))?;
    let bounds = Bounds {
        memory: (config.engine_memory.value.get() as usize) << 20,
        turn: config.engine_turn.value.0,
    };
    let cache = Places::of_user().cache;
    let component = Component::load(&binary, cache.as_deref(), bounds);
    component.map(Some).map_err(|why| failed(&why))
}

impl Setup {
    /// Creates the engine, loads the catalog, and warns about invalid programs.
    ///
    /// # Errors
    /// If the engine, its cache or the telemetry collector cannot be created.
    pub(crate) fn new(config: Config) -> Result<Setup, Fault> {
        Ok(Setup::without_warnings(config)?.with_warnings())
    }

    /// Creates a setup like [`new`](Setup::new) for a command that reports the problems of agents
    /// itself.
    ///
    /// # Errors
    /// The same as for [`new`](Setup::new).
    pub(crate) fn without_warnings(config: Config) -> Result<Setup, Fault> {
        let limits = limits(&config);
        let engine = agent_engine(&config)?;
        let setup = Setup::with_limits(config, limits)?;
        let host = setup.host.clone().with_engine(engine);
        Ok(Setup { host, ..setup })
    }

    /// Warns about invalid agents.
    fn with_warnings(self) -> Setup {
        self.agents.problems().iter().for_each(|problem| output::warn(&problem.to_string()));
        self
    }

    /// Creates a setup like [`new`](Setup::new) for a command that runs a single program. The
    /// engine starts faster, because it has stacks for fewer nested programs.
    ///
    /// # Errors
    /// The same as for [`new`](Setup::new).
    pub(crate) fn for_one_program(config: Config) -> Result<Setup, Fault> {
        let limits = limits(&config);
        let instances = limits.instances.min(INSTANCES_FOR_ONE_PROGRAM);
        let limits = Limits { instances, ..limits };
        Ok(Setup::with_limits(config, limits)?.with_warnings())
    }

    fn with_limits(config: Config, limits: Limits) -> Result<Setup, Fault> {
        let egress =
            Egress::new(Policy { allow: config.allow_host.value.clone(), ..Policy::default() });
        let servers = servers::configured(&config, &egress);
        let folders = folders(&config).adding(servers.programs());
        let engine = engine(&config, &egress);
        let mut host = Host::new(limits, folders, egress).map_err(|error| {
            match getrlimit(Resource::As).current {
                // The engine reserves addresses, not memory, for each program.
                Some(bytes) => Fault::configuration(error).hint(format!(
                    "the process may use {} MiB of addresses (`ulimit -v`, `LimitAS=`): remove this \
                     limit, or lower `limits.programs`, since each program takes 8 GiB of them; \
                     `limits.process_memory_mb` limits the memory",
                    bytes >> 20
                )),
                None => Fault::failed(error),
            }
        })?;
        if let Some(folder) = Places::of_user().cache {
            host = host.with_cache(&folder).map_err(Fault::failed)?;
        }
        let host = host.with_search_engine(engine).with_mask(output::mask().clone());
        let host = match collector(&host)? {
            Some(collector) => host.with_collector(collector),
            None => host,
        };
        let host = match config.content.skills.as_slice() {
            [] => host,
            skills => host.with_skills(skills.to_vec()),
        };
        let problems = config.content.problems.iter().chain(host.skills().problems());
        problems.for_each(|problem| output::warn(&problem.to_string()));
        let preflight = Arc::new(guard(&config, &servers, ask::terminal()));
        let agents = Agents::open(&config.agents.value);
        let setup = Setup { config, host, agents, preflight, context: BTreeMap::new(), servers };
        Ok(setup.with_resolver())
    }

    /// Accepts the tools of the MCP servers that are new, and adds their programs to the catalog. Warns
    /// about servers that cannot be used.
    pub(crate) async fn with_new_servers(mut self) -> Setup {
        if self.servers.is_empty() {
            return self;
        }
        let (accepted, errors) = self.servers.accept_new(servers::pins().as_ref()).await;
        servers::warn(&self.servers, &errors);
        if !accepted.is_empty() {
            self.host.add_programs(self.servers.programs()).await;
            self.preflight = Arc::new(guard(&self.config, &self.servers, ask::terminal()));
        }
        self
    }

    /// Replaces the MCP servers by the tools with which a run began.
    pub(crate) async fn with_tools_of(self, origin: &Json) -> Setup {
        let servers = servers::of_run(origin);
        self.host.add_programs(servers.programs()).await;
        Setup { servers, ..self }
    }

    /// Adds the program that resolves agent references, if the settings name one.
    fn with_resolver(self) -> Setup {
        let Some(program) = self.config.agent_resolver.value.clone() else { return self };
        let (host, setup) = (self.host.clone(), self.clone());
        let grants =
            move |tenant: &Tenant| setup.resolver_grants(tenant).map_err(|fault| fault.to_string());
        let resolver = Arc::new(ProgramResolver::new(host, program, grants));
        Setup { agents: self.agents.with_resolver(resolver), ..self }
    }

    /// Returns the grants of the program that resolves a tenant's agent references. The program may
    /// read the variables of this tenant and, like the tenant's runs, the workdir. The files that
    /// it writes are discarded.
    fn resolver_grants(&self, tenant: &Tenant) -> Result<Arc<Grants>, Fault> {
        let is_own = *tenant == self::tenant(&self.config)?;
        let of = self.for_tenant(tenant);
        let reads_workdir = is_own || of.config.root.origin != Origin::Default;
        let base = reads_workdir.then(|| base_files(&of.config)).transpose()?;
        let files = Arc::new(Files::overlay(base, OVERLAY_LIMIT));
        Ok(of.grants(of.access(files, None, None, &of.settings(0))?))
    }

    /// Returns the setup for a tenant. If it is not the configured tenant, the setup contains none
    /// of the configured tenant's rights: no secrets but the shared ones, and no trusted
    /// capabilities. Its traces are not in the workdir, which all tenants may read. Its records have a
    /// mask of their own.
    pub(crate) fn for_tenant(&self, tenant: &Tenant) -> Setup {
        let mut of = self.clone();
        if of.config.tenant.value != tenant.as_str() {
            of.config.tenant.value = tenant.to_string();
            of.config.secrets.value.0.retain(|secret| secret.shared);
            of.config.exec.value = false;
            of.config.mask = of.config.mask.part();
            of.servers = of.servers.shared();
            of.config.trace_dir.value.take_if(|location| location.folder().is_none());
        }
        of
    }

    /// Loads the configured agent, or the default agent.
    ///
    /// # Errors
    /// If there is no such agent.
    pub(crate) async fn agent(&self) -> Result<Arc<AgentSpec>, Fault> {
        let name = self.config.agent.value.as_deref().unwrap_or(DEFAULT_AGENT);
        let agent =
            self.agents.load(&tenant(&self.config)?, name).await.map_err(|error| {
                Fault::usage(error).hint("`wattle agents list` shows the agents")
            })?;
        Ok(if self.context.is_empty() {
            agent
        } else {
            Arc::new(agent.with_context(&self.context))
        })
    }

    /// Replaces the context values for the agents.
    pub(crate) fn with_context(self, values: Vec<ContextValue>) -> Setup {
        let context = values.into_iter().map(|ContextValue(key, value)| (key, value)).collect();
        Setup { context, ..self }
    }

    /// Returns the components and settings of an agent's runs. `base` contains the settings to
    /// which the agent's own settings are applied.
    ///
    /// # Errors
    /// If one of the agent's tools, traits or delegates does not exist, or its context lacks a
    /// value.
    pub(crate) fn agent_parts(
        &self,
        agent: &AgentSpec,
        base: &Settings,
    ) -> Result<AgentParts, AgentError> {
        let max_steps = self.config.max_steps.value;
        agent.parts(AgentBase { host: &self.host, settings: base, agents: &self.agents, max_steps })
    }

    /// Returns the setup and the settings for an agent's runs. `base` contains the settings to
    /// which the agent's own settings are applied.
    ///
    /// # Errors
    /// If one of the agent's tools, traits or delegates does not exist, or its context lacks a
    /// value.
    pub(crate) fn for_agent(
        &self,
        agent: &AgentSpec,
        base: &Settings,
    ) -> Result<(Setup, Settings), Fault> {
        let parts = self.agent_parts(agent, base);
        let AgentParts { host, settings, policy } = parts.map_err(Fault::configuration)?;
        let preflight = if policy.is_open() {
            Arc::clone(&self.preflight)
        } else {
            Arc::new(self.preflight.narrowed(policy))
        };
        Ok((Setup { host, preflight, ..self.clone() }, settings))
    }

    /// Waits for pending telemetry to be sent.
    pub(crate) async fn flush(&self) {
        if let Some(collector) = self.host.collector() {
            collector.flush(FLUSH).await;
        }
    }

    /// Returns the settings of the agent loop. `max_steps` applies if the configuration sets no
    /// maximum number of steps.
    pub(crate) fn settings(&self, max_steps: u32) -> Settings {
        let max_steps = self.config.max_steps.value.unwrap_or(max_steps);
        let machine = machine::Settings {
            max_steps,
            on_max_steps: self.config.on_max_steps.value,
            max_repetitions: self.config.max_repetitions.value,
            max_tokens_total: self.config.max_tokens_total.value.map(|tokens| tokens.get().into()),
            max_cost: self.config.max_cost.value,
            ..machine::Settings::default()
        };
        let ai = Budget {
            calls: self.config.ai_calls.value.get(),
            tokens: self.config.ai_tokens.value.get().into(),
        };
        let (dialect, prices) = (self.config.dialect.value, self.config.prices.value.clone());
        let timeout = self.config.timeout.value.map(|span| span.0);
        Settings {
            machine,
            ai,
            timeout,
            dialect,
            prices,
            orient: self.config.orient.value,
            temperature: self.config.temperature.value.get(),
            max_tokens: self.config.max_tokens.value.get(),
            thinking_effort: self.config.thinking_effort.value,
            tool_call: self.config.tool_call.value,
            timeouts: self.timeouts(),
            ..Settings::default()
        }
    }

    /// Returns the deadlines and retries of model requests.
    pub(crate) fn timeouts(&self) -> Timeouts {
        let default = Timeouts::default();
        let in_terminal = ask::is_terminal().then_some(RETRY_IN_TERMINAL.0);
        let usual = in_terminal.unwrap_or(default.retry_for);
        Timeouts {
            request: self.config.http_timeout.value.0,
            retry_for: self.config.retry_for.value.map_or(usual, |span| span.0),
            ..default
        }
    }

    /// Returns the settings of the agent loop, with the content guard if it is enabled. The guard's
    /// classifier, if configured, asks `model`.
    ///
    /// # Errors
    /// If a pattern of the guard is invalid, the cost is limited but the model's price unknown, or
    /// the file of the system prompt cannot be read.
    pub(crate) fn run_settings(
        &self,
        max_steps: u32,
        model: &Arc<dyn Model>,
    ) -> Result<Settings, Fault> {
        let preamble = self.config.system.value.as_deref().map(system_prompt).transpose()?;
        let guidance = self.config.content.guidance.clone().into();
        let settings = Settings { preamble, guidance, ..self.settings(max_steps) };
        self.check_price(model.name(), &settings.prices)?;
        let guard = &self.config.guard.value;
        if !guard.enabled {
            return Ok(settings);
        }
        let patterns = guard
            .patterns()
            .map_err(|why| Fault::configuration(format!("the key `guard`: {why}")))?;
        let mut looks: Vec<Arc<dyn MessageFilter>> = vec![Arc::new(patterns)];
        if guard.classifier {
            let (timeouts, prices) = (settings.timeouts, settings.prices.clone());
            looks.push(Arc::new(Classifier::new(
                Arc::clone(model),
                guard.looked_for(),
                timeouts,
                prices,
            )));
        }
        let moderation = Moderation::new(looks, guard.messages.clone(), guard.on_failure.into());
        Ok(Settings { moderation: Some(moderation), ..settings })
    }

    /// Checks that the price of the model is known if the settings limit the cost of a run.
    fn check_price(&self, model: &str, prices: &Prices) -> Result<(), Fault> {
        let one = machine::Usage { prompt: 1, ..machine::Usage::default() };
        let is_known = || {
            let named = || endpoint(&self.config, None).ok();
            // A recording costs nothing. Without an endpoint, there are no requests.
            self.config.cassette.value.is_some()
                || prices.priced(model, one).cost.is_some()
                || named().is_none_or(|named| reports_cost(&named.endpoint))
        };
        if self.config.max_cost.value.is_none() || is_known() {
            return Ok(());
        }
        let message = format!(
            "`max_cost` cannot be kept, because the price of the model `{model}` is unknown"
        );
        Err(Fault::configuration(message).hint(format!(
            "set its price in dollars per million tokens in the user file, such as \
             `prices.\"{model}\" = {{ prompt = 0.5, completion = 1.5 }}`"
        )))
    }

    /// Opens the model: a recording, or the model at the configured endpoint. The answers are
    /// recorded if `record` is set.
    ///
    /// # Errors
    /// If no setting names a model, or a setting is invalid.
    pub(crate) fn model(&self) -> Result<Arc<dyn Model>, Fault> {
        let model: Arc<dyn Model> = match &self.config.cassette.value {
            Some(path) => Arc::new(Cassette::open(path).map_err(Fault::configuration)?),
            None => {
                let endpoint = endpoint(&self.config, None)?;
                client(endpoint, self.host.egress(), self.timeouts())?
            }
        };
        match &self.config.record.value {
            Some(path) => {
                let mask = self.host.mask().whole();
                Ok(Arc::new(Recorder::create(model, path, mask).map_err(Fault::configuration)?))
            }
            None => Ok(model),
        }
    }

    /// Opens the files of one run. Warns if programs write to the workdir directly, and those of
    /// another process do so, too.
    ///
    /// # Errors
    /// If the workdir cannot be opened.
    pub(crate) fn files(&self) -> Result<Arc<Files>, Fault> {
        if self.config.writes_through() {
            let files = Files::write_through(base_files(&self.config)?);
            writers::enter(&self.config.root.value);
            return Ok(Arc::new(files));
        }
        overlay(&self.config).map(Arc::new)
    }

    /// Opens the configured session or returns `None` if none is configured.
    ///
    /// # Errors
    /// If the id is invalid or the store cannot be opened.
    pub(crate) async fn session(&self) -> Result<Option<Session>, Fault> {
        let Some(id) = self.session_label().await? else { return Ok(None) };
        Ok(Some(Session { id, store: store(&self.config)? }))
    }

    /// Returns the id of the configured session, if any, for use as a label only. The session's
    /// state is neither read nor stored.
    ///
    /// # Errors
    /// If the id is invalid.
    pub(crate) async fn session_label(&self) -> Result<Option<String>, Fault> {
        let Some(id) = self.config.session.value.clone() else { return Ok(None) };
        if id == LAST {
            return session_id(&store(&self.config)?, id).await.map(Some);
        }
        if is_session_id(&id) {
            Ok(Some(id))
        } else {
            Err(Fault::configuration(format!("a session id is {SESSION_ID}, not {id:?}")))
        }
    }

    /// Ends the approvals that the user gave for the rest of the session.
    pub(crate) fn forget_approvals(&mut self) {
        self.preflight = Arc::new(guard(&self.config, &self.servers, ask::terminal()));
    }

    /// Makes runs ask this approver about calls that need approval.
    pub(crate) fn asking(mut self, approver: Arc<dyn Approver>) -> Setup {
        self.preflight = Arc::new(guard(&self.config, &self.servers, Some(approver)));
        self
    }

    /// Makes runs park at a call that needs approval instead of asking the user.
    pub(crate) fn park(&mut self) {
        self.preflight = Arc::new(guard(&self.config, &self.servers, Some(Arc::new(NoApprover))));
    }

    /// Opens the store for the journal of runs. Returns `None` if no store is configured or, after
    /// a warning, if the store or the folder of the keys cannot be used. The setup has no store
    /// afterwards, so that its runs are neither recorded nor signed.
    pub(crate) fn journal(&mut self) -> Option<TenantStore> {
        location(&self.config).ok()?;
        let opened =
            store(&self.config).and_then(|store| usable_keys(&self.config).map(|()| store));
        opened
            .inspect_err(|fault| {
                output::warn(&format!(
                    "the run is neither recorded nor signed: {}; set `XDG_DATA_HOME` to a folder \
                     that can be written, or name a store in one with `--store FILE`",
                    fault.message()
                ));
                self.config.store.value = None;
            })
            .ok()
    }

    /// Creates an in-memory store, which is lost when the process ends.
    ///
    /// # Errors
    /// If the tenant's name is invalid, or there is not enough memory for a store.
    pub(crate) fn memory(&self) -> Result<TenantStore, Fault> {
        Ok(Store::in_memory(Duration::MAX)?.tenant(&tenant(&self.config)?))
    }

    /// Returns the journal data that a later command needs to resume the run.
    pub(crate) fn origin(&self, agent: &AgentSpec) -> Json {
        let mut origin = json!({"by": "run", "granted": self.config.granted()});
        let tools = servers::pins().map(|pins| self.servers.kept_in(&pins)).unwrap_or_default();
        if !tools.is_empty()
            && let Some(origin) = origin.as_object_mut()
        {
            origin.insert(servers::TOOLS.to_owned(), json!(tools));
        }
        agent.write_to(&mut origin);
        origin
    }
}

/// Opens an overlay on the workdir, without changes.
///
/// # Errors
/// If the workdir cannot be opened.
pub(crate) fn overlay(config: &Config) -> Result<Files, Fault> {
    Ok(Files::overlay(Some(base_files(config)?), OVERLAY_LIMIT))
}

fn base_files(config: &Config) -> Result<Base, Fault> {
    let base = Files::open_protected_base(&config.root.value, host_files(config))
        .map_err(Fault::configuration)?;
    base.recovered().iter().for_each(|note| output::warn(note));
    Ok(base)
}

/// Reads the file whose text is the beginning of the system prompt.
fn system_prompt(path: &Path) -> Result<String, Fault> {
    let failed = |why: &str| {
        Fault::configuration(format!("`system`: failed to read `{}`: {why}", path.display()))
    };
    let bytes = regular_file::of_user(path, regular_file::LARGEST).map_err(|why| failed(&why))?;
    let text = decode_text(bytes.ok_or_else(|| failed("there is no such file"))?);
    Ok(text.map_err(|_| failed("it is not UTF-8"))?.trim().to_owned())
}

/// Returns the limits for programs and runs.
fn limits(config: &Config) -> Limits {
    let bytes =
        |setting: NonZeroU32| usize::try_from(u64::from(setting.get()) << 20).unwrap_or(usize::MAX);
    let run = AccountLimits {
        memory: bytes(config.limits_memory.value),
        cpu: config.limits_cpu.value.0,
        received: u64::from(config.limits_received.value.get()) << 20,
    };
    Limits {
        run,
        process_memory: bytes(config.limits_process.value),
        instances: config.limits_programs.value.get(),
        ..Limits::default()
    }
}

/// Loads the built-in programs and the programs in the configured folders and warns about invalid
/// ones.
pub(crate) fn folders(config: &Config) -> Folders {
    let folders = Folders::open(&config.catalog.value, &|_, _| Ok(()));
    folders.catalog().problems().iter().for_each(|problem| output::warn(&problem.to_string()));
    folders
}

/// Creates the guard of programs. If they write to the workdir directly, it asks before they write
/// protected files. Otherwise, the user is asked when the changes are applied.
fn guard(config: &Config, servers: &Servers, approver: Option<Arc<dyn Approver>>) -> Preflight {
    let guard = Preflight::new(with_hints(config, servers), approver);
    if config.writes_through() { guard.asking_about_protected_files() } else { guard }
}

/// Returns the policy, with a question before each tool that may destroy something by its own hints.
/// A rule of the user that covers the tool takes precedence.
pub(crate) fn with_hints(config: &Config, servers: &Servers) -> RunPolicy {
    config.policy.clone().asking_about_tools(&servers.careful())
}

/// Returns true if the endpoint reports the cost of each request.
fn reports_cost(endpoint: &Endpoint) -> bool {
    endpoint.base_url.host_str() == Some("openrouter.ai")
}

/// Returns the exit code for the ending of a run.
pub(crate) fn exit_of(ending: &machine::Ending) -> Exit {
    match ending {
        machine::Ending::Answered { text, .. } if text.trim().is_empty() => Exit::Failed,
        machine::Ending::Answered { .. } => Exit::Done,
        machine::Ending::Invalid { .. } => Exit::Failed,
        machine::Ending::Exhausted { .. } => Exit::Bound,
        machine::Ending::Blocked { .. } => Exit::Denied,
        machine::Ending::Cancelled { .. } => Exit::Interrupted,
        machine::Ending::Failed { .. } => Exit::Provider,
    }
}

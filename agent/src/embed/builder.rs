//! How agents are built.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use wattle_capability::files::Files;
use wattle_capability::policy::{Asker, Policy};
use wattle_catalog::Entry;

use super::agent::{Agent, ChangeAccess, Inner, NewFiles, ReadData};
use super::event::Handler;
use super::middleware::Middleware;
use super::tool::{CompiledTool, Tool};
use crate::agents::{
    AgentBase, AgentError, AgentSpec, Agents, DelegateRef, delegate_program, is_name,
};
use crate::host::Host;
use crate::inference::ModelInference;
use crate::model::Model;
use crate::output::{OutputSchema, OutputSettings, SchemaError};
use crate::settings::Settings;
use crate::store::TenantStore;
use crate::wiring::Access;

/// Maximum size of the files of a run without files of its own, in bytes.
const MAX_FILES: u64 = 64 << 20;

/// The configuration of an [`Agent`] that is not built yet.
#[must_use = "an agent exists once it is built"]
pub struct AgentBuilder<T = String> {
    model: Arc<dyn Model>,
    name: Option<String>,
    spec: Option<AgentSpec>,
    prompt: Option<String>,
    host: Option<Host>,
    settings: Settings,
    policy: Policy,
    asker: Option<Arc<dyn Asker>>,
    store: Option<TenantStore>,
    files: Arc<NewFiles>,
    access: Vec<Arc<ChangeAccess>>,
    tools: Vec<Tool>,
    delegates: Vec<(String, Arc<Inner>)>,
    middleware: Vec<Arc<dyn Middleware>>,
    handlers: Vec<Arc<dyn Handler>>,
    output: Option<Result<OutputSchema, SchemaError>>,
    read: ReadData<T>,
}

impl AgentBuilder {
    pub(super) fn new(model: Arc<dyn Model>) -> AgentBuilder {
        AgentBuilder {
            model,
            name: None,
            spec: None,
            prompt: None,
            host: None,
            settings: Settings::default(),
            policy: Policy::default(),
            asker: None,
            store: None,
            files: Arc::new(|| Arc::new(Files::overlay(None, MAX_FILES))),
            access: Vec::new(),
            tools: Vec::new(),
            delegates: Vec::new(),
            middleware: Vec::new(),
            handlers: Vec::new(),
            output: None,
            read: |report| Ok(report.text.clone()),
        }
    }
}

impl<T> AgentBuilder<T> {
    /// Names the agent: lowercase letters, digits, `_`, `-` and `.`.
    pub fn name(self, name: impl Into<String>) -> Self {
        AgentBuilder { name: Some(name.into()), ..self }
    }

    /// Sets a declared agent: its prompt, programs, limits and policy. Its delegates must be added
    /// with [`delegate`](AgentBuilder::delegate), and its model is not opened.
    pub fn spec(self, spec: AgentSpec) -> Self {
        AgentBuilder { spec: Some(spec), ..self }
    }

    /// Sets the role and the rules, at the beginning of the prompt. It replaces the prompt of a
    /// declared agent.
    pub fn prompt(self, prompt: impl Into<String>) -> Self {
        AgentBuilder { prompt: Some(prompt.into()), ..self }
    }

    /// Sets the host. Agents of one process should share one, since it has the engine. By default,
    /// the agent has a host of its own with the built-in programs.
    pub fn host(self, host: Host) -> Self {
        AgentBuilder { host: Some(host), ..self }
    }

    /// Sets the settings of runs. A declared agent changes them.
    pub fn settings(self, settings: Settings) -> Self {
        AgentBuilder { settings, ..self }
    }

    /// Narrows what programs may do. A delegate may do only what the agents above it may do, too.
    pub fn policy(self, policy: Policy) -> Self {
        AgentBuilder { policy: self.policy.and(policy), ..self }
    }

    /// Sets who approves what the policy asks about. Delegates without one ask the same. Without
    /// it, that is denied. If it answers later, a run with a [`store`](AgentBuilder::store) waits.
    pub fn asker(self, asker: Arc<dyn Asker>) -> Self {
        AgentBuilder { asker: Some(asker), ..self }
    }

    /// Records the runs in a store, so that they can be resumed and replayed. The state and the
    /// memory of programs are in the store, too.
    pub fn store(self, store: TenantStore) -> Self {
        AgentBuilder { store: Some(store), ..self }
    }

    /// Lets all runs work on the same files. By default, each run has files of its own in memory,
    /// at most 64 MiB.
    pub fn files(self, files: Arc<Files>) -> Self {
        self.files_with(move || Arc::clone(&files))
    }

    /// Sets the function that returns the files of each run. Delegates work on the files of the run
    /// that asks them.
    pub fn files_with(self, files: impl Fn() -> Arc<Files> + Send + Sync + 'static) -> Self {
        AgentBuilder { files: Arc::new(files), ..self }
    }

    /// Adds a function that changes what each run may use: its secrets, its search engine and so
    /// on.
    pub fn access(mut self, change: impl Fn(Access) -> Access + Send + Sync + 'static) -> Self {
        self.access.push(Arc::new(change));
        self
    }

    /// Adds a tool. Programs and the model call it by its name.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds another agent that this one may ask. The program `ask_NAME` asks it, unless the
    /// declared agent calls it otherwise.
    pub fn delegate<U>(mut self, name: impl Into<String>, agent: Agent<U>) -> Self {
        self.delegates.push((name.into(), agent.inner));
        self
    }

    /// Adds code around each trip and each call. The first is the outermost.
    pub fn middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Adds a handler of the events of all runs.
    pub fn on(mut self, handler: impl Handler + 'static) -> Self {
        self.handlers.push(Arc::new(handler));
        self
    }

    /// Makes the answers values of a type. Its schema is sent with the task, and an answer that
    /// does not match is asked for again.
    pub fn output<U: DeserializeOwned + JsonSchema>(self) -> AgentBuilder<U> {
        self.with_output(OutputSchema::of::<U>(), |report| {
            let data = report.data.as_ref().ok_or("the run has no value")?;
            U::deserialize(data)
                .map_err(|error| format!("the answer does not fit the type: {error}"))
        })
    }

    /// Makes the answers JSON values that match a JSON Schema.
    pub fn output_schema(self, schema: Json) -> AgentBuilder<Json> {
        self.with_output(OutputSchema::new("answer", schema), |report| {
            report.data.clone().ok_or_else(|| "the run has no value".to_owned())
        })
    }

    fn with_output<U>(
        self,
        schema: Result<OutputSchema, SchemaError>,
        read: ReadData<U>,
    ) -> AgentBuilder<U> {
        AgentBuilder {
            output: Some(schema),
            read,
            model: self.model,
            name: self.name,
            spec: self.spec,
            prompt: self.prompt,
            host: self.host,
            settings: self.settings,
            policy: self.policy,
            asker: self.asker,
            store: self.store,
            files: self.files,
            access: self.access,
            tools: self.tools,
            delegates: self.delegates,
            middleware: self.middleware,
            handlers: self.handlers,
        }
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// The part that is invalid, and the rule that it breaks.
    pub fn build(self) -> Result<Agent<T>, AgentError> {
        let mut spec = self.spec.unwrap_or_else(|| AgentSpec::new(""));
        let name = self.name.or_else(|| Some(spec.name.clone()).filter(|name| !name.is_empty()));
        if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
            return Err(AgentError::InvalidName(name.clone()));
        }
        if let Some(prompt) = self.prompt {
            spec.prompt = prompt;
        }
        spec.name = name.clone().unwrap_or_else(|| UNNAMED.to_owned());
        let mut settings = self.settings;
        if let Some(schema) = self.output {
            let why = |why: SchemaError| AgentError::InvalidOutput {
                agent: spec.name.clone(),
                why: why.to_string(),
            };
            let output = OutputSettings::new(schema.map_err(why)?);
            let max_attempts =
                spec.repair.map_or(output.max_attempts, |repair| repair.max_attempts);
            settings.output = Some(OutputSettings { max_attempts, ..output });
            spec.output_schema = None;
        }
        let (refs, delegates) = delegates(&spec, self.delegates)?;
        spec.delegates = Vec::new();
        let host = match self.host {
            Some(host) => host,
            None => Host::built_in().map_err(|error| AgentError::Engine(error.to_string()))?,
        };
        let base = AgentBase {
            host: &host,
            settings: &settings,
            agents: &Agents::default(),
            max_steps: None,
        };
        let parts = spec.parts(base)?;
        let tools = compile(&spec.name, &self.tools)?;
        let own = |agent: &str| -> Result<Vec<Entry>, AgentError> {
            let asked = refs.iter().map(|one| {
                let shown = one.id.as_str();
                delegate_program(agent, one, (shown, ""))
            });
            let programs = asked.collect::<Result<Vec<Entry>, AgentError>>()?;
            Ok(tools.iter().map(|tool| tool.program(agent)).chain(programs).collect())
        };
        let catalog = parts.host.catalog();
        let mut names = Vec::new();
        for entry in own(&spec.name)? {
            let name = entry.name().to_string();
            if catalog.get(&name).is_some() || names.contains(&name) {
                return Err(AgentError::NameTaken { agent: spec.name, name });
            }
            names.push(name);
        }
        let offered = catalog.with(own(&spec.name)?);
        let usages: Vec<String> = offered.iter().map(|entry| entry.usage()).collect();
        let schemas = tools.iter().map(|tool| (tool.tool.name(), tool.tool.schema()));
        let output = parts.settings.output.as_ref().map(|output| output.schema.schema());
        let fingerprint = fingerprint(&json!({
            "provider": self.model.provider(),
            "model": self.model.name(),
            "prompt": spec.prompt,
            "programs": usages,
            "tools": schemas.collect::<Vec<_>>(),
            "output": output,
        }));
        let name = name.unwrap_or_else(|| format!("agent-{}", fingerprint.get(..16).unwrap_or("")));
        let host = match tools.is_empty() && delegates.is_empty() {
            true => parts.host,
            false => parts.host.with_offered(&name, own(&name)?),
        };
        let settings = Settings {
            agent: name.clone(),
            delegates: delegates.keys().cloned().collect(),
            ..parts.settings
        };
        let inner = Inner {
            inference: ModelInference::new(Arc::clone(&self.model), &settings),
            name,
            fingerprint,
            host,
            model: self.model,
            settings,
            policy: self.policy.and(parts.policy),
            asker: self.asker,
            store: self.store,
            files: self.files,
            access: self.access,
            tools,
            delegates,
            middleware: self.middleware,
            handlers: self.handlers,
            subscribers: Arc::default(),
        };
        Ok(Agent { inner: Arc::new(inner), read: self.read })
    }
}

/// The name of an agent without a name, until its fingerprint is known.
const UNNAMED: &str = "agent";

/// Delegates as they are declared, and the agents that they are, by name.
type KnownDelegates = (Vec<DelegateRef>, BTreeMap<String, Arc<Inner>>);

/// Returns the delegates of an agent with those that its declaration describes, and the agents that
/// they are.
fn delegates(
    spec: &AgentSpec,
    agents: Vec<(String, Arc<Inner>)>,
) -> Result<KnownDelegates, AgentError> {
    let mut known = BTreeMap::new();
    for (name, agent) in agents {
        if known.contains_key(&name) {
            return Err(AgentError::NameTaken { agent: spec.name.clone(), name });
        }
        known.insert(name, agent);
    }
    let agents = known;
    let mut refs = spec.delegates.clone();
    if let Some(missing) = refs.iter().find(|one| !agents.contains_key(&one.id)) {
        let names = agents.keys().map(String::as_str);
        return Err(AgentError::UnknownDelegate {
            agent: spec.name.clone(),
            id: missing.id.clone(),
            nearest: wattle_catalog::nearest_name(&missing.id, names).map(str::to_owned),
        });
    }
    for id in agents.keys() {
        if !is_name(id) {
            return Err(AgentError::InvalidName(id.clone()));
        }
        if refs.iter().all(|one| one.id != *id) {
            refs.push(DelegateRef { id: id.clone(), ..DelegateRef::default() });
        }
    }
    Ok((refs, agents))
}

fn compile(agent: &str, tools: &[Tool]) -> Result<Vec<CompiledTool>, AgentError> {
    let compiled = tools.iter().map(|tool| {
        CompiledTool::of(tool).map_err(|why| AgentError::InvalidTool {
            agent: agent.to_owned(),
            tool: tool.name().to_owned(),
            why,
        })
    });
    compiled.collect()
}

/// Returns the hash of a value, whatever the order of its keys.
fn fingerprint(value: &Json) -> String {
    fn sorted(value: &Json) -> Json {
        match value {
            Json::Object(fields) => {
                let fields: BTreeMap<&String, Json> =
                    fields.iter().map(|(key, value)| (key, sorted(value))).collect();
                json!(fields)
            }
            Json::Array(items) => items.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    blake3::hash(sorted(value).to_string().as_bytes()).to_hex().to_string()
}

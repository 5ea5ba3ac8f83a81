//! The agent builder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_capability::policy::{Approver, Policy};
use wattle_catalog::{Entry, ToolRef};
use wattle_machine::RecallContract;
use wattle_model::output::{OutputSchema, OutputSettings, SchemaError};
use wattle_model::{Model, Models};
use wattle_runs::agents::{AgentBase, AgentError, AgentSpec, Agents, TraitRef, TraitSpec, is_name};
use wattle_runs::service::{RunService, ServiceLimits};
use wattle_runs::{Host, ModelInference, Settings};
use wattle_store::TenantStore;
use wattle_store::ledger::Signer;

use super::agent::{Agent, ChangeResources, Inner, NewFiles, ReadData, TraceFolder};
use super::assemble::AgentRuns;
use super::event::Handler;
use super::middleware::Middleware;
use super::team::Team;
use super::tool::{Tool, ToolSet};
use crate::wiring::Resources;

/// The components and settings that an application supplies for an agent. The agent's declared
/// delegates also use them.
#[derive(Clone)]
pub(super) struct Base {
    /// The model, or the reason why it cannot be used.
    pub(super) model: Result<Arc<dyn Model>, String>,
    pub(super) models: Option<Arc<dyn Models>>,
    pub(super) agents: Agents,
    pub(super) host: Option<Host>,
    pub(super) settings: Settings,
    pub(super) policy: Policy,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) store: Option<TenantStore>,
    pub(super) trace: Option<TraceFolder>,
    pub(super) files: Arc<NewFiles>,
    pub(super) access: Vec<Arc<ChangeResources>>,
    pub(super) middleware: Vec<Arc<dyn Middleware>>,
    pub(super) handlers: Vec<Arc<dyn Handler>>,
}

impl Base {
    /// Returns the host. If the application did not set one, creates the built-in host on the first
    /// call.
    pub(super) fn host(&mut self) -> Result<Host, AgentError> {
        let host = match self.host.take() {
            Some(host) => host,
            None => Host::built_in().map_err(|error| AgentError::Engine(error.to_string()))?,
        };
        self.host = Some(host.clone());
        Ok(host)
    }
}

/// A builder for an [`Agent`].
#[derive(Clone)]
#[must_use = "an agent exists once it is built"]
pub struct AgentBuilder<T = String> {
    pub(super) base: Base,
    name: Option<String>,
    pub(super) spec: Option<AgentSpec>,
    prompt: Option<String>,
    tools: Vec<Tool>,
    programs: Vec<ToolRef>,
    delegates: Vec<(String, Arc<Inner>)>,
    memory: Vec<String>,
    memory_contract: Option<RecallContract>,
    context: BTreeMap<String, String>,
    output: Option<Result<OutputSchema, SchemaError>>,
    read: ReadData<T>,
}

impl AgentBuilder {
    pub(super) fn new(model: Result<Arc<dyn Model>, String>) -> AgentBuilder {
        AgentBuilder::on_base(Base {
            model,
            models: None,
            agents: Agents::default(),
            host: None,
            settings: Settings::default(),
            policy: Policy::default(),
            approver: None,
            store: None,
            trace: None,
            files: Arc::new(|| Arc::new(Files::overlay(None, OVERLAY_LIMIT))),
            access: Vec::new(),
            middleware: Vec::new(),
            handlers: Vec::new(),
        })
    }

    pub(super) fn on_base(base: Base) -> AgentBuilder {
        AgentBuilder {
            base,
            name: None,
            spec: None,
            prompt: None,
            tools: Vec::new(),
            programs: Vec::new(),
            delegates: Vec::new(),
            memory: Vec::new(),
            memory_contract: None,
            context: BTreeMap::new(),
            output: None,
            read: |report| Ok(report.text.clone()),
        }
    }
}

impl<T> AgentBuilder<T> {
    /// Sets the agent's name. It must start with a lowercase letter and may contain lowercase
    /// letters, digits, `_`, `-` and `.`.
    pub fn name(self, name: impl Into<String>) -> Self {
        AgentBuilder { name: Some(name.into()), ..self }
    }

    /// Sets the agent's declaration: prompt, programs, limits, delegates and policy. Its traits and
    /// delegates must be among the [`agents`](AgentBuilder::agents), and its model among the
    /// [`models`](AgentBuilder::models).
    pub fn spec(self, spec: AgentSpec) -> Self {
        AgentBuilder { spec: Some(spec), ..self }
    }

    /// Sets the role and the rules at the beginning of the prompt. They replace the prompt of a
    /// declared agent.
    pub fn prompt(self, prompt: impl Into<String>) -> Self {
        AgentBuilder { prompt: Some(prompt.into()), ..self }
    }

    /// Sets the declared agents and traits that the agent's declaration may refer to.
    pub fn agents(self, agents: Agents) -> Self {
        self.with(|base| base.agents = agents)
    }

    /// Sets the models that declared agents refer to by name. Without them, all agents use the
    /// model that was passed to [`Agent::builder`](super::Agent::builder).
    pub fn models(self, models: Arc<dyn Models>) -> Self {
        self.with(|base| base.models = Some(models))
    }

    /// Sets the host. Agents of one process should share a host, because it contains the engine. By
    /// default, the agent has its own host with the built-in programs.
    pub fn host(self, host: Host) -> Self {
        self.with(|base| base.host = Some(host))
    }

    /// Sets the settings for runs. A declared agent may change them.
    pub fn settings(self, settings: Settings) -> Self {
        self.with(|base| base.settings = settings)
    }

    /// Restricts the effects of programs, in addition to the existing policy. The restrictions also
    /// apply to the programs of delegates.
    pub fn policy(self, policy: Policy) -> Self {
        self.with(|base| base.policy = base.policy.clone().and(policy))
    }

    /// Sets the approver, which approves or denies the effects that the policy asks about.
    /// Delegates that have no approver of their own use this one. Without an approver, these
    /// effects are denied. If the approver defers its answer, a run with a
    /// [`store`](AgentBuilder::store) is parked.
    pub fn approver(self, approver: Arc<dyn Approver>) -> Self {
        self.with(|base| base.approver = Some(approver))
    }

    /// Records the runs in a store, so that they can be resumed and replayed. The store also
    /// contains the programs' state and memory.
    pub fn store(self, store: TenantStore) -> Self {
        self.with(|base| base.store = Some(store))
    }

    /// Writes the trace of each run to a subfolder of `folder` that is named after the run's id.
    /// The signer, if there is one, seals the trace. If the trace cannot be written, the run
    /// continues without it.
    pub fn trace(self, folder: impl Into<PathBuf>, signer: Option<Arc<Signer>>) -> Self {
        let trace = TraceFolder { folder: folder.into(), signer };
        self.with(|base| base.trace = Some(trace))
    }

    /// Sets the files that all runs share. By default, each run has its own in-memory files, which
    /// may take up at most 64 MiB in total.
    pub fn files(self, files: Arc<Files>) -> Self {
        self.files_with(move || Arc::clone(&files))
    }

    /// Sets the function that returns the files of each run. Delegates work on the files of the run
    /// that delegates to them.
    pub fn files_with(self, files: impl Fn() -> Arc<Files> + Send + Sync + 'static) -> Self {
        self.with(|base| base.files = Arc::new(files))
    }

    /// Adds a function that changes the resources that each run can access, such as secrets or the
    /// search engine.
    pub fn access(self, change: impl Fn(Resources) -> Resources + Send + Sync + 'static) -> Self {
        self.with(|base| base.access.push(Arc::new(change)))
    }

    /// Adds a tool, which programs and the model call by its name.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds catalog programs to those that the agent is offered. `program` refers to the programs
    /// by a name, such as `file_read`, or by a pattern, such as `text_*`. It can also change the
    /// name, description or context of a program.
    pub fn program(mut self, program: ToolRef) -> Self {
        self.programs.push(program);
        self
    }

    /// Adds another agent to which this one may delegate. The program that asks the other agent is
    /// named `ask_NAME`, unless this agent's declaration names it differently.
    pub fn delegate<U>(mut self, name: impl Into<String>, agent: Agent<U>) -> Self {
        self.delegates.push((name.into(), agent.inner));
        self
    }

    /// Adds a memory item to the prompt.
    pub fn memory(mut self, item: impl Into<String>) -> Self {
        self.memory.push(item.into());
        self
    }

    /// Sets how items are recalled from memory before the model is asked, in place of the contract that
    /// the agent declares.
    pub fn memory_contract(mut self, contract: RecallContract) -> Self {
        self.memory_contract = Some(contract);
        self
    }

    /// Adds context values for the agent's tools, traits and memory. A value replaces the agent's
    /// declared value with the same key. No model sees the values.
    pub fn context(mut self, values: BTreeMap<String, String>) -> Self {
        self.context.extend(values);
        self
    }

    /// Adds middleware that wraps each [model call](super::ModelCall) and each call, including
    /// those of declared delegates. The first middleware is the outermost.
    pub fn middleware(self, middleware: impl Middleware + 'static) -> Self {
        self.with(|base| base.middleware.push(Arc::new(middleware)))
    }

    /// Adds a handler for the events of all runs.
    pub fn on(self, handler: impl Handler + 'static) -> Self {
        self.with(|base| base.handlers.push(Arc::new(handler)))
    }

    fn with(mut self, change: impl FnOnce(&mut Base)) -> Self {
        change(&mut self.base);
        self
    }

    /// Sets the type of the answers. The schema of the type is sent with the task. If an answer
    /// does not match the schema, the model is asked to correct it.
    pub fn output<U: DeserializeOwned + JsonSchema>(self) -> AgentBuilder<U> {
        self.with_output(OutputSchema::of::<U>(), |report| {
            let data = report.data.as_ref().ok_or("the run has no value")?;
            U::deserialize(data)
                .map_err(|error| format!("the answer does not fit the type: {error}"))
        })
    }

    /// Sets a JSON Schema for the answers. Each answer is a JSON value that matches the schema.
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
            base: self.base,
            name: self.name,
            spec: self.spec,
            prompt: self.prompt,
            tools: self.tools,
            programs: self.programs,
            delegates: self.delegates,
            memory: self.memory,
            memory_contract: self.memory_contract,
            context: self.context,
        }
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// If the configuration is invalid. The error names the invalid part and the violated rule.
    pub fn build(self) -> Result<Agent<T>, AgentError> {
        let declared = self.spec.clone().unwrap_or_else(|| AgentSpec::new(""));
        let mut spec = declared.with_context(&self.context);
        let name = self.name.or_else(|| Some(spec.name.clone()).filter(|name| !name.is_empty()));
        if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
            return Err(AgentError::InvalidName(name.clone()));
        }
        if let Some(prompt) = self.prompt {
            spec.prompt = prompt;
        }
        spec.name = name.clone().unwrap_or_else(|| UNNAMED.to_owned());
        spec.memory.extend(self.memory);
        spec.memory_contract = self.memory_contract.or(spec.memory_contract);
        if !self.programs.is_empty() {
            let added =
                TraitSpec { name: ADDED.to_owned(), tools: self.programs, ..TraitSpec::default() };
            spec.traits.push(TraitRef::Inline(Box::new(added)));
        }
        let mut base = self.base;
        let host = base.host()?;
        let mut model = base.model.clone().map_err(AgentError::Model)?;
        if let Some(models) = &base.models {
            model = spec.open_model(models.as_ref(), &model).map_err(AgentError::Model)?;
            base.model = Ok(Arc::clone(&model));
        }
        let team = Team::of(&spec, self.delegates, base.clone())?;
        let mut settings = base.settings;
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
        // The programs of the delegates are added below, together with those of the tools.
        spec.delegates = Vec::new();
        let functions = std::mem::take(&mut spec.functions);
        let parts = spec.parts(AgentBase {
            host: &host,
            settings: &settings,
            agents: &base.agents,
            max_steps: None,
        })?;
        let tools = ToolSet::new(&self.tools).map_err(|invalid| AgentError::InvalidTool {
            agent: spec.name.clone(),
            tool: invalid.tool,
            why: invalid.why,
        })?;
        let own = |agent: &str| -> Result<Vec<Entry>, AgentError> {
            let asked = team.programs(agent)?;
            Ok(tools.programs(agent).into_iter().chain(asked).collect())
        };
        let catalog = parts.host.catalog();
        let added = own(&spec.name)?;
        let mut names = Vec::new();
        for entry in &added {
            let name = entry.name().to_string();
            if catalog.get(&name).is_some() || names.contains(&name) {
                return Err(AgentError::NameTaken { agent: spec.name, name });
            }
            names.push(name);
        }
        let offered = catalog.with(added);
        spec.functions = functions;
        let functions = spec.functions_among(&offered)?;
        let usages: Vec<String> = offered.iter().map(|entry| entry.usage()).collect();
        let schemas = tools.iter().map(|tool| (tool.name(), tool.schema()));
        let output = parts.settings.output.as_ref().map(|output| output.schema.schema());
        let fingerprint = fingerprint(&json!({
            "provider": model.provider(),
            "model": model.name(),
            "prompt": spec.prompt,
            "programs": usages,
            "tools": schemas.collect::<Vec<_>>(),
            "output": output,
        }));
        let name = name.unwrap_or_else(|| format!("agent-{}", fingerprint.get(..16).unwrap_or("")));
        let host =
            if names.is_empty() { parts.host } else { parts.host.with_offered(&name, own(&name)?) };
        let settings =
            Settings { agent: name.clone(), delegates: team.names(), functions, ..parts.settings };
        let inner = Inner {
            inference: ModelInference::new(Arc::clone(&model), &settings),
            name,
            fingerprint,
            host,
            model,
            settings,
            policy: base.policy.and(parts.policy),
            approver: base.approver,
            store: base.store,
            trace: base.trace,
            files: base.files,
            access: base.access,
            tools,
            team,
            middleware: base.middleware,
            handlers: base.handlers,
            subscribers: Arc::default(),
        };
        let runs = Arc::<AgentRuns>::default();
        let limits = ServiceLimits {
            runs: usize::MAX,
            queued: usize::MAX,
            waiting: usize::MAX,
            ..ServiceLimits::default()
        };
        let service = RunService::new(inner.host.clone(), Arc::<AgentRuns>::clone(&runs), limits);
        Ok(Agent { inner: Arc::new(inner), runs, service, read: self.read })
    }
}

/// Temporary name of an unnamed agent, until its fingerprint is known.
const UNNAMED: &str = "agent";

/// The name of the trait that contains the programs added by an application.
const ADDED: &str = "added_programs";

/// Returns the hash of a value. The hash does not depend on the order of object keys.
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

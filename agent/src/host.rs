//! The parts that all runs of a process share, and the settings of one agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use wattle_capability::ai::Budget;
use wattle_capability::egress::Egress;
use wattle_capability::par;
use wattle_catalog::Catalog;
use wattle_machine::PromptParts;
use wattle_rt::{EngineError, Grants, Limits, Runtime};

use crate::model::Timeouts;
use crate::programs::Programs;
use crate::prompt;

/// What every run of a process shares: the engine with its cache, the catalog, the way out. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    runtime: Runtime,
    catalog: Arc<Catalog>,
    egress: Egress,
}

/// A broken host: it ends the run, and is never told to a program or a model as something of theirs.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Broken(#[from] EngineError);

/// How an agent runs: configuration only, shared by all its runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agent's name in the trace.
    pub agent: String,
    /// Bounds and policies of the loop.
    pub machine: wattle_machine::Settings,
    /// The wall clock of a run; none by default.
    pub timeout: Option<Duration>,
    /// What the model is asked with; 0 to 2.
    pub temperature: f32,
    /// The most tokens of one answer.
    pub max_tokens: u32,
    /// Deadlines and retries of model requests.
    pub timeouts: Timeouts,
    /// How much the programs of a run may ask of the model.
    pub ai: Budget,
    /// What the deployment adds to the prompt: a role, house rules.
    pub preamble: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            agent: "wattle".to_owned(),
            machine: wattle_machine::Settings::default(),
            timeout: None,
            temperature: 0.3,
            max_tokens: 4_096,
            timeouts: Timeouts::default(),
            ai: Budget::default(),
            preamble: None,
        }
    }
}

impl Host {
    /// Puts the parts together.
    ///
    /// # Errors
    /// Where the engine cannot be made.
    pub fn new(limits: Limits, catalog: Catalog, egress: Egress) -> Result<Host, Broken> {
        let runtime = Runtime::new(wattle_capability::ALL, limits)?;
        Ok(Host { runtime, catalog: Arc::new(catalog), egress })
    }

    /// The engine.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The programs that runs may call by name.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The same programs, for programs that start others.
    #[must_use]
    pub fn programs(&self) -> Arc<dyn par::Programs> {
        Arc::new(Programs::new(self.runtime.clone(), Arc::clone(&self.catalog)))
    }

    /// The way out.
    #[must_use]
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// The system prompt of a run with those grants.
    #[must_use]
    pub fn prompt(&self, settings: &Settings, grants: &Grants) -> String {
        let parts: PromptParts = prompt::parts(&self.runtime, &self.catalog, settings, grants);
        wattle_machine::system_prompt(&parts)
    }

    /// What the catalog programs do, by name.
    pub(crate) fn descriptions(&self) -> BTreeMap<String, String> {
        self.catalog.iter().map(|entry| (entry.name().to_string(), entry.meta().description.clone())).collect()
    }
}

//! The parts that all runs of a process share, and the settings of one agent.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;
use wattle_capability::ai::Budget;
use wattle_capability::egress::Egress;
use wattle_capability::wattle::CatalogIndex;
use wattle_capability::web::Engine;
use wattle_capability::{help, par, shell};
use wattle_catalog::{Catalog, Entry, Folders, Problem};
use wattle_machine::{Dialect, FunctionTool, function_tools};
use wattle_rt::{Bug, EngineError, Grants, Limits, Runtime};
use wattle_shell::{Toolbox, ToolboxError};

use crate::dialect::{DialectSetting, functions};
use crate::guide::Manual;
use crate::model::{Prices, Timeouts};
use crate::moderation::Moderation;
use crate::otel::Collector;
use crate::programs::Programs;
use crate::prompt::{self, Listing};
use crate::reload::{CatalogDiff, CatalogReloader};
use crate::store::Tenant;

/// Why the web cannot be searched where nothing is set.
pub const NO_ENGINE: &str =
    "no search engine is set up; the operator sets `search.engine` to `searxng` (with `search.url`), `brave` or `page`";

/// How many sessions keep what their prompts name of the catalog.
const LISTINGS: usize = 4_096;

/// What every run of a process shares: the engine with its cache, the catalog, the way out. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    runtime: Runtime,
    reload: Arc<CatalogReloader>,
    /// What the prompts of sessions name of the catalog, by tenant and session.
    listings: Arc<Cache<(Tenant, String), Arc<Listing>>>,
    egress: Egress,
    engine: Result<Arc<Engine>, String>,
    toolbox: Toolbox,
    collector: Option<Collector>,
}

/// A broken host: it ends the run, and is never told to a program or a model as something of theirs.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A host function panicked.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// The engine cannot be had, or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The commands of the shell cannot be had.
    #[error(transparent)]
    Toolbox(#[from] ToolboxError),
}

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
    /// In which form the model calls programs.
    pub dialect: DialectSetting,
    /// What models cost, beside what is known anyway.
    pub prices: Prices,
    /// What looks at messages before their runs begin.
    pub moderation: Option<Moderation>,
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
            dialect: DialectSetting::default(),
            prices: Prices::default(),
            moderation: None,
        }
    }
}

impl Host {
    /// Puts the parts together. The catalog is one that does not change, or folders that are looked at again.
    ///
    /// # Errors
    /// Where the engine cannot be made.
    pub fn new(limits: Limits, catalog: impl Into<Folders>, egress: Egress) -> Result<Host, HostError> {
        let runtime = Runtime::new(wattle_capability::ALL, limits)?;
        let listings = Arc::new(Cache::new(LISTINGS));
        let engine = Err(NO_ENGINE.to_owned());
        let toolbox = Toolbox::new(None)?;
        Ok(Host {
            runtime,
            reload: Arc::new(CatalogReloader::new(catalog.into())),
            listings,
            egress,
            engine,
            toolbox,
            collector: None,
        })
    }

    /// Sends the telemetry of runs to that collector.
    #[must_use]
    pub fn telling(self, collector: Collector) -> Host {
        Host { collector: Some(collector), ..self }
    }

    /// Where the telemetry of runs goes.
    #[must_use]
    pub fn collector(&self) -> Option<&Collector> {
        self.collector.as_ref()
    }

    /// Keeps what is compiled of the shell's commands and of the guests in that folder, for other processes.
    ///
    /// # Errors
    /// Where the commands cannot be had.
    pub fn caching(self, folder: &Path) -> Result<Host, HostError> {
        wattle_capability::guests::keep_compiled_in(folder);
        Ok(Host { toolbox: Toolbox::new(Some(folder))?, ..self })
    }

    /// Searches the web with that engine, or with none for that reason.
    #[must_use]
    pub fn searching(self, engine: Result<Engine, String>) -> Host {
        Host { engine: engine.map(Arc::new), ..self }
    }

    /// The engine.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The programs that runs may call by name, as they are now. A run keeps what it began with.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        self.reload.catalog()
    }

    /// Looks at the catalog's folders again, at most once a second, and tells what became of the catalog since it was last
    /// told. A file whose new version does not load or compile keeps the version before.
    pub async fn refresh(&self) -> CatalogDiff {
        self.reload.refresh(&self.runtime).await
    }

    /// Compiles the whole catalog. A program of a folder that does not compile is left out, and the next
    /// [`refresh`](Host::refresh) tells of it.
    pub async fn warm(&self) {
        self.reload.warm(&self.runtime).await;
    }

    /// Whether a program compiles and calls the capabilities that it says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub async fn check(&self, entry: &Entry) -> Result<(), Problem> {
        crate::reload::check(&self.runtime, entry).await
    }

    /// The commands of the shell.
    #[must_use]
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// The shell that runs are granted.
    #[must_use]
    pub fn shell(&self) -> Arc<dyn shell::Shell> {
        Arc::new(wattle_shell::Shell::new(Arc::new(self.toolbox.clone()), wattle_shell::Bounds::default()))
    }

    /// The manual: functions, programs, forms of the language and error codes as they are now.
    #[must_use]
    pub fn guide(&self) -> Arc<dyn help::Manual> {
        Arc::new(Manual::new(self.runtime.capabilities(), self.catalog()))
    }

    /// The programs as they are now, for programs that start others.
    #[must_use]
    pub fn programs(&self) -> Arc<dyn par::Programs> {
        Arc::new(Programs::new(self.runtime.clone(), self.catalog()))
    }

    /// The search engine that the operator has set up, or why there is none.
    ///
    /// # Errors
    /// What would have to be set.
    pub fn engine(&self) -> Result<Arc<Engine>, String> {
        self.engine.clone()
    }

    /// The programs as they are now, for programs that look for others.
    #[must_use]
    pub fn directory(&self) -> Arc<dyn CatalogIndex> {
        Arc::new(Programs::new(self.runtime.clone(), self.catalog()))
    }

    /// The way out.
    #[must_use]
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// What a session's prompts name of the catalog: chosen when the session begins, by its first message, and the same in all
    /// its runs, so that its prompt stays the same byte for byte. Without a session it is chosen anew.
    #[must_use]
    pub fn listing(&self, session: Option<(&Tenant, &str)>, first_message: &str) -> Arc<Listing> {
        let choose = || Arc::new(Listing::choose(&self.catalog(), first_message));
        let Some((tenant, session)) = session else { return choose() };
        let key = (tenant.clone(), session.to_owned());
        self.listings.get(&key).unwrap_or_else(|| {
            let chosen = choose();
            self.listings.insert(key, Arc::clone(&chosen));
            chosen
        })
    }

    /// The system prompt of a run with those grants, in a session with that listing.
    #[must_use]
    pub fn prompt(&self, settings: &Settings, grants: &Grants, listing: &Listing, dialect: Dialect) -> String {
        wattle_machine::system_prompt(&prompt::parts(&self.runtime, settings, grants, listing, dialect))
    }

    /// The functions that a model is offered which calls functions, in a run with those grants.
    #[must_use]
    pub fn functions(&self, listing: &Listing, grants: &Grants) -> Vec<FunctionTool> {
        function_tools(&functions(&self.catalog(), listing, grants))
    }
}

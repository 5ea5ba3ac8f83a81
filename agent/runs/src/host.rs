//! The components that all runs of a process share.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use quick_cache::sync::Cache;
use wattle_capability::egress::Egress;
use wattle_capability::skill::SkillReader;
use wattle_capability::wattle::CatalogIndex;
use wattle_capability::web::Engine;
use wattle_capability::{help, par, shell};
use wattle_catalog::{Catalog, Entry, Folders, Problem, Skill, Skills};
use wattle_engine::Component;
use wattle_machine::{Dialect, FunctionTool, SystemPrompt};
use wattle_model::Mask;
use wattle_rt::{Diagnostic, Grants, Kept, Limits, Owner, Program, Runtime, Shares, Turn, Turns};
use wattle_shell::Toolbox;
use wattle_store::Tenant;

use crate::error::HostError;
use crate::functions::functions;
use crate::listing::Listing;
use crate::manual::Manual;
use crate::otel::Collector;
use crate::programs::Programs;
use crate::prompt;
use crate::reload::{CatalogDiff, CatalogReloader};
use crate::settings::Settings;
use crate::shared::SharedParts;
use crate::skills::SkillTexts;
use crate::tree::MAX_DEPTH;

/// The reason why web search is unavailable if the operator has not configured an engine.
pub const NO_ENGINE: &str = "no search engine is set up; the operator sets `search.engine` to \
                             `searxng` (with `search.url`), `brave` or `page`";

/// Maximum number of sessions whose listings are cached.
const MAX_LISTINGS: usize = 4_096;

/// The components that all runs of a process share: the engine with its cache, the catalog, and the
/// network egress. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    runtime: Runtime,
    reloader: Arc<CatalogReloader>,
    /// The programs of one agent, or `None` for the whole catalog.
    agent: Option<Arc<AgentPrograms>>,
    /// A cache of listings: for each session, the programs that its prompts list.
    listings: Arc<Cache<ListingKey, Arc<Listing>>>,
    shared: Arc<SharedParts>,
    egress: Egress,
    search_engine: Result<Arc<Engine>, String>,
    engine: Option<Component>,
    toolbox: Toolbox,
    skills: Skills,
    collector: Option<Collector>,
    mask: Mask,
    /// Permits for active child runs at each depth below the root. A run waits only for runs that are
    /// one level deeper, so runs cannot deadlock.
    children: Arc<[Turns; MAX_DEPTH]>,
}

/// The key of a cached listing: the tenant, the session and the agent's name.
type ListingKey = (Tenant, String, Option<Arc<str>>);

/// The programs that one agent's runs use, and the agent's context values.
#[derive(Clone, Debug, Default)]
pub struct AgentPrograms {
    /// The agent's name.
    pub name: Arc<str>,
    /// The programs that the agent is offered.
    pub offered: Catalog,
    /// The programs of the agent's traits, which the host calls.
    pub internal: Catalog,
    /// Context values that all programs can read.
    pub context: BTreeMap<String, String>,
}

/// Returns the maximum number of child runs that can be active at one level. Each child run blocks
/// the program that started it, and that program keeps its slot in the engine. The maximum
/// therefore leaves slots for the programs of all levels, even if programs are nested as deeply as
/// possible, and even if all owners except the operator share the slots.
fn concurrent_children(runtime: &Runtime) -> usize {
    let slots = Shares::of((runtime.limits().instances >> 2) as usize).groups();
    (slots.saturating_sub(2) / MAX_DEPTH).max(1)
}

impl Host {
    /// Creates a host. The catalog is either fixed or read from folders that are reloaded when they
    /// change.
    ///
    /// # Errors
    /// If the engine cannot be created, or the shell's commands cannot be loaded.
    pub fn new(
        limits: Limits,
        catalog: impl Into<Folders>,
        egress: Egress,
    ) -> Result<Host, HostError> {
        let runtime = Runtime::new(wattle_capability::ALL, limits)?;
        let listings = Arc::new(Cache::new(MAX_LISTINGS));
        let search_engine = Err(NO_ENGINE.to_owned());
        let toolbox = Toolbox::new(None)?;
        let permits = concurrent_children(&runtime);
        let children = Arc::new(std::array::from_fn(|_| Turns::new(Shares::of(permits))));
        Ok(Host {
            runtime,
            reloader: Arc::new(CatalogReloader::new(catalog.into())),
            agent: None,
            listings,
            shared: Arc::default(),
            egress,
            search_engine,
            engine: None,
            toolbox,
            skills: Skills::default(),
            collector: None,
            mask: Mask::default(),
            children,
        })
    }

    /// Creates a host with the built-in programs, default limits and the default egress, which
    /// reaches public addresses only.
    ///
    /// # Errors
    /// If the engine cannot be created, or the shell's commands cannot be loaded.
    pub fn built_in() -> Result<Host, HostError> {
        Host::new(Limits::default(), Catalog::built_in(), Egress::new(Default::default()))
    }

    /// Sets the mask that hides keys and secrets in the records of runs. Telemetry is masked with the
    /// [whole mask](Mask::whole) of it.
    #[must_use]
    pub fn with_mask(self, mask: Mask) -> Host {
        Host { mask, ..self }
    }

    /// Returns the mask for the records of runs, except those of runs that have a mask of their own.
    /// The caller adds the keys of its endpoints; each run adds its model's key and its secrets.
    #[must_use]
    pub fn mask(&self) -> &Mask {
        &self.mask
    }

    /// Sends the telemetry of runs to `collector`.
    #[must_use]
    pub fn with_collector(self, collector: Collector) -> Host {
        Host { collector: Some(collector), ..self }
    }

    /// Returns the collector that receives the telemetry of runs.
    #[must_use]
    pub fn collector(&self) -> Option<&Collector> {
        self.collector.as_ref()
    }

    /// Caches the compiled shell commands and the compiled WebAssembly guests of host functions in
    /// `folder`, so that other processes can use them.
    ///
    /// # Errors
    /// If the commands cannot be loaded.
    pub fn with_cache(self, folder: &Path) -> Result<Host, HostError> {
        wattle_capability::guests::keep_compiled_in(folder);
        Ok(Host { toolbox: Toolbox::new(Some(folder))?, ..self })
    }

    /// Sets the web search engine, or the reason why none is available.
    #[must_use]
    pub fn with_search_engine(self, engine: Result<Engine, String>) -> Host {
        Host { search_engine: engine.map(Arc::new), ..self }
    }

    /// Sets the engine that is the loop of each new run. Without one, the loop is that of this
    /// process.
    #[must_use]
    pub fn with_engine(self, engine: Option<Component>) -> Host {
        Host { engine, ..self }
    }

    /// Returns the engine that is the loop of each new run, or `None` if the loop is that of this
    /// process.
    #[must_use]
    pub fn engine(&self) -> Option<&Component> {
        self.engine.as_ref()
    }

    /// Adds skills. Their scripts become programs of the catalog. A skill replaces an earlier one of
    /// the same name.
    #[must_use]
    pub fn with_skills(self, skills: Vec<Skill>) -> Host {
        let capabilities: Vec<&str> =
            self.runtime.capabilities().iter().map(|capability| capability.name).collect();
        let skills = Skills::new(skills, &capabilities, &self.reloader.catalog());
        let programs: Vec<Entry> = skills.programs().cloned().collect();
        let reloader = Arc::new(self.reloader.with_programs(programs));
        Host { reloader, skills, ..self }
    }

    /// Returns the skills.
    #[must_use]
    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// Returns the port through which programs read the skills, or `None` if there are no skills.
    #[must_use]
    pub fn skill_reader(&self) -> Option<Arc<dyn SkillReader>> {
        let reader = || Arc::new(SkillTexts(self.skills.clone())) as Arc<dyn SkillReader>;
        (!self.skills.is_empty()).then(reader)
    }

    /// Waits for a permit of an owner to execute a child run at this level. Level 1 contains the
    /// children of root runs. Returns `None` if the level does not exist.
    pub async fn child_permit(&self, level: usize, owner: &Owner) -> Option<Turn> {
        Some(self.children.get(level.checked_sub(1)?)?.wait(owner).await)
    }

    /// Returns the same host for the work of an owner, as [`Runtime::owned_by`] does.
    #[must_use]
    pub fn owned_by(&self, owner: &Owner) -> Host {
        Host { runtime: self.runtime.owned_by(owner), ..self.clone() }
    }

    /// Returns the runtime that executes programs.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Compiles a source that may call the programs of the host's [`catalog`](Host::catalog) by their
    /// names.
    ///
    /// # Errors
    /// The same as for [`Runtime::prepare`].
    pub async fn prepare(&self, source: &str) -> Result<Program, Arc<Diagnostic>> {
        self.prepare_reading(source, None).await
    }

    /// Compiles a source like [`prepare`](Host::prepare). It may also read kept values.
    ///
    /// # Errors
    /// The same as for [`Runtime::prepare`].
    pub async fn prepare_reading(
        &self,
        source: &str,
        kept: Option<&Kept>,
    ) -> Result<Program, Arc<Diagnostic>> {
        crate::programs::prepare_in(&self.runtime, &self.catalog(), source, kept).await
    }

    /// Returns the runtime for programs that may call the programs of the host's
    /// [`catalog`](Host::catalog) by their names.
    #[must_use]
    pub fn calling_runtime(&self) -> Runtime {
        self.runtime.with_callables(self.catalog().callables())
    }

    /// Returns the host for runs of an agent that is offered only some programs. These programs can
    /// still start any other program.
    #[must_use]
    pub fn for_agent(&self, programs: AgentPrograms) -> Host {
        let AgentPrograms { name, offered, internal, context } = programs;
        let (offered, internal) = (offered.with_context(&context), internal.with_context(&context));
        let agent = Some(Arc::new(AgentPrograms { name, offered, internal, context }));
        Host { agent, ..self.clone() }
    }

    /// Returns the host for runs of an agent that is offered additional programs.
    #[must_use]
    pub fn with_offered(&self, agent: &str, programs: Vec<Entry>) -> Host {
        let known = self.agent.as_deref().cloned().unwrap_or_default();
        let offered = self.catalog().with(programs);
        self.for_agent(AgentPrograms { name: agent.into(), offered, ..known })
    }

    /// Returns all programs of the current catalog, and those that the host's agent is offered. If
    /// two programs have the same name, the agent's program takes precedence.
    #[must_use]
    pub fn all_programs(&self) -> Catalog {
        let all = self.reloader.catalog();
        match &self.agent {
            Some(agent) => {
                let offered = agent.offered.iter().map(|entry| entry.as_ref().clone());
                all.with_context(&agent.context).with(offered)
            }
            None => all,
        }
    }

    /// Returns the programs that the host itself may call: all programs, including those of the
    /// agent's traits.
    #[must_use]
    pub fn internal_programs(&self) -> Catalog {
        let all = self.all_programs();
        match &self.agent {
            Some(agent) => all.with(agent.internal.iter().map(|entry| entry.as_ref().clone())),
            None => all,
        }
    }

    /// Returns the programs that the host's agent is offered, or the whole current catalog if the
    /// host has no agent. A run keeps the catalog that it started with.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        self.agent.as_ref().map_or_else(|| self.reloader.catalog(), |agent| agent.offered.clone())
    }

    /// Reloads the catalog's folders, at most once a second, and returns the changes since the last
    /// call. If a file's new version does not load or compile, its previous version stays in use.
    pub async fn refresh(&self) -> CatalogDiff {
        self.reloader.refresh(&self.runtime).await
    }

    /// Reloads the catalog's folders now. The catalog then contains every file that was written
    /// before the call. The next [`refresh`](Host::refresh) returns the changes.
    pub async fn reload(&self) {
        self.reloader.reload(&self.runtime).await;
    }

    /// Adds checked programs to the catalog, in which they stay. The next [`refresh`](Host::refresh)
    /// returns them as changes.
    pub async fn add_programs(&self, programs: Vec<Entry>) {
        self.reloader.add(programs).await;
    }

    /// Compiles the whole catalog. If a program from a folder does not compile, it is left out, and
    /// the next [`refresh`](Host::refresh) reports it.
    pub async fn warm(&self) {
        self.reloader.warm(&self.runtime).await;
    }

    /// Checks that a program compiles and imports only the capabilities that it declares.
    ///
    /// # Errors
    /// If the program is invalid. The error is its first problem.
    pub async fn check(&self, entry: &Entry) -> Result<(), Problem> {
        crate::reload::check(&self.runtime, &self.catalog(), entry).await
    }

    /// Returns the shell's commands.
    #[must_use]
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Returns the shell that is granted to runs.
    #[must_use]
    pub fn shell(&self) -> Arc<dyn shell::Shell> {
        Arc::new(wattle_shell::Shell::new(
            Arc::new(self.toolbox.clone()),
            wattle_shell::Bounds::default(),
        ))
    }

    /// Returns the manual of the current catalog: functions, programs, language forms and error
    /// codes.
    #[must_use]
    pub fn manual(&self) -> Arc<dyn help::Manual> {
        Arc::new(Manual::new(self.runtime.capabilities(), self.catalog()))
    }

    /// Returns the port through which programs start other catalog programs. An agent's own
    /// programs take precedence over those of the whole catalog.
    #[must_use]
    pub fn programs(&self) -> Arc<dyn par::Programs> {
        // The programs of traits have names for rules, too, but no program may start them.
        let internal = self.agent.iter().flat_map(|agent| agent.internal.iter());
        let base = self.reloader.catalog().with(internal.map(|entry| entry.as_ref().clone()));
        Arc::new(Programs::new(self.runtime.clone(), self.all_programs()).with_base(base))
    }

    /// Returns the configured search engine.
    ///
    /// # Errors
    /// If no engine is configured. The error names the missing setting.
    pub fn search_engine(&self) -> Result<Arc<Engine>, String> {
        self.search_engine.clone()
    }

    /// Returns the port through which programs search the host's [`catalog`](Host::catalog).
    #[must_use]
    pub fn catalog_index(&self) -> Arc<dyn CatalogIndex> {
        Arc::new(Programs::new(self.runtime.clone(), self.catalog()))
    }

    /// Returns the network egress.
    #[must_use]
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Returns the programs that a session's prompts list. They stay the same in all runs of the
    /// session, so that the prompt stays byte-for-byte identical while programs come and go.
    /// Without a session, each call of this function chooses the programs again.
    #[must_use]
    pub fn listing(&self, session: Option<(&Tenant, &str)>, first_message: &str) -> Arc<Listing> {
        let choose = || Arc::new(Listing::choose(&self.catalog(), &self.skills, first_message));
        let Some((tenant, session)) = session else { return choose() };
        let agent = self.agent.as_ref().map(|agent| Arc::clone(&agent.name));
        let key = (tenant.clone(), session.to_owned(), agent);
        self.listings.get(&key).unwrap_or_else(|| {
            let chosen = choose();
            self.listings.insert(key, Arc::clone(&chosen));
            chosen
        })
    }

    /// Returns the system prompt of a run with these grants and this listing.
    #[must_use]
    pub fn prompt(
        &self,
        settings: &Settings,
        grants: &Grants,
        listing: &Listing,
        dialect: Dialect,
    ) -> SystemPrompt {
        wattle_machine::system_prompt(&prompt::parts(
            &self.runtime,
            settings,
            grants,
            listing,
            dialect,
        ))
    }

    /// Returns the functions that a run with these settings and grants offers to a model that uses
    /// function calling.
    #[must_use]
    pub fn functions(&self, settings: &Settings, grants: &Grants) -> Arc<[FunctionTool]> {
        self.shared.tools(&Arc::new(functions(&self.catalog(), &settings.functions, grants)))
    }

    /// Returns the programs, functions and prompts that runs share.
    pub(crate) fn shared(&self) -> &SharedParts {
        &self.shared
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_child_runs_of_a_tenant_leave_permits_to_others_and_to_the_operator() {
        let host = Host::built_in().unwrap();
        let take = |owner: Owner| {
            let permits = std::iter::from_fn(|| host.child_permit(1, &owner).now_or_never());
            permits.take(100).collect::<Vec<_>>()
        };
        let first = take(Owner::Group("a".into()));
        let others = take(Owner::Group("b".into()));
        assert_eq!((first.len(), others.len()), (4, 3));
        assert_eq!(take(Owner::Operator).len(), 1);
        assert!(host.child_permit(0, &Owner::Operator).now_or_never().unwrap().is_none());
    }
}

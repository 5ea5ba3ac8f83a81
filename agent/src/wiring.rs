//! Assembly of a run's capabilities, each with its backend.

use std::path::PathBuf;
use std::sync::Arc;

use wattle_capability::ai::{Ai, Budget, Inference};
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_capability::git::{Git, Repository};
use wattle_capability::help::{self, Help};
use wattle_capability::http::{self, Http};
use wattle_capability::image::{Image, ImageGenerator};
use wattle_capability::issue::{IssueTracker, Issues};
use wattle_capability::kv::{self, InMemory, Kv};
use wattle_capability::memory::{self, Memory, MemoryGrant};
use wattle_capability::par::{self, Par};
use wattle_capability::publish::Publish;
use wattle_capability::search::{Embedder, Search};
use wattle_capability::secrets::{Secrets, Vault};
use wattle_capability::shell::{Sh, Shell};
use wattle_capability::skill::{SkillGrant, SkillReader};
use wattle_capability::tool::{ToolBox, Tools};
use wattle_capability::wattle::{CatalogIndex, Wattle};
use wattle_capability::web::{Engine, Web};
use wattle_rt::Grants;
use wattle_runs::Host;

use crate::issues::IssueState;

/// The resources of a run. They are set by the caller that starts the run, and no program or model
/// can extend them.
#[derive(Clone)]
pub struct Resources {
    /// The run's files.
    pub files: Arc<Files>,
    /// The session's state.
    pub state: Arc<dyn kv::Backend>,
    /// The state of the run's tenant.
    pub tenant: Arc<dyn kv::Backend>,
    /// The memory of the run's tenant and session.
    pub memory: Arc<dyn Memory>,
    /// The network egress.
    pub network: Arc<dyn http::Backend>,
    /// The programs that other programs may start. The started programs have the same access.
    pub programs: Arc<dyn par::Programs>,
    /// The manual that programs may read.
    pub manual: Arc<dyn help::Manual>,
    /// The catalog that programs may search.
    pub catalog_index: Arc<dyn CatalogIndex>,
    /// The skills, or `None` if there are none.
    pub skills: Option<Arc<dyn SkillReader>>,
    /// The shell, or `None` if the run has no shell.
    pub shell: Option<Arc<dyn Shell>>,
    /// The issue tracker, or `None` to store tickets in the tenant's state.
    pub issues: Option<Arc<dyn IssueTracker>>,
    /// The model that programs may use, if one is configured.
    pub inference: Option<Arc<dyn Inference>>,
    /// Limits on the model requests of the run's programs.
    pub budget: Budget,
    /// The search engine, or the reason why there is none.
    pub engine: Result<Arc<Engine>, String>,
    /// The file that contains the search index of the workdir. If `None`, the index is kept in
    /// memory.
    pub index: Option<PathBuf>,
    /// The embedding model with which programs search the files and the memory, if one is
    /// configured.
    pub embedder: Option<Embedder>,
    /// The secrets that requests may refer to.
    pub secrets: Option<Arc<dyn Secrets>>,
    /// The tools outside the sandbox, or `None` if there are none.
    pub tools: Option<Arc<dyn ToolBox>>,
    /// The additional resources of a trusted run, or `None` for a plain one.
    pub trusted: Option<Trusted>,
}

/// The additional resources of a trusted run. If the operator has not configured one of them, the
/// functions that need it report what is missing.
#[derive(Clone)]
pub struct Trusted {
    /// The workdir's repository.
    pub repository: Arc<dyn Repository>,
    /// The folder that contains the public files.
    pub public: Option<Arc<Files>>,
    /// The image generator, if one is configured.
    pub image_generator: Option<Arc<dyn ImageGenerator>>,
}

impl Resources {
    /// Creates the resources of a plain run that works on `files`. The run can use the host's
    /// shell, network, search engine, programs and manual. Its state and memory last as long as the
    /// run. It has no model and no secrets.
    #[must_use]
    pub fn new(host: &Host, files: Arc<Files>) -> Self {
        Resources {
            files,
            state: Arc::new(InMemory::default()),
            tenant: Arc::new(InMemory::default()),
            memory: Arc::new(memory::InMemory::default()),
            network: Arc::new(host.egress().clone()),
            programs: host.programs(),
            manual: host.manual(),
            catalog_index: host.catalog_index(),
            skills: host.skill_reader(),
            shell: Some(host.shell()),
            issues: None,
            inference: None,
            budget: Budget::default(),
            engine: host.search_engine(),
            index: None,
            embedder: None,
            secrets: None,
            tools: None,
            trusted: None,
        }
    }

    /// Returns the grants of a run with this access.
    #[must_use]
    pub fn grants(self) -> Grants {
        let tracker =
            self.issues.unwrap_or_else(|| Arc::new(IssueState::new(Arc::clone(&self.tenant))));
        let grants = wattle_capability::pure_grants()
            .with(Kv { session: self.state, tenant: self.tenant })
            .with(MemoryGrant::new(self.memory, self.embedder.clone()))
            .with(Http::new(self.network))
            .with(Fs(self.files))
            .with(Search::new(self.index, self.embedder))
            .with(Web::new(self.engine))
            .with(Par::new(self.programs))
            .with(Wattle(self.catalog_index))
            .with(Issues::new(tracker))
            .with(Help(self.manual));
        let grants = match self.shell {
            Some(shell) => grants.with(Sh(shell)),
            None => grants,
        };
        let grants = match self.skills {
            Some(skills) => grants.with(SkillGrant(skills)),
            None => grants,
        };
        let grants = match self.secrets {
            Some(secrets) => grants.with(Vault::new(secrets)),
            None => grants,
        };
        let grants = match self.tools {
            Some(tools) => grants.with(Tools(tools)),
            None => grants,
        };
        let grants = match self.trusted {
            Some(Trusted { repository, public, image_generator }) => {
                grants.with(Git(repository)).with(Publish(public)).with(Image::new(image_generator))
            }
            None => grants,
        };
        match self.inference {
            Some(model) => grants.with(Ai::new(model, self.budget)),
            None => grants,
        }
    }
}

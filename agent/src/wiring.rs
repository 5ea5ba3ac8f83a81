//! The parts list: which capability a run is granted, on which backend.

use std::path::PathBuf;
use std::sync::Arc;

use wattle_capability::TRUSTED;
use wattle_capability::ai::{Ai, Budget, Inference};
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_capability::git::{Git, Repository};
use wattle_capability::help::{self, Help};
use wattle_capability::http::{self, Http};
use wattle_capability::image::{Image, ImageGenerator};
use wattle_capability::issue::{IssueTracker, Issues};
use wattle_capability::kv::{self, InMemory, Kv};
use wattle_capability::par::{self, Par};
use wattle_capability::publish::Publish;
use wattle_capability::search::{Embedder, Search};
use wattle_capability::secrets::{Secrets, Vault};
use wattle_capability::shell::{Sh, Shell};
use wattle_capability::wattle::{CatalogIndex, Wattle};
use wattle_capability::web::{Engine, Web};
use wattle_capability::{vfs, workbook};
use wattle_rt::Grants;

use crate::Host;
use crate::issues::Kept;

/// What a run works on. Authority flows from here down: whoever starts a run fills this in, and no program or model can widen it.
#[derive(Clone)]
pub struct Access {
    /// The run's files.
    pub files: Arc<Files>,
    /// The session's state.
    pub state: Arc<dyn kv::Backend>,
    /// The state of the tenant whose run it is.
    pub tenant: Arc<dyn kv::Backend>,
    /// The way out to the network.
    pub network: Arc<dyn http::Backend>,
    /// The programs that programs may start, with the same access.
    pub programs: Arc<dyn par::Programs>,
    /// The manual that programs may read.
    pub guide: Arc<dyn help::Manual>,
    /// The catalog that programs may look into.
    pub directory: Arc<dyn CatalogIndex>,
    /// The shell; `None` where there is none.
    pub shell: Option<Arc<dyn Shell>>,
    /// Where tickets go; `None` for the tenant's state.
    pub issues: Option<Arc<dyn IssueTracker>>,
    /// The model that programs may ask; `None` where none is configured.
    pub inference: Option<Arc<dyn Inference>>,
    /// How much they may ask of it.
    pub budget: Budget,
    /// The search engine, or why there is none.
    pub engine: Result<Arc<Engine>, String>,
    /// The file that keeps the index of the files, which is a cache of that workdir alone; in memory where there is none.
    pub index: Option<PathBuf>,
    /// The model that places texts by their meaning, for searches in the files.
    pub embedder: Option<Embedder>,
    /// The secrets that requests may refer to; `None` for none.
    pub secrets: Option<Arc<dyn Secrets>>,
    /// What only a trusted run works on; `None` for a plain one.
    pub trusted: Option<Trusted>,
}

/// What a trusted run works on besides. Each part says by itself what is missing where the operator set nothing up.
#[derive(Clone)]
pub struct Trusted {
    /// The workdir's repository.
    pub repository: Arc<dyn Repository>,
    /// The public folder.
    pub public: Option<Arc<Files>>,
    /// What makes pictures.
    pub painter: Option<Arc<dyn ImageGenerator>>,
}

impl Access {
    /// Those files, the host's shell, network, search engine, programs and manual, states of its own that are gone with the run, no model and no secrets, and no trust.
    #[must_use]
    pub fn new(host: &Host, files: Arc<Files>) -> Self {
        Access {
            files,
            state: Arc::new(InMemory::default()),
            tenant: Arc::new(InMemory::default()),
            network: Arc::new(host.egress().clone()),
            programs: host.programs(),
            guide: host.guide(),
            directory: host.directory(),
            shell: Some(host.shell()),
            issues: None,
            inference: None,
            budget: Budget::default(),
            engine: host.engine(),
            index: None,
            embedder: None,
            secrets: None,
            trusted: None,
        }
    }

    /// The grants of a run with this access.
    #[must_use]
    pub fn grants(self) -> Grants {
        let desk = self.issues.unwrap_or_else(|| Arc::new(Kept::new(Arc::clone(&self.tenant))));
        let grants = wattle_capability::pure_grants()
            .with(Kv { session: self.state, tenant: self.tenant })
            .with(Http::new(self.network))
            .with(Fs(self.files))
            .with(Search::new(self.index, self.embedder))
            .with(Web::new(self.engine))
            .allow(vfs::VFS.name)
            .with(Par::new(self.programs))
            .allow(workbook::WORKBOOK.name)
            .with(Wattle(self.directory))
            .with(Issues::new(desk))
            .with(Help(self.guide));
        let grants = match self.shell {
            Some(shell) => grants.with(Sh(shell)),
            None => grants,
        };
        let grants = match self.secrets {
            Some(secrets) => grants.with(Vault::new(secrets)),
            None => grants,
        };
        let grants = match self.trusted {
            Some(Trusted { repository, public, painter }) => {
                grants.with(Git(repository)).with(Publish(public)).with(Image::new(painter))
            }
            None => grants,
        };
        match self.inference {
            Some(model) => grants.with(Ai::new(model, self.budget)),
            None => grants,
        }
    }
}

/// Which setting grants a capability that is withheld.
pub(crate) fn how_to_grant(capability: &str) -> &'static str {
    match capability {
        "ai" => "no model is configured: set `--base-url` and `--model`",
        _ => "whoever starts the run did not grant it",
    }
}

/// What a program is told that needs more than it was granted. Of what takes a trusted run it is told in words of their own.
pub fn denied(missing: &[&str]) -> String {
    let (trusted, others): (Vec<&str>, Vec<&str>) = missing.iter().partition(|name| TRUSTED.contains(name));
    let trusted = trusted.iter().map(|name| format!("{name} not permitted (no exec capability)"));
    let others = others.iter().map(|name| format!("`{name}` is not granted ({})", how_to_grant(name)));
    let each: Vec<String> = trusted.chain(others).collect();
    let told = each.join("; ");
    if missing.iter().all(|name| TRUSTED.contains(name)) { told } else { format!("denied before it ran: {told}") }
}

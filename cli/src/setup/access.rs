//! The resources that the programs of a run may access.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattle_agent::host::capability::ai::Inference;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::capability::issue::IssueTracker;
use wattle_agent::host::capability::kv;
use wattle_agent::host::capability::memory::{self, Memory};
use wattle_agent::host::capability::policy::Preflight;
use wattle_agent::host::capability::search::{Embedder, index_file};
use wattle_agent::host::capability::tool::ToolBox;
use wattle_agent::host::ledger::Signer;
use wattle_agent::host::rt::{Grants, Guard as _};
use wattle_agent::host::{IssueFile, LazyMemory, LazyState, ModelInference, Trusted, UsageMeter};
use wattle_agent::model::Model;
use wattle_agent::{Resources, Settings, Tenant};

use super::store::{location, open_at};
use super::{Session, Setup, keys, store, tenant, trace_dir};
use crate::config::Places;
use crate::fault::Fault;

impl Setup {
    /// Restricts the files to those that the policy lets `wattle shell` access.
    pub(crate) fn confined(&self, files: &Arc<Files>) -> Arc<Files> {
        if self.preflight.policy().is_open() {
            return Arc::clone(files);
        }
        let preflight = Arc::<Preflight>::clone(&self.preflight);
        let admit = move |target, path: &str| preflight.call("shell", "shell.run", target, path);
        Arc::new(files.guarded(Arc::new(admit)))
    }

    /// Returns the grants of a run, guarded by the policy.
    pub(crate) fn grants(&self, access: Resources) -> Arc<Grants> {
        Arc::new(access.grants().guarded(Arc::<Preflight>::clone(&self.preflight)))
    }

    /// Returns the tools of the MCP servers, or `None` if there are none.
    pub(crate) fn tools(&self) -> Option<Arc<dyn ToolBox>> {
        (!self.servers.is_empty()).then(|| Arc::new(self.servers.clone()) as _)
    }

    /// Returns the key that seals the tenant's traces, or `None` if there is no folder for keys.
    ///
    /// # Errors
    /// If the tenant's name is invalid or the key cannot be opened.
    pub(crate) fn signer(&self) -> Result<Option<Arc<Signer>>, Fault> {
        let tenant = tenant(&self.config)?;
        let signer = keys(&self.config).map(|keys| keys.signer(tenant.as_str()).map(Arc::new));
        signer.transpose().map_err(|error| {
            let fault = Fault::configuration(&error);
            if error.is_denied() {
                fault.hint(
                    "set `XDG_DATA_HOME` to a folder that can be written, or name a store in one \
                     with `--store FILE`",
                )
            } else {
                fault
            }
        })
    }

    /// Returns the additional capabilities of a trusted run in the workdir.
    ///
    /// # Errors
    /// If the tenant's name is invalid, or a setting of trusted runs cannot be used.
    pub(crate) fn trusted(&self) -> Result<Trusted, Fault> {
        let tenant = tenant(&self.config)?;
        let root = &self.config.root.value;
        super::trusted::trusted(&self.config, root, tenant.as_str(), self.host.egress())
    }

    /// Assembles the resources that a run may access, according to `settings`: files, state, the
    /// network and a model. A meter counts the programs' use of the model. Without a session, the
    /// run has its own state. Tickets are written beside the traces.
    ///
    /// # Errors
    /// If the tenant's name is invalid, or a setting of trusted runs or of a secret cannot be used.
    pub(crate) fn access(
        &self,
        files: Arc<Files>,
        session: Option<&Session>,
        model: Option<(Arc<dyn Model>, UsageMeter)>,
        settings: &Settings,
    ) -> Result<Resources, Fault> {
        let name = tenant(&self.config)?;
        let base = Resources::new(&self.host, files);
        let (state, variables): (Arc<dyn kv::Backend>, Arc<dyn kv::Backend>) = match session {
            Some(Session { id, store }) => (Arc::new(store.state(id)), Arc::new(store.variables())),
            None => (Arc::clone(&base.state), self.variables(name.clone())),
        };
        let memory: Arc<dyn Memory> = match session {
            Some(Session { id, store }) => Arc::new(store.memory(Some(id))),
            None => self.tenant_memory(),
        };
        let inference = model.map(|(model, meter)| -> Arc<dyn Inference> {
            Arc::new(ModelInference::new(model, settings).metered(meter))
        });
        let embeds = self.config.embed_model.value.clone().zip(inference.clone());
        let embedder = embeds.map(|(name, model)| Embedder { name, model });
        let index = index(&name, &self.config.root.value);
        let issues = trace_dir(&self.config, &self.config.root.value);
        let issues = issues.map(|folder| Arc::new(IssueFile::of(&folder)) as Arc<dyn IssueTracker>);
        let trusted = self.config.exec.value.then(|| self.trusted()).transpose()?;
        let secrets = Some(super::trusted::secrets(&self.config)?);
        Ok(Resources {
            state,
            tenant: variables,
            memory,
            inference,
            budget: settings.ai,
            issues,
            index,
            embedder,
            secrets,
            tools: self.tools(),
            trusted,
            ..base
        })
    }

    /// Returns the tenant's variables. The store is opened on first use. Without a store, the
    /// variables are lost when the run ends.
    fn variables(&self, tenant: Tenant) -> Arc<dyn kv::Backend> {
        match location(&self.config) {
            Ok(location) => {
                let (location, ttl) = (location.clone(), super::store::session_time(&self.config));
                Arc::new(LazyState::new(move || Ok(open_at(&location, ttl)?.tenant(&tenant))))
            }
            Err(_) => Arc::new(kv::InMemory::default()),
        }
    }

    /// Returns the tenant's memory. The store is opened on first use. Without a store, the memory
    /// is lost when the run ends.
    fn tenant_memory(&self) -> Arc<dyn Memory> {
        match location(&self.config) {
            Ok(_) => {
                let config = self.config.clone();
                let open = move || store(&config).map_err(|fault| fault.message().to_owned());
                Arc::new(LazyMemory::new(open))
            }
            Err(_) => Arc::new(memory::InMemory::default()),
        }
    }
}

/// Returns the path of the search index for a tenant and a workdir, or `None` if the user has no
/// cache folder or the workdir does not exist.
fn index(tenant: &Tenant, root: &Path) -> Option<PathBuf> {
    let folder = Places::of_user().cache?.join("search").join(tenant.file_name());
    Some(index_file(&folder, &root.canonicalize().ok()?))
}

//! Grants by name: the files, hosts and variables that programs may use, and the rules on their
//! effects.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use wattle_agent::host::capability::egress::{Egress, HostRule, Policy as EgressPolicy};
use wattle_agent::host::capability::files::{Files, OVERLAY_LIMIT};
use wattle_agent::host::capability::kv::InMemory;
use wattle_agent::host::capability::policy::{Policy, Rule};
use wattle_agent::{Host, Resources};

use crate::Error;

/// The host rule that stands for every public host.
const ALL_HOSTS: &str = "*";

/// The grants as the application writes them. The default grants nothing that touches the machine:
/// files are in memory, and no host can be reached. Computing, the tools that the application passes,
/// and the programs of the catalog need no grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GrantSettings {
    /// The folder that programs work on.
    pub files: Option<FilesGrant>,
    /// The hosts that programs may reach, such as `api.example.com`, `*.example.com`,
    /// `127.0.0.1:8080`, or `*` for all public hosts. A host that is named exactly need not be
    /// public.
    pub hosts: Vec<String>,
    /// Variables that programs read by `(kv.get "tenant:NAME")`.
    pub variables: BTreeMap<String, String>,
    /// Rules on effects that are allowed, as in the setting `allow` of the command line.
    pub allow: Vec<String>,
    /// Rules on effects that need approval.
    pub ask: Vec<String>,
    /// Rules on effects that are denied.
    pub deny: Vec<String>,
}

/// A folder that programs work on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum FilesGrant {
    /// The folder is only read. What programs write stays in memory.
    Read(PathBuf),
    /// A folder with its settings.
    Folder(FolderGrant),
}

/// A folder that programs work on, with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderGrant {
    /// The folder.
    pub path: PathBuf,
    /// If true, programs write to the folder directly. Otherwise, what they write stays in memory.
    #[serde(default)]
    pub write: bool,
}

/// Checked grants. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Grants(Arc<Checked>);

#[derive(Debug)]
struct Checked {
    settings: GrantSettings,
    policy: Policy,
    allowed_hosts: Vec<HostRule>,
}

impl Default for Checked {
    fn default() -> Checked {
        let closed = "http".parse().ok();
        let policy = Policy::new(Vec::new(), Vec::new(), closed.into_iter().collect());
        Checked { settings: GrantSettings::default(), policy, allowed_hosts: Vec::new() }
    }
}

impl Grants {
    /// Checks the grants.
    ///
    /// # Errors
    /// If a rule or a host is invalid.
    pub fn new(settings: GrantSettings) -> Result<Grants, Error> {
        let rules = |name: &str, texts: &[String]| -> Result<Vec<Rule>, Error> {
            let rule = |text: &String| {
                text.parse().map_err(|why| Error::settings(format!("grants.{name}: {why}")))
            };
            texts.iter().map(rule).collect()
        };
        let hosts: Vec<String> = settings.hosts.iter().map(|host| format!("host:{host}")).collect();
        let mut allow = rules("allow", &settings.allow)?;
        allow.extend(rules("hosts", &hosts)?);
        // The model that the application chose is not a host of the programs.
        allow.extend(rules("allow", &["ai".to_owned()])?);
        let mut deny = rules("deny", &settings.deny)?;
        if !settings.hosts.iter().any(|host| host == ALL_HOSTS) {
            deny.extend(rules("deny", &["http".to_owned()])?);
        }
        let policy = Policy::new(allow, rules("ask", &settings.ask)?, deny);
        let exact = settings.hosts.iter().filter(|host| !host.contains('*'));
        let exact = exact.map(|host| {
            host.parse().map_err(|why| Error::settings(format!("grants.hosts: {why}")))
        });
        let allowed_hosts = exact.collect::<Result<_, _>>()?;
        Ok(Grants(Arc::new(Checked { settings, policy, allowed_hosts })))
    }

    /// Returns true if the application named no rule and no resource.
    pub(crate) fn are_default(&self) -> bool {
        self.0.settings == GrantSettings::default()
    }

    /// Returns the rules on the effects of programs.
    pub(crate) fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// Returns true if programs change the granted folder directly.
    pub(crate) fn writes_through(&self) -> bool {
        matches!(&self.0.settings.files, Some(FilesGrant::Folder(folder)) if folder.write)
    }

    /// Returns the files for a new run.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub(crate) fn files(&self) -> Result<Arc<Files>, Error> {
        let (path, write) = match &self.0.settings.files {
            None => return Ok(Arc::new(Files::overlay(None, OVERLAY_LIMIT))),
            Some(FilesGrant::Read(path)) => (path, false),
            Some(FilesGrant::Folder(FolderGrant { path, write })) => (path, *write),
        };
        let base = Files::open_base(path).map_err(|why| {
            Error::settings(format!("grants.files: failed to open `{}`: {why}", path.display()))
        })?;
        let files = if write {
            Files::write_through(base)
        } else {
            Files::overlay(Some(base), OVERLAY_LIMIT)
        };
        Ok(Arc::new(files))
    }

    /// Returns the files for a new run, as [`files`](Grants::files) does. If the folder has since
    /// disappeared, the run has empty files.
    pub(crate) fn files_again(&self) -> Arc<Files> {
        self.files().unwrap_or_else(|_| Arc::new(Files::overlay(None, OVERLAY_LIMIT)))
    }

    /// Returns the resources of a new run that works on `files`.
    pub(crate) fn resources(&self, host: &Host, files: Arc<Files>) -> Resources {
        self.change(host, Resources::new(host, files))
    }

    /// Sets the network and the variables of a run's resources.
    pub(crate) fn change(&self, host: &Host, resources: Resources) -> Resources {
        let mut resources = resources;
        if !self.0.allowed_hosts.is_empty() {
            let policy = EgressPolicy {
                allow: self.0.allowed_hosts.clone(),
                ..host.egress().policy().clone()
            };
            let egress: Egress = host.egress().with_policy(policy);
            resources.network = Arc::new(egress);
        }
        let variables = &self.0.settings.variables;
        if !variables.is_empty() {
            resources.tenant = Arc::new(InMemory::of(variables.clone()));
        }
        resources
    }
}

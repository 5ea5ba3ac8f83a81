//! The agents of a deployment, and how a reference finds one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use super::DEFAULT_AGENT;
use super::folder::{AgentFolder, AgentProblem};
use super::read::is_name;
use super::spec::AgentSpec;

/// Minimum time between two scans of the folders.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Finds agents that no file declares. It is asked before the files.
pub trait AgentResolver: Send + Sync {
    /// Returns the agent for a reference, such as `custom:support`, or `None` if it knows none.
    ///
    /// # Errors
    /// The reason why the agent cannot be made. The files are not asked then.
    fn resolve<'a>(
        &'a self,
        reference: &'a str,
    ) -> BoxFuture<'a, Result<Option<AgentSpec>, String>>;
}

/// The agents of some folders, and the built-in `default`. Cheap to clone; all clones see the same
/// files.
#[derive(Clone)]
pub struct Agents(Arc<Inner>);

struct Inner {
    resolver: Option<Arc<dyn AgentResolver>>,
    state: Mutex<Loaded>,
}

#[derive(Clone)]
struct Loaded {
    folders: Vec<AgentFolder>,
    agents: BTreeMap<String, Arc<AgentSpec>>,
    problems: Vec<AgentProblem>,
    checked: Instant,
}

impl Default for Agents {
    fn default() -> Self {
        Agents::open(&[])
    }
}

impl Agents {
    /// Reads the agents of the folders. An agent replaces one of the same name in an earlier
    /// folder, and the built-in one. A file that cannot be used is one of the
    /// [`problems`](Agents::problems).
    #[must_use]
    pub fn open(folders: &[PathBuf]) -> Agents {
        let folders = folders.iter().cloned().map(AgentFolder::new).collect();
        Agents(Arc::new(Inner { resolver: None, state: Mutex::new(Loaded::read(folders)) }))
    }

    /// Asks this resolver before the files.
    #[must_use]
    pub fn with_resolver(&self, resolver: Arc<dyn AgentResolver>) -> Agents {
        let state = Mutex::new(self.state().clone());
        Agents(Arc::new(Inner { resolver: Some(resolver), state }))
    }

    /// Reads the files that changed, at most once a second. Returns the new problems.
    pub fn refresh(&self) -> Vec<AgentProblem> {
        let mut state = self.state();
        if state.checked.elapsed() < MIN_INTERVAL {
            return Vec::new();
        }
        let read = Loaded::read(std::mem::take(&mut state.folders));
        let known = std::mem::replace(&mut *state, read).problems;
        state.problems.iter().filter(|problem| !known.contains(problem)).cloned().collect()
    }

    /// Returns the agent with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<AgentSpec>> {
        self.state().agents.get(name).cloned()
    }

    /// Returns all agents, sorted by name.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<AgentSpec>> {
        self.state().agents.values().cloned().collect()
    }

    /// Returns the problems of the files and folders.
    #[must_use]
    pub fn problems(&self) -> Vec<AgentProblem> {
        self.state().problems.clone()
    }

    /// Finds an agent: first by the resolver, then by name, then by title.
    ///
    /// # Errors
    /// If there is no such agent. The error says what was tried.
    pub async fn load(&self, reference: &str) -> Result<Arc<AgentSpec>, UnknownAgent> {
        let mut tried = Vec::new();
        if let Some(resolver) = &self.0.resolver {
            match resolver.resolve(reference).await {
                Ok(Some(agent)) => return Ok(Arc::new(agent)),
                Ok(None) => tried.push("the resolver".to_owned()),
                Err(why) => {
                    let tried = vec![format!("the resolver ({why})")];
                    return Err(UnknownAgent {
                        reference: reference.to_owned(),
                        tried,
                        nearest: None,
                    });
                }
            }
        }
        tried.push("the names".to_owned());
        if let Some(agent) = self.get(reference) {
            return Ok(agent);
        }
        tried.push("the titles".to_owned());
        let titled = |agent: &Arc<AgentSpec>| {
            !agent.title.is_empty() && agent.title.eq_ignore_ascii_case(reference.trim())
        };
        self.list().into_iter().find(titled).ok_or_else(|| UnknownAgent {
            reference: reference.to_owned(),
            tried,
            nearest: self.nearest(reference),
        })
    }

    /// Returns the agent with the most similar name.
    pub(super) fn nearest(&self, name: &str) -> Option<String> {
        let state = self.state();
        wattle_catalog::nearest_name(name, state.agents.keys().map(String::as_str))
            .map(str::to_owned)
    }

    fn state(&self) -> MutexGuard<'_, Loaded> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loaded {
    fn read(folders: Vec<AgentFolder>) -> Loaded {
        let folders: Vec<AgentFolder> = folders.iter().map(AgentFolder::rescan).collect();
        let mut agents = BTreeMap::from([(DEFAULT_AGENT.to_owned(), Arc::default())]);
        let mut problems: Vec<AgentProblem> = Vec::new();
        for folder in &folders {
            let mut named: BTreeMap<&str, &std::path::Path> = BTreeMap::new();
            for (path, agent) in folder.agents() {
                if let Some(first) = named.insert(&agent.name, path) {
                    let message =
                        format!("the agent `{}` is also in {}", agent.name, first.display());
                    problems.push(AgentProblem { path: path.to_owned(), line: None, message });
                } else {
                    agents.insert(agent.name.clone(), Arc::clone(agent));
                }
            }
            problems.extend(folder.problems().cloned());
        }
        Loaded { folders, agents, problems, checked: Instant::now() }
    }
}

/// The error for a reference to an agent that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAgent {
    /// The reference.
    pub reference: String,
    /// Where the agent was looked for, in order.
    pub tried: Vec<String>,
    /// The agent with the most similar name.
    pub nearest: Option<String>,
}

impl fmt::Display for UnknownAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match is_name(&self.reference) {
            true => format!("`{}`", self.reference),
            false => wattle_rt::quote(&self.reference, 60),
        };
        write!(f, "there is no agent {shown}: looked among {}", self.tried.join(", "))?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownAgent {}

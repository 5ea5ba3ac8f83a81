//! The agents of a deployment, and the resolution of references to them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wattle_store::Tenant;

use super::DEFAULT_AGENT;
use super::folder::{AgentProblem, DeclaredFolder};
use super::parts::AgentError;
use super::read::is_name;
use super::resolver::AgentResolver;
use super::spec::AgentSpec;
use super::traits::{TraitSpec, Traits};

/// Minimum time between two scans of the folders.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The subfolder of an agent folder that contains the traits.
pub const TRAITS_FOLDER: &str = "traits";

/// A folder of agents, with its subfolder of traits.
#[derive(Clone)]
struct AgentFolder {
    agents: DeclaredFolder<AgentSpec>,
    traits: DeclaredFolder<TraitSpec>,
}

/// The agents declared in a list of folders, and the built-in agent `default`. Cheap to clone; all
/// clones see the same files.
#[derive(Clone)]
pub struct Agents(Arc<Inner>);

struct Inner {
    resolver: Option<Arc<dyn AgentResolver>>,
    state: Mutex<Loaded>,
}

#[derive(Clone)]
struct Loaded {
    folders: Vec<AgentFolder>,
    traits: Traits,
    agents: BTreeMap<String, Arc<AgentSpec>>,
    /// The names whose declarations cannot be used, mapped to the problems. No agent has such a
    /// name unless a later folder declares it.
    unusable: BTreeMap<String, AgentProblem>,
    problems: Vec<AgentProblem>,
    checked: Instant,
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.state().agents.keys()).finish()
    }
}

impl Default for Agents {
    fn default() -> Self {
        Agents::open(&[])
    }
}

impl Agents {
    /// Reads the agents in the folders. An agent overrides any agent with the same name in an
    /// earlier folder. Even the built-in agent can be overridden. If the declaration of a name
    /// cannot be used, or several files of one folder declare the same name, there is no agent with
    /// this name: neither an agent of an earlier folder nor the built-in one is used instead. The
    /// problem is listed in [`problems`](Agents::problems).
    #[must_use]
    pub fn open(folders: &[PathBuf]) -> Agents {
        let folder = |path: &PathBuf| AgentFolder {
            agents: DeclaredFolder::new(path.clone(), false),
            traits: DeclaredFolder::new(path.join(TRAITS_FOLDER), true),
        };
        let folders = folders.iter().map(folder).collect();
        Agents(Arc::new(Inner { resolver: None, state: Mutex::new(Loaded::read(folders)) }))
    }

    /// Returns a copy with a resolver, which is consulted before the files.
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

    /// Returns the agent with this name, or `None` if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<AgentSpec>> {
        self.state().agents.get(name).cloned()
    }

    /// Returns true if there is an agent with this name, or its declaration cannot be used.
    #[must_use]
    pub fn is_declared(&self, name: &str) -> bool {
        let state = self.state();
        state.agents.contains_key(name) || state.unusable.contains_key(name)
    }

    /// Returns the file of the agent with this name, or `None` if no file declares it.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let state = self.state();
        state.agents.get(name)?;
        let declares = |folder: &AgentFolder| {
            let mut agents = folder.agents.declared();
            agents.find(|(_, agent)| agent.name == name).map(|(path, _)| path.to_owned())
        };
        state.folders.iter().rev().find_map(declares)
    }

    /// Returns all agents, sorted by name.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<AgentSpec>> {
        self.state().agents.values().cloned().collect()
    }

    /// Returns all traits, keyed by name: the built-in ones and those declared in the folders.
    pub(super) fn traits(&self) -> Traits {
        self.state().traits.clone()
    }

    /// Returns the agent with its named traits inlined, so that a run keeps the traits that it
    /// started with.
    ///
    /// # Errors
    /// If the agent refers to an unknown trait.
    pub fn complete(&self, agent: &AgentSpec) -> Result<AgentSpec, AgentError> {
        agent.with_traits(&self.state().traits)
    }

    /// Returns the problems that the last scan found with the agent folders and their files.
    #[must_use]
    pub fn problems(&self) -> Vec<AgentProblem> {
        self.state().problems.clone()
    }

    /// Finds the agent that a tenant's reference denotes: asks the resolver first, then looks for an
    /// agent whose name or title is the reference.
    ///
    /// # Errors
    /// If there is no such agent. The error lists the sources that were searched.
    pub async fn load(
        &self,
        tenant: &Tenant,
        reference: &str,
    ) -> Result<Arc<AgentSpec>, UnknownAgent> {
        let loaded = |agent: &AgentSpec, reference: &str| {
            let reference = Some(reference.to_owned());
            let is_built_in = *agent == AgentSpec::default();
            Arc::new(AgentSpec { reference: reference.filter(|_| !is_built_in), ..agent.clone() })
        };
        let mut tried = Vec::new();
        if let Some(resolver) = &self.0.resolver {
            match resolver.resolve(tenant, reference).await {
                Ok(Some(agent)) => match self.complete(&agent) {
                    Ok(agent) => return Ok(loaded(&agent, reference)),
                    Err(why) => {
                        return Err(UnknownAgent::unresolved(reference, &why.to_string()));
                    }
                },
                Ok(None) => tried.push("the resolver".to_owned()),
                Err(why) => return Err(UnknownAgent::unresolved(reference, &why)),
            }
        }
        if let Some(problem) = self.state().unusable.get(reference) {
            tried.push(format!("the names ({problem})"));
            return Err(UnknownAgent { reference: reference.to_owned(), tried, nearest: None });
        }
        tried.push("the names".to_owned());
        if let Some(agent) = self.get(reference) {
            return Ok(loaded(&agent, reference));
        }
        tried.push("the titles".to_owned());
        let titled = |agent: &Arc<AgentSpec>| {
            !agent.title.is_empty() && agent.title.eq_ignore_ascii_case(reference.trim())
        };
        match self.list().into_iter().find(titled) {
            Some(agent) => Ok(loaded(&agent, &agent.name)),
            None => Err(UnknownAgent {
                reference: reference.to_owned(),
                tried,
                nearest: self.nearest(reference),
            }),
        }
    }

    /// Returns the agent name that is most similar to `name`, or `None` if none is similar.
    pub fn nearest(&self, name: &str) -> Option<String> {
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
        let rescan = |folder: &AgentFolder| AgentFolder {
            agents: folder.agents.rescan(),
            traits: folder.traits.rescan(),
        };
        let folders: Vec<AgentFolder> = folders.iter().map(rescan).collect();
        let mut problems: Vec<AgentProblem> = Vec::new();
        let mut traits: Traits =
            TraitSpec::built_in().into_iter().map(|one| (one.name.clone(), one)).collect();
        for folder in &folders {
            if folder.traits.unread().is_some() {
                traits.clear();
            }
            for (name, declared) in folder.traits.by_name(&mut problems) {
                match declared {
                    Ok((_, one)) => _ = traits.insert(name.to_owned(), one.as_ref().clone()),
                    Err(_) => _ = traits.remove(name),
                }
            }
            problems.extend(folder.traits.problems().cloned());
        }
        let mut agents: BTreeMap<String, Arc<AgentSpec>> =
            BTreeMap::from([(DEFAULT_AGENT.to_owned(), Arc::default())]);
        let mut unusable = BTreeMap::new();
        for folder in &folders {
            // The folder may declare any of these names, with stricter limits.
            if let Some(problem) = folder.agents.unread() {
                let hidden = std::mem::take(&mut agents).into_keys();
                unusable.extend(hidden.map(|name| (name, problem.clone())));
            }
            for (name, declared) in folder.agents.by_name(&mut problems) {
                let complete = declared.and_then(|(path, agent)| {
                    agent.with_traits(&traits).map_err(|why| {
                        let problem = AgentProblem::new(path, why.to_string());
                        problems.push(problem.clone());
                        problem
                    })
                });
                match complete {
                    Ok(agent) => {
                        unusable.remove(name);
                        agents.insert(name.to_owned(), Arc::new(agent));
                    }
                    Err(problem) => {
                        agents.remove(name);
                        unusable.insert(name.to_owned(), problem);
                    }
                }
            }
            problems.extend(folder.agents.problems().cloned());
        }
        Loaded { folders, traits, agents, unusable, problems, checked: Instant::now() }
    }
}

/// The error for a reference to an agent that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAgent {
    /// The reference that was resolved.
    pub reference: String,
    /// The sources that were searched for the agent, in order.
    pub tried: Vec<String>,
    /// The most similar name of an existing agent, if there is one.
    pub nearest: Option<String>,
}

impl UnknownAgent {
    fn unresolved(reference: &str, why: &str) -> UnknownAgent {
        let tried = vec![format!("the resolver ({why})")];
        UnknownAgent { reference: reference.to_owned(), tried, nearest: None }
    }
}

impl fmt::Display for UnknownAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if is_name(&self.reference) {
            format!("`{}`", self.reference)
        } else {
            wattle_rt::quote(&self.reference, 60)
        };
        write!(f, "there is no agent {shown}: looked among {}", self.tried.join(", "))?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownAgent {}

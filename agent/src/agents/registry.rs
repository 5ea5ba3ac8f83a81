//! The agents of a deployment, and the resolution of references to them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
    /// The names that several files of one folder declare, each with the problem. They name no
    /// agent, unless a later folder declares one.
    ambiguous: BTreeMap<String, AgentProblem>,
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
    /// earlier folder. Even the built-in agent can be overridden. If several files of one folder
    /// declare the same name, there is no agent with this name. A file that cannot be used is
    /// listed in [`problems`](Agents::problems).
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

    /// Finds the agent that a reference denotes: asks the resolver first, and then looks for an
    /// agent whose name or title is the reference.
    ///
    /// # Errors
    /// If there is no such agent. The error lists the sources that were searched.
    pub async fn load(&self, reference: &str) -> Result<Arc<AgentSpec>, UnknownAgent> {
        let mut tried = Vec::new();
        if let Some(resolver) = &self.0.resolver {
            match resolver.resolve(reference).await {
                Ok(Some(agent)) => match self.complete(&agent) {
                    Ok(agent) => return Ok(Arc::new(agent)),
                    Err(why) => {
                        return Err(UnknownAgent::unresolved(reference, &why.to_string()));
                    }
                },
                Ok(None) => tried.push("the resolver".to_owned()),
                Err(why) => return Err(UnknownAgent::unresolved(reference, &why)),
            }
        }
        if let Some(problem) = self.state().ambiguous.get(reference) {
            tried.push(format!("the names ({problem})"));
            return Err(UnknownAgent { reference: reference.to_owned(), tried, nearest: None });
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

    /// Returns the agent name that is most similar to `name`, or `None` if none is similar.
    pub(crate) fn nearest(&self, name: &str) -> Option<String> {
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
            let each = folder.traits.declared();
            let named = by_name(each, "trait", |one| &one.name, &mut problems);
            for (name, declared) in named {
                match declared {
                    Ok((_, one)) => _ = traits.insert(name, one.as_ref().clone()),
                    Err(_) => _ = traits.remove(&name),
                }
            }
            problems.extend(folder.traits.problems().cloned());
        }
        let mut agents = BTreeMap::from([(DEFAULT_AGENT.to_owned(), Arc::default())]);
        let mut ambiguous = BTreeMap::new();
        for folder in &folders {
            let each = folder.agents.declared();
            for (name, declared) in by_name(each, "agent", |one| &one.name, &mut problems) {
                let (path, agent) = match declared {
                    Ok(declared) => declared,
                    Err(problem) => {
                        agents.remove(&name);
                        ambiguous.insert(name, problem);
                        continue;
                    }
                };
                match agent.with_traits(&traits) {
                    Ok(agent) => {
                        ambiguous.remove(&name);
                        agents.insert(name, Arc::new(agent));
                    }
                    Err(why) => problems.push(AgentProblem::new(path, why.to_string())),
                }
            }
            problems.extend(folder.agents.problems().cloned());
        }
        Loaded { folders, traits, agents, ambiguous, problems, checked: Instant::now() }
    }
}

/// A declaration with the path of its file, or the problem with a name that several files of one
/// folder declare.
type Named<'a, T> = Result<(&'a Path, &'a Arc<T>), AgentProblem>;

/// Returns the declarations in a folder, keyed by name. If several files declare the same name,
/// none of them is used, because the order of the files must not decide which limits apply. Each
/// file but the first is reported as a problem, which also names the first file.
fn by_name<'a, T: 'a>(
    declared: impl Iterator<Item = (&'a Path, &'a Arc<T>)>,
    kind: &str,
    name: impl Fn(&T) -> &String,
    problems: &mut Vec<AgentProblem>,
) -> BTreeMap<String, Named<'a, T>> {
    let mut firsts: BTreeMap<&str, &Path> = BTreeMap::new();
    let mut named: BTreeMap<String, Named<'a, T>> = BTreeMap::new();
    for (path, one) in declared {
        let name = name(one);
        match firsts.get(name.as_str()) {
            Some(first) => {
                let first = first.display();
                let message = format!("the {kind} `{name}` is also in {first}; neither is used");
                let problem = AgentProblem::new(path, message);
                problems.push(problem.clone());
                named.insert(name.clone(), Err(problem));
            }
            None => {
                firsts.insert(name, path);
                named.insert(name.clone(), Ok((path, one)));
            }
        }
    }
    named
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

//! What the names in calls stand for: the programs behind aliases and texts, and the endpoints of
//! agents.

use std::sync::Arc;

use wattle_rt::{Grants, Preview};

use super::resource::Resource;
use super::{Policy, Rule};
use crate::agent::{Agents, Delegates};
use crate::par::{Par, Programs};

/// The run's programs and agents, as far as the run has any.
#[derive(Clone, Default)]
pub(super) struct Directory {
    programs: Option<Arc<dyn Programs>>,
    agents: Option<Arc<dyn Delegates>>,
}

impl Directory {
    pub(super) fn of(grants: &Grants) -> Directory {
        Directory {
            programs: grants.config::<Par>().map(|par| Arc::clone(&par.programs)),
            agents: grants.config::<Agents>().map(|agents| Arc::clone(&agents.0)),
        }
    }

    /// Completes a resource that was read from a name.
    pub(super) fn resolve(&self, resource: Resource) -> Resource {
        match resource {
            Resource::Program { called, names } => {
                let real = self.programs.as_ref().and_then(|all| all.real_name(&called));
                Resource::Program { names: real.map_or(names, |real| vec![real]), called }
            }
            Resource::Agent { name, .. } => {
                let elsewhere = self.agents.as_ref().is_some_and(|all| all.is_elsewhere(&name));
                Resource::Agent { name, elsewhere }
            }
            other => other,
        }
    }

    /// Returns the program that is about to start. Its names are those under which the rules of
    /// the policy name its code.
    pub(super) async fn program(&self, policy: &Policy, preview: &Preview<'_>) -> Resource {
        let Some(programs) = &self.programs else {
            return Resource::Program { names: Vec::new(), called: String::new() };
        };
        let own = programs.name_of(preview.program.source());
        let mut called = own.clone().unwrap_or_default();
        let mut names = Vec::from_iter(own);
        for name in policy.rules().filter_map(Rule::program) {
            if names.iter().any(|known| known == name) {
                continue;
            }
            let (source, is_alias) = match programs.source(name) {
                Some(source) => (Some(source), false),
                None => {
                    let real = programs.real_name(name);
                    (real.and_then(|real| programs.source(&real)), true)
                }
            };
            let Some(source) = source else { continue };
            if preview.is_code_of(&source).await {
                // An alias names a program only in a rule that restricts it.
                if is_alias { called = name.to_owned() } else { names.push(name.to_owned()) }
            }
        }
        Resource::Program { names, called }
    }
}

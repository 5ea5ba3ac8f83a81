//! The delegates of an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_catalog::Entry;
use wattle_runs::agents::{AgentError, AgentSpec, DelegateRef, delegate_program, is_name};

use super::agent::Inner;
use super::builder::{AgentBuilder, Base};

/// The delegates of an agent: those added by the application and those declared by the agent.
pub(super) struct Team {
    delegates: Vec<Delegate>,
    /// The delegates added by the application, keyed by the names under which the agent calls them.
    given: BTreeMap<String, Arc<Inner>>,
    /// The agent's declaration, whose rules and context values also apply to the declared
    /// delegates.
    spec: AgentSpec,
    /// The components and settings from which declared agents are built.
    base: Base,
}

/// A delegate as the model sees it.
struct Delegate {
    reference: DelegateRef,
    shown_name: String,
    description: String,
}

impl Team {
    /// Collects the delegates of an agent.
    ///
    /// # Errors
    /// If a delegate does not exist, or a name is invalid or used twice.
    pub(super) fn of(
        spec: &AgentSpec,
        agents: Vec<(String, Arc<Inner>)>,
        base: Base,
    ) -> Result<Team, AgentError> {
        let mut given = BTreeMap::new();
        for (name, agent) in agents {
            if !is_name(&name) {
                return Err(AgentError::InvalidName(name));
            }
            if given.contains_key(&name) {
                return Err(AgentError::NameTaken { agent: spec.name.clone(), name });
            }
            given.insert(name, agent);
        }
        let undeclared = given.keys().filter(|id| spec.delegates.iter().all(|one| one.id != **id));
        let undeclared =
            undeclared.map(|id| DelegateRef { id: id.clone(), ..DelegateRef::default() });
        let references: Vec<DelegateRef> =
            spec.delegates.iter().cloned().chain(undeclared).collect();
        let delegate = |reference: DelegateRef| {
            let id = &reference.id;
            let (shown_name, description) = if given.contains_key(id) {
                (id.clone(), String::new())
            } else {
                let declared = base.agents.get(id).ok_or_else(|| {
                    let given = given.keys().map(String::as_str);
                    AgentError::UnknownDelegate {
                        agent: spec.name.clone(),
                        id: id.clone(),
                        nearest: wattle_catalog::nearest_name(id, given)
                            .map(str::to_owned)
                            .or_else(|| base.agents.nearest(id)),
                    }
                })?;
                (declared.shown_name().to_owned(), declared.description.clone())
            };
            Ok(Delegate { reference, shown_name, description })
        };
        let delegates = references.into_iter().map(delegate).collect::<Result<_, _>>()?;
        // The handlers and the output settings apply to this agent only.
        let mut base = Base { handlers: Vec::new(), ..base };
        base.settings.output = None;
        Ok(Team { delegates, given, spec: spec.clone(), base })
    }

    /// Returns the names of the delegates.
    pub(super) fn names(&self) -> Vec<String> {
        self.delegates.iter().map(|delegate| delegate.reference.id.clone()).collect()
    }

    /// Returns the programs through which an agent calls its delegates. `agent` is the agent's
    /// name.
    pub(super) fn programs(&self, agent: &str) -> Result<Vec<Entry>, AgentError> {
        let program = |delegate: &Delegate| {
            let Delegate { reference, shown_name, description } = delegate;
            delegate_program(agent, reference, (shown_name, description))
        };
        self.delegates.iter().map(program).collect()
    }

    /// Returns the agent with this name. A declared agent is built only when it is requested, so
    /// that agents can be each other's delegates.
    ///
    /// # Errors
    /// If there is no such agent, or it cannot be built.
    pub(super) fn agent(&self, id: &str) -> Result<Arc<Inner>, AgentError> {
        if let Some(given) = self.given.get(id) {
            return Ok(Arc::clone(given));
        }
        let declared = self.base.agents.get(id).ok_or_else(|| AgentError::UnknownDelegate {
            agent: self.spec.name.clone(),
            id: id.to_owned(),
            nearest: self.base.agents.nearest(id),
        })?;
        let builder = AgentBuilder::on_base(self.base.clone());
        Ok(builder.spec(declared.delegated_by(&self.spec)).build()?.inner)
    }
}

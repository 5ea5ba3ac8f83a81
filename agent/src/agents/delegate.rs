//! Delegates: the programs through which an agent asks others.

use wattle_catalog::{Arg, Entry, Meta, Name, TypeHint};

use super::parts::AgentError;
use super::registry::Agents;
use super::spec::{AgentSpec, DelegateRef};

impl DelegateRef {
    /// Returns the name of the delegate's program.
    #[must_use]
    pub fn program(&self) -> String {
        let from_id = || format!("ask_{}", self.id.replace(['-', '.'], "_"));
        self.name.clone().unwrap_or_else(from_id)
    }
}

/// Returns the programs of an agent's delegates.
pub(super) fn programs(agent: &AgentSpec, agents: &Agents) -> Result<Vec<Entry>, AgentError> {
    agent.delegates.iter().map(|delegate| program(agent, delegate, agents)).collect()
}

fn program(
    agent: &AgentSpec,
    delegate: &DelegateRef,
    agents: &Agents,
) -> Result<Entry, AgentError> {
    let asked = agents.get(&delegate.id).ok_or_else(|| AgentError::UnknownDelegate {
        agent: agent.name.clone(),
        id: delegate.id.clone(),
        nearest: agents.nearest(&delegate.id),
    })?;
    let name: Name = delegate
        .program()
        .parse()
        .map_err(|_| AgentError::DelegateName(agent.name.clone(), delegate.program()))?;
    let about = match (&delegate.rule, asked.description.trim()) {
        (Some(rule), _) => format!("Ask the agent {}: {}", asked.shown_name(), rule.trim()),
        (None, "") => format!("Ask the agent {}", asked.shown_name()),
        (None, about) => format!("Ask the agent {}: {about}", asked.shown_name()),
    };
    let message = Arg {
        name: "message".to_owned(),
        type_hint: TypeHint::String,
        format: None,
        description: "the whole task: the agent does not see this conversation".to_owned(),
        default: None,
    };
    let meta = Meta {
        description: about,
        args: vec![message],
        returns: Some("the agent's answer".to_owned()),
        uses: Some(vec!["agent".to_owned()]),
        timeout: None,
        ..Meta::default()
    };
    let body = format!("(ret (agent.delegate \"{}\" (arg 0)))\n", asked.name);
    Ok(Entry::of_agent(&agent.name, name, meta, body))
}

//! The programs through which an agent sends requests to its delegates, which are other agents.

use wattle_catalog::{Arg, Entry, Meta, Name, Origin, TypeHint};

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
    let program = |delegate: &DelegateRef| {
        let asked = agents.get(&delegate.id).ok_or_else(|| AgentError::UnknownDelegate {
            agent: agent.name.clone(),
            id: delegate.id.clone(),
            nearest: agents.nearest(&delegate.id),
        })?;
        program(&agent.name, delegate, (asked.shown_name(), &asked.description))
    };
    agent.delegates.iter().map(program).collect()
}

/// Returns the program through which `agent` sends requests to another agent. The program's
/// description consists of the other agent's display name (`shown`) and the delegate's rule. If the
/// delegate has no rule, the other agent's `description` is used instead.
pub fn program(
    agent: &str,
    delegate: &DelegateRef,
    (shown, description): (&str, &str),
) -> Result<Entry, AgentError> {
    let name: Name = delegate
        .program()
        .parse()
        .map_err(|_| AgentError::DelegateName(agent.to_owned(), delegate.program()))?;
    let about = match (&delegate.rule, description.trim()) {
        (Some(rule), _) => format!("Ask the agent {shown}: {}", rule.trim()),
        (None, "") => format!("Ask the agent {shown}"),
        (None, about) => format!("Ask the agent {shown}: {about}"),
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
    let body = format!("(ret (agent.delegate \"{}\" (arg 0)))\n", delegate.id);
    Ok(Entry::declared(Origin::Agent(agent.to_owned()), name, meta, body))
}

//! `agent`: delegates parts of the run's task to other agents.
//!
//! The other agent works in a child run, which has its own conversation and its own id, but shares
//! the calling run's files. The child run has no grants that the calling run lacks, and it gets a
//! share of that run's budget. The clock of the calling program is paused until the child run ends.

use std::sync::Arc;

use wattle_rt::{Code, Config, Failure, Run, capability};

use crate::PortFuture;

capability! {
    /// Other agents, for parts of the task.
    pub const AGENT: "agent" 1;

    /// Returns another agent's answer to a message, which must contain the whole task
    #[example = r#"(ret (agent.delegate "coder" "Reverse a list in WAT."))"# => "the answer of coder: Reverse a list in WAT."]
    #[prompt(omitted)]
    #[effect(writes)]
    async delegate(agent: agent, message: str) with Agents -> ptr: str ! ENOENT EACCESS EBOUND EBUDGET EREMOTE ETIME ECANCEL = delegate;
}

/// A request to another agent to do a part of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// The agent's name.
    pub agent: String,
    /// The message, which must contain the whole task.
    pub message: String,
    /// The idempotency key of the call: a repeated call has the same key. `None` if the run is not
    /// recorded.
    pub key: Option<String>,
}

/// The outcome of a delegation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delegated {
    /// The agent's answer.
    Answer(String),
    /// The agent's run is suspended until a user answers these questions.
    Waits(Vec<String>),
}

/// The port to other agents.
///
/// A failure has the code `EACCESS` if the calling run may not delegate to the agent, `ENOENT` if
/// the agent is unknown, `EREMOTE` if the child run failed, `ECANCEL` if it was cancelled, and
/// `EBUDGET` or `ETIME` if it reached a limit.
pub trait Delegates: Send + Sync {
    /// Sends the message to the agent and returns the outcome of the child run.
    fn ask(&self, delegation: Delegation) -> PortFuture<'_, Delegated>;

    /// Returns true if the agent's model is, or may be, at another endpoint than the model of the
    /// calling run. A question to such an agent leaves the machine for another provider. By
    /// default, nothing is known, so that every agent may be elsewhere.
    fn is_elsewhere(&self, _agent: &str) -> bool {
        true
    }
}

/// The `agent` grant: access to other agents.
pub struct Agents(pub Arc<dyn Delegates>);

impl Config for Agents {
    const CAPABILITIES: &'static [&'static str] = &["agent"];
}

async fn delegate(
    agents: Arc<Agents>,
    run: &mut Run,
    agent: String,
    message: String,
) -> Result<String, Failure> {
    if message.trim().is_empty() {
        return Err(Failure::new(Code::EBOUND, "the message is empty; describe the task in it"));
    }
    let key = run.change_key();
    let pause = run.pause();
    let delegated = agents.0.ask(Delegation { agent, message, key }).await;
    drop(pause);
    match delegated? {
        Delegated::Answer(text) => Ok(text),
        Delegated::Waits(questions) => {
            let suspended = questions.iter().map(|question| run.suspend(question)).last();
            Err(suspended.unwrap_or_else(|| Failure::new(Code::ECANCEL, "the agent waits")))
        }
    }
}

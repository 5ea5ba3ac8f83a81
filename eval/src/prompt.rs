//! The fingerprint of a prompt, which distinguishes attempts with different prompts.

use std::sync::LazyLock;

use regex::Regex;
use wattle_agent::agents::{AgentSpec, Agents};
use wattle_agent::host::ExampleWorld;
use wattle_agent::host::catalog::Fixtures;
use wattle_agent::host::machine::Dialect;
use wattle_agent::model::FunctionTool;
use wattle_agent::{Host, Settings};

use crate::agent::parts;
use crate::attempt::Approach;
use crate::baseline;
use crate::suite::fingerprint;
use crate::trial::grants;

static DATE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\d{4}-\d{2}-\d{2}").ok());

/// Returns a hash of everything that a model receives before a task: the system prompt, the
/// functions that it may call, and the declarations of the agents. Dates are ignored, so that an
/// evaluation can be resumed on another day.
pub(crate) async fn fingerprint_of(
    host: &Host,
    settings: &Settings,
    approach: Approach,
    agent: Option<&AgentSpec>,
    agents: &Agents,
) -> Result<String, String> {
    let (host, settings, tree) = match agent {
        None => (host.clone(), settings.clone(), String::new()),
        Some(agent) => {
            let parts = parts(agent, host, settings, agents)?;
            (parts.host, parts.settings, tree_of(agent, agents)?)
        }
    };
    let scene = ExampleWorld::new(&Fixtures::default()).await?;
    let grants = grants(&host, &scene, false);
    let listing = host.listing(None, "");
    let (prompt, functions) = match approach {
        Approach::Programs => {
            (host.prompt(&settings, &grants, &listing, Dialect::Text).to_string(), String::new())
        }
        Approach::Native => (
            host.prompt(&settings, &grants, &listing, Dialect::Native).to_string(),
            text(&host.functions(&settings, &grants))?,
        ),
        Approach::Tools => {
            let (system, schemas) = baseline::instructions(&host, &grants);
            (system.to_owned(), text(&schemas)?)
        }
    };
    let prompt = match DATE.as_ref() {
        Some(date) => date.replace_all(&prompt, "DATE").into_owned(),
        None => prompt,
    };
    let mut parts = vec![prompt.as_str(), functions.as_str()];
    // If there is no agent, the hash must match the hashes in existing results files.
    parts.extend(agent.map(|_| tree.as_str()));
    Ok(fingerprint(&parts))
}

/// Returns the declarations of an agent and of all agents that it can reach by delegation, without
/// their examples.
fn tree_of(agent: &AgentSpec, agents: &Agents) -> Result<String, String> {
    let mut tree = vec![AgentSpec { examples: Vec::new(), ..agent.clone() }];
    let mut at = 0;
    while let Some(agent) = tree.get(at) {
        let new = agent.delegates.iter().filter(|one| tree.iter().all(|own| own.name != one.id));
        let new: Vec<AgentSpec> = new
            .filter_map(|one| agents.get(&one.id))
            .map(|agent| AgentSpec { examples: Vec::new(), ..agent.as_ref().clone() })
            .collect();
        tree.extend(new);
        at += 1;
    }
    serde_json::to_string(&tree).map_err(|why| why.to_string())
}

fn text(functions: &[FunctionTool]) -> Result<String, String> {
    serde_json::to_string(functions).map_err(|why| why.to_string())
}

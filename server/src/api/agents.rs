//! Routes for the declared agents.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use schemars::JsonSchema;
use serde::Serialize;
use wattle_agent::agents::AgentSpec;
use wattle_agent::host::Scope;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Path;
use crate::route::NOT_FOUND;
use crate::route::Route;
use crate::state::Shared;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new("GET", "/api/agents", Scope::Read, get(list), "Lists the agents.")
            .json::<AgentList>(200, "The agents, by name."),
        Route::new("GET", "/api/agents/{name}", Scope::Read, get(show), "Returns an agent.")
            .json::<AgentView>(200, "The agent.")
            .errors(&[NOT_FOUND]),
    ]
}

/// A list of agents.
#[derive(Debug, Serialize, JsonSchema)]
struct AgentList {
    /// The agents, sorted by name.
    agents: Vec<AgentView>,
}

/// An agent that requests may choose.
#[derive(Debug, Serialize, JsonSchema)]
struct AgentView {
    /// The name.
    name: String,
    /// The display name. May be empty.
    title: String,
    /// The purpose of the agent. May be empty.
    description: String,
    /// The version set by the author. May be empty.
    version: String,
    /// The names of the agents to which this agent may delegate.
    delegates: Vec<String>,
}

impl From<&AgentSpec> for AgentView {
    fn from(agent: &AgentSpec) -> AgentView {
        AgentView {
            name: agent.name.clone(),
            title: agent.title.clone(),
            description: agent.description.clone(),
            version: agent.version.clone(),
            delegates: agent.delegates.iter().map(|delegate| delegate.id.clone()).collect(),
        }
    }
}

async fn list(State(shared): State<Arc<Shared>>, _: Caller) -> Json<AgentList> {
    let agents = shared.app.agents().list();
    Json(AgentList { agents: agents.iter().map(|agent| agent.as_ref().into()).collect() })
}

async fn show(
    State(shared): State<Arc<Shared>>,
    _: Caller,
    Path(name): Path<String>,
) -> Result<Json<AgentView>, ApiError> {
    let found = shared.app.agents().get(&name);
    let agent = found.ok_or_else(|| ApiError::not_found("agent", &name))?;
    Ok(Json(agent.as_ref().into()))
}

//! Routes for the declared agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use schemars::JsonSchema;
use serde::Serialize;
use wattle_agent::Scope;
use wattle_agent::agents::{AgentSpec, DEFAULT_AGENT};

use super::NOT_FOUND;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::origin::RunOrigin;
use crate::path::Path;
use crate::route::Route;
use crate::state::Shared;

pub(super) fn routes() -> Vec<Route> {
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

/// Returns the agent named in a caller's request, or the default agent if the request names none. Adds the request's context values to the agent and checks that the agent can be used.
pub(crate) async fn choose(
    shared: &Shared,
    caller: &Caller,
    name: Option<&str>,
    context: &BTreeMap<String, String>,
) -> Result<Arc<AgentSpec>, ApiError> {
    let invalid = |why: String| ApiError::invalid_field(format!("`agent`: {why}"));
    let (tenant, name) = (caller.store.tenant(), name.unwrap_or(DEFAULT_AGENT));
    let found = shared.app.agents().load(tenant, name).await;
    let mut agent = found.map_err(|error| invalid(error.to_string()))?;
    if !context.is_empty() {
        agent = Arc::new(agent.with_context(context));
    }
    shared.app.agent_parts(&RunOrigin::of_agent(&agent, None, 1)).map_err(invalid)?;
    Ok(agent)
}

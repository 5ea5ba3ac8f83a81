//! `GET /v1/models` and `GET /v1/models/{id}`: the model names that requests may use.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use schemars::JsonSchema;
use serde::Serialize;
use wattle_agent::agents::AgentSpec;
use wattle_agent::host::Scope;

use super::{AGENT, check_model};
use crate::route::NOT_FOUND;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Path;
use crate::route::Route;
use crate::start::choose;
use crate::state::Shared;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new("GET", "/v1/models", Scope::Read, get(list), "Lists the models.")
            .json::<ModelList>(200, "The models."),
        Route::new("GET", "/v1/models/{id}", Scope::Read, get(show), "Returns a model.")
            .json::<ModelView>(200, "The model.")
            .errors(&[NOT_FOUND]),
    ]
}

/// Returns the names that a request may use as its model: [`AGENT`], the name of the server's own
/// model, and the names of the agents.
pub(super) fn names(shared: &Shared) -> Vec<String> {
    let default = [AGENT.to_owned(), shared.app.model().name().to_owned()];
    let mut names: Vec<String> = default.into_iter().collect();
    let agents = shared.app.agents().list();
    names.extend(agents.into_iter().map(|agent| agent.name.clone()));
    names
}

/// Returns the agent that a request's model name selects.
pub(super) async fn agent(
    shared: &Shared,
    caller: &Caller,
    name: &str,
) -> Result<Arc<AgentSpec>, ApiError> {
    let is_default = name == AGENT || name == shared.app.model().name();
    let is_agent = shared.app.agents().is_declared(name);
    let name = Some(name).filter(|_| is_agent || !is_default);
    choose(shared, caller, name, &BTreeMap::new()).await
}

/// A list of models.
#[derive(Debug, Serialize, JsonSchema)]
struct ModelList {
    /// Always `list`.
    object: String,
    /// The models.
    data: Vec<ModelView>,
}

/// A model.
#[derive(Debug, Serialize, JsonSchema)]
struct ModelView {
    /// The name.
    id: String,
    /// Always `model`.
    object: String,
    /// Always 0.
    created: u64,
    /// Always `wattle`.
    owned_by: String,
}

fn view(id: String) -> ModelView {
    ModelView { id, object: "model".to_owned(), created: 0, owned_by: AGENT.to_owned() }
}

async fn list(State(shared): State<Arc<Shared>>, _: Caller) -> Json<ModelList> {
    let data = names(&shared).into_iter().map(view).collect();
    Json(ModelList { object: "list".to_owned(), data })
}

async fn show(
    State(shared): State<Arc<Shared>>,
    _: Caller,
    Path(id): Path<String>,
) -> Result<Json<ModelView>, ApiError> {
    check_model(&shared, &id)?;
    Ok(Json(view(id)))
}

//! Routes for the tenant's variables, which its programs share.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, put};
use schemars::JsonSchema;
use serde::Serialize;
use wattle_agent::host::capability::kv::Backend as _;
use wattle_agent::host::{Scope, Stored};

use crate::body::read_bytes;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Path;
use crate::route::NOT_FOUND;
use crate::route::Route;
use crate::state::Shared;

pub(crate) fn routes() -> Vec<Route> {
    let variable = "/api/vars/{key}";
    vec![
        Route::new("GET", "/api/vars", Scope::Read, get(list), "Lists the variables.")
            .json::<VarList>(200, "The variables, by key."),
        Route::new("GET", variable, Scope::Read, get(read), "Returns a variable.")
            .media("application/octet-stream", "The value.")
            .errors(&[NOT_FOUND]),
        Route::new("PUT", variable, Scope::Run, put(write), "Sets a variable.")
            .bytes()
            .empty(204, "The variable is set."),
        Route::new("DELETE", variable, Scope::Run, delete(remove), "Removes a variable.")
            .empty(204, "The variable is removed.")
            .errors(&[NOT_FOUND]),
    ]
}

/// A list of variables.
#[derive(Debug, Serialize, JsonSchema)]
struct VarList {
    /// The variables, sorted by key.
    vars: Vec<Var>,
}

/// A variable, without its value.
#[derive(Debug, Serialize, JsonSchema)]
struct Var {
    /// The key.
    key: String,
    /// The size of the value, in bytes.
    size: u64,
}

async fn list(State(_): State<Arc<Shared>>, caller: Caller) -> Result<Json<VarList>, ApiError> {
    caller.reserve(Stored::Variables).await?;
    let sizes = caller.store.variable_sizes().await?;
    Ok(Json(VarList { vars: sizes.into_iter().map(|(key, size)| Var { key, size }).collect() }))
}

async fn read(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    Path(key): Path<String>,
) -> Result<Response, ApiError> {
    let value = caller.store.variables().get(key.clone()).await?;
    let value = value.ok_or_else(|| ApiError::not_found("variable", &key))?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, Body::from(value)).into_response())
}

async fn write(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(key): Path<String>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let value = read_bytes(request, shared.limits.body_bytes, &shared.limits).await?.to_vec();
    caller.store.variables().update(key, Box::new(move |_| Ok(Some(value.clone())))).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    Path(key): Path<String>,
) -> Result<StatusCode, ApiError> {
    let variables = caller.store.variables();
    if variables.get(key.clone()).await?.is_none() {
        return Err(ApiError::not_found("variable", &key));
    }
    variables.update(key, Box::new(|_| Ok(None))).await?;
    Ok(StatusCode::NO_CONTENT)
}

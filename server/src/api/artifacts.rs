//! The route for the artifacts of runs: data that programs store for the application.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use wattle_agent::host::journal::{self, Journal as _, SharedJournal};
use wattle_agent::host::{Scope, Stored};

use super::files::download;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Path;
use crate::route::NOT_FOUND;
use crate::route::Route;
use crate::state::Shared;

pub(crate) fn routes() -> Vec<Route> {
    let artifact = "/api/run/{id}/artifacts/{name}";
    vec![
        Route::new("GET", artifact, Scope::Read, get(read), "Returns the data of an artifact.")
            .media("application/octet-stream", "The data.")
            .errors(&[NOT_FOUND]),
    ]
}

async fn read(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    Path((id, name)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let run = caller.store.run(&id).await?.ok_or_else(|| ApiError::not_found("run", &id))?;
    caller.reserve(Stored::Record(&id)).await?;
    let journal: SharedJournal = Arc::new(caller.store);
    let found = journal::artifacts(&journal, &run).await?.into_iter().find(|one| one.name == name);
    Ok(download(found.ok_or_else(|| ApiError::not_found("artifact", &name))?.data))
}

//! Routes for the tenant's memory, which programs in all of the tenant's sessions can search.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::host::Scope;
use wattle_agent::host::capability::memory::{
    Item, Memory as _, MemoryText, NewItem, Scope as Owner,
};
use wattle_agent::host::capability::search;

use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Path;
use crate::query::Query;
use crate::route::Route;
use crate::route::{INVALID, NOT_FOUND, NOT_JSON};
use crate::state::Shared;

/// Default and maximum number of items in a response.
const ITEMS: (usize, usize) = (100, 1_000);

pub(crate) fn routes() -> Vec<Route> {
    let (memory, item) = ("/api/memory", "/api/memory/{id}");
    vec![
        Route::new("GET", memory, Scope::Read, get(list), "Lists or searches the memory.")
            .query::<MemoryQuery>()
            .json::<MemoryList>(200, "The items: the newest first, or the best matches first.")
            .errors(&[INVALID]),
        Route::new("POST", memory, Scope::Run, post(add), "Adds an item to the memory.")
            .body::<NewMemory>()
            .json::<AddedMemory>(201, "The item, or the one that has the same text already.")
            .errors(&[NOT_JSON, INVALID]),
        Route::new("DELETE", item, Scope::Run, delete(remove), "Removes an item of the memory.")
            .empty(204, "The item is removed.")
            .errors(&[NOT_FOUND]),
    ]
}

/// A filter for items.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryQuery {
    /// The words to search for. Without them, all items are listed.
    words: Option<String>,
    /// Maximum number of items: 1 to 1,000. Default: 100.
    limit: Option<usize>,
}

/// A list of memory items.
#[derive(Debug, Serialize, JsonSchema)]
struct MemoryList {
    /// The items.
    items: Vec<MemoryItem>,
}

/// A memory item.
#[derive(Debug, Serialize, JsonSchema)]
struct MemoryItem {
    /// The item's id.
    id: i32,
    /// The text.
    text: String,
    /// The time at which the item was added, in milliseconds since 1970.
    created: i64,
}

/// A new memory item.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewMemory {
    /// The text, at most 4,000 characters long.
    text: String,
}

/// The id of an added item.
#[derive(Debug, Serialize, JsonSchema)]
struct AddedMemory {
    /// The item's id.
    id: i32,
}

async fn list(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    Query(query): Query<MemoryQuery>,
) -> Result<Json<MemoryList>, ApiError> {
    let (default, max) = ITEMS;
    let limit = query.limit.unwrap_or(default);
    if !(1..=max).contains(&limit) {
        return Err(ApiError::invalid_field(format!("`limit` is 1 to {max}")));
    }
    let memory = caller.store.memory(None);
    let items = match query.words {
        None => memory.list(limit).await?,
        Some(words) => {
            let words = search::Query::read(&words)
                .ok_or_else(|| ApiError::invalid_field("`words` has no words"))?;
            let found = memory.by_words(words).await?;
            memory.items(found.into_iter().take(limit).map(|(id, _)| id).collect()).await?
        }
    };
    let view = |Item { id, text, made: created, .. }| MemoryItem { id, text, created };
    Ok(Json(MemoryList { items: items.into_iter().map(view).collect() }))
}

async fn add(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<AddedMemory>), ApiError> {
    let NewMemory { text } = read_json(request, &shared.limits).await?;
    let text = MemoryText::new(&text).map_err(|why| ApiError::invalid_field(why.reason))?;
    let item = NewItem { text, scope: Owner::Tenant };
    let id = caller.store.memory(None).add(None, item).await?;
    Ok((StatusCode::CREATED, Json(AddedMemory { id })))
}

async fn remove(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let missing = || ApiError::not_found("item of the memory", &id);
    let number = id.parse().map_err(|_| missing())?;
    if caller.store.memory(None).remove(None, number).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(missing())
    }
}

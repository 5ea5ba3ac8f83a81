//! `GET /api/run/{id}/stream`: follows a run, as server-sent events or over a WebSocket.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::header;
use axum::response::Response;
use axum::routing::get;
use schemars::JsonSchema;
use serde::Deserialize;
use wattle_agent::Scope;
use wattle_agent::machine::Envelope;
use wattle_agent::service::FollowError;

use super::{INVALID, NOT_FOUND};
use crate::caller::Caller;
use crate::connection::Seat;
use crate::error::ApiError;
use crate::query::Query;
use crate::route::Route;
use crate::state::Shared;
use crate::stream::{sse, websocket};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "GET",
            "/api/run/{id}/stream",
            Scope::Read,
            get(stream),
            "Follows a run: its recorded events, then its live ones.",
        )
        .query::<StreamQuery>()
        .events::<Envelope>("The run's events.")
        .errors(&[NOT_FOUND, INVALID]),
    ]
}

/// The position in a run's events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StreamQuery {
    /// Only events with numbers above this one. The header `Last-Event-ID` means the same.
    after: Option<u64>,
}

async fn stream(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<StreamQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let last = request.headers().get("last-event-id");
    let last =
        match last.map(|value| value.to_str().unwrap_or_default().trim()) {
            None | Some("") => None,
            Some(text) => Some(text.parse().map_err(|_| {
                ApiError::invalid_field("`Last-Event-ID` is the number of an event")
            })?),
        };
    let after = last.or(query.after).unwrap_or(0);
    let follower = shared.service.follow(&caller.store, &id, after);
    follower.check().await.map_err(|error| match error {
        FollowError::Unknown => ApiError::not_found("run", &id),
        other => other.into(),
    })?;
    let upgrades = request
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !upgrades {
        let (heartbeat, stopping) = (shared.limits.heartbeat, shared.stopping.clone());
        return Ok(sse(follower, after, heartbeat, stopping, None));
    }
    let (mut parts, _) = request.into_parts();
    // The socket counts as a connection for as long as it is open.
    let seat = parts.extensions.get::<Seat>().cloned();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &())
        .await
        .map_err(|rejection| ApiError::bad_upgrade(&rejection.body_text()))?;
    Ok(upgrade.max_message_size(1 << 10).on_upgrade(async move |socket| {
        let _seat = seat;
        websocket(socket, follower, shared.stopping.clone(), shared.limits.write_time).await;
    }))
}

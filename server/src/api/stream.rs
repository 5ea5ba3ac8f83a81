//! `GET /api/run/{id}/stream`: follows a run, as server-sent events or over a WebSocket.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header;
use axum::response::Response;
use axum::routing::get;
use schemars::JsonSchema;
use serde::Deserialize;
use wattle_agent::host::Scope;
use wattle_agent::host::machine::Envelope;
use wattle_agent::host::service::{ChunkEvent, FollowError, TreeCursor};

use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Path;
use crate::query::Query;
use crate::route::Route;
use crate::route::{INVALID, NOT_FOUND};
use crate::seat::Seat;
use crate::state::Shared;
use crate::stream::{RunEvents, Source, sse, websocket};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "GET",
            "/api/run/{id}/stream",
            Scope::Read,
            get(stream),
            "Follows a run: its recorded events, then its live ones.",
        )
        .query::<StreamQuery>()
        .events::<Envelope, ChunkEvent>("The run's events, or its chunks.")
        .errors(&[NOT_FOUND, INVALID]),
    ]
}

/// Maximum size of the WebSocket frames and messages that a client sends, in bytes. Their content
/// is ignored.
const MAX_MESSAGE: usize = 1 << 10;

/// The form in which a stream sends a run's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum View {
    /// The events, unchanged.
    #[default]
    Events,
    /// Chunks: the answer as the model writes it, thoughts, calls, errors, and the end of the run.
    Chunks,
}

/// The query parameters for the stream of a new run.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamForm {
    /// The form of the events. Default: `events`.
    #[serde(default)]
    view: View,
    /// If true, the stream includes the events of all descendants of the run.
    #[serde(default)]
    tree: bool,
}

impl StreamForm {
    /// Returns the events of a new run in this form.
    pub(super) fn events(self, shared: &Shared, caller: &Caller, run: &str) -> RunEvents {
        let source = if self.tree {
            Source::Tree(shared.service.follow_tree(&caller.store, run, None))
        } else {
            Source::run(shared.service.follow(&caller.store, run, 0), 0)
        };
        RunEvents::new(source, self.view == View::Chunks)
    }
}

/// The position at which a stream starts, and the form of its events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StreamQuery {
    /// The `id` of the event after which the stream starts: a number, or `RUN:SEQ` in the stream of
    /// a tree. The header `Last-Event-ID` has the same effect.
    after: Option<String>,
    /// The form of the events. Default: `events`.
    #[serde(default)]
    view: View,
    /// If true, the stream includes the events of all descendants of the run.
    #[serde(default)]
    tree: bool,
}

async fn stream(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<StreamQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let last = request.headers().get("last-event-id");
    let last = last.map(|value| value.to_str().unwrap_or_default().trim().to_owned());
    let after = last.filter(|last| !last.is_empty()).or(query.after);
    let source = source(&shared, &caller, &id, after.as_deref(), query.tree).await?;
    let events = RunEvents::new(source, query.view == View::Chunks);
    let upgrades = request
        .headers()
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !upgrades {
        let (heartbeat, stopping) = (shared.limits.heartbeat, shared.stopping.clone());
        return Ok(sse(events, heartbeat, stopping, None));
    }
    let (mut parts, _) = request.into_parts();
    // The socket counts as a connection and as a stream for as long as it is open.
    let held = (parts.extensions.get::<Seat>().cloned(), caller.stream);
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &())
        .await
        .map_err(|rejection| ApiError::bad_upgrade(&rejection.body_text()))?;
    // A frame is buffered until it is complete.
    let upgrade = upgrade.max_frame_size(MAX_MESSAGE).max_message_size(MAX_MESSAGE);
    Ok(upgrade.on_upgrade(async move |socket| {
        let (_seat, stream) = held;
        let following =
            websocket(socket, events, shared.stopping.clone(), shared.limits.write_time);
        let revoked = stream.as_ref().map(|slot| slot.revoked().clone()).unwrap_or_default();
        tokio::select! {
            () = following => {}
            () = revoked.cancelled() => {}
        }
    }))
}

/// Follows a run, or its whole tree if `tree` is true, starting after the event `after`.
async fn source(
    shared: &Shared,
    caller: &Caller,
    id: &str,
    after: Option<&str>,
    tree: bool,
) -> Result<Source, ApiError> {
    let refused = |error| match error {
        FollowError::Unknown => ApiError::not_found("run", id),
        FollowError::Below(_) | FollowError::UnknownEvent(_) => {
            ApiError::invalid_field(format!("`tree`: {error}"))
        }
        other => other.into(),
    };
    if tree {
        let cursor = |text: &str| {
            text.parse::<TreeCursor>()
                .map_err(|why| ApiError::invalid_field(format!("the event {text:?}: {why}")))
        };
        // 0 is the beginning of the stream, which is before any event.
        let after = after.filter(|after| *after != "0").map(cursor).transpose()?;
        let mut follower = shared.service.follow_tree(&caller.store, id, after);
        follower.check().await.map_err(refused)?;
        return Ok(Source::Tree(follower));
    }
    let number = |text: &str| {
        text.parse().map_err(|_| {
            ApiError::invalid_field("`after` and `Last-Event-ID` are the number of an event")
        })
    };
    let after = after.map(number).transpose()?.unwrap_or(0);
    let follower = shared.service.follow(&caller.store, id, after);
    follower.check().await.map_err(refused)?;
    Ok(Source::run(follower, after))
}

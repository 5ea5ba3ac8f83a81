//! The routes.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::error::ApiError;
use crate::gate::{self, Gate};
use crate::sessions::Sessions;
use crate::settings::{Limits, ServerSettings};
use crate::token::Token;
use crate::{auth, chat};

/// The state that all requests share.
pub(crate) struct Shared {
    pub(crate) app: App,
    pub(crate) token: Token,
    pub(crate) gate: Gate,
    pub(crate) limits: Limits,
    pub(crate) sessions: Sessions,
    /// A permit for each run that may be active.
    pub(crate) slots: Arc<Semaphore>,
    /// The active runs.
    pub(crate) runs: TaskTracker,
    /// Cancelled when the server accepts no further runs.
    pub(crate) stopping: CancellationToken,
    /// Cancelled when the runs must end.
    pub(crate) cancelled: CancellationToken,
    /// Cancelled when the connections must end at once.
    pub(crate) aborted: CancellationToken,
}

impl Shared {
    pub(crate) fn new(settings: ServerSettings, app: App) -> Self {
        Shared {
            app,
            gate: Gate::new(&settings),
            token: settings.token,
            limits: settings.limits,
            sessions: Sessions::new(settings.limits.waiting),
            slots: Arc::new(Semaphore::new(settings.limits.runs.min(Semaphore::MAX_PERMITS))),
            runs: TaskTracker::new(),
            stopping: CancellationToken::new(),
            cancelled: CancellationToken::new(),
            aborted: CancellationToken::new(),
        }
    }
}

/// Returns the routes with their checks.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let state = || Arc::clone(shared);
    let protected = Router::new()
        .route("/chat", post(chat::chat))
        .route_layer(from_fn_with_state(state(), auth::require));
    Router::new()
        .route("/healthz", get(health))
        .merge(protected)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(state(), gate::pass))
        .with_state(state())
}

async fn health() -> Response {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")})).into_response()
}

async fn not_found(request: Request) -> ApiError {
    ApiError::not_found(request.uri().path())
}

async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::method_not_allowed(request.method().as_str(), request.uri().path())
}

//! Routes for information about the server: health, readiness, metrics, settings and traces.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::host::journal::Journal as _;
use wattle_agent::host::{Scope, Stored, trace};
use wattle_agent::model::{BreakerState, EndpointHealth, endpoints};

use crate::caller::Caller;
use crate::error::ApiError;
use crate::metrics::RunCounts;
use crate::operator::SettingLine;
use crate::path::Path;
use crate::query::Query;
use crate::route::Route;
use crate::route::{FULL, NOT_FOUND, NOT_OPERATOR};
use crate::state::Shared;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::public("GET", "/healthz", get(health), "Reports that the server runs.")
            .json::<Health>(200, "The server runs."),
        Route::public("GET", "/readyz", get(ready), "Reports whether the server accepts runs.")
            .query::<ReadyQuery>()
            .json::<Readiness>(200, "The server accepts runs.")
            .errors(&[FULL]),
        Route::new(
            "POST",
            "/admin/drain",
            Scope::Admin,
            post(drain),
            "Hands the runs of this server over to the others, and accepts no further ones.",
        )
        .json::<Drain>(202, "The server drains. A request while it does changes nothing.")
        .errors(&[NOT_OPERATOR]),
        Route::new("GET", "/metrics", Scope::Read, get(metrics), "Returns counters.")
            .media("application/openmetrics-text", "The counters in the OpenMetrics format.")
            .errors(&[NOT_OPERATOR]),
        Route::new("GET", "/api/settings", Scope::Read, get(settings), "Returns the settings.")
            .json::<Settings>(200, "The settings, without secrets."),
        Route::new(
            "GET",
            "/api/traces/{run}",
            Scope::Read,
            get(trace_of),
            "Returns the trace of a run.",
        )
        .json::<Trace>(200, "The steps, in order.")
        .errors(&[NOT_FOUND]),
    ]
}

/// The health of the server.
#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// Always `ok`.
    status: String,
    /// The server's version.
    version: String,
}

/// What a probe asks for.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReadyQuery {
    /// If present, the answer has the state of the model.
    verbose: Option<String>,
}

/// The readiness of the server.
#[derive(Debug, Serialize, JsonSchema)]
struct Readiness {
    #[serde(flatten)]
    health: Health,
    /// The state of the configured model, if `verbose` asks for it. It does not affect the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelState>,
}

/// The state of a model, as this server's own requests found it.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ModelState {
    /// The last request was answered, or none was sent yet.
    Ok,
    /// The model does not answer. Requests wait.
    Unavailable,
    /// The provider rejected the key, or its account has no credit left.
    KeyRejected,
    /// The model cannot be asked: a setting is missing or invalid.
    NotConfigured,
}

/// The state of a server that no longer accepts runs.
#[derive(Debug, Serialize, JsonSchema)]
struct Drain {
    /// Number of runs that are still active on this server.
    active: usize,
}

/// The server's settings and the caller's permissions.
#[derive(Debug, Serialize, JsonSchema)]
struct Settings {
    /// The server's version.
    version: String,
    /// The model's name.
    model: String,
    /// The reason why runs cannot ask a model. Null if they can.
    model_problem: Option<String>,
    /// The models that a request may name.
    models: Vec<String>,
    /// The agent's name.
    agent: String,
    /// The tenant of the caller's token.
    tenant: String,
    /// The scope of the caller's token: `read`, `run` or `admin`.
    scope: String,
    /// If true, the caller may request trusted runs.
    exec: bool,
    /// If true, the caller may apply the changes of sessions to the server's folder.
    applies: bool,
    /// Default maximum number of steps per message.
    max_steps: u32,
    /// Maximum size of a JSON body, in bytes.
    body_bytes: usize,
    /// Maximum size of a file, in bytes.
    file_bytes: usize,
    /// The operator's settings with their origins, in the order of `docs/configuration.md`. Empty
    /// unless the caller is an administrator of the server's own tenant.
    settings: Vec<SettingLine>,
}

/// The trace of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Trace {
    /// The steps, in order, as in `_steps.jsonl`.
    steps: Vec<serde_json::Value>,
}

async fn health() -> Json<Health> {
    let (status, version) = ("ok".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    Json(Health { status, version })
}

async fn drain(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
) -> Result<(StatusCode, Json<Drain>), ApiError> {
    if !shared.is_operators(&caller) {
        return Err(ApiError::not_operator());
    }
    if !shared.service.is_stopping() {
        let draining = Arc::clone(&shared);
        tokio::spawn(async move { draining.drain().await });
        // Lets the task start, so that the service refuses runs from now on.
        tokio::task::yield_now().await;
    }
    Ok((StatusCode::ACCEPTED, Json(Drain { active: shared.service.active() })))
}

async fn ready(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<ReadyQuery>,
) -> Result<Json<Readiness>, ApiError> {
    if shared.service.is_stopping() {
        return Err(ApiError::stopping());
    }
    shared.app.own().store.check().await.map_err(|cause| {
        tracing::error!(%cause, "the store cannot be written");
        ApiError::unavailable(cause.reason())
    })?;
    let Json(health) = health().await;
    Ok(Json(Readiness { health, model: query.verbose.map(|_| model_state(&shared)) }))
}

fn model_state(shared: &Shared) -> ModelState {
    if shared.app.model_problem().is_some() {
        return ModelState::NotConfigured;
    }
    let model = shared.app.model();
    let is_own = |of: &EndpointHealth| of.endpoint == model.endpoint() && of.model == model.name();
    match endpoints().into_iter().find(is_own) {
        Some(EndpointHealth { rejects_key: true, .. }) => ModelState::KeyRejected,
        Some(of) if of.state != BreakerState::Closed => ModelState::Unavailable,
        _ => ModelState::Ok,
    }
}

async fn metrics(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<Response, ApiError> {
    if !shared.is_operators(&caller) {
        return Err(ApiError::not_operator());
    }
    let queue = shared.app.own().store.file().queue_state().await;
    let queue = queue.inspect_err(|cause| tracing::error!(%cause, "the queue cannot be read"));
    let text = shared.metrics.text(&RunCounts {
        active: shared.service.active(),
        ended: shared.service.ended(),
        models: endpoints(),
        moves: shared.service.moves(),
        queue: queue.ok(),
    });
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media)], text).into_response())
}

async fn settings(State(shared): State<Arc<Shared>>, caller: Caller) -> Json<Settings> {
    let model = shared.app.model().name().to_owned();
    let tenant = caller.store.tenant();
    Json(Settings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        models: shared.app.model_names(),
        model,
        model_problem: shared.app.model_problem().map(str::to_owned),
        agent: shared.app.settings().agent.clone(),
        tenant: tenant.to_string(),
        scope: caller.scope.name().to_owned(),
        exec: shared.app.may_trust(tenant),
        applies: shared.app.base().is_some()
            && shared.is_operators(&caller)
            && caller.require(Scope::Admin).is_ok(),
        max_steps: shared.app.settings().machine.max_steps,
        body_bytes: shared.limits.body_bytes,
        file_bytes: shared.limits.file_bytes,
        settings: operator_settings(&shared, &caller),
    })
}

/// Returns the operator's settings that the caller may see, without secrets.
fn operator_settings(shared: &Shared, caller: &Caller) -> Vec<SettingLine> {
    if !shared.is_operators(caller) || caller.require(Scope::Admin).is_err() {
        return Vec::new();
    }
    let host = shared.app.host(caller.store.tenant());
    let mask = host.mask();
    let line =
        |line: &SettingLine| SettingLine { value: mask.json(line.value.clone()), ..line.clone() };
    shared.app.operator().settings.iter().map(line).collect()
}

async fn trace_of(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(run): Path<String>,
) -> Result<Json<Trace>, ApiError> {
    let view = shared.service.get(&caller.store, &run).await?;
    let view = view.ok_or_else(|| ApiError::not_found("run", &run))?;
    caller.reserve(Stored::Events { run: &run, after: 0, limit: u32::MAX }).await?;
    let events = caller.store.events(&run, 0, u32::MAX).await?;
    let steps = trace::steps_of(&run, (&view.agent, &view.model), &events);
    let steps = steps.iter().map(|step| serde_json::to_value(step).unwrap_or_default());
    Ok(Json(Trace { steps: steps.collect() }))
}

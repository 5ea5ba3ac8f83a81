//! `POST /chat`: starts a run for a message in a session and responds with the run's events.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use axum::routing::post;
use schemars::JsonSchema;
use serde::Deserialize;
use wattle_agent::host::machine::Envelope;
use wattle_agent::host::service::ChunkEvent;
use wattle_agent::host::{RunRequest, Scope};

use super::stream::StreamForm;
use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::{MessageText, SessionId};
use crate::origin::RunOrigin;
use crate::query::Query;
use crate::route::Route;
use crate::route::{BUSY, FULL, INVALID, NOT_JSON};
use crate::start::{StartedRun, choose, start};
use crate::state::Shared;
use crate::stream::sse;

/// The header that reports whether a requested trusted run is allowed: `granted` or `not
/// permitted`.
pub(super) const EXEC: HeaderName = HeaderName::from_static("x-wattle-exec");
/// The header with the run's id.
const RUN: HeaderName = HeaderName::from_static("x-run-id");
/// The header with the session's id.
const SESSION: HeaderName = HeaderName::from_static("x-session-id");

/// Default maximum number of steps per message.
const STEPS: u32 = 10;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new("POST", "/chat", Scope::Run, post(chat), "Runs one message of a session.")
            .query::<StreamForm>()
            .body::<ChatRequest>()
            .events::<Envelope, ChunkEvent>("The run's events, or its chunks.")
            .errors(&[NOT_JSON, INVALID, BUSY, FULL]),
    ]
}

/// A message in a session, with the options for its run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChatRequest {
    /// The message.
    message: MessageText,
    /// The session that the message continues or starts. Without it, the server creates a session.
    session_id: Option<SessionId>,
    /// The agent's name, as listed by `GET /api/agents`. Default: `default`.
    agent: Option<String>,
    /// Values for the agent's tools, traits and memory. They are never sent to a model.
    #[serde(default)]
    context: BTreeMap<String, String>,
    /// If true, the run is trusted. The operator must allow trusted runs.
    exec: Option<bool>,
    /// The effect of a client disconnect on the run.
    #[serde(default)]
    on_disconnect: OnDisconnect,
}

/// The effect of a client disconnect on its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnDisconnect {
    /// The run continues.
    #[default]
    Continue,
    /// The run is cancelled.
    Cancel,
}

async fn chat(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Query(form): Query<StreamForm>,
    request: Request,
) -> Result<Response, ApiError> {
    let ChatRequest { message, session_id, agent, context, exec, on_disconnect } =
        read_json(request, &shared.limits).await?;
    let exec = exec.unwrap_or(false);
    let granted = shared.app.may_trust(caller.store.tenant()) && exec;
    let agent = choose(&shared, &caller, agent.as_deref(), &context).await?;
    let steps = shared.app.steps(STEPS);
    let origin = RunOrigin { exec: granted, ..RunOrigin::of_agent(&agent, None, steps) };
    let (request, session) = origin.request(message, session_id);
    let needs_client = on_disconnect == OnDisconnect::Cancel;
    let request = RunRequest { needs_client, ..request };
    let StartedRun { id: run, guard } = start(&shared, &caller, request).await?;
    let events = form.events(&shared, &caller, &run);
    let mut response = sse(events, shared.limits.heartbeat, shared.stopping.clone(), guard);
    let headers = response.headers_mut();
    for (name, value) in [(RUN, &run), (SESSION, &session)] {
        // Both ids are valid header values.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    if exec {
        let answer = if granted { "granted" } else { "not permitted" };
        headers.insert(EXEC, HeaderValue::from_static(answer));
    }
    Ok(response)
}

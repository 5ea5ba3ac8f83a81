//! Integrations: named addresses to which clients send messages for an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{delete, get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::host::machine::{Envelope, Event};
use wattle_agent::host::service::ChunkEvent;
use wattle_agent::host::{Integration, Scope, Stored};

use super::stream::StreamForm;
use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::{MessageText, SessionId};
use crate::origin::RunOrigin;
use crate::path::Path;
use crate::query::Query;
use crate::route::Route;
use crate::route::{BUSY, FULL, INVALID, NOT_FOUND, NOT_JSON};
use crate::start::{choose, queue};
use crate::state::Shared;
use crate::stream::sse;

/// Maximum number of steps per message.
const STEPS: u32 = 10;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new("GET", "/api/integrations", Scope::Read, get(list), "Lists the integrations.")
            .json::<IntegrationList>(200, "The integrations, by name."),
        Route::new(
            "POST",
            "/api/integrations",
            Scope::Admin,
            post(create),
            "Creates an integration.",
        )
        .body::<NewIntegration>()
        .json::<IntegrationView>(201, "The integration, which works at once.")
        .errors(&[NOT_JSON, (409, "The name is in use."), INVALID]),
        Route::new(
            "DELETE",
            "/api/integrations/{name}",
            Scope::Admin,
            delete(remove),
            "Removes an integration.",
        )
        .empty(204, "The integration is removed.")
        .errors(&[NOT_FOUND]),
        Route::new("GET", "/i/{name}", Scope::Read, get(show), "Returns an integration.")
            .json::<IntegrationView>(200, "The integration.")
            .errors(&[NOT_FOUND]),
        Route::new(
            "POST",
            "/i/{name}",
            Scope::Run,
            post(ask),
            "Sends a message to an integration, and waits for the answer.",
        )
        .body::<IntegrationMessage>()
        .json::<IntegrationAnswer>(200, "The answer.")
        .streams()
        .errors(&[NOT_JSON, NOT_FOUND, INVALID, BUSY, FULL, (502, "The run failed.")]),
        Route::new(
            "POST",
            "/i/{name}/chat",
            Scope::Run,
            post(chat),
            "Sends a message to an integration, and follows its run.",
        )
        .query::<StreamForm>()
        .body::<IntegrationMessage>()
        .events::<Envelope, ChunkEvent>("The run's events, or its chunks.")
        .errors(&[NOT_JSON, NOT_FOUND, INVALID, BUSY, FULL]),
    ]
}

/// A new integration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewIntegration {
    /// The name, which becomes part of the integration's URL.
    name: SessionId,
    /// Text that is added to the prompt.
    system_prompt: Option<String>,
    /// The agent's name, as listed by `GET /api/agents`. Default: `default`.
    agent: Option<String>,
    /// The session for all messages. Without it, each message that names no session starts a new
    /// one.
    session_id: Option<SessionId>,
}

/// An integration: a named address to which clients send messages for an agent.
#[derive(Debug, Serialize, JsonSchema)]
struct IntegrationView {
    /// The name.
    name: String,
    /// The path of the integration's URL.
    path: String,
    /// Text that is added to the prompt.
    system_prompt: Option<String>,
    /// The agent's name.
    agent: Option<String>,
    /// The session for all messages, if one is set.
    session_id: Option<String>,
}

/// A list of integrations.
#[derive(Debug, Serialize, JsonSchema)]
struct IntegrationList {
    /// The integrations, sorted by name.
    integrations: Vec<IntegrationView>,
}

/// A message to an integration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IntegrationMessage {
    /// The message.
    message: MessageText,
    /// The session that the message continues, if the integration has no fixed session.
    session_id: Option<SessionId>,
}

/// An answer from an integration.
#[derive(Debug, Serialize, JsonSchema)]
struct IntegrationAnswer {
    /// The text.
    text: String,
    /// The run's id.
    run_id: String,
    /// The session's id.
    session_id: String,
}

impl From<Integration> for IntegrationView {
    fn from(integration: Integration) -> IntegrationView {
        let Integration { name, system_prompt, agent, session_id } = integration;
        IntegrationView { path: format!("/i/{name}"), name, system_prompt, agent, session_id }
    }
}

async fn list(
    State(_): State<Arc<Shared>>,
    caller: Caller,
) -> Result<Json<IntegrationList>, ApiError> {
    caller.reserve(Stored::Integrations).await?;
    let all = caller.store.integrations().await?;
    Ok(Json(IntegrationList { integrations: all.into_iter().map(Into::into).collect() }))
}

async fn create(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<IntegrationView>), ApiError> {
    let NewIntegration { name, system_prompt, agent, session_id } =
        read_json(request, &shared.limits).await?;
    let agent = match agent {
        Some(name) => {
            let agent = choose(&shared, &caller, Some(&name), &BTreeMap::new()).await?;
            Some(agent.name.clone())
        }
        None => None,
    };
    let integration = Integration {
        name: name.0,
        system_prompt,
        agent,
        session_id: session_id.map(|session| session.0),
    };
    if caller.store.add_integration(&integration).await? {
        Ok((StatusCode::CREATED, Json(integration.into())))
    } else {
        Err(ApiError::taken("integration", &integration.name))
    }
}

async fn remove(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    if caller.store.remove_integration(&name).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::not_found("integration", &name))
    }
}

async fn show(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<IntegrationView>, ApiError> {
    find(&caller, &name).await.map(|found| Json(found.into()))
}

async fn find(caller: &Caller, name: &str) -> Result<Integration, ApiError> {
    let found = caller.store.integration(name).await?;
    found.ok_or_else(|| ApiError::not_found("integration", name))
}

/// Queues a run for a message. Returns the ids of the run and its session.
async fn send(
    shared: &Shared,
    caller: &Caller,
    name: &str,
    request: Request,
) -> Result<(String, String), ApiError> {
    let integration = find(caller, name).await?;
    let IntegrationMessage { message, session_id } = read_json(request, &shared.limits).await?;
    let session = match (integration.session_id.and_then(SessionId::new), session_id) {
        (Some(_), Some(_)) => {
            return Err(ApiError::invalid_field(
                "`session_id`: the integration has a session of its own",
            ));
        }
        (own, given) => own.or(given),
    };
    let system = integration.system_prompt;
    let agent = choose(shared, caller, integration.agent.as_deref(), &BTreeMap::new()).await?;
    let steps = shared.app.steps(STEPS);
    let origin = RunOrigin { system, ..RunOrigin::of_agent(&agent, None, steps) };
    let (request, session) = origin.request(message, session);
    Ok((queue(shared, caller, request).await?, session))
}

async fn ask(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<IntegrationAnswer>, ApiError> {
    let (run_id, session_id) = send(&shared, &caller, &name, request).await?;
    let mut follower = shared.service.follow(&caller.store, &run_id, 0);
    loop {
        let event = follower.next().await;
        let event = event.map_err(|error| ApiError::run_goes_on(error, &run_id))?;
        let event = event.ok_or_else(|| ApiError::internal("no end"))?;
        match &event.event {
            Event::Response { text, .. } => {
                return Ok(Json(IntegrationAnswer { text: text.clone(), run_id, session_id }));
            }
            Event::Error { message } => return Err(ApiError::model_failed(message)),
            _ => {}
        }
    }
}

async fn chat(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(name): Path<String>,
    Query(form): Query<StreamForm>,
    request: Request,
) -> Result<Response, ApiError> {
    let (run, _) = send(&shared, &caller, &name, request).await?;
    Ok(sse(
        form.events(&shared, &caller, &run),
        shared.limits.heartbeat,
        shared.stopping.clone(),
        None,
    ))
}

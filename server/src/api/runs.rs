//! Routes for runs: start, show, list, cancel, events, calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_agent::host::journal::{
    self, CallView, Journal as _, PendingApproval, Priority, RequestView, RunFilter, SharedJournal,
};
use wattle_agent::host::machine::{Envelope, Stop, Usage};
use wattle_agent::host::service::{ArtifactLine, RunStatus, RunView, ToolUse};
use wattle_agent::host::{RunRequest, Scope, Stored, trace};

use super::chat::EXEC;
use super::files::write_all;
use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::{MessageText, SessionId};
use crate::origin::{OutputOrigin, RunOrigin};
use crate::path::Path;
use crate::query::Query;
use crate::route::Route;
use crate::route::{BUSY, FULL, INVALID, NOT_FOUND, NOT_JSON};
use crate::start::{choose, queue};
use crate::state::Shared;

/// Default maximum number of steps.
pub(super) const STEPS: u32 = 40;
/// Highest step limit that a request may set.
const MAX_STEPS: u32 = 10_000;
/// The name that the server gives to the schema in a request's `output_schema`.
const ANSWER: &str = "answer";
/// Default number of runs on a page.
const PAGE: u32 = 50;
/// Maximum number of runs on a page.
const MAX_PAGE: u32 = 500;
/// Maximum number of store pages that are read for one response page.
const MAX_PAGES: usize = 20;
/// Memory charged for the part of a page that is being loaded, in bytes.
const PART_COST: usize = 4 << 20;

pub(crate) fn routes() -> Vec<Route> {
    let run = "/api/run/{id}";
    vec![
        Route::new("POST", "/api/run", Scope::Run, post(start), "Starts a run.")
            .body::<RunBody>()
            .json::<Started>(202, "The run is queued, and goes on without the client.")
            .errors(&[NOT_JSON, INVALID, BUSY, FULL]),
        Route::new("GET", "/api/runs", Scope::Read, get(list), "Lists runs, the newest first.")
            .query::<ListQuery>()
            .json::<RunList>(200, "The runs.")
            .errors(&[INVALID]),
        Route::new("GET", run, Scope::Read, get(show), "Returns a run.")
            .json::<Run>(200, "The run.")
            .errors(&[NOT_FOUND]),
        Route::new("DELETE", run, Scope::Run, axum::routing::delete(cancel), "Cancels a run.")
            .json::<Started>(202, "The run is being cancelled.")
            .json::<Started>(200, "The run had ended, and stays as it is.")
            .errors(&[NOT_FOUND, FULL]),
        Route::new(
            "GET",
            "/api/run/{id}/events",
            Scope::Read,
            get(events),
            "Returns the recorded events of a run.",
        )
        .query::<EventsQuery>()
        .json::<EventPage>(200, "The events, in order.")
        .errors(&[NOT_FOUND, INVALID]),
        Route::new(
            "GET",
            "/api/run/{id}/calls",
            Scope::Read,
            get(calls),
            "Returns the calls that the programs of a run made to the outside.",
        )
        .json::<CallList>(200, "The calls, in order.")
        .errors(&[NOT_FOUND]),
        Route::new(
            "GET",
            "/api/run/{id}/requests",
            Scope::Read,
            get(requests),
            "Returns the requests of a run to the model, each with its answer.",
        )
        .json::<RequestList>(200, "The requests, in order.")
        .errors(&[NOT_FOUND]),
    ]
}

/// A request for a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunBody {
    /// The message.
    prompt: MessageText,
    /// The session that the run continues or starts. Without it, the server creates a session.
    session_id: Option<SessionId>,
    /// The model: the name of the server's own model, or a class, such as `class:fast`.
    model: Option<String>,
    /// The agent's name, as listed by `GET /api/agents`. Default: `default`.
    agent: Option<String>,
    /// Values for the agent's tools, traits and memory. They are never sent to a model.
    #[serde(default)]
    context: BTreeMap<String, String>,
    /// Maximum number of steps. A value above the server's own limit is reduced to that limit.
    /// Default: the agent's limit or the server's, or 40 if there is none.
    #[schemars(range(min = 1, max = 10_000))]
    max_steps: Option<u32>,
    /// Maximum duration, in milliseconds.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
    /// If true, the run is trusted. The operator must allow trusted runs.
    exec: Option<bool>,
    /// Files to write to the session before the run begins: contents by path.
    files: Option<BTreeMap<String, String>>,
    /// The JSON Schema of the answer. If the answer matches the schema, the run's `data` contains
    /// the value of the answer.
    output_schema: Option<Value>,
    /// The priority among the tenant's queued runs. Default: `normal`.
    #[serde(default)]
    priority: Priority,
}

/// The id, the session and the status of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Started {
    /// The run's id.
    id: String,
    /// The session of the run.
    session_id: Option<String>,
    /// The status.
    status: RunStatus,
}

/// A run, with its programs, artifacts and pending approvals.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Run {
    #[serde(flatten)]
    line: RunLine,
    /// The programs that the run used.
    tools: Vec<ToolUse>,
    /// The artifacts of the run. `GET /api/run/{id}/artifacts/{name}` returns the data of an
    /// artifact.
    artifacts: Vec<ArtifactLine>,
    /// The pending approvals of the run.
    waiting: Vec<PendingApproval>,
    /// The run as an outline in Org format.
    events_org: String,
}

/// A run in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunLine {
    /// The run's id.
    id: String,
    /// The session of the run.
    session_id: Option<String>,
    /// The status.
    status: RunStatus,
    /// The message of the request.
    prompt: String,
    /// The model's name. Empty before the run begins.
    model: String,
    /// The agent's name. Empty before the run begins.
    agent: String,
    /// Time of the request, in milliseconds since 1970.
    created: u64,
    /// Time of the latest change, in milliseconds since 1970.
    updated: u64,
    /// Number of steps that ran programs.
    steps: u32,
    /// The answer or the error, once the run has ended.
    result: Option<String>,
    /// The value of the answer, if the request had a schema and the answer matches it.
    data: Option<Value>,
    /// The reasons why the answer does not match the requested schema.
    errors: Vec<String>,
    /// The reason why the run ended. Null if it failed with an error or has not ended.
    stop: Option<Stop>,
    /// Model usage. Zero until the run ends.
    usage: Usage,
    /// The reason why an operator must release the run. Null if no release is needed.
    reason: Option<String>,
    /// The failure because of which the run waits for the model's provider. Null if it does not wait
    /// for it. Only the server that drives the run knows it.
    provider_failure: Option<String>,
    /// The run and the step from which this run was forked, if it is a fork.
    forked: Option<(String, u32)>,
    /// The parent run, if this run is a child run.
    parent: Option<String>,
}

/// A page of runs.
#[derive(Debug, Serialize, JsonSchema)]
struct RunList {
    /// The runs, newest first.
    runs: Vec<RunLine>,
    /// The value of `before` for the next page, if there is one.
    next: Option<String>,
}

/// A filter for runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// The status of the runs.
    status: Option<RunStatus>,
    /// The session of the runs.
    session_id: Option<String>,
    /// The root run whose descendants are listed. Without it, only root runs are listed.
    tree_of: Option<String>,
    /// Text that the runs' messages must contain, ignoring case.
    q: Option<String>,
    /// The value of `next` in the previous page. Only runs that follow this run in the list are
    /// listed.
    before: Option<String>,
    /// Maximum number of runs: 1 to 500. Default: 50. A page has fewer runs if their texts are
    /// large.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

/// A range of events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The number of the event after which the page starts. Default: 0.
    after: Option<u64>,
    /// Maximum number of events: 1 to 1,000. Default: 500.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
}

/// A page of events.
#[derive(Debug, Serialize, JsonSchema)]
struct EventPage {
    /// The events, in order.
    events: Vec<Envelope>,
    /// The number of the last event of this page.
    last: u64,
    /// If true, the run has ended, and this page contains its last event.
    done: bool,
}

/// The calls of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct CallList {
    /// The calls, in order.
    calls: Vec<CallView>,
}

/// The requests of a run to the model.
#[derive(Debug, Serialize, JsonSchema)]
struct RequestList {
    /// The requests, in order.
    requests: Vec<RequestView>,
}

async fn start(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let body: RunBody = read_json(request, &shared.limits).await?;
    if body.max_steps.is_some_and(|steps| !(1..=MAX_STEPS).contains(&steps)) {
        return Err(ApiError::invalid_field(format!("`max_steps` is 1 to {MAX_STEPS}")));
    }
    if body.timeout_ms == Some(0) {
        return Err(ApiError::invalid_field("`timeout_ms` is at least 1"));
    }
    known("model", body.model.as_deref(), &shared.app.model_names())?;
    let agent = choose(&shared, &caller, body.agent.as_deref(), &body.context).await?;
    let output = body.output_schema;
    let output =
        output.map(|schema| OutputOrigin::checked("output_schema", ANSWER.to_owned(), schema));
    let output = output.transpose()?;
    let exec = body.exec.unwrap_or(false);
    let granted = exec && shared.app.may_trust(caller.store.tenant());
    let session = body.session_id.unwrap_or_else(SessionId::generate);
    if let Some(files) = body.files.filter(|files| !files.is_empty()) {
        let files = files.iter().map(|(path, text)| (path.as_str(), text.as_bytes()));
        write_all(&shared, &caller, &session.0, files).await?;
    }
    let origin = RunOrigin {
        exec: granted,
        timeout_ms: body.timeout_ms,
        model: body.model,
        output,
        ..RunOrigin::of_agent(&agent, body.max_steps, shared.app.steps(STEPS))
    };
    let (request, session) = origin.request(body.prompt, Some(session));
    let request = RunRequest { priority: body.priority, ..request };
    let id = queue(&shared, &caller, request).await?;
    let mut response = (
        StatusCode::ACCEPTED,
        Json(Started { id: id.clone(), session_id: Some(session), status: RunStatus::Queued }),
    )
        .into_response();
    if let Ok(location) = HeaderValue::from_str(&format!("/api/run/{id}")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if exec {
        let answer = if granted { "granted" } else { "not permitted" };
        response.headers_mut().insert(EXEC, HeaderValue::from_static(answer));
    }
    Ok(response)
}

/// Checks that the name in a field is one of `names`, if a name is given.
fn known(field: &str, given: Option<&str>, names: &[String]) -> Result<(), ApiError> {
    match given {
        Some(given) if !names.iter().any(|name| name == given) => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            Err(ApiError::invalid_field(format!("`{field}`: unknown; this server has {names}")))
        }
        _ => Ok(()),
    }
}

async fn list(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<RunList>, ApiError> {
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(ApiError::invalid_field(format!("`limit` is 1 to {MAX_PAGE}")));
    }
    let wanted = query.q.as_deref().map(str::to_lowercase);
    let matches = |view: &RunView| {
        query.status.is_none_or(|status| view.status == status)
            && wanted.as_ref().is_none_or(|text| view.prompt.to_lowercase().contains(text))
    };
    // The records of a page are loaded in parts.
    let _memory = caller.memory.charge(PART_COST)?;
    let (mut runs, mut next) = (Vec::<RunView>::new(), query.before);
    // Filters that the store does not support are applied page by page, for a limited number of
    // pages.
    for _ in 0..MAX_PAGES {
        let filter = RunFilter {
            session: query.session_id.clone(),
            tree_of: query.tree_of.clone(),
            before: next.clone(),
            limit: Some(limit),
            ..RunFilter::default()
        };
        let page = shared.service.page(&caller.store, filter).await?;
        let is_shortened = page.runs.len() < limit as usize;
        next = page.next;
        let found: Vec<RunView> = page.runs.into_iter().filter(&matches).collect();
        // The memory for the texts, and for the response that contains them.
        let bytes: usize = found.iter().map(RunView::bytes).sum();
        caller.memory.hold(bytes.saturating_mul(2))?;
        runs.extend(found);
        if runs.len() > limit as usize {
            runs.truncate(limit as usize);
            next = runs.last().map(|view| view.id.clone());
        }
        let is_full = runs.len() == limit as usize || (is_shortened && !runs.is_empty());
        if next.is_none() || is_full {
            break;
        }
    }
    Ok(Json(RunList { runs: runs.into_iter().map(RunLine::from).collect(), next }))
}

async fn show(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Run>, ApiError> {
    run(&shared, &caller, &id).await.map(Json)
}

/// Returns a run with its programs, artifacts, pending approvals and outline.
pub(super) async fn run(shared: &Shared, caller: &Caller, id: &str) -> Result<Run, ApiError> {
    let view = view(shared, caller, id).await?;
    caller.reserve(Stored::Events { run: id, after: 0, limit: u32::MAX }).await?;
    let events = caller.store.events(id, 0, u32::MAX).await?;
    Ok(Run {
        tools: ToolUse::of(&events),
        artifacts: ArtifactLine::of(&events),
        waiting: view.waiting.clone(),
        events_org: trace::outline(id, &view.agent, &events),
        line: RunLine::from(view),
    })
}

pub(super) async fn view(shared: &Shared, caller: &Caller, id: &str) -> Result<RunView, ApiError> {
    let view = shared.service.get(&caller.store, id).await?;
    view.ok_or_else(|| ApiError::not_found("run", id))
}

async fn cancel(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Started>), ApiError> {
    let had_ended = view(&shared, &caller, &id).await?.status.has_ended();
    let view = shared.service.cancel(&caller.store, &id, "requested over HTTP").await?;
    let view = view.ok_or_else(|| ApiError::not_found("run", &id))?;
    let status = if had_ended { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(Started::from(view))))
}

async fn events(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<EventsQuery>,
) -> Result<Json<EventPage>, ApiError> {
    let (after, limit) = (query.after.unwrap_or(0), query.limit.unwrap_or(500));
    if !(1..=1_000).contains(&limit) {
        return Err(ApiError::invalid_field("`limit` is 1 to 1000"));
    }
    let has_ended = view(&shared, &caller, &id).await?.status.has_ended();
    caller.reserve(Stored::Events { run: &id, after, limit }).await?;
    let events = caller.store.events(&id, after, limit).await?;
    let last = events.last().map_or(after, |event| event.seq);
    let done = has_ended && events.len() < limit as usize;
    Ok(Json(EventPage { events, last, done }))
}

async fn calls(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<CallList>, ApiError> {
    let journal = record(&shared, &caller, &id).await?;
    Ok(Json(CallList { calls: journal::calls(&journal, &id).await? }))
}

async fn requests(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RequestList>, ApiError> {
    let journal = record(&shared, &caller, &id).await?;
    Ok(Json(RequestList { requests: journal::requests(&journal, &id).await? }))
}

/// Returns the journal of a run that exists, and reserves the memory for its record.
async fn record(shared: &Shared, caller: &Caller, id: &str) -> Result<SharedJournal, ApiError> {
    view(shared, caller, id).await?;
    caller.reserve(Stored::Record(id)).await?;
    Ok(Arc::new(caller.store.clone()))
}

impl Started {
    /// Creates the response for a run that was just started.
    pub(super) fn running(id: String, session_id: Option<String>) -> Started {
        Started { id, session_id, status: RunStatus::Running }
    }
}

impl From<RunView> for Started {
    fn from(view: RunView) -> Started {
        Started { id: view.id, session_id: view.session_id, status: view.status }
    }
}

impl From<RunView> for RunLine {
    fn from(view: RunView) -> RunLine {
        RunLine {
            id: view.id,
            session_id: view.session_id,
            status: view.status,
            prompt: view.prompt,
            model: view.model,
            agent: view.agent,
            created: view.created,
            updated: view.updated,
            steps: view.steps,
            result: view.result,
            data: view.data,
            errors: view.errors,
            stop: view.stop,
            usage: view.usage,
            reason: view.reason,
            provider_failure: view.provider_failure,
            forked: view.forked,
            parent: view.parent,
        }
    }
}

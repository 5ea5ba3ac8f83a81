//! Routes for sessions: list, show, delete, fork, export.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::host::journal::RunFilter;
use wattle_agent::host::machine::{Message, Role, Usage};
use wattle_agent::host::{Compacted, ExportedSession, Scope, SessionLine, Stored, compact};

use super::files::{SessionFile, list_files};
use super::runs::RunLine;
use crate::app::delta_cost;
use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::SessionId;
use crate::path::Path;
use crate::query::Query;
use crate::quota::Kind;
use crate::route::Route;
use crate::route::{INVALID, NOT_FOUND, NOT_JSON};
use crate::state::Shared;

/// Maximum number of runs that are returned with a session.
const MAX_RUNS: u32 = 100;
/// Maximum time to wait for the end of the runs of a session that is deleted.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The reason for cancelling a run whose session is deleted.
const DELETED: &str = "its session was deleted";
/// Maximum length of a session's title, in characters.
const TITLE_CHARS: usize = 80;

pub(crate) fn routes() -> Vec<Route> {
    let session = "/api/sessions/{id}";
    vec![
        Route::new(
            "GET",
            "/api/sessions",
            Scope::Read,
            get(list),
            "Lists sessions, the last used first.",
        )
        .query::<ListQuery>()
        .json::<SessionList>(200, "The sessions.")
        .errors(&[INVALID]),
        Route::new(
            "GET",
            session,
            Scope::Read,
            get(show),
            "Returns a session with its conversation, its runs and its files.",
        )
        .json::<Session>(200, "The session.")
        .errors(&[NOT_FOUND]),
        Route::new(
            "DELETE",
            session,
            Scope::Run,
            delete(remove),
            "Cancels the runs of a session, and deletes it with its runs, state and files.",
        )
        .empty(204, "The session is deleted.")
        .errors(&[NOT_FOUND]),
        Route::new(
            "POST",
            "/api/sessions/{id}/fork",
            Scope::Run,
            post(fork),
            "Creates a session with the same conversation, state and files.",
        )
        .body::<ForkBody>()
        .json::<Forked>(201, "The new session.")
        .errors(&[NOT_JSON, NOT_FOUND, TAKEN, INVALID]),
        Route::new(
            "POST",
            "/api/sessions/{id}/compact",
            Scope::Run,
            post(compact_session),
            "Replaces the messages before the last exchange of a session by a summary.",
        )
        .json::<CompactedSession>(200, "The summary.")
        .errors(&[NOT_FOUND, CHANGED, MODEL_FAILED]),
        Route::new(
            "GET",
            "/api/sessions/{id}/export",
            Scope::Read,
            get(export),
            "Returns a session as a document for `wattle session import`.",
        )
        .json::<serde_json::Value>(200, "The document.")
        .errors(&[NOT_FOUND]),
    ]
}

const TAKEN: (u16, &str) = (409, "There is a session with this id.");

const CHANGED: (u16, &str) = (409, "The session was used in the meantime.");
const MODEL_FAILED: (u16, &str) = (502, "The model failed.");

/// The summary that replaces messages of a session.
#[derive(Debug, Serialize, JsonSchema)]
struct CompactedSession {
    /// The summary. Empty if nothing precedes the last exchange.
    summary: String,
    /// Number of messages that the summary replaces. They stay in the records of their runs.
    replaced: usize,
    /// Model usage.
    usage: Usage,
}

/// The query parameters for listing sessions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Maximum number of sessions: 1 to 1,000. Default: 100.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
    /// The value of `next` in the previous page.
    before: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionList {
    /// The sessions, most recently used first.
    sessions: Vec<Line>,
    /// The value of `before` for the next page, if there is one.
    next: Option<String>,
}

/// A session in a list.
#[derive(Debug, Serialize, JsonSchema)]
struct Line {
    /// The session's id.
    id: String,
    /// The beginning of the session's first message.
    title: String,
    /// Number of messages.
    messages: u64,
    /// Size of the session's state and files, in bytes.
    bytes: u64,
    /// Creation time, in milliseconds since 1970.
    created: u64,
    /// Time of the last use, in milliseconds since 1970.
    used: u64,
}

/// A session, with its conversation, runs and files.
#[derive(Debug, Serialize, JsonSchema)]
struct Session {
    /// The session's id.
    id: String,
    /// The beginning of the session's first message.
    title: String,
    /// The conversation, oldest message first.
    messages: Vec<Turn>,
    /// The session's most recent runs, at most 100, and fewer if their texts are large.
    runs: Vec<RunLine>,
    /// The files that the session's runs changed.
    files: Vec<SessionFile>,
}

/// A message in a conversation.
#[derive(Debug, Serialize, JsonSchema)]
struct Turn {
    /// `user` or `assistant`.
    role: String,
    /// The text.
    content: String,
}

/// The id of a new session.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    /// The id. Without it, the server generates one.
    id: Option<SessionId>,
}

/// A new session.
#[derive(Debug, Serialize, JsonSchema)]
struct Forked {
    /// The session's id.
    id: String,
}

async fn list(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<SessionList>, ApiError> {
    let limit = query.limit.unwrap_or(100);
    if !(1..=1_000).contains(&limit) {
        return Err(ApiError::invalid_field("`limit` is 1 to 1000"));
    }
    let before = query.before.as_deref().map(|text| {
        let parts =
            text.split_once(':').and_then(|(used, id)| Some((used.parse::<u64>().ok()?, id)));
        parts.ok_or_else(|| ApiError::invalid_field("`before` is not a value of `next`"))
    });
    // One more session than requested shows that there is another page.
    let mut page = caller.store.session_page(before.transpose()?, limit.saturating_add(1)).await?;
    let is_last = page.len() <= limit as usize;
    page.truncate(limit as usize);
    let last = page.last().filter(|_| !is_last);
    let next = last.map(|(SessionLine { id, used, .. }, _)| format!("{used}:{id}"));
    let line = |(session, first): (SessionLine, String)| {
        let SessionLine { id, messages, bytes, created, used } = session;
        Line { id, title: title(Some(&first)), messages, bytes, created, used }
    };
    Ok(Json(SessionList { sessions: page.into_iter().map(line).collect(), next }))
}

async fn show(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Session>, ApiError> {
    let exported = exported(&caller, &id).await?;
    let filter =
        RunFilter { session: Some(id.clone()), limit: Some(MAX_RUNS), ..RunFilter::default() };
    let runs = shared.service.page(&caller.store, filter).await?;
    caller.memory.hold(runs.bytes.saturating_mul(2))?;
    let first = exported.messages.iter().find(|message| message.role == Role::User);
    let turn = |message: &Message| Turn {
        role: if message.role == Role::User { "user" } else { "assistant" }.to_owned(),
        content: message.content.to_string(),
    };
    Ok(Json(Session {
        title: title(first.map(|message| message.content.as_str())),
        messages: exported.messages.iter().map(turn).collect(),
        runs: runs.runs.into_iter().map(RunLine::from).collect(),
        files: list_files(&shared, &caller, &id).await?,
        id,
    }))
}

async fn remove(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    if SessionId::new(id.clone()).is_none() {
        return Err(ApiError::not_found("session", &id));
    }
    let of = Arc::clone(&shared);
    let removed = async move {
        end_runs(&of, &caller, &id).await?;
        if caller.store.remove(&id).await? {
            Ok(StatusCode::NO_CONTENT)
        } else {
            Err(ApiError::not_found("session", &id))
        }
    };
    shared.finish(removed).await
}

/// Cancels the runs of a session and waits until they have ended, at most [`MAX_WAIT`].
async fn end_runs(shared: &Shared, caller: &Caller, session: &str) -> Result<(), ApiError> {
    let mut changes = shared.service.changes();
    for run in caller.store.unended_runs(session).await? {
        shared.service.cancel(&caller.store, &run, DELETED).await?;
    }
    let ended = async {
        while !caller.store.unended_runs(session).await?.is_empty() {
            if changes.changed().await.is_err() {
                break;
            }
        }
        Ok::<_, ApiError>(())
    };
    // A run that goes on in another process is removed with other ended runs.
    tokio::time::timeout(MAX_WAIT, ended).await.unwrap_or(Ok(()))
}

async fn fork(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<Forked>), ApiError> {
    let ForkBody { id: new } = read_json(request, &shared.limits).await?;
    let exported = exported(&caller, &id).await?;
    let new = new.unwrap_or_else(SessionId::generate).0;
    let copy = async move {
        // The database copies one delta at a time.
        let files = caller.store.session_deltas(&id).await?;
        let _memory = caller.memory.charge(delta_cost(files.largest()))?;
        if caller.store.fork_session(&id, &new, exported.messages).await? {
            Ok(new)
        } else {
            Err(ApiError::taken("session", &new))
        }
    };
    let id = shared.finish(copy).await?;
    Ok((StatusCode::CREATED, Json(Forked { id })))
}

async fn compact_session(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<CompactedSession>, ApiError> {
    // The model is asked as by a program.
    let _slot = caller.slot(&shared.quotas, Kind::Program)?;
    exported(&caller, &id).await?;
    let mut before = caller.store.conversation(&id).await?;
    let (model, settings) = (shared.app.model(), shared.app.settings());
    let compacted = compact(model.as_ref(), settings, &before).await;
    let compacted = compacted.map_err(|error| ApiError::model_failed(&error.to_string()))?;
    let Some(Compacted { summary, replaced, messages, usage }) = compacted else {
        let (summary, usage) = (String::new(), Usage::default());
        return Ok(Json(CompactedSession { summary, replaced: 0, usage }));
    };
    if summary.is_empty() {
        return Err(ApiError::model_failed("the model returned an empty summary"));
    }
    before.truncate(replaced);
    let replacing =
        async move { Ok(caller.store.replace_first_messages(&id, before, messages).await?) };
    if !shared.finish(replacing).await? {
        return Err(ApiError::session_changed());
    }
    Ok(Json(CompactedSession { summary, replaced, usage }))
}

async fn export(
    State(_): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ExportedSession>, ApiError> {
    exported(&caller, &id).await.map(Json)
}

async fn exported(caller: &Caller, id: &str) -> Result<ExportedSession, ApiError> {
    let exported = match SessionId::new(id.to_owned()) {
        Some(_) => {
            caller.reserve(Stored::Session(id)).await?;
            caller.store.export(id).await?
        }
        None => None,
    };
    exported.ok_or_else(|| ApiError::not_found("session", id))
}

fn title(message: Option<&str>) -> String {
    let line = message.unwrap_or_default().trim().lines().next().unwrap_or_default();
    wattle_agent::host::rt::truncate(line, TITLE_CHARS).into_owned()
}

//! Routes for the files of a session: list, read, write, remove, download all changes as a tar
//! archive, and apply them to the server's folder.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::host::capability::files::{Change, ChangeKind, EntryKind, Files};
use wattle_agent::host::{Scope, journal};

use crate::app::AppliedChanges;
use crate::archive::Archive;
use crate::body::read_bytes;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::SessionId;
use crate::path::Path;
use crate::query::Query;
use crate::route::NOT_FOUND;
use crate::route::Route;
use crate::state::Shared;

pub(crate) fn routes() -> Vec<Route> {
    let file = "/api/sessions/{id}/files/{*path}";
    vec![
        Route::new(
            "GET",
            "/api/sessions/{id}/files",
            Scope::Read,
            get(list),
            "Lists the files that a session changed.",
        )
        .json::<FileList>(200, "The files.")
        .errors(&[NOT_FOUND]),
        Route::new(
            "GET",
            "/api/sessions/{id}/files.tar",
            Scope::Read,
            get(archive),
            "Returns the files that a session changed as a tar archive.",
        )
        .media("application/x-tar", "The archive.")
        .errors(&[NOT_FOUND]),
        Route::new(
            "POST",
            "/api/sessions/{id}/apply",
            Scope::Admin,
            post(apply),
            "Applies the changes of a session to the server's folder.",
        )
        .json::<Applied>(200, "The changes that were applied, and those that were not.")
        .errors(&[
            (403, "The server has no folder, or it belongs to another tenant."),
            NOT_FOUND,
            (409, "A run of the session is active."),
        ]),
        Route::new("GET", file, Scope::Read, get(read), "Returns a file of a session.")
            .query::<ReadQuery>()
            .media("application/octet-stream", "The file.")
            .errors(&[NOT_FOUND, NOT_A_PATH]),
        Route::new("PUT", file, Scope::Run, put(write), "Writes a file of a session.")
            .bytes()
            .empty(204, "The file is written.")
            .errors(&[NOT_FOUND, NOT_A_PATH]),
        Route::new("DELETE", file, Scope::Run, delete(remove), "Removes a file of a session.")
            .empty(204, "The file is removed.")
            .errors(&[NOT_FOUND, NOT_A_PATH]),
    ]
}

const NOT_A_PATH: (u16, &str) = (422, "The path cannot be used.");

/// The version of a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadQuery {
    /// If true, the answer is the file of the base folder, without the session's changes.
    #[serde(default)]
    base: bool,
}

/// A list of files that a session changed.
#[derive(Debug, Serialize, JsonSchema)]
struct FileList {
    /// The files, sorted by path.
    files: Vec<SessionFile>,
}

/// A file that a session changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionFile {
    /// The path.
    path: String,
    /// The size, in bytes.
    size: u64,
    /// Time of the last write, in milliseconds since 1970.
    modified: Option<u64>,
    /// If true, the base folder does not contain this file.
    created: bool,
    /// If true, the base folder contains this file, and the session deleted it.
    deleted: bool,
}

/// The result of applying the changes of a session.
#[derive(Debug, Serialize, JsonSchema)]
struct Applied {
    /// The paths of the applied changes. The session no longer has these changes.
    applied: Vec<String>,
    /// The changes that were not applied. They stay in the session.
    left: Vec<LeftChange>,
}

/// A change that was not applied.
#[derive(Debug, Serialize, JsonSchema)]
struct LeftChange {
    /// The path.
    path: String,
    /// The reason, for example that somebody else has changed the file.
    reason: String,
}

/// Opens the files of a session. Fails if the session does not exist.
async fn open(shared: &Shared, caller: &Caller, session: &str) -> Result<Files, ApiError> {
    check_known(caller, session).await?;
    shared.app.files_for(caller, session).await
}

/// Fails if a session does not exist.
async fn check_known(caller: &Caller, session: &str) -> Result<(), ApiError> {
    let is_known =
        SessionId::new(session.to_owned()).is_some() && caller.store.has_session(session).await?;
    if is_known { Ok(()) } else { Err(ApiError::not_found("session", session)) }
}

async fn apply(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Applied>, ApiError> {
    check_known(&caller, &id).await?;
    let folder = shared.app.base().filter(|_| shared.is_operators(&caller));
    let folder = folder.ok_or_else(ApiError::no_workdir)?.to_owned();
    let app = shared.app.clone();
    // What was applied must leave the session, even if the client disconnects.
    let AppliedChanges { done, left } = shared
        .finish(async move {
            let Some(_held) = journal::try_lock_session(&caller.store, &id).await? else {
                return Err(ApiError::session_in_use(&id));
            };
            let (files, newest) = app.numbered_files(&caller, &id).await?;
            let work = move || app.apply(&folder, &files).map(|done| (done, files.take_all()));
            let worked = tokio::task::spawn_blocking(work).await;
            let (done, rest) = worked.map_err(ApiError::internal)??;
            caller.store.replace_session_files(&id, newest, rest).await?;
            Ok(done)
        })
        .await?;
    let left = left.into_iter().map(|(path, reason)| LeftChange { path, reason }).collect();
    Ok(Json(Applied { applied: done, left }))
}

/// Returns the files that a session changed.
pub(super) async fn list_files(
    shared: &Shared,
    caller: &Caller,
    session: &str,
) -> Result<Vec<SessionFile>, ApiError> {
    let files = open(shared, caller, session).await?;
    let is_file = |change: &Change| change.entry == EntryKind::File;
    let changes = files.changes()?.into_iter().filter(is_file);
    let file = |change: Change| {
        let modified = files.stat(&change.path).ok().and_then(|stat| stat.modified);
        let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        SessionFile {
            size: change.size,
            modified: modified.and_then(|since| u64::try_from(since.as_millis()).ok()),
            created: change.kind == ChangeKind::Created,
            deleted: change.kind == ChangeKind::Deleted,
            path: change.path,
        }
    };
    Ok(changes.map(file).collect())
}

/// Writes files to a session. Creates the session if it does not exist.
pub(super) async fn write_all<'a>(
    shared: &Shared,
    caller: &Caller,
    session: &str,
    all: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
) -> Result<(), ApiError> {
    let files = shared.app.files_for(caller, session).await?;
    // The files in memory, and their text and its stored form, which are a third larger.
    let size = all.clone().fold(0_usize, |sum, (_, bytes)| sum.saturating_add(bytes.len()));
    caller.memory.hold(size.saturating_mul(4))?;
    for (path, bytes) in all {
        files.write(path, bytes)?;
    }
    save(caller, session, &files).await
}

/// Adds the changes in the overlay `files` to the session's stored files.
async fn save(caller: &Caller, session: &str, files: &Files) -> Result<(), ApiError> {
    if let Some(delta) = files.take_delta() {
        caller.store.add_session_files(session, delta).await?;
    }
    Ok(())
}

async fn list(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<FileList>, ApiError> {
    Ok(Json(FileList { files: list_files(&shared, &caller, &id).await? }))
}

async fn read(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    Query(query): Query<ReadQuery>,
) -> Result<Response, ApiError> {
    let files = open(&shared, &caller, &id).await?;
    let files = if query.base { shared.app.no_changes()? } else { files };
    Ok(download(files.read(&path)?))
}

/// Returns a response that browsers save as a file. The content is untrusted, so browsers must not
/// render it as a page of this server.
pub(super) fn download(bytes: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    ];
    (headers, bytes.into()).into_response()
}

async fn write(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let bytes = read_bytes(request, shared.limits.file_bytes, &shared.limits).await?;
    if SessionId::new(id.clone()).is_none() {
        return Err(ApiError::not_found("session", &id));
    }
    write_all(&shared, &caller, &id, [(path.as_str(), &*bytes)].into_iter()).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path((id, path)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let files = open(&shared, &caller, &id).await?;
    files.remove(&path)?;
    save(&caller, &id, &files).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn archive(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let archive = Archive::new(open(&shared, &caller, &id).await?, caller.memory)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/x-tar")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
    ];
    Ok((headers, archive.into_body()).into_response())
}

//! Routes that save programs in the catalog, and that run the examples of a program without saving
//! it.

use std::fs::Permissions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::{post, put};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::host::catalog::{Catalog, Entry, Name, Origin, Problem};
use wattle_agent::host::{Scope, check_example};

use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::path::Path;
use crate::quota::Kind;
use crate::route::Route;
use crate::route::{INVALID, NOT_JSON};
use crate::state::Shared;

/// Maximum number of examples that one request runs.
const MAX_EXAMPLES: usize = 50;
/// The permissions of a saved program file: readable by all users, writable by its owner.
const MODE: u32 = 0o644;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "PUT",
            "/api/catalog/{name}",
            Scope::Admin,
            put(save),
            "Saves a program in the server's folder of programs.",
        )
        .body::<SaveBody>()
        .json::<Saved>(201, "The program is new.")
        .json::<Saved>(200, "The program replaced another version.")
        .errors(&[
            NOT_JSON,
            (403, "The catalog belongs to another tenant, or cannot be written."),
            (409, "The name is in use."),
            INVALID,
        ]),
        Route::new(
            "POST",
            "/api/test",
            Scope::Run,
            post(test),
            "Runs the examples of a program, each in the environment of its fixtures.",
        )
        .body::<TestBody>()
        .json::<Tested>(200, "The result of each example.")
        .errors(&[NOT_JSON, INVALID]),
    ]
}

/// A program to be saved.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveBody {
    /// The source. Its front matter must contain the same name.
    source: String,
    /// If true, the source may replace another version of the program.
    #[serde(default)]
    replace: bool,
}

/// A saved program.
#[derive(Debug, Serialize, JsonSchema)]
struct Saved {
    /// The name.
    name: String,
    /// The path of the file.
    file: String,
}

/// A program with examples.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TestBody {
    /// The program's text, with front matter.
    body: String,
}

/// The results of a program's examples.
#[derive(Debug, Serialize, JsonSchema)]
struct Tested {
    /// The examples, in order.
    examples: Vec<ExampleResult>,
}

/// The result of an example.
#[derive(Debug, Serialize, JsonSchema)]
struct ExampleResult {
    /// The line at which the example begins.
    line: usize,
    /// If true, the result is the expected one.
    passed: bool,
    /// The differences from the expected result.
    differences: Vec<String>,
}

async fn save(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<Saved>), ApiError> {
    if caller.store.tenant() != shared.app.own().store.tenant() {
        return Err(ApiError::foreign_catalog());
    }
    let SaveBody { source, replace } = read_json(request, &shared.limits).await?;
    let name: Name = name
        .parse()
        .map_err(|rule| ApiError::invalid_field(format!("`name` is not a program name: {rule}")))?;
    if Catalog::built_in().get(name.as_str()).is_some() {
        return Err(ApiError::built_in(name.as_str()));
    }
    // Programs are saved one at a time, so that a check for an existing version stays valid until
    // the file is written.
    let _saving = shared.saving.lock().await;
    let host = shared.app.host(caller.store.tenant());
    host.reload().await;
    let known = host.catalog().get(name.as_str()).and_then(|entry| match entry.origin() {
        Origin::File(path) => Some(path.clone()),
        Origin::BuiltIn(_) | Origin::Agent(_) | Origin::Server(_) | Origin::Skill(_) => None,
    });
    if known.is_some() && !replace {
        return Err(ApiError::not_replaced(name.as_str()));
    }
    let file = known.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.wat")));
    let entry = Entry::parse(&source, Origin::File(file)).map_err(|why| invalid(&why))?;
    if *entry.name() != name {
        let message = format!("`source`: its front matter has the name `{}`", entry.name());
        return Err(ApiError::invalid_field(message));
    }
    host.check(&entry).await.map_err(|why| invalid(&why))?;
    let folders = shared.app.operator().programs.clone();
    let (text, to) = (source, known.clone());
    let written = tokio::task::spawn_blocking(move || match to {
        Some(path) => write(&path, &text, true).map(|()| path),
        None => write_first(&folders, &format!("{name}.wat"), (&text, replace)),
    });
    let file = match written.await.map_err(ApiError::internal)? {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(ApiError::not_replaced(entry.name().as_str()));
        }
        Err(error) if is_closed(&error) => return Err(ApiError::no_folder()),
        Err(error) => return Err(ApiError::internal(error)),
    };
    host.reload().await;
    tracing::info!(file = %file.display(), "a program was saved over HTTP");
    let status = if known.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    let name = entry.name().to_string();
    Ok((status, Json(Saved { name, file: file.display().to_string() })))
}

async fn test(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<Json<Tested>, ApiError> {
    let TestBody { body } = read_json(request, &shared.limits).await?;
    let _slot = caller.slot(&shared.quotas, Kind::Program)?;
    let file = Origin::File(PathBuf::from("program.wat"));
    let entry = Entry::parse(&body, file).map_err(|why| invalid(&why))?;
    let host = shared.app.host(caller.store.tenant());
    host.check(&entry).await.map_err(|why| invalid(&why))?;
    let all = &entry.meta().examples;
    if all.len() > MAX_EXAMPLES {
        let message = format!("`body` has {} examples; {MAX_EXAMPLES} are allowed", all.len());
        return Err(ApiError::invalid_field(message));
    }
    let mut examples = Vec::with_capacity(all.len());
    for example in all {
        let differences = match check_example(&host, &entry, example).await {
            Ok(()) => Vec::new(),
            Err(fault) => fault.differences.iter().map(ToString::to_string).collect(),
        };
        let passed = differences.is_empty();
        examples.push(ExampleResult { line: example.line, passed, differences });
    }
    Ok(Json(Tested { examples }))
}

/// Creates the error for a program that the catalog would reject.
fn invalid(problem: &Problem) -> ApiError {
    let line = problem.line().map(|line| format!("line {line}: ")).unwrap_or_default();
    let hint = problem.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    ApiError::invalid_field(format!("the program is invalid: {line}{}{hint}", problem.message()))
}

/// Writes a file to the first writable folder. Returns the file's path.
fn write_first(
    folders: &[PathBuf],
    file: &str,
    (text, replace): (&str, bool),
) -> std::io::Result<PathBuf> {
    let mut last = ErrorKind::PermissionDenied.into();
    for path in folders.iter().map(|folder| folder.join(file)) {
        match write(&path, text, replace) {
            Ok(()) => return Ok(path),
            Err(error) if is_closed(&error) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Returns true if the error means that a folder does not exist or is not writable.
fn is_closed(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotFound
            | ErrorKind::NotADirectory
    )
}

/// Writes a file atomically: readers see either the previous version or the new one. The name of
/// the temporary file begins with a dot, so the catalog ignores it.
fn write(path: &FilePath, text: &str, replace: bool) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(FilePath::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".")
        .suffix(".unfinished")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    if replace {
        file.persist(path).map(drop).map_err(|error| error.error)
    } else {
        file.persist_noclobber(path).map(drop).map_err(|error| error.error)
    }
}

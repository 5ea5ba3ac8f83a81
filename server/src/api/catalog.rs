//! Catalog routes: list, show, run.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::host::Scope;
use wattle_agent::host::catalog::{Entry, Origin};
use wattle_agent::host::machine::Call;

use super::fixtures::FixtureSet;
use super::programs::{Performed, perform};
use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::SessionId;
use crate::path::Path;
use crate::query::Query;
use crate::route::Route;
use crate::route::{INVALID, NOT_FOUND, NOT_JSON};
use crate::state::Shared;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "GET",
            "/api/catalog",
            Scope::Read,
            get(list),
            "Lists the programs of the catalog.",
        )
        .query::<ListQuery>()
        .json::<ProgramList>(200, "The programs.")
        .errors(&[INVALID]),
        Route::new(
            "GET",
            "/api/catalog/{name}",
            Scope::Read,
            get(show),
            "Returns a program of the catalog.",
        )
        .json::<ProgramDetail>(200, "The program.")
        .errors(&[NOT_FOUND]),
        Route::new(
            "POST",
            "/api/catalog/{name}/run",
            Scope::Run,
            post(run),
            "Runs a program of the catalog.",
        )
        .body::<RunBody>()
        .json::<Performed>(200, "The result.")
        .errors(&[NOT_JSON, NOT_FOUND, INVALID]),
    ]
}

/// A filter for programs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Words that the programs must match. The best matches are listed first.
    q: Option<String>,
    /// The family of the programs: the part of their names before the first `_`.
    family: Option<String>,
}

/// A list of programs.
#[derive(Debug, Serialize, JsonSchema)]
struct ProgramList {
    /// The programs.
    programs: Vec<Program>,
}

/// A catalog program.
#[derive(Debug, Serialize, JsonSchema)]
struct Program {
    /// The name.
    name: String,
    /// The description.
    description: String,
    /// The part of the name before the first `_`.
    family: String,
    /// `built-in`, or the program's file: its path for administrators of the server's own tenant,
    /// and otherwise its name.
    origin: String,
    /// The arguments, in order.
    args: Vec<Argument>,
    /// The capabilities that the program uses.
    uses: Vec<String>,
    /// A description of the results.
    returns: Option<String>,
}

/// An argument of a program.
#[derive(Debug, Serialize, JsonSchema)]
struct Argument {
    /// The name.
    name: String,
    /// The type: `string`, `int`, `float`, `bool`, `json`, `path` or `url`.
    #[serde(rename = "type")]
    type_name: String,
    /// A short description of the format.
    format: Option<String>,
    /// The description.
    description: String,
    /// The default value.
    default: Option<String>,
    /// If true, the argument is required.
    required: bool,
}

/// A catalog program with its source.
#[derive(Debug, Serialize, JsonSchema)]
struct ProgramDetail {
    #[serde(flatten)]
    program: Program,
    /// The source, including its front matter.
    source: String,
    /// The examples.
    examples: Vec<ProgramExample>,
}

/// An example of a program.
#[derive(Debug, Serialize, JsonSchema)]
struct ProgramExample {
    /// The arguments.
    args: Vec<String>,
    /// The fixtures, which are the example's environment.
    fixtures: FixtureSet,
}

/// A request to run a catalog program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunBody {
    /// The arguments, in order.
    #[serde(default)]
    args: Vec<String>,
    /// The session whose state and files the program uses. Without it, the program gets a new
    /// session.
    session_id: Option<SessionId>,
}

async fn list(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<ProgramList>, ApiError> {
    let catalog = shared.app.host(caller.store.tenant()).catalog();
    let found: Vec<&Arc<Entry>> = match query.q.as_deref().filter(|words| !words.trim().is_empty())
    {
        Some(words) => catalog.search(words),
        None => catalog.iter().collect(),
    };
    let shows_paths = shows_paths(&shared, &caller);
    let programs = found.into_iter().map(|entry| program(entry, shows_paths));
    let is_wanted =
        |program: &Program| query.family.as_ref().is_none_or(|wanted| *wanted == program.family);
    Ok(Json(ProgramList { programs: programs.filter(is_wanted).collect() }))
}

async fn show(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ProgramDetail>, ApiError> {
    let catalog = shared.app.host(caller.store.tenant()).catalog();
    let entry = catalog.get(&name).ok_or_else(|| ApiError::not_found("program", &name))?;
    let example = |example: &wattle_agent::host::catalog::Example| ProgramExample {
        args: example.args.clone(),
        fixtures: FixtureSet::from(&example.fixtures),
    };
    Ok(Json(ProgramDetail {
        program: program(entry, shows_paths(&shared, &caller)),
        source: entry.source().to_string(),
        examples: entry.meta().examples.iter().map(example).collect(),
    }))
}

async fn run(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<Performed>, ApiError> {
    let RunBody { args, session_id } = read_json(request, &shared.limits).await?;
    if shared.app.host(caller.store.tenant()).catalog().get(&name).is_none() {
        return Err(ApiError::not_found("program", &name));
    }
    let call = Call::catalog(name, args);
    perform(&shared, &caller, session_id, call).await.map(Json)
}

/// Returns true if the caller may see where the operator keeps files.
fn shows_paths(shared: &Shared, caller: &Caller) -> bool {
    shared.is_operators(caller) && caller.require(Scope::Admin).is_ok()
}

/// Describes a program. Unless `shows_path` is true, only the name of its file is shown.
fn program(entry: &Entry, shows_path: bool) -> Program {
    let (name, meta) = (entry.name().to_string(), entry.meta());
    let argument = |arg: &wattle_agent::host::catalog::Arg| Argument {
        name: arg.name.clone(),
        type_name: arg.type_hint.name().to_owned(),
        format: arg.format.clone(),
        description: arg.description.clone(),
        default: arg.default.clone(),
        required: arg.default.is_none(),
    };
    Program {
        family: name.split('_').next().unwrap_or_default().to_owned(),
        description: meta.description.clone(),
        origin: match entry.origin() {
            Origin::BuiltIn(_) => "built-in".to_owned(),
            Origin::File(path) | Origin::Skill(path) if !shows_path => {
                path.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            origin
            @ (Origin::File(_) | Origin::Agent(_) | Origin::Server(_) | Origin::Skill(_)) => {
                origin.to_string()
            }
        },
        args: meta.args.iter().map(argument).collect(),
        uses: meta.uses.clone().unwrap_or_default(),
        returns: meta.returns.clone(),
        name,
    }
}

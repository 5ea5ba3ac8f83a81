//! Routes that check and run programs without a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use wattle_agent::host::catalog::Fixtures;
use wattle_agent::host::machine::{Call, Completion, Execution};
use wattle_agent::host::rt::{Diagnostic, Severity};
use wattle_agent::host::{ExampleWorld, RunTree, Scope, Touched, UsageMeter, own_session, touched};

use super::fixtures::FixtureSet;
use crate::app::UsedSession;
use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::SessionId;
use crate::origin::RunOrigin;
use crate::quota::Kind;
use crate::route::Route;
use crate::route::{INVALID, NOT_JSON};
use crate::start::choose;
use crate::state::Shared;
use wattle_mcp::CallEnd;

/// Maximum number of diagnostics that a check returns.
const MAX_DIAGNOSTICS: usize = 32;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "POST",
            "/api/check",
            Scope::Read,
            post(check),
            "Checks a program without running it, and returns what it may touch.",
        )
        .body::<CheckBody>()
        .json::<Checked>(200, "The result of the check.")
        .errors(&[NOT_JSON, INVALID]),
        Route::new(
            "GET",
            "/api/language",
            Scope::Read,
            get(language),
            "Returns the host functions that programs may call.",
        )
        .json::<Language>(200, "The functions, by namespace."),
        Route::new("POST", "/api/exec", Scope::Run, post(exec), "Runs a program.")
            .body::<ExecBody>()
            .json::<Performed>(200, "The result.")
            .errors(&[NOT_JSON, INVALID]),
    ]
}

/// A program to check.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckBody {
    /// The program's text.
    body: String,
}

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
struct Checked {
    /// If true, the program can run.
    ok: bool,
    /// Errors and warnings, in the order in which they occur in the program.
    diagnostics: Vec<Finding>,
    /// The resources outside the run that the program may access. Null if the program is invalid.
    authority: Option<Touched>,
    /// The formatted text, if the program is valid and not yet formatted.
    formatted: Option<String>,
}

/// An error or a warning, with its position in the program.
#[derive(Debug, Serialize, JsonSchema)]
struct Finding {
    /// `error` or `warning`.
    severity: String,
    /// The machine-readable code.
    code: String,
    /// The first line, counted from 1.
    line: u32,
    /// The first column, in characters, counted from 1.
    column: u32,
    /// The last line, counted from 1.
    end_line: u32,
    /// The column after the last character.
    end_column: u32,
    /// The message.
    message: String,
    /// A suggested correction.
    hint: Option<String>,
    /// A fix, if there is one.
    fix: Option<Fixed>,
}

/// A change that corrects the program.
#[derive(Debug, Serialize, JsonSchema)]
struct Fixed {
    /// A description of the fix.
    description: String,
    /// The complete program after the fix.
    text: String,
}

/// A list of host functions.
#[derive(Debug, Serialize, JsonSchema)]
struct Language {
    /// The functions, by namespace.
    functions: Vec<HostFunction>,
}

/// A host function that programs may call.
#[derive(Debug, Serialize, JsonSchema)]
struct HostFunction {
    /// The name, such as `fs.read`.
    name: String,
    /// The function's signature: its parameters and results.
    signature: String,
    /// A description of the function, in one sentence.
    sentence: String,
}

/// A program with its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecBody {
    /// The program's text.
    body: String,
    /// The arguments, in order.
    #[serde(default)]
    args: Vec<String>,
    /// The session whose state and files the program uses. Without it, the program gets a new
    /// session.
    session_id: Option<SessionId>,
    /// The program's complete environment. With it, the program has no access to external
    /// resources.
    fixtures: Option<FixtureSet>,
}

/// The result of a program.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Performed {
    /// If true, the program ran and its exit code is 0.
    success: bool,
    /// The exit code, or null if the program did not run to completion.
    exit_code: Option<i32>,
    /// The results, one per line.
    output: String,
    /// The reason why the program failed or did not run.
    error: Option<String>,
    /// Duration, in milliseconds.
    dur_ms: u64,
    /// Fuel consumed.
    fuel: Option<u64>,
}

async fn check(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<Json<Checked>, ApiError> {
    let CheckBody { body } = read_json(request, &shared.limits).await?;
    // Compiling it takes as much as running a short one.
    let _slot = caller.slot(&shared.quotas, Kind::Program)?;
    let host = shared.app.host(caller.store.tenant());
    let prepared = host.prepare(&body).await;
    let found = match &prepared {
        Ok(program) => program.warnings().to_vec(),
        Err(first) => match host.calling_runtime().check(&body, MAX_DIAGNOSTICS).await {
            // The checks found no error, so only the engine rejects the program.
            none if none.is_empty() => vec![(**first).clone()],
            all => all,
        },
    };
    let ok = prepared.is_ok();
    let formatted = if ok {
        wattle_agent::host::rt::format(&body).ok().filter(|text| *text != body)
    } else {
        None
    };
    Ok(Json(Checked {
        ok,
        diagnostics: found.iter().map(|found| finding(found, &body)).collect(),
        authority: prepared.ok().map(|program| touched(&program)),
        formatted,
    }))
}

async fn language(State(shared): State<Arc<Shared>>, caller: Caller) -> Json<Language> {
    let host = shared.app.host(caller.store.tenant());
    let capabilities = host.runtime().capabilities().iter();
    let functions =
        capabilities.flat_map(|capability| capability.functions).map(|function| HostFunction {
            name: function.name.to_owned(),
            signature: function.signature.usage(),
            sentence: format!("{}.", function.about),
        });
    Json(Language { functions: functions.collect() })
}

async fn exec(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<Json<Performed>, ApiError> {
    let ExecBody { body, args, session_id, fixtures } = read_json(request, &shared.limits).await?;
    let call = Call::Wat { body, args };
    match (fixtures, session_id) {
        (Some(_), Some(_)) => {
            Err(ApiError::invalid_field("`fixtures`: a program with fixtures uses no session"))
        }
        (Some(fixtures), None) => {
            rehearse(&shared, &caller, fixtures.into(), &call).await.map(Json)
        }
        (None, session_id) => perform(&shared, &caller, session_id, call).await.map(Json),
    }
}

/// Runs a program in the environment that its fixtures define.
async fn rehearse(
    shared: &Shared,
    caller: &Caller,
    fixtures: Fixtures,
    call: &Call,
) -> Result<Performed, ApiError> {
    let _slot = caller.slot(&shared.quotas, Kind::Program)?;
    let scene = ExampleWorld::new(&fixtures).await;
    let scene = scene.map_err(|why| ApiError::invalid_field(format!("`fixtures`: {why}")))?;
    let host = &shared.app.host(caller.store.tenant());
    let grants = Arc::new(scene.grants(scene.access(host)));
    let execution =
        wattle_agent::host::perform(host.runtime(), &host.catalog(), &grants, call).await;
    Ok(performed(&execution.map_err(ApiError::internal)?))
}

/// Runs a program with the grants of a plain run of the default agent. If a session is given, changes to its files are
/// kept. If the client disconnects or its token is revoked, the program is ended.
pub(super) async fn perform(
    shared: &Arc<Shared>,
    caller: &Caller,
    session: Option<SessionId>,
    call: Call,
) -> Result<Performed, ApiError> {
    let slot = caller.slot(&shared.quotas, Kind::Program)?;
    let disconnected = CancellationToken::new();
    let _guard = disconnected.clone().drop_guard();
    let (of, caller) = (Arc::clone(shared), caller.clone());
    let execution = async move {
        let session = session.as_ref().map(|session| session.0.as_str());
        execute(&of, &caller, session, &call, (&disconnected, slot.revoked())).await
    };
    // If the client disconnects, the guard is dropped, and nobody waits for the result.
    shared.finish(execution).await?.ok_or_else(ApiError::stopping)
}

/// Runs a program until it ends, the client disconnects or its token is revoked. Then saves the file
/// changes in the given session or, if none is given, removes the session that was created for the
/// program. Returns `None` if the program was ended.
async fn execute(
    shared: &Shared,
    caller: &Caller,
    session: Option<&str>,
    call: &Call,
    (disconnected, revoked): (&CancellationToken, &CancellationToken),
) -> Result<Option<Performed>, ApiError> {
    let store = &caller.store;
    let parts = shared.app.tenant(store.tenant()).map_err(ApiError::internal)?;
    let id = ulid::Ulid::generate().to_string();
    let own = own_session(&id);
    let state = session.unwrap_or(&own);
    let used = UsedSession::find(store, (&id, state), None).await?;
    let files = Arc::new(shared.app.files_for(caller, state).await?);
    // The operator may have replaced the default agent, and its policy binds programs, too.
    let spec = choose(shared, caller, None, &BTreeMap::new()).await?;
    let origin = RunOrigin::of_agent(&spec, None, 1);
    let agent = shared.app.agent_parts(store.tenant(), &origin).map_err(ApiError::internal)?;
    let model = shared.app.model_of(&spec).map_err(ApiError::internal)?;
    let model = model.for_owner(store.tenant().as_str()).unwrap_or(model);
    let meter = UsageMeter::default();
    let grants = {
        let asked = (&model, &meter);
        shared.app.grants(&agent, &parts, &used, Arc::clone(&files), None, asked)
    };
    let grants = Arc::new(RunTree::of_program(&agent.settings, &grants, &meter));
    let host = shared.app.host(store.tenant());
    let catalog = host.catalog();
    let execution = tokio::select! {
        biased;
        execution = wattle_agent::host::perform(host.runtime(), &catalog, &grants, call) => {
            Some(execution)
        }
        () = disconnected.cancelled() => None,
        () = revoked.cancelled() => None,
    };
    // The program may have had effects, so no error from here on asks the client to repeat it.
    match session {
        Some(session) => {
            if let Some(delta) = files.take_delta() {
                let saved = store.add_session_files(session, delta).await;
                saved.map_err(|cause| ApiError::files_not_saved(&cause))?;
            }
        }
        None => {
            // The session is removed later if it cannot be removed now.
            if let Err(error) = store.remove(&own).await {
                tracing::warn!(%error, "failed to remove the session of a program");
            }
        }
    }
    let execution = execution.transpose().map_err(ApiError::internal)?;
    Ok(execution.as_ref().map(performed))
}

impl Performed {
    /// Returns the result as an MCP client gets it.
    pub(super) fn end(self) -> CallEnd {
        let error = self.error.unwrap_or_default();
        let texts = [self.output, error].into_iter().filter(|text| !text.is_empty());
        CallEnd { text: texts.collect::<Vec<_>>().join("\n"), success: self.success }
    }
}

fn performed(execution: &Execution) -> Performed {
    let (output, error) = (execution.results().join("\n"), execution.error());
    let cost = match execution {
        Execution::Ran(Completion { cost, .. }) | Execution::Stopped { cost, .. } => Some(cost),
        Execution::Rejected { .. } | Execution::Refused { .. } => None,
    };
    Performed {
        success: error.is_none(),
        exit_code: execution.exit_code(),
        output,
        error,
        dur_ms: cost.map_or(0, |cost| cost.dur_ms),
        fuel: cost.and_then(|cost| cost.fuel),
    }
}

fn finding(found: &Diagnostic, source: &str) -> Finding {
    Finding {
        severity: match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
        .to_owned(),
        code: found.code.to_owned(),
        line: found.position.line,
        column: found.position.column,
        end_line: found.end.line,
        end_column: found.end.column,
        message: found.message.clone(),
        hint: found.hint.clone(),
        fix: found
            .fix
            .as_ref()
            .map(|fix| Fixed { description: fix.description.clone(), text: fix.apply(source) }),
    }
}

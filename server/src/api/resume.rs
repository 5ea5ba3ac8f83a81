//! Routes that answer pending approvals and that release, fork or replay runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::post;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_agent::agents::AgentSpec;
use wattle_agent::host::journal::{self, Approval, Journal as _, SharedJournal};
use wattle_agent::host::{Scope, Stored};

use super::runs::{Run, STEPS, Started, run, view};
use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::MessageText;
use crate::origin::{RunOrigin, set_token};
use crate::path::Path;
use crate::quota::Kind;
use crate::route::Route;
use crate::route::{BUSY, FULL, INVALID, NOT_FOUND, NOT_JSON};
use crate::start::slot;
use crate::state::Shared;

const NOT_WAITING: (u16, &str) = (409, "The run does not wait for this.");

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "POST",
            "/api/run/{id}/approvals/{call}",
            Scope::Run,
            post(answer),
            "Approves or denies a call that waits for a person.",
        )
        .body::<AnswerBody>()
        .json::<Run>(200, "The answer is recorded.")
        .errors(&[NOT_JSON, NOT_FOUND, NOT_WAITING, INVALID, BUSY, FULL]),
        Route::new(
            "POST",
            "/api/run/{id}/release",
            Scope::Admin,
            post(release),
            "Resumes a run that was parked because it repeatedly ended its process.",
        )
        .json::<Started>(202, "The run goes on.")
        .errors(&[NOT_FOUND, NOT_WAITING, BUSY, FULL]),
        Route::new(
            "POST",
            "/api/runs/release",
            Scope::Admin,
            post(release_all),
            "Resumes all runs that were parked because they repeatedly ended their process.",
        )
        .json::<Released>(202, "The runs go on."),
        Route::new(
            "POST",
            "/api/run/{id}/fork",
            Scope::Run,
            post(fork),
            "Starts a new run that shares the beginning of this one.",
        )
        .body::<ForkBody>()
        .json::<ForkedRun>(
            202,
            "The new run is open. The files and the state of its session return to what they were \
             at the step; the tenant's variables and memory do not.",
        )
        .errors(&[NOT_JSON, NOT_FOUND, INVALID, BUSY, FULL]),
        Route::new(
            "POST",
            "/api/run/{id}/replay",
            Scope::Run,
            post(replay),
            "Replays a run without model and network, and compares it with its record.",
        )
        .json::<Replayed>(200, "The comparison.")
        .errors(&[NOT_FOUND]),
    ]
}

/// An answer to a pending approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    /// If true, the call is approved.
    approve: bool,
    /// The scope of the approval.
    #[serde(default)]
    scope: AnswerScope,
    /// The reason for a denial, which the model reads.
    reason: Option<String>,
}

/// The scope of an approval.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AnswerScope {
    /// The approval applies only to this call.
    #[default]
    Once,
    /// The approval also applies to the same effects of all later programs in the session, until
    /// the server restarts.
    Session,
}

/// The step at which a run is forked, and the first new message, if any.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    /// The last step that both runs share. 0 is the start of the run.
    step: u32,
    /// The next message of the new run. Without it, the model is asked again.
    message: Option<MessageText>,
}

/// The runs that were released.
#[derive(Debug, Serialize, JsonSchema)]
struct Released {
    /// The ids of the runs.
    run_ids: Vec<String>,
}

/// A new fork of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct ForkedRun {
    #[serde(flatten)]
    run: Started,
    /// If true, the session's state is what it was at that step. If false, its earlier values are
    /// no longer recorded, and the run begins with the current ones.
    state_restored: bool,
}

/// The result of a replay.
#[derive(Debug, Serialize, JsonSchema)]
struct Replayed {
    /// If true, the replay matches the recorded run.
    same: bool,
    /// Number of replayed turns.
    turns: usize,
    /// Number of programs that ran again.
    programs: usize,
    /// The first difference, if any.
    difference: Option<ReplayDifference>,
}

/// A difference between a run and its replay.
#[derive(Debug, Serialize, JsonSchema)]
struct ReplayDifference {
    /// The step.
    step: u32,
    /// A description of the difference.
    what: String,
    /// The recorded value.
    was: String,
    /// The value in the replay.
    is: String,
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path((id, call)): Path<(String, String)>,
    request: Request,
) -> Result<Json<Run>, ApiError> {
    let AnswerBody { approve, scope, reason } = read_json(request, &shared.limits).await?;
    let approval = match (approve, scope) {
        (false, _) => Approval::Denied(reason.unwrap_or_default()),
        (true, AnswerScope::Once) => Approval::Once,
        (true, AnswerScope::Session) => Approval::Session,
    };
    let (service, store, of) = (shared.service.clone(), caller.store.clone(), id.clone());
    // If the client disconnects after its answer was recorded, the run is still resumed.
    let answer =
        async move { service.answer(&store, &of, &call, approval).await.map_err(ApiError::from) };
    shared.finish(answer).await?;
    run(&shared, &caller, &id).await.map(Json)
}

async fn release(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<Started>), ApiError> {
    let (service, store, of) = (shared.service.clone(), caller.store.clone(), id.clone());
    let release = async move { service.release(&store, &of).await.map_err(ApiError::from) };
    shared.finish(release).await?;
    Ok((StatusCode::ACCEPTED, Json(Started::from(view(&shared, &caller, &id).await?))))
}

async fn release_all(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
) -> Result<(StatusCode, Json<Released>), ApiError> {
    let run_ids = shared.service.release_all(&caller.store).await?;
    Ok((StatusCode::ACCEPTED, Json(Released { run_ids })))
}

async fn fork(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<ForkedRun>), ApiError> {
    let ForkBody { step, message } = read_json(request, &shared.limits).await?;
    let message = message.map(|message| message.0);
    caller.reserve(Stored::Fork(&id)).await?;
    let slot = slot(&shared, &caller)?;
    let (of, store, memory) = (Arc::clone(&shared), caller.store.clone(), caller.memory.clone());
    let token = caller.limited;
    let by = move |origin: &mut Value| set_token(origin, token);
    // A client that disconnects does not leave an incomplete copy, which a server would drive.
    let fork = async move {
        let _memory = memory;
        let _slot = slot;
        let (forked, _) = of.service.fork(&store, &id, (step, message), by).await?;
        // Nothing may fail from here on: a client would repeat the request.
        let run = Started::running(forked.run.id, forked.run.session);
        Ok::<_, ApiError>(ForkedRun { run, state_restored: forked.is_state_restored })
    };
    Ok((StatusCode::ACCEPTED, Json(shared.finish(fork).await?)))
}

async fn replay(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Replayed>, ApiError> {
    let record = caller.store.run(&id).await?.ok_or_else(|| ApiError::not_found("run", &id))?;
    let _slot = caller.slot(&shared.quotas, Kind::Program)?;
    caller.reserve(Stored::Record(&id)).await?;
    let journal: SharedJournal = Arc::new(caller.store.clone());
    let agent = AgentSpec::of_origin(&record.start.origin).map_err(ApiError::internal)?;
    let origin = RunOrigin::of_agent(&agent, None, shared.app.steps(STEPS));
    let parts =
        shared.app.agent_parts(caller.store.tenant(), &origin).map_err(ApiError::internal)?;
    let report = journal::replay(&parts.host, &journal, &record, 0).await?;
    let difference = report.difference.map(|(step, differs)| ReplayDifference {
        step,
        what: differs.what,
        was: differs.was,
        is: differs.is,
    });
    Ok(Json(Replayed {
        same: difference.is_none(),
        turns: report.turns,
        programs: report.programs,
        difference,
    }))
}

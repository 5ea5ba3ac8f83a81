//! Functions that start runs, shared by several routes.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_agent::Cancel;
use wattle_agent::agents::{AgentSpec, DEFAULT_AGENT};
use wattle_agent::host::service::RunHandle;
use wattle_agent::host::{RunRequest, TenantStore};

use crate::caller::Caller;
use crate::error::ApiError;
use crate::origin::{REVOKED, RunOrigin, set_token};
use crate::quota::{Kind, Slot};
use crate::state::Shared;
use crate::stream::CancelOnDrop;

/// A run whose client waits for the answer.
pub(crate) struct StartedRun {
    pub(crate) id: String,
    /// A guard that cancels the run when dropped, or `None` if the run continues without its
    /// client.
    pub(crate) guard: Option<CancelOnDrop>,
}

/// Starts a run whose client waits for the answer. Fails if the server is full. If the run needs its
/// client, it is cancelled when its client disconnects or this process ends.
pub(crate) async fn start(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: RunRequest,
) -> Result<StartedRun, ApiError> {
    let slot = slot(shared, caller)?;
    let request = started_by(caller, request);
    let (of, store) = (Arc::clone(shared), caller.store.clone());
    let needs_client = request.needs_client;
    // If the client disconnects while the run is being recorded, the guard is still created.
    // Dropping it then cancels the run.
    let started = async move {
        let run = of.service.start(&store, request, &Cancel::new()).await?;
        of.metrics.run_started();
        let id = held(&of, &store, run, slot);
        let new = || CancelOnDrop::new(of.service.clone(), store, id.clone());
        let guard = needs_client.then(new);
        Ok::<_, ApiError>(StartedRun { id, guard })
    };
    shared.finish(started).await
}

/// Starts a run in the background, or queues it if the server is full. Returns the run's id.
pub(crate) async fn queue(
    shared: &Shared,
    caller: &Caller,
    request: RunRequest,
) -> Result<String, ApiError> {
    let slot = slot(shared, caller)?;
    let request = started_by(caller, request);
    let (id, active) = shared.service.enqueue(&caller.store, request).await?;
    shared.metrics.run_started();
    if let Some(run) = active {
        held(shared, &caller.store, run, slot);
    }
    Ok(id)
}

/// Returns the request with the caller's token in its origin.
fn started_by(caller: &Caller, mut request: RunRequest) -> RunRequest {
    set_token(&mut request.origin, caller.limited);
    request
}

/// Acquires a run slot for the caller's token.
pub(super) fn slot(shared: &Shared, caller: &Caller) -> Result<Slot, ApiError> {
    caller.slot(&shared.quotas, Kind::Run)
}

/// Returns the run's id immediately and holds the slot until the run is no longer active. If the
/// slot's token is revoked, the run is cancelled.
pub(super) fn held(shared: &Shared, store: &TenantStore, run: RunHandle, slot: Slot) -> String {
    let id = run.id.clone();
    let (service, store, of) = (shared.service.clone(), store.clone(), id.clone());
    tokio::spawn(async move {
        tokio::select! {
            biased;
            _ = run.outcome() => return,
            () = slot.revoked().cancelled() => {}
        }
        if let Err(cause) = service.cancel(&store, &of, REVOKED).await {
            tracing::error!(run = of, %cause, "failed to cancel a run of a revoked token");
        }
        run.outcome().await;
    });
    id
}

/// Returns the agent named in a caller's request, or the default agent if the request names
/// none. Adds the request's context values to the agent and checks that the agent can be used.
pub(crate) async fn choose(
    shared: &Shared,
    caller: &Caller,
    name: Option<&str>,
    context: &BTreeMap<String, String>,
) -> Result<Arc<AgentSpec>, ApiError> {
    let invalid = |why: String| ApiError::invalid_field(format!("`agent`: {why}"));
    let (tenant, name) = (caller.store.tenant(), name.unwrap_or(DEFAULT_AGENT));
    let found = shared.app.agents().load(tenant, name).await;
    let mut agent = found.map_err(|error| invalid(error.to_string()))?;
    if !context.is_empty() {
        agent = Arc::new(agent.with_context(context));
    }
    shared.app.agent_parts(tenant, &RunOrigin::of_agent(&agent, None, 1)).map_err(invalid)?;
    Ok(agent)
}

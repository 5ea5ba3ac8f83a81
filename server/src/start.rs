//! Functions that start runs, shared by several routes.

use std::collections::BTreeMap;
use std::sync::Arc;

use wattle_agent::Cancel;
use wattle_agent::agents::{AgentSpec, DEFAULT_AGENT};
use wattle_agent::host::RunRequest;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::origin::{RunOrigin, set_token, token};
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
        // From now on, the run itself is counted.
        drop(slot);
        let id = run.id;
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
    let _slot = slot(shared, caller)?;
    let request = started_by(caller, request);
    let (id, _) = shared.service.enqueue(&caller.store, request).await?;
    shared.metrics.run_started();
    Ok(id)
}

/// Returns the request with the caller's token in its origin.
fn started_by(caller: &Caller, mut request: RunRequest) -> RunRequest {
    set_token(&mut request.origin, caller.limited);
    request
}

/// Acquires a slot for one more run of the caller's token. It is held until the run is active, and
/// counted beside the token's active runs, however those became active.
pub(super) fn slot(shared: &Shared, caller: &Caller) -> Result<Slot, ApiError> {
    let mut active = 0;
    shared.service.each_active(|_, _, origin| {
        active += usize::from(caller.limited.is_some() && token(origin) == caller.limited);
    });
    shared.quotas.acquire_beside(active, Kind::Run, caller.limited, caller.store.tenant())
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

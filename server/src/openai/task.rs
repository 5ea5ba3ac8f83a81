//! Requests that chat pages send without a user's action, for example to generate a title. Each one
//! starts a run that sends exactly one request to the model and has no programs, no session and no
//! agent prompt.

use std::sync::Arc;

use wattle_agent::host::RunRequest;

use super::conversation::Conversation;
use super::{Completion, STEPS, models};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::origin::RunOrigin;
use crate::start;
use crate::state::Shared;

/// The prefix of requests that chat pages send without a user's action.
const TASK: &str = "### Task:";

/// Returns true if a chat page sent the request without a user's action, for example to show a
/// title, tags or suggestions. Such a request contains the conversation in its only message.
pub(super) fn is_task(conversation: &Conversation) -> bool {
    conversation.earlier.is_empty() && conversation.message.0.trim_start().starts_with(TASK)
}

/// Starts the run for a request that a chat page sent without a user's action. `model` is a name
/// listed by `GET /v1/models`.
pub(super) async fn start(
    shared: &Arc<Shared>,
    caller: &Caller,
    model: &str,
    conversation: &Conversation,
) -> Result<Completion, ApiError> {
    let agent = models::agent(shared, caller, model).await?;
    let steps = shared.app.steps(STEPS);
    let origin = RunOrigin {
        system: conversation.system.clone(),
        plain: true,
        ..RunOrigin::of_agent(&agent, None, steps)
    };
    let request = RunRequest {
        origin: origin.json(),
        needs_client: true,
        ..RunRequest::new(conversation.message.0.as_str())
    };
    let run = start::start(shared, caller, request).await?;
    Ok(Completion::of(shared, caller, run, None))
}

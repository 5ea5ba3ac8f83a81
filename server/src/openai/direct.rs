//! Hidden requests from chat pages, for example to generate a title. The model answers them without
//! a run.

use wattle_agent::machine::{Message, Usage};
use wattle_agent::model::ModelRequest;

use super::conversation::Conversation;
use crate::error::ApiError;
use crate::state::Shared;

/// The prefix of requests that chat pages send without a user's action.
const TASK: &str = "### Task:";

/// Maximum number of tokens in the answer.
const MAX_TOKENS: u32 = 1_000;

/// Returns true if a chat page sent the request without a user's action, for example to show a
/// title, tags or suggestions.
pub(super) fn is_hidden(conversation: &Conversation) -> bool {
    conversation.message.0.trim_start().starts_with(TASK)
}

/// Returns the model's answer and its token usage, without running the agent.
pub(super) async fn answer(
    shared: &Shared,
    conversation: &Conversation,
) -> Result<(String, Usage), ApiError> {
    let mut messages: Vec<Message> = conversation.system.iter().map(Message::system).collect();
    messages.extend(conversation.earlier.iter().cloned());
    messages.push(Message::user(&conversation.message.0));
    let settings = shared.app.settings();
    let request = ModelRequest {
        temperature: settings.temperature,
        max_tokens: MAX_TOKENS,
        ..ModelRequest::new(&messages)
    };
    let reply = shared.app.model().complete(request).await;
    let reply = reply.map_err(|error| ApiError::model_failed(&error.to_string()))?;
    let usage = settings.prices.priced(shared.app.model().name(), reply.usage);
    Ok((reply.text, usage))
}

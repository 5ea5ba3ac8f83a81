//! The recorded requests of a run to the model, in human-readable form.

use serde::Serialize;
use wattle_machine::{FunctionCall, Input, Message, ModelAnswer, Role, Usage};
use wattle_store::StoreError;

use super::{RecordedAsk, RecordedEffect, SharedJournal};

/// A request to the model, with its answer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestView {
    /// The step, counted from 1.
    pub step: u32,
    /// The number of the attempt within the step, counted from 0.
    pub attempt: u32,
    /// Number of leading messages that are the same as in the previous request.
    pub same: usize,
    /// The remaining messages.
    pub messages: Vec<MessageView>,
    /// The answer. Null if there is none, for example because the request failed.
    pub answer: Option<AnswerView>,
}

/// A message of a request.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageView {
    /// The role: `system`, `user`, `assistant` or `tool`.
    pub role: &'static str,
    /// The text.
    pub content: String,
    /// The model's function calls, in addition to the text.
    pub calls: Vec<FunctionView>,
}

/// An answer of the model.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerView {
    /// The text, complete and unmodified.
    pub text: String,
    /// The reasoning, if the provider returns it separately from the text.
    pub reasoning: Option<String>,
    /// The function calls.
    pub calls: Vec<FunctionView>,
    /// The token usage of the request.
    pub usage: Usage,
}

/// A function call of the model.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionView {
    /// The function's name.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
}

/// Returns the requests of a run to the model, in order.
///
/// # Errors
/// If the journal cannot be read.
pub async fn requests(journal: &SharedJournal, run: &str) -> Result<Vec<RequestView>, StoreError> {
    let mut views: Vec<RequestView> = Vec::new();
    for turn in journal.turns(run).await? {
        if let (Input::Answer(answer), Some(asked)) = (turn.input, views.last_mut()) {
            asked.answer = Some(answer.into());
        }
        views.extend(turn.effects.into_iter().filter_map(|effect| match effect {
            RecordedEffect::Ask(ask) => Some(ask.into()),
            _ => None,
        }));
    }
    Ok(views)
}

impl From<RecordedAsk> for RequestView {
    fn from(ask: RecordedAsk) -> RequestView {
        RequestView {
            step: ask.step,
            attempt: ask.attempt,
            same: ask.same,
            messages: ask.messages.iter().map(MessageView::from).collect(),
            answer: None,
        }
    }
}

impl From<&Message> for MessageView {
    fn from(message: &Message) -> MessageView {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        MessageView { role, content: message.content.to_string(), calls: views(&message.calls) }
    }
}

impl From<ModelAnswer> for AnswerView {
    fn from(answer: ModelAnswer) -> AnswerView {
        let ModelAnswer { text, reasoning, usage, .. } = answer;
        AnswerView { text, reasoning, calls: views(&answer.calls), usage }
    }
}

fn views(calls: &[FunctionCall]) -> Vec<FunctionView> {
    let view = |FunctionCall { name, arguments, .. }: &FunctionCall| FunctionView {
        name: name.clone(),
        arguments: arguments.to_string(),
    };
    calls.iter().map(view).collect()
}

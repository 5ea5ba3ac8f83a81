//! Summaries that replace the old messages of a session.

use std::fmt::Write;

use wattle_machine::{Message, Role, Usage};
use wattle_model::{
    Delta, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, ask_within,
};

use crate::settings::Settings;

/// The instructions for the model that writes a summary.
const SUMMARIZE: &str = "You summarize a conversation between a user and an assistant that runs \
                         programs. The summary replaces the conversation. Keep the user's goals, \
                         decisions, results, names of files, and open questions. Leave out \
                         everything else. Write plain text, at most 300 words.";

/// Maximum size of the text of one request if the model's context window is unknown, in bytes.
const PART_BYTES: usize = 300_000;
/// Size of the text of one request, in bytes, below which a request that is too long fails.
const MIN_PART_BYTES: usize = 2_000;

/// A summary of all messages before the last exchange of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Compacted {
    /// The summary. Empty if the model returned none.
    pub summary: String,
    /// Number of messages that the summary replaces: the first ones of the conversation.
    pub replaced: usize,
    /// The messages that replace them.
    pub messages: Vec<Message>,
    /// The model usage.
    pub usage: Usage,
}

/// Asks the model to summarize all messages before the last exchange. A conversation that exceeds
/// the model's context window is summarized in parts. Returns `None` if nothing precedes the last
/// exchange.
///
/// # Errors
/// If a request to the model fails.
pub async fn compact(
    model: &dyn Model,
    settings: &Settings,
    conversation: &[Message],
) -> Result<Option<Compacted>, ModelError> {
    let replaced = conversation.iter().rposition(Message::begins_exchange).unwrap_or(0);
    let old = conversation.get(..replaced).unwrap_or_default();
    if old.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    for message in old {
        let who = if message.role == Role::Assistant { "assistant" } else { "user" };
        // Writing to a string cannot fail.
        _ = writeln!(text, "{who}: {}\n", message.content.trim());
    }
    let (mut summary, mut usage, mut rest) = (String::new(), Usage::default(), text.as_str());
    let window = || model.window().or_else(|| settings.prices.window(model.name()));
    let mut most = window().map_or(PART_BYTES, |tokens| {
        usize::try_from(tokens.saturating_mul(2)).unwrap_or(PART_BYTES).max(MIN_PART_BYTES)
    });
    while !rest.is_empty() {
        let (part, later) = rest.split_at(rest.floor_char_boundary(most));
        let question = if summary.is_empty() {
            part.to_owned()
        } else {
            format!("Summary of the conversation so far:\n{summary}\n\nIt continues:\n{part}")
        };
        match ask(model, settings, question).await {
            Ok(reply) => {
                usage += settings.prices.priced(model.name(), reply.usage);
                reply.text.trim().clone_into(&mut summary);
                rest = later;
            }
            Err(error) if error.kind() == ModelErrorKind::TooLong && most > MIN_PART_BYTES => {
                most = (most.min(part.len()) / 2).max(MIN_PART_BYTES);
            }
            Err(error) => return Err(error),
        }
    }
    let opening = Message::user(format!("Summary of the conversation so far:\n{summary}"));
    let messages = vec![opening, Message::assistant("I will continue from there.")];
    Ok(Some(Compacted { summary, replaced, messages, usage }))
}

async fn ask(
    model: &dyn Model,
    settings: &Settings,
    question: String,
) -> Result<ModelReply, ModelError> {
    let messages = [Message::system(SUMMARIZE), Message::user(question)];
    let mut ignore = |_: Delta<'_>| {};
    ask_within(model, &settings.timeouts, ModelRequest::new(&messages), &mut ignore).await
}

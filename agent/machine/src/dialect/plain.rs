//! The plain dialect: the whole text of an answer is the final answer. No part of it is a call.

use super::{Intent, ParsedAnswer};
use crate::{message::Message, request::ModelAnswer};

/// Reads an answer. It is not marked as complete, because its text may have been truncated.
pub(super) fn read(answer: &ModelAnswer) -> ParsedAnswer {
    let text = answer.text.trim();
    ParsedAnswer {
        thought: answer.reasoning.clone(),
        intent: Intent::Answer(text.to_owned()),
        message: Message::assistant(text),
        notes: Vec::new(),
        done: Vec::new(),
        is_complete: false,
    }
}

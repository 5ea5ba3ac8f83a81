//! Transcripts: the conversations of attempts, as files for human readers.
//!
//! ```text
//! === attempt text/count_word by llama3, programs: failed
//! the answer has the number 8, expected 5
//! === system
//! You solve the user's task step by step. …
//! === user
//! How often does the word whale stand in chapter.txt? …
//! === assistant
//! …
//! ```

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use wattle_agent::host::machine::{FunctionCall, Message, Role};
use wattle_agent::model::{Mask, ModelReply};

use crate::attempt::{Attempt, Verdict};
use crate::error::EvalError;
use crate::place;
use crate::recording::{attempt_name, encode};

/// The conversation of an attempt: the messages of its last request, and the reply.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    /// The reply to the last request, or its error.
    pub(crate) reply: Option<Result<ModelReply, String>>,
}

/// Writes an attempt's transcript to `FOLDER/MODEL/KIND/NAME.txt`, with keys and secrets masked.
pub(crate) fn write(
    folder: &Path,
    attempt: &Attempt,
    conversation: &Conversation,
    mask: &Mask,
) -> Result<(), EvalError> {
    let path = path(folder, attempt);
    let failed = |why: std::io::Error| EvalError::write(&path, why);
    place::prepare(folder, &path).map_err(failed)?;
    std::fs::write(&path, mask.text(&text(attempt, conversation))).map_err(failed)
}

fn path(folder: &Path, attempt: &Attempt) -> PathBuf {
    let name = attempt_name(&attempt.task, attempt.approach, attempt.trial);
    folder.join(encode(&attempt.model)).join(name + ".txt")
}

fn text(attempt: &Attempt, conversation: &Conversation) -> String {
    let verdict = match attempt.verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::Error => "error",
    };
    let Attempt { task, model, approach, .. } = attempt;
    let mut text = format!("=== attempt {task} by {model}, {approach}: {verdict}\n");
    attempt.problems.iter().for_each(|problem| _ = writeln!(text, "{problem}"));
    for message in &conversation.messages {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        section(&mut text, role, &message.content, &message.calls);
    }
    match &conversation.reply {
        Some(Ok(reply)) => {
            if let Some(reasoning) = &reply.reasoning {
                section(&mut text, "reasoning", reasoning, &[]);
            }
            section(&mut text, "assistant", &reply.text, &reply.calls);
        }
        Some(Err(error)) => section(&mut text, "error", error, &[]),
        None => {}
    }
    text
}

fn section(text: &mut String, head: &str, content: &str, calls: &[FunctionCall]) {
    _ = writeln!(text, "=== {head}");
    if !content.is_empty() {
        _ = writeln!(text, "{content}");
    }
    calls.iter().for_each(|call| _ = writeln!(text, "{}({})", call.name, call.arguments));
}

//! Reads an answer that contains no call.

use super::{
    Action, Note, Reading, answer, body, call,
    header::{self, Kind},
    text::{byte, fence, line_end, slice, starts, trim_blank_lines},
};

/// Reads the text outside of reasoning as a fenced program, a call without its prefix, or the final
/// answer.
pub(super) fn read(text: &str, outside: &str, thought: Option<String>) -> Reading {
    let lone = outside.trim();
    let retained = text.trim_end().to_owned();
    let reading = |action, notes| Reading {
        thought: thought.clone(),
        action,
        notes,
        retained: retained.clone(),
    };
    if let Some((body, note)) = program(lone) {
        return reading(
            Action::Wat { body, args: Vec::new() },
            [Note::BareProgram].into_iter().chain(note).collect(),
        );
    }
    if let Some(header) = header::bare_at_offset(lone, 0) {
        let call = call::read(lone, &header);
        // Prose such as "Fix (the second line)" is not a call.
        let is_call =
            !call.is_mention && !matches!(&call.action, Action::Fix { texts } if texts.len() < 2);
        if header::after_decoration(lone, call.end) == lone.len() && is_call {
            return reading(call.action, vec![Note::BareCall]);
        }
    }
    if let Some((Kind::Response, end)) = header::prefixed_kind(lone, 0)
        && let Some(text) = answer::without_parentheses(lone, end)
    {
        return reading(Action::Response { text }, vec![Note::BareCall]);
    }
    reading(Action::Response { text: trim_blank_lines(outside).to_owned() }, Vec::new())
}

/// Maximum number of fences that are searched for a program. The limit keeps the reader's running
/// time linear even if the answer consists of fences.
const MAX_FENCES: usize = 8;

/// Returns a reading whose action is the first fenced program in the answer's text. If the model
/// gave no thought, the text before the program becomes the thought. Returns the reading unchanged
/// if its text contains no fenced program.
pub(super) fn program_in_prose(reading: Reading) -> Reading {
    let Action::Response { text } = &reading.action else { return reading };
    let mut at = 0;
    let fences = text.split_inclusive('\n').filter_map(|line| {
        let start = at;
        at += line.len();
        fence(text, start).map(|(mark, length)| (start, mark, length))
    });
    for (start, mark, length) in fences.take(MAX_FENCES) {
        let found = body::fenced(text, start, mark, length);
        if is_program(text, start + length, &found.text) {
            let before = slice(text, 0, start).trim();
            let thought =
                reading.thought.or_else(|| (!before.is_empty()).then(|| before.to_owned()));
            let notes = [Note::BareProgram].into_iter().chain(found.note).collect();
            let action = Action::Wat { body: found.text, args: Vec::new() };
            return Reading { thought, action, notes, retained: reading.retained };
        }
    }
    reading
}

/// Reads an answer that consists of a single fenced program. Returns `None` for any other answer.
fn program(lone: &str) -> Option<(String, Option<Note>)> {
    let (mark, length) = fence(lone, 0)?;
    let found = body::fenced(lone, 0, mark, length);
    let alone = slice(lone, found.end, lone.len()).trim().is_empty();
    (alone && is_program(lone, length, &found.text)).then_some((found.text, found.note))
}

/// Returns true if `body` is a program. `info` is the offset in `text` of the fence's language.
pub(super) fn is_program(text: &str, info: usize, body: &str) -> bool {
    let first = slice(text, info, line_end(text, info)).trim();
    let tagged = ["wat", "wast", "wasm", "webassembly", "text/wat"]
        .iter()
        .any(|tag| starts(first, 0, tag) && !byte(first, tag.len()).is_ascii_alphanumeric());
    let untagged = first.is_empty() || first.eq_ignore_ascii_case("lisp");
    !body.is_empty() && (tagged || untagged && begins_program(body))
}

/// Names of the forms that a program may begin with.
const HEADS: [&str; 16] = [
    "argv", "resv", "check", "call", "local", "module", "func", "block", "loop", "if", "let",
    "ret", "out", "when", "drop", "return",
];

fn begins_program(body: &str) -> bool {
    let code =
        body.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with(";;"));
    let Some(form) = code.and_then(|line| line.strip_prefix('(')) else { return false };
    let head = form
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"'))
        .next()
        .unwrap_or_default();
    HEADS.contains(&head)
        || ["local.", "i32.", "i64.", "f64.", "global."].iter().any(|group| head.starts_with(group))
}

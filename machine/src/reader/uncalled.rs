//! Reads an answer that holds no call.

use super::{
    Action, Note, Reading, answer, body, call,
    header::{self, Kind},
    text::{byte, cut, fence, starts, trim_blank_lines},
};

/// Reads `outside`, what stands outside reasoning: a lone program, a call that lacks its prefix, or the answer itself.
pub(super) fn read(text: &str, outside: &str, thought: Option<String>) -> Reading {
    let lone = outside.trim();
    let said = text.trim_end().to_owned();
    let reading = |action, notes| Reading { thought: thought.clone(), action, notes, said: said.clone() };
    if let Some((body, note)) = program(lone) {
        return reading(Action::Wat { body, args: Vec::new() }, [Note::BareProgram].into_iter().chain(note).collect());
    }
    if let Some(header) = header::bare_at_offset(lone, 0) {
        let call = call::read(lone, &header);
        if header::after_decoration(lone, call.end) == lone.len() && !call.is_mention {
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

/// Reads a text that is nothing but one fenced program.
fn program(lone: &str) -> Option<(String, Option<Note>)> {
    let (mark, length) = fence(lone, 0)?;
    let found = body::fenced(lone, 0, mark, length);
    let first = cut(lone, length, lone.len()).split('\n').next().unwrap_or_default().trim();
    let tagged = ["wat", "wast", "wasm", "webassembly", "text/wat"]
        .iter()
        .any(|tag| starts(first, 0, tag) && !byte(first, tag.len()).is_ascii_alphanumeric());
    let is_program = tagged || (first.is_empty() || first.eq_ignore_ascii_case("lisp")) && begins_program(&found.text);
    let alone = cut(lone, found.end, lone.len()).trim().is_empty();
    (is_program && alone && !found.text.is_empty()).then_some((found.text, found.note))
}

/// Heads of forms that a program begins with.
const HEADS: [&str; 16] = [
    "argv", "resv", "check", "call", "local", "module", "func", "block", "loop", "if", "let", "ret", "out", "when",
    "drop", "return",
];

fn begins_program(body: &str) -> bool {
    let code = body.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with(";;"));
    let Some(form) = code.and_then(|line| line.strip_prefix('(')) else { return false };
    let head = form.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"')).next().unwrap_or_default();
    HEADS.contains(&head) || ["local.", "i32.", "i64.", "f64.", "global."].iter().any(|group| head.starts_with(group))
}

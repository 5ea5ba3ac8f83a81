//! Reads an answer that holds no call.

use super::{
    Action, Note, Reading, answer, body, call,
    header::{self, Kind},
    text::{byte, cut, fence, line_end, starts, trim_blank_lines},
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

/// How many fences are looked at in search of a program: a bound, so that a text of nothing but fences is read in linear
/// time.
const FENCES: usize = 8;

/// Takes the first fenced program in the text of an answer for its action, and the text before it for the thought.
pub(super) fn program_in_prose(reading: Reading) -> Reading {
    let Action::Response { text } = &reading.action else { return reading };
    let mut at = 0;
    let fences = text.split_inclusive('\n').filter_map(|line| {
        let start = at;
        at += line.len();
        fence(text, start).map(|(mark, length)| (start, mark, length))
    });
    for (start, mark, length) in fences.take(FENCES) {
        let found = body::fenced(text, start, mark, length);
        if is_program(text, start + length, &found.text) {
            let before = cut(text, 0, start).trim();
            let thought = reading.thought.or_else(|| (!before.is_empty()).then(|| before.to_owned()));
            let notes = [Note::BareProgram].into_iter().chain(found.note).collect();
            let action = Action::Wat { body: found.text, args: Vec::new() };
            return Reading { thought, action, notes, said: reading.said };
        }
    }
    reading
}

/// Reads a text that is nothing but one fenced program.
fn program(lone: &str) -> Option<(String, Option<Note>)> {
    let (mark, length) = fence(lone, 0)?;
    let found = body::fenced(lone, 0, mark, length);
    let alone = cut(lone, found.end, lone.len()).trim().is_empty();
    (alone && is_program(lone, length, &found.text)).then_some((found.text, found.note))
}

/// Tells whether `body`, in a fence whose language stands at `info`, is a program.
fn is_program(text: &str, info: usize, body: &str) -> bool {
    let first = cut(text, info, line_end(text, info)).trim();
    let tagged = ["wat", "wast", "wasm", "webassembly", "text/wat"]
        .iter()
        .any(|tag| starts(first, 0, tag) && !byte(first, tag.len()).is_ascii_alphanumeric());
    let untagged = first.is_empty() || first.eq_ignore_ascii_case("lisp");
    !body.is_empty() && (tagged || untagged && begins_program(body))
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

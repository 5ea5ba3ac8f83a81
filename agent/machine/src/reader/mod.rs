//! Reads a model's answer in the text dialect.
//!
//! Models often make mistakes in the format, so reading never fails: every text yields one action.
//! The reader uses the first call outside of reasoning, drops the text after it, and adds a note
//! for the model. Well-formed input is always read strictly. Only malformed input is read
//! leniently.
//!
//! The reader takes time linear in the answer's length: each scan only moves forward, and a scan
//! that reached the end of the text without success is not repeated.

mod answer;
mod arguments;
mod body;
mod call;
mod header;
mod quote;
mod reading;
mod scan;
mod text;
mod uncalled;
mod value;

use std::borrow::Cow;

pub use self::reading::{Action, Note, Reading};
use self::{
    header::Header,
    text::{fence, slice},
};
use crate::dialect::function_action;
use crate::families::{Mark, MarkKind, scan};
use crate::function::ProgramFunction;
use crate::message::FunctionCall;

/// Reads a model's answer. Never fails, and takes time linear in the answer's length.
///
/// ```
/// use wattle_machine::{Action, read};
///
/// let reading = read(
///     "<reasoning>the page</reasoning>\n\
///      ToolCall::Catalog(\"http_get\", \"https://example.com\"",
/// );
/// assert_eq!(reading.thought.as_deref(), Some("the page"));
/// assert_eq!(
///     reading.action,
///     Action::Catalog { name: "http_get".into(), args: vec!["https://example.com".into()] }
/// );
/// ```
pub fn read(answer: &str) -> Reading {
    match read_call(answer, &[]) {
        ReadResult::Called(reading) | ReadResult::Uncalled(reading) => reading,
        ReadResult::Functions(LeakedCalls { thought, calls, is_followed, .. }) => {
            let action = calls.first().map_or_else(
                || Action::Response { text: String::new() },
                |call| function_action(&call.name, &call.arguments),
            );
            let dropped = is_followed || calls.len() > 1;
            let notes = dropped.then_some(Note::DroppedAfterCall).into_iter().collect();
            Reading { thought, action, notes, retained: normalise(answer).trim_end().to_owned() }
        }
    }
}

/// Looks for a corrected program in an answer without a call. If the answer contains a fenced
/// program, the program becomes the call, even if prose surrounds it.
pub(crate) fn read_repair(uncalled: Reading) -> Reading {
    uncalled::program_in_prose(uncalled)
}

/// The result of reading an answer, which may or may not contain a call.
pub(crate) enum ReadResult {
    Called(Reading),
    Uncalled(Reading),
    /// The answer has function calls in the format of a model family.
    Functions(LeakedCalls),
}

/// Function calls that a model, or the server in front of it, wrote into the text of an answer.
pub(crate) struct LeakedCalls {
    /// The content of the thoughts, or else the text before the calls.
    pub(crate) thought: Option<String>,
    pub(crate) calls: Vec<FunctionCall>,
    /// If true, no call is truncated.
    pub(crate) is_complete: bool,
    /// If true, text follows the calls. It is dropped.
    pub(crate) is_followed: bool,
}

/// Reads an answer, which may or may not contain a call. The programs are those that function calls
/// may name.
pub(crate) fn read_call(answer: &str, programs: &[ProgramFunction]) -> ReadResult {
    let normalised = normalise(answer);
    let text = normalised.as_ref();
    let marks = scan(text, programs);
    let mut thoughts: Vec<String> = Vec::new();
    let mut outside = String::new();
    let mut mentions = Mentions { first: None, left: MAX_MENTIONS };
    let mut from = read_unopened(text, &marks, &mut thoughts);
    let mut at = marks.partition_point(|mark| mark.start < from);

    loop {
        let parts = marks.get(at..).unwrap_or_default();
        let next =
            parts.iter().position(|mark| !matches!(mark.kind, MarkKind::Close | MarkKind::Nothing));
        let mark = next.and_then(|next| parts.get(next));
        let limit = mark.map_or(text.len(), |mark| mark.start);
        if let Some(call) = first_call(text, from, limit, &mut mentions) {
            let before = slice(text, from, call.start);
            return ReadResult::Called(found(text, &thoughts, before, call));
        }
        outside.push_str(&without_marks(text, parts, from, limit));
        let (Some(mark), Some(next)) = (mark, next) else { break };
        at += next + 1;
        from = mark.end;
        match &mark.kind {
            MarkKind::Open => match marks.get(at) {
                Some(close) if matches!(close.kind, MarkKind::Close) => {
                    thoughts.push(slice(text, mark.end, close.start).to_owned());
                    from = close.end;
                    at += 1;
                }
                call => {
                    // Unclosed reasoning ends at a call or at the end of the text.
                    let end = call.map_or(text.len(), |call| call.start);
                    if let Some(call) = call_in_open_reasoning(text, mark.end)
                        && call.start < end
                    {
                        let thought = header::before(slice(text, mark.end, call.start));
                        thoughts.push(thought.to_owned());
                        return ReadResult::Called(found(text, &thoughts, "", call));
                    }
                    thoughts.push(slice(text, mark.end, end).to_owned());
                    from = end;
                    if call.is_none() {
                        break;
                    }
                }
            },
            MarkKind::Answer => {
                thoughts.push(without_end_of_turn(&outside).to_owned());
                outside.clear();
            }
            MarkKind::Calls { .. } => {
                let before = filled(header::before(&outside));
                return ReadResult::Functions(LeakedCalls {
                    thought: joined(&thoughts).or(before),
                    ..leaked_calls(text, marks, at - 1)
                });
            }
            MarkKind::Close | MarkKind::Nothing => {}
        }
    }

    match mentions.first {
        Some(call) => ReadResult::Called(found(text, &thoughts, "", call)),
        None => ReadResult::Uncalled(uncalled::read(text, &outside, joined(&thoughts))),
    }
}

/// Returns the calls of the mark at `first` and of the marks directly after it.
fn leaked_calls(text: &str, marks: Vec<Mark>, first: usize) -> LeakedCalls {
    let (mut all, mut is_complete, mut end) = (Vec::new(), true, None);
    for mark in marks.into_iter().skip(first) {
        let gap = end.map_or("", |end| slice(text, end, mark.start));
        if !gap.chars().all(|c| c.is_whitespace() || matches!(c, ',' | ';')) {
            break;
        }
        match mark.kind {
            MarkKind::Calls { calls, is_complete: is_whole, .. } => {
                all.extend(calls);
                is_complete &= is_whole;
            }
            MarkKind::Close | MarkKind::Nothing => {}
            MarkKind::Open | MarkKind::Answer => break,
        }
        end = Some(mark.end);
    }
    let rest = end.map_or("", |end| slice(text, end, text.len()));
    let is_followed = header::after_decoration(rest, 0) < rest.len();
    LeakedCalls { thought: None, calls: all, is_complete, is_followed }
}

/// A call and its start offset.
struct FoundCall {
    start: usize,
    call: call::Call,
}

/// Maximum number of mentions that are skipped in the search for a real call. The limit keeps the
/// reader's running time linear even if the answer consists of mentions.
const MAX_MENTIONS: usize = 4;

/// Mentions of calls, such as `ToolCall::Wat(...)`. The first mention is used if there is no real
/// call.
struct Mentions {
    first: Option<FoundCall>,
    left: usize,
}

/// Finds the first call in `from..limit` that is not a mere mention.
fn first_call(text: &str, from: usize, limit: usize, mentions: &mut Mentions) -> Option<FoundCall> {
    let mut at = from;
    while let Some(header) = header::next(text, at, limit) {
        let found = FoundCall { start: header.start, call: call::read(text, &header) };
        if !found.call.is_mention || mentions.left == 0 {
            return Some(found);
        }
        at = header.inside;
        mentions.left -= 1;
        mentions.first.get_or_insert(found);
    }
    None
}

/// Finds the call that ends unclosed reasoning: the first call at the start of a line, or else the
/// last call. Returns `None` if the last call is a mere mention or is followed by text.
fn call_in_open_reasoning(text: &str, from: usize) -> Option<FoundCall> {
    let mut at = from;
    let mut last: Option<Header<'_>> = None;
    while let Some(header) = header::next(text, at, text.len()) {
        at = header.inside;
        if header::starts_line(text, header.start, from) {
            return Some(FoundCall { start: header.start, call: call::read(text, &header) });
        }
        last = Some(header);
    }
    let header = last?;
    let call = call::read(text, &header);
    let alone = !call.is_mention && header::after_decoration(text, call.end) == text.len();
    alone.then_some(FoundCall { start: header.start, call })
}

/// Reads the text before an unmatched closing tag as reasoning. Returns the offset of the remaining
/// text. The opening tag is missing if the chat template writes it instead of the model.
fn read_unopened(text: &str, marks: &[Mark], thoughts: &mut Vec<String>) -> usize {
    let first = marks.iter().find(|mark| !matches!(mark.kind, MarkKind::Nothing));
    let Some(close) = first.filter(|mark| matches!(mark.kind, MarkKind::Close)) else { return 0 };
    let covered = header::next(text, 0, close.start)
        .is_some_and(|header| call::read(text, &header).end > close.start);
    if covered || slice(text, close.end, text.len()).trim().is_empty() {
        return 0;
    }
    thoughts.push(without_marks(text, marks, 0, close.start));
    close.end
}

fn found(text: &str, thoughts: &[String], before: &str, found: FoundCall) -> Reading {
    let thought = joined(thoughts)
        .or_else(|| thought_in_fence(before))
        .or_else(|| filled(header::before(before)));
    let call = found.call;
    let mut notes = Vec::from_iter(call.note);
    let mut end = header::after_decoration(text, call.end);
    if end < text.len() {
        notes.push(Note::DroppedAfterCall);
        end = call.end;
    }
    Reading {
        thought,
        action: call.action,
        notes,
        retained: slice(text, 0, end).trim_end().to_owned(),
    }
}

/// Returns the thought before a call if one fence encloses both.
fn thought_in_fence(before: &str) -> Option<String> {
    let (line, inside) = before.trim_start().split_once('\n')?;
    fence(line, 0)?;
    let marks = scan(inside, &[]);
    match marks.as_slice() {
        [Mark { kind: MarkKind::Open, end, .. }, Mark { kind: MarkKind::Close, start, .. }, ..] => {
            filled(slice(inside, *end, *start))
        }
        _ => None,
    }
}

fn joined(thoughts: &[String]) -> Option<String> {
    let parts: Vec<&str> = thoughts
        .iter()
        .map(|thought| thought.trim())
        .filter(|thought| !thought.is_empty())
        .collect();
    filled(&parts.join("\n"))
}

fn filled(thought: &str) -> Option<String> {
    let thought = thought.trim();
    (!thought.is_empty()).then(|| thought.to_owned())
}

/// Returns the text in `from..limit` without the marks in it.
fn without_marks(text: &str, marks: &[Mark], from: usize, limit: usize) -> String {
    let mut out = String::new();
    let mut at = from;
    for mark in marks.iter().take_while(|mark| mark.end <= limit) {
        out.push_str(slice(text, at, mark.start));
        at = mark.end;
    }
    out.push_str(slice(text, at, limit));
    out
}

/// Converts line breaks to `\n` and removes a byte order mark and trailing end-of-turn tokens.
fn normalise(answer: &str) -> Cow<'_, str> {
    let answer = without_end_of_turn(answer.strip_prefix('\u{feff}').unwrap_or(answer));
    if answer.contains('\r') {
        Cow::Owned(answer.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(answer)
    }
}

/// Removes tokens such as `<|im_end|>` from the end of an answer. Servers that do not recognize
/// these tokens leave them in the answer.
fn without_end_of_turn(answer: &str) -> &str {
    let mut rest = answer;
    let token = |text: &str| {
        let own = text.strip_suffix("|>").and_then(|text| text.rsplit_once("<|"));
        own.or_else(|| text.strip_suffix("｜>").and_then(|text| text.rsplit_once("<｜")))
            .filter(|(_, name)| !name.is_empty())
            .filter(|(_, name)| name.chars().all(|c| c.is_ascii_alphanumeric() || "_▁".contains(c)))
            .map(|(before, _)| before.len())
    };
    while let Some(before) = token(rest.trim_end()).and_then(|end| rest.get(..end)) {
        rest = before;
    }
    rest
}

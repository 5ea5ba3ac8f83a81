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
mod draft;
mod header;
mod quote;
mod reading;
mod scan;
mod text;
mod uncalled;
mod value;

use std::borrow::Cow;

pub use self::draft::{AnswerPart, Draft, DraftPiece, ShownAnswer};
pub use self::reading::{Action, Note, Reading};
use self::{
    header::Header,
    text::{fence, slice},
};
use crate::dialect::function_action;
use crate::families::{Mark, MarkKind, Marks};
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
///     Action::Catalog {
///         name: "http_get".into(),
///         args: vec!["https://example.com".into()],
///         names: vec![],
///     }
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
    let mut marks = Marks::new(text, programs);
    let mut thoughts: Vec<String> = Vec::new();
    let mut outside = String::new();
    let mut headers = Headers::new(text);
    let mut from = read_unopened(text, &mut marks, headers.start(), &mut thoughts);
    headers.move_to(from);
    let mut at = marks.found(0).partition_point(|mark| mark.start < from);
    // The marks before this index separate no texts.
    let mut seen = at;

    loop {
        // Most answers have an early call, so only the marks before the next header are searched.
        let Some(index) = next_mark(&mut marks, &mut seen, headers.start()) else {
            if headers.next.is_none() {
                outside.push_str(&without_marks(text, marks.found(at), from, text.len()));
                break;
            }
            match headers.read() {
                Some(call) => {
                    let before = slice(text, from, call.start);
                    return ReadResult::Called(found(text, &thoughts, before, call));
                }
                None => continue,
            }
        };
        let Some(mark) = marks.found(index).first() else { break };
        outside.push_str(&without_marks(text, marks.found(at), from, mark.start));
        (at, from) = (index + 1, mark.end);
        match &mark.kind {
            MarkKind::Open => match marks.get(at, usize::MAX) {
                Some(close) if matches!(close.kind, MarkKind::Close) => {
                    thoughts.push(slice(text, from, close.start).to_owned());
                    from = close.end;
                    at += 1;
                }
                call => {
                    // Unclosed reasoning ends at a call or at the end of the text.
                    let end = call.map_or(text.len(), |call| call.start);
                    if let Some(call) = call_in_open_reasoning(text, from)
                        && call.start < end
                    {
                        let thought = header::before(slice(text, from, call.start));
                        thoughts.push(thought.to_owned());
                        return ReadResult::Called(found(text, &thoughts, "", call));
                    }
                    thoughts.push(slice(text, from, end).to_owned());
                    from = end;
                    if end == text.len() {
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
                    ..leaked_calls(text, marks.all(), index)
                });
            }
            MarkKind::Close | MarkKind::Nothing => {}
        }
        seen = at;
        headers.move_to(from);
    }

    match headers.mention {
        Some(call) => ReadResult::Called(found(text, &thoughts, "", call)),
        None => ReadResult::Uncalled(uncalled::read(text, &outside, joined(&thoughts))),
    }
}

/// Moves the index to the first mark that separates texts, and returns it. Returns `None` if no such
/// mark begins before `limit`.
fn next_mark(marks: &mut Marks<'_>, index: &mut usize, limit: usize) -> Option<usize> {
    while matches!(marks.get(*index, limit)?.kind, MarkKind::Close | MarkKind::Nothing) {
        *index += 1;
    }
    Some(*index)
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

/// The headers of an answer, one after another.
struct Headers<'t> {
    text: &'t str,
    /// The header that is examined next.
    next: Option<Header<'t>>,
    /// The text before this offset does not precede a header on its line.
    floor: usize,
    /// The first mention of a call, such as `ToolCall::Wat(...)`. It is used if there is no real call.
    mention: Option<FoundCall>,
    mentions_left: usize,
}

impl<'t> Headers<'t> {
    fn new(text: &'t str) -> Self {
        let next = header::candidate(text, 0, text.len());
        Self { text, next, floor: 0, mention: None, mentions_left: MAX_MENTIONS }
    }

    /// Returns the start of the next header, or the length of the text.
    fn start(&self) -> usize {
        self.next.map_or(self.text.len(), |header| header.start)
    }

    /// Continues at `from`.
    fn move_to(&mut self, from: usize) {
        self.floor = from;
        if self.start() < from {
            self.next = header::candidate(self.text, from, self.text.len());
        }
    }

    /// Reads the next header. Returns its call, or `None` if it is none or a mere mention.
    fn read(&mut self) -> Option<FoundCall> {
        let header = self.next?;
        let mut after = header.start + 1;
        if header.counts(self.text, self.floor) {
            let call = FoundCall { start: header.start, call: call::read(self.text, &header) };
            if !call.call.is_mention || self.mentions_left == 0 {
                return Some(call);
            }
            self.mentions_left -= 1;
            self.mention.get_or_insert(call);
            (after, self.floor) = (header.inside, header.inside);
        }
        self.next = header::candidate(self.text, after, self.text.len());
        None
    }
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
fn read_unopened(
    text: &str,
    marks: &mut Marks<'_>,
    header: usize,
    thoughts: &mut Vec<String>,
) -> usize {
    let mut index = 0;
    let mut limit = header;
    let close = loop {
        match marks.get(index, limit) {
            Some(mark) if matches!(mark.kind, MarkKind::Nothing) => index += 1,
            Some(mark) if matches!(mark.kind, MarkKind::Close) => break (mark.start, mark.end),
            Some(_) => return 0,
            // The text from the first header on is searched only if it may have a tag.
            None if limit == header
                && slice(text, header, text.len()).contains(['<', '[', '◁']) =>
            {
                limit = usize::MAX;
            }
            None => return 0,
        }
    };
    let (start, end) = close;
    let covered =
        header::next(text, 0, start).is_some_and(|header| call::read(text, &header).end > start);
    if covered || slice(text, end, text.len()).trim().is_empty() {
        return 0;
    }
    thoughts.push(without_marks(text, marks.found(0), 0, start));
    end
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
    let marks = Marks::new(inside, &[]).all();
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

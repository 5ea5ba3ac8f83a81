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
mod reasoning;
mod scan;
mod text;
mod uncalled;
mod value;

use std::borrow::Cow;

pub use self::reading::{Action, Note, Reading};
use self::{header::Header, reasoning::Tags, text::slice};

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
    match read_call(answer) {
        ReadResult::Called(reading) | ReadResult::Uncalled(reading) => reading,
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
}

/// Reads an answer, which may or may not contain a call.
pub(crate) fn read_call(answer: &str) -> ReadResult {
    let normalised = normalise(answer);
    let text = normalised.as_ref();
    let tags = reasoning::tags(text);
    let mut thoughts = Vec::new();
    let mut outside = String::new();
    let mut mentions = Mentions { first: None, left: MAX_MENTIONS };
    let mut from = read_unopened(text, &tags, &mut thoughts);

    loop {
        let open = tags.open_after(from);
        let limit = open.map_or(text.len(), |open| open.start);
        match first_call(text, from, limit, &mut mentions) {
            Some(call) => {
                return ReadResult::Called(found(
                    text,
                    &thoughts,
                    slice(text, from, call.start),
                    call,
                ));
            }
            None => outside.push_str(&without_closers(text, &tags, from, limit)),
        }
        let Some(open) = open else { break };
        match tags.close_of(open) {
            Some(close) => {
                thoughts.push(slice(text, open.end, close.start));
                from = close.end;
            }
            None => {
                // Unclosed reasoning ends at a call or at the end of the text.
                if let Some(call) = call_in_open_reasoning(text, open.end) {
                    thoughts.push(header::before(slice(text, open.end, call.start)));
                    return ReadResult::Called(found(text, &thoughts, "", call));
                }
                thoughts.push(slice(text, open.end, text.len()));
                break;
            }
        }
    }

    match mentions.first {
        Some(call) => ReadResult::Called(found(text, &thoughts, "", call)),
        None => ReadResult::Uncalled(uncalled::read(text, &outside, joined(&thoughts))),
    }
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
fn read_unopened<'a>(text: &'a str, tags: &Tags, thoughts: &mut Vec<&'a str>) -> usize {
    let Some(close) = tags.leading_close() else { return 0 };
    let covered = header::next(text, 0, close.start)
        .is_some_and(|header| call::read(text, &header).end > close.start);
    if covered || slice(text, close.end, text.len()).trim().is_empty() {
        return 0;
    }
    thoughts.push(slice(text, 0, close.start));
    close.end
}

fn found(text: &str, thoughts: &[&str], before: &str, found: FoundCall) -> Reading {
    let thought = joined(thoughts).or_else(|| filled(header::before(before)));
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

fn joined(thoughts: &[&str]) -> Option<String> {
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

/// Returns the text in `from..limit` without closing reasoning tags.
fn without_closers(text: &str, tags: &Tags, from: usize, limit: usize) -> String {
    let mut out = String::new();
    let mut at = from;
    for close in tags.closes_in(from, limit) {
        out.push_str(slice(text, at, close.start));
        at = close.end;
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

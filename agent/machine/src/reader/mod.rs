//! Reads a model's answer in the text dialect.
//!
//! Models are unreliable formatters, so reading never fails: every text gives one action. The first call outside
//! reasoning wins, and what comes after it is dropped with a note that the model gets to read. Well-formed input is
//! always read by the letter; tolerance begins only where the letter does not fit.
//!
//! The time is linear in the answer's length: each scan moves forward only, and a scan that had to give up at the end of
//! the text is not begun again.

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
use self::{header::Header, reasoning::Tags, text::cut};

/// Reads a model's answer; never fails, in time linear in its length.
///
/// ```
/// use wattle_machine::{Action, read};
///
/// let reading = read("<reasoning>the page</reasoning>\nToolCall::Catalog(\"http_get\", \"https://example.com\"");
/// assert_eq!(reading.thought.as_deref(), Some("the page"));
/// assert_eq!(
///     reading.action,
///     Action::Catalog { name: "http_get".into(), args: vec!["https://example.com".into()] }
/// );
/// ```
pub fn read(answer: &str) -> Reading {
    match read_call(answer) {
        Read::Called(reading) | Read::Uncalled(reading) => reading,
    }
}

/// Reads an answer without a call to the request for a corrected program: there a fenced program is meant to be run even
/// where prose stands around it.
pub(crate) fn read_repair(uncalled: Reading) -> Reading {
    uncalled::program_in_prose(uncalled)
}

/// Tells whether an answer made a call.
pub(crate) enum Read {
    Called(Reading),
    Uncalled(Reading),
}

/// Reads an answer, and tells whether it made a call.
pub(crate) fn read_call(answer: &str) -> Read {
    let unified = unify(answer);
    let text = unified.as_ref();
    let tags = reasoning::tags(text);
    let mut thoughts = Vec::new();
    let mut outside = String::new();
    let mut mentions = Mentions { first: None, left: MENTIONS };
    let mut from = unopened(text, &tags, &mut thoughts);

    loop {
        let open = tags.open_after(from);
        let limit = open.map_or(text.len(), |open| open.start);
        match first_call(text, from, limit, &mut mentions) {
            Some(call) => return Read::Called(found(text, &thoughts, cut(text, from, call.start), call)),
            None => outside.push_str(&without_closers(text, &tags, from, limit)),
        }
        let Some(open) = open else { break };
        match tags.close_of(open) {
            Some(close) => {
                thoughts.push(cut(text, open.end, close.start));
                from = close.end;
            }
            None => {
                // Nothing says where the reasoning ends: at a call that stands like one, or at the text's end.
                if let Some(call) = call_in_open_reasoning(text, open.end) {
                    thoughts.push(header::before(cut(text, open.end, call.start)));
                    return Read::Called(found(text, &thoughts, "", call));
                }
                thoughts.push(cut(text, open.end, text.len()));
                break;
            }
        }
    }

    match mentions.first {
        Some(call) => Read::Called(found(text, &thoughts, "", call)),
        None => Read::Uncalled(uncalled::read(text, &outside, joined(&thoughts))),
    }
}

/// A call, and where it stands.
struct Found {
    start: usize,
    call: call::Call,
}

/// How many calls that look like mere mentions are passed over in search of a real one. A bound, so that a text of
/// nothing but mentions is read in linear time.
const MENTIONS: usize = 4;

/// The calls that look like mentions (`ToolCall::Wat(...)`): the first is taken where nothing better comes.
struct Mentions {
    first: Option<Found>,
    left: usize,
}

/// Finds the first call that begins in `from..limit` and is no mention.
fn first_call(text: &str, from: usize, limit: usize, mentions: &mut Mentions) -> Option<Found> {
    let mut at = from;
    while let Some(header) = header::next(text, at, limit) {
        let found = Found { start: header.start, call: call::read(text, &header) };
        if !found.call.is_mention || mentions.left == 0 {
            return Some(found);
        }
        at = header.inside;
        mentions.left -= 1;
        mentions.first.get_or_insert(found);
    }
    None
}

/// Finds the call that ends reasoning which nobody closed: the first at the beginning of a line, else the last of all
/// where nothing follows it.
fn call_in_open_reasoning(text: &str, from: usize) -> Option<Found> {
    let mut at = from;
    let mut last: Option<Header<'_>> = None;
    while let Some(header) = header::next(text, at, text.len()) {
        at = header.inside;
        if header::stands_first(text, header.start, from) {
            return Some(Found { start: header.start, call: call::read(text, &header) });
        }
        last = Some(header);
    }
    let header = last?;
    let call = call::read(text, &header);
    let alone = !call.is_mention && header::after_decoration(text, call.end) == text.len();
    alone.then_some(Found { start: header.start, call })
}

/// Takes the text before a closing tag that was never opened as reasoning, and gives where the rest begins. Chat
/// templates that write the opening tag themselves leave answers like that.
fn unopened<'a>(text: &'a str, tags: &Tags, thoughts: &mut Vec<&'a str>) -> usize {
    let Some(close) = tags.leading_close() else { return 0 };
    let covered = header::next(text, 0, close.start).is_some_and(|header| call::read(text, &header).end > close.start);
    if covered || cut(text, close.end, text.len()).trim().is_empty() {
        return 0;
    }
    thoughts.push(cut(text, 0, close.start));
    close.end
}

fn found(text: &str, thoughts: &[&str], before: &str, found: Found) -> Reading {
    let thought = joined(thoughts).or_else(|| filled(header::before(before)));
    let call = found.call;
    let mut notes = Vec::from_iter(call.note);
    let mut end = header::after_decoration(text, call.end);
    if end < text.len() {
        notes.push(Note::DroppedAfterCall);
        end = call.end;
    }
    Reading { thought, action: call.action, notes, said: cut(text, 0, end).trim_end().to_owned() }
}

fn joined(thoughts: &[&str]) -> Option<String> {
    let parts: Vec<&str> =
        thoughts.iter().map(|thought| thought.trim()).filter(|thought| !thought.is_empty()).collect();
    filled(&parts.join("\n"))
}

fn filled(thought: &str) -> Option<String> {
    let thought = thought.trim();
    (!thought.is_empty()).then(|| thought.to_owned())
}

/// Gives `from..limit` without the closing tags that stand in it.
fn without_closers(text: &str, tags: &Tags, from: usize, limit: usize) -> String {
    let mut out = String::new();
    let mut at = from;
    for close in tags.closes_in(from, limit) {
        out.push_str(cut(text, at, close.start));
        at = close.end;
    }
    out.push_str(cut(text, at, limit));
    out
}

/// Makes every line break `\n` and drops a byte order mark and the tokens that end a turn.
fn unify(answer: &str) -> Cow<'_, str> {
    let answer = without_end_of_turn(answer.strip_prefix('\u{feff}').unwrap_or(answer));
    if answer.contains('\r') {
        Cow::Owned(answer.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(answer)
    }
}

/// Gives the answer without tokens such as `<|im_end|>` at its end: servers that do not know a model's own leave them.
fn without_end_of_turn(answer: &str) -> &str {
    let mut rest = answer;
    while let Some((before, name)) = rest.trim_end().strip_suffix("|>").and_then(|text| text.rsplit_once("<|"))
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    {
        rest = before;
    }
    rest
}

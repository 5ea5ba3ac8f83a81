//! Finds the header of a call, such as `ToolCall::Wat(`, and the decoration around a call, such as
//! Markdown markup.

use super::text::{after_blanks, after_space, byte, char_at, fence, run, slice, starts};
use crate::families::opens_thought;

/// The header of a call, up to its opening parenthesis.
#[derive(Clone, Copy)]
pub(super) struct Header<'a> {
    /// Offset of the word `ToolCall`.
    pub(super) start: usize,
    /// Offset at which the arguments begin.
    pub(super) inside: usize,
    pub(super) kind: Kind<'a>,
    /// If true, the opening parenthesis is present.
    pub(super) parenthesis: bool,
}

impl Header<'_> {
    /// Returns true if the header begins a call: its form is certain, or it is the first text of its
    /// line. Ignores text before `floor`.
    pub(super) fn counts(&self, text: &str, floor: usize) -> bool {
        self.parenthesis && !matches!(self.kind, Kind::Program(_))
            || starts_line(text, self.start, floor)
    }
}

/// The kind of a call.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Wat,
    Catalog,
    Fix,
    Response,
    /// A program's name, written in place of the kind.
    Program(&'a str),
}

/// Finds the first header that begins in the range `from..limit` and counts.
pub(super) fn next(text: &str, from: usize, limit: usize) -> Option<Header<'_>> {
    let mut at = from;
    loop {
        let header = candidate(text, at, limit)?;
        if header.counts(text, from) {
            return Some(header);
        }
        at = header.start + 1;
    }
}

/// Finds the first header that begins in the range `from..limit`, even if it may not count.
pub(super) fn candidate(text: &str, from: usize, limit: usize) -> Option<Header<'_>> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(found) =
        bytes.get(at..limit).and_then(|part| part.iter().position(|b| matches!(b, b't' | b'T')))
    {
        let start = at + found;
        if let Some(header) = at_offset(text, start) {
            return Some(header);
        }
        at = start + 1;
    }
    None
}

/// Reads the header that begins at `start`. Returns `None` if no header begins there.
pub(super) fn at_offset(text: &str, start: usize) -> Option<Header<'_>> {
    let (kind, end) = prefixed_kind(text, start)?;
    opened(text, start, kind, end)
}

/// Reads a header without `ToolCall::` that begins at `start`. Returns `None` if no such header
/// begins there.
pub(super) fn bare_at_offset(text: &str, start: usize) -> Option<Header<'_>> {
    let (kind, end) = kind_at(text, start)?;
    let header = opened(text, start, kind, end)?;
    (header.parenthesis && !matches!(kind, Kind::Program(_))).then_some(header)
}

/// Reads `ToolCall::Kind` at `start`, in any spelling. Returns the kind and its end offset.
pub(super) fn prefixed_kind(text: &str, start: usize) -> Option<(Kind<'_>, usize)> {
    if !starts(text, start, "tool") || continues_word(text, start) {
        return None;
    }
    let joint = start + 4;
    let gap = matches!(byte(text, joint), b'_' | b'-' | b' ');
    let call = joint + usize::from(gap);
    if !starts(text, call, "call") {
        return None;
    }
    let mut name_end = call + 4;
    name_end += usize::from(matches!(byte(text, name_end), b's' | b'S'));
    let separator = after_blanks(text, name_end);
    let (length, strong) = match (byte(text, separator), byte(text, separator + 1)) {
        (b':', b':') => (2, true),
        (b'-', b'>') => (2, false),
        (b'.', _) | (b':', _) => (1, false),
        _ => return None,
    };
    let kind = after_blanks(text, separator + length);
    // Prose such as "the tool call: response (from …)" must not match.
    let spaced = byte(text, joint) == b' ' || separator > name_end || kind > separator + length;
    if spaced && !strong {
        return None;
    }
    kind_at(text, kind)
}

fn kind_at(text: &str, start: usize) -> Option<(Kind<'_>, usize)> {
    let word = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
    let end = start + text.as_bytes().iter().skip(start).take_while(word).count();
    let name = slice(text, start, end);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let kind = match () {
        () if name.eq_ignore_ascii_case("wat") => Kind::Wat,
        () if name.eq_ignore_ascii_case("catalog") => Kind::Catalog,
        () if name.eq_ignore_ascii_case("fix") => Kind::Fix,
        () if name.eq_ignore_ascii_case("response") => Kind::Response,
        () => Kind::Program(name),
    };
    Some((kind, end))
}

fn opened<'a>(text: &'a str, start: usize, kind: Kind<'a>, end: usize) -> Option<Header<'a>> {
    let marks = text.as_bytes().iter().skip(end).take_while(|b| matches!(b, b'*' | b'`')).count();
    let end = if marks < 3 { end + marks } else { end };
    let inside = after_space(text, end);
    let open = match char_at(text, inside)? {
        '(' => Some(inside + 1),
        wide @ '（' => Some(inside + wide.len_utf8()),
        _ => None,
    };
    match open {
        Some(inside) => Some(Header { start, inside, kind, parenthesis: true }),
        None => {
            let in_line = after_blanks(text, end) == inside
                && matches!(char_at(text, inside), Some('"' | '“'));
            let quoted = in_line
                || fence(text, inside).is_some()
                || run(text, inside, b'"') >= 3
                || run(text, inside, b'\'') >= 3;
            let known = !matches!(kind, Kind::Program(_));
            (known && quoted).then_some(Header { start, inside, kind, parenthesis: false })
        }
    }
}

fn continues_word(text: &str, at: usize) -> bool {
    let before = slice(text, 0, at);
    // Underscores that do not follow a word are emphasis.
    let before = if before.ends_with("__") { before.trim_end_matches("__") } else { before };
    before.chars().next_back().is_some_and(|before| before.is_alphanumeric() || before == '_')
}

/// Maximum length of the decoration before a call, in bytes.
const MAX_DECORATION: usize = 80;

/// Returns true if only decoration precedes `at` on its line. Ignores text before `floor`.
pub(super) fn starts_line(text: &str, at: usize, floor: usize) -> bool {
    let bytes = text.as_bytes().get(floor..at).unwrap_or_default();
    let back = bytes.iter().rev().take(MAX_DECORATION).take_while(|&&b| b != b'\n').count();
    back < MAX_DECORATION && is_decoration(slice(text, at - back, at))
}

/// Returns true if a new turn or a new call begins at `at`, which is the start of a line.
pub(super) fn is_boundary(text: &str, at: usize) -> bool {
    let at = after_blanks(text, at);
    if byte(text, at) == b'<' && opens_thought(text, at) {
        return true;
    }
    let marks = text
        .as_bytes()
        .iter()
        .skip(at)
        .take(8)
        .take_while(|b| matches!(b, b'*' | b'`' | b'_' | b'>' | b' '));
    let at = at + marks.count();
    starts(text, at, "[observation")
        || starts(text, at, "observation:")
        || at_offset(text, at).is_some()
}

/// Returns true if the line ends at `at` and a new turn or a new call begins on a later line. In
/// that case, a call, string or fence that is still open ends at `at`.
pub(super) fn is_over(text: &str, at: usize) -> bool {
    let next = after_space(text, at);
    slice(text, at, next).contains('\n') && is_boundary(text, next)
}

/// Labels that may precede a call.
const LABELS: [&str; 7] =
    ["action:", "call:", "tool:", "tool call:", "answer:", "final answer:", "next action:"];

/// Returns true if `line` consists only of Markdown markup, tags and labels.
fn is_decoration(line: &str) -> bool {
    let mut line = line.trim();
    if let Some((_, length)) = fence(line, 0) {
        let info = slice(line, length, line.len());
        return !info.contains(|c: char| c.is_whitespace() || c == '`' || c == '(');
    }
    loop {
        line = line.trim_start_matches(['*', '_', '`', '~', '>', '#', '-', '+', '[', ' ', '\t']);
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        if line.is_empty() {
            return true;
        } else if let Some(rest) = line.strip_prefix('<').and_then(|tag| tag.split_once('>')) {
            line = rest.1;
        } else if let Some(label) = LABELS.iter().find(|label| starts(line, 0, label)) {
            line = slice(line, label.len(), line.len());
        } else if (1..4).contains(&digits) && matches!(byte(line, digits), b'.' | b')') {
            line = slice(line, digits + 1, line.len());
        } else {
            return false;
        }
    }
}

/// Maximum number of layers of decoration around a call.
const MAX_LAYERS: usize = 8;

/// Returns the text before a call, without the decoration that belongs to the call.
pub(super) fn before(text: &str) -> &str {
    let mut text = text.trim();
    for _ in 0..MAX_LAYERS {
        let start = text.rfind('\n').map_or(0, |at| at + 1);
        let line = slice(text, start, text.len());
        if !line.is_empty() && line.len() < MAX_DECORATION && is_decoration(line) {
            text = slice(text, 0, start).trim_end();
            continue;
        }
        let bare = text.trim_end_matches(['*', '`', '_', '[']);
        // Marks after a space open emphasis around the call. Marks after a letter close emphasis
        // and belong to the thought.
        if bare.len() < text.len() && bare.ends_with([' ', '\t']) {
            text = bare.trim_end();
            continue;
        }
        break;
    }
    text
}

/// Returns the offset after the decoration that follows a call.
pub(super) fn after_decoration(text: &str, at: usize) -> usize {
    skip_decoration(text, at, after_space)
}

/// Returns true if only decoration follows `at` on its line.
pub(super) fn ends_line_decorated(text: &str, at: usize) -> bool {
    let at = skip_decoration(text, at, after_blanks);
    at >= text.len() || byte(text, at) == b'\n'
}

fn skip_decoration(text: &str, at: usize, space: fn(&str, usize) -> usize) -> usize {
    let mut at = at;
    loop {
        at = space(text, at);
        let length = match byte(text, at) {
            b'*' | b'`' | b'~' | b']' | b'.' | b';' => 1,
            b'_' if run(text, at, b'_') == 2 => 2,
            b'<' => closing_tag(text, at),
            _ => 0,
        };
        if length == 0 {
            return at;
        }
        at += length;
    }
}

/// Returns the length of `</tag>` or of an end-of-turn token such as `<|im_end|>`, or 0 if neither
/// begins at `at`.
pub(super) fn closing_tag(text: &str, at: usize) -> usize {
    if byte(text, at) != b'<' || !matches!(byte(text, at + 1), b'/' | b'|') {
        return 0;
    }
    let inside = text.as_bytes().iter().skip(at + 1).take(MAX_DECORATION);
    let length = inside.take_while(|&&b| b != b'>' && b != b'<' && b != b'\n').count();
    if byte(text, at + 1 + length) == b'>' { length + 2 } else { 0 }
}

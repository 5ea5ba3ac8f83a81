//! Finds where a program ends, by the lexical rules of its language: strings, comments and parentheses inside it end nothing.

use super::{
    header, quote,
    text::{after_blanks, after_parenthesis, after_space, byte, char_at, fence, run},
};

/// What ends a program.
#[derive(Clone, Copy)]
pub(super) enum Until {
    Fence { mark: u8, length: usize },
    Quote { mark: u8, length: usize },
    Parenthesis,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// What was to end the program does.
    Closed,
    /// A comma or a parenthesis that can not belong to the program ends it.
    Separator,
    /// The text ends, or something begins that belongs to no call.
    Broken,
}

/// Where a program ends.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    pub(super) end: usize,
    /// Where the call goes on: after the closing fence or quote, at the separator.
    pub(super) after: usize,
    pub(super) stop: Stop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    Line,
    Block(usize),
    Literal,
    Triple,
}

/// Moves over a program by the lexical rules of its language, in one pass, up to what ends it.
pub(super) fn scan(text: &str, inside: usize, until: Until) -> Scan {
    let bytes = text.as_bytes();
    let (mut state, mut depth) = (State::Code, 0_i64);
    // What ends the program where nothing better comes: a fence inside a literal; a comma or a parenthesis.
    let (mut shielded, mut separator) = (None, None);
    let mut at = inside;
    if let Some(scan) = line_stop(text, at, until, state, &mut shielded) {
        return scan;
    }
    while let Some(&found) = bytes.get(at) {
        let next = byte(text, at + 1);
        let mut step = 1;
        if found == b'\n' {
            if state == State::Line {
                state = State::Code;
            }
            if let Some(stop) = line_stop(text, at + 1, until, state, &mut shielded) {
                return if stop.stop == Stop::Broken { shielded.or(separator).unwrap_or(stop) } else { stop };
            }
        } else {
            match state {
                State::Line => {}
                State::Block(level) => match (found, next) {
                    (b'(', b';') => (state, step) = (State::Block(level + 1), 2),
                    (b';', b')') if level == 1 => (state, step) = (State::Code, 2),
                    (b';', b')') => (state, step) = (State::Block(level - 1), 2),
                    _ => {}
                },
                State::Literal | State::Triple if found == b'\\' => step = 2,
                State::Literal if found == b'"' => state = State::Code,
                State::Triple if found == b'"' => {
                    step = run(text, at, b'"');
                    if step >= 3 {
                        state = State::Code;
                    }
                }
                State::Literal | State::Triple => {}
                State::Code => {
                    if let Some(scan) = closes_inline(text, at, until, depth) {
                        return scan;
                    }
                    match (found, next) {
                        (b';', b';') => state = State::Line,
                        // No program has a closing tag or an end-of-turn token.
                        (b'<', b'/' | b'|') if header::closing_tag(text, at) > 0 => {
                            let broken = Scan { end: at, after: at, stop: Stop::Broken };
                            return shielded.or(separator).unwrap_or(broken);
                        }
                        (b'(', b';') => (state, step) = (State::Block(1), 2),
                        (b'"', _) => {
                            let quotes = run(text, at, b'"');
                            // Two quotes are an empty literal, six an empty triple-quoted one.
                            (state, step) = match quotes {
                                1 => (State::Literal, 1),
                                2 => (State::Code, 2),
                                3..6 => (State::Triple, 3),
                                _ => (State::Code, quotes - quotes % 6),
                            };
                        }
                        (b'(', _) => depth += 1,
                        (b')', _) if depth > 0 => depth -= 1,
                        (b')' | b',', _) => {
                            let scan = Scan { end: at, after: at, stop: Stop::Separator };
                            if matches!(until, Until::Parenthesis) {
                                return scan;
                            }
                            separator = separator.or(Some(scan));
                        }
                        _ => {}
                    }
                }
            }
        }
        // A line break after a backslash is still looked at.
        at += if step == 2 && found == b'\\' && next == b'\n' { 1 } else { step };
    }
    let end = text.len();
    shielded.or(separator).unwrap_or(Scan { end, after: end, stop: Stop::Broken })
}

/// Tells whether the line that begins at `at` ends the program.
fn line_stop(text: &str, at: usize, until: Until, state: State, shielded: &mut Option<Scan>) -> Option<Scan> {
    let start = after_blanks(text, at);
    if let Some((mark, length)) = fence(text, start) {
        let closed = Scan { end: at, after: start + length, stop: Stop::Closed };
        match until {
            Until::Fence { mark: wanted, length: least }
                if mark == wanted && length >= least && closes_call(text, start + length) =>
            {
                let in_text = match state {
                    State::Triple => true,
                    // A literal that lacks its quote reaches the end of the call; one of several lines goes on after it.
                    State::Literal => !ends_call(text, start + length),
                    State::Code | State::Line | State::Block(_) => false,
                };
                if !in_text {
                    return Some(closed);
                }
                *shielded = shielded.or(Some(closed));
            }
            // An opening fence, or any where none was wanted, belongs to what comes after the program.
            Until::Fence { .. } | Until::Parenthesis
                if matches!(state, State::Code | State::Line) && !is_other_close(text, start + length, until) =>
            {
                return Some(Scan { end: at, after: at, stop: Stop::Broken });
            }
            _ => {}
        }
    }
    let in_code = matches!(state, State::Code | State::Line) || state == State::Literal && shielded.is_some();
    (in_code && header::is_boundary(text, start)).then_some(Scan { end: at, after: at, stop: Stop::Broken })
}

/// Tells whether a fence in a fenced program names no language: then it may be one that lacks a mark, or is of the other
/// kind, and the program goes on to the end that its call has.
fn is_other_close(text: &str, at: usize, until: Until) -> bool {
    matches!(until, Until::Fence { .. }) && closes_call(text, at)
}

/// Tells whether what stands after a fence goes on with the call or is nothing, rather than naming a language.
pub(super) fn closes_call(text: &str, at: usize) -> bool {
    !char_at(text, at).is_some_and(char::is_alphanumeric)
}

/// Tells whether what stands after a fence ends the call or goes on with its arguments.
fn ends_call(text: &str, at: usize) -> bool {
    let next = after_space(text, at);
    next >= text.len()
        || byte(text, next) == b','
        || after_parenthesis(text, next).is_some()
        || header::is_boundary(text, next)
}

/// Tells whether the fence or quote at `at`, within a line, ends the program.
fn closes_inline(text: &str, at: usize, until: Until, depth: i64) -> Option<Scan> {
    let (mark, least) = match until {
        Until::Fence { mark, length } | Until::Quote { mark, length } => (mark, length),
        Until::Parenthesis => return None,
    };
    // A run of marks is looked at once, from its beginning.
    let continues = mark != b'"' && at > 0 && byte(text, at - 1) == mark;
    if byte(text, at) != mark || continues {
        return None;
    }
    let length = run(text, at, mark);
    let after = at + length;
    let is_literal = mark == b'"' && depth > 0;
    if length < least || is_literal {
        return None;
    }
    let next = match until {
        Until::Fence { .. } => after_blanks(text, after),
        _ => after_space(text, after),
    };
    let ends = next >= text.len()
        || matches!(byte(text, next), b',' | b'\n')
        || after_parenthesis(text, next).is_some()
        || matches!(until, Until::Fence { .. }) && quote::at_offset(text, next).is_some();
    // Of a longer run of quotes the last ones close.
    let end = if matches!(until, Until::Quote { .. }) { after - least } else { at };
    ends.then_some(Scan { end, after, stop: Stop::Closed })
}

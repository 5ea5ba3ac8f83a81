//! Finds the end of a program by the lexical rules of its language, so that strings, comments and
//! parentheses inside the program do not end it.

use super::{
    header, quote,
    text::{after_blanks, after_parenthesis, after_space, byte, char_at, fence, run},
};

/// The delimiter that ends a program.
#[derive(Clone, Copy)]
pub(super) enum Until {
    Fence { mark: u8, length: usize },
    Quote { mark: u8, length: usize },
    Parenthesis,
}

/// The way in which a program ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The expected delimiter ends the program.
    Closed,
    /// A comma or a parenthesis that cannot belong to the program ends it.
    Separator,
    /// The text ends, or text begins that cannot be part of a call.
    Broken,
}

/// The end of a program.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    pub(super) end: usize,
    /// Offset at which the call continues: after the closing fence or quote, or at the separator.
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

/// Scans a program in one pass, up to its end.
pub(super) fn scan(text: &str, inside: usize, until: Until) -> Scan {
    let bytes = text.as_bytes();
    let (mut state, mut depth) = (State::Code, 0_i64);
    // Ends of the program if there is no better one: a fence inside a literal, a comma or a
    // parenthesis.
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
                        // A closing tag or an end-of-turn token is never part of a program.
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
        // A line break after a backslash must still be checked.
        at += if step == 2 && found == b'\\' && next == b'\n' { 1 } else { step };
    }
    let end = text.len();
    shielded.or(separator).unwrap_or(Scan { end, after: end, stop: Stop::Broken })
}

/// Returns the end of the program if the line that begins at `at` ends it.
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
                    // An unclosed literal reaches the end of the call. A literal of several lines
                    // continues after it.
                    State::Literal => !ends_call(text, start + length),
                    State::Code | State::Line | State::Block(_) => false,
                };
                if !in_text {
                    return Some(closed);
                }
                *shielded = shielded.or(Some(closed));
            }
            // An opening or unexpected fence belongs to the text after the program.
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

/// Returns true if a fence inside a fenced program has no language. It may be a closing fence of
/// the wrong kind or length, and the program ends where its call ends.
fn is_other_close(text: &str, at: usize, until: Until) -> bool {
    matches!(until, Until::Fence { .. }) && closes_call(text, at)
}

/// Returns true if no language follows a fence, so that it may be a closing one.
pub(super) fn closes_call(text: &str, at: usize) -> bool {
    !char_at(text, at).is_some_and(char::is_alphanumeric)
}

/// Returns true if the text after a fence ends the call or continues with its arguments.
fn ends_call(text: &str, at: usize) -> bool {
    let next = after_space(text, at);
    next >= text.len()
        || byte(text, next) == b','
        || after_parenthesis(text, next).is_some()
        || header::is_boundary(text, next)
}

/// Returns the end of the program if the fence or quote at `at`, within a line, ends it.
fn closes_inline(text: &str, at: usize, until: Until, depth: i64) -> Option<Scan> {
    let (mark, least) = match until {
        Until::Fence { mark, length } | Until::Quote { mark, length } => (mark, length),
        Until::Parenthesis => return None,
    };
    // A run of marks is checked once, at its start.
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
    // The last quotes of a longer run close the string.
    let end = if matches!(until, Until::Quote { .. }) { after - least } else { at };
    ends.then_some(Scan { end, after, stop: Stop::Closed })
}

//! Reads the program of `ToolCall::Wat(…)`: in a fence, as a string, or as it stands.

use super::{
    Note,
    arguments::after_key,
    header,
    quote::{self, Quote},
    text::{
        after_blanks, after_parenthesis, after_space, byte, char_at, cut, fence, line_end, run, starts,
        trim_blank_lines,
    },
};

/// A program, and where the call goes on.
pub(super) struct Body {
    pub(super) text: String,
    pub(super) end: usize,
    /// Whether arguments or the closing parenthesis may follow.
    pub(super) goes_on: bool,
    pub(super) note: Option<Note>,
}

/// Words after an opening fence that name a language.
const LANGUAGES: [&str; 9] = ["wat", "wast", "wasm", "webassembly", "text/wat", "lisp", "scheme", "clojure", "text"];

/// Reads the program that begins at `at`.
pub(super) fn read(text: &str, at: usize) -> Body {
    let at = after_space(text, at);
    let at = after_key(text, at).unwrap_or(at);
    if let Some((mark, length)) = fence(text, at) {
        return fenced(text, at, mark, length);
    }
    match quote::at_offset(text, at) {
        Some(quote) => quoted(text, quote),
        None => unquoted(text, at),
    }
}

/// Reads a program in a fence that opens at `at`.
pub(super) fn fenced(text: &str, at: usize, mark: u8, length: usize) -> Body {
    let inside = after_info(text, at + length);
    let scan = scan(text, inside, Until::Fence { mark, length });
    let note = (scan.stop != Stop::Closed).then_some(Note::UnclosedFence);
    Body { goes_on: scan.stop != Stop::Broken, ..body(text, inside, scan, note) }
}

fn unquoted(text: &str, at: usize) -> Body {
    let word = LANGUAGES
        .iter()
        .find(|word| starts(text, at, word) && matches!(byte(text, after_space(text, at + word.len())), b'(' | b';'));
    let inside = match word {
        Some(word) if !matches!(byte(text, at + word.len()), b'(' | b';') => at + word.len(),
        // The blanks before the first line belong to it.
        _ => cut(text, 0, at)
            .rfind('\n')
            .map_or(at, |line| if after_blanks(text, line + 1) == at { line + 1 } else { at }),
    };
    let scan = scan(text, inside, Until::Parenthesis);
    let broken = scan.stop == Stop::Broken;
    Body { goes_on: !broken, ..body(text, inside, scan, broken.then_some(Note::UnclosedCall)) }
}

fn quoted(text: &str, quote: Quote) -> Body {
    if !quote.is_triple
        && let Some((end, after)) = quote::close(text, quote)
        && matches!(char_at(text, after_space(text, after)), None | Some(',' | ')' | '）'))
    {
        let source = quote::content(cut(text, quote.inside, end), quote);
        return Body { text: trim_blank_lines(&source).to_owned(), end: after, goes_on: true, note: None };
    }
    let Ok(mark) = u8::try_from(quote.mark) else {
        return typographic(text, quote);
    };
    let length = if quote.is_triple { 3 } else { 1 };
    let scan = scan(text, quote.inside, Until::Quote { mark, length });
    let note = (scan.stop != Stop::Closed).then_some(Note::UnclosedString);
    Body { goes_on: scan.stop != Stop::Broken, ..body(text, quote.inside, scan, note) }
}

/// Reads a program in typographic quotes: up to the first closing one, or else as if it had none.
fn typographic(text: &str, quote: Quote) -> Body {
    match quote::close(text, quote) {
        Some((end, after)) => {
            let source = trim_blank_lines(cut(text, quote.inside, end)).to_owned();
            Body { text: source, end: after, goes_on: true, note: None }
        }
        None => unquoted(text, quote.inside),
    }
}

fn body(text: &str, inside: usize, scan: Scan, note: Option<Note>) -> Body {
    let source = cut(text, inside, scan.end);
    let source = if scan.stop == Stop::Broken { source.trim_end() } else { source };
    Body { text: trim_blank_lines(source).trim_end().to_owned(), end: scan.after, goes_on: true, note }
}

/// Gives where the content of a fence begins: after the language, or at the program where it begins on the same line.
fn after_info(text: &str, at: usize) -> usize {
    let line = line_end(text, at);
    let info = cut(text, at, line);
    let word = info.trim_start();
    let start = at + info.len() - word.len();
    let known = LANGUAGES.iter().find(|name| {
        starts(word, 0, name) && !byte(word, name.len()).is_ascii_alphanumeric() && byte(word, name.len()) != b'.'
    });
    let has_program = info.contains(['(', ';']) || info.contains("```");
    match known {
        Some(name) if has_program => after_blanks(text, start + name.len()),
        None if has_program || word.split_whitespace().count() > 1 => at,
        _ => (line + 1).min(text.len()),
    }
}

/// What ends a program.
#[derive(Clone, Copy)]
enum Until {
    Fence { mark: u8, length: usize },
    Quote { mark: u8, length: usize },
    Parenthesis,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// What was to end the program does.
    Closed,
    /// A comma or a parenthesis that can not belong to the program ends it.
    Separator,
    /// The text ends, or something begins that belongs to no call.
    Broken,
}

#[derive(Clone, Copy)]
struct Scan {
    end: usize,
    after: usize,
    stop: Stop,
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
fn scan(text: &str, inside: usize, until: Until) -> Scan {
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
                        (b'(', b';') => (state, step) = (State::Block(1), 2),
                        (b'"', _) => {
                            let quotes = run(text, at, b'"');
                            // Two quotes are an empty literal, six an empty triple-quoted one.
                            (state, step) = match quotes {
                                1 => (State::Literal, 1),
                                2 => (State::Code, 2),
                                3..6 => (State::Triple, 3),
                                _ => (State::Code, 6),
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
                if state != State::Triple {
                    return Some(closed);
                }
                *shielded = shielded.or(Some(closed));
            }
            Until::Parenthesis if !matches!(state, State::Literal | State::Triple) => {
                return Some(Scan { end: at, after: at, stop: Stop::Broken });
            }
            _ => {}
        }
    }
    let in_code = matches!(state, State::Code | State::Line);
    (in_code && header::is_boundary(text, start)).then_some(Scan { end: at, after: at, stop: Stop::Broken })
}

/// Tells whether what stands after a fence goes on with the call or is nothing, rather than naming a language.
fn closes_call(text: &str, at: usize) -> bool {
    !char_at(text, at).is_some_and(char::is_alphanumeric)
}

/// Tells whether the fence or quote at `at`, within a line, ends the program.
fn closes_inline(text: &str, at: usize, until: Until, depth: i64) -> Option<Scan> {
    let (mark, least) = match until {
        Until::Fence { mark, length } | Until::Quote { mark, length } => (mark, length),
        Until::Parenthesis => return None,
    };
    if byte(text, at) != mark {
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

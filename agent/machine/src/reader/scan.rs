//! Finds the end of a program according to the lexical rules of its language, so that strings,
//! comments and parentheses in the program do not end it.

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

/// The reason why a program ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The expected delimiter ends the program.
    Closed,
    /// A comma or a parenthesis that cannot belong to the program ends it.
    Separator,
    /// The answer ends, or it continues with text that cannot belong to the call.
    Broken,
}

/// The result of a scan: the end of a program.
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

/// Scans a program in one pass and returns its end.
pub(super) fn scan(text: &str, inside: usize, until: Until) -> Scan {
    let (state, depth) = (State::Code, 0);
    let mut scanner =
        Scanner { text, until, at: inside, state, depth, shielded: None, separator: None };
    scanner.line_stop(inside).unwrap_or_else(|| scanner.run())
}

struct Scanner<'a> {
    text: &'a str,
    until: Until,
    at: usize,
    state: State,
    /// Number of open parentheses.
    depth: i64,
    /// A closing fence inside a literal. It ends the program if nothing else does.
    shielded: Option<Scan>,
    /// A comma or a surplus parenthesis. It ends the program if nothing else does.
    separator: Option<Scan>,
}

impl Scanner<'_> {
    fn run(mut self) -> Scan {
        while let Some(&found) = self.text.as_bytes().get(self.at) {
            let next = byte(self.text, self.at + 1);
            let length = match self.state {
                _ if found == b'\n' => self.line_break(),
                State::Code => self.code(found, next),
                state => Ok(self.comment_or_literal(state, found, next)),
            };
            match length {
                Err(end) => return end,
                // A line break after a backslash must still be checked.
                Ok(2) if found == b'\\' && next == b'\n' => self.at += 1,
                Ok(length) => self.at += length,
            }
        }
        let end = self.text.len();
        self.fallback_end(Scan { end, after: end, stop: Stop::Broken })
    }

    /// Returns the possible end that was found earlier, or `end` if there is none.
    fn fallback_end(&self, end: Scan) -> Scan {
        self.shielded.or(self.separator).unwrap_or(end)
    }

    /// Reads a line break. Returns its length, or `Err` with the program's end if the program ends
    /// there.
    fn line_break(&mut self) -> Result<usize, Scan> {
        if self.state == State::Line {
            self.state = State::Code;
        }
        match self.line_stop(self.at + 1) {
            Some(end) if end.stop == Stop::Broken => Err(self.fallback_end(end)),
            Some(end) => Err(end),
            None => Ok(1),
        }
    }

    /// Reads a token inside a comment or a literal. Returns its length.
    fn comment_or_literal(&mut self, state: State, found: u8, next: u8) -> usize {
        let (state, length) = match (state, found, next) {
            (State::Block(level), b'(', b';') => (State::Block(level + 1), 2),
            (State::Block(1), b';', b')') => (State::Code, 2),
            (State::Block(level), b';', b')') => (State::Block(level - 1), 2),
            (State::Literal | State::Triple, b'\\', _) => (state, 2),
            (State::Literal, b'"', _) => (State::Code, 1),
            (State::Triple, b'"', _) => match run(self.text, self.at, b'"') {
                quotes @ 3.. => (State::Code, quotes),
                quotes => (state, quotes),
            },
            _ => (state, 1),
        };
        self.state = state;
        length
    }

    /// Reads a token of code. Returns its length, or `Err` with the program's end if the program
    /// ends there.
    fn code(&mut self, found: u8, next: u8) -> Result<usize, Scan> {
        let (text, at) = (self.text, self.at);
        if let Some(end) = closes_inline(text, at, self.until, self.depth) {
            return Err(end);
        }
        match (found, next) {
            (b';', b';') => self.state = State::Line,
            // A closing tag or an end-of-turn token is never part of a program.
            (b'<', b'/' | b'|') if header::closing_tag(text, at) > 0 => {
                return Err(self.fallback_end(Scan { end: at, after: at, stop: Stop::Broken }));
            }
            (b'(', b';') => {
                self.state = State::Block(1);
                return Ok(2);
            }
            (b'"', _) => return Ok(self.open_literal()),
            (b'(', _) => self.depth += 1,
            (b')', _) if self.depth > 0 => self.depth -= 1,
            (b')' | b',', _) => {
                let end = Scan { end: at, after: at, stop: Stop::Separator };
                if matches!(self.until, Until::Parenthesis) {
                    return Err(end);
                }
                self.separator = self.separator.or(Some(end));
            }
            _ => {}
        }
        Ok(1)
    }

    /// Reads the opening quotes of a literal. Two quotes are an empty literal, and six quotes are
    /// an empty triple-quoted literal.
    fn open_literal(&mut self) -> usize {
        let (state, length) = match run(self.text, self.at, b'"') {
            1 => (State::Literal, 1),
            2 => (State::Code, 2),
            3..6 => (State::Triple, 3),
            quotes => (State::Code, quotes - quotes % 6),
        };
        self.state = state;
        length
    }

    /// Returns the end of the program if the line that begins at `at` ends it, and `None`
    /// otherwise.
    fn line_stop(&mut self, at: usize) -> Option<Scan> {
        let Self { text, until, state, .. } = *self;
        let start = after_blanks(text, at);
        if let Some((mark, length)) = fence(text, start) {
            let closed = Scan { end: at, after: start + length, stop: Stop::Closed };
            match until {
                Until::Fence { mark: wanted, length: least }
                    if mark == wanted && length >= least && closes_call(text, start + length) =>
                {
                    let in_text = match state {
                        State::Triple => true,
                        // An unclosed literal extends to the end of the call. A multi-line literal
                        // continues after the fence.
                        State::Literal => !ends_call(text, start + length),
                        State::Code | State::Line | State::Block(_) => false,
                    };
                    if !in_text {
                        return Some(closed);
                    }
                    self.shielded = self.shielded.or(Some(closed));
                }
                // An opening or unexpected fence belongs to the text after the program.
                Until::Fence { .. } | Until::Parenthesis
                    if matches!(state, State::Code | State::Line)
                        && !is_other_close(text, start + length, until) =>
                {
                    return Some(Scan { end: at, after: at, stop: Stop::Broken });
                }
                _ => {}
            }
        }
        let in_code = matches!(state, State::Code | State::Line)
            || state == State::Literal && self.shielded.is_some();
        (in_code && header::is_boundary(text, start)).then_some(Scan {
            end: at,
            after: at,
            stop: Stop::Broken,
        })
    }
}

/// Returns true if the program is fenced and the fence that ends at `at` has no language. Such a
/// fence may be a closing fence of the wrong kind or length. The program then ends where its call
/// ends.
fn is_other_close(text: &str, at: usize, until: Until) -> bool {
    matches!(until, Until::Fence { .. }) && closes_call(text, at)
}

/// Returns true if the fence that ends at `at` may be a closing fence: no language follows it.
pub(super) fn closes_call(text: &str, at: usize) -> bool {
    !char_at(text, at).is_some_and(char::is_alphanumeric)
}

/// Returns true if the text after a fence ends the call or continues it with arguments.
fn ends_call(text: &str, at: usize) -> bool {
    let next = after_space(text, at);
    next >= text.len()
        || byte(text, next) == b','
        || after_parenthesis(text, next).is_some()
        || header::is_boundary(text, next)
}

/// Returns the end of the program if an inline fence or quote at `at` ends it, and `None`
/// otherwise.
fn closes_inline(text: &str, at: usize, until: Until, depth: i64) -> Option<Scan> {
    let (mark, least) = match until {
        Until::Fence { mark, length } | Until::Quote { mark, length } => (mark, length),
        Until::Parenthesis => return None,
    };
    // A run of marks is checked only once, at its start.
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
    // The last quotes of a longer run are the closing quotes.
    let end = if matches!(until, Until::Quote { .. }) { after - least } else { at };
    ends.then_some(Scan { end, after, stop: Stop::Closed })
}

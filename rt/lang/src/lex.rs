//! Tokens: those of WAT, text over several lines, and what else models leave between them.

use super::slips;
use super::wording::{self, Fault};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `(`
    Open,
    /// `)`
    Close,
    /// A keyword, name or number: a run of WAT's identifier characters.
    Atom,
    /// `"text"`; may hold raw line ends.
    Text,
    /// `"""text"""`
    Block,
}

/// A token and its place in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Whether it is the first one of its line.
    pub(super) fresh: bool,
}

/// Reads tokens in one pass over the text. Comments, blanks and code fences are between tokens.
pub(super) struct Lexer<'s> {
    source: &'s str,
    at: usize,
    /// The first `"…"` that holds a line end: where an odd quote may have begun.
    pub(super) first_long: Option<u32>,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Lexer { source, at: 0, first_long: None }
    }

    /// The next token; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token>, Box<Fault>> {
        let bytes = self.source.as_bytes();
        let mut fresh = self.at == 0;
        while let Some(&byte) = bytes.get(self.at) {
            let start = self.at;
            let kind = match class(byte) {
                Class::Blank => {
                    fresh |= byte == b'\n';
                    self.at += 1;
                    continue;
                }
                Class::Open if bytes.get(start + 1) == Some(&b';') => {
                    fresh |= self.skip_block_comment(start)?;
                    continue;
                }
                Class::Open => {
                    self.at += 1;
                    Kind::Open
                }
                Class::Close => {
                    self.at += 1;
                    Kind::Close
                }
                Class::Quote => self.text(start)?,
                Class::Semicolon if bytes.get(start + 1) == Some(&b';') => {
                    self.at = self.line_end(start);
                    continue;
                }
                Class::Semicolon => return Err(Fault::new(start..start + 1, slips::semicolon(self.source, start))),
                Class::Name if byte == b'`' && self.rest(start).starts_with("```") => {
                    self.at = start + 3 + self.run(start + 3, |b| b.is_ascii_alphanumeric());
                    continue;
                }
                Class::Name => {
                    self.at = self.atom_end(start);
                    Kind::Atom
                }
                Class::Other => {
                    self.skip_unusual(start)?;
                    continue;
                }
            };
            if kind == Kind::Atom
                && matches!(byte, b'\'' | b'`' | b'/' | b'#' | b'-')
                && let Some(fault) = slips::atom(self.source, start, self.at)
            {
                return Err(fault);
            }
            if kind == Kind::Atom && byte == b'@' {
                return Err(Fault::new(start..start + 1, wording::annotation()));
            }
            if kind == Kind::Atom && self.rest(start).starts_with("$\"") {
                return Err(Fault::new(start..start + 2, wording::quoted_name()));
            }
            let (start, end) = (super::diagnostic::clamp(start), super::diagnostic::clamp(self.at));
            return Ok(Some(Token { kind, start, end, fresh }));
        }
        Ok(None)
    }

    fn rest(&self, at: usize) -> &'s str {
        self.source.get(at..).unwrap_or("")
    }

    /// How many bytes from `at` on satisfy the condition.
    fn run(&self, at: usize, mut wanted: impl FnMut(u8) -> bool) -> usize {
        self.rest(at).bytes().take_while(|b| wanted(*b)).count()
    }

    /// Where the atom that begins at `start` ends: a code fence may follow it without a blank.
    fn atom_end(&self, start: usize) -> usize {
        let mut ticks = false;
        let end = start
            + self.run(start, |b| {
                ticks |= b == b'`';
                class(b) == Class::Name
            });
        let fence = || self.source.get(start..end).and_then(|atom| atom.find("```"));
        if ticks && let Some(at) = fence() { start + at } else { end }
    }

    fn line_end(&self, at: usize) -> usize {
        at + self.run(at, |b| b != b'\n')
    }

    /// Skips `(; … ;)`, which nests; says whether it held a line end.
    fn skip_block_comment(&mut self, start: usize) -> Result<bool, Box<Fault>> {
        let bytes = self.source.as_bytes();
        let (mut depth, mut at, mut broken) = (0_usize, start, false);
        while let Some(&byte) = bytes.get(at) {
            match (byte, bytes.get(at + 1)) {
                (b'(', Some(b';')) => {
                    depth += 1;
                    at += 2;
                }
                (b';', Some(b')')) => {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        self.at = at;
                        return Ok(broken);
                    }
                }
                _ => {
                    broken |= byte == b'\n';
                    at += 1;
                }
            }
        }
        Err(Fault::new(start..start + 2, wording::unclosed_comment()))
    }

    /// Reads the text that begins at `start`. A backslash hides the byte after it; nothing is decoded here.
    fn text(&mut self, start: usize) -> Result<Kind, Box<Fault>> {
        let bytes = self.source.as_bytes();
        let block = self.rest(start).starts_with("\"\"\"");
        let mut at = start + if block { 3 } else { 1 };
        let mut broken = false;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                b'"' if block => {
                    // Of a longer run of quotes the last three close.
                    let quotes = self.run(at, |b| b == b'"');
                    at += quotes;
                    if quotes >= 3 {
                        self.at = at;
                        return Ok(Kind::Block);
                    }
                }
                b'"' => {
                    self.at = at + 1;
                    if broken && self.first_long.is_none() {
                        self.first_long = Some(super::diagnostic::clamp(start));
                    }
                    return Ok(Kind::Text);
                }
                _ => {
                    broken |= byte == b'\n';
                    at += 1;
                }
            }
        }
        let long = self.first_long.filter(|_| !block).map(|at| at as usize);
        let words = wording::unclosed_text(block, long.map(|at| super::Position::of(self.source, at).line));
        let closed = slips::closing_quote(self.source, long.unwrap_or(start)).filter(|_| !block);
        let width = if block { 3 } else { 1 };
        Err(Fault::new(start..start + width, words.perhaps(closed)))
    }

    /// Skips a blank that is not ASCII, or says what the character is.
    fn skip_unusual(&mut self, start: usize) -> Result<(), Box<Fault>> {
        let Some(c) = self.rest(start).chars().next() else { return Ok(()) };
        let end = start + c.len_utf8();
        if c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}') {
            self.at = end;
            return Ok(());
        }
        Err(Fault::new(start..end, slips::character(self.source, start, c)))
    }
}

/// What a byte begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Blank,
    Open,
    Close,
    Quote,
    Semicolon,
    Name,
    Other,
}

const fn class(byte: u8) -> Class {
    match byte {
        b' ' | b'\t' | b'\n' | b'\r' | 0x0c => Class::Blank,
        b'(' => Class::Open,
        b')' => Class::Close,
        b'"' => Class::Quote,
        b';' => Class::Semicolon,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Class::Name,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'/' | b':' => Class::Name,
        b'<' | b'=' | b'>' | b'?' | b'@' | b'\\' | b'^' | b'_' | b'`' | b'|' | b'~' => Class::Name,
        _ => Class::Other,
    }
}

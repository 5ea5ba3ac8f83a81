//! Tokens: those of WAT, text over several lines, and what else models leave between them.

use crate::bad_tokens;
use crate::messages::{self, Fault};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
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
    pub(super) kind: TokenKind,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Whether it is the first one of its line.
    pub(super) starts_line: bool,
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
        let mut starts_line = self.at == 0;
        while let Some(&byte) = bytes.get(self.at) {
            let start = self.at;
            let kind = match class(byte) {
                ByteClass::Blank => {
                    starts_line |= byte == b'\n';
                    self.at += 1;
                    continue;
                }
                ByteClass::Open if bytes.get(start + 1) == Some(&b';') => {
                    starts_line |= self.skip_block_comment(start)?;
                    continue;
                }
                ByteClass::Open => {
                    self.at += 1;
                    TokenKind::Open
                }
                ByteClass::Close => {
                    self.at += 1;
                    TokenKind::Close
                }
                ByteClass::Quote => self.text(start)?,
                ByteClass::Semicolon if bytes.get(start + 1) == Some(&b';') => {
                    self.at = self.line_end(start);
                    continue;
                }
                ByteClass::Semicolon => {
                    return Err(Fault::new(start..start + 1, bad_tokens::semicolon(self.source, start)));
                }
                ByteClass::Name if byte == b'`' && self.rest(start).starts_with("```") => {
                    self.at = start + 3 + self.run(start + 3, |b| b.is_ascii_alphanumeric());
                    continue;
                }
                ByteClass::Name => {
                    self.at = self.atom_end(start);
                    TokenKind::Atom
                }
                ByteClass::Other => {
                    self.skip_unusual(start)?;
                    continue;
                }
            };
            if kind == TokenKind::Atom
                && matches!(byte, b'\'' | b'`' | b'/' | b'#' | b'-')
                && let Some(fault) = bad_tokens::atom(self.source, start, self.at)
            {
                return Err(fault);
            }
            if kind == TokenKind::Atom && byte == b'@' {
                return Err(Fault::new(start..start + 1, messages::annotation()));
            }
            if kind == TokenKind::Atom && self.rest(start).starts_with("$\"") {
                return Err(Fault::new(start..start + 2, messages::quoted_name()));
            }
            let (start, end) = (crate::diagnostic::clamp(start), crate::diagnostic::clamp(self.at));
            return Ok(Some(Token { kind, start, end, starts_line }));
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
                class(b) == ByteClass::Name
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
        Err(Fault::new(start..start + 2, messages::unclosed_comment()))
    }

    /// Reads the text that begins at `start`. A backslash hides the byte after it; nothing is decoded here.
    fn text(&mut self, start: usize) -> Result<TokenKind, Box<Fault>> {
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
                        return Ok(TokenKind::Block);
                    }
                }
                b'"' => {
                    self.at = at + 1;
                    if broken && self.first_long.is_none() {
                        self.first_long = Some(crate::diagnostic::clamp(start));
                    }
                    return Ok(TokenKind::Text);
                }
                _ => {
                    broken |= byte == b'\n';
                    at += 1;
                }
            }
        }
        let long = self.first_long.filter(|_| !block).map(|at| at as usize);
        let message = messages::unclosed_text(block, long.map(|at| crate::Position::of(self.source, at).line));
        let closed = bad_tokens::closing_quote(self.source, long.unwrap_or(start)).filter(|_| !block);
        let width = if block { 3 } else { 1 };
        Err(Fault::new(start..start + width, message.maybe_safe(closed)))
    }

    /// Skips a blank that is not ASCII, or says what the character is.
    fn skip_unusual(&mut self, start: usize) -> Result<(), Box<Fault>> {
        let Some(c) = self.rest(start).chars().next() else { return Ok(()) };
        let end = start + c.len_utf8();
        if c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}') {
            self.at = end;
            return Ok(());
        }
        Err(Fault::new(start..end, bad_tokens::character(self.source, start, c)))
    }
}

/// What a byte begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteClass {
    Blank,
    Open,
    Close,
    Quote,
    Semicolon,
    Name,
    Other,
}

const fn class(byte: u8) -> ByteClass {
    match byte {
        b' ' | b'\t' | b'\n' | b'\r' | 0x0c => ByteClass::Blank,
        b'(' => ByteClass::Open,
        b')' => ByteClass::Close,
        b'"' => ByteClass::Quote,
        b';' => ByteClass::Semicolon,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => ByteClass::Name,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'/' | b':' => ByteClass::Name,
        b'<' | b'=' | b'>' | b'?' | b'@' | b'\\' | b'^' | b'_' | b'`' | b'|' | b'~' => ByteClass::Name,
        _ => ByteClass::Other,
    }
}

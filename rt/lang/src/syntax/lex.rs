//! The lexer. It accepts WAT's tokens, strings over several lines, and code fences.

use crate::diagnose::wording::{self, Fault};
use crate::syntax::bad_tokens;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// `(`, or `[`
    Open,
    /// `)`, or `]`
    Close,
    /// A keyword, name or number: a sequence of WAT's identifier characters.
    Atom,
    /// `"text"`, which may contain line breaks.
    Text,
    /// `"""text"""`
    Block,
}

/// A token and its range in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// If true, the token is the first of its line.
    pub(crate) starts_line: bool,
}

/// Splits a text into tokens in one pass. Comments, whitespace and code fences are skipped.
pub(crate) struct Lexer<'s> {
    source: &'s str,
    at: usize,
    /// The first `"…"` that contains a line break. If quotes do not match, it may be the faulty
    /// one.
    pub(crate) first_long: Option<u32>,
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Lexer { source, at: 0, first_long: None }
    }

    /// Returns the next token, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Token>, Box<Fault>> {
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
                ByteClass::Open if byte == b'(' && bytes.get(start + 1) == Some(&b';') => {
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
                ByteClass::Quote => self.text(start, false)?,
                ByteClass::Semicolon if bytes.get(start + 1) == Some(&b';') => {
                    self.at = self.line_end(start);
                    continue;
                }
                ByteClass::Semicolon => {
                    let end = self.line_end(start);
                    let rest = self.source.get(start + 1..end).unwrap_or("");
                    // Code after a statement that ends with `;` must not become a comment.
                    if !starts_line && rest.trim_start().starts_with('(') {
                        let message = bad_tokens::semicolon(self.source, start);
                        return Err(Fault::new(start..start + 1, message));
                    }
                    self.at = end;
                    continue;
                }
                ByteClass::Name if byte == b'`' && self.rest(start).starts_with("```") => {
                    self.at = start + 3 + self.run(start + 3, |b| b.is_ascii_alphanumeric());
                    continue;
                }
                ByteClass::Name if byte == b'r' && bytes.get(start + 1) == Some(&b'"') => {
                    self.text(start, true)?
                }
                ByteClass::Name if byte == b'\'' && self.character_end(start).is_some() => {
                    self.at = self.character_end(start).unwrap_or(start + 1);
                    let (start, end) = (
                        crate::diagnose::diagnostic::clamp(start),
                        crate::diagnose::diagnostic::clamp(self.at),
                    );
                    return Ok(Some(Token { kind: TokenKind::Atom, start, end, starts_line }));
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
                return Err(Fault::new(start..start + 1, wording::annotation()));
            }
            if kind == TokenKind::Atom && self.rest(start).starts_with("$\"") {
                return Err(Fault::new(start..start + 2, wording::quoted_name()));
            }
            let (start, end) = (
                crate::diagnose::diagnostic::clamp(start),
                crate::diagnose::diagnostic::clamp(self.at),
            );
            return Ok(Some(Token { kind, start, end, starts_line }));
        }
        Ok(None)
    }

    fn rest(&self, at: usize) -> &'s str {
        self.source.get(at..).unwrap_or("")
    }

    /// Counts the bytes from `at` that satisfy a condition.
    fn run(&self, at: usize, mut wanted: impl FnMut(u8) -> bool) -> usize {
        self.rest(at).bytes().take_while(|b| wanted(*b)).count()
    }

    /// Returns the end of the atom that begins at `start`. A code fence may follow it without a
    /// space.
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

    /// Skips `(; … ;)`, which nests. Returns true if it contains a line break.
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

    /// Returns the end of the quoted character that begins at `start`, such as `'#'`.
    fn character_end(&self, start: usize) -> Option<usize> {
        let mut chars = self.rest(start).char_indices().skip(1);
        let (_, first) = chars.next()?;
        if first == '\'' || first.is_control() {
            return None;
        }
        let (mut at, mut c) = chars.next()?;
        if first == '\\' {
            // The escape ends at the next quote.
            let mut length = 0;
            while c != '\'' || length == 0 {
                length += 1;
                if length > 10 {
                    return None;
                }
                (at, c) = chars.next()?;
            }
        }
        let end = start + at + 1;
        let text = self.source.get(start..end)?;
        (c == '\'' && crate::syntax::literal::character(text).is_some()).then_some(end)
    }

    /// Reads the string that begins at `start`. Escapes are not decoded here. A raw string begins
    /// with `r` and has none.
    fn text(&mut self, start: usize, raw: bool) -> Result<TokenKind, Box<Fault>> {
        let bytes = self.source.as_bytes();
        let open = start + usize::from(raw);
        let block = self.rest(open).starts_with("\"\"\"");
        let mut at = open + if block { 3 } else { 1 };
        let mut broken = false;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' if !raw => at += 2,
                b'"' if block => {
                    // In a longer sequence of quotes, the last three close the string.
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
                        self.first_long = Some(crate::diagnose::diagnostic::clamp(start));
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
        let message =
            wording::unclosed_text(block, long.map(|at| crate::Position::of(self.source, at).line));
        let closed =
            bad_tokens::closing_quote(self.source, long.unwrap_or(start)).filter(|_| !block);
        let width = open - start + if block { 3 } else { 1 };
        Err(Fault::new(start..start + width, message.maybe_safe(closed)))
    }

    /// Skips whitespace that is not ASCII. Any other character is a fault.
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

/// The class of a token's first byte.
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
        b'(' | b'[' => ByteClass::Open,
        b')' | b']' => ByteClass::Close,
        b'"' => ByteClass::Quote,
        b';' => ByteClass::Semicolon,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => ByteClass::Name,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'/' | b':' => {
            ByteClass::Name
        }
        b'<' | b'=' | b'>' | b'?' | b'@' | b'\\' | b'^' | b'_' | b'`' | b'|' | b'~' => {
            ByteClass::Name
        }
        _ => ByteClass::Other,
    }
}

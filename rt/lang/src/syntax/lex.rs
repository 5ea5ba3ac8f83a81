//! The lexer. It accepts WAT tokens, multi-line strings and code fences.

use crate::diagnose::diagnostic::clamp;
use crate::diagnose::wording::{self, Fault};
use crate::syntax::bad_tokens;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// `(`, `[` or `{`
    Open,
    /// `)`, `]` or `}`
    Close,
    /// A keyword, name or number: a sequence of WAT's identifier characters.
    Atom,
    /// `"text"`, which may contain line breaks.
    Text,
    /// `"""text"""`
    Block,
}

/// A token and its byte range in the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// If true, the token is the first on its line.
    pub(crate) starts_line: bool,
    /// If true, the token is an atom that contains a dot and is not a quoted character.
    pub(crate) dotted: bool,
}

/// A lexer, which splits a source into tokens in one pass. It skips comments, whitespace and code
/// fences.
pub(crate) struct Lexer<'s> {
    source: &'s str,
    at: usize,
    /// The offset of the first `"…"` that contains a line break. If quotes do not match, this
    /// string may be the cause.
    pub(crate) first_long: Option<u32>,
    /// The numbers of open square and curly brackets. In both, commas are blanks, and in curly
    /// brackets, so are colons.
    square: u32,
    curly: u32,
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Lexer { source, at: 0, first_long: None, square: 0, curly: 0 }
    }

    /// Returns the next token, or `None` at the end.
    // Otherwise, whether the compiler inlines it would depend on how it splits the crate.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Token>, Box<Fault>> {
        let bytes = self.source.as_bytes();
        let mut starts_line = self.at == 0;
        while let Some(&byte) = bytes.get(self.at) {
            let start = self.at;
            let mut dotted = false;
            let kind = match class(byte) {
                ByteClass::Blank => {
                    self.at += 1;
                    continue;
                }
                ByteClass::LineEnd => {
                    starts_line = true;
                    self.at += 1 + self.run(start + 1, |byte| byte == b' ');
                    continue;
                }
                ByteClass::Open if byte == b'(' && bytes.get(start + 1) == Some(&b';') => {
                    starts_line |= self.skip_block_comment(start)?;
                    continue;
                }
                ByteClass::Open => {
                    self.at += 1;
                    self.square += u32::from(byte == b'[');
                    TokenKind::Open
                }
                ByteClass::Close => {
                    self.at += 1;
                    self.square = self.square.saturating_sub(u32::from(byte == b']'));
                    TokenKind::Close
                }
                ByteClass::Quote => self.text(start, false)?,
                ByteClass::Semicolon => {
                    self.skip_line_comment(start, starts_line)?;
                    continue;
                }
                ByteClass::Name => {
                    (self.at, dotted) = self.atom_end(start);
                    TokenKind::Atom
                }
                ByteClass::Special => match self.special(start, byte, &mut dotted)? {
                    Some(kind) => kind,
                    None => continue,
                },
                ByteClass::Other => match self.unusual(start)? {
                    Some(kind) => kind,
                    None => continue,
                },
            };
            if byte == b'$' && self.at == start + 1 && bytes.get(self.at) == Some(&b'"') {
                return Err(Fault::new(start..start + 2, wording::quoted_name()));
            }
            let (start, end) = (clamp(start), clamp(self.at));
            return Ok(Some(Token { kind, start, end, starts_line, dotted }));
        }
        Ok(None)
    }

    /// Reads an atom or a raw string that starts with a byte of the class [`ByteClass::Special`].
    /// If a code fence starts there instead, skips the fence and returns `None`.
    #[inline(never)]
    fn special(
        &mut self,
        start: usize,
        first: u8,
        dotted: &mut bool,
    ) -> Result<Option<TokenKind>, Box<Fault>> {
        match first {
            b':' if self.curly > 0 => {
                self.at = start + 1;
                return Ok(None);
            }
            b'`' if self.rest(start).starts_with("```") => {
                self.at = start + 3 + self.run(start + 3, |b| b.is_ascii_alphanumeric());
                return Ok(None);
            }
            b'r' if self.source.as_bytes().get(start + 1) == Some(&b'"') => {
                return self.text(start, true).map(Some);
            }
            b'\'' if let Some(end) = self.character_end(start) => {
                self.at = end;
                return Ok(Some(TokenKind::Atom));
            }
            _ => {}
        }
        (self.at, *dotted) = self.atom_end(start);
        let fault = match first {
            b'\'' | b'`' | b'/' | b'#' | b'-' => bad_tokens::atom(self.source, start, self.at),
            b'@' => Some(Fault::new(start..start + 1, wording::annotation())),
            _ => None,
        };
        fault.map_or(Ok(Some(TokenKind::Atom)), Err)
    }

    fn rest(&self, at: usize) -> &'s str {
        self.source.get(at..).unwrap_or("")
    }

    /// Counts the consecutive bytes from `at` that satisfy a condition.
    fn run(&self, at: usize, mut wanted: impl FnMut(u8) -> bool) -> usize {
        let rest = self.source.as_bytes().get(at..).unwrap_or(&[]);
        rest.iter().position(|byte| !wanted(*byte)).unwrap_or(rest.len())
    }

    /// Returns the end of the atom that starts at `start`, and whether the atom contains a dot. A
    /// code fence may follow the atom without a space.
    fn atom_end(&self, start: usize) -> (usize, bool) {
        let bytes = self.source.as_bytes();
        let mut end = start;
        let mut all = 0;
        while let Some(&byte) = bytes.get(end) {
            let flags = name_flags(byte);
            if flags == 0 {
                break;
            }
            all |= flags;
            end += 1;
        }
        match all & BACKTICK {
            0 => (end, all & DOT != 0),
            _ => self.before_fence(start, end),
        }
    }

    /// Returns the end of the atom at the start of a range, and whether the atom contains a dot.
    /// The atom ends before the first code fence in the range, if there is one.
    #[cold]
    fn before_fence(&self, start: usize, end: usize) -> (usize, bool) {
        let all = self.source.get(start..end).unwrap_or("");
        let atom = all.split_once("```").map_or(all, |(atom, _)| atom);
        (start + atom.len(), atom.contains('.'))
    }

    fn line_end(&self, at: usize) -> usize {
        at + self.run(at, |b| b != b'\n')
    }

    /// Skips a comment that begins with `;`, up to the end of the line.
    #[inline(never)]
    fn skip_line_comment(&mut self, start: usize, starts_line: bool) -> Result<(), Box<Fault>> {
        let end = self.line_end(start);
        let rest = self.source.get(start + 1..end).unwrap_or("");
        // Code after a statement that ends with `;` must not be treated as a comment.
        if !starts_line && !rest.starts_with(';') && rest.trim_start().starts_with('(') {
            let message = bad_tokens::semicolon(self.source, start);
            return Err(Fault::new(start..start + 1, message));
        }
        self.at = end;
        Ok(())
    }

    /// Skips a block comment, `(; … ;)`. Block comments nest. Returns true if the comment contains
    /// a line break.
    #[inline(never)]
    fn skip_block_comment(&mut self, start: usize) -> Result<bool, Box<Fault>> {
        let bytes = self.source.as_bytes();
        let mut depth = 0_usize;
        let mut at = start;
        let mut broken = false;
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

    /// Returns the end of the quoted character that starts at `start`, such as `'#'`. Returns
    /// `None` if there is no valid quoted character.
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

    /// Reads the string that starts at `start`. Escapes are not decoded here. A raw string starts
    /// with `r` and contains no escapes.
    #[inline(never)]
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
                    if raw && let Some(fault) = bad_tokens::raw_quote(self.source, start, self.at) {
                        return Err(fault);
                    }
                    if broken && self.first_long.is_none() {
                        self.first_long = Some(clamp(start));
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

    /// Reads a curly bracket of an object. Skips a whitespace character that is not ASCII, and a
    /// comma in brackets. Returns a fault for any other character.
    #[cold]
    fn unusual(&mut self, start: usize) -> Result<Option<TokenKind>, Box<Fault>> {
        let Some(c) = self.rest(start).chars().next() else { return Ok(None) };
        let end = start + c.len_utf8();
        let token = match c {
            '{' if self.begins_object(end) => {
                self.curly += 1;
                Some(TokenKind::Open)
            }
            '}' if self.curly > 0 => {
                self.curly -= 1;
                Some(TokenKind::Close)
            }
            ',' if self.square > 0 || self.curly > 0 => None,
            '\u{feff}' | '\u{200b}' => None,
            c if c.is_whitespace() => None,
            _ => return self.bad_character(start, c),
        };
        self.at = end;
        Ok(token)
    }

    /// Returns true if the text after a `{` is that of an object: a `}`, a string, or a name with a
    /// colon.
    fn begins_object(&self, at: usize) -> bool {
        let rest = self.rest(at).trim_start();
        let name = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        rest.starts_with(['}', '"'])
            || name.len() < rest.len() && name.trim_start().starts_with(':')
    }

    fn bad_character<T>(&self, start: usize, c: char) -> Result<T, Box<Fault>> {
        let end = start + c.len_utf8();
        Err(Fault::new(start..end, bad_tokens::character(self.source, start, c)))
    }
}

/// The class of a token's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteClass {
    Blank,
    LineEnd,
    Open,
    Close,
    Quote,
    Semicolon,
    Name,
    /// A name byte that needs an additional check if it starts a token.
    Special,
    Other,
}

/// The class of each byte.
const CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Other; 256];
    let mut byte = 0;
    while byte < classes.len() {
        #[expect(clippy::indexing_slicing, reason = "the loop ends at the length of the array")]
        {
            classes[byte] = class_of(byte as u8);
        }
        byte += 1;
    }
    classes
};

/// The flag in [`NAME_FLAGS`] for a byte that can be part of a name.
const NAME: u8 = 1;

/// The flag in [`NAME_FLAGS`] for `.`.
const DOT: u8 = 2;

/// The flag in [`NAME_FLAGS`] for `` ` ``, which begins a code fence.
const BACKTICK: u8 = 4;

/// The flags of each byte. A byte that cannot be part of a name has no flags.
const NAME_FLAGS: [u8; 256] = {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < all.len() {
        let flags = match byte as u8 {
            b'.' => NAME | DOT,
            b'`' => NAME | BACKTICK,
            byte if matches!(class_of(byte), ByteClass::Name | ByteClass::Special) => NAME,
            _ => 0,
        };
        #[expect(clippy::indexing_slicing, reason = "the loop ends at the length of the array")]
        {
            all[byte] = flags;
        }
        byte += 1;
    }
    all
};

fn name_flags(byte: u8) -> u8 {
    NAME_FLAGS.get(usize::from(byte)).copied().unwrap_or(0)
}

fn class(byte: u8) -> ByteClass {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(ByteClass::Other)
}

const fn class_of(byte: u8) -> ByteClass {
    match byte {
        b' ' | b'\t' | b'\r' | 0x0c => ByteClass::Blank,
        b'\n' => ByteClass::LineEnd,
        b'(' | b'[' => ByteClass::Open,
        b')' | b']' => ByteClass::Close,
        b'"' => ByteClass::Quote,
        b';' => ByteClass::Semicolon,
        b'\'' | b'`' | b'/' | b'#' | b'-' | b'@' | b'r' | b':' => ByteClass::Special,
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => ByteClass::Name,
        b'!' | b'$' | b'%' | b'&' | b'*' | b'+' | b'.' | b'<' | b'=' | b'>' | b'?' => {
            ByteClass::Name
        }
        b'\\' | b'^' | b'_' | b'|' | b'~' => ByteClass::Name,
        _ => ByteClass::Other,
    }
}

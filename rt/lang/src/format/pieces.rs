//! The formatter's view of a program: its tree and its comments.

use crate::lex::{Lexer, TokenKind};
use crate::messages::Fault;

/// A list, word or comment, with its position relative to line breaks.
#[derive(Debug)]
pub(super) struct Piece<'s> {
    pub(super) shape: Shape<'s>,
    /// If true, the piece is the first of its line.
    pub(super) starts_line: bool,
    /// If true, the piece follows a blank line.
    pub(super) after_blank_line: bool,
}

/// The content of a piece.
#[derive(Debug)]
pub(super) enum Shape<'s> {
    List(Vec<Piece<'s>>),
    Atom(&'s str),
    /// `"text"` or `"""text"""`, unchanged.
    Text(&'s str),
    /// `;; to the end of the line`.
    Line(&'s str),
    /// `(; within a line or over several ;)`.
    Block(&'s str),
}

impl<'s> Piece<'s> {
    pub(super) fn atom(&self) -> Option<&'s str> {
        match self.shape {
            Shape::Atom(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the first atom of a list.
    pub(super) fn head(&self) -> Option<&'s str> {
        match &self.shape {
            Shape::List(pieces) => pieces.first().and_then(Piece::atom),
            _ => None,
        }
    }

    pub(super) fn is_comment(&self) -> bool {
        matches!(self.shape, Shape::Line(_) | Shape::Block(_))
    }

    pub(super) fn is_line(&self) -> bool {
        matches!(self.shape, Shape::Line(_))
    }
}

/// Parses a text whose parentheses match.
pub(super) fn read(source: &str) -> Result<Vec<Piece<'_>>, Box<Fault>> {
    let mut reader = Reader { open: Vec::new(), pieces: Vec::new(), breaks: 1 };
    let (mut lexer, mut at) = (Lexer::new(source), 0);
    while let Some(token) = lexer.next()? {
        let (start, end) = (token.start as usize, token.end as usize);
        reader.gap(source.get(at..start).unwrap_or(""));
        let text = source.get(start..end).unwrap_or("");
        match token.kind {
            TokenKind::Open => reader.open(),
            TokenKind::Close => reader.close(),
            TokenKind::Atom => reader.push(Shape::Atom(text)),
            TokenKind::Text | TokenKind::Block => reader.push(Shape::Text(text)),
        }
        at = end;
    }
    reader.gap(source.get(at..).unwrap_or(""));
    Ok(reader.pieces)
}

struct Reader<'s> {
    /// The enclosing lists: the pieces of each before the inner list, and the line breaks before
    /// that inner list.
    open: Vec<(Vec<Piece<'s>>, bool, bool)>,
    pieces: Vec<Piece<'s>>,
    /// The number of line breaks since the last piece or parenthesis.
    breaks: usize,
}

impl<'s> Reader<'s> {
    fn push(&mut self, shape: Shape<'s>) {
        let (starts_line, after_blank_line) =
            (self.breaks > 0, self.breaks > 1 && !self.pieces.is_empty());
        self.pieces.push(Piece { shape, starts_line, after_blank_line });
        self.breaks = 0;
    }

    fn open(&mut self) {
        let (starts_line, after_blank_line) =
            (self.breaks > 0, self.breaks > 1 && !self.pieces.is_empty());
        self.open.push((std::mem::take(&mut self.pieces), starts_line, after_blank_line));
        self.breaks = 0;
    }

    fn close(&mut self) {
        if let Some((outer, starts_line, after_blank_line)) = self.open.pop() {
            let list = std::mem::replace(&mut self.pieces, outer);
            self.pieces.push(Piece { shape: Shape::List(list), starts_line, after_blank_line });
        }
        self.breaks = 0;
    }

    /// Reads the text between two tokens: whitespace, comments and code fences.
    fn gap(&mut self, gap: &'s str) {
        let mut rest = gap;
        while let Some(c) = rest.chars().next() {
            let length = if rest.starts_with(";;") {
                let length = rest.find('\n').unwrap_or(rest.len());
                self.push(Shape::Line(rest.get(..length).unwrap_or("").trim_end()));
                length
            } else if rest.starts_with("(;") {
                let length = block_comment(rest);
                self.push(Shape::Block(rest.get(..length).unwrap_or("")));
                length
            } else if rest.starts_with("```") {
                3 + rest.bytes().skip(3).take_while(u8::is_ascii_alphanumeric).count()
            } else {
                self.breaks += usize::from(c == '\n');
                c.len_utf8()
            };
            rest = rest.get(length..).unwrap_or("");
        }
    }
}

/// Returns the length of the block comment at the start of a text. Block comments nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("(;") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(";)") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

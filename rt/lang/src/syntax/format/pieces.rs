//! The formatter's view of a program: its tree and its comments.

use crate::diagnose::wording::Fault;
use crate::syntax::lex::{Lexer, TokenKind};
use crate::types::instruction;

/// A list, word or comment, with flags for the line breaks before it.
#[derive(Debug)]
pub(crate) struct Piece<'s> {
    pub(crate) shape: Shape<'s>,
    /// If true, the list, word or comment is the first on its line.
    pub(crate) starts_line: bool,
    /// If true, the list, word or comment follows a blank line.
    pub(crate) after_blank_line: bool,
}

/// The content of a [`Piece`].
#[derive(Debug)]
pub(crate) enum Shape<'s> {
    /// A list. If the flag is true, it is in square brackets.
    List(Vec<Piece<'s>>, bool),
    Atom(&'s str),
    /// A string, `"text"` or `"""text"""`, as written in the source.
    Text(&'s str),
    /// A line comment, such as `;; text`.
    Line(&'s str),
    /// A block comment, `(; text ;)`, which may span several lines.
    Block(&'s str),
}

impl<'s> Piece<'s> {
    pub(crate) fn atom(&self) -> Option<&'s str> {
        match self.shape {
            Shape::Atom(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the head of a list. Returns `None` for a word or comment, or if the list does not
    /// start with an atom.
    pub(crate) fn head(&self) -> Option<&'s str> {
        match &self.shape {
            Shape::List(pieces, _) => pieces.first().and_then(Piece::atom),
            _ => None,
        }
    }

    pub(crate) fn is_comment(&self) -> bool {
        matches!(self.shape, Shape::Line(_) | Shape::Block(_))
    }

    pub(crate) fn is_line(&self) -> bool {
        matches!(self.shape, Shape::Line(_))
    }
}

/// Parses a source whose parentheses match.
pub(crate) fn read(source: &str) -> Result<Vec<Piece<'_>>, Box<Fault>> {
    let mut reader = Reader { open: Vec::new(), pieces: Vec::new(), breaks: 1 };
    let (mut lexer, mut at) = (Lexer::new(source), 0);
    while let Some(token) = lexer.next()? {
        let (start, end) = (token.start as usize, token.end as usize);
        reader.gap(source.get(at..start).unwrap_or(""));
        let text = source.get(start..end).unwrap_or("");
        match token.kind {
            TokenKind::Open => reader.open(text == "["),
            TokenKind::Close => reader.close(),
            TokenKind::Atom => reader.push(Shape::Atom(text)),
            TokenKind::Text | TokenKind::Block => reader.push(Shape::Text(text)),
        }
        at = end;
    }
    reader.gap(source.get(at..).unwrap_or(""));
    remove_marks(&mut reader.pieces);
    Ok(reader.pieces)
}

/// A list whose end has not been read yet.
struct Open<'s> {
    /// The lists, words and comments that precede this list in the enclosing list.
    before: Vec<Piece<'s>>,
    square: bool,
    starts_line: bool,
    after_blank_line: bool,
}

/// Removes the marks `?` and `!` after the names of functions and forms. A call keeps its mark if
/// WAT instructions may take its results from the stack.
fn remove_marks(pieces: &mut [Piece<'_>]) {
    for piece in pieces.iter_mut().rev() {
        if takes_from_stack(piece) {
            break;
        }
        let Shape::List(list, false) = &mut piece.shape else { continue };
        let Some(Piece { shape: Shape::Atom(head), .. }) = list.first_mut() else { continue };
        let Some(plain) = head.strip_suffix(['?', '!']).filter(|plain| !plain.is_empty()) else {
            continue;
        };
        if plain.contains('.') || plain.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            *head = plain;
        }
    }
}

/// Returns true if a list or word is a WAT instruction that may take values from the stack, because
/// it is flat or has too few operands.
fn takes_from_stack(piece: &Piece<'_>) -> bool {
    let Shape::List(items, _) = &piece.shape else {
        return piece.atom().is_some_and(instruction::takes_operands);
    };
    let Some(head) = piece.head() else { return false };
    let given = items.iter().skip(1).filter(|item| !item.is_comment());
    match head {
        "call" | "call_indirect" => true,
        "if" => given.take(1).any(|first| first.head() == Some("then")),
        _ => {
            let is_special = head.starts_with("local.")
                || head.starts_with("global.")
                || matches!(head, "br_if" | "br_table");
            let wanted =
                instruction::op(head).map_or(1, |op| op.pops.len()) + usize::from(is_special);
            instruction::takes_operands(head) && given.count() < wanted
        }
    }
}

struct Reader<'s> {
    /// The lists that are still open, outermost first.
    open: Vec<Open<'s>>,
    pieces: Vec<Piece<'s>>,
    /// The number of line breaks since the last word, comment or parenthesis.
    breaks: usize,
}

impl<'s> Reader<'s> {
    fn push(&mut self, shape: Shape<'s>) {
        let (starts_line, after_blank_line) =
            (self.breaks > 0, self.breaks > 1 && !self.pieces.is_empty());
        self.pieces.push(Piece { shape, starts_line, after_blank_line });
        self.breaks = 0;
    }

    fn open(&mut self, square: bool) {
        let (starts_line, after_blank_line) =
            (self.breaks > 0, self.breaks > 1 && !self.pieces.is_empty());
        let before = std::mem::take(&mut self.pieces);
        self.open.push(Open { before, square, starts_line, after_blank_line });
        self.breaks = 0;
    }

    fn close(&mut self) {
        if let Some(Open { before, square, starts_line, after_blank_line }) = self.open.pop() {
            let mut list = std::mem::replace(&mut self.pieces, before);
            remove_marks(&mut list);
            let shape = Shape::List(list, square);
            self.pieces.push(Piece { shape, starts_line, after_blank_line });
        }
        self.breaks = 0;
    }

    /// Reads the gap between two tokens: whitespace, comments and code fences.
    fn gap(&mut self, gap: &'s str) {
        let mut rest = gap;
        while let Some(c) = rest.chars().next() {
            let length = if rest.starts_with(';') {
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

/// Returns the length, in bytes, of the block comment at the start of a string. Block comments
/// nest.
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

//! The formatter.
//!
//! The formatter keeps the author's line breaks. Indentation, spaces and closing parentheses are
//! determined by the nesting, and a list that does not fit on its line is broken. Every decision
//! depends only on features of the source that are preserved in the output, so formatting is
//! idempotent.

use std::ops::Range;

use crate::diagnose::wording::{self, Fault};
use crate::syntax::indent;
use crate::syntax::tree::{NodeKind, Nodes, Tree};
use crate::types::instruction;
use crate::{Diagnostic, Severity};

/// Maximum width of a line that can be broken, in columns.
const WIDTH: usize = 100;

/// Indentation step, in columns.
const STEP: usize = 2;

/// Formats a program: indents it by nesting, leaves one space between words and at most one blank
/// line between lines, and breaks lines over 100 columns if possible.
///
/// Formatting does not change the module that the program compiles to. Comments, string literals
/// and the line breaks between forms are kept. Code fences are removed.
///
/// ```
/// let source = "(if (local.get $found)\n(then\n  (resv $line)))   ;; the first\n";
/// let text = wattle_lang::format(source)?;
/// assert_eq!(text, "(if (local.get $found)\n  (then\n    (resv $line))) ;; the first\n");
/// # Ok::<(), Box<wattle_lang::Diagnostic>>(())
/// ```
///
/// # Errors
/// If the source cannot be parsed, returns the diagnostic that [`assemble`](crate::assemble)
/// returns. Also fails if a list is not closed, or is closed before lines that are indented like
/// its body. The meaning of the program is not checked.
pub fn format(source: &str) -> Result<String, Box<Diagnostic>> {
    let tree = Tree::read(source).and_then(|tree| closed(&tree).map(|()| tree));
    let tree = tree.map_err(|fault| Box::new(fault.into_diagnostic(source, Severity::Error)))?;
    let pieces = read_pieces(&tree, tree.top(), 0..source.len(), 1);
    let mut layout = Layout { out: String::with_capacity(source.len()), column: 0 };
    layout.pieces(&pieces, &Frame { base: 0, lead: 0, broken: false, tail: 0 });
    if !layout.out.is_empty() {
        layout.out.push('\n');
    }
    Ok(layout.out)
}

/// Rejects a program if a list is not closed, or is closed too early. The formatter cannot tell
/// where the list should end.
fn closed(tree: &Tree<'_>) -> Result<(), Box<Fault>> {
    let Some(list) = tree.open.last() else {
        // A new layout would hide the fact that a form is closed too early.
        return indent::closed_early(tree).map(drop);
    };
    let start = tree.span(*list).start;
    Err(Fault::new(start..start + 1, wording::unclosed_form(tree.head(*list).unwrap_or(""), None)))
}

/// The layout of the pieces (lists, words and comments) in a list or in the whole program.
struct Frame {
    /// The column of each list, word or comment that starts a line.
    base: usize,
    /// The number of lists, words and comments that stay on the first line.
    lead: usize,
    /// If true, each remaining list, word or comment gets its own line.
    broken: bool,
    /// The number of closing parentheses after the last list, word or comment.
    tail: usize,
}

struct Layout {
    out: String,
    /// The length of the current line, in characters.
    column: usize,
}

impl Layout {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column = end_of(text, self.column);
    }

    fn line(&mut self, after_blank_line: bool, column: usize) {
        self.out.push_str(if after_blank_line { "\n\n" } else { "\n" });
        self.out.extend(std::iter::repeat_n(' ', column));
        self.column = column;
    }

    /// Writes lists, words and comments in order, each on the current line or on the next one.
    fn pieces(&mut self, pieces: &[Piece<'_>], frame: &Frame) {
        // The nesting depth of flat `block … end` instructions.
        let mut depth = 0_usize;
        // If true, the previous piece was a comment or a list that spans several lines, so nothing
        // may follow it on its line.
        let mut ended = false;
        for (at, piece) in pieces.iter().enumerate() {
            let word = piece.atom().filter(|_| at > 0 || frame.lead == 0);
            let inner = depth;
            match word {
                Some("block" | "loop" | "if" | "try_table") => depth += 1,
                Some("end") => depth = depth.saturating_sub(1),
                _ => {}
            }
            let out = usize::from(matches!(word, Some("end" | "else")));
            let column = frame.base + STEP * inner.saturating_sub(out);
            let tail = if at + 1 == pieces.len() { frame.tail } else { 0 };
            let first = at == 0;
            let breaks = if first {
                // `(` directly followed by a comment would be read as `(;`.
                frame.lead > 0 && piece.is_comment()
            } else {
                piece.starts_line
                    || (!piece.is_comment()
                        && (ended || self.breaks(piece, at, column, tail, frame)))
            };
            if breaks {
                self.line(piece.after_blank_line && at > frame.lead, column);
            } else if !first {
                self.put(" ");
            }
            ended = self.piece(piece, tail);
        }
    }

    /// Returns true if a list, word or comment that is on the current line in the source must move
    /// to the next line.
    fn breaks(
        &self,
        piece: &Piece<'_>,
        at: usize,
        column: usize,
        tail: usize,
        frame: &Frame,
    ) -> bool {
        let fits = |column: usize| flat(piece, column).is_some_and(|end| end + tail <= WIDTH);
        let is_list = matches!(piece.shape, Shape::List(..));
        if at < frame.lead {
            return !is_list && !fits(self.column + 1);
        }
        if at == frame.lead && !is_list && !fits(column) {
            // The piece does not fit on the next line either.
            return false;
        }
        frame.broken || !fits(self.column + 1)
    }

    /// Writes a list, word or comment. Returns true if nothing may follow it on its last line.
    fn piece(&mut self, piece: &Piece<'_>, tail: usize) -> bool {
        match &piece.shape {
            Shape::Word(_, text) => self.put(text),
            Shape::List(pieces, brackets)
                if flat(piece, self.column).is_some_and(|end| end + tail <= WIDTH) =>
            {
                self.flat(pieces, *brackets)
            }
            Shape::List(pieces, brackets) => {
                let open = self.column;
                self.put(brackets.0);
                let indent =
                    if pieces.first().is_some_and(|first| matches!(first.shape, Shape::List(..))) {
                        1
                    } else {
                        STEP
                    };
                let broken = !pieces.iter().skip(1).any(|piece| piece.starts_line);
                self.pieces(
                    pieces,
                    &Frame { base: open + indent, lead: lead(pieces), broken, tail: tail + 1 },
                );
                if pieces.last().is_some_and(Piece::is_line) {
                    self.line(false, open);
                }
                self.put(brackets.1);
                return true;
            }
        }
        piece.is_line()
    }

    /// Writes a list on one line.
    fn flat(&mut self, pieces: &[Piece<'_>], brackets: Brackets) {
        self.put(brackets.0);
        for (at, piece) in pieces.iter().enumerate() {
            if at > 0 {
                self.put(" ");
            }
            match &piece.shape {
                Shape::List(pieces, brackets) => self.flat(pieces, *brackets),
                Shape::Word(_, text) => self.put(text),
            }
        }
        self.put(brackets.1);
    }
}

/// The opening and the closing bracket of a list.
type Brackets = (&'static str, &'static str);

/// Returns the brackets of a list with this text.
fn brackets(text: &str) -> Brackets {
    match text.bytes().next() {
        Some(b'[') => ("[", "]"),
        Some(b'{') => ("{", "}"),
        _ => ("(", ")"),
    }
}

/// Returns the column at which a list, word or comment ends if it starts at `column` and is written
/// without line breaks outside its strings. Returns `None` if it must be broken or is too wide.
fn flat(piece: &Piece<'_>, column: usize) -> Option<usize> {
    let end = match &piece.shape {
        Shape::Word(Word::Line, _) => return None,
        Shape::Word(_, text) => {
            let first = text.split('\n').next().unwrap_or("");
            if end_of(first, column) > WIDTH {
                return None;
            }
            end_of(text, column)
        }
        Shape::List(pieces, _) => {
            let mut column = column + 1;
            for (at, piece) in pieces.iter().enumerate() {
                if (at > 0 && piece.starts_line) || (at == 0 && piece.is_comment()) {
                    return None;
                }
                column = flat(piece, column + usize::from(at > 0))?;
            }
            column + 1
        }
    };
    (end <= WIDTH).then_some(end)
}

/// Returns the column at which a string ends if it starts at `column`.
fn end_of(text: &str, column: usize) -> usize {
    match text.rfind('\n') {
        Some(at) => text.get(at + 1..).unwrap_or("").chars().count(),
        None => column + text.chars().count(),
    }
}

/// Returns the number of children that always stay on the first line of a list: the head, such as
/// `func`, and the words or operands that belong to it, such as a name and a type.
fn lead(pieces: &[Piece<'_>]) -> usize {
    let Some(head) = pieces.first().and_then(Piece::atom) else { return 1 };
    let behind = |from: usize, stays: &dyn Fn(&Piece<'_>) -> bool| {
        from + pieces.iter().skip(from).take_while(|piece| stays(piece)).count()
    };
    let is_word = |piece: &Piece<'_>| piece.atom().is_some();
    let is_header = |piece: &Piece<'_>| {
        is_word(piece)
            || matches!(piece.head(), Some("param" | "result" | "type" | "export" | "import"))
    };
    let lead = match head {
        "func" | "block" | "loop" => behind(1, &is_header),
        "if" => behind(1, &is_header) + 1,
        "when" | "unless" | "while" => 2,
        "each" | "catch" => 3,
        "for" => 4,
        _ => behind(1, &is_word),
    };
    lead.min(pieces.len())
}

/// A list, word or comment, with flags for the line breaks before it.
#[derive(Debug)]
struct Piece<'s> {
    shape: Shape<'s>,
    /// If true, the list, word or comment is the first on its line.
    starts_line: bool,
    /// If true, the list, word or comment follows a blank line.
    after_blank_line: bool,
}

/// The content of a [`Piece`].
#[derive(Debug)]
enum Shape<'s> {
    /// A list and its brackets.
    List(Vec<Piece<'s>>, Brackets),
    Word(Word, &'s str),
}

/// The kind of a piece that is not a list. Its text is as written in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Atom,
    /// A string, `"text"` or `"""text"""`.
    Text,
    /// A line comment, such as `;; text`.
    Line,
    /// A block comment, `(; text ;)`, which may span several lines.
    Block,
}

impl<'s> Piece<'s> {
    fn atom(&self) -> Option<&'s str> {
        match self.shape {
            Shape::Word(Word::Atom, text) => Some(text),
            _ => None,
        }
    }

    /// Returns the head of a list. Returns `None` for a word or comment, or if the list does not
    /// start with an atom.
    fn head(&self) -> Option<&'s str> {
        match &self.shape {
            Shape::List(pieces, _) => pieces.first().and_then(Piece::atom),
            _ => None,
        }
    }

    fn is_comment(&self) -> bool {
        matches!(self.shape, Shape::Word(Word::Line | Word::Block, _))
    }

    fn is_line(&self) -> bool {
        matches!(self.shape, Shape::Word(Word::Line, _))
    }
}

/// Reads siblings and the comments around them, which are in this range of the source. `breaks` is
/// the number of line breaks directly before the range.
fn read_pieces<'s>(
    tree: &Tree<'s>,
    nodes: Nodes,
    range: Range<usize>,
    breaks: usize,
) -> Vec<Piece<'s>> {
    let mut reader = Reader { pieces: Vec::new(), breaks };
    let gap = |range: Range<usize>| tree.source.get(range).unwrap_or("");
    let mut at = range.start;
    for node in nodes.iter(tree) {
        let span = tree.span(node);
        let text = tree.text(node);
        reader.gap(gap(at..span.start));
        at = span.end;
        reader.push(match tree.node(node).kind {
            NodeKind::Atom => Shape::Word(Word::Atom, text),
            NodeKind::Text | NodeKind::Block => Shape::Word(Word::Text, text),
            NodeKind::List => {
                let inner = span.start + 1..span.end - 1;
                let pieces = read_pieces(tree, tree.children(node), inner, 0);
                Shape::List(pieces, brackets(text))
            }
        });
    }
    reader.gap(gap(at..range.end));
    remove_marks(&mut reader.pieces);
    reader.pieces
}

/// Removes the marks `?` and `!` after the names of functions and forms. A call keeps its mark if
/// WAT instructions may take its results from the stack.
fn remove_marks(pieces: &mut [Piece<'_>]) {
    for piece in pieces.iter_mut().rev() {
        if takes_from_stack(piece) {
            break;
        }
        let Shape::List(list, ("(", _)) = &mut piece.shape else { continue };
        let Some(Piece { shape: Shape::Word(Word::Atom, head), .. }) = list.first_mut() else {
            continue;
        };
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
    pieces: Vec<Piece<'s>>,
    /// The number of line breaks since the last word, comment or parenthesis.
    breaks: usize,
}

impl<'s> Reader<'s> {
    fn push(&mut self, shape: Shape<'s>) {
        let starts_line = self.breaks > 0;
        let after_blank_line = self.breaks > 1 && !self.pieces.is_empty();
        self.pieces.push(Piece { shape, starts_line, after_blank_line });
        self.breaks = 0;
    }

    /// Reads the gap between two tokens: whitespace, comments and code fences.
    fn gap(&mut self, gap: &'s str) {
        let mut rest = gap;
        while let Some(c) = rest.chars().next() {
            let length = if rest.starts_with(';') {
                let length = rest.find('\n').unwrap_or(rest.len());
                self.push(Shape::Word(Word::Line, rest.get(..length).unwrap_or("").trim_end()));
                length
            } else if rest.starts_with("(;") {
                let length = block_comment(rest);
                self.push(Shape::Word(Word::Block, rest.get(..length).unwrap_or("")));
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
    let mut depth = 0_usize;
    let mut at = 0;
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

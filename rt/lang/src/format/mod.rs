//! The formatter: a text in its standard layout.
//!
//! The author's line breaks stay, and with them what belongs together; indentation, blanks and closing parentheses follow
//! from the nesting. A list that does not fit its line is broken. Every decision is made from what the output keeps, so that
//! what was formatted once stays as it is.

mod pieces;

use self::pieces::{Piece, Shape};
use crate::messages::{self, Fault};
use crate::tree::Tree;
use crate::{Diagnostic, Severity};

/// Columns that a line has at the most, where it can be broken at all.
const WIDTH: usize = 100;

/// Columns by which what is inside stands further right.
const STEP: usize = 2;

/// Puts a program's text in its standard layout: indentation by nesting, one blank between words, at most one blank line,
/// no line above 100 columns that can be broken.
///
/// The layout says nothing about what a text means: both give the same module. Comments, string literals and blocks of text
/// stay as they are, and so do line breaks between forms; code fences go.
///
/// ```
/// let text = wattle_lang::format("(if (local.get $found)\n(then\n  (resv $line)))   ;; the first\n")?;
/// assert_eq!(text, "(if (local.get $found)\n  (then\n    (resv $line))) ;; the first\n");
/// # Ok::<(), Box<wattle_lang::Diagnostic>>(())
/// ```
///
/// # Errors
/// Where the text cannot be read: what [`assemble`](crate::assemble) says of its characters, quotes and parentheses, and
/// where it leaves a parenthesis open. What a text means is not looked at.
pub fn format(source: &str) -> Result<String, Box<Diagnostic>> {
    let pieces = Tree::read(source).and_then(|tree| closed(&tree)).and_then(|()| pieces::read(source));
    let pieces = pieces.map_err(|fault| Box::new(fault.into_diagnostic(source, Severity::Error)))?;
    let mut layout = Layout { out: String::with_capacity(source.len()), column: 0 };
    layout.pieces(&pieces, &Frame { base: 0, lead: 0, broken: false, tail: 0 });
    if !layout.out.is_empty() {
        layout.out.push('\n');
    }
    Ok(layout.out)
}

/// Refuses a text that leaves lists open. Where they end follows from what it means, if from anything.
fn closed(tree: &Tree<'_>) -> Result<(), Box<Fault>> {
    let Some(list) = tree.open.last() else { return Ok(()) };
    let start = tree.span(*list).start;
    Err(Fault::new(start..start + 1, messages::unclosed_form(tree.head(*list).unwrap_or(""), None)))
}

/// How the pieces of a list, or of the whole text, stand.
struct Frame {
    /// The column of pieces on lines of their own.
    base: usize,
    /// How many pieces stay on the first line.
    lead: usize,
    /// Whether all further pieces get lines of their own.
    broken: bool,
    /// How many parentheses close behind the last piece.
    tail: usize,
}

struct Layout {
    out: String,
    /// How many characters the last line has.
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

    /// Writes pieces one after the other, each on the line or on the next one.
    fn pieces(&mut self, pieces: &[Piece<'_>], frame: &Frame) {
        // How deep flat `block … end` are nested.
        let mut depth = 0_usize;
        // Whether the piece before ended a line: a comment does, and a list over several lines.
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
            let breaks = match first {
                // A comment behind a parenthesis would be taken for one that begins with it.
                true => frame.lead > 0 && piece.is_comment(),
                false => {
                    piece.starts_line || (!piece.is_comment() && (ended || self.breaks(piece, at, column, tail, frame)))
                }
            };
            if breaks {
                self.line(piece.after_blank_line && at > frame.lead, column);
            } else if !first {
                self.put(" ");
            }
            ended = self.piece(piece, tail);
        }
    }

    /// Whether a piece that the author left on the line goes to the next one.
    fn breaks(&self, piece: &Piece<'_>, at: usize, column: usize, tail: usize, frame: &Frame) -> bool {
        let fits = |column: usize| flat(piece, column).is_some_and(|end| end + tail <= WIDTH);
        let is_list = matches!(piece.shape, Shape::List(_));
        if at < frame.lead {
            return !is_list && !fits(self.column + 1);
        }
        if at == frame.lead && !is_list && !fits(column) {
            // It is no shorter there.
            return false;
        }
        frame.broken || !fits(self.column + 1)
    }

    /// Writes a piece; says whether nothing may stand behind it on its last line.
    fn piece(&mut self, piece: &Piece<'_>, tail: usize) -> bool {
        match &piece.shape {
            Shape::Atom(text) | Shape::Text(text) | Shape::Block(text) => self.put(text),
            Shape::Line(text) => self.put(text),
            Shape::List(pieces) if flat(piece, self.column).is_some_and(|end| end + tail <= WIDTH) => self.flat(pieces),
            Shape::List(pieces) => {
                let open = self.column;
                self.put("(");
                let indent =
                    if pieces.first().is_some_and(|first| matches!(first.shape, Shape::List(_))) { 1 } else { STEP };
                let broken = !pieces.iter().skip(1).any(|piece| piece.starts_line);
                self.pieces(pieces, &Frame { base: open + indent, lead: lead(pieces), broken, tail: tail + 1 });
                if pieces.last().is_some_and(Piece::is_line) {
                    self.line(false, open);
                }
                self.put(")");
                return true;
            }
        }
        piece.is_line()
    }

    /// Writes a list in one line.
    fn flat(&mut self, pieces: &[Piece<'_>]) {
        self.put("(");
        for (at, piece) in pieces.iter().enumerate() {
            if at > 0 {
                self.put(" ");
            }
            match &piece.shape {
                Shape::List(pieces) => self.flat(pieces),
                Shape::Atom(text) | Shape::Text(text) | Shape::Block(text) | Shape::Line(text) => self.put(text),
            }
        }
        self.put(")");
    }
}

/// The column behind a piece that begins at that one and has no line break but those within its texts; `None` where it must be
/// broken, or is too wide.
fn flat(piece: &Piece<'_>, column: usize) -> Option<usize> {
    let end = match &piece.shape {
        Shape::Line(_) => return None,
        Shape::Atom(text) | Shape::Text(text) | Shape::Block(text) => {
            let first = text.split('\n').next().unwrap_or("");
            if end_of(first, column) > WIDTH {
                return None;
            }
            end_of(text, column)
        }
        Shape::List(pieces) => {
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

/// The column behind a text that begins at that one.
fn end_of(text: &str, column: usize) -> usize {
    match text.rfind('\n') {
        Some(at) => text.get(at + 1..).unwrap_or("").chars().count(),
        None => column + text.chars().count(),
    }
}

/// How many pieces of a list stay on its first line, whatever they are: its head, what a form is about, and the words behind them.
fn lead(pieces: &[Piece<'_>]) -> usize {
    let Some(head) = pieces.first().and_then(Piece::atom) else { return 1 };
    let behind = |from: usize, stays: &dyn Fn(&Piece<'_>) -> bool| {
        from + pieces.iter().skip(from).take_while(|piece| stays(piece)).count()
    };
    let is_word = |piece: &Piece<'_>| piece.atom().is_some();
    let is_header = |piece: &Piece<'_>| {
        is_word(piece) || matches!(piece.head(), Some("param" | "result" | "type" | "export" | "import"))
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

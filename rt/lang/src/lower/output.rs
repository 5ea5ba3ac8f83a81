//! The WAT that a program is lowered to: a tree of pieces, each with its source, and its text.

use std::borrow::Cow;

use super::data::StaticData;
use super::range::Range;
use crate::diagnose::diagnostic::clamp;
use crate::diagnose::wording::{self, Fault};
use crate::syntax::tree::{NodeId, Tree};

/// Maximum nesting of the text. Expansions nest deeper than the forms themselves.
const MAX_DEPTH: usize = 640;

/// Maximum length of the text, in bytes. A program of the maximum length fits even if each of its
/// bytes is printed as a three-byte escape, and leaves a quarter of the length free.
const MAX_TEXT: usize = 4 << 20;

/// Maximum number of indentation steps, so that deep nesting does not make lines long.
const MAX_INDENT: usize = 32;

/// A piece of WAT.
#[derive(Debug)]
pub(crate) struct Wat<'s> {
    /// The source of the piece.
    from: NodeId,
    /// If true, the piece begins a line.
    line: bool,
    /// The bounds of the integer that the piece leaves, if they do not follow from the piece.
    pub(super) known: Option<Range>,
    pub(super) kind: Kind<'s>,
}

#[derive(Debug)]
pub(super) enum Kind<'s> {
    /// `(head items…)`. The head may contain immediates.
    List(Cow<'s, str>, Vec<Wat<'s>>),
    /// Words that are printed as they are.
    Words(Cow<'s, str>),
    /// `(i32.const ADDRESS)` of a literal.
    Literal(Cow<'s, [u8]>),
    /// The address of a literal.
    Address(Cow<'s, [u8]>),
    /// Pieces in a row. If true, each begins a line.
    Sequence(Vec<Wat<'s>>),
}

impl<'s> Wat<'s> {
    fn new(from: NodeId, kind: Kind<'s>) -> Wat<'s> {
        Wat { from, line: false, known: None, kind }
    }

    /// Creates `(head items…)`. The head may contain immediates, as in `local.set $x`.
    pub(crate) fn list(
        from: NodeId,
        head: impl Into<Cow<'s, str>>,
        items: impl Into<Vec<Wat<'s>>>,
    ) -> Wat<'s> {
        Wat::new(from, Kind::List(head.into(), items.into()))
    }

    /// Creates words that are printed as they are.
    pub(crate) fn words(from: NodeId, words: impl Into<Cow<'s, str>>) -> Wat<'s> {
        Wat::new(from, Kind::Words(words.into()))
    }

    /// Creates the pointer of a literal.
    pub(crate) fn literal(from: NodeId, value: impl Into<Cow<'s, [u8]>>) -> Wat<'s> {
        Wat::new(from, Kind::Literal(value.into()))
    }

    /// Creates the address of a literal, as the immediate of a flat `i32.const`.
    pub(crate) fn address(from: NodeId, value: impl Into<Cow<'s, [u8]>>) -> Wat<'s> {
        Wat::new(from, Kind::Address(value.into()))
    }

    /// Creates pieces in a row.
    pub(crate) fn sequence(from: NodeId, pieces: impl Into<Vec<Wat<'s>>>) -> Wat<'s> {
        Wat::new(from, Kind::Sequence(pieces.into()))
    }

    /// Creates a piece without text.
    pub(crate) fn nothing(from: NodeId) -> Wat<'s> {
        Wat::sequence(from, Vec::new())
    }

    /// Creates `(i32.const N)`.
    pub(crate) fn i32(from: NodeId, number: i64) -> Wat<'s> {
        Wat::list(from, format!("i32.const {number}"), [])
    }

    /// Sets the bounds of the integer that the piece leaves.
    pub(crate) fn within(self, known: Option<Range>) -> Wat<'s> {
        Wat { known, ..self }
    }

    /// Begins a line with the piece, if `line` is true.
    pub(crate) fn on_line(self, line: bool) -> Wat<'s> {
        Wat { line: self.line || line, ..self }
    }

    /// Returns true if the piece is a constant or reads a variable, so that it can be evaluated
    /// twice and in any order with other such pieces.
    pub(crate) fn is_simple(&self) -> bool {
        match &self.kind {
            Kind::List(head, items) => {
                items.is_empty() && (head.starts_with("local.get") || head.contains(".const "))
            }
            Kind::Literal(_) => true,
            _ => false,
        }
    }

    /// Returns the value of an integer constant.
    pub(crate) fn constant(&self) -> Option<i64> {
        match &self.kind {
            Kind::List(head, items) if items.is_empty() => {
                let (ty, digits) = head.split_once(".const ")?;
                matches!(ty, "i32" | "i64").then(|| crate::syntax::literal::integer(digits))?
            }
            _ => None,
        }
    }

    /// Changes the first item of a list.
    pub(crate) fn change_first(mut self, change: impl FnOnce(Wat<'s>) -> Wat<'s>) -> Wat<'s> {
        if let Kind::List(_, items) = &mut self.kind
            && let Some(first) = items.first_mut()
        {
            let item = std::mem::replace(first, Wat::nothing(first.from));
            *first = change(item);
        }
        self
    }

    /// Copies a [simple](Wat::is_simple) piece. Returns an empty piece for any other.
    pub(crate) fn copy(&self) -> Wat<'s> {
        let copy = match &self.kind {
            Kind::List(head, items) if items.is_empty() => Wat::list(self.from, head.clone(), []),
            Kind::Literal(value) => Wat::literal(self.from, value.clone()),
            _ => Wat::nothing(self.from),
        };
        copy.within(self.known)
    }
}

/// The text of WAT, with its literals and the source of each piece.
pub(crate) struct Printer<'a, 's> {
    tree: &'a Tree<'s>,
    pub(super) out: String,
    pub(super) data: StaticData<'s>,
    /// The source node of each piece of `out`, if requested.
    pub(super) marks: Option<Vec<(u32, NodeId)>>,
    depth: usize,
}

impl<'a, 's> Printer<'a, 's> {
    /// Creates a printer. If `marked` is true, it records the source of each piece.
    pub(super) fn new(tree: &'a Tree<'s>, marked: bool) -> Printer<'a, 's> {
        Printer {
            tree,
            out: String::with_capacity(tree.source.len() * 3),
            data: StaticData::default(),
            marks: marked.then(Vec::new),
            depth: 1,
        }
    }

    /// Prints a piece that begins a line.
    pub(super) fn line(&mut self, piece: Wat<'s>) -> Result<(), Box<Fault>> {
        self.print(piece.on_line(true))
    }

    /// Prints a piece.
    pub(super) fn print(&mut self, piece: Wat<'s>) -> Result<(), Box<Fault>> {
        let Wat { from, line, kind, .. } = piece;
        if self.out.len() > MAX_TEXT {
            let span = self.tree.span(from);
            return Err(Fault::new(span, wording::module_too_long(MAX_TEXT)));
        }
        match (line, &kind) {
            (true, _) => self.begin_line(),
            (false, Kind::Sequence(_)) => {}
            (false, _) => self.space(),
        }
        match kind {
            Kind::List(head, items) => {
                self.mark(from);
                self.out.push('(');
                self.out.push_str(&head);
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(Fault::new(self.tree.span(from), wording::too_deep(MAX_DEPTH)));
                }
                for item in items {
                    self.print(item)?;
                }
                self.depth -= 1;
                self.mark(from);
                self.out.push(')');
            }
            Kind::Words(words) => {
                self.mark(from);
                self.out.push_str(&words);
            }
            Kind::Literal(value) => {
                self.mark(from);
                let address = self.data.address(value);
                self.out.push_str(&format!("(i32.const {address})"));
            }
            Kind::Address(value) => {
                self.mark(from);
                let address = self.data.address(value);
                self.out.push_str(&address.to_string());
            }
            Kind::Sequence(items) => {
                for item in items {
                    self.print(item)?;
                }
            }
        }
        Ok(())
    }

    fn mark(&mut self, from: NodeId) {
        if let Some(marks) = &mut self.marks {
            marks.push((clamp(self.out.len()), from));
        }
    }

    /// Prints the opening of a function, whose pieces follow one level deeper.
    pub(super) fn open(&mut self, from: NodeId, head: &str) {
        self.begin_line();
        self.mark(from);
        self.out.push('(');
        self.out.push_str(head);
        self.depth += 1;
    }

    /// Prints the end of a function. Returns the position before it.
    pub(super) fn close(&mut self) -> usize {
        self.depth = self.depth.saturating_sub(1);
        let end = self.out.len();
        self.out.push_str(")\n");
        end
    }

    fn begin_line(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        for _ in 0..self.depth.min(MAX_INDENT) {
            self.out.push_str("  ");
        }
    }

    fn space(&mut self) {
        if !self.out.ends_with(['(', ' ', '\n']) {
            self.out.push(' ');
        }
    }
}

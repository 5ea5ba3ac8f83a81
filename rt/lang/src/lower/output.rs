//! The WAT that a program is lowered to: a tree of pieces, each with its source node, and the
//! printed text.

use std::borrow::Cow;
use std::fmt::Write;

use crate::diagnose::diagnostic::clamp;
use crate::diagnose::wording::{self, Fault};
use crate::lower::module::StaticData;
use crate::lower::range::Range;
use crate::syntax::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::types::Val;

/// Maximum nesting depth of the text. The code generated for a form is nested more deeply than the
/// form itself.
const MAX_DEPTH: usize = 640;

/// Maximum length of the text, in bytes. Even if each byte of a program of the maximum length is
/// printed as a three-byte escape, the escapes take up only three quarters of this length.
const MAX_TEXT: usize = 4 << 20;

/// Maximum number of indentation steps. The limit keeps deeply nested lines short.
const MAX_INDENT: usize = 32;

/// Spaces for the deepest indentation.
const INDENTATION: &str = match std::str::from_utf8(&[b' '; 2 * MAX_INDENT]) {
    Ok(spaces) => spaces,
    Err(_) => "",
};

/// A piece of WAT.
#[derive(Debug)]
pub(crate) struct Wat<'s> {
    /// The source node of this piece of WAT.
    from: NodeId,
    /// If true, this piece of WAT starts a new line.
    line: bool,
    /// The bounds of the integer that this piece of WAT leaves on the stack. `None` if they are
    /// unknown or can be derived from the piece itself.
    pub(super) known: Option<Box<Range>>,
    pub(super) kind: Kind<'s>,
}

#[derive(Debug)]
pub(super) enum Kind<'s> {
    /// `(head items…)`. The head may contain immediates.
    List(Cow<'s, str>, Vec<Wat<'s>>),
    /// `(words… items…)`, in which the words are printed unchanged from the source.
    Instruction(Nodes, Vec<Wat<'s>>),
    /// Text that is printed unchanged.
    Words(Cow<'s, str>),
    /// Source nodes that are printed unchanged: atoms and (possibly nested) lists.
    Source(Nodes),
    /// A list of the source, printed unchanged. The `from` field of the [`Wat`] is its node.
    Unchanged,
    /// `(i32.const ADDRESS)`, in which `ADDRESS` is the address of this string literal.
    Literal(Cow<'s, [u8]>),
    /// The address of this string literal, without an instruction.
    Address(Cow<'s, [u8]>),
    /// Several pieces of WAT, printed in order.
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

    /// Creates `(words… items…)`, in which the words are printed unchanged from the source.
    pub(crate) fn instruction(from: NodeId, words: Nodes, items: Vec<Wat<'s>>) -> Wat<'s> {
        Wat::new(from, Kind::Instruction(words, items))
    }

    /// Creates a piece of WAT from source nodes that are printed unchanged: atoms and (possibly
    /// nested) lists. A list starts a line if it does so in the source.
    pub(crate) fn source(from: NodeId, nodes: Nodes) -> Wat<'s> {
        Wat::new(from, Kind::Source(nodes))
    }

    /// Creates a piece of WAT from one list of the source, which is printed unchanged, as with
    /// [`source`](Wat::source).
    pub(crate) fn unchanged(list: NodeId) -> Wat<'s> {
        Wat::new(list, Kind::Unchanged)
    }

    /// Returns true if the piece of WAT is the given list, printed unchanged.
    pub(crate) fn is_unchanged(&self, list: NodeId) -> bool {
        self.from == list && matches!(self.kind, Kind::Unchanged)
    }

    /// Returns true if the piece of WAT consists of the given nodes, printed unchanged.
    pub(crate) fn is_source(&self, nodes: Nodes) -> bool {
        matches!(self.kind, Kind::Source(own) if own == nodes)
    }

    /// Creates a piece of WAT from text that is printed unchanged, such as a name.
    pub(crate) fn words(from: NodeId, words: impl Into<Cow<'s, str>>) -> Wat<'s> {
        Wat::new(from, Kind::Words(words.into()))
    }

    /// Creates `(i32.const ADDRESS)`, in which `ADDRESS` is the address of a string literal.
    pub(crate) fn literal(from: NodeId, value: impl Into<Cow<'s, [u8]>>) -> Wat<'s> {
        Wat::new(from, Kind::Literal(value.into()))
    }

    /// Creates the address of a string literal, as the immediate of a flat `i32.const`.
    pub(crate) fn address(from: NodeId, value: impl Into<Cow<'s, [u8]>>) -> Wat<'s> {
        Wat::new(from, Kind::Address(value.into()))
    }

    /// Combines several pieces of WAT into one, which prints them in order.
    pub(crate) fn sequence(from: NodeId, pieces: impl Into<Vec<Wat<'s>>>) -> Wat<'s> {
        Wat::new(from, Kind::Sequence(pieces.into()))
    }

    /// Creates an empty piece of WAT.
    pub(crate) fn nothing(from: NodeId) -> Wat<'s> {
        Wat::sequence(from, Vec::new())
    }

    /// Creates `(i32.const N)`.
    pub(crate) fn i32(from: NodeId, number: i64) -> Wat<'s> {
        Wat::list(from, format!("i32.const {number}"), [])
    }

    /// Creates a numeric instruction, such as `(i32.add items…)` for `add`.
    pub(crate) fn op(
        from: NodeId,
        val: Val,
        name: &str,
        items: impl Into<Vec<Wat<'s>>>,
    ) -> Wat<'s> {
        Wat::list(from, [val.name(), ".", name].concat(), items)
    }

    /// Creates a constant of a number type, such as `(i64.const N)`.
    pub(crate) fn number(from: NodeId, val: Val, number: i64) -> Wat<'s> {
        // The representation of a value of unknown type is an i32.
        let name = if val == Val::Any { "i32" } else { val.name() };
        Wat::list(from, format!("{name}.const {number}"), [])
    }

    /// Creates `(if test (then then) (else other))`. The head may contain a type, as in
    /// `if (result i32)`.
    pub(crate) fn choice(
        from: NodeId,
        head: impl Into<Cow<'s, str>>,
        test: Wat<'s>,
        then: Wat<'s>,
        other: Wat<'s>,
    ) -> Wat<'s> {
        let then = Wat::list(from, "then", [then]);
        Wat::list(from, head, [test, then, Wat::list(from, "else", [other])])
    }

    /// Creates `(if test (then then))`.
    pub(crate) fn when(from: NodeId, test: Wat<'s>, then: Wat<'s>) -> Wat<'s> {
        Wat::list(from, "if", [test, Wat::list(from, "then", [then])])
    }

    /// Creates a loop: `(block leave (loop again test-and-body… (br again)))`, which a branch to
    /// `leave` exits.
    pub(crate) fn repeated(
        from: NodeId,
        leave: &str,
        again: &str,
        mut inner: Vec<Wat<'s>>,
    ) -> Wat<'s> {
        inner.push(Wat::br(from, again));
        let whole = Wat::list(from, format!("loop {again}"), inner);
        Wat::list(from, format!("block {leave}"), [whole])
    }

    /// Creates `(br label)`.
    pub(crate) fn br(from: NodeId, label: &str) -> Wat<'s> {
        Wat::list(from, ["br ", label].concat(), [])
    }

    /// Creates `(br_if label test)`.
    pub(crate) fn br_if(from: NodeId, label: &str, test: Wat<'s>) -> Wat<'s> {
        Wat::list(from, ["br_if ", label].concat(), [test])
    }

    /// Sets the bounds of the integer that the piece of WAT leaves on the stack.
    pub(crate) fn within(self, known: Option<Range>) -> Wat<'s> {
        Wat { known: known.map(Box::new), ..self }
    }

    /// Makes the piece of WAT start on a new line if `line` is true.
    pub(crate) fn on_line(self, line: bool) -> Wat<'s> {
        Wat { line: self.line || line, ..self }
    }

    /// Returns true if the piece of WAT is a constant or reads a variable. Such code can be
    /// evaluated twice and in any order.
    pub(crate) fn is_simple(&self) -> bool {
        match &self.kind {
            Kind::List(head, items) => {
                items.is_empty() && (head.starts_with("local.get") || head.contains(".const "))
            }
            Kind::Literal(_) => true,
            _ => false,
        }
    }

    /// Returns the value of the piece of WAT if it is an integer constant, or `None` otherwise.
    pub(crate) fn constant(&self) -> Option<i64> {
        match &self.kind {
            Kind::List(head, items) if items.is_empty() => {
                let (ty, digits) = head.split_once(".const ")?;
                matches!(ty, "i32" | "i64").then(|| crate::syntax::literal::integer(digits))?
            }
            _ => None,
        }
    }

    /// Applies `change` to the first item of a list.
    pub(crate) fn change_first(mut self, change: impl FnOnce(Wat<'s>) -> Wat<'s>) -> Wat<'s> {
        if let Kind::List(_, items) = &mut self.kind
            && let Some(first) = items.first_mut()
        {
            let item = std::mem::replace(first, Wat::nothing(first.from));
            *first = change(item);
        }
        self
    }

    /// Copies a [simple](Wat::is_simple) piece of WAT. Returns an empty piece if `self` is not
    /// simple.
    pub(crate) fn copy(&self) -> Wat<'s> {
        let copy = match &self.kind {
            Kind::List(head, items) if items.is_empty() => Wat::list(self.from, head.clone(), []),
            Kind::Literal(value) => Wat::literal(self.from, value.clone()),
            _ => Wat::nothing(self.from),
        };
        copy.within(self.known.as_deref().copied())
    }
}

fn is_block(head: Option<&str>) -> bool {
    matches!(head, Some("block" | "loop" | "if" | "then" | "else"))
}

/// A WAT printer, with the text printed so far, the literals in that text, and the source node of
/// each printed piece of WAT.
pub(crate) struct Printer<'a, 's> {
    tree: &'a Tree<'s>,
    pub(super) out: String,
    pub(super) data: StaticData<'s>,
    /// The offset and the source node of each piece of WAT in `out`. `None` unless requested.
    pub(super) marks: Option<Vec<(u32, NodeId)>>,
    depth: usize,
}

impl<'a, 's> Printer<'a, 's> {
    /// Creates a printer. If `marked` is true, it records the source node of each piece of WAT.
    pub(super) fn new(tree: &'a Tree<'s>, marked: bool) -> Printer<'a, 's> {
        Printer {
            tree,
            out: String::with_capacity(tree.source.len() * 3),
            data: StaticData::default(),
            marks: marked.then(Vec::new),
            depth: 1,
        }
    }

    /// Prints a piece of WAT.
    pub(super) fn print(&mut self, piece: &Wat<'s>) -> Result<(), Box<Fault>> {
        let from = piece.from;
        self.check_length(from)?;
        match (piece.line, &piece.kind) {
            (true, _) => self.begin_line(),
            (false, Kind::Sequence(_) | Kind::Source(_)) => {}
            (false, _) => self.space(),
        }
        match &piece.kind {
            Kind::List(head, items) => {
                self.mark(from);
                self.out.push('(');
                self.out.push_str(head);
                self.items(from, items)?;
            }
            Kind::Instruction(words, items) => {
                self.mark(from);
                self.out.push('(');
                self.source(*words)?;
                self.items(from, items)?;
            }
            Kind::Words(words) => {
                self.mark(from);
                self.out.push_str(words);
            }
            Kind::Source(nodes) => self.source(*nodes)?,
            Kind::Unchanged => self.list(from)?,
            Kind::Literal(value) => {
                self.mark(from);
                let address = self.data.address(value);
                // Writing to a string cannot fail.
                let _ = write!(self.out, "(i32.const {address})");
            }
            Kind::Address(value) => {
                self.mark(from);
                let address = self.data.address(value);
                let _ = write!(self.out, "{address}");
            }
            Kind::Sequence(items) => {
                for item in items {
                    self.print(item)?;
                }
            }
        }
        Ok(())
    }

    /// Checks that the text printed so far is not too long.
    fn check_length(&self, from: NodeId) -> Result<(), Box<Fault>> {
        if self.out.len() > MAX_TEXT {
            let span = self.tree.span(from);
            return Err(Fault::new(span, wording::module_too_long(MAX_TEXT)));
        }
        Ok(())
    }

    /// Prints the items of a list and its closing parenthesis.
    fn items(&mut self, list: NodeId, items: &[Wat<'s>]) -> Result<(), Box<Fault>> {
        self.begin_items(list)?;
        for item in items {
            self.print(item)?;
        }
        self.end_items(list);
        Ok(())
    }

    fn begin_items(&mut self, list: NodeId) -> Result<(), Box<Fault>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::at(self.tree, list, wording::too_deep(MAX_DEPTH)));
        }
        Ok(())
    }

    fn end_items(&mut self, list: NodeId) {
        self.depth -= 1;
        self.mark(list);
        self.out.push(')');
    }

    /// Prints nodes of the source unchanged.
    fn source(&mut self, mut nodes: Nodes) -> Result<(), Box<Fault>> {
        while let Some(at) = nodes.next(self.tree) {
            let node = self.tree.node(at);
            let is_list = node.kind == NodeKind::List;
            if is_list && node.starts_line {
                self.begin_line()
            } else {
                self.space()
            }
            if is_list {
                self.check_length(at)?;
                self.list(at)?;
            } else {
                self.mark(at);
                self.out.push_str(self.tree.text(at));
            }
        }
        Ok(())
    }

    /// Prints a list of the source unchanged.
    fn list(&mut self, list: NodeId) -> Result<(), Box<Fault>> {
        self.mark(list);
        self.out.push('(');
        self.begin_items(list)?;
        let mut nodes = self.tree.children(list);
        // The origin of a block instruction is the node of its list. The origin of any other
        // instruction is the node of its name.
        if self.marks.is_some() && is_block(self.tree.head(list)) {
            nodes.next(self.tree);
            self.out.push_str(self.tree.head(list).unwrap_or(""));
        }
        self.source(nodes)?;
        self.end_items(list);
        Ok(())
    }

    fn mark(&mut self, from: NodeId) {
        if let Some(marks) = &mut self.marks {
            marks.push((clamp(self.out.len()), from));
        }
    }

    /// Prints the opening of a function. The code that follows is indented one level deeper.
    pub(super) fn open(&mut self, from: NodeId, head: &str) {
        self.begin_line();
        self.mark(from);
        self.out.push('(');
        self.out.push_str(head);
        self.depth += 1;
    }

    /// Prints the declaration of a function's variable. The name may be empty.
    pub(super) fn declare(&mut self, func: NodeId, name: &str, ty: &str) {
        self.begin_line();
        self.mark(func);
        self.out.push_str("(local ");
        if !name.is_empty() {
            self.out.push_str(name);
            self.out.push(' ');
        }
        self.out.push_str(ty);
        self.mark(func);
        self.out.push(')');
    }

    /// Prints the closing parenthesis of a function. Returns the offset of that parenthesis in the
    /// text.
    pub(super) fn close(&mut self) -> usize {
        self.depth = self.depth.saturating_sub(1);
        let end = self.out.len();
        self.out.push_str(")\n");
        end
    }

    fn begin_line(&mut self) {
        while self.last() == Some(b' ') {
            self.out.pop();
        }
        if self.last().is_some_and(|last| last != b'\n') {
            self.out.push('\n');
        }
        let width = 2 * self.depth.min(MAX_INDENT);
        self.out.push_str(INDENTATION.get(..width).unwrap_or(INDENTATION));
    }

    fn space(&mut self) {
        if !matches!(self.last(), Some(b'(' | b' ' | b'\n')) {
            self.out.push(' ');
        }
    }

    /// Returns the last byte of the text.
    fn last(&self) -> Option<u8> {
        self.out.as_bytes().last().copied()
    }
}

/// The pieces of WAT for consecutive nodes, such as the operands of an instruction.
pub(crate) struct Pieces<'s> {
    /// All nodes, including those that are not lowered yet.
    nodes: Nodes,
    /// The pieces of WAT so far, or `None` if each one is a list that is printed unchanged.
    changed: Option<Vec<Wat<'s>>>,
}

impl<'s> Pieces<'s> {
    /// Creates an empty collection for the WAT of `nodes`, which are not lowered yet.
    pub(crate) fn of(nodes: Nodes) -> Pieces<'s> {
        Pieces { nodes, changed: None }
    }

    /// Adds the piece of WAT for the next node.
    pub(crate) fn push(&mut self, tree: &Tree<'_>, node: NodeId, piece: Wat<'s>) {
        match &mut self.changed {
            Some(all) => all.push(piece),
            None if piece.is_unchanged(node) => {}
            None => {
                let mut all = Vec::with_capacity(self.nodes.count(tree));
                all.extend(lists(tree, self.nodes, Some(node)));
                all.push(piece);
                self.changed = Some(all);
            }
        }
    }

    /// Returns true if each node is a list that is printed unchanged.
    pub(crate) fn are_unchanged(&self) -> bool {
        self.changed.is_none()
    }

    /// Returns all pieces of WAT, one for each node.
    pub(crate) fn into_vec(self, tree: &Tree<'_>) -> Vec<Wat<'s>> {
        self.changed.unwrap_or_else(|| lists(tree, self.nodes, None).collect())
    }

    /// Returns all pieces of WAT combined into one.
    pub(crate) fn into_sequence(self, from: NodeId) -> Wat<'s> {
        match self.changed {
            Some(pieces) => Wat::sequence(from, pieces),
            None => Wat::source(from, self.nodes),
        }
    }
}

/// Returns true if the nodes are lists and the pieces of WAT are exactly these lists, printed
/// unchanged.
pub(crate) fn are_unchanged(tree: &Tree<'_>, mut nodes: Nodes, pieces: &[Wat<'_>]) -> bool {
    pieces.iter().all(|piece| nodes.next(tree).is_some_and(|node| piece.is_unchanged(node)))
        && nodes.next(tree).is_none()
}

/// Returns a piece of WAT for each list before the node `end`, or for each list if `end` is `None`.
/// The lists are printed unchanged.
fn lists<'s>(tree: &Tree<'_>, nodes: Nodes, end: Option<NodeId>) -> impl Iterator<Item = Wat<'s>> {
    nodes
        .iter(tree)
        .take_while(move |node| Some(*node) != end)
        .map(|list| Wat::unchanged(list).on_line(tree.node(list).starts_line))
}

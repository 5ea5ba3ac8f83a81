//! The syntax tree of a program: lists, atoms and strings in one arena, in source order.

use std::ops::Range;

use crate::diagnose::diagnostic::{Position, clamp};
use crate::diagnose::wording::{self, Fault, Message};
use crate::syntax::indent;
use crate::syntax::lex::{Lexer, TokenKind};

/// Maximum length of a program, in bytes.
pub(crate) const MAX_SOURCE: usize = 1 << 20;

/// Maximum nesting of parentheses. Walks over the tree are recursive, so this also limits their
/// stack usage.
pub(crate) const MAX_DEPTH: usize = 256;

/// The kind of a node. `Text` is a string in quotes, and `Block` is a string in triple quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    List,
    Atom,
    Text,
    Block,
}

/// The index of a node. A parent precedes its children, and the children precede the parent's next
/// sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    /// The id that represents no node. It is the origin of generated code.
    pub(crate) const NONE: NodeId = NodeId(u32::MAX);
}

/// A list, atom or string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    /// If true, the node is the first on its line.
    pub(crate) starts_line: bool,
    /// If true, walks over a body skip the node, because it belongs to the module or to a
    /// function's header. [`Tree::lift`] sets it.
    pub(crate) lifted: bool,
    /// If true, the node is an atom that contains a dot and is not a quoted character.
    pub(crate) dotted: bool,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The index of the first node after this one and its descendants.
    next: u32,
    /// The enclosing list, or [`NodeId::NONE`].
    parent: NodeId,
}

/// A program's source with its nodes.
pub(crate) struct Tree<'s> {
    pub(crate) source: &'s str,
    nodes: Vec<Node>,
    /// The lists that are not closed at the end of the source, outermost first.
    pub(crate) open: Vec<NodeId>,
}

/// Returns the offset at which the line that contains the byte `at` starts.
pub(crate) fn line_start(source: &str, at: usize) -> usize {
    source.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

/// Returns the indentation, in bytes, of the line that contains the byte `at`.
pub(crate) fn indentation(source: &str, at: usize) -> usize {
    let line = source.get(line_start(source, at)..).unwrap_or("");
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// Returns true if the unmatched `)` at byte `at` can be removed safely. The parenthesis must
/// directly follow a form at the top level, and that form must not be indented more than the
/// program's first form.
fn is_extra(source: &str, nodes: &[Node], at: usize) -> bool {
    let before = source.get(..at).unwrap_or("").trim_end();
    let mut outer = 0;
    let mut last = None;
    // The forms at the top level.
    while let Some(node) = nodes.get(outer) {
        last = Some(node);
        outer = (node.next as usize).max(outer + 1);
    }
    let (Some(first), Some(last)) = (nodes.first(), last) else { return nodes.is_empty() };
    before.len() == last.end as usize
        && indentation(source, last.start as usize) <= indentation(source, first.start as usize)
}

impl<'s> Tree<'s> {
    /// Parses a program.
    pub(crate) fn read(source: &'s str) -> Result<Tree<'s>, Box<Fault>> {
        if source.len() > MAX_SOURCE {
            return Err(Fault::new(0..0, wording::too_long(source.len(), MAX_SOURCE)));
        }
        Tree::read_within(source, MAX_DEPTH)
    }

    /// Parses a source of any length, with parentheses nested at most `depth` deep.
    pub(crate) fn read_within(source: &'s str, depth: usize) -> Result<Tree<'s>, Box<Fault>> {
        let mut nodes: Vec<Node> = Vec::with_capacity(source.len() / 4);
        let mut open: Vec<NodeId> = Vec::with_capacity(16);
        let mut lexer = Lexer::new(source);
        while let Some(token) = lexer.next()? {
            let at = clamp(nodes.len());
            let kind = match token.kind {
                TokenKind::Open => NodeKind::List,
                TokenKind::Atom => NodeKind::Atom,
                TokenKind::Text => NodeKind::Text,
                TokenKind::Block => NodeKind::Block,
                TokenKind::Close => {
                    let Some(list) = open.pop().and_then(|id| nodes.get_mut(id.0 as usize)) else {
                        let extra = is_extra(source, &nodes, token.start as usize);
                        let tree = Tree { source, nodes, open };
                        let span = token.start as usize..token.end as usize;
                        return Err(indent::extra_close(&tree, span.end)
                            .unwrap_or_else(|| Fault::new(span, wording::stray_close(extra))));
                    };
                    let (opened, closed) = (list.start as usize, token.start as usize);
                    let byte = |at: usize| source.as_bytes().get(at).copied();
                    let wanted = match byte(opened) {
                        Some(b'[') => ("[", "]"),
                        Some(b'{') => ("{", "}"),
                        _ => ("(", ")"),
                    };
                    if byte(closed) != wanted.1.bytes().next() {
                        let message = wording::wrong_bracket(wanted.0, wanted.1);
                        return Err(Fault::new(closed..closed + 1, message));
                    }
                    (list.end, list.next) = (token.end, at);
                    continue;
                }
            };
            let (start, end) = (token.start, token.end);
            let parent = open.last().copied().unwrap_or(NodeId::NONE);
            nodes.push(Node {
                kind,
                starts_line: token.starts_line,
                lifted: false,
                dotted: token.dotted,
                start,
                end,
                next: at + 1,
                parent,
            });
            if kind == NodeKind::List {
                if open.len() >= depth {
                    return Err(Fault::new(start as usize..end as usize, wording::too_deep(depth)));
                }
                open.push(NodeId(at));
            }
        }
        let (end, next) = (clamp(source.trim_end().len()), clamp(nodes.len()));
        for id in &open {
            if let Some(list) = nodes.get_mut(id.0 as usize) {
                (list.end, list.next) = (end, next);
            }
        }
        Ok(Tree { source, nodes, open })
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> u32 {
        clamp(self.nodes.len())
    }

    /// Returns the lists that are the first nodes on their lines, in source order.
    pub(crate) fn lists_on_lines(&self) -> impl Iterator<Item = NodeId> {
        let nodes = self.nodes.iter().enumerate();
        nodes
            .filter(|(_, node)| node.kind == NodeKind::List && node.starts_line)
            .map(|(at, _)| NodeId(clamp(at)))
    }

    /// Returns the atoms that are directly followed by another node, in source order.
    pub(crate) fn touching_atoms(&self) -> impl Iterator<Item = NodeId> {
        let touches = |pair: &[Node]| match pair {
            [atom, node] => atom.kind == NodeKind::Atom && atom.end == node.start,
            _ => false,
        };
        let pairs = self.nodes.windows(2).enumerate();
        pairs.filter(move |(_, pair)| touches(pair)).map(|(at, _)| NodeId(clamp(at)))
    }

    /// Returns a node. If the index is invalid, returns an empty atom at the end of the source.
    pub(crate) fn node(&self, id: NodeId) -> Node {
        self.nodes.get(id.0 as usize).copied().unwrap_or_else(|| {
            let end = clamp(self.source.len());
            Node {
                kind: NodeKind::Atom,
                starts_line: false,
                lifted: false,
                dotted: false,
                start: end,
                end,
                next: id.0.saturating_add(1),
                parent: NodeId::NONE,
            }
        })
    }

    /// Returns the source text of a node.
    pub(crate) fn text(&self, id: NodeId) -> &'s str {
        let node = self.node(id);
        self.source.get(node.start as usize..node.end as usize).unwrap_or("")
    }

    /// Returns the text of an atom, or `None` if the node is not an atom.
    pub(crate) fn atom(&self, id: NodeId) -> Option<&'s str> {
        (self.node(id).kind == NodeKind::Atom).then(|| self.text(id))
    }

    /// Returns true if a node is a string literal.
    pub(crate) fn is_text(&self, id: NodeId) -> bool {
        matches!(self.node(id).kind, NodeKind::Text | NodeKind::Block)
    }

    /// Returns true if a node is a list.
    pub(crate) fn is_list(&self, id: NodeId) -> bool {
        self.node(id).kind == NodeKind::List
    }

    /// Returns the atoms that contain a dot, in source order.
    pub(crate) fn dotted_atoms(&self) -> impl Iterator<Item = &'s str> + '_ {
        let dotted = self.nodes.iter().filter(|node| node.dotted);
        dotted.map(|node| self.source.get(node.start as usize..node.end as usize).unwrap_or(""))
    }

    /// Returns the text of a name, such as `$x`, or `None` if the node is not a name.
    pub(crate) fn name(&self, id: NodeId) -> Option<&'s str> {
        self.atom(id).filter(|text| text.starts_with('$'))
    }

    /// Returns the opening bracket of a list, `(`, `[` or `{`. Returns `None` for any other node.
    pub(crate) fn bracket(&self, list: NodeId) -> Option<u8> {
        let node = self.node(list);
        let first = || self.source.as_bytes().get(node.start as usize).copied();
        if node.kind == NodeKind::List { first() } else { None }
    }

    /// Returns the head of a list: `call` in `(call $f)`. Returns `None` if the node is not a list in
    /// round brackets, or if the list does not start with an atom.
    pub(crate) fn head(&self, list: NodeId) -> Option<&'s str> {
        if self.bracket(list) != Some(b'(') {
            return None;
        }
        self.children(list).next(self).and_then(|first| self.atom(first))
    }

    /// Returns the nodes of a list.
    pub(crate) fn children(&self, list: NodeId) -> Nodes {
        Nodes { at: list.0 + 1, end: self.node(list).next }
    }

    /// Returns the nodes of a list after the first one: the operands of a form, and the immediates
    /// and operands of an instruction.
    pub(crate) fn operands(&self, list: NodeId) -> Nodes {
        let mut nodes = self.children(list);
        nodes.next(self);
        nodes
    }

    /// Returns the node of a list at this index. The head has the index 0.
    pub(crate) fn item(&self, list: NodeId, index: usize) -> Option<NodeId> {
        self.children(list).iter(self).nth(index)
    }

    /// Returns the nodes of a list.
    pub(crate) fn items(&self, list: NodeId) -> Vec<NodeId> {
        self.children(list).iter(self).collect()
    }

    /// Returns the list that directly contains a node, or `None` if the node is at the top level.
    pub(crate) fn parent(&self, id: NodeId) -> Option<NodeId> {
        Some(self.node(id).parent).filter(|parent| *parent != NodeId::NONE)
    }

    /// Returns true if a list contains a node, at any depth.
    pub(crate) fn contains_node(&self, list: NodeId, node: NodeId) -> bool {
        list < node && node.0 < self.node(list).next
    }

    /// Returns the previous sibling of a node, if any.
    pub(crate) fn previous_sibling(&self, node: NodeId) -> Option<NodeId> {
        let siblings = self.parent(node).map_or(self.top(), |list| self.children(list));
        siblings.iter(self).take_while(|sibling| *sibling < node).last()
    }

    /// Returns the next sibling of a node, if any.
    pub(crate) fn next_sibling(&self, node: NodeId) -> Option<NodeId> {
        let next = self.after(node).next(self)?;
        (self.parent(next) == self.parent(node)).then_some(next)
    }

    /// Returns an iterator over the nodes that follow a node and its descendants, up to the end of
    /// the source: first the node's next siblings, then the nodes after its enclosing lists.
    pub(crate) fn after(&self, id: NodeId) -> Nodes {
        Nodes { at: self.node(id).next, end: clamp(self.nodes.len()) }
    }

    /// Returns the forms at the top level.
    pub(crate) fn top(&self) -> Nodes {
        Nodes { at: 0, end: clamp(self.nodes.len()) }
    }

    /// Returns the siblings from `first` to `last`, inclusive.
    pub(crate) fn range(&self, first: NodeId, last: NodeId) -> Nodes {
        Nodes { at: first.0, end: self.node(last).next }
    }

    /// Marks a node as lifted, so that walks over the enclosing body skip the node.
    pub(crate) fn lift(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.lifted = true;
        }
    }

    /// Returns all nodes, in source order.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.len()).map(NodeId)
    }

    /// Returns the innermost list that contains a range of the source.
    pub(crate) fn list_around(&self, range: &Range<usize>) -> Option<NodeId> {
        let contains = |span: Range<usize>| span.start <= range.start && range.end <= span.end;
        self.all().rfind(|node| self.is_list(*node) && contains(self.span(*node)))
    }

    /// Returns the line on which a node starts, counted from 1.
    pub(crate) fn line(&self, id: NodeId) -> u32 {
        Position::of(self.source, self.span(id).start).line
    }

    /// Returns the offset at which a node starts.
    pub(crate) fn start(&self, id: NodeId) -> usize {
        self.node(id).start as usize
    }

    /// Returns the offset at which a node ends.
    pub(crate) fn end(&self, id: NodeId) -> usize {
        self.node(id).end as usize
    }

    /// Returns the byte range of a node in the source.
    pub(crate) fn span(&self, id: NodeId) -> Range<usize> {
        let node = self.node(id);
        node.start as usize..node.end as usize
    }
}

impl Fault {
    /// Creates a fault at a node.
    pub(crate) fn at(tree: &Tree<'_>, node: NodeId, message: Message) -> Box<Fault> {
        Fault::new(tree.span(node), message)
    }
}

/// An iterator over siblings in source order that skips lifted nodes. It does not borrow the tree,
/// so the tree may change during the iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nodes {
    at: u32,
    end: u32,
}

impl Nodes {
    pub(crate) const NONE: Nodes = Nodes { at: 0, end: 0 };

    /// Returns the next sibling and advances past it.
    pub(crate) fn next(&mut self, tree: &Tree<'_>) -> Option<NodeId> {
        while self.at < self.end {
            let id = NodeId(self.at);
            let node = tree.node(id);
            self.at = node.next;
            if !node.lifted {
                return Some(id);
            }
        }
        None
    }

    /// Returns the siblings.
    pub(crate) fn iter(mut self, tree: &Tree<'_>) -> impl Iterator<Item = NodeId> {
        std::iter::from_fn(move || self.next(tree))
    }

    /// Returns all nodes in source order, at any depth.
    pub(crate) fn iter_deep(mut self, tree: &Tree<'_>) -> impl Iterator<Item = NodeId> {
        std::iter::from_fn(move || self.next_deep(tree))
    }

    /// Returns the next sibling and advances past it, if the sibling satisfies a condition.
    pub(crate) fn next_if(
        &mut self,
        tree: &Tree<'_>,
        wanted: impl FnOnce(NodeId) -> bool,
    ) -> Option<NodeId> {
        let mut ahead = *self;
        let next = ahead.next(tree).filter(|next| wanted(*next))?;
        *self = ahead;
        Some(next)
    }

    /// Returns the name of the next sibling and advances past it, if the sibling is a name.
    pub(crate) fn next_name<'s>(&mut self, tree: &Tree<'s>) -> Option<&'s str> {
        self.next_if(tree, |node| tree.name(node).is_some()).and_then(|node| tree.name(node))
    }

    /// Returns the part of this range before `after`, which must be a suffix of the range.
    pub(crate) fn until(self, after: Nodes) -> Nodes {
        Nodes { at: self.at, end: after.at }
    }

    /// Returns this range, extended backward to start at `first`. `first` must precede the range.
    pub(crate) fn starting_at(self, first: NodeId) -> Nodes {
        Nodes { at: first.0, end: self.end }
    }

    /// Returns the number of siblings.
    pub(crate) fn count(self, tree: &Tree<'_>) -> usize {
        self.iter(tree).count()
    }

    /// Returns the next sibling without advancing.
    pub(crate) fn peek(&self, tree: &Tree<'_>) -> Option<NodeId> {
        let mut ahead = *self;
        ahead.next(tree)
    }

    /// Returns the next node in source order, at any depth.
    pub(crate) fn next_deep(&mut self, tree: &Tree<'_>) -> Option<NodeId> {
        while self.at < self.end {
            let id = NodeId(self.at);
            let node = tree.node(id);
            self.at = if node.lifted { node.next } else { self.at + 1 };
            if !node.lifted {
                return Some(id);
            }
        }
        None
    }
}

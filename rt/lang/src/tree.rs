//! The author's tree: lists, atoms and texts in one arena, in the order of the text.

use crate::diagnostic::clamp;
use crate::lex::{Lexer, TokenKind};
use crate::messages::{self, Fault};

/// The longest source, in bytes.
pub(super) const MAX_SOURCE: usize = 1 << 20;

/// The deepest nesting of parentheses. Walks over the tree recurse, so this also bounds their stack.
pub(super) const MAX_DEPTH: usize = 256;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    List,
    Atom,
    Text,
    Block,
}

/// A node's number; a parent comes before its children, and they before its next sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(pub(super) u32);

/// One list, atom or text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// First of its line.
    pub(super) starts_line: bool,
    /// Stands beside the body in the module, or at the head of the function: no walk over a body meets it.
    pub(super) lifted: bool,
    pub(super) start: u32,
    pub(super) end: u32,
    /// The number of the first node after this one and all in it.
    next: u32,
    /// The list around; none by `NodeId(u32::MAX)`.
    parent: NodeId,
}

/// What stands for the list around a node that none is around.
const NO_PARENT: NodeId = NodeId(u32::MAX);

/// A source with its nodes.
pub(super) struct Tree<'s> {
    pub(super) source: &'s str,
    nodes: Vec<Node>,
    /// Lists that the end of the text leaves open, outermost first.
    pub(super) open: Vec<NodeId>,
}

/// Whether a `)` that closes nothing is one too many for certain: it follows the end of a form that stands outside of all
/// others by its indentation too.
fn is_extra(source: &str, nodes: &[Node], at: usize) -> bool {
    let indentation = |at: u32| {
        let before = source.get(..at as usize).unwrap_or("");
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let text = source.get(line..).unwrap_or("");
        text.len() - text.trim_start_matches([' ', '\t']).len()
    };
    let before = source.get(..at).unwrap_or("").trim_end();
    let mut outer = 0;
    let mut last = None;
    // The forms that stand outside of all others, one after the other.
    while let Some(node) = nodes.get(outer) {
        last = Some(node);
        outer = (node.next as usize).max(outer + 1);
    }
    let (Some(first), Some(last)) = (nodes.first(), last) else { return nodes.is_empty() };
    before.len() == last.end as usize && indentation(last.start) <= indentation(first.start)
}

impl<'s> Tree<'s> {
    /// Reads a source.
    pub(super) fn read(source: &'s str) -> Result<Tree<'s>, Box<Fault>> {
        if source.len() > MAX_SOURCE {
            return Err(Fault::new(0..0, messages::too_long(source.len())));
        }
        Tree::read_within(source, MAX_DEPTH)
    }

    /// Reads a text of any length whose parentheses nest at most `depth` deep.
    pub(super) fn read_within(source: &'s str, depth: usize) -> Result<Tree<'s>, Box<Fault>> {
        let mut nodes: Vec<Node> = Vec::with_capacity(source.len() / 6);
        let mut open: Vec<NodeId> = Vec::new();
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
                        let message = messages::stray_close(extra);
                        return Err(Fault::new(token.start as usize..token.end as usize, message));
                    };
                    (list.end, list.next) = (token.end, at);
                    continue;
                }
            };
            let (start, end) = (token.start, token.end);
            let parent = open.last().copied().unwrap_or(NO_PARENT);
            nodes.push(Node { kind, starts_line: token.starts_line, lifted: false, start, end, next: at + 1, parent });
            if kind == NodeKind::List {
                if open.len() >= depth {
                    return Err(Fault::new(start as usize..end as usize, messages::too_deep(depth)));
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

    /// How many nodes there are.
    pub(super) fn len(&self) -> u32 {
        clamp(self.nodes.len())
    }

    /// The node of that number; for a number of no node, an empty atom at the end of the text.
    pub(super) fn node(&self, id: NodeId) -> Node {
        let end = clamp(self.source.len());
        let next = id.0.saturating_add(1);
        let none =
            Node { kind: NodeKind::Atom, starts_line: false, lifted: false, start: end, end, next, parent: NO_PARENT };
        self.nodes.get(id.0 as usize).copied().unwrap_or(none)
    }

    /// The node's own text.
    pub(super) fn text(&self, id: NodeId) -> &'s str {
        let node = self.node(id);
        self.source.get(node.start as usize..node.end as usize).unwrap_or("")
    }

    /// The node's text where it is an atom.
    pub(super) fn atom(&self, id: NodeId) -> Option<&'s str> {
        (self.node(id).kind == NodeKind::Atom).then(|| self.text(id))
    }

    /// The node's text where it is a name (`$x`).
    pub(super) fn name(&self, id: NodeId) -> Option<&'s str> {
        self.atom(id).filter(|text| text.starts_with('$'))
    }

    /// The first atom of a list: `call` of `(call $f)`.
    pub(super) fn head(&self, list: NodeId) -> Option<&'s str> {
        if self.node(list).kind != NodeKind::List {
            return None;
        }
        self.children(list).next(self).and_then(|first| self.atom(first))
    }

    /// The nodes of a list.
    pub(super) fn children(&self, list: NodeId) -> Nodes {
        Nodes { at: list.0 + 1, end: self.node(list).next }
    }

    /// The list around a node.
    pub(super) fn parent(&self, id: NodeId) -> Option<NodeId> {
        Some(self.node(id).parent).filter(|parent| *parent != NO_PARENT)
    }

    /// Whether a node stands in a list, at any depth.
    pub(super) fn contains_node(&self, list: NodeId, node: NodeId) -> bool {
        list < node && node.0 < self.node(list).next
    }

    /// The nodes after one, as far as the text goes; only the first is sure to be its sibling.
    pub(super) fn after(&self, id: NodeId) -> Nodes {
        Nodes { at: self.node(id).next, end: clamp(self.nodes.len()) }
    }

    /// The forms of the whole text.
    pub(super) fn top(&self) -> Nodes {
        Nodes { at: 0, end: clamp(self.nodes.len()) }
    }

    /// Takes a node out of the body around it.
    pub(super) fn lift(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            node.lifted = true;
        }
    }

    /// Where a node is, in bytes.
    pub(super) fn span(&self, id: NodeId) -> std::ops::Range<usize> {
        let node = self.node(id);
        node.start as usize..node.end as usize
    }
}

/// Siblings in order, without the lifted ones. Holds no borrow, so that a walk may change what it walks with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nodes {
    at: u32,
    end: u32,
}

impl Nodes {
    pub(super) const NONE: Nodes = Nodes { at: 0, end: 0 };

    /// The next sibling.
    pub(super) fn next(&mut self, tree: &Tree<'_>) -> Option<NodeId> {
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

    /// The next sibling, left where it is.
    pub(super) fn peek(&self, tree: &Tree<'_>) -> Option<NodeId> {
        let mut ahead = *self;
        ahead.next(tree)
    }

    /// The next node in the order of the text, whatever its depth.
    pub(super) fn next_deep(&mut self, tree: &Tree<'_>) -> Option<NodeId> {
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

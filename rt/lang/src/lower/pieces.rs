//! The pieces of [`Wat`] for consecutive nodes. As long as all nodes so far are lists that are
//! printed unchanged, no pieces are stored.

use super::output::Wat;
use crate::syntax::tree::{NodeId, Nodes, Tree};

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

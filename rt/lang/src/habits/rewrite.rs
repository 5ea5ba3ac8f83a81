//! Changes to a program, expressed in terms of its tree.

use crate::Signature;
use crate::diagnose::fix::Change;
use crate::syntax::tree::{NodeId, Tree};

/// Returns the change that replaces the head of a list, or `None` if the list does not begin with
/// an atom.
pub(crate) fn replace_head(
    tree: &Tree<'_>,
    list: NodeId,
    text: impl Into<String>,
) -> Option<Change> {
    let first = tree.children(list).next(tree).filter(|first| tree.atom(*first).is_some())?;
    Some(Change::edit(tree.span(first), text))
}

/// Returns the change that replaces a WAT `call` to a host function with a call by name.
pub(crate) fn call_by_name(tree: &Tree<'_>, call: NodeId, signature: &Signature) -> Option<Change> {
    let items = tree.items(call);
    let first = *items.first()?;
    let head = tree.atom(first)?;
    let end = match head {
        "call" => tree.span(*items.get(1)?).end,
        _ => tree.span(first).end,
    };
    let name = signature.full_name();
    Some(Change::edit(tree.span(first).start..end, name))
}

/// Returns the change that replaces a list with one of its nodes.
pub(crate) fn replace_with_child(tree: &Tree<'_>, list: NodeId, inner: NodeId) -> Change {
    let (outer, inner) = (tree.span(list), tree.span(inner));
    Change::edits([(outer.start..inner.start, ""), (inner.end..outer.end, "")])
}

/// Returns the change that removes the parentheses of a list.
pub(crate) fn remove_parentheses(tree: &Tree<'_>, list: NodeId) -> Change {
    let span = tree.span(list);
    Change::edits([(span.start..span.start + 1, ""), (span.end.saturating_sub(1)..span.end, "")])
}

/// Returns the change that swaps two nodes.
pub(crate) fn swap(tree: &Tree<'_>, a: NodeId, b: NodeId) -> Change {
    Change::Edits(vec![
        (tree.span(a), tree.text(b).to_owned()),
        (tree.span(b), tree.text(a).to_owned()),
    ])
}

/// Returns the change that removes a node and the spaces and tabs after it.
pub(crate) fn remove(tree: &Tree<'_>, node: NodeId) -> Change {
    let span = tree.span(node);
    let rest = tree.source.get(span.end..).unwrap_or("");
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    Change::edit(span.start..span.end + blanks, "")
}

/// Returns the edits that insert text before and after a node.
pub(crate) fn around(
    tree: &Tree<'_>,
    node: NodeId,
    before: &str,
    after: &str,
) -> Vec<(std::ops::Range<usize>, String)> {
    let span = tree.span(node);
    vec![(span.start..span.start, before.to_owned()), (span.end..span.end, after.to_owned())]
}

/// Returns the previous sibling of a node, if any.
pub(crate) fn before(tree: &Tree<'_>, node: NodeId) -> Option<NodeId> {
    let nodes = tree.parent(node).map_or(tree.top(), |list| tree.children(list));
    nodes.iter(tree).take_while(|sibling| *sibling < node).last()
}

/// Returns the next sibling of a node, if any.
pub(crate) fn after(tree: &Tree<'_>, node: NodeId) -> Option<NodeId> {
    let list = tree.parent(node);
    tree.after(node)
        .next(tree)
        .filter(|next| list.is_none_or(|list| tree.contains_node(list, *next)))
}

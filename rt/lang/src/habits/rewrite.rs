//! Changes to a program, expressed in terms of its tree.

use std::ops::Range;

use crate::Signature;
use crate::diagnose::fix::Edits;
use crate::syntax::tree::{NodeId, Tree};

impl Edits {
    /// Adds the removal of a list's parentheses.
    pub(crate) fn unwrap_list(self, list: Range<usize>) -> Edits {
        self.remove(list.start..list.start + 1).remove(list.end.saturating_sub(1)..list.end)
    }
}

/// Returns the edits that replace the head of a list, or `None` if the list does not begin with an
/// atom.
pub(crate) fn replace_head(
    tree: &Tree<'_>,
    list: NodeId,
    text: impl Into<String>,
) -> Option<Edits> {
    let first = tree.children(list).next(tree).filter(|first| tree.atom(*first).is_some())?;
    Some(Edits::one(tree.span(first), text))
}

/// Returns the edits that replace a WAT `call` to a host function with a call by name.
pub(crate) fn call_by_name(tree: &Tree<'_>, call: NodeId, signature: &Signature) -> Option<Edits> {
    let items = tree.items(call);
    let first = *items.first()?;
    let last = match tree.atom(first)? {
        "call" => *items.get(1)?,
        _ => first,
    };
    Some(Edits::one(tree.start(first)..tree.end(last), signature.full_name()))
}

/// Returns the edits that replace a list with one of its nodes.
pub(crate) fn replace_with_child(tree: &Tree<'_>, list: NodeId, inner: NodeId) -> Edits {
    Edits::one(tree.start(list)..tree.start(inner), "").remove(tree.end(inner)..tree.end(list))
}

/// Returns the edits that swap two nodes.
pub(crate) fn swap(tree: &Tree<'_>, a: NodeId, b: NodeId) -> Edits {
    Edits::one(tree.span(a), tree.text(b)).replace(tree.span(b), tree.text(a))
}

/// Returns the range of a node and the spaces and tabs after it.
pub(crate) fn with_space(tree: &Tree<'_>, node: NodeId) -> Range<usize> {
    let end = tree.end(node);
    let rest = tree.source.get(end..).unwrap_or("");
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    tree.start(node)..end + blanks
}

/// Returns the edits that insert text before and after a node.
pub(crate) fn around(tree: &Tree<'_>, node: NodeId, before: &str, after: &str) -> Edits {
    Edits::default().wrap(&tree.span(node), before, after)
}

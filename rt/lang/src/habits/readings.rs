//! Readings of a faulty form: its possible meanings in another language.
//!
//! This module only proposes readings. The verification of fixes keeps a reading only if it makes
//! the program valid, so a reading may ignore types.

use super::{branches, calls, loops, operators, templates};
use crate::Signatures;
use crate::diagnose::fix::Change;
use crate::syntax::indent::{closed_before, reopened};
use crate::syntax::tree::{NodeId, Tree};

/// Alternative readings of the same source. A fix is offered only if exactly one of them is valid.
pub(crate) struct Readings {
    /// The form that the readings reinterpret.
    pub(crate) form: NodeId,
    pub(crate) changes: Vec<Change>,
}

/// A function that looks up a form by name. It returns true if the form has a value and false if it
/// has none, or `None` if there is no such form.
pub(crate) type FormLookup = fn(&str) -> Option<bool>;

/// A program with a fault, and the functions and forms that it may call.
pub(super) struct Around<'a, 's> {
    pub(super) tree: &'a Tree<'s>,
    pub(super) host: &'a Signatures,
    pub(super) forms: FormLookup,
    /// The names of the program's functions, with their `$`.
    pub(super) own: Vec<&'s str>,
}

/// Maximum number of forms around a fault to reinterpret.
const MAX_AROUND: usize = 4;

/// Returns the possible readings of the forms around a fault, innermost form first.
pub(crate) fn readings(
    tree: &Tree<'_>,
    span: &std::ops::Range<usize>,
    host: &Signatures,
    forms: FormLookup,
) -> Vec<Readings> {
    let around = Around { tree, host, forms, own: own_functions(tree) };
    let Some(node) = node_at(tree, span.start) else { return Vec::new() };
    let mut all = Vec::new();
    let mut add = |form: NodeId, changes: Vec<Change>| {
        if !changes.is_empty() {
            all.push(Readings { form, changes });
        }
    };
    add(node, calls::of_atom(&around, node));
    add(node, calls::line(&around, node).into_iter().collect());
    add(node, calls::beside(&around, node));
    let mut form = Some(node);
    for _ in 0..=MAX_AROUND {
        let Some(list) = form else { break };
        if tree.is_list(list) {
            let nodes = tree.items(list);
            for changes in [
                templates::of_list(&around, list, &nodes),
                calls::of_list(&around, list, &nodes),
                loops::of_list(&around, list, &nodes),
                branches::of_list(&around, list, &nodes),
                operators::of_list(&around, list, &nodes),
            ] {
                add(list, changes);
            }
            // A parenthesis may close one of the inner forms too early.
            add(list, nodes.iter().filter_map(|node| reopened(tree, *node)).collect());
            add(list, reopened(tree, list).into_iter().collect());
            add(list, closed_before(tree, list));
            add(list, nodes.iter().flat_map(|node| closed_before(tree, *node)).collect());
        }
        if tree.parent(list).is_none()
            && let Some(before) = crate::habits::rewrite::before(tree, list)
        {
            add(before, reopened(tree, before).into_iter().collect());
        }
        form = tree.parent(list);
    }
    all
}

/// Returns the innermost node that contains an offset, if any.
fn node_at(tree: &Tree<'_>, at: usize) -> Option<NodeId> {
    let contains = |node: &NodeId| {
        let span = tree.span(*node);
        span.start <= at && at < span.end
    };
    tree.all().rfind(contains)
}

/// Returns the names of the functions that a program declares.
fn own_functions<'s>(tree: &Tree<'s>) -> Vec<&'s str> {
    let declared =
        tree.top().iter(tree).filter(|node| matches!(tree.head(*node), Some("fn" | "func")));
    declared.filter_map(|node| tree.name(*tree.items(node).get(1)?)).collect()
}

impl Around<'_, '_> {
    /// Returns the source of a node.
    pub(super) fn text(&self, node: NodeId) -> &str {
        self.tree.text(node)
    }

    /// Returns the name of the variable that a node probably means, including the `$`. Returns
    /// `None` if the node cannot be a name.
    pub(super) fn variable(&self, node: NodeId) -> Option<String> {
        let text = self.tree.atom(node)?;
        let plain = text.strip_prefix('$').unwrap_or(text);
        let is_name = plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && plain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        is_name.then(|| format!("${plain}"))
    }

    /// Returns true if the program contains this atom.
    pub(super) fn has_atom(&self, text: &str) -> bool {
        (0..self.tree.len()).any(|node| self.tree.atom(NodeId(node)) == Some(text))
    }

    /// Returns true if a form is a statement, which means that its value is not used.
    pub(super) fn is_statement(&self, list: NodeId) -> bool {
        let Some(outer) = self.tree.parent(list) else { return true };
        let nodes = self.tree.items(outer);
        let at = nodes.iter().position(|node| *node == list).unwrap_or(0);
        match self.tree.head(outer) {
            Some("do" | "begin" | "progn" | "then" | "else" | "block" | "loop") => true,
            Some("when" | "unless" | "while" | "until" | "if" | "repeat") => at > 1,
            Some("for" | "each" | "fn" | "func" | "foreach" | "dotimes" | "doseq") => at > 2,
            Some(_) => false,
            // A clause of `cond`.
            None => at > 0,
        }
    }

    /// Returns the change that replaces a form with `text`.
    pub(super) fn write(&self, list: NodeId, text: String) -> Change {
        Change::edit(self.tree.span(list), text)
    }

    /// Returns the source from the start of the first node to the end of the last one.
    pub(super) fn source(&self, first: NodeId, last: NodeId) -> &str {
        let (start, end) = (self.tree.span(first).start, self.tree.span(last).end);
        self.tree.source.get(start..end).unwrap_or("")
    }

    /// Returns the source of consecutive nodes.
    pub(super) fn all(&self, nodes: &[NodeId]) -> &str {
        match (nodes.first(), nodes.last()) {
            (Some(first), Some(last)) => self.source(*first, *last),
            _ => "",
        }
    }

    /// Returns the whitespace between two nodes if it contains a line break, or else a single
    /// space.
    pub(super) fn gap(&self, before: NodeId, after: NodeId) -> &str {
        let (start, end) = (self.tree.span(before).end, self.tree.span(after).start);
        let between = self.tree.source.get(start..end).unwrap_or("");
        if between.contains('\n') && between.trim().is_empty() { between } else { " " }
    }
}

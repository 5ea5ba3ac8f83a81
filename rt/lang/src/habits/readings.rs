//! Readings of a faulty form: its possible meanings in another language.
//!
//! This module only proposes readings. The verification of fixes keeps a reading only if it makes
//! the program valid, so a reading may ignore types.

use super::{branches, calls, loops, operators, templates};
use crate::Signatures;
use crate::diagnose::fix::Edits;
use crate::syntax::indent::{closed_before, reopened};
use crate::syntax::tree::{NodeId, Tree};

/// Alternative readings of the same source. A fix is offered only if exactly one of them is valid.
pub(crate) struct Readings {
    /// The form that the readings reinterpret.
    pub(crate) form: NodeId,
    pub(crate) changes: Vec<Edits>,
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

/// A list whose meaning in another language is sought.
pub(super) struct Form<'a, 's> {
    pub(super) tree: &'a Tree<'s>,
    pub(super) around: &'a Around<'a, 's>,
    pub(super) list: NodeId,
    /// All nodes of the list, and its first node.
    pub(super) nodes: &'a [NodeId],
    pub(super) first: NodeId,
    /// The first node's text if it is an atom, or else an empty string.
    pub(super) name: &'s str,
    /// The nodes after the first one.
    pub(super) operands: &'a [NodeId],
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
    let mut add = |form: NodeId, changes: Vec<Edits>| {
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
            if let Some((first, operands)) = nodes.split_first() {
                let name = tree.atom(*first).unwrap_or("");
                let around = &around;
                let form =
                    Form { tree, around, list, nodes: &nodes, first: *first, name, operands };
                add(list, templates::of_list(&form));
                add(list, calls::of_list(&form));
                add(list, loops::of_list(&form));
                add(list, branches::of_list(&form).into_iter().collect());
                add(list, operators::of_list(&form));
            }
            // A parenthesis may close one of the inner forms too early.
            add(list, nodes.iter().filter_map(|node| reopened(tree, *node)).collect());
            add(list, reopened(tree, list).into_iter().collect());
            add(list, closed_before(tree, list).into_iter().collect());
            add(list, nodes.iter().filter_map(|node| closed_before(tree, *node)).collect());
        }
        if tree.parent(list).is_none()
            && let Some(before) = tree.previous_sibling(list)
        {
            add(before, reopened(tree, before).into_iter().collect());
        }
        form = tree.parent(list);
    }
    all
}

/// Returns the innermost node that contains an offset, if any.
fn node_at(tree: &Tree<'_>, at: usize) -> Option<NodeId> {
    tree.all().rfind(|node| tree.span(*node).contains(&at))
}

/// Returns the names of the functions that a program declares.
fn own_functions<'s>(tree: &Tree<'s>) -> Vec<&'s str> {
    let declared =
        tree.top().iter(tree).filter(|node| matches!(tree.head(*node), Some("fn" | "func")));
    declared.filter_map(|node| tree.name(*tree.items(node).get(1)?)).collect()
}

impl<'s> Tree<'s> {
    /// Returns the name of the variable that a node probably means, including the `$`. Returns
    /// `None` if the node cannot be a name.
    pub(super) fn variable(&self, node: NodeId) -> Option<String> {
        let text = self.atom(node)?;
        let plain = text.strip_prefix('$').unwrap_or(text);
        let is_name = plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && plain.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        is_name.then(|| format!("${plain}"))
    }

    /// Returns the source of consecutive nodes.
    pub(super) fn all_text(&self, nodes: &[NodeId]) -> &'s str {
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return "" };
        self.source.get(self.start(*first)..self.end(*last)).unwrap_or("")
    }

    /// Returns the whitespace between two nodes if it contains a line break, or else a single
    /// space.
    pub(super) fn gap(&self, before: NodeId, after: NodeId) -> &'s str {
        let between = self.source.get(self.end(before)..self.start(after)).unwrap_or("");
        if between.contains('\n') && between.trim().is_empty() { between } else { " " }
    }

    /// Returns as many line breaks as a range of the source contains.
    pub(super) fn line_breaks(&self, range: std::ops::Range<usize>) -> String {
        "\n".repeat(self.source.get(range).map_or(0, |text| text.matches('\n').count()))
    }

    /// Returns true if a node is an atom in a given list of words.
    pub(super) fn is_word(&self, node: NodeId, words: &[&str]) -> bool {
        self.atom(node).is_some_and(|word| words.contains(&word))
    }

    /// Returns true if one node directly follows another.
    pub(super) fn touch(&self, before: NodeId, after: NodeId) -> bool {
        self.end(before) == self.start(after)
    }
}

impl Form<'_, '_> {
    /// Returns true if the value of the form is not used.
    pub(super) fn is_statement(&self) -> bool {
        let tree = self.tree;
        let Some(outer) = tree.parent(self.list) else { return true };
        let at = tree.items(outer).iter().position(|node| *node == self.list).unwrap_or(0);
        match tree.head(outer) {
            Some("do" | "begin" | "progn" | "then" | "else" | "block" | "loop") => true,
            Some("when" | "unless" | "while" | "until" | "if" | "repeat") => at > 1,
            Some("for" | "each" | "fn" | "func" | "foreach" | "dotimes" | "doseq") => at > 2,
            Some(_) => false,
            // A clause of `cond`.
            None => at > 0,
        }
    }

    /// Returns the edits that replace the form with `text`.
    pub(super) fn write(&self, text: String) -> Edits {
        Edits::one(self.tree.span(self.list), text)
    }

    /// Returns the edits that replace the head.
    pub(super) fn replace_head(&self, text: impl Into<String>) -> Edits {
        Edits::one(self.tree.span(self.first), text)
    }

    /// Returns the edits that replace everything from the head to the start of a node.
    pub(super) fn replace_to(&self, node: NodeId, text: impl Into<String>) -> Edits {
        Edits::one(self.tree.start(self.first)..self.tree.start(node), text)
    }
}

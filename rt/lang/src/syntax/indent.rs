//! Detection of forms that are closed too early, based on the indentation of the lines that follow.

use crate::diagnose::fix::Edits;
use crate::diagnose::wording::{self, Fault};
use crate::syntax::tree::{NodeId, NodeKind, Tree, indentation, line_start};

/// Rejects a form with an empty body if the next line is indented more than the form. For a form
/// that has a body and spans several lines, returns a warning instead.
pub(crate) fn closed_early(tree: &Tree<'_>) -> Result<Vec<Fault>, Box<Fault>> {
    let mut warnings = Vec::new();
    for list in tree.lists_on_lines() {
        let Some(empty) = body_is_empty(tree, list) else { continue };
        let Some(next) = tree.next_sibling(list).filter(|next| is_deeper(tree, list, *next)) else {
            continue;
        };
        let head = tree.head(list).unwrap_or("");
        let end = tree.span(list).end;
        let own = tree.line(list);
        let inner = tree.line(next);
        if empty {
            let message = wording::closed_early(head, own, inner).maybe_safe(reopened(tree, list));
            return Err(Fault::new(end - 1..end, message));
        }
        if warnings.len() < crate::MAX_WARNINGS {
            warnings.push(*Fault::new(end - 1..end, wording::indented_after(head, own, inner)));
        }
    }
    Ok(warnings)
}

/// Returns true for a form with an empty body, false for a form that has a body and spans several
/// lines, and `None` for any other node.
fn body_is_empty(tree: &Tree<'_>, list: NodeId) -> Option<bool> {
    let head = tree.head(list)?;
    if !matches!(head, "when" | "unless" | "while" | "until" | "repeat" | "fn" | "each" | "for") {
        return None;
    }
    let nodes = tree.children(list).iter(tree).take(6);
    let kinds: Vec<NodeKind> = nodes.map(|node| tree.node(node).kind).collect();
    let atoms = kinds.iter().take_while(|kind| **kind == NodeKind::Atom).count();
    let header = match head {
        "when" | "unless" | "while" | "until" | "repeat" => 2,
        "fn" => 3,
        "each" if atoms == 4 || atoms == 3 && kinds.get(3) == Some(&NodeKind::List) => {
            // `(each $i $x $a)` has two names. With one name, the fourth node is the body.
            if atoms == 4 { 4 } else { 3 }
        }
        "each" => 3,
        "for" => 4 + usize::from(kinds.get(4) == Some(&NodeKind::Atom)),
        _ => return None,
    };
    if kinds.len() <= header {
        return Some(true);
    }
    tree.text(list).contains('\n').then_some(false)
}

/// Finds the parenthesis that makes a later one unmatched: it closes a form although the following
/// lines are indented as parts of the form. Without it, the form and all forms around it would end
/// where the indentation says. `stray` is the end of the unmatched parenthesis. Returns `None` if no
/// form is closed so.
pub(crate) fn extra_close(tree: &Tree<'_>, stray: usize) -> Option<Box<Fault>> {
    let nodes = || tree.top().iter_deep(tree);
    // The indentation of each node's line, and the least one of the lines on which its next
    // siblings start.
    let mut indents = Vec::new();
    for node in nodes() {
        let before = indents.last().copied().unwrap_or(0);
        indents.push(if tree.node(node).starts_line { column(tree, node) } else { before });
    }
    let mut least = vec![usize::MAX; indents.len()];
    let index = |node: NodeId| node.0 as usize;
    let of = |all: &[usize], node: NodeId| all.get(index(node)).copied().unwrap_or(usize::MAX);
    for at in (0..tree.len()).rev().map(NodeId) {
        if let Some(next) = tree.next_sibling(at) {
            let own = if tree.node(next).starts_line { of(&indents, next) } else { usize::MAX };
            let following = own.min(of(&least, next));
            if let Some(slot) = least.get_mut(index(at)) {
                *slot = following;
            }
        }
    }
    let mut agrees: Vec<bool> = Vec::with_capacity(indents.len());
    let mut found: Vec<NodeId> = Vec::new();
    for node in nodes() {
        let around = tree.parent(node).is_none_or(|list| agrees.get(index(list)) == Some(&true));
        let own = around && of(&least, node) > of(&indents, node);
        agrees.push(own);
        let next = tree.next_sibling(node).filter(|next| is_deeper(tree, node, *next));
        let is_round = tree.text(node).ends_with(')');
        if own && next.is_some() && tree.node(node).starts_line && tree.is_list(node) && is_round {
            found.push(node);
        }
    }
    let list = found.iter().copied().min_by_key(|list| tree.span(*list).end)?;
    let next = tree.next_sibling(list)?;
    let end = tree.span(list).end;
    let head = tree.head(list).unwrap_or("");
    let message = wording::extra_close(head, tree.line(list), tree.line(next));
    // The fix is certain if the next line is indented like the lines of the form's body, and no other
    // parenthesis is unmatched or could be the cause.
    let body = tree.children(list).iter(tree).filter(|node| tree.node(*node).starts_line).last();
    let is_certain = body.is_some_and(|body| column(tree, body) == column(tree, next))
        && found.iter().all(|other| *other == list || tree.contains_node(*other, list))
        && tree.source.get(stray..).unwrap_or("").trim().is_empty();
    let change = is_certain.then(|| Edits::one(end - 1..end, ""));
    Some(Fault::new(end - 1..end, message.maybe_safe(change)))
}

/// Returns true if `next` starts a line and is indented more than `list`, which must also start a
/// line.
fn is_deeper(tree: &Tree<'_>, list: NodeId, next: NodeId) -> bool {
    tree.node(next).starts_line && column(tree, next) > column(tree, list)
}

/// Returns the column of a node, counted in bytes from 0.
fn column(tree: &Tree<'_>, node: NodeId) -> usize {
    let start = tree.span(node).start;
    start - line_start(tree.source, start)
}

/// Returns the change that extends a list to include its next siblings, as long as they are
/// indented more than the line on which the list starts. Returns `None` if there are no such
/// siblings or if the list does not end with `)`.
pub(crate) fn reopened(tree: &Tree<'_>, list: NodeId) -> Option<Edits> {
    let close = tree.span(list).end;
    let is_round = tree.source.get(close.checked_sub(1)?..close) == Some(")");
    let own = indentation(tree.source, tree.span(list).start);
    let belongs = |next: NodeId| !tree.node(next).starts_line || column(tree, next) > own;
    let mut last = tree
        .next_sibling(list)
        .filter(|next| is_round && tree.node(*next).starts_line && belongs(*next))?;
    while let Some(next) = tree.next_sibling(last).filter(|next| belongs(*next)) {
        last = next;
    }
    let end = tree.span(last).end;
    Some(Edits::one(close - 1..close, "").insert(end, ")"))
}

/// Returns the change that closes a list before its child `node`. Returns no change unless the node
/// starts a line and the list does not. This layout suggests that the node belongs to an enclosing
/// form.
pub(crate) fn closed_before(tree: &Tree<'_>, node: NodeId) -> Option<Edits> {
    let list = tree.parent(node)?;
    let before = tree.previous_sibling(node)?;
    let moves_out = tree.node(node).starts_line && !tree.node(list).starts_line;
    if !moves_out || tree.parent(list).is_none() {
        return None;
    }
    let end = tree.end(list);
    let edits = Edits::default().insert(tree.end(before), ")");
    // If a parenthesis is already missing, none is removed.
    match tree.source.get(end - 1..end) {
        _ if !tree.open.is_empty() => Some(edits),
        Some(")") => Some(edits.remove(end - 1..end)),
        _ => None,
    }
}

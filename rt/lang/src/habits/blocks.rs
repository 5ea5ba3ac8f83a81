//! Bindings, branches and loops in the syntax of other languages.

use crate::diagnose::fix::Edits;
use crate::habits::rewrite::{around, with_space};
use crate::syntax::tree::{NodeId, Tree};

/// Removes the parentheses around the variable and the range or collection of a loop, as in
/// `(for ($i 0 10) …)` and `(each ($x $arr) …)`. Rewrites `(let ($x 1) …)` and
/// `(let (($x 1) ($y 2)) …)` as a `do` with declarations. `is_called` returns true for the head of
/// a call or a form.
pub(crate) fn rewrite_bindings(
    tree: &Tree<'_>,
    list: NodeId,
    target: NodeId,
    is_called: &dyn Fn(&str) -> bool,
) -> Option<Edits> {
    if !tree.is_list(target) {
        return None;
    }
    let all = tree.items(list);
    let head = *all.first()?;
    let inner = tree.items(target);
    match tree.atom(head)? {
        name @ ("for" | "each") => {
            let words = inner.iter().map(|node| tree.text(*node));
            let words: Vec<&str> = words.filter(|word| !matches!(*word, "in" | "of")).collect();
            let count = if name == "for" { 3 } else { 2 };
            (words.len() == count).then(|| Edits::one(tree.span(target), words.join(" ")))
        }
        "let" => {
            let mut edits = Edits::one(tree.span(head), "do");
            let is_pair = |node: &NodeId| tree.is_list(*node) && tree.items(*node).len() >= 2;
            let bindings: Vec<NodeId> = if !inner.is_empty() && inner.iter().all(is_pair) {
                edits = edits.unwrap_list(tree.span(target));
                inner
            } else {
                // In `(let ($a 1) ($b 2) …)`, each list before the first other form binds one name.
                let is_binding = |node: &NodeId| is_binding(tree, *node, is_called);
                all.into_iter().skip(1).take_while(is_binding).collect()
            };
            for binding in &bindings {
                edits = edits.insert(tree.start(*binding) + 1, "let ");
            }
            (!bindings.is_empty()).then_some(edits)
        }
        _ => None,
    }
}

/// Returns true if a list consists of a name and its value and is not a call.
fn is_binding(tree: &Tree<'_>, list: NodeId, is_called: &dyn Fn(&str) -> bool) -> bool {
    tree.items(list).len() == 2 && tree.head(list).is_some_and(|name| !is_called(name))
}

/// Adds `then` and `else` to `(if C A B)`. If an `if` has a condition and at least three other
/// forms, none of which is an `else`, replaces `if` with `when`.
pub(crate) fn add_arms(tree: &Tree<'_>, list: NodeId) -> Option<Edits> {
    let all = tree.items(list);
    if all.iter().any(|node| tree.head(*node) == Some("then")) {
        return None;
    }
    let [head, _, arms @ ..] = all.as_slice() else { return None };
    let has_else = tree.head(*arms.last()?) == Some("else");
    Some(match arms {
        [then] | [then, _] if has_else == (arms.len() == 2) => around(tree, *then, "(then ", ")"),
        [then, other] => around(tree, *then, "(then ", ")").wrap(&tree.span(*other), "(else ", ")"),
        [first, .., before, _] if has_else => {
            Edits::default().wrap(&(tree.start(*first)..tree.end(*before)), "(then ", ")")
        }
        [_, _, _, ..] => Edits::one(tree.span(*head), "when"),
        _ => return None,
    })
}

/// Removes a word such as `in` or `of` between the variable of a loop and its range or collection.
/// A `for` over a collection becomes an `each`.
pub(crate) fn remove_loop_word(tree: &Tree<'_>, list: NodeId) -> Option<Edits> {
    let all = tree.items(list);
    let [head, _, word, over, ..] = all.as_slice() else { return None };
    if !tree.is_word(*word, &["in", "of", ":", "from", "="]) {
        return None;
    }
    let edits = Edits::one(with_space(tree, *word), "");
    let is_number = tree
        .atom(*over)
        .is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
    if tree.is_word(*head, &["for"]) && tree.is_word(*word, &["in", "of"]) && !is_number {
        return Some(edits.replace(tree.span(*head), "each"));
    }
    Some(edits)
}

/// Fixes a word that is not a value: removes `elif` from a `cond`, or adds the missing parentheses
/// around a comparison, as in `(when = $a 1 …)`.
pub(crate) fn fix_word(tree: &Tree<'_>, form: NodeId, node: NodeId) -> Option<Edits> {
    match (tree.head(form)?, tree.atom(node)?) {
        ("cond", "elif" | "elsif" | "elseif" | "elif:" | "case") => {
            Some(Edits::one(with_space(tree, node), ""))
        }
        ("when" | "unless" | "while" | "if", "=" | "!=" | "<" | "<=" | ">" | ">=") => {
            let all = tree.items(form);
            let at = all.iter().position(|item| *item == node)?;
            let end = tree.end(*all.get(at + 2)?);
            Some(Edits::default().wrap(&(tree.start(node)..end), "(", ")"))
        }
        _ => None,
    }
}

/// Moves an `else` into the preceding `if` or `when`, which is closed too early.
pub(crate) fn move_else(tree: &Tree<'_>, other: NodeId) -> Option<Edits> {
    let before = tree.previous_sibling(other)?;
    let all = tree.items(before);
    let head = *all.first()?;
    let has_else = tree.head(*all.last()?) == Some("else");
    let has_then = all.iter().any(|node| tree.head(*node) == Some("then"));
    let close = tree.end(before);
    let end = tree.end(other);
    let reopened = || Some(Edits::one(close.checked_sub(1)?..close, ""));
    match tree.head(before)? {
        "if" if has_then && !has_else => Some(reopened()?.insert(end, ")")),
        // `(if C A)` followed by `(else B)` means `(if C A B)`.
        "if" if all.len() == 3 && !has_else => match tree.items(other).as_slice() {
            [word, one] => {
                let to = tree.start(*one);
                let gap = tree.source.get(tree.end(*word)..to).filter(|gap| gap.contains('\n'));
                Some(reopened()?.replace(tree.start(other)..to, gap.unwrap_or("")))
            }
            [word, _, ..] => Some(reopened()?.replace(tree.span(*word), "do").insert(end, ")")),
            _ => None,
        },
        "when" => {
            let body = tree.start(*all.get(2)?);
            Some(Edits::one(tree.span(head), "if").insert(body, "(then ").insert(end, ")"))
        }
        _ => None,
    }
}

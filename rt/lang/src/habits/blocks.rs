//! Bindings, branches and loops in the syntax of other languages.

use crate::diagnose::fix::Change;
use crate::habits::rewrite::{around, remove};
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
) -> Option<Change> {
    if !tree.is_list(target) {
        return None;
    }
    let all = tree.items(list);
    let (head, inner) = (*all.first()?, tree.items(target));
    let span = tree.span(target);
    let name = tree.atom(head)?;
    if matches!(name, "for" | "each") {
        let words: Vec<&NodeId> =
            inner.iter().filter(|node| !matches!(tree.atom(**node), Some("in" | "of"))).collect();
        let text: Vec<&str> = words.iter().map(|node| tree.text(**node)).collect();
        return (text.len() == if name == "for" { 3 } else { 2 })
            .then(|| Change::edit(span, text.join(" ")));
    }
    if name != "let" {
        return None;
    }
    let pairs = inner.iter().all(|node| tree.is_list(*node) && tree.items(*node).len() >= 2);
    if pairs && !inner.is_empty() {
        let mut edits = vec![(tree.span(head), "do".to_owned())];
        edits.push((span.start..span.start + 1, String::new()));
        edits.extend(
            inner
                .iter()
                .map(|pair| tree.span(*pair).start + 1)
                .map(|at| (at..at, "let ".to_owned())),
        );
        edits.push((span.end.saturating_sub(1)..span.end, String::new()));
        return Some(Change::Edits(edits));
    }
    // In `(let ($a 1) ($b 2) …)`, each list before the first other form binds one name.
    let bindings = all.get(1..)?.iter().take_while(|node| is_binding(tree, **node, is_called));
    let mut edits = vec![(tree.span(head), "do".to_owned())];
    for binding in bindings {
        let at = tree.span(*binding).start + 1;
        edits.push((at..at, "let ".to_owned()));
    }
    (edits.len() > 1).then_some(Change::Edits(edits))
}

/// Returns true if a list consists of a name and its value and is not a call.
fn is_binding(tree: &Tree<'_>, list: NodeId, is_called: &dyn Fn(&str) -> bool) -> bool {
    let inner = tree.items(list);
    let [name, _] = inner.as_slice() else { return false };
    tree.is_list(list) && tree.atom(*name).is_some_and(|name| !is_called(name))
}

/// Adds `then` and `else` to `(if C A B)`. If an `if` has a condition and at least three other
/// forms, none of which is an `else`, replaces `if` with `when`.
pub(crate) fn add_arms(tree: &Tree<'_>, list: NodeId) -> Option<Change> {
    let all = tree.items(list);
    if all.iter().any(|node| tree.head(*node) == Some("then")) {
        return None;
    }
    let condition = all.get(1)?;
    let arms = all.get(2..)?;
    if tree.name(*condition).is_some() && tree.parent(list).is_none() && arms.is_empty() {
        return None;
    }
    let last = arms.last()?;
    let has_else = tree.head(*last) == Some("else");
    Some(match arms {
        [then, _] if has_else => Change::Edits(around(tree, *then, "(then ", ")")),
        [then] if !has_else => Change::Edits(around(tree, *then, "(then ", ")")),
        [then, other] => {
            let mut edits = around(tree, *then, "(then ", ")");
            edits.extend(around(tree, *other, "(else ", ")"));
            Change::Edits(edits)
        }
        [first, .., before, _] if has_else => {
            let (start, end) = (tree.span(*first).start, tree.span(*before).end);
            Change::edits([(start..start, "(then "), (end..end, ")")])
        }
        [_, _, _, ..] => Change::edit(tree.span(*all.first()?), "when"),
        _ => return None,
    })
}

/// Removes a word such as `in` or `of` between the variable of a loop and its range or collection.
/// A `for` over a collection becomes an `each`.
pub(crate) fn remove_loop_word(tree: &Tree<'_>, list: NodeId) -> Option<Change> {
    let all = tree.items(list);
    let [head, _, word, over, ..] = all.as_slice() else { return None };
    if !matches!(tree.atom(*word)?, "in" | "of" | ":" | "from" | "=") {
        return None;
    }
    let Change::Edits(mut edits) = remove(tree, *word) else { return None };
    let number = tree
        .atom(*over)
        .is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
    if tree.atom(*head) == Some("for") && matches!(tree.atom(*word)?, "in" | "of") && !number {
        edits.push((tree.span(*head), "each".to_owned()));
    }
    Some(Change::Edits(edits))
}

/// Fixes a word that is not a value: removes `elif` from a `cond`, or adds the missing parentheses
/// around a comparison, as in `(when = $a 1 …)`.
pub(crate) fn fix_word(tree: &Tree<'_>, form: NodeId, node: NodeId) -> Option<Change> {
    let text = tree.atom(node)?;
    if tree.head(form) == Some("cond")
        && matches!(text, "elif" | "elsif" | "elseif" | "elif:" | "case")
    {
        return Some(remove(tree, node));
    }
    let condition = matches!(tree.head(form)?, "when" | "unless" | "while" | "if");
    if condition && matches!(text, "=" | "!=" | "<" | "<=" | ">" | ">=") {
        let all = tree.items(form);
        let at = all.iter().position(|item| *item == node)?;
        let (start, end) = (tree.span(node).start, tree.span(*all.get(at + 2)?).end);
        return Some(Change::edits([(start..start, "("), (end..end, ")")]));
    }
    None
}

/// Moves an `else` into the preceding `if` or `when`, which is closed too early.
pub(crate) fn move_else(tree: &Tree<'_>, other: NodeId) -> Option<Change> {
    let before = crate::habits::rewrite::before(tree, other)?;
    let all = tree.items(before);
    let (close, end) = (tree.span(before).end, tree.span(other).end);
    let closed = (end..end, ")".to_owned());
    match tree.head(before)? {
        "if" if all.iter().any(|node| tree.head(*node) == Some("then"))
            && tree.head(*all.last()?) != Some("else") =>
        {
            Some(Change::Edits(vec![(close.checked_sub(1)?..close, String::new()), closed]))
        }
        // `(if C A)` followed by `(else B)` means `(if C A B)`.
        "if" if all.len() == 3 && tree.head(*all.last()?) != Some("else") => {
            let arm = tree.items(other);
            let mut edits = vec![(close.checked_sub(1)?..close, String::new())];
            match arm.as_slice() {
                [word, one] => {
                    let (from, to) = (tree.span(*word), tree.span(*one).start);
                    let gap = tree.source.get(from.end..to).filter(|gap| gap.contains('\n'));
                    let start = tree.span(other).start;
                    edits.push((start..to, gap.unwrap_or("").to_owned()));
                }
                [word, _, ..] => {
                    edits.push((tree.span(*word), "do".to_owned()));
                    edits.push(closed);
                }
                _ => return None,
            }
            Some(Change::Edits(edits))
        }
        "when" => {
            let body = tree.span(*all.get(2)?).start;
            let head = (tree.span(*all.first()?), "if".to_owned());
            Some(Change::Edits(vec![head, (body..body, "(then ".to_owned()), closed]))
        }
        _ => None,
    }
}

//! Lists whose head comes from another language: functions, operators and updates.

use super::head;
use crate::diagnose::fix::Change;
use crate::syntax::tree::{NodeId, Tree};
use crate::{Code, Signatures};

/// Rewrites a list whose head is neither an instruction nor a form, if the list has only one
/// possible meaning.
pub(crate) fn rewrite_list(tree: &Tree<'_>, list: NodeId, host: &Signatures) -> Option<Change> {
    let items = tree.items(list);
    let first = *items.first()?;
    let name = tree.atom(first)?;
    if let Some(change) = rewrite_infix(tree, &items) {
        return Some(change);
    }
    if let Some(change) = rewrite_update(tree, &items, name) {
        return Some(change);
    }
    if let Some(change) = rewrite_function(tree, list, &items, name) {
        return Some(change);
    }
    let operand = items.get(1).and_then(|node| tree.atom(*node));
    let is_code =
        operand.is_some_and(|text| Code::from_name(text).is_some() || text.starts_with('$'));
    let meant = match (name, items.len()) {
        // A program that exits without a code or with 0 has succeeded.
        ("exit", 1) => "ret",
        ("exit", 2) if operand == Some("0") => return Some(replace_list(tree, list, "(ret)")),
        ("throw", 2) if operand.is_some_and(|text| Code::from_name(text).is_some()) => "fail",
        ("exit" | "raise" | "error" | "abort" | "panic", 2) if is_code => "fail",
        ("let*" | "letrec", _) if items.get(1).is_some_and(|second| tree.is_list(*second)) => "let",
        _ => head(name, host)?,
    };
    Some(Change::edit(tree.span(first), meant))
}

/// Rewrites `(defun f (a b) …)` and `(define (f a b) …)` as a function declared with `fn`.
fn rewrite_function(tree: &Tree<'_>, list: NodeId, items: &[NodeId], name: &str) -> Option<Change> {
    if tree.parent(list).is_some() {
        return None;
    }
    let head = *items.first()?;
    let second = *items.get(1)?;
    let mut doc = None;
    let mut list_start = 0;
    let (own, params, end) = match name {
        "define" | "def" | "defun" | "defn" if tree.is_list(second) => {
            let inner = tree.items(second);
            let (own, params) = inner.split_first()?;
            (tree.atom(*own)?, params.to_vec(), tree.span(second).end)
        }
        "defun" | "defn" | "def" | "fn" | "function" => {
            let is_text = |node: &NodeId| tree.is_text(*node);
            doc = items.get(2).copied().filter(is_text);
            let params = *items
                .get(if doc.is_some() { 3 } else { 2 })
                .filter(|node| tree.is_list(**node))?;
            list_start = tree.span(params).start;
            (tree.atom(second)?, tree.items(params), tree.span(params).end)
        }
        _ => return None,
    };
    let dollar =
        |text: &str| if text.starts_with('$') { text.to_owned() } else { format!("${text}") };
    let mut names = Vec::new();
    for param in params {
        names.push(dollar(tree.atom(param)?));
    }
    let name = format!("fn {}", dollar(own));
    let params = format!("({})", names.join(" "));
    let start = tree.span(head).start;
    let Some(doc) = doc else {
        return Some(Change::edit(start..end, format!("{name} {params}")));
    };
    // A docstring becomes a comment, and the number of lines stays the same.
    let doc = tree.span(doc);
    let mut edits = vec![(start..tree.span(second).end, name), (list_start..end, params)];
    edits.push((doc.start..doc.start, "(; ".to_owned()));
    edits.push((doc.end..doc.end, " ;)".to_owned()));
    Some(Change::Edits(edits))
}

pub(crate) fn replace_list(tree: &Tree<'_>, list: NodeId, text: &str) -> Change {
    Change::edit(tree.span(list), text)
}

/// Rewrites `($a + $b)` with the operator first. If there are several operators, all must be the
/// same, and the operator must accept any number of operands.
pub(crate) fn rewrite_infix(tree: &Tree<'_>, items: &[NodeId]) -> Option<Change> {
    let operator = |node: &NodeId| match tree.atom(*node)? {
        "+" => Some("+"),
        "-" => Some("-"),
        "*" => Some("*"),
        "/" => Some("/"),
        "%" => Some("%"),
        "==" | "===" => Some("="),
        "!=" | "!==" => Some("!="),
        "<" => Some("<"),
        "<=" => Some("<="),
        ">" => Some(">"),
        ">=" => Some(">="),
        "&&" | "and" => Some("and"),
        "||" | "or" => Some("or"),
        _ => None,
    };
    let (first, rest) = items.split_first()?;
    if items.len() < 3 || items.len().is_multiple_of(2) || operator(first).is_some() {
        return None;
    }
    let used = rest.iter().step_by(2).map(operator).collect::<Option<Vec<_>>>()?;
    let one = *used.first()?;
    if !used.iter().all(|other| *other == one)
        || used.len() > 1 && !matches!(one, "+" | "*" | "and" | "or")
    {
        return None;
    }
    if rest.iter().skip(1).step_by(2).any(|operand| operator(operand).is_some()) {
        return None;
    }
    let start = tree.span(*first).start;
    let mut edits = vec![(start..start, format!("{one} "))];
    for node in rest.iter().step_by(2) {
        // The operator is removed along with the space after it.
        let span = tree.span(*node);
        let space =
            usize::from(tree.source.get(span.end..).is_some_and(|rest| rest.starts_with(' ')));
        edits.push((span.start..span.end + space, String::new()));
    }
    Some(Change::Edits(edits))
}

/// Rewrites an update such as `(inc $x)` or `(incf $x 2)` as a `set`.
fn rewrite_update(tree: &Tree<'_>, items: &[NodeId], name: &str) -> Option<Change> {
    let [first, target, rest @ ..] = items else { return None };
    let target_name = tree.name(*target)?;
    let operator = match (name, rest.len()) {
        ("inc" | "inc!" | "incf" | "++", 1) => "+",
        ("dec" | "dec!" | "decf" | "--", 1) => "-",
        ("inc" | "inc!" | "incf" | "++" | "1+", 0) => "+",
        ("dec" | "dec!" | "decf" | "--" | "1-", 0) => "-",
        _ => return None,
    };
    let head = tree.span(*first);
    let end = tree.span(*target).end;
    Some(match rest {
        [] => {
            Change::edit(head.start..end, format!("set {target_name} ({operator} {target_name} 1)"))
        }
        [value, ..] => {
            let value_end = tree.span(*value).end;
            Change::Edits(vec![
                (head.start..end, format!("set {target_name} ({operator} {target_name}")),
                (value_end..value_end, ")".to_owned()),
            ])
        }
    })
}

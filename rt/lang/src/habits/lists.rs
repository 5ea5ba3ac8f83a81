//! Lists whose head comes from another language: functions, operators and updates.

use super::head;
use super::operators::rewrite_infix;
use crate::diagnose::fix::Edits;
use crate::syntax::tree::{NodeId, Tree};
use crate::{Code, Signatures};

/// Rewrites a list whose head is neither an instruction nor a form, if the list has only one
/// possible meaning.
pub(crate) fn rewrite_list(tree: &Tree<'_>, list: NodeId, host: &Signatures) -> Option<Edits> {
    let items = tree.items(list);
    let first = *items.first()?;
    let name = tree.atom(first)?;
    let known = rewrite_infix(tree, &items)
        .or_else(|| rewrite_update(tree, &items, name))
        .or_else(|| rewrite_function(tree, list, &items, name));
    if known.is_some() {
        return known;
    }
    let operand = items.get(1).and_then(|node| tree.atom(*node));
    let is_named = operand.is_some_and(|text| Code::from_name(text).is_some());
    let is_code = is_named || operand.is_some_and(|text| text.starts_with('$'));
    let meant = match (name, items.len()) {
        // A program that exits without a code or with 0 has succeeded.
        ("exit", 1) => "ret",
        ("exit", 2) if operand == Some("0") => return Some(Edits::one(tree.span(list), "(ret)")),
        ("throw", 2) if is_named => "fail",
        ("exit" | "raise" | "error" | "abort" | "panic", 2) if is_code => "fail",
        ("let*" | "letrec", _) if items.get(1).is_some_and(|second| tree.is_list(*second)) => "let",
        _ => head(name, host)?,
    };
    Some(Edits::one(tree.span(first), meant))
}

/// Rewrites `(defun f (a b) …)` and `(define (f a b) …)` as a function declared with `fn`.
fn rewrite_function(tree: &Tree<'_>, list: NodeId, items: &[NodeId], name: &str) -> Option<Edits> {
    if tree.parent(list).is_some() {
        return None;
    }
    let start = tree.start(*items.first()?);
    let second = *items.get(1)?;
    let dollar = |node: NodeId| {
        let text = tree.atom(node)?;
        Some(format!("${}", text.strip_prefix('$').unwrap_or(text)))
    };
    let names = |params: &[NodeId]| {
        let names: Option<Vec<String>> = params.iter().map(|param| dollar(*param)).collect();
        Some(format!("({})", names?.join(" ")))
    };
    match name {
        "define" | "def" | "defun" | "defn" if tree.is_list(second) => {
            let inner = tree.items(second);
            let (own, params) = inner.split_first()?;
            let text = format!("fn {} {}", dollar(*own)?, names(params)?);
            Some(Edits::one(start..tree.end(second), text))
        }
        "defun" | "defn" | "def" | "fn" | "function" => {
            let doc = items.get(2).copied().filter(|node| tree.is_text(*node));
            let params = *items.get(if doc.is_some() { 3 } else { 2 })?;
            if !tree.is_list(params) {
                return None;
            }
            let name = format!("fn {}", dollar(second)?);
            let names = names(&tree.items(params))?;
            Some(match doc {
                // A docstring becomes a comment, and the number of lines stays the same.
                Some(doc) => Edits::one(start..tree.end(second), name)
                    .replace(tree.span(params), names)
                    .wrap(&tree.span(doc), "(; ", " ;)"),
                None => Edits::one(start..tree.end(params), format!("{name} {names}")),
            })
        }
        _ => None,
    }
}

/// Rewrites an update such as `(inc $x)` or `(incf $x 2)` as a `set`.
fn rewrite_update(tree: &Tree<'_>, items: &[NodeId], name: &str) -> Option<Edits> {
    let [first, target, rest @ ..] = items else { return None };
    let target_name = tree.name(*target)?;
    let operator = match (name, rest.len()) {
        ("inc" | "inc!" | "incf" | "++", 0 | 1) | ("1+", 0) => "+",
        ("dec" | "dec!" | "decf" | "--", 0 | 1) | ("1-", 0) => "-",
        _ => return None,
    };
    let span = tree.start(*first)..tree.end(*target);
    let set = format!("set {target_name} ({operator} {target_name}");
    Some(match rest {
        [value, ..] => Edits::one(span, set).insert(tree.end(*value), ")"),
        [] => Edits::one(span, format!("{set} 1)")),
    })
}

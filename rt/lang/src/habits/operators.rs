//! Operators between their operands, and other notations that do not start with a name.

use super::readings::Around;
use crate::diagnose::fix::Change;
use crate::syntax::tree::{NodeId, NodeKind};

/// Returns one change for each possible meaning of a list in the notation of another language: with
/// an operator between its operands, or with operands that its head does not accept in this
/// language.
pub(super) fn of_list(around: &Around<'_, '_>, list: NodeId, nodes: &[NodeId]) -> Vec<Change> {
    let found = choice(around, nodes)
        .or_else(|| membership(around, nodes))
        .or_else(|| method_of_text(around, nodes))
        .or_else(|| chained(around, nodes))
        .or_else(|| update_of_item(around, nodes));
    if let Some(text) = found {
        return vec![around.write(list, text)];
    }
    params_of_wat(around, nodes)
        .or_else(|| typed_params(around, list, nodes))
        .or_else(|| arrow(around, nodes))
        .into_iter()
        .chain(quoted_list(around, nodes))
        .collect()
}

/// Rewrites `(fn $f ($x) -> int …)`: removes the arrow and the result type.
fn arrow(around: &Around<'_, '_>, nodes: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let [head, _, _, sign, ty, body, ..] = nodes else { return None };
    let is_arrow = tree.atom(*head) == Some("fn") && tree.atom(*sign) == Some("->");
    let span = tree.span(*sign).start..tree.span(*body).start;
    let text = tree.source.get(tree.span(*ty).end..span.end)?;
    is_arrow.then(|| Change::edit(span, text))
}

/// Returns the source of a condition that consists of one operand, or of an operator between two
/// operands. Returns `None` for any other nodes.
fn condition(around: &Around<'_, '_>, nodes: &[NodeId]) -> Option<String> {
    match nodes {
        [one] => Some(around.text(*one).to_owned()),
        [a, operator, b] => {
            let operator = match around.tree.atom(*operator)? {
                "==" | "===" => "=",
                "!==" => "!=",
                other @ ("=" | "!=" | "<" | "<=" | ">" | ">=") => other,
                _ => return None,
            };
            Some(format!("({operator} {} {})", around.text(*a), around.text(*b)))
        }
        _ => None,
    }
}

/// Rewrites `(C ? A : B)` and `(A if C else B)` as `(if C A B)`.
fn choice(around: &Around<'_, '_>, nodes: &[NodeId]) -> Option<String> {
    let position = |word: &str| nodes.iter().position(|node| around.tree.atom(*node) == Some(word));
    let (test, a, b) = match (position("?"), position(":"), position("if"), position("else")) {
        (Some(mark), Some(colon), ..) if mark < colon => {
            (nodes.get(..mark)?, nodes.get(mark + 1..colon)?, nodes.get(colon + 1..)?)
        }
        (_, _, Some(word @ 1..), Some(other)) if word < other => {
            (nodes.get(word + 1..other)?, nodes.get(..word)?, nodes.get(other + 1..)?)
        }
        _ => return None,
    };
    let ([a], [b]) = (a, b) else { return None };
    let test = condition(around, test)?;
    Some(format!("(if {test} {} {})", around.text(*a), around.text(*b)))
}

/// Rewrites `(A in B)` as `(has B A)`, and `(A not in B)` as `(not (has B A))`.
fn membership(around: &Around<'_, '_>, nodes: &[NodeId]) -> Option<String> {
    let word = |node: &NodeId| around.tree.atom(*node);
    match nodes {
        [item, is_in, of] if word(is_in) == Some("in") => {
            Some(format!("(has {} {})", around.text(*of), around.text(*item)))
        }
        [item, not, is_in, of] if word(not) == Some("not") && word(is_in) == Some("in") => {
            Some(format!("(not (has {} {}))", around.text(*of), around.text(*item)))
        }
        _ => None,
    }
}

/// Rewrites `("{} items".format A)` as a `fmt`, and `(", ".join ARR)` as a call to `str.join`.
fn method_of_text(around: &Around<'_, '_>, nodes: &[NodeId]) -> Option<String> {
    let tree = around.tree;
    let [text, method, rest @ ..] = nodes else { return None };
    let adjacent = tree.span(*text).end == tree.span(*method).start;
    let is_text = tree.is_text(*text);
    if !adjacent || !is_text || rest.is_empty() {
        return None;
    }
    match tree.atom(*method)? {
        ".format" => Some(format!("(fmt {} {})", around.text(*text), around.all(rest))),
        ".join" => Some(format!("(str.join {} {})", around.all(rest), around.text(*text))),
        _ => None,
    }
}

/// Rewrites `(< A B C)` as `(and (< A B) (< B C))`. B must be an atom, because the result evaluates
/// it twice.
fn chained(around: &Around<'_, '_>, nodes: &[NodeId]) -> Option<String> {
    let [head, a, b, c] = nodes else { return None };
    let head = around.tree.atom(*head)?;
    let is_simple = around.tree.node(*b).kind == NodeKind::Atom;
    if !matches!(head, "=" | "==" | "<" | "<=" | ">" | ">=") || !is_simple {
        return None;
    }
    let head = if head == "==" { "=" } else { head };
    let (a, b, c) = (around.text(*a), around.text(*b), around.text(*c));
    Some(format!("(and ({head} {a} {b}) ({head} {b} {c}))"))
}

/// Rewrites `(+= (at X I) N)` as a `put`. Neither X nor I may be a list, because the result
/// evaluates both twice.
fn update_of_item(around: &Around<'_, '_>, nodes: &[NodeId]) -> Option<String> {
    let tree = around.tree;
    let [head, item, value] = nodes else { return None };
    let operator = match tree.atom(*head)? {
        "+=" => "+",
        "-=" => "-",
        "*=" => "*",
        _ => return None,
    };
    let inner = tree.items(*item);
    let [at, of, index] = inner.as_slice() else { return None };
    let is_simple = |node: NodeId| !tree.is_list(node);
    if tree.atom(*at) != Some("at") || !is_simple(*of) || !is_simple(*index) {
        return None;
    }
    let (of, index) = (around.text(*of), around.text(*index));
    Some(format!("(put {of} {index} ({operator} (at {of} {index}) {}))", around.text(*value)))
}

/// Rewrites `(fn $f (param $x i32) (result i32) …)`, which is WAT syntax, as `(fn $f ($x) …)`.
fn params_of_wat(around: &Around<'_, '_>, nodes: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let [head, _, rest @ ..] = nodes else { return None };
    if tree.atom(*head) != Some("fn") {
        return None;
    }
    let is_header = |node: &&NodeId| matches!(tree.head(**node), Some("param" | "result"));
    let header: Vec<NodeId> = rest.iter().take_while(is_header).copied().collect();
    let mut names = Vec::new();
    for part in header.iter().filter(|part| tree.head(**part) == Some("param")) {
        names.extend(tree.items(*part).into_iter().filter_map(|node| tree.name(node)));
    }
    let (first, last) = (tree.span(*header.first()?), tree.span(*header.last()?));
    Some(Change::edit(first.start..last.end, format!("({})", names.join(" "))))
}

/// Rewrites `(fn $f ($x: int $y: str) …)` as `(fn $f (($x int) ($y str)) …)`.
fn typed_params(around: &Around<'_, '_>, list: NodeId, nodes: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let outer = tree.parent(list)?;
    if tree.head(outer) != Some("fn") || tree.items(outer).get(2) != Some(&list) {
        return None;
    }
    let mut edits = Vec::new();
    for pair in nodes.windows(2) {
        let [name, ty] = pair else { continue };
        let name = tree.span(*name);
        let ty = tree.span(*ty);
        let Some(plain) = tree.source.get(name.clone())?.strip_suffix(':') else { continue };
        edits.push((name, format!("({plain}")));
        edits.push((ty.end..ty.end, ")".to_owned()));
    }
    (!edits.is_empty()).then_some(Change::Edits(edits))
}

/// Rewrites a quoted list, `'("a" "b")`, as `(arr "a" "b")`.
fn quoted_list(around: &Around<'_, '_>, nodes: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let pair = nodes.windows(2).find(|pair| {
        matches!(pair, [quote, list] if tree.atom(*quote) == Some("'")
            && tree.is_list(*list)
            && tree.text(*list).starts_with('('))
    })?;
    let [quote, list] = pair else { return None };
    let start = tree.span(*quote).start;
    Some(Change::edit(start..tree.span(*list).start + 1, "(arr "))
}

//! Operators between their operands, and other notations that do not start with a name.

use super::readings::Form;
use crate::diagnose::fix::Edits;
use crate::syntax::tree::{NodeId, NodeKind, Tree};

/// Returns the comparison that a word means in this or in another language, if any.
pub(super) fn comparison(word: &str) -> Option<&str> {
    match word {
        "==" | "===" => Some("="),
        "!==" => Some("!="),
        "=" | "!=" | "<" | "<=" | ">" | ">=" => Some(word),
        _ => None,
    }
}

/// Returns the logical operator that a word means in this or in another language, if any.
pub(super) fn logical(word: &str) -> Option<&'static str> {
    match word {
        "&&" | "and" => Some("and"),
        "||" | "or" => Some("or"),
        _ => None,
    }
}

/// Rewrites `($a + $b)` with the operator first. If there are several operators, all must be the
/// same, and the operator must accept any number of operands.
pub(super) fn rewrite_infix(tree: &Tree<'_>, items: &[NodeId]) -> Option<Edits> {
    let operator = |node: &NodeId| match tree.atom(*node)? {
        "=" => None,
        sign @ ("+" | "-" | "*" | "/" | "%") => Some(sign),
        word => comparison(word).or_else(|| logical(word)),
    };
    let (first, rest) = items.split_first()?;
    if items.len() < 3 || items.len().is_multiple_of(2) || operator(first).is_some() {
        return None;
    }
    let (pairs, []) = rest.as_chunks::<2>() else { return None };
    let used = pairs.iter().map(|[sign, _]| operator(sign)).collect::<Option<Vec<_>>>()?;
    let one = *used.first()?;
    let takes_many = matches!(one, "+" | "*" | "and" | "or");
    let is_mixed = used.iter().any(|other| *other != one);
    if is_mixed
        || used.len() > 1 && !takes_many
        || pairs.iter().any(|[_, operand]| operator(operand).is_some())
    {
        return None;
    }
    let mut edits = Edits::default().insert(tree.start(*first), format!("{one} "));
    for [sign, _] in pairs {
        // The operator is removed along with the space after it.
        let end = tree.end(*sign);
        let rest = tree.source.get(end..).unwrap_or("");
        edits.add(tree.start(*sign)..end + usize::from(rest.starts_with(' ')), "");
    }
    Some(edits)
}

/// Returns one change for each possible meaning of a list in the notation of another language: with
/// an operator between its operands, or with operands that its head does not accept in this
/// language.
pub(super) fn of_list(form: &Form<'_, '_>) -> Vec<Edits> {
    let found = choice(form)
        .or_else(|| membership(form))
        .or_else(|| method_of_text(form))
        .or_else(|| chained(form))
        .or_else(|| update_of_item(form));
    if let Some(text) = found {
        return vec![form.write(text)];
    }
    params_of_wat(form)
        .or_else(|| typed_params(form))
        .or_else(|| arrow(form))
        .into_iter()
        .chain(quoted_list(form))
        .collect()
}

/// Rewrites `(fn $f ($x) -> int …)`: removes the arrow and the result type.
fn arrow(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let [_, _, sign, ty, body, ..] = form.operands else { return None };
    let end = tree.start(*body);
    let text = tree.source.get(tree.end(*ty)..end)?;
    let is_arrow = form.name == "fn" && tree.is_word(*sign, &["->"]);
    is_arrow.then(|| Edits::one(tree.start(*sign)..end, text))
}

/// Returns the source of a condition that consists of one operand, or of an operator between two
/// operands. Returns `None` for any other nodes.
fn condition(tree: &Tree<'_>, nodes: &[NodeId]) -> Option<String> {
    match nodes {
        [one] => Some(tree.text(*one).to_owned()),
        [a, operator, b] => {
            let operator = comparison(tree.atom(*operator)?)?;
            Some(format!("({operator} {} {})", tree.text(*a), tree.text(*b)))
        }
        _ => None,
    }
}

/// Rewrites `(C ? A : B)` and `(A if C else B)` as `(if C A B)`.
fn choice(form: &Form<'_, '_>) -> Option<String> {
    let (tree, nodes) = (form.tree, form.nodes);
    let position = |word: &str| nodes.iter().position(|node| tree.atom(*node) == Some(word));
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
    Some(format!("(if {} {} {})", condition(tree, test)?, tree.text(*a), tree.text(*b)))
}

/// Rewrites `(A in B)` as `(has B A)`, and `(A not in B)` as `(not (has B A))`.
fn membership(form: &Form<'_, '_>) -> Option<String> {
    let words: Vec<&str> = form.nodes.iter().map(|node| form.tree.text(*node)).collect();
    match words.as_slice() {
        [item, "in", of] => Some(format!("(has {of} {item})")),
        [item, "not", "in", of] => Some(format!("(not (has {of} {item}))")),
        _ => None,
    }
}

/// Rewrites `("{} items".format A)` as a `fmt`, and `(", ".join ARR)` as a call to `str.join`.
fn method_of_text(form: &Form<'_, '_>) -> Option<String> {
    let tree = form.tree;
    let [method, rest @ ..] = form.operands else { return None };
    if !tree.touch(form.first, *method) || !tree.is_text(form.first) || rest.is_empty() {
        return None;
    }
    let text = tree.text(form.first);
    let rest = tree.all_text(rest);
    match tree.atom(*method)? {
        ".format" => Some(format!("(fmt {text} {rest})")),
        ".join" => Some(format!("(str.join {rest} {text})")),
        _ => None,
    }
}

/// Rewrites `(< A B C)` as `(and (< A B) (< B C))`. B must be an atom, because the result evaluates
/// it twice.
fn chained(form: &Form<'_, '_>) -> Option<String> {
    let [a, b, c] = form.operands else { return None };
    let is_simple = form.tree.node(*b).kind == NodeKind::Atom;
    let known = matches!(form.name, "=" | "==" | "<" | "<=" | ">" | ">=");
    let head = comparison(form.name).filter(|_| known && is_simple)?;
    let [a, b, c] = [a, b, c].map(|node| form.tree.text(*node));
    Some(format!("(and ({head} {a} {b}) ({head} {b} {c}))"))
}

/// Rewrites `(+= (at X I) N)` as a `put`. Neither X nor I may be a list, because the result
/// evaluates both twice.
fn update_of_item(form: &Form<'_, '_>) -> Option<String> {
    let tree = form.tree;
    let [item, value] = form.operands else { return None };
    let operator = form.name.strip_suffix('=').filter(|sign| matches!(*sign, "+" | "-" | "*"))?;
    let inner = tree.items(*item);
    let [at, of, index] = inner.as_slice() else { return None };
    if !tree.is_word(*at, &["at"]) || tree.is_list(*of) || tree.is_list(*index) {
        return None;
    }
    let [of, index, value] = [of, index, value].map(|node| tree.text(*node));
    Some(format!("(put {of} {index} ({operator} (at {of} {index}) {value}))"))
}

/// Rewrites `(fn $f (param $x i32) (result i32) …)`, which is WAT syntax, as `(fn $f ($x) …)`.
fn params_of_wat(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let ("fn", [_, rest @ ..]) = (form.name, form.operands) else { return None };
    let is_header = |node: &&NodeId| matches!(tree.head(**node), Some("param" | "result"));
    let header: Vec<NodeId> = rest.iter().take_while(is_header).copied().collect();
    let params = header.iter().filter(|part| tree.head(**part) == Some("param"));
    let params = params.flat_map(|part| tree.items(*part));
    let names: Vec<&str> = params.filter_map(|node| tree.name(node)).collect();
    let span = tree.start(*header.first()?)..tree.end(*header.last()?);
    Some(Edits::one(span, format!("({})", names.join(" "))))
}

/// Rewrites `(fn $f ($x: int $y: str) …)` as `(fn $f (($x int) ($y str)) …)`.
fn typed_params(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let outer = tree.parent(form.list)?;
    if tree.head(outer) != Some("fn") || tree.item(outer, 2) != Some(form.list) {
        return None;
    }
    let mut edits = Edits::default();
    for [name, ty] in form.nodes.array_windows::<2>() {
        let Some(plain) = tree.text(*name).strip_suffix(':') else { continue };
        edits = edits.replace(tree.span(*name), format!("({plain}")).insert(tree.end(*ty), ")");
    }
    edits.nonempty()
}

/// Rewrites a quoted list, `'("a" "b")`, as `(arr "a" "b")`.
fn quoted_list(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let is_quoted = |[quote, list]: &&[NodeId; 2]| {
        tree.is_word(*quote, &["'"]) && tree.is_list(*list) && tree.text(*list).starts_with('(')
    };
    let [quote, list] = form.nodes.array_windows::<2>().find(is_quoted)?;
    Some(Edits::one(tree.start(*quote)..tree.start(*list) + 1, "(arr "))
}

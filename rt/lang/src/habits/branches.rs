//! Branches and failure handlers in the syntax of other languages.

use super::readings::Around;
use crate::diagnose::fix::Change;
use crate::syntax::tree::{NodeId, NodeKind};

/// Words that introduce the clause that runs if no other clause matches.
const OTHERWISE: &[&str] = &[":else", "otherwise", "_", "default", ":default", "t", "#t", "else"];

/// Returns one change for each possible meaning of a form with branches, of a failure handler, or
/// of a function definition.
pub(super) fn of_list(around: &Around<'_, '_>, list: NodeId, nodes: &[NodeId]) -> Vec<Change> {
    let tree = around.tree;
    let Some((first, operands)) = nodes.split_first() else { return Vec::new() };
    let change = match tree.atom(*first) {
        Some("if") => chain(around, *first, operands),
        Some("cond") => clauses(around, operands),
        Some("case" | "switch" | "match") => cases(around, list, *first, operands),
        Some("try") => handled(around, list, *first, operands),
        Some("func" | "function") => function(around, *first, operands),
        Some("let" | "set" | "define" | "def") => named_function(around, list, operands),
        _ => None,
    };
    let change = change.or_else(|| condition(around, *first, operands));
    change.into_iter().collect()
}

/// A branch of an `if`: its condition (`None` for `else`) and its forms.
struct Branch {
    condition: Option<NodeId>,
    forms: Vec<NodeId>,
}

/// Rewrites an `if` as a `cond` if it contains `elif`, `else if` or other words between its
/// branches.
fn chain(around: &Around<'_, '_>, head: NodeId, operands: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let mut edits = vec![(tree.span(head), "cond".to_owned())];
    let mut branches: Vec<Branch> = Vec::new();
    let mut nodes = operands.iter().copied().peekable();
    branches.push(Branch { condition: Some(nodes.next()?), forms: Vec::new() });
    // Removes a word and the spaces after it.
    let drop_word = |edits: &mut Vec<_>, node: NodeId| {
        let span = tree.span(node);
        let rest = tree.source.get(span.end..).unwrap_or("");
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        edits.push((span.start..span.end + spaces, String::new()));
    };
    let mut is_chain = false;
    while let Some(node) = nodes.next() {
        let inner = tree.items(node);
        let word = tree.atom(node);
        let head = inner.first().and_then(|first| tree.atom(*first));
        match (word, head) {
            (Some("then"), _) => drop_word(&mut edits, node),
            (Some("elif" | "elsif" | "elseif" | "else-if"), _) => {
                drop_word(&mut edits, node);
                branches.push(Branch { condition: Some(nodes.next()?), forms: Vec::new() });
                is_chain = true;
            }
            (Some("else" | ":else"), _) => {
                drop_word(&mut edits, node);
                let is_if = nodes.peek().is_some_and(|next| tree.atom(*next) == Some("if"));
                let condition = if is_if {
                    drop_word(&mut edits, nodes.next()?);
                    Some(nodes.next()?)
                } else {
                    None
                };
                branches.push(Branch { condition, forms: Vec::new() });
                is_chain = true;
            }
            (_, Some("elif" | "elsif" | "elseif" | "else-if")) => {
                unwrap(around, &mut edits, node, &inner, 1)?;
                let forms = inner.get(2..)?.to_vec();
                branches.push(Branch { condition: Some(*inner.get(1)?), forms });
                is_chain = true;
            }
            (_, Some("else")) if inner.get(1).is_some_and(|n| tree.atom(*n) == Some("if")) => {
                unwrap(around, &mut edits, node, &inner, 2)?;
                let forms = inner.get(3..)?.to_vec();
                branches.push(Branch { condition: Some(*inner.get(2)?), forms });
                is_chain = true;
            }
            (_, Some("else")) => {
                unwrap(around, &mut edits, node, &inner, 1)?;
                branches.push(Branch { condition: None, forms: inner.get(1..)?.to_vec() });
            }
            _ => branches.last_mut()?.forms.push(node),
        }
    }
    if !is_chain {
        return None;
    }
    for (at, branch) in branches.iter().enumerate() {
        let is_last = at + 1 == branches.len();
        let start = tree.span(branch.condition.or(branch.forms.first().copied())?).start;
        let end = tree.span(*branch.forms.last()?).end;
        for form in &branch.forms {
            let inner = tree.items(*form);
            if tree.head(*form) == Some("then") {
                unwrap(around, &mut edits, *form, &inner, 1)?;
            }
        }
        let open = match branch.condition {
            Some(_) => "(",
            None if is_last => "(else ",
            None => return None,
        };
        edits.push((start..start, open.to_owned()));
        edits.push((end..end, ")".to_owned()));
    }
    Some(merged(edits))
}

/// Removes a list's parentheses and its first `words` words.
fn unwrap(
    around: &Around<'_, '_>,
    edits: &mut Vec<(std::ops::Range<usize>, String)>,
    list: NodeId,
    inner: &[NodeId],
    words: usize,
) -> Option<()> {
    let span = around.tree.span(list);
    let start = around.tree.span(*inner.get(words)?).start;
    let text = around.tree.source.get(span.start..start)?;
    // Line breaks after the words are kept.
    let lines = text.bytes().filter(|byte| *byte == b'\n').count();
    edits.push((span.start..start, "\n".repeat(lines)));
    edits.push((span.end - 1..span.end, String::new()));
    Some(())
}

/// Merges insertions at the same position, in the given order.
fn merged(mut edits: Vec<(std::ops::Range<usize>, String)>) -> Change {
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let mut all: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    for (span, text) in edits {
        match all.last_mut() {
            Some((last, before)) if *last == span && span.is_empty() => before.push_str(&text),
            _ => all.push((span, text)),
        }
    }
    Change::Edits(all)
}

/// Fixes the clauses of a `cond`: wraps alternating conditions and values in lists, and replaces
/// synonyms of `else`, such as `otherwise`, with `else`.
fn clauses(around: &Around<'_, '_>, operands: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let mut edits = Vec::new();
    let last = operands.last()?;
    let inner = tree.items(*last);
    let word = inner.first().filter(|first| {
        tree.atom(**first).is_some_and(|word| word != "else" && OTHERWISE.contains(&word))
    });
    if let Some(word) = word {
        return Some(Change::edit(tree.span(*word), "else"));
    }
    if !operands.len().is_multiple_of(2) {
        return None;
    }
    for pair in operands.chunks(2) {
        let [condition, form] = pair else { return None };
        let span = tree.span(*condition);
        let end = tree.span(*form).end;
        match tree.atom(*condition) {
            Some(word) if OTHERWISE.contains(&word) || word == "true" => {
                edits.push((span, "(else".to_owned()));
            }
            _ => edits.push((span.start..span.start, "(".to_owned())),
        }
        edits.push((end..end, ")".to_owned()));
    }
    Some(Change::Edits(edits))
}

/// Rewrites `(case X (V …) … (else …))` as a `cond` with comparisons.
fn cases(
    around: &Around<'_, '_>,
    list: NodeId,
    head: NodeId,
    operands: &[NodeId],
) -> Option<Change> {
    let tree = around.tree;
    let (value, clauses) = operands.split_first()?;
    // The value is repeated in the result, so it must be cheap and free of side effects.
    let is_plain = tree.node(*value).kind == NodeKind::Atom
        || matches!(tree.head(*value), Some("arg" | "len" | "at"));
    if !is_plain || clauses.is_empty() || tree.text(list).starts_with('[') {
        return None;
    }
    let text = around.text(*value);
    let start = tree.span(head).start;
    let mut edits = vec![(start..tree.span(*value).end, "cond".to_owned())];
    for clause in clauses {
        let inner = tree.items(*clause);
        let first = *inner.first()?;
        let span = tree.span(first);
        match (tree.atom(first), tree.node(first).kind) {
            (Some(word), _) if OTHERWISE.contains(&word) => {
                edits.push((span, "else".to_owned()));
            }
            (Some("case" | "when"), _) => {
                let case = tree.span(*inner.get(1)?);
                edits.push((span.start..case.start, format!("(= {text} ")));
                edits.push((case.end..case.end, ")".to_owned()));
            }
            (_, NodeKind::List) => return None,
            _ => {
                edits.push((span.start..span.start, format!("(= {text} ")));
                edits.push((span.end..span.end, ")".to_owned()));
            }
        }
    }
    Some(Change::Edits(edits))
}

/// Rewrites `(try BODY… (catch $e HANDLER…))` as a `default`, or as a `catch` and a check of the
/// error code.
fn handled(
    around: &Around<'_, '_>,
    list: NodeId,
    head: NodeId,
    operands: &[NodeId],
) -> Option<Change> {
    let tree = around.tree;
    let (handler, body) = operands.split_last()?;
    let inner = tree.items(*handler);
    let word = inner.first().and_then(|first| tree.atom(*first))?;
    if !matches!(word, "catch" | "except" | "rescue" | "handler") {
        return None;
    }
    if !around.is_statement(list) {
        let ([call], [.., value]) = (body, inner.as_slice()) else { return None };
        let is_plain = inner.len() <= 3 && tree.atom(*inner.get(1)?) != tree.atom(*value);
        let text = format!("(default {} {})", around.text(*call), around.text(*value));
        return (is_plain || inner.len() == 2).then(|| around.write(list, text));
    }
    let (first, last) = (body.first()?, body.last()?);
    // The handler's first words name the caught failure.
    let named = inner.iter().skip(1).take_while(|node| tree.atom(**node).is_some()).count();
    let name = match named {
        0 => "$failure".to_owned(),
        _ => inner.get(named).and_then(|node| around.variable(*node))?,
    };
    let actions = inner.get(named + 1..)?;
    let leaves_value = match tree.node(*last).kind {
        NodeKind::List => tree.head(*last).is_some_and(|head| {
            (around.forms)(head).unwrap_or_else(|| head.contains('.') && has_result(around, head))
        }),
        _ => true,
    };
    let names = if leaves_value { format!("$value {name}") } else { name.clone() };
    let start = tree.span(head).start;
    let (from, to) = (tree.span(*first).start, tree.span(*last).end);
    let open = match body.len() {
        1 => format!("do (catch {names} "),
        _ => format!("do (catch {names} (do "),
    };
    let lines = |from: usize, to: usize| {
        let text = tree.source.get(from..to).unwrap_or("");
        "\n".repeat(text.bytes().filter(|byte| *byte == b'\n').count())
    };
    let close = if body.len() == 1 { ")" } else { "))" };
    let span = tree.span(*handler);
    let broken = lines(start, from);
    let open = if broken.is_empty() { open.as_str() } else { open.trim_end() };
    let mut edits = vec![(start..from, format!("{open}{broken}"))];
    edits.push((to..to, close.to_owned()));
    match actions.first() {
        Some(action) => {
            let begin = tree.span(*action).start;
            let text = format!("(when (!= {name} 0) {}", lines(span.start, begin));
            edits.push((span.start..begin, text));
        }
        None => edits.push((span, String::new())),
    }
    Some(Change::Edits(edits))
}

fn has_result(around: &Around<'_, '_>, name: &str) -> bool {
    around.host.get(name.trim_end_matches(['?', '!'])).is_some_and(|f| !f.results.is_empty())
}

/// Rewrites `(func $f ($a $b) …)` as a function declared with `fn`.
fn function(around: &Around<'_, '_>, head: NodeId, operands: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let [name, params, _, ..] = operands else { return None };
    let is_word = |node: &NodeId| tree.name(*node).is_some() || tree.atom(head) == Some("function");
    let are_names = tree.is_list(*params)
        && tree.items(*params).iter().all(|node| is_word(node) && around.variable(*node).is_some());
    (tree.atom(*name).is_some() && are_names).then(|| Change::edit(tree.span(head), "fn"))
}

/// Rewrites `(let $f (lambda ($x) …))` as a function declared with `fn`.
fn named_function(around: &Around<'_, '_>, list: NodeId, operands: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let [name, value] = operands else { return None };
    let inner = tree.items(*value);
    let [head, params, _, ..] = inner.as_slice() else { return None };
    let is_lambda = matches!(tree.atom(*head)?, "fn" | "lambda" | "function" | "λ");
    if !is_lambda || tree.parent(list).is_some() {
        return None;
    }
    let name = around.variable(*name)?;
    let names: Option<Vec<String>> =
        tree.items(*params).iter().map(|param| around.variable(*param)).collect();
    let span = tree.span(list);
    let end = tree.span(*value).end;
    let text = format!("fn {name} ({})", names?.join(" "));
    Some(Change::Edits(vec![
        (span.start + 1..tree.span(*params).end, text),
        (end - 1..end, String::new()),
    ]))
}

/// Adds the missing parentheses around a condition of several words, as in `(when A && B …)`,
/// `(when not A …)` and `(while $i < 3 …)`.
fn condition(around: &Around<'_, '_>, head: NodeId, operands: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    if !matches!(tree.atom(head)?, "when" | "unless" | "while" | "until" | "if") {
        return None;
    }
    let wrap = |start: NodeId, sign: Option<NodeId>, end: NodeId, operator: &str| {
        let (from, to) = (tree.span(start).start, tree.span(end).end);
        let mut edits = vec![(from..from, format!("({operator} ")), (to..to, ")".to_owned())];
        edits.extend(sign.map(|sign| (tree.span(sign), String::new())));
        Change::Edits(edits)
    };
    match operands {
        [not, value, _, ..] if matches!(tree.atom(*not), Some("not" | "!")) => {
            let (from, to) = (tree.span(*not), tree.span(*value).end);
            Some(Change::edits([(from, "(not"), (to..to, ")")]))
        }
        [_, word, _, ..] if matches!(tree.atom(*word), Some("then" | "do" | ":")) => {
            Some(crate::habits::rewrite::remove(tree, *word))
        }
        [a, sign, b, _, ..] => {
            let operator = match tree.atom(*sign)? {
                "&&" | "and" => "and",
                "||" | "or" => "or",
                "==" | "===" | "=" => "=",
                "!=" | "!==" => "!=",
                sign @ ("<" | "<=" | ">" | ">=") => sign,
                _ => return None,
            };
            Some(wrap(*a, Some(*sign), *b, operator))
        }
        _ => None,
    }
}

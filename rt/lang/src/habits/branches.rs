//! Branches and failure handlers in the syntax of other languages.

use super::operators::{comparison, logical};
use super::readings::Form;
use super::rewrite::{around, with_space};
use crate::diagnose::fix::Edits;
use crate::syntax::tree::{NodeId, NodeKind, Tree};

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

/// Words that introduce the clause that runs if no other clause matches.
const OTHERWISE: &[&str] = &[":else", "otherwise", "_", "default", ":default", "t", "#t", "else"];

/// Returns the meaning of a form with branches, of a failure handler, or of a function definition.
pub(super) fn of_list(form: &Form<'_, '_>) -> Option<Edits> {
    let change = match form.name {
        "if" => chain(form),
        "cond" => clauses(form),
        "case" | "switch" | "match" => cases(form),
        "try" => handled(form),
        "func" | "function" => function(form),
        "let" | "set" | "define" | "def" => named_function(form),
        _ => None,
    };
    change.or_else(|| condition(form))
}

/// A branch of an `if`: its condition (`None` for `else`) and its forms.
struct Branch {
    condition: Option<NodeId>,
    forms: Vec<NodeId>,
}

/// Rewrites an `if` as a `cond` if it contains `elif`, `else if` or other words between its
/// branches.
fn chain(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let mut edits = form.replace_head("cond");
    let mut nodes = form.operands.iter().copied().peekable();
    let mut branches = vec![Branch { condition: Some(nodes.next()?), forms: Vec::new() }];
    let mut is_chain = false;
    while let Some(node) = nodes.next() {
        let inner = tree.items(node);
        let is_if = |next: Option<&NodeId>| next.is_some_and(|next| tree.is_word(*next, &["if"]));
        match (tree.atom(node), tree.head(node)) {
            (Some("then"), _) => edits.add(with_space(tree, node), ""),
            (Some(word @ ("elif" | "elsif" | "elseif" | "else-if" | "else" | ":else")), _) => {
                edits.add(with_space(tree, node), "");
                let mut has_condition = !word.ends_with("else");
                if !has_condition && is_if(nodes.peek()) {
                    edits.add(with_space(tree, nodes.next()?), "");
                    has_condition = true;
                }
                let condition = if has_condition { Some(nodes.next()?) } else { None };
                branches.push(Branch { condition, forms: Vec::new() });
                is_chain = true;
            }
            (_, Some(word @ ("elif" | "elsif" | "elseif" | "else-if" | "else"))) => {
                let is_else_if = word == "else" && is_if(inner.get(1));
                let has_condition = word != "else" || is_else_if;
                let words = 1 + usize::from(is_else_if);
                unwrap(form, &mut edits, node, words)?;
                let condition = inner.get(words).copied().filter(|_| has_condition);
                let forms = inner.get(words + usize::from(has_condition)..)?.to_vec();
                branches.push(Branch { condition, forms });
                is_chain |= has_condition;
            }
            _ => branches.last_mut()?.forms.push(node),
        }
    }
    if !is_chain {
        return None;
    }
    let (last, others) = branches.split_last()?;
    if others.iter().any(|branch| branch.condition.is_none()) {
        return None;
    }
    for branch in others.iter().chain([last]) {
        let start = tree.start(branch.condition.or(branch.forms.first().copied())?);
        let end = tree.end(*branch.forms.last()?);
        for then in branch.forms.iter().filter(|form| tree.head(**form) == Some("then")) {
            unwrap(form, &mut edits, *then, 1)?;
        }
        let open = if branch.condition.is_some() { "(" } else { "(else " };
        edits = edits.wrap(&(start..end), open, ")");
    }
    Some(edits.merged())
}

/// Removes a list's parentheses and its first `words` words. Line breaks after the words are kept.
fn unwrap(form: &Form<'_, '_>, edits: &mut Edits, list: NodeId, words: usize) -> Option<()> {
    let tree = form.tree;
    let head = tree.start(list)..tree.start(tree.item(list, words)?);
    edits.add(head.clone(), tree.line_breaks(head));
    edits.add(tree.end(list) - 1..tree.end(list), "");
    Some(())
}

/// Fixes the clauses of a `cond`: wraps alternating conditions and values in lists, and replaces
/// synonyms of `else`, such as `otherwise`, with `else`.
fn clauses(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let word = tree.item(*form.operands.last()?, 0);
    if let Some(word) = word.filter(|word| tree.is_word(*word, OTHERWISE))
        && tree.text(word) != "else"
    {
        return Some(Edits::one(tree.span(word), "else"));
    }
    let (pairs, []) = form.operands.as_chunks::<2>() else { return None };
    let mut edits = Edits::default();
    for [condition, value] in pairs {
        let is_else = tree.is_word(*condition, OTHERWISE) || tree.is_word(*condition, &["true"]);
        let start = tree.start(*condition);
        if is_else {
            edits.add(tree.span(*condition), "(else");
        } else {
            edits.add(start..start, "(");
        }
        edits = edits.insert(tree.end(*value), ")");
    }
    Some(edits)
}

/// Rewrites `(case X (V …) … (else …))` as a `cond` with comparisons.
fn cases(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let (value, clauses) = form.operands.split_first()?;
    // The value is repeated in the result, so it must be cheap and free of side effects.
    let is_plain = tree.node(*value).kind == NodeKind::Atom
        || matches!(tree.head(*value), Some("arg" | "len" | "at"));
    if !is_plain || clauses.is_empty() || tree.text(form.list).starts_with('[') {
        return None;
    }
    let test = format!("(= {} ", tree.text(*value));
    let mut edits = Edits::one(tree.start(form.first)..tree.end(*value), "cond");
    for clause in clauses {
        let inner = tree.items(*clause);
        let first = *inner.first()?;
        edits = if tree.is_word(first, OTHERWISE) {
            edits.replace(tree.span(first), "else")
        } else if tree.is_word(first, &["case", "when"]) {
            let case = *inner.get(1)?;
            edits.replace(tree.start(first)..tree.start(case), &test).insert(tree.end(case), ")")
        } else if tree.is_list(first) {
            return None;
        } else {
            edits.wrap(&tree.span(first), &test, ")")
        };
    }
    Some(edits)
}

/// Rewrites `(try BODY… (catch $e HANDLER…))` as a `default`, or as a `catch` and a check of the
/// error code.
fn handled(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let (handler, body) = form.operands.split_last()?;
    if !matches!(tree.head(*handler)?, "catch" | "except" | "rescue" | "handler") {
        return None;
    }
    let inner = tree.items(*handler);
    if !form.is_statement() {
        let ([call], [.., value]) = (body, inner.as_slice()) else { return None };
        let is_plain = inner.len() <= 3 && tree.atom(*inner.get(1)?) != tree.atom(*value);
        let text = format!("(default {} {})", tree.text(*call), tree.text(*value));
        return (is_plain || inner.len() == 2).then(|| form.write(text));
    }
    let (first, last) = (body.first()?, body.last()?);
    // The handler's first words name the caught failure.
    let named = inner.iter().skip(1).take_while(|node| tree.atom(**node).is_some()).count();
    let name = match named {
        0 => "$failure".to_owned(),
        _ => tree.variable(*inner.get(named)?)?,
    };
    let leaves_value = !tree.is_list(*last)
        || tree.head(*last).is_some_and(|head| {
            let has_result = || head.contains('.') && has_result(form, head);
            (form.around.forms)(head).unwrap_or_else(has_result)
        });
    let value = if leaves_value { "$value " } else { "" };
    let (block, close) = if body.len() == 1 { ("", ")") } else { ("(do ", "))") };
    let open = format!("do (catch {value}{name} {block}");
    let start = tree.start(form.first);
    let broken = tree.line_breaks(start..tree.start(*first));
    let open = if broken.is_empty() { open.as_str() } else { open.trim_end() };
    let edits = form.replace_to(*first, format!("{open}{broken}")).insert(tree.end(*last), close);
    let handler = tree.span(*handler);
    Some(match inner.get(named + 1) {
        Some(action) => {
            let before = handler.start..tree.start(*action);
            let lines = tree.line_breaks(before.clone());
            edits.replace(before, format!("(when (!= {name} 0) {lines}"))
        }
        None => edits.remove(handler),
    })
}

fn has_result(form: &Form<'_, '_>, name: &str) -> bool {
    form.around.host.get(name.trim_end_matches(['?', '!'])).is_some_and(|f| !f.results.is_empty())
}

/// Rewrites `(func $f ($a $b) …)` as a function declared with `fn`.
fn function(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let [name, params, _, ..] = form.operands else { return None };
    let is_word = |node: &NodeId| tree.name(*node).is_some() || form.name == "function";
    let is_name = |node: &NodeId| is_word(node) && tree.variable(*node).is_some();
    let are_names = tree.is_list(*params) && tree.items(*params).iter().all(is_name);
    (tree.atom(*name).is_some() && are_names).then(|| form.replace_head("fn"))
}

/// Rewrites `(let $f (lambda ($x) …))` as a function declared with `fn`.
fn named_function(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let [name, value] = form.operands else { return None };
    let inner = tree.items(*value);
    let [head, params, _, ..] = inner.as_slice() else { return None };
    let is_lambda = tree.is_word(*head, &["fn", "lambda", "function", "λ"]);
    if !is_lambda || tree.parent(form.list).is_some() {
        return None;
    }
    let name = tree.variable(*name)?;
    let names: Option<Vec<String>> =
        tree.items(*params).iter().map(|param| tree.variable(*param)).collect();
    let end = tree.end(*value);
    let text = format!("fn {name} ({})", names?.join(" "));
    Some(Edits::one(tree.start(form.list) + 1..tree.end(*params), text).remove(end - 1..end))
}

/// Adds the missing parentheses around a condition of several words, as in `(when A && B …)`,
/// `(when not A …)` and `(while $i < 3 …)`.
fn condition(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    if !matches!(form.name, "when" | "unless" | "while" | "until" | "if") {
        return None;
    }
    match form.operands {
        [not, value, _, ..] if tree.is_word(*not, &["not", "!"]) => {
            Some(Edits::one(tree.span(*not), "(not").insert(tree.end(*value), ")"))
        }
        [_, word, _, ..] if tree.is_word(*word, &["then", "do", ":"]) => {
            Some(Edits::one(with_space(tree, *word), ""))
        }
        [a, sign, b, _, ..] => {
            let word = tree.atom(*sign)?;
            let operator = comparison(word).or_else(|| logical(word))?;
            let edits = Edits::one(tree.span(*sign), "");
            Some(edits.wrap(&(tree.start(*a)..tree.end(*b)), format!("({operator} "), ")"))
        }
        _ => None,
    }
}

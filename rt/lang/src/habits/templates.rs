//! Forms from other languages that need more than a new name to become valid in this language.

use super::readings::Around;
use crate::Code;
use crate::diagnose::fix::Change;
use crate::syntax::tree::{NodeId, NodeKind};

/// Forms with a fixed number of operands: the name, the number of operands, and the replacement, in
/// which `{0}` to `{2}` are placeholders for the operands. If a name has several replacements, the
/// one that makes the program valid is used.
const TEMPLATES: &[(&str, usize, &str)] = &[
    ("zero?", 1, "(= {0} 0)"),
    ("pos?", 1, "(> {0} 0)"),
    ("positive?", 1, "(> {0} 0)"),
    ("neg?", 1, "(< {0} 0)"),
    ("negative?", 1, "(< {0} 0)"),
    ("even?", 1, "(= (% {0} 2) 0)"),
    ("odd?", 1, "(!= (% {0} 2) 0)"),
    ("empty?", 1, "(= (len {0}) 0)"),
    ("isEmpty", 1, "(= (len {0}) 0)"),
    ("is_empty", 1, "(= (len {0}) 0)"),
    ("null?", 1, "(= (len {0}) 0)"),
    ("not-empty", 1, "(> (len {0}) 0)"),
    ("not-empty?", 1, "(> (len {0}) 0)"),
    ("inc", 1, "(+ {0} 1)"),
    ("1+", 1, "(+ {0} 1)"),
    ("add1", 1, "(+ {0} 1)"),
    ("dec", 1, "(- {0} 1)"),
    ("1-", 1, "(- {0} 1)"),
    ("sub1", 1, "(- {0} 1)"),
    ("neg", 1, "(- {0})"),
    ("negate", 1, "(- {0})"),
    ("get", 2, "(at {0} {1})"),
    ("get", 3, "(default (at {0} {1}) {2})"),
    ("nth", 2, "(at {0} {1})"),
    ("nth", 2, "(at {1} {0})"),
    ("gethash", 2, "(at {1} {0})"),
    ("aref", 2, "(at {0} {1})"),
    ("elt", 2, "(at {0} {1})"),
    ("vector-ref", 2, "(at {0} {1})"),
    ("list-ref", 2, "(at {0} {1})"),
    ("hash-ref", 2, "(at {0} {1})"),
    ("hash-ref", 3, "(default (at {0} {1}) {2})"),
    ("first", 1, "(at {0} 0)"),
    ("car", 1, "(at {0} 0)"),
    ("second", 1, "(at {0} 1)"),
    ("third", 1, "(at {0} 2)"),
    ("conj", 2, "(push {0} {1})"),
    ("conj!", 2, "(push {0} {1})"),
    ("append", 2, "(push {0} {1})"),
    ("append!", 2, "(push {0} {1})"),
    ("push!", 2, "(push {0} {1})"),
    ("assoc", 3, "(put {0} {1} {2})"),
    ("assoc!", 3, "(put {0} {1} {2})"),
    ("hash-set!", 3, "(put {0} {1} {2})"),
    ("vector-set!", 3, "(put {0} {1} {2})"),
    ("aset", 3, "(put {0} {1} {2})"),
    ("contains?", 2, "(has {0} {1})"),
    ("contains", 2, "(has {0} {1})"),
    ("includes", 2, "(has {0} {1})"),
    ("includes?", 2, "(has {0} {1})"),
    ("has-key?", 2, "(has {0} {1})"),
    ("has_key", 2, "(has {0} {1})"),
    ("contains-key?", 2, "(has {0} {1})"),
    ("member", 2, "(has {1} {0})"),
    ("member?", 2, "(has {1} {0})"),
    ("in", 2, "(has {1} {0})"),
    ("string", 1, "(fmt \"{}\" {0})"),
    ("to-string", 1, "(fmt \"{}\" {0})"),
    ("toString", 1, "(fmt \"{}\" {0})"),
    ("chr", 1, "(str.from_code {0})"),
    ("ord", 1, "(str.code {0} 0)"),
    ("kv.get", 2, "(default (kv.get {0}) {1})"),
    ("map.get", 3, "(at {0} {1} {2})"),
    ("json.get", 3, "(default (json.get {0} {1}) {2})"),
    ("str.find", 2, "(str.find {0} {1} 0)"),
    ("str.index_of", 2, "(str.find {0} {1} 0)"),
    ("str.indexOf", 2, "(str.find {0} {1} 0)"),
    ("str.split", 1, "(str.words {0})"),
    ("?", 3, "(if {0} {1} {2})"),
    ("~", 1, "(^ {0} -1)"),
    ("**", 2, "(math.pow {0} {1})"),
    ("pow", 2, "(math.pow {0} {1})"),
    ("expt", 2, "(math.pow {0} {1})"),
    ("//", 2, "(/ {0} {1})"),
    ("sorted", 1, "(arr.sort {0})"),
    ("sort", 1, "(arr.sort {0})"),
    ("reversed", 1, "(arr.reverse {0})"),
    ("*", 2, "(str.repeat {0} {1})"),
    ("fail", 1, "(fail ETRFM {0})"),
    ("throw", 1, "(fail ETRFM {0})"),
    ("raise", 1, "(fail ETRFM {0})"),
    ("error", 1, "(fail ETRFM {0})"),
    ("panic", 1, "(fail ETRFM {0})"),
    ("abort", 1, "(fail ETRFM {0})"),
    ("die", 1, "(fail ETRFM {0})"),
];

/// Functions in other languages that return a modified collection, each with the function in this
/// language that modifies the collection in place.
const IN_PLACE: &[(&str, &str)] = &[
    ("conj", "push"),
    ("append", "push"),
    ("push", "push"),
    ("arr.push", "push"),
    ("assoc", "put"),
    ("put", "put"),
    ("map.set", "put"),
    ("arr.set", "put"),
];

/// Names from other languages for functions that print several values, separated by spaces.
const PRINT: &[&str] =
    &["print", "println", "console.log", "console.error", "echo", "puts", "display", "say"];

/// Returns one change for each possible meaning of a list whose head is a name from another
/// language.
pub(super) fn of_list(around: &Around<'_, '_>, list: NodeId, nodes: &[NodeId]) -> Vec<Change> {
    let tree = around.tree;
    let Some((first, operands)) = nodes.split_first() else { return Vec::new() };
    let Some(name) = tree.atom(*first) else { return Vec::new() };
    if let Some(change) = import(around, list, name)
        .or_else(|| in_place(around, list, name, operands))
        .or_else(|| output(around, *first, name, operands))
        .or_else(|| threaded(around, list, name, operands))
        .or_else(|| joined(around, list, name, operands))
        .or_else(|| failed(around, name, operands))
        .or_else(|| (name == "catch").then(|| caught(around, list, operands))?)
    {
        return vec![change];
    }
    // Only a literal shows that a string is to be repeated: a variable may hold a number.
    if name == "*" && !operands.first().is_some_and(|first| is_word(around, *first)) {
        return Vec::new();
    }
    let fitting =
        TEMPLATES.iter().filter(|(known, count, _)| *known == name && *count == operands.len());
    let mut all: Vec<Change> = fitting
        .map(|(_, _, template)| around.write(list, filled(around, template, operands)))
        .collect();
    if let ("last", [of]) = (name, operands)
        && tree.name(*of).is_some()
    {
        let text = around.text(*of);
        all.push(around.write(list, format!("(at {text} (- (len {text}) 1))")));
    }
    all
}

/// Returns true if a node is a string literal that is not a number.
fn is_word(around: &Around<'_, '_>, node: NodeId) -> bool {
    let text = around.text(node).trim_matches(['r', '"']).trim();
    around.tree.is_text(node) && crate::syntax::literal::number_type(text).is_none()
}

/// Replaces the placeholders of a template with the operands. Line breaks between consecutive
/// operands are kept.
fn filled(around: &Around<'_, '_>, template: &str, operands: &[NodeId]) -> String {
    let mut text = template.to_owned();
    for (at, pair) in operands.windows(2).enumerate() {
        let [before, after] = pair else { continue };
        let from = format!("{{{at}}} {{{}}}", at + 1);
        let gap = around.gap(*before, *after);
        text = text.replace(&from, &format!("{{{at}}}{gap}{{{}}}", at + 1));
    }
    let holes = operands.iter().enumerate().rev();
    // The last operand is filled in first. Its text may contain braces, which must not be mistaken
    // for placeholders.
    for (at, operand) in holes {
        let hole = format!("{{{at}}}");
        if let Some(found) = text.find(&hole) {
            text.replace_range(found..found + hole.len(), around.text(*operand));
        }
    }
    text
}

/// Turns an import into a comment, because functions in this language are called by their full
/// names.
fn import(around: &Around<'_, '_>, list: NodeId, name: &str) -> Option<Change> {
    let outside = around.tree.parent(list).is_none();
    let is_import = matches!(name, "import" | "require" | "use" | "using" | "include" | "ns");
    let plain = around.tree.items(list).iter().skip(1).all(|node| !around.tree.is_list(*node));
    let edits = || crate::habits::rewrite::around(around.tree, list, "(; ", " ;)");
    (is_import && outside && plain).then(|| Change::Edits(edits()))
}

/// Rewrites `(set $a (conj $a V))` as a call that changes `$a` in place.
fn in_place(
    around: &Around<'_, '_>,
    list: NodeId,
    name: &str,
    operands: &[NodeId],
) -> Option<Change> {
    let tree = around.tree;
    let ("set" | "let", [target, value]) = (name, operands) else { return None };
    let inner = tree.items(*value);
    let head = tree.atom(*inner.first()?)?;
    let of = tree.name(*inner.get(1)?)?;
    let (_, meant) = IN_PLACE.iter().find(|(known, _)| *known == head)?;
    if tree.name(*target)? != of {
        return None;
    }
    let outer = tree.span(list);
    let value = tree.span(*value);
    let first = tree.span(*inner.first()?);
    Some(Change::Edits(vec![
        (outer.start + 1..first.end, (*meant).to_owned()),
        (value.end - 1..value.end, String::new()),
    ]))
}

/// Rewrites forms that output several values, such as `(print A B)`, `(out "a" $b)` and
/// `(out "a" + $b)`, as an `out` with a template or with one joined string. Replaces `printf` with
/// `out` or `fmt`.
fn output(
    around: &Around<'_, '_>,
    first: NodeId,
    name: &str,
    operands: &[NodeId],
) -> Option<Change> {
    let tree = around.tree;
    let start = tree.span(first).start;
    let last = operands.last()?;
    let end = tree.span(*last).end;
    let text = around.text(*operands.first()?);
    let is_text = tree.node(*operands.first()?).kind == NodeKind::Text;
    let is_template = is_text && (text.contains("{}") || text.contains("{i}"));
    let is_percent = is_text && ["%s", "%d", "%i", "%f", "%."].iter().any(|p| text.contains(p));
    // The braces may be placeholders of another language, which must not be output as they are.
    let has_braces = is_text && text.contains('{');
    if name == "format"
        && let [to, template, ..] = operands
        && tree.node(*template).kind == NodeKind::Text
    {
        let from = tree.span(*template).start;
        return match tree.atom(*to)? {
            "nil" | "#f" => Some(Change::edit(start..from, "fmt ")),
            "t" | "#t" => Some(Change::edit(start..from, "out ")),
            _ => None,
        };
    }
    let known = PRINT.contains(&name);
    let format = matches!(name, "printf" | "print-format" | "println!" | "print!");
    if format && is_text && !around.is_statement(tree.parent(first)?) {
        return Some(Change::edit(tree.span(first), "fmt"));
    }
    if format && is_text || known && operands.len() > 1 && (is_template || is_percent) {
        return Some(Change::edit(tree.span(first), "out"));
    }
    // The operator is a `%` between a template and its value.
    if matches!(name, "out" | "ret")
        && let [template, sign, value] = operands
        && is_percent
        && tree.atom(*sign) == Some("%")
    {
        let (from, to) = (tree.span(*template).end, tree.span(*value).start);
        return Some(Change::edit(from..to, " "));
    }
    let out_or_known = known || matches!(name, "out" | "ret");
    if out_or_known && operands.len() > 1 && !has_braces && !is_percent {
        let signs = operands.iter().skip(1).step_by(2);
        let mut signs = signs.map(|node| tree.atom(*node));
        // Adjacent operands without a space are a single expression: `$m.get("a")`.
        let touch =
            |pair: &[NodeId]| matches!(pair, [a, b] if tree.span(*a).end == tree.span(*b).start);
        if !signs.any(|sign| matches!(sign, Some("+" | "." | "&" | "," | "%")))
            && !operands.windows(2).any(touch)
        {
            let holes = vec!["{}"; operands.len()].join(" ");
            let written = if known { "out" } else { name };
            let from = operands.first()?;
            let from = tree.span(*from).start;
            let text = format!("{written} \"{holes}\" ");
            return Some(Change::edit(start..from, text));
        }
    }
    let between = operands.iter().skip(1).step_by(2);
    let is_sum = operands.len() > 2
        && operands.len() % 2 == 1
        && between.clone().all(|node| matches!(tree.atom(*node), Some("+" | "." | "&" | ",")));
    if (known || name == "out" || name == "ret" || name == "return") && is_sum {
        let written = if known { "out" } else { name };
        let mut edits = vec![
            (start..tree.span(*operands.first()?).start, format!("{written} (str.cat ")),
            (end..end, ")".to_owned()),
        ];
        edits.extend(between.map(|node| (tree.span(*node), String::new())));
        return Some(Change::Edits(edits));
    }
    None
}

/// Rewrites `(-> X (f A) (g))` as nested calls.
fn threaded(
    around: &Around<'_, '_>,
    list: NodeId,
    name: &str,
    operands: &[NodeId],
) -> Option<Change> {
    let tree = around.tree;
    let last = match name {
        "->" => false,
        "->>" => true,
        _ => return None,
    };
    let (value, steps) = operands.split_first()?;
    let mut text = around.text(*value).to_owned();
    for step in steps {
        if !tree.is_list(*step) {
            text = format!("({} {text})", around.text(*step));
            continue;
        }
        let nodes = tree.items(*step);
        let (head, rest) = nodes.split_first()?;
        let head = around.text(*head);
        let rest = around.all(rest);
        text = match (rest, last) {
            ("", _) => format!("({head} {text})"),
            (_, false) => format!("({head} {text} {rest})"),
            (_, true) => format!("({head} {rest} {text})"),
        };
    }
    Some(around.write(list, text))
}

/// Rewrites `(string A B …)` as a call to `str.cat`.
fn joined(
    around: &Around<'_, '_>,
    list: NodeId,
    name: &str,
    operands: &[NodeId],
) -> Option<Change> {
    if !matches!(name, "string" | "..") || operands.len() < 2 {
        return None;
    }
    let head = around.tree.span(*around.tree.items(list).first()?);
    Some(Change::edit(head, "str.cat"))
}

/// Moves the names of a `catch` before its call, or moves a handler that follows the call into a
/// `when` after the `catch`.
fn caught(around: &Around<'_, '_>, list: NodeId, operands: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let is_call = |node: &NodeId| tree.is_list(*node);
    let at = operands.iter().position(is_call)?;
    let (names, rest) = operands.split_at(at);
    let (call, rest) = rest.split_first()?;
    let start = tree.span(list).start + 1;
    if names.is_empty() && rest.iter().all(|node| tree.name(*node).is_some()) {
        let names = if rest.is_empty() { "$value $failure" } else { around.all(rest) };
        return Some(around.write(list, format!("(catch {names} {})", around.text(*call))));
    }
    let end = tree.span(*call).end;
    let code = match names {
        [code] | [_, code] | [_, code, _] => tree.name(*code)?,
        _ => return None,
    };
    let (first, last) = (rest.first()?, rest.last()?);
    let (from, to) = (tree.span(*first).start, tree.span(*last).end);
    let gap = around.gap(*call, *first);
    Some(Change::Edits(vec![
        (start..start, "do (".to_owned()),
        (end..from, format!("){gap}(when (!= {code} 0) ")),
        (to..to, ")".to_owned()),
    ]))
}

/// Swaps the reason and the error code in a misordered `fail` form.
fn failed(around: &Around<'_, '_>, name: &str, operands: &[NodeId]) -> Option<Change> {
    let [reason, code] = operands else { return None };
    let is_code = around.tree.atom(*code).is_some_and(|code| Code::meant(code).is_some());
    let is_fail = matches!(name, "fail" | "throw" | "raise" | "error");
    (is_fail && is_code).then(|| crate::habits::rewrite::swap(around.tree, *reason, *code))
}

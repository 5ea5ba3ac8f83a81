//! Forms from other languages that need more than a new name to become valid in this language.

use super::readings::Form;
use super::rewrite;
use crate::Code;
use crate::diagnose::fix::Edits;
use crate::syntax::literal;
use crate::syntax::tree::{NodeId, NodeKind, Tree};

/// Forms with a fixed number of operands: their names, the number of operands, and the replacement,
/// in which `{0}` to `{2}` are placeholders for the operands. If a name has several replacements, the
/// one that makes the program valid is used.
const TEMPLATES: &[(&[&str], usize, &str)] = &[
    (&["zero?"], 1, "(= {0} 0)"),
    (&["pos?", "positive?"], 1, "(> {0} 0)"),
    (&["neg?", "negative?"], 1, "(< {0} 0)"),
    (&["even?"], 1, "(= (% {0} 2) 0)"),
    (&["odd?"], 1, "(!= (% {0} 2) 0)"),
    (&["empty?", "isEmpty", "is_empty", "null?"], 1, "(= (len {0}) 0)"),
    (&["not-empty", "not-empty?"], 1, "(> (len {0}) 0)"),
    (&["inc", "1+", "add1"], 1, "(+ {0} 1)"),
    (&["dec", "1-", "sub1"], 1, "(- {0} 1)"),
    (&["neg", "negate"], 1, "(- {0})"),
    (&["nth", "aref", "elt", "vector-ref", "list-ref", "hash-ref"], 2, "(at {0} {1})"),
    (&["hash-ref"], 3, "(default (at {0} {1}) {2})"),
    (&["nth", "gethash"], 2, "(at {1} {0})"),
    (&["car"], 1, "(first {0})"),
    (&["second"], 1, "(at {0} 1)"),
    (&["third"], 1, "(at {0} 2)"),
    (&["conj", "conj!", "append", "append!", "push!"], 2, "(push {0} {1})"),
    (&["assoc", "assoc!", "hash-set!", "vector-set!", "aset"], 3, "(put {0} {1} {2})"),
    (
        &["contains?", "contains", "includes", "includes?", "has-key?", "has_key", "contains-key?"],
        2,
        "(has {0} {1})",
    ),
    (&["member", "member?", "in"], 2, "(has {1} {0})"),
    (&["string", "to-string", "toString"], 1, "(fmt \"{}\" {0})"),
    (&["chr"], 1, "(str.from_code {0})"),
    (&["ord"], 1, "(str.code {0} 0)"),
    (&["kv.get"], 2, "(default (kv.get {0}) {1})"),
    (&["map.get"], 3, "(at {0} {1} {2})"),
    (&["json.get"], 3, "(default (json.get {0} {1}) {2})"),
    (&["str.find", "str.index_of", "str.indexOf"], 2, "(str.find {0} {1} 0)"),
    (&["str.split"], 1, "(str.words {0})"),
    (&["?"], 3, "(if {0} {1} {2})"),
    (&["~"], 1, "(^ {0} -1)"),
    (&["**", "expt"], 2, "(math.pow {0} {1})"),
    (&["//"], 2, "(/ {0} {1})"),
    (&["sorted"], 1, "(sort {0})"),
    (&["reversed"], 1, "(reverse {0})"),
    (&["*"], 2, "(str.repeat {0} {1})"),
    (&["fail", "throw", "raise", "error", "panic", "abort", "die"], 1, "(fail ETRFM {0})"),
];

/// The forms that modify a collection in place, each with the functions in other languages that
/// return a modified collection instead.
const IN_PLACE: &[(&str, &[&str])] = &[
    ("push", &["conj", "append", "push", "arr.push"]),
    ("put", &["assoc", "put", "map.set", "arr.set"]),
];

/// Names from other languages for functions that print several values, separated by spaces.
const PRINT: &[&str] =
    &["print", "println", "console.log", "console.error", "echo", "puts", "display", "say"];

/// Returns one change for each possible meaning of a list whose head is a name from another
/// language.
pub(super) fn of_list(form: &Form<'_, '_>) -> Vec<Edits> {
    let (tree, operands) = (form.tree, form.operands);
    let only = import(form)
        .or_else(|| in_place(form))
        .or_else(|| output(form))
        .or_else(|| threaded(form))
        .or_else(|| joined(form))
        .or_else(|| failed(form))
        .or_else(|| caught(form));
    if let Some(change) = only {
        return vec![change];
    }
    // Only a literal shows that a string is to be repeated: a variable may hold a number.
    if form.name == "*" && !operands.first().is_some_and(|first| is_word(tree, *first)) {
        return Vec::new();
    }
    let fitting = TEMPLATES
        .iter()
        .filter(|(names, count, _)| names.contains(&form.name) && *count == operands.len());
    let texts = fitting.map(|(_, _, template)| filled(form, template));
    let last = match (form.name, operands) {
        ("last", [of]) => tree.name(*of).map(|of| format!("(at {of} (- (len {of}) 1))")),
        _ => None,
    };
    texts.chain(last).map(|text| form.write(text)).collect()
}

/// Returns true if a node is a string literal that is not a number.
fn is_word(tree: &Tree<'_>, node: NodeId) -> bool {
    let text = tree.text(node).trim_matches(['r', '"']).trim();
    tree.is_text(node) && literal::number_type(text).is_none()
}

/// Replaces the placeholders of a template with the operands. Line breaks between consecutive
/// operands are kept.
fn filled(form: &Form<'_, '_>, template: &str) -> String {
    let tree = form.tree;
    let mut text = template.to_owned();
    for (at, [before, after]) in form.operands.array_windows().enumerate() {
        let next = at + 1;
        let gap = tree.gap(*before, *after);
        text = text.replace(&format!("{{{at}}} {{{next}}}"), &format!("{{{at}}}{gap}{{{next}}}"));
    }
    // The last operand is filled in first. Its text may contain braces, which must not be mistaken
    // for placeholders.
    for (at, operand) in form.operands.iter().enumerate().rev() {
        text = text.replacen(&format!("{{{at}}}"), tree.text(*operand), 1);
    }
    text
}

/// Turns an import into a comment, because functions in this language are called by their full
/// names.
fn import(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let is_import = matches!(form.name, "import" | "require" | "use" | "using" | "include" | "ns");
    let is_plain = form.operands.iter().all(|node| !tree.is_list(*node));
    (is_import && is_plain && tree.parent(form.list).is_none())
        .then(|| rewrite::around(tree, form.list, "(; ", " ;)"))
}

/// Rewrites `(set $a (conj $a V))` as a call that changes `$a` in place.
fn in_place(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let ("set" | "let", [target, value]) = (form.name, form.operands) else { return None };
    let inner = tree.items(*value);
    let [first, of, ..] = inner.as_slice() else { return None };
    let head = tree.atom(*first)?;
    let (meant, _) = IN_PLACE.iter().find(|(_, others)| others.contains(&head))?;
    if tree.name(*target)? != tree.name(*of)? {
        return None;
    }
    let end = tree.end(*value);
    Some(Edits::one(tree.start(form.list) + 1..tree.end(*first), *meant).remove(end - 1..end))
}

/// Rewrites forms that output several values, such as `(print A B)`, `(out "a" $b)` and
/// `(out "a" + $b)`, as an `out` with a template or with one joined string. Replaces `printf` with
/// `out` or `fmt`.
fn output(form: &Form<'_, '_>) -> Option<Edits> {
    let (tree, name, operands) = (form.tree, form.name, form.operands);
    let first = *operands.first()?;
    let text = tree.text(first);
    let is_text = tree.node(first).kind == NodeKind::Text;
    let is_template = is_text && (text.contains("{}") || text.contains("{i}"));
    let is_percent = is_text && ["%s", "%d", "%i", "%f", "%."].iter().any(|p| text.contains(p));
    if name == "format"
        && let [to, template, ..] = operands
        && tree.node(*template).kind == NodeKind::Text
    {
        let head = match tree.atom(*to)? {
            "nil" | "#f" => "fmt ",
            "t" | "#t" => "out ",
            _ => return None,
        };
        return Some(form.replace_to(*template, head));
    }
    let is_print = PRINT.contains(&name);
    let format = matches!(name, "printf" | "print-format" | "println!" | "print!");
    if format && is_text && !form.is_statement() {
        return Some(form.replace_head("fmt"));
    }
    if format && is_text || is_print && operands.len() > 1 && (is_template || is_percent) {
        return Some(form.replace_head("out"));
    }
    let is_out = matches!(name, "out" | "ret");
    // The operator is a `%` between a template and its value.
    if is_out
        && let [template, sign, value] = operands
        && is_percent
        && tree.is_word(*sign, &["%"])
    {
        return Some(Edits::one(tree.end(*template)..tree.start(*value), " "));
    }
    let written = if is_print { "out" } else { name };
    let signs: Vec<NodeId> = operands.iter().skip(1).step_by(2).copied().collect();
    let is_sign = |sign: &NodeId| tree.is_word(*sign, &["+", ".", "&", ","]);
    // The braces may be placeholders of another language, which must not be output as they are.
    let has_braces = is_text && text.contains('{');
    if (is_print || is_out) && operands.len() > 1 && !has_braces && !is_percent {
        let is_operator = |sign: &NodeId| is_sign(sign) || tree.is_word(*sign, &["%"]);
        // Adjacent operands without a space are a single expression: `$m.get("a")`.
        let mut pairs = operands.array_windows();
        if !signs.iter().any(is_operator) && !pairs.any(|[a, b]| tree.touch(*a, *b)) {
            let holes = vec!["{}"; operands.len()].join(" ");
            return Some(form.replace_to(first, format!("{written} \"{holes}\" ")));
        }
    }
    let is_sum = operands.len() > 2 && operands.len() % 2 == 1 && signs.iter().all(is_sign);
    if !is_sum || !(is_print || is_out || name == "return") {
        return None;
    }
    let mut edits = form.replace_to(first, format!("{written} (str.cat "));
    for sign in signs {
        edits.add(tree.span(sign), "");
    }
    Some(edits.insert(tree.end(*operands.last()?), ")"))
}

/// Rewrites `(-> X (f A) (g))` as nested calls.
fn threaded(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let last = match form.name {
        "->" => false,
        "->>" => true,
        _ => return None,
    };
    let (value, steps) = form.operands.split_first()?;
    let mut text = tree.text(*value).to_owned();
    for step in steps {
        let nodes = if tree.is_list(*step) { tree.items(*step) } else { vec![*step] };
        let (head, rest) = nodes.split_first()?;
        let head = tree.text(*head);
        text = match (tree.all_text(rest), last) {
            ("", _) => format!("({head} {text})"),
            (rest, false) => format!("({head} {text} {rest})"),
            (rest, true) => format!("({head} {rest} {text})"),
        };
    }
    Some(form.write(text))
}

/// Rewrites `(string A B …)` as a call to `str.cat`.
fn joined(form: &Form<'_, '_>) -> Option<Edits> {
    let is_join = matches!(form.name, "string" | "..") && form.operands.len() > 1;
    is_join.then(|| form.replace_head("str.cat"))
}

/// Moves the names of a `catch` before its call, or moves a handler that follows the call into a
/// `when` after the `catch`.
fn caught(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    if form.name != "catch" {
        return None;
    }
    let at = form.operands.iter().position(|node| tree.is_list(*node))?;
    let (names, rest) = form.operands.split_at(at);
    let (call, rest) = rest.split_first()?;
    if names.is_empty() && rest.iter().all(|node| tree.name(*node).is_some()) {
        let names = if rest.is_empty() { "$value $failure" } else { tree.all_text(rest) };
        return Some(form.write(format!("(catch {names} {})", tree.text(*call))));
    }
    let code = match names {
        [code] | [_, code] | [_, code, _] => tree.name(*code)?,
        _ => return None,
    };
    let (first, last) = (*rest.first()?, *rest.last()?);
    let handler = format!("){}(when (!= {code} 0) ", tree.gap(*call, first));
    let edits = Edits::default().insert(tree.start(form.list) + 1, "do (");
    Some(edits.replace(tree.end(*call)..tree.start(first), handler).insert(tree.end(last), ")"))
}

/// Swaps the reason and the error code in a misordered `fail` form.
fn failed(form: &Form<'_, '_>) -> Option<Edits> {
    let [reason, code] = form.operands else { return None };
    let is_code = form.tree.atom(*code).is_some_and(|code| Code::meant(code).is_some());
    let is_fail = matches!(form.name, "fail" | "throw" | "raise" | "error");
    (is_fail && is_code).then(|| rewrite::swap(form.tree, *reason, *code))
}

//! Loops and bindings in the syntax of other languages.

use super::readings::Form;
use super::rewrite::with_space;
use crate::diagnose::fix::Edits;
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

/// Returns one change for each possible meaning of a loop or a binding form.
pub(super) fn of_list(form: &Form<'_, '_>) -> Vec<Edits> {
    let tree = form.tree;
    if let ("each" | "for" | "foreach" | "doseq", [names, over, _, ..]) = (form.name, form.operands)
        && let [key, value] = tree.items(*names).as_slice()
        && let (Some(key), Some(value)) = (tree.variable(*key), tree.variable(*value))
        && tree.is_list(*names)
    {
        let pairs = form.replace_to(*over, format!("each {key} {value} "));
        return header(form).into_iter().chain([pairs]).collect();
    }
    let change = match form.name {
        "for" | "each" | "foreach" | "for-each" | "doseq" | "dolist" | "dotimes" | "loop" => {
            applied(form).or_else(|| steps(form)).or_else(|| header(form))
        }
        "mapc" | "run!" => applied(form),
        "let" | "let*" | "with" | "letrec" => bindings(form),
        _ => None,
    };
    change.into_iter().collect()
}

/// Returns the edits that replace a loop's header, which ends at `end`.
fn with_header(form: &Form<'_, '_>, end: usize, text: String) -> Edits {
    Edits::one(form.tree.start(form.list) + 1..end, text)
}

/// Rewrites the header of a loop as the header of a `for` or an `each`. The header consists of a
/// name, words such as `in`, and the range or the items, and may be in parentheses.
fn header(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let first = *form.operands.first()?;
    let is_list = tree.is_list(first);
    let words = if is_list { tree.items(first) } else { form.operands.to_vec() };
    let name = tree.variable(*words.first()?)?;
    let Over { range, text, used } = over(tree, form.name, words.get(1..)?, is_list)?;
    if is_list && used + 1 != words.len() {
        return None;
    }
    let last = if is_list { first } else { *words.get(used)? };
    let head = if range { "for" } else { "each" };
    Some(with_header(form, tree.end(last), format!("{head} {name} {text}")))
}

/// Rewrites `(for ($i 0) (< $i 3) (+= $i 1) …)` as `(for $i 0 3 1 …)`.
fn steps(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let [first, test, step, _, ..] = form.operands else { return None };
    let (name, from) = match tree.items(*first).as_slice() {
        [name, from] => (*name, *from),
        [word, name, from] if tree.is_word(*word, &["let", "set"]) => (*name, *from),
        _ => return None,
    };
    let name = tree.variable(name)?;
    let is_name = |node: &NodeId| tree.variable(*node).as_ref() == Some(&name);
    let test = tree.items(*test);
    let [less, tested, to] = test.as_slice() else { return None };
    let by = match (tree.head(*step)?, tree.items(*step).as_slice()) {
        ("+=", [_, stepped, by]) if is_name(stepped) => format!(" {}", tree.text(*by)),
        ("inc" | "++" | "inc!", [_, stepped]) if is_name(stepped) => String::new(),
        _ => return None,
    };
    if !tree.is_word(*less, &["<"]) || !is_name(tested) {
        return None;
    }
    let text = format!("for {name} {} {}{by}", tree.text(from), tree.text(*to));
    Some(with_header(form, tree.end(*step), text))
}

/// Rewrites `(for-each (lambda ($x) …) $a)` as `(each $x $a …)`.
fn applied(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let [function, over] = form.operands else { return None };
    let inner = tree.items(*function);
    let [head, params, body, ..] = inner.as_slice() else { return None };
    if !tree.is_word(*head, &["lambda", "fn", "function"]) {
        return None;
    }
    let [param] = tree.items(*params).try_into().ok()?;
    let text = format!("each {} {} ", tree.variable(param)?, tree.text(*over));
    let last = tree.end(*inner.last()?);
    Some(with_header(form, tree.start(*body), text).remove(last..tree.end(form.list) - 1))
}

/// The range or the items that a loop iterates over.
struct Over {
    /// If true, the loop counts.
    range: bool,
    /// The source of the start, the end and an optional step, or of the items.
    text: String,
    /// The number of words that the range or the items occupy.
    used: usize,
}

/// Reads the range or the items of a loop.
fn over(tree: &Tree<'_>, head: &str, words: &[NodeId], is_list: bool) -> Option<Over> {
    let is_word =
        |at: usize, known: &[&str]| words.get(at).is_some_and(|node| tree.is_word(*node, known));
    let text = |at: usize| words.get(at).map(|node| tree.text(*node));
    let range = |text: String, used: usize| Some(Over { range: true, text, used });
    // The bounds of a call such as `(range 3)`.
    let bounds = |nodes: &[NodeId], used: usize| {
        let texts: Vec<&str> = nodes.iter().map(|bound| tree.text(*bound)).collect();
        match texts.as_slice() {
            [upto] => range(format!("0 {upto}"), used),
            [_, _] | [_, _, _] => range(texts.join(" "), used),
            _ => None,
        }
    };
    let from = usize::from(is_word(0, &["in", "of", ":", "=", "from", "across", "<-"]));
    if head == "dotimes" {
        return range(format!("0 {}", text(from)?), from + 1);
    }
    if is_word(from + 1, &["to", "until", "below", "..", "..<"]) {
        return range(format!("{} {}", text(from)?, text(from + 2)?), from + 3);
    }
    let node = *words.get(from)?;
    if let Some((low, high)) = tree.atom(node).and_then(|text| text.split_once("..")) {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let high = high.trim_start_matches('<');
        let is_range = number(low) && (number(high) || high.starts_with('$'));
        return range(format!("{low} {high}"), from + 1).filter(|_| is_range);
    }
    if matches!(tree.head(node), Some("range" | "iota" | "xrange")) {
        return bounds(tree.items(node).get(1..)?, from + 1);
    }
    // In `range(3)`, the parenthesis follows the word.
    if is_word(from, &["range"])
        && let Some(list) = words.get(from + 1)
    {
        return bounds(&tree.items(*list), from + 2);
    }
    let plain = matches!(head, "for" | "each") && from == 0 && !is_list;
    let items = Over { range: false, text: text(from)?.to_owned(), used: from + 1 };
    (!plain && head != "loop").then_some(items)
}

/// Rewrites `(let [a 1 b 2] …)` and `(let (a 1 b 2) …)` as `(do (let $a 1) (let $b 2) …)`.
fn bindings(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let target = *form.operands.first()?;
    let nodes = tree.items(target);
    let (pairs, []) = nodes.as_chunks::<2>() else { return None };
    if pairs.is_empty() {
        return None;
    }
    let mut edits = form.replace_head("do").unwrap_list(tree.span(target));
    for [name, value] in pairs {
        let text = format!("(let {}", tree.variable(*name)?);
        edits = edits.replace(tree.span(*name), text).insert(tree.end(*value), ")");
    }
    Some(edits)
}

/// Rewrites a C-style loop, `(for (let i = 0; i < 3; i++) …)`, on the line that contains the offset
/// `at`. Works on the source text instead of the tree, because `;` begins a comment.
pub(crate) fn loop_of_c(source: &str, at: usize) -> Option<Edits> {
    let start = source.get(..at)?.rfind('\n').map_or(0, |at| at + 1);
    let line = source.get(start..)?.lines().next()?;
    let open = line.find("(for (")?;
    let header = line.get(open + "(for (".len()..)?;
    let end = header.find(')')?;
    let parts: Vec<&str> = header.get(..end)?.split(';').map(str::trim).collect();
    let [first, test, step] = parts.as_slice() else { return None };
    let (declared, from) = first.split_once('=')?;
    let name = declared.split_whitespace().last()?.trim_start_matches('$');
    let is_name = |text: &str| text.trim().trim_start_matches('$') == name;
    let is_word = |text: &str| {
        let text = text.trim().trim_start_matches('$');
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let (tested, to) = test.split_once('<')?;
    let by = match (step.split_once("++"), step.split_once("+=")) {
        (Some((before, "")), _) if is_name(before) => String::new(),
        (Some(("", after)), _) if is_name(after) => String::new(),
        (_, Some((before, by))) if is_name(before) && is_word(by) => format!(" {}", by.trim()),
        _ => return None,
    };
    let is_plain = is_word(name) && is_name(tested);
    if !is_plain || !is_word(from) || !is_word(to) {
        return None;
    }
    let (from, to) = (from.trim(), to.trim());
    let dollar = if to.starts_with(|c: char| c.is_ascii_alphabetic()) { "$" } else { "" };
    let begin = start + open + 1;
    let close = start + open + "(for (".len() + end + 1;
    Some(Edits::one(begin..close, format!("for ${name} {from} {dollar}{to}{by}")))
}

//! Loops and bindings in the syntax of other languages.

use super::readings::Around;
use crate::diagnose::fix::Change;
use crate::syntax::tree::{NodeId, NodeKind};

/// The range or the items that a loop iterates over.
enum Over {
    /// The source of the start, the end and an optional step.
    Range(Vec<String>),
    Items(String),
}

/// Returns one change for each possible meaning of a loop or a binding form.
pub(super) fn of_list(around: &Around<'_, '_>, list: NodeId, nodes: &[NodeId]) -> Vec<Change> {
    let tree = around.tree;
    let Some((first, operands)) = nodes.split_first() else { return Vec::new() };
    let Some(name) = tree.atom(*first) else { return Vec::new() };
    if let ("each" | "for" | "foreach" | "doseq", [names, over, _, ..]) = (name, operands)
        && let [key, value] = tree.items(*names).as_slice()
        && let (Some(key), Some(value)) = (around.variable(*key), around.variable(*value))
        && tree.is_list(*names)
    {
        let (start, end) = (tree.span(*first).start, tree.span(*over).start);
        let pairs = Change::edit(start..end, format!("each {key} {value} "));
        return header(around, list, name, operands).into_iter().chain([pairs]).collect();
    }
    let change = match name {
        "for" | "each" | "foreach" | "for-each" | "doseq" | "dolist" | "dotimes" | "loop" => {
            applied(around, list, operands)
                .or_else(|| steps(around, list, operands))
                .or_else(|| header(around, list, name, operands))
        }
        "mapc" | "run!" => applied(around, list, operands),
        "let" | "let*" | "with" | "letrec" => bindings(around, *first, operands),
        _ => None,
    };
    change.into_iter().collect()
}

/// Rewrites the header of a loop as the header of a `for` or an `each`. The header consists of a
/// name, words such as `in`, and the range or the items, and may be in parentheses.
fn header(
    around: &Around<'_, '_>,
    list: NodeId,
    head: &str,
    operands: &[NodeId],
) -> Option<Change> {
    let tree = around.tree;
    let first = *operands.first()?;
    let (words, end) = match tree.node(first).kind {
        NodeKind::List => (tree.items(first), tree.span(first).end),
        _ => (operands.to_vec(), 0),
    };
    let is_list = end > 0;
    let name = around.variable(*words.first()?)?;
    let (over, used) = over(around, head, words.get(1..)?, is_list)?;
    if is_list && used + 1 != words.len() {
        return None;
    }
    let end = if is_list { end } else { tree.span(*words.get(used)?).end };
    let text = match over {
        Over::Range(bounds) => format!("for {name} {}", bounds.join(" ")),
        Over::Items(text) => format!("each {name} {text}"),
    };
    Some(Change::edit(tree.span(list).start + 1..end, text))
}

/// Rewrites `(for ($i 0) (< $i 3) (+= $i 1) …)` as `(for $i 0 3 1 …)`.
fn steps(around: &Around<'_, '_>, list: NodeId, operands: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let [first, test, step, _, ..] = operands else { return None };
    let first = tree.items(*first);
    let [name, from] = match first.as_slice() {
        [name, from] => [*name, *from],
        [word, name, from] if matches!(tree.atom(*word), Some("let" | "set")) => [*name, *from],
        _ => return None,
    };
    let name = around.variable(name)?;
    let is = |node: &NodeId| around.variable(*node);
    let test = tree.items(*test);
    let [less, tested, to] = test.as_slice() else { return None };
    let step_head = tree.head(*step)?;
    let step = tree.items(*step);
    let by = match (step_head, step.as_slice()) {
        ("+=", [_, stepped, by]) if is(stepped).as_ref() == Some(&name) => {
            format!(" {}", around.text(*by))
        }
        ("inc" | "++" | "inc!", [_, stepped]) if is(stepped).as_ref() == Some(&name) => {
            String::new()
        }
        _ => return None,
    };
    if tree.atom(*less) != Some("<") || is(tested).as_ref() != Some(&name) {
        return None;
    }
    let text = format!("for {name} {} {}{by}", around.text(from), around.text(*to));
    let end = tree.span(*operands.get(2)?).end;
    Some(Change::edit(tree.span(list).start + 1..end, text))
}

/// Rewrites `(for-each (lambda ($x) …) $a)` as `(each $x $a …)`.
fn applied(around: &Around<'_, '_>, list: NodeId, operands: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let [function, over] = operands else { return None };
    let inner = tree.items(*function);
    let [head, params, body, ..] = inner.as_slice() else { return None };
    if !matches!(tree.atom(*head)?, "lambda" | "fn" | "function") {
        return None;
    }
    let [param] = tree.items(*params).try_into().ok()?;
    let name = around.variable(param)?;
    let (start, end) = (tree.span(list).start + 1, tree.span(list).end - 1);
    let last = tree.span(*inner.last()?).end;
    Some(Change::Edits(vec![
        (start..tree.span(*body).start, format!("each {name} {} ", around.text(*over))),
        (last..end, String::new()),
    ]))
}

/// Reads the range or the items of a loop. Returns them together with the number of words that they
/// occupy.
fn over(
    around: &Around<'_, '_>,
    head: &str,
    words: &[NodeId],
    is_list: bool,
) -> Option<(Over, usize)> {
    let tree = around.tree;
    let is_word = |at: usize, known: &[&str]| {
        words.get(at).and_then(|node| tree.atom(*node)).is_some_and(|word| known.contains(&word))
    };
    let text = |at: usize| words.get(at).map(|node| around.text(*node).to_owned());
    let from = usize::from(is_word(0, &["in", "of", ":", "=", "from", "across", "<-"]));
    let counts = |upto: String, used: usize| Some((Over::Range(vec!["0".to_owned(), upto]), used));
    if head == "dotimes" {
        return counts(text(from)?, from + 1);
    }
    if is_word(from + 1, &["to", "until", "below", "..", "..<"]) {
        return Some((Over::Range(vec![text(from)?, text(from + 2)?]), from + 3));
    }
    let node = *words.get(from)?;
    if let Some((low, high)) = tree.atom(node).and_then(|text| text.split_once("..")) {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let high = high.trim_start_matches('<');
        return (number(low) && (number(high) || high.starts_with('$')))
            .then(|| (Over::Range(vec![low.to_owned(), high.to_owned()]), from + 1));
    }
    if matches!(tree.head(node), Some("range" | "iota" | "xrange")) {
        let bounds: Vec<String> =
            tree.items(node).iter().skip(1).map(|bound| around.text(*bound).to_owned()).collect();
        return match bounds.as_slice() {
            [upto] => counts(upto.clone(), from + 1),
            [_, _] | [_, _, _] => Some((Over::Range(bounds), from + 1)),
            _ => None,
        };
    }
    // In `range(3)`, the parenthesis follows the word.
    if is_word(from, &["range"]) && words.get(from + 1).is_some() {
        let inner = tree.items(*words.get(from + 1)?);
        let bounds: Vec<String> =
            inner.iter().map(|bound| around.text(*bound).to_owned()).collect();
        return match bounds.as_slice() {
            [upto] => counts(upto.clone(), from + 2),
            [_, _] | [_, _, _] => Some((Over::Range(bounds), from + 2)),
            _ => None,
        };
    }
    let plain = matches!(head, "for" | "each") && from == 0 && !is_list;
    (!plain && head != "loop").then(|| Some((Over::Items(text(from)?), from + 1)))?
}

/// Rewrites `(let [a 1 b 2] …)` and `(let (a 1 b 2) …)` as `(do (let $a 1) (let $b 2) …)`.
fn bindings(around: &Around<'_, '_>, first: NodeId, operands: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    let target = *operands.first()?;
    if !tree.is_list(target) {
        return None;
    }
    let pairs = tree.items(target);
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return None;
    }
    let span = tree.span(target);
    let mut edits = vec![
        (tree.span(first), "do".to_owned()),
        (span.start..span.start + 1, String::new()),
        (span.end - 1..span.end, String::new()),
    ];
    for pair in pairs.chunks(2) {
        let [name, value] = pair else { return None };
        let declared = around.variable(*name)?;
        let end = tree.span(*value).end;
        edits.push((tree.span(*name), format!("(let {declared}")));
        edits.push((end..end, ")".to_owned()));
    }
    Some(Change::Edits(edits))
}

/// Rewrites a C-style loop, `(for (let i = 0; i < 3; i++) …)`, on the line that contains the offset
/// `at`. Works on the source text instead of the tree, because `;` begins a comment.
pub(crate) fn loop_of_c(source: &str, at: usize) -> Option<Change> {
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
    let to = if to.starts_with(|c: char| c.is_ascii_alphabetic()) {
        format!("${to}")
    } else {
        to.to_owned()
    };
    let begin = start + open + 1;
    let close = start + open + "(for (".len() + end + 1;
    Some(Change::edit(begin..close, format!("for ${name} {from} {to}{by}")))
}

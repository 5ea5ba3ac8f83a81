//! Calls, methods, indices and updates in the syntax of other languages.

use super::head;
use super::readings::Around;
use crate::diagnose::fix::Change;
use crate::diagnose::nearest;
use crate::syntax::literal;
use crate::syntax::tree::NodeId;

/// Namespaces whose functions only compute. Functions in all other namespaces access something
/// outside the program, so a call into one of those namespaces is never redirected to another
/// namespace.
const PURE: &[&str] = &["arr", "date", "html", "json", "map", "math", "str", "url"];

/// Common names for the length of a value.
const LENGTH: &[&str] = &["length", "len", "size", "count"];

/// Returns one change for each possible meaning of an atom that is not a value, such as
/// `$s.length`, `!$a` or `$x++`.
pub(super) fn of_atom(around: &Around<'_, '_>, node: NodeId) -> Vec<Change> {
    let tree = around.tree;
    let Some(text) = tree.atom(node) else { return Vec::new() };
    let write = |text: String| vec![Change::edit(tree.span(node), text)];
    let is_head = tree.parent(node).is_some_and(|list| list.0 + 1 == node.0);
    if let Some(name) = text.strip_prefix('!').filter(|name| name.starts_with('$')) {
        return if is_head { write(format!("not {name}")) } else { write(format!("(not {name})")) };
    }
    for (sign, operator) in [("++", "+="), ("--", "-=")] {
        if let Some(name) = text.strip_suffix(sign).filter(|name| name.starts_with('$')) {
            return if is_head {
                write(format!("{operator} {name} 1"))
            } else {
                write(format!("({operator} {name} 1)"))
            };
        }
    }
    if let Some(name) = text.strip_suffix(':').filter(|name| name.starts_with('$')) {
        return write(name.to_owned());
    }
    match text.split_once('.') {
        Some((name, member)) if name.starts_with('$') && !is_head && around.has_atom(name) => {
            let called = called(around, member).into_iter();
            let mut all: Vec<String> = called.map(|f| format!("({f} {name})")).collect();
            all.push(format!("(at {name} \"{member}\")"));
            all.into_iter().flat_map(write).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the names of the functions and forms that a method with this name may mean.
fn called(around: &Around<'_, '_>, method: &str) -> Vec<String> {
    if LENGTH.contains(&method) {
        return vec!["len".to_owned()];
    }
    let of_type = around.host.iter().filter(|known| PURE.contains(&known.module));
    let same = of_type
        .filter(|known| known.name.replace('_', "").eq_ignore_ascii_case(&method.replace('_', "")));
    let mut all: Vec<String> = same.map(|known| known.full_name()).collect();
    if all.is_empty() {
        all.extend(plain(around, method));
    }
    all
}

/// Returns the function or form that a call means if the call's head is `name`, which contains no
/// dot. Returns `None` for an unknown name.
fn plain(around: &Around<'_, '_>, name: &str) -> Option<String> {
    let own = format!("${name}");
    if around.own.contains(&own.as_str()) {
        return Some(own);
    }
    if (around.forms)(name).is_some() {
        return Some(name.to_owned());
    }
    head(name, around.host).map(str::to_owned)
}

/// Returns one change for each possible meaning of a name that is directly followed by a list, such
/// as `len($s)`, `$s.trim()` or `$a[0]`. `node` is the name or the list.
pub(super) fn beside(around: &Around<'_, '_>, node: NodeId) -> Vec<Change> {
    let tree = around.tree;
    let siblings = match tree.parent(node) {
        Some(list) => tree.items(list),
        None => tree.top().iter(tree).collect(),
    };
    let Some(at) = siblings.iter().position(|sibling| *sibling == node) else { return Vec::new() };
    let pairs = siblings.get(at.saturating_sub(1)..).unwrap_or(&[]).windows(2).take(2);
    pairs.filter_map(|pair| pair_of(around, pair)).next().unwrap_or_default()
}

/// Returns one change for each possible meaning of a name that is directly followed by a list, or
/// of a list that is directly followed by a method. Returns `None` if the two nodes of `pair` are
/// neither, or if their meaning is unknown.
fn pair_of(around: &Around<'_, '_>, pair: &[NodeId]) -> Option<Vec<Change>> {
    let tree = around.tree;
    let [name, list] = pair else { return None };
    let (before, after) = (tree.span(*name), tree.span(*list));
    if tree.is_list(*name)
        && before.end == after.start
        && let Some(method) = tree.atom(*list).and_then(|text| text.strip_prefix('.'))
    {
        let object = around.text(*name);
        let write = |f: String| Change::edit(before.start..after.end, format!("({f} {object})"));
        return Some(called(around, method).into_iter().map(write).collect());
    }
    let text = tree.atom(*name)?;
    let (head, inner) = (tree.span(*name), tree.span(*list));
    if !tree.is_list(*list) || head.end != inner.start {
        return None;
    }
    let nodes = tree.items(*list);
    let open = inner.start..nodes.first().map_or(inner.end - 1, |first| tree.span(*first).start);
    if tree.text(*list).starts_with('[') {
        let [index] = nodes.as_slice() else { return None };
        let name = around.variable(*name)?;
        if let Some((from, to)) = tree.atom(*index).and_then(|text| text.split_once(':')) {
            let from = if from.is_empty() { "0" } else { from };
            let slice = |f: &str| format!("({f}.slice {name} {from} {to}").trim_end().to_owned();
            let write = |text| Change::edit(head.start..inner.end, text);
            return Some(["str", "arr"].map(|f| write(slice(f) + ")")).into());
        }
        return Some(vec![Change::Edits(vec![
            (head.start..open.end, format!("(at {name} ")),
            (inner.end - 1..inner.end, ")".to_owned()),
        ])]);
    }
    let space = if nodes.is_empty() { "" } else { " " };
    let rewrite = |called: String| Change::edit(head.start..open.end, format!("({called}"));
    if let Some((object, method)) = text.split_once('.') {
        let known = head_of(around, text).into_iter().map(|f| format!("{f}{space}"));
        let object = format!("${}", object.trim_start_matches('$'));
        let methods = called(around, method).into_iter();
        let methods = methods.map(|function| format!("{function} {object}{space}"));
        return Some(known.chain(methods).map(rewrite).collect());
    }
    let own = around.own.contains(&text).then(|| text.to_owned());
    let meant = own.or_else(|| plain(around, text))?;
    // `print(a, b)` prints several values.
    if matches!(meant.as_str(), "out" | "print") && nodes.len() > 1 {
        let holes = vec!["{}"; nodes.len()].join(" ");
        let text = format!("(out \"{holes}\" ");
        return Some(vec![Change::edit(head.start..open.end, text)]);
    }
    Some(vec![rewrite(format!("{meant}{space}"))])
}

/// Returns the form or host function that a dotted name means, if any. The name may come from
/// another language.
fn head_of(around: &Around<'_, '_>, name: &str) -> Option<String> {
    let known = around.host.get(name).map(|_| name.to_owned());
    known.or_else(|| head(name, around.host).map(str::to_owned))
}

/// Returns one change for each possible meaning of a list as an infix update, a method call, or a
/// call in another namespace.
pub(super) fn of_list(around: &Around<'_, '_>, list: NodeId, nodes: &[NodeId]) -> Vec<Change> {
    let tree = around.tree;
    if let [only] = nodes
        && let Some(word @ ("true" | "false" | "nil" | "null")) = tree.atom(*only)
    {
        return vec![around.write(list, word.to_owned())];
    }
    if let Some(change) = update(around, list, nodes) {
        return vec![change];
    }
    for pair in nodes.windows(2) {
        if let Some(changes) = indexed_set(around, list, nodes, pair)
            .or_else(|| pair_of(around, pair).filter(|_| pair.first() != nodes.first()))
        {
            return changes;
        }
    }
    let Some(head) = nodes.first().and_then(|first| tree.atom(*first)) else { return Vec::new() };
    let Some(span) = nodes.first().map(|first| tree.span(*first)) else { return Vec::new() };
    let replace = |text: String| Change::edit(span.clone(), text);
    match head.split_once('.') {
        Some((object, method)) if object.starts_with('$') => {
            called(around, method).into_iter().map(|f| replace(format!("{f} {object}"))).collect()
        }
        Some((module, name)) => elsewhere(around, module, name).into_iter().map(replace).collect(),
        None if around.own.contains(&format!("${head}").as_str()) => {
            vec![replace(format!("${head}"))]
        }
        None if (around.forms)(head).is_none() => {
            unqualified(around, head).into_iter().map(replace).collect()
        }
        None => Vec::new(),
    }
}

/// Namespaces from other languages, each with its counterpart in this language.
const MODULES: &[(&str, &str)] = &[
    ("array", "arr"),
    ("datetime", "date"),
    ("dict", "map"),
    ("file", "fs"),
    ("files", "fs"),
    ("hash", "map"),
    ("io", "fs"),
    ("list", "arr"),
    ("object", "map"),
    ("re", "str"),
    ("regex", "str"),
    ("regexp", "str"),
    ("requests", "http"),
    ("string", "str"),
    ("text", "str"),
    ("time", "date"),
    ("vec", "arr"),
    ("vector", "arr"),
];

/// Namespaces whose functions each operate on one type. The types of a call's arguments therefore
/// show which of these namespaces is meant.
const OF_TYPES: &[&str] = &["arr", "map", "str"];

/// Returns the functions and forms that `name` may mean if `module` is the wrong namespace for it.
fn elsewhere(around: &Around<'_, '_>, module: &str, name: &str) -> Vec<String> {
    if around.host.get(&format!("{module}.{name}")).is_some()
        || literal::number_type(name).is_some()
    {
        return Vec::new();
    }
    let name = name.trim_end_matches(['?', '!']);
    let exists = around.host.iter().any(|known| known.module == module);
    if exists && !PURE.contains(&module) {
        return Vec::new();
    }
    let to_json = matches!(name, "stringify" | "encode" | "dumps" | "dump" | "from_map");
    if to_json && matches!(module, "json" | "JSON") {
        return vec!["map.to_json".to_owned(), "arr.to_json".to_owned()];
    }
    let form = match name {
        _ if LENGTH.contains(&name) => Some("len"),
        "contains" | "includes" | "has" | "member" | "has_key" | "contains_key" => Some("has"),
        "get" | "at" | "nth" => Some("at"),
        "push" | "append" | "add" => Some("push"),
        "set" | "put" => Some("put"),
        "format" => Some("fmt"),
        "pop" | "min" | "max" | "abs" => Some(name),
        _ => None,
    };
    // A form works for all types.
    if let Some(form) = form {
        return vec![form.to_owned()];
    }
    let other = MODULES.iter().find(|(known, _)| known.eq_ignore_ascii_case(module));
    let meant = other.filter(|_| !exists).and_then(|(_, meant)| {
        let full = format!("{meant}.{name}");
        let exact = around.host.get(&full).map(|_| full.clone());
        let near = || nearest::certain_function(&full, around.host, &[]);
        exact.or_else(|| near().map(|known| known.trim_start_matches('$').to_owned()))
    });
    if let Some(meant) = meant {
        return vec![meant];
    }
    let same = around.host.iter().filter(|known| known.name == name);
    let fits = same.filter(|known| OF_TYPES.contains(&known.module));
    fits.map(|known| known.full_name()).collect()
}

/// Returns the functions in [`PURE`] namespaces with this name, such as `map.keys` for `keys`.
fn unqualified(around: &Around<'_, '_>, name: &str) -> Vec<String> {
    let same = around.host.iter().filter(|known| known.name == name);
    same.filter(|known| PURE.contains(&known.module)).map(|known| known.full_name()).collect()
}

/// Rewrites an infix update as a prefix form, such as `($x += 1)`, `(set $x += 1)` or
/// `(set $x = 1)`. Adds the missing parentheses around the value in `(set $x $a + 1)`.
fn update(around: &Around<'_, '_>, list: NodeId, nodes: &[NodeId]) -> Option<Change> {
    let tree = around.tree;
    if let [set, target, a, sign, b] = nodes
        && matches!(tree.atom(*set), Some("set" | "let"))
        && matches!(tree.atom(*sign), Some("+" | "-" | "*" | "/" | "%"))
        && tree.atom(*a) != Some("=")
    {
        around.variable(*target)?;
        let (start, end) = (tree.span(*a).start, tree.span(*b).end);
        let sign = tree.span(*sign);
        return Some(Change::Edits(vec![
            (start..start, format!("({} ", around.tree.source.get(sign.clone())?)),
            (sign.start..tree.span(*b).start, String::new()),
            (end..end, ")".to_owned()),
        ]));
    }
    let (target, sign, value) = match nodes {
        [target, sign, value] => (*target, *sign, *value),
        [set, target, sign, value] if matches!(tree.atom(*set), Some("set" | "let")) => {
            (*target, *sign, *value)
        }
        _ => return None,
    };
    let name = around.variable(target)?;
    let operator = match tree.atom(sign)? {
        sign @ ("+=" | "-=" | "*=") => sign,
        "=" | ":=" => match tree.head(list) {
            Some("let") => "let",
            _ => "set",
        },
        _ => return None,
    };
    let (start, end) = (tree.span(list).start + 1, tree.span(value).start);
    Some(Change::edit(start..end, format!("{operator} {name} ")))
}

/// Rewrites a line without parentheses, such as `$x += 1`, `x = 5` or `return 0`, as a form. Turns
/// an import into a comment.
pub(super) fn line(around: &Around<'_, '_>, node: NodeId) -> Option<Change> {
    let tree = around.tree;
    if tree.parent(node).is_some() {
        return None;
    }
    let mut nodes = tree.top();
    let mut line: Vec<NodeId> = Vec::new();
    while let Some(next) = nodes.next(tree) {
        if tree.node(next).starts_line {
            if line.contains(&node) {
                break;
            }
            line.clear();
        }
        line.push(next);
    }
    let (first, last) = (line.first()?, line.last()?);
    let is_import = matches!(tree.atom(*first), Some("import" | "from" | "using" | "use"));
    if is_import && line.iter().all(|node| !tree.is_list(*node)) {
        let start = tree.span(*first).start;
        return Some(Change::edit(start..start, ";; "));
    }
    let (start, end) = (tree.span(*first).start, tree.span(*last).end);
    let around_line = |head: Option<(std::ops::Range<usize>, String)>| {
        let mut edits = vec![(end..end, ")".to_owned())];
        edits.push(head.unwrap_or((start..start, "(".to_owned())));
        Change::Edits(edits)
    };
    if let [target, sign, value] = line.as_slice()
        && let Some(name) = around.variable(*target)
    {
        let operator = match tree.atom(*sign)? {
            sign @ ("+=" | "-=" | "*=") => sign,
            "=" | ":=" => "set",
            _ => return None,
        };
        let text = format!("({operator} {name} ");
        return Some(around_line(Some((start..tree.span(*value).start, text))));
    }
    if let [word, target, sign, value] = line.as_slice()
        && matches!(tree.atom(*word), Some("let" | "const" | "var" | "set"))
        && matches!(tree.atom(*sign), Some("=" | ":="))
        && let Some(name) = around.variable(*target)
    {
        let head = if tree.atom(*word) == Some("set") { "set" } else { "let" };
        let text = format!("({head} {name} ");
        return Some(around_line(Some((start..tree.span(*value).start, text))));
    }
    if let [name, index, sign, value] = line.as_slice()
        && tree.span(*name).end == tree.span(*index).start
        && tree.text(*index).starts_with('[')
        && tree.atom(*sign) == Some("=")
        && let [at] = tree.items(*index).as_slice()
        && let Some(name) = around.variable(*name)
    {
        let text = format!("(put {name} {} ", around.text(*at));
        return Some(around_line(Some((start..tree.span(*value).start, text))));
    }
    let word = tree.atom(*first)?;
    let is_form = (around.forms)(word).is_some() || head(word, around.host).is_some();
    (line.len() > 1 && (is_form || word == "return")).then(|| around_line(None))
}

/// Rewrites `(set $a[0] V)` as a `put`.
fn indexed_set(
    around: &Around<'_, '_>,
    list: NodeId,
    nodes: &[NodeId],
    pair: &[NodeId],
) -> Option<Vec<Change>> {
    let tree = around.tree;
    let ([set, name, index, _], [first, _]) = (nodes, pair) else { return None };
    let (head, inner) = (tree.span(*name), tree.span(*index));
    let is_index = head.end == inner.start && tree.text(*index).starts_with('[');
    if tree.head(list) != Some("set") || first != name || !is_index {
        return None;
    }
    let [at] = tree.items(*index).try_into().ok()?;
    let name = around.variable(*name)?;
    let start = tree.span(*set).start;
    Some(vec![Change::edit(start..inner.end, format!("put {name} {}", around.text(at)))])
}

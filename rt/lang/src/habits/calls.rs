//! Calls, methods, indices and updates in the syntax of other languages.

use super::head;
use super::readings::{Around, Form};
use crate::diagnose::fix::Edits;
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
pub(super) fn of_atom(around: &Around<'_, '_>, node: NodeId) -> Vec<Edits> {
    let tree = around.tree;
    let Some(text) = tree.atom(node) else { return Vec::new() };
    let write = |text: String| vec![Edits::one(tree.span(node), text)];
    let is_head = tree.parent(node).is_some_and(|list| list.0 + 1 == node.0);
    let call = |text: String| write(if is_head { text } else { format!("({text})") });
    let is_name = |name: &&str| name.starts_with('$');
    if let Some(name) = text.strip_prefix('!').filter(is_name) {
        return call(format!("not {name}"));
    }
    for (sign, operator) in [("++", "+="), ("--", "-=")] {
        if let Some(name) = text.strip_suffix(sign).filter(is_name) {
            return call(format!("{operator} {name} 1"));
        }
    }
    if let Some(name) = text.strip_suffix(':').filter(is_name) {
        return write(name.to_owned());
    }
    let has_atom = |text: &str| tree.all().any(|node| tree.atom(node) == Some(text));
    match text.split_once('.') {
        Some((name, member)) if name.starts_with('$') && !is_head && has_atom(name) => {
            let called = called(around, member).into_iter().map(|f| format!("({f} {name})"));
            called.chain([format!("(at {name} \"{member}\")")]).flat_map(write).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the names of the functions and forms that a method with this name may mean.
fn called(around: &Around<'_, '_>, method: &str) -> Vec<String> {
    if LENGTH.contains(&method) {
        return vec!["len".to_owned()];
    }
    let plain_name = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let of_type = around.host.iter().filter(|known| PURE.contains(&known.module));
    let same = of_type.filter(|known| plain_name(known.name) == plain_name(method));
    let all: Vec<String> = same.map(|known| known.full_name()).collect();
    if all.is_empty() { plain(around, method).into_iter().collect() } else { all }
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
pub(super) fn beside(around: &Around<'_, '_>, node: NodeId) -> Vec<Edits> {
    let tree = around.tree;
    let siblings = match tree.parent(node) {
        Some(list) => tree.items(list),
        None => tree.top().iter(tree).collect(),
    };
    let Some(at) = siblings.iter().position(|sibling| *sibling == node) else { return Vec::new() };
    let mut pairs = siblings.array_windows::<2>().skip(at.saturating_sub(1)).take(2);
    pairs.find_map(|pair| pair_of(around, *pair)).unwrap_or_default()
}

/// Returns one change for each possible meaning of a name that is directly followed by a list, or
/// of a list that is directly followed by a method. Returns `None` if the two nodes of `pair` are
/// neither, or if their meaning is unknown.
fn pair_of(around: &Around<'_, '_>, [name, list]: [NodeId; 2]) -> Option<Vec<Edits>> {
    let tree = around.tree;
    if !tree.touch(name, list) {
        return None;
    }
    let start = tree.start(name);
    let end = tree.end(list);
    if tree.is_list(name)
        && let Some(method) = tree.atom(list).and_then(|text| text.strip_prefix('.'))
    {
        let object = tree.text(name);
        let write = |f: String| Edits::one(start..end, format!("({f} {object})"));
        return Some(called(around, method).into_iter().map(write).collect());
    }
    let text = tree.atom(name).filter(|_| tree.is_list(list))?;
    let nodes = tree.items(list);
    let open = start..nodes.first().map_or(end - 1, |first| tree.start(*first));
    if tree.text(list).starts_with('[') {
        let [index] = nodes.as_slice() else { return None };
        let name = tree.variable(name)?;
        if let Some((from, to)) = tree.atom(*index).and_then(|text| text.split_once(':')) {
            let from = if from.is_empty() { "0" } else { from };
            let slice = |f: &str| format!("({f}.slice {name} {from} {to}").trim_end().to_owned();
            return Some(["str", "arr"].map(|f| Edits::one(start..end, slice(f) + ")")).into());
        }
        let edits = Edits::one(open, format!("(at {name} ")).replace(end - 1..end, ")");
        return Some(vec![edits]);
    }
    let space = if nodes.is_empty() { "" } else { " " };
    let rewrite = |called: String| Edits::one(open.clone(), format!("({called}"));
    if let Some((object, method)) = text.split_once('.') {
        let known = around.host.get(text).map(|_| text.to_owned());
        let known = known.or_else(|| head(text, around.host).map(str::to_owned));
        let known = known.into_iter().map(|f| format!("{f}{space}"));
        let object = object.trim_start_matches('$');
        let methods = called(around, method).into_iter();
        let methods = methods.map(|function| format!("{function} ${object}{space}"));
        return Some(known.chain(methods).map(rewrite).collect());
    }
    let own = around.own.contains(&text).then(|| text.to_owned());
    let meant = own.or_else(|| plain(around, text))?;
    // `print(a, b)` prints several values.
    if matches!(meant.as_str(), "out" | "print") && nodes.len() > 1 {
        let holes = vec!["{}"; nodes.len()].join(" ");
        return Some(vec![rewrite(format!("out \"{holes}\" "))]);
    }
    Some(vec![rewrite(format!("{meant}{space}"))])
}

/// Returns one change for each possible meaning of a list as an infix update, a method call, or a
/// call in another namespace.
pub(super) fn of_list(form: &Form<'_, '_>) -> Vec<Edits> {
    let around = form.around;
    if let ("true" | "false" | "nil" | "null", []) = (form.name, form.operands) {
        return vec![form.write(form.name.to_owned())];
    }
    if let Some(change) = update(form) {
        return vec![change];
    }
    for pair in form.nodes.array_windows::<2>() {
        let indexed = indexed_set(form).filter(|_| pair.first() == form.operands.first());
        if let Some(changes) = indexed
            .map(|change| vec![change])
            .or_else(|| pair_of(around, *pair).filter(|_| pair.first() != form.nodes.first()))
        {
            return changes;
        }
    }
    let name = form.name;
    let own = format!("${name}");
    let meant = match name.split_once('.') {
        Some((object, method)) if object.starts_with('$') => {
            called(around, method).into_iter().map(|f| format!("{f} {object}")).collect()
        }
        Some((module, name)) => elsewhere(around, module, name),
        None if around.own.contains(&own.as_str()) => vec![own],
        None if (around.forms)(name).is_none() => unqualified(around, name),
        None => Vec::new(),
    };
    meant.into_iter().map(|text| form.replace_head(text)).collect()
}

/// The namespaces of this language, each with its counterparts in other languages.
const MODULES: &[(&str, &[&str])] = &[
    ("arr", &["array", "list", "vec", "vector"]),
    ("date", &["datetime", "time"]),
    ("map", &["dict", "hash", "object"]),
    ("fs", &["file", "files", "io"]),
    ("str", &["re", "regex", "regexp", "string", "text"]),
    ("http", &["requests"]),
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
    let is_same = |known: &&str| known.eq_ignore_ascii_case(module);
    let other = MODULES.iter().find(|(_, others)| others.iter().any(is_same));
    let meant = other.filter(|_| !exists).and_then(|(meant, _)| {
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

/// Returns the update that a sign between a variable and its new value means: an update form, or
/// `set` for an assignment. Returns `None` for any other word.
fn update_sign(sign: &str) -> Option<&str> {
    match sign {
        "+=" | "-=" | "*=" => Some(sign),
        "=" | ":=" => Some("set"),
        _ => None,
    }
}

/// Rewrites an infix update as a prefix form, such as `($x += 1)`, `(set $x += 1)` or
/// `(set $x = 1)`. Adds the missing parentheses around the value in `(set $x $a + 1)`.
fn update(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let (target, sign, value) = match form.nodes {
        [_, target, a, sign, b]
            if matches!(form.name, "set" | "let")
                && tree.is_word(*sign, &["+", "-", "*", "/", "%"])
                && !tree.is_word(*a, &["="]) =>
        {
            tree.variable(*target)?;
            let edits = Edits::one(tree.start(*sign)..tree.start(*b), "");
            let span = tree.start(*a)..tree.end(*b);
            return Some(edits.wrap(&span, format!("({} ", tree.text(*sign)), ")"));
        }
        [target, sign, value] => (*target, *sign, *value),
        [_, target, sign, value] if matches!(form.name, "set" | "let") => (*target, *sign, *value),
        _ => return None,
    };
    let name = tree.variable(target)?;
    let operator = match update_sign(tree.atom(sign)?)? {
        "set" if form.name == "let" => "let",
        operator => operator,
    };
    let span = tree.start(form.list) + 1..tree.start(value);
    Some(Edits::one(span, format!("{operator} {name} ")))
}

/// Rewrites a line without parentheses, such as `$x += 1`, `x = 5` or `return 0`, as a form. Turns
/// an import into a comment.
pub(super) fn line(around: &Around<'_, '_>, node: NodeId) -> Option<Edits> {
    let tree = around.tree;
    if tree.parent(node).is_some() {
        return None;
    }
    let mut line: Vec<NodeId> = Vec::new();
    for next in tree.top().iter(tree) {
        if tree.node(next).starts_line {
            if line.contains(&node) {
                break;
            }
            line.clear();
        }
        line.push(next);
    }
    let (first, last) = (*line.first()?, *line.last()?);
    let start = tree.start(first);
    let is_import = tree.is_word(first, &["import", "from", "using", "use"]);
    if is_import && line.iter().all(|node| !tree.is_list(*node)) {
        return Some(Edits::one(start..start, ";; "));
    }
    let closed = Edits::default().insert(tree.end(last), ")");
    let (value, head) = match line.as_slice() {
        [target, sign, value] if let Some(name) = tree.variable(*target) => {
            (*value, format!("{} {name}", update_sign(tree.atom(*sign)?)?))
        }
        [word, target, sign, value]
            if tree.is_word(*word, &["let", "const", "var", "set"])
                && tree.is_word(*sign, &["=", ":="])
                && let Some(name) = tree.variable(*target) =>
        {
            let head = if tree.is_word(*word, &["set"]) { "set" } else { "let" };
            (*value, format!("{head} {name}"))
        }
        [name, index, sign, value]
            if tree.touch(*name, *index)
                && tree.text(*index).starts_with('[')
                && tree.is_word(*sign, &["="])
                && let [at] = tree.items(*index).as_slice()
                && let Some(name) = tree.variable(*name) =>
        {
            (*value, format!("put {name} {}", tree.text(*at)))
        }
        _ => {
            let word = tree.atom(first)?;
            let is_form = (around.forms)(word).is_some() || head(word, around.host).is_some();
            return (line.len() > 1 && (is_form || word == "return"))
                .then(|| closed.insert(start, "("));
        }
    };
    Some(closed.replace(start..tree.start(value), format!("({head} ")))
}

/// Rewrites `(set $a[0] V)` as a `put`.
fn indexed_set(form: &Form<'_, '_>) -> Option<Edits> {
    let tree = form.tree;
    let ("set", [name, index, _]) = (form.name, form.operands) else { return None };
    if !tree.touch(*name, *index) || !tree.text(*index).starts_with('[') {
        return None;
    }
    let [at] = tree.items(*index).try_into().ok()?;
    let text = format!("put {} {}", tree.variable(*name)?, tree.text(at));
    Some(Edits::one(tree.start(form.first)..tree.end(*index), text))
}

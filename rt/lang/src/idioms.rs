//! Idioms of other languages, and their counterparts in this language.

use crate::fix::Change;
use crate::messages::{self, Fault};
use crate::nearest;
use crate::rewrite::{around, items, parent};
use crate::tree::{NodeId, NodeKind, Tree};
use crate::{Code, Signature, Signatures};

/// Names in other languages that have exactly one counterpart: a form or a function.
const HEADS: &[(&str, &str)] = &[
    ("!", "not"),
    ("!==", "!="),
    ("&&", "and"),
    ("/=", "!="),
    ("<>", "!="),
    ("==", "="),
    ("===", "="),
    ("assign", "set"),
    ("begin", "do"),
    ("concat", "str.cat?"),
    ("concatenate", "str.cat?"),
    ("console.log", "dbg.log"),
    ("def", "let"),
    ("defvar", "let"),
    ("define", "let"),
    ("display", "out"),
    ("dolist", "each"),
    ("echo", "out"),
    ("emit", "out"),
    ("eq?", "="),
    ("equal", "str.eq"),
    ("equal?", "str.eq"),
    ("equals", "str.eq"),
    ("eqv?", "="),
    ("for-each", "each"),
    ("foreach", "each"),
    ("format", "fmt"),
    ("if-not", "unless"),
    ("int-to-string", "str.from_int"),
    ("let*", "let"),
    ("let!", "let"),
    ("letrec", "let"),
    ("mod", "%"),
    ("modulo", "%"),
    ("neq", "!="),
    ("not=", "!="),
    ("number->string", "str.from_int"),
    ("output", "out"),
    ("printf", "fmt"),
    ("progn", "do"),
    ("puts", "out"),
    ("remainder", "%"),
    ("set!", "set"),
    ("setf", "set"),
    ("setq", "set"),
    ("sprintf", "fmt"),
    ("string->number", "str.to_int?"),
    ("string-append", "str.cat?"),
    ("string-length", "str.len"),
    ("string=?", "str.eq"),
    ("string?", "str.eq"),
    ("substring", "str.slice?"),
    ("var", "let"),
    ("const", "let"),
    ("||", "or"),
];

/// Returns the counterpart of a name in another language.
pub(super) fn head(name: &str, host: &Signatures) -> Option<&'static str> {
    let (_, meant) = HEADS.iter().find(|(known, _)| *known == name)?;
    let function = meant.trim_end_matches('?');
    (!function.contains('.') || host.get(function).is_some()).then_some(*meant)
}

/// Hints for names in other languages that have several counterparts, or one that is longer than a
/// name.
const HINTS: &[(&str, &str)] = &[
    ("case", "write `(cond (C …) … (else …))`"),
    ("dict", "write `(map.new)`, and `(map.set? $m K V)`"),
    ("error", "write `(fail CODE)`"),
    ("except", "write `(catch $v $e (CALL …))`, or `(default (CALL …) D)`"),
    ("hash-map", "write `(map.new)`, and `(map.set? $m K V)`"),
    ("import", "call functions by their full names, without an import"),
    (
        "lambda",
        "write `(func $f (param $x i32) (result i32) …)` at the top level, and call it: `($f …)`",
    ),
    ("len", "write `(str.len $s)`, `(arr.len $a)` or `(map.len $m)`"),
    ("length", "write `(str.len $s)`, `(arr.len $a)` or `(map.len $m)`"),
    ("list", "write `(arr.new)`, and `(arr.push? $a V)`"),
    ("log", "write `(dbg.log …)` to log, or `(out …)` to output a result"),
    ("match", "write `(cond (C …) … (else …))`"),
    ("panic", "write `(fail CODE)`"),
    ("print", "write `(out …)` to output a result, or `(dbg.log …)` to log"),
    ("println", "write `(out …)` to output a result, or `(dbg.log …)` to log"),
    ("raise", "write `(fail CODE)`"),
    ("require", "call functions by their full names, without an import"),
    ("switch", "write `(cond (C …) … (else …))`"),
    ("throw", "write `(fail CODE)`"),
    ("try", "write `(catch $v $e (CALL …))`, or `(default (CALL …) D)`"),
    ("vector", "write `(arr.new)`, and `(arr.push? $a V)`"),
];

/// Returns the hint for a name in another language.
pub(super) fn hint(name: &str) -> Option<&'static str> {
    HINTS.iter().find(|(known, _)| *known == name).map(|(_, hint)| *hint)
}

/// Builds the fault of a list that is written as in another language. Returns `None` for an unknown
/// idiom.
pub(super) fn foreign(tree: &Tree<'_>, node: NodeId, host: &Signatures) -> Option<Box<Fault>> {
    let first = *items(tree, node).first()?;
    let name = tree.atom(first);
    let span = name.map_or(tree.span(node), |_| tree.span(first));
    let change = match name {
        Some(_) => rewrite_list(tree, node, host),
        None => rewrite_infix(tree, &items(tree, node)),
    };
    let message = messages::foreign_head(name.unwrap_or_else(|| tree.text(first)));
    match (change, name.and_then(hint)) {
        (Some(change), _) => {
            Some(Fault::new(span, message.suggest_rewrite(tree.source, tree.span(node), change)))
        }
        (None, Some(hint)) => Some(Fault::new(span, message.hint(hint))),
        (None, None) => None,
    }
}

/// Rewrites a list whose head is neither an instruction nor a form, if it has only one possible
/// meaning.
pub(super) fn rewrite_list(tree: &Tree<'_>, list: NodeId, host: &Signatures) -> Option<Change> {
    let items = items(tree, list);
    let first = *items.first()?;
    let name = tree.atom(first)?;
    if let Some(change) = rewrite_infix(tree, &items) {
        return Some(change);
    }
    if let Some(change) = rewrite_update(tree, &items, name) {
        return Some(change);
    }
    if let Some(change) = rewrite_function(tree, list, &items, name) {
        return Some(change);
    }
    let operand = items.get(1).and_then(|node| tree.atom(*node));
    let is_code =
        operand.is_some_and(|text| Code::from_name(text).is_some() || text.starts_with('$'));
    let meant = match (name, items.len()) {
        // A program that exits without a code, or with 0, succeeded.
        ("exit", 1) => "ret",
        ("exit", 2) if operand == Some("0") => return Some(replace_list(tree, list, "(ret)")),
        ("throw", 2) if operand.is_some_and(|text| Code::from_name(text).is_some()) => "fail",
        ("exit" | "raise" | "error" | "abort" | "panic", 2) if is_code => "fail",
        ("let*" | "letrec", _)
            if items.get(1).is_some_and(|second| tree.node(*second).kind == NodeKind::List) =>
        {
            "let"
        }
        _ => head(name, host)?,
    };
    Some(Change::Edits(vec![(tree.span(first), meant.to_owned())]))
}

/// Rewrites `(defun f (a b) …)` and `(define (f a b) …)` as a function that takes and returns i32.
fn rewrite_function(tree: &Tree<'_>, list: NodeId, items: &[NodeId], name: &str) -> Option<Change> {
    if parent(tree, list).is_some() {
        return None;
    }
    let (head, second) = (*items.first()?, *items.get(1)?);
    let (own, params, end) = match name {
        "define" if tree.node(second).kind == NodeKind::List => {
            let inner = crate::rewrite::items(tree, second);
            let (own, params) = inner.split_first()?;
            (tree.atom(*own)?, params.to_vec(), tree.span(second).end)
        }
        "defun" | "defn" | "def" | "fn" | "function" => {
            let params = *items.get(2).filter(|node| tree.node(**node).kind == NodeKind::List)?;
            (tree.atom(second)?, crate::rewrite::items(tree, params), tree.span(params).end)
        }
        _ => return None,
    };
    let dollar =
        |text: &str| if text.starts_with('$') { text.to_owned() } else { format!("${text}") };
    let mut header = format!("func {}", dollar(own));
    for param in params {
        header.push_str(&format!(" (param {} i32)", dollar(tree.atom(param)?)));
    }
    header.push_str(" (result i32)");
    Some(Change::Edits(vec![(tree.span(head).start..end, header)]))
}

fn replace_list(tree: &Tree<'_>, list: NodeId, text: &str) -> Change {
    Change::Edits(vec![(tree.span(list), text.to_owned())])
}

/// Rewrites `($a + $b)` with the operator first. If there are several operators, they must be the
/// same one, and it must take any number of operands.
fn rewrite_infix(tree: &Tree<'_>, items: &[NodeId]) -> Option<Change> {
    let operator = |node: &NodeId| match tree.atom(*node)? {
        "+" => Some("+"),
        "-" => Some("-"),
        "*" => Some("*"),
        "/" => Some("/"),
        "%" => Some("%"),
        "==" | "===" => Some("="),
        "!=" | "!==" => Some("!="),
        "<" => Some("<"),
        "<=" => Some("<="),
        ">" => Some(">"),
        ">=" => Some(">="),
        "&&" | "and" => Some("and"),
        "||" | "or" => Some("or"),
        _ => None,
    };
    let (first, rest) = items.split_first()?;
    if items.len() < 3 || items.len().is_multiple_of(2) || operator(first).is_some() {
        return None;
    }
    let used = rest.iter().step_by(2).map(operator).collect::<Option<Vec<_>>>()?;
    let one = *used.first()?;
    if !used.iter().all(|other| *other == one)
        || used.len() > 1 && !matches!(one, "+" | "*" | "and" | "or")
    {
        return None;
    }
    if rest.iter().skip(1).step_by(2).any(|operand| operator(operand).is_some()) {
        return None;
    }
    let start = tree.span(*first).start;
    let mut edits = vec![(start..start, format!("{one} "))];
    for node in rest.iter().step_by(2) {
        // The operator is removed with the space after it.
        let span = tree.span(*node);
        let blank =
            usize::from(tree.source.get(span.end..).is_some_and(|rest| rest.starts_with(' ')));
        edits.push((span.start..span.end + blank, String::new()));
    }
    Some(Change::Edits(edits))
}

/// Rewrites `(+= $x 1)` and `(inc $x)` as a `set`.
fn rewrite_update(tree: &Tree<'_>, items: &[NodeId], name: &str) -> Option<Change> {
    let [first, target, rest @ ..] = items else { return None };
    let target_name = tree.name(*target)?;
    let operator = match (name, rest.len()) {
        ("+=" | "inc" | "inc!" | "incf" | "++", 1) => "+",
        ("-=" | "dec" | "dec!" | "decf" | "--", 1) => "-",
        ("*=", 1) => "*",
        ("inc" | "inc!" | "incf" | "++" | "1+", 0) => "+",
        ("dec" | "dec!" | "decf" | "--" | "1-", 0) => "-",
        _ => return None,
    };
    let (head, end) = (tree.span(*first), tree.span(*target).end);
    Some(match rest {
        [] => Change::Edits(vec![(
            head.start..end,
            format!("set {target_name} ({operator} {target_name} 1)"),
        )]),
        [value, ..] => {
            let value_end = tree.span(*value).end;
            Change::Edits(vec![
                (head.start..end, format!("set {target_name} ({operator} {target_name}")),
                (value_end..value_end, ")".to_owned()),
            ])
        }
    })
}

/// Rewrites bindings in parentheses: `(let ($x 1) …)`, `(let (($x 1) ($y 2)) …)`, `(for ($i 0 10)
/// …)`, `(each ($x $arr) …)`.
pub(super) fn rewrite_bindings(tree: &Tree<'_>, list: NodeId, target: NodeId) -> Option<Change> {
    if tree.node(target).kind != NodeKind::List {
        return None;
    }
    let all = items(tree, list);
    let (head, inner) = (*all.first()?, items(tree, target));
    let span = tree.span(target);
    let name = tree.atom(head)?;
    if matches!(name, "for" | "each") {
        let message: Vec<&NodeId> =
            inner.iter().filter(|node| !matches!(tree.atom(**node), Some("in" | "of"))).collect();
        let text: Vec<&str> = message.iter().map(|node| tree.text(**node)).collect();
        return (text.len() == if name == "for" { 3 } else { 2 })
            .then(|| Change::Edits(vec![(span, text.join(" "))]));
    }
    if name != "let" {
        return None;
    }
    let pairs = inner
        .iter()
        .all(|node| tree.node(*node).kind == NodeKind::List && items(tree, *node).len() >= 2);
    if pairs && !inner.is_empty() {
        let mut edits = vec![(tree.span(head), "do".to_owned())];
        edits.push((span.start..span.start + 1, String::new()));
        edits.extend(
            inner
                .iter()
                .map(|pair| tree.span(*pair).start + 1)
                .map(|at| (at..at, "let ".to_owned())),
        );
        edits.push((span.end.saturating_sub(1)..span.end, String::new()));
        return Some(Change::Edits(edits));
    }
    let single = inner.len() == 2 && tree.atom(*inner.first()?).is_some();
    single.then(|| {
        let at = span.start + 1;
        Change::Edits(vec![(tree.span(head), "do".to_owned()), (at..at, "let ".to_owned())])
    })
}

/// Adds `then` and `else` to `(if C A B)`.
pub(super) fn add_arms(tree: &Tree<'_>, list: NodeId) -> Option<Change> {
    let all = items(tree, list);
    if all.iter().any(|node| tree.head(*node) == Some("then")) {
        return None;
    }
    let (condition, arms) = (all.get(1)?, all.get(2..)?);
    if tree.name(*condition).is_some() && parent(tree, list).is_none() && arms.is_empty() {
        return None;
    }
    let last = arms.last()?;
    let has_else = tree.head(*last) == Some("else");
    Some(match arms {
        [then, _] if has_else => Change::Edits(around(tree, *then, "(then ", ")")),
        [then] if !has_else => Change::Edits(around(tree, *then, "(then ", ")")),
        [then, other] => {
            let mut edits = around(tree, *then, "(then ", ")");
            edits.extend(around(tree, *other, "(else ", ")"));
            Change::Edits(edits)
        }
        [first, .., before, _] if has_else => {
            let (start, end) = (tree.span(*first).start, tree.span(*before).end);
            Change::Edits(vec![(start..start, "(then ".to_owned()), (end..end, ")".to_owned())])
        }
        [_, _, _, ..] => Change::Edits(vec![(tree.span(*all.first()?), "when".to_owned())]),
        _ => return None,
    })
}

/// Removes `in` or `of` between the name and the range of a loop.
pub(super) fn remove_loop_word(tree: &Tree<'_>, list: NodeId) -> Option<Change> {
    let all = items(tree, list);
    let [head, _, word, over, ..] = all.as_slice() else { return None };
    if !matches!(tree.atom(*word)?, "in" | "of" | ":" | "from" | "=") {
        return None;
    }
    let Change::Edits(mut edits) = crate::rewrite::remove(tree, *word) else { return None };
    let number = tree
        .atom(*over)
        .is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
    if tree.atom(*head) == Some("for") && matches!(tree.atom(*word)?, "in" | "of") && !number {
        edits.push((tree.span(*head), "each".to_owned()));
    }
    Some(Change::Edits(edits))
}

/// Fixes a word that is not a value: `elif` in `cond`, or an operator without its parentheses.
pub(super) fn fix_word(tree: &Tree<'_>, form: NodeId, node: NodeId) -> Option<Change> {
    let text = tree.atom(node)?;
    if tree.head(form) == Some("cond")
        && matches!(text, "elif" | "elsif" | "elseif" | "elif:" | "case")
    {
        return Some(crate::rewrite::remove(tree, node));
    }
    let condition = matches!(tree.head(form)?, "when" | "unless" | "while" | "if");
    if condition && matches!(text, "=" | "!=" | "<" | "<=" | ">" | ">=") {
        let all = items(tree, form);
        let at = all.iter().position(|item| *item == node)?;
        let (start, end) = (tree.span(node).start, tree.span(*all.get(at + 2)?).end);
        return Some(Change::Edits(vec![
            (start..start, "(".to_owned()),
            (end..end, ")".to_owned()),
        ]));
    }
    None
}

/// Maximum number of unknown names for which similar functions are searched.
const MAX_UNKNOWN: usize = 64;

/// Finds a call that is written as in other languages, `f(x)`, or a string with a prefix, `f"…"`.
pub(super) fn call_syntax(tree: &Tree<'_>, host: &Signatures) -> Option<Box<Fault>> {
    let mut nodes = tree.top();
    let mut last: Option<NodeId> = None;
    let mut unknown = 0;
    while let Some(node) = nodes.next_deep(tree) {
        let before =
            last.replace(node).filter(|before| tree.span(*before).end == tree.span(node).start);
        let Some((before, name)) = before.and_then(|before| Some((before, tree.atom(before)?)))
        else {
            continue;
        };
        let span = tree.span(before).start..tree.span(node).end;
        if tree.node(node).kind != NodeKind::List {
            if name == "f" && tree.node(node).kind != NodeKind::Atom {
                let edits = vec![
                    (tree.span(before), "(fmt ".to_owned()),
                    (span.end..span.end, ")".to_owned()),
                ];
                return Some(Fault::new(
                    span,
                    messages::letter_before_text().safe(Change::Edits(edits)),
                ));
            }
            continue;
        }
        let plain = name.trim_end_matches('?');
        let is_head = parent(tree, before).is_some_and(|list| list.0 + 1 == before.0);
        if is_head || !plain.contains('.') {
            continue;
        }
        let mut nearest = || {
            unknown += 1;
            (unknown <= MAX_UNKNOWN).then(|| nearest::certain_function(plain, host, None)).flatten()
        };
        let known = host.get(plain).map(|_| name.to_owned());
        let Some(known) =
            known.or_else(|| nearest().map(|found| found.trim_start_matches('$').to_owned()))
        else {
            continue;
        };
        let open = tree.span(node).start;
        let edits = vec![(span.start..open + 1, format!("({known} "))];
        return Some(Fault::new(span, messages::call_syntax(&known).safe(Change::Edits(edits))));
    }
    None
}

/// Turns prose between forms into a comment.
pub(super) fn comment_prose(tree: &Tree<'_>, atom: NodeId) -> Option<Change> {
    let start = tree.span(atom).start;
    let line = tree.source.get(start..)?.lines().next()?;
    let outside = tree.node(atom).starts_line && parent(tree, atom).is_none();
    let message = line.starts_with(|c: char| c.is_ascii_uppercase()) && line.contains(' ');
    (outside && message && !line.contains(['(', ')', '"', '`']))
        .then(|| Change::Edits(vec![(start..start, ";; ".to_owned())]))
}

/// Moves an `else` into the `if` or `when` that is closed just before it.
pub(super) fn move_else(tree: &Tree<'_>, other: NodeId) -> Option<Change> {
    let before = crate::rewrite::before(tree, other)?;
    let all = items(tree, before);
    let (close, end) = (tree.span(before).end, tree.span(other).end);
    let closed = (end..end, ")".to_owned());
    match tree.head(before)? {
        "if" if all.iter().any(|node| tree.head(*node) == Some("then"))
            && tree.head(*all.last()?) != Some("else") =>
        {
            Some(Change::Edits(vec![(close.checked_sub(1)?..close, String::new()), closed]))
        }
        "when" => {
            let body = tree.span(*all.get(2)?).start;
            let head = (tree.span(*all.first()?), "if".to_owned());
            Some(Change::Edits(vec![head, (body..body, "(then ".to_owned()), closed]))
        }
        _ => None,
    }
}

/// Adds parentheses to a form that is alone on its line.
pub(super) fn add_parentheses(tree: &Tree<'_>, atom: NodeId) -> Option<Change> {
    if !tree.node(atom).starts_line
        || parent(tree, atom).is_some_and(|list| tree.head(list) != Some("module"))
    {
        return None;
    }
    let mut nodes = tree.after(atom);
    let mut last = None;
    while let Some(node) = nodes.peek(tree).filter(|node| !tree.node(*node).starts_line) {
        nodes.next(tree);
        last = Some(node);
    }
    let (start, end) = (tree.span(atom).start, tree.span(last?).end);
    Some(Change::Edits(vec![(start..start, "(".to_owned()), (end..end, ")".to_owned())]))
}

/// Fixes an instruction whose operands are missing, if it has only one possible meaning. A `drop`
/// of nothing is removed, `return` returns 0, and optional arguments become 0.
pub(super) fn supply_operands(
    tree: &Tree<'_>,
    at: NodeId,
    name: &str,
    called: Option<&Signature>,
) -> Option<Change> {
    let items = items(tree, at);
    let is_list = tree.node(at).kind == NodeKind::List;
    match name {
        "drop" if items.len() <= 1 => Some(crate::rewrite::remove(tree, at)),
        "return" if is_list && items.len() == 1 => {
            Some(replace_list(tree, at, "(return (i32.const 0))"))
        }
        "call" if is_list => {
            let called = called?;
            let missing = called.params.get(items.len().checked_sub(2)?..)?;
            let optional =
                !missing.is_empty() && missing.iter().all(|param| param.ty.is_optional());
            let end = tree.span(at).end.checked_sub(1)?;
            optional
                .then(|| Change::Edits(vec![(end..end, " (i32.const 0)".repeat(missing.len()))]))
        }
        _ => None,
    }
}

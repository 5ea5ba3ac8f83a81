//! Idioms from other languages, and their counterparts in this language.

mod branches;
mod calls;
mod lists;
mod loops;
mod names;
mod operators;
pub(crate) mod pasted;
mod readings;
pub(crate) mod rewrite;
mod templates;

use self::operators::rewrite_infix;
use crate::diagnose::fix::{Change, Edits};
use crate::diagnose::nearest;
use crate::diagnose::wording::{self, Fault};
use crate::syntax::tree::{NodeId, NodeKind, Tree};
use crate::{Param, Signature, Signatures};

pub(crate) use self::branches::{add_arms, fix_word, move_else};
pub(crate) use self::lists::rewrite_list;
pub(crate) use self::loops::{loop_of_c, remove_loop_word, rewrite_bindings};
pub(crate) use self::names::{head, hint};
pub(crate) use self::readings::readings;

/// Builds the fault for a list in the syntax of another language. Returns `None` for an unknown
/// idiom.
pub(crate) fn foreign(tree: &Tree<'_>, node: NodeId, host: &Signatures) -> Option<Box<Fault>> {
    let first = *tree.items(node).first()?;
    let name = tree.atom(first);
    let span = name.map_or(tree.span(node), |_| tree.span(first));
    let change = match name {
        Some(_) => rewrite_list(tree, node, host),
        None => rewrite_infix(tree, &tree.items(node)),
    };
    let message = wording::foreign_head(name.unwrap_or_else(|| tree.text(first)));
    match (change, name.and_then(hint)) {
        (Some(change), _) => {
            Some(Fault::new(span, message.suggest_rewrite(tree.source, tree.span(node), change)))
        }
        (None, Some(hint)) => Some(Fault::new(span, message.hint(hint))),
        (None, None) => None,
    }
}

/// Maximum number of unknown names to compare with the known functions.
const MAX_UNKNOWN: usize = 64;

/// Returns a fault for the first call or string in the syntax of another language, such as
/// `str.len(x)` or `f"…"`, if there is one.
pub(crate) fn call_syntax(tree: &Tree<'_>, host: &Signatures) -> Option<Box<Fault>> {
    let mut unknown = 0;
    for before in tree.touching_atoms() {
        let node = NodeId(before.0 + 1);
        let name = tree.text(before);
        let span = tree.span(before).start..tree.span(node).end;
        if !tree.is_list(node) {
            if name == "f" && tree.node(node).kind != NodeKind::Atom {
                let edits = Edits::one(tree.span(before), "(fmt ").insert(span.end, ")");
                return Some(Fault::new(span, wording::letter_before_text().safe(edits)));
            }
            continue;
        }
        let plain = name.trim_end_matches('?');
        let is_head = tree.parent(before).is_some_and(|list| list.0 + 1 == before.0);
        if is_head || !plain.contains('.') {
            continue;
        }
        let mut nearest = || {
            unknown += 1;
            (unknown <= MAX_UNKNOWN).then(|| nearest::certain_function(plain, host, &[])).flatten()
        };
        let known = host.get(plain).map(|_| name.to_owned());
        let Some(known) =
            known.or_else(|| nearest().map(|found| found.trim_start_matches('$').to_owned()))
        else {
            continue;
        };
        let edits = Edits::one(span.start..tree.start(node) + 1, format!("({known} "));
        return Some(Fault::new(span, wording::call_syntax(&known).safe(edits)));
    }
    None
}

/// Turns prose between forms into a comment.
pub(crate) fn comment_prose(tree: &Tree<'_>, atom: NodeId) -> Option<Change> {
    let start = tree.start(atom);
    let line = tree.source.get(start..)?.lines().next()?;
    let outside = tree.node(atom).starts_line && tree.parent(atom).is_none();
    let is_sentence = line.starts_with(|c: char| c.is_ascii_uppercase()) && line.contains(' ');
    (outside && is_sentence && !line.contains(['(', ')', '"', '`']))
        .then(|| Change::edit(start..start, ";; "))
}

/// Adds parentheses to a form that is alone on its line.
pub(crate) fn add_parentheses(tree: &Tree<'_>, atom: NodeId) -> Option<Edits> {
    if !tree.node(atom).starts_line
        || tree.parent(atom).is_some_and(|list| tree.head(list) != Some("module"))
    {
        return None;
    }
    let nodes = tree.after(atom);
    // `print(…)` is a call whose parenthesis is after the name.
    if nodes.peek(tree).is_some_and(|next| tree.touch(atom, next)) {
        return None;
    }
    let last = nodes.iter(tree).take_while(|node| !tree.node(*node).starts_line).last()?;
    Some(Edits::default().wrap(&(tree.start(atom)..tree.end(last)), "(", ")"))
}

/// Fixes an instruction with missing operands if it has only one possible meaning. Removes a `drop`
/// without a value, makes a `return` return 0, or adds the missing optional arguments of a call.
/// Each added argument is the number that represents a missing value.
pub(crate) fn supply_operands(
    tree: &Tree<'_>,
    at: NodeId,
    name: &str,
    called: Option<&Signature>,
) -> Option<Change> {
    let items = tree.items(at);
    let is_list = tree.is_list(at);
    match name {
        "drop" if items.len() <= 1 => Some(Change::edit(rewrite::with_space(tree, at), "")),
        "return" if is_list && items.len() == 1 => {
            Some(Change::edit(tree.span(at), "(return (i32.const 0))"))
        }
        "call" if is_list => {
            let called = called?;
            let missing = called.params.get(items.len().checked_sub(2)?..)?;
            let none = |param: &Param| Some(format!(" (i32.const {})", param.ty.missing()?));
            let optional: Option<String> = missing.iter().map(none).collect();
            let end = tree.span(at).end.checked_sub(1)?;
            optional.filter(|text| !text.is_empty()).map(|text| Change::edit(end..end, text))
        }
        _ => None,
    }
}

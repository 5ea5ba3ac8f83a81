//! Operators. An operator has the type of its operands.

use super::value::{is_number, number_type};
use super::{all_operands, operand_count, operands};
use crate::Signatures;
use crate::emit::flow::{Context, EmittedCode};
use crate::emit::{EmitResult, Emitter};
use crate::fix::Change;
use crate::messages::{Fault, form};
use crate::ops::Val;
use crate::rewrite;
use crate::tree::{NodeId, NodeKind, Tree};

/// `+`, `-`, `*`, `/` and `%`.
pub(super) fn arithmetic(emit: &mut Emitter<'_, '_>, list: NodeId, context: Context) -> EmitResult {
    let tree = emit.tree;
    let head = tree.head(list).unwrap_or("");
    let nodes = all_operands(tree, list);
    match (head, nodes.len()) {
        ("-", 1) => return negate(emit, list, context),
        (_, 2) => {}
        ("+" | "*", 3..) => {}
        ("-" | "/" | "%", 3..) if tree.open.is_empty() => {
            let message =
                form::two_operands(head, nodes.len()).maybe_safe(nest(tree, list, head, &nodes));
            return Err(Fault::new(tree.span(list), message));
        }
        (_, count) => return Err(operand_count(tree, list, 2, count)),
    }
    let ty = operate(emit, list, &nodes, context.want(), |ty| match (head, ty) {
        ("+", _) => Some("add"),
        ("-", _) => Some("sub"),
        ("*", _) => Some("mul"),
        ("/", Val::I32 | Val::I64) => Some("div_s"),
        ("/", _) => Some("div"),
        ("%", Val::I32 | Val::I64) => Some("rem_s"),
        _ => None,
    })?;
    Ok(EmittedCode::one(ty))
}

/// `=`, `!=`, `<`, `<=`, `>` and `>=`.
pub(super) fn compare(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let head = tree.head(list).unwrap_or("");
    let nodes = operands::<2>(tree, list)?;
    if nodes.iter().any(|node| matches!(tree.node(*node).kind, NodeKind::Text | NodeKind::Block)) {
        let texts = nodes.map(|node| tree.text(node));
        let message = form::compared_text(head, texts)
            .maybe_safe(rewrite_string_comparison(tree, emit.host, list, head));
        return Err(Fault::new(tree.span(list), message));
    }
    operate(emit, list, &nodes, None, |ty| {
        let float = matches!(ty, Val::F32 | Val::F64);
        Some(match (head, float) {
            ("=", _) => "eq",
            ("!=", _) => "ne",
            ("<", false) => "lt_s",
            ("<", true) => "lt",
            ("<=", false) => "le_s",
            ("<=", true) => "le",
            (">", false) => "gt_s",
            (">", true) => "gt",
            (_, false) => "ge_s",
            (_, true) => "ge",
        })
    })?;
    Ok(EmittedCode::BOOL)
}

/// Rewrites `(- A B C)` as `(- (- A B) C)`.
fn nest(tree: &Tree<'_>, list: NodeId, head: &str, nodes: &[NodeId]) -> Option<Change> {
    let start = tree.span(list).start;
    let between = nodes.get(1..nodes.len().checked_sub(1)?)?;
    let opened = (start..start, format!("({head} ").repeat(between.len()));
    let closed =
        between.iter().map(|node| tree.span(*node).end).map(|end| (end..end, ")".to_owned()));
    Some(Change::Edits(std::iter::once(opened).chain(closed).collect()))
}

/// Rewrites a comparison of two strings, so that it compares their contents.
fn rewrite_string_comparison(
    tree: &Tree<'_>,
    host: &Signatures,
    list: NodeId,
    head: &str,
) -> Option<Change> {
    let end = tree.span(list).end;
    match (head, rewrite::replace_head(tree, list, "str.eq")?) {
        ("=", change) => Some(change),
        ("!=", Change::Edits(mut edits)) => {
            edits.iter_mut().for_each(|(_, text)| *text = "not (str.eq".to_owned());
            edits.push((end..end, ")".to_owned()));
            Some(Change::Edits(edits))
        }
        (_, Change::Edits(mut edits)) if host.get("str.cmp").is_some() => {
            edits.iter_mut().for_each(|(_, text)| *text = format!("{head} (str.cmp"));
            edits.push((end - 1..end - 1, ") 0".to_owned()));
            Some(Change::Edits(edits))
        }
        _ => None,
    }
}

/// `(- X)`: negates a number.
fn negate(emit: &mut Emitter<'_, '_>, list: NodeId, context: Context) -> EmitResult {
    let [node] = operands::<1>(emit.tree, list)?;
    let at = emit.out.len();
    let ty = emit.value(list, node, context.want())?.ty;
    let ty = if ty == Val::Any { Val::I32 } else { ty };
    let open = match ty {
        Val::F32 | Val::F64 => format!("({}.neg ", ty.name()),
        _ => format!("({0}.sub ({0}.const 0) ", ty.name()),
    };
    emit.wrap(list, at, &open);
    Ok(EmittedCode::one(ty))
}

/// `(not A)`: returns 1 if A is 0, and 0 otherwise.
pub(super) fn not(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let [node] = operands::<1>(emit.tree, list)?;
    emit.put(list, "(i32.eqz ");
    emit.enter(list)?;
    emit.condition(list, node)?;
    emit.depth -= 1;
    emit.put(list, ")");
    Ok(EmittedCode::BOOL)
}

/// `and` and `or`: stop at the first operand that decides the result.
pub(super) fn logic(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let all = tree.head(list) == Some("and");
    let nodes = all_operands(tree, list);
    let Some((last, before)) = nodes.split_last().filter(|(_, before)| !before.is_empty()) else {
        return Err(operand_count(tree, list, 2, nodes.len()));
    };
    let (open, close) = match all {
        true => (" (then ", ") (else (i32.const 0)))"),
        false => (" (then (i32.const 1)) (else ", "))"),
    };
    for node in before {
        emit.put(list, "(if (result i32) ");
        emit.enter(list)?;
        emit.separate(*node);
        emit.condition(list, *node)?;
        emit.put(list, open);
    }
    emit.separate(*last);
    let at = emit.out.len();
    if !emit.condition(list, *last)?.is_bool {
        emit.wrap(list, at, "(i32.ne (i32.const 0) ");
    }
    for _ in before {
        emit.depth -= 1;
        emit.put(list, close);
    }
    Ok(EmittedCode::BOOL)
}

/// Emits operands of one type, with the instruction between each pair. Returns the type.
///
/// A number takes the type of the first operand that is not a number, or `want` if there is none.
fn operate(
    emit: &mut Emitter<'_, '_>,
    list: NodeId,
    nodes: &[NodeId],
    want: Option<Val>,
    instruction: impl Fn(Val) -> Option<&'static str>,
) -> EmitResult<Val> {
    let tree = emit.tree;
    let begin = emit.out.len();
    let number = |node: &NodeId| tree.atom(*node).and_then(number_type);
    let typed = nodes.iter().position(|node| number(node).is_none());
    let (numbers, others) = nodes.split_at(typed.unwrap_or(nodes.len()));
    let mut ty = want.filter(|want| *want != Val::Any);
    if ty.is_none() && others.is_empty() {
        ty = numbers.iter().filter_map(number).max_by_key(|ty| rank(*ty));
    }
    emit.enter(list)?;
    for (at, node) in others.iter().enumerate() {
        emit.separate(*node);
        let found = emit.value(list, *node, ty)?.ty;
        ty = ty.or(Some(found).filter(|found| *found != Val::Any));
        if at + numbers.len() > 0 {
            emit.put(list, ")");
        }
    }
    emit.depth -= 1;
    let ty = ty.unwrap_or(Val::I32);
    let Some(instruction) = instruction(ty) else {
        return Err(Fault::new(
            tree.span(list),
            form::unsupported_operator(tree.head(list).unwrap_or(""), ty),
        ));
    };
    // The instructions and numbers before the operands that were emitted.
    let mut before = format!("({}.{instruction} ", ty.name()).repeat(nodes.len().saturating_sub(1));
    for (at, node) in numbers.iter().enumerate() {
        let text = tree.text(*node);
        if !is_number(ty, text) {
            return Err(Fault::new(
                tree.span(*node),
                form::number_type(text, ty, number(node).unwrap_or(ty)),
            ));
        }
        let close = if at > 0 { ")" } else { "" };
        before.push_str(&format!("({}.const {text}){close} ", ty.name()));
    }
    if others.is_empty() {
        before.truncate(before.trim_end().len());
    }
    emit.insert(list, begin, &before);
    Ok(ty)
}

fn rank(ty: Val) -> u8 {
    match ty {
        Val::F64 => 2,
        Val::I64 => 1,
        _ => 0,
    }
}

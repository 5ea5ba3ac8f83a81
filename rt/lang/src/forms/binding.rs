//! Forms that bind names to values: `let`, `set`, `catch`, `default`, `arg`.

use super::call::{Callee, called};
use super::{all_operands, macros, operand_count, operands};
use crate::emit::flow::{Context, EmittedCode, Flow};
use crate::emit::{EmitResult, Emitter};
use crate::fix::Change;
use crate::messages::{Fault, form};
use crate::ops::Val;
use crate::tree::{NodeId, NodeKind, Tree};
use crate::{idioms, nearest, rewrite};

/// `(let $x V)`, `(let $x i64 V)`: declares a local and sets it.
pub(super) fn declare(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    binding_list(emit, list)?;
    let nodes = all_operands(tree, list);
    let (target, ty, node) = match nodes.as_slice() {
        [target, node] => (*target, None, *node),
        [target, ty, node] => (*target, Some(*ty), *node),
        other => return Err(operand_count(tree, list, 2, other.len())),
    };
    let name = target_name(emit, list, target)?;
    let ty = match ty.map(|ty| (ty, tree.atom(ty).and_then(Val::from_wat))) {
        None => None,
        Some((_, Some(ty))) => Some(ty),
        Some((node, None)) => {
            return Err(Fault::new(tree.span(node), form::let_type(name, tree.text(node))));
        }
    };
    emit.put(list, "(local.set ");
    emit.put(target, name);
    emit.space();
    emit.enter(list)?;
    let out = emit.value(list, node, ty.or_else(|| emit.local(name)))?;
    emit.depth -= 1;
    emit.out.push(')');
    let ty = ty.unwrap_or(if out.ty == Val::Any { Val::I32 } else { out.ty });
    emit.declare(name, ty, target)?;
    Ok(EmittedCode::NOTHING)
}

/// `(set $x V)`: sets a local or a global.
pub(super) fn set(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let [target, node] = operands::<2>(tree, list)?;
    let name = target_name(emit, list, target)?;
    let (instruction, ty) = match emit.local(name) {
        Some(ty) => ("(local.set ", ty),
        None => match emit.types.globals.by_name.get(name) {
            Some(at) => {
                let global = emit.types.globals.list.get(*at).copied().flatten();
                ("(global.set ", global.map_or(Val::Any, |global| global.ty))
            }
            None => {
                let message = form::set_unknown(name, tree.text(node));
                let near = nearest::names(name, emit.locals.by_name.keys().copied());
                // If a local has a similar name, the name may be a typo.
                let change = rewrite::replace_head(tree, list, "let").filter(|_| near.is_empty());
                return Err(Fault::new(tree.span(target), message.maybe_safe(change)));
            }
        },
    };
    emit.put(list, instruction);
    emit.put(target, name);
    emit.space();
    emit.enter(list)?;
    emit.value(list, node, Some(ty).filter(|ty| *ty != Val::Any))?;
    emit.depth -= 1;
    emit.out.push(')');
    Ok(EmittedCode::NOTHING)
}

/// `(catch $v $e (CALL …))`, `(catch $e (CALL …))`: stores a call's results. The program continues
/// if the call fails.
pub(super) fn catch(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let nodes = all_operands(tree, list);
    let Some((call, targets)) =
        nodes.split_last().filter(|(_, targets)| matches!(targets.len(), 1 | 2))
    else {
        return Err(operand_count(tree, list, 3, nodes.len()));
    };
    let mut names = Vec::new();
    for target in targets {
        names.push((*target, target_name(emit, list, *target)?));
    }
    let out = fallible(emit, list, *call)?;
    let results: &[Val] = match out.flow {
        Flow::Net(1) => &[Val::I32],
        Flow::Net(2) => &[out.ty, Val::I32],
        _ => return Err(Fault::new(tree.span(*call), form::catch_call("catch", tree.text(*call)))),
    };
    if results.len() != names.len() {
        let message = form::catch_names(results.len(), tree.text(*call));
        let change = match (results.len(), targets) {
            (1, [value, _]) => Some(rewrite::remove(tree, *value)),
            _ => None,
        };
        return Err(Fault::new(tree.span(list), message.maybe_safe(change)));
    }
    for ((target, name), ty) in names.iter().zip(results) {
        emit.declare(name, *ty, *target)?;
    }
    for (target, name) in names.iter().rev() {
        emit.put(list, " (local.set ");
        emit.put(*target, name);
        emit.out.push(')');
    }
    Ok(EmittedCode::NOTHING)
}

/// `(default (CALL …) D)`: returns the call's value, or D if the call fails.
pub(super) fn default(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let [call, other] = operands::<2>(tree, list)?;
    let out = fallible(emit, list, call)?;
    if out.flow != Flow::Net(2) {
        return Err(Fault::new(tree.span(call), form::catch_call("default", tree.text(call))));
    }
    let ty = out.ty.name();
    emit.put(list, &format!(" (if (param {ty}) (result {ty}) (then (drop) "));
    emit.enter(list)?;
    emit.value(list, other, Some(out.ty))?;
    emit.depth -= 1;
    emit.put(list, ") (else))");
    Ok(EmittedCode::one(out.ty))
}

/// `(arg N)`: returns argument N.
pub(super) fn arg(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let [number] = operands::<1>(emit.tree, list)?;
    macros::argument(emit, list, number)?;
    Ok(EmittedCode { droppable: true, ..EmittedCode::one(Val::I32) })
}

/// Rejects parentheses around the names that a form binds.
pub(super) fn binding_list(emit: &Emitter<'_, '_>, list: NodeId) -> EmitResult<()> {
    match all_operands(emit.tree, list).first() {
        Some(first) if emit.tree.node(*first).kind == NodeKind::List => {
            target_name(emit, list, *first).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Returns the name of the local that a form sets.
pub(super) fn target_name<'s>(
    emit: &Emitter<'_, 's>,
    list: NodeId,
    target: NodeId,
) -> EmitResult<&'s str> {
    let tree = emit.tree;
    tree.name(target).ok_or_else(|| {
        let head = tree.head(list).unwrap_or("");
        let message = form::target(head, super::usage(head), tree.text(target));
        Fault::new(
            tree.span(target),
            message.maybe_safe(idioms::rewrite_bindings(tree, list, target)),
        )
    })
}

/// Returns the change that removes a `catch` or `default` around a call that cannot fail.
fn without_err(tree: &Tree<'_>, form: NodeId, call: NodeId) -> Option<Change> {
    let (outer, inner) = (tree.span(form), tree.span(call));
    match (tree.head(form)?, all_operands(tree, form).as_slice()) {
        ("default", _) => Some(rewrite::replace_with_child(tree, form, call)),
        ("catch", [value, err, _]) => {
            let (value, err) = (tree.name(*value)?, tree.name(*err)?);
            let edits = vec![
                (outer.start..inner.start, format!("(let {value} ")),
                (outer.end..outer.end, format!(" (let {err} 0)")),
            ];
            Some(Change::Edits(edits))
        }
        _ => None,
    }
}

/// Emits a call that returns an error code after its value.
fn fallible(emit: &mut Emitter<'_, '_>, form: NodeId, call: NodeId) -> EmitResult {
    let tree = emit.tree;
    let head = tree.head(form).unwrap_or("");
    if tree.node(call).kind != NodeKind::List {
        return Err(Fault::new(tree.span(call), form::catch_call(head, tree.text(call))));
    }
    match tree.head(call).and_then(|inner| called(emit, inner)) {
        Some(Callee::Host(signature, true)) => {
            let plain = format!("{}.{}", signature.module, signature.name);
            let message = form::question_in_catch(head, &signature)
                .maybe_safe(rewrite::replace_head(tree, call, plain));
            return Err(Fault::new(tree.span(call), message));
        }
        Some(Callee::Host(signature, false)) if !signature.fallible() => {
            let message =
                form::catch_infallible(head, &signature).maybe_safe(without_err(tree, form, call));
            return Err(Fault::new(tree.span(call), message));
        }
        _ => {}
    }
    emit.list(call, Context::Statement)
}

//! The macros of the program interface: `argv`, `check`, `resv`.

use super::operands;
use crate::emit::flow::{Context, EmittedCode, Flow};
use crate::emit::{EmitResult, Emitter};
use crate::fix::Change;
use crate::messages::{self, Fault, form};
use crate::ops::Val;
use crate::rewrite;
use crate::tree::{NodeId, NodeKind};

/// `(argv N $p)`: sets `$p` to the pointer of argument N. Returns EBOUND if the argument is
/// missing.
pub(super) fn argv(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let [number, target] = operands::<2>(tree, list)?;
    let Some(name) = tree.name(target) else {
        let message = messages::argv_target(tree.text(target));
        let change = match (tree.name(number), tree.atom(target)) {
            (Some(_), _) => Some(rewrite::swap(tree, number, target)),
            (None, Some(word)) if word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                Some(Change::Replace(format!("${word}")))
            }
            _ => None,
        };
        return Err(Fault::new(tree.span(target), message.maybe_safe(change)));
    };
    if let Some(ty) = emit.local(name).filter(|ty| !ty.fits(Val::I32)) {
        return Err(Fault::new(tree.span(target), messages::form_target("argv", name, ty)));
    }
    emit.declare(name, Val::I32, target)?;
    emit.put(list, "(local.set ");
    emit.put(target, name);
    emit.space();
    argument(emit, list, number)?;
    emit.out.push(')');
    Ok(EmittedCode::NOTHING)
}

/// Emits the pointer of an argument. The program ends if the argument is missing.
pub(super) fn argument(emit: &mut Emitter<'_, '_>, list: NodeId, number: NodeId) -> EmitResult<()> {
    emit.open_call(list, "sys.argv")?;
    emit.out.push(' ');
    emit.value(list, number, Some(Val::I32))?;
    emit.out.push_str(") ");
    emit.return_on_error(list)
}

/// `(check X)`: returns X from the function if it is not 0.
pub(super) fn check(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let [operand] = operands::<1>(tree, list)?;
    emit.require_code_result(list)?;
    if let Some(name) = tree.name(operand) {
        emit.put(list, "(if ");
        emit.value(list, operand, Some(Val::I32))?;
        emit.put(list, " (then (return (local.get ");
        emit.out.push_str(name);
        emit.out.push_str("))))");
        return Ok(EmittedCode::NOTHING);
    }
    // If the call leaves a value and err, the value stays on the stack.
    let below = match tree.node(operand).kind {
        NodeKind::List => match emit.list(operand, Context::Statement)? {
            EmittedCode { flow: Flow::Net(count @ 2..), ty, .. } => EmittedCode::net(count - 1, ty),
            EmittedCode { flow: Flow::Net(1) | Flow::Never, .. } => EmittedCode::NOTHING,
            EmittedCode { flow: Flow::Unknown, .. } => EmittedCode::UNKNOWN,
            EmittedCode { flow: Flow::Net(_), .. } => {
                let message = form::missing_code(tree.text(operand))
                    .safe(rewrite::replace_with_child(tree, list, operand));
                return Err(Fault::new(tree.span(operand), message));
            }
        },
        _ => {
            emit.value(list, operand, Some(Val::I32))?;
            EmittedCode::NOTHING
        }
    };
    emit.out.push(' ');
    emit.return_on_error(list)?;
    Ok(below)
}

/// `(resv X)`, `(out X)`: outputs a string as a result.
pub(super) fn resv(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let [operand] = operands::<1>(emit.tree, list)?;
    result(emit, list, operand)?;
    Ok(EmittedCode::NOTHING)
}

/// Emits the output of an operand as a result.
pub(super) fn result(emit: &mut Emitter<'_, '_>, list: NodeId, operand: NodeId) -> EmitResult<()> {
    emit.open_call(list, "sys.resv")?;
    emit.out.push(' ');
    emit.enter(list)?;
    emit.value(list, operand, Some(Val::I32))?;
    emit.depth -= 1;
    emit.out.push(')');
    Ok(())
}

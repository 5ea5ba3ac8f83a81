//! The field's own macros: `argv`, `check`, `resv`.

use super::super::emit::{Emitted, Emitter};
use super::super::fix::Change;
use super::super::ops::Val;
use super::super::out::{Flow, Out, Place};
use super::super::rewrite;
use super::super::tree::{Kind, NodeId};
use super::super::wording::{self, Fault};
use super::{operands, words};

/// `(argv N $p)`: sets `$p` to the pointer of argument N, returns EBOUND where there is none.
pub(super) fn argv(emit: &mut Emitter<'_, '_>, list: NodeId, _: Place) -> Emitted {
    let tree = emit.tree;
    let [number, target] = operands::<2>(tree, list)?;
    let Some(name) = tree.name(target) else {
        let words = wording::argv_target(tree.text(target));
        let change = match (tree.name(number), tree.atom(target)) {
            (Some(_), _) => Some(rewrite::swap(tree, number, target)),
            (None, Some(word)) if word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                Some(Change::Instead(format!("${word}")))
            }
            _ => None,
        };
        return Err(Fault::new(tree.span(target), words.perhaps(change)));
    };
    if let Some(ty) = emit.local(name).filter(|ty| !ty.fits(Val::I32)) {
        return Err(Fault::new(tree.span(target), wording::form_target("argv", name, ty)));
    }
    emit.declare(name, Val::I32, target)?;
    emit.put(list, "(local.set ");
    emit.put(target, name);
    emit.blank();
    argument(emit, list, number)?;
    emit.out.push(')');
    Ok(Out::NOTHING)
}

/// Writes the pointer of an argument; the program ends where it is missing.
pub(super) fn argument(emit: &mut Emitter<'_, '_>, list: NodeId, number: NodeId) -> Emitted<()> {
    emit.open_call(list, "sys.argv")?;
    emit.out.push(' ');
    emit.value(list, number, Some(Val::I32))?;
    emit.out.push_str(") ");
    emit.leave_on_error(list)
}

/// `(check X)`: returns X from the function where it is not 0.
pub(super) fn check(emit: &mut Emitter<'_, '_>, list: NodeId, _: Place) -> Emitted {
    let tree = emit.tree;
    let [operand] = operands::<1>(tree, list)?;
    emit.returns_code(list)?;
    if let Some(name) = tree.name(operand) {
        emit.put(list, "(if ");
        emit.value(list, operand, Some(Val::I32))?;
        emit.put(list, " (then (return (local.get ");
        emit.out.push_str(name);
        emit.out.push_str("))))");
        return Ok(Out::NOTHING);
    }
    // Of a call that leaves (value, err) the value stays.
    let below = match tree.node(operand).kind {
        Kind::List => match emit.list(operand, Place::Statement)? {
            Out { flow: Flow::Net(count @ 2..), ty, .. } => Out::net(count - 1, ty),
            Out { flow: Flow::Net(1) | Flow::Never, .. } => Out::NOTHING,
            Out { flow: Flow::Unknown, .. } => Out::UNKNOWN,
            Out { flow: Flow::Net(_), .. } => {
                let words = words::no_code(tree.text(operand)).safe(rewrite::unwrap(tree, list, operand));
                return Err(Fault::new(tree.span(operand), words));
            }
        },
        _ => {
            emit.value(list, operand, Some(Val::I32))?;
            Out::NOTHING
        }
    };
    emit.out.push(' ');
    emit.leave_on_error(list)?;
    Ok(below)
}

/// `(resv X)`, `(out X)`: puts out the value at X as a result.
pub(super) fn resv(emit: &mut Emitter<'_, '_>, list: NodeId, _: Place) -> Emitted {
    let [operand] = operands::<1>(emit.tree, list)?;
    result(emit, list, operand)?;
    Ok(Out::NOTHING)
}

/// Writes that the value of an operand is put out.
pub(super) fn result(emit: &mut Emitter<'_, '_>, list: NodeId, operand: NodeId) -> Emitted<()> {
    emit.open_call(list, "sys.resv")?;
    emit.out.push(' ');
    emit.enter(list)?;
    emit.value(list, operand, Some(Val::I32))?;
    emit.depth -= 1;
    emit.out.push(')');
    Ok(())
}

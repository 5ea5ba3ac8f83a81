//! Forms for the program's arguments and results, and forms that end the program.

use super::{all_operands, operand_count, operands};
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{self, form, types as type_wording};
use crate::habits::rewrite;
use crate::lower::flow::{Context, Lowered, Want};
use crate::lower::function::FuncKind;
use crate::lower::output::Wat;
use crate::lower::{FAIL, LowerResult, Lowering};
use crate::syntax::tree::NodeId;
use crate::types::Type;
use crate::types::ops::Val;

/// Lowers `(argv N $p)`, which sets `$p` to argument N. The code fails with EBOUND if the argument
/// is missing.
pub(super) fn argv<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let tree = lowering.tree;
    let [number, target] = operands::<2>(tree, list)?;
    let Some(name) = tree.name(target) else {
        let message = wording::argv_target(tree.text(target));
        let change = match (tree.name(number), tree.atom(target)) {
            (Some(_), _) => Some(rewrite::swap(tree, number, target)),
            (None, Some(word)) if word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                Some(Change::Replace(format!("${word}")))
            }
            _ => None,
        };
        return lowering.fault(target, message.maybe_safe(change));
    };
    let known = lowering.func.scope.get(name);
    if let Some(val) =
        known.and_then(|known| Val::from_wat(known.wat)).filter(|v| !v.fits(Val::I32))
    {
        return lowering.fault(target, wording::form_target("argv", name, val));
    }
    let variable = lowering.declare(name, Type::Str, target)?;
    lowering.record_set(variable.at, Type::Str);
    let value = argument(lowering, list, number)?;
    Ok(Lowered::none(variable.write(list, Some(value))))
}

/// Returns code that reads an argument. The code fails if the argument is missing.
fn argument<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    number: NodeId,
) -> LowerResult<Wat<'s>> {
    let number = lowering.value(list, number, Want::Type(Type::Int))?.wat;
    let call = lowering.host_call(list, "sys.argv", [number])?;
    let ended = lowering.end_on_error(list)?;
    Ok(Wat::sequence(list, [call, ended]))
}

/// Lowers `(arg N)`, which returns argument N.
pub(super) fn arg<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let [number] = operands::<1>(lowering.tree, list)?;
    let wat = argument(lowering, list, number)?;
    Ok(Lowered::one(wat, Type::Str).dropped_if_unused())
}

/// Lowers `(args)`, which returns an array of all arguments.
pub(super) fn args<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let [] = operands::<0>(lowering.tree, list)?;
    Ok(Lowered::one(lowering.host_call(list, "sys.args", [])?, Type::Arr))
}

/// Lowers `(call "program" ARG …)`, which runs a catalog program and returns its results.
pub(super) fn call<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let nodes = all_operands(lowering.tree, list);
    let Some((program, args)) = nodes.split_first() else {
        return Err(operand_count(lowering.tree, list, 1, 0));
    };
    let program = lowering.value(list, *program, Want::Type(Type::Str))?.wat;
    let number = lowering.next_number();
    let hidden = lowering.hidden("args", number, Val::I32);
    let get = || Wat::list(list, format!("local.get {hidden}"), []);
    let new = lowering.host_call(list, "arr.new", [])?;
    let mut pieces = vec![Wat::list(list, format!("local.set {hidden}"), [new])];
    for arg in args {
        let arg = lowering.value(list, *arg, Want::Type(Type::Str))?.wat;
        pieces.push(lowering.host_call(list, "arr.push", [get(), arg])?);
        pieces.push(lowering.end_on_error(list)?);
    }
    pieces.push(lowering.host_call(list, "par.call", [program, get()])?);
    pieces.push(lowering.end_on_error(list)?);
    Ok(Lowered::one(Wat::sequence(list, pieces), Type::Str).dropped_if_unused())
}

/// Lowers `(out V)` and `(out "{}" V …)`, which output a result.
pub(super) fn out<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let nodes = all_operands(lowering.tree, list);
    Ok(Lowered::none(result(lowering, list, &nodes)?))
}

/// Returns code that outputs a value or a formatted string as a result.
fn result<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    nodes: &[NodeId],
) -> LowerResult<Wat<'s>> {
    let value = match (super::text::formatted(lowering, list, nodes)?, nodes) {
        (Some(formatted), _) => formatted,
        (None, [operand]) => lowering.value(list, *operand, Want::Type(Type::Str))?.wat,
        (None, other) => return Err(operand_count(lowering.tree, list, 1, other.len())),
    };
    lowering.host_call(list, "sys.resv", [value])
}

/// Lowers `(ret V)`, `(ret "{}" V …)` and `(ret)`, which output a result, if any, and end the
/// program.
pub(crate) fn ret<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let tree = lowering.tree;
    if lowering.func.kind != FuncKind::Run {
        let message = form::ret_in_helper(tree.text(list))
            .maybe_safe(rewrite::replace_head(tree, list, "return"));
        return lowering.fault(list, message);
    }
    let mut pieces = Vec::new();
    let nodes = all_operands(tree, list);
    if !nodes.is_empty() {
        pieces.push(result(lowering, list, &nodes)?);
    }
    pieces.push(Wat::list(list, "return", [Wat::i32(list, 0)]));
    Ok(Lowered::never(Wat::sequence(list, pieces)))
}

/// Lowers `(return V)` and `(return)` in a function declared with `fn`.
pub(crate) fn returned<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
) -> LowerResult<Lowered<'s>> {
    let tree = lowering.tree;
    let at = lowering.func.at;
    let mut results = Vec::new();
    match all_operands(tree, list).as_slice() {
        [] => {
            if let Some((ty, first)) = lowering.result(at) {
                let line = lowering.line_of(first);
                return lowering.fault(list, type_wording::return_without_value(ty, line));
            }
        }
        [operand] => {
            let known = match lowering.is_number(*operand) {
                true => lowering.facts.result_so_far(at),
                false => None,
            };
            let want = lowering.wanted_number(*operand, known);
            let value = lowering.value(list, *operand, want)?;
            lowering.join_result(*operand, value.ty)?;
            let ty = lowering.result(at).map_or(Type::Any, |(ty, _)| ty);
            results.push(lowering.convert(list, *operand, value, ty)?.wat);
        }
        more => return Err(operand_count(tree, list, 1, more.len())),
    }
    if lowering.facts.is_fallible(at) {
        results.push(Wat::i32(list, 0));
    }
    Ok(Lowered::never(Wat::list(list, "return", results)))
}

/// Lowers `(fail CODE)`, `(fail CODE "why")` and `(fail CODE "{}" V …)`, which fail with an error
/// code and a reason, like a failed call.
pub(super) fn fail<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let nodes = all_operands(lowering.tree, list);
    let Some((operand, text)) = nodes.split_first() else {
        return Err(operand_count(lowering.tree, list, 1, 0));
    };
    lowering.require_code_result(list)?;
    let code = lowering.value(list, *operand, Want::Type(Type::Code))?.wat;
    let reason = match (super::text::formatted(lowering, list, text)?, text) {
        (Some(formatted), _) => formatted,
        (None, [text]) => lowering.value(list, *text, Want::Type(Type::Str))?.wat,
        (None, []) => Wat::literal(list, &b""[..]),
        (None, _) => return Err(operand_count(lowering.tree, list, 1, nodes.len())),
    };
    let failed = lowering.host_call(list, FAIL, [code, reason])?;
    let ended = lowering.end_on_error(list)?;
    let end = Wat::list(list, "unreachable", []);
    Ok(Lowered::never(Wat::sequence(list, [failed, ended, end])))
}

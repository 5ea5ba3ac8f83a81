//! Explicit conversions: `int`, `long`, `float` and `str`.

use super::call::for_result;
use super::{all_operands, operand_count, operands, text};
use crate::diagnose::wording::types as type_wording;
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::{LowerResult, Lowering};
use crate::syntax::tree::NodeId;
use crate::types::Type;
use crate::types::ops::Val;

/// Lowers `(int X)`, `(long X)` and `(float X)`, which parse a string or convert a number. The code
/// fails if the string cannot be parsed, and traps if the number does not fit.
pub(super) fn number<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    context: Context,
) -> LowerResult<Lowered<'s>> {
    let tree = lowering.tree;
    let [node] = operands::<1>(tree, list)?;
    let head = tree.head(list).unwrap_or("").trim_end_matches(['?', '!']);
    let ty = match (head, context.want()) {
        ("float", _) => Type::Float,
        // An int would be converted to a long anyway, so a number that fits only in a long is also
        // accepted.
        ("long", _) | (_, Want::Type(Type::Long)) => Type::Long,
        _ => Type::Int,
    };
    let out = lowering.value(list, node, Want::Any)?;
    if out.flow != Flow::Net(1) {
        return Ok(Lowered { ty, ..out });
    }
    let wat = match (out.ty, ty) {
        (Type::Str, _) => return parsed(lowering, list, out.wat, ty),
        (Type::Long, Type::Int) => narrowed(lowering, list, out.wat),
        (Type::Long, Type::Float) => {
            lowering.warn_of_quotient(list, node);
            Wat::list(list, "f64.convert_i64_s", [out.wat])
        }
        (Type::Float, Type::Int) => Wat::list(list, "i32.trunc_f64_s", [out.wat]),
        (Type::Float, Type::Long) => Wat::list(list, "i64.trunc_f64_s", [out.wat]),
        (found, _) if found.is_number() || found.is_vague() => {
            let found = if found.is_vague() { Type::Int } else { found };
            lowering.convert(list, node, Lowered { ty: found, ..out }, ty)?.wat
        }
        (found, _) => {
            let usage = super::usage(head);
            let message = type_wording::generic(head, usage, tree.text(node), found);
            return lowering.fault(node, message);
        }
    };
    Ok(Lowered::one(wat, ty))
}

/// Returns code that parses a string as a number. It fails with EPARSE if the string is not a
/// number.
fn parsed<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    string: Wat<'s>,
    ty: Type,
) -> LowerResult<Lowered<'s>> {
    let name = if ty == Type::Float { "str.to_float" } else { "str.to_int" };
    let chosen = lowering.host.get(name).copied();
    let chosen = chosen.map(|signature| for_result(lowering, &signature, Want::Type(ty)));
    let full = chosen.map_or(name.to_owned(), |signature| format!("str.{}", signature.name));
    let found = chosen.and_then(|signature| Some(Type::of_host(signature.results.first()?.ty)));
    let call = lowering.host_call(list, &full, [string])?;
    let ended = lowering.end_on_error(list)?;
    let out = Lowered::one(Wat::sequence(list, [call, ended]), found.unwrap_or(ty));
    Ok(lowering.convert(list, list, out, ty)?.dropped_if_unused())
}

/// Returns code that converts a long to an int. It traps if the long does not fit.
fn narrowed<'s>(lowering: &mut Lowering<'_, 's>, list: NodeId, value: Wat<'s>) -> Wat<'s> {
    let (set, value) = lowering.once(list, value, Val::I64);
    let low = Wat::list(list, "i64.extend32_s", [value.copy()]);
    let overflows = Wat::list(list, "i64.ne", [low, value.copy()]);
    let zero = lowering.zero(list, Val::I64);
    let message = type_wording::wide_int();
    let trap = lowering.trap_if(list, overflows, message, Val::I64, [value.copy(), zero]);
    let narrow = Wat::list(list, "i32.wrap_i64", [value]);
    Wat::sequence(list, set.into_iter().chain([trap, narrow]).collect::<Vec<_>>())
}

/// Lowers `(str A B …)`, which joins the values into one string, in order.
pub(super) fn string<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let nodes = all_operands(lowering.tree, list);
    if nodes.is_empty() {
        return Err(operand_count(lowering.tree, list, 1, 0));
    }
    let mut strings = Vec::new();
    for node in nodes {
        strings.push(lowering.value(list, node, Want::Type(Type::Str))?.wat);
    }
    Ok(Lowered::one(text::joined(lowering, list, strings)?, Type::Str))
}

//! Forms that work on collections of several types: `len`, `at`, `put`, `push`, `pop`, `has`, and
//! the literals `arr` and `map`.

use super::{all_operands, failure, numbers, operands};
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{Fault, form, types as type_wording};
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::{LowerResult, Lowering};
use crate::syntax::literal;
use crate::syntax::tree::NodeId;
use crate::types::Type;
use crate::types::ops::Val;

/// Lowers `(arr A B …)`, which creates an array of strings.
pub(super) fn array<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let number = lowering.next_number();
    let hidden = lowering.hidden("new", number, Val::I32);
    let get = || Wat::list(list, format!("local.get {hidden}"), []);
    let new = lowering.host_call(list, "arr.new", [])?;
    let mut pieces = vec![Wat::list(list, format!("local.set {hidden}"), [new])];
    for node in all_operands(lowering.tree, list) {
        let item = lowering.value(list, node, Want::Type(Type::Str))?.wat;
        pieces.push(lowering.host_call(list, "arr.push", [get(), item])?);
        pieces.push(lowering.end_on_error(list)?);
    }
    pieces.push(get());
    Ok(Lowered::one(Wat::sequence(list, pieces), Type::Arr))
}

/// Lowers `(map K V …)`, which creates a map.
pub(super) fn map<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let number = lowering.next_number();
    let hidden = lowering.hidden("new", number, Val::I32);
    let get = || Wat::list(list, format!("local.get {hidden}"), []);
    let new = lowering.host_call(list, "map.new", [])?;
    let mut pieces = vec![Wat::list(list, format!("local.set {hidden}"), [new])];
    let nodes = all_operands(lowering.tree, list);
    for pair in nodes.chunks(2) {
        let [key, value] = pair else {
            return lowering.fault(list, type_wording::map_operands(nodes.len()));
        };
        let key = lowering.value(list, *key, Want::Type(Type::Str))?.wat;
        let value = lowering.value(list, *value, Want::Type(Type::Str))?.wat;
        pieces.push(lowering.host_call(list, "map.set", [get(), key, value])?);
        pieces.push(lowering.end_on_error(list)?);
    }
    pieces.push(get());
    Ok(Lowered::one(Wat::sequence(list, pieces), Type::Map))
}

/// Lowers the first operand of a form. Its type determines the function that the form calls.
fn collection<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    node: NodeId,
) -> LowerResult<Lowered<'s>> {
    lowering.value(list, node, Want::Any)
}

/// Reports that a form does not accept the type of its first operand. If the type is not yet known,
/// returns placeholder code instead.
fn not_taken<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    node: NodeId,
    out: Lowered<'s>,
) -> LowerResult<Lowered<'s>> {
    let (tree, found) = (lowering.tree, out.ty);
    // `check::walk` reports why the operand's effect on the stack is unknown.
    if out.flow == Flow::Unknown {
        return Ok(out);
    }
    let head = tree.head(list).unwrap_or("");
    let message = type_wording::generic(head, super::usage(head), tree.text(node), found);
    let fault = Fault::new(tree.span(node), message);
    match found {
        Type::Any => Ok(lowering.unresolved(list, fault)),
        _ => Err(fault),
    }
}

/// Returns code for a host call that may fail. If the call fails, the code jumps to the enclosing
/// handler or, if there is none, returns the error code from the function.
fn fallible<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    name: &str,
    args: Vec<Wat<'s>>,
) -> LowerResult<Wat<'s>> {
    let call = lowering.host_call(list, name, args)?;
    let ended = lowering.end_on_error(list)?;
    Ok(Wat::sequence(list, [call, ended]))
}

/// Lowers `(len X)`, the length of a string, an array or a map.
pub(super) fn len<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let [node] = operands::<1>(lowering.tree, list)?;
    let out = collection(lowering, list, node)?;
    let wat = match out.ty {
        Type::Str => lowering.host_call(list, "str.len", [out.wat])?,
        Type::Arr => lowering.host_call(list, "arr.len", [out.wat])?,
        Type::Map => lowering.host_call(list, "map.len", [out.wat])?,
        Type::Numbers(_) => Wat::list(list, "i32.load", [out.wat]),
        _ => return not_taken(lowering, list, node, out),
    };
    Ok(Lowered::one(wat, Type::Int))
}

/// Lowers `(at X I)`, which returns an array item, the value for a map key, or an element of a
/// number array. `(at X I D)` returns D if there is no such item or key.
pub(super) fn at<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let nodes = all_operands(lowering.tree, list);
    let [node, index, other] = nodes.as_slice() else {
        let [node, index] = operands::<2>(lowering.tree, list)?;
        let out = collection(lowering, list, node)?;
        return match out.ty {
            Type::Numbers(elem) => {
                reject_negative(lowering, node, index)?;
                numbers::at(lowering, list, elem, (node, out.wat), index)
            }
            _ => item(lowering, list, (node, out), index),
        };
    };
    let out = collection(lowering, list, *node)?;
    let tried = lowering.guarded(|lowering| item(lowering, list, (*node, out), *index))?;
    failure::value_or(lowering, list, tried, *other)
}

/// Lowers a lookup of an array item or of the value for a map key.
fn item<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    (node, out): (NodeId, Lowered<'s>),
    index: NodeId,
) -> LowerResult<Lowered<'s>> {
    let (name, want) = match out.ty {
        Type::Arr => {
            reject_negative(lowering, node, index)?;
            ("arr.get", Type::Int)
        }
        Type::Map => ("map.get", Type::Str),
        _ => return not_taken(lowering, list, node, out),
    };
    let index = lowering.value(list, index, Want::Type(want))?.wat;
    let wat = fallible(lowering, list, name, vec![out.wat, index])?;
    Ok(Lowered::one(wat, Type::Str).dropped_if_unused())
}

/// Rejects a negative index, which counts from the end in other languages.
fn reject_negative(lowering: &Lowering<'_, '_>, node: NodeId, index: NodeId) -> LowerResult<()> {
    let tree = lowering.tree;
    let (of, text) = (tree.text(node), tree.text(index));
    if literal::integer(text).is_none_or(|index| index >= 0) {
        return Ok(());
    }
    let change = tree
        .name(node)
        .map(|_| Change::Replace(format!("(- (len {of}) {})", text.trim_start_matches('-'))));
    lowering.fault(index, form::negative_index(text, of).maybe_safe(change))
}

/// Lowers `(put X I V)`, which sets an array item, the value for a map key, or an element of a
/// number array.
pub(super) fn put<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let [node, index, value] = operands::<3>(lowering.tree, list)?;
    let out = collection(lowering, list, node)?;
    let (name, want) = match out.ty {
        Type::Arr => ("arr.set", Type::Int),
        Type::Map => ("map.set", Type::Str),
        Type::Numbers(elem) => {
            return numbers::put(lowering, list, elem, (node, out.wat), [index, value]);
        }
        _ => return Ok(not_taken(lowering, list, node, out)?.without_value(list)),
    };
    let index = lowering.value(list, index, Want::Type(want))?.wat;
    let value = lowering.value(list, value, Want::Type(Type::Str))?.wat;
    Ok(Lowered::none(fallible(lowering, list, name, vec![out.wat, index, value])?))
}

/// Lowers `(push X V)`, which appends an item to an array.
pub(super) fn push<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let [node, value] = operands::<2>(lowering.tree, list)?;
    let out = collection(lowering, list, node)?;
    if out.ty != Type::Arr {
        return Ok(not_taken(lowering, list, node, out)?.without_value(list));
    }
    let value = lowering.value(list, value, Want::Type(Type::Str))?.wat;
    Ok(Lowered::none(fallible(lowering, list, "arr.push", vec![out.wat, value])?))
}

/// Lowers `(pop X)`, which removes the last item of an array.
pub(super) fn pop<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let [node] = operands::<1>(lowering.tree, list)?;
    let out = collection(lowering, list, node)?;
    if out.ty != Type::Arr {
        return not_taken(lowering, list, node, out);
    }
    let wat = fallible(lowering, list, "arr.pop", vec![out.wat])?;
    Ok(Lowered::one(wat, Type::Str).dropped_if_unused())
}

/// Lowers `(has X V)`, which returns 1 if V is an item of the array X, a key of the map X or a
/// substring of the string X, and 0 otherwise.
pub(super) fn has<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let [node, value] = operands::<2>(lowering.tree, list)?;
    let out = collection(lowering, list, node)?;
    let name = match out.ty {
        Type::Str => "str.contains",
        Type::Arr => "arr.has",
        Type::Map => "map.has",
        _ => return not_taken(lowering, list, node, out),
    };
    let value = lowering.value(list, value, Want::Type(Type::Str))?.wat;
    Ok(Lowered::one(lowering.host_call(list, name, [out.wat, value])?, Type::Bool))
}

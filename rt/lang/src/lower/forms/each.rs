//! The form `each`, which loops over the items of arrays, maps and number arrays, and over the
//! characters of strings.

use super::binding::{binding_list, target_name};
use super::control::{reject_loop_word, statements};
use super::{all_operands, operand_count};
use crate::diagnose::wording::{Fault, types as type_wording};
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::leaves::Leaves;
use crate::lower::output::Wat;
use crate::lower::variables::Resolved;
use crate::lower::{LowerResult, Lowering};
use crate::syntax::tree::{NodeId, Nodes};
use crate::types::ops::Val;
use crate::types::{Elem, Type};

/// The names of the loop variables, which are set in each iteration.
struct Names<'s> {
    /// The variable for the index of an array item, or for a map key.
    first: Option<(NodeId, &'s str)>,
    /// The variable for the array item or the map value. In a loop over a map without `first`, it
    /// is set to the key.
    item: (NodeId, &'s str),
}

/// Lowers `(each $x ARR …)`, `(each $i $x ARR …)` and `(each $k $v MAP …)`.
pub(super) fn each<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    _: Context,
) -> LowerResult<Lowered<'s>> {
    let tree = lowering.tree;
    let mut body = tree.children(list);
    body.next(tree);
    binding_list(lowering, list)?;
    let (Some(target), Some(second)) = (body.next(tree), body.next(tree)) else {
        return Err(operand_count(tree, list, 2, all_operands(tree, list).len()));
    };
    let name = target_name(lowering, list, target)?;
    reject_loop_word(lowering, list, second)?;
    let (names, array) = match body.peek(tree).filter(|next| two_names(lowering, second, *next)) {
        Some(array) => {
            body.next(tree);
            let item = (second, target_name(lowering, list, second)?);
            (Names { first: Some((target, name)), item }, array)
        }
        None => (Names { first: None, item: (target, name) }, second),
    };
    let collection = lowering.value(list, array, Want::Any)?;
    match collection.ty {
        // `check::walk` reports why the operand's effect on the stack is unknown.
        Type::Any if collection.flow == Flow::Unknown => {
            array_loop(lowering, list, collection.wat, &names, &mut body)
        }
        Type::Arr | Type::I32 => array_loop(lowering, list, collection.wat, &names, &mut body),
        Type::Str => {
            let chars = lowering.host_call(list, "str.chars", [collection.wat])?;
            array_loop(lowering, list, chars, &names, &mut body)
        }
        Type::Map => map_loop(lowering, list, collection.wat, &names, &mut body),
        Type::Numbers(elem) => number_loop(lowering, list, collection.wat, elem, &names, &mut body),
        other => {
            let message = type_wording::not_a_collection(tree.text(array), other);
            let fault = Fault::new(tree.span(array), message);
            match other {
                Type::Any => Ok(lowering.unresolved(list, fault).without_value(list)),
                _ => Err(fault),
            }
        }
    }
}

/// Returns true if a loop has two loop variables. This is the case if the third operand is a known
/// variable, or if the third operand is not a name and the second one does not name a collection.
fn two_names(lowering: &mut Lowering<'_, '_>, second: NodeId, third: NodeId) -> bool {
    let tree = lowering.tree;
    let Some(name) = tree.name(second) else { return false };
    if let Some(third) = tree.name(third) {
        return lowering.resolve(third).is_some();
    }
    let Some(found) = lowering.resolve(name) else { return true };
    match found.ty {
        // The name of a string variable may be the collection, or a loop variable that redeclares
        // it. In the latter case, a collection follows.
        Type::Str => lowering.leaves(third) == Leaves::Value,
        Type::Arr | Type::Map | Type::Numbers(_) | Type::I32 | Type::Any => false,
        _ => true,
    }
}

/// The code for a loop over indices, without the loop's body.
struct IndexLoop<'s> {
    list: NodeId,
    /// The name of the hidden variable for the collection.
    collection: String,
    /// The name of the hidden variable for the index.
    at: String,
    /// The number of items.
    length: Wat<'s>,
    /// The code that sets the loop variables at the start of an iteration.
    begin: Vec<Wat<'s>>,
}

impl<'s> IndexLoop<'s> {
    fn wrap(
        self,
        lowering: &mut Lowering<'_, 's>,
        value: Wat<'s>,
        body: &mut Nodes,
    ) -> LowerResult<Lowered<'s>> {
        let IndexLoop { list, collection, at, length, begin } = self;
        let (leave, next) = lowering.open_loop();
        let body = statements(lowering, body);
        lowering.func.loops.pop();
        let number = lowering.next_number();
        let again = lowering.label("again", number);
        let index = || Wat::list(list, format!("local.get {at}"), []);
        let done = Wat::list(list, "i32.ge_s", [index(), length]);
        let mut inner = vec![Wat::list(list, format!("br_if {leave}"), [done])];
        inner.extend(begin);
        inner.push(Wat::list(list, format!("block {next}"), [body?]));
        let following = Wat::list(list, "i32.add", [index(), Wat::i32(list, 1)]);
        inner.push(Wat::list(list, format!("local.set {at}"), [following]));
        inner.push(Wat::list(list, format!("br {again}"), []));
        let whole = Wat::list(list, format!("loop {again}"), inner);
        let pieces = [
            Wat::list(list, format!("local.set {collection}"), [value]),
            Wat::list(list, format!("local.set {at}"), [Wat::i32(list, 0)]),
            Wat::list(list, format!("block {leave}"), [whole]),
        ];
        Ok(Lowered::none(Wat::sequence(list, pieces)))
    }
}

/// Declares the hidden variables for the collection and the index of a loop. Returns their names.
fn indices(lowering: &mut Lowering<'_, '_>) -> (String, String) {
    let number = lowering.next_number();
    (lowering.hidden("arr", number, Val::I32), lowering.hidden("at", number, Val::I32))
}

/// Declares the loop variable for the index, if there is one.
fn index_name<'s>(
    lowering: &mut Lowering<'_, 's>,
    names: &Names<'s>,
) -> LowerResult<Option<Resolved<'s>>> {
    let Some((node, name)) = names.first else { return Ok(None) };
    lowering.declare(name, Type::Int, node).map(Some)
}

fn array_loop<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    array: Wat<'s>,
    names: &Names<'s>,
    body: &mut Nodes,
) -> LowerResult<Lowered<'s>> {
    let (collection, at) = indices(lowering);
    let index = index_name(lowering, names)?;
    let item = lowering.declare(names.item.1, Type::Str, names.item.0)?;
    let get = |name: &str| Wat::list(list, format!("local.get {name}"), []);
    let length = lowering.host_call(list, "arr.len", [get(&collection)])?;
    let value = lowering.host_call(list, "arr.get", [get(&collection), get(&at)])?;
    let mut begin = vec![value, Wat::list(list, "drop", []), item.write(names.item.0, None)];
    begin.extend(index.map(|index| index.write(list, Some(get(&at)))));
    IndexLoop { list, collection, at, length, begin }.wrap(lowering, array, body)
}

/// Lowers a loop over the keys that a map contains when the loop starts.
fn map_loop<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    map: Wat<'s>,
    names: &Names<'s>,
    body: &mut Nodes,
) -> LowerResult<Lowered<'s>> {
    let (collection, at) = indices(lowering);
    let number = lowering.next_number();
    let hidden = lowering.hidden("map", number, Val::I32);
    let get = |name: &str| Wat::list(list, format!("local.get {name}"), []);
    let (node, name) = names.first.unwrap_or(names.item);
    let key = lowering.declare(name, Type::Str, node)?;
    let length = lowering.host_call(list, "arr.len", [get(&collection)])?;
    let value = lowering.host_call(list, "arr.get", [get(&collection), get(&at)])?;
    let mut begin = vec![value, Wat::list(list, "drop", []), key.write(node, None)];
    if names.first.is_some() {
        let (node, name) = names.item;
        let found = lowering.host_call(list, "map.get", [get(&hidden), key.read(node)])?;
        let ended = lowering.end_on_error(list)?;
        let item = lowering.declare(name, Type::Str, node)?;
        begin.push(item.write(node, Some(Wat::sequence(node, [found, ended]))));
    }
    let set = Wat::list(list, format!("local.set {hidden}"), [map]);
    let keys = lowering.host_call(list, "map.keys", [get(&hidden)])?;
    let out = IndexLoop { list, collection, at, length, begin }.wrap(lowering, keys, body)?;
    Ok(Lowered::none(Wat::sequence(list, [set, out.wat])))
}

fn number_loop<'s>(
    lowering: &mut Lowering<'_, 's>,
    list: NodeId,
    array: Wat<'s>,
    elem: Elem,
    names: &Names<'s>,
    body: &mut Nodes,
) -> LowerResult<Lowered<'s>> {
    let (collection, at) = indices(lowering);
    let index = index_name(lowering, names)?;
    let (node, name) = names.item;
    let item = lowering.declare(name, elem.ty(), node)?;
    let get = |name: &str| Wat::list(list, format!("local.get {name}"), []);
    let length = Wat::list(list, "i32.load", [get(&collection)]);
    let load = super::numbers::load(list, elem, get(&collection), get(&at));
    let mut begin = vec![item.write(node, Some(load))];
    begin.extend(index.map(|index| index.write(list, Some(get(&at)))));
    IndexLoop { list, collection, at, length, begin }.wrap(lowering, array, body)
}

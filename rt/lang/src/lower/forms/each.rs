//! The form `each`, which loops over the items of arrays, maps and number arrays, and over the
//! characters of strings.

use super::numbers::load;
use super::{all_operands, operand_count};
use crate::diagnose::wording::{Fault, types as type_wording};
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::leaves::Leaves;
use crate::lower::output::Wat;
use crate::lower::variables::{Hidden, Resolved};
use crate::lower::{LowerResult, Lowering};
use crate::syntax::tree::{NodeId, Nodes};
use crate::types::{Elem, Type, Val};

/// The names of the loop variables, which are set in each iteration.
struct Names<'s> {
    /// The variable for the index of an array item, or for a map key.
    first: Option<(NodeId, &'s str)>,
    /// The variable for the array item or the map value. In a loop over a map without `first`, it
    /// is set to the key.
    item: (NodeId, &'s str),
}

impl<'s> Lowering<'_, 's> {
    /// Lowers `(each $x ARR …)`, `(each $i $x ARR …)` and `(each $k $v MAP …)`.
    pub(super) fn lower_each(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let tree = self.tree;
        let mut body = tree.operands(list);
        self.binding_list(list)?;
        let (Some(target), Some(second)) = (body.next(tree), body.next(tree)) else {
            return Err(operand_count(tree, list, 2, all_operands(tree, list).len()));
        };
        let name = self.target_name(list, target)?;
        self.reject_loop_word(list, second)?;
        let (names, array) = match body.peek(tree).filter(|next| self.two_names(second, *next)) {
            Some(array) => {
                body.next(tree);
                let item = (second, self.target_name(list, second)?);
                (Names { first: Some((target, name)), item }, array)
            }
            None => (Names { first: None, item: (target, name) }, second),
        };
        let collection = self.value(list, array, Want::Any)?;
        match collection.ty {
            Type::Arr | Type::I32 => self.item_loop(list, collection.wat, None, &names, &mut body),
            // `check::walk` reports why the operand's effect on the stack is unknown.
            Type::Any if collection.flow == Flow::Unknown => {
                self.item_loop(list, collection.wat, None, &names, &mut body)
            }
            Type::Str => {
                let chars = self.host_call(list, "str.chars", [collection.wat])?;
                self.item_loop(list, chars, None, &names, &mut body)
            }
            Type::Map => self.map_loop(list, collection.wat, &names, &mut body),
            Type::Numbers(elem) => {
                self.item_loop(list, collection.wat, Some(elem), &names, &mut body)
            }
            other => {
                let message = type_wording::not_a_collection(tree.text(array), other);
                let fault = Fault::new(tree.span(array), message);
                match other {
                    Type::Any => Ok(self.unresolved(list, fault).without_value(list)),
                    _ => Err(fault),
                }
            }
        }
    }

    /// Returns true if a loop has two loop variables. This is the case if the third operand is a known
    /// variable, or if the third operand is not a name and the second one does not name a collection.
    fn two_names(&mut self, second: NodeId, third: NodeId) -> bool {
        let tree = self.tree;
        let Some(name) = tree.name(second) else { return false };
        if let Some(third) = tree.name(third) {
            return self.resolve(third).is_some();
        }
        let Some(found) = self.resolve(name) else { return true };
        match found.ty {
            // The name of a string variable may be the collection, or a loop variable that redeclares
            // it. In the latter case, a collection follows.
            Type::Str => self.leaves(third) == Leaves::Value,
            Type::Arr | Type::Map | Type::Numbers(_) | Type::I32 | Type::Any => false,
            _ => true,
        }
    }
}

/// A loop over indices, without its body.
struct IndexLoop<'s> {
    list: NodeId,
    collection: Hidden,
    at: Hidden,
    /// The number of items.
    length: Wat<'s>,
    /// The code that sets the loop variables at the start of an iteration.
    begin: Vec<Wat<'s>>,
}

impl<'s> Lowering<'_, 's> {
    /// Lowers a loop over the items of an array or, with `elem`, over the elements of an array of
    /// numbers.
    fn item_loop(
        &mut self,
        list: NodeId,
        array: Wat<'s>,
        elem: Option<Elem>,
        names: &Names<'s>,
        body: &mut Nodes,
    ) -> LowerResult<Lowered<'s>> {
        let (collection, at) = self.indices();
        let index = match names.first {
            Some((node, name)) => Some(self.declare(name, Type::Int, node)?),
            None => None,
        };
        let (node, name) = names.item;
        let item = self.declare(name, elem.map_or(Type::Str, Elem::ty), node)?;
        let (length, mut begin) = match elem {
            Some(elem) => {
                let load = load(list, elem, collection.get(list), at.get(list));
                let length = Wat::list(list, "i32.load", [collection.get(list)]);
                (length, vec![item.write(node, Some(load))])
            }
            None => self.next_item(list, &collection, &at, &item, node)?,
        };
        begin.extend(index.map(|index| index.write(list, Some(at.get(list)))));
        self.index_loop(IndexLoop { list, collection, at, length, begin }, array, body)
    }

    /// Lowers a loop over the keys that a map contains when the loop starts.
    fn map_loop(
        &mut self,
        list: NodeId,
        map: Wat<'s>,
        names: &Names<'s>,
        body: &mut Nodes,
    ) -> LowerResult<Lowered<'s>> {
        let (collection, at) = self.indices();
        let hidden = self.hidden("map", Val::I32);
        let (node, name) = names.first.unwrap_or(names.item);
        let key = self.declare(name, Type::Str, node)?;
        let (length, mut begin) = self.next_item(list, &collection, &at, &key, node)?;
        if names.first.is_some() {
            let (node, name) = names.item;
            let found = self.host_call(list, "map.get", [hidden.get(list), key.read(node)])?;
            let ended = self.end_on_error(list)?;
            let item = self.declare(name, Type::Str, node)?;
            begin.push(item.write(node, Some(Wat::sequence(node, [found, ended]))));
        }
        let keys = self.host_call(list, "map.keys", [hidden.get(list)])?;
        let whole = IndexLoop { list, collection, at, length, begin };
        let out = self.index_loop(whole, keys, body)?;
        Ok(Lowered::none(Wat::sequence(list, [hidden.set(list, map), out.wat])))
    }

    /// Declares the hidden variables for the collection and the index of a loop.
    fn indices(&mut self) -> (Hidden, Hidden) {
        let number = self.next_number();
        (self.numbered("arr", number, Val::I32), self.numbered("at", number, Val::I32))
    }

    /// Returns the code for the length of an array, and the code that sets a variable to the item
    /// at an index.
    fn next_item(
        &mut self,
        list: NodeId,
        array: &Hidden,
        at: &Hidden,
        variable: &Resolved<'s>,
        node: NodeId,
    ) -> LowerResult<(Wat<'s>, Vec<Wat<'s>>)> {
        let length = self.host_call(list, "arr.len", [array.get(list)])?;
        let item = self.host_call(list, "arr.get", [array.get(list), at.get(list)])?;
        // The index is in bounds, so the call does not fail.
        let code = Wat::list(list, "drop", []);
        Ok((length, vec![item, code, variable.write(node, None)]))
    }

    /// Lowers the body of a loop over the indices of `value`.
    fn index_loop(
        &mut self,
        parts: IndexLoop<'s>,
        value: Wat<'s>,
        body: &mut Nodes,
    ) -> LowerResult<Lowered<'s>> {
        let IndexLoop { list, collection, at, length, begin } = parts;
        let (leave, next) = self.open_loop();
        let body = self.statements(body);
        self.func.loops.pop();
        let again = self.new_label("again");
        let done = Wat::list(list, "i32.ge_s", [at.get(list), length]);
        let mut inner = vec![Wat::list(list, format!("br_if {leave}"), [done])];
        inner.extend(begin);
        inner.push(Wat::list(list, format!("block {next}"), [body?]));
        let following = Wat::list(list, "i32.add", [at.get(list), Wat::i32(list, 1)]);
        inner.push(at.set(list, following));
        inner.push(Wat::list(list, format!("br {again}"), []));
        let whole = Wat::list(list, format!("loop {again}"), inner);
        let pieces = [
            collection.set(list, value),
            at.set(list, Wat::i32(list, 0)),
            Wat::list(list, format!("block {leave}"), [whole]),
        ];
        Ok(Lowered::none(Wat::sequence(list, pieces)))
    }
}

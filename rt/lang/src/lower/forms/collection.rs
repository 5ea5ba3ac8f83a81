//! Forms that work on collections of several types: `len`, `at`, `put`, `push`, `pop`, `has`, and
//! the literals `arr` and `map`.

use super::{all_operands, operands};
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{Fault, form, types as type_wording};
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::variables::Hidden;
use crate::lower::{LowerResult, Lowering};
use crate::syntax::literal;
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Lowers `(arr A B …)`, which creates an array of strings.
    pub(super) fn lower_arr(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let hidden = self.hidden("new", Val::I32);
        let nodes = all_operands(self.tree, list);
        let mut pieces = self.filled_array(list, &hidden, &nodes)?;
        pieces.push(hidden.get(list));
        Ok(Lowered::one(Wat::sequence(list, pieces), Type::Arr))
    }

    /// Returns code that creates an array of strings and stores it in a variable.
    pub(super) fn filled_array(
        &mut self,
        list: NodeId,
        array: &Hidden,
        items: &[NodeId],
    ) -> LowerResult<Vec<Wat<'s>>> {
        let new = self.host_call(list, "arr.new", [])?;
        let mut pieces = vec![array.set(list, new)];
        for node in items {
            let item = self.value(list, *node, Want::Type(Type::Str))?.wat;
            pieces.push(self.checked_call(list, "arr.push", [array.get(list), item])?);
        }
        Ok(pieces)
    }

    /// Lowers `(map K V …)`, which creates a map.
    pub(super) fn lower_map(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let hidden = self.hidden("new", Val::I32);
        let new = self.host_call(list, "map.new", [])?;
        let mut pieces = vec![hidden.set(list, new)];
        let nodes = all_operands(self.tree, list);
        for pair in nodes.chunks(2) {
            let [key, value] = pair else {
                return self.fault(list, type_wording::map_operands(nodes.len()));
            };
            let key = self.value(list, *key, Want::Type(Type::Str))?.wat;
            let value = self.value(list, *value, Want::Type(Type::Str))?.wat;
            pieces.push(self.checked_call(list, "map.set", [hidden.get(list), key, value])?);
        }
        pieces.push(hidden.get(list));
        Ok(Lowered::one(Wat::sequence(list, pieces), Type::Map))
    }

    /// Reports that a form does not accept the type of its first operand. If the type is not yet known,
    /// returns placeholder code instead.
    fn not_taken(
        &mut self,
        list: NodeId,
        node: NodeId,
        out: Lowered<'s>,
    ) -> LowerResult<Lowered<'s>> {
        let (tree, found) = (self.tree, out.ty);
        // `check::walk` reports why the operand's effect on the stack is unknown.
        if out.flow == Flow::Unknown {
            return Ok(out);
        }
        let head = tree.head(list).unwrap_or("");
        let message = type_wording::generic(head, super::usage(head), tree.text(node), found);
        let fault = Fault::new(tree.span(node), message);
        match found {
            Type::Any => Ok(self.unresolved(list, fault)),
            _ => Err(fault),
        }
    }

    /// Lowers `(len X)`, the length of a string, an array or a map.
    pub(super) fn lower_len(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let [node] = operands::<1>(self.tree, list)?;
        let out = self.value(list, node, Want::Any)?;
        let wat = match out.ty {
            Type::Str => self.host_call(list, "str.len", [out.wat])?,
            Type::Arr => self.host_call(list, "arr.len", [out.wat])?,
            Type::Map => self.host_call(list, "map.len", [out.wat])?,
            Type::Numbers(_) => Wat::list(list, "i32.load", [out.wat]),
            _ => return self.not_taken(list, node, out),
        };
        Ok(Lowered::one(wat, Type::Int))
    }

    /// Lowers `(at X I)`, which returns an array item, the value for a map key, or an element of a
    /// number array. `(at X I D)` returns D if there is no such item or key.
    pub(super) fn lower_at(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let nodes = all_operands(self.tree, list);
        let [node, index, other] = nodes.as_slice() else {
            let [node, index] = operands::<2>(self.tree, list)?;
            let out = self.value(list, node, Want::Any)?;
            return match out.ty {
                Type::Numbers(elem) => {
                    self.reject_negative(node, index)?;
                    self.numbers_at(list, elem, node, out.wat, index)
                }
                _ => self.collection_item(list, node, out, index),
            };
        };
        let out = self.value(list, *node, Want::Any)?;
        let (out, label) =
            self.guarded(|lowering| lowering.collection_item(list, *node, out, *index))?;
        self.value_or(list, out, label, *other)
    }

    /// Lowers a lookup of an array item or of the value for a map key.
    fn collection_item(
        &mut self,
        list: NodeId,
        node: NodeId,
        out: Lowered<'s>,
        index: NodeId,
    ) -> LowerResult<Lowered<'s>> {
        let (name, want) = match out.ty {
            Type::Arr => {
                self.reject_negative(node, index)?;
                ("arr.get", Type::Int)
            }
            Type::Map => ("map.get", Type::Str),
            _ => return self.not_taken(list, node, out),
        };
        let index = self.value(list, index, Want::Type(want))?.wat;
        let wat = self.checked_call(list, name, [out.wat, index])?;
        Ok(Lowered::one(wat, Type::Str).dropped_if_unused())
    }

    /// Rejects a negative index, which counts from the end in other languages.
    fn reject_negative(&self, node: NodeId, index: NodeId) -> LowerResult<()> {
        let tree = self.tree;
        let (of, text) = (tree.text(node), tree.text(index));
        if literal::integer(text).is_none_or(|index| index >= 0) {
            return Ok(());
        }
        let change = tree
            .name(node)
            .map(|_| Change::Replace(format!("(- (len {of}) {})", text.trim_start_matches('-'))));
        self.fault(index, form::negative_index(text, of).maybe_safe(change))
    }

    /// Lowers `(put X I V)`, which sets an array item, the value for a map key, or an element of a
    /// number array.
    pub(super) fn lower_put(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let [node, index, value] = operands::<3>(self.tree, list)?;
        let out = self.value(list, node, Want::Any)?;
        let (name, want) = match out.ty {
            Type::Arr => ("arr.set", Type::Int),
            Type::Map => ("map.set", Type::Str),
            Type::Numbers(elem) => {
                return self.numbers_put(list, elem, node, out.wat, index, value);
            }
            _ => return Ok(self.not_taken(list, node, out)?.without_value(list)),
        };
        let index = self.value(list, index, Want::Type(want))?.wat;
        let value = self.value(list, value, Want::Type(Type::Str))?.wat;
        Ok(Lowered::none(self.checked_call(list, name, [out.wat, index, value])?))
    }

    /// Lowers `(push X V)`, which appends an item to an array.
    pub(super) fn lower_push(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let [node, value] = operands::<2>(self.tree, list)?;
        let out = self.value(list, node, Want::Any)?;
        if out.ty != Type::Arr {
            return Ok(self.not_taken(list, node, out)?.without_value(list));
        }
        let value = self.value(list, value, Want::Type(Type::Str))?.wat;
        Ok(Lowered::none(self.checked_call(list, "arr.push", [out.wat, value])?))
    }

    /// Lowers `(pop X)`, which removes the last item of an array.
    pub(super) fn lower_pop(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let [node] = operands::<1>(self.tree, list)?;
        let out = self.value(list, node, Want::Any)?;
        if out.ty != Type::Arr {
            return self.not_taken(list, node, out);
        }
        let wat = self.checked_call(list, "arr.pop", [out.wat])?;
        Ok(Lowered::one(wat, Type::Str).dropped_if_unused())
    }

    /// Lowers `(has X V)`, which returns 1 if V is an item of the array X, a key of the map X or a
    /// substring of the string X, and 0 otherwise.
    pub(super) fn lower_has(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let [node, value] = operands::<2>(self.tree, list)?;
        let out = self.value(list, node, Want::Any)?;
        let name = match out.ty {
            Type::Str => "str.contains",
            Type::Arr => "arr.has",
            Type::Map => "map.has",
            _ => return self.not_taken(list, node, out),
        };
        let value = self.value(list, value, Want::Type(Type::Str))?.wat;
        Ok(Lowered::one(self.host_call(list, name, [out.wat, value])?, Type::Bool))
    }
}

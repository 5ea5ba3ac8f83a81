//! Arrays of numbers, which are stored in the program's memory.
//!
//! ```text
//! pointer    u32 number of elements │ 4 unused bytes │ elements
//! ```

use super::operands;
use crate::diagnose::wording::types as type_wording;
use crate::lower::flow::{Context, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::variables::Hidden;
use crate::lower::{LowerResult, Lowering};
use crate::syntax::literal;
use crate::syntax::tree::NodeId;
use crate::types::{Elem, Type, Val};

/// Offset of the first element, in bytes.
const HEADER: u32 = 8;

/// Maximum size of an array, in bytes.
const MAX_BYTES: i64 = 1 << 30;

impl<'s> Lowering<'_, 's> {
    /// Lowers `(ints N)` and `(ints [1 2 3])`, and likewise `longs`, `floats` and `bytes`.
    pub(super) fn lower_numbers(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let elem = Elem::ALL.into_iter().find(|elem| elem.plural() == head).unwrap_or(Elem::Int);
        let [size] = operands::<1>(tree, list)?;
        let pointer = self.hidden("numbers", Val::I32);
        let wat = if tree.is_list(size) && tree.text(size).starts_with('[') {
            self.filled(list, elem, &pointer, size)?
        } else {
            self.zeroed(list, elem, &pointer, size)?
        };
        Ok(Lowered::one(wat, Type::Numbers(elem)))
    }

    /// Returns code that creates an array of zeros.
    fn zeroed(
        &mut self,
        list: NodeId,
        elem: Elem,
        pointer: &Hidden,
        size: NodeId,
    ) -> LowerResult<Wat<'s>> {
        let count = self.value(list, size, Want::Type(Type::Int))?.wat;
        let (set, count) = self.once(list, count, Val::I32);
        let limit = MAX_BYTES >> elem.shift();
        let too_large = Wat::list(list, "i32.gt_u", [count.copy(), Wat::i32(list, limit)]);
        let shown = [count.copy(), Wat::i32(list, limit)];
        let message = type_wording::array_size(elem);
        let mut pieces: Vec<Wat<'s>> = set.into_iter().collect();
        pieces.push(self.trap_if(list, too_large, message, Val::I32, shown));
        pieces.extend(self.allocated(list, elem, pointer, count)?);
        Ok(Wat::sequence(list, pieces))
    }

    /// Returns code that allocates an array of `count` zeros and leaves a pointer to it on the stack.
    fn allocated(
        &mut self,
        list: NodeId,
        elem: Elem,
        pointer: &Hidden,
        count: Wat<'s>,
    ) -> LowerResult<[Wat<'s>; 4]> {
        let header = || Wat::i32(list, HEADER.into());
        let bytes = || scaled(list, elem, count.copy());
        let whole = Wat::list(list, "i32.add", [bytes(), header()]);
        let address = self.host_call(list, "sys.alloc", [whole])?;
        let first = Wat::list(list, "i32.add", [pointer.get(list), header()]);
        Ok([
            pointer.set(list, address),
            Wat::list(list, "i32.store", [pointer.get(list), count.copy()]),
            Wat::list(list, "memory.fill", [first, Wat::i32(list, 0), bytes()]),
            pointer.get(list),
        ])
    }

    /// Returns code that creates an array with the given elements.
    fn filled(
        &mut self,
        list: NodeId,
        elem: Elem,
        pointer: &Hidden,
        elements: NodeId,
    ) -> LowerResult<Wat<'s>> {
        let tree = self.tree;
        let nodes = tree.items(elements);
        let count = Wat::i32(list, i64::try_from(nodes.len()).unwrap_or(i64::MAX));
        let [set, length, zeros, result] = self.allocated(list, elem, pointer, count)?;
        let mut pieces = vec![set, length, zeros];
        for (at, node) in nodes.into_iter().enumerate() {
            let value = self.element(list, elem, node)?;
            let offset = u64::from(HEADER) + ((at as u64) << elem.shift());
            let head = format!("{} offset={offset}", elem.access().1);
            let address = pointer.get(list);
            pieces.push(Wat::list(node, head, [address, value]));
        }
        pieces.push(result);
        Ok(Wat::sequence(list, pieces))
    }

    /// Lowers a value that becomes an element of an array.
    fn element(&mut self, list: NodeId, elem: Elem, node: NodeId) -> LowerResult<Wat<'s>> {
        let text = self.tree.text(node);
        if elem == Elem::Byte && literal::integer(text).is_some_and(|n| !(0..256).contains(&n)) {
            return self.fault(node, type_wording::not_a_byte(text));
        }
        Ok(self.value(list, node, Want::Type(elem.ty()))?.wat)
    }

    /// Lowers `(at X I)` for an array of numbers. The code checks the index, then reads the element.
    pub(super) fn numbers_at(
        &mut self,
        list: NodeId,
        elem: Elem,
        node: NodeId,
        array: Wat<'s>,
        index: NodeId,
    ) -> LowerResult<Lowered<'s>> {
        let (array, at, mut pieces) = self.checked(list, elem, node, array, index)?;
        pieces.push(load(list, elem, array, at));
        Ok(Lowered::one(Wat::sequence(list, pieces), elem.ty()))
    }

    /// Lowers `(put X I V)` for an array of numbers. The code checks the index, then writes the
    /// element.
    pub(super) fn numbers_put(
        &mut self,
        list: NodeId,
        elem: Elem,
        node: NodeId,
        array: Wat<'s>,
        index: NodeId,
        value: NodeId,
    ) -> LowerResult<Lowered<'s>> {
        let (array, at, mut pieces) = self.checked(list, elem, node, array, index)?;
        let mut value = self.element(list, elem, value)?;
        if elem == Elem::Byte && value.constant().is_none() {
            let (set, kept) = self.once(list, value, Val::I32);
            pieces.extend(set);
            let wide = Wat::list(list, "i32.gt_u", [kept.copy(), Wat::i32(list, 255)]);
            let shown = [kept.copy(), Wat::i32(list, 0)];
            pieces.push(self.trap_if(list, wide, type_wording::wide_byte(), Val::I32, shown));
            value = kept;
        }
        let address = Wat::list(list, "i32.add", [array, scaled(list, elem, at)]);
        let head = format!("{} offset={HEADER}", elem.access().1);
        pieces.push(Wat::list(list, head, [address, value]));
        Ok(Lowered::none(Wat::sequence(list, pieces)))
    }

    /// Lowers an index. If the index is a value plus or minus a constant, it may wrap around. The
    /// bounds check then fails, because the wrapped index is negative or far above the length of any
    /// array.
    fn position(&mut self, list: NodeId, index: NodeId) -> LowerResult<Wat<'s>> {
        let tree = self.tree;
        let operands = super::all_operands(tree, index);
        let offset = |node: NodeId| {
            let number = literal::integer(tree.text(node)).filter(|_| self.is_number(node))?;
            (0..=MAX_BYTES).contains(&number).then_some(number)
        };
        let sum = match (tree.head(index), operands.as_slice()) {
            (Some("+"), [a, b]) => match (offset(*a), offset(*b)) {
                (_, Some(number)) => Some(("add", *a, number)),
                (Some(number), None) => Some(("add", *b, number)),
                _ => None,
            },
            (Some("-"), [a, b]) => offset(*b).map(|number| ("sub", *a, number)),
            _ => None,
        };
        let Some((operator, node, offset)) = sum else {
            return Ok(self.value(list, index, Want::Type(Type::Int))?.wat);
        };
        let value = self.value(index, node, Want::Type(Type::Int))?;
        let items = [value.wat, Wat::i32(index, offset)];
        Ok(Wat::list(index, format!("i32.{operator}"), items))
    }

    /// Returns the code that reads the array, the code that reads the index, and a bounds check that
    /// must run before them. The check evaluates the array and the index once, and traps if the index
    /// is out of bounds. The code that reads them may be emitted several times.
    fn checked(
        &mut self,
        list: NodeId,
        elem: Elem,
        node: NodeId,
        array: Wat<'s>,
        index: NodeId,
    ) -> LowerResult<(Wat<'s>, Wat<'s>, Vec<Wat<'s>>)> {
        let at = self.position(list, index)?;
        let (set_array, array) = if at.is_simple() {
            self.once(list, array, Val::I32)
        } else {
            // Evaluating the index may set the variable that holds the array.
            self.stored(list, "value", array, Val::I32)
        };
        let (set_at, at) = self.once(list, at, Val::I32);
        let length = || Wat::list(list, "i32.load", [array.copy()]);
        let outside = Wat::list(list, "i32.ge_u", [at.copy(), length()]);
        let shown = [at.copy(), length()];
        let message = type_wording::outside_array(self.tree.text(node), elem);
        let trap = self.trap_if(list, outside, message, Val::I32, shown);
        let pieces = set_array.into_iter().chain(set_at).chain([trap]).collect();
        Ok((array, at, pieces))
    }
}

/// Returns code that computes the size of `count` elements, in bytes.
fn scaled<'s>(from: NodeId, elem: Elem, count: Wat<'s>) -> Wat<'s> {
    match elem.shift() {
        0 => count,
        shift => Wat::list(from, "i32.shl", [count, Wat::i32(from, shift.into())]),
    }
}

/// Returns code that reads an element without checking its index.
pub(super) fn load<'s>(from: NodeId, elem: Elem, array: Wat<'s>, at: Wat<'s>) -> Wat<'s> {
    let address = Wat::list(from, "i32.add", [array, scaled(from, elem, at)]);
    Wat::list(from, format!("{} offset={HEADER}", elem.access().0), [address])
}

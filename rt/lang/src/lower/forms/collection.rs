//! Forms that work on collections: `len`, `at`, `put`, `push`, `pop`, `has`, the literals `arr` and
//! `map`, and arrays of numbers, which are stored in the program's memory.
//!
//! ```text
//! pointer    u32 number of elements │ 4 unused bytes │ elements
//! ```

use crate::diagnose::fix::Change;
use crate::diagnose::wording::{Fault, form, types as type_wording};
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::forms::{all_operands, operand_count, operands};
use crate::lower::output::Wat;
use crate::lower::variables::Hidden;
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::literal;
use crate::syntax::tree::{NodeId, Tree};
use crate::types::{Elem, Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Lowers `(arr A B …)`, which creates an array of strings.
    pub(super) fn lower_arr(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
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
    pub(super) fn lower_map(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        if let Some(results) = self.map_items(list, context)? {
            return Ok(results);
        }
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

    /// Reports that a form does not accept the type of its first operand. If the type is not yet
    /// known, returns placeholder code instead.
    fn not_taken(&mut self, list: NodeId, node: NodeId, out: Lowered<'s>) -> CodeResult<'s> {
        let tree = self.tree;
        let found = out.ty;
        // `check::walk` reports why the operand's effect on the stack is unknown.
        if out.flow == Flow::Unknown {
            return Ok(out);
        }
        let head = tree.head(list).unwrap_or("");
        let message = type_wording::generic(head, super::usage(head), tree.text(node), found);
        let fault = Fault::at(tree, node, message);
        match found {
            Type::Any => Ok(self.unresolved(list, fault)),
            _ => Err(fault),
        }
    }

    /// Lowers a form that reads or changes a collection: `(len X)`, `(at X I)`, `(put X I V)`,
    /// `(push X V)`, `(pop X)` and `(has X V)`. `(at X I D)` returns D if there is no such item or
    /// key.
    pub(super) fn lower_collection(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        let head = form_name(self.tree, list);
        let wanted = match head {
            "len" | "pop" => 1,
            "put" => 3,
            _ => 2,
        };
        let Some((node, operands)) = nodes.split_first().filter(|_| nodes.len() >= wanted) else {
            return Err(operand_count(self.tree, list, wanted, nodes.len()));
        };
        if let ("push", [item]) = (head, operands)
            && self.is_part_of_value(*node)
            && let Some(place) = self.place(*node)?
        {
            let item = self.shaped(list, *item)?;
            return place.push(self, list, item);
        }
        let out = self.value(list, *node, Want::Any)?;
        match (head, out.ty) {
            ("at", Type::Val) => return self.part(list, out.wat, operands),
            ("put", Type::Val) => return self.put_part(list, out.wat, operands),
            _ => {}
        }
        if nodes.len() > wanted && !(head == "at" && nodes.len() == 3) {
            return Err(operand_count(self.tree, list, wanted, nodes.len()));
        }
        match (head, out.ty, operands) {
            ("at", _, [index, other]) => {
                let (out, label) =
                    self.guarded(|lowering| lowering.call_for(list, *node, out, &[*index]))?;
                self.value_or(list, out, label, *other)
            }
            ("at", Type::Numbers(elem), [index]) => {
                self.reject_negative(*node, *index)?;
                self.numbers_at(list, elem, *node, out.wat, *index)
            }
            ("put", Type::Numbers(elem), [index, value]) => {
                self.numbers_put(list, elem, *node, out.wat, *index, *value)
            }
            ("len", Type::Numbers(_), _) => {
                Ok(Lowered::one(Wat::list(list, "i32.load", [out.wat]), Type::Int))
            }
            _ => self.call_for(list, *node, out, operands),
        }
    }

    /// Calls the host function of a form for a collection of this type.
    pub(super) fn call_for(
        &mut self,
        list: NodeId,
        node: NodeId,
        out: Lowered<'s>,
        operands: &[NodeId],
    ) -> CodeResult<'s> {
        let head = match form_name(self.tree, list) {
            "get" => "at",
            head => head,
        };
        let is_row = |row: &&(&str, Type, &str)| row.0 == head && row.1 == out.ty;
        let Some((.., function)) = OPERATIONS.iter().find(is_row) else {
            let out = self.not_taken(list, node, out)?;
            return Ok(if matches!(head, "push" | "put") { out.without_value(list) } else { out });
        };
        if let ("arr.get", [index]) = (*function, operands) {
            self.reject_negative(node, *index)?;
        }
        let signature = self.host.get(function).copied();
        let params = signature.iter().flat_map(|signature| signature.params).skip(1);
        let mut wants = params.map(|param| Want::Type(Type::of_host(param.ty)));
        let mut args = vec![out.wat];
        for operand in operands {
            args.push(self.value(list, *operand, wants.next().unwrap_or(Want::Any))?.wat);
        }
        let call = self.checked_call(list, function, args)?;
        let fails = signature.is_some_and(|signature| signature.fallible());
        let result = signature.and_then(|signature| signature.results.first());
        Ok(match result.map(|result| Type::of_host(result.ty)) {
            Some(ty) => Lowered { droppable: fails, ..Lowered::one(call, ty) },
            None => Lowered::none(call),
        })
    }

    /// Rejects a negative index, which counts from the end in other languages.
    fn reject_negative(&self, node: NodeId, index: NodeId) -> LowerResult<()> {
        let tree = self.tree;
        let of = tree.text(node);
        let text = tree.text(index);
        if literal::integer(text).is_none_or(|index| index >= 0) {
            return Ok(());
        }
        let change = tree
            .name(node)
            .map(|_| Change::Replace(format!("(- (len {of}) {})", text.trim_start_matches('-'))));
        self.fault(index, form::negative_index(text, of).maybe_safe(change))
    }
}

/// The host function that each form calls for each type of collection.
const OPERATIONS: &[(&str, Type, &str)] = &[
    ("at", Type::Arr, "arr.get"),
    ("at", Type::Map, "map.get"),
    ("has", Type::Str, "str.contains"),
    ("has", Type::Arr, "arr.has"),
    ("has", Type::Map, "map.has"),
    ("has", Type::Val, "val.has"),
    ("len", Type::Str, "str.len"),
    ("len", Type::Arr, "arr.len"),
    ("len", Type::Map, "map.len"),
    ("len", Type::Val, "val.len"),
    ("pop", Type::Arr, "arr.pop"),
    ("pop", Type::Val, "val.pop"),
    ("push", Type::Arr, "arr.push"),
    ("push", Type::Val, "val.push"),
    ("put", Type::Arr, "arr.set"),
    ("put", Type::Map, "map.set"),
];

/// Returns the name of a form, without a mark.
fn form_name(tree: &Tree<'_>, list: NodeId) -> &'static str {
    tree.head(list).and_then(super::form).map_or("", |form| form.name)
}

/// Offset of the first element, in bytes.
const HEADER: u32 = 8;

/// Maximum size of an array, in bytes.
const MAX_BYTES: i64 = 1 << 30;

impl<'s> Lowering<'_, 's> {
    /// Lowers `(ints N)` and `(ints [1 2 3])`, and likewise `longs`, `floats` and `bytes`.
    pub(super) fn lower_numbers(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
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

    /// Returns code that allocates an array of `count` zeros and leaves a pointer to it on the
    /// stack.
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
        let nodes = self.tree.items(elements);
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

    /// Lowers `(at X I)` for an array of numbers. The code checks the index, then reads the
    /// element.
    pub(super) fn numbers_at(
        &mut self,
        list: NodeId,
        elem: Elem,
        node: NodeId,
        array: Wat<'s>,
        index: NodeId,
    ) -> CodeResult<'s> {
        let (array, at, mut pieces) = self.checked(list, elem, node, array, index)?;
        pieces.push(load(list, elem, array, at));
        Ok(Lowered::one(Wat::sequence(list, pieces), elem.ty()))
    }

    /// Returns code that makes a list of the elements of an array of numbers.
    pub(crate) fn list_of_numbers(
        &mut self,
        from: NodeId,
        elem: Elem,
        array: Wat<'s>,
    ) -> LowerResult<Wat<'s>> {
        let number = self.next_number();
        let numbers = self.numbered("numbers", number, Val::I32);
        let items = self.numbered("items", number, Val::I32);
        let at = self.numbered("at", number, Val::I32);
        let (leave, again) = (self.label("leave", number), self.label("again", number));
        let length = Wat::list(from, "i32.load", [numbers.get(from)]);
        let done = Wat::list(from, "i32.ge_s", [at.get(from), length]);
        let element = load(from, elem, numbers.get(from), at.get(from));
        let element = self.boxed(from, element, elem.ty())?;
        let push = self.value_call(from, "push", [items.get(from), element])?;
        let following = Wat::list(from, "i32.add", [at.get(from), Wat::i32(from, 1)]);
        let inner = vec![Wat::br_if(from, &leave, done), push, at.set(from, following)];
        let pieces = [
            numbers.set(from, array),
            items.set(from, self.value_call(from, "list", [])?),
            at.set(from, Wat::i32(from, 0)),
            Wat::repeated(from, &leave, &again, inner),
            items.get(from),
        ];
        Ok(Wat::sequence(from, pieces))
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
    ) -> CodeResult<'s> {
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
    /// bounds check then fails, because the wrapped index is negative or far above the length of
    /// any array.
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

    /// Returns the code that reads the array, the code that reads the index, and a bounds check
    /// that must run before them. The check evaluates the array and the index once, and traps if
    /// the index is out of bounds. The code that reads them may be emitted several times.
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

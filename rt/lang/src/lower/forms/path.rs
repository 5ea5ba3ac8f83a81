//! Parts of values: `$r.name`, `(at $v "users" 0 "name")`, and the places that forms set.

use super::all_operands;
use crate::diagnose::wording::{Fault, types as type_wording};
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::variables::{Declared, Resolved};
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};

/// The key of a part of a value.
pub(super) enum Key<'s> {
    /// The name of an object's part.
    Name(Wat<'s>),
    /// The index of a list's item, an int.
    Index(Wat<'s>),
    /// The handle of a key of any kind.
    Any(Wat<'s>),
}

/// A part of a value that a form sets.
pub(super) struct Place<'s> {
    /// The object or list that contains the part.
    container: Wat<'s>,
    key: Key<'s>,
}

impl<'s> Key<'s> {
    /// Returns the key as a handle.
    fn handle(self, lowering: &mut Lowering<'_, 's>, from: NodeId) -> LowerResult<Wat<'s>> {
        match self {
            Key::Name(name) => lowering.boxed(from, name, Type::Str),
            Key::Index(index) => lowering.boxed(from, index, Type::Int),
            Key::Any(handle) => Ok(handle),
        }
    }

    /// Returns code that reads the part of a value.
    pub(super) fn read(
        self,
        lowering: &mut Lowering<'_, 's>,
        from: NodeId,
        value: Wat<'s>,
    ) -> LowerResult<Wat<'s>> {
        let (function, key) = match self {
            Key::Name(name) => ("key", name),
            Key::Index(index) => ("item", index),
            Key::Any(handle) => ("part", handle),
        };
        lowering.value_call(from, function, [value, key])
    }
}

impl<'s> Place<'s> {
    /// Returns code that sets the part.
    pub(super) fn write(
        self,
        lowering: &mut Lowering<'_, 's>,
        list: NodeId,
        value: Wat<'s>,
    ) -> CodeResult<'s> {
        let set = match self.key {
            Key::Name(name) => {
                lowering.value_call(list, "put_key", [self.container, name, value])?
            }
            key => {
                let key = key.handle(lowering, list)?;
                lowering.value_call(list, "put", [self.container, key, value])?
            }
        };
        Ok(Lowered::none(set))
    }

    /// Returns code that sets the part to the value that `function` computes from its value and
    /// another one. A missing part counts as 0.
    pub(super) fn update(
        self,
        lowering: &mut Lowering<'_, 's>,
        list: NodeId,
        function: &str,
        value: Wat<'s>,
    ) -> CodeResult<'s> {
        let container = lowering.hidden("container", Val::I32);
        let key = lowering.hidden("key", Val::I32);
        let old = lowering.hidden("old", Val::I32);
        let handle = self.key.handle(lowering, list)?;
        let found = lowering.value_call(list, "get", [container.get(list), key.get(list)])?;
        let zero = lowering.boxed(list, Wat::i32(list, 0), Type::Int)?;
        let is_missing = Wat::list(list, "i32.eqz", [old.get(list)]);
        let before = Wat::list(list, "select", [zero, old.get(list), is_missing]);
        let new = lowering.value_call(list, function, [before, value])?;
        let put = lowering.value_call(list, "put", [container.get(list), key.get(list), new])?;
        Ok(Lowered::none(Wat::sequence(
            list,
            [container.set(list, self.container), key.set(list, handle), old.set(list, found), put],
        )))
    }

    /// Returns code that adds an item to the list in the part. A missing list is created.
    pub(super) fn push(
        self,
        lowering: &mut Lowering<'_, 's>,
        list: NodeId,
        item: Wat<'s>,
    ) -> CodeResult<'s> {
        let container = lowering.hidden("container", Val::I32);
        let key = lowering.hidden("key", Val::I32);
        let items = lowering.hidden("items", Val::I32);
        let handle = self.key.handle(lowering, list)?;
        let found = lowering.value_call(list, "get", [container.get(list), key.get(list)])?;
        let new = lowering.value_call(list, "list", [])?;
        let place = [container.get(list), key.get(list), items.get(list)];
        let put = lowering.value_call(list, "put", place)?;
        let created = Wat::sequence(list, [items.set(list, new), put]);
        let is_missing = Wat::list(list, "i32.eqz", [items.get(list)]);
        let push = lowering.value_call(list, "push", [items.get(list), item])?;
        Ok(Lowered::none(Wat::sequence(
            list,
            [
                container.set(list, self.container),
                key.set(list, handle),
                items.set(list, found),
                Wat::when(list, is_missing, created),
                push,
            ],
        )))
    }
}

impl<'s> Lowering<'_, 's> {
    /// Splits a name such as `$r.name` into the variable that its beginning names and the keys of
    /// the part. Returns `None` if the whole name names a variable, or no beginning does.
    pub(super) fn path(&mut self, text: &'s str) -> Option<(Resolved<'s>, &'s str)> {
        if !text.starts_with('$') || self.resolve(text).is_some() {
            return None;
        }
        let dots = text.rmatch_indices('.').map(|(at, _)| at);
        for at in dots {
            let (name, keys) = (text.get(..at)?, text.get(at + 1..)?);
            if let Some(found) = self.resolve(name) {
                let is_path = keys.split('.').all(|key| !key.is_empty());
                let takes = matches!(found.ty, Type::Val | Type::Map)
                    || found.declared == Some(Declared::Let) && found.ty.is_shaped();
                return (is_path && takes).then_some((found, keys));
            }
        }
        None
    }

    /// Lowers a name such as `$r.name`, the part of a variable's value. Returns `None` for any other
    /// name.
    pub(crate) fn path_value(
        &mut self,
        node: NodeId,
        text: &'s str,
    ) -> LowerResult<Option<Lowered<'s>>> {
        let Some((variable, keys)) = self.path(text) else { return Ok(None) };
        let value = variable.read(node);
        Ok(Some(match variable.ty {
            Type::Val => {
                let mut value = value;
                for key in keys.split('.') {
                    value = name_or_index(node, key).read(self, node, value)?;
                }
                Lowered::one(value, Type::Val)
            }
            Type::Map => {
                let key = Wat::literal(node, keys.as_bytes());
                Lowered::one(self.checked_call(node, "map.get", [value, key])?, Type::Str)
            }
            found => {
                let message = type_wording::part_of(text, found);
                let fault = Fault::at(self.tree, node, message);
                self.unresolved(node, fault)
            }
        }))
    }

    /// Returns true if the node is written as a part of a value: `$v.name` or `(at $v "name")`.
    pub(super) fn is_part_of_value(&mut self, node: NodeId) -> bool {
        let tree = self.tree;
        if tree.head(node) == Some("at") {
            return true;
        }
        let part = tree.name(node).and_then(|text| self.path(text));
        part.is_some_and(|(variable, _)| variable.ty == Type::Val)
    }

    /// Lowers the target of a form that sets a variable or a part of its value. Returns `None` if
    /// the target is not a part, such as `$r.name`.
    pub(super) fn place(&mut self, target: NodeId) -> LowerResult<Option<Place<'s>>> {
        if self.tree.head(target) == Some("at") {
            return self.part_place(target);
        }
        let Some(text) = self.tree.name(target) else { return Ok(None) };
        let Some((variable, keys)) = self.path(text) else { return Ok(None) };
        if variable.ty != Type::Val {
            let message = type_wording::part_of(text, variable.ty);
            let fault = Fault::at(self.tree, target, message);
            if variable.ty == Type::Map {
                return Err(fault);
            }
            let container = self.unresolved(target, fault).wat;
            return Ok(Some(Place { container, key: name_or_index(target, keys) }));
        }
        let (inner, last) = keys.rsplit_once('.').map_or((None, keys), |(a, b)| (Some(a), b));
        let mut container = variable.read(target);
        for key in inner.into_iter().flat_map(|inner| inner.split('.')) {
            let key = name_or_index(target, key).handle(self, target)?;
            container = self.value_call(target, "open", [container, key])?;
        }
        Ok(Some(Place { container, key: name_or_index(target, last) }))
    }

    /// Lowers `(at V K…)` as the target of a form that sets it. Returns `None` if V is not a value.
    fn part_place(&mut self, list: NodeId) -> LowerResult<Option<Place<'s>>> {
        let nodes = all_operands(self.tree, list);
        let [node, keys @ .., last] = nodes.as_slice() else { return Ok(None) };
        let out = self.value(list, *node, Want::Any)?;
        if out.ty != Type::Val {
            return Ok(None);
        }
        let mut container = out.wat;
        for key in keys {
            let key = self.key(list, *key)?.handle(self, list)?;
            container = self.value_call(list, "open", [container, key])?;
        }
        let key = self.key(list, *last)?;
        Ok(Some(Place { container, key }))
    }

    /// Lowers a key of a part.
    pub(super) fn key(&mut self, list: NodeId, node: NodeId) -> LowerResult<Key<'s>> {
        let out = self.value(list, node, Want::Any)?;
        Ok(match out.ty {
            Type::Str => Key::Name(out.wat),
            Type::Int | Type::Code | Type::I32 => Key::Index(out.wat),
            _ if out.flow != Flow::Net(1) => Key::Any(out.wat),
            _ => Key::Any(self.convert(list, node, out, Type::Val)?.wat),
        })
    }

    /// Lowers `(at V K…)` for a value: the part that the keys lead to.
    pub(super) fn part(&mut self, list: NodeId, value: Wat<'s>, keys: &[NodeId]) -> CodeResult<'s> {
        let mut value = value;
        for node in keys {
            value = self.key(list, *node)?.read(self, list, value)?;
        }
        Ok(Lowered { droppable: true, ..Lowered::one(value, Type::Val) })
    }

    /// Lowers `(put V K… X)` for a value. Objects that are missing on the way are created.
    pub(super) fn put_part(
        &mut self,
        list: NodeId,
        value: Wat<'s>,
        operands: &[NodeId],
    ) -> CodeResult<'s> {
        let [keys @ .., last, new] = operands else {
            return Err(super::operand_count(self.tree, list, 3, operands.len() + 1));
        };
        let mut container = value;
        for node in keys {
            let key = self.key(list, *node)?.handle(self, list)?;
            container = self.value_call(list, "open", [container, key])?;
        }
        let key = self.key(list, *last)?;
        let new = self.shaped(list, *new)?;
        Place { container, key }.write(self, list, new)
    }

    /// Lowers `(get X K)` and `(get X K D)`: a part of a value, or D if it is missing or null.
    pub(super) fn lower_get(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        let [node, key, other @ ..] = nodes.as_slice() else {
            return Err(super::operand_count(self.tree, list, 2, nodes.len()));
        };
        let collection = self.value(list, *node, Want::Any)?;
        match (collection.ty, other) {
            (Type::Val, [other]) => {
                let (out, label) =
                    self.guarded(|lowering| lowering.part(list, collection.wat, &[*key]))?;
                self.value_or_null(list, out, label, *other)
            }
            (Type::Val, []) => self.part(list, collection.wat, &[*key]),
            (_, []) => self.call_for(list, *node, collection, &[*key]),
            (_, [other]) => {
                let (out, label) =
                    self.guarded(|lowering| lowering.call_for(list, *node, collection, &[*key]))?;
                self.value_or(list, out, label, *other)
            }
            _ => Err(super::operand_count(self.tree, list, 3, nodes.len())),
        }
    }
}

/// Returns the key that a part of a name stands for: an index if it consists of digits.
fn name_or_index<'s>(from: NodeId, key: &'s str) -> Key<'s> {
    match key.parse::<i32>() {
        Ok(index) if key.bytes().all(|byte| byte.is_ascii_digit()) => {
            Key::Index(Wat::i32(from, index.into()))
        }
        _ => Key::Name(Wat::literal(from, key.as_bytes())),
    }
}

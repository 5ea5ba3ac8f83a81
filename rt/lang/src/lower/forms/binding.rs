//! Forms that bind names to values: `let` and `set`.

use super::{all_operands, operand_count, operands};
use crate::diagnose::fix::Edits;
use crate::diagnose::nearest;
use crate::diagnose::wording::{form, types as type_wording};
use crate::habits;
use crate::habits::rewrite;
use crate::lower::flow::{Context, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::program::dollar_name;
use crate::lower::variables::{Resolved, Variable};
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::literal;
use crate::syntax::tree::{NodeId, Tree};
use crate::types::{Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Lowers `(let $x V)`, `(let $x long V)` and `(let $x V $y W)`, which declare and set
    /// variables, in order. `(let ($a $b) ARR)` sets the variables to the items of an array.
    pub(super) fn lower_let(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let nodes = all_operands(tree, list);
        if let [target, array] = nodes.as_slice()
            && let Some(names) = name_list(tree, *target)
        {
            return self.take_apart(list, &names, *array);
        }
        self.binding_list(list)?;
        if let Some((target, edits)) = split_at_names(tree, list, &nodes) {
            let message = form::names_among_bindings(tree.text(target));
            return self.fault(target, message.safe(edits));
        }
        if let [name, loops, _, ..] = nodes.as_slice()
            && tree.atom(*name).is_some_and(|name| !name.starts_with('$'))
            && tree.is_list(*loops)
            && tree.head(*loops).is_none()
        {
            return self.fault(*name, form::named_let(tree.text(*name)));
        }
        if let Some(bindings) = bindings(tree, &nodes) {
            let declare = |binding| self.declare_one(list, binding).map(|out| out.wat);
            let pieces: LowerResult<Vec<_>> = bindings.into_iter().map(declare).collect();
            return Ok(Lowered::none(Wat::sequence(list, pieces?)));
        }
        match nodes.as_slice() {
            [target, value] => {
                self.declare_one(list, Binding { target: *target, ty: None, value: *value })
            }
            [target, ty, value] => {
                self.declare_one(list, Binding { target: *target, ty: Some(*ty), value: *value })
            }
            other => Err(operand_count(tree, list, 2, other.len())),
        }
    }

    /// Declares one variable and sets it.
    fn declare_one(&mut self, list: NodeId, binding: Binding) -> CodeResult<'s> {
        let name = self.target_name(list, binding.target)?;
        Ok(self.declare_named(list, name, binding)?.0)
    }

    /// Declares the variable of a binding under a name and sets it. Also returns the variable.
    fn declare_named(
        &mut self,
        list: NodeId,
        name: &'s str,
        Binding { target, ty, value: node }: Binding,
    ) -> LowerResult<(Lowered<'s>, Resolved<'s>)> {
        let tree = self.tree;
        let declared = match ty.map(|ty| (ty, tree.atom(ty).and_then(Type::from_name))) {
            None => None,
            Some((_, Some(ty))) => Some(ty),
            Some((node, None)) => {
                return self.fault(node, form::let_type(name, tree.text(node)));
            }
        };
        let want = match declared {
            Some(Type::I32) if self.is_number(node) => Want::Type(Type::Int),
            Some(ty) => Want::Type(ty),
            // A number takes the type that the variable already has.
            None if self.is_number(node) => self.known_number(name, node),
            None => Want::Any,
        };
        let value = self.value(list, node, want)?;
        let ty = match declared {
            // `i32` says nothing about the meaning of the value, so the variable gets the value's
            // own type.
            Some(Type::I32) | None => value.ty,
            Some(ty) => ty,
        };
        let variable = match declared {
            Some(ty) => self.declare(name, ty, target)?,
            None => self.declare_let(name, ty, target)?,
        };
        let value = match (value.ty, variable.ty) {
            (found, Type::Val) if found.is_shaped() => {
                self.convert(list, node, value, Type::Val)?
            }
            _ => value,
        };
        Ok((Lowered::none(variable.write(list, Some(value.wat))), variable))
    }

    /// Lowers `(keep $x)`, which keeps the value of a variable for later programs, and
    /// `(keep $x V)`, which sets the variable first. `(keep $x $y $z)` keeps several variables.
    pub(super) fn lower_keep(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        match all_operands(tree, list).as_slice() {
            [] => Err(operand_count(tree, list, 1, 0)),
            [target, value] => {
                // A part of a value cannot be kept without a name.
                let other = tree.name(*value).filter(|value| !value.contains('.'));
                if let (Some(name), Some(other)) = (tree.name(*target), other) {
                    return self.fault(list, form::keep_two(name, other));
                }
                self.keep_value(list, *target, *value)
            }
            variables => {
                let keep = |node: &NodeId| {
                    let name = self.kept_name(*node)?;
                    let value = self.shaped(list, *node)?;
                    self.keep_as(list, name, value)
                };
                let pieces: LowerResult<Vec<_>> = variables.iter().map(keep).collect();
                Ok(Lowered::none(Wat::sequence(list, pieces?)))
            }
        }
    }

    /// Lowers `(keep $x V)`. In `(keep x V)`, x is declared if the program has a variable `$x`.
    fn keep_value(&mut self, list: NodeId, target: NodeId, node: NodeId) -> CodeResult<'s> {
        let tree = self.tree;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let word = tree.text(target).trim_matches('"');
        let word = match word.chars().all(is_plain) && !tree.is_list(target) {
            true => word,
            false => self.kept_name(target)?,
        };
        let name = dollar_name(tree, word);
        if !name.starts_with('$') {
            let value = self.shaped(list, node)?;
            return Ok(Lowered::none(self.keep_as(list, word, value)?));
        }
        let binding = Binding { target, ty: None, value: node };
        let (set, variable) = self.declare_named(list, name, binding)?;
        let value = Lowered::one(self.read_variable(list, &variable, Some(list)), variable.ty);
        let value = self.convert(list, node, value, Type::Val)?;
        let keep = self.keep_as(list, name, value.wat)?;
        Ok(Lowered::none(Wat::sequence(list, [set.wat, keep])))
    }

    /// Returns the name of a variable that is kept.
    fn kept_name(&self, node: NodeId) -> LowerResult<&'s str> {
        match self.tree.name(node).filter(|name| !name.contains('.')) {
            Some(name) => Ok(name),
            None => self.fault(node, form::keep_name(self.tree.text(node))),
        }
    }

    /// Returns code that keeps the value of a handle under a name.
    fn keep_as(&mut self, list: NodeId, name: &'s str, value: Wat<'s>) -> LowerResult<Wat<'s>> {
        let name = Wat::literal(list, name.trim_start_matches('$').as_bytes());
        self.value_call(list, "keep", [name, value])
    }

    /// Returns the expected type of a number literal that is assigned to a variable. This is the
    /// variable's current type if the variable is a long or a float and the literal fits.
    /// Otherwise, any type is accepted.
    fn known_number(&self, name: &str, node: NodeId) -> Want {
        let known = self.func.scope.get(name).map(Variable::ty);
        let text = self.tree.text(node);
        match known {
            Some(ty @ (Type::Long | Type::Float)) if literal::fits(ty.val(), text) => {
                Want::Type(ty)
            }
            _ => Want::Any,
        }
    }

    /// Lowers `(let ($a $b) ARR)`, which sets each variable to one item of the array, in order. The
    /// code fails if the array has fewer items than there are variables.
    fn take_apart(
        &mut self,
        list: NodeId,
        names: &[(NodeId, &'s str)],
        array: NodeId,
    ) -> CodeResult<'s> {
        let value = self.value(list, array, Want::Type(Type::Arr))?;
        let hidden = self.hidden("arr", Val::I32);
        let mut pieces = vec![hidden.set(list, value.wat)];
        for (at, (node, name)) in names.iter().enumerate() {
            let variable = self.declare(name, Type::Str, *node)?;
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            let item =
                self.checked_call(list, "arr.get", [hidden.get(list), Wat::i32(list, at)])?;
            pieces.push(variable.write(*node, Some(item)));
        }
        Ok(Lowered::none(Wat::sequence(list, pieces)))
    }

    /// Lowers `(set $x V)` and `(set $x V $y W)`, which set variables or globals, in order.
    pub(super) fn lower_set(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        let (pairs, rest) = nodes.as_chunks::<2>();
        let all_named = pairs.iter().all(|[target, _]| self.tree.name(*target).is_some());
        if pairs.len() > 1 && rest.is_empty() && all_named {
            self.warn_of_order(pairs);
            let set = |pair: &[NodeId; 2]| self.set_one(list, *pair).map(|out| out.wat);
            let pieces: LowerResult<Vec<_>> = pairs.iter().map(set).collect();
            return Ok(Lowered::none(Wat::sequence(list, pieces?)));
        }
        let pair = operands::<2>(self.tree, list)?;
        self.set_one(list, pair)
    }

    /// Sets one variable.
    fn set_one(&mut self, list: NodeId, [target, node]: [NodeId; 2]) -> CodeResult<'s> {
        if let Some(place) = self.place(target)? {
            let value = self.shaped(list, node)?;
            return place.write(self, list, value);
        }
        let name = self.target_name(list, target)?;
        let variable = self.target_variable(target, name, node)?;
        let value = self.assigned(list, name, &variable, node)?;
        Ok(Lowered::none(variable.write(list, Some(value))))
    }

    /// Resolves the variable that a form sets.
    pub(super) fn target_variable(
        &mut self,
        target: NodeId,
        name: &'s str,
        value: NodeId,
    ) -> LowerResult<Resolved<'s>> {
        let tree = self.tree;
        match self.resolve(name) {
            Some(variable) => Ok(variable),
            None => {
                let message = form::set_unknown(name, tree.text(value));
                let near = nearest::names(name, self.known_variables());
                let parent = tree.parent(target).filter(|list| tree.head(*list) == Some("set"));
                // If a variable has a similar name, the name may be a typo.
                let change = parent
                    .and_then(|list| rewrite::replace_head(tree, list, "let"))
                    .filter(|_| near.is_empty());
                self.fault(target, message.maybe_safe(change))
            }
        }
    }

    /// Lowers the value that a variable is set to.
    fn assigned(
        &mut self,
        list: NodeId,
        name: &str,
        variable: &Resolved<'s>,
        node: NodeId,
    ) -> LowerResult<Wat<'s>> {
        let text = self.tree.text(node);
        // A number that does not fit is reported with the variable's declaration.
        let fits = !variable.ty.is_number() || literal::fits(variable.ty.val(), text);
        let want = match variable.ty {
            Type::Bool => Want::Any,
            ty if self.is_number(node) && fits => Want::Type(ty),
            _ => Want::Any,
        };
        let value = self.value(list, node, want)?;
        self.record_set(variable.at, value.ty);
        let (found, wanted) = (value.ty, variable.ty);
        let is_wider = match (wanted, found) {
            (Type::Bool, Type::Int | Type::Code) => Some(Type::Int),
            (wanted, Type::Val | Type::Null) if wanted.is_shaped() && wanted != Type::Val => {
                Some(Type::Val)
            }
            _ => None,
        };
        if is_wider.is_some_and(|ty| self.widen(variable, ty, node)) {
            return Ok(value.wat);
        }
        // Setting a string variable to a number or an error code is treated as a mistake.
        let mistaken = wanted == Type::Str && found.is_number() && !self.words.raw();
        let converted = if mistaken { None } else { self.convert(list, node, value, wanted).ok() };
        match (converted, variable.node) {
            (Some(value), _) => Ok(value.wat),
            (None, Some(declared)) => {
                let line = self.tree.line(declared);
                self.fault(node, type_wording::set_type(name, wanted, found, line))
            }
            (None, None) => Err(self.type_fault(list, node, found, wanted)),
        }
    }

    /// Rejects parentheses around the names that a form binds.
    pub(super) fn binding_list(&self, list: NodeId) -> LowerResult<()> {
        match all_operands(self.tree, list).first() {
            Some(first) if self.tree.is_list(*first) => self.target_name(list, *first).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Returns the name of the variable that a form sets.
    pub(super) fn target_name(&self, list: NodeId, target: NodeId) -> LowerResult<&'s str> {
        let tree = self.tree;
        match tree.name(target) {
            Some(name) => Ok(name),
            None => {
                let head = tree.head(list).unwrap_or("");
                let message = form::target(head, super::usage(head), tree.text(target));
                let is_called =
                    |head: &str| super::form(head).is_some() || self.callee(head).is_some();
                let change = habits::rewrite_bindings(tree, list, target, &is_called);
                self.fault(target, message.maybe_safe(change))
            }
        }
    }
}

/// A binding in a `let`.
struct Binding {
    target: NodeId,
    /// The type, if the program states it.
    ty: Option<NodeId>,
    value: NodeId,
}

/// Splits operands into bindings. Returns `None` unless the operands consist of at least two
/// bindings.
fn bindings(tree: &Tree<'_>, nodes: &[NodeId]) -> Option<Vec<Binding>> {
    let is_type =
        |node: NodeId| tree.atom(node).is_some_and(|word| Type::from_name(word).is_some());
    let mut rest = nodes;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (binding, after) = match rest {
            [target, ty, value, after @ ..] if is_type(*ty) => {
                (Binding { target: *target, ty: Some(*ty), value: *value }, after)
            }
            [target, value, after @ ..] => {
                (Binding { target: *target, ty: None, value: *value }, after)
            }
            _ => return None,
        };
        tree.name(binding.target)?;
        all.push(binding);
        rest = after;
    }
    (all.len() > 1).then_some(all)
}

/// Returns the first list of names among the names that a `let` binds, and the change that makes a
/// `let` of its own for each list and for the bindings between two lists. Returns `None` if there is
/// no such list, or anything else is bound.
fn split_at_names(tree: &Tree<'_>, list: NodeId, nodes: &[NodeId]) -> Option<(NodeId, Edits)> {
    let mut edits = Edits::default();
    let mut first = None;
    let mut before: Option<(NodeId, bool)> = None;
    let mut rest = nodes;
    while !rest.is_empty() {
        let [target, more @ ..] = rest else { return None };
        let is_list = name_list(tree, *target).is_some_and(|names| names.len() > 1);
        if !is_list {
            tree.name(*target)?;
        }
        let is_type = |node: &NodeId| {
            !is_list && tree.atom(*node).is_some_and(|word| Type::from_name(word).is_some())
        };
        let (value, after) = match more {
            [ty, value, after @ ..] if is_type(ty) => (*value, after),
            [value, after @ ..] => (*value, after),
            [] => return None,
        };
        if let Some((end, was_list)) = before
            && (is_list || was_list)
        {
            edits = edits.insert(tree.end(end), ")").insert(tree.start(*target), "(let ");
        }
        if is_list {
            first = first.or(Some(*target));
        }
        before = Some((value, is_list));
        rest = after;
    }
    let is_form = tree.head(list) == Some("let");
    first.filter(|_| is_form).map(|first| (first, edits))
}

/// Returns the names in a list that consists only of names, each with its node. Returns `None` for
/// any other node.
fn name_list<'s>(tree: &Tree<'s>, list: NodeId) -> Option<Vec<(NodeId, &'s str)>> {
    if !tree.is_list(list) {
        return None;
    }
    let nodes = tree.children(list).iter(tree);
    let names: Option<Vec<_>> = nodes.map(|node| Some((node, tree.name(node)?))).collect();
    names.filter(|names| !names.is_empty())
}

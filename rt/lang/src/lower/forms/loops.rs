//! Loops: `while`, `until`, `repeat`, `for` and `each`.

use crate::diagnose::fix::Change;
use crate::diagnose::wording::{Fault, form, types as type_wording};
use crate::habits;
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::forms::call::Callee;
use crate::lower::forms::collection::load;
use crate::lower::forms::{all_operands, operand_count, operands};
use crate::lower::function::Loop;
use crate::lower::leaves::Leaves;
use crate::lower::output::Wat;
use crate::lower::variables::{Hidden, Resolved, Variable};
use crate::lower::{CodeResult, LowerResult, Lowering, range};
use crate::syntax::literal;
use crate::syntax::tree::{NodeId, NodeKind, Nodes};
use crate::types::{Elem, Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Begins a loop. Returns the label that exits the loop and the label that continues with the
    /// next iteration.
    pub(crate) fn open_loop(&mut self) -> (String, String) {
        let around = Loop { leave: self.next_number(), next: self.next_number() };
        self.func.loops.push(around);
        (self.label("leave", around.leave), self.label("next", around.next))
    }

    /// Lowers `(while C …)` and `(until C …)`, which repeat the body while C is true or, for
    /// `until`, while C is false.
    pub(super) fn lower_while(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let until = self.tree.head(list).is_some_and(|head| head.starts_with("until"));
        let (condition, mut body) = self.first_and_rest(list)?;
        let test = self.condition(list, condition)?.wat;
        let test = if until { test } else { Wat::list(list, "i32.eqz", [test]) };
        let (leave, next) = self.open_loop();
        let body = self.statements(&mut body);
        self.func.loops.pop();
        let inner = vec![Wat::br_if(list, &leave, test), body?];
        Ok(Lowered::none(Wat::repeated(list, &leave, &next, inner)))
    }

    /// Lowers `(repeat N …)`, which runs the body N times.
    pub(super) fn lower_repeat(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let (count, mut body) = self.first_and_rest(list)?;
        let count = self.value(list, count, Want::Type(Type::Int))?.wat;
        let number = self.next_number();
        let left = self.numbered("left", number, Val::I32);
        let set = left.set(list, count);
        let (leave, next) = self.open_loop();
        let body = self.statements(&mut body);
        self.func.loops.pop();
        let again = self.label("again", number);
        let test = Wat::list(list, "i32.le_s", [left.get(list), Wat::i32(list, 0)]);
        let fewer = Wat::list(list, "i32.sub", [left.get(list), Wat::i32(list, 1)]);
        let inner = vec![
            Wat::br_if(list, &leave, test),
            left.set(list, fewer),
            Wat::list(list, format!("block {next}"), [body?]),
        ];
        let whole = Wat::repeated(list, &leave, &again, inner);
        Ok(Lowered::none(Wat::sequence(list, [set, whole])))
    }

    /// Lowers `(break)`, which exits the innermost loop.
    pub(super) fn lower_break(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        self.loop_branch(list, "leave", |around| around.leave)
    }

    /// Lowers `(continue)`, which continues with the next iteration of the innermost loop.
    pub(super) fn lower_continue(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        self.loop_branch(list, "next", |around| around.next)
    }

    fn loop_branch(
        &mut self,
        list: NodeId,
        label: &str,
        which: fn(&Loop) -> usize,
    ) -> CodeResult<'s> {
        let [] = operands::<0>(self.tree, list)?;
        let Some(number) = self.func.loops.last().map(which) else {
            let head = self.tree.head(list).unwrap_or("");
            return self.fault(list, form::outside_loop(head));
        };
        let label = self.label(label, number);
        Ok(Lowered::never(Wat::br(list, &label)))
    }

    /// Rejects a word such as `in` between the variable of a loop and its range or collection.
    pub(super) fn reject_loop_word(&self, list: NodeId, word: NodeId) -> LowerResult<()> {
        let tree = self.tree;
        match habits::remove_loop_word(tree, list) {
            Some(change) if literal::number_type(tree.text(word)).is_none() => {
                let head = tree.head(list).unwrap_or("");
                let message = form::not_a_value(head, super::usage(head), tree.text(word), false);
                self.fault(word, message.safe(change))
            }
            _ => Ok(()),
        }
    }

    /// Lowers `(for $i FROM TO …)` and `(for $i FROM TO STEP …)`, which count from FROM to TO,
    /// exclusive.
    pub(super) fn lower_for(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let mut body = tree.operands(list);
        self.binding_list(list)?;
        let (Some(target), Some(from), Some(to)) =
            (body.next(tree), body.next(tree), body.next(tree))
        else {
            return Err(operand_count(tree, list, 3, all_operands(tree, list).len()));
        };
        let name = self.target_name(list, target)?;
        self.reject_loop_word(list, from)?;
        self.reject_condition(name, to, body)?;
        let step = body.peek(tree).filter(|node| tree.node(*node).kind == NodeKind::Atom);
        if step.is_some() {
            body.next(tree);
        }
        let bounds: Vec<NodeId> = [from, to].into_iter().chain(step).collect();
        let known = self.func.scope.get(name).map(Variable::ty);
        let want = known.filter(|ty| *ty == Type::Long).map_or(Want::Any, Want::Type);
        let (values, ty) = self.numbers(list, &bounds, want)?;
        let mut values = values.into_iter();
        let (Some(from_value), Some(to_value)) = (values.next(), values.next()) else {
            return Err(operand_count(tree, list, 3, 0));
        };
        let step_value = values.next();
        let is_empty = match (from_value.constant(), to_value.constant()) {
            (Some(from), Some(to)) => from > to,
            // Only a loop from a negative number counts up to 0 or less.
            (None, Some(to)) => to <= 0,
            _ => false,
        };
        if is_empty && step.is_none() {
            self.warn(to, form::counts_up(tree.text(from), tree.text(to)));
        }
        if !matches!(ty.val(), Val::I32 | Val::I64) {
            let integer = |node: &&NodeId| {
                let text = tree.text(**node);
                literal::number_type(text).is_some_and(|ty| ty != Val::F64)
            };
            let first = bounds.iter().find(|node| !integer(node)).copied().unwrap_or(from);
            return self.fault(first, form::count_type(tree.text(first), ty));
        }
        let ty = if ty == Type::I32 { Type::Int } else { ty };
        let counter = self.declare(name, ty, target)?;
        self.record_set(counter.at, ty);
        let val = ty.val();
        let ends = from_value.constant().zip(to_value.constant());
        // The bounds are evaluated once, before the first iteration.
        let mut pieces = vec![counter.write(list, Some(from_value))];
        let mut keep = |lowering: &mut Self, what: &str, value: Wat<'s>| {
            if value.constant().is_some() {
                return value;
            }
            let (set, get) = lowering.stored(list, what, value, val);
            pieces.extend(set);
            get
        };
        let to_value = keep(self, "to", to_value);
        let step_value = step_value.map(|value| keep(self, "step", value));
        if let Some(step) = step.filter(|_| step_value.as_ref().and_then(Wat::constant) == Some(0))
        {
            return self.fault(step, type_wording::zero_step());
        }
        let (leave, next) = self.open_loop();
        // In the body, the counter is between the bounds, unless the body sets it.
        let is_kept = !counter.is_global && !range::may_set(tree, body, name);
        let range = ends
            .filter(|_| is_kept && val == Val::I32)
            .map(|(from, to)| (from.min(to), from.max(to)));
        let before = self.set_range(counter.at, range);
        let lowered = self.statements(&mut body);
        self.set_range(counter.at, before);
        self.func.loops.pop();
        let counting = Counting { list, val, counter, is_kept, to: to_value, step: step_value };
        let whole = counting.loop_of(self, &leave, &next, lowered?)?;
        pieces.push(whole);
        Ok(Lowered::none(Wat::sequence(list, pieces)))
    }

    /// Rejects a condition on the counter in place of the end value, as in `(for $i 0 (< $i 10)
    /// …)`.
    fn reject_condition(&self, name: &str, to: NodeId, mut body: Nodes) -> LowerResult<()> {
        let tree = self.tree;
        let operands = all_operands(tree, to);
        let (Some(head), [counter, end]) = (tree.head(to), operands.as_slice()) else {
            return Ok(());
        };
        if tree.name(*counter) != Some(name) {
            return Ok(());
        }
        let end = tree.text(*end);
        let beyond =
            |sign: &str, by: i64| match literal::integer(end).and_then(|n| n.checked_add(by)) {
                Some(number) => number.to_string(),
                None => format!("({sign} {end} 1)"),
            };
        let (written, counts_down) = match head {
            "<" | "!=" => (end.to_owned(), false),
            "<=" => (beyond("+", 1), false),
            ">" => (end.to_owned(), true),
            ">=" => (beyond("-", -1), true),
            _ => return Ok(()),
        };
        let mut next = body.next(tree);
        let step = next.and_then(|node| tree.atom(node));
        if step.is_some() {
            next = body.next(tree);
        }
        // If an update of the counter follows the condition, the fixed loop would count twice.
        let updates = next.is_some_and(|node| {
            let operands = all_operands(tree, node);
            matches!(tree.head(node), Some("set" | "local.set" | "+=" | "-=" | "*="))
                && operands.first().and_then(|target| tree.name(*target)) == Some(name)
        });
        // A safe fix keeps the end value as it is written. Replacing `(<= $i 10)` with `11` would
        // not.
        let is_certain = !updates
            && written.contains(end)
            && counts_down == step.is_some_and(|step| step.starts_with('-'));
        let message = form::condition_as_end(name, &written);
        let change = is_certain.then_some(Change::Replace(written));
        self.fault(to, message.maybe_safe(change))
    }
}

/// A counting loop.
struct Counting<'s> {
    list: NodeId,
    val: Val,
    counter: Resolved<'s>,
    /// If true, the body does not set the counter, so with a step of 1 or -1 the counter never
    /// wraps around.
    is_kept: bool,
    to: Wat<'s>,
    step: Option<Wat<'s>>,
}

impl<'s> Counting<'s> {
    /// Returns the code for the loop, which includes the given body.
    fn loop_of(
        &self,
        lowering: &mut Lowering<'_, 's>,
        leave: &str,
        next: &str,
        body: Wat<'s>,
    ) -> LowerResult<Wat<'s>> {
        let list = self.list;
        let again = lowering.new_label("again");
        let done = self.done(list);
        let mut inner = Vec::new();
        if let Some(step) = self.step.as_ref().filter(|step| step.constant().is_none()) {
            let test = self.op("eq", [step.copy(), Wat::number(list, self.val, 0)]);
            let none = || Wat::number(list, Val::I64, 0);
            let message = type_wording::zero_step_trap();
            inner.push(lowering.trap_if(list, test, message, Val::I64, [none(), none()]));
        }
        inner.push(Wat::br_if(list, leave, done));
        inner.push(Wat::list(list, format!("block {next}"), [body]));
        inner.extend(self.advance(lowering, leave));
        Ok(Wat::repeated(list, leave, &again, inner))
    }

    fn op(&self, name: &str, items: [Wat<'s>; 2]) -> Wat<'s> {
        Wat::op(self.list, self.val, name, items)
    }

    /// Returns the test for the end of the loop.
    fn done(&self, list: NodeId) -> Wat<'s> {
        let (i, to) = (|| self.counter.read(list), || self.to.copy());
        match &self.step {
            None => self.op("ge_s", [i(), to()]),
            Some(step) => match step.constant() {
                Some(step) => self.op(if step > 0 { "ge_s" } else { "le_s" }, [i(), to()]),
                None => {
                    let down = self.op("le_s", [i(), to()]);
                    let up = self.op("ge_s", [i(), to()]);
                    let negative = self.op("lt_s", [step.copy(), Wat::number(list, self.val, 0)]);
                    Wat::list(list, "select", [down, up, negative])
                }
            },
        }
    }

    /// Returns code that adds the step. It exits the loop if the counter would wrap around.
    fn advance(&self, lowering: &mut Lowering<'_, 's>, leave: &str) -> Vec<Wat<'s>> {
        let list = self.list;
        let one = || Wat::number(list, self.val, 1);
        let step = self.step.as_ref().map_or_else(one, Wat::copy);
        let sum = self.op("add", [self.counter.read(list), step.copy()]);
        if self.is_kept && matches!(step.constant(), Some(-1 | 1)) {
            return vec![self.counter.write(list, Some(sum))];
        }
        let hidden = lowering.hidden("following", self.val);
        let zero = Wat::number(list, self.val, 0);
        let less = self.op("lt_s", [hidden.get(list), self.counter.read(list)]);
        let wrapped = Wat::list(list, "i32.ne", [less, self.op("lt_s", [step, zero])]);
        vec![
            hidden.set(list, sum),
            Wat::br_if(list, leave, wrapped),
            self.counter.write(list, Some(hidden.get(list))),
        ]
    }
}

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
    pub(super) fn lower_each(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
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
            Type::Val => self.value_loop(list, collection.wat, &names, &mut body),
            Type::Numbers(elem) => {
                self.item_loop(list, collection.wat, Some(elem), &names, &mut body)
            }
            other => {
                let message = type_wording::not_a_collection(tree.text(array), other);
                let fault = Fault::at(tree, array, message);
                match other {
                    Type::Any => Ok(self.unresolved(list, fault).without_value(list)),
                    _ => Err(fault),
                }
            }
        }
    }

    /// Returns true if a loop has two loop variables. This is the case if the third operand is a
    /// known variable, or if the third operand is not a name and the second one does not name a
    /// collection.
    fn two_names(&mut self, second: NodeId, third: NodeId) -> bool {
        let tree = self.tree;
        let Some(name) = tree.name(second) else { return false };
        if let Some(third) = tree.name(third) {
            return self.resolve(third).is_some() || self.path(third).is_some();
        }
        let Some(found) = self.resolve(name) else { return self.path(name).is_none() };
        match found.ty {
            // The name of a string variable may be the collection, or a loop variable that
            // redeclares it. In the latter case, a collection follows.
            Type::Str => self.leaves(third) == Leaves::Value,
            Type::Val => self.is_collection(third),
            Type::Arr | Type::Map | Type::Numbers(_) | Type::I32 | Type::Any => false,
            _ => true,
        }
    }
}

impl Lowering<'_, '_> {
    /// Returns true if a form has a value and no effect, so that it is the collection of a loop
    /// rather than the first form of its body. A body follows the collection.
    fn is_collection(&self, form: NodeId) -> bool {
        let tree = self.tree;
        let head = tree.head(form).unwrap_or("");
        let calls =
            head == "call" || matches!(self.callee(head), Some(Callee::Fn(..) | Callee::Wat(_)));
        let deletes = head == "del" && tree.node(form).starts_line;
        let is_last = tree.next_sibling(form).is_none();
        !calls && !deletes && !is_last && self.leaves(form) == Leaves::Value
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
    ) -> CodeResult<'s> {
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
    ) -> CodeResult<'s> {
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

    /// Lowers a loop over the items of a list or, with two names, also over the keys and values of
    /// an object. It covers the items or keys that there are when the loop starts: if its body may
    /// delete some, the loop is over a copy.
    fn value_loop(
        &mut self,
        list: NodeId,
        value: Wat<'s>,
        names: &Names<'s>,
        body: &mut Nodes,
    ) -> CodeResult<'s> {
        let value = match self.may_delete(*body) {
            true => self.value_call(list, "held", [value])?,
            false => value,
        };
        let (collection, at) = self.indices();
        let count = self.hidden("count", Val::I32);
        let first = match names.first {
            Some((node, name)) => Some(self.declare(name, Type::Val, node)?),
            None => None,
        };
        let (node, name) = names.item;
        let item = self.declare(name, Type::Val, node)?;
        let read = |lowering: &mut Self, function: &str| {
            lowering.value_call(list, function, [collection.get(list), at.get(list)])
        };
        let mut begin = vec![item.write(node, Some(read(self, "nth")?))];
        if let Some(first) = first {
            begin.push(first.write(list, Some(read(self, "nth_key")?)));
        }
        let function = if names.first.is_some() { "size" } else { "list_len" };
        let counted = self.value_call(list, function, [collection.get(list)])?;
        let set = collection.set(list, value);
        let before = [set, count.set(list, counted)];
        let length = count.get(list);
        let same = collection.get(list);
        let whole = IndexLoop { list, collection, at, length, begin };
        let out = self.index_loop(whole, same, body)?;
        Ok(Lowered::none(Wat::sequence(
            list,
            before.into_iter().chain([out.wat]).collect::<Vec<_>>(),
        )))
    }

    /// Returns true if anything in the nodes deletes a part of a value, itself or in a function of
    /// the program.
    fn may_delete(&self, nodes: Nodes) -> bool {
        let tree = self.tree;
        let deletes = |node| matches!(tree.head(node), Some("del" | "val.remove"));
        let calls =
            |node| tree.name(node).is_some_and(|name| self.program.defined.contains_key(name));
        nodes.iter_deep(tree).any(deletes)
            || nodes.iter_deep(tree).any(calls) && tree.top().iter_deep(tree).any(deletes)
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
    ) -> CodeResult<'s> {
        let IndexLoop { list, collection, at, length, begin } = parts;
        let (leave, next) = self.open_loop();
        let body = self.statements(body);
        self.func.loops.pop();
        let again = self.new_label("again");
        let done = Wat::list(list, "i32.ge_s", [at.get(list), length]);
        let mut inner = vec![Wat::br_if(list, &leave, done)];
        inner.extend(begin);
        inner.push(Wat::list(list, format!("block {next}"), [body?]));
        let following = Wat::list(list, "i32.add", [at.get(list), Wat::i32(list, 1)]);
        inner.push(at.set(list, following));
        let pieces = [
            collection.set(list, value),
            at.set(list, Wat::i32(list, 0)),
            Wat::repeated(list, &leave, &again, inner),
        ];
        Ok(Lowered::none(Wat::sequence(list, pieces)))
    }
}

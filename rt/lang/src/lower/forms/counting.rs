//! Counting loops: `for`.

use super::{all_operands, operand_count};
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{form, types as type_wording};
use crate::lower::flow::{Context, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::scope::Variable;
use crate::lower::variables::Resolved;
use crate::lower::{LowerResult, Lowering, range};
use crate::syntax::literal;
use crate::syntax::tree::{NodeId, NodeKind, Nodes};
use crate::types::{Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Lowers `(for $i FROM TO …)` and `(for $i FROM TO STEP …)`, which count from FROM to TO,
    /// exclusive.
    pub(super) fn lower_for(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
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

    /// Rejects a condition on the counter in place of the end value, as in `(for $i 0 (< $i 10) …)`.
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
        // A safe fix keeps the end value as it is written. Replacing `(<= $i 10)` with `11` would not.
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
            let zero = lowering.zero(list, self.val);
            let test = self.op("eq", [step.copy(), zero]);
            let none = || Wat::list(list, "i64.const 0", []);
            let message = type_wording::zero_step_trap();
            inner.push(lowering.trap_if(list, test, message, Val::I64, [none(), none()]));
        }
        inner.push(Wat::list(list, format!("br_if {leave}"), [done]));
        inner.push(Wat::list(list, format!("block {next}"), [body]));
        inner.extend(self.advance(lowering, leave));
        inner.push(Wat::list(list, format!("br {again}"), []));
        let whole = Wat::list(list, format!("loop {again}"), inner);
        Ok(Wat::list(list, format!("block {leave}"), [whole]))
    }

    fn op(&self, name: &str, items: [Wat<'s>; 2]) -> Wat<'s> {
        Wat::list(self.list, format!("{}.{name}", self.val.name()), items)
    }

    /// Returns the test for the end of the loop.
    fn done(&self, list: NodeId) -> Wat<'s> {
        let (i, to) = (|| self.counter.read(list), || self.to.copy());
        match &self.step {
            None => self.op("ge_s", [i(), to()]),
            Some(step) => match step.constant() {
                Some(step) => self.op(if step > 0 { "ge_s" } else { "le_s" }, [i(), to()]),
                None => {
                    let zero = Wat::list(list, format!("{}.const 0", self.val.name()), []);
                    let (down, up) = (self.op("le_s", [i(), to()]), self.op("ge_s", [i(), to()]));
                    let negative = self.op("lt_s", [step.copy(), zero]);
                    Wat::list(list, "select", [down, up, negative])
                }
            },
        }
    }

    /// Returns code that adds the step. It exits the loop if the counter would wrap around.
    fn advance(&self, lowering: &mut Lowering<'_, 's>, leave: &str) -> Vec<Wat<'s>> {
        let list = self.list;
        let one = || Wat::list(list, format!("{}.const 1", self.val.name()), []);
        let step = self.step.as_ref().map_or_else(one, Wat::copy);
        let sum = self.op("add", [self.counter.read(list), step.copy()]);
        if self.is_kept && matches!(step.constant(), Some(-1 | 1)) {
            return vec![self.counter.write(list, Some(sum))];
        }
        let hidden = lowering.hidden("following", self.val);
        let zero = lowering.zero(list, self.val);
        let less = self.op("lt_s", [hidden.get(list), self.counter.read(list)]);
        let wrapped = Wat::list(list, "i32.ne", [less, self.op("lt_s", [step, zero])]);
        vec![
            hidden.set(list, sum),
            Wat::list(list, format!("br_if {leave}"), [wrapped]),
            self.counter.write(list, Some(hidden.get(list))),
        ]
    }
}

//! Operators: arithmetic, bitwise operators, comparisons and logical operators.
//!
//! The result of an arithmetic operator has the widest of its operands' types. The program traps if
//! an integer result does not fit. Comparisons and logical operators return 1 or 0.

use crate::diagnose::fix::Edits;
use crate::diagnose::wording::{Fault, form, types as type_wording};
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::forms::{all_operands, operand_count, operands};
use crate::lower::output::Wat;
use crate::lower::{CodeResult, LowerResult, Lowering, range};
use crate::syntax::literal::number_type;
use crate::syntax::tree::{NodeId, Tree};
use crate::types::{Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Lowers `+`, `-`, `*`, `/` and `%`.
    pub(super) fn lower_arithmetic(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let nodes = all_operands(tree, list);
        match (head, nodes.len()) {
            ("-", 1) => return self.negate(list, context),
            (_, 2) | ("+" | "*", 3..) => {}
            ("-" | "/" | "%", 3..) if tree.open.is_empty() => {
                let message = form::two_operands(head, nodes.len())
                    .maybe_safe(nest(tree, list, head, &nodes));
                return self.fault(list, message);
            }
            (_, count) => return Err(operand_count(tree, list, 2, count)),
        }
        let (values, ty) = self.numbers(list, &nodes, context.want())?;
        let mut values = values.into_iter();
        let Some(mut sum) = values.next() else { return Ok(Lowered::none(Wat::nothing(list))) };
        for value in values {
            sum = self.calculate(list, head, ty, sum, value)?;
        }
        Ok(Lowered::one(sum, ty))
    }

    /// Lowers operands and converts them to their widest type. Number literals get the type of the
    /// other operands, or the type from `want` if all operands are literals.
    pub(super) fn numbers(
        &mut self,
        list: NodeId,
        nodes: &[NodeId],
        want: Want,
    ) -> LowerResult<(Vec<Wat<'s>>, Type)> {
        let lowered = self.unless_literal(list, nodes, want)?;
        self.unify(list, nodes, lowered, want)
    }

    /// Lowers all operands except number literals. Returns `None` in place of each number literal,
    /// because its type depends on the other operands.
    pub(super) fn unless_literal(
        &mut self,
        list: NodeId,
        nodes: &[NodeId],
        want: Want,
    ) -> LowerResult<Vec<Option<Lowered<'s>>>> {
        // Number literals inside the operands get the type that is expected of the result.
        let hint = want.number().map_or(Want::Any, Want::Hint);
        let mut lowered = Vec::new();
        for node in nodes {
            lowered.push(if self.is_number(*node) {
                None
            } else {
                Some(self.value(list, *node, hint)?)
            });
        }
        Ok(lowered)
    }

    /// Converts operands to their widest type, and lowers the number literals among them.
    pub(super) fn unify(
        &mut self,
        list: NodeId,
        nodes: &[NodeId],
        lowered: Vec<Option<Lowered<'s>>>,
        want: Want,
    ) -> LowerResult<(Vec<Wat<'s>>, Type)> {
        let tree = self.tree;
        let literal = |node: &NodeId| tree.atom(*node).and_then(number_type).map(Type::of_wat);
        // The common type of the non-literal operands, and the operand that determined it.
        let mut common: Option<(Type, NodeId)> = None;
        for (node, out) in nodes.iter().zip(&lowered) {
            if let Some(out) = out.as_ref().filter(|out| out.flow != Flow::Never) {
                common = Some(self.widest(list, *node, common, out.ty)?);
            }
        }
        let own = nodes.iter().filter_map(literal).fold(None, |widest: Option<Type>, ty| {
            let ty = if ty == Type::I32 { Type::Int } else { ty };
            Some(widest.and_then(|widest| widest.join(ty)).unwrap_or(ty))
        });
        let ty = match (common, own) {
            (Some((Type::Val, _)), _) => Type::Val,
            (Some((ty, _)), Some(Type::Float)) if ty.is_int() => Type::Float,
            (Some((ty, _)), Some(Type::Long)) if ty.is_int() => Type::Long,
            (Some((ty, _)), _) => ty,
            (None, own) => {
                let wanted = want.number().map(|ty| if ty == Type::I32 { Type::Int } else { ty });
                let fits = |ty: &Type| own.is_none_or(|own| own.join(*ty) == Some(*ty));
                wanted.filter(fits).or(own).unwrap_or(Type::Int)
            }
        };
        let ty = match ty {
            Type::Bool | Type::Code | Type::Any => Type::Int,
            ty => ty,
        };
        let mut values = Vec::new();
        for (node, out) in nodes.iter().zip(lowered) {
            let out = match out {
                Some(out) if ty == Type::I32 => out,
                Some(out) => self.convert(list, *node, out.counted(), ty)?,
                None => self.value(list, *node, Want::Type(ty))?,
            };
            values.push(out.wat);
        }
        Ok((values, ty))
    }

    /// Joins the type of an operand with the common type of the previous operands.
    fn widest(
        &self,
        list: NodeId,
        node: NodeId,
        common: Option<(Type, NodeId)>,
        found: Type,
    ) -> LowerResult<(Type, NodeId)> {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        // An address is a number for programs that access memory themselves.
        let found = if self.words.raw() && found == Type::Str { Type::I32 } else { found };
        let arithmetic = found.is_number()
            || found.is_vague()
            || matches!(found, Type::Val | Type::Wat(Val::F32));
        if !arithmetic {
            let operands = all_operands(tree, list);
            let texts: Vec<&str> = operands.iter().map(|node| tree.text(*node)).collect();
            let message = type_wording::not_a_number(head, tree.text(node), found, &texts);
            // If all string operands contain numbers, a sum of those numbers may be meant.
            let is_text = |operand: &NodeId| {
                let text = tree.text(*operand).trim_matches('"');
                tree.atom(*operand).is_none()
                    && tree.head(*operand).is_none()
                    && crate::syntax::literal::number_type(text.trim()).is_none()
            };
            let joins = head == "+" && found == Type::Str && operands.iter().any(is_text);
            let change =
                joins.then(|| crate::habits::rewrite::replace_head(tree, list, "str")).flatten();
            return self.fault(node, message.maybe_safe(change));
        }
        let Some((known, first)) = common else { return Ok((found, node)) };
        match known.join(found) {
            Some(ty) => Ok((ty, first)),
            None => {
                let message = type_wording::mixed_numbers(
                    head,
                    tree.text(first),
                    known,
                    tree.text(node),
                    found,
                );
                self.fault(node, message)
            }
        }
    }

    /// Returns code that computes `a OP b`. The code traps if an integer result does not fit.
    pub(super) fn calculate(
        &mut self,
        list: NodeId,
        operator: &str,
        ty: Type,
        a: Wat<'s>,
        b: Wat<'s>,
    ) -> LowerResult<Wat<'s>> {
        let val = ty.val();
        if let (Type::Val, Some(function)) = (ty, value_function(operator)) {
            return self.value_call(list, function, [a, b]);
        }
        match (operator, val) {
            // Addresses are not checked.
            ("*", Val::I32) if ty != Type::I32 => self.product(list, a, b),
            ("*", Val::I64) => self.long_product(list, a, b),
            ("+" | "-", Val::I32 | Val::I64) if ty != Type::I32 => {
                self.checked_sum(list, operator, val, a, b)
            }
            _ => match instruction(operator, val) {
                Some(name) => Ok(Wat::op(list, val, name, [a, b])),
                None => self.fault(list, form::unsupported_operator(operator, ty)),
            },
        }
    }

    /// Returns code that computes a sum or a difference of integers. The code traps if the result
    /// does not fit.
    fn checked_sum(
        &mut self,
        list: NodeId,
        operator: &str,
        val: Val,
        a: Wat<'s>,
        b: Wat<'s>,
    ) -> LowerResult<Wat<'s>> {
        let plus = operator == "+";
        let name = if plus { "add" } else { "sub" };
        if fits(if plus { "i32.add" } else { "i32.sub" }, val, &a, &b) {
            return Ok(Wat::op(list, val, name, [a, b]));
        }
        let signs = [a.is_positive(), b.is_positive()];
        let (a, b, mut pieces) = self.both(list, a, b, val);
        let result = self.hidden("sum", val);
        let op = |name: &str, items: [Wat<'s>; 2]| Wat::op(list, val, name, items);
        let store = result.set(list, op(name, [a.copy(), b.copy()]));
        // If the sign of an operand is known, a single comparison shows whether the result wrapped
        // around.
        let least = if val == Val::I32 { i64::from(i32::MIN) } else { i64::MIN };
        let overflows = match (signs, plus) {
            (_, false) if a.constant() == Some(0) && b.constant().is_none() => {
                op("eq", [b.copy(), Wat::number(list, val, least)])
            }
            ([_, Some(b_is_positive)], plus) => {
                let less = b_is_positive == plus;
                op(if less { "lt_s" } else { "gt_s" }, [result.get(list), a.copy()])
            }
            ([Some(a_is_positive), None], true) => {
                op(if a_is_positive { "lt_s" } else { "gt_s" }, [result.get(list), b.copy()])
            }
            _ => {
                let first = op("xor", [a.copy(), if plus { result.get(list) } else { b.copy() }]);
                let second = op("xor", [if plus { b.copy() } else { a.copy() }, result.get(list)]);
                op("lt_s", [op("and", [first, second]), Wat::number(list, val, 0)])
            }
        };
        let message = type_wording::overflow(operator, val);
        let trap = self.trap_if(list, overflows, message, val, [a, b]);
        pieces.extend([store, trap, result.get(list)]);
        Ok(Wat::sequence(list, pieces))
    }

    /// Returns code that computes a product of ints. The code traps if the product does not fit.
    fn product(&mut self, list: NodeId, a: Wat<'s>, b: Wat<'s>) -> LowerResult<Wat<'s>> {
        if fits("i32.mul", Val::I32, &a, &b) {
            return Ok(Wat::list(list, "i32.mul", [a, b]));
        }
        let (a, b, mut pieces) = self.both(list, a, b, Val::I32);
        let name = self.hidden("product", Val::I64);
        let wide = |value: &Wat<'s>| Wat::list(list, "i64.extend_i32_s", [value.copy()]);
        let whole = Wat::list(list, "i64.mul", [wide(&a), wide(&b)]);
        pieces.push(name.set(list, whole));
        let low = Wat::list(list, "i64.extend32_s", [name.get(list)]);
        let overflows = Wat::list(list, "i64.ne", [low, name.get(list)]);
        let message = type_wording::overflow("*", Val::I32);
        pieces.push(self.trap_if(list, overflows, message, Val::I32, [a, b]));
        pieces.push(Wat::list(list, "i32.wrap_i64", [name.get(list)]));
        Ok(Wat::sequence(list, pieces))
    }

    /// Returns code that computes a product of longs. The code traps if the product does not fit.
    /// The check uses a division, which is skipped if both factors fit in 32 bits.
    fn long_product(&mut self, list: NodeId, a: Wat<'s>, b: Wat<'s>) -> LowerResult<Wat<'s>> {
        let (a, b, mut pieces) = self.both(list, a, b, Val::I64);
        let name = self.hidden("product", Val::I64);
        let op = |name: &str, items: [Wat<'s>; 2]| Wat::op(list, Val::I64, name, items);
        let long = |number: i64| Wat::number(list, Val::I64, number);
        let is_wide = |value: &Wat<'s>| {
            let low = Wat::list(list, "i64.extend32_s", [value.copy()]);
            op("ne", [low, value.copy()])
        };
        let whole = op("mul", [a.copy(), b.copy()]);
        pieces.push(name.set(list, whole));
        let wide = Wat::list(list, "i32.or", [is_wide(&a), is_wide(&b)]);
        // The division itself must not overflow, so -1 is a separate case.
        let divided = op("ne", [op("div_s", [name.get(list), a.copy()]), b.copy()]);
        let negated = op("eq", [b.copy(), long(i64::MIN)]);
        let is_minus_one = op("eq", [a.copy(), long(-1)]);
        let is_zero = op("eq", [a.copy(), long(0)]);
        let no = || Wat::i32(list, 0);
        let int = "if (result i32)";
        let checked = Wat::choice(list, int, is_minus_one, negated, divided);
        let nonzero = Wat::choice(list, int, is_zero, no(), checked);
        let overflows = Wat::choice(list, int, wide, nonzero, no());
        let message = type_wording::overflow("*", Val::I64);
        pieces.push(self.trap_if(list, overflows, message, Val::I64, [a, b]));
        pieces.push(name.get(list));
        Ok(Wat::sequence(list, pieces))
    }

    /// Stores two values in hidden variables, unless they can be evaluated twice. Returns the code
    /// that reads each value, and the code that stores them.
    pub(super) fn both(
        &mut self,
        list: NodeId,
        a: Wat<'s>,
        b: Wat<'s>,
        val: Val,
    ) -> (Wat<'s>, Wat<'s>, Vec<Wat<'s>>) {
        // Evaluating `b` may set the variable that `a` reads.
        let a_is_simple = a.is_simple() && (b.is_simple() || a.constant().is_some());
        let (set_a, a) = if a_is_simple { (None, a) } else { self.stored(list, "value", a, val) };
        let (set_b, b) = self.once(list, b, val);
        (a, b, set_a.into_iter().chain(set_b).collect())
    }

    /// Lowers the only operand of a form, which is a number.
    fn one_number(&mut self, list: NodeId, context: Context) -> LowerResult<(Wat<'s>, Type)> {
        let node = operands::<1>(self.tree, list)?;
        let (mut values, ty) = self.numbers(list, &node, context.want())?;
        Ok((values.pop().unwrap_or(Wat::nothing(list)), ty))
    }

    /// Lowers `(- X)`, which negates a number.
    fn negate(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let (value, ty) = self.one_number(list, context)?;
        let val = ty.val();
        let wat = match val {
            _ if ty == Type::Val => self.value_call(list, "neg", [value])?,
            Val::F32 | Val::F64 => Wat::op(list, val, "neg", [value]),
            _ => self.calculate(list, "-", ty, Wat::number(list, val, 0), value)?,
        };
        Ok(Lowered::one(wat, ty))
    }

    /// Lowers `(abs X)`, the absolute value of a number.
    pub(super) fn lower_abs(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let (value, ty) = self.one_number(list, context)?;
        let val = ty.val();
        if ty == Type::Val {
            return Ok(Lowered::one(self.value_call(list, "abs", [value])?, ty));
        }
        if matches!(val, Val::F32 | Val::F64) {
            return Ok(Lowered::one(Wat::op(list, val, "abs", [value]), ty));
        }
        let (set, value) = self.once(list, value, val);
        let zero = || Wat::number(list, val, 0);
        let negative = Wat::op(list, val, "lt_s", [value.copy(), zero()]);
        let negated = self.calculate(list, "-", ty, zero(), value.copy())?;
        let head = format!("if (result {})", val.name());
        let wat = Wat::choice(list, head, negative, negated, value);
        let pieces: Vec<Wat<'s>> = set.into_iter().chain([wat]).collect();
        Ok(Lowered::one(Wat::sequence(list, pieces), ty))
    }

    /// Lowers `(min A B …)` and `(max A B …)`.
    pub(super) fn lower_extreme(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let nodes = all_operands(tree, list);
        if self.is_of_collection(&nodes) {
            return self.lower_items(list, context);
        }
        if nodes.len() < 2 {
            return Err(operand_count(tree, list, 2, nodes.len()));
        }
        let (values, ty) = self.numbers(list, &nodes, context.want())?;
        let val = ty.val();
        let mut values = values.into_iter();
        let mut best = values.next().unwrap_or(Wat::nothing(list));
        for value in values {
            if ty == Type::Val {
                best = self.value_call(list, head, [best, value])?;
                continue;
            }
            if matches!(val, Val::F32 | Val::F64) {
                best = Wat::op(list, val, head, [best, value]);
                continue;
            }
            let (a, b, mut pieces) = self.both(list, best, value, val);
            let test = if head == "min" { "lt_s" } else { "gt_s" };
            let test = Wat::op(list, val, test, [a.copy(), b.copy()]);
            pieces.push(Wat::list(list, "select", [a, b, test]));
            best = Wat::sequence(list, pieces);
        }
        Ok(Lowered::one(best, ty))
    }

    /// Lowers `(+= $x N)`, `(-= $x N)` and `(*= $x N)`.
    pub(super) fn lower_update(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let [target, node] = operands::<2>(tree, list)?;
        let operator = head.get(..1).unwrap_or("+");
        if let Some(place) = self.place(target)? {
            let value = match self.is_number(node) {
                true => self.shaped(list, node)?,
                false => {
                    let out = self.value(list, node, Want::Any)?;
                    self.convert(list, node, out.counted(), Type::Val)?.wat
                }
            };
            return place.update(self, list, value_function(operator).unwrap_or("add"), value);
        }
        let name = self.target_name(list, target)?;
        let variable = self.target_variable(target, name, node)?;
        if !(variable.ty.is_number() || variable.ty.is_vague() || variable.ty == Type::Val) {
            let message = type_wording::update_of(head, name, variable.ty);
            return self.fault(list, message);
        }
        let (values, ty) = self.numbers(list, &[target, node], Want::Any)?;
        let mut values = values.into_iter();
        let (Some(a), Some(b)) = (values.next(), values.next()) else {
            return Err(operand_count(tree, list, 2, 0));
        };
        let is_wider = ty == Type::Val && variable.ty != Type::Val;
        if is_wider && self.widen(&variable, Type::Val, node) {
            return Ok(Lowered::none(Wat::nothing(list)));
        }
        if variable.ty == Type::Bool {
            self.widen(&variable, Type::Int, node);
        }
        if is_wider || ty.val() != variable.ty.val() {
            let line = variable.node.map_or(1, |node| self.tree.line(node));
            return self.fault(node, type_wording::set_type(name, variable.ty, ty, line));
        }
        let sum = self.calculate(list, operator, ty, a, b)?;
        self.record_set(variable.at, ty);
        Ok(Lowered::none(variable.write(list, Some(sum))))
    }
}

/// Returns the negated condition if `is_negated` is true, and otherwise the condition itself.
fn negated_if<'s>(from: NodeId, is_negated: bool, condition: Wat<'s>) -> Wat<'s> {
    if is_negated { Wat::list(from, "i32.eqz", [condition]) } else { condition }
}

/// The operators on numbers, each with the instruction that computes it for integers and for
/// floats, without its type. Empty if there is no such instruction.
const OPERATORS: &[(&str, &str, &str)] = &[
    ("+", "add", "add"),
    ("-", "sub", "sub"),
    ("*", "mul", "mul"),
    ("/", "div_s", "div"),
    ("%", "rem_s", ""),
    ("&", "and", ""),
    ("|", "or", ""),
    ("^", "xor", ""),
    ("<<", "shl", ""),
    (">>", "shr_s", ""),
    ("=", "eq", "eq"),
    ("!=", "ne", "ne"),
    ("<", "lt_s", "lt"),
    ("<=", "le_s", "le"),
    (">", "gt_s", "gt"),
    (">=", "ge_s", "ge"),
];

/// Returns the name of the function that computes an arithmetic operator for values.
fn value_function(operator: &str) -> Option<&'static str> {
    Some(match operator {
        "+" => "add",
        "-" => "sub",
        "*" => "mul",
        "/" => "div",
        "%" => "rem",
        _ => return None,
    })
}

/// Returns the name of the instruction that computes an operator for operands of type `val`,
/// without the type. Returns `None` if there is no such instruction.
fn instruction(operator: &str, val: Val) -> Option<&'static str> {
    let (_, integer, float) = OPERATORS.iter().find(|(known, ..)| *known == operator)?;
    let name = match val {
        Val::I32 | Val::I64 => integer,
        Val::F32 | Val::F64 => float,
        _ => "",
    };
    (!name.is_empty()).then_some(name)
}

/// Returns true if the bounds of two ints show that the result of an instruction fits.
fn fits(instruction: &str, val: Val, a: &Wat<'_>, b: &Wat<'_>) -> bool {
    let of = |a: &Wat<'_>, b: &Wat<'_>| range::of_operation(instruction, a.range()?, b.range()?);
    val == Val::I32 && of(a, b).is_some()
}

/// Returns the change that rewrites `(- A B C)` as `(- (- A B) C)`.
fn nest(tree: &Tree<'_>, list: NodeId, head: &str, nodes: &[NodeId]) -> Option<Edits> {
    let [_, between @ .., _] = nodes else { return None };
    let opened = format!("({head} ").repeat(between.len());
    let edits = Edits::default().insert(tree.start(list), opened);
    Some(between.iter().fold(edits, |edits, node| edits.insert(tree.end(*node), ")")))
}

impl<'s> Lowering<'_, 's> {
    /// Lowers `&`, `|`, `^`, `<<` and `>>`, the bitwise operators on integers.
    pub(super) fn lower_bits(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let shifts = matches!(head, "<<" | ">>");
        let nodes = all_operands(tree, list);
        if nodes.len() < 2 || shifts && nodes.len() > 2 {
            return Err(operand_count(tree, list, 2, nodes.len()));
        }
        let (mut values, mut ty) = self.numbers(list, &nodes, context.want())?;
        if ty == Type::Val {
            ty = Type::Long;
            let unbox = |value| self.unboxed(list, list, value, Type::Long);
            values = values.into_iter().map(unbox).collect::<LowerResult<Vec<_>>>()?;
        }
        let val = ty.val();
        let Some(name) = instruction(head, val) else {
            return self.fault(list, form::unsupported_operator(head, ty));
        };
        let join = |all, next| Wat::op(list, val, name, [all, next]);
        let mut values = values.into_iter();
        let wat = match (values.next(), values.next()) {
            // Addresses are not checked.
            (Some(a), Some(b)) if shifts && ty != Type::I32 => self.shift(list, val, a, b),
            (Some(a), Some(b)) => values.fold(join(a, b), join),
            _ => Wat::nothing(list),
        };
        Ok(Lowered::one(wat, ty))
    }

    /// Returns code that computes a shift. It traps if the shift count is too large for the type,
    /// or if the result does not fit.
    fn shift(&mut self, list: NodeId, val: Val, a: Wat<'s>, b: Wat<'s>) -> Wat<'s> {
        let left = self.tree.head(list) == Some("<<");
        let bits = if val == Val::I32 { 32 } else { 64 };
        let op = |name: &str, a: Wat<'s>, b: Wat<'s>| Wat::op(list, val, name, [a, b]);
        let instruction = if left { "shl" } else { "shr_s" };
        let count = b.constant().filter(|count| (0..bits).contains(count));
        let fits = |count: i64| {
            let factor = 1_i64.checked_shl(u32::try_from(count).ok()?)?;
            range::of_operation("i32.mul", a.range()?, (factor, factor))
        };
        if count.is_some_and(|count| !left || val == Val::I32 && fits(count).is_some()) {
            return op(instruction, a, b);
        }
        let (a, b, mut pieces) = self.both(list, a, b, val);
        let mut tests = Vec::new();
        if count.is_none() {
            tests.push(op("ge_u", b.copy(), Wat::number(list, val, bits)));
        }
        if left {
            let back = op("shr_s", op("shl", a.copy(), b.copy()), b.copy());
            tests.push(op("ne", back, a.copy()));
        }
        let message = type_wording::shift(left, val);
        if let Some(test) =
            tests.into_iter().reduce(|one, two| Wat::list(list, "i32.or", [one, two]))
        {
            pieces.push(self.trap_if(list, test, message, val, [a.copy(), b.copy()]));
        }
        pieces.push(op(instruction, a, b));
        Wat::sequence(list, pieces)
    }

    /// Lowers `=`, `!=`, `<`, `<=`, `>` and `>=`, which compare numbers, or strings byte by byte.
    pub(super) fn lower_compare(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let nodes = operands::<2>(tree, list)?;
        let lowered = self.unless_literal(list, &nodes, Want::Any)?;
        let is_object = |out: &Lowered<'s>| {
            let ty = out.ty;
            let address = self.words.raw() && ty == Type::Str;
            !address && !ty.is_number() && !ty.is_vague() && ty.val() == Val::I32
        };
        // `check::walk` reports why an operand's effect on the stack is unknown.
        if lowered.iter().flatten().any(|out| out.flow == Flow::Unknown) {
            let pieces: Vec<Wat<'s>> = lowered.into_iter().flatten().map(|out| out.wat).collect();
            return Ok(Lowered::unknown(Wat::sequence(list, pieces)));
        }
        let is_value = |out: &Lowered<'s>| matches!(out.ty, Type::Val | Type::Null);
        if lowered.iter().flatten().any(is_value)
            && lowered.iter().flatten().all(|out| out.ty.is_shaped() || out.ty == Type::Any)
        {
            return self.values_compared(list, head, nodes, lowered);
        }
        if lowered.iter().flatten().any(is_object) {
            return self.objects(list, head, nodes, lowered);
        }
        let (values, ty) = self.unify(list, &nodes, lowered, Want::Any)?;
        let name = instruction(head, ty.val()).unwrap_or(head);
        let wat = Wat::op(list, ty.val(), name, values);
        Ok(Lowered::one(wat, Type::Bool))
    }

    /// Lowers a comparison in which a value of any shape takes part.
    fn values_compared(
        &mut self,
        list: NodeId,
        head: &str,
        nodes: [NodeId; 2],
        lowered: Vec<Option<Lowered<'s>>>,
    ) -> CodeResult<'s> {
        let types: Vec<Option<Type>> =
            lowered.iter().map(|out| out.as_ref().map(|out| out.ty)).collect();
        let is_equality = matches!(head, "=" | "!=");
        let wat = match types.as_slice() {
            // A number or a code is never null, but a missing one is 0.
            [Some(Type::Null), Some(other)] | [Some(other), Some(Type::Null)] if other.is_int() => {
                let args: Vec<Wat<'s>> = lowered.into_iter().flatten().map(|out| out.wat).collect();
                Wat::op(list, Val::I32, instruction(head, Val::I32).unwrap_or(head), args)
            }
            [Some(one), Some(other)]
                if is_equality && [one, other].contains(&&Type::Str) && one != other =>
            {
                let is_first = *one == Type::Str;
                let mut args: Vec<Wat<'s>> = Vec::new();
                for (node, out) in nodes.into_iter().zip(lowered.into_iter().flatten()) {
                    args.push(match out.ty {
                        Type::Null => self.convert(list, node, out, Type::Val)?.wat,
                        _ => out.wat,
                    });
                }
                let mut pieces = Vec::new();
                if is_first {
                    let text = self.hidden("text", Val::I32);
                    let value = args.pop().unwrap_or(Wat::nothing(list));
                    let first = args.pop().unwrap_or(Wat::nothing(list));
                    pieces.push(text.set(list, first));
                    args = vec![value, text.get(list)];
                }
                pieces.push(self.value_call(list, "eq_str", args)?);
                negated_if(list, head == "!=", Wat::sequence(list, pieces))
            }
            _ => {
                let mut args = Vec::new();
                for (node, out) in nodes.into_iter().zip(lowered) {
                    args.push(match out {
                        Some(out) => self.convert(list, node, out, Type::Val)?.wat,
                        None => self.shaped(list, node)?,
                    });
                }
                if is_equality {
                    let equal = self.value_call(list, "eq", args)?;
                    negated_if(list, head == "!=", equal)
                } else {
                    let order = self.value_call(list, "cmp", args)?;
                    let name = instruction(head, Val::I32).unwrap_or(head);
                    Wat::op(list, Val::I32, name, [order, Wat::i32(list, 0)])
                }
            }
        };
        Ok(Lowered::one(wat, Type::Bool))
    }

    /// Lowers a comparison of two strings by content, or of two arrays of numbers by identity.
    fn objects(
        &mut self,
        list: NodeId,
        head: &str,
        nodes: [NodeId; 2],
        lowered: Vec<Option<Lowered<'s>>>,
    ) -> CodeResult<'s> {
        let tree = self.tree;
        let [one, other] = nodes.map(|node| tree.text(node));
        let types: Vec<Type> =
            lowered.iter().map(|out| out.as_ref().map_or(Type::Int, |out| out.ty)).collect();
        let first = types.first().copied().unwrap_or(Type::Any);
        let second = types.get(1).copied().unwrap_or(Type::Any);
        let args: Vec<Wat<'s>> = lowered.into_iter().flatten().map(|out| out.wat).collect();
        let [a, b] = nodes;
        for (node, other_type) in [(a, second), (b, first)] {
            if other_type == Type::Str {
                self.check_character(list, node)?;
            }
        }
        let wat = match (first, second) {
            (Type::Any, _) | (_, Type::Any) => {
                let message = type_wording::not_comparable(head, one, first, other, second);
                let fault = Fault::at(tree, list, message);
                return Ok(self.unresolved(list, fault));
            }
            (Type::Str, Type::Str) => match head {
                "=" => self.host_call(list, "str.eq", args)?,
                "!=" => Wat::list(list, "i32.eqz", [self.host_call(list, "str.eq", args)?]),
                _ => {
                    let order = self.host_call(list, "str.cmp", args)?;
                    let name = instruction(head, Val::I32).unwrap_or(head);
                    Wat::op(list, Val::I32, name, [order, Wat::i32(list, 0)])
                }
            },
            (Type::Numbers(_), Type::Numbers(_)) if head == "=" => Wat::list(list, "i32.eq", args),
            (Type::Numbers(_), Type::Numbers(_)) if head == "!=" => Wat::list(list, "i32.ne", args),
            _ => {
                return self
                    .fault(list, type_wording::not_comparable(head, one, first, other, second));
            }
        };
        Ok(Lowered::one(wat, Type::Bool))
    }

    /// Lowers `(not A)`, which returns 1 if A is 0, and 0 otherwise.
    pub(super) fn lower_not(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let [node] = operands::<1>(self.tree, list)?;
        let value = self.condition(list, node)?;
        Ok(Lowered::one(Wat::list(list, "i32.eqz", [value.wat]), Type::Bool))
    }

    /// Lowers `and` and `or`, which stop at the first operand that determines the result.
    pub(super) fn lower_logic(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let all = tree.head(list) == Some("and");
        let nodes = all_operands(tree, list);
        if nodes.len() < 2 {
            return Err(operand_count(tree, list, 2, nodes.len()));
        }
        let mut values = Vec::new();
        for node in &nodes {
            values.push(self.condition(list, *node)?);
        }
        let mut values = values.into_iter().rev();
        let Some(last) = values.next() else { return Ok(Lowered::none(Wat::nothing(list))) };
        let mut whole = match last.ty {
            Type::Bool => last.wat,
            _ => Wat::list(list, "i32.ne", [Wat::i32(list, 0), last.wat]),
        };
        for value in values {
            let (then, other) =
                if all { (whole, Wat::i32(list, 0)) } else { (Wat::i32(list, 1), whole) };
            whole = Wat::choice(list, "if (result i32)", value.wat, then, other);
        }
        Ok(Lowered::one(whole, Type::Bool))
    }
}

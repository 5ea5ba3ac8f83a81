//! Bitwise operators on integers. A shift traps if its result does not fit.

use super::{all_operands, operand_count, operands};
use crate::diagnose::wording::{form, types as type_wording};
use crate::lower::flow::{Context, Lowered};
use crate::lower::output::Wat;
use crate::lower::{LowerResult, Lowering, range};
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Lowers `&`, `|`, `^`, `<<` and `>>`, the bitwise operators on integers.
    pub(super) fn lower_bits(
        &mut self,
        list: NodeId,
        context: Context,
    ) -> LowerResult<Lowered<'s>> {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let instruction = match head {
            "&" => "and",
            "|" => "or",
            "^" => "xor",
            "<<" => "shl",
            _ => "shr_s",
        };
        let nodes = match instruction {
            "shl" | "shr_s" => operands::<2>(tree, list)?.to_vec(),
            _ => all_operands(tree, list),
        };
        if nodes.len() < 2 {
            return Err(operand_count(tree, list, 2, nodes.len()));
        }
        let (values, ty) = self.numbers(list, &nodes, context.want())?;
        let val @ (Val::I32 | Val::I64) = ty.val() else {
            return self.fault(list, form::unsupported_operator(head, ty));
        };
        let name = format!("{}.{instruction}", val.name());
        let join = |all, next| Wat::list(list, name.clone(), [all, next]);
        let mut values = values.into_iter();
        let wat = match (head, values.next(), values.next()) {
            // Addresses are not checked.
            ("<<" | ">>", Some(a), Some(b)) if ty != Type::I32 => self.shift(list, val, a, b),
            (_, Some(a), Some(b)) => values.fold(join(a, b), join),
            _ => Wat::nothing(list),
        };
        Ok(Lowered::one(wat, ty))
    }

    /// Returns code that computes a shift. It traps if the shift count is too large for the type, or if
    /// the result does not fit.
    fn shift(&mut self, list: NodeId, val: Val, a: Wat<'s>, b: Wat<'s>) -> Wat<'s> {
        let left = self.tree.head(list) == Some("<<");
        let bits = if val == Val::I32 { 32 } else { 64 };
        let op = |name: &str, a: Wat<'s>, b: Wat<'s>| {
            Wat::list(list, format!("{}.{name}", val.name()), [a, b])
        };
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
            let most = Wat::list(list, format!("{}.const {bits}", val.name()), []);
            tests.push(op("ge_u", b.copy(), most));
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
}

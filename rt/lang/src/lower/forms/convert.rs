//! Explicit conversions: `int`, `long`, `float` and `str`.

use super::{all_operands, operand_count, operands};
use crate::diagnose::wording::types as type_wording;
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::{CodeResult, Lowering};
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Lowers `(int X)`, `(long X)` and `(float X)`, which parse a string or convert a number. The
    /// code fails if the string cannot be parsed, and traps if the number does not fit.
    pub(super) fn lower_number(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let [node] = operands::<1>(tree, list)?;
        let head = tree.head(list).unwrap_or("").trim_end_matches(['?', '!']);
        let ty = match (head, context.want()) {
            ("float", _) => Type::Float,
            // An int would be converted to a long anyway, so a number that fits only in a long is
            // also accepted.
            ("long", _) | (_, Want::Type(Type::Long)) => Type::Long,
            _ => Type::Int,
        };
        let out = self.value(list, node, Want::Any)?;
        if out.flow != Flow::Net(1) {
            return Ok(Lowered { ty, ..out });
        }
        let wat = match (out.ty, ty) {
            (Type::Str, _) => return self.parsed(list, out.wat, ty),
            (Type::Val, _) => {
                let function = match ty {
                    Type::Float => "to_float",
                    Type::Long => "to_long",
                    _ => "to_int",
                };
                let read = self.value_call(list, function, [out.wat])?;
                return Ok(Lowered::one(read, ty).dropped_if_unused());
            }
            (Type::Long, Type::Int) => self.narrowed(list, out.wat),
            (Type::Long, Type::Float) => {
                self.warn_of_quotient(list, node);
                Wat::list(list, "f64.convert_i64_s", [out.wat])
            }
            (Type::Float, Type::Int) => Wat::list(list, "i32.trunc_f64_s", [out.wat]),
            (Type::Float, Type::Long) => Wat::list(list, "i64.trunc_f64_s", [out.wat]),
            (found, _) if found.is_number() || found.is_vague() => {
                let found = if found.is_vague() { Type::Int } else { found };
                self.convert(list, node, Lowered { ty: found, ..out }, ty)?.wat
            }
            (found, _) => {
                let usage = super::usage(head);
                let message = type_wording::generic(head, usage, tree.text(node), found);
                return self.fault(node, message);
            }
        };
        Ok(Lowered::one(wat, ty))
    }

    /// Returns code that parses a string as a number. It fails with EPARSE if the string is not a
    /// number.
    fn parsed(&mut self, list: NodeId, string: Wat<'s>, ty: Type) -> CodeResult<'s> {
        let name = if ty == Type::Float { "str.to_float" } else { "str.to_int" };
        let chosen = self.host.get(name).copied();
        let chosen = chosen.map(|signature| self.for_result(&signature, Want::Type(ty)));
        let full = chosen.map_or(name.to_owned(), |signature| format!("str.{}", signature.name));
        let found = chosen.and_then(|signature| Some(Type::of_host(signature.results.first()?.ty)));
        let call = self.checked_call(list, &full, [string])?;
        let out = Lowered::one(call, found.unwrap_or(ty));
        Ok(self.convert(list, list, out, ty)?.dropped_if_unused())
    }

    /// Returns code that converts a long to an int. It traps if the long does not fit.
    fn narrowed(&mut self, list: NodeId, value: Wat<'s>) -> Wat<'s> {
        let (set, value) = self.once(list, value, Val::I64);
        let low = Wat::list(list, "i64.extend32_s", [value.copy()]);
        let overflows = Wat::list(list, "i64.ne", [low, value.copy()]);
        let zero = Wat::number(list, Val::I64, 0);
        let message = type_wording::wide_int();
        let trap = self.trap_if(list, overflows, message, Val::I64, [value.copy(), zero]);
        let narrow = Wat::list(list, "i32.wrap_i64", [value]);
        Wat::sequence(list, set.into_iter().chain([trap, narrow]).collect::<Vec<_>>())
    }

    /// Lowers `(str A B …)`, which joins the values into one string, in order.
    pub(super) fn lower_str(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        if nodes.is_empty() {
            return Err(operand_count(self.tree, list, 1, 0));
        }
        let mut strings = Vec::new();
        for node in nodes {
            strings.push(self.text_of(list, node)?);
        }
        Ok(Lowered::one(self.joined(list, strings)?, Type::Str))
    }
}

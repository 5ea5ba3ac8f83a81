//! Comparisons and logical operators. Each returns 1 or 0.

use super::{all_operands, operand_count, operands};
use crate::diagnose::wording::{Fault, types as type_wording};
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::{LowerResult, Lowering};
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Lowers `=`, `!=`, `<`, `<=`, `>` and `>=`, which compare numbers, or strings byte by byte.
    pub(super) fn lower_compare(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
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
        if lowered.iter().flatten().any(is_object) {
            return self.objects(list, head, nodes, lowered);
        }
        let (values, ty) = self.unify(list, &nodes, lowered, Want::Any)?;
        let float = matches!(ty.val(), Val::F32 | Val::F64);
        let instruction = match (head, float) {
            ("=", _) => "eq",
            ("!=", _) => "ne",
            ("<", false) => "lt_s",
            ("<", true) => "lt",
            ("<=", false) => "le_s",
            ("<=", true) => "le",
            (">", false) => "gt_s",
            (">", true) => "gt",
            (_, false) => "ge_s",
            (_, true) => "ge",
        };
        let wat = Wat::list(list, format!("{}.{instruction}", ty.val().name()), values);
        Ok(Lowered::one(wat, Type::Bool))
    }

    /// Lowers a comparison of two strings by content, or of two arrays of numbers by identity.
    fn objects(
        &mut self,
        list: NodeId,
        head: &str,
        nodes: [NodeId; 2],
        lowered: Vec<Option<Lowered<'s>>>,
    ) -> LowerResult<Lowered<'s>> {
        let tree = self.tree;
        let texts = nodes.map(|node| tree.text(node));
        let types: Vec<Type> =
            lowered.iter().map(|out| out.as_ref().map_or(Type::Int, |out| out.ty)).collect();
        let first = types.first().copied().unwrap_or(Type::Any);
        let second = types.get(1).copied().unwrap_or(Type::Any);
        let args: Vec<Wat<'s>> = lowered.into_iter().flatten().map(|out| out.wat).collect();
        let [a, b] = nodes;
        for (node, other) in [(a, second), (b, first)] {
            if other == Type::Str {
                self.check_character(list, node)?;
            }
        }
        let wat = match (first, second) {
            (Type::Any, _) | (_, Type::Any) => {
                let message = type_wording::not_comparable(head, texts, first, second);
                let fault = Fault::new(tree.span(list), message);
                return Ok(self.unresolved(list, fault));
            }
            (Type::Str, Type::Str) => match head {
                "=" => self.host_call(list, "str.eq", args)?,
                "!=" => Wat::list(list, "i32.eqz", [self.host_call(list, "str.eq", args)?]),
                _ => {
                    let order = self.host_call(list, "str.cmp", args)?;
                    let instruction = match head {
                        "<" => "i32.lt_s",
                        "<=" => "i32.le_s",
                        ">" => "i32.gt_s",
                        _ => "i32.ge_s",
                    };
                    Wat::list(list, instruction, [order, Wat::i32(list, 0)])
                }
            },
            (Type::Numbers(_), Type::Numbers(_)) if head == "=" => Wat::list(list, "i32.eq", args),
            (Type::Numbers(_), Type::Numbers(_)) if head == "!=" => Wat::list(list, "i32.ne", args),
            _ => {
                return self.fault(list, type_wording::not_comparable(head, texts, first, second));
            }
        };
        Ok(Lowered::one(wat, Type::Bool))
    }

    /// Lowers `(not A)`, which returns 1 if A is 0, and 0 otherwise.
    pub(super) fn lower_not(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
        let [node] = operands::<1>(self.tree, list)?;
        let value = self.condition(list, node)?;
        Ok(Lowered::one(Wat::list(list, "i32.eqz", [value.wat]), Type::Bool))
    }

    /// Lowers `and` and `or`, which stop at the first operand that determines the result.
    pub(super) fn lower_logic(&mut self, list: NodeId, _: Context) -> LowerResult<Lowered<'s>> {
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
            let then = Wat::list(list, "then", [then]);
            let other = Wat::list(list, "else", [other]);
            whole = Wat::list(list, "if (result i32)", [value.wat, then, other]);
        }
        Ok(Lowered::one(whole, Type::Bool))
    }
}

//! Control flow forms: conditions and sequences.

use super::{all_operands, operand_count};
use crate::diagnose::wording::{form, types as type_wording};
use crate::lower::flow::{Context, Lowered, Want};
use crate::lower::output::Wat;
use crate::lower::value::Join;
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::tree::{NodeId, NodeKind, Nodes};
use crate::types::{Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Lowers `(when C …)` and `(unless C …)`, which run the body if C is true or, for `unless`, if
    /// C is false.
    pub(super) fn lower_when(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let unless = self.tree.head(list).is_some_and(|head| head.starts_with("unless"));
        let (condition, mut body) = self.first_and_rest(list)?;
        let test = self.condition(list, condition)?.wat;
        let test = if unless { Wat::list(list, "i32.eqz", [test]) } else { test };
        let body = self.statements(&mut body)?;
        Ok(Lowered::none(Wat::when(list, test, body)))
    }

    /// Lowers `(if C A B)`: its value is A if C is true, and B otherwise.
    pub(crate) fn lower_choice(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let nodes = all_operands(self.tree, list);
        let (condition, then, other) = match nodes.as_slice() {
            [condition, then] => (*condition, *then, None),
            [condition, then, other] => (*condition, *then, Some(*other)),
            _ => return self.fault(list, type_wording::if_operands(nodes.len())),
        };
        let test = self.condition(list, condition)?.wat;
        let mut value = Join::at(context);
        if value.is_wanted() && other.is_none() {
            return self.fault(list, form::value_needs_else("if"));
        }
        for (head, arm) in [("then", Some(then)), ("else", other)] {
            let Some(arm) = arm else { continue };
            let lowered = self.arm_of(list, arm, context)?;
            value.add(self, arm, head, lowered)?;
        }
        let joined = value.finish(self, list)?;
        Ok(joined.into_list(list, "if", Some(test)))
    }

    /// Lowers an arm that consists of one form. If no value is expected, the arm's value is
    /// dropped.
    fn arm_of(&mut self, list: NodeId, arm: NodeId, context: Context) -> CodeResult<'s> {
        match context {
            Context::Operand(want) => self.value(list, arm, want),
            Context::Statement | Context::Stack => match self.tree.node(arm).kind {
                NodeKind::List => Ok(self.node(arm, Context::Statement)?.without_value(arm)),
                _ => Ok(self.value(list, arm, Want::Any)?.without_value(arm)),
            },
        }
    }

    /// Lowers `(cond (C …) … (else …))`, which runs the first clause whose condition is true.
    pub(super) fn lower_cond(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let clauses = all_operands(tree, list);
        let Some((last, others)) = clauses.split_last() else {
            return Err(operand_count(tree, list, 2, 0));
        };
        let mut value = Join::at(context);
        if value.is_wanted() && tree.head(*last) != Some("else") {
            return self.fault(list, form::value_needs_else("cond"));
        }
        if let Some(early) = others.iter().find(|clause| tree.head(**clause) == Some("else")) {
            return self.fault(*early, form::else_not_last());
        }
        let mut tests = Vec::new();
        for clause in &clauses {
            if !tree.is_list(*clause) {
                return self.fault(*clause, form::clause(tree.text(*clause)));
            }
            let mut nodes = tree.children(*clause);
            let Some(condition) = nodes.next(tree) else {
                return self.fault(*clause, form::clause("()"));
            };
            let test = match tree.atom(condition) {
                Some("else") => None,
                _ => Some(self.condition(list, condition)?.wat),
            };
            value.branch(self, *clause, "", &mut nodes)?;
            tests.push((*clause, test));
        }
        let mut joined = value.finish(self, list)?;
        let done = self.new_label("done");
        let tested = tests.into_iter().zip(joined.arms).map(|((clause, test), arm)| match test {
            None => arm,
            Some(test) => {
                let then = Wat::sequence(clause, [arm, Wat::br(clause, &done)]);
                Wat::when(clause, test, then).on_line(tree.node(clause).starts_line)
            }
        });
        joined.arms = tested.collect();
        Ok(joined.into_list(list, format!("block {done}"), None))
    }

    /// Lowers `(match S r"(a)(b)" ($a $b) … (else …))`, which runs the body with the groups of the
    /// first match.
    pub(super) fn lower_match(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let nodes = all_operands(tree, list);
        let [text, pattern, names, body @ ..] = nodes.as_slice() else {
            return Err(operand_count(tree, list, 4, nodes.len()));
        };
        let (body, other) = match body.split_last() {
            Some((last, body)) if tree.head(*last) == Some("else") => (body, Some(*last)),
            _ => (body, None),
        };
        let mut value = Join::at(context);
        if value.is_wanted() && other.is_none() {
            return self.fault(list, form::value_needs_else("match"));
        }
        if !tree.is_list(*names) {
            return self.fault(*names, type_wording::group_names(tree.text(*names)));
        }
        let text = self.value(list, *text, Want::Type(Type::Str))?.wat;
        let pattern = self.value(list, *pattern, Want::Type(Type::Str))?.wat;
        let groups = self.hidden("groups", Val::I32);
        let found = self.checked_call(list, "str.match", [text, pattern])?;
        let set = groups.set(list, found);
        let mut pieces = Vec::new();
        let mut inner = tree.children(*names);
        let mut at = 0;
        while let Some(node) = inner.next(tree) {
            let name = self.target_name(list, node)?;
            at += 1;
            let variable = self.declare(name, Type::Str, node)?;
            let item = self.host_call(list, "arr.get", [groups.get(list), Wat::i32(node, at)])?;
            let ended = self.end_on_error(node)?;
            pieces.push(variable.write(node, Some(Wat::sequence(node, [item, ended]))));
        }
        let mut out = self.nodes(body, context)?;
        pieces.push(out.wat);
        out.wat = Wat::sequence(list, pieces);
        value.add(self, list, "then", out)?;
        if let Some(other) = other {
            value.branch(self, other, "else", &mut tree.operands(other))?;
        }
        let joined = value.finish(self, list)?;
        let test = self.host_call(list, "arr.len", [groups.get(list)])?;
        let out = joined.into_list(list, "if", Some(test));
        Ok(Lowered { wat: Wat::sequence(list, [set, out.wat]), ..out })
    }

    /// Lowers the given siblings in order.
    pub(crate) fn nodes(&mut self, nodes: &[NodeId], context: Context) -> CodeResult<'s> {
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else {
            return Ok(Lowered::none(Wat::nothing(NodeId(0))));
        };
        let mut range = self.tree.range(*first, *last);
        self.sequence(&mut range, context)
    }

    /// Lowers `(do …)`, which runs several forms and returns the value of the last one.
    pub(super) fn lower_do(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let mut nodes = self.tree.operands(list);
        let out = self.sequence(&mut nodes, context)?;
        Ok(Lowered { droppable: !context.is_operand() && out.droppable, ..out })
    }

    /// Lowers the body of a form whose value is not used.
    pub(super) fn statements(&mut self, body: &mut Nodes) -> LowerResult<Wat<'s>> {
        Ok(self.sequence(body, Context::Statement)?.wat)
    }

    /// Returns a form's first operand, and the nodes after it.
    pub(super) fn first_and_rest(&self, list: NodeId) -> LowerResult<(NodeId, Nodes)> {
        let tree = self.tree;
        let mut nodes = tree.operands(list);
        match nodes.next(tree) {
            Some(first) => Ok((first, nodes)),
            None => Err(operand_count(tree, list, 2, 0)),
        }
    }
}

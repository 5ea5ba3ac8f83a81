//! WAT blocks, loops and `if` instructions, with their labels and types.

use super::flow::{Context, Flow, Lowered, Want};
use super::output::Wat;
use super::pieces::are_unchanged;
use super::sequence::Tail;
use super::value::Join;
use super::{LowerResult, Lowering};
use crate::diagnose::fix::Change;
use crate::diagnose::wording;
use crate::habits;
use crate::habits::rewrite;
use crate::syntax::tree::{NodeId, Nodes};
use crate::types::{Type, Val};

/// The label and the type of a block.
#[derive(Default)]
pub(super) struct BlockHead<'s> {
    label: Option<Wat<'s>>,
    types: Vec<Wat<'s>>,
    /// The number of results, if known.
    pub(super) results: Option<usize>,
}

impl<'s> BlockHead<'s> {
    /// Returns the label and the type, followed by the given pieces of WAT.
    pub(super) fn followed_by(self, pieces: impl IntoIterator<Item = Wat<'s>>) -> Vec<Wat<'s>> {
        self.label.into_iter().chain(self.types).chain(pieces).collect()
    }
}

impl<'s> Lowering<'_, 's> {
    /// Lowers a block's label and type.
    pub(super) fn block_head(&mut self, nodes: &mut Nodes) -> LowerResult<BlockHead<'s>> {
        let tree = self.tree;
        let label = nodes.next_if(tree, |node| tree.name(node).is_some());
        let mut after = *nodes;
        let ty = self.types.signature(tree, &mut after);
        let mut types = Vec::new();
        while let Some(node) = nodes.peek(tree) {
            if !matches!(tree.head(node), Some("type" | "param" | "result")) {
                break;
            }
            nodes.next(tree);
            types.push(self.raw(node)?.wat.on_line(tree.node(node).starts_line));
        }
        let label = label.map(|label| Wat::words(label, tree.text(label)));
        Ok(BlockHead { label, types, results: ty.map(|ty| ty.results.len()) })
    }

    /// Returns the result types of a block. `nodes` must start at its label or type. Returns `None`
    /// if the block has parameters or an unsupported type.
    fn block_results(&self, mut nodes: Nodes) -> Option<Vec<Val>> {
        let tree = self.tree;
        nodes.next_name(tree);
        let ty = self.types.signature(tree, &mut nodes)?;
        ty.params.is_empty().then_some(ty.results)
    }

    pub(super) fn block(
        &mut self,
        list: NodeId,
        head: &'s str,
        mut nodes: Nodes,
    ) -> LowerResult<Lowered<'s>> {
        let results = self.block_results(nodes);
        let block = self.block_head(&mut nodes)?;
        let tail = match results.as_deref() {
            Some([one]) => Tail::Value(Want::Val(*one)),
            _ => Tail::Discarded,
        };
        let inside = nodes;
        let body = self.sequence(&mut nodes, tail)?;
        let wat = if block.types.is_empty() && body.wat.is_source(inside) {
            Wat::unchanged(list)
        } else {
            Wat::list(list, head, block.followed_by([body.wat]))
        };
        Ok(match results.as_deref() {
            Some([]) => Lowered::none(wat),
            Some([one]) => Lowered::one(wat, Type::of_wat(*one)),
            _ => Lowered::unknown(wat),
        })
    }

    /// Lowers `(if COND… (then …) (else …))`. If its value is used, adds the common type of the
    /// arms as the result type.
    pub(super) fn folded_if(
        &mut self,
        list: NodeId,
        mut nodes: Nodes,
        context: Context,
    ) -> LowerResult<Lowered<'s>> {
        let tree = self.tree;
        let by_name = self.is_named_condition(nodes);
        let declared = !by_name && {
            let mut after = nodes;
            after.next_name(tree);
            let is_type = |node| matches!(tree.head(node), Some("type" | "param" | "result"));
            after.peek(tree).is_some_and(is_type)
        };
        let results = if by_name { Some(Vec::new()) } else { self.block_results(nodes) };
        let mut value = match (declared, context, results.as_deref()) {
            (true, _, Some([one])) => Join::declared(Type::of_wat(*one)),
            (false, Context::Operand(want), _) => Join::wanted(want),
            (true, ..) | (false, ..) => Join::none(),
        };
        let mut block = if by_name { BlockHead::default() } else { self.block_head(&mut nodes)? };
        let inside = nodes;
        let (conditions, count, then) = self.conditions(list, &mut nodes)?;
        self.arm(then, &mut value)?;
        self.else_arm(list, &mut nodes, declared, &mut value)?;
        let taken = if count == 0 { Flow::Net(-1) } else { Flow::Net(0) };
        if declared {
            let ty = value.ty().unwrap_or(Type::Any);
            let arms = value.finish(self, list)?.arms;
            let flow = results.map_or(Flow::Unknown, |results| {
                Flow::Net(i32::try_from(results.len()).unwrap_or(0))
            });
            let pieces = block.followed_by(conditions.into_iter().chain(arms));
            let out = Lowered::one(Wat::list(list, "if", pieces), ty);
            return Ok(Lowered { flow: taken.then(flow), ..out });
        }
        let out = value.finish(self, list)?;
        block.types.extend(out.result(list));
        let mut pieces = conditions;
        pieces.extend(out.arms);
        let mut wat = if block.types.is_empty() && are_unchanged(tree, inside, &pieces) {
            Wat::unchanged(list)
        } else {
            Wat::list(list, "if", block.followed_by(pieces))
        };
        if out.is_never {
            wat = Wat::sequence(list, [wat, Wat::list(list, "unreachable", [])]);
        }
        Ok(Lowered { wat, flow: taken.then(out.flow), ty: out.ty, droppable: false })
    }

    /// Lowers the operands before `(then …)`. Returns the lowered operands, their number, and the
    /// node of `(then …)`.
    fn conditions(
        &mut self,
        list: NodeId,
        nodes: &mut Nodes,
    ) -> LowerResult<(Vec<Wat<'s>>, usize, NodeId)> {
        let tree = self.tree;
        let mut conditions = Vec::new();
        let then = loop {
            let Some(node) = nodes.next(tree) else {
                let message = wording::missing_then().maybe_safe(habits::add_arms(tree, list));
                return self.fault(list, message);
            };
            match tree.head(node) {
                Some("then") => break node,
                Some("else") => {
                    let message = wording::missing_then().maybe_safe(habits::add_arms(tree, list));
                    return self.fault(node, message);
                }
                _ => conditions.push(node),
            }
        };
        let mut lowered = Vec::new();
        match conditions.as_slice() {
            [one] => lowered.push(self.condition(list, *one)?.wat),
            several => {
                for node in several {
                    lowered.push(self.node(*node, Context::Operand(Want::Any))?.wat);
                }
            }
        }
        Ok((lowered, conditions.len(), then))
    }

    /// Lowers `(else …)`, and checks that nothing follows it.
    fn else_arm(
        &mut self,
        list: NodeId,
        nodes: &mut Nodes,
        declared: bool,
        value: &mut Join<'s>,
    ) -> LowerResult<()> {
        let tree = self.tree;
        let other = nodes.next(tree);
        match other {
            None if value.is_wanted() && !declared => {
                return self.fault(list, wording::form::value_needs_else("if"));
            }
            None => {}
            Some(other) if tree.head(other) != Some("else") => {
                let message = match tree.head(other) {
                    Some("then") => wording::second_then()
                        .maybe_safe(rewrite::replace_head(tree, other, "else")),
                    _ => wording::after_then().likely(Change::wrap("(else ", ")")),
                };
                return self.fault(other, message);
            }
            Some(other) => self.arm(other, value)?,
        }
        match nodes.next(tree) {
            Some(more) => self.fault(more, wording::after_else()),
            None => Ok(()),
        }
    }

    /// Returns true if an `if` starts with the name of a variable, directly followed by `(then …)`.
    /// The variable is then the condition. Any other name at the start of an `if` is a label.
    fn is_named_condition(&mut self, mut nodes: Nodes) -> bool {
        let tree = self.tree;
        let Some(name) = nodes.next(tree).and_then(|node| tree.name(node)) else { return false };
        nodes.peek(tree).is_some_and(|next| tree.head(next) == Some("then"))
            && self.resolve(name).is_some()
    }

    /// Lowers an arm of an `if`: `(then …)` or `(else …)`.
    fn arm(&mut self, arm: NodeId, value: &mut Join<'s>) -> LowerResult<()> {
        let tree = self.tree;
        let head = tree.head(arm).unwrap_or("then");
        value.branch(self, arm, head, &mut tree.operands(arm)).map(|_| ())
    }
}

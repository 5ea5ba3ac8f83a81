//! Emits blocks, loops and `if`, with their labels and types.

use super::flow::{Context, EmittedCode, Flow};
use super::instruction::Tail;
use super::{EmitResult, Emitter};
use crate::fix::Change;
use crate::forms::value;
use crate::messages::{self, Fault};
use crate::ops::Val;
use crate::tree::{NodeId, Nodes};
use crate::{idioms, rewrite};

impl<'s> Emitter<'_, 's> {
    /// Emits a block's label and type. Returns the number of results, if known.
    pub(super) fn block_head(&mut self, nodes: &mut Nodes) -> EmitResult<Option<usize>> {
        let tree = self.tree;
        if let Some(label) = nodes.peek(tree).filter(|node| tree.name(*node).is_some()) {
            nodes.next(tree);
            self.space();
            self.put(label, tree.text(label));
        }
        let mut after = *nodes;
        let ty = self.types.signature(tree, &mut after);
        while let Some(node) = nodes.peek(tree) {
            if !matches!(tree.head(node), Some("type" | "param" | "result")) {
                break;
            }
            nodes.next(tree);
            self.separate(node);
            self.raw(node)?;
        }
        Ok(ty.map(|ty| ty.results.len()))
    }

    /// Returns the result types of a block. `nodes` must begin at its label or type.
    fn block_results(&self, mut nodes: Nodes) -> Option<Vec<Val>> {
        let tree = self.tree;
        if nodes.peek(tree).is_some_and(|node| tree.name(node).is_some()) {
            nodes.next(tree);
        }
        let ty = self.types.signature(tree, &mut nodes)?;
        ty.params.is_empty().then_some(ty.results)
    }

    pub(super) fn block(&mut self, list: NodeId, head: &'s str, mut nodes: Nodes) -> EmitResult {
        let results = self.block_results(nodes);
        self.put(list, "(");
        self.out.push_str(head);
        self.enter(list)?;
        self.block_head(&mut nodes)?;
        let tail = match results.as_deref() {
            Some([one]) => Tail::Value(Some(*one)),
            _ => Tail::Discarded,
        };
        self.sequence(&mut nodes, tail)?;
        self.depth -= 1;
        self.out.push(')');
        Ok(match results.as_deref() {
            Some([]) => EmittedCode::NOTHING,
            Some([one]) => EmittedCode::one(*one),
            _ => EmittedCode::UNKNOWN,
        })
    }

    /// Emits `(if COND… (then …) (else …))`. If its value is used, adds the result type that the
    /// arms have in common.
    pub(super) fn folded_if(
        &mut self,
        list: NodeId,
        mut nodes: Nodes,
        context: Context,
    ) -> EmitResult {
        let tree = self.tree;
        let by_name = self.is_named_condition(nodes);
        let declared = !by_name
            && nodes.peek(tree).is_some_and(|node| {
                let mut after = nodes;
                let at = if tree.name(node).is_some() {
                    after.next(tree).and_then(|_| after.peek(tree))
                } else {
                    Some(node)
                };
                at.is_some_and(|node| matches!(tree.head(node), Some("type" | "param" | "result")))
            });
        let results = if by_name { Some(Vec::new()) } else { self.block_results(nodes) };
        let mut value = match (declared, context, results.as_deref()) {
            (true, _, Some([one])) => value::Join::of(*one),
            (true, ..) | (false, Context::Statement, _) => value::Join::none(),
            (false, Context::Operand(want), _) => value::Join::wanted(want),
        };
        self.put(list, "(if");
        self.enter(list)?;
        if !by_name {
            self.block_head(&mut nodes)?;
        }
        let type_at = self.out.len();
        let (conditions, then) = self.conditions(list, &mut nodes)?;
        self.arm(then, "(then", &mut value)?;
        self.else_arm(list, &mut nodes, declared, &mut value)?;
        self.depth -= 1;
        self.out.push(')');
        let taken = if conditions == 0 { Flow::Net(-1) } else { Flow::Net(0) };
        if declared {
            let flow = results.map_or(Flow::Unknown, |results| {
                Flow::Net(i32::try_from(results.len()).unwrap_or(0))
            });
            return Ok(EmittedCode {
                flow: taken.then(flow),
                ..EmittedCode::one(value.ty().unwrap_or(Val::Any))
            });
        }
        let out = value.close(self, list, type_at);
        Ok(EmittedCode { flow: taken.then(out.flow), ..out })
    }

    /// Emits the operands before `(then …)`. Returns their number, and the `(then …)`.
    fn conditions(&mut self, list: NodeId, nodes: &mut Nodes) -> EmitResult<(usize, NodeId)> {
        let tree = self.tree;
        let mut conditions = Vec::new();
        let then = loop {
            let Some(node) = nodes.next(tree) else {
                let message = messages::missing_then().maybe_safe(idioms::add_arms(tree, list));
                return Err(Fault::new(tree.span(list), message));
            };
            match tree.head(node) {
                Some("then") => break node,
                Some("else") => {
                    let message = messages::missing_then().maybe_safe(idioms::add_arms(tree, list));
                    return Err(Fault::new(tree.span(node), message));
                }
                _ => conditions.push(node),
            }
        };
        match conditions.as_slice() {
            [one] => {
                self.separate(*one);
                self.condition(list, *one)?;
            }
            several => {
                for node in several {
                    self.separate(*node);
                    self.node(*node, Context::Operand(None))?;
                }
            }
        }
        Ok((conditions.len(), then))
    }

    /// Emits `(else …)`, and checks that nothing follows it.
    fn else_arm(
        &mut self,
        list: NodeId,
        nodes: &mut Nodes,
        declared: bool,
        value: &mut value::Join,
    ) -> EmitResult<()> {
        let tree = self.tree;
        let other = nodes.next(tree);
        match other {
            None if value.is_wanted() && !declared => {
                return Err(Fault::new(tree.span(list), messages::form::value_needs_else("if")));
            }
            None => {}
            Some(other) if tree.head(other) != Some("else") => {
                let message = match tree.head(other) {
                    Some("then") => messages::second_then()
                        .maybe_safe(rewrite::replace_head(tree, other, "else")),
                    _ => messages::after_then().likely(Change::wrap("(else ", ")")),
                };
                return Err(Fault::new(tree.span(other), message));
            }
            Some(other) => self.arm(other, "(else", value)?,
        }
        if let Some(more) = nodes.next(tree) {
            return Err(Fault::new(tree.span(more), messages::after_else()));
        }
        Ok(())
    }

    /// Returns true if an `if` begins with the name of a local or global that is its condition,
    /// right before `(then …)`. Any other name is the label.
    fn is_named_condition(&self, mut nodes: Nodes) -> bool {
        let tree = self.tree;
        let Some(name) = nodes.next(tree).and_then(|node| tree.name(node)) else { return false };
        let known = self.local(name).is_some() || self.types.globals.by_name.contains_key(name);
        known && nodes.peek(tree).is_some_and(|next| tree.head(next) == Some("then"))
    }

    /// Emits an arm of an `if`.
    fn arm(&mut self, arm: NodeId, open: &str, value: &mut value::Join) -> EmitResult<()> {
        let tree = self.tree;
        let mut nodes = tree.children(arm);
        nodes.next(tree);
        self.separate(arm);
        self.put(arm, open);
        self.enter(arm)?;
        value.branch(self, arm, &mut nodes)?;
        self.depth -= 1;
        self.out.push(')');
        Ok(())
    }
}

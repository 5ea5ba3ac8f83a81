//! Sequences of forms and of flat instructions.

use super::flow::{Context, Flow, Lowered};
use super::forms::call::Callee;
use super::output::Wat;
use super::{CodeResult, Lowering, forms};
use crate::diagnose::wording;
use crate::lower::output::Pieces;
use crate::lower::wat::StackEffect;
use crate::syntax::tree::{NodeId, NodeKind, Nodes};
use crate::types::Type;
use crate::types::instruction::instruction;

/// Maximum nesting of flat blocks. The nesting of blocks in parentheses is limited by
/// [`tree::MAX_DEPTH`].
///
/// [`tree::MAX_DEPTH`]: crate::syntax::tree::MAX_DEPTH
const MAX_FLAT: usize = 1_000;

/// Maximum number of instructions to search for a use of the value that precedes them.
const LOOK_AHEAD: usize = 16;

impl<'s> Lowering<'_, 's> {
    /// Lowers siblings in order. If the context expects a value, it is the value of the last one.
    pub(crate) fn sequence(&mut self, nodes: &mut Nodes, around: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let from = nodes.peek(tree).unwrap_or(NodeId(0));
        let mut pieces = Pieces::of(*nodes);
        let (mut flow, mut ty) = (Flow::Net(0), Type::Any);
        let mut droppable = false;
        // For each open flat block, true if it has a result.
        let mut open: Vec<bool> = Vec::new();
        // The types of the values that the previous call left on the stack, topmost last.
        let mut pending: Vec<Type> = Vec::new();
        while let Some(node) = nodes.next(tree) {
            let line = tree.node(node).starts_line;
            let head = tree.head(node);
            let context = match around {
                Context::Operand(_) if nodes.peek(tree).is_none() => around,
                _ if self.leaves_err(head) && self.is_used(*nodes, &open) => Context::Stack,
                _ => Context::Statement,
            };
            if head == Some("local.set") && !pending.is_empty() {
                self.record_pop(node, &mut pending);
            }
            let mut out = match (tree.node(node).kind, context) {
                (NodeKind::Atom, _) => self.flat(node, nodes, context, &mut open)?,
                (_, Context::Operand(want)) => {
                    let out = self.node(node, context)?;
                    self.fit(node, node, out, want)?
                }
                _ => self.node(node, context)?,
            };
            if out.droppable && context == Context::Statement && !self.is_used(*nodes, &open) {
                out = out.without_value(node);
            }
            pending = match (context, out.flow) {
                (Context::Stack, Flow::Net(2)) => vec![out.ty, Type::Code],
                (Context::Stack, _) => vec![Type::Code],
                _ if head == Some("local.set") => pending,
                _ if head == Some("call") => self.left_by_call(node),
                _ => Vec::new(),
            };
            flow = flow.then(out.flow);
            (ty, droppable) = (out.ty, out.droppable);
            pieces.push(tree, node, out.wat.on_line(line));
        }
        self.func.flat = self.func.flat.saturating_sub(open.len());
        Ok(Lowered { wat: pieces.into_sequence(from), flow, ty, droppable })
    }

    /// Records the type of the value that a `local.set` without an operand pops from the stack.
    fn record_pop(&mut self, node: NodeId, pending: &mut Vec<Type>) {
        let tree = self.tree;
        let mut nodes = tree.operands(node);
        let target = nodes.next(tree).and_then(|target| tree.name(target));
        if let Some(name) = target.filter(|_| nodes.peek(tree).is_none())
            && let Some(ty) = pending.pop()
        {
            let at = self.func.scope.find(name);
            self.record_set(at, ty);
        }
    }

    /// Returns the types of the values that a WAT `call` leaves if it calls a host function.
    fn left_by_call(&self, node: NodeId) -> Vec<Type> {
        let tree = self.tree;
        let callee = tree.item(node, 1).and_then(|callee| tree.name(callee));
        let signature =
            callee.and_then(|name| name.strip_prefix('$')).and_then(|name| self.host.get(name));
        let Some(signature) = signature else { return Vec::new() };
        let values = signature.results.iter().map(|result| Type::of_host(result.ty));
        values.chain(signature.fallible().then_some(Type::Code)).collect()
    }

    /// Returns true if a list with this head is a call by name that may fail, and that therefore
    /// leaves an error code for the WAT instructions after it.
    fn leaves_err(&self, head: Option<&str>) -> bool {
        let called = head.and_then(|head| self.callee(head));
        matches!(called, Some(Callee::Host(signature, false)) if signature.fallible())
    }

    /// Lowers a flat instruction with its immediates, or a bare value.
    fn flat(
        &mut self,
        node: NodeId,
        nodes: &mut Nodes,
        context: Context,
        open: &mut Vec<bool>,
    ) -> CodeResult<'s> {
        let tree = self.tree;
        let name = tree.text(node);
        match name {
            "block" | "loop" | "if" => {
                self.func.flat += 1;
                if self.func.flat > MAX_FLAT {
                    return self.fault(node, wording::too_deep_blocks(MAX_FLAT));
                }
                let block = self.block_head(nodes)?;
                open.push(block.ty.as_ref().is_none_or(|ty| !ty.results.is_empty()));
                let mut pieces = vec![Wat::words(node, name)];
                pieces.extend(block.followed_by([]));
                Ok(Lowered::unknown(Wat::sequence(node, pieces)))
            }
            "else" | "end" => {
                if name == "end" && open.pop().is_some() {
                    self.func.flat = self.func.flat.saturating_sub(1);
                }
                let mut pieces = vec![Wat::words(node, name)];
                if let Some(label) = nodes.peek(tree).filter(|node| tree.name(*node).is_some()) {
                    nodes.next(tree);
                    pieces.push(Wat::words(label, tree.text(label)));
                }
                Ok(Lowered::unknown(Wat::sequence(node, pieces)))
            }
            _ => {
                let mut after = *nodes;
                if let Some(known) = instruction(name)
                    && let Some(effect) = self.effect(known, &mut after)
                {
                    let words = self.words(known, node, name, nodes.until(after))?;
                    *nodes = after;
                    return Ok(effect.lowered(words.flat(node)));
                }
                match self.bare(node, context.want())? {
                    Some(out) => match context {
                        Context::Operand(want) => self.fit(node, node, out, want),
                        _ => Ok(out),
                    },
                    None => {
                        let mut words = vec![Wat::words(node, name)];
                        words.extend(self.immediates(nodes)?);
                        Ok(Lowered::unknown(Wat::sequence(node, words)))
                    }
                }
            }
        }
    }

    /// Returns true if a later instruction of the sequence uses the current value.
    fn is_used(&self, mut nodes: Nodes, open: &[bool]) -> bool {
        let tree = self.tree;
        let mut above = 0;
        for _ in 0..LOOK_AHEAD {
            let Some(node) = nodes.next(tree) else { return false };
            let text = tree.text(node);
            if tree.node(node).kind == NodeKind::Atom {
                if matches!(text, "else" | "end") {
                    return open.last().copied().unwrap_or(false);
                }
                if text == "if" {
                    return above == 0;
                }
            }
            let Some((pops, pushes)) = self.pops_and_pushes(node, &mut nodes) else { return false };
            if pops > above {
                return true;
            }
            above = above - pops + pushes;
        }
        false
    }

    /// Returns the number of values that an instruction pops and the number that it pushes.
    /// Operands inside the instruction are not counted. Returns `None` if the numbers are unknown,
    /// or if control does not continue after the instruction.
    fn pops_and_pushes(&self, node: NodeId, nodes: &mut Nodes) -> Option<(usize, usize)> {
        let tree = self.tree;
        match tree.node(node).kind {
            NodeKind::Text | NodeKind::Block => Some((0, 1)),
            NodeKind::Atom => match self.named_effect(tree.text(node), nodes) {
                Some(effect) => Some((effect.pops.len(), effect.pushes)),
                None => Some((0, 1)),
            },
            NodeKind::List => {
                let head = tree.head(node)?;
                if forms::form(head).is_some_and(|_| forms::applies(tree, node, head)) {
                    return None;
                }
                if let Some(called) = self.callee(head) {
                    return Some((0, self.pushes(&called)));
                }
                if matches!(head, "then" | "else" | "block" | "loop") {
                    return None;
                }
                let mut inner = tree.operands(node);
                if head == "if" {
                    let first = inner.peek(tree)?;
                    return (tree.head(first) == Some("then")).then_some((1, 0));
                }
                let effect = self.named_effect(head, &mut inner)?;
                let given = inner.count(tree);
                Some((effect.pops.len().saturating_sub(given), effect.pushes))
            }
        }
    }

    /// Returns the number of values that a call by name leaves on the WAT stack.
    fn pushes(&self, called: &Callee<'s>) -> usize {
        match called {
            Callee::Host(signature, true) => signature.results.len(),
            Callee::Host(signature, false) => signature.pushes().count(),
            Callee::Wat(_) | Callee::Fn(..) => 1,
        }
    }
}

impl StackEffect {
    /// Combines the code of an instruction, whose operands are already on the stack, with this
    /// effect.
    pub(super) fn lowered<'s>(&self, wat: Wat<'s>) -> Lowered<'s> {
        if self.never {
            return Lowered::never(wat);
        }
        let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let ty = self.ty;
        match self.pops {
            crate::lower::wat::Pops::Unknown => Lowered { ty, ..Lowered::unknown(wat) },
            _ => Lowered::net(wat, count(self.pushes) - count(self.pops.len()), ty),
        }
    }
}

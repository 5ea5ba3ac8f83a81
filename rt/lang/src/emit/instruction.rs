//! Emits WAT's own instructions. Their operands may be forms, names and numbers.

use crate::emit::flow::{Context, EmittedCode, Flow};
use crate::emit::stack_effect::{Pops, StackEffect};
use crate::emit::{EmitResult, Emitter};
use crate::forms;
use crate::idioms;
use crate::messages;
use crate::messages::Fault;
use crate::ops::Val;
use crate::tree::{NodeId, NodeKind, Nodes};

/// Maximum nesting of blocks without parentheses. The nesting of those with parentheses is limited
/// by [`tree::MAX_DEPTH`].
///
/// [`tree::MAX_DEPTH`]: crate::tree::MAX_DEPTH
const MAX_FLAT: usize = 1_000;

/// Maximum number of instructions after a value that are searched for one that uses it.
const LOOK_AHEAD: usize = 16;

/// The use of the last value of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The value is not used.
    Discarded,
    /// The value becomes the value of the sequence. It has this type if the type is known.
    Value(Option<Val>),
}

impl<'s> Emitter<'_, 's> {
    /// Emits siblings in order.
    pub(crate) fn sequence(&mut self, nodes: &mut Nodes, tail: Tail) -> EmitResult {
        let tree = self.tree;
        let mut whole = EmittedCode::NOTHING;
        // For each open flat block, whether it has a result.
        let mut open: Vec<bool> = Vec::new();
        while let Some(node) = nodes.next(tree) {
            self.separate(node);
            let context = match tail {
                Tail::Value(want) if nodes.peek(tree).is_none() => Context::Operand(want),
                _ => Context::Statement,
            };
            let mut out = match tree.node(node).kind {
                NodeKind::Atom => self.flat(node, nodes, context, &mut open)?,
                _ => self.node(node, context)?,
            };
            if out.droppable && context == Context::Statement && !self.is_used(*nodes, &open) {
                self.out.push_str(" (drop)");
                out = EmittedCode::NOTHING;
            }
            whole = EmittedCode { flow: whole.flow.then(out.flow), ..out };
        }
        self.flat = self.flat.saturating_sub(open.len());
        Ok(whole)
    }

    /// Emits a flat instruction with its immediates, or a bare value.
    fn flat(
        &mut self,
        node: NodeId,
        nodes: &mut Nodes,
        context: Context,
        open: &mut Vec<bool>,
    ) -> EmitResult {
        let tree = self.tree;
        let name = tree.text(node);
        match name {
            "block" | "loop" | "if" => {
                self.flat += 1;
                if self.flat > MAX_FLAT {
                    return Err(Fault::new(tree.span(node), messages::too_deep_blocks(MAX_FLAT)));
                }
                self.put(node, name);
                let results = self.block_head(nodes)?;
                open.push(results.is_none_or(|results| results > 0));
                Ok(EmittedCode::UNKNOWN)
            }
            "else" | "end" => {
                if name == "end" && open.pop().is_some() {
                    self.flat = self.flat.saturating_sub(1);
                }
                self.put(node, name);
                if let Some(label) = nodes.peek(tree).filter(|node| tree.name(*node).is_some()) {
                    nodes.next(tree);
                    self.space();
                    self.put(label, tree.text(label));
                }
                Ok(EmittedCode::UNKNOWN)
            }
            _ => match self.instruction(node, name, nodes)? {
                Some(effect) => Ok(effect.out()),
                None => match self.bare(node, context.want())? {
                    Some(out) => Ok(out),
                    None => {
                        self.put(node, name);
                        self.immediates(nodes)?;
                        Ok(EmittedCode::UNKNOWN)
                    }
                },
            },
        }
    }

    /// Emits a folded instruction.
    pub(crate) fn plain(&mut self, list: NodeId, head: &'s str, context: Context) -> EmitResult {
        let tree = self.tree;
        let mut nodes = tree.children(list);
        let Some(first) = nodes.next(tree) else { return self.raw(list) };
        match head {
            "block" | "loop" => return self.block(list, head, nodes),
            "if" => return self.folded_if(list, nodes, context),
            "then" | "else" | "param" | "result" | "type" | "mut" | "ref" | "offset" | "item"
            | "export" => {
                return self.raw(list);
            }
            "i32.const" => {
                if let Some(text) = nodes.peek(tree).filter(|node| tree.atom(*node).is_none()) {
                    nodes.next(tree);
                    if tree.node(text).kind != NodeKind::List && nodes.next(tree).is_none() {
                        self.literal(text)?;
                        return Ok(EmittedCode::one(Val::I32));
                    }
                    return self.raw(list);
                }
            }
            _ => {}
        }
        self.put(list, "(");
        self.enter(list)?;
        let effect = self.instruction(first, head, &mut nodes)?;
        if effect.is_none() {
            if let Some(fault) = idioms::foreign(tree, list, self.host) {
                return Err(fault);
            }
            self.put(first, head);
            self.immediates(&mut nodes)?;
        }
        let mut count = 0;
        let mut ahead = nodes;
        while ahead.next(tree).is_some() {
            count += 1;
        }
        let pops = effect.as_ref().map(|effect| &effect.pops);
        let mut given = Flow::Net(0);
        let mut first_type = Val::Any;
        for at in 0..count {
            let Some(node) = nodes.next(tree) else { break };
            self.separate(node);
            let want = pops.filter(|pops| pops.len() == count).and_then(|pops| pops.get(at));
            let out = self.node(node, Context::Operand(want))?;
            if at == 0 {
                first_type = out.ty;
            }
            given = given.then(out.flow);
        }
        self.depth -= 1;
        self.out.push(')');
        let Some(effect) = effect else { return Ok(EmittedCode::UNKNOWN) };
        let mut out = effect.out();
        if head == "select" {
            out.ty = first_type;
        }
        Ok(EmittedCode { flow: given.then(out.flow), ..out })
    }

    /// Emits an instruction's name and immediates. For an unknown instruction, emits nothing and
    /// returns `None`.
    fn instruction(
        &mut self,
        first: NodeId,
        name: &'s str,
        nodes: &mut Nodes,
    ) -> EmitResult<Option<StackEffect>> {
        let tree = self.tree;
        let mut after = *nodes;
        let Some(effect) = self.effect(name, &mut after) else { return Ok(None) };
        self.put(first, name);
        while *nodes != after {
            let Some(node) = nodes.next(tree) else { break };
            self.space();
            match (name, tree.node(node).kind) {
                ("call" | "return_call" | "ref.func", NodeKind::Atom) => self.function(node)?,
                ("i32.const", NodeKind::Text | NodeKind::Block) => {
                    let value = self.text_value(node)?;
                    let address = self.data.address(value);
                    self.put(node, &address.to_string());
                }
                (_, NodeKind::List) => {
                    self.raw(node)?;
                }
                _ => {
                    if name.starts_with("local.") {
                        self.local_number(node)?;
                    }
                    self.put(node, tree.text(node));
                }
            }
        }
        Ok(Some(effect))
    }

    /// Emits the atoms after an unknown instruction, up to the next known instruction.
    fn immediates(&mut self, nodes: &mut Nodes) -> EmitResult<()> {
        let tree = self.tree;
        while let Some(node) =
            nodes.peek(tree).filter(|node| tree.node(*node).kind == NodeKind::Atom)
        {
            let mut after = *nodes;
            after.next(tree);
            let text = tree.text(node);
            if matches!(text, "block" | "loop" | "if" | "else" | "end")
                || self.effect(text, &mut after).is_some()
            {
                break;
            }
            nodes.next(tree);
            self.space();
            match text.starts_with('$') && self.program.defined.contains_key(text) {
                true => self.function(node)?,
                false => self.put(node, text),
            }
        }
        Ok(())
    }

    /// Emits a list unchanged, except for string literals and function names in it.
    pub(crate) fn raw(&mut self, list: NodeId) -> EmitResult {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let mut nodes = tree.children(list);
        if head == "i32.const" {
            nodes.next(tree);
            if let (Some(text), None) = (nodes.next(tree), nodes.next(tree))
                && matches!(tree.node(text).kind, NodeKind::Text | NodeKind::Block)
            {
                self.literal(text)?;
                return Ok(EmittedCode::UNKNOWN);
            }
            nodes = tree.children(list);
        }
        self.put(list, "(");
        let own = head == "elem" && self.depth == 1;
        let mut at = 0;
        while let Some(node) = nodes.next(tree) {
            self.separate(node);
            match tree.node(node).kind {
                NodeKind::List => {
                    self.enter(node)?;
                    self.raw(node)?;
                    self.depth -= 1;
                }
                NodeKind::Text | NodeKind::Block => self.literal(node)?,
                // In an element segment, every name except the segment's own is that of a function.
                // A segment inside a table has no name.
                NodeKind::Atom
                    if at > 0
                        && head == "elem"
                        && tree.name(node).is_some()
                        && !(own && at == 1) =>
                {
                    self.function(node)?;
                }
                NodeKind::Atom if at == 1 && head == "ref.func" => self.function(node)?,
                NodeKind::Atom => self.put(node, tree.text(node)),
            }
            at += 1;
        }
        self.out.push(')');
        Ok(EmittedCode::UNKNOWN)
    }

    /// Checks that a local's number refers to a local that the function declares.
    fn local_number(&self, node: NodeId) -> EmitResult<()> {
        let text = self.tree.text(node);
        let count = self.locals.list.len();
        if forms::index(text).is_some_and(|at| at >= count) {
            return Err(Fault::new(self.tree.span(node), messages::local_number(text, count)));
        }
        Ok(())
    }

    /// Emits a reference to a function, and imports it if it is a host function.
    fn function(&mut self, node: NodeId) -> EmitResult<()> {
        let (tree, host, text) = (self.tree, self.host, self.tree.text(node));
        if self.program.defined.contains_key(text) {
            self.put(node, text);
            return Ok(());
        }
        if let Some(signature) = self.program.aliases.get(text) {
            let signature = *signature;
            self.import(&signature);
            self.put(node, &format!("${}.{}", signature.module, signature.name));
            return Ok(());
        }
        match text.strip_prefix('$').and_then(|plain| host.get(plain)) {
            Some(signature) => {
                self.import(signature);
                self.put(node, text);
                Ok(())
            }
            None if forms::index(text).is_some() => {
                Err(Fault::new(tree.span(node), messages::function_number(text)))
            }
            None => {
                let message = messages::unknown_function(
                    text.trim_start_matches('$'),
                    text,
                    host,
                    Some(self.program),
                );
                Err(Fault::new(tree.span(node), message))
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

    /// Returns the number of values that an instruction pops and the number that it pushes. Operands
    /// that are written inside the instruction do not count. Returns `None` if the numbers are not
    /// known, or if control does not continue after the instruction.
    fn pops_and_pushes(&self, node: NodeId, nodes: &mut Nodes) -> Option<(usize, usize)> {
        let tree = self.tree;
        match tree.node(node).kind {
            NodeKind::Text | NodeKind::Block => Some((0, 1)),
            NodeKind::Atom => match self.effect(tree.text(node), nodes) {
                Some(effect) => Some((effect.pops.len(), effect.pushes)),
                None => Some((0, 1)),
            },
            NodeKind::List => {
                let head = tree.head(node)?;
                if let Some(called) = forms::call::called(self, head) {
                    return Some((0, called.pushes()));
                }
                if matches!(head, "then" | "else" | "block" | "loop") || forms::form(head).is_some()
                {
                    return None;
                }
                let mut inner = tree.children(node);
                inner.next(tree);
                if head == "if" {
                    let first = inner.peek(tree)?;
                    return (tree.head(first) == Some("then")).then_some((1, 0));
                }
                let effect = self.effect(head, &mut inner)?;
                let mut given = 0;
                while inner.next(tree).is_some() {
                    given += 1;
                }
                Some((effect.pops.len().saturating_sub(given), effect.pushes))
            }
        }
    }
}

impl StackEffect {
    /// Returns the effect of the instruction after its operands were pushed.
    fn out(&self) -> EmittedCode {
        if self.never {
            return EmittedCode::NEVER;
        }
        let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let is_bool = self.is_bool;
        match self.pops {
            Pops::Unknown => EmittedCode { ty: self.ty, ..EmittedCode::UNKNOWN },
            _ => EmittedCode {
                is_bool,
                ..EmittedCode::net(count(self.pushes) - count(self.pops.len()), self.ty)
            },
        }
    }
}

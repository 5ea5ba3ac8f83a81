//! WAT's own instructions. Their operands may be forms, names and numbers.

use super::flow::{Context, Flow, Lowered, Want};
use super::forms;
use super::function::FuncKind;
use super::output::Wat;
use super::stack_effect::StackEffect;
use super::{LowerResult, Lowering};
use crate::diagnose::wording::{self, types as type_wording};
use crate::habits;
use crate::syntax::literal;
use crate::syntax::tree::{NodeId, NodeKind, Nodes};
use crate::types::Type;
use crate::types::ops::Val;

impl<'s> Lowering<'_, 's> {
    /// Lowers a folded instruction.
    pub(super) fn plain(
        &mut self,
        list: NodeId,
        head: &'s str,
        context: Context,
    ) -> LowerResult<Lowered<'s>> {
        let tree = self.tree;
        let mut nodes = tree.children(list);
        let Some(first) = nodes.next(tree) else { return self.raw(list) };
        match head {
            "block" | "loop" => return self.block(list, head, nodes),
            "if" if self.is_choice(list) => return forms::choose(self, list, context),
            "if" => return self.folded_if(list, nodes, context),
            "return" if self.func.kind == FuncKind::Fn => return forms::returned(self, list),
            "return" if self.returns_text(nodes) => return forms::ret(self, list, context),
            "then" | "else" | "param" | "result" | "type" | "mut" | "ref" | "offset" | "item"
            | "export" => return self.raw(list),
            "i32.const" => {
                if let Some(text) = nodes.peek(tree).filter(|node| tree.atom(*node).is_none()) {
                    nodes.next(tree);
                    if tree.node(text).kind != NodeKind::List && nodes.next(tree).is_none() {
                        let value = self.text_value(text)?;
                        return Ok(Lowered::one(Wat::literal(list, value), Type::Str));
                    }
                    return self.raw(list);
                }
            }
            _ => {}
        }
        let (words, effect) = match self.instruction(first, head, &mut nodes)? {
            Some((words, effect)) => (words, Some(effect)),
            None => {
                if let Some(fault) = habits::foreign(tree, list, self.host) {
                    return Err(fault);
                }
                let mut words = vec![Wat::words(first, head)];
                words.extend(self.immediates(&mut nodes)?);
                (words, None)
            }
        };
        let mut operands = Vec::new();
        while let Some(node) = nodes.next(tree) {
            operands.push(node);
        }
        let pops = effect.as_ref().map(|effect| &effect.pops);
        let mut given = Flow::Net(0);
        let (mut first_type, mut all) = (Type::Any, words);
        for (at, node) in operands.iter().enumerate() {
            let want =
                pops.filter(|pops| pops.len() == operands.len()).and_then(|pops| pops.get(at));
            let out = self.node(*node, Context::Operand(want.map_or(Want::Any, Want::Val)))?;
            if at == 0 {
                first_type = out.ty;
                self.warn_of_address(list, head, *node);
            }
            given = given.then(out.flow);
            all.push(out.wat.on_line(tree.node(*node).starts_line));
        }
        if matches!(head, "local.set" | "local.tee") && operands.len() == 1 {
            let mut inner = tree.children(list);
            inner.next(tree);
            let target = inner.next(tree).and_then(|node| tree.name(node));
            let at = target.and_then(|name| self.func.scope.find(name));
            self.record_set(at, first_type);
        }
        let wat = Wat::list(list, "", all);
        let Some(effect) = effect else { return Ok(Lowered::unknown(wat)) };
        let mut out = effect.lowered(wat);
        match head {
            "select" | "local.tee" if !operands.is_empty() => out.ty = first_type,
            "return" => self.check_returned(list, &operands, first_type)?,
            _ => {}
        }
        Ok(Lowered { flow: given.then(out.flow), ..out })
    }

    /// Returns true for a `return` of the program whose only operand is a string.
    fn returns_text(&self, mut nodes: Nodes) -> bool {
        let tree = self.tree;
        let operand = nodes.next(tree);
        let is_text = |node: NodeId| match tree.node(node).kind {
            NodeKind::Text | NodeKind::Block => true,
            NodeKind::Atom => {
                self.func.scope.get(tree.text(node)).is_some_and(|v| v.ty == Type::Str)
            }
            NodeKind::List => matches!(tree.head(node), Some("fmt" | "str.cat" | "str.join")),
        };
        self.func.kind == FuncKind::Run
            && nodes.peek(tree).is_none()
            && operand.is_some_and(is_text)
    }

    /// Rejects a program that returns a string or a handle as its error code.
    fn check_returned(&self, list: NodeId, operands: &[NodeId], ty: Type) -> LowerResult<()> {
        let [value] = operands else { return Ok(()) };
        let is_word = matches!(self.tree.text(*value), "true" | "false" | "null" | "nil");
        let wrong = self.func.kind == FuncKind::Run
            && ty.val() == Val::I32
            && (is_word || !ty.is_number() && !ty.is_vague());
        if wrong { Err(self.returned_value(list, *value, ty)) } else { Ok(()) }
    }

    /// Warns of a load or store at the address of a string without the 4 bytes of its length.
    fn warn_of_address(&mut self, list: NodeId, head: &str, address: NodeId) {
        if !head.contains(".load") && !head.contains(".store") {
            return;
        }
        let tree = self.tree;
        let offset = {
            let mut nodes = tree.children(list);
            std::iter::from_fn(|| nodes.next(tree))
                .find_map(|node| tree.atom(node)?.strip_prefix("offset="))
                .and_then(literal::integer)
        };
        let (mut terms, mut open) = (Vec::new(), vec![address]);
        while let Some(node) = open.pop() {
            match tree.head(node) {
                Some("+" | "i32.add") => {
                    let mut nodes = tree.children(node);
                    nodes.next(tree);
                    open.extend(std::iter::from_fn(|| nodes.next(tree)));
                }
                _ => terms.push(node),
            }
        }
        let is_string = |node: &NodeId| {
            let name = match tree.head(*node) {
                Some("local.get") => {
                    let mut nodes = tree.children(*node);
                    nodes.next(tree);
                    nodes.next(tree).and_then(|node| tree.name(node))
                }
                _ => tree.name(*node),
            };
            name.and_then(|name| self.func.scope.get(name))
                .is_some_and(|variable| variable.ty == Type::Str)
        };
        let constant = |node: &NodeId| {
            let text = match tree.head(*node) {
                Some("i32.const") => {
                    let mut nodes = tree.children(*node);
                    nodes.next(tree);
                    nodes.next(tree).and_then(|node| tree.atom(node))
                }
                _ => tree.atom(*node),
            };
            text.and_then(literal::integer)
        };
        let string = terms.iter().copied().find(|node| is_string(node));
        let constants = offset.into_iter().chain(terms.iter().filter_map(constant));
        let added = constants.fold(0_i64, i64::saturating_add);
        if let Some(string) = string.filter(|_| terms.len() > 1 && added < 4) {
            self.warn(list, type_wording::address_of_length(tree.text(string)));
        }
    }

    /// Returns true for an `if` without arms, types and a label: `(if C A B)`.
    pub(super) fn is_choice(&self, list: NodeId) -> bool {
        let tree = self.tree;
        let mut nodes = tree.children(list);
        nodes.next(tree);
        let all: Vec<NodeId> = std::iter::from_fn(|| nodes.next(tree)).collect();
        let is_wat = |node: &NodeId| {
            matches!(tree.head(*node), Some("then" | "else" | "type" | "param" | "result"))
        };
        matches!(all.len(), 2 | 3) && !all.iter().any(is_wat)
    }

    /// Lowers an instruction's name and immediates. Returns `None` for an unknown instruction.
    pub(super) fn instruction(
        &mut self,
        first: NodeId,
        name: &'s str,
        nodes: &mut Nodes,
    ) -> LowerResult<Option<(Vec<Wat<'s>>, StackEffect)>> {
        let tree = self.tree;
        let mut after = *nodes;
        let Some(effect) = self.effect(name, &mut after) else { return Ok(None) };
        let mut name = name;
        let mut words = Vec::new();
        while *nodes != after {
            let Some(node) = nodes.next(tree) else { break };
            words.push(match (name, tree.node(node).kind) {
                ("call" | "return_call" | "ref.func", NodeKind::Atom) => self.function(node)?,
                ("i32.const", NodeKind::Text | NodeKind::Block) => {
                    Wat::address(node, self.text_value(node)?)
                }
                (_, NodeKind::List) => self.raw(node)?.wat,
                _ if name.starts_with("local.") => {
                    self.local_number(node)?;
                    match tree.name(node).and_then(|text| self.func.scope.get(text)).cloned() {
                        Some(variable) if variable.shared && name != "local.tee" => {
                            name = if name == "local.get" { "global.get" } else { "global.set" };
                            Wat::words(node, variable.text)
                        }
                        Some(variable) => Wat::words(node, variable.text),
                        None => Wat::words(node, tree.text(node)),
                    }
                }
                _ => Wat::words(node, tree.text(node)),
            });
        }
        words.insert(0, Wat::words(first, name));
        Ok(Some((words, effect)))
    }

    /// Lowers the atoms after an unknown instruction, up to the next known instruction.
    pub(super) fn immediates(&mut self, nodes: &mut Nodes) -> LowerResult<Vec<Wat<'s>>> {
        let tree = self.tree;
        let mut words = Vec::new();
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
            words.push(match text.starts_with('$') && self.program.defined.contains_key(text) {
                true => self.function(node)?,
                false => Wat::words(node, text),
            });
        }
        Ok(words)
    }

    /// Lowers a list unchanged, except for string literals and function names in it.
    pub(crate) fn raw(&mut self, list: NodeId) -> LowerResult<Lowered<'s>> {
        self.raw_within(list, true)
    }

    fn raw_within(&mut self, list: NodeId, top: bool) -> LowerResult<Lowered<'s>> {
        let tree = self.tree;
        let head = tree.head(list).unwrap_or("");
        let mut nodes = tree.children(list);
        if head == "i32.const" {
            nodes.next(tree);
            if let (Some(text), None) = (nodes.next(tree), nodes.next(tree))
                && matches!(tree.node(text).kind, NodeKind::Text | NodeKind::Block)
            {
                let value = self.text_value(text)?;
                return Ok(Lowered::unknown(Wat::literal(list, value)));
            }
            nodes = tree.children(list);
        }
        let own = head == "elem" && top;
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(node) = nodes.next(tree) {
            let piece = match tree.node(node).kind {
                NodeKind::List => self.raw_within(node, false)?.wat,
                NodeKind::Text | NodeKind::Block => Wat::literal(node, self.text_value(node)?),
                // In an element segment, every name except the segment's own is that of a function.
                // A segment inside a table has no name.
                NodeKind::Atom
                    if at > 0
                        && head == "elem"
                        && tree.name(node).is_some()
                        && !(own && at == 1) =>
                {
                    self.function(node)?
                }
                NodeKind::Atom if at == 1 && head == "ref.func" => self.function(node)?,
                NodeKind::Atom => {
                    if let Some(at) = self.program.defined.get(tree.text(node)) {
                        self.record_use(*at);
                    }
                    Wat::words(node, tree.text(node))
                }
            };
            pieces.push(piece.on_line(tree.node(node).starts_line));
            at += 1;
        }
        Ok(Lowered::unknown(Wat::list(list, "", pieces)))
    }

    /// Checks that a local's number refers to a local that the function declares.
    fn local_number(&self, node: NodeId) -> LowerResult<()> {
        let text = self.tree.text(node);
        let count = self.func.scope.len();
        if literal::index(text).is_some_and(|at| at >= count) {
            return self.fault(node, wording::local_number(text, count));
        }
        Ok(())
    }

    /// Lowers a reference to a function, and imports it if it is a host function.
    fn function(&mut self, node: NodeId) -> LowerResult<Wat<'s>> {
        let (host, text) = (self.host, self.tree.text(node));
        if let Some(at) = self.program.defined.get(text) {
            self.record_use(*at);
            return Ok(Wat::words(node, text));
        }
        if let Some(signature) = self.program.aliases.get(text) {
            let signature = *signature;
            self.import(&signature);
            return Ok(Wat::words(node, format!("${}.{}", signature.module, signature.name)));
        }
        match text.strip_prefix('$').and_then(|plain| host.get(plain)) {
            Some(signature) => {
                self.import(signature);
                Ok(Wat::words(node, text))
            }
            None if literal::index(text).is_some() => {
                self.fault(node, wording::function_number(text))
            }
            None => {
                let plain = text.trim_start_matches('$');
                let own = self.program.names();
                self.fault(node, wording::unknown_function(plain, text, host, &own))
            }
        }
    }
}

//! WAT instructions. Their operands may be forms, names or numbers.

use super::flow::{Context, Flow, Lowered, Want};
use super::function::FuncKind;
use super::output::Wat;
use super::pieces::Pieces;
use super::{LowerResult, Lowering};
use crate::diagnose::wording::{self, types as type_wording};
use crate::habits;
use crate::syntax::literal;
use crate::syntax::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::types::Type;
use crate::types::Val;
use crate::types::instruction::{Immediate, Instruction};

/// An instruction's name and immediates, as printed in the module.
pub(super) enum Words<'s> {
    /// Words of the source that are printed unchanged.
    Source(Nodes),
    Pieces(Vec<Wat<'s>>),
}

impl<'s> Words<'s> {
    /// Creates a folded instruction.
    pub(super) fn with_operands(
        self,
        tree: &Tree<'s>,
        list: NodeId,
        operands: Pieces<'s>,
    ) -> Wat<'s> {
        match self {
            Words::Source(_) if operands.are_unchanged() => Wat::unchanged(list),
            Words::Source(words) => Wat::instruction(list, words, operands.into_vec(tree)),
            Words::Pieces(mut pieces) => {
                pieces.extend(operands.into_vec(tree));
                Wat::list(list, "", pieces)
            }
        }
    }

    /// Creates a flat instruction.
    pub(super) fn flat(self, from: NodeId) -> Wat<'s> {
        match self {
            Words::Source(words) => Wat::source(from, words),
            Words::Pieces(pieces) => Wat::sequence(from, pieces),
        }
    }
}

impl<'s> Lowering<'_, 's> {
    /// Lowers a folded instruction.
    pub(super) fn plain(
        &mut self,
        list: NodeId,
        head: &'s str,
        instruction: Option<&Instruction>,
        context: Context,
    ) -> LowerResult<Lowered<'s>> {
        let tree = self.tree;
        let mut nodes = tree.children(list);
        let Some(first) = nodes.next(tree) else { return self.raw(list) };
        if let Some(lowered) = self.special(list, head, instruction, nodes, context)? {
            return Ok(lowered);
        }
        let mut after = nodes;
        let effect = instruction.and_then(|known| self.effect(known, &mut after));
        let words = match instruction.filter(|_| effect.is_some()) {
            Some(known) => self.words(known, first, head, nodes.until(after))?,
            None => {
                if let Some(fault) = habits::foreign(tree, list, self.host) {
                    return Err(fault);
                }
                after = nodes;
                let mut words = vec![Wat::words(first, head)];
                words.extend(self.immediates(&mut after)?);
                Words::Pieces(words)
            }
        };
        let nodes = after;
        let count = nodes.count(tree);
        let accesses_memory = effect.as_ref().is_none_or(|effect| effect.accesses_memory);
        let pops = effect.as_ref().map(|effect| &effect.pops).filter(|pops| pops.len() == count);
        let mut given = Flow::Net(0);
        let (mut first_type, mut at) = (Type::Any, 0);
        let mut operands = Pieces::of(nodes);
        let mut rest = nodes;
        while let Some(node) = rest.next(tree) {
            let want = pops.and_then(|pops| pops.get(at));
            let out = self.node(node, Context::Operand(want.map_or(Want::Any, Want::Val)))?;
            if at == 0 {
                first_type = out.ty;
                if accesses_memory {
                    self.warn_of_address(list, head, node);
                }
            }
            given = given.then(out.flow);
            operands.push(tree, node, out.wat.on_line(tree.node(node).starts_line));
            at += 1;
        }
        if matches!(instruction, Some(Instruction::LocalSet | Instruction::LocalTee)) && count == 1
        {
            let target = tree.item(list, 1).and_then(|node| tree.name(node));
            let at = target.and_then(|name| self.func.scope.find(name));
            self.record_set(at, first_type);
        }
        let wat = words.with_operands(tree, list, operands);
        let Some(effect) = effect else { return Ok(Lowered::unknown(wat)) };
        let mut out = effect.lowered(wat);
        match instruction {
            Some(Instruction::Select | Instruction::LocalTee) if count > 0 => out.ty = first_type,
            Some(Instruction::Return) => self.check_returned(list, nodes, first_type)?,
            _ => {}
        }
        Ok(Lowered { flow: given.then(out.flow), ..out })
    }

    /// Lowers an instruction that needs special treatment: a block, an `if`, a `return` form, a
    /// type such as `(result i32)`, or an `i32.const` with a string. `nodes` starts after the name.
    /// Returns `None` for any other instruction.
    fn special(
        &mut self,
        list: NodeId,
        head: &'s str,
        instruction: Option<&Instruction>,
        mut nodes: Nodes,
        context: Context,
    ) -> LowerResult<Option<Lowered<'s>>> {
        let tree = self.tree;
        let lowered = match instruction {
            Some(Instruction::Block | Instruction::Loop) => self.block(list, head, nodes),
            Some(Instruction::If) if self.is_choice(list) => self.lower_choice(list, context),
            Some(Instruction::If) => self.folded_if(list, nodes, context),
            Some(Instruction::Return) if self.func.kind == FuncKind::Fn => self.lower_return(list),
            Some(Instruction::Return) if self.returns_text(nodes) => self.lower_ret(list, context),
            Some(Instruction::Part) => self.raw(list),
            Some(Instruction::Op(op)) if op.immediate == Immediate::Number(Val::I32) => {
                let Some(text) = nodes.next(tree).filter(|node| tree.atom(*node).is_none()) else {
                    return Ok(None);
                };
                if !tree.is_list(text) && nodes.next(tree).is_none() {
                    Ok(Lowered::one(Wat::literal(list, self.text_value(text)?), Type::Str))
                } else {
                    self.raw(list)
                }
            }
            _ => return Ok(None),
        };
        lowered.map(Some)
    }

    /// Returns true if the current function is the program itself and `nodes`, the operands of its
    /// `return`, consist of exactly one string.
    fn returns_text(&self, mut nodes: Nodes) -> bool {
        let tree = self.tree;
        let operand = nodes.next(tree);
        let is_text = |node: NodeId| match tree.node(node).kind {
            NodeKind::Text | NodeKind::Block => true,
            NodeKind::Atom => {
                self.func.scope.get(tree.text(node)).is_some_and(|v| v.ty() == Type::Str)
            }
            NodeKind::List => matches!(tree.head(node), Some("fmt" | "str.cat" | "str.join")),
        };
        self.func.kind == FuncKind::Run
            && nodes.peek(tree).is_none()
            && operand.is_some_and(is_text)
    }

    /// Rejects a program that returns a string or a handle as its error code.
    fn check_returned(&self, list: NodeId, mut operands: Nodes, ty: Type) -> LowerResult<()> {
        let value = operands.next(self.tree).filter(|_| operands.peek(self.tree).is_none());
        let Some(value) = value else { return Ok(()) };
        let is_word = matches!(self.tree.text(value), "true" | "false" | "null" | "nil");
        let wrong = self.func.kind == FuncKind::Run
            && ty.val() == Val::I32
            && (is_word || !ty.is_number() && !ty.is_vague());
        if wrong { Err(self.returned_value(list, value, ty)) } else { Ok(()) }
    }

    /// Warns about a load or store that uses the address of a string without skipping the string's
    /// 4-byte length field.
    fn warn_of_address(&mut self, list: NodeId, head: &str, address: NodeId) {
        if !head.contains(".load") && !head.contains(".store") {
            return;
        }
        let tree = self.tree;
        let mut nodes = tree.children(list).iter(tree);
        let offset = nodes.find_map(|node| tree.atom(node)?.strip_prefix("offset="));
        let offset = offset.and_then(literal::integer);
        let (mut terms, mut open) = (Vec::new(), vec![address]);
        while let Some(node) = open.pop() {
            match tree.head(node) {
                Some("+" | "i32.add") => open.extend(tree.operands(node).iter(tree)),
                _ => terms.push(node),
            }
        }
        let is_string = |node: &NodeId| {
            let name = match tree.head(*node) {
                Some("local.get") => tree.item(*node, 1).and_then(|node| tree.name(node)),
                _ => tree.name(*node),
            };
            name.and_then(|name| self.func.scope.get(name))
                .is_some_and(|variable| variable.ty() == Type::Str)
        };
        let constant = |node: &NodeId| {
            let text = match tree.head(*node) {
                Some("i32.const") => tree.item(*node, 1).and_then(|node| tree.atom(node)),
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

    /// Returns true if an `if` is like `(if C A B)`: it has two or three operands, and no `then`,
    /// `else` or types.
    pub(super) fn is_choice(&self, list: NodeId) -> bool {
        let tree = self.tree;
        let nodes = tree.operands(list);
        let is_wat = |node: NodeId| {
            matches!(tree.head(node), Some("then" | "else" | "type" | "param" | "result"))
        };
        matches!(nodes.count(tree), 2 | 3) && !nodes.iter(tree).any(is_wat)
    }

    /// Lowers an instruction's name and immediates.
    pub(super) fn words(
        &mut self,
        instruction: &Instruction,
        first: NodeId,
        name: &'s str,
        immediates: Nodes,
    ) -> LowerResult<Words<'s>> {
        let tree = self.tree;
        let (mut rest, mut changed) = (immediates, Vec::new());
        while let Some(node) = rest.next(tree) {
            if let Some(word) = self.changed_immediate(instruction, node)? {
                changed.push((node, word));
            }
        }
        if changed.is_empty() {
            return Ok(Words::Source(immediates.starting_at(first)));
        }
        let mut changed = changed.into_iter().peekable();
        let mut words = vec![Wat::words(first, self.changed_name(instruction, name, immediates))];
        rest = immediates;
        while let Some(node) = rest.next(tree) {
            let word = changed.next_if(|(at, _)| *at == node).map(|(_, word)| word);
            words.push(word.unwrap_or_else(|| Wat::words(node, tree.text(node))));
        }
        Ok(Words::Pieces(words))
    }

    /// Lowers an immediate of an instruction. Returns `None` if it is printed unchanged.
    fn changed_immediate(
        &mut self,
        instruction: &Instruction,
        node: NodeId,
    ) -> LowerResult<Option<Wat<'s>>> {
        let tree = self.tree;
        let kind = tree.node(node).kind;
        if kind == NodeKind::List {
            return Ok(Some(self.raw(node)?.wat));
        }
        Ok(match instruction {
            Instruction::Call | Instruction::ReturnCall | Instruction::RefFunc
                if kind == NodeKind::Atom =>
            {
                self.function(node)?
            }
            Instruction::Op(op)
                if op.immediate == Immediate::Number(Val::I32) && kind != NodeKind::Atom =>
            {
                Some(Wat::address(node, self.text_value(node)?))
            }
            Instruction::LocalGet | Instruction::LocalSet | Instruction::LocalTee => {
                let variable = tree.name(node).and_then(|text| self.func.scope.get(text));
                match variable {
                    None => self.local_number(node)?,
                    Some(variable) if variable.name == Some(variable.text.as_ref()) => {}
                    Some(variable) => return Ok(Some(Wat::words(node, variable.text.clone()))),
                }
                None
            }
            _ => None,
        })
    }

    /// Returns the name to emit for an instruction. If a `local.get` or `local.set` accesses a
    /// variable that functions share, returns `global.get` or `global.set`.
    fn changed_name(
        &self,
        instruction: &Instruction,
        name: &'s str,
        mut immediates: Nodes,
    ) -> &'s str {
        let first = immediates.next(self.tree).and_then(|node| self.tree.name(node));
        let shared = first.and_then(|name| self.func.scope.get(name)).is_some_and(|v| v.shared);
        match instruction {
            Instruction::LocalGet if shared => "global.get",
            Instruction::LocalSet if shared => "global.set",
            _ => name,
        }
    }

    /// Lowers the atoms after an unknown instruction, up to the next known instruction.
    pub(super) fn immediates(&mut self, nodes: &mut Nodes) -> LowerResult<Vec<Wat<'s>>> {
        let tree = self.tree;
        let mut words = Vec::new();
        while let Some(node) = nodes.peek(tree).filter(|node| tree.atom(*node).is_some()) {
            let mut after = *nodes;
            after.next(tree);
            let text = tree.text(node);
            if matches!(text, "block" | "loop" | "if" | "else" | "end")
                || self.named_effect(text, &mut after).is_some()
            {
                break;
            }
            nodes.next(tree);
            if let Some(at) = self.program.defined.get(text) {
                self.record_use(*at);
            }
            words.push(Wat::words(node, text));
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
                && tree.is_text(text)
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
                // In an element segment, every name except that of the segment itself is the name
                // of a function. A segment inside a table has no name.
                NodeKind::Atom
                    if at > 0
                        && head == "elem"
                        && tree.name(node).is_some()
                        && !(own && at == 1) =>
                {
                    self.function_word(node)?
                }
                NodeKind::Atom if at == 1 && head == "ref.func" => self.function_word(node)?,
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

    /// Checks that a local's index refers to a parameter or local of the current function.
    fn local_number(&self, node: NodeId) -> LowerResult<()> {
        let text = self.tree.text(node);
        let count = self.func.scope.len();
        if literal::index(text).is_some_and(|at| at >= count) {
            return self.fault(node, wording::local_number(text, count));
        }
        Ok(())
    }

    /// Lowers a reference to a function. Returns the word to print, which is the source text of the
    /// reference unless the reference changes.
    fn function_word(&mut self, node: NodeId) -> LowerResult<Wat<'s>> {
        let changed = self.function(node)?;
        Ok(changed.unwrap_or_else(|| Wat::words(node, self.tree.text(node))))
    }

    /// Lowers a reference to a function. Imports the function if it is a host function. Returns
    /// `None` if the reference is printed unchanged.
    fn function(&mut self, node: NodeId) -> LowerResult<Option<Wat<'s>>> {
        let (host, text) = (self.host, self.tree.text(node));
        if let Some(at) = self.program.defined.get(text) {
            self.record_use(*at);
            return Ok(None);
        }
        if let Some(signature) = self.program.aliases.get(text) {
            let signature = *signature;
            self.import(&signature);
            let name = format!("${}.{}", signature.module, signature.name);
            return Ok(Some(Wat::words(node, name)));
        }
        match text.strip_prefix('$').and_then(|plain| host.get(plain)) {
            Some(signature) => {
                self.import(signature);
                Ok(None)
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

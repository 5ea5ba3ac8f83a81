//! WAT instructions, blocks and their effects on the stack. The operands of an instruction may be
//! forms, names or numbers.

use crate::diagnose::fix::Change;
use crate::diagnose::wording;
use crate::diagnose::wording::types as type_wording;
use crate::habits::rewrite;
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::function::FuncKind;
use crate::lower::output::{Pieces, Wat, are_unchanged};
use crate::lower::value::Join;
use crate::lower::variables::Variable;
use crate::lower::wat_types::FuncType;
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::literal;
use crate::syntax::literal::index;
use crate::syntax::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::types::instruction::{Immediate, Instruction, Op, instruction};
use crate::types::{Type, Val};
use crate::{Param, Signature, habits};

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
    ) -> CodeResult<'s> {
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
        let mut first_type = Type::Any;
        let mut at = 0;
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
            Some(Instruction::Return) if !self.func.inline.is_empty() => {
                self.lower_inline_return(list)
            }
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
        let mut terms = Vec::new();
        let mut open = vec![address];
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
        let mut rest = immediates;
        let mut changed = Vec::new();
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
    pub(crate) fn raw(&mut self, list: NodeId) -> CodeResult<'s> {
        self.raw_within(list, true)
    }

    fn raw_within(&mut self, list: NodeId, top: bool) -> CodeResult<'s> {
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
        let host = self.host;
        let text = self.tree.text(node);
        if let Some(at) = self.program.defined.get(text) {
            self.record_use(*at);
            return Ok(None);
        }
        if let Some(signature) = self.program.aliases.get(text) {
            let signature = *signature;
            self.import(&signature);
            let name = format!("${}", signature.full_name());
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

/// The label and the type of a block.
#[derive(Default)]
pub(super) struct BlockHead<'s> {
    label: Option<Wat<'s>>,
    types: Vec<Wat<'s>>,
    /// The parameters and results, if they are supported.
    pub(super) ty: Option<FuncType>,
}

impl<'s> BlockHead<'s> {
    /// Returns the result types. Returns `None` if the block has parameters or an unsupported type.
    fn results(&self) -> Option<&[Val]> {
        self.ty.as_ref().filter(|ty| ty.params.is_empty()).map(|ty| ty.results.as_slice())
    }

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
        Ok(BlockHead { label, types, ty })
    }

    pub(super) fn block(
        &mut self,
        list: NodeId,
        head: &'s str,
        mut nodes: Nodes,
    ) -> CodeResult<'s> {
        let block = self.block_head(&mut nodes)?;
        let inner = match block.results() {
            Some([one]) => Context::Operand(Want::Val(*one)),
            _ => Context::Statement,
        };
        let inside = nodes;
        let body = self.sequence(&mut nodes, inner)?;
        let (flow, ty) = match block.results() {
            Some([]) => (Flow::Net(0), Type::Any),
            Some([one]) => (Flow::Net(1), Type::of_wat(*one)),
            _ => (Flow::Unknown, Type::Any),
        };
        let wat = if block.types.is_empty() && body.wat.is_source(inside) {
            Wat::unchanged(list)
        } else {
            Wat::list(list, head, block.followed_by([body.wat]))
        };
        Ok(Lowered { wat, flow, ty, droppable: false })
    }

    /// Lowers `(if COND… (then …) (else …))`. If its value is used, adds the common type of the
    /// arms as the result type.
    pub(super) fn folded_if(
        &mut self,
        list: NodeId,
        mut nodes: Nodes,
        context: Context,
    ) -> CodeResult<'s> {
        let by_name = self.is_named_condition(nodes);
        let mut block = if by_name { BlockHead::default() } else { self.block_head(&mut nodes)? };
        let declared = !block.types.is_empty();
        let mut value = match block.results() {
            Some([one]) if declared => Join::declared(Type::of_wat(*one)),
            _ if declared => Join::at(Context::Statement),
            _ => Join::at(context),
        };
        let inside = nodes;
        let (conditions, count, then) = self.conditions(list, &mut nodes)?;
        self.arm(then, &mut value)?;
        self.else_arm(list, &mut nodes, declared, &mut value)?;
        let taken = if count == 0 { Flow::Net(-1) } else { Flow::Net(0) };
        if declared {
            let ty = value.ty().unwrap_or(Type::Any);
            let arms = value.finish(self, list)?.arms;
            let flow = block.results().map_or(Flow::Unknown, |results| {
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
        let wat = if block.types.is_empty() && are_unchanged(self.tree, inside, &pieces) {
            Wat::unchanged(list)
        } else {
            Wat::list(list, "if", block.followed_by(pieces))
        };
        let code = Lowered { flow: out.flow, ty: out.ty, ..Lowered::none(wat) }.ending(list);
        Ok(Lowered { flow: taken.then(out.flow), ..code })
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

/// The stack effect of an instruction.
pub(crate) struct StackEffect {
    pub(crate) pops: Pops,
    /// The number of values that the instruction pushes.
    pub(crate) pushes: usize,
    /// The type of the first value that the instruction pushes.
    pub(crate) ty: Type,
    /// If true, control does not continue after the instruction.
    pub(crate) never: bool,
    /// If true, the instruction is a load or store.
    pub(crate) accesses_memory: bool,
}

/// The types of the values that an instruction pops.
pub(crate) enum Pops {
    Fixed(&'static [Val]),
    One(Val),
    Host(&'static [Param]),
    List(Vec<Val>),
    /// The types are not known.
    Unknown,
}

impl Pops {
    pub(crate) fn len(&self) -> usize {
        match self {
            Pops::Fixed(types) => types.len(),
            Pops::One(_) => 1,
            Pops::Host(params) => params.len(),
            Pops::List(types) => types.len(),
            Pops::Unknown => 0,
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<Val> {
        let ty = match self {
            Pops::Fixed(types) => types.get(at).copied(),
            Pops::One(ty) => (at == 0).then_some(*ty),
            Pops::Host(params) => params.get(at).map(|param| Val::from(param.ty.val())),
            Pops::List(types) => types.get(at).copied(),
            Pops::Unknown => None,
        };
        ty.filter(|ty| *ty != Val::Any)
    }
}

impl StackEffect {
    fn new(pops: Pops, pushes: usize, ty: Type) -> Option<StackEffect> {
        Some(StackEffect { pops, pushes, ty, never: false, accesses_memory: false })
    }

    fn never() -> Option<StackEffect> {
        let effect = StackEffect::new(Pops::Unknown, 0, Type::Any)?;
        Some(StackEffect { never: true, ..effect })
    }

    /// Returns the effect of calling a host function.
    pub(crate) fn of_host(signature: &Signature) -> StackEffect {
        let result = signature.results.first().map(|result| Type::of_host(result.ty));
        let code = || if signature.fallible() { Type::Code } else { Type::Any };
        StackEffect {
            pops: Pops::Host(signature.params),
            pushes: signature.pushes().count(),
            ty: result.unwrap_or_else(code),
            never: false,
            accesses_memory: false,
        }
    }
}

impl Lowering<'_, '_> {
    /// Reads the immediates of the instruction with this name and returns its effect. Returns
    /// `None` for an unknown instruction.
    pub(crate) fn named_effect(&self, name: &str, nodes: &mut Nodes) -> Option<StackEffect> {
        self.effect(instruction(name)?, nodes)
    }

    /// Reads the immediates of an instruction and returns its effect. Returns `None` if the
    /// immediates do not determine the effect.
    pub(crate) fn effect(
        &self,
        instruction: &Instruction,
        nodes: &mut Nodes,
    ) -> Option<StackEffect> {
        let tree = self.tree;
        let mut atom =
            || nodes.next_if(tree, |node| tree.atom(node).is_some()).map(|node| tree.text(node));
        match instruction {
            Instruction::Op(op) => self.operation(op, nodes),
            Instruction::Call => {
                let effect = self.called(atom()?);
                effect.or_else(|| StackEffect::new(Pops::Unknown, 0, Type::Any))
            }
            Instruction::ReturnCall | Instruction::Br => atom().and(StackEffect::never()),
            Instruction::LocalGet => {
                let (_, ty) = self.local_type(atom()?);
                StackEffect::new(Pops::Fixed(&[]), 1, ty)
            }
            Instruction::LocalSet => {
                let val = self.local(atom()?).map_or(Val::Any, representation);
                StackEffect::new(Pops::One(val), 0, Type::Any)
            }
            Instruction::LocalTee => {
                let (val, ty) = self.local_type(atom()?);
                StackEffect::new(Pops::One(val), 1, ty)
            }
            Instruction::GlobalGet => {
                StackEffect::new(Pops::Fixed(&[]), 1, Type::of_wat(self.global_type(atom()?)))
            }
            Instruction::GlobalSet => {
                StackEffect::new(Pops::One(self.global_type(atom()?)), 0, Type::Any)
            }
            Instruction::BrIf => atom().and(StackEffect::new(Pops::One(Val::I32), 0, Type::Any)),
            Instruction::BrTable => {
                while next_label(tree, nodes).is_some() {}
                StackEffect::never()
            }
            Instruction::Return | Instruction::Unreachable => StackEffect::never(),
            Instruction::Select => {
                let typed = nodes.peek(tree).filter(|node| tree.head(*node) == Some("result"));
                let ty = typed.and_then(|_| self.types.signature(tree, nodes));
                let ty = ty.and_then(|ty| ty.results.first().copied());
                let pops = Pops::Fixed(&[Val::Any, Val::Any, Val::I32]);
                StackEffect::new(pops, 1, ty.map_or(Type::Any, Type::of_wat))
            }
            Instruction::CallIndirect => self.indirect_call(true, nodes),
            Instruction::ReturnCallIndirect => self.indirect_call(false, nodes),
            Instruction::RefFunc => {
                atom().and(StackEffect::new(Pops::Fixed(&[]), 1, Type::Wat(Val::Func)))
            }
            Instruction::RefNull => {
                let ty = if atom()? == "extern" { Val::Extern } else { Val::Func };
                StackEffect::new(Pops::Fixed(&[]), 1, Type::Wat(ty))
            }
            Instruction::RefIsNull => StackEffect::new(Pops::Fixed(&[Val::Any]), 1, Type::Bool),
            Instruction::Block | Instruction::Loop | Instruction::If | Instruction::Part => None,
        }
    }

    /// Returns the effect of an indirect call. If `returns` is false, the call is a tail call, and
    /// control does not return.
    fn indirect_call(&self, returns: bool, nodes: &mut Nodes) -> Option<StackEffect> {
        let tree = self.tree;
        next_label(tree, nodes);
        match self.types.signature(tree, nodes) {
            Some(ty) if returns => {
                let first = ty.results.first().copied().map_or(Type::Any, Type::of_wat);
                let mut pops = ty.params;
                pops.push(Val::I32);
                StackEffect::new(Pops::List(pops), ty.results.len(), first)
            }
            Some(_) => StackEffect::never(),
            None => StackEffect::new(Pops::Unknown, 0, Type::Any),
        }
    }

    /// Reads the immediates of an instruction whose name determines its operands and results.
    /// Returns the instruction's effect.
    fn operation(&self, op: &Op, nodes: &mut Nodes) -> Option<StackEffect> {
        match op.immediate {
            Immediate::Number(_) => _ = nodes.next(self.tree)?,
            memory => skip_memory(self.tree, memory, nodes),
        }
        let ty = match op.pushes.first() {
            Some(_) if op.compares => Type::Bool,
            first => first.copied().map_or(Type::Any, Type::of_wat),
        };
        let accesses_memory = op.immediate == Immediate::Memory;
        let effect = StackEffect::new(Pops::Fixed(op.pops), op.pushes.len(), ty)?;
        Some(StackEffect { accesses_memory, ..effect })
    }

    /// Returns the effect of calling the function `name`.
    pub(crate) fn called(&self, name: &str) -> Option<StackEffect> {
        if let Some(at) = self.program.defined.get(name) {
            let ty = self.types.funcs.get(*at)?.as_ref()?;
            let first = ty.results.first().copied().map_or(Type::Any, Type::of_wat);
            return StackEffect::new(Pops::List(ty.params.clone()), ty.results.len(), first);
        }
        let known = self.program.host_function(name, self.host)?;
        Some(StackEffect::of_host(known))
    }

    /// Returns the WAT representation of a variable, and its type.
    fn local_type(&self, text: &str) -> (Val, Type) {
        let variable = self.local(text);
        (variable.map_or(Val::Any, representation), variable.map_or(Type::Any, Variable::ty))
    }

    /// Returns the variable with this name or number.
    fn local(&self, text: &str) -> Option<&Variable<'_>> {
        self.func.scope.get_word(text)
    }

    fn global_type(&self, text: &str) -> Val {
        self.types.globals.get_word(text).copied().flatten().map_or(Val::Any, |global| global.ty)
    }
}

fn representation(variable: &Variable<'_>) -> Val {
    Val::from_wat(variable.wat).unwrap_or(Val::Any)
}

/// Skips the immediates of an instruction that accesses memory: memory indices, `offset=` and
/// `align=`. There is only one memory, but `memory.copy` may name it twice.
pub(crate) fn skip_memory(tree: &Tree<'_>, immediate: Immediate, nodes: &mut Nodes) {
    if !matches!(immediate, Immediate::Memory | Immediate::Memories) {
        return;
    }
    let is_index = |node| tree.atom(node).and_then(index).is_some();
    while nodes.next_if(tree, is_index).is_some() {}
    let is_part = |node| {
        let text = tree.atom(node).unwrap_or("");
        text.starts_with("offset=") || text.starts_with("align=")
    };
    if immediate == Immediate::Memory {
        while nodes.next_if(tree, is_part).is_some() {}
    }
}

/// Returns the next node and advances past it, if the node is the name or number of a label.
pub(crate) fn next_label(tree: &Tree<'_>, nodes: &mut Nodes) -> Option<NodeId> {
    let is_label = |text: &str| text.starts_with('$') || index(text).is_some();
    nodes.next_if(tree, |node| tree.atom(node).is_some_and(is_label))
}

//! A walk over the instructions of a module in the text format. It tracks the types on the stack,
//! and reports faults at their positions in the source.
//!
//! Forms are already expanded, so the walk sees only WAT, and each node of the WAT maps back to the
//! source. The walk accepts everything that the engine accepts. At an instruction that it does not
//! support, it stops without reporting a fault.

use crate::check::locate;
use crate::diagnose::fix::{Change, Edits};
use crate::diagnose::truncate::{excerpt, truncate};
use crate::diagnose::wording::{Fault, Message};
use crate::diagnose::{nearest, wording};
use crate::habits::rewrite;
use crate::lower::forms;
use crate::lower::module::Module;
use crate::lower::program::{self, Func, Program};
use crate::lower::wat::{next_label, skip_memory};
use crate::lower::wat_types::{FuncType, Types};
use crate::syntax::literal::{index, is_number};
use crate::syntax::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::types::instruction::Immediate;
use crate::types::{Val, conversion, instruction, list_types};
use crate::{Code, Signature, Signatures, habits};

/// The reason why a walk ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    Fault(Box<Fault>),
    /// An instruction that the walk does not support.
    Unsupported,
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Stop {
        Stop::Fault(fault)
    }
}

pub(crate) type WalkResult<T> = Result<T, Stop>;

/// The state at the end of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The function ends with its results on the stack.
    Complete,
    /// The program ends with an empty stack: its error code is missing.
    MissingCode,
}

/// A parsed module in the text format. Each of its nodes maps back to the source.
pub(crate) struct ParsedModule<'m, 'a> {
    tree: Tree<'m>,
    program: Program<'m>,
    types: Types<'m>,
    host: &'a Signatures,
    author: &'a Tree<'a>,
    module: &'m Module,
}

impl<'m, 'a> ParsedModule<'m, 'a> {
    /// Parses the module that was emitted for the source tree.
    pub(crate) fn read(
        author: &'a Tree<'a>,
        module: &'m Module,
        host: &'a Signatures,
    ) -> Result<Self, Box<Fault>> {
        let text = module.text.get(module.body.clone()).unwrap_or("");
        // A fault in the module's text is reported at the source node for which the text was
        // emitted.
        let placed = |fault: Box<Fault>| {
            let node = locate::origin(module, module.body.start + fault.span.start);
            Fault::new(node.map_or(0..0, |node| author.span(node)), fault.message)
        };
        let mut tree = Tree::read_within(text, usize::MAX).map_err(placed)?;
        let program = program::read(&mut tree, host).map_err(placed)?;
        let types = Types::read(&tree, &program);
        Ok(ParsedModule { tree, program, types, host, author, module })
    }

    /// Walks over every helper function, in source order.
    pub(crate) fn walk_helpers(&self) -> impl Iterator<Item = WalkResult<End>> {
        (0..self.program.funcs.len().saturating_sub(1)).map(|at| self.walk(at))
    }

    /// Walks over the program's own instructions, which are outside the helper functions.
    pub(crate) fn walk_program(&self) -> WalkResult<End> {
        self.walk(self.program.funcs.len().saturating_sub(1))
    }

    fn walk(&self, at: usize) -> WalkResult<End> {
        let (Some(func), Some(Some(ty))) = (self.program.funcs.get(at), self.types.funcs.get(at))
        else {
            return Err(Stop::Unsupported);
        };
        let node = func.node.unwrap_or(NodeId(0));
        let run = at + 1 == self.program.funcs.len();
        let results = ty.results.clone();
        let frame = Frame {
            kind: FrameKind::Func,
            label: None,
            params: Vec::new(),
            results,
            height: 0,
            unreachable: false,
            node,
        };
        let ParsedModule { tree, program, types, host, author, module } = self;
        let stack = Vec::new();
        let frames = vec![frame];
        let mut walk =
            Walk { tree, program, types, host, author, module, func, run, stack, frames, floor: 1 };
        let mut body = func.body;
        walk.inside(&mut body)?;
        let reachable = walk.frames.last().is_some_and(|frame| !frame.unreachable);
        if run && reachable && walk.stack.is_empty() {
            return Ok(End::MissingCode);
        }
        walk.close(node)?;
        Ok(End::Complete)
    }
}

/// The state of a walk over one function of a module in the text format.
struct Walk<'a, 's> {
    tree: &'a Tree<'s>,
    program: &'a Program<'s>,
    types: &'a Types<'s>,
    host: &'a Signatures,
    author: &'a Tree<'a>,
    module: &'a Module,
    func: &'a Func<'s>,
    run: bool,
    stack: Vec<Entry>,
    frames: Vec<Frame<'s>>,
    /// The number of frames that were open at the start of the enclosing list. A flat `end` must
    /// not close these frames.
    floor: usize,
}

impl<'s> Walk<'_, 's> {
    fn fault<T>(&self, node: NodeId, message: Message) -> WalkResult<T> {
        let span = self.origin(node).map_or(0..0, |node| self.author.span(node));
        Err(Stop::Fault(Fault::new(span, message)))
    }

    /// Returns the source node for which a node of the module was emitted, if any.
    fn origin(&self, node: NodeId) -> Option<NodeId> {
        locate::origin(self.module, self.module.body.start + self.tree.span(node).start)
    }

    /// Walks over the instructions in a list or function. A flat block that begins in the list or
    /// function must also end there.
    fn inside(&mut self, nodes: &mut Nodes) -> WalkResult<()> {
        let before = std::mem::replace(&mut self.floor, self.frames.len());
        self.sequence(nodes)?;
        if self.frames.len() > self.floor
            && let Some(frame) = self.frames.last()
        {
            return self.fault(frame.node, wording::missing_end(self.tree.text(frame.node)));
        }
        self.floor = before;
        Ok(())
    }

    fn sequence(&mut self, nodes: &mut Nodes) -> WalkResult<()> {
        while let Some(node) = nodes.next(self.tree) {
            match self.tree.node(node).kind {
                NodeKind::List => self.list(node)?,
                NodeKind::Text | NodeKind::Block => self.push(&[Val::I32], node),
                NodeKind::Atom => self.flat(node, nodes)?,
            }
        }
        Ok(())
    }

    /// Walks over a list.
    fn list(&mut self, list: NodeId) -> WalkResult<()> {
        let tree = self.tree;
        let mut nodes = tree.children(list);
        let Some(first) = nodes.next(tree) else {
            // A list whose declarations were all moved out of it is empty here, but not in the
            // source.
            let is_empty = |text: &str| text.trim_matches(['(', ')']).trim().is_empty();
            let written = self.origin(list).map_or("", |list| self.author.text(list));
            let message =
                if is_empty(written) { wording::empty_form() } else { wording::headless_form() };
            return self.fault(list, message);
        };
        let Some(name) = tree.atom(first) else {
            let span = self.origin(list).map(|list| self.author.span(list));
            let change = span.map(|span| Edits::default().unwrap_list(span));
            return self.fault(list, wording::headless_form().maybe_safe(change));
        };
        match name {
            "block" | "loop" => {
                let (label, ty) = self.block_type(&mut nodes)?;
                self.open(list, name, label, ty)?;
                self.inside(&mut nodes)?;
                self.close(list)
            }
            "if" => self.folded_if(list, nodes),
            "then" | "else" => {
                let change = self.origin(list).filter(|_| name == "else");
                let change = change.and_then(|other| habits::move_else(self.author, other));
                self.fault(list, wording::arm_outside(name).maybe_safe(change))
            }
            "end" => {
                let at = if nodes.peek(tree).is_none() { list } else { first };
                self.fault(at, wording::stray_end(name))
            }
            _ => {
                let mut effect = self.effect(list, first, name, &mut nodes)?;
                let operands = nodes.peek(tree).is_some();
                let base = self.stack.len();
                self.inside(&mut nodes)?;
                effect.given = operands.then(|| self.stack.len().saturating_sub(base));
                self.apply(effect)
            }
        }
    }

    /// Walks over a flat instruction.
    fn flat(&mut self, node: NodeId, nodes: &mut Nodes) -> WalkResult<()> {
        let tree = self.tree;
        let name = tree.text(node);
        match name {
            "block" | "loop" => {
                let (label, ty) = self.block_type(nodes)?;
                self.open(node, name, label, ty)
            }
            "if" => {
                let (label, ty) = self.block_type(nodes)?;
                self.condition(node, None)?;
                self.open(node, name, label, ty)
            }
            "else" => {
                nodes.next_name(tree);
                let open = self.frames.len() > self.floor;
                let Some(frame) =
                    self.frames.last().filter(|f| open && f.kind == FrameKind::If).cloned()
                else {
                    return self.fault(node, wording::stray_end(name));
                };
                self.begin_else(frame, node)
            }
            "end" => {
                nodes.next_name(tree);
                if self.frames.len() <= self.floor {
                    return self.fault(node, wording::stray_end(name));
                }
                self.close(node)
            }
            "then" => self.fault(node, wording::arm_outside(name)),
            _ => {
                let effect = self.effect(node, node, name, nodes)?;
                self.apply(effect)
            }
        }
    }

    /// Walks over `(if COND… (then …) (else …))`.
    fn folded_if(&mut self, list: NodeId, mut nodes: Nodes) -> WalkResult<()> {
        let tree = self.tree;
        let (label, ty) = self.block_type(&mut nodes)?;
        let base = self.stack.len();
        let mut operands = false;
        let then = loop {
            let Some(node) = nodes.next(tree) else {
                return self.fault(list, wording::missing_then());
            };
            match tree.head(node) {
                Some("then") => break node,
                Some("else") => return self.fault(node, wording::missing_then()),
                _ if tree.is_list(node) => self.list(node)?,
                _ if tree.is_text(node) => self.push(&[Val::I32], node),
                _ => return self.report_bare(node),
            }
            operands = true;
        };
        let given = operands.then(|| self.stack.len().saturating_sub(base));
        self.condition(list, given)?;
        self.open(list, "if", label, ty)?;
        self.inside(&mut tree.operands(then))?;
        let Some(other) = nodes.next(tree) else { return self.close(then) };
        if tree.head(other) != Some("else") {
            return self.fault(other, wording::after_then());
        }
        if let Some(more) = nodes.next(tree) {
            return self.fault(more, wording::after_else());
        }
        if let Some(frame) = self.frames.last().cloned() {
            self.begin_else(frame, then)?;
        }
        self.inside(&mut tree.operands(other))?;
        self.close(other)
    }

    /// Pops the condition of an `if`.
    fn condition(&mut self, at: NodeId, given: Option<usize>) -> WalkResult<()> {
        let effect = InstructionEffect::new(at, "if");
        self.apply(InstructionEffect { pops: vec![Val::I32], given, ..effect })
    }

    /// Reads the label and type of a block.
    fn block_type(&mut self, nodes: &mut Nodes) -> WalkResult<(Option<&'s str>, FuncType)> {
        let tree = self.tree;
        let label = nodes.next_name(tree);
        let ty = self.types.signature(tree, nodes).ok_or(Stop::Unsupported)?;
        Ok((label, ty))
    }
}

/// Maximum number of values on the stack. If there are more, the walk stops, because such a program
/// exceeds the cost limits in any case.
const MAX_STACK: usize = 100_000;

/// A value on the stack.
#[derive(Clone, Debug)]
struct Entry {
    ty: Val,
    /// The instruction that pushed the value.
    from: NodeId,
    /// The index of the value among the results of the instruction that pushed it.
    nth: usize,
    /// If the value is a surplus operand, the instruction that received it: the instruction's node
    /// and usage, and the expected and actual numbers of operands.
    surplus: Option<Box<(NodeId, String, usize, usize)>>,
}

/// The construct that opened a [`Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameKind {
    Func,
    Block,
    Loop,
    If,
    Else,
}

/// A function body, a block or an arm of an `if`.
#[derive(Clone, Debug)]
struct Frame<'s> {
    kind: FrameKind,
    label: Option<&'s str>,
    params: Vec<Val>,
    results: Vec<Val>,
    /// The number of values on the stack below the frame.
    height: usize,
    /// If true, the code that follows is unreachable, so operands of any type may be popped.
    unreachable: bool,
    node: NodeId,
}

impl Frame<'_> {
    /// Returns the types of the values that a branch to the frame passes.
    fn branch(&self) -> &[Val] {
        if self.kind == FrameKind::Loop { &self.params } else { &self.results }
    }
}

/// The operands and results of an instruction.
#[derive(Clone, Debug)]
struct InstructionEffect<'s> {
    /// The node of the instruction: the list of a folded instruction, or the name of a flat one.
    at: NodeId,
    name: &'s str,
    /// The function, local, global or label that the instruction names.
    argument: Option<&'s str>,
    pops: Vec<Val>,
    pushes: Vec<Val>,
    after: Continuation,
    /// The number of values that the operands of a folded instruction push. `None` if the
    /// instruction is flat, or if its list contains no operands.
    given: Option<usize>,
}

impl<'s> InstructionEffect<'s> {
    /// Creates the effect of an instruction that neither pops nor pushes values.
    fn new(at: NodeId, name: &'s str) -> InstructionEffect<'s> {
        InstructionEffect {
            at,
            name,
            argument: None,
            pops: Vec::new(),
            pushes: Vec::new(),
            after: Continuation::Next,
            given: None,
        }
    }
}

/// The control flow after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continuation {
    Next,
    /// Control does not continue.
    Never,
    /// Control continues after a `select` without a type. Its result has the type of its operands.
    Select,
}

impl<'s> Walk<'_, 's> {
    /// Opens a block.
    fn open(
        &mut self,
        node: NodeId,
        name: &'s str,
        label: Option<&'s str>,
        ty: FuncType,
    ) -> WalkResult<()> {
        let effect = InstructionEffect::new(node, name);
        self.apply(InstructionEffect { pops: ty.params.clone(), ..effect })?;
        let kind = match name {
            "loop" => FrameKind::Loop,
            "if" => FrameKind::If,
            _ => FrameKind::Block,
        };
        let height = self.stack.len();
        let (params, results) = (ty.params, ty.results);
        self.enter(Frame { kind, label, params, results, height, unreachable: false, node });
        Ok(())
    }

    fn enter(&mut self, frame: Frame<'s>) {
        self.stack.truncate(frame.height);
        let params = frame.params.clone();
        let node = frame.node;
        self.frames.push(frame);
        self.push(&params, node);
    }

    /// Begins the second arm of an `if`, whose first arm ends at `end`.
    fn begin_else(&mut self, frame: Frame<'s>, end: NodeId) -> WalkResult<()> {
        self.finish(end)?;
        self.enter(Frame { kind: FrameKind::Else, unreachable: false, ..frame });
        Ok(())
    }

    /// Closes the innermost frame and pushes its results.
    fn close(&mut self, end: NodeId) -> WalkResult<()> {
        if let Some(frame) = self.frames.last()
            && frame.kind == FrameKind::If
            && frame.params != frame.results
        {
            return self.fault(frame.node, wording::if_without_else(&list_types(&frame.results)));
        }
        let Some(frame) = self.finish(end)? else { return Ok(()) };
        self.push(&frame.results, frame.node);
        Ok(())
    }

    /// Checks the results of the innermost frame, and removes both the results and the frame.
    /// Returns the frame.
    fn finish(&mut self, end: NodeId) -> WalkResult<Option<Frame<'s>>> {
        let Some(frame) = self.frames.last().cloned() else { return Ok(None) };
        let available = self.stack.len().saturating_sub(frame.height);
        let wanted = frame.results.len();
        if available < wanted && !frame.unreachable {
            let at = if frame.kind == FrameKind::Func { frame.node } else { end };
            let found: Vec<Val> =
                self.stack.iter().skip(frame.height).map(|entry| entry.ty).collect();
            return self.fault(
                at,
                wording::missing_frame_result(&self.frame_name(&frame), &frame.results, &found),
            );
        }
        let first = self.stack.len() - wanted.min(available);
        for (result, entry) in frame
            .results
            .iter()
            .skip(wanted.saturating_sub(available))
            .zip(self.stack.iter().skip(first))
        {
            if !entry.ty.fits(*result) {
                let hint = conversion(entry.ty, *result);
                let run = self.run && frame.kind == FrameKind::Func;
                let message = wording::wrong_result(
                    &self.frame_name(&frame),
                    *result,
                    entry.ty,
                    &self.excerpt(entry.from),
                    run,
                    hint,
                );
                return self.fault(entry.from, message);
            }
        }
        if let Some(left) = self.stack.get(frame.height).filter(|_| available > wanted).cloned() {
            return self.report_unused(&left, first);
        }
        self.stack.truncate(frame.height);
        self.frames.pop();
        Ok(Some(frame))
    }

    /// Pushes values of the given types, all produced by the instruction `from`.
    fn push(&mut self, types: &[Val], from: NodeId) {
        self.stack.extend(types.iter().enumerate().map(|(nth, ty)| Entry {
            ty: *ty,
            from,
            nth,
            surplus: None,
        }));
    }

    /// Pops the operands of an instruction and pushes its results.
    fn apply(&mut self, mut effect: InstructionEffect<'s>) -> WalkResult<()> {
        if self.stack.len() > MAX_STACK {
            return Err(Stop::Unsupported);
        }
        let frame = self.frames.last();
        let (height, unreachable) =
            frame.map_or((0, false), |frame| (frame.height, frame.unreachable));
        let available = self.stack.len().saturating_sub(height);
        if effect.after == Continuation::Select {
            let second = self.stack.len().checked_sub(2).filter(|_| available >= 2);
            let ty = second.and_then(|at| self.stack.get(at)).map_or(Val::Any, |entry| entry.ty);
            (effect.pops, effect.pushes) = (vec![ty, ty, Val::I32], vec![ty]);
        }
        let wanted = effect.pops.len();
        // If closing parentheses are missing, too many or too few operands mean that this form is
        // not closed.
        let all_open = &self.author.open;
        let open = self.origin(effect.at).is_some_and(|node| all_open.contains(&node));
        let unfit = |given| given > wanted && !all_open.is_empty() || given < wanted && open;
        if effect.given.is_some_and(unfit) {
            return self.fault(effect.at, wording::unclosed_form(effect.name, None));
        }
        if available < wanted && !unreachable {
            let usage = self.usage(&effect);
            let message = match effect.given {
                Some(given) if given <= available => {
                    wording::operand_count(&usage, wanted, given, self.host_of(&effect))
                }
                _ => {
                    wording::value_missing(&usage, wanted, available, effect.name, effect.argument)
                }
            };
            let called = self.host_of(&effect);
            let change = self
                .origin(effect.at)
                .and_then(|at| habits::supply_operands(self.author, at, effect.name, called));
            return self.fault(effect.at, message.maybe_safe(change));
        }
        let taken = wanted.min(available);
        let first = self.stack.len() - taken;
        for (nth, ty) in effect.pops.iter().enumerate().skip(wanted - taken) {
            let Some(entry) = self.stack.get(first + nth - (wanted - taken)) else { continue };
            if !entry.ty.fits(*ty) {
                return self.report_mismatch(&effect, nth, *ty, entry);
            }
        }
        if let Some(given) = effect.given.filter(|given| *given > wanted) {
            let usage = self.usage(&effect);
            for entry in
                self.stack.iter_mut().take(first).skip((first + wanted).saturating_sub(given))
            {
                let surplus = (effect.at, usage.clone(), wanted, given);
                entry.surplus.get_or_insert_with(|| Box::new(surplus));
            }
        }
        self.stack.truncate(first);
        if effect.after == Continuation::Never
            && let Some(frame) = self.frames.last_mut()
        {
            frame.unreachable = true;
            self.stack.truncate(frame.height);
        }
        self.push(&effect.pushes, effect.at);
        Ok(())
    }
}

impl<'s> Walk<'_, 's> {
    /// Reads the immediates of an instruction and returns its effect. `first` is the node that
    /// contains the instruction's name.
    fn effect(
        &mut self,
        at: NodeId,
        first: NodeId,
        name: &'s str,
        nodes: &mut Nodes,
    ) -> WalkResult<InstructionEffect<'s>> {
        let tree = self.tree;
        let mut effect = InstructionEffect::new(at, name);
        match name {
            "call" | "return_call" => {
                let callee = self.argument(&mut effect, "a function's name", "$f …", nodes)?;
                (effect.pops, effect.pushes) = self.function_type(callee)?;
                if name == "return_call" {
                    (effect.pushes, effect.after) = (Vec::new(), Continuation::Never);
                }
            }
            "local.get" | "local.set" | "local.tee" => {
                let usage = if name == "local.get" { "$x" } else { "$x …" };
                let node = self.argument(&mut effect, "a local's name", usage, nodes)?;
                let ty = self.local(at, name, node)?;
                effect.pops.extend((name != "local.get").then_some(ty));
                effect.pushes.extend((name != "local.set").then_some(ty));
            }
            "global.get" | "global.set" => self.global_effect(&mut effect, nodes)?,
            "br" => {
                let node = self.argument(&mut effect, "a label", "$label", nodes)?;
                effect.pops = self.label(node)?;
                effect.after = Continuation::Never;
            }
            "br_if" => {
                let node = self.argument(&mut effect, "a label", "$label …", nodes)?;
                effect.pushes = self.label(node)?;
                effect.pops = effect.pushes.clone();
                effect.pops.push(Val::I32);
            }
            "br_table" => self.branch_table_effect(&mut effect, nodes)?,
            "return" => {
                effect.pops =
                    self.frames.first().map(|frame| frame.results.clone()).unwrap_or_default();
                effect.after = Continuation::Never;
            }
            "unreachable" => effect.after = Continuation::Never,
            "select" => match nodes.peek(tree).filter(|node| tree.head(*node) == Some("result")) {
                Some(_) => {
                    let ty = self.types.signature(tree, nodes).ok_or(Stop::Unsupported)?;
                    let [one] = ty.results.as_slice() else { return Err(Stop::Unsupported) };
                    (effect.pops, effect.pushes) = (vec![*one, *one, Val::I32], vec![*one]);
                }
                None => effect.after = Continuation::Select,
            },
            "call_indirect" => {
                next_label(tree, nodes);
                let ty = self.types.signature(tree, nodes).ok_or(Stop::Unsupported)?;
                (effect.pops, effect.pushes) = (ty.params, ty.results);
                effect.pops.push(Val::I32);
            }
            "ref.func" => {
                self.argument(&mut effect, "a function's name", "$f", nodes)?;
                effect.pushes.push(Val::Func);
            }
            "ref.null" => {
                let node = self.argument(&mut effect, "a type", "func", nodes)?;
                effect.pushes.push(match tree.text(node) {
                    "func" => Val::Func,
                    "extern" => Val::Extern,
                    _ => return Err(Stop::Unsupported),
                });
            }
            "ref.is_null" => (effect.pops, effect.pushes) = (vec![Val::Any], vec![Val::I32]),
            _ => {
                let Some(op) = instruction::op(name) else {
                    return self.report_unknown(at, first, name);
                };
                (effect.pops, effect.pushes) = (op.pops.to_vec(), op.pushes.to_vec());
                self.immediate(at, name, op.immediate, nodes)?;
            }
        }
        Ok(effect)
    }

    fn global_effect(
        &self,
        effect: &mut InstructionEffect<'s>,
        nodes: &mut Nodes,
    ) -> WalkResult<()> {
        let name = effect.name;
        let usage = if name == "global.get" { "$g" } else { "$g …" };
        let node = self.argument(effect, "a global's name", usage, nodes)?;
        let text = self.tree.text(node);
        let Some(global) = self.types.globals.get_word(text) else {
            return self.unknown_variable(effect.at, name, node);
        };
        let global = global.ok_or(Stop::Unsupported)?;
        match name {
            "global.get" => effect.pushes.push(global.ty),
            _ if !global.mutable => {
                let message = wording::constant_global(text, global.ty);
                return self.fault(node, message.maybe_safe(self.make_mutable(text)));
            }
            _ => effect.pops.push(global.ty),
        }
        Ok(())
    }

    fn branch_table_effect(
        &self,
        effect: &mut InstructionEffect<'s>,
        nodes: &mut Nodes,
    ) -> WalkResult<()> {
        let labels: Vec<NodeId> = std::iter::from_fn(|| next_label(self.tree, nodes)).collect();
        let Some(last) = labels.last() else {
            let usage = "(br_table $a $b (expr))";
            return self.fault(effect.at, wording::missing_argument(effect.name, "labels", usage));
        };
        effect.pops = self.label(*last)?;
        for node in &labels {
            self.label(*node)?;
        }
        effect.pops.push(Val::I32);
        effect.after = Continuation::Never;
        Ok(())
    }

    /// Reads the numeric or memory immediate of an instruction.
    fn immediate(
        &mut self,
        at: NodeId,
        name: &str,
        immediate: Immediate,
        nodes: &mut Nodes,
    ) -> WalkResult<()> {
        let tree = self.tree;
        skip_memory(tree, immediate, nodes);
        let Immediate::Number(ty) = immediate else { return Ok(()) };
        let Some(node) = nodes.next(tree) else {
            let usage = format!("({name} 0)");
            return self.fault(at, wording::missing_argument(name, "a number", &usage));
        };
        if tree.is_text(node) && ty == Val::I32
            || tree.atom(node).is_some_and(|text| is_number(ty, text))
        {
            return Ok(());
        }
        let text = self.excerpt(node);
        let local = self.func.locals.get(&text).is_some();
        let code = Code::from_name(&text).map(Code::number);
        let change = self.constant_of(node, &text, local, code);
        let message = wording::bad_number(name, ty, &text, local, code);
        self.fault(node, message.maybe_safe(change))
    }

    /// Returns the change that corrects a constant instruction whose operand is not a number, or
    /// `None` if the intended value is unclear.
    fn constant_of(
        &self,
        node: NodeId,
        text: &str,
        local: bool,
        code: Option<i32>,
    ) -> Option<Change> {
        let tree = self.author;
        let inner = self.origin(node)?;
        let list = tree
            .parent(inner)
            .filter(|list| tree.head(*list).is_some_and(|h| h.ends_with(".const")))?;
        match text {
            _ if code.is_some() => code.map(|code| Change::Replace(code.to_string())),
            _ if local => Some(Change::edit(tree.span(list), format!("(local.get {text})"))),
            "true" => Some(Change::Replace("1".to_owned())),
            "false" | "null" | "nil" => Some(Change::Replace("0".to_owned())),
            _ if tree.is_list(inner) => Some(rewrite::replace_with_child(tree, list, inner).into()),
            _ => None,
        }
    }

    /// Returns the change that replaces the name of the instruction at `at` with `other`. Returns
    /// `None` if the instruction is not called `name` in the source.
    fn rename_instruction(&self, at: NodeId, name: &str, other: &str) -> Option<Edits> {
        let tree = self.author;
        let node = self.origin(at)?;
        match tree.node(node).kind {
            NodeKind::List => {
                rewrite::replace_head(tree, node, other).filter(|_| tree.head(node) == Some(name))
            }
            _ => (tree.text(node) == name).then(|| Edits::one(tree.span(node), other)),
        }
    }

    /// Returns the change that makes a global mutable.
    fn make_mutable(&self, name: &str) -> Option<Edits> {
        let tree = self.author;
        let mut lists = tree.all().filter(|node| tree.head(*node) == Some("global"));
        let global = lists
            .find(|list| tree.items(*list).get(1).and_then(|n| tree.name(*n)) == Some(name))?;
        let ty = *tree.items(global).get(2).filter(|ty| tree.atom(**ty).is_some())?;
        Some(rewrite::around(tree, ty, "(mut ", ")"))
    }

    /// Returns the change that declares a local before the instruction that sets it.
    fn declare_local(&self, at: NodeId, name: &str) -> Option<Edits> {
        let start = self.author.start(self.origin(at)?);
        Some(Edits::one(start..start, format!("(local {name} i32) ")))
    }

    /// Reads the name or number that must follow an instruction's name. `usage` is an example of
    /// what follows the name.
    fn argument(
        &self,
        effect: &mut InstructionEffect<'s>,
        what: &str,
        usage: &str,
        nodes: &mut Nodes,
    ) -> WalkResult<NodeId> {
        if let Some(node) = nodes.next_if(self.tree, |node| self.tree.atom(node).is_some()) {
            effect.argument = Some(self.tree.text(node));
            return Ok(node);
        }
        let at = effect.at;
        let name = effect.name;
        let change = self.origin(at).and_then(|list| {
            let items = self.author.items(list);
            let [_, value, target] = items.as_slice() else { return None };
            self.author.name(*target).map(|_| rewrite::swap(self.author, *value, *target))
        });
        let swappable = matches!(name, "local.set" | "local.tee" | "global.set");
        let message = wording::missing_argument(name, what, &format!("({name} {usage})"));
        self.fault(at, message.maybe_safe(change.filter(|_| swappable)))
    }

    fn function_type(&self, callee: NodeId) -> WalkResult<(Vec<Val>, Vec<Val>)> {
        let name = self.tree.text(callee);
        if let Some(at) = self.program.defined.get(name) {
            let ty = self.types.funcs.get(*at).cloned().flatten().ok_or(Stop::Unsupported)?;
            return Ok((ty.params, ty.results));
        }
        let signature = self.program.host_function(name, self.host);
        let signature = signature.ok_or(Stop::Unsupported)?;
        Ok((signature.pops().map(Val::from).collect(), signature.pushes().map(Val::from).collect()))
    }

    /// Returns the type of the local that an instruction names.
    fn local(&self, at: NodeId, name: &str, node: NodeId) -> WalkResult<Val> {
        let text = self.tree.text(node);
        match self.func.locals.get_word(text) {
            Some(local) => Val::from_wat(local.ty).ok_or(Stop::Unsupported),
            None => self.unknown_variable(at, name, node),
        }
    }

    /// Reports an unknown local or global that the instruction `name` at `at` accesses.
    fn unknown_variable<T>(&self, at: NodeId, name: &str, node: NodeId) -> WalkResult<T> {
        let text = self.tree.text(node);
        let is_local = name.starts_with("local");
        let other = |from: &str, to: &str| {
            self.rename_instruction(at, name, &name.replace(from, to)).map(Change::from)
        };
        let replace = |near: &str| Change::Replace(near.to_owned());
        if is_local {
            let is_global = self.types.globals.get(text).is_some();
            let near = nearest::names(text, self.local_names());
            let change = match near.as_slice() {
                _ if is_global => other("local", "global"),
                // The local is set but not declared, so the fix declares it.
                [] if name != "local.get" && text.starts_with('$') => {
                    self.declare_local(at, text).map(Change::from)
                }
                _ => self.certain_local(text),
            };
            let message = wording::unknown_local(text, &near, is_global);
            return self.fault(node, message.maybe_safe(change));
        }
        let is_local = self.func.locals.get(text).is_some();
        let near = nearest::names(text, self.types.globals.names());
        let change = match near.as_slice() {
            _ if is_local => other("global", "local"),
            near => nearest::certain(text, near.iter().copied()).map(replace),
        };
        let message = wording::unknown_global(text, &near, is_local);
        self.fault(node, message.maybe_safe(change))
    }

    /// Returns the types of the values that a branch to a label passes.
    fn label(&self, node: NodeId) -> WalkResult<Vec<Val>> {
        let text = self.tree.text(node);
        let named = |frame: &&Frame<'s>| frame.label == Some(text);
        let found = match index(text) {
            Some(depth) => self.frames.iter().rev().nth(depth),
            None => self.frames.iter().rev().find(named),
        };
        match found {
            Some(frame) => Ok(frame.branch().to_vec()),
            None => {
                let own = |label: &&str| !label.starts_with("$.");
                let around: Vec<&str> =
                    self.frames.iter().rev().filter_map(|frame| frame.label).filter(own).collect();
                let change = nearest::certain(text, around.iter().copied())
                    .map(|near| Change::Replace(near.to_owned()));
                self.fault(node, wording::unknown_label(text, &around).maybe_safe(change))
            }
        }
    }
}

/// Maximum length, in characters, of a list that is quoted in full.
const MAX_LIST: usize = 32;

impl<'s> Walk<'_, 's> {
    /// Reports an unused value, together with the instruction that produced it. The stack values
    /// from index `first` on are the results of the frame.
    fn report_unused<T>(&self, entry: &Entry, first: usize) -> WalkResult<T> {
        if let Some(surplus) = &entry.surplus {
            let (node, usage, wanted, given) = surplus.as_ref();
            let message = match self.callee(entry.from).filter(|called| called.pushes().count() > 1)
            {
                Some(called) => {
                    let change = self.by_name(entry.from, called);
                    wording::results_as_operand(usage, *wanted, *given, called).maybe_safe(change)
                }
                None => wording::operand_count(usage, *wanted, *given, None)
                    .maybe_safe(self.as_operator(*node)),
            };
            return self.fault(*node, message);
        }
        let count = self.stack.iter().take(first).filter(|other| other.from == entry.from).count();
        let written = self.origin(entry.from).and_then(|node| self.author.head(node));
        let message = match self.callee(entry.from) {
            Some(signature)
                if signature.fallible() && written.is_some_and(|head| head != "call") =>
            {
                let change = self.by_name(entry.from, signature);
                wording::call_left(signature).maybe_safe(change)
            }
            Some(signature) => {
                let call = self.origin(entry.from).filter(|call| self.author.is_list(*call));
                let all = signature.pushes().count();
                // Otherwise `err`, which nothing uses, would become the program's error code.
                let is_code = || self.stack.get(first).is_some_and(|code| code.from == entry.from);
                let change = match call {
                    Some(_) if all == 2 && (count == 2 || is_code()) => {
                        self.by_name(entry.from, signature).map(Change::from)
                    }
                    Some(_) => wording::consume_result(signature),
                    None => None,
                };
                wording::result_left(signature, entry.nth, count).maybe_safe(change)
            }
            None => wording::value_left(&self.excerpt(entry.from), entry.ty),
        };
        self.fault(entry.from, message)
    }

    /// Returns the change that replaces a WAT `call` to a host function with a call by name.
    fn by_name(&self, call: NodeId, signature: &Signature) -> Option<Edits> {
        rewrite::call_by_name(self.author, self.origin(call)?, signature)
    }

    /// Returns the change that replaces an `add` or `mul` instruction with `+` or `*`, which take
    /// any number of operands. Returns `None` for any other instruction.
    fn as_operator(&self, node: NodeId) -> Option<Edits> {
        let list = self.origin(node)?;
        let operator = match self.author.head(list)?.split_once('.')? {
            ("i32" | "i64" | "f64", "add") => "+",
            ("i32" | "i64" | "f64", "mul") => "*",
            _ => return None,
        };
        rewrite::replace_head(self.author, list, operator)
    }

    /// Adds to `message` a fix that converts a value to the expected type. The fix changes the type
    /// of a constant, or puts a conversion instruction around the expression. Returns the message
    /// unchanged if there is no such fix.
    fn propose_conversion(&self, message: Message, entry: &Entry, wanted: Val) -> Message {
        let constant = self.origin(entry.from).filter(|list| {
            self.author.head(*list).is_some_and(|head| head.ends_with(".const"))
                && entry.ty == Val::I32
        });
        let change = constant.and_then(|list| {
            rewrite::replace_head(self.author, list, format!("{}.const", wanted.name()))
        });
        match (change, conversion(entry.ty, wanted)) {
            (Some(change), _) => message.safe(change),
            (None, Some(by)) => message.convert(wanted, entry.ty, by),
            (None, None) => message,
        }
    }

    /// Returns the change that swaps the names in the `local.set` instruction at `at` and in the
    /// next instruction. Returns `None` unless both are `local.set` instructions.
    fn swap_pops(&self, at: NodeId) -> Option<Edits> {
        let tree = self.author;
        let first = self.origin(at)?;
        let second = tree.next_sibling(first)?;
        let name = |list: NodeId| match (tree.head(list), tree.items(list).as_slice()) {
            (Some("local.set"), [_, name]) => Some(*name),
            _ => None,
        };
        Some(rewrite::swap(tree, name(first)?, name(second)?))
    }

    /// Returns the host function that an instruction calls, if any.
    fn callee(&self, node: NodeId) -> Option<&Signature> {
        let tree = self.tree;
        let (mut nodes, head) = if tree.is_list(node) {
            (tree.operands(node), tree.head(node))
        } else {
            (tree.after(node), tree.atom(node))
        };
        let name = tree.name(nodes.next(tree).filter(|_| head == Some("call"))?)?;
        self.program.host_function(name, self.host)
    }

    fn frame_name(&self, frame: &Frame<'_>) -> String {
        match frame.kind {
            FrameKind::Func if self.run => "the program".to_owned(),
            FrameKind::Func => format!("the function `{}`", self.func.name.unwrap_or("(func")),
            FrameKind::Block => "the block".to_owned(),
            FrameKind::Loop => "the loop".to_owned(),
            FrameKind::If => "`then`".to_owned(),
            FrameKind::Else => "`else`".to_owned(),
        }
    }

    /// Quotes the source of an instruction. A long list is shortened to its first words.
    fn excerpt(&self, node: NodeId) -> String {
        let tree = self.author;
        let Some(node) = self.origin(node) else { return String::new() };
        let text = tree.text(node);
        if !tree.is_list(node) || text.chars().count() <= MAX_LIST && !text.contains('\n') {
            return excerpt(text);
        }
        let atoms = tree.children(node).iter(tree).map_while(|node| tree.atom(node));
        let words: Vec<String> =
            atoms.take(2).map(|word| truncate(word, MAX_LIST).into_owned()).collect();
        format!("({} …)", words.join(" "))
    }

    /// Reports an operand of the wrong type.
    fn report_mismatch<T>(
        &self,
        effect: &InstructionEffect<'s>,
        nth: usize,
        wanted: Val,
        entry: &Entry,
    ) -> WalkResult<T> {
        let is_folded = effect.given.is_some();
        let from = self.excerpt(entry.from);
        let called = self.callee(entry.from);
        let err = called.filter(|called| {
            called.fallible() && entry.nth > 0 && entry.nth == called.results.len()
        });
        let usage = self.usage(effect);
        let set = matches!(effect.name, "local.set" | "local.tee" | "global.set");
        let set = effect.argument.filter(|_| set);
        let message = match (err, set) {
            (Some(called), Some(name)) => {
                wording::err_on_top(name, wanted, called).maybe_safe(self.swap_pops(effect.at))
            }
            (Some(called), None) => wording::err_as_operand(&usage, nth, wanted, called),
            (None, set) => {
                let by = conversion(entry.ty, wanted);
                let param = self.host_of(effect).and_then(|signature| signature.params.get(nth));
                let param = param.map(|param| param.name);
                let message = match set {
                    Some(name) => wording::wrong_set(name, wanted, entry.ty, &from, by),
                    None => wording::operand_type(&usage, nth, param, wanted, entry.ty, &from, by),
                };
                if is_folded { self.propose_conversion(message, entry, wanted) } else { message }
            }
        };
        self.fault(if is_folded { entry.from } else { effect.at }, message)
    }

    fn host_of(&self, effect: &InstructionEffect<'s>) -> Option<&Signature> {
        let name = effect.argument.filter(|_| effect.name == "call")?;
        if self.program.defined.contains_key(name) {
            return None;
        }
        self.program.host_function(name, self.host)
    }

    /// Returns the usage of an instruction, as shown in diagnostics.
    fn usage(&self, effect: &InstructionEffect<'s>) -> String {
        if let Some(signature) = self.host_of(effect) {
            return format!("${signature}");
        }
        let name = match effect.argument {
            Some(name) if effect.name == "call" => name.to_owned(),
            Some(name) => format!("{} {name}", effect.name),
            None => effect.name.to_owned(),
        };
        let shows_types = effect.name == "call"
            || instruction::op(effect.name).is_some_and(|op| !op.pops.contains(&Val::Any));
        if !shows_types {
            return name;
        }
        match effect.pushes.as_slice() {
            [] => format!("{name} ({})", list_types(&effect.pops)),
            [one] => format!("{name} ({}) → {}", list_types(&effect.pops), one.name()),
            many => format!("{name} ({}) → ({})", list_types(&effect.pops), list_types(many)),
        }
    }

    /// Reports a name that is not an instruction. If the name is a rare instruction that the walk
    /// does not support, stops the walk instead.
    fn report_unknown<T>(&self, at: NodeId, first: NodeId, name: &'s str) -> WalkResult<T> {
        if at == first
            && (name.starts_with('$') || name.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        {
            return self.report_bare(first);
        }
        if is_instruction(name) {
            return Err(Stop::Unsupported);
        }
        if let Some(form) = forms::form(name) {
            let change =
                self.origin(first).and_then(|atom| habits::add_parentheses(self.author, atom));
            return self.fault(first, wording::flat_form(name, form.usage).maybe_safe(change));
        }
        let plain = name.strip_prefix('$').unwrap_or(name);
        if let Some(signature) = self.host.get(plain) {
            return self.fault(first, wording::call_missing(name, signature));
        }
        if self.program.defined.contains_key(name) {
            return self.fault(first, wording::helper_call_missing(name));
        }
        let near = nearest::instructions(name);
        let functions =
            nearest::functions(plain.trim_end_matches('?'), self.host, &self.program.names());
        let of_wat = [
            "i32.", "i64.", "f32.", "f64.", "v128.", "local.", "global.", "memory.", "table.",
            "ref.", "elem.",
        ];
        let of_host = at != first
            && plain.contains('.')
            && !of_wat.iter().any(|module| plain.starts_with(module));
        let message = if of_host && near.is_empty() {
            wording::unknown_head(name, self.host)
        } else {
            wording::unknown_instruction(name, &near, functions, Code::from_name(name))
        };
        let prose = self
            .origin(first)
            .filter(|_| at == first)
            .and_then(|atom| habits::comment_prose(self.author, atom));
        if let Some(change) = prose {
            return self.fault(first, message.safe(change));
        }
        let list =
            self.origin(first).filter(|_| at != first).and_then(|first| self.author.parent(first));
        self.fault(
            first,
            message.maybe_safe(list.and_then(|list| self.rewrite_list(list, name, &near))),
        )
    }

    /// Returns the change that rewrites a list with an unknown head, if the list has exactly one
    /// possible meaning.
    fn rewrite_list(&self, list: NodeId, name: &str, near: &[&str]) -> Option<Edits> {
        if let Some(change) = habits::rewrite_list(self.author, list, self.host) {
            return Some(change);
        }
        let own = format!("${name}");
        if self.program.defined.contains_key(own.as_str()) {
            return rewrite::replace_head(self.author, list, own);
        }
        let forms = forms::forms().map(|form| form.name);
        let known = nearest::certain(name, forms)
            .or_else(|| instruction::meant(name))
            .or_else(|| nearest::certain(name, near.iter().copied()));
        // A name with a `$` is never the name of a form or an instruction.
        if let Some(known) = known.filter(|_| !name.starts_with('$')) {
            return rewrite::replace_head(self.author, list, known);
        }
        let plain = name.strip_suffix('?').unwrap_or(name);
        let mark = if plain.len() < name.len() { "?" } else { "" };
        let own = self.program.names();
        let meant = plain.trim_start_matches('$');
        let function = nearest::certain_function(meant, self.host, &own)?;
        let known = function.strip_prefix('$').filter(|known| self.host.get(known).is_some());
        let function = known.unwrap_or(&function);
        rewrite::replace_head(self.author, list, format!("{function}{mark}"))
    }

    /// Returns the names of the function's locals, except generated ones.
    fn local_names(&self) -> impl Iterator<Item = &'s str> {
        self.func.locals.names().filter(|name| !name.starts_with("$."))
    }

    /// Returns the change that replaces `name` with the name of a local, if `name` is certainly a
    /// typo of that name.
    fn certain_local(&self, name: &str) -> Option<Change> {
        nearest::certain(name, self.local_names()).map(|near| Change::Replace(near.to_owned()))
    }

    /// Reports a bare name or number where an instruction is expected.
    fn report_bare<T>(&self, node: NodeId) -> WalkResult<T> {
        let text = self.tree.text(node);
        let instruction = match text {
            _ if self.func.locals.get(text).is_some() => Some("local.get"),
            _ if is_number(Val::I32, text) => Some("i32.const"),
            _ if is_number(Val::F64, text) => Some("f64.const"),
            _ if self.types.globals.get(text).is_some() => Some("global.get"),
            _ => None,
        };
        let called = text.strip_prefix('$').and_then(|plain| self.host.get(plain));
        let message = match (instruction, called) {
            (Some(name), _) => wording::bare_operand(text, &format!("({name} {text})")),
            _ if self.program.defined.contains_key(text) => wording::helper_call_missing(text),
            (None, Some(signature)) => wording::call_missing(text, signature),
            (None, None) if text.starts_with('$') => {
                let near = nearest::names(text, self.local_names());
                wording::unknown_local(text, &near, false).maybe_safe(self.certain_local(text))
            }
            (None, None) => return self.report_unknown(NodeId(u32::MAX), node, text),
        };
        self.fault(node, message)
    }
}

/// Returns true if the WAT parser accepts this name as an instruction.
fn is_instruction(name: &str) -> bool {
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return false;
    }
    let text = format!("(module (func {name}))");
    let read = wast::parser::ParseBuffer::new(&text)
        .and_then(|buffer| wast::parser::parse::<wast::Wat<'_>>(&buffer).map(|_| ()));
    !read.is_err_and(|e| e.message().contains("unknown operator"))
}

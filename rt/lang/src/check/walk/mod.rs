//! A walk over the instructions of a module in the text format. It tracks the types on the stack,
//! and reports faults at their positions in the source.
//!
//! Forms are already expanded, so the walk sees only WAT, and each node of the WAT maps back to the
//! source. The walk accepts everything that the engine accepts. At an instruction that it does not
//! support, it stops without reporting a fault.

mod effect;
mod finding;
mod stack;

use self::stack::{Entry, Frame, FrameKind, InstructionEffect};
use crate::Signatures;
use crate::check::locate;
use crate::diagnose::wording::{self, Fault, Message};
use crate::habits;
use crate::habits::rewrite;
use crate::lower::module::Module;
use crate::lower::program::{self, Func, Program};
use crate::lower::wat_types::{FuncType, Types};
use crate::syntax::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::types::Val;

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
        let (stack, frames) = (Vec::new(), vec![frame]);
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
pub(crate) struct Walk<'a, 's> {
    pub(crate) tree: &'a Tree<'s>,
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
    pub(crate) fn origin(&self, node: NodeId) -> Option<NodeId> {
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
    pub(crate) fn list(&mut self, list: NodeId) -> WalkResult<()> {
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
            let change =
                self.origin(list).map(|list| rewrite::remove_parentheses(self.author, list));
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
            "end" if nodes.peek(tree).is_none() => self.fault(list, wording::stray_end(name)),
            "end" => self.fault(first, wording::stray_end(name)),
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
                self.finish(node)?;
                self.enter(Frame { kind: FrameKind::Else, unreachable: false, ..frame });
                Ok(())
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
            self.finish(then)?;
            self.enter(Frame { kind: FrameKind::Else, unreachable: false, ..frame });
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

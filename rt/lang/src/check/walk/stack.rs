//! The stack during a walk: its values, each with the instruction that pushed it, and the open
//! blocks.

use super::{Stop, Walk, WalkResult};
use crate::diagnose::wording;
use crate::habits;
use crate::lower::wat_types::FuncType;
use crate::syntax::tree::NodeId;
use crate::types::{Val, conversion, list_types};

/// Maximum number of values on the stack. If there are more, the walk stops, because such a program
/// exceeds the cost limits in any case.
const MAX_STACK: usize = 100_000;

/// A value on the stack.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) ty: Val,
    /// The instruction that pushed the value.
    pub(crate) from: NodeId,
    /// The index of the value among the results of the instruction that pushed it.
    pub(crate) nth: usize,
    /// If the value is a surplus operand, the instruction that received it: the instruction's node
    /// and usage, and the expected and actual numbers of operands.
    pub(crate) surplus: Option<Box<(NodeId, String, usize, usize)>>,
}

/// The construct that opened a [`Frame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Func,
    Block,
    Loop,
    If,
    Else,
}

/// A function body, a block or an arm of an `if`.
#[derive(Clone, Debug)]
pub(crate) struct Frame<'s> {
    pub(crate) kind: FrameKind,
    pub(crate) label: Option<&'s str>,
    pub(crate) params: Vec<Val>,
    pub(crate) results: Vec<Val>,
    /// The number of values on the stack below the frame.
    pub(crate) height: usize,
    /// If true, the code that follows is unreachable, so operands of any type may be popped.
    pub(crate) unreachable: bool,
    pub(crate) node: NodeId,
}

impl Frame<'_> {
    /// Returns the types of the values that a branch to the frame passes.
    pub(crate) fn branch(&self) -> &[Val] {
        if self.kind == FrameKind::Loop { &self.params } else { &self.results }
    }
}

/// The operands and results of an instruction.
#[derive(Clone, Debug)]
pub(crate) struct InstructionEffect<'s> {
    /// The node of the instruction: the list of a folded instruction, or the name of a flat one.
    pub(crate) at: NodeId,
    pub(crate) name: &'s str,
    /// The function, local, global or label that the instruction names.
    pub(crate) argument: Option<&'s str>,
    pub(crate) pops: Vec<Val>,
    pub(crate) pushes: Vec<Val>,
    pub(crate) after: Continuation,
    /// The number of values that the operands of a folded instruction push. `None` if the
    /// instruction is flat, or if its list contains no operands.
    pub(crate) given: Option<usize>,
}

impl<'s> InstructionEffect<'s> {
    /// Creates the effect of an instruction that neither pops nor pushes values.
    pub(crate) fn new(at: NodeId, name: &'s str) -> InstructionEffect<'s> {
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
pub(crate) enum Continuation {
    Next,
    /// Control does not continue.
    Never,
    /// Control continues after a `select` without a type. Its result has the type of its operands.
    Select,
}

impl<'s> Walk<'_, 's> {
    /// Opens a block.
    pub(crate) fn open(
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

    pub(crate) fn enter(&mut self, frame: Frame<'s>) {
        self.stack.truncate(frame.height);
        let (params, node) = (frame.params.clone(), frame.node);
        self.frames.push(frame);
        self.push(&params, node);
    }

    /// Closes the innermost frame and pushes its results.
    pub(crate) fn close(&mut self, end: NodeId) -> WalkResult<()> {
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
    pub(crate) fn finish(&mut self, end: NodeId) -> WalkResult<Option<Frame<'s>>> {
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
    pub(crate) fn push(&mut self, types: &[Val], from: NodeId) {
        self.stack.extend(types.iter().enumerate().map(|(nth, ty)| Entry {
            ty: *ty,
            from,
            nth,
            surplus: None,
        }));
    }

    /// Pops the operands of an instruction and pushes its results.
    pub(crate) fn apply(&mut self, mut effect: InstructionEffect<'s>) -> WalkResult<()> {
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

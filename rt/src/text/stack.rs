//! The values on the stack as a walk over instructions sees them, each with the instruction that left it.

use super::ops::Val;
use super::tree::NodeId;

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) ty: Val,
    /// The instruction that left it.
    pub(super) from: NodeId,
    /// Which of that instruction's results it is.
    pub(super) nth: usize,
    /// The form that it was given to as one operand too many: its place, its signature, how many it takes and got.
    pub(super) surplus: Option<Box<(NodeId, String, usize, usize)>>,
}

/// What a frame is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Func,
    Block,
    Loop,
    If,
    Else,
}

/// A function body, a block or an arm of an `if`.
#[derive(Clone, Debug)]
pub(super) struct Frame<'s> {
    pub(super) kind: FrameKind,
    pub(super) label: Option<&'s str>,
    pub(super) params: Vec<Val>,
    pub(super) results: Vec<Val>,
    /// How many values lie below it.
    pub(super) height: usize,
    /// Whether the code from here on is never reached, so that any value may be taken.
    pub(super) unreachable: bool,
    pub(super) node: NodeId,
}

impl Frame<'_> {
    /// What a branch to the frame takes along.
    pub(super) fn branch(&self) -> &[Val] {
        if self.kind == FrameKind::Loop { &self.params } else { &self.results }
    }
}

/// What an instruction takes and leaves.
#[derive(Clone, Debug)]
pub(super) struct Effect<'s> {
    /// The list of a folded instruction, the name of a flat one.
    pub(super) at: NodeId,
    pub(super) name: &'s str,
    /// The function, local or label that it names.
    pub(super) argument: Option<&'s str>,
    pub(super) pops: Vec<Val>,
    pub(super) pushes: Vec<Val>,
    pub(super) after: After,
    /// For a folded instruction with operands: how many values they left.
    pub(super) given: Option<usize>,
}

/// What follows an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Next,
    /// Nothing: control goes elsewhere.
    Never,
    /// The next one, and the types are those of the values found.
    Select,
}

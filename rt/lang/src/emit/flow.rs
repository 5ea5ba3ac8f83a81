//! The effect of emitted code on the stack and on control flow.

use crate::ops::Val;

/// The context in which a node is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// A sequence of instructions. No value is expected.
    Statement,
    /// An operand. One value is expected, of this type if it is known.
    Operand(Option<Val>),
}

impl Context {
    /// Returns the expected type.
    pub(crate) fn want(self) -> Option<Val> {
        match self {
            Context::Statement => None,
            Context::Operand(want) => want,
        }
    }
}

/// The way control leaves a piece of code, and the number of values on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Control reaches the end, with this many more values on the stack.
    Net(i32),
    /// Control does not reach the end.
    Never,
    /// The effect is not known.
    Unknown,
}

impl Flow {
    /// Returns the flow of this code followed by `next`.
    pub(crate) fn then(self, next: Flow) -> Flow {
        match (self, next) {
            (Flow::Never, _) | (_, Flow::Never) => Flow::Never,
            (Flow::Net(first), Flow::Net(second)) => Flow::Net(first.saturating_add(second)),
            _ => Flow::Unknown,
        }
    }
}

/// The result of emitting a piece of code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmittedCode {
    pub(crate) flow: Flow,
    /// The type of the first value that the code leaves.
    pub(crate) ty: Val,
    /// If true, the first value is 0 or 1.
    pub(crate) is_bool: bool,
    /// If true, the value is dropped when nothing uses it.
    pub(crate) droppable: bool,
}

impl EmittedCode {
    pub(crate) const NOTHING: EmittedCode = EmittedCode::net(0, Val::Any);
    pub(crate) const NEVER: EmittedCode = EmittedCode { flow: Flow::Never, ..EmittedCode::NOTHING };
    pub(crate) const UNKNOWN: EmittedCode =
        EmittedCode { flow: Flow::Unknown, ..EmittedCode::NOTHING };
    /// A value that is 0 or 1.
    pub(crate) const BOOL: EmittedCode =
        EmittedCode { is_bool: true, ..EmittedCode::one(Val::I32) };

    pub(crate) const fn net(count: i32, ty: Val) -> EmittedCode {
        EmittedCode { flow: Flow::Net(count), ty, is_bool: false, droppable: false }
    }

    pub(crate) const fn one(ty: Val) -> EmittedCode {
        EmittedCode::net(1, ty)
    }
}

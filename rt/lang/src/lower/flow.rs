//! The types and control flow of lowered code.

use super::output::Wat;
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};

/// The expected value of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A value of any type.
    Any,
    /// A value with this WAT representation. Nothing is converted.
    Val(Val),
    /// A value of this type. Values of other types are converted to it if the conversion is
    /// lossless.
    Type(Type),
    /// A value of any type. A number literal gets this type if nothing else determines its type.
    Hint(Type),
}

impl Want {
    /// Returns the representation of the expected value, if it is known.
    pub(crate) fn val(self) -> Option<Val> {
        match self {
            Want::Any | Want::Hint(_) => None,
            Want::Val(val) => Some(val),
            Want::Type(ty) => Some(ty.val()),
        }
        .filter(|val| *val != Val::Any)
    }

    /// Returns the type that a number literal gets. Returns `None` if the expected value does not
    /// determine it.
    pub(crate) fn number(self) -> Option<Type> {
        match self {
            Want::Val(val) => Some(Type::of_wat(val)),
            Want::Type(ty) | Want::Hint(ty) => Some(ty),
            Want::Any => None,
        }
        .filter(|ty| ty.is_number() || matches!(ty, Type::I32 | Type::Wat(Val::F32)))
    }
}

/// The context in which a node is lowered. It determines the values that the node may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// A sequence. No value is expected.
    Statement,
    /// A sequence in which subsequent WAT instructions consume the results of a call, including its
    /// error code.
    Stack,
    /// An operand. One value is expected.
    Operand(Want),
}

impl Context {
    /// Returns the expected value.
    pub(crate) fn want(self) -> Want {
        match self {
            Context::Operand(want) => want,
            Context::Statement | Context::Stack => Want::Any,
        }
    }

    /// Returns true if a value is expected.
    pub(crate) fn is_operand(self) -> bool {
        matches!(self, Context::Operand(_))
    }
}

/// The way in which control leaves code, and the number of values that the code leaves on the
/// stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Control reaches the end with this many additional values on the stack.
    Net(i32),
    /// Control does not reach the end.
    Never,
    /// The effect on the stack is unknown.
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

/// Lowered code, with the type of the value that it leaves.
#[derive(Debug)]
pub(crate) struct Lowered<'s> {
    pub(crate) wat: Wat<'s>,
    pub(crate) flow: Flow,
    /// The type of the first value that the code leaves.
    pub(crate) ty: Type,
    /// If true, the value is dropped when it is not used.
    pub(crate) droppable: bool,
}

impl<'s> Lowered<'s> {
    /// Creates code that leaves `count` values.
    pub(crate) fn net(wat: Wat<'s>, count: i32, ty: Type) -> Lowered<'s> {
        Lowered { wat, flow: Flow::Net(count), ty, droppable: false }
    }

    /// Creates code that leaves one value.
    pub(crate) fn one(wat: Wat<'s>, ty: Type) -> Lowered<'s> {
        Lowered::net(wat, 1, ty)
    }

    /// Creates code that leaves no value.
    pub(crate) fn none(wat: Wat<'s>) -> Lowered<'s> {
        Lowered::net(wat, 0, Type::Any)
    }

    /// Creates code that never reaches its end, such as a jump.
    pub(crate) fn never(wat: Wat<'s>) -> Lowered<'s> {
        Lowered { wat, flow: Flow::Never, ty: Type::Any, droppable: false }
    }

    /// Creates code whose effect on the stack is unknown.
    pub(crate) fn unknown(wat: Wat<'s>) -> Lowered<'s> {
        Lowered { wat, flow: Flow::Unknown, ty: Type::Any, droppable: false }
    }

    /// Marks the code's value to be dropped when it is not used.
    pub(crate) fn dropped_if_unused(self) -> Lowered<'s> {
        Lowered { droppable: true, ..self }
    }

    /// Makes a condition the number 1 or 0, as arithmetic counts it.
    pub(crate) fn counted(self) -> Lowered<'s> {
        match self.ty {
            Type::Bool => Lowered { ty: Type::Int, ..self },
            _ => self,
        }
    }

    /// Makes the code begin on a new line if `line` is true.
    pub(crate) fn on_line(self, line: bool) -> Lowered<'s> {
        Lowered { wat: self.wat.on_line(line), ..self }
    }

    /// Returns the code, followed by an `unreachable` if control does not reach its end.
    pub(crate) fn ending(self, from: NodeId) -> Lowered<'s> {
        match self.flow {
            Flow::Never => {
                let end = Wat::list(from, "unreachable", []);
                Lowered { wat: Wat::sequence(from, [self.wat, end]), ..self }
            }
            _ => self,
        }
    }

    /// Returns the code with its value dropped.
    pub(crate) fn without_value(self, from: NodeId) -> Lowered<'s> {
        match self.flow {
            Flow::Net(1) => {
                let dropped = Wat::list(from, "drop", []);
                Lowered::none(Wat::sequence(from, [self.wat, dropped]))
            }
            _ => self,
        }
    }
}

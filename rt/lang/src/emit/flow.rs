//! What a piece of written code does to the stack, as far as writing it shows.

use crate::ops::Val;

/// Where a node stands: whether what it leaves is a value that someone takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// In a sequence of instructions.
    Statement,
    /// Where one value is taken, of that type where it is known.
    Operand(Option<Val>),
}

impl Context {
    /// The type that is wanted here.
    pub(crate) fn want(self) -> Option<Val> {
        match self {
            Context::Statement => None,
            Context::Operand(want) => want,
        }
    }
}

/// How control leaves a piece of code, and with how many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// At its end, with so many values more on the stack than before.
    Net(i32),
    /// Not at its end.
    Never,
    /// Writing it does not show.
    Unknown,
}

impl Flow {
    /// The flow of this and then that.
    pub(crate) fn then(self, next: Flow) -> Flow {
        match (self, next) {
            (Flow::Never, _) | (_, Flow::Never) => Flow::Never,
            (Flow::Net(first), Flow::Net(second)) => Flow::Net(first.saturating_add(second)),
            _ => Flow::Unknown,
        }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emitted {
    pub(crate) flow: Flow,
    /// The type of the first value that it leaves.
    pub(crate) ty: Val,
    /// Whether that value is 0 or 1.
    pub(crate) is_bool: bool,
    /// Whether the value is dropped where no one takes it.
    pub(crate) droppable: bool,
}

impl Emitted {
    pub(crate) const NOTHING: Emitted = Emitted::net(0, Val::Any);
    pub(crate) const NEVER: Emitted = Emitted { flow: Flow::Never, ..Emitted::NOTHING };
    pub(crate) const UNKNOWN: Emitted = Emitted { flow: Flow::Unknown, ..Emitted::NOTHING };
    /// A value that is 0 or 1.
    pub(crate) const BOOL: Emitted = Emitted { is_bool: true, ..Emitted::one(Val::I32) };

    pub(crate) const fn net(count: i32, ty: Val) -> Emitted {
        Emitted { flow: Flow::Net(count), ty, is_bool: false, droppable: false }
    }

    pub(crate) const fn one(ty: Val) -> Emitted {
        Emitted::net(1, ty)
    }
}

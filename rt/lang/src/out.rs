//! What a piece of written code does to the stack, as far as writing it shows.

use super::ops::Val;

/// Where a node stands: whether what it leaves is a value that someone takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a sequence of instructions.
    Statement,
    /// Where one value is taken, of that type where it is known.
    Operand(Option<Val>),
}

impl Place {
    /// The type that is wanted here.
    pub(super) fn want(self) -> Option<Val> {
        match self {
            Place::Statement => None,
            Place::Operand(want) => want,
        }
    }
}

/// How control leaves a piece of code, and with how many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// At its end, with so many values more on the stack than before.
    Net(i32),
    /// Not at its end.
    Never,
    /// Writing it does not show.
    Unknown,
}

impl Flow {
    /// The flow of this and then that.
    pub(super) fn then(self, next: Flow) -> Flow {
        match (self, next) {
            (Flow::Never, _) | (_, Flow::Never) => Flow::Never,
            (Flow::Net(first), Flow::Net(second)) => Flow::Net(first.saturating_add(second)),
            _ => Flow::Unknown,
        }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out {
    pub(super) flow: Flow,
    /// The type of the first value that it leaves.
    pub(super) ty: Val,
    /// Whether that value is 0 or 1.
    pub(super) truth: bool,
    /// Whether the value is dropped where no one takes it.
    pub(super) spare: bool,
}

impl Out {
    pub(super) const NOTHING: Out = Out::net(0, Val::Any);
    pub(super) const NEVER: Out = Out { flow: Flow::Never, ..Out::NOTHING };
    pub(super) const UNKNOWN: Out = Out { flow: Flow::Unknown, ..Out::NOTHING };
    /// A value that is 0 or 1.
    pub(super) const TRUTH: Out = Out { truth: true, ..Out::one(Val::I32) };

    pub(super) const fn net(count: i32, ty: Val) -> Out {
        Out { flow: Flow::Net(count), ty, truth: false, spare: false }
    }

    pub(super) const fn one(ty: Val) -> Out {
        Out::net(1, ty)
    }
}

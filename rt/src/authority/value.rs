//! What the walk knows of a value.

use std::rc::Rc;

/// The most values that one place may have before it may have any.
const SEVERAL: usize = 8;
/// The most parts of a text.
const PARTS: usize = 64;

/// A 32-bit value, as far as it is known. Values grow only: joined with another, a value stands for all that both stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Any at all.
    Any,
    /// One of these, in order; none where no value comes to be.
    OneOf(Rc<[Atom]>),
}

/// One known value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Atom {
    /// A number: also the address of static data.
    Number(i32),
    /// The address of a text that the host has made of these pieces; null where it could not.
    Text(Rc<[Piece]>),
    /// An address in a room of `size` bytes that the host has reserved, `at` bytes from its beginning.
    Room { size: u32, at: u32 },
}

/// A piece of a text that the host has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Piece {
    /// The text at that address of static data.
    At(i32),
    /// That argument of the program.
    Argument(u32),
    /// Anything.
    Unknown,
}

impl Value {
    /// No value: where nothing can come from.
    pub(super) fn none() -> Value {
        Value::OneOf(Rc::new([]))
    }

    pub(super) fn one(atom: Atom) -> Value {
        Value::OneOf(Rc::new([atom]))
    }

    pub(super) fn number(number: i32) -> Value {
        Value::one(Atom::Number(number))
    }

    fn of(atoms: impl IntoIterator<Item = Atom>) -> Value {
        let mut atoms: Vec<Atom> = atoms.into_iter().collect();
        atoms.sort_unstable();
        atoms.dedup();
        if atoms.len() > SEVERAL { Value::Any } else { Value::OneOf(atoms.into()) }
    }

    /// Takes in what another value stands for, and says whether that was new.
    pub(super) fn join(&mut self, other: &Value) -> bool {
        let joined = match (&*self, other) {
            (Value::Any, _) => return false,
            (_, Value::Any) => Value::Any,
            (Value::OneOf(own), Value::OneOf(more)) => {
                if more.iter().all(|atom| own.contains(atom)) {
                    return false;
                }
                Value::of(own.iter().chain(more.iter()).cloned())
            }
        };
        *self = joined;
        true
    }

    /// How much work it is to join it with another, at the least 1.
    pub(super) fn weight(&self) -> usize {
        let Value::OneOf(atoms) = self else { return 1 };
        let pieces = atoms.iter().map(|atom| if let Atom::Text(pieces) = atom { pieces.len() } else { 1 });
        pieces.sum::<usize>().max(1)
    }

    /// What it comes to by an operation on each; any where that gives nothing for one of them.
    pub(super) fn map(&self, operate: impl Fn(&Atom) -> Option<Atom>) -> Option<Value> {
        let Value::OneOf(atoms) = self else { return None };
        atoms.iter().map(operate).collect::<Option<Vec<Atom>>>().map(Value::of)
    }

    /// What two values come to by an operation on each pair; any where one of them is any.
    fn pairs(&self, other: &Value, operate: impl Fn(&Atom, &Atom) -> Option<Atom>) -> Value {
        let (Value::OneOf(left), Value::OneOf(right)) = (self, other) else { return Value::Any };
        let all: Option<Vec<Atom>> =
            left.iter().flat_map(|a| right.iter().map(move |b| (a, b))).map(|(a, b)| operate(a, b)).collect();
        all.map_or(Value::Any, Value::of)
    }

    pub(super) fn plus(&self, other: &Value) -> Value {
        self.pairs(other, |a, b| match (a, b) {
            (Atom::Number(a), Atom::Number(b)) => Some(Atom::Number(a.wrapping_add(*b))),
            (Atom::Room { size, at }, Atom::Number(n)) | (Atom::Number(n), Atom::Room { size, at }) => {
                Some(Atom::Room { size: *size, at: at.checked_add_signed(*n)? })
            }
            _ => None,
        })
    }

    pub(super) fn minus(&self, other: &Value) -> Value {
        self.pairs(other, |a, b| match (a, b) {
            (Atom::Number(a), Atom::Number(b)) => Some(Atom::Number(a.wrapping_sub(*b))),
            _ => None,
        })
    }

    /// The text that the host makes of two.
    pub(super) fn concatenated(&self, other: &Value) -> Value {
        let (left, right) = (self.texts(), other.texts());
        let all = left.iter().flat_map(|a| right.iter().map(move |b| join_pieces(a, b)));
        Value::of(all.map(Atom::Text))
    }

    /// The texts that a value may be the address of.
    pub(super) fn texts(&self) -> Vec<Rc<[Piece]>> {
        let Value::OneOf(atoms) = self else { return vec![Rc::new([Piece::Unknown])] };
        let texts = atoms.iter().map(|atom| match atom {
            Atom::Number(address) => Rc::from([Piece::At(*address)].as_slice()),
            Atom::Text(pieces) => Rc::clone(pieces),
            Atom::Room { .. } => Rc::from([Piece::Unknown].as_slice()),
        });
        texts.collect()
    }
}

fn join_pieces(a: &[Piece], b: &[Piece]) -> Rc<[Piece]> {
    let mut pieces: Vec<Piece> = a.iter().chain(b).copied().collect();
    pieces.dedup_by(|a, b| *a == Piece::Unknown && *b == Piece::Unknown);
    if pieces.len() > PARTS {
        pieces.truncate(PARTS);
        pieces.push(Piece::Unknown);
    }
    pieces.into()
}

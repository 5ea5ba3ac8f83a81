//! The abstract values of the analysis: sets of values that the program may compute.

use std::rc::Rc;

use super::walk::Effort;

/// Maximum number of possible values. A value with more possibilities is unknown.
const MAX_ATOMS: usize = 8;
/// Maximum number of pieces of a string. The rest of a longer string is unknown.
const MAX_PIECES: usize = 64;

/// The set of possible values of a 32-bit integer in the program. A join only adds values: its
/// result contains every value in either operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Any value.
    Any,
    /// A value from this list, which is sorted. If the list is empty, no execution computes the
    /// value.
    OneOf(Rc<[Atom]>),
}

/// A known value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Atom {
    /// A number, which may be an address in the static data.
    Number(i32),
    /// The address of a string that the host composed from these pieces, or null if the host failed
    /// to compose it.
    Text(Rc<[Piece]>),
    /// An address in a block of `size` bytes that the host allocated, `at` bytes from its start.
    Allocation { size: u32, at: u32 },
}

/// A piece of a string that the host composed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Piece {
    /// The string at this address in the static data.
    At(i32),
    /// The program's argument with this index.
    Argument(u32),
    /// Any string.
    Unknown,
}

impl Value {
    /// Returns the empty set, which represents a value that no execution computes. It is the
    /// initial value of every join.
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
        if atoms.len() > MAX_ATOMS { Value::Any } else { Value::OneOf(atoms.into()) }
    }

    /// Adds the values that `other` represents. Returns true if at least one of them is new, or
    /// `None` if there is not enough effort left. The cost is proportional to the number of atoms
    /// and pieces that are compared or copied.
    pub(super) fn join(&mut self, other: &Value, effort: &mut Effort) -> Option<bool> {
        let joined = match (&*self, other) {
            (Value::Any, _) => return effort.spend(1).map(|()| false),
            (_, Value::Any) => {
                effort.spend(1)?;
                Value::Any
            }
            (Value::OneOf(own), Value::OneOf(more)) => {
                if Rc::ptr_eq(own, more) {
                    return effort.spend(1).map(|()| false);
                }
                effort.spend(self.weight().saturating_add(other.weight()))?;
                if more.iter().all(|atom| own.contains(atom)) {
                    return Some(false);
                }
                Value::of(own.iter().chain(more.iter()).cloned())
            }
        };
        *self = joined;
        Some(true)
    }

    /// Returns the number of atoms and pieces, which is the cost of joining the value with another.
    /// It is at least 1.
    pub(super) fn weight(&self) -> usize {
        let Value::OneOf(atoms) = self else { return 1 };
        let pieces =
            atoms.iter().map(|atom| if let Atom::Text(pieces) = atom { pieces.len() } else { 1 });
        pieces.sum::<usize>().max(1)
    }

    /// Applies an operation to each possible value. Returns `None` if the value is unknown or if
    /// any application returns `None`.
    pub(super) fn map(&self, operate: impl Fn(&Atom) -> Option<Atom>) -> Option<Value> {
        let Value::OneOf(atoms) = self else { return None };
        atoms.iter().map(operate).collect::<Option<Vec<Atom>>>().map(Value::of)
    }

    /// Applies an operation to each pair of possible values. The result is unknown if either value
    /// is unknown or if the operation returns `None` for any pair.
    fn pairs(&self, other: &Value, operate: impl Fn(&Atom, &Atom) -> Option<Atom>) -> Value {
        let (Value::OneOf(left), Value::OneOf(right)) = (self, other) else { return Value::Any };
        let all: Option<Vec<Atom>> = left
            .iter()
            .flat_map(|a| right.iter().map(move |b| (a, b)))
            .map(|(a, b)| operate(a, b))
            .collect();
        all.map_or(Value::Any, Value::of)
    }

    pub(super) fn plus(&self, other: &Value) -> Value {
        self.pairs(other, |a, b| match (a, b) {
            (Atom::Number(a), Atom::Number(b)) => Some(Atom::Number(a.wrapping_add(*b))),
            (Atom::Allocation { size, at }, Atom::Number(n))
            | (Atom::Number(n), Atom::Allocation { size, at }) => {
                Some(Atom::Allocation { size: *size, at: at.checked_add_signed(*n)? })
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

    /// Concatenates the strings to which `self` and `other` may point, and returns the possible
    /// results.
    pub(super) fn concatenated(&self, other: &Value) -> Value {
        let (left, right) = (self.texts(), other.texts());
        let all = left.iter().flat_map(|a| right.iter().map(move |b| join_pieces(a, b)));
        Value::of(all.map(Atom::Text))
    }

    /// Returns the strings that the value may point to.
    pub(super) fn texts(&self) -> Vec<Rc<[Piece]>> {
        let Value::OneOf(atoms) = self else { return vec![Rc::new([Piece::Unknown])] };
        let texts = atoms.iter().map(|atom| match atom {
            Atom::Number(address) => Rc::from([Piece::At(*address)].as_slice()),
            Atom::Text(pieces) => Rc::clone(pieces),
            Atom::Allocation { .. } => Rc::from([Piece::Unknown].as_slice()),
        });
        texts.collect()
    }
}

fn join_pieces(a: &[Piece], b: &[Piece]) -> Rc<[Piece]> {
    let mut pieces: Vec<Piece> = a.iter().chain(b).copied().collect();
    pieces.dedup_by(|a, b| *a == Piece::Unknown && *b == Piece::Unknown);
    if pieces.len() > MAX_PIECES {
        pieces.truncate(MAX_PIECES);
        pieces.push(Piece::Unknown);
    }
    pieces.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(first: i32, pieces: i32) -> Value {
        Value::one(Atom::Text((first..first + pieces).map(Piece::At).collect()))
    }

    #[test]
    fn a_join_costs_as_much_as_the_pieces_of_both_sides() {
        let mut value = text(0, 30);
        let mut effort = Effort::new(100);
        assert_eq!(value.join(&text(50, 30), &mut effort), Some(true), "60 of 100 are spent");
        assert_eq!(value.join(&text(100, 30), &mut effort), None, "90 more are too many");
        assert_eq!(value.weight(), 60, "the value is unchanged");
    }

    #[test]
    fn a_join_without_anything_new_does_not_grow() {
        let mut value = Value::number(1);
        let mut effort = Effort::new(10);
        assert_eq!(value.join(&Value::number(1), &mut effort), Some(false));
        assert_eq!(value.join(&Value::none(), &mut effort), Some(false));
        assert_eq!(value.join(&Value::Any, &mut effort), Some(true));
        assert_eq!(value.join(&Value::number(2), &mut effort), Some(false));
    }
}

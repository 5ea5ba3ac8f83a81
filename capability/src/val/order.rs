//! Equality and order of values.

use std::cmp::Ordering;

use wattle_rt::{Code, Failure};

use super::arena::{Values, View};
use super::number::as_number;
use super::write::too_deep;
use crate::json::scan::MAX_DEPTH;

/// The number of values that one comparison may visit. Lists that share items contain more values
/// than the arena.
struct Steps(u32);

impl Steps {
    fn all() -> Steps {
        Steps(10_000_000)
    }

    fn take(&mut self, depth: usize) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        self.0 = self
            .0
            .checked_sub(1)
            .ok_or_else(|| Failure::new(Code::EBOUND, "the values are too large to be compared"))?;
        Ok(())
    }
}

impl Values {
    /// Returns true if two values are equal: numbers by their value, objects regardless of the
    /// order of their keys. Values of different kinds differ.
    pub(super) fn equal(&self, a: i32, b: i32) -> Result<bool, Failure> {
        self.is_equal(a, b, 1, &mut Steps::all())
    }

    /// Returns the position of the first item of a list that is equal to a value.
    pub(super) fn find(&self, items: &[i32], v: i32) -> Result<Option<usize>, Failure> {
        let mut steps = Steps::all();
        for (at, item) in items.iter().enumerate() {
            if self.is_equal(*item, v, 1, &mut steps)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn is_equal(&self, a: i32, b: i32, depth: usize, steps: &mut Steps) -> Result<bool, Failure> {
        let (x, y) = (self.view(a)?, self.view(b)?);
        steps.take(depth)?;
        if a == b {
            return Ok(true);
        }
        Ok(match (x, y) {
            (View::Text(x), View::Text(y)) => x == y,
            (View::List(x), View::List(y)) => {
                if x.len() != y.len() {
                    return Ok(false);
                }
                for (x, y) in x.iter().zip(y) {
                    if !self.is_equal(*x, *y, depth + 1, steps)? {
                        return Ok(false);
                    }
                }
                true
            }
            (View::Object(x), View::Object(y)) => {
                if x.len() != y.len() {
                    return Ok(false);
                }
                for entry in x {
                    let other = self.position_in(b, y, self.key(entry)).and_then(|at| y.get(at));
                    let Some(other) = other else { return Ok(false) };
                    if !self.is_equal(entry.value, other.value, depth + 1, steps)? {
                        return Ok(false);
                    }
                }
                true
            }
            (x, y) => match (as_number(x), as_number(y)) {
                (Some(x), Some(y)) => x.compare(y) == Ordering::Equal,
                // Other values without parts are equal only if their handles are.
                _ => false,
            },
        })
    }

    /// Compares two numbers or two strings. `takes` says who compares them.
    pub(super) fn compare(&self, a: i32, b: i32, takes: &str) -> Result<Ordering, Failure> {
        let (x, y) = (self.view(a)?, self.view(b)?);
        match (x, y) {
            (View::Text(x), View::Text(y)) => return Ok(x.cmp(y)),
            (x, y) => {
                if let (Some(x), Some(y)) = (as_number(x), as_number(y)) {
                    return Ok(x.compare(y));
                }
            }
        }
        let is_ordered = |view: View<'_>| matches!(view.kind(), "number" | "string");
        if is_ordered(x) && is_ordered(y) {
            let (text, number) = if x.kind() == "string" { (a, b) } else { (b, a) };
            let takes = format!("{} is a number; {takes}", self.describe(number));
            return Err(self.wrong(text, &takes, "(num …) converts a string"));
        }
        Err(self.wrong(if is_ordered(x) { b } else { a }, takes, ""))
    }
}

//! Keys by which lists are sorted, grouped and compared.

use std::cmp::Ordering;

use wattle_rt::{Code, Failure};

use super::arena::{NULL, Values, View};
use super::number::{Number, as_number};
use super::write::too_deep;
use crate::decimal::Number as Written;
use crate::json::document::write_quoted;
use crate::json::scan::MAX_DEPTH;
use crate::{MAX_TEXT, too_large};

/// A key that is sorted by.
enum Key<'v> {
    Bool(bool),
    /// A number and the float nearest to it, which decides most comparisons.
    Number(f64, Number<'v>),
    Text(&'v str),
    List(Vec<Key<'v>>),
}

impl Key<'_> {
    /// Compares two keys of the same shape.
    fn compare(&self, other: &Key<'_>) -> Ordering {
        match (self, other) {
            (Key::Bool(a), Key::Bool(b)) => a.cmp(b),
            (Key::Number(a, exact), Key::Number(b, other)) => match a.partial_cmp(b) {
                Some(Ordering::Equal) | None => exact.compare(*other),
                Some(order) => order,
            },
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            (Key::List(a), Key::List(b)) => {
                let orders = a.iter().zip(b).map(|(a, b)| a.compare(b));
                orders.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
            }
            _ => Ordering::Equal,
        }
    }
}

/// The kinds of keys that can be compared with each other, and the first value of each.
enum Shape {
    Scalar(&'static str, i32),
    List(Vec<Shape>, i32),
}

impl Shape {
    fn first(&self) -> i32 {
        match self {
            Shape::Scalar(_, first) | Shape::List(_, first) => *first,
        }
    }
}

/// A position of a list and the key of the item there.
type Keyed<'v> = (usize, Key<'v>);

impl Values {
    /// Returns the keys of the items of a list: the items themselves if `keys` is null.
    ///
    /// # Errors
    /// `EKIND` if `keys` is not a list; `EBOUND` if it has another length.
    pub(super) fn keys_of(&self, x: i32, keys: i32, takes: &str) -> Result<&[i32], Failure> {
        let items = self.items(x, takes)?;
        if keys == NULL {
            return Ok(items);
        }
        let keys = self.items(keys, "the keys are a list")?;
        if keys.len() == items.len() {
            return Ok(keys);
        }
        let why = format!(
            "there are {} keys for {} items; each item needs a key",
            keys.len(),
            items.len()
        );
        Err(Failure::new(Code::EBOUND, why))
    }

    /// Returns the positions of the items of a list, sorted stably by their keys.
    ///
    /// # Errors
    /// `EKIND` if two keys cannot be compared.
    pub(super) fn sorted(
        &self,
        keys: &[i32],
        descending: bool,
        what: &str,
    ) -> Result<Vec<usize>, Failure> {
        let mut keyed = self.comparable(keys, what)?;
        keyed.sort_by(|(_, a), (_, b)| if descending { b.compare(a) } else { a.compare(b) });
        Ok(keyed.into_iter().map(|(at, _)| at).collect())
    }

    /// Returns the position of the first item with the least key, or the greatest one. Returns
    /// `None` if there is none.
    pub(super) fn extreme(
        &self,
        keys: &[i32],
        greatest: bool,
        what: &str,
    ) -> Result<Option<usize>, Failure> {
        let keyed = self.comparable(keys, what)?;
        let best = keyed.into_iter().reduce(|best, next| {
            let order = next.1.compare(&best.1);
            let is_better = if greatest { order.is_gt() } else { order.is_lt() };
            if is_better { next } else { best }
        });
        Ok(best.map(|(at, _)| at))
    }

    fn comparable(&self, keys: &[i32], what: &str) -> Result<Vec<Keyed<'_>>, Failure> {
        // The sort itself needs as much memory again.
        self.memory.check(2 * size_of::<Keyed<'_>>() * keys.len())?;
        let mut shape = None;
        let mut made = 0;
        let mut keyed = Vec::with_capacity(keys.len());
        for (at, key) in keys.iter().enumerate() {
            let key = self.comparable_key(*key, &mut shape, &mut made, 1).map_err(|failure| {
                let reason = format!("item {at}: {what}: {}", failure.reason);
                Failure { reason, ..failure }
            })?;
            keyed.push((at, key));
        }
        Ok(keyed)
    }

    /// Converts a value to a key whose shape agrees with that of the keys before it. Counts the keys
    /// in `made`.
    fn comparable_key(
        &self,
        v: i32,
        shape: &mut Option<Shape>,
        made: &mut usize,
        depth: usize,
    ) -> Result<Key<'_>, Failure> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        *made += 1;
        self.memory.check(2 * size_of::<Key<'_>>() * *made)?;
        let view = self.view(v)?;
        let key = match view {
            View::List(items) => {
                let shape = shape.get_or_insert_with(|| Shape::List(Vec::new(), v));
                let first = shape.first();
                let Shape::List(shapes, _) = shape else { return Err(self.unlike(v, first)) };
                let mut list = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    let mut known = None;
                    if at < shapes.len() {
                        known = Some(std::mem::replace(
                            shapes.get_mut(at).ok_or_else(too_deep)?,
                            Shape::Scalar("", 0),
                        ));
                    }
                    let key = self.comparable_key(*item, &mut known, made, depth + 1)?;
                    if let Some(known) = known {
                        match shapes.get_mut(at) {
                            Some(slot) => *slot = known,
                            None => shapes.push(known),
                        }
                    }
                    list.push(key);
                }
                return Ok(Key::List(list));
            }
            View::Text(text) => Key::Text(text),
            View::Bool(yes) => Key::Bool(yes),
            view => match as_number(view) {
                Some(number) => Key::Number(number.to_float(), number),
                None => {
                    let found = self.describe(v);
                    let hint = if v == NULL { "; (default V …) replaces null" } else { "" };
                    let why =
                        format!("{found} has no order, only numbers, strings and lists{hint}");
                    return Err(Failure::new(Code::EKIND, why));
                }
            },
        };
        match shape.get_or_insert(Shape::Scalar(view.kind(), v)) {
            Shape::Scalar(kind, _) if *kind == view.kind() => Ok(key),
            other => Err(self.unlike(v, other.first())),
        }
    }

    fn unlike(&self, v: i32, first: i32) -> Failure {
        let why = format!(
            "{} cannot be compared with {}, the first one",
            self.describe(v),
            self.describe(first)
        );
        Failure::new(Code::EKIND, why)
    }

    /// Returns a text that is the same for equal values, and differs for others.
    pub(super) fn canonical(&self, v: i32) -> Result<String, Failure> {
        let mut text = String::new();
        self.write_canonical(v, &mut text, 1)?;
        Ok(text)
    }

    fn write_canonical(&self, v: i32, text: &mut String, depth: usize) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match self.view(v)? {
            View::Text(s) => write_quoted(s, text),
            View::List(items) => {
                text.push('[');
                for item in items {
                    self.write_canonical(*item, text, depth + 1)?;
                    text.push(',');
                }
                text.push(']');
            }
            View::Object(entries) => {
                let mut entries: Vec<(&str, i32)> =
                    entries.iter().map(|entry| (self.key(entry), entry.value)).collect();
                entries.sort_unstable();
                text.push('{');
                for (key, value) in entries {
                    write_quoted(key, text);
                    self.write_canonical(value, text, depth + 1)?;
                    text.push(',');
                }
                text.push('}');
            }
            View::Whole(n) if n % 10 != 0 => text.push_str(&n.to_string()),
            view => match as_number(view) {
                Some(number) => {
                    let written = number.text();
                    let parts = Written::read(written.as_bytes()).and_then(Written::parts);
                    match parts {
                        Some((digits, 0)) => text.push_str(&digits),
                        Some((digits, exponent)) => text.push_str(&format!("{digits}e{exponent}")),
                        None => text.push_str(&written),
                    }
                }
                None => text.push_str(&self.plain(v)?),
            },
        }
        if text.len() > MAX_TEXT { Err(too_large()) } else { Ok(()) }
    }
}

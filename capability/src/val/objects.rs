//! New objects and lists made from others.

use wattle_rt::{Failure, Run};

use super::ValueHandle;
use super::arena::{Entry, Values, View, with};
use super::write::too_deep;
use crate::json::scan::MAX_DEPTH;

impl Values {
    /// Copies a value and all values in it.
    fn copy(&mut self, v: i32, depth: usize) -> Result<i32, Failure> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match self.view(v)? {
            View::List(items) => {
                let mut items = items.to_vec();
                for item in &mut items {
                    *item = self.copy(*item, depth + 1)?;
                }
                self.list(&items)
            }
            View::Object(entries) => {
                let mut entries = entries.to_vec();
                for entry in &mut entries {
                    *entry = Values::entry_like(entry, self.copy(entry.value, depth + 1)?);
                }
                self.object_of(&entries)
            }
            _ => Ok(v),
        }
    }

    /// Returns an object with the entries of both objects. Objects of the same key are merged, and
    /// any other value of `b` replaces that of `a`.
    fn merge(&mut self, a: i32, b: i32, depth: usize) -> Result<i32, Failure> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let (View::Object(ours), View::Object(theirs)) = (self.view(a)?, self.view(b)?) else {
            return Ok(b);
        };
        let (ours, theirs): (Vec<Entry>, Vec<Entry>) = (ours.to_vec(), theirs.to_vec());
        let merged = self.object_of(&ours)?;
        for entry in theirs {
            match self.position_of(merged, &entry)? {
                Some(at) => {
                    let old = self.value_at(merged, at)?;
                    let value = self.merge(old, entry.value, depth + 1)?;
                    self.set_at(merged, at, value)?;
                }
                None => self.add_entry(merged, entry)?,
            }
        }
        Ok(merged)
    }
}

pub(super) fn copy(run: &mut Run, v: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| values.copy(v, 1)).map(ValueHandle)
}

pub(super) fn held(run: &mut Run, v: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| match values.view(v)? {
        View::List(_) => {
            let items = values.copied(v, "")?;
            values.list(&items)
        }
        View::Object(entries) => {
            values.memory.check(size_of_val(entries))?;
            let entries = entries.to_vec();
            values.object_of(&entries)
        }
        _ => Ok(v),
    })
    .map(ValueHandle)
}

pub(super) fn merge(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        for v in [a, b] {
            if !matches!(values.view(v)?, View::Object(_)) {
                let hint = match values.view(v)? {
                    View::List(_) => "(concat A B) joins lists",
                    _ => "",
                };
                return Err(values.wrong(v, "merge takes objects", hint));
            }
        }
        values.merge(a, b, 1)
    })
    .map(ValueHandle)
}

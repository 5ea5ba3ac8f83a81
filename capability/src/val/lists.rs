//! The functions over lists and objects, which return new ones.

use std::collections::HashSet;

use wattle_rt::{Code, Failure, Run};

use super::arena::{Values, View, with};
use super::convert::with_array;
use super::{ValueHandle, values};
use crate::{MAX_TEXT, too_large};

impl Values {
    /// Adds a list with the items at these positions of another list.
    fn select(&mut self, x: i32, positions: &[usize]) -> Result<i32, Failure> {
        let items = self.items(x, "")?;
        self.memory.check(size_of_val(positions))?;
        let selected: Vec<i32> =
            positions.iter().filter_map(|at| items.get(*at).copied()).collect();
        self.list(&selected)
    }

    /// Returns a copy of the items of a list.
    pub(super) fn copied(&self, x: i32, takes: &str) -> Result<Vec<i32>, Failure> {
        let items = self.items(x, takes)?;
        self.memory.check(size_of_val(items))?;
        Ok(items.to_vec())
    }

    /// Returns a copy of the items of a list, and of their keys as text.
    fn text_keys(&self, x: i32, keys: i32, takes: &str) -> Result<Vec<(i32, String)>, Failure> {
        let keys = self.keys_of(x, keys, takes)?;
        let mut size = 0;
        let mut pairs = Vec::with_capacity(keys.len());
        for (item, key) in self.items(x, takes)?.iter().zip(keys) {
            let key = self.plain(*key)?;
            size += key.len() + size_of::<(i32, String)>();
            self.memory.check(size)?;
            pairs.push((*item, key));
        }
        Ok(pairs)
    }

    /// Adds 1 to the number of a key of an object.
    fn count_one(&mut self, counts: i32, key: &str) -> Result<(), Failure> {
        let old = self.get(counts, key)?;
        let n = match old.map(|(_, n)| self.view(n)).transpose()? {
            Some(View::Whole(n)) => n + 1,
            _ => 1,
        };
        let n = self.whole(n)?;
        match old {
            Some((at, _)) => self.set_at(counts, at, n),
            None => self.set(counts, key, n),
        }
    }

    /// Returns the value of a key of an object, if it has the key.
    fn get(&self, object: i32, key: &str) -> Result<Option<(usize, i32)>, Failure> {
        let View::Object(entries) = self.view(object)? else { return Ok(None) };
        let at = self.position_in(object, entries, key);
        Ok(at.and_then(|at| Some((at, entries.get(at)?.value))))
    }
}

pub(super) fn sort(
    run: &mut Run,
    x: i32,
    keys: i32,
    descending: bool,
) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let keys = values.keys_of(x, keys, "sort takes a list")?;
        let positions = values.sorted(keys, descending, "sort")?;
        values.select(x, &positions)
    })
    .map(ValueHandle)
}

pub(super) fn group(run: &mut Run, x: i32, keys: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let pairs = values.text_keys(x, keys, "group takes a list")?;
        let groups = values.object()?;
        for (item, key) in pairs {
            let group = match values.get(groups, &key)? {
                Some((_, group)) => group,
                None => {
                    let group = values.list(&[])?;
                    values.set(groups, &key, group)?;
                    group
                }
            };
            values.append(group, item)?;
        }
        Ok(ValueHandle(groups))
    })
}

pub(super) fn count(run: &mut Run, keys: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let length = values.items(keys, "count takes a list")?.len();
        let counts = values.object()?;
        for at in 0..length {
            let key = values.items(keys, "")?.get(at).copied().unwrap_or_default();
            let key = values.plain(key)?;
            values.count_one(counts, &key)?;
        }
        Ok(ValueHandle(counts))
    })
}

pub(super) fn count_arr(run: &mut Run, h: i32) -> Result<ValueHandle, Failure> {
    with_array(run, h, |values, items| {
        let counts = values.object()?;
        for item in items {
            values.count_one(counts, &String::from_utf8_lossy(item))?;
        }
        Ok(ValueHandle(counts))
    })
}

pub(super) fn index(run: &mut Run, x: i32, keys: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let pairs = values.text_keys(x, keys, "index takes a list")?;
        let index = values.object()?;
        for (item, key) in pairs {
            values.set(index, &key, item)?;
        }
        Ok(ValueHandle(index))
    })
}

/// Returns the first item with the least or the greatest key.
fn extreme(run: &mut Run, x: i32, keys: i32, greatest: bool) -> Result<ValueHandle, Failure> {
    let values = values(run);
    let what = if greatest { "max" } else { "min" };
    let takes = format!("{what} takes a list");
    let keys = values.keys_of(x, keys, &takes)?;
    let at = values.extreme(keys, greatest, what)?;
    match at.and_then(|at| Some((at, *values.items(x, &takes).ok()?.get(at)?))) {
        Some((at, item)) => Ok(ValueHandle(values.remember(item, x, at))),
        None => Err(values.is_empty(x, what)),
    }
}

pub(super) fn least(run: &mut Run, x: i32, keys: i32) -> Result<ValueHandle, Failure> {
    extreme(run, x, keys, false)
}

pub(super) fn greatest(run: &mut Run, x: i32, keys: i32) -> Result<ValueHandle, Failure> {
    extreme(run, x, keys, true)
}

pub(super) fn uniq(run: &mut Run, x: i32, keys: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let keys = values.keys_of(x, keys, "uniq takes a list")?;
        let mut seen = HashSet::new();
        let mut positions = Vec::new();
        let mut size = 0;
        for (at, key) in keys.iter().enumerate() {
            let key = values.canonical(*key)?;
            size += key.len() + 2 * size_of::<String>();
            values.memory.check(size)?;
            if seen.insert(key) {
                positions.push(at);
            }
        }
        values.select(x, &positions)
    })
    .map(ValueHandle)
}

pub(super) fn filter(run: &mut Run, x: i32, flags: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let flags = values.keys_of(x, flags, "filter takes a list")?;
        let mut positions = Vec::new();
        for (at, flag) in flags.iter().enumerate() {
            if values.truth(*flag)? {
                positions.push(at);
            }
        }
        values.select(x, &positions)
    })
    .map(ValueHandle)
}

pub(super) fn pluck(run: &mut Run, x: i32, key: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let mut items = values.copied(x, "map takes a list")?;
        for (at, item) in items.iter_mut().enumerate() {
            // The failure names the place of the item.
            values.remember(*item, x, at);
            *item = values.part(*item, key)?;
        }
        values.list(&items)
    })
    .map(ValueHandle)
}

pub(super) fn take(run: &mut Run, x: i32, n: i32) -> Result<ValueHandle, Failure> {
    slice(run, x, 0, Some(n))
}

pub(super) fn slice(
    run: &mut Run,
    x: i32,
    from: i32,
    to: Option<i32>,
) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let items = values.items(x, "slice takes a list")?;
        let length = items.len();
        let range = usize::try_from(from).ok().and_then(|from| match to {
            Some(to) => Some(from.min(length)..usize::try_from(to).ok()?.min(length)),
            None => Some(from.min(length)..length),
        });
        let part = range.and_then(|range| items.get(range)).map(<[i32]>::to_vec);
        let Some(part) = part else {
            let to = to.map_or("the end".to_owned(), |to| to.to_string());
            let why =
                format!("cannot slice {from} to {to} of a list of {length} items: 0 <= from <= to");
            return Err(values.out_of_range(x, &why));
        };
        values.list(&part)
    })
    .map(ValueHandle)
}

pub(super) fn reverse(run: &mut Run, x: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let mut items = values.copied(x, "reverse takes a list")?;
        items.reverse();
        values.list(&items)
    })
    .map(ValueHandle)
}

pub(super) fn concat(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let mut items = values.copied(a, "concat takes lists")?;
        items.extend(values.copied(b, "concat takes lists")?);
        values.list(&items)
    })
    .map(ValueHandle)
}

pub(super) fn flat(run: &mut Run, x: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let mut flat = Vec::new();
        for item in values.items(x, "flat takes a list")? {
            match values.view(*item)? {
                View::List(inner) => flat.extend_from_slice(inner),
                _ => flat.push(*item),
            }
            values.memory.check(2 * flat.len() * size_of::<i32>())?;
        }
        values.list(&flat)
    })
    .map(ValueHandle)
}

pub(super) fn join(run: &mut Run, x: i32, sep: &str) -> Result<String, Failure> {
    let values = values(run);
    let mut text = String::new();
    for (at, item) in values.items(x, "join takes a list")?.iter().enumerate() {
        if at > 0 {
            text.push_str(sep);
        }
        match values.view(*item)? {
            View::Text(item) => text.push_str(item),
            _ => text.push_str(&values.plain(*item)?),
        }
        if text.len() > MAX_TEXT {
            return Err(too_large());
        }
    }
    Ok(text)
}

/// Returns the number of entries of an object. `takes` says who takes an object.
fn entries(values: &Values, v: i32, takes: &str) -> Result<usize, Failure> {
    match values.view(v)? {
        View::Object(entries) => Ok(entries.len()),
        _ => Err(values.wrong(v, takes, "")),
    }
}

pub(super) fn keys(run: &mut Run, v: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let count = entries(values, v, "keys takes an object")?;
        let keys = values.list(&[])?;
        for at in 0..count {
            let key = values.key_handle(v, at)?;
            values.append(keys, key)?;
        }
        Ok(ValueHandle(keys))
    })
}

pub(super) fn values_of(run: &mut Run, v: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let count = entries(values, v, "values takes an object")?;
        let list = values.list(&[])?;
        for at in 0..count {
            let value = values.value_at(v, at)?;
            values.append(list, value)?;
        }
        Ok(ValueHandle(list))
    })
}

impl Values {
    /// Returns the failure for an empty list that has no `what`.
    pub(super) fn is_empty(&self, x: i32, what: &str) -> Failure {
        self.out_of_range(x, &format!("the list is empty, so it has no {what}"))
    }
}

/// Returns the item of a list that `select` selects.
fn end(
    run: &mut Run,
    x: i32,
    what: &str,
    select: impl FnOnce(usize) -> usize,
) -> Result<ValueHandle, Failure> {
    let values = values(run);
    let items = values.items(x, &format!("{what} takes a list"))?;
    let at = select(items.len());
    match items.get(at).copied() {
        Some(item) => Ok(ValueHandle(values.remember(item, x, at))),
        None => Err(values.is_empty(x, &format!("{what} item"))),
    }
}

pub(super) fn first(run: &mut Run, x: i32) -> Result<ValueHandle, Failure> {
    end(run, x, "first", |_| 0)
}

pub(super) fn last(run: &mut Run, x: i32) -> Result<ValueHandle, Failure> {
    end(run, x, "last", |length| length.saturating_sub(1))
}

/// Returns the position of a part, or `None` if it is missing.
fn position(values: &mut Values, v: i32, k: i32) -> Result<Option<usize>, Failure> {
    match values.direct_part(v, k) {
        Ok(_) => Ok(values.last_position()),
        Err(Failure { code: Code::ENOENT, .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

pub(super) fn remove(run: &mut Run, v: i32, k: i32) -> Result<(), Failure> {
    let values = values(run);
    match values.view(v)? {
        View::List(_) | View::Object(_) => {}
        _ => return Err(values.wrong(v, "del takes a list or an object", "")),
    }
    let (path, k) = values.path(k)?;
    let mut v = v;
    for k in path {
        match values.direct_part(v, k) {
            Ok(part) => v = part,
            Err(failure) if failure.code == Code::ENOENT => return Ok(()),
            Err(failure) => return Err(failure),
        }
    }
    match position(values, v, k)? {
        Some(at) => values.remove_at(v, at),
        None => Ok(()),
    }
}

pub(super) fn without(run: &mut Run, v: i32, k: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        if let View::Object(entries) = values.view(v)? {
            let mut entries = entries.to_vec();
            values.memory.check(size_of_val(entries.as_slice()))?;
            let at = position(values, v, k)?;
            if let Some(at) = at.filter(|at| *at < entries.len()) {
                entries.remove(at);
            }
            return values.object_of(&entries).map(ValueHandle);
        }
        let mut items = values.copied(v, "del takes a list or an object")?;
        values.direct_part(v, k)?;
        if let Some(at) = values.last_position().filter(|at| *at < items.len()) {
            items.remove(at);
        }
        values.list(&items).map(ValueHandle)
    })
}

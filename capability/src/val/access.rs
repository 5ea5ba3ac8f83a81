//! The parts of lists and objects.

use memchr::memmem;
use wattle_rt::{Code, Failure, Run, quote};

use super::arena::{NULL, Values, View, with};
use super::number::as_number;
use super::{ValueHandle, values};
use crate::QUOTED;

/// The name of a part: a key or an index.
enum Name {
    Key(String),
    Index(i64),
}

impl Values {
    /// Returns the items of a list. `takes` says who takes a list.
    pub(super) fn items(&self, v: i32, takes: &str) -> Result<&[i32], Failure> {
        match self.view(v)? {
            View::List(items) => Ok(items),
            View::Object(_) => Err(self.wrong(v, takes, "(values …) is the list of its values")),
            View::Text(_) => Err(self.wrong(v, takes, "(json …) parses JSON")),
            _ => Err(self.wrong(v, takes, "")),
        }
    }

    /// Returns the value of a key of an object.
    pub(super) fn at_key(&mut self, v: i32, key: &str) -> Result<i32, Failure> {
        let View::Object(entries) = self.view(v)? else { return Err(self.no_object(v, key)) };
        let position = self.position_in(v, entries, key);
        let found = position.and_then(|at| Some((at, entries.get(at)?.value)));
        let Some((at, value)) = found else { return Err(self.no_key(v, key)) };
        Ok(self.remember(value, v, at))
    }

    fn no_object(&self, v: i32, key: &str) -> Failure {
        let hint = match self.view(v) {
            Ok(View::List(_)) => "an index selects one of its items",
            Ok(View::Text(_)) => "(json …) parses JSON",
            _ => "",
        };
        self.wrong(v, &format!("the key {} selects a part of an object", quote(key, QUOTED)), hint)
    }

    /// Returns an item of a list, or the value of the key of an object that is the number's text.
    pub(super) fn at_index(&mut self, v: i32, i: i64) -> Result<i32, Failure> {
        let items = match self.view(v)? {
            View::List(items) => items,
            View::Object(_) => return self.at_key(v, &i.to_string()),
            _ => {
                let takes = format!("the index {i} selects an item of a list");
                return Err(self.wrong(v, &takes, ""));
            }
        };
        let found = usize::try_from(i).ok().and_then(|at| Some((at, *items.get(at)?)));
        let Some((at, item)) = found else { return Err(self.no_item(v, i, items.len())) };
        Ok(self.remember(item, v, at))
    }

    /// Returns the name of a part that a value stands for.
    fn name(&self, k: i32) -> Result<Name, Failure> {
        match self.view(k)? {
            View::Text(key) => Ok(Name::Key(key.to_owned())),
            view => match as_number(view).and_then(super::number::Number::to_whole) {
                Some(i) => Ok(Name::Index(i)),
                None => Err(self.wrong(k, "a part is selected by a key or an index", "")),
            },
        }
    }

    /// Returns the keys of the part that a value stands for, the last one apart from those before. A
    /// list is a path, and any other value is a key.
    pub(super) fn path(&self, k: i32) -> Result<(Vec<i32>, i32), Failure> {
        if !matches!(self.view(k)?, View::List(_)) {
            return Ok((Vec::new(), k));
        }
        let mut keys = self.copied(k, "")?;
        match keys.pop() {
            Some(last) => Ok((keys, last)),
            None => Err(self.wrong(k, "a path has at least one key", "")),
        }
    }

    /// Returns a part of a list or an object.
    pub(super) fn part(&mut self, v: i32, k: i32) -> Result<i32, Failure> {
        let (path, last) = self.path(k)?;
        let v = path.into_iter().try_fold(v, |v, k| self.direct_part(v, k))?;
        self.direct_part(v, last)
    }

    /// Returns a part whose key is not a path.
    pub(super) fn direct_part(&mut self, v: i32, k: i32) -> Result<i32, Failure> {
        match self.name(k)? {
            Name::Key(key) => self.at_key(v, &key),
            Name::Index(i) => self.at_index(v, i),
        }
    }

    /// Returns a part whose key is not a path. If it is missing or null, it becomes a new object.
    fn opened(&mut self, v: i32, k: i32) -> Result<i32, Failure> {
        match self.direct_part(v, k) {
            Ok(part) if part != NULL => return Ok(part),
            Err(failure) if failure.code != Code::ENOENT => return Err(failure),
            _ => {}
        }
        let object = self.object()?;
        self.put_direct(v, k, object)?;
        Ok(object)
    }

    /// Sets a part of an object, or an item of a list that exists. Objects that are missing on a path
    /// are created.
    pub(super) fn put(&mut self, v: i32, k: i32, x: i32) -> Result<(), Failure> {
        self.view(x)?;
        let (path, last) = self.path(k)?;
        let v = path.into_iter().try_fold(v, |v, k| self.opened(v, k))?;
        self.put_direct(v, last, x)
    }

    /// Sets a part whose key is not a path.
    fn put_direct(&mut self, v: i32, k: i32, x: i32) -> Result<(), Failure> {
        let name = self.name(k)?;
        match (self.view(v)?, name) {
            (View::Object(_), Name::Key(key)) => self.set(v, &key, x),
            (View::Object(_), Name::Index(i)) => self.set(v, &i.to_string(), x),
            (View::List(items), Name::Index(i)) => {
                let at = usize::try_from(i).ok().filter(|at| *at < items.len());
                let Some(at) = at else {
                    let mut failure = self.no_item(v, i, items.len());
                    if i >= 0 {
                        failure.reason.push_str("; (push V X) appends one");
                    }
                    return Err(failure);
                };
                self.replace(v, at, x)
            }
            (View::List(_), Name::Key(key)) => Err(self.no_object(v, &key)),
            _ => Err(self.wrong(v, "put takes a list or an object", "")),
        }
    }

    /// Returns the number of items or entries. `takes` says who takes a list or an object.
    fn count(&self, v: i32, takes: &str, hint: &str) -> Result<usize, Failure> {
        match self.view(v)? {
            View::List(items) => Ok(items.len()),
            View::Object(entries) => Ok(entries.len()),
            View::Text(_) => Err(self.wrong(v, takes, hint)),
            _ => Err(self.wrong(v, takes, "")),
        }
    }

    fn past_end(&self, v: i32, i: i32) -> Failure {
        let count = self.count(v, "", "").unwrap_or(0);
        let why = format!(
            "no item {i}; it has {count}; if a loop removes items, (slice V 0) keeps them for it"
        );
        self.out_of_range(v, &why)
    }
}

pub(super) fn key(run: &mut Run, v: i32, key: &str) -> Result<ValueHandle, Failure> {
    values(run).at_key(v, key).map(ValueHandle)
}

pub(super) fn item(run: &mut Run, v: i32, i: i32) -> Result<ValueHandle, Failure> {
    values(run).at_index(v, i.into()).map(ValueHandle)
}

pub(super) fn part(run: &mut Run, v: i32, k: i32) -> Result<ValueHandle, Failure> {
    values(run).part(v, k).map(ValueHandle)
}

pub(super) fn open(run: &mut Run, v: i32, k: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let (path, last) = values.path(k)?;
        let v = path.into_iter().try_fold(v, |v, k| values.opened(v, k))?;
        values.opened(v, last).map(ValueHandle)
    })
}

pub(super) fn put(run: &mut Run, v: i32, k: i32, x: i32) -> Result<(), Failure> {
    with(run, |values| values.put(v, k, x))
}

pub(super) fn push(run: &mut Run, v: i32, x: i32) -> Result<(), Failure> {
    with(run, |values| {
        values.view(x)?;
        values.items(v, "push takes a list")?;
        values.append(v, x)
    })
}

pub(super) fn pop(run: &mut Run, v: i32) -> Result<ValueHandle, Failure> {
    let values = values(run);
    values.items(v, "pop takes a list")?;
    match values.remove_last(v)? {
        Some(last) => Ok(ValueHandle(last)),
        None => Err(values.out_of_range(v, "the list is empty, so pop has no item to return")),
    }
}

pub(super) fn has(run: &mut Run, v: i32, x: i32) -> Result<bool, Failure> {
    let values = values(run);
    match values.view(v)? {
        View::List(items) => values.find(items, x).map(|found| found.is_some()),
        View::Object(entries) => {
            let key = match values.name(x)? {
                Name::Key(key) => key,
                Name::Index(i) => i.to_string(),
            };
            Ok(values.position_in(v, entries, &key).is_some())
        }
        View::Text(text) => match values.view(x)? {
            View::Text(part) => Ok(memmem::find(text.as_bytes(), part.as_bytes()).is_some()),
            _ => Err(values.wrong(x, "has looks for a string in a string", "")),
        },
        _ => Err(values.wrong(v, "has takes a list, an object or a string", "")),
    }
}

fn int(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

pub(super) fn len(run: &mut Run, v: i32) -> Result<i32, Failure> {
    let values = values(run);
    match values.view(v)? {
        View::Text(text) => Ok(int(text.len())),
        _ => values.count(v, "len takes a list, an object or a string", "").map(int),
    }
}

pub(super) fn size(run: &mut Run, v: i32) -> Result<i32, Failure> {
    let hint = "(str.chars …) gives its characters";
    values(run).count(v, "each takes a list or an object", hint).map(int)
}

pub(super) fn nth(run: &mut Run, v: i32, i: i32) -> Result<ValueHandle, Failure> {
    let values = values(run);
    let at = usize::try_from(i).unwrap_or(usize::MAX);
    let found = match values.view(v)? {
        View::List(items) => items.get(at).copied(),
        View::Object(entries) => entries.get(at).map(|entry| entry.value),
        _ => return Err(values.wrong(v, "each takes a list or an object", "")),
    };
    match found {
        Some(value) => Ok(ValueHandle(values.remember(value, v, at))),
        None => Err(values.past_end(v, i)),
    }
}

pub(super) fn nth_key(run: &mut Run, v: i32, i: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let at = usize::try_from(i).unwrap_or(usize::MAX);
        let (count, is_list) = match values.view(v)? {
            View::List(items) => (items.len(), true),
            View::Object(entries) => (entries.len(), false),
            _ => return Err(values.wrong(v, "each takes a list or an object", "")),
        };
        if at >= count {
            return Err(values.past_end(v, i));
        }
        let key = if is_list { values.whole(i.into())? } else { values.key_handle(v, at)? };
        Ok(ValueHandle(key))
    })
}

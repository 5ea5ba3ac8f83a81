//! The messages of failures: the place of a value, what the value is, and what to do.

use wattle_rt::{Code, Failure, quote};

use super::arena::{Values, View};
use crate::QUOTED;

/// Maximum number of keys that a message lists.
const LISTED: usize = 12;
/// Maximum number of parts of a path in a message.
const MAX_PARTS: usize = 16;

impl Values {
    /// Returns the path to a value followed by a colon, such as `at "users" 0: `. Returns an empty
    /// string for a value that is in no list or object.
    pub(super) fn place(&self, handle: i32) -> String {
        let mut parts = Vec::new();
        let mut value = handle;
        while let Some((container, position)) = self.parent(value)
            && parts.len() < MAX_PARTS
            && container != handle
        {
            parts.push(match self.view(container) {
                Ok(View::Object(entries)) => {
                    entries.get(position).map_or_else(String::new, |e| quote(self.key(e), QUOTED))
                }
                _ => position.to_string(),
            });
            value = container;
        }
        if parts.is_empty() {
            return String::new();
        }
        parts.reverse();
        format!("at {}: ", parts.join(" "))
    }

    /// Returns what a value is, such as `a string ("12")`.
    pub(super) fn describe(&self, handle: i32) -> String {
        let Ok(view) = self.view(handle) else { return "no value".to_owned() };
        let count = |n: usize, what: &str| match n {
            0 => format!("an empty {what}"),
            1 => format!("{} {what} of 1 item", if what == "list" { "a" } else { "an" }),
            n => format!("a {what} of {n} items"),
        };
        match view {
            View::Null => "null".to_owned(),
            View::Bool(yes) => format!("a bool ({yes})"),
            View::Text(text) => format!("a string ({})", quote(text, QUOTED)),
            View::List(items) => count(items.len(), "list"),
            View::Object([]) => "an empty object".to_owned(),
            View::Object(entries) => format!(
                "an object with the {} {}",
                if entries.len() == 1 { "key" } else { "keys" },
                self.names(entries)
            ),
            View::Big(big) => match i64::try_from(big) {
                Ok(n) => format!("a number ({n})"),
                Err(_) => format!("a number of {} bits", big.bits()),
            },
            View::Whole(_) | View::Float(_) | View::Decimal(_) => {
                let text = self.plain(handle).unwrap_or_default();
                format!("a number ({})", wattle_rt::truncate(&text, QUOTED))
            }
        }
    }

    fn names(&self, entries: &[super::arena::Entry]) -> String {
        let names: Vec<&str> = entries.iter().take(LISTED).map(|entry| self.key(entry)).collect();
        let more = if entries.len() > LISTED { ", …" } else { "" };
        wattle_rt::truncate(&(names.join(", ") + more), 200).into_owned()
    }

    /// Returns the failure for a value of a wrong kind. `takes` says who takes what, such as
    /// `+ takes numbers`.
    pub(super) fn wrong(&self, handle: i32, takes: &str, hint: &str) -> Failure {
        let (place, found) = (self.place(handle), self.describe(handle));
        let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
        Failure::new(Code::EKIND, format!("{place}{found}, but {takes}{hint}"))
    }

    /// Returns the failure for a value out of a range.
    pub(super) fn out_of_range(&self, handle: i32, why: &str) -> Failure {
        Failure::new(Code::EBOUND, format!("{}{why}", self.place(handle)))
    }

    /// Returns the failure for a missing key.
    pub(super) fn no_key(&self, object: i32, key: &str) -> Failure {
        let place = self.place(object);
        let wanted = quote(key, QUOTED);
        let Ok(View::Object(entries)) = self.view(object) else {
            return self.wrong(object, &format!("the key {wanted} is one of an object"), "");
        };
        let keys = entries.iter().map(|entry| self.key(entry));
        let hint = match nearest(key, keys) {
            _ if entries.is_empty() => "the object is empty".to_owned(),
            Some(near) => format!("did you mean {}?", quote(near, QUOTED)),
            None => format!("its keys are {}", self.names(entries)),
        };
        Failure::new(Code::ENOENT, format!("{place}no key {wanted}; {hint}"))
    }

    /// Returns the failure for an index at or past the end of a list, or a negative one.
    pub(super) fn no_item(&self, list: i32, i: i64, count: usize) -> Failure {
        if i < 0 {
            let why = format!("index {i}; items are counted from 0, and (last V) is the last one");
            return self.out_of_range(list, &why);
        }
        let items = if count == 1 { "item" } else { "items" };
        let place = self.place(list);
        Failure::new(Code::ENOENT, format!("{place}no item {i}; it has {count} {items}"))
    }
}

/// Returns the key that a key was probably meant to be: one that differs in case, contains it, or
/// has one character more, less or changed.
fn nearest<'k>(key: &str, mut keys: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    keys.find(|known| {
        let is_similar = key.len() >= 3 && (known.contains(key) || key.contains(known));
        known.eq_ignore_ascii_case(key)
            || is_similar && known.len() >= 3 && known.len().abs_diff(key.len()) <= 3
            || key.chars().count() >= 3 && is_one_edit(key, known)
    })
}

/// Returns true if one string becomes the other by one inserted, removed or replaced character.
fn is_one_edit(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - start;
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count().min(rest);
    a.len().max(b.len()) - start - end <= 1
}

//! The functions on values of the WebAssembly peers, as far as the jobs need them.
//!
//! A handle is the index of a value, or, if it is negative, a small whole number.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use indexmap::IndexMap;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::host::{ENOENT, EPARSE, Space, put, text};

/// A value of a program.
enum Node {
    Null,
    Bool(bool),
    Whole(i64),
    Float(f64),
    Text(String),
    List(Vec<i32>),
    Object(IndexMap<String, i32>),
}

/// The values of a run.
pub struct Values(Vec<Node>);

impl Default for Values {
    fn default() -> Values {
        Values(vec![Node::Null, Node::Bool(false), Node::Bool(true)])
    }
}

/// A number, as arithmetic and comparisons take it.
#[derive(Clone, Copy)]
enum Number {
    Whole(i64),
    Float(f64),
}

impl Values {
    fn add(&mut self, node: Node) -> i32 {
        self.0.push(node);
        self.0.len() as i32 - 1
    }

    fn whole(&mut self, n: i64) -> i32 {
        match i32::try_from(n) {
            Ok(n) if (-(1 << 30)..1 << 30).contains(&n) => n & i32::MAX | i32::MIN,
            _ => self.add(Node::Whole(n)),
        }
    }

    /// Returns a small whole number that is contained in its handle.
    fn small(handle: i32) -> Option<i64> {
        (handle < 0).then_some(i64::from((handle << 1) >> 1))
    }

    fn node(&self, handle: i32) -> &Node {
        &self.0[handle as usize]
    }

    fn items(&self, handle: i32) -> &[i32] {
        match self.node(handle) {
            Node::List(items) => items,
            _ => panic!("a job uses another value as a list"),
        }
    }

    fn entries(&self, handle: i32) -> &IndexMap<String, i32> {
        match self.node(handle) {
            Node::Object(entries) => entries,
            _ => panic!("a job uses another value as an object"),
        }
    }

    fn number(&self, handle: i32) -> Number {
        if let Some(n) = Values::small(handle) {
            return Number::Whole(n);
        }
        match self.node(handle) {
            Node::Whole(n) => Number::Whole(*n),
            Node::Float(x) => Number::Float(*x),
            _ => panic!("a job computes with another value"),
        }
    }

    fn sum(&mut self, items: impl IntoIterator<Item = i32>) -> i32 {
        let add = |sum, item| match (sum, self.number(item)) {
            (Number::Whole(a), Number::Whole(b)) => Number::Whole(a + b),
            (a, b) => Number::Float(float(a) + float(b)),
        };
        match items.into_iter().fold(Number::Whole(0), add) {
            Number::Whole(n) => self.whole(n),
            Number::Float(x) => self.add(Node::Float(x)),
        }
    }

    fn compare(&self, a: i32, b: i32) -> Ordering {
        match (self.number(a), self.number(b)) {
            (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
            (a, b) => float(a).total_cmp(&float(b)),
        }
    }

    /// Appends a value without parts to a text.
    fn write(&self, handle: i32, text: &mut String) {
        let written = match Values::small(handle) {
            Some(n) => write!(text, "{n}"),
            None => match self.node(handle) {
                Node::Null => write!(text, "null"),
                Node::Bool(yes) => write!(text, "{yes}"),
                Node::Whole(n) => write!(text, "{n}"),
                Node::Float(x) => write!(text, "{x}"),
                Node::Text(own) => write!(text, "{own}"),
                Node::List(_) | Node::Object(_) => panic!("a job prints no lists and objects"),
            },
        };
        written.expect("a string takes any text");
    }
}

fn float(number: Number) -> f64 {
    match number {
        Number::Whole(n) => n as f64,
        Number::Float(x) => x,
    }
}

/// Adds a value of JSON and its parts.
impl<'de> DeserializeSeed<'de> for &mut Values {
    type Value = i32;

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<i32, D::Error> {
        document.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Values {
    type Value = i32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<i32, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, yes: bool) -> Result<i32, E> {
        Ok(1 + i32::from(yes))
    }

    fn visit_i64<E>(self, n: i64) -> Result<i32, E> {
        Ok(self.whole(n))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<i32, E> {
        Ok(self.whole(i64::try_from(n).map_err(E::custom)?))
    }

    fn visit_f64<E>(self, x: f64) -> Result<i32, E> {
        Ok(self.add(Node::Float(x)))
    }

    fn visit_str<E>(self, text: &str) -> Result<i32, E> {
        Ok(self.add(Node::Text(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<i32, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = all.next_element_seed(&mut *self)? {
            items.push(item);
        }
        Ok(self.add(Node::List(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<i32, A::Error> {
        let mut entries = IndexMap::new();
        while let Some(key) = all.next_key::<String>()? {
            entries.insert(key, all.next_value_seed(&mut *self)?);
        }
        Ok(self.add(Node::Object(entries)))
    }
}

fn values(space: &mut impl Space) -> &mut Values {
    &mut space.split().1.values
}

/// Implements `val.parse`.
pub fn parse(space: &mut impl Space, document: i32) -> (i32, i32) {
    let (memory, host) = space.split();
    let mut document = serde_json::Deserializer::from_str(text(memory, document));
    host.values.deserialize(&mut document).map_or((0, EPARSE), |value| (value, 0))
}

/// Implements `val.list`.
pub fn list(space: &mut impl Space) -> i32 {
    values(space).add(Node::List(Vec::new()))
}

/// Implements `val.object`.
pub fn object(space: &mut impl Space) -> i32 {
    values(space).add(Node::Object(IndexMap::new()))
}

/// Implements `val.of_long`.
pub fn of_long(space: &mut impl Space, n: i64) -> i32 {
    values(space).whole(n)
}

/// Implements `val.of_str`.
pub fn of_str(space: &mut impl Space, s: i32) -> i32 {
    let (memory, host) = space.split();
    host.values.add(Node::Text(text(memory, s).to_owned()))
}

/// Implements `val.len`, `val.size` and `val.list_len` for lists and objects.
pub fn len(space: &mut impl Space, v: i32) -> (i32, i32) {
    let count = match values(space).node(v) {
        Node::Object(entries) => entries.len(),
        _ => values(space).items(v).len(),
    };
    (count as i32, 0)
}

/// Implements `val.nth`.
pub fn nth(space: &mut impl Space, v: i32, i: i32) -> (i32, i32) {
    let values = values(space);
    match values.node(v) {
        Node::Object(entries) => (entries[i as usize], 0),
        _ => (values.items(v)[i as usize], 0),
    }
}

/// Implements `val.nth_key` for objects.
pub fn nth_key(space: &mut impl Space, v: i32, i: i32) -> (i32, i32) {
    let values = values(space);
    let key = values.entries(v).get_index(i as usize).map(|(key, _)| key.clone());
    (values.add(Node::Text(key.unwrap_or_default())), 0)
}

/// Implements `val.key`.
pub fn key(space: &mut impl Space, v: i32, key: i32) -> (i32, i32) {
    let (memory, host) = space.split();
    host.values.entries(v).get(text(memory, key)).map_or((0, ENOENT), |value| (*value, 0))
}

/// Implements `val.put_key`.
pub fn put_key(space: &mut impl Space, v: i32, key: i32, x: i32) -> i32 {
    let (memory, host) = space.split();
    if let Node::Object(entries) = &mut host.values.0[v as usize] {
        entries.insert(text(memory, key).to_owned(), x);
    }
    0
}

/// Implements `val.push`.
pub fn push(space: &mut impl Space, v: i32, x: i32) -> i32 {
    if let Node::List(items) = &mut values(space).0[v as usize] {
        items.push(x);
    }
    0
}

/// Implements `val.truth`.
pub fn truth(space: &mut impl Space, v: i32) -> (i32, i32) {
    (i32::from(matches!(values(space).node(v), Node::Bool(true))), 0)
}

/// Implements `val.add`.
pub fn add(space: &mut impl Space, a: i32, b: i32) -> (i32, i32) {
    (values(space).sum([a, b]), 0)
}

/// Implements `val.cmp` for numbers.
pub fn cmp(space: &mut impl Space, a: i32, b: i32) -> (i32, i32) {
    (values(space).compare(a, b) as i32, 0)
}

/// Implements `val.text` for values without parts.
pub fn write(space: &mut impl Space, v: i32) -> (i32, i32) {
    let mut text = String::new();
    values(space).write(v, &mut text);
    (put(space, text.as_bytes()), 0)
}

/// Implements `val.pluck` for the key of objects.
pub fn pluck(space: &mut impl Space, list: i32, key: i32) -> (i32, i32) {
    let values = values(space);
    let Node::Text(key) = values.node(key) else { panic!("a job plucks by names only") };
    let part = |object: &i32| values.entries(*object).get(key).copied();
    let parts: Option<Vec<i32>> = values.items(list).iter().map(part).collect();
    let Some(parts) = parts else { return (0, ENOENT) };
    (values.add(Node::List(parts)), 0)
}

/// Implements `val.group` for keys that are strings.
pub fn group(space: &mut impl Space, list: i32, keys: i32) -> (i32, i32) {
    let values = values(space);
    let mut groups: IndexMap<&str, Vec<i32>> = IndexMap::new();
    for (item, key) in values.items(list).iter().zip(values.items(keys)) {
        let Node::Text(key) = values.node(*key) else { panic!("a job groups by names only") };
        groups.entry(key).or_default().push(*item);
    }
    let groups: Vec<_> = groups.into_iter().map(|(key, own)| (key.to_owned(), own)).collect();
    let groups = groups.into_iter().map(|(key, own)| (key, values.add(Node::List(own))));
    let groups: IndexMap<String, i32> = groups.collect();
    (values.add(Node::Object(groups)), 0)
}

/// Implements `val.sum`.
pub fn sum(space: &mut impl Space, list: i32) -> (i32, i32) {
    let values = values(space);
    let items = values.items(list).to_vec();
    (values.sum(items), 0)
}

/// Implements `val.sort` for keys that are numbers.
pub fn sort(space: &mut impl Space, list: i32, keys: i32, descending: i32) -> (i32, i32) {
    let values = values(space);
    let pairs = values.items(list).iter().copied().zip(values.items(keys).iter().copied());
    let mut pairs: Vec<(i32, i32)> = pairs.collect();
    pairs.sort_by(|(_, a), (_, b)| match descending {
        0 => values.compare(*a, *b),
        _ => values.compare(*b, *a),
    });
    let sorted = pairs.into_iter().map(|(item, _)| item).collect();
    (values.add(Node::List(sorted)), 0)
}

/// Implements `val.csv_text` for fields without quotes.
pub fn csv_text(space: &mut impl Space, rows: i32, _separator: i32) -> (i32, i32) {
    let values = values(space);
    let mut text = String::new();
    for (at, row) in values.items(rows).iter().enumerate() {
        let entries = values.entries(*row);
        if at == 0 {
            text.push_str(&entries.keys().map(String::as_str).collect::<Vec<_>>().join(","));
            text.push('\n');
        }
        for (at, value) in entries.values().enumerate() {
            if at > 0 {
                text.push(',');
            }
            values.write(*value, &mut text);
        }
        text.push('\n');
    }
    (put(space, text.as_bytes()), 0)
}

/// Implements `val.count_arr`.
pub fn count_arr(space: &mut impl Space, array: i32) -> (i32, i32) {
    let host = space.split().1;
    let mut counts: IndexMap<&str, i64> = IndexMap::new();
    for item in host.array(array) {
        *counts.entry(item).or_default() += 1;
    }
    let counts: Vec<(String, i64)> = counts.into_iter().map(|(key, n)| (key.into(), n)).collect();
    let values = &mut host.values;
    let counts = counts.into_iter().map(|(key, n)| (key, values.whole(n))).collect();
    (values.add(Node::Object(counts)), 0)
}

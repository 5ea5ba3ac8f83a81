//! `arr.sort_rows` and `arr.from_csv`, for arrays of rows. A row is a JSON object or a line of
//! tab-separated values.

use std::cmp::Ordering;

use wattle_rt::{Code, Failure, Run, quote};

use super::{Arrays, Handle, Order};
use crate::QUOTED;
use crate::decimal::Number;
use crate::json::MEMORY_PER_BYTE;
use crate::json::document::Document;
use crate::json::path::Path;

/// The sort key of a row.
#[derive(Debug)]
enum Key {
    Null,
    Bool(bool),
    /// A number as written.
    Number(String),
    Text(String),
}

impl Key {
    /// Returns the rank of the key's type. Keys of different types are ordered by rank.
    fn rank(&self) -> u8 {
        match self {
            Key::Null => 0,
            Key::Bool(_) => 1,
            Key::Number(_) => 2,
            Key::Text(_) => 3,
        }
    }
}

fn compare(a: &Key, b: &Key) -> Ordering {
    match (a, b) {
        (Key::Bool(a), Key::Bool(b)) => a.cmp(b),
        (Key::Number(a), Key::Number(b)) => {
            Number::read(a.as_bytes()).cmp(&Number::read(b.as_bytes()))
        }
        (Key::Text(a), Key::Text(b)) => a.cmp(b),
        _ => a.rank().cmp(&b.rank()),
    }
}

/// The location of the sort key in each row.
enum Field<'k> {
    Path(Path<'k>),
    /// The index of a tab-separated column, counted from 0, and the key as the program wrote it.
    Column(usize, &'k str),
}

pub(super) fn from_csv(
    run: &mut Run,
    text: &str,
    sep: Option<&str>,
    types: Option<&str>,
) -> Result<Handle, Failure> {
    let doc = crate::json::read_csv(text, sep, types)?;
    super::from_json(run, &doc)
}

pub(super) fn sort(run: &mut Run, h: i32, key: &str, by: Option<&str>) -> Result<(), Failure> {
    let order = Order::read(by.unwrap_or("value"), &["value", "text", "num"])?;
    let account = run.account().clone();
    let rows = Arrays::of(run).get(Handle(h))?;
    let Some(first) = rows.first() else { return Ok(()) };
    // The charge covers the keys of all rows and one parsed row at a time.
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let all: usize = rows.iter().map(|row| row.len() + size_of::<Key>()).sum();
    let _held = account.hold(all.saturating_add(longest.saturating_mul(MEMORY_PER_BYTE)))?;
    let field = field(first, key)?;
    let mut keyed = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let row_text = String::from_utf8_lossy(row);
        let found = field.find(&row_text).map_err(|failure| Failure {
            reason: format!("the row at index {at}: {}", failure.reason),
            ..failure
        })?;
        keyed.push((typed(found, order.by, at)?, at));
    }
    order.sort(&mut keyed, |a, b| compare(&a.0, &b.0));
    let mut moved: Vec<Vec<u8>> = Vec::with_capacity(rows.len());
    for (_, at) in keyed {
        moved.push(rows.get_mut(at).map(std::mem::take).unwrap_or_default());
    }
    *rows = moved;
    Ok(())
}

/// Returns true if a string is a JSON object or array.
///
/// # Errors
/// If it is JSON that cannot be kept, such as an object that repeats a key.
fn is_json(text: &str) -> Result<bool, Failure> {
    let is_open = text.trim_start().starts_with(['{', '[']);
    Ok(is_open && !matches!(Document::read_or_text(text)?, Document::Text(_)))
}

/// Parses a key: a path if the first row is JSON, and a column number otherwise.
fn field<'k>(first: &[u8], key: &'k str) -> Result<Field<'k>, Failure> {
    if is_json(&String::from_utf8_lossy(first))? {
        return Path::read(key).map(Field::Path);
    }
    key.trim().parse().map(|column| Field::Column(column, key)).map_err(|_| {
        let message = format!(
            "the first row is not a JSON object, so the key must be the number of a \
             tab-separated column, counted from 0, and {} is not one",
            quote(key, QUOTED)
        );
        Failure::new(Code::EPARSE, message)
    })
}

impl Field<'_> {
    fn find(&self, row: &str) -> Result<Document, Failure> {
        match self {
            Field::Path(path) => path.find(&Document::read(row)?).cloned(),
            Field::Column(column, name) => {
                let cell = row.split('\t').nth(*column);
                cell.map(|cell| Document::Text(cell.to_owned())).ok_or_else(|| {
                    let count = row.split('\t').count();
                    let message = format!(
                        "it has {count} tab-separated columns, counted from 0, and no column {name}"
                    );
                    Failure::new(Code::ENOENT, message)
                })
            }
        }
    }
}

/// Converts a value to a sort key for the order `by`. `at` is the index of the row.
fn typed(value: Document, by: &str, at: usize) -> Result<Key, Failure> {
    match by {
        "text" => return Ok(Key::Text(value.plain())),
        "num" => {
            let text = value.plain();
            if Number::read(text.as_bytes()).is_some() {
                return Ok(Key::Number(text));
            }
            let shown = quote(&text, QUOTED);
            let message = format!("the row at index {at}: {shown} is not a number");
            return Err(Failure::new(Code::EPARSE, message));
        }
        _ => {}
    }
    Ok(match value {
        Document::Null => Key::Null,
        Document::Bool(yes) => Key::Bool(yes),
        Document::Number(number) => Key::Number(number.into_string()),
        Document::Text(text) => Key::Text(text),
        other => Key::Text(other.to_json()),
    })
}

//! Functions that only the language's forms call.

use wattle_rt::{Failure, Run};

use super::arena::{NULL, View, with};
use super::{ValueHandle, values};

/// Returns a part, or null if it is missing.
pub(super) fn get(run: &mut Run, v: i32, k: i32) -> Result<ValueHandle, Failure> {
    match values(run).part(v, k) {
        Err(failure) if failure.code == wattle_rt::Code::ENOENT => Ok(ValueHandle(NULL)),
        found => found.map(ValueHandle),
    }
}

pub(super) fn put_key(run: &mut Run, v: i32, key: &str, x: i32) -> Result<(), Failure> {
    with(run, |values| {
        values.view(x)?;
        match values.view(v)? {
            View::Object(_) => values.set(v, key, x),
            View::List(_) => {
                let hint = "an index selects one of its items";
                Err(values.wrong(v, "put sets a key of an object", hint))
            }
            _ => Err(values.wrong(v, "put takes a list or an object", "")),
        }
    })
}

pub(super) fn eq_str(run: &mut Run, v: i32, s: &str) -> Result<bool, Failure> {
    Ok(matches!(values(run).view(v)?, View::Text(text) if text == s))
}

/// Returns the exact number that a literal of the program is.
pub(super) fn decimal(run: &mut Run, s: &str) -> Result<ValueHandle, Failure> {
    let digits = s.replace('_', "");
    let number = with(run, |values| values.number_of(&digits))?;
    number.map(ValueHandle).ok_or_else(|| {
        let why = format!("{} is not a number", wattle_rt::quote(s, crate::QUOTED));
        Failure::new(wattle_rt::Code::EPARSE, why)
    })
}

/// Parses a string as JSON. Any other value is itself.
pub(super) fn reparse(run: &mut Run, v: i32) -> Result<ValueHandle, Failure> {
    let text = match values(run).view(v)? {
        View::Text(text) => text.to_owned(),
        _ => return Ok(ValueHandle(v)),
    };
    with(run, |values| values.parse(&text)).map(ValueHandle)
}

/// Returns the keys of an object, each with the text of its value. Leaves out what is null.
///
/// # Errors
/// `EKIND` if the value is not an object, and those of `val.text`.
pub(crate) fn texts_of(run: &mut Run, v: i32) -> Result<Vec<(String, String)>, Failure> {
    let values = values(run);
    let View::Object(entries) = values.view(v)? else {
        return Err(values.wrong(v, "the arguments are an object", ""));
    };
    let given: Vec<_> = entries.iter().filter(|entry| entry.value != NULL).collect();
    given
        .into_iter()
        .map(|entry| Ok((values.key(entry).to_owned(), values.plain(entry.value)?)))
        .collect()
}

/// Returns the length of a list, for a loop with one name.
pub(super) fn list_len(run: &mut Run, v: i32) -> Result<i32, Failure> {
    let values = values(run);
    match values.view(v)? {
        View::Object(_) => {
            let hint =
                "`(each $k $v …)` gives its keys and values, `(values …)` the list of its values";
            Err(values.wrong(v, "one name stands for the items of a list", hint))
        }
        View::Text(_) => {
            let hint = "(str.chars …) gives its characters, (json …) parses JSON";
            Err(values.wrong(v, "a list is wanted", hint))
        }
        View::List(items) => Ok(i32::try_from(items.len()).unwrap_or(i32::MAX)),
        _ => Err(values.wrong(v, "a list is wanted", "")),
    }
}

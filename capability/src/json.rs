//! `json`: values of a JSON document by path.

use serde_json::Value as Json;
use wattle_rt::{Code, Failure, Run, capability};

use crate::arr::{Arrays, Handle};

capability! {
    /// Values of a JSON document by path: `a.b[0].c` or a JSON pointer; a string comes without quotes, anything else as JSON.
    pub const JSON: "json" 1;

    /// Gives the value at a path
    #[example = "(call $json.get \"{\\\"a\\\":[1,2]}\" \"a[1]\") (drop) (call $sys.resv) (i32.const 0)"]
    fn get(doc: str, path: str) -> ptr: str ! ENOENT EPARSE = get;

    /// Sets the value at a path (JSON, else taken as a string) and gives the new document
    #[example = "(call $json.set \"{}\" \"a\" \"1\") (drop) (call $sys.resv) (i32.const 0)"]
    fn set(doc: str, path: str, value: str) -> ptr: str ! ENOENT EPARSE = set;

    /// Gives the type at a path: object, array, string, number, bool, null
    #[example = "(call $json.type \"[]\" \"\") (drop) (call $sys.resv) (i32.const 0)"]
    fn type(doc: str, path: str) -> ptr: str ! ENOENT EPARSE = kind;

    /// Gives the number of items, keys or characters at a path
    #[example = "(call $json.len \"[1,2]\" \"\") (drop) (call $str.from_int) (call $sys.resv) (i32.const 0)"]
    fn len(doc: str, path: str) -> n: int ! ENOENT EPARSE = len;

    /// Gives an object's keys as an array
    #[example = "(call $json.keys \"{\\\"a\\\":1}\" \"\") (drop) (call $str.join \",\") (drop) (call $sys.resv) (i32.const 0)"]
    fn keys(doc: str, path: str) -> arr: arr ! ENOENT EPARSE = keys;
}

/// The document read last: programs ask one document for many values.
#[derive(Default)]
struct Last(Option<(String, Json)>);

fn document<'r>(run: &'r mut Run, doc: &str) -> Result<&'r Json, Failure> {
    let Last(last) = run.state();
    if last.as_ref().is_none_or(|(text, _)| text != doc) {
        let parsed = serde_json::from_str(doc)
            .map_err(|e| Failure::new(Code::EPARSE, format!("the document is no JSON: {e}")))?;
        *last = Some((doc.to_owned(), parsed));
    }
    last.as_ref().map(|(_, json)| json).ok_or_else(|| Failure::new(Code::EPARSE, "the document is no JSON"))
}

/// A value as programs see it: a string without its quotes, anything else as JSON.
pub(crate) fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// A key, or an index where the value there is an array.
    Name(String),
    /// An index in brackets.
    Index(usize),
}

/// Reads `a.b[0].c`, `$.a`, `.a`, `a["b c"]` or a JSON pointer `/a/b/0`.
fn steps(path: &str) -> Result<Vec<Step>, Failure> {
    let bad = |why: &str| Failure::new(Code::EPARSE, format!("the path {path:?} cannot be read: {why}"));
    if let Some(pointer) = path.strip_prefix('/') {
        return Ok(pointer.split('/').map(|part| Step::Name(part.replace("~1", "/").replace("~0", "~"))).collect());
    }
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (step, tail) = match inside.strip_prefix(['"', '\'']) {
                Some(quoted) => {
                    let quote = inside.get(..1).unwrap_or_default();
                    let (name, tail) = quoted.split_once(quote).ok_or_else(|| bad("a quote is not closed"))?;
                    (Step::Name(name.to_owned()), tail.strip_prefix(']').ok_or_else(|| bad("`]` is missing"))?)
                }
                None => {
                    let (index, tail) = inside.split_once(']').ok_or_else(|| bad("`]` is missing"))?;
                    let index = index.trim().parse().map_err(|_| bad("an index is a number from 0"))?;
                    (Step::Index(index), tail)
                }
            };
            steps.push(step);
            rest = tail;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, tail) = name.split_at_checked(end).ok_or_else(|| bad("a name is missing"))?;
            match (name.is_empty(), steps.is_empty() && tail.is_empty()) {
                (true, true) => {} // `$` or `.` alone: the document itself
                (true, false) if !tail.starts_with('[') => return Err(bad("a name is missing between two dots")),
                (true, false) => {}
                (false, _) => steps.push(Step::Name(name.to_owned())),
            }
            rest = tail;
        }
    }
    Ok(steps)
}

fn child<'j>(value: &'j Json, step: &Step) -> Option<&'j Json> {
    match (value, step) {
        (Json::Object(object), Step::Name(name)) => object.get(name),
        (Json::Object(object), Step::Index(index)) => object.get(&index.to_string()),
        (Json::Array(items), Step::Name(name)) => items.get(name.parse::<usize>().ok()?),
        (Json::Array(items), Step::Index(index)) => items.get(*index),
        _ => None,
    }
}

fn absent(path: &str, at: &Json) -> Failure {
    let there = match at {
        Json::Object(object) if object.is_empty() => "the object there is empty".to_owned(),
        Json::Object(object) => {
            let names: Vec<&str> = object.keys().take(12).map(String::as_str).collect();
            format!("the object there has the keys {}", names.join(", "))
        }
        Json::Array(items) => format!("the array there has {} items", items.len()),
        other => format!("there is {} there", kind_of(other)),
    };
    Failure::new(Code::ENOENT, format!("nothing at {path:?}: {there}"))
}

fn at<'j>(document: &'j Json, path: &str) -> Result<&'j Json, Failure> {
    let mut value = document;
    for step in steps(path)? {
        value = child(value, &step).ok_or_else(|| absent(path, value))?;
    }
    Ok(value)
}

fn get(run: &mut Run, doc: &str, path: &str) -> Result<String, Failure> {
    at(document(run, doc)?, path).map(plain)
}

fn set(run: &mut Run, doc: &str, path: &str, value: &str) -> Result<String, Failure> {
    let mut document = document(run, doc)?.clone();
    let mut slot = &mut document;
    for step in steps(path)? {
        let missing = absent(path, slot);
        if slot.is_null() && matches!(step, Step::Name(_)) {
            *slot = Json::Object(serde_json::Map::new());
        }
        slot = match (slot, step) {
            (Json::Object(object), Step::Name(name)) => object.entry(name).or_insert(Json::Null),
            (Json::Object(object), Step::Index(index)) => object.entry(index.to_string()).or_insert(Json::Null),
            (Json::Array(items), step) => {
                let index = match step {
                    Step::Index(index) => index,
                    Step::Name(name) => name.parse().map_err(|_| missing.clone())?,
                };
                // One behind the end appends.
                if index == items.len() {
                    items.push(Json::Null);
                }
                items.get_mut(index).ok_or(missing)?
            }
            _ => return Err(missing),
        };
    }
    *slot = serde_json::from_str(value).unwrap_or_else(|_| Json::String(value.to_owned()));
    Ok(document.to_string())
}

fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn kind(run: &mut Run, doc: &str, path: &str) -> Result<&'static str, Failure> {
    at(document(run, doc)?, path).map(kind_of)
}

fn len(run: &mut Run, doc: &str, path: &str) -> Result<i32, Failure> {
    let n = match at(document(run, doc)?, path)? {
        Json::Array(items) => items.len(),
        Json::Object(object) => object.len(),
        Json::String(text) => text.chars().count(),
        other => {
            let kind = kind_of(other);
            return Err(Failure::new(Code::EPARSE, format!("the value at {path:?} is a {kind}, which has no length")));
        }
    };
    Ok(i32::try_from(n).unwrap_or(i32::MAX))
}

fn keys(run: &mut Run, doc: &str, path: &str) -> Result<Handle, Failure> {
    let keys: Vec<String> = match at(document(run, doc)?, path)? {
        Json::Object(object) => object.keys().cloned().collect(),
        other => {
            let kind = kind_of(other);
            return Err(Failure::new(Code::EPARSE, format!("the value at {path:?} is a {kind}, not an object")));
        }
    };
    Arrays::make(run, keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_they_say() {
        let document: Json = serde_json::json!({"a": {"b": [{"c": "x"}, 2]}, "d e": true, "0": "zero"});
        for (path, expected) in [
            ("a.b[0].c", "x"),
            ("$.a.b[0].c", "x"),
            (".a.b[1]", "2"),
            ("/a/b/0/c", "x"),
            ("a.b.1", "2"),
            ("['d e']", "true"),
            ("$[\"d e\"]", "true"),
            ("[0]", "zero"),
            ("a.b[1]", "2"),
        ] {
            assert_eq!(at(&document, path).map(plain), Ok(expected.to_owned()), "{path}");
        }
        for whole in ["", "$", "."] {
            assert_eq!(at(&document, whole), Ok(&document), "{whole:?}");
        }
        for (path, code) in [
            ("a.x", Code::ENOENT),
            ("a.b[9]", Code::ENOENT),
            ("a.b[0].c.d", Code::ENOENT),
            ("a..b", Code::EPARSE),
            ("a.b[", Code::EPARSE),
            ("a.b[x]", Code::EPARSE),
            ("a['b", Code::EPARSE),
        ] {
            assert_eq!(at(&document, path).map_err(|f| f.code), Err(code), "{path}");
        }
    }
}

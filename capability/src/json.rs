//! `json`: values of a JSON document by path, or by a jq filter. Numbers stay as they were written.

pub(crate) mod document;
mod jq;
mod path;
mod table;

pub use jq::jq;
use wattle_rt::{Code, Failure, Held, Run, capability};

use crate::arr::{Arrays, Handle};
use crate::map;
use document::Document;
use path::Path;

capability! {
    /// Values of a JSON document; a path is `a.b[0].c` (`[-1]` the last, `[-]` behind the last, `["odd key"]`) or a JSON pointer, "" the whole; a string comes without quotes, anything else as JSON; numbers keep their digits.
    pub const JSON: "json" 2;

    /// Gives the value at path; ENOENT where there is none
    #[example = r#"(ret (json.get? "{\"a\":[1,{\"b\":\"x\"}]}" "a[1].b"))"# => "x"]
    #[prompt(signature)]
    fn get(doc: str, path: str) -> ptr: str ! ENOENT EPARSE ENOMEM = get;

    /// Gives the document with value (JSON, or else a string) at path; makes the objects on the way, and appends at an array's length
    #[example = r#"(ret (json.set? "{\"a\":[1]}" "a[1]" "two"))"# => r#"{"a":[1,"two"]}"#]
    fn set(doc: str, path: str, value: str) -> ptr: str ! ENOENT EPARSE ENOMEM = set;

    /// Gives the document without what is at path; ENOENT where there is nothing
    #[example = r#"(ret (json.del? "{\"a\":1,\"b\":2}" "a"))"# => r#"{"b":2}"#]
    #[prompt(signature)]
    fn del(doc: str, path: str) -> ptr: str ! ENOENT EPARSE ENOMEM = del;

    /// Gives the type at path: object, array, string, number, bool or null
    #[example = r#"(ret (json.type? "{\"a\":[]}" "a"))"# => "array"]
    #[prompt(signature)]
    fn type(doc: str, path: str) -> ptr: str ! ENOENT EPARSE ENOMEM = kind;

    /// Gives the number of items, keys or characters at path; EPARSE where a number, bool or null is there
    #[example = r#"(ret (str.from_int (json.len? "{\"a\":[4,5]}" "a")))"# => "2"]
    #[prompt(signature)]
    fn len(doc: str, path: str) -> n: int ! ENOENT EPARSE ENOMEM = len;

    /// Gives the keys of the object at path as an array, in the document's order
    #[example = r#"(ret (str.join? (json.keys? "{\"b\":1,\"a\":2}" "") ","))"# => "b,a"]
    #[prompt(signature)]
    fn keys(doc: str, path: str) -> arr: arr ! ENOENT EPARSE ENOMEM = keys;

    /// Applies a jq filter; puts its values one per line, strings without quotes, as `jq -r -c`; ETRFM where the filter raises an error
    #[example = r#"(ret (json.query? "{\"a\":[{\"n\":1},{\"n\":2}]}" "[.a[].n] | add"))"# => "3"]
    #[effect(none)]
    #[touches(nothing)]
    async query(doc: str, filter: str) -> ptr: str ! EPARSE ETRFM ETIME EBOUND ENOMEM EREMOTE = jq::query;

    /// Makes an object of a map: a value that is JSON stays it, any other becomes a string
    #[example = r#"(let $m (map.new)) (map.set? $m "n" "1.50") (map.set? $m "s" "x") (ret (json.make? $m))"# => r#"{"n":1.50,"s":"x"}"#]
    fn make(fields: map) -> ptr: str ! EBOUND ENOMEM = make;

    /// Makes an array of an array's texts: one that is JSON stays it, any other becomes a string
    #[example = r#"(ret (json.make_arr? (str.split? "1 b {}" " ")))"# => r#"[1,"b",{}]"#]
    fn make_arr(items: arr) -> ptr: str ! EBOUND ENOMEM = make_arr;

    /// Reads CSV whose head line names the columns: an array of objects of strings; sep is 0 for a comma; EPARSE where a quote is not closed or a row has too many fields
    #[example = r#"(ret (json.from_csv? "name,n\npen,2\n"))"# => r#"[{"name":"pen","n":"2"}]"#]
    fn from_csv(text: str, sep: opt_str) -> doc: str ! EPARSE ENOMEM = from_csv;

    /// Writes an array of objects as CSV with a head line, a column for each key; a string stands there without quotes, null as nothing; sep is 0 for a comma
    #[example = r#"(ret (json.to_csv? "[{\"a\":1},{\"a\":\"x,y\"}]"))"# => "a\n1\n\"x,y\"\n"]
    fn to_csv(doc: str, sep: opt_str) -> text: str ! EPARSE ENOMEM = to_csv;
}

/// The most bytes of a document.
const MOST: usize = 16 << 20;

/// The document read last: programs ask one document for many values.
#[derive(Default)]
struct Last(Option<(String, Document, Held)>);

/// Bytes of memory that a byte of a document takes at most once it is read: a value of some 60 bytes stands in two bytes of text.
const MEMORY_PER_BYTE: usize = 32;

/// Reads a document, or finds it read.
fn read<'r>(run: &'r mut Run, doc: &str) -> Result<&'r Document, Failure> {
    let account = run.account().clone();
    let Last(last) = run.state();
    let kept = last.take().filter(|(text, ..)| text == doc);
    let read = match kept {
        Some(kept) => kept,
        None if doc.len() > MOST => {
            let words =
                format!("the document has {} bytes, more than 16 MiB; take it apart with `str.lines` first", doc.len());
            return Err(Failure::new(Code::ENOMEM, words));
        }
        None => {
            let values = doc.len().saturating_mul(MEMORY_PER_BYTE).min(document::VALUES * 2 * MEMORY_PER_BYTE);
            let held = account.hold(values + doc.len())?;
            (doc.to_owned(), Document::read(doc)?, held)
        }
    };
    Ok(&last.insert(read).1)
}

fn at<'r>(run: &'r mut Run, doc: &str, path: &str) -> Result<&'r Document, Failure> {
    Path::read(path)?.find(read(run, doc)?)
}

fn get(run: &mut Run, doc: &str, path: &str) -> Result<String, Failure> {
    at(run, doc, path).map(Document::plain)
}

fn set(run: &mut Run, doc: &str, path: &str, value: &str) -> Result<String, Failure> {
    let path = Path::read(path)?;
    let mut document = read(run, doc)?.clone();
    path.put(&mut document, Document::read_or_text(value))?;
    Ok(document.to_string())
}

fn del(run: &mut Run, doc: &str, path: &str) -> Result<String, Failure> {
    let path = Path::read(path)?;
    let mut document = read(run, doc)?.clone();
    path.take(&mut document)?;
    Ok(document.to_string())
}

fn kind(run: &mut Run, doc: &str, path: &str) -> Result<&'static str, Failure> {
    at(run, doc, path).map(Document::kind)
}

fn len(run: &mut Run, doc: &str, path: &str) -> Result<i32, Failure> {
    let n = match at(run, doc, path)? {
        Document::Array(items) => items.len(),
        Document::Object(fields) => fields.len(),
        Document::Text(text) => text.chars().count(),
        other => {
            let kind = other.a_kind();
            return Err(Failure::new(Code::EPARSE, format!("the value at {path:?} is {kind}, which has no length")));
        }
    };
    Ok(i32::try_from(n).unwrap_or(i32::MAX))
}

fn keys(run: &mut Run, doc: &str, path: &str) -> Result<Handle, Failure> {
    let keys: Vec<String> = match at(run, doc, path)? {
        Document::Object(fields) => fields.keys().cloned().collect(),
        other => {
            let kind = other.a_kind();
            return Err(Failure::new(Code::EPARSE, format!("the value at {path:?} is {kind}, not an object")));
        }
    };
    Arrays::make(run, keys)
}

/// The JSON that a text of a map or an array stands for.
fn part(text: &[u8]) -> String {
    Document::read_or_text(&String::from_utf8_lossy(text)).to_string()
}

fn make(run: &mut Run, fields: i32) -> Result<String, Failure> {
    let fields = map::of(run, fields)?;
    crate::bounded(('{', '}'), fields.iter().map(|(key, value)| format!("{}:{}", document::quoted(key), part(value))))
}

fn make_arr(run: &mut Run, items: i32) -> Result<String, Failure> {
    crate::bounded(('[', ']'), Arrays::of(run).get(Handle(items))?.iter().map(|item| part(item)))
}

fn from_csv(_: &mut Run, text: &str, sep: Option<&str>) -> Result<String, Failure> {
    table::read(text, sep)
}

fn to_csv(run: &mut Run, doc: &str, sep: Option<&str>) -> Result<String, Failure> {
    table::write(read(run, doc)?, sep)
}

/// A value of serde's as programs see it, for callers that need no digits kept.
pub(crate) fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        Document::read(r#"{"a": {"b": [{"c": "x"}, 2.50]}, "d e": true, "0": "zero", "-": 1, "n": null}"#).unwrap()
    }

    #[test]
    fn paths_lead_where_they_say() {
        for (path, expected) in [
            ("a.b[0].c", "x"),
            ("$.a.b[0].c", "x"),
            (".a.b[1]", "2.50"),
            ("/a/b/0/c", "x"),
            ("a.b.1", "2.50"),
            ("a.b.[1]", "2.50"),
            ("a.b[-1]", "2.50"),
            ("a.b[-2].c", "x"),
            ("['d e']", "true"),
            ("$[\"d e\"]", "true"),
            ("[0]", "zero"),
            ("/-", "1"),
            ("a", r#"{"b":[{"c":"x"},2.50]}"#),
        ] {
            let found = Path::read(path).unwrap().find(&document()).map(Document::plain);
            assert_eq!(found, Ok(expected.to_owned()), "{path}");
        }
        for whole in ["", "$", "."] {
            assert_eq!(Path::read(whole).unwrap().find(&document()), Ok(&document()), "{whole:?}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_says_where_it_ended() {
        for (path, words) in [
            ("a.x", r#"nothing at "a.x": "a" is an object with the keys b, and has no "x""#),
            ("a.b[9]", r#""a.b" is an array of 2, and has no "[9]""#),
            ("a.b[-3]", r#""a.b" is an array of 2, and has no "[-3]""#),
            ("a.b[-]", r#""a.b" is an array of 2, and has no "[-]""#),
            ("a.b[0].c.d", r#""a.b[0].c" is a string, and has no "d""#),
            ("n.x", r#""n" is null, and has no "x""#),
            ("z", r#"the document is an object with the keys a, d e, 0, -, n, and has no "z""#),
            ("/a/b/7", r#""/a/b" is an array of 2, and has no "/7""#),
        ] {
            let failure = Path::read(path).unwrap().find(&document()).unwrap_err();
            assert_eq!(failure.code, Code::ENOENT);
            assert!(failure.reason.contains(words), "{path}: {}", failure.reason);
        }
        for path in ["a..b", "a.", "a.b[", "a.b[x]", "a['b", "a['b'", "a[0]b", "[1.5]", ".."] {
            assert_eq!(Path::read(path).map_err(|f| f.code), Err(Code::EPARSE), "{path}");
        }
    }

    #[test]
    fn values_are_put_and_taken() {
        for (document, path, value, expected) in [
            ("{}", "a.b", "1.10", r#"{"a":{"b":1.10}}"#),
            ("{}", "a[0].b", "x", r#"{"a":[{"b":"x"}]}"#),
            ("[1]", "[1]", "2", "[1,2]"),
            ("[1]", "[-]", "2", "[1,2]"),
            ("[1]", "/-", "2", "[1,2]"),
            ("[1,2]", "[-1]", "3", "[1,3]"),
            (r#"{"a":null}"#, "a.b", "1", r#"{"a":{"b":1}}"#),
            ("1", "", "[]", "[]"),
            ("{\"a\":123456789012345678901234567890}", "b", "1e5", "{\"a\":123456789012345678901234567890,\"b\":1e5}"),
        ] {
            let mut changed = Document::read(document).unwrap();
            Path::read(path).unwrap().put(&mut changed, Document::read_or_text(value)).unwrap();
            assert_eq!(changed.to_string(), expected, "{document} {path}");
        }
        for (document, path) in
            [("[1]", "[3]"), ("[1]", "[-2]"), ("[1]", "a"), ("1", "a"), ("\"x\"", "[0]"), ("{}", "a[1]")]
        {
            let mut same = Document::read(document).unwrap();
            let refused = Path::read(path).unwrap().put(&mut same, Document::Null);
            assert_eq!(refused.map_err(|f| f.code), Err(Code::ENOENT), "{document} {path}");
        }
        for (document, path, expected) in [
            ("[1,2,3]", "[1]", Ok("[1,3]")),
            ("[1,2,3]", "[-1]", Ok("[1,2]")),
            (r#"{"a":{"b":1,"c":2}}"#, "a.b", Ok(r#"{"a":{"c":2}}"#)),
            ("[1]", "[-]", Err(Code::ENOENT)),
            ("{}", "a", Err(Code::ENOENT)),
            ("{}", "", Err(Code::EPARSE)),
        ] {
            let mut changed = Document::read(document).unwrap();
            let taken = Path::read(path).unwrap().take(&mut changed).map(|()| changed.to_string());
            assert_eq!(taken.map_err(|f| f.code), expected.map(str::to_owned), "{document} {path}");
        }
    }
}

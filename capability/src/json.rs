//! `json`: reading and changing JSON documents by path or with a jq filter. Numbers are kept as
//! written.

pub(crate) mod document;
mod jq;
pub(crate) mod path;
pub(crate) mod scan;
pub(crate) mod table;

pub use jq::jq;
pub(crate) use jq::query;
use wattle_rt::{Code, Failure, MemoryCharge, Run, capability};

use crate::arr::{Arrays, Handle};
use crate::map;
use document::Document;
use path::Path;

capability! {
    /// JSON documents as strings; a path is `a.b[0].c` (`[-1]` last, `[-]` after the last, `["odd
    /// key"]`) or a JSON pointer, "" the whole; strings are returned without quotes, anything else
    /// as JSON (null is `null`).
    pub const JSON: "json" 3;

    /// Returns the value at path: a string without its quotes, null as `null`; ENOENT if missing
    #[example = r#"(ret (json.get "{\"a\":[1,{\"b\":\"x\"}]}" "a[1].b"))"# => "x"]
    #[prompt(omitted)]
    fn get(doc: str, path: str) -> ptr: str ! ENOENT EPARSE ENOMEM = get;

    /// Returns a new document with value (JSON, else a string) at path; creates missing objects; an
    /// index equal to an array's length appends
    #[example = r#"(ret (json.set "{\"a\":[1]}" "a[1]" "two"))"# => r#"{"a":[1,"two"]}"#]
    #[prompt(omitted)]
    fn set(doc: str, path: str, value: str) -> ptr: str ! ENOENT EPARSE ENOMEM = set;

    /// Returns a new document without the value at path; ENOENT if missing
    #[example = r#"(ret (json.del "{\"a\":1,\"b\":2}" "a"))"# => r#"{"b":2}"#]
    #[prompt(omitted)]
    fn del(doc: str, path: str) -> ptr: str ! ENOENT EPARSE ENOMEM = del;

    /// Returns the type at path: object, array, string, number, bool or null
    #[example = r#"(ret (json.type "{\"a\":[]}" "a"))"# => "array"]
    #[prompt(omitted)]
    fn type(doc: str, path: str) -> ptr: str ! ENOENT EPARSE ENOMEM = kind;

    /// Returns the number of items, keys or characters at path; EKIND for a number, bool or null
    #[example = r#"(ret (str.from_int (json.len "{\"a\":[4,5]}" "a")))"# => "2"]
    #[prompt(omitted)]
    fn len(doc: str, path: str) -> n: int ! ENOENT EPARSE ENOMEM EKIND = len;

    /// Returns the keys of the object at path as an array, in document order
    #[example = r#"(ret (str.join (json.keys "{\"b\":1,\"a\":2}" "") ","))"# => "b,a"]
    #[prompt(omitted)]
    fn keys(doc: str, path: str) -> arr: arr ! ENOENT EPARSE ENOMEM EKIND = keys;

    /// Returns the items of the array at path (see `arr.from_json`)
    #[example = r#"(ret (str.join (json.items "{\"a\":[1,\"b\",{}]}" "a") " "))"# => "1 b {}"]
    #[prompt(omitted)]
    fn items(doc: str, path: str) -> arr: arr ! ENOENT EPARSE ENOMEM EKIND = items;

    /// Returns 1 if the document is JSON with a value at path, else 0
    #[example = r#"(ret (str.from_int (json.has "{\"a\":null}" "a")))"# => "1"]
    #[prompt(omitted)]
    fn has(doc: str, path: str) -> yes: bool = has;

    /// Returns the document with value (JSON, else a string) appended to the array at path, which
    /// is created if missing
    #[example = r#"(ret (json.push "{\"a\":[1]}" "a" "two"))"# => r#"{"a":[1,"two"]}"#]
    #[prompt(omitted)]
    fn push(doc: str, path: str, value: str) -> ptr: str ! ENOENT EPARSE ENOMEM EKIND = push;

    /// Returns a string as JSON, with quotes
    #[example = r#"(ret (json.quote "a \"b\""))"# => r#""a \"b\"""#]
    #[prompt(omitted)]
    fn quote(s: str) -> ptr: str ! ENOMEM = crate::str::escape::json_encode;

    /// Applies a jq filter; returns its values one per line, strings without quotes, like `jq -r
    /// -c`; ETRFM if the filter raises an error
    #[example = r#"(ret (json.query "{\"a\":[{\"n\":1},{\"n\":2}]}" "[.a[].n] | add"))"# => "3"]
    #[prompt(omitted)]
    #[effect(none)]
    #[touches(nothing)]
    async query(doc: str, filter: str) -> ptr: str ! EPARSE ETRFM ETIME EBOUND ENOMEM EREMOTE = jq::query;

    /// Applies a jq filter like `jq -r -c`; returns its values, one per line; the map's keys are
    /// variables ($key)
    #[example = r#"(let $v (map.new)) (map.set $v "min" "2") (ret (json.query "[1,2,3]" ".[] | select(. >= $min)" $v))"# => "2\n3"]
    #[prompt(name)]
    #[effect(none)]
    #[touches(nothing)]
    async query/3(doc: str, filter: str, vars: opt_map) -> ptr: str ! EPARSE ETRFM ETIME EBOUND ENOMEM EREMOTE = jq::query_with;

    /// Makes an object from a map: JSON values stay JSON, others become strings
    #[example = r#"(let $m (map.new)) (map.set $m "n" "1.50") (map.set $m "s" "x") (ret (json.make $m))"# => r#"{"n":1.50,"s":"x"}"#]
    #[prompt(omitted)]
    fn make(fields: map) -> ptr: str ! EBOUND EPARSE ENOMEM = make;

    /// Makes a JSON array from an array, like `json.make`
    #[example = r#"(ret (json.make_arr (str.split "1 b {}" " ")))"# => r#"[1,"b",{}]"#]
    #[prompt(omitted)]
    fn make_arr(items: arr) -> ptr: str ! EBOUND EPARSE ENOMEM = make_arr;

    /// Parses CSV with a header line into an array of objects of strings; EPARSE if a quote is
    /// unclosed or a row has too many fields
    #[example = r#"(ret (json.from_csv "name,n\npen,2\n"))"# => r#"[{"name":"pen","n":"2"}]"#]
    #[prompt(omitted)]
    fn from_csv(text: str, sep: opt_str) -> doc: str ! EPARSE ENOMEM = from_csv;

    /// Parses CSV with a header line into an array of objects of strings; with types "num", fields
    /// like 2.50 become numbers
    #[example = r#"(ret (json.from_csv "name,n,id\npen,2.50,007\n" "," "num"))"# => r#"[{"name":"pen","n":2.50,"id":"007"}]"#]
    #[prompt(omitted)]
    fn from_csv/3(text: str, sep: opt_str, types: opt_str) -> doc: str ! EPARSE ENOMEM = from_typed_csv;

    /// Formats an array of objects as CSV with a header line, one column per key; null is empty
    #[example = r#"(ret (json.to_csv "[{\"a\":1},{\"a\":\"x,y\"}]"))"# => "a\n1\n\"x,y\"\n"]
    #[prompt(omitted)]
    fn to_csv(doc: str, sep: opt_str) -> text: str ! EPARSE ENOMEM = to_csv;
}

/// Maximum size of a document, in bytes.
const MAX_DOCUMENT: usize = 16 << 20;

/// The last parsed document. It is cached because programs often read many values from one
/// document.
#[derive(Default)]
struct LastDocument(Option<ParsedDocument>);

/// A parsed document, with its memory charged to the run's account.
struct ParsedDocument {
    text: String,
    document: Document,
    _held: MemoryCharge,
}

/// Maximum memory of a parsed document, in bytes per byte of its source. A value takes about 60
/// bytes of memory and at least two bytes of source.
pub(crate) const MEMORY_PER_BYTE: usize = 32;

/// Parses a document, or returns the cached document if it was parsed from the same text.
fn read<'r>(run: &'r mut Run, doc: &str) -> Result<&'r Document, Failure> {
    let account = run.account().clone();
    let LastDocument(last) = run.state();
    let same = last.take().filter(|parsed| parsed.text == doc);
    let parsed = match same {
        Some(parsed) => parsed,
        None if doc.len() > MAX_DOCUMENT => {
            let message = format!(
                "the document has {} bytes, more than 16 MiB; split it with `str.lines` first",
                doc.len()
            );
            return Err(Failure::new(Code::ENOMEM, message));
        }
        None => {
            let values = doc.len().saturating_mul(MEMORY_PER_BYTE);
            let values = values.min(document::MAX_VALUES * 2 * MEMORY_PER_BYTE);
            let held = account.hold(values + doc.len())?;
            ParsedDocument { text: doc.to_owned(), document: Document::read(doc)?, _held: held }
        }
    };
    Ok(&last.insert(parsed).document)
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
    path.put(&mut document, Document::read_or_text(value)?)?;
    Ok(document.to_json())
}

fn del(run: &mut Run, doc: &str, path: &str) -> Result<String, Failure> {
    let path = Path::read(path)?;
    let mut document = read(run, doc)?.clone();
    path.take(&mut document)?;
    Ok(document.to_json())
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
            return Err(Failure::new(
                Code::EKIND,
                format!("the value at {path:?} is {kind}, which has no length"),
            ));
        }
    };
    Ok(i32::try_from(n).unwrap_or(i32::MAX))
}

fn keys(run: &mut Run, doc: &str, path: &str) -> Result<Handle, Failure> {
    let keys: Vec<String> = match at(run, doc, path)? {
        Document::Object(fields) => fields.keys().cloned().collect(),
        other => {
            let kind = other.a_kind();
            return Err(Failure::new(
                Code::EKIND,
                format!("the value at {path:?} is {kind}, not an object"),
            ));
        }
    };
    Arrays::make(run, keys)
}

fn items(run: &mut Run, doc: &str, path: &str) -> Result<Handle, Failure> {
    let items: Vec<String> = match at(run, doc, path)? {
        Document::Array(items) => items.iter().map(Document::plain).collect(),
        other => return Err(not_an_array(path, other)),
    };
    Arrays::make(run, items)
}

fn not_an_array(path: &str, found: &Document) -> Failure {
    let hint = match found {
        Document::Object(_) => "; `json.keys` lists its keys",
        _ => "",
    };
    let kind = found.a_kind();
    Failure::new(Code::EKIND, format!("the value at {path:?} is {kind}, not an array{hint}"))
}

fn has(run: &mut Run, doc: &str, path: &str) -> Result<bool, Failure> {
    let path = Path::read(path)?;
    match read(run, doc).map(|document| path.find(document).is_ok()) {
        Err(Failure { code: Code::EPARSE, .. }) => Ok(false),
        found => found,
    }
}

fn push(run: &mut Run, doc: &str, path: &str, value: &str) -> Result<String, Failure> {
    let parsed = Path::read(path)?;
    let mut document = read(run, doc)?.clone();
    // A missing array is not an error, because `put` creates it.
    if let Ok(found) = parsed.find(&document)
        && !matches!(found, Document::Array(_) | Document::Null)
    {
        return Err(not_an_array(path, found));
    }
    parsed.after_last().put(&mut document, Document::read_or_text(value)?)?;
    Ok(document.to_json())
}

/// Converts a map value or an array item to JSON. Text that is not JSON becomes a JSON string.
fn part(text: &[u8]) -> Result<String, Failure> {
    Ok(Document::read_or_text(&String::from_utf8_lossy(text))?.to_json())
}

fn make(run: &mut Run, fields: i32) -> Result<String, Failure> {
    let fields = map::of(run, fields)?;
    crate::join_in_brackets(
        '{',
        '}',
        fields
            .iter()
            .map(|(key, value)| Ok(format!("{}:{}", document::quoted(key), part(&value.text())?))),
    )
}

fn make_arr(run: &mut Run, items: i32) -> Result<String, Failure> {
    crate::join_in_brackets(
        '[',
        ']',
        Arrays::of(run).get(Handle(items))?.iter().map(|item| part(item)),
    )
}

fn from_csv(_: &mut Run, text: &str, sep: Option<&str>) -> Result<String, Failure> {
    read_csv(text, sep, None)
}

/// Converts CSV with a header line to a JSON array of objects, as a string.
pub(crate) fn read_csv(
    text: &str,
    sep: Option<&str>,
    types: Option<&str>,
) -> Result<String, Failure> {
    table::read(text, sep, types)
}

fn from_typed_csv(
    _: &mut Run,
    text: &str,
    sep: Option<&str>,
    types: Option<&str>,
) -> Result<String, Failure> {
    read_csv(text, sep, types)
}

fn to_csv(run: &mut Run, doc: &str, sep: Option<&str>) -> Result<String, Failure> {
    table::write(read(run, doc)?, sep)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        Document::read(
            r#"{"a": {"b": [{"c": "x"}, 2.50]}, "d e": true, "0": "zero", "-": 1, "n": null}"#,
        )
        .unwrap()
    }

    #[test]
    fn paths_find_their_values() {
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
    fn a_path_to_nothing_reports_where_it_ended() {
        for (path, words) in [
            ("a.x", r#"nothing at "a.x": "a" is an object with the keys b, without "x""#),
            ("a.b[9]", r#""a.b" is an array of 2 items, without "[9]""#),
            ("a.b[-3]", r#""a.b" is an array of 2 items, without "[-3]""#),
            ("a.b[-]", r#""a.b" is an array of 2 items, without "[-]""#),
            ("a.b[0].c.d", r#""a.b[0].c" is a string, without "d""#),
            ("n.x", r#""n" is null, without "x""#),
            ("z", r#"the document is an object with the keys a, d e, 0, -, n, without "z""#),
            ("/a/b/7", r#""/a/b" is an array of 2 items, without "/7""#),
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
    fn values_are_set_and_removed() {
        for (document, path, value, expected) in [
            ("{}", "a.b", "1.10", r#"{"a":{"b":1.10}}"#),
            ("{}", "a[0].b", "x", r#"{"a":[{"b":"x"}]}"#),
            ("[1]", "[1]", "2", "[1,2]"),
            ("[1]", "[-]", "2", "[1,2]"),
            ("[1]", "/-", "2", "[1,2]"),
            ("[1,2]", "[-1]", "3", "[1,3]"),
            (r#"{"a":null}"#, "a.b", "1", r#"{"a":{"b":1}}"#),
            ("1", "", "[]", "[]"),
            (
                "{\"a\":123456789012345678901234567890}",
                "b",
                "1e5",
                "{\"a\":123456789012345678901234567890,\"b\":1e5}",
            ),
        ] {
            let mut changed = Document::read(document).unwrap();
            Path::read(path)
                .unwrap()
                .put(&mut changed, Document::read_or_text(value).unwrap())
                .unwrap();
            assert_eq!(changed.to_json(), expected, "{document} {path}");
        }
        for (document, path) in [
            ("[1]", "[3]"),
            ("[1]", "[-2]"),
            ("[1]", "a"),
            ("1", "a"),
            ("\"x\"", "[0]"),
            ("{}", "a[1]"),
        ] {
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
            let taken = Path::read(path).unwrap().take(&mut changed).map(|()| changed.to_json());
            assert_eq!(taken.map_err(|f| f.code), expected.map(str::to_owned), "{document} {path}");
        }
    }
}

//! A JSON document that keeps its numbers as written: `1.10` stays `1.10`, and an integer with
//! thirty digits keeps all of them.

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use wattle_rt::{Code, Failure};

use super::scan::{Fault, Grammar, Scalar, Sink, Text, scan};

/// Maximum number of values in a document. A value takes about 60 bytes of memory.
pub(super) const MAX_VALUES: usize = 1_000_000;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Document {
    Null,
    Bool(bool),
    /// The number as written. It is always a valid JSON number.
    Number(Box<str>),
    Text(String),
    Array(Vec<Document>),
    /// The fields, in source order.
    Object(Box<IndexMap<String, Document, RandomState>>),
}

impl Document {
    /// Parses exactly one JSON value.
    ///
    /// # Errors
    /// `EPARSE` with the line and column if the text is not JSON, is nested too deeply or repeats a
    /// key in an object; `ENOMEM` if it contains too many values.
    pub(crate) fn read(text: &str) -> Result<Document, Failure> {
        let text = wattle_rt::without_bom(text);
        read(text, MAX_VALUES, true).map_err(|fault| fault.failure(text))
    }

    /// Parses JSON. Text that is not JSON becomes a string.
    ///
    /// # Errors
    /// Like [`Document::read`], if the text is JSON that cannot be kept: it is nested too deeply,
    /// repeats a key or has too many values.
    pub(crate) fn read_or_text(text: &str) -> Result<Document, Failure> {
        let json = wattle_rt::without_bom(text);
        match read(json, MAX_VALUES, true) {
            Err(Fault::Syntax { .. }) => Ok(Document::Text(text.to_owned())),
            read => read.map_err(|fault| fault.failure(json)),
        }
    }

    /// Returns the value in the form that programs see: a string without its quotes, anything else
    /// as JSON.
    pub(crate) fn plain(&self) -> String {
        match self {
            Document::Text(text) => text.clone(),
            other => other.to_json(),
        }
    }

    /// Returns the document as JSON, without whitespace between tokens.
    pub(crate) fn to_json(&self) -> String {
        let mut json = String::new();
        self.write(&mut json);
        json
    }

    fn write(&self, json: &mut String) {
        match self {
            Document::Null => json.push_str("null"),
            Document::Bool(true) => json.push_str("true"),
            Document::Bool(false) => json.push_str("false"),
            Document::Number(number) => json.push_str(number),
            Document::Text(text) => write_quoted(text, json),
            Document::Array(items) => {
                json.push('[');
                for (n, item) in items.iter().enumerate() {
                    json.push_str(if n == 0 { "" } else { "," });
                    item.write(json);
                }
                json.push(']');
            }
            Document::Object(fields) => {
                json.push('{');
                for (n, (key, value)) in fields.iter().enumerate() {
                    json.push_str(if n == 0 { "" } else { "," });
                    write_quoted(key, json);
                    json.push(':');
                    value.write(json);
                }
                json.push('}');
            }
        }
    }

    /// Returns the nesting depth of the value. A value that contains no other values has depth 1.
    pub(super) fn depth(&self) -> usize {
        let inner = match self {
            Document::Array(items) => items.iter().map(Document::depth).max(),
            Document::Object(fields) => fields.values().map(Document::depth).max(),
            _ => None,
        };
        1 + inner.unwrap_or(0)
    }

    /// Returns the name of the value's kind with an indefinite article, such as `an array`, for use
    /// in a message.
    pub(crate) fn a_kind(&self) -> String {
        match self {
            Document::Null => "null".to_owned(),
            Document::Array(_) | Document::Object(_) => format!("an {}", self.kind()),
            _ => format!("a {}", self.kind()),
        }
    }

    /// Returns the name of the value's kind, which is also the result of `json.type`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Document::Null => "null",
            Document::Bool(_) => "bool",
            Document::Number(_) => "number",
            Document::Text(_) => "string",
            Document::Array(_) => "array",
            Document::Object(_) => "object",
        }
    }
}

/// Checks that a text is exactly one JSON value that [`Document::read`] accepts, of any number of
/// values. Keeps only the keys of the objects that are open.
///
/// # Errors
/// `EPARSE`, like [`Document::read`].
pub(crate) fn check(text: &str) -> Result<(), Failure> {
    let text = wattle_rt::without_bom(text);
    read(text, usize::MAX, false).map(drop).map_err(|fault| fault.failure(text))
}

/// Parses exactly one JSON value of fewer than `values` values. If `keep` is false, the values are
/// only checked: arrays and objects are returned empty.
fn read(text: &str, values: usize, keep: bool) -> Result<Document, Fault> {
    let mut reader = Reader { left: values, keep, open: Vec::new(), root: Document::Null };
    scan(text, Grammar::Json, &mut reader)?;
    Ok(reader.root)
}

/// The state of parsing one text.
struct Reader {
    /// Number of values that may follow.
    left: usize,
    keep: bool,
    /// The arrays and objects that are open. The last entry of an object may lack its value.
    open: Vec<Document>,
    root: Document,
}

impl Reader {
    fn count(&mut self) -> Result<(), Failure> {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return Ok(());
        }
        let message = "the document has more than 1,000,000 values; split it with `json.query` or \
                       `str.lines` first";
        Err(Failure::new(Code::ENOMEM, message))
    }

    fn add(&mut self, document: Document) {
        match self.open.last_mut() {
            None => self.root = document,
            Some(_) if !self.keep => {}
            Some(Document::Object(fields)) => {
                if let Some((_, value)) = fields.last_mut() {
                    *value = document;
                }
            }
            Some(Document::Array(items)) => items.push(document),
            Some(_) => {}
        }
    }
}

impl Sink for Reader {
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), Failure> {
        self.count()?;
        self.add(match scalar {
            Scalar::Null => Document::Null,
            Scalar::Bool(yes) => Document::Bool(yes),
            Scalar::Number(number) => Document::Number(number.text.into()),
            Scalar::Text(text) => Document::Text(text.text.into_owned()),
        });
        Ok(())
    }

    fn key(&mut self, key: &Text<'_>) -> Result<bool, Failure> {
        let Some(Document::Object(fields)) = self.open.last_mut() else { return Ok(true) };
        if fields.contains_key(&*key.text) {
            return Ok(false);
        }
        fields.insert(key.text.clone().into_owned(), Document::Null);
        Ok(true)
    }

    fn open(&mut self, is_object: bool) -> Result<(), Failure> {
        self.count()?;
        self.open.push(match is_object {
            true => Document::Object(Box::default()),
            false => Document::Array(Vec::new()),
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        if let Some(document) = self.open.pop() {
            self.add(document);
        }
        Ok(())
    }
}

/// Formats a string as a JSON string, with quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    write_quoted(text, &mut json);
    json
}

/// Writes a string as a JSON string, with quotes. Escapes only what JSON requires.
pub(crate) fn write_quoted(text: &str, json: &mut String) {
    json.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, ..b' ' | b'"' | b'\\')) {
        let (plain, special) = rest.split_at(at);
        json.push_str(plain);
        let mut special = special.chars();
        match special.next() {
            Some('\n') => json.push_str("\\n"),
            Some('\r') => json.push_str("\\r"),
            Some('\t') => json.push_str("\\t"),
            Some('\u{8}') => json.push_str("\\b"),
            Some('\u{c}') => json.push_str("\\f"),
            Some(control) if control < ' ' => {
                json.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => json.extend(Some('\\').into_iter().chain(other)),
        }
        rest = special.as_str();
    }
    json.push_str(rest);
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::super::scan::MAX_DEPTH;
    use super::*;

    fn rewritten(text: &str) -> Result<String, Failure> {
        Document::read(text).map(|document| document.to_json())
    }

    #[test]
    fn documents_keep_their_spelling() {
        for text in [
            "null",
            "[true,false]",
            "1.10",
            "-0",
            "-0.0",
            "1e5",
            "1E+400",
            "123456789012345678901234567890.000",
            r#"{"b":1,"a":[{},[],""]}"#,
            r#""\"\\\n\u0001ä𝄞""#,
        ] {
            assert_eq!(rewritten(text).as_deref(), Ok(text));
        }
        assert_eq!(rewritten("\u{feff}{\"a\": 1}").unwrap(), r#"{"a":1}"#);
        assert_eq!(rewritten(" { \"a\" : [ 1 , 2 ] } \n").unwrap(), r#"{"a":[1,2]}"#);
        assert_eq!(rewritten(r#""\u00e4\ud834\udd1e\/""#).unwrap(), "\"ä𝄞/\"");
    }

    #[test]
    fn strings_are_escaped_as_serde_escapes_them() {
        let all: String = (0..0x300).filter_map(char::from_u32).collect();
        for text in ["", "a", "\"", "a\\", "\n\n", "ä\u{1f}𝄞", &all] {
            assert_eq!(quoted(text), serde_json::Value::from(text).to_string());
        }
        for text in all.chars().map(String::from) {
            assert_eq!(quoted(&text), serde_json::Value::from(text.as_str()).to_string());
        }
    }

    #[test]
    fn invalid_json_is_reported_with_its_position() {
        for (text, words) in [
            ("", "line 1, column 1: the text is empty"),
            ("{", "line 1, column 2"),
            ("[1,\n 2,]", "line 2, column 4"),
            ("{\"a\" 1}", "line 1, column 6"),
            ("01", "line 1, column 2"),
            ("1.", "line 1, column 3"),
            ("NaN", "line 1, column 1"),
            ("nul", "line 1"),
            ("'a'", "line 1, column 1"),
            ("\"a", "line 1, column 3"),
            ("\"\t\"", "line 1"),
            ("\"\\ud800\"", "line 1"),
            ("\"\\ud800\\u0041\"", "line 1"),
            ("\"\\udc00\"", "line 1"),
            ("[NaN]", "line 1, column 2"),
            ("[-NaN]", "line 1, column 3"),
            ("Infinity", "line 1, column 1"),
            ("[1, -Infinity]", "line 1, column 6"),
            ("[1 // one\n]", "line 1, column 4"),
            ("{\"a\":1,\"b\":2,\"a\":3}", "line 1, column 14: the key \"a\" is repeated"),
            ("[{\"a\":{\"b\":1,\n\"b\":1}}]", "line 2, column 1: the key \"b\" is repeated"),
            ("{\"\\u0061\":1,\"a\":2}", "line 1, column 13: the key \"a\" is repeated"),
            ("1 2", "line 1, column 3"),
            ("[1] x", "line 1, column 5"),
        ] {
            let failure = Document::read(text).unwrap_err();
            assert_eq!(failure.code, Code::EPARSE);
            assert!(failure.reason.contains(words), "{text:?}: {}", failure.reason);
            assert_eq!(check(text), Err(failure), "{text:?}");
        }
    }

    #[test]
    fn text_that_is_not_json_is_a_string_and_json_that_is_refused_is_not() {
        let read = |text: &str| Document::read_or_text(text).map(|document| document.to_json());
        for (text, json) in [("NaN", "\"NaN\""), ("{a}", "\"{a}\""), ("1.10", "1.10")] {
            assert_eq!(read(text).as_deref(), Ok(json));
        }
        assert_eq!(read("{\"a\":1,\"a\":2}").unwrap_err().code, Code::EPARSE);
        assert_eq!(read(&"[".repeat(1_000)).unwrap_err().code, Code::EPARSE);
    }

    #[test]
    fn depth_and_size_are_limited() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(Document::read(&nested(MAX_DEPTH)).is_ok());
        let deep = Document::read(&nested(MAX_DEPTH + 1)).unwrap_err();
        assert!(
            deep.code == Code::EPARSE && deep.reason.contains("nested deeper than 128"),
            "{deep}"
        );
        assert_eq!(Document::read(&"[".repeat(1 << 20)).unwrap_err().code, Code::EPARSE);
        assert_eq!(Document::read(&"{\"a\":".repeat(1 << 20)).unwrap_err().code, Code::EPARSE);
        let wide = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(Document::read(&wide).unwrap_err().code, Code::ENOMEM);
        assert_eq!(check(&wide), Ok(()));
        assert!(check(&nested(MAX_DEPTH)).is_ok() && check(&nested(MAX_DEPTH + 1)).is_err());
    }
}

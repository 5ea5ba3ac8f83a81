//! A lenient parser for the JSON that models write. It accepts mistakes with only one possible
//! meaning and reports all others as errors.
//!
//! In addition to JSON, the parser accepts strings in single or typographic quotes, multi-line
//! strings, unquoted keys, trailing commas, missing or surplus closing brackets at the end,
//! Python's `True`, `False` and `None`, a fence around the value, and JSON within a JSON string.
//! Parsing takes time linear in the length of the text.

use serde_json::{Map, Number, Value};

/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;

/// The result of lenient JSON parsing.
pub(crate) struct Lenient {
    pub(crate) value: Value,
    /// End offset of the value, in bytes.
    pub(crate) end: usize,
    /// If true, closing brackets were missing at the end.
    pub(crate) is_open: bool,
}

/// Parses the arguments of a call. An empty string is parsed as an empty object.
pub(crate) fn arguments(text: &str) -> Result<Lenient, String> {
    let bare = without_fence(text.trim_matches('\u{feff}').trim());
    if bare.is_empty() {
        return Ok(Lenient { value: Value::Object(Map::new()), end: 0, is_open: false });
    }
    let read = match serde_json::from_str::<Value>(bare) {
        Ok(value) => Lenient { value, end: bare.len(), is_open: false },
        Err(_) => {
            let first = value_at(bare, 0)?;
            let rest = bare.get(first.end..).unwrap_or_default();
            // Some servers send an empty object before the real one.
            let is_empty = first.value.as_object().is_some_and(Map::is_empty)
                && rest.trim_start().starts_with('{');
            let (read, rest) = if is_empty {
                let second = value_at(rest, 0)?;
                let rest = rest.get(second.end..).unwrap_or_default();
                (second, rest)
            } else {
                (first, rest)
            };
            if let Some(more) =
                rest.chars().find(|c| !c.is_whitespace() && !matches!(c, '}' | ']' | ';'))
            {
                return Err(format!(
                    "unexpected `{more}` after the end of the JSON value; is a quote within a \
                     string not escaped?"
                ));
            }
            read
        }
    };
    // A string that contains JSON is replaced with the parsed object.
    match &read.value {
        Value::String(inner) if inner.trim_start().starts_with('{') => {
            let inner = value_at(inner.trim(), 0)?;
            Ok(Lenient {
                is_open: inner.is_open || read.is_open,
                value: inner.value,
                end: read.end,
            })
        }
        _ => Ok(read),
    }
}

/// An error at an offset of the text.
pub(crate) struct JsonError {
    pub(crate) message: String,
    /// The offset up to which the text was read, in bytes.
    pub(crate) at: usize,
}

/// Parses the value that begins at `at`. Ignores text after the value.
pub(crate) fn read_value(text: &str, at: usize) -> Result<Lenient, JsonError> {
    let mut reader = Reader { text, at, is_open: false };
    match reader.value(0) {
        Ok(value) => Ok(Lenient { value, end: reader.at, is_open: reader.is_open }),
        Err(message) => Err(JsonError { message, at: reader.at }),
    }
}

fn value_at(text: &str, at: usize) -> Result<Lenient, String> {
    read_value(text, at).map_err(|error| error.message)
}

fn without_fence(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```") else { return text };
    let inside = inside.split_once('\n').map_or(inside, |(_, inside)| inside).trim_end();
    inside.strip_suffix("```").unwrap_or(inside).trim()
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    is_open: bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_whitespace(&mut self) {
        while self.peek().is_some_and(|c| c.is_whitespace() || c == '\u{feff}') {
            self.next();
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err("the JSON value is nested too deep".to_owned());
        }
        self.skip_whitespace();
        match self.peek() {
            None => Err("the JSON text ends where a value is expected".to_owned()),
            Some('{') => self.object(depth),
            Some('[') => self.array(depth),
            Some(open) if closing_quote(open).is_some() => self.string().map(Value::String),
            Some(_) => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.next();
        let mut fields = Map::new();
        loop {
            self.skip_whitespace();
            match self.peek() {
                None => return Ok(self.unclosed(Value::Object(fields))),
                Some('}') => {
                    self.next();
                    return Ok(Value::Object(fields));
                }
                Some(',') => {
                    self.next();
                }
                Some(_) => {
                    let name = self.name()?;
                    self.skip_whitespace();
                    if !matches!(self.peek(), Some(':' | '=')) {
                        return Err(format!("missing `:` after the key {name:?}"));
                    }
                    self.next();
                    let value = self.value(depth + 1)?;
                    fields.insert(name, value);
                    self.separator('}')?;
                }
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.next();
        let mut items = Vec::new();
        loop {
            self.skip_whitespace();
            match self.peek() {
                None => return Ok(self.unclosed(Value::Array(items))),
                Some(']') => {
                    self.next();
                    return Ok(Value::Array(items));
                }
                Some(',') => {
                    self.next();
                }
                Some(_) => {
                    items.push(self.value(depth + 1)?);
                    self.separator(']')?;
                }
            }
        }
    }

    fn unclosed(&mut self, value: Value) -> Value {
        self.is_open = true;
        value
    }

    /// Checks that an item is followed by a comma, the closing bracket or the end of the text.
    fn separator(&mut self, close: char) -> Result<(), String> {
        self.skip_whitespace();
        match self.peek() {
            None => Ok(()),
            Some(c) if c == ',' || c == close => Ok(()),
            Some(c) => Err(format!(
                "missing `,` or `{close}` before `{c}`; is a quote within a string not escaped?"
            )),
        }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.peek() {
            Some(open) if closing_quote(open).is_some() => self.string(),
            Some(c) if c.is_alphabetic() || c == '_' => {
                let start = self.at;
                while self
                    .peek()
                    .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
                {
                    self.next();
                }
                Ok(self.text.get(start..self.at).unwrap_or_default().to_owned())
            }
            Some(c) => Err(format!("missing key in quotes before `{c}`")),
            None => Err("the JSON text ends where a key is expected".to_owned()),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let close = self.next().and_then(closing_quote).unwrap_or('"');
        let mut out = String::new();
        loop {
            match self.next() {
                None => return Err("a string is not closed".to_owned()),
                Some(c) if c == close => return Ok(out),
                Some('\\') => self.escape(&mut out)?,
                Some(c) => out.push(c),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), String> {
        match self.next() {
            None => return Err("a string is not closed".to_owned()),
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some(c @ ('"' | '\\' | '/' | '\'' | '`')) => out.push(c),
            Some('\n') => {}
            Some('u') => {
                let first = self.hex();
                let unit = match first {
                    Some(high @ 0xd800..0xdc00)
                        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) =>
                    {
                        self.at += 2;
                        let low = self.hex().filter(|low| (0xdc00..0xe000).contains(low));
                        low.map(|low| 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                    }
                    unit => unit,
                };
                out.push(unit.and_then(char::from_u32).unwrap_or('\u{fffd}'));
            }
            // A backslash before any other character is kept.
            Some(c) => out.extend(['\\', c]),
        }
        Ok(())
    }

    /// Parses four hex digits. Returns `None` if there are fewer.
    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let unit = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(unit)
    }

    fn word(&mut self) -> Result<Value, String> {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+' | '-'))
        {
            self.next();
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        match word {
            "true" | "True" | "TRUE" => Ok(Value::Bool(true)),
            "false" | "False" | "FALSE" => Ok(Value::Bool(false)),
            "null" | "None" | "undefined" | "NULL" => Ok(Value::Null),
            _ => match serde_json::from_str::<Number>(word.trim_start_matches('+')) {
                Ok(number) => Ok(Value::Number(number)),
                Err(_) if word.is_empty() => Err(format!(
                    "missing value before `{}`",
                    self.peek().map(String::from).unwrap_or_default()
                )),
                Err(_) => Err(format!("`{word}` is not a JSON value; put strings in quotes")),
            },
        }
    }
}

/// Returns the quote that closes a string opened by `open`, or `None` if `open` is not a quote.
fn closing_quote(open: char) -> Option<char> {
    match open {
        '"' | '\'' | '`' => Some(open),
        '“' | '„' => Some('”'),
        '‘' => Some('’'),
        _ => None,
    }
}

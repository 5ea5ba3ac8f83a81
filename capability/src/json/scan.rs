//! The scanner of JSON texts. It reads a text once, without recursion, and passes its parts to a
//! [`Sink`].

use std::borrow::Cow;

use wattle_rt::{Code, Failure, quote};

use crate::QUOTED;

/// Maximum nesting depth. A value that contains no other values has depth 1. The limit is low
/// because recursive functions walk values on a program's small stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// A receiver of the parts of a text, in their order.
pub(crate) trait Sink {
    /// Adds a value that contains no other values.
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<(), Failure>;

    /// Adds the key of the next value. Returns false if the object has the key already.
    fn key(&mut self, key: &Text<'_>) -> Result<bool, Failure>;

    /// Starts an object or a list.
    fn open(&mut self, is_object: bool) -> Result<(), Failure>;

    /// Ends the object or list that started last.
    fn close(&mut self) -> Result<(), Failure>;
}

/// A value that contains no other values.
pub(crate) enum Scalar<'t> {
    Null,
    Bool(bool),
    Number(Written<'t>),
    Text(Text<'t>),
}

/// A number as written.
pub(crate) struct Written<'t> {
    pub(crate) text: &'t str,
    /// The offset of the number in the scanned text, in bytes.
    pub(crate) at: usize,
    /// The number itself, if it is written as a whole number and fits.
    pub(crate) whole: Option<i64>,
}

/// A string without its quotes and escapes.
pub(crate) struct Text<'t> {
    pub(crate) text: Cow<'t, str>,
    /// The offset of the string's first character in the scanned text, in bytes.
    pub(crate) at: usize,
}

/// The reason why a text cannot be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The text is not JSON.
    Syntax { at: usize, why: &'static str },
    /// A value is nested deeper than [`MAX_DEPTH`].
    Depth { at: usize },
    /// An object repeats a key.
    Repeated { at: usize, key: String },
    /// The sink failed.
    Sink(Failure),
}

impl Fault {
    /// Returns the failure of reading the text.
    pub(crate) fn failure(self, text: &str) -> Failure {
        let (at, why) = match self {
            Fault::Sink(failure) => return failure,
            Fault::Depth { at } => (at, format!("values are nested deeper than {MAX_DEPTH}")),
            Fault::Repeated { at, key } => {
                (at, format!("the key {} is repeated in its object", quote(&key, QUOTED)))
            }
            // `each` over a JSON array that is a string visits its characters, the first of which
            // is a bracket.
            Fault::Syntax { at, why } if matches!(text.trim(), "[" | "{") => (
                at,
                format!(
                    "{why}; it is a single character: `each` over a string visits its characters, \
                     and `(arr.from_json DOC)` is an array of the items of a JSON array"
                ),
            ),
            Fault::Syntax { at, why } => (at, why.to_owned()),
        };
        let place = position(text, at);
        Failure::new(Code::EPARSE, format!("the text is not JSON: {place}: {why}"))
    }
}

/// The grammar of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    Json,
    /// JSON, and the literals of Python: `None`, `True`, `False` and strings in single quotes.
    JsonOrPython,
}

/// Scans a text, which must be exactly one value.
pub(crate) fn scan(text: &str, grammar: Grammar, sink: &mut impl Sink) -> Result<(), Fault> {
    let mut scanner = Scanner { text, at: 0, grammar, open: 0, depth: 0 };
    while {
        let mut is_complete = !scanner.value(sink)?;
        while is_complete && scanner.depth > 0 {
            is_complete = scanner.after_value(sink)?;
        }
        !is_complete
    } {}
    scanner.skip_space();
    match scanner.peek() {
        None => Ok(()),
        Some(_) => Err(scanner.bad("expected the end of the text")),
    }
}

/// Returns true if a text is a JSON number without surrounding whitespace.
pub(crate) fn is_number(text: &str) -> bool {
    let mut scanner = Scanner { text, at: 0, grammar: Grammar::Json, open: 0, depth: 0 };
    scanner.number().is_ok_and(|number| number.text.len() == text.len())
}

/// Converts a byte offset to a line and a column, such as `line 2, column 5`. Lines and columns are
/// counted from 1, and columns are counted in characters.
pub(crate) fn position(text: &str, at: usize) -> String {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}")
}

struct Scanner<'t> {
    text: &'t str,
    /// The offset of the next byte.
    at: usize,
    grammar: Grammar,
    /// A bit for each open list or object, the innermost last: 1 for an object.
    open: u128,
    /// The number of open lists and objects.
    depth: usize,
}

impl<'t> Scanner<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn bad(&self, why: &'static str) -> Fault {
        Fault::Syntax { at: self.at, why }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Skips a byte, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Scans the start of a value, or all of it. Returns true if another value must follow, because
    /// a list or an object has begun that is not empty.
    fn value(&mut self, sink: &mut impl Sink) -> Result<bool, Fault> {
        self.skip_space();
        if self.depth == MAX_DEPTH {
            return Err(Fault::Depth { at: self.at });
        }
        let scalar = match self.peek() {
            Some(open @ (b'{' | b'[')) => return self.open(open == b'{', sink),
            Some(quote) if self.is_quote(quote) => Scalar::Text(self.string(quote)?),
            Some(b'-' | b'0'..=b'9') => Scalar::Number(self.number()?),
            _ => self.literal()?,
        };
        sink.scalar(scalar).map_err(Fault::Sink)?;
        Ok(false)
    }

    fn open(&mut self, is_object: bool, sink: &mut impl Sink) -> Result<bool, Fault> {
        self.at += 1;
        sink.open(is_object).map_err(Fault::Sink)?;
        self.skip_space();
        if self.take(if is_object { b'}' } else { b']' }) {
            sink.close().map_err(Fault::Sink)?;
            return Ok(false);
        }
        self.open = self.open << 1 | u128::from(is_object);
        self.depth += 1;
        if is_object {
            self.key(sink)?;
        }
        Ok(true)
    }

    /// Scans what follows a value in a list or an object. Returns true if the list or object ends.
    fn after_value(&mut self, sink: &mut impl Sink) -> Result<bool, Fault> {
        self.skip_space();
        let is_object = self.open & 1 == 1;
        if self.take(b',') {
            if is_object {
                self.key(sink)?;
            }
            return Ok(false);
        }
        if self.take(if is_object { b'}' } else { b']' }) {
            self.open >>= 1;
            self.depth -= 1;
            sink.close().map_err(Fault::Sink)?;
            return Ok(true);
        }
        Err(self.bad(if is_object { "expected `,` or `}`" } else { "expected `,` or `]`" }))
    }

    fn key(&mut self, sink: &mut impl Sink) -> Result<(), Fault> {
        self.skip_space();
        let at = self.at;
        let Some(quote) = self.peek().filter(|quote| self.is_quote(*quote)) else {
            return Err(self.bad("expected a key in quotes"));
        };
        let key = self.string(quote)?;
        if !sink.key(&key).map_err(Fault::Sink)? {
            return Err(Fault::Repeated { at, key: key.text.into_owned() });
        }
        self.skip_space();
        if self.take(b':') { Ok(()) } else { Err(self.bad("expected `:`")) }
    }

    fn is_quote(&self, byte: u8) -> bool {
        byte == b'"' || byte == b'\'' && self.grammar == Grammar::JsonOrPython
    }

    fn literal(&mut self) -> Result<Scalar<'t>, Fault> {
        const JSON: [(&str, Option<bool>); 3] =
            [("null", None), ("true", Some(true)), ("false", Some(false))];
        const PYTHON: [(&str, Option<bool>); 3] =
            [("None", None), ("True", Some(true)), ("False", Some(false))];
        let rest = self.text.get(self.at..).unwrap_or_default();
        let more: &[_] = if self.grammar == Grammar::JsonOrPython { &PYTHON } else { &[] };
        for (word, value) in JSON.iter().chain(more) {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value.map_or(Scalar::Null, Scalar::Bool));
            }
        }
        Err(self.bad(match rest.chars().next() {
            None if self.text.trim().is_empty() => "the text is empty",
            Some('N' | 'I') if rest.starts_with("NaN") || rest.starts_with("Inf") => {
                "NaN and Infinity are not values"
            }
            _ => "expected a value",
        }))
    }

    fn skip_digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.bad("expected a digit")) }
    }

    fn number(&mut self) -> Result<Written<'t>, Fault> {
        let at = self.at;
        let is_negative = self.take(b'-');
        let digits = self.at;
        let mut size: u64 = 0;
        if !self.take(b'0') {
            while let Some(digit @ b'0'..=b'9') = self.peek() {
                size = size.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
                self.at += 1;
            }
            if self.at == digits {
                return Err(self.bad("expected a digit"));
            }
        }
        let count = self.at - digits;
        let mut is_whole = !(is_negative && size == 0 && count == 1);
        if self.take(b'.') {
            is_whole = false;
            self.skip_digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            is_whole = false;
            _ = self.take(b'+') || self.take(b'-');
            self.skip_digits()?;
        }
        let text = self.text.get(at..self.at).unwrap_or_default();
        let whole = match (is_whole, i64::try_from(size)) {
            (false, _) => None,
            (true, Ok(size)) if count <= 18 => Some(if is_negative { -size } else { size }),
            (true, _) => text.parse().ok(),
        };
        Ok(Written { text, at, whole })
    }

    fn string(&mut self, quote: u8) -> Result<Text<'t>, Fault> {
        self.at += 1;
        let at = self.at;
        self.at = plain_until(self.text.as_bytes(), at, quote);
        if self.peek() == Some(quote) {
            let text = Cow::Borrowed(self.text.get(at..self.at).unwrap_or_default());
            self.at += 1;
            return Ok(Text { text, at });
        }
        let mut text = String::new();
        let mut start = at;
        loop {
            text.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                Some(byte) if byte == quote => {
                    self.at += 1;
                    return Ok(Text { text: Cow::Owned(text), at });
                }
                Some(_) => return Err(self.bad("a control character in a string needs an escape")),
                None => return Err(self.bad("the string is not closed")),
            }
            start = self.at;
            self.at = plain_until(self.text.as_bytes(), start, quote);
        }
    }

    /// Scans the part of an escape after its backslash.
    fn escape(&mut self) -> Result<char, Fault> {
        let at = self.at;
        let Some(kind) = self.peek() else { return Err(self.bad("the string is not closed")) };
        self.at += 1;
        let python = self.grammar == Grammar::JsonOrPython;
        Ok(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => self.code_point(at)?,
            b'\'' if python => '\'',
            // A digit after it would make it an octal escape, which is another character.
            b'0' if python && !self.peek().is_some_and(|next| next.is_ascii_digit()) => '\0',
            b'a' if python => '\u{7}',
            b'v' if python => '\u{b}',
            b'x' if python => self.hex(2).and_then(char::from_u32).ok_or(bad_escape(at))?,
            b'U' if python => self.hex(8).and_then(char::from_u32).ok_or(bad_escape(at))?,
            _ => return Err(bad_escape(at)),
        })
    }

    /// Scans the digits of `\u`, and those of a second escape if the first is half of a pair.
    fn code_point(&mut self, at: usize) -> Result<char, Fault> {
        let first = self.hex(4).ok_or(bad_escape(at))?;
        let code = match first {
            0xd800..0xdc00 if self.take(b'\\') && self.take(b'u') => match self.hex(4) {
                Some(second @ 0xdc00..0xe000) => {
                    0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                }
                _ => first,
            },
            _ => first,
        };
        char::from_u32(code).ok_or(bad_escape(at))
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let text = self.text.get(self.at..self.at + digits)?;
        if !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        self.at += digits;
        u32::from_str_radix(text, 16).ok()
    }
}

fn bad_escape(at: usize) -> Fault {
    Fault::Syntax { at, why: "the escape in the string is invalid" }
}

/// Returns the offset of the first quote, backslash or control character from `at` on, or the
/// length of the text. Examines eight bytes at a time.
fn plain_until(text: &[u8], mut at: usize, quote: u8) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let quotes = ONES * u64::from(quote);
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*bytes);
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = zeros(word ^ quotes) | zeros(word ^ (ONES * u64::from(b'\\'))) | controls;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_plain = |byte: &u8| *byte >= b' ' && *byte != quote && *byte != b'\\';
    at + text.get(at..).unwrap_or_default().iter().take_while(|byte| is_plain(byte)).count()
}

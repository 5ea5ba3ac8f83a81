//! Reads the arguments of a call, first strictly and, if that fails, leniently.

use serde_json::{Map, Value};

use crate::fix::{self, FixText};

use super::{
    Note, header,
    quote::{self, Quote},
    text::{after_blanks, after_parenthesis, after_space, byte, char_at, fence, line_end, slice},
};

/// The arguments between the parentheses, and the end offset of the call.
pub(super) struct Arguments {
    pub(super) items: Vec<Item>,
    pub(super) end: usize,
    pub(super) note: Option<Note>,
}

/// An argument.
pub(super) struct Item {
    /// The name before `=` or `:`, as written.
    key: Option<String>,
    value: String,
    form: Form,
    /// The raw content of a quoted string. `None` for any other value.
    written: Option<Written>,
}

/// The raw content of a quoted string, with its opening quote.
struct Written {
    text: String,
    quote: Quote,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A string or a fence.
    Text,
    /// A JSON object or array.
    Json,
    /// An unquoted value, such as a number or a word.
    Bare,
}

/// Keys that models use for a program's name.
const NAME_KEYS: [&str; 3] = ["name", "program", "program_name"];
/// Keys that models use for the list of arguments.
const LIST_KEYS: [&str; 4] = ["args", "arguments", "argv", "params"];

/// Reads the arguments, from `at` to the closing parenthesis.
pub(super) fn read(text: &str, at: usize) -> Arguments {
    let strict = Parser { text, at, lenient: false, hopeless: false, note: None };
    let lenient = Parser { lenient: true, ..strict };
    strict.list().or_else(|| lenient.list()).unwrap_or(Arguments {
        items: Vec::new(),
        end: at,
        note: None,
    })
}

/// Reads arguments that are written as the fields of a JSON object. Returns `None` if there is no
/// such object, or if it lacks the field `wanted`.
pub(super) fn read_object(text: &str, at: usize, wanted: &str) -> Option<Arguments> {
    if byte(text, after_space(text, at)) != b'{' {
        return None;
    }
    let found = read(text, at);
    let fields: Map<String, Value> = serde_json::from_str(found.only()?).ok()?;
    let item = |(key, value): (String, Value)| {
        let is_json = value.is_array() || value.is_object();
        let form = if is_json { Form::Json } else { Form::Text };
        Item { key: Some(key), value: source(value), form, written: None }
    };
    let items = fields.contains_key(wanted).then(|| fields.into_iter().map(item).collect())?;
    Some(Arguments { items, ..found })
}

/// Returns the offset of the value after `key =` or `key:`. Returns `None` if there is no key, or
/// if the text after it may be something other than a value.
pub(super) fn after_key(text: &str, at: usize) -> Option<usize> {
    let word = text
        .as_bytes()
        .iter()
        .skip(at)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        .count();
    let sign = after_blanks(text, at + word);
    let starts_word = byte(text, at).is_ascii_alphabetic();
    if !starts_word || !matches!(byte(text, sign), b'=' | b':') || byte(text, sign + 1) == b'=' {
        return None;
    }
    let value = after_blanks(text, sign + 1);
    let found = byte(text, value);
    let is_value = quote::at_offset(text, value).is_some()
        || fence(text, value).is_some()
        || matches!(found, b'{' | b'[' | b'-')
        || found.is_ascii_digit()
        || ["true", "false", "null", "none"]
            .iter()
            .any(|word| super::text::starts(text, value, word));
    is_value.then_some(value)
}

impl Arguments {
    /// Returns true if an argument is an ellipsis, which indicates that the text only mentions a
    /// call.
    pub(super) fn have_ellipsis(&self) -> bool {
        self.items.iter().any(|item| item.form == Form::Bare && is_ellipsis(&item.value))
    }

    /// Returns the value if there is exactly one argument and reading it produced no note, and
    /// `None` otherwise.
    pub(super) fn only(&self) -> Option<&str> {
        match self.items.as_slice() {
            [item] if self.note.is_none() => Some(&item.value),
            _ => None,
        }
    }

    /// Removes and returns the program's name: the first argument, or, if that has a key, the
    /// argument with a key such as `name`.
    pub(super) fn take_name(&mut self) -> String {
        let named = self.items.iter().position(|item| item.has_key(&NAME_KEYS));
        let has_key = self.items.first().is_some_and(|item| item.key.is_some());
        let index = named.filter(|_| has_key).unwrap_or(0);
        if self.items.is_empty() { String::new() } else { self.items.remove(index).name() }
    }

    /// Removes and returns the argument with this key, or returns `None` if there is none.
    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        let index = self.items.iter().position(|item| item.has_key(&[key]))?;
        Some(self.items.remove(index).value)
    }

    /// Returns the values, in order. A list with a key such as `args` is flattened.
    pub(super) fn into_values(self) -> Vec<String> {
        self.items.into_iter().flat_map(Item::into_values).collect()
    }

    /// Returns the values, those given by position first, and the names of the others. A list with a
    /// key such as `args` is flattened, and an object with such a key is the arguments by name.
    pub(super) fn into_named_values(self) -> (Vec<String>, Vec<String>) {
        let (mut values, mut named) = (Vec::new(), Vec::new());
        for item in self.items {
            match item.key.clone().filter(|_| !item.is_list()) {
                None => values.extend(item.into_values()),
                Some(_) if item.is_object() => named.extend(item.into_fields()),
                Some(key) => named.push((key, item.value)),
            }
        }
        let (names, last): (Vec<String>, Vec<String>) = named.into_iter().unzip();
        values.extend(last);
        (values, names)
    }

    /// Returns the strings of a fix, in order.
    pub(super) fn into_fix_texts(self) -> Vec<FixText> {
        self.items.into_iter().flat_map(Item::into_fix_texts).collect()
    }
}

impl Item {
    /// Returns the value as a name, without surrounding whitespace and quotes.
    fn name(&self) -> String {
        self.value.trim().trim_matches(['"', '\'', '`']).trim().to_owned()
    }

    /// Returns true if the item has one of these keys, in any case.
    fn has_key(&self, keys: &[&str]) -> bool {
        let key = self.key.as_deref();
        key.is_some_and(|key| keys.iter().any(|known| key.eq_ignore_ascii_case(known)))
    }

    /// Returns true if the item is the list of arguments.
    fn is_list(&self) -> bool {
        self.form == Form::Json && self.value.starts_with('[') && self.has_key(&LIST_KEYS)
    }

    /// Returns true if the item is an object that has the arguments by name.
    fn is_object(&self) -> bool {
        self.form == Form::Json && self.value.starts_with('{') && self.has_key(&LIST_KEYS)
    }

    fn into_values(self) -> Vec<String> {
        match self.is_list().then(|| serde_json::from_str::<Vec<Value>>(&self.value)) {
            Some(Ok(list)) => list.into_iter().map(source).collect(),
            _ => vec![self.value],
        }
    }

    /// Returns the fields of an object that has the arguments by name.
    fn into_fields(self) -> Vec<(String, String)> {
        match serde_json::from_str::<Map<String, Value>>(&self.value) {
            Ok(fields) => fields.into_iter().map(|(key, value)| (key, source(value))).collect(),
            Err(_) => self.key.map(|key| (key, self.value)).into_iter().collect(),
        }
    }
}

impl Item {
    /// Returns the strings of a fix. A triple-quoted string is code: its escapes are left
    /// unresolved, as in a program. In any other string, escapes are resolved, as in any argument.
    /// The opposite form is stored as the alternative, because models confuse the two.
    fn into_fix_texts(self) -> Vec<FixText> {
        let json = (self.form == Form::Json)
            .then(|| fix::texts_of_json(serde_json::from_str(&self.value).ok()?))
            .flatten();
        match (json, self.written) {
            (Some(texts), _) => texts,
            (None, Some(Written { text, quote })) if quote.is_triple && !quote.is_raw => {
                let code = quote::code(block(&text), quote.mark);
                let resolved = quote::unescape(&code);
                vec![FixText::of(code, resolved)]
            }
            (None, Some(Written { text, quote })) if quote.is_triple => {
                vec![FixText::plain(block(&text))]
            }
            (None, Some(Written { text, .. })) => vec![FixText::of(self.value, text)],
            (None, None) => vec![FixText::plain(self.value)],
        }
    }
}

/// Removes the line breaks after the opening triple quotes and before the closing ones.
fn block(text: &str) -> &str {
    let Some(inside) = text.trim_start_matches([' ', '\t']).strip_prefix('\n') else {
        return text;
    };
    let end = inside.trim_end_matches([' ', '\t']);
    end.strip_suffix('\n').unwrap_or(inside)
}

fn source(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => spaced(&other),
    }
}

/// Formats a JSON value with a space after each colon and comma, as people write it.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), spaced(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Maximum length of a comment, in bytes.
const MAX_COMMENT: usize = 200;

/// Returns true if a `//` or `#` comment begins at `at` and ends with a line break.
pub(super) fn is_comment(text: &str, at: usize) -> bool {
    matches!((byte(text, at), byte(text, at + 1)), (b'/', b'/') | (b'#', b' '))
        && text.as_bytes().iter().skip(at).take(MAX_COMMENT).any(|&b| b == b'\n')
}

/// Returns true if `value` consists only of dots.
pub(super) fn is_ellipsis(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| matches!(c, '.' | '…'))
}

/// A strict or lenient parser of arguments.
#[derive(Clone, Copy)]
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) lenient: bool,
    /// If true, a lenient search for a closing quote has already reached the end of the text. The
    /// search is not repeated for later strings, so parsing takes linear time.
    pub(super) hopeless: bool,
    pub(super) note: Option<Note>,
}

impl<'a> Parser<'a> {
    /// Parses the arguments up to the closing parenthesis. A strict parser returns `None` for any
    /// irregularity.
    fn list(mut self) -> Option<Arguments> {
        let mut items = Vec::new();
        loop {
            if self.lenient && header::is_over(self.text, self.at) {
                break;
            }
            self.at = after_space(self.text, self.at);
            if self.lenient && header::closing_tag(self.text, self.at) > 0 {
                break;
            }
            if self.lenient && is_comment(self.text, self.at) {
                self.at = line_end(self.text, self.at);
                continue;
            }
            if let Some(end) = after_parenthesis(self.text, self.at) {
                return Some(Arguments { items, end, note: self.note });
            }
            match char_at(self.text, self.at) {
                Some(comma @ (',' | '，')) => self.at += comma.len_utf8(),
                Some(_) => {
                    items.push(self.item()?);
                    if !self.skip_separator()? {
                        break;
                    }
                }
                None if self.lenient => break,
                None => return None,
            }
        }
        self.note.get_or_insert(Note::UnclosedCall);
        Some(Arguments { items, end: self.at, note: self.note })
    }

    /// Skips the separator after a value. Returns false if the call ends without a closing
    /// parenthesis. Returns `None` if a strict parser finds anything other than a separator.
    fn skip_separator(&mut self) -> Option<bool> {
        let next = after_space(self.text, self.at);
        let found = char_at(self.text, next);
        if matches!(found, None | Some(',' | '，' | ')' | '）')) {
            self.at = next;
            return Some(true);
        }
        if !self.lenient {
            return None;
        }
        if is_comment(self.text, next) {
            self.at = line_end(self.text, next);
            return Some(true);
        }
        let begins_value = quote::at_offset(self.text, next).is_some()
            || fence(self.text, next).is_some()
            || matches!(found, Some('{' | '[' | '0'..='9'));
        if begins_value && !slice(self.text, self.at, next).contains('\n') {
            self.at = next;
            return Some(true);
        }
        // Skips to the next comma or closing parenthesis on the same line.
        let rest = slice(self.text, self.at, self.text.len());
        match rest.char_indices().find(|(_, found)| matches!(found, ',' | ')' | '\n')) {
            Some((offset, ',' | ')')) => self.at += offset,
            _ => return Some(false),
        }
        Some(true)
    }

    fn item(&mut self) -> Option<Item> {
        let mut key = None;
        if let Some(value) = after_key(self.text, self.at) {
            let name = slice(self.text, self.at, value).trim_end_matches([' ', '\t', '=', ':']);
            key = Some(name.to_owned());
            self.at = value;
        }
        let mut written = None;
        let (value, form) = if let Some((mark, length)) = fence(self.text, self.at) {
            (self.fenced(mark, length)?, Form::Text)
        } else if let Some(quote) = quote::at_offset(self.text, self.at) {
            let raw = self.string(quote)?;
            written = Some(Written { text: raw.to_owned(), quote });
            (quote::content(raw, quote), Form::Text)
        } else if matches!(byte(self.text, self.at), b'{' | b'[') {
            (self.json()?, Form::Json)
        } else {
            (self.bare()?, Form::Bare)
        };
        Some(Item { key, value, form, written })
    }
}

//! Reads the arguments of a call: first by the letter, and only where that fails with tolerance.

use serde_json::{Map, Value};

use super::{
    Note, header, quote,
    text::{after_blanks, after_parenthesis, after_space, byte, char_at, cut, fence, line_end},
};

/// What stands between the parentheses, and where the call ends.
pub(super) struct Arguments {
    pub(super) items: Vec<Item>,
    pub(super) end: usize,
    pub(super) note: Option<Note>,
}

/// One argument.
pub(super) struct Item {
    /// The name before `=` or `:`, in lower case.
    key: Option<String>,
    value: String,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A string or a fence.
    Text,
    /// A JSON object or array.
    Json,
    /// Anything else.
    Bare,
}

/// Names before a value that mean a program's name, and those that mean the list of arguments.
const NAME_KEYS: [&str; 3] = ["name", "program", "program_name"];
const LIST_KEYS: [&str; 4] = ["args", "arguments", "argv", "params"];

/// Reads the arguments that begin at `at`, up to the closing parenthesis.
pub(super) fn read(text: &str, at: usize) -> Arguments {
    let strict = Parser { text, at, lenient: false, hopeless: false, note: None };
    let lenient = Parser { lenient: true, ..strict };
    strict.list().or_else(|| lenient.list()).unwrap_or(Arguments { items: Vec::new(), end: at, note: None })
}

/// Reads arguments that stand as the fields of one JSON object, of which `wanted` must be one.
pub(super) fn read_object(text: &str, at: usize, wanted: &str) -> Option<Arguments> {
    if byte(text, after_space(text, at)) != b'{' {
        return None;
    }
    let found = read(text, at);
    let fields: Map<String, Value> = serde_json::from_str(found.only()?).ok()?;
    let item = |(key, value): (String, Value)| {
        let form = if value.is_array() { Form::Json } else { Form::Text };
        Item { key: Some(key.to_ascii_lowercase()), value: source(value), form }
    };
    let items = fields.contains_key(wanted).then(|| fields.into_iter().map(item).collect())?;
    Some(Arguments { items, ..found })
}

/// Gives where a value's name ends and the value begins: after `key =` before something that can only be a value.
pub(super) fn after_key(text: &str, at: usize) -> Option<usize> {
    let word = text.as_bytes().iter().skip(at).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
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
        || ["true", "false", "null", "none"].iter().any(|word| super::text::starts(text, value, word));
    is_value.then_some(value)
}

impl Arguments {
    /// Tells whether an ellipsis stands for an argument, as in a mere mention of a call.
    pub(super) fn have_ellipsis(&self) -> bool {
        self.items.iter().any(|item| item.form == Form::Bare && is_ellipsis(&item.value))
    }

    /// Gives the value where there is exactly one and nothing was wrong.
    pub(super) fn only(&self) -> Option<&str> {
        match self.items.as_slice() {
            [item] if self.note.is_none() => Some(&item.value),
            _ => None,
        }
    }

    /// Takes out the program's name: what is named so, or else the first argument.
    pub(super) fn take_name(&mut self) -> String {
        let named = |item: &Item| item.key.as_deref().is_some_and(|key| NAME_KEYS.contains(&key));
        let place = self.items.iter().position(named).unwrap_or(0);
        if self.items.is_empty() { String::new() } else { self.items.remove(place).name() }
    }

    /// Takes out the argument of that name.
    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        let place = self.items.iter().position(|item| item.key.as_deref() == Some(key))?;
        Some(self.items.remove(place).value)
    }

    /// Gives the values in order; a list that is named as the list of arguments is spread out.
    pub(super) fn into_values(self) -> Vec<String> {
        self.items.into_iter().flat_map(Item::into_values).collect()
    }
}

impl Item {
    /// Gives the value as a name: without blanks, or quotes that have lost their partner.
    fn name(&self) -> String {
        self.value.trim().trim_matches(['"', '\'', '`']).trim().to_owned()
    }

    fn into_values(self) -> Vec<String> {
        let is_list = self.form == Form::Json && self.key.as_deref().is_some_and(|key| LIST_KEYS.contains(&key));
        match is_list.then(|| serde_json::from_str::<Vec<Value>>(&self.value)) {
            Some(Ok(list)) => list.into_iter().map(source).collect(),
            _ => vec![self.value],
        }
    }
}

fn source(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => spaced(&other),
    }
}

/// Writes a JSON value with a blank after each colon and comma, as it is commonly written by hand.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), spaced(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// How long a comment may be.
const COMMENT: usize = 200;

/// Tells whether a comment of another language begins at `at`, with a line after it.
pub(super) fn is_comment(text: &str, at: usize) -> bool {
    matches!((byte(text, at), byte(text, at + 1)), (b'/', b'/') | (b'#', b' '))
        && text.as_bytes().iter().skip(at).take(COMMENT).any(|&b| b == b'\n')
}

/// Tells whether `value` is nothing but dots.
pub(super) fn is_ellipsis(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| matches!(c, '.' | '…'))
}

/// Where the reading of arguments is, and how tolerant it is.
#[derive(Clone, Copy)]
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) lenient: bool,
    /// Whether a tolerant search for a closing quote ran to the text's end: no string after it is searched so again.
    pub(super) hopeless: bool,
    pub(super) note: Option<Note>,
}

impl Parser<'_> {
    /// Reads up to the closing parenthesis; by the letter gives `None` for anything unusual.
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
                    if !self.goes_on()? {
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

    /// Moves over what separates a value from the next; false where the call ends without a parenthesis.
    fn goes_on(&mut self) -> Option<bool> {
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
        if begins_value && !cut(self.text, self.at, next).contains('\n') {
            self.at = next;
            return Some(true);
        }
        // Junk on the same line is passed over.
        let rest = cut(self.text, self.at, self.text.len());
        match rest.char_indices().find(|(_, found)| matches!(found, ',' | ')' | '\n')) {
            Some((offset, ',' | ')')) => self.at += offset,
            _ => return Some(false),
        }
        Some(true)
    }

    fn item(&mut self) -> Option<Item> {
        let mut key = None;
        if let Some(value) = after_key(self.text, self.at) {
            let name = cut(self.text, self.at, value).trim_end_matches([' ', '\t', '=', ':']);
            key = Some(name.to_ascii_lowercase());
            self.at = value;
        }
        let (value, form) = if let Some((mark, length)) = fence(self.text, self.at) {
            (self.fenced(mark, length)?, Form::Text)
        } else if let Some(quote) = quote::at_offset(self.text, self.at) {
            (self.string(quote)?, Form::Text)
        } else if matches!(byte(self.text, self.at), b'{' | b'[') {
            (self.json()?, Form::Json)
        } else {
            (self.bare()?, Form::Bare)
        };
        Some(Item { key, value, form })
    }
}

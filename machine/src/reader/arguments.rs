//! Reads the arguments of a call: first by the letter, and only where that fails with tolerance.

use serde_json::Value;

use super::{
    Note, header,
    quote::{self, Quote},
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

    /// Gives how many arguments there are.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Takes out the program's name: what is named so, or else the first argument.
    pub(super) fn take_name(&mut self) -> String {
        let named = |item: &Item| item.key.as_deref().is_some_and(|key| NAME_KEYS.contains(&key));
        let place = self.items.iter().position(named).unwrap_or(0);
        if self.items.is_empty() { String::new() } else { self.items.remove(place).value.trim().to_owned() }
    }

    /// Gives the values in order; a list that is named as the list of arguments is spread out.
    pub(super) fn into_values(self) -> Vec<String> {
        self.items.into_iter().flat_map(Item::into_values).collect()
    }
}

impl Item {
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

/// Tells whether `value` is nothing but dots.
pub(super) fn is_ellipsis(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| matches!(c, '.' | '…'))
}

#[derive(Clone, Copy)]
struct Parser<'a> {
    text: &'a str,
    at: usize,
    lenient: bool,
    /// Whether a tolerant search for a closing quote ran to the text's end: no string after it is searched so again.
    hopeless: bool,
    note: Option<Note>,
}

impl Parser<'_> {
    /// Reads up to the closing parenthesis; by the letter gives `None` for anything unusual.
    fn list(mut self) -> Option<Arguments> {
        let mut items = Vec::new();
        loop {
            self.at = after_space(self.text, self.at);
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
        let begins_value = quote::at_offset(self.text, next).is_some()
            || fence(self.text, next).is_some()
            || matches!(found, Some('{' | '[' | '0'..='9'));
        if begins_value && !cut(self.text, self.at, next).contains('\n') {
            self.at = next;
            return Some(true);
        }
        let rest_of_line = cut(self.text, self.at, line_end(self.text, self.at));
        match rest_of_line.find([',', ')']) {
            Some(junk) => self.at += junk,
            None => return Some(false),
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

    fn string(&mut self, quote: Quote) -> Option<String> {
        let (end, after) = if !self.lenient {
            quote::close(self.text, quote)?
        } else if quote.is_triple {
            self.lenient_triple(quote)
        } else {
            self.lenient_close(quote)
        };
        self.at = after;
        Some(quote::content(cut(self.text, quote.inside, end), quote))
    }

    fn lenient_triple(&mut self, quote: Quote) -> (usize, usize) {
        if !self.hopeless {
            let ends_value = |(_, after): &(usize, usize)| {
                matches!(char_at(self.text, after_space(self.text, *after)), None | Some(',' | ')' | '）'))
            };
            if let Some(found) = quote::triple_runs(self.text, quote).find(ends_value) {
                return found;
            }
            self.hopeless = true;
        }
        quote::close(self.text, quote).unwrap_or_else(|| self.unclosed(quote, self.text.len()))
    }

    /// Finds the closing quote of a string in which quotes may stand unescaped: one before a comma or the closing
    /// parenthesis, outside parentheses that the string itself opened.
    fn lenient_close(&mut self, quote: Quote) -> (usize, usize) {
        if self.hopeless {
            return quote::close(self.text, quote).unwrap_or_else(|| self.unclosed(quote, self.text.len()));
        }
        let closers = quote::lenient_closers(quote.mark);
        let (mut depth, mut shallow, mut line, mut last) = (0_i64, None, None, '\0');
        let mut chars = cut(self.text, quote.inside, self.text.len()).char_indices();
        while let Some((offset, found)) = chars.next() {
            let end = quote.inside + offset;
            match found {
                '\\' if !quote.is_raw => {
                    chars.next();
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                '\n' if depth == -1 && last == ')' && line.is_none() => {
                    line = Some(end);
                    if header::is_boundary(self.text, after_space(self.text, end)) {
                        return self.unclosed(quote, end);
                    }
                }
                found if closers.contains(&found) && self.ends_value(end + found.len_utf8()) => {
                    let candidate = (end, end + found.len_utf8());
                    if depth <= 0 {
                        return candidate;
                    }
                    shallow = shallow.or(Some(candidate));
                }
                _ => {}
            }
            if !matches!(found, ' ' | '\t') {
                last = found;
            }
        }
        self.hopeless = true;
        let first = shallow.or_else(|| quote::close(self.text, quote));
        match (first, line) {
            (Some(first), Some(line)) if line < first.0 => self.unclosed(quote, line),
            (Some(first), _) => first,
            (None, line) => self.unclosed(quote, line.unwrap_or(self.text.len())),
        }
    }

    /// Tells whether a value can end at `at`: before a comma, the closing parenthesis, the text's end or another string.
    fn ends_value(&self, at: usize) -> bool {
        let next = after_space(self.text, at);
        match char_at(self.text, next) {
            None | Some(',' | '，' | ')' | '）') => true,
            Some(_) => next > at && quote::at_offset(self.text, next).is_some(),
        }
    }

    /// Ends a string without a closing quote before `end`, without the parenthesis that was meant to end the call.
    fn unclosed(&mut self, quote: Quote, end: usize) -> (usize, usize) {
        self.note = Some(Note::UnclosedString);
        let kept = without_tail(cut(self.text, quote.inside, end));
        let inside = quote.inside + kept.len();
        // The parenthesis, where there is one, is left for the list to end at.
        let rest = cut(self.text, inside, end);
        (inside, rest.find(')').map_or(end, |offset| inside + offset))
    }

    fn fenced(&mut self, mark: u8, length: usize) -> Option<String> {
        let line = line_end(self.text, self.at);
        let marks = char::from(mark).to_string().repeat(length);
        let inside = (self.at + length..=line).contains(&line).then_some(line + 1)?;
        let mut at = line;
        while at < self.text.len() {
            let start = after_blanks(self.text, at + 1);
            if cut(self.text, start, self.text.len()).starts_with(&marks)
                && !byte(self.text, start + length).is_ascii_alphanumeric()
            {
                let content = cut(self.text, inside, at);
                self.at = start + super::text::run(self.text, start, mark);
                return Some(content.to_owned());
            }
            at = line_end(self.text, at + 1);
        }
        if !self.lenient {
            return None;
        }
        self.note = Some(Note::UnclosedFence);
        let content = without_tail(cut(self.text, inside, self.text.len()));
        self.at = self.text.len();
        Some(content.to_owned())
    }

    /// Reads a JSON object or array, or what another language writes so.
    fn json(&mut self) -> Option<String> {
        let start = self.at;
        let (mut depth, mut parentheses, mut string, mut before) = (0_usize, 0_usize, 0_u8, b'{');
        let bytes = self.text.as_bytes();
        while let Some(&found) = bytes.get(self.at) {
            match found {
                b'\\' if string != 0 => self.at += 1,
                b'"' | b'\'' if string == found => string = 0,
                _ if string != 0 => {}
                b'"' => string = found,
                b'\'' if matches!(before, b'{' | b'[' | b'(' | b',' | b':') => string = found,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'(' => parentheses += 1,
                b')' if parentheses == 0 => break,
                b')' => parentheses -= 1,
                _ => {}
            }
            if !found.is_ascii_whitespace() {
                before = found;
            }
            self.at = (self.at + 1).min(bytes.len());
            if depth == 0 && string == 0 {
                return Some(cut(self.text, start, self.at).to_owned());
            }
        }
        self.lenient.then(|| cut(self.text, start, self.at).trim_end().to_owned())
    }

    /// Reads a value without quotes: up to a comma or parenthesis that is not its own, or the line's end.
    fn bare(&mut self) -> Option<String> {
        let start = self.at;
        let mut depth = 0_usize;
        for (offset, found) in cut(self.text, start, self.text.len()).char_indices() {
            self.at = start + offset;
            match found {
                '\n' => break,
                ',' | ')' | '）' if depth == 0 && offset > 0 => break,
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                '"' | '`' if !self.lenient => return None,
                _ => {}
            }
            self.at += found.len_utf8();
        }
        Some(cut(self.text, start, self.at).trim_end().to_owned())
    }
}

/// Gives the content of a string or fence that ran to the end of its text: without a fence line, closing tags and the
/// parenthesis that were meant to stand after it.
pub(super) fn without_tail(text: &str) -> &str {
    let mut text = text.trim_end();
    loop {
        let last = text.rfind('\n').map_or(0, |at| at + 1);
        let line = cut(text, last, text.len()).trim_start();
        let is_fence = line.len() >= 3 && (line.bytes().all(|b| b == b'`') || line.bytes().all(|b| b == b'~'));
        let is_tag = line.starts_with("</") && line.find('>') == Some(line.len() - 1);
        if !(is_fence || is_tag) || last == 0 {
            break;
        }
        text = cut(text, 0, last).trim_end();
    }
    let opened = text.bytes().filter(|&b| b == b'(').count();
    let closed = text.bytes().filter(|&b| b == b')').count();
    if closed > opened { text.strip_suffix(')').unwrap_or(text).trim_end() } else { text }
}

//! The current record and its fields.

use std::rc::Rc;

use super::value::Value;
use crate::pattern::Posix;

/// For each field, the number of characters to skip before it, and its width in characters. A width
/// of `None` means the rest of the record.
pub(crate) type Widths = Rc<[(usize, Option<usize>)]>;

/// The rule that splits a record into fields.
#[derive(Clone)]
pub(crate) enum Splitter {
    /// Splitting at runs of spaces, tabs and newlines. Leading and trailing whitespace is ignored.
    Whitespace,
    Letter(char),
    /// Splitting after each character.
    Letters,
    Regex(Rc<Posix>),
    /// Splitting into the substrings that match the pattern.
    Content(Rc<Posix>),
    /// Splitting into fields of fixed widths.
    Widths(Widths),
}

impl Splitter {
    /// Splits a text into fields. Calls `part` with each field and the separator after it. If
    /// `lines` is true (paragraph mode), a newline is also a separator.
    pub(crate) fn split(&self, text: &str, lines: bool, mut part: impl FnMut(&str, &str)) {
        if text.is_empty() {
            return;
        }
        match self {
            Splitter::Whitespace => by_whitespace(text, part),
            Splitter::Letter(letter) => {
                let mut rest = text;
                while let Some(at) = rest.find(|next| next == *letter || (lines && next == '\n')) {
                    let behind = rest.get(at..).unwrap_or_default();
                    let length = behind.chars().next().map_or(0, char::len_utf8);
                    let (separator, next) = behind.split_at_checked(length).unwrap_or_default();
                    part(rest.get(..at).unwrap_or_default(), separator);
                    rest = next;
                }
                part(rest, "");
            }
            Splitter::Letters => {
                let mut buffer = [0; 4];
                text.chars().for_each(|letter| part(letter.encode_utf8(&mut buffer), ""));
            }
            Splitter::Regex(regex) => {
                let mut split = |text: &str, end: &str| {
                    let mut start = 0;
                    regex.each(text.as_bytes(), |found| {
                        let whole = found.whole();
                        if !whole.is_empty() {
                            let field = text.get(start..whole.start).unwrap_or_default();
                            start = whole.end;
                            part(field, text.get(whole).unwrap_or_default());
                        }
                        true
                    });
                    part(text.get(start..).unwrap_or_default(), end);
                };
                if lines {
                    text.split('\n').for_each(|line| split(line, "\n"));
                } else {
                    split(text, "");
                }
            }
            Splitter::Content(regex) => regex.each(text.as_bytes(), |found| {
                part(text.get(found.whole()).unwrap_or_default(), "");
                true
            }),
            Splitter::Widths(widths) => {
                let mut rest = text;
                for (skipped, width) in widths.iter() {
                    rest = rest.get(offset(rest, *skipped)..).unwrap_or_default();
                    if rest.is_empty() {
                        return;
                    }
                    let end = width.map_or(rest.len(), |width| offset(rest, width));
                    let (field, behind) = rest.split_at_checked(end).unwrap_or_default();
                    part(field, "");
                    rest = behind;
                }
            }
        }
    }
}

/// Returns the byte offset of the character at index `letters`, or the length of the text.
fn offset(text: &str, letters: usize) -> usize {
    text.char_indices().nth(letters).map_or(text.len(), |(at, _)| at)
}

/// Splits at runs of spaces, tabs and newlines.
fn by_whitespace(text: &str, mut part: impl FnMut(&str, &str)) {
    let is_space = |letter: char| matches!(letter, ' ' | '\t' | '\n');
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = rest.find(is_space).unwrap_or(rest.len());
        let (field, behind) = rest.split_at_checked(end).unwrap_or_default();
        rest = behind.trim_start_matches(is_space);
        part(field, behind.get(..behind.len() - rest.len()).unwrap_or_default());
    }
}

/// The current record: its text and its fields. The text is split when a field is first used.
#[derive(Default)]
pub(crate) struct Record {
    text: String,
    fields: Vec<Value>,
    split: bool,
    /// If true, a field has changed since the text was built.
    stale: bool,
    whole: Option<Value>,
}

/// The maximum number of fields in a record.
const MOST: usize = 1 << 20;

impl Record {
    pub(crate) fn set(&mut self, text: &str) {
        self.text.clear();
        self.text.push_str(text);
        self.fields.clear();
        self.split = false;
        self.stale = false;
        self.whole = None;
    }

    /// Returns the record's text. If a field has changed, joins the fields with `between`.
    pub(crate) fn text(&mut self, between: &str, conversion: &str) -> &str {
        if self.stale {
            self.text.clear();
            for (n, field) in self.fields.iter().enumerate() {
                if n > 0 {
                    self.text.push_str(between);
                }
                match field {
                    Value::Text(text) | Value::Either(text, _) => self.text.push_str(text),
                    other => self.text.push_str(&other.to_text(conversion)),
                }
            }
            self.stale = false;
            self.whole = None;
        }
        &self.text
    }

    /// Returns the whole record (`$0`) as a value.
    pub(crate) fn whole(&mut self, between: &str, conversion: &str) -> Value {
        self.text(between, conversion);
        self.whole.get_or_insert_with(|| Value::outside(self.text.as_str())).clone()
    }

    pub(crate) fn divide(&mut self, splitter: &Splitter, lines: bool) {
        if !self.split {
            let fields = &mut self.fields;
            fields.clear();
            splitter.split(&self.text, lines, |field, _| fields.push(Value::outside(field)));
            self.split = true;
        }
    }

    pub(crate) fn is_divided(&self) -> bool {
        self.split
    }

    pub(crate) fn count(&self) -> usize {
        self.fields.len()
    }

    /// Returns field `number`, counted from 1.
    pub(crate) fn field(&self, number: usize) -> Value {
        number.checked_sub(1).and_then(|at| self.fields.get(at)).cloned().unwrap_or_default()
    }

    /// Replaces field `number`, counted from 1. The record must have been split.
    pub(crate) fn change(&mut self, number: usize, value: Value) -> Result<(), String> {
        if number > MOST {
            return Err(format!("there can't be a field {number}"));
        }
        if number > self.fields.len() {
            self.fields.resize(number, Value::Nothing);
        }
        if let Some(field) = number.checked_sub(1).and_then(|at| self.fields.get_mut(at)) {
            *field = value;
        }
        self.stale = true;
        Ok(())
    }

    /// Sets the number of fields.
    pub(crate) fn resize(&mut self, count: usize) -> Result<(), String> {
        if count > MOST {
            return Err(format!("there can't be {count} fields"));
        }
        self.fields.resize(count, Value::Nothing);
        self.stale = true;
        Ok(())
    }
}

//! The current record and its fields.

use std::rc::Rc;

use regex::Regex;

use super::value::Value;

/// The rule that splits a record into fields.
#[derive(Clone)]
pub(crate) enum Splitter {
    /// At blanks. Leading and trailing blanks are ignored.
    Blanks,
    Letter(char),
    /// After each character.
    Letters,
    Regex(Rc<Regex>),
}

impl Splitter {
    /// Splits a text into fields. If `lines` is true (paragraph mode), a newline also separates
    /// fields.
    pub(crate) fn split(&self, text: &str, lines: bool, mut part: impl FnMut(&str)) {
        if text.is_empty() {
            return;
        }
        match self {
            Splitter::Blanks => {
                text.split([' ', '\t', '\n']).filter(|field| !field.is_empty()).for_each(part)
            }
            Splitter::Letter(letter) if lines => text.split([*letter, '\n']).for_each(part),
            Splitter::Letter(letter) => text.split(*letter).for_each(part),
            Splitter::Letters => {
                let mut buffer = [0; 4];
                text.chars().for_each(|letter| part(letter.encode_utf8(&mut buffer)));
            }
            Splitter::Regex(regex) => {
                let mut split = |text: &str| {
                    let mut start = 0;
                    for found in regex.find_iter(text).filter(|found| !found.is_empty()) {
                        part(text.get(start..found.start()).unwrap_or_default());
                        start = found.end();
                    }
                    part(text.get(start..).unwrap_or_default());
                };
                if lines { text.split('\n').for_each(&mut split) } else { split(text) }
            }
        }
    }
}

/// The record: its text, and its fields, which are split when they are first used.
#[derive(Default)]
pub(crate) struct Record {
    text: String,
    fields: Vec<Value>,
    split: bool,
    /// If true, a field has changed since the text was built.
    stale: bool,
    whole: Option<Value>,
}

/// The maximum number of fields of a record.
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

    /// Returns the text. Joins the fields with `between` if one of them has changed.
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

    /// Returns the record as a value.
    pub(crate) fn whole(&mut self, between: &str, conversion: &str) -> Value {
        self.text(between, conversion);
        self.whole.get_or_insert_with(|| Value::outside(self.text.as_str())).clone()
    }

    pub(crate) fn divide(&mut self, splitter: &Splitter, lines: bool) {
        if !self.split {
            let fields = &mut self.fields;
            fields.clear();
            splitter.split(&self.text, lines, |field| fields.push(Value::outside(field)));
            self.split = true;
        }
    }

    pub(crate) fn is_divided(&self) -> bool {
        self.split
    }

    pub(crate) fn count(&self) -> usize {
        self.fields.len()
    }

    /// Returns a field; the first is 1.
    pub(crate) fn field(&self, number: usize) -> Value {
        number.checked_sub(1).and_then(|at| self.fields.get(at)).cloned().unwrap_or_default()
    }

    /// Changes a field; the first is 1. The record must have been split.
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

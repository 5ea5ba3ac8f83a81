//! Values as text.

use wattle_rt::{Code, Failure};

use super::arena::{Values, View};
use super::number::float_text;
use crate::json::document::write_quoted;
use crate::json::scan::MAX_DEPTH;
use crate::{MAX_TEXT, too_large};

/// Returns the failure for values that are nested too deeply.
pub(super) fn too_deep() -> Failure {
    let why = format!(
        "values are nested deeper than {MAX_DEPTH}: a list or an object may contain itself"
    );
    Failure::new(Code::EBOUND, why)
}

impl Values {
    /// Returns a value as text: a string itself, anything else as JSON.
    pub(super) fn plain(&self, handle: i32) -> Result<String, Failure> {
        match self.view(handle)? {
            View::Text(text) => Ok(text.to_owned()),
            _ => self.json(handle, None),
        }
    }

    /// Returns a value as JSON: on one line without spaces, or with `indent` spaces a level.
    pub(super) fn json(&self, handle: i32, indent: Option<usize>) -> Result<String, Failure> {
        let mut writer = Writer { values: self, json: String::new(), indent };
        writer.write(handle, 1)?;
        Ok(writer.json)
    }
}

struct Writer<'v> {
    values: &'v Values,
    json: String,
    indent: Option<usize>,
}

impl Writer<'_> {
    fn write(&mut self, handle: i32, depth: usize) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match self.values.view(handle)? {
            View::Null => self.json.push_str("null"),
            View::Bool(yes) => self.json.push_str(if yes { "true" } else { "false" }),
            View::Whole(n) => self.json.push_str(&n.to_string()),
            View::Float(x) => self.json.push_str(&float_text(x)),
            View::Decimal(text) => self.json.push_str(text),
            View::Big(n) => self.json.push_str(&n.to_string()),
            View::Text(text) => write_quoted(text, &mut self.json),
            View::List(items) => {
                self.json.push('[');
                for (at, item) in items.iter().enumerate() {
                    self.separate(at, depth);
                    self.write(*item, depth + 1)?;
                }
                self.end(items.is_empty(), depth, ']');
            }
            View::Object(entries) => {
                self.json.push('{');
                for (at, entry) in entries.iter().enumerate() {
                    self.separate(at, depth);
                    write_quoted(self.values.key(entry), &mut self.json);
                    self.json.push_str(if self.indent.is_some() { ": " } else { ":" });
                    self.write(entry.value, depth + 1)?;
                }
                self.end(entries.is_empty(), depth, '}');
            }
        }
        if self.json.len() > MAX_TEXT { Err(too_large()) } else { Ok(()) }
    }

    fn separate(&mut self, at: usize, depth: usize) {
        if at > 0 {
            self.json.push(',');
        }
        self.break_line(depth);
    }

    fn end(&mut self, is_empty: bool, depth: usize, bracket: char) {
        if !is_empty {
            self.break_line(depth - 1);
        }
        self.json.push(bracket);
    }

    fn break_line(&mut self, level: usize) {
        if let Some(indent) = self.indent {
            self.json.push('\n');
            self.json.extend(std::iter::repeat_n(' ', indent * level));
        }
    }
}

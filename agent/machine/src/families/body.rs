//! Reads the content of a call: its name and its arguments.

use serde_json::{Map, Value};

use super::pattern::{Cursor, Stop};
use super::table::{Arguments, CALLS, CallForm, Content};
use crate::dialect::is_known;
use crate::function::ProgramFunction;
use crate::json;
use crate::message::FunctionCall;

/// The calls of one form.
#[derive(Debug)]
pub(super) struct FoundCalls {
    pub(super) calls: Vec<FunctionCall>,
    /// If true, nothing is missing at the end.
    pub(super) is_complete: bool,
}

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 128;

/// Maximum nesting depth of arguments that are not JSON.
const MAX_DEPTH: usize = 32;

/// The mark of Mistral that an id follows.
const ID_MARK: &str = "[CALL_ID]";

/// A reader of one call form. The cursor is at the furthest position that was looked at, even if the
/// form does not fit, so that the effort of each attempt is known.
pub(super) struct Body<'t, 'p> {
    pub(super) cursor: Cursor<'t>,
    pub(super) form: &'static CallForm,
    pub(super) programs: &'p [ProgramFunction],
}

impl<'t, 'p> Body<'t, 'p> {
    /// Reads the calls that follow an opening, and their closings. `opening` is the start of the
    /// opening.
    pub(super) fn read(&mut self, opening: usize) -> Result<FoundCalls, Stop> {
        let mut found = self.content(opening)?;
        if !self.form.is_last {
            // The calls end at the last closing, not at the space after it.
            found.is_complete |= self.closings()?;
            return Ok(found);
        }
        self.closings()?;
        self.cursor.skip(&['}', ']', ';'])?;
        let mut next = self.cursor;
        let in_fence = self.form.openings.iter().any(|opening| opening.starts_with("```"));
        // Another call, or an invented result, may follow a fence.
        let is_over = next.at >= next.text.len()
            || in_fence && (next.take("```tool_output")? || next.take_any(self.form.openings)?);
        let is_admitted = |call: &FunctionCall| self.admits(&call.name);
        if is_over && found.calls.iter().all(is_admitted) { Ok(found) } else { Err(Stop::Not) }
    }

    /// Returns true if a call in this form may have the name.
    fn admits(&self, name: &str) -> bool {
        !self.form.is_known || is_known(name, self.programs)
    }

    fn content(&mut self, opening: usize) -> Result<FoundCalls, Stop> {
        match &self.form.content {
            Content::Objects => self.objects(calls_of_value),
            Content::ObjectsFromOpening => {
                self.cursor.at = opening;
                self.objects(calls_of_value)
            }
            Content::ObjectsByName => self.objects(calls_by_name),
            Content::Python => self.python_calls(),
            Content::PythonFromOpening => {
                self.cursor.at = opening;
                self.python_calls()
            }
            Content::Named { between, arguments } => {
                self.cursor.skip(&[])?;
                let mut name = self.name()?;
                let mut id = String::new();
                // Kimi appends the call's number.
                if let Some((bare, number)) = name.rsplit_once(':')
                    && number.bytes().all(|b| b.is_ascii_digit())
                    && !is_known(&name, self.programs)
                {
                    name = bare.to_owned();
                }
                self.cursor.skip(&[])?;
                if self.cursor.take(ID_MARK)? {
                    id = self.name()?;
                }
                loop {
                    self.cursor.skip(&[])?;
                    if !self.cursor.take_any(between)? {
                        break;
                    }
                }
                if !self.admits(&name) {
                    return Err(Stop::Not);
                }
                let (arguments, is_complete) = self.arguments(&name, arguments)?;
                let call = FunctionCall { id, ..call(&name, arguments.to_string()) };
                Ok(FoundCalls { calls: vec![call], is_complete })
            }
            Content::Tag { arguments } => {
                let name = self.rest_of_tag()?;
                let (arguments, is_complete) = self.arguments(&name, arguments)?;
                let calls = vec![call(&name, arguments.to_string())];
                Ok(FoundCalls { calls, is_complete })
            }
            Content::AnyForm => self.any_form(),
        }
    }

    /// Skips the closings. Returns true if there was any.
    fn closings(&mut self) -> Result<bool, Stop> {
        let (mut is_closed, mut in_fence) = (false, true);
        let mut end = self.cursor;
        loop {
            end.skip(&[',', ';'])?;
            // A second fence is the next one.
            let is_fence = end.rest().starts_with('`');
            let is_closing = (in_fence || !is_fence) && end.take_any(self.form.closings)?;
            if !is_closing && !end.take_closing_tag()? {
                return Ok(is_closed);
            }
            in_fence &= !is_fence;
            (self.cursor.at, is_closed) = (end.at, true);
        }
    }

    /// Reads calls in other forms up to the end of the fence.
    fn any_form(&mut self) -> Result<FoundCalls, Stop> {
        let mut all = FoundCalls { calls: Vec::new(), is_complete: true };
        loop {
            self.cursor.skip(&[])?;
            let mut found = None;
            for form in CALLS.iter().filter(|form| !form.is_last) {
                let opening = self.cursor.at;
                let mut body = Body { form, ..*self };
                if !body.cursor.take_any(form.openings)? {
                    continue;
                }
                match body.read(opening) {
                    Ok(calls) => {
                        found = Some((calls, body.cursor.at));
                        break;
                    }
                    Err(Stop::More) => return Err(Stop::More),
                    Err(Stop::Not) => {}
                }
            }
            match found {
                Some((calls, end)) => {
                    self.cursor.at = end;
                    all.is_complete &= calls.is_complete;
                    all.calls.extend(calls.calls);
                }
                None if all.calls.is_empty() => return Err(Stop::Not),
                None => return Ok(all),
            }
        }
    }

    /// Reads the JSON value at the cursor. Returns it with true if it is complete.
    fn json(&mut self) -> Result<(Value, bool), Stop> {
        match json::read_value(self.cursor.text, self.cursor.at) {
            Ok(read) if read.is_open && !self.cursor.is_end => Err(Stop::More),
            Ok(read) => {
                self.cursor.at = read.end;
                Ok((read.value, !read.is_open))
            }
            Err(error) => {
                self.cursor.at = error.at.max(self.cursor.at);
                let is_over = self.cursor.at >= self.cursor.text.len();
                Err(if is_over { self.cursor.missing() } else { Stop::Not })
            }
        }
    }

    /// Reads the JSON object at the cursor whose braces are doubled, as in a template of Python.
    fn doubled(&mut self) -> Result<Value, Stop> {
        let (mut text, mut depth, mut in_string) = (String::new(), 0_usize, false);
        loop {
            let next = self.cursor.next()?;
            text.push(next);
            match next {
                '\\' if in_string => text.push(self.cursor.next()?),
                '"' => in_string = !in_string,
                '{' | '}' if !in_string => {
                    if self.cursor.next()? != next {
                        return Err(Stop::Not);
                    }
                    depth = if next == '{' { depth + 1 } else { depth.saturating_sub(1) };
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        match json::read_value(&text, 0) {
            Ok(read) if !read.is_open => Ok(read.value),
            _ => Err(Stop::Not),
        }
    }

    /// Reads calls in JSON: an object, an array, or several consecutive objects.
    fn objects(&mut self, calls_of: fn(Value) -> Vec<FunctionCall>) -> Result<FoundCalls, Stop> {
        let mut all = FoundCalls { calls: Vec::new(), is_complete: true };
        loop {
            let mut next = self.cursor;
            next.skip(&[',', ';'])?;
            if !matches!(next.peek(), Some('{' | '[')) {
                break;
            }
            let before = self.cursor;
            self.cursor = next;
            let is_doubled = self.cursor.rest().starts_with("{{");
            let (value, is_complete) =
                if is_doubled { (self.doubled()?, true) } else { self.json()? };
            let found = calls_of(value);
            let is_foreign = |call: &FunctionCall| !self.admits(&call.name);
            if found.is_empty() {
                if !all.calls.is_empty() {
                    self.cursor = before;
                }
                break;
            }
            if found.iter().any(is_foreign) {
                return Err(Stop::Not);
            }
            all.calls.extend(found);
            all.is_complete &= is_complete;
        }
        if all.calls.is_empty() { Err(Stop::Not) } else { Ok(all) }
    }

    /// Reads a name, which ends before a character that no name contains.
    fn name(&mut self) -> Result<String, Stop> {
        let is_name =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/' | '"');
        let rest = self.cursor.rest();
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        if length == rest.len() && length <= MAX_NAME && !self.cursor.is_end {
            return Err(Stop::More);
        }
        let name = rest.get(..length).filter(|name| name.len() <= MAX_NAME);
        let name = name.map(|name| name.trim_matches('"')).filter(|name| !name.is_empty());
        self.cursor.at += length.min(MAX_NAME);
        self.cursor.at = self.cursor.text.floor_char_boundary(self.cursor.at);
        // The calls of the text dialect have their own reader.
        let is_own =
            |name: &&str| name.get(..8).is_some_and(|w| w.eq_ignore_ascii_case("toolcall"));
        name.filter(|name| !is_own(name)).map(str::to_owned).ok_or(Stop::Not)
    }

    /// Reads the name in a tag and the rest of the tag, which ends at `>`, at the end of the line or
    /// before `{`.
    fn rest_of_tag(&mut self) -> Result<String, Stop> {
        let rest = self.cursor.rest();
        let window = rest.get(..rest.floor_char_boundary(MAX_NAME)).unwrap_or_default();
        let Some(end) = window.find(['>', '\n', '{', '<']) else {
            self.cursor.at += window.len();
            let is_short = window.len() == rest.len();
            return Err(if is_short { self.cursor.missing() } else { Stop::Not });
        };
        let text = window.get(..end).unwrap_or_default().trim();
        let closes = window.get(end..).is_some_and(|rest| rest.starts_with(['>', '\n']));
        self.cursor.at += end + usize::from(closes);
        let name = match text.chars().next() {
            Some(quote @ ('"' | '\'')) => text.split(quote).nth(1).unwrap_or_default(),
            _ => text.split_whitespace().next().unwrap_or_default(),
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
        let name = name.trim_end_matches('/').trim_matches(['"', '\'']);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(Stop::Not);
        }
        Ok(name.to_owned())
    }

    /// Reads the arguments in the first form that fits. Returns them with true if they are complete.
    fn arguments(
        &mut self,
        name: &str,
        forms: &'static [Arguments],
    ) -> Result<(Value, bool), Stop> {
        self.cursor.skip(&[])?;
        let start = self.cursor;
        let mut furthest = start.at;
        for form in forms {
            self.cursor = start;
            let found = match form {
                Arguments::Json if start.rest().starts_with('{') => self.json(),
                Arguments::Json => Err(Stop::Not),
                Arguments::Python if start.rest().starts_with('(') => {
                    self.python_arguments().map(|arguments| (arguments, true))
                }
                Arguments::Python => Err(Stop::Not),
                Arguments::Tags(opening, closing) => self.tags(opening, closing),
                Arguments::Pairs(key, value) => self.pairs(key, value),
                Arguments::NamedTags => self.named_tags(),
                Arguments::Enclosed(token) if start.rest().starts_with('{') => {
                    self.enclosed(token, 0).map(|arguments| (arguments, true))
                }
                Arguments::Enclosed(_) => Err(Stop::Not),
                Arguments::Nothing => self.nothing(name),
            };
            match found {
                Err(Stop::Not) => furthest = furthest.max(self.cursor.at),
                found => return found,
            }
        }
        self.cursor.at = furthest;
        Err(Stop::Not)
    }

    /// Reads no arguments, which are followed by a closing.
    fn nothing(&mut self, name: &str) -> Result<(Value, bool), Stop> {
        let mut end = self.cursor;
        let is_closed = end.take_any(self.form.closings)? || end.take_closing_tag()?;
        if is_closed && is_known(name, self.programs) {
            Ok((Value::Object(Map::new()), true))
        } else {
            Err(Stop::Not)
        }
    }

    /// Reads arguments in tags. An argument may lack its closing tag if another tag follows. An
    /// argument that is cut off is not read.
    fn tags(&mut self, opening: &str, closing: &str) -> Result<(Value, bool), Stop> {
        let mut fields = Map::new();
        loop {
            self.cursor.skip(&[])?;
            if !self.cursor.take(opening)? {
                break;
            }
            let name = self.rest_of_tag()?;
            let start = self.cursor.at;
            let mut ends = vec![closing, opening];
            ends.extend(self.form.closings);
            self.cursor.find(&ends)?;
            let value = self.cursor.text.get(start..self.cursor.at).unwrap_or_default();
            self.cursor.take(closing)?;
            let value = value.strip_prefix('\r').unwrap_or(value);
            let value = value.strip_prefix('\n').unwrap_or(value);
            let value = value.strip_suffix('\n').unwrap_or(value);
            let value = value.strip_suffix('\r').unwrap_or(value);
            fields.insert(name, Value::from(value));
        }
        if fields.is_empty() { Err(Stop::Not) } else { Ok((Value::Object(fields), false)) }
    }

    /// Reads arguments in tags with their names. An argument that is cut off is not read.
    fn named_tags(&mut self) -> Result<(Value, bool), Stop> {
        let mut fields = Map::new();
        loop {
            self.cursor.skip(&[])?;
            let mut next = self.cursor;
            if !next.take("<")? || next.next()? == '/' {
                break;
            }
            self.cursor.take("<")?;
            let name = self.rest_of_tag()?;
            let start = self.cursor.at;
            let end = self.cursor.find(&[&format!("</{name}>")])?;
            let value = self.cursor.text.get(start..self.cursor.at).unwrap_or_default();
            self.cursor.at = end;
            fields.insert(name, Value::from(value.trim_matches(['\r', '\n'])));
        }
        if fields.is_empty() { Err(Stop::Not) } else { Ok((Value::Object(fields), false)) }
    }

    /// Reads arguments in pairs of tags. An argument that is cut off is not read.
    fn pairs(&mut self, key: &[&str; 2], value: &[&str; 2]) -> Result<(Value, bool), Stop> {
        let mut fields = Map::new();
        loop {
            self.cursor.skip(&[])?;
            let Some(name) = self.between(key)? else { break };
            self.cursor.skip(&[])?;
            let text = self.between(value)?.ok_or(Stop::Not)?;
            fields.insert(name.trim().to_owned(), Value::from(text));
        }
        if fields.is_empty() { Err(Stop::Not) } else { Ok((Value::Object(fields), false)) }
    }

    /// Reads the text between two patterns. Returns `None` if the first one is not next.
    fn between(&mut self, patterns: &[&str; 2]) -> Result<Option<&'t str>, Stop> {
        let [opening, closing] = patterns;
        if !self.cursor.take(opening)? {
            return Ok(None);
        }
        let start = self.cursor.at;
        let end = self.cursor.find(&[closing])?;
        let text = self.cursor.text.get(start..self.cursor.at);
        self.cursor.at = end;
        Ok(text)
    }

    /// Reads an object, a list, a string or another value. The token encloses strings.
    fn enclosed(&mut self, token: &str, depth: usize) -> Result<Value, Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::Not);
        }
        self.cursor.skip(&[])?;
        if let Some(text) = self.between(&[token, token])? {
            return Ok(Value::from(text));
        }
        let close = match self.cursor.peek() {
            Some('{') => '}',
            Some('[') => ']',
            _ => return self.json().map(|(value, _)| value),
        };
        self.cursor.next()?;
        let (mut fields, mut items) = (Map::new(), Vec::new());
        loop {
            self.cursor.skip(&[','])?;
            if self.cursor.peek() == Some(close) {
                self.cursor.next()?;
                break;
            }
            if close == '}' {
                let name = match self.between(&[token, token])? {
                    Some(name) => name.to_owned(),
                    None => self.key(':')?,
                };
                self.cursor.skip(&[':'])?;
                fields.insert(name, self.enclosed(token, depth + 1)?);
            } else {
                items.push(self.enclosed(token, depth + 1)?);
            }
        }
        Ok(if close == '}' { Value::Object(fields) } else { Value::Array(items) })
    }

    /// Reads the name before `sign`, which may be quoted.
    fn key(&mut self, sign: char) -> Result<String, Stop> {
        let rest = self.cursor.rest();
        let window = rest.get(..rest.floor_char_boundary(MAX_NAME)).unwrap_or_default();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '"' | '\'' | ' ');
        match window.find(|c| !is_name(c)) {
            Some(end) if window.get(end..).is_some_and(|rest| rest.starts_with(sign)) => {
                self.cursor.at += end;
                let name = window.get(..end).unwrap_or_default();
                Ok(name.trim().trim_matches(['"', '\'']).to_owned())
            }
            None if window.len() == rest.len() => Err(self.cursor.missing()),
            _ => Err(Stop::Not),
        }
    }

    /// Reads calls in the syntax of Python, one per line or in a list. A call may be an argument of
    /// `print` or be assigned to a variable.
    fn python_calls(&mut self) -> Result<FoundCalls, Stop> {
        self.cursor.skip(&[])?;
        let in_list = self.cursor.take("[")?;
        let mut calls = Vec::new();
        loop {
            let mut next = self.cursor;
            next.skip(&[',', ';'])?;
            while !in_list && next.take("#")? {
                let line = next.rest().find('\n');
                next.at = line.map_or(next.text.len(), |line| next.at + line + 1);
                next.skip(&[])?;
            }
            if in_list && next.take("]")? {
                self.cursor = next;
                break;
            }
            if !next.peek().is_some_and(|c| c.is_alphabetic() || c == '_') {
                if in_list {
                    return Err(next.missing());
                }
                break;
            }
            let before = self.cursor;
            self.cursor = next;
            let is_printed = self.cursor.take("print(")?;
            let mut name = self.name()?;
            self.cursor.skip(&[])?;
            if self.cursor.take("=")? {
                self.cursor.skip(&[])?;
                name = self.name()?;
                self.cursor.skip(&[])?;
            }
            let name = name.strip_suffix(".call").unwrap_or(&name);
            if !self.admits(name) {
                return Err(Stop::Not);
            }
            if !in_list && !calls.is_empty() && self.cursor.peek() != Some('(') {
                self.cursor = before;
                break;
            }
            let arguments = self.python_arguments()?;
            calls.push(call(name, arguments.to_string()));
            if is_printed {
                self.cursor.skip(&[])?;
                if !self.cursor.take(")")? {
                    return Err(Stop::Not);
                }
            }
        }
        if calls.is_empty() { Err(Stop::Not) } else { Ok(FoundCalls { calls, is_complete: true }) }
    }

    /// Reads arguments in parentheses: all with names, or all without.
    fn python_arguments(&mut self) -> Result<Value, Stop> {
        if !self.cursor.take("(")? {
            return Err(Stop::Not);
        }
        let (mut fields, mut items) = (Map::new(), Vec::new());
        loop {
            self.cursor.skip(&[])?;
            if self.cursor.take(")")? {
                break;
            }
            let is_word = self.cursor.peek().is_some_and(|c| c.is_alphabetic() || c == '_');
            let start = self.cursor;
            let name = if is_word { self.key('=') } else { Err(Stop::Not) };
            match name {
                Ok(name) => {
                    self.cursor.next()?;
                    fields.insert(name, self.python_value()?);
                }
                Err(Stop::More) => return Err(Stop::More),
                Err(Stop::Not) => {
                    self.cursor = start;
                    items.push(self.python_value()?);
                }
            }
            self.cursor.skip(&[])?;
            if !self.cursor.take(",")? && self.cursor.peek() != Some(')') {
                return Err(self
                    .cursor
                    .peek()
                    .map_or_else(|| self.cursor.missing(), |_| Stop::Not));
            }
        }
        match (fields.is_empty(), items.is_empty()) {
            (_, true) => Ok(Value::Object(fields)),
            (true, false) => Ok(Value::Array(items)),
            (false, false) => Err(Stop::Not),
        }
    }

    fn python_value(&mut self) -> Result<Value, Stop> {
        self.cursor.skip(&[])?;
        for quote in ["\"\"\"", "'''"] {
            if self.cursor.take(quote)? {
                let rest = self.cursor.rest();
                let Some(length) = rest.find(quote) else {
                    self.cursor.at = self.cursor.text.len();
                    return Err(self.cursor.missing());
                };
                // A fourth quote may follow, which then belongs to the text.
                self.cursor.at += length + quote.len();
                return Ok(Value::from(rest.get(..length).unwrap_or_default()));
            }
        }
        match self.json()? {
            (value, true) => Ok(value),
            (_, false) => Err(Stop::Not),
        }
    }
}

/// Returns the calls in a JSON value. Items that do not have the fields of a call are skipped.
fn calls_of_value(value: Value) -> Vec<FunctionCall> {
    match value {
        Value::Array(items) => items.into_iter().filter_map(call_of_object).collect(),
        Value::Object(mut fields) if fields.get("tool_calls").is_some_and(Value::is_array) => {
            fields.remove("tool_calls").map(calls_of_value).unwrap_or_default()
        }
        value => call_of_object(value).into_iter().collect(),
    }
}

/// Returns the calls in a JSON value whose objects have one field each: the name of a call and its
/// arguments.
fn calls_by_name(value: Value) -> Vec<FunctionCall> {
    let items = match value {
        Value::Array(items) => items,
        value => vec![value],
    };
    let calls = items.into_iter().filter_map(|item| {
        let Value::Object(fields) = item else { return None };
        let mut fields = fields.into_iter();
        match (fields.next(), fields.next()) {
            (Some((name, arguments @ Value::Object(_))), None) => {
                Some(call(&name, arguments.to_string()))
            }
            _ => None,
        }
    });
    calls.collect()
}

/// Converts a JSON object to a call. Returns `None` if it does not have the fields of a call.
fn call_of_object(value: Value) -> Option<FunctionCall> {
    let fields = value.as_object()?;
    let inner = fields
        .get("function")
        .filter(|inner| inner.is_object())
        .and_then(Value::as_object)
        .unwrap_or(fields);
    let name = ["name", "function", "tool", "tool_name", "function_name"]
        .iter()
        .find_map(|key| inner.get(*key)?.as_str())?;
    let arguments =
        ["arguments", "parameters", "args", "input"].iter().find_map(|key| inner.get(*key));
    let arguments = match arguments {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let id = ["id", "tool_call_id"].iter().find_map(|key| fields.get(*key)?.as_str());
    Some(FunctionCall { id: id.unwrap_or_default().to_owned(), ..call(name, arguments) })
}

fn call(name: &str, arguments: String) -> FunctionCall {
    FunctionCall { id: String::new(), name: name.trim().to_owned(), arguments: arguments.into() }
}

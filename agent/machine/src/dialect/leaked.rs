//! Function calls that a model, or the server in front of it, wrote into the text of an answer.
//!
//! Calls with a marker are always recognized: `<tool_call>{…}</tool_call>`, `[TOOL_CALLS] […]`,
//! `<function=name>…</function>`, `<invoke name="…">`. JSON without a marker, fenced or bare, is a
//! call only if it names a known function.

use serde_json::Value;

use super::{arguments, json};
use crate::function::ProgramFunction;
use crate::message::FunctionCall;

/// The calls found in an answer.
pub(super) struct LeakedCalls {
    pub(super) calls: Vec<FunctionCall>,
    /// The text before the calls, or `None` if there is none.
    pub(super) before: Option<String>,
    /// If true, no call is truncated.
    pub(super) is_complete: bool,
}

/// Markers that start a call, each with the form of the call.
const MARKS: &[(&str, Form)] = &[
    ("<tool_call>", Form::Json),
    ("<tool_calls>", Form::Json),
    ("<function_call>", Form::Json),
    ("<|tool_call|>", Form::Json),
    ("<|tool_call>", Form::Json),
    ("<|python_tag|>", Form::Json),
    ("[TOOL_CALLS]", Form::Json),
    ("<function=", Form::Named),
    ("<invoke name=", Form::Named),
];

#[derive(Clone, Copy)]
enum Form {
    /// JSON objects with a name and arguments, one after another or in an array.
    Json,
    /// A name in the marker, followed by JSON or by one tag per argument.
    Named,
}

/// Finds the function calls in an answer that contains no call in the text dialect. Returns `None`
/// if there are none.
pub(super) fn find(text: &str, programs: &[ProgramFunction]) -> Option<LeakedCalls> {
    let first = MARKS
        .iter()
        .filter_map(|(mark, form)| Some((text.find(mark)?, *mark, *form)))
        .min_by_key(|(at, ..)| *at);
    let found = first.and_then(|(start, ..)| marked(text, start));
    found.or_else(|| unmarked(text, programs))
}

fn before(text: &str, start: usize) -> Option<String> {
    let before = text.get(..start).unwrap_or_default().trim();
    (!before.is_empty()).then(|| before.to_owned())
}

/// Reads the calls, starting at the first marker. Whitespace and closing tags may separate them.
/// Returns `None` if a marker is not followed by a call.
fn marked(text: &str, start: usize) -> Option<LeakedCalls> {
    let (mut calls, mut at, mut is_complete) = (Vec::new(), start, true);
    while let Some((mark, form)) = mark_at(text, at) {
        let inside = at + mark.len();
        let (found, end, whole) = match form {
            Form::Json => json_calls(text, inside)?,
            Form::Named => named(text, inside)?,
        };
        calls.extend(found);
        is_complete &= whole;
        at = after_closers(text, end);
    }
    (!calls.is_empty()).then(|| LeakedCalls { calls, before: before(text, start), is_complete })
}

fn mark_at(text: &str, at: usize) -> Option<(&'static str, Form)> {
    let rest = text.get(at..)?;
    MARKS.iter().find(|(mark, _)| rest.starts_with(mark)).map(|(mark, form)| (*mark, *form))
}

/// Returns the offset after any whitespace, closing tags, commas and semicolons at `from`.
fn after_closers(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let bare = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        let start = text.len() - bare.len();
        let closer =
            ["</", "<|/", "[/", "<tool_call|>"].iter().any(|closer| bare.starts_with(closer));
        match bare.find(['>', ']']).filter(|_| closer) {
            Some(end) => at = start + end + 1,
            None => return start,
        }
    }
}

/// Reads calls in JSON: an object, an array, several consecutive objects, or a name followed by its
/// arguments. Returns the calls, the end offset of the last call, and true if all calls are
/// complete. Returns `None` if there are no calls.
fn json_calls(text: &str, from: usize) -> Option<(Vec<FunctionCall>, usize, bool)> {
    let (mut calls, mut at, mut is_complete) = (Vec::new(), from, true);
    loop {
        let rest = text.get(at..)?;
        let start = at + rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        if rest.starts_with("<function=") {
            let (found, end, whole) = named(text, start + "<function=".len())?;
            calls.extend(found);
            is_complete &= whole;
            at = end;
        } else if rest.starts_with(['{', '[']) {
            let Ok(read) = json::value_at(text, start) else { break };
            let items = match read.value {
                Value::Array(items) => items,
                value => vec![value],
            };
            let found: Vec<FunctionCall> = items.into_iter().filter_map(call_of_object).collect();
            if found.is_empty() {
                break;
            }
            calls.extend(found);
            is_complete &= !read.is_open;
            at = read.end;
        } else if let Some((name, inside)) = name_before(rest) {
            let Ok(read) = json::value_at(text, start + inside) else { break };
            calls.push(call(name, read.value.to_string()));
            is_complete &= !read.is_open;
            at = read.end;
        } else {
            break;
        }
        let rest = text
            .get(at..)?
            .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        if !rest.starts_with('{') {
            break;
        }
        at = text.len() - rest.len();
    }
    (!calls.is_empty()).then_some((calls, at, is_complete))
}

/// Reads a name directly before its arguments: `name{…}` or `name[ARGS]{…}`. Returns the name and
/// the offset of the arguments, or `None` if `text` does not begin with a name and its arguments.
fn name_before(text: &str) -> Option<(&str, usize)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))?;
    let name = text.get(..end).filter(|name| !name.is_empty())?;
    let rest = text.get(end..)?;
    let inside = rest.strip_prefix("[ARGS]").unwrap_or(rest).trim_start();
    inside.starts_with('{').then(|| (name, text.len() - inside.len()))
}

/// Reads the rest of `<function=name>` or `<invoke name="name">`, starting at the name. The
/// arguments may be JSON or tags. Returns the call, its end offset, and true if it is complete.
/// Returns `None` if the name or the JSON is invalid.
fn named(text: &str, from: usize) -> Option<(Vec<FunctionCall>, usize, bool)> {
    let rest = text.get(from..)?;
    let end = rest.find(['>', '\n', '{'])?;
    let name = rest.get(..end)?.trim().trim_matches(['"', '\'']).to_owned();
    let inside = from + end + usize::from(!rest.get(end..)?.starts_with('{'));
    let body = text.get(inside..)?;
    let close = ["</function>", "</invoke>", "</tool_call>"]
        .iter()
        .filter_map(|close| body.find(close))
        .min();
    let is_closed = close.is_some();
    let content = body.get(..close.unwrap_or(body.len()))?;
    let mut end = inside + content.len();
    let bare = content.trim();
    let (arguments, is_complete) = if bare.starts_with('{') {
        let start = inside + content.len() - content.trim_start().len();
        let read = json::value_at(text, start).ok()?;
        end = end.max(read.end);
        (read.value, !read.is_open)
    } else {
        (tags(content), is_closed)
    };
    (!name.is_empty()).then(|| (vec![call(&name, arguments.to_string())], end, is_complete))
}

/// Reads parameters in the form `<parameter=name>value</parameter>` or `<parameter
/// name="name">value</parameter>`.
fn tags(content: &str) -> Value {
    let mut fields = serde_json::Map::new();
    let mut rest = content;
    while let Some(at) = rest.find("<parameter") {
        let open = rest.get(at + "<parameter".len()..).unwrap_or_default();
        let Some((head, value)) = open.split_once('>') else { break };
        let name = head
            .trim()
            .trim_start_matches("name")
            .trim_start_matches('=')
            .trim()
            .trim_matches(['"', '\'']);
        let next = value.find("<parameter").unwrap_or(value.len());
        let end = value.get(..next).and_then(|value| value.find("</parameter>")).unwrap_or(next);
        let text = value.get(..end).unwrap_or_default();
        let text = text.strip_prefix('\n').unwrap_or(text);
        fields.insert(name.to_owned(), Value::from(text.strip_suffix('\n').unwrap_or(text)));
        rest = value.get(end..).unwrap_or_default();
    }
    Value::Object(fields)
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
    let mut call = call(name, arguments);
    call.id = ["id", "tool_call_id"]
        .iter()
        .find_map(|key| fields.get(*key)?.as_str())
        .unwrap_or_default()
        .to_owned();
    Some(call)
}

fn call(name: &str, arguments: String) -> FunctionCall {
    FunctionCall { id: String::new(), name: name.trim().to_owned(), arguments: arguments.into() }
}

/// Reads JSON calls without a marker, bare or fenced. The JSON must be the whole text, or start on
/// a new line and extend to the end of the text. Every name must be known.
fn unmarked(text: &str, programs: &[ProgramFunction]) -> Option<LeakedCalls> {
    let bare = text.trim_end();
    let (inside, end) = match bare.strip_suffix("```") {
        Some(inside) => {
            let open = inside.rfind("```")?;
            let line = inside.get(open..)?.find('\n')?;
            let tag = inside.get(open + 3..open + line)?.trim();
            if !matches!(tag, "" | "json" | "tool_call" | "tool_code" | "tool" | "function_call") {
                return None;
            }
            (open + line + 1, inside.len())
        }
        None => {
            let begins =
                |at: usize| bare.get(at..).is_some_and(|rest| rest.starts_with(['{', '[']));
            let line = if begins(0) {
                Some(0)
            } else {
                bare.find("\n{").or_else(|| bare.find("\n[{")).map(|at| at + 1)
            };
            (line?, bare.len())
        }
    };
    let content = bare.get(..end)?;
    let (calls, after, is_complete) = json_calls(content, inside)?;
    let is_over = content
        .get(after..)?
        .trim_matches(|c: char| c.is_whitespace() || matches!(c, '}' | ']'))
        .is_empty();
    let are_known = calls.iter().all(|call| arguments::is_known(&call.name, programs));
    let start = if end == bare.len() { inside } else { bare.get(..inside)?.rfind("```")? };
    (is_over && are_known).then(|| LeakedCalls { calls, before: before(bare, start), is_complete })
}

//! Between the arguments of functions, which have names, and those of programs, which have an order.

use serde_json::{Map, Value};

use super::PlannedCall;
use super::json::{self, Lenient};
use crate::call::Call;
use crate::function::{CATALOG, Param, ParamKind, ProgramFunction, WAT};

/// What a call of a function means.
pub(super) enum Meant {
    /// A program is to be run, or why it cannot be.
    Run(PlannedCall),
    /// The run is to end with this answer.
    Done(String),
}

/// Tells what a call of the function `name` means. `is_whole` is false where its arguments had to be closed.
pub(super) fn meant(name: &str, text: &str, programs: &[ProgramFunction]) -> (Meant, bool) {
    match json::arguments(text) {
        Ok(Lenient { value, is_open, .. }) => (of_value(name, value, programs), !is_open),
        Err(_) if known(name, programs) == Some(Known::Done) && !text.trim_start().starts_with(['{', '[', '"']) => {
            (Meant::Done(text.trim().to_owned()), true)
        }
        Err(why) => {
            let why = format!(
                "the arguments of `{name}` are not JSON: {why}; nothing was run. Call it again with one JSON object"
            );
            (Meant::Run(PlannedCall::refused(blank(name, programs), why)), false)
        }
    }
}

/// Tells what a call of the function `name` with these arguments means.
pub(super) fn of_value(name: &str, value: Value, programs: &[ProgramFunction]) -> Meant {
    match known(name, programs) {
        Some(Known::Wat) => wat(value),
        Some(Known::Done) => Meant::Done(answer(value)),
        Some(Known::Catalog) => catalog(name, value, programs),
        Some(Known::Program(function)) => program(function, value),
        // The catalog says that there is none, and which are near.
        None => {
            let args = match value {
                Value::Object(fields) => fields.into_iter().map(|(_, value)| plain(value)).collect(),
                _ => Vec::new(),
            };
            Meant::Run(PlannedCall::of(Call::Catalog { name: bare(name).to_owned(), args }))
        }
    }
}

/// Whether a function of that name can be called.
pub(super) fn is_known(name: &str, programs: &[ProgramFunction]) -> bool {
    known(name, programs).is_some()
}

#[derive(PartialEq)]
enum Known<'a> {
    Wat,
    Done,
    Catalog,
    Program(&'a ProgramFunction),
}

/// Finds the function that a name means, in whatever spelling; what stands before it (`functions.`) does not count.
fn known<'a>(name: &str, programs: &'a [ProgramFunction]) -> Option<Known<'a>> {
    let name = bare(name);
    let exact = programs.iter().find(|function| function.program == name);
    let same = |function: &&ProgramFunction| normal(&function.program) == normal(name);
    let by_name = |name: &str| match normal(name).as_str() {
        "wat" | "toolcallwat" => Some(Known::Wat),
        "done" | "response" | "toolcallresponse" => Some(Known::Done),
        "catalog" | "toolcallcatalog" => Some(Known::Catalog),
        _ => None,
    };
    by_name(name).or_else(|| exact.or_else(|| programs.iter().find(same)).map(Known::Program))
}

/// A name without the space that some models put before it.
fn bare(name: &str) -> &str {
    const SPACES: &[&str] = &["functions", "function", "tools", "tool", "default_api", "catalog"];
    match name.trim().split_once(['.', ':', '/']) {
        Some((space, rest)) if SPACES.contains(&space) => rest.trim_start_matches([':', '.']),
        _ => name.trim(),
    }
}

fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The call that an unreadable one comes nearest to.
fn blank(name: &str, programs: &[ProgramFunction]) -> Call {
    match known(name, programs) {
        Some(Known::Wat) => Call::Wat { body: String::new(), args: Vec::new() },
        Some(Known::Program(function)) => Call::Catalog { name: function.program.clone(), args: Vec::new() },
        _ => Call::Catalog { name: name.to_owned(), args: Vec::new() },
    }
}

fn wat(value: Value) -> Meant {
    let Value::Object(mut fields) = value else {
        return match value {
            Value::String(body) => Meant::Run(PlannedCall::of(Call::Wat { body: trimmed(&body), args: Vec::new() })),
            _ => missing_body(),
        };
    };
    let body = ["body", "program", "code", "source", "wat"].iter().find_map(|name| fields.remove(*name));
    let Some(Value::String(body)) = body else { return missing_body() };
    let args = ["args", "arguments", "argv"].iter().find_map(|name| fields.remove(*name));
    let args = match args {
        Some(Value::Array(items)) => items.into_iter().map(plain).collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(Value::String(text)) => match serde_json::from_str::<Value>(&text) {
            Ok(Value::Array(items)) => items.into_iter().map(plain).collect(),
            _ => vec![text],
        },
        Some(one) => vec![plain(one)],
    };
    Meant::Run(PlannedCall::of(Call::Wat { body: trimmed(&body), args }))
}

fn missing_body() -> Meant {
    let call = Call::Wat { body: String::new(), args: Vec::new() };
    Meant::Run(PlannedCall::refused(call, "wat error: required arg `body` missing or not a string"))
}

/// A program's text without blank lines at its ends and without a fence.
fn trimmed(body: &str) -> String {
    let text = body.replace("\r\n", "\n");
    let bare = text.trim();
    let inside = bare.strip_prefix("```").and_then(|rest| rest.split_once('\n')).map(|(_, rest)| rest.trim_end());
    inside.map_or(bare, |rest| rest.strip_suffix("```").unwrap_or(rest).trim()).to_owned()
}

/// The answer in whatever the model called it.
fn answer(value: Value) -> String {
    match value {
        Value::Object(mut fields) => {
            let named = ["result", "answer", "response", "text", "message", "content"];
            let found = named.iter().find_map(|name| fields.remove(*name));
            found.or_else(|| (fields.len() == 1).then(|| fields.values().next().cloned())?).map_or_else(
                String::new,
                |value| match value {
                    Value::Null => String::new(),
                    value => plain(value),
                },
            )
        }
        Value::Null => String::new(),
        value => plain(value),
    }
    .trim()
    .to_owned()
}

/// A call by the program's name.
fn catalog(function: &str, value: Value, programs: &[ProgramFunction]) -> Meant {
    let Value::Object(mut fields) = value else {
        let call = Call::Catalog { name: function.to_owned(), args: Vec::new() };
        return Meant::Run(PlannedCall::refused(call, "catalog error: required arg `name` missing or not a string"));
    };
    let name = ["name", "program"].iter().find_map(|key| Some(fields.remove(*key)?.as_str()?.to_owned()));
    let Some(name) = name else {
        let call = Call::Catalog { name: function.to_owned(), args: Vec::new() };
        return Meant::Run(PlannedCall::refused(call, "catalog error: required arg `name` missing or not a string"));
    };
    let args = ["args", "arguments"].iter().find_map(|key| fields.remove(*key)).unwrap_or(Value::Object(fields));
    match programs.iter().find(|known| known.program == name) {
        Some(known) => program(known, args),
        None => {
            let args = match args {
                Value::Array(items) => items.into_iter().map(plain).collect(),
                _ => Vec::new(),
            };
            Meant::Run(PlannedCall::of(Call::Catalog { name, args }))
        }
    }
}

/// A call of a program by the names of its arguments, or by their order.
fn program(function: &ProgramFunction, value: Value) -> Meant {
    let call = |args| Call::Catalog { name: function.program.clone(), args };
    let args = match value {
        Value::Object(fields) => by_name(function, fields),
        Value::Array(items) => Ok(in_order(function, items)),
        Value::Null => Ok(Vec::new()),
        one => Ok(in_order(function, vec![one])),
    };
    Meant::Run(match args {
        Ok(args) => PlannedCall::of(call(args)),
        Err(why) => PlannedCall::refused(call(Vec::new()), why),
    })
}

fn in_order(function: &ProgramFunction, items: Vec<Value>) -> Vec<String> {
    let kinds = function.params.iter().map(|param| param.kind).chain(std::iter::repeat(ParamKind::Text));
    items.into_iter().zip(kinds).map(|(value, kind)| text(value, kind)).collect()
}

fn by_name(function: &ProgramFunction, mut fields: Map<String, Value>) -> Result<Vec<String>, String> {
    let params = &function.params;
    let is_param = |key: &str| params.iter().any(|param| normal(&param.name) == normal(key));
    // Some models wrap the arguments once more, or give them in order.
    if fields.len() == 1
        && let Some(key) = fields.keys().next().cloned()
        && matches!(key.as_str(), "args" | "arguments" | "parameters" | "input" | "kwargs")
        && !is_param(&key)
    {
        match fields.remove(&key) {
            Some(Value::Array(items)) => return Ok(in_order(function, items)),
            Some(Value::Object(inside)) => fields = inside,
            _ => {}
        }
    }
    let name = &function.program;
    if let Some(unknown) = fields.keys().find(|key| !is_param(key)) {
        let names: Vec<String> = params.iter().map(|param| format!("`{}`", param.name)).collect();
        let has = if names.is_empty() { "takes none".to_owned() } else { format!("has {}", names.join(", ")) };
        return Err(format!("{name} error: there is no arg `{unknown}`; it {has}"));
    }
    let mut given: Vec<Option<String>> = params
        .iter()
        .map(|param| {
            let exact = fields.remove(&param.name);
            let value = exact.or_else(|| {
                let key = fields.keys().find(|key| normal(key) == normal(&param.name))?.clone();
                fields.remove(&key)
            });
            value.filter(|value| !value.is_null()).map(|value| text(value, param.kind))
        })
        .collect();
    while given.last().is_some_and(Option::is_none) {
        given.pop();
    }
    let filled = |(text, param): (Option<String>, &Param)| {
        text.or_else(|| param.default.clone())
            .ok_or_else(|| format!("{name} error: required arg `{}` missing or not a {}", param.name, word(param.kind)))
    };
    given.into_iter().zip(params).map(filled).collect()
}

fn word(kind: ParamKind) -> &'static str {
    match kind {
        ParamKind::Text => "string",
        ParamKind::Integer => "int",
        ParamKind::Number => "float",
        ParamKind::Boolean => "bool",
        ParamKind::Json => "json",
    }
}

/// A value as a program gets it.
fn text(value: Value, kind: ParamKind) -> String {
    match &value {
        // A whole number stays one, however the model wrote it.
        Value::Number(number) if kind == ParamKind::Integer && !number.is_i64() && !number.is_u64() => {
            match number.as_f64() {
                Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => format!("{float:.0}"),
                _ => number.to_string(),
            }
        }
        _ => plain(value),
    }
}

/// A text as it is, and any other value as its JSON text.
fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        value => value.to_string(),
    }
}

/// Writes a call as one of a function: its name and its arguments as JSON.
pub(super) fn written(call: &Call, programs: &[ProgramFunction]) -> (String, String) {
    let (name, arguments) = match call {
        Call::Wat { body, args } if args.is_empty() => (WAT.to_owned(), serde_json::json!({ "body": body })),
        Call::Wat { body, args } => (WAT.to_owned(), serde_json::json!({ "body": body, "args": args })),
        Call::Catalog { name, args } => match programs.iter().find(|function| function.program == *name) {
            Some(function) if args.len() <= function.params.len() => {
                let fields = function.params.iter().zip(args);
                let field = |(param, text): (&Param, &String)| (param.name.clone(), Value::from(text.as_str()));
                (function.name(), Value::Object(fields.map(field).collect()))
            }
            _ => (CATALOG.to_owned(), serde_json::json!({ "name": name, "args": args })),
        },
    };
    (name, arguments.to_string())
}

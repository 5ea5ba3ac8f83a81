//! Conversion between the arguments of functions and the arguments of programs.

use serde_json::{Map, Value};

use super::PlannedCall;
use crate::call::Call;
use crate::fix::{self, FixText};
use crate::function::{CATALOG, Offer, Param, ParamKind, ProgramFunction, WAT};
use crate::json::{self, Lenient};
use crate::mark::one_line;
use crate::reader::Action;

/// The meaning of a function call.
pub(super) enum Meaning {
    /// A program call, which is either run or refused.
    Run(PlannedCall),
    /// A fix for the last program that failed. The fixed program is then run. The texts alternate
    /// between old strings and their replacements.
    Fix(Vec<FixText>),
    /// The answer that ends the run.
    Done(String),
}

/// Interprets a call to the function `name` with the JSON arguments `text`. The returned bool is
/// true if the arguments are complete.
pub(super) fn interpret(name: &str, text: &str, programs: &[ProgramFunction]) -> (Meaning, bool) {
    match json::arguments(text) {
        Ok(Lenient { value, is_open, .. }) => (interpret_value(name, value, programs), !is_open),
        Err(_) if is_done(name, programs) && !text.trim_start().starts_with(['{', '[', '"']) => {
            (Meaning::Done(text.trim().to_owned()), true)
        }
        Err(why) => {
            let why = format!(
                "the arguments of `{name}` are not JSON: {why}; nothing was run. Call it again \
                 with one JSON object"
            );
            (Meaning::Run(PlannedCall::refused(empty_call(name, programs), why)), false)
        }
    }
}

/// Interprets a call to the function `name` with parsed arguments.
pub(super) fn interpret_value(name: &str, value: Value, programs: &[ProgramFunction]) -> Meaning {
    match known(name, programs) {
        Some(KnownFunction::Wat) => wat(value),
        Some(KnownFunction::Fix) => fix(value),
        Some(KnownFunction::Done) => Meaning::Done(answer(value)),
        Some(KnownFunction::Catalog) => catalog(name, value, programs),
        Some(KnownFunction::Program(function)) => program(function, value),
        // The catalog reports an unknown program and suggests similar names.
        None => Meaning::Run(PlannedCall::new(unknown(without_prefix(name), value))),
    }
}

/// Returns the action of a function call if the programs are not known.
pub(crate) fn function_action(name: &str, text: &str) -> Action {
    match interpret(name, text, &[]).0 {
        Meaning::Run(PlannedCall { call: Call::Wat { body, args }, .. }) => {
            Action::Wat { body, args }
        }
        Meaning::Run(PlannedCall { call: Call::Catalog { name, args, names }, .. }) => {
            Action::Catalog { name, args, names }
        }
        Meaning::Fix(texts) => Action::Fix { texts },
        Meaning::Done(text) => Action::Response { text },
    }
}

/// Returns true if a function with this name exists.
pub(crate) fn is_known(name: &str, programs: &[ProgramFunction]) -> bool {
    known(name, programs).is_some()
}

/// Returns true if a function with this name ends the run.
pub(crate) fn is_done(name: &str, programs: &[ProgramFunction]) -> bool {
    known(name, programs) == Some(KnownFunction::Done)
}

#[derive(PartialEq)]
enum KnownFunction<'a> {
    Wat,
    Fix,
    Done,
    Catalog,
    Program(&'a ProgramFunction),
}

/// Finds a function by name. Ignores case, punctuation, and the decoration that models and servers
/// leave around a name if the name is known only without it.
fn known<'a>(name: &str, programs: &'a [ProgramFunction]) -> Option<KnownFunction<'a>> {
    let name = name.trim();
    let own = programs.iter().find(|function| function.program == name);
    own.filter(|_| name.contains(['.', ':', '/']))
        .map(KnownFunction::Program)
        .or_else(|| known_plain(without_prefix(name), programs))
        .or_else(|| {
            let bare = without_decoration(name);
            let suffixes = GLUED.iter().filter_map(|suffix| bare.strip_suffix(suffix));
            [bare].into_iter().chain(suffixes).find_map(|name| known_plain(name, programs))
        })
}

/// Finds a function by its undecorated name. Ignores case and punctuation.
fn known_plain<'a>(name: &str, programs: &'a [ProgramFunction]) -> Option<KnownFunction<'a>> {
    match normal(name).as_str() {
        "" => return None,
        "wat" | "toolcallwat" => return Some(KnownFunction::Wat),
        "fix" | "toolcallfix" => return Some(KnownFunction::Fix),
        "done" | "response" | "toolcallresponse" => return Some(KnownFunction::Done),
        "catalog" | "toolcallcatalog" => return Some(KnownFunction::Catalog),
        _ => {}
    }
    let exact = programs.iter().find(|function| function.program == name);
    let same = |function: &&ProgramFunction| normal(&function.program) == normal(name);
    exact.or_else(|| programs.iter().find(same)).map(KnownFunction::Program)
}

/// The words that follow a name in harmony, without space if the server removes the tokens.
const GLUED: &[&str] = &["commentary", "analysis", "json", "code"];

/// Removes the prefix that some models write before a name, such as `functions.`.
fn without_prefix(name: &str) -> &str {
    const PREFIXES: &[&str] = &[
        "functions",
        "function",
        "tools",
        "tool",
        "default_api",
        "default_tools",
        "api",
        "catalog",
    ];
    match name.trim().split_once(['.', ':', '/']) {
        Some((prefix, rest)) if PREFIXES.contains(&prefix) => rest.trim_start_matches([':', '.']),
        _ => name.trim(),
    }
}

/// Removes tokens, tags, quotes, a prefix, an index and whitespace around a name, as in
/// `functions.name:0`, `name</arg_value>` and `name<|channel|>commentary`.
fn without_decoration(name: &str) -> &str {
    let mut bare = name.trim();
    while let Some((_, rest)) = bare.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        bare = rest.trim_start();
    }
    let end = bare.find(['<', '>', '[', '{', '(', '\n']).unwrap_or(bare.len());
    let is_mark = |c: char| c.is_whitespace() || "\"'`*“”,;:".contains(c);
    let bare = without_prefix(bare.get(..end).unwrap_or_default().trim_matches(is_mark));
    let is_index = |index: &str| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
    let bare = match bare.rsplit_once([':', '#']) {
        Some((name, index)) if is_index(index) => name,
        _ => bare,
    };
    bare.trim_matches(is_mark)
}

fn normal(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns a call without arguments, to replace a call whose arguments are invalid.
fn empty_call(name: &str, programs: &[ProgramFunction]) -> Call {
    match known(name, programs) {
        Some(KnownFunction::Wat | KnownFunction::Fix) => {
            Call::Wat { body: String::new(), args: Vec::new() }
        }
        Some(KnownFunction::Program(function)) => Call::catalog(&function.program, Vec::new()),
        _ => Call::catalog(name, Vec::new()),
    }
}

/// Returns a call of a program that is not known.
fn unknown(name: &str, arguments: Value) -> Call {
    match arguments {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, plain(value)));
            let (names, args) = fields.unzip();
            Call::Catalog { name: name.to_owned(), args, names }
        }
        Value::Array(items) => Call::catalog(name, items.into_iter().map(plain).collect()),
        _ => Call::catalog(name, Vec::new()),
    }
}

fn wat(value: Value) -> Meaning {
    let Value::Object(mut fields) = value else {
        return match value {
            Value::String(body) => {
                Meaning::Run(PlannedCall::new(Call::Wat { body: trimmed(&body), args: Vec::new() }))
            }
            _ => missing_body(),
        };
    };
    let body =
        ["body", "program", "code", "source", "wat"].iter().find_map(|name| fields.remove(*name));
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
    Meaning::Run(PlannedCall::new(Call::Wat { body: trimmed(&body), args }))
}

fn missing_body() -> Meaning {
    let call = Call::Wat { body: String::new(), args: Vec::new() };
    Meaning::Run(PlannedCall::refused(
        call,
        "wat error: required arg `body` missing or not a string",
    ))
}

/// Interprets a call to the function `fix`.
fn fix(value: Value) -> Meaning {
    match fix::texts_of_json(value) {
        Some(texts) => Meaning::Fix(texts),
        None => Meaning::Run(PlannedCall::refused(
            Call::Wat { body: String::new(), args: Vec::new() },
            "fix error: required arg `changes` missing or not a list of objects with the strings \
             `old` and `new`",
        )),
    }
}

/// Removes a code fence and whitespace around a program, and converts its line breaks to `\n`.
fn trimmed(body: &str) -> String {
    let text = body.replace("\r\n", "\n");
    let bare = text.trim();
    let inside = bare
        .strip_prefix("```")
        .and_then(|rest| rest.split_once('\n'))
        .map(|(_, rest)| rest.trim_end());
    inside.map_or(bare, |rest| rest.strip_suffix("```").unwrap_or(rest).trim()).to_owned()
}

/// The fields in which models put the answer.
pub(crate) const ANSWER_FIELDS: &[&str] =
    &["result", "answer", "response", "text", "message", "content"];

/// Returns the answer from whichever field the model put it in.
fn answer(value: Value) -> String {
    match value {
        Value::Object(mut fields) => {
            let found = ANSWER_FIELDS.iter().find_map(|name| fields.remove(*name));
            found
                .or_else(|| (fields.len() == 1).then(|| fields.values().next().cloned())?)
                .map_or_else(String::new, |value| match value {
                    Value::Null => String::new(),
                    value => plain(value),
                })
        }
        Value::Null => String::new(),
        value => plain(value),
    }
    .trim()
    .to_owned()
}

/// Interprets a call to the function `catalog`.
fn catalog(function: &str, value: Value, programs: &[ProgramFunction]) -> Meaning {
    let unnamed = || {
        Meaning::Run(PlannedCall::refused(
            Call::catalog(function, Vec::new()),
            "catalog error: required arg `name` missing or not a string",
        ))
    };
    let Value::Object(mut fields) = value else { return unnamed() };
    let mut names = ["name", "program"].iter();
    let name = names.find_map(|key| Some(fields.shift_remove(*key)?.as_str()?.to_owned()));
    let Some(name) = name else { return unnamed() };
    let args = ["arguments", "args"].iter().find_map(|key| fields.shift_remove(*key));
    // Some models write the object as a string.
    let args = match args.unwrap_or(Value::Object(fields)) {
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
            _ => Value::String(text),
        },
        args => args,
    };
    match programs.iter().find(|known| known.program == name) {
        Some(known) => program(known, args),
        None => Meaning::Run(PlannedCall::new(unknown(&name, args))),
    }
}

/// Interprets a call to a program, with named or positional arguments. The catalog puts named
/// arguments in order, and reports unknown and missing ones.
fn program(function: &ProgramFunction, value: Value) -> Meaning {
    let call = match value {
        Value::Object(fields) => named(function, fields),
        Value::Array(items) => positional(function, items),
        Value::Null => positional(function, Vec::new()),
        one => positional(function, vec![one]),
    };
    Meaning::Run(match call {
        Ok(call) => PlannedCall::new(call),
        Err(why) => PlannedCall::refused(Call::catalog(&function.program, Vec::new()), why),
    })
}

fn positional(function: &ProgramFunction, items: Vec<Value>) -> Result<Call, String> {
    let params = function.params.iter().map(Some).chain(std::iter::repeat(None));
    let argument = |(value, param): (Value, Option<&Param>)| text(function, param, value);
    let args = items.into_iter().zip(params).map(argument).collect::<Result<Vec<String>, _>>()?;
    Ok(Call::catalog(&function.program, args))
}

fn named(function: &ProgramFunction, mut fields: Map<String, Value>) -> Result<Call, String> {
    let params = &function.params;
    let param = |key: &str| {
        let exact = params.iter().find(|param| param.name == key);
        exact.or_else(|| params.iter().find(|param| normal(&param.name) == normal(key)))
    };
    // Some models wrap the arguments in another object or pass them as an array.
    if fields.len() == 1
        && let Some(key) = fields.keys().next().cloned()
        && matches!(key.as_str(), "args" | "arguments" | "parameters" | "input" | "kwargs")
        && param(&key).is_none()
    {
        match fields.shift_remove(&key) {
            Some(Value::Array(items)) => return positional(function, items),
            Some(Value::Object(inside)) => fields = inside,
            _ => {}
        }
    }
    let (mut args, mut names) = (Vec::new(), Vec::new());
    // `null` stands for an argument that is left out.
    for (key, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
        args.push(text(function, param(&key), value)?);
        names.push(key);
    }
    Ok(Call::Catalog { name: function.program.clone(), args, names })
}

/// Maximum length of a value in an error message, in characters.
const MAX_SHOWN: usize = 60;

/// Converts a value to the text that a program receives. The catalog reports an argument without a
/// parameter.
///
/// # Errors
/// If the parameter is a string, and the value is a list or an object. Without this check, the
/// program would receive JSON text in place of the string.
fn text(function: &ProgramFunction, param: Option<&Param>, value: Value) -> Result<String, String> {
    let Some(Param { kind, name, .. }) = param else { return Ok(plain(value)) };
    Ok(match &value {
        Value::Array(_) | Value::Object(_) if *kind == ParamKind::Text => {
            let found = one_line(&value.to_string(), MAX_SHOWN);
            let program = &function.program;
            return Err(format!(
                "{program} error: arg `{name}` is not a string\nhint: expected one string, found \
                 {found}; nothing was run"
            ));
        }
        // `2.0` is a valid integer.
        Value::Number(number)
            if *kind == ParamKind::Integer && !number.is_i64() && !number.is_u64() =>
        {
            match number.as_f64() {
                Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => format!("{float:.0}"),
                _ => number.to_string(),
            }
        }
        _ => plain(value),
    })
}

/// Returns a string unchanged, and any other value as JSON.
fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        value => value.to_string(),
    }
}

/// Converts a call to the name and the JSON arguments of a function call.
pub(super) fn from_call(call: &Call, programs: &[ProgramFunction]) -> (String, String) {
    let (name, arguments) = match call {
        Call::Wat { body, args } if args.is_empty() => {
            (WAT.to_owned(), serde_json::json!({ "body": body }))
        }
        Call::Wat { body, args } => {
            (WAT.to_owned(), serde_json::json!({ "body": body, "args": args }))
        }
        Call::Catalog { name, args, names } => {
            let known = programs.iter().find(|function| function.program == *name);
            let params = known.map(|function| function.params.as_slice()).unwrap_or_default();
            let by_position = args.len().saturating_sub(names.len());
            let is_named = by_position <= params.len();
            let arguments = if is_named {
                let params = params.iter().take(by_position).map(|param| &param.name);
                let fields = params.chain(names).cloned();
                Value::Object(fields.zip(args.iter().map(|arg| arg.as_str().into())).collect())
            } else {
                // The catalog reports surplus arguments and unknown programs.
                serde_json::json!(args)
            };
            let listed = known.filter(|function| is_named && function.offer == Offer::Listed);
            match listed {
                Some(function) => (function.name(), arguments),
                None => (
                    CATALOG.to_owned(),
                    serde_json::json!({ "name": name, "arguments": arguments }),
                ),
            }
        }
    };
    (name, arguments.to_string())
}

//! The jq interpreter of `json.query`, which runs as a guest of the sandbox. The guest's time and
//! memory limits stop a filter that never ends or grows without bound.
//!
//! The head of a call contains a JSON object of variables, a zero byte and the filter's text. The
//! body is the document (see `wattle-guest`).

#![expect(unsafe_code, reason = "the host calls this function by name")]

use std::cell::Cell;
use std::fmt::Write as _;

use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Compiler, Ctx, Error, Vars, compile, data, unwrap_valr};
use jaq_json::{Val, ValR, read, write};

type Data = data::JustLut<Val>;

/// Definitions of `test`, `match` and the other filters that match regular expressions. They
/// support jq's escapes and flags.
const REGEX: &str = include_str!("regex.jq");

/// The statuses that `answer` returns. The host defines the same values.
const DONE: i32 = 0;
const BAD_FILTER: i32 = 1;
const BAD_DOCUMENT: i32 = 2;
const FAILED: i32 = 3;
const TOO_LARGE: i32 = 4;

/// The maximum size of the output, in bytes.
const MOST: usize = 8 << 20;

thread_local! {
    static NOW: Cell<f64> = const { Cell::new(0.0) };
}

/// Applies the filter in the first `head` bytes of the input to the document in the rest. `now` is
/// the result of the filter's `now` function, in seconds since 1970. The output contains one line
/// per value (a string unquoted, anything else as JSON), or the reason for the failure.
#[unsafe(no_mangle)]
pub extern "C" fn answer(head: usize, now: f64) -> i32 {
    NOW.set(now);
    wattle_guest::answer(head, |head, document| {
        let mut parts = head.splitn(2, |byte| *byte == 0);
        let variables = parts.next().unwrap_or_default();
        let filter = String::from_utf8_lossy(parts.next().unwrap_or_default());
        let mut output = Vec::new();
        match apply(variables, &filter, document, &mut output) {
            Ok(()) => (DONE, output),
            Err((status, reason)) => (status, reason.into_bytes()),
        }
    })
}

fn apply(
    variables: &[u8],
    filter: &str,
    document: &[u8],
    output: &mut Vec<u8>,
) -> Result<(), (i32, String)> {
    let (names, values) = read_variables(variables)?;
    let arena = Arena::default();
    let own = load::parse(REGEX, |parser| parser.defs()).unwrap_or_default();
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(own);
    let loaded = Loader::new(defs).load(&arena, File { path: (), code: filter });
    let modules = loaded.map_err(|errors| (BAD_FILTER, unread(errors)))?;
    load::import(&modules, |_| Err("no modules can be loaded here".to_owned()))
        .map_err(|errors| (BAD_FILTER, unread(errors)))?;
    let names = names.iter().map(String::as_str);
    let compiled =
        Compiler::default().with_funs(functions()).with_global_vars(names).compile(modules);
    let filter = compiled.map_err(|errors| (BAD_FILTER, unknown(errors)))?;
    let document =
        read::parse_single(document).map_err(|error| (BAD_DOCUMENT, error.to_string()))?;
    let ctx = Ctx::<Data>::new(&filter.lut, Vars::new(values));
    for (n, value) in filter.id.run((ctx, document)).map(unwrap_valr).enumerate() {
        let value = value.map_err(|error| (FAILED, error.to_string()))?;
        if n > 0 {
            output.push(b'\n');
        }
        match &value {
            Val::TStr(text) => output.extend_from_slice(text),
            other => {
                write::write(output, &write::Pp::default(), 0, other)
                    .map_err(|error| (FAILED, error.to_string()))?;
            }
        }
        if output.len() > MOST {
            return Err((TOO_LARGE, String::new()));
        }
    }
    Ok(())
}

/// Parses the variables: a JSON object, or an empty text. Returns their names, each with its `$`,
/// and their values.
fn read_variables(text: &[u8]) -> Result<(Vec<String>, Vec<Val>), (i32, String)> {
    if text.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let invalid = || (BAD_FILTER, "the variables are not a JSON object".to_owned());
    let Ok(Val::Obj(variables)) = read::parse_single(text) else { return Err(invalid()) };
    let named = variables.iter().map(|(name, value)| match name {
        Val::TStr(name) => Ok((format!("${}", String::from_utf8_lossy(name)), value.clone())),
        _ => Err(invalid()),
    });
    Ok(named.collect::<Result<Vec<_>, _>>()?.into_iter().unzip())
}

/// Returns jaq's functions, with `now` from the host and an empty environment. `halt` fails,
/// because it would end the process.
fn functions() -> impl Iterator<Item = Fun<Data>> {
    let own: [jaq_core::native::Filter<jaq_core::RunPtr<Data>>; 4] = [
        ("now", v(0), |_| bome(Ok(Val::from(NOW.get())))),
        ("env", v(0), |_| bome(Ok(Val::obj(Default::default())))),
        ("as_regex", v(0), |cv| bome(as_regex(&cv.1))),
        ("halt", v(1), |_| {
            bome(Err(Error::str("a filter cannot halt; end it with `empty` or `error`")))
        }),
    ];
    let theirs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let replaced = |(name, arity, _): &Fun<Data>| {
        matches!((*name, arity.len()), ("now" | "env", 0) | ("halt", 1))
    };
    theirs.filter(move |fun| !replaced(fun)).chain(own.into_iter().map(run::<Data>))
}

/// Translates a jq regular expression for jaq: `\<`, `\>` and `\h` become ordinary characters.
fn as_regex(pattern: &Val) -> ValR {
    let Val::TStr(bytes) = pattern else {
        return Err(Error::str(format_args!("{pattern} is not a regular expression")));
    };
    let pattern = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match (letter, letters.clone().next()) {
            ('\\', Some('<' | '>' | 'h')) => {}
            ('\\', Some(_)) => {
                out.push(letter);
                out.extend(letters.next());
            }
            _ => out.push(letter),
        }
    }
    Ok(Val::utf8_str(out))
}

/// Returns a one-line message about the errors in a filter that could not be loaded.
fn unread(errors: load::Errors<&str, ()>) -> String {
    let mut words = String::new();
    for (File { code, .. }, error) in errors {
        if let load::Error::Io(errors) = &error {
            for (path, why) in errors {
                separate(&mut words);
                _ = write!(words, "{why}: `{path}`");
            }
            continue;
        }
        let mut say = |expected: &str, found: &str| {
            let at = load::span(code, found).start;
            let found: String = found.chars().take(20).collect();
            let found = if found.is_empty() { "its end".to_owned() } else { format!("`{found}`") };
            separate(&mut words);
            _ = write!(words, "expected {expected} at byte {at}, found {found}");
        };
        match error {
            load::Error::Io(_) => {}
            load::Error::Lex(errors) => {
                errors.into_iter().for_each(|(expected, found)| say(expected.as_str(), found))
            }
            load::Error::Parse(errors) => {
                errors.into_iter().for_each(|(expected, found)| say(expected.as_str(), found))
            }
        }
    }
    words
}

/// Returns a one-line message about the undefined names in a filter.
fn unknown(errors: compile::Errors<&str, ()>) -> String {
    let mut words = String::new();
    for (_, errors) in errors {
        for (found, undefined) in errors {
            let arity = match undefined {
                compile::Undefined::Filter(arity) => format!("/{arity}"),
                _ => String::new(),
            };
            separate(&mut words);
            _ = write!(words, "undefined {} `{found}{arity}`", undefined.as_str());
        }
    }
    words
}

fn separate(words: &mut String) {
    if !words.is_empty() {
        words.push_str("; ");
    }
}

//! The main input: the files named by the arguments, or standard input.

use std::fs::File;
use std::io::{self, Read};

use super::io::{Record, Records, Separator};
use super::lex::unescape;
use super::run::{Flow, Run, Stop, failed, place};
use super::syntax::{Statement, Variable};
use super::value::{Cell, Value};
use crate::say::{say, words};

/// The position in the main input.
#[derive(Default)]
pub(crate) struct Input {
    records: Option<Records>,
    argument: usize,
    /// If true, at least one argument named a file.
    named: bool,
    over: bool,
}

/// Returns the record separator that `RS` defines.
pub(crate) fn separator(run: &mut Run<'_>) -> Result<Separator, Stop> {
    let text = run.global_text(place::RS);
    Ok(match text.as_bytes() {
        [] => Separator::Paragraph,
        [only] => Separator::Byte(*only),
        _ => Separator::Regex(run.dynamic(&text)?),
    })
}

/// Reads the next record of the main input. Increments `NR` and `FNR`, and sets `RT`.
pub(crate) fn next(run: &mut Run<'_>) -> Result<io::Result<Option<Record>>, Stop> {
    loop {
        if run.input.records.is_none() && !open(run)? {
            return Ok(Ok(None));
        }
        let separator = separator(run)?;
        let Some(records) = run.input.records.as_mut() else { continue };
        match records.next(&separator) {
            Ok(Some(record)) => {
                for count in [place::NR, place::FNR] {
                    let number = run.global(count).number() + 1.0;
                    run.set_global(count, Value::Number(number));
                }
                run.set_global(place::RT, Value::text(record.end.as_str()));
                return Ok(Ok(Some(record)));
            }
            Ok(None) => leave(run)?,
            Err(error) => {
                let name = run.global_text(place::FILENAME);
                return failed(format!("error reading input file `{name}': {}", words(&error)));
            }
        }
    }
}

/// Closes the current file and runs the `ENDFILE` rules.
pub(crate) fn leave(run: &mut Run<'_>) -> Result<(), Stop> {
    run.input.records = None;
    let program = run.program;
    file_rules(run, &program.end_file).map(|_| ())
}

/// Runs `BEGINFILE` or `ENDFILE` rules. Returns false if one of them skips the file.
fn file_rules<'a>(run: &mut Run<'a>, rules: &'a [Vec<Statement>]) -> Result<bool, Stop> {
    for body in rules {
        match run.statements(body) {
            Ok(Flow::NextFile) | Err(Stop::NextFile) => return Ok(false),
            Ok(Flow::Exit) => return Err(Stop::Exit),
            other => _ = other?,
        }
    }
    Ok(true)
}

/// Opens the next file. Returns false if no files are left.
fn open(run: &mut Run<'_>) -> Result<bool, Stop> {
    loop {
        if run.input.over {
            return Ok(false);
        }
        run.input.argument += 1;
        let number = run.input.argument;
        if number as f64 >= run.global(place::ARGC).number() {
            run.input.over = true;
            if run.input.named {
                return Ok(false);
            }
            return begin(run, "", Ok(Box::new(io::stdin())));
        }
        let argument = match run.globals.get(place::ARGV) {
            Some(Cell::Array(words)) => {
                words.borrow().get(number.to_string().as_str()).map(|word| run.text(word))
            }
            _ => None,
        };
        let Some(argument) = argument.filter(|argument| !argument.is_empty()) else { continue };
        if let Some((name, value)) = assignment(&argument) {
            assign(run, name, value)?;
            continue;
        }
        run.input.named = true;
        if &*argument == "-" || &*argument == "/dev/stdin" {
            return begin(run, &argument, Ok(Box::new(io::stdin())));
        }
        if std::fs::metadata(&*argument).is_ok_and(|found| found.is_dir()) {
            run.streams.flush();
            say("awk", format_args!("warning: `{argument}' is a directory: skipped"));
            continue;
        }
        let file = File::open(&*argument).map(|file| -> Box<dyn Read> { Box::new(file) });
        if begin(run, &argument, file)? {
            return Ok(true);
        }
    }
}

/// Starts reading a file. Returns false if a `BEGINFILE` rule skips it.
///
/// # Errors
///
/// If a rule fails, or if the file could not be opened and no `BEGINFILE` rule skips it.
fn begin(run: &mut Run<'_>, name: &str, source: io::Result<Box<dyn Read>>) -> Result<bool, Stop> {
    run.set_global(place::FILENAME, Value::text(name));
    run.set_global(place::FNR, Value::Number(0.0));
    let failure = source.as_ref().err().map(words);
    run.set_global(place::ERRNO, Value::text(failure.clone().unwrap_or_default()));
    run.input.records = source.ok().map(Records::new);
    let program = run.program;
    if !file_rules(run, &program.begin_file)? {
        run.input.records = None;
        return Ok(false);
    }
    match failure {
        Some(why) => failed(format!("cannot open file `{name}' for reading: {why}")),
        None => Ok(true),
    }
}

/// Splits an assignment `name=value`. Returns `None` if the word is not an assignment.
pub(crate) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let first = name.bytes().next()?;
    let named = (first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    named.then_some((name, value))
}

/// Assigns a value from the command line to a variable.
pub(crate) fn assign(run: &mut Run<'_>, name: &str, value: &str) -> Result<(), Stop> {
    let Some(global) = run.program.globals.iter().position(|known| known == name) else {
        return match run.program.functions.iter().any(|function| function.name == name) {
            true => failed(format!("cannot use function name `{name}' as variable name")),
            false => Ok(()),
        };
    };
    run.assign_variable(Variable::Global(global), Value::outside(unescape(value)))
}

//! The main input: the files among the arguments, or standard input.

use std::fs::File;
use std::io::{self, Read};

use regex::Regex;

use super::io::{Records, Separator};
use super::lex::unescape;
use super::run::{Run, Stop, failed, place};
use super::syntax::Variable;
use super::value::{Cell, Value};
use crate::say::{about, words};

/// The position in the main input.
#[derive(Default)]
pub(crate) struct Input {
    records: Option<Records>,
    argument: usize,
    /// If true, an argument has named a file.
    named: bool,
    over: bool,
    pub failed: bool,
}

/// Returns the record separator that `RS` names.
pub(crate) fn separator(run: &mut Run<'_>) -> Result<Separator, Stop> {
    let text = run.global_text(place::RS);
    Ok(match text.as_bytes() {
        [] => Separator::Paragraph,
        [only] => Separator::Byte(*only),
        _ => Separator::Regex(Regex::clone(&super::expr::regex(&text)?)),
    })
}

/// Reads the next record of the main input and counts it.
pub(crate) fn next(run: &mut Run<'_>) -> Result<io::Result<Option<String>>, Stop> {
    let separator = separator(run)?;
    loop {
        if run.input.records.is_none() && !open(run)? {
            return Ok(Ok(None));
        }
        let Some(records) = run.input.records.as_mut() else { continue };
        match records.next(&separator) {
            Ok(Some(text)) => {
                for count in [place::NR, place::FNR] {
                    let number = run.global(count).number() + 1.0;
                    run.set_global(count, Value::Number(number));
                }
                return Ok(Ok(Some(text)));
            }
            Ok(None) => run.input.records = None,
            Err(error) => {
                run.input.records = None;
                let name = run.global_text(place::FILENAME);
                complain(run, &name, &error);
            }
        }
    }
}

/// Closes the current file.
pub(crate) fn leave(run: &mut Run<'_>) {
    run.input.records = None;
}

/// Opens the next file. Returns false if there is none.
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
            return Ok(begin(run, "", Box::new(io::stdin())));
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
            return Ok(begin(run, &argument, Box::new(io::stdin())));
        }
        let file = std::fs::metadata(&*argument).and_then(|found| match found.is_dir() {
            true => Err(io::Error::other("is a directory")),
            false => File::open(&*argument),
        });
        match file {
            Ok(file) => return Ok(begin(run, &argument, Box::new(file))),
            Err(error) => complain(run, &argument, &error),
        }
    }
}

fn begin(run: &mut Run<'_>, name: &str, source: Box<dyn Read>) -> bool {
    run.set_global(place::FILENAME, Value::text(name));
    run.set_global(place::FNR, Value::Number(0.0));
    run.input.records = Some(Records::new(source));
    true
}

fn complain(run: &mut Run<'_>, name: &str, error: &io::Error) {
    run.streams.flush();
    about("awk", &format!("cannot open \"{name}\""), &io::Error::other(words(error)));
    run.input.failed = true;
}

/// Returns the name and the value of an assignment `name=value`.
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

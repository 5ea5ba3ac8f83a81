//! The `awk` command.

mod builtin;
mod format;
mod input;
mod lex;
mod parse;
mod record;
mod run;
mod syntax;
mod value;

use std::rc::Rc;

pub(crate) use self::lex::unescape;

use self::run::{Flow, Run, Stop};
use self::syntax::{Guard, Program, place};
use self::value::{Cell, Value};
use crate::options::{self, Known, Takes};
use crate::say::{say, whole, words};

const USAGE: &str = "usage: awk [-F SEPARATOR] [-v NAME=VALUE]... ('PROGRAM' | -f FILE | -e PROGRAM) [FILE | NAME=VALUE]...";

const OPTIONS: &[Known] = &[
    ('F', "field-separator", Takes::Value),
    ('v', "assign", Takes::Value),
    ('e', "source", Takes::Value),
    ('f', "file", Takes::Value),
    ('V', "version", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    // These options have no effect.
    ('P', "posix", Takes::Nothing),
    ('c', "traditional", Takes::Nothing),
    ('r', "re-interval", Takes::Nothing),
    ('b', "characters-as-bytes", Takes::Nothing),
    ('S', "sandbox", Takes::Nothing),
];

/// The parsed command line.
#[derive(Default)]
struct Line {
    separator: Option<String>,
    variables: Vec<String>,
    program: String,
    operands: Vec<String>,
}

/// Runs `awk` and returns its exit status.
pub(crate) fn run(args: &[String]) -> i32 {
    let name = args.first().map_or("awk", String::as_str);
    let read = match parse_line(args) {
        Ok(Some(line)) => parse::parse(&line.program).map(|program| (line, program)),
        Ok(None) => return 0,
        Err(why) => Err(why),
    };
    let (line, program) = match read {
        Ok(read) => read,
        Err(why) => {
            say(name, why);
            return 1;
        }
    };
    if let Some(function) = program.functions.iter().find(|function| !function.defined) {
        say(name, format_args!("function `{}' is not defined", function.name));
        return 2;
    }
    let mut run = Run::new(&program);
    let done = prepare(&mut run, &line, name).and_then(|()| all(&mut run, &program));
    run.streams.finish();
    match done {
        Err(Stop::Failed(why)) => {
            say(name, why);
            2
        }
        _ => run.status,
    }
}

fn parse_line(args: &[String]) -> Result<Option<Line>, String> {
    let given = options::parse(args, OPTIONS, false).map_err(|why| format!("{why}; {USAGE}"))?;
    let mut line = Line::default();
    let mut program: Option<String> = None;
    for found in &given.options {
        let value = found.value.clone().unwrap_or_default();
        match given.name(found).as_str() {
            "V" => {
                crate::say::line(format_args!("awk (wattle)"));
                return Ok(None);
            }
            "h" => {
                crate::say::line(format_args!("{USAGE}"));
                return Ok(None);
            }
            "F" => line.separator = Some(value),
            "v" if input::assignment(&value).is_none() => {
                return Err(format!("`{value}' argument to `-v' not in `var=value' form"));
            }
            "v" => line.variables.push(value),
            "e" => add(&mut program, &value),
            "f" => file(&value, &mut program)?,
            _ => {}
        }
    }
    let mut operands = given.operands.into_iter();
    line.program = program.or_else(|| operands.next()).ok_or(USAGE)?;
    line.operands = operands.collect();
    Ok(Some(line))
}

fn file(path: &str, program: &mut Option<String>) -> Result<(), String> {
    let text = whole(path).map_err(|error| format!("can't open file {path}: {}", words(&error)))?;
    add(program, &String::from_utf8_lossy(&text));
    Ok(())
}

fn add(program: &mut Option<String>, text: &str) {
    let program = program.get_or_insert_default();
    program.push_str(text);
    program.push('\n');
}

fn prepare(run: &mut Run<'_>, line: &Line, name: &str) -> Result<(), Stop> {
    let mut arguments = indexmap::IndexMap::new();
    for (n, word) in
        std::iter::once(name).chain(line.operands.iter().map(String::as_str)).enumerate()
    {
        arguments.insert(Rc::from(n.to_string()), Value::outside(word));
    }
    run.set_global(place::ARGC, Value::Number(arguments.len() as f64));
    let environment: indexmap::IndexMap<_, _> =
        std::env::vars().map(|(name, value)| (Rc::from(name), Value::outside(value))).collect();
    for (at, array) in [(place::ARGV, arguments), (place::ENVIRON, environment)] {
        if let Some(cell) = run.globals.get_mut(at) {
            *cell = Cell::Array(Rc::new(std::cell::RefCell::new(array)));
        }
    }
    if let Some(separator) = &line.separator {
        run.set_global(place::FS, Value::text(lex::unescape(separator)));
    }
    for variable in &line.variables {
        if let Some((name, value)) = input::assignment(variable) {
            input::assign(run, name, value)?;
        }
    }
    Ok(())
}

/// Runs the `BEGIN` rules, the rules for each record, and the `END` rules.
fn all<'a>(run: &mut Run<'a>, program: &'a Program) -> Result<(), Stop> {
    let mut exits = false;
    for body in &program.begin {
        match run.statements(body) {
            Ok(Flow::Exit) | Err(Stop::Exit) => {
                exits = true;
                break;
            }
            other => _ = other?,
        }
    }
    let reads = !(program.rules.is_empty()
        && program.end.is_empty()
        && program.begin_file.is_empty()
        && program.end_file.is_empty());
    if !exits && reads {
        match records(run, program) {
            Err(Stop::Exit) => {}
            done => done?,
        }
    }
    for body in &program.end {
        match run.statements(body) {
            Ok(Flow::Exit) | Err(Stop::Exit) => break,
            other => _ = other?,
        }
    }
    Ok(())
}

/// Runs the rules for each record of the main input.
fn records<'a>(run: &mut Run<'a>, program: &'a Program) -> Result<(), Stop> {
    let mut within = vec![false; program.rules.len()];
    while let Ok(Some(record)) = input::next(run)? {
        run.record.set(&record.text);
        for ((pattern, body), within) in program.rules.iter().zip(&mut within) {
            let flow = match rule(run, pattern, within) {
                Ok(false) => continue,
                Ok(true) => match body {
                    Some(body) => run.statements(body),
                    None => run.print_record().map(|()| Flow::On),
                },
                Err(stop) => Err(stop),
            };
            match flow {
                Ok(Flow::Exit) | Err(Stop::Exit) => return Ok(()),
                Ok(Flow::Next) | Err(Stop::Next) => break,
                Ok(Flow::NextFile) | Err(Stop::NextFile) => {
                    input::leave(run)?;
                    break;
                }
                other => _ = other?,
            }
        }
    }
    Ok(())
}

fn rule<'a>(run: &mut Run<'a>, pattern: &'a Guard, within: &mut bool) -> Result<bool, Stop> {
    match pattern {
        Guard::Always => Ok(true),
        Guard::Expr(expr) => Ok(run.eval(expr)?.truth()),
        Guard::Range(first, last) => {
            if !*within && !run.eval(first)?.truth() {
                return Ok(false);
            }
            *within = !run.eval(last)?.truth();
            Ok(true)
        }
    }
}

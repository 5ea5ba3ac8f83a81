//! `jq`, implemented with jaq.

mod line;
mod regex;
mod write;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Stdout, Write as _};

use jaq_core::load::{self, Arena, Loader};
use jaq_core::native::{Fun, bome, run as native, v};
use jaq_core::{Compiler, DataT, Error, Lut, Vars, compile, data, unwrap_valr};
use jaq_json::{Val, read};
use jaq_std::input::{HasInputs, Inputs, RcIter};

use self::line::Line;
use crate::say::{about, say, words};

/// Definitions of the filters that behave differently in jq and jaq.
const PRELUDE: &str = include_str!("prelude.jq");

struct Kind;

impl DataT for Kind {
    type V<'a> = Val;
    type Data<'a> = &'a State<'a>;
}

struct State<'a> {
    lut: &'a Lut<Kind>,
    inputs: Inputs<'a, Val>,
    file: &'a RefCell<Val>,
}

impl<'a> data::HasLut<'a, Kind> for &'a State<'a> {
    fn lut(&self) -> &'a Lut<Kind> {
        self.lut
    }
}

impl<'a> HasInputs<'a, Val> for &'a State<'a> {
    fn inputs(&self) -> Inputs<'a, Val> {
        self.inputs
    }
}

thread_local! {
    static OUT: RefCell<BufWriter<Stdout>> = RefCell::new(BufWriter::with_capacity(1 << 16, io::stdout()));
}

/// Runs `jq` and returns its exit status.
pub(crate) fn run(args: &[String]) -> i32 {
    let line = match line::parse(args.get(1..).unwrap_or_default()) {
        Ok(Some(line)) => line,
        Ok(None) => return 0,
        Err(why) => {
            say("jq", why);
            return 2;
        }
    };
    let status = match apply(&line) {
        Ok(status) | Err(status) => status,
    };
    flush();
    status
}

fn flush() {
    OUT.with_borrow_mut(|out| _ = out.flush());
}

fn complain(text: impl std::fmt::Display) {
    flush();
    say("jq", text);
}

fn apply(line: &Line) -> Result<i32, i32> {
    let arena = Arena::default();
    let own = load::parse(PRELUDE, |parser| parser.defs()).unwrap_or_default();
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(own);
    let code = line.filter.as_str();
    let describe = |why: String| {
        complain(format_args!("error: {why}"));
        3
    };
    let modules = Loader::new(defs)
        .load(&arena, load::File { path: (), code })
        .map_err(|errors| describe(unread(errors)))?;
    load::import(&modules, |_| Err("no modules can be loaded here".to_owned()))
        .map_err(|errors| describe(unread(errors)))?;
    let names: Vec<String> = line.variables.iter().map(|(name, _)| format!("${name}")).collect();
    let compiler = Compiler::default()
        .with_funs(functions())
        .with_global_vars(names.iter().map(String::as_str));
    let filter = compiler.compile(modules).map_err(|errors| describe(unknown(errors)))?;

    let file = RefCell::new(Val::Null);
    let failed = RefCell::new(false);
    let texts = Texts { files: line.files.iter(), started: false, file: &file, failed: &failed };
    let inputs = RcIter::new(values(line, texts));
    let state = State { lut: &filter.lut, inputs: &inputs, file: &file };
    let ctx = jaq_core::Ctx::<Kind>::new(
        &state,
        Vars::new(line.variables.iter().map(|(_, value)| value.clone())),
    );

    let mut status = if line.exit_status { 4 } else { 0 };
    let mut nothing = line.null_input.then_some(Ok(Val::Null));
    loop {
        let input = if line.null_input { nothing.take() } else { (&inputs).next() };
        match input {
            None => break,
            Some(Err(why)) => {
                complain(format_args!("error: parse error: {why}"));
                return Ok(2);
            }
            Some(Ok(input)) => {
                for value in filter.id.run((ctx.clone(), input)).map(unwrap_valr) {
                    match value {
                        Ok(value) => {
                            if line.exit_status {
                                status = i32::from(matches!(value, Val::Null | Val::Bool(false)));
                            }
                            OUT.with_borrow_mut(|out| write::value(out, &line.look, &value))
                                .map_err(|_| 2)?;
                        }
                        Err(error) => {
                            complain(format_args!("error: {error}"));
                            status = 5;
                            // An error ends the outputs for this input.
                            break;
                        }
                    }
                }
            }
        }
    }
    if *failed.borrow() && status == 0 {
        status = 2;
    }
    Ok(status)
}

/// Returns an iterator over the input values, read as the options specify.
fn values<'a>(line: &Line, texts: Texts<'a>) -> Box<dyn Iterator<Item = Result<Val, String>> + 'a> {
    if line.raw_input && line.slurp {
        let mut all = Vec::new();
        texts.for_each(|mut text| _ = text.read_to_end(&mut all));
        return Box::new(std::iter::once(Ok(Val::utf8_str(all))));
    }
    if line.raw_input {
        let lines = texts.flat_map(|text| text.split(b'\n'));
        return Box::new(lines.map(|text| text.map(Val::utf8_str).map_err(|error| words(&error))));
    }
    let values = texts.flat_map(read::read_many).map(|value| value.map_err(|error| words(&error)));
    if line.slurp {
        let all: Result<Vec<Val>, String> = values.collect();
        Box::new(std::iter::once(all.map(|all| all.into_iter().collect())))
    } else {
        Box::new(values)
    }
}

/// An iterator that opens the input files in order, or standard input if no files are named.
struct Texts<'a> {
    files: std::slice::Iter<'a, String>,
    started: bool,
    file: &'a RefCell<Val>,
    failed: &'a RefCell<bool>,
}

impl<'a> Iterator for Texts<'a> {
    type Item = Box<dyn BufRead + 'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.started && self.files.len() == 0 {
            self.started = true;
            return Some(Box::new(BufReader::with_capacity(1 << 16, io::stdin().lock())));
        }
        self.started = true;
        loop {
            let path = self.files.next()?;
            match File::open(path) {
                Ok(file) => {
                    *self.file.borrow_mut() = Val::utf8_str(path.clone());
                    return Some(Box::new(BufReader::with_capacity(1 << 16, file)));
                }
                Err(error) => {
                    flush();
                    about("jq: error: Could not open", path, &error);
                    *self.failed.borrow_mut() = true;
                }
            }
        }
    }
}

/// Returns jaq's functions, and the functions that this command adds or replaces.
fn functions() -> impl Iterator<Item = Fun<Kind>> {
    let own: [jaq_core::native::Filter<jaq_core::RunPtr<Kind>>; 3] = [
        ("input_filename", v(0), |cv| bome(Ok(cv.0.data().file.borrow().clone()))),
        ("stderr_text", v(0), |cv| {
            flush();
            if let Val::TStr(text) = &cv.1 {
                _ = io::stderr().write_all(text);
            }
            Box::new(std::iter::empty())
        }),
        ("halt", v(1), |mut cv| {
            flush();
            match cv.0.pop_var() {
                Val::Num(code) => std::process::exit(code.to_string().parse().unwrap_or(5)),
                other => bome(Err(Error::str(format_args!("halt needs a number, not {other}")))),
            }
        }),
    ];
    let theirs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let inputs = jaq_std::input::funs::<Kind>().into_vec().into_iter().map(native::<Kind>);
    let replaced = |(name, arity, _): &Fun<Kind>| {
        matches!((*name, arity.len()), ("halt", 1) | ("matches" | "split_matches" | "split_", 2))
    };
    theirs
        .filter(move |fun| !replaced(fun))
        .chain(inputs)
        .chain(own.into_iter().chain(regex::functions()).map(native::<Kind>))
}

/// Returns a one-line message about the errors in a filter that could not be loaded.
fn unread(errors: load::Errors<&str, ()>) -> String {
    let mut words: Vec<String> = Vec::new();
    for (load::File { code, .. }, error) in errors {
        let mut say = |expected: &str, found: &str| {
            let at = load::span(code, found).start;
            let found: String = found.chars().take(20).collect();
            let found = if found.is_empty() { "its end".to_owned() } else { format!("`{found}`") };
            words.push(format!(
                "syntax error: expected {expected} at byte {at} of the filter, found {found}"
            ));
        };
        match error {
            load::Error::Io(errors) => {
                words.extend(errors.into_iter().map(|(path, why)| format!("{why}: `{path}`")))
            }
            load::Error::Lex(errors) => {
                errors.into_iter().for_each(|(expected, found)| say(expected.as_str(), found))
            }
            load::Error::Parse(errors) => {
                errors.into_iter().for_each(|(expected, found)| say(expected.as_str(), found))
            }
        }
    }
    words.join("; ")
}

/// Returns a one-line message about the undefined names in a filter.
fn unknown(errors: compile::Errors<&str, ()>) -> String {
    let mut words = String::new();
    for (found, undefined) in errors.into_iter().flat_map(|(_, errors)| errors) {
        let arity = match undefined {
            compile::Undefined::Filter(arity) => format!("/{arity}"),
            _ => String::new(),
        };
        let separator = if words.is_empty() { "" } else { "; " };
        _ = write!(words, "{separator}{found}{arity} is not defined ({})", undefined.as_str());
    }
    words
}

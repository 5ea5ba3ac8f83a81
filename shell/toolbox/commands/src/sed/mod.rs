//! `sed`: edits lines with a script, like GNU sed. The `e` command and the `e` flag of `s`, which
//! run other commands, are rejected.

mod files;
mod parse;
mod run;
mod syntax;

use self::parse::{Cursor, Rules};
use self::run::Run;
use crate::options::Takes::{Maybe, Nothing, Value};
use crate::options::{self, Known, Line};
use crate::say::{say, whole, words};

const OPTIONS: &[Known] = &[
    ('n', "quiet", Nothing),
    ('\0', "silent", Nothing),
    ('e', "expression", Value),
    ('f', "file", Value),
    ('E', "regexp-extended", Nothing),
    ('r', "", Nothing),
    ('i', "in-place", Maybe),
    ('l', "line-length", Value),
    ('s', "separate", Nothing),
    ('u', "unbuffered", Nothing),
    ('z', "null-data", Nothing),
    ('\0', "zero-terminated", Nothing),
    ('b', "binary", Nothing),
    ('\0', "follow-symlinks", Nothing),
    ('\0', "posix", Nothing),
    ('\0', "sandbox", Nothing),
    ('\0', "version", Nothing),
    ('\0', "help", Nothing),
];

const USAGE: &str =
    "usage: sed [-nErsuz] [-i[SUFFIX]] [-l N] [-e SCRIPT | -f FILE]... [SCRIPT] [FILE...]";

/// The default maximum length of the lines that `l` prints, in characters.
const LIST_LENGTH: usize = 70;

/// An error that ends the program: its message and its exit status.
struct Error(String, i32);

impl From<String> for Error {
    fn from(why: String) -> Error {
        Error(why, 1)
    }
}

/// The options that change how a script is run.
struct Settings {
    quiet: bool,
    /// If true, line numbers restart in each file, and `$` matches the last line of each file.
    separate: bool,
    /// The suffix of backup files, if files are edited in place. An empty suffix means no backups.
    in_place: Option<String>,
    line_end: u8,
    list_length: usize,
    unbuffered: bool,
    posix: bool,
}

/// Runs `sed` and returns its exit status.
pub(crate) fn run(args: &[String]) -> i32 {
    match options::parse(args, OPTIONS, true).map_err(Error::from).and_then(|line| prepared(&line))
    {
        Ok(status) => status,
        Err(Error(why, status)) => {
            say("sed", why);
            status
        }
    }
}

fn prepared(line: &Line) -> Result<i32, Error> {
    if line.has("help") {
        crate::say::line(USAGE);
        return Ok(0);
    }
    if line.has("version") {
        crate::say::line("sed (wattle)");
        return Ok(0);
    }
    let mut files = line.operands.clone();
    let cursor = script_text(line, &mut files)?;
    let rules = Rules { extended: line.has("E") || line.has("r"), sandbox: line.has("sandbox") };
    let script = parse::parse(cursor, rules)?;
    let in_place = line
        .options
        .iter()
        .rev()
        .find(|found| line.name(found) == "i")
        .map(|found| found.value.clone().unwrap_or_default());
    if files.is_empty() {
        if in_place.is_some() {
            return Err(Error("no input files".to_owned(), 4));
        }
        files.push("-".to_owned());
    }
    if in_place.is_some() && line.has("follow-symlinks") {
        files.iter_mut().for_each(follow);
    }
    let list_length = match line.value("l") {
        Some(length) => length.parse().map_err(|_| format!("invalid line length: {length}"))?,
        None => LIST_LENGTH,
    };
    let settings = Settings {
        quiet: line.has("n") || line.has("silent") || script.quiet,
        separate: line.has("s") || in_place.is_some(),
        in_place,
        line_end: if line.has("z") || line.has("zero-terminated") { 0 } else { b'\n' },
        list_length,
        unbuffered: line.has("u"),
        posix: line.has("posix"),
    };
    Run::new(&script, &settings, files)?.all()
}

/// Collects the script from the options, or from the first operand if there are none.
fn script_text(line: &Line, operands: &mut Vec<String>) -> Result<Cursor, Error> {
    let mut cursor = Cursor::new();
    for found in &line.options {
        let value = found.value.as_deref().unwrap_or_default();
        match line.name(found).as_str() {
            "e" => cursor.add_expression(value),
            "f" => {
                let text = whole(value)
                    .map_err(|error| format!("couldn't open file {value}: {}", words(&error)))?;
                cursor.add_file(value, &String::from_utf8_lossy(&text));
            }
            _ => {}
        }
    }
    if cursor.is_empty() {
        if operands.is_empty() {
            return Err(Error(USAGE.to_owned(), 1));
        }
        cursor.add_expression(&operands.remove(0));
    }
    Ok(cursor)
}

/// Replaces the path of a symbolic link with the path of its target.
fn follow(path: &mut String) {
    for _ in 0..40 {
        let Ok(target) = std::fs::read_link(&*path) else { return };
        let target = target.to_string_lossy().into_owned();
        *path = match path.rsplit_once('/') {
            Some((folder, _)) if !target.starts_with('/') => format!("{folder}/{target}"),
            _ => target,
        };
    }
}

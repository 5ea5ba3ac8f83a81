//! The input and output of an awk program: the files named by the arguments, and the files and
//! commands that it reads from and writes to.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher as _;
use std::io::{self, BufWriter, Read, Write};
use std::rc::Rc;

use super::lex::unescape;
use super::run::{Flow, Run, Stop, failed};
use super::syntax::{Statement, Variable, place};
use super::value::{Cell, Value};
use crate::host::Command;
use crate::pattern::Posix;
use crate::say::{out, say, words};

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
        if run.program.functions.iter().any(|function| function.name == name) {
            return failed(format!("cannot use function name `{name}' as variable name"));
        }
        return Ok(());
    };
    run.assign_variable(Variable::Global(global), Value::outside(unescape(value)))
}

/// The separator that ends a record.
pub(crate) enum Separator {
    Byte(u8),
    /// One or more empty lines.
    Paragraph,
    Regex(Rc<Posix>),
}

/// A record and the separator that ended it.
pub(crate) struct Record {
    pub text: String,
    pub end: String,
}

/// A reader of records from a stream of bytes.
pub(crate) struct Records {
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    at: usize,
    over: bool,
}

impl Records {
    pub(crate) fn new(source: Box<dyn Read>) -> Records {
        Records { source, buffer: Vec::new(), at: 0, over: false }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let length = self.buffer.len();
        self.buffer.resize(length + (1 << 16).max(length), 0);
        let read = self.source.read(self.buffer.get_mut(length..).unwrap_or_default());
        self.buffer.truncate(length + *read.as_ref().unwrap_or(&0));
        self.over = read? == 0;
        Ok(())
    }

    fn rest(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, length: usize, end: usize) -> Option<Record> {
        let text =
            |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        let rest = self.rest();
        let record = Record { text: text(rest.get(..length)), end: text(rest.get(length..end)) };
        self.at += end;
        Some(record)
    }

    /// Reads the next record. Returns `None` at the end of the input.
    pub(crate) fn next(&mut self, separator: &Separator) -> io::Result<Option<Record>> {
        if matches!(separator, Separator::Paragraph) {
            loop {
                let lines = self.rest().iter().take_while(|byte| **byte == b'\n').count();
                self.at += lines;
                if self.over || !self.rest().is_empty() {
                    break;
                }
                self.fill()?;
            }
        }
        let mut searched = 0;
        loop {
            let rest = self.rest();
            let found = match separator {
                Separator::Byte(end) => {
                    memchr::memchr(*end, rest.get(searched..).unwrap_or_default())
                        .map(|at| (searched + at, searched + at + 1))
                }
                Separator::Paragraph => {
                    let found = rest.windows(2).position(|two| two == b"\n\n").map(|at| {
                        let lines = rest.iter().skip(at).take_while(|byte| **byte == b'\n');
                        (at, at + lines.count())
                    });
                    found.filter(|found| self.over || found.1 < rest.len())
                }
                Separator::Regex(regex) => {
                    let mut found = None;
                    regex.each(rest, |groups| {
                        let whole = groups.whole();
                        found = (!whole.is_empty()).then_some((whole.start, whole.end));
                        found.is_none()
                    });
                    // A match at the end of the buffer may become longer with the next read.
                    found.filter(|found| self.over || found.1 < rest.len())
                }
            };
            if let Some((length, end)) = found {
                return Ok(self.take(length, end));
            }
            if self.over {
                let length = rest.len();
                if length == 0 {
                    return Ok(None);
                }
                let trailing =
                    matches!(separator, Separator::Paragraph) && rest.last() == Some(&b'\n');
                return Ok(self.take(length - usize::from(trailing), length));
            }
            searched = rest.len();
            self.fill()?;
        }
    }
}

enum Sink {
    File(BufWriter<File>),
    Standard,
    Error,
    /// The buffered input of a command. The command runs when the stream is closed.
    Command(Vec<u8>),
}

/// The open files and commands of a program.
pub(crate) struct Streams {
    pub out: BufWriter<io::StdoutLock<'static>>,
    sinks: HashMap<String, Sink>,
    readers: HashMap<String, Records>,
    /// The exit status of each command whose output was read.
    ended: HashMap<String, i32>,
    made: usize,
}

impl Streams {
    pub(crate) fn new() -> Streams {
        Streams {
            out: out(),
            sinks: HashMap::new(),
            readers: HashMap::new(),
            ended: HashMap::new(),
            made: 0,
        }
    }

    /// Writes to a file. The first write opens the file.
    pub(crate) fn write_file(
        &mut self,
        path: &str,
        append: bool,
        bytes: &[u8],
    ) -> Result<(), String> {
        if !self.sinks.contains_key(path) {
            let sink = match path {
                "/dev/stdout" | "-" => Sink::Standard,
                "/dev/stderr" => Sink::Error,
                _ => {
                    let mut how = OpenOptions::new();
                    how.create(true).append(append);
                    if !append {
                        how.write(true).truncate(true);
                    }
                    let file = how.open(path).map_err(|error| {
                        format!("can't redirect to \"{path}\": {}", words(&error))
                    })?;
                    Sink::File(BufWriter::new(file))
                }
            };
            self.sinks.insert(path.to_owned(), sink);
        }
        self.write(path, bytes)
    }

    /// Appends bytes to the buffered input of a command.
    pub(crate) fn write_command(&mut self, command: &str, bytes: &[u8]) -> Result<(), String> {
        self.sinks.entry(command.to_owned()).or_insert_with(|| Sink::Command(Vec::new()));
        self.write(command, bytes)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let done = match self.sinks.get_mut(name) {
            Some(Sink::File(file)) => file.write_all(bytes),
            Some(Sink::Standard) => self.out.write_all(bytes),
            Some(Sink::Error) => self.out.flush().and_then(|()| io::stderr().write_all(bytes)),
            Some(Sink::Command(input)) => {
                input.extend_from_slice(bytes);
                Ok(())
            }
            None => Ok(()),
        };
        done.map_err(|error| format!("can't write to \"{name}\": {}", words(&error)))
    }

    /// Reads the next record of a file. Returns `Ok(None)` at the end of the file.
    pub(crate) fn read_file(
        &mut self,
        path: &str,
        separator: &Separator,
    ) -> io::Result<Option<Record>> {
        if !self.readers.contains_key(path) {
            self.flush();
            let source: Box<dyn Read> = if path == "-" || path == "/dev/stdin" {
                Box::new(io::stdin())
            } else {
                Box::new(File::open(path)?)
            };
            self.readers.insert(path.to_owned(), Records::new(source));
        }
        self.readers.get_mut(path).map_or(Ok(None), |records| records.next(separator))
    }

    /// Reads the next record of a command's output. The first call runs the command to completion.
    pub(crate) fn read_command(
        &mut self,
        command: &str,
        separator: &Separator,
    ) -> io::Result<Option<Record>> {
        if !self.readers.contains_key(command) {
            self.flush();
            let path = self.spare(b"")?;
            let status = Command::line(format!("{{ {command}\n}} > '{path}'").as_bytes()).run();
            let output = fs::read(&path);
            _ = fs::remove_file(&path);
            self.ended.insert(command.to_owned(), status);
            self.readers
                .insert(command.to_owned(), Records::new(Box::new(io::Cursor::new(output?))));
        }
        self.readers.get_mut(command).map_or(Ok(None), |records| records.next(separator))
    }

    /// Runs a command line and returns its exit status.
    pub(crate) fn run(&mut self, command: &str) -> i32 {
        self.flush();
        Command::line(command.as_bytes()).run()
    }

    /// Closes the file or command `name`. Returns its exit status (0 for a file), or -1 on failure.
    pub(crate) fn close(&mut self, name: &str) -> i32 {
        let mut status = -1;
        if self.readers.remove(name).is_some() {
            status = self.ended.remove(name).unwrap_or(0);
        }
        match self.sinks.remove(name) {
            Some(Sink::File(mut file)) => status = if file.flush().is_ok() { 0 } else { -1 },
            Some(Sink::Command(input)) => {
                self.flush();
                status = self.feed(name, &input).unwrap_or(-1);
            }
            Some(Sink::Standard | Sink::Error) => status = 0,
            None => {}
        }
        status
    }

    /// Flushes standard output and all files. Commands run only when they are closed.
    pub(crate) fn flush(&mut self) {
        _ = self.out.flush();
        for sink in self.sinks.values_mut() {
            if let Sink::File(file) = sink {
                _ = file.flush();
            }
        }
    }

    /// Flushes all output and closes the files and commands that the program writes to.
    pub(crate) fn finish(&mut self) {
        self.flush();
        let mut names: Vec<String> = self.sinks.keys().cloned().collect();
        names.sort();
        names.iter().for_each(|name| _ = self.close(name));
    }

    fn feed(&mut self, command: &str, input: &[u8]) -> io::Result<i32> {
        let path = self.spare(input)?;
        let status = Command::line(format!("{{ {command}\n}} < '{path}'").as_bytes()).run();
        _ = fs::remove_file(&path);
        Ok(status)
    }

    /// Creates a temporary file with `content` and returns its path.
    fn spare(&mut self, content: &[u8]) -> io::Result<String> {
        let folders =
            [std::env::var("TMPDIR").unwrap_or_default(), "/tmp".to_owned(), ".".to_owned()];
        let mut last = Err(io::ErrorKind::NotFound.into());
        for folder in folders.iter().filter(|folder| !folder.is_empty() && !folder.contains('\'')) {
            for _ in 0..100 {
                self.made += 1;
                let path =
                    format!("{folder}/.awk-{}-{}", RandomState::new().hash_one(0_u8), self.made);
                last = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(&path)
                    .and_then(|mut file| file.write_all(content))
                    .map(|()| path);
                match &last {
                    Ok(_) => return last,
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(_) => break,
                }
            }
        }
        last
    }
}

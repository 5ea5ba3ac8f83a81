//! The execution of a sed script.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};
use std::rc::Rc;

use super::files::{Input, Line, Output, Stream, open, read_line};
use super::syntax::{
    Action, Address, Case, Command, Condition, Part, RangeEnd, Regex, Script, Substitution,
};
use super::{Error, Settings};
use crate::pattern::{Groups, Posix};

/// The state of a range of lines.
#[derive(Clone, Copy, PartialEq)]
enum Range {
    Outside,
    /// Inside the range, with the number of its last line if that is known.
    Inside(Option<u64>),
}

/// Output that is printed after the current line.
enum Appended {
    Text(Vec<u8>),
    File(String),
}

/// The outcome of a cycle.
enum End {
    /// The end of the script was reached. The pattern space is printed.
    Script,
    /// The pattern space is not printed.
    Silent,
    /// `D`: the next cycle starts without reading a line.
    Restart,
    Quit(i32),
}

/// The next step of a cycle.
enum Flow {
    Next,
    Jump(usize),
    End(End),
}

/// The state of a sed run.
pub(super) struct Run<'a> {
    script: &'a Script,
    settings: &'a Settings,
    input: Input,
    output: Output,
    ranges: Vec<Range>,
    pattern: Vec<u8>,
    hold: Vec<u8>,
    /// If true, the current line ended with the line terminator.
    ended: bool,
    line: u64,
    appended: Vec<Appended>,
    /// If true, `s` has replaced something since the last input line or the last `t` or `T`.
    substituted: bool,
    last_regex: Option<Rc<Posix>>,
    /// The open files that `R` reads; `None` if a file cannot be opened.
    readers: HashMap<String, Option<Box<dyn BufRead>>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        script: &'a Script,
        settings: &'a Settings,
        files: Vec<String>,
    ) -> Result<Run<'a>, Error> {
        let end = settings.line_end;
        let mut run = Run {
            script,
            settings,
            input: Input::new(files, end, settings.separate),
            output: Output::new(&script.outputs, end, settings.unbuffered)?,
            ranges: Vec::new(),
            pattern: Vec::new(),
            hold: Vec::new(),
            ended: true,
            line: 0,
            appended: Vec::new(),
            substituted: false,
            last_regex: None,
            readers: HashMap::new(),
        };
        run.reset_ranges();
        Ok(run)
    }

    /// Runs the script on all lines. Returns the exit status.
    pub(super) fn all(&mut self) -> Result<i32, Error> {
        let done = self.cycles();
        if done.is_err() {
            self.output.abandon_edit();
        }
        self.output.flush();
        let status = done?;
        Ok(if status == 0 && self.input.failed { 2 } else { status })
    }

    fn cycles(&mut self) -> Result<i32, Error> {
        let mut restart = false;
        loop {
            if !restart && !self.read(false)? {
                return Ok(0);
            }
            let end = self.cycle()?;
            if matches!(end, End::Script) && !self.settings.quiet {
                self.print(Stream::Main)?;
            }
            self.append()?;
            if let End::Quit(status) = end {
                self.end_file()?;
                return Ok(status);
            }
            restart = matches!(end, End::Restart);
        }
    }

    /// Reads the next line into the pattern space, or appends it. Returns false if no line is left.
    fn read(&mut self, append: bool) -> Result<bool, Error> {
        self.append()?;
        loop {
            if !self.input.is_open() {
                self.end_file()?;
                let Some(name) = self.input.open_next() else { return Ok(false) };
                self.begin_file(&name)?;
            }
            let Some(Line { text, ended }) = self.input.next()? else { continue };
            if append {
                add(&mut self.pattern, self.settings.line_end, &text);
            } else {
                self.pattern = text;
            }
            self.ended = ended;
            self.line += 1;
            self.substituted = false;
            return Ok(true);
        }
    }

    fn begin_file(&mut self, name: &str) -> Result<(), Error> {
        if self.settings.in_place.is_some() {
            self.output.edit(name)?;
        }
        if self.settings.separate {
            self.line = 0;
            self.reset_ranges();
            self.readers.clear();
        }
        Ok(())
    }

    fn end_file(&mut self) -> Result<(), Error> {
        match &self.settings.in_place {
            Some(backup) => self.output.end_edit(backup),
            None => Ok(()),
        }
    }

    /// Resets all ranges to `Outside`, except those that start at line 0.
    fn reset_ranges(&mut self) {
        let range = |command: &Command| match command.first {
            Some(Address::Line(0)) => Range::Inside(None),
            _ => Range::Outside,
        };
        self.ranges = self.script.commands.iter().map(range).collect();
    }

    /// Prints the output that is queued to follow the current line.
    fn append(&mut self) -> Result<(), Error> {
        for appended in std::mem::take(&mut self.appended) {
            match appended {
                Appended::Text(text) => self.output.write(Stream::Main, &text)?,
                Appended::File(path) => {
                    self.output.flush();
                    let mut text = Vec::new();
                    // A file that cannot be read counts as empty.
                    if let Ok(mut file) = open(&path)
                        && file.read_to_end(&mut text).is_ok()
                        && !text.is_empty()
                    {
                        self.output.write(Stream::Main, &text)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn print(&mut self, to: Stream) -> Result<(), Error> {
        self.output.line(to, &self.pattern, self.ended)
    }

    /// Runs the script on the pattern space.
    fn cycle(&mut self) -> Result<End, Error> {
        let mut at = 0;
        while let Some(command) = self.script.commands.get(at) {
            if self.selects(at, command)? == command.negated {
                at = match command.action {
                    Action::Block(end) => end,
                    _ => at + 1,
                };
                continue;
            }
            match self.run(at, command)? {
                Flow::Next => at += 1,
                Flow::Jump(target) => at = target,
                Flow::End(end) => return Ok(end),
            }
        }
        Ok(End::Script)
    }

    /// Returns true if the addresses of a command select the current line.
    fn selects(&mut self, at: usize, command: &'a Command) -> Result<bool, Error> {
        let Some(first) = &command.first else { return Ok(true) };
        let Some(last) = &command.last else { return self.matches(first) };
        let range = self.ranges.get(at).copied().unwrap_or(Range::Outside);
        let (selected, range) = match range {
            Range::Outside if !self.matches(first)? => return Ok(false),
            Range::Outside => (true, self.begun(last)),
            Range::Inside(Some(end)) => {
                let range = if self.line >= end { Range::Outside } else { range };
                // A command may have read lines beyond the end of the range.
                (self.line <= end || self.matches(first)?, range)
            }
            Range::Inside(None) => {
                let ends = match last {
                    RangeEnd::Regex(regex) => self.is_match(regex)?,
                    _ => self.input.at_end()?,
                };
                (true, if ends { Range::Outside } else { range })
            }
        };
        if let Some(known) = self.ranges.get_mut(at) {
            *known = range;
        }
        Ok(selected)
    }

    /// Returns the state of a range that starts at the current line.
    fn begun(&self, last: &RangeEnd) -> Range {
        let end = match last {
            RangeEnd::Last | RangeEnd::Regex(_) => return Range::Inside(None),
            RangeEnd::Line(line) => *line,
            RangeEnd::Count(count) => self.line.saturating_add(*count),
            RangeEnd::Multiple(0) => self.line,
            RangeEnd::Multiple(step) => self.line.saturating_add(step - self.line % step),
        };
        if end > self.line { Range::Inside(Some(end)) } else { Range::Outside }
    }

    fn matches(&mut self, address: &'a Address) -> Result<bool, Error> {
        match address {
            Address::Line(line) => Ok(self.line == *line),
            Address::Step(first, 0) => Ok(self.line == *first),
            Address::Step(first, step) => {
                Ok(self.line >= *first && (self.line - first).is_multiple_of(*step))
            }
            Address::Last => self.input.at_end(),
            Address::Regex(regex) => self.is_match(regex),
        }
    }

    fn is_match(&mut self, regex: &'a Regex) -> Result<bool, Error> {
        Ok(self.regex(regex)?.is_match(&self.pattern))
    }

    /// Returns `regex` or, if it is `None`, the last regular expression used. Records the result.
    fn regex(&mut self, regex: &Regex) -> Result<Rc<Posix>, Error> {
        let known = regex.as_ref().or(self.last_regex.as_ref()).cloned();
        let regex = known.ok_or_else(|| Error("no previous regular expression".to_owned(), 1))?;
        self.last_regex = Some(regex.clone());
        Ok(regex)
    }

    fn run(&mut self, at: usize, command: &'a Command) -> Result<Flow, Error> {
        let end = self.settings.line_end;
        match &command.action {
            Action::Block(_) | Action::Nothing => {}
            Action::LineNumber => {
                self.output.write(Stream::Main, format!("{}\n", self.line).as_bytes())?;
            }
            Action::Append(text) => self.appended.push(Appended::Text(text.clone())),
            Action::Insert(text) => self.output.write(Stream::Main, text)?,
            Action::Change(text) => {
                let inside = self.ranges.get(at).is_some_and(|range| *range != Range::Outside);
                if command.negated || !inside {
                    self.output.write(Stream::Main, text)?;
                }
                return Ok(Flow::End(End::Silent));
            }
            Action::Branch(condition, target) => return Ok(self.branch(*condition, *target)),
            Action::Delete => return Ok(Flow::End(End::Silent)),
            Action::DeleteFirst => {
                let Some(at) = memchr::memchr(end, &self.pattern) else {
                    return Ok(Flow::End(End::Silent));
                };
                self.pattern.drain(..=at);
                return Ok(Flow::End(End::Restart));
            }
            Action::FileName => {
                let line = format!("{}\n", self.input.name());
                self.output.write(Stream::Main, line.as_bytes())?;
            }
            Action::Get => self.pattern.clone_from(&self.hold),
            Action::GetAppend => add(&mut self.pattern, end, &self.hold),
            Action::Hold => self.hold.clone_from(&self.pattern),
            Action::HoldAppend => add(&mut self.hold, end, &self.pattern),
            Action::Exchange => std::mem::swap(&mut self.pattern, &mut self.hold),
            Action::List(length) => {
                let length = length.unwrap_or(self.settings.list_length);
                self.output.write(Stream::Main, &listed(&self.pattern, length))?;
            }
            Action::Next => return self.next(false),
            Action::NextAppend => return self.next(true),
            Action::Print => self.print(Stream::Main)?,
            Action::PrintFirst => self.print_first(Stream::Main)?,
            Action::Quit(status, prints) => {
                if *prints && !self.settings.quiet {
                    self.print(Stream::Main)?;
                }
                if !*prints {
                    self.appended.clear();
                }
                return Ok(Flow::End(End::Quit(*status)));
            }
            Action::ReadFile(path) => self.appended.push(Appended::File(path.clone())),
            Action::ReadLine(path) => self.read_line(path)?,
            Action::Substitute(substitution) => self.substitute(substitution)?,
            Action::Transliterate(pairs) => self.transliterate(pairs),
            Action::Write(file) => self.print(Stream::File(*file))?,
            Action::WriteFirst(file) => self.print_first(Stream::File(*file))?,
            Action::Zap => self.pattern.clear(),
        }
        Ok(Flow::Next)
    }

    fn branch(&mut self, condition: Condition, target: Option<usize>) -> Flow {
        let substituted = self.substituted;
        if condition != Condition::Always {
            self.substituted = false;
        }
        if substituted && condition == Condition::NotSubstituted
            || !substituted && condition == Condition::Substituted
        {
            return Flow::Next;
        }
        target.map_or(Flow::End(End::Script), Flow::Jump)
    }

    /// Runs `n` or `N`. If there is no next line, the script ends.
    fn next(&mut self, append: bool) -> Result<Flow, Error> {
        if self.input.at_end()? {
            let silent = append && self.settings.posix;
            return Ok(Flow::End(if silent { End::Silent } else { End::Script }));
        }
        if !append && !self.settings.quiet {
            self.print(Stream::Main)?;
        }
        let read = self.read(append)?;
        Ok(if read { Flow::Next } else { Flow::End(End::Script) })
    }

    /// Prints the first line of the pattern space.
    fn print_first(&mut self, to: Stream) -> Result<(), Error> {
        match memchr::memchr(self.settings.line_end, &self.pattern) {
            Some(at) => self.output.line(to, self.pattern.get(..at).unwrap_or_default(), true),
            None => self.print(to),
        }
    }

    /// Queues the next line of a file, if there is one, to be printed after the current line.
    fn read_line(&mut self, path: &str) -> Result<(), Error> {
        if !self.readers.contains_key(path) {
            self.output.flush();
            self.readers.insert(path.to_owned(), open(path).ok());
        }
        if let Some(Some(reader)) = self.readers.get_mut(path)
            && let Ok(Some(line)) = read_line(reader, self.settings.line_end)
        {
            let mut text = line.text;
            text.push(self.settings.line_end);
            self.appended.push(Appended::Text(text));
        }
        Ok(())
    }

    fn substitute(&mut self, substitution: &Substitution) -> Result<(), Error> {
        let regex = self.regex(&substitution.regex)?;
        let Some(changed) = replaced(substitution, &regex, &self.pattern)? else { return Ok(()) };
        self.pattern = changed;
        self.substituted = true;
        if substitution.print {
            self.print(Stream::Main)?;
        }
        match substitution.write {
            Some(file) => self.print(Stream::File(file)),
            None => Ok(()),
        }
    }

    fn transliterate(&mut self, pairs: &[(char, char)]) {
        let mut out = Vec::with_capacity(self.pattern.len());
        for chunk in self.pattern.utf8_chunks() {
            for letter in chunk.valid().chars() {
                let pair = pairs.iter().find(|(from, _)| *from == letter);
                let to = pair.map_or(letter, |(_, to)| *to);
                out.extend_from_slice(to.encode_utf8(&mut [0; 4]).as_bytes());
            }
            out.extend_from_slice(chunk.invalid());
        }
        self.pattern = out;
    }
}

fn add(text: &mut Vec<u8>, end: u8, more: &[u8]) {
    text.push(end);
    text.extend_from_slice(more);
}

/// Formats text for `l`: escaped, in lines of at most `length` characters. 0 and 1 mean no limit.
fn listed(text: &[u8], length: usize) -> Vec<u8> {
    let most = length.saturating_sub(1);
    let mut out = Vec::new();
    let mut column = 0;
    for byte in text {
        let shown = match byte {
            b'\\' => "\\\\".to_owned(),
            0x07 => "\\a".to_owned(),
            0x08 => "\\b".to_owned(),
            0x0c => "\\f".to_owned(),
            b'\n' => "\\n".to_owned(),
            b'\r' => "\\r".to_owned(),
            b'\t' => "\\t".to_owned(),
            0x0b => "\\v".to_owned(),
            b' '..=b'~' => char::from(*byte).to_string(),
            other => format!("\\{other:03o}"),
        };
        if most > 0 && column + shown.len() > most {
            out.extend_from_slice(b"\\\n");
            column = 0;
        }
        column += shown.len();
        out.extend_from_slice(shown.as_bytes());
    }
    out.extend_from_slice(b"$\n");
    out
}

/// Replaces the matches in a text. Returns `None` if nothing was replaced.
fn replaced(
    substitution: &Substitution,
    regex: &Posix,
    text: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let mut out = Builder { text: Vec::with_capacity(text.len()), all: Case::End, one: None };
    let mut count = 0;
    let mut end = 0;
    let mut failure = None;
    regex.each(text, |groups| {
        count += 1;
        if count < substitution.from {
            return true;
        }
        let whole = groups.whole();
        out.text.extend_from_slice(text.get(end..whole.start).unwrap_or_default());
        end = whole.end;
        failure = out.expand(&substitution.replacement, groups, text).err();
        substitution.all && failure.is_none()
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    if count < substitution.from {
        return Ok(None);
    }
    out.text.extend_from_slice(text.get(end..).unwrap_or_default());
    Ok(Some(out.text))
}

/// A builder of the result, which applies the case conversions of the replacement.
struct Builder {
    text: Vec<u8>,
    all: Case,
    /// The case of the next letter, if it differs from `all`.
    one: Option<Case>,
}

impl Builder {
    fn expand(&mut self, parts: &[Part], groups: &Groups, text: &[u8]) -> Result<(), Error> {
        (self.all, self.one) = (Case::End, None);
        for part in parts {
            match part {
                Part::Text(text) => self.push(text),
                Part::Group(number) if *number >= groups.len() => {
                    let why = format!("invalid reference \\{number} on `s' command's RHS");
                    return Err(Error(why, 1));
                }
                Part::Group(number) => {
                    let range = groups.get(*number).unwrap_or_default();
                    self.push(text.get(range).unwrap_or_default());
                }
                Part::Case(one @ (Case::NextUpper | Case::NextLower)) => self.one = Some(*one),
                Part::Case(all) => (self.all, self.one) = (*all, None),
            }
        }
        Ok(())
    }

    fn push(&mut self, text: &[u8]) {
        if self.all == Case::End && self.one.is_none() {
            self.text.extend_from_slice(text);
            return;
        }
        for chunk in text.utf8_chunks() {
            for letter in chunk.valid().chars() {
                let letter = changed(letter, self.one.take().unwrap_or(self.all));
                self.text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            self.text.extend_from_slice(chunk.invalid());
        }
    }
}

/// Converts the case of a letter. Returns it unchanged if the result is not a single character.
fn changed(letter: char, case: Case) -> char {
    let only = |mut letters: Box<dyn Iterator<Item = char>>| match (letters.next(), letters.next())
    {
        (Some(only), None) => only,
        _ => letter,
    };
    match case {
        Case::Upper | Case::NextUpper => only(Box::new(letter.to_uppercase())),
        Case::Lower | Case::NextLower => only(Box::new(letter.to_lowercase())),
        Case::End => letter,
    }
}

//! The main input: the lines of all files, in order.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use super::Error;
use crate::say::{say, words};

/// A line without its terminator.
pub(super) struct Line {
    pub text: Vec<u8>,
    /// If true, the line had a terminator.
    pub ended: bool,
}

/// The main input.
pub(super) struct Input {
    files: VecDeque<String>,
    current: Option<Source>,
    /// The line terminator.
    end: u8,
    /// If true, `$` matches the last line of each file, not only of the last file.
    separate: bool,
    /// If true, a file could not be opened.
    pub failed: bool,
}

/// An open file.
struct Source {
    name: String,
    reader: Box<dyn BufRead>,
}

impl Input {
    pub(super) fn new(files: Vec<String>, end: u8, separate: bool) -> Input {
        Input { files: files.into(), current: None, end, separate, failed: false }
    }

    /// Returns the name of the current file; `-` is standard input.
    pub(super) fn name(&self) -> &str {
        self.current.as_ref().map_or("-", |source| &source.name)
    }

    /// If no file is open, opens the next file that can be opened. Returns its name, or `None` if a
    /// file was already open or no files are left.
    pub(super) fn open_next(&mut self) -> Option<String> {
        while self.current.is_none() {
            let name = self.files.pop_front()?;
            match open(&name) {
                Ok(reader) => {
                    self.current = Some(Source { name: name.clone(), reader });
                    return Some(name);
                }
                Err(error) => {
                    say("sed", format_args!("can't read {name}: {}", words(&error)));
                    self.failed = true;
                }
            }
        }
        None
    }

    /// Returns true if a file is open.
    pub(super) fn is_open(&self) -> bool {
        self.current.is_some()
    }

    /// Reads the next line of the current file. Closes the file at its end.
    pub(super) fn next(&mut self) -> Result<Option<Line>, Error> {
        let Some(source) = &mut self.current else { return Ok(None) };
        let line = read_line(&mut source.reader, self.end).map_err(|error| source.error(&error))?;
        if line.is_none() {
            self.current = None;
        }
        Ok(line)
    }

    /// Returns true if no line follows in the input, or in the current file if `separate` is true.
    pub(super) fn at_end(&mut self) -> Result<bool, Error> {
        if let Some(source) = &mut self.current
            && source.has_more()?
        {
            return Ok(false);
        }
        if self.separate {
            return Ok(true);
        }
        // Files that are empty or cannot be opened do not count, and are removed from the queue.
        while let Some(name) = self.files.front().cloned() {
            let reader = match open(&name) {
                Ok(reader) => reader,
                Err(error) => {
                    say("sed", format_args!("can't read {name}: {}", words(&error)));
                    self.failed = true;
                    self.files.pop_front();
                    continue;
                }
            };
            let mut source = Source { name, reader };
            if source.has_more()? {
                return Ok(false);
            }
            self.files.pop_front();
        }
        Ok(true)
    }
}

impl Source {
    /// Returns true if the file contains more bytes.
    fn has_more(&mut self) -> Result<bool, Error> {
        let rest = self.reader.fill_buf().map(|rest| !rest.is_empty());
        rest.map_err(|error| self.error(&error))
    }

    fn error(&self, error: &io::Error) -> Error {
        Error(format!("read error on {}: {}", self.name, words(error)), 4)
    }
}

/// Opens a file; `-` is standard input.
pub(super) fn open(path: &str) -> io::Result<Box<dyn BufRead>> {
    if path == "-" || path == "/dev/stdin" {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(BufReader::with_capacity(1 << 16, File::open(path)?)))
}

/// Reads a line up to the terminator `end`. Returns `None` at the end of the file.
pub(super) fn read_line(reader: &mut dyn BufRead, end: u8) -> io::Result<Option<Line>> {
    let mut text = Vec::new();
    if reader.read_until(end, &mut text)? == 0 {
        return Ok(None);
    }
    let ended = text.last() == Some(&end);
    if ended {
        text.pop();
    }
    Ok(Some(Line { text, ended }))
}

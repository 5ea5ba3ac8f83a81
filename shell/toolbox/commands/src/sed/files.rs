//! The input and the output of a script: the lines of all files, in order, and the streams that it
//! writes to.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use super::Error;
use crate::say::{out, say, words};

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

/// An output stream.
struct Sink {
    name: String,
    writer: Box<dyn Write>,
    /// If true, the last line lacks its terminator, which is written before any more output.
    unended: bool,
}

impl Sink {
    fn new(name: &str, writer: Box<dyn Write>) -> Sink {
        Sink { name: name.to_owned(), writer, unended: false }
    }

    fn write(&mut self, end: u8, text: &[u8]) -> Result<(), Error> {
        let before: &[u8] = if self.unended { &[end] } else { &[] };
        self.unended = false;
        let done = self.writer.write_all(before).and_then(|()| self.writer.write_all(text));
        done.map_err(|error| Error(format!("couldn't write {}: {}", self.name, words(&error)), 4))
    }
}

/// The output stream that a command writes to.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    /// Standard output, or the new content of the file that is edited in place.
    Main,
    /// A file that the script names, by its index.
    File(usize),
}

/// A file that the script names.
enum Named {
    Standard,
    Error,
    File(Sink),
}

/// A file that is edited in place. Its new content is written to a temporary file.
struct Edited {
    sink: Sink,
    path: String,
    temporary: String,
}

/// All output streams of a script.
pub(super) struct Output {
    standard: Sink,
    edited: Option<Edited>,
    files: Vec<Named>,
    /// The line terminator.
    end: u8,
    /// If true, each write to a stream is flushed immediately.
    unbuffered: bool,
}

impl Output {
    /// Opens standard output and the files that the script writes to.
    pub(super) fn new(paths: &[String], end: u8, unbuffered: bool) -> Result<Output, Error> {
        let files = paths.iter().map(|path| match path.as_str() {
            "/dev/stdout" => Ok(Named::Standard),
            "/dev/stderr" => Ok(Named::Error),
            path => match File::create(path) {
                Ok(file) => Ok(Named::File(Sink::new(path, Box::new(BufWriter::new(file))))),
                Err(error) => {
                    Err(Error(format!("couldn't open file {path}: {}", words(&error)), 4))
                }
            },
        });
        Ok(Output {
            files: files.collect::<Result<_, _>>()?,
            standard: Sink::new("stdout", Box::new(out())),
            edited: None,
            end,
            unbuffered,
        })
    }

    /// Writes a line, with its terminator if `ended` is true.
    pub(super) fn line(&mut self, to: Stream, text: &[u8], ended: bool) -> Result<(), Error> {
        let end = self.end;
        self.write(to, text)?;
        if ended {
            return self.write(to, &[end]);
        }
        if let Some(sink) = self.sink(to) {
            sink.unended = true;
        }
        Ok(())
    }

    /// Writes text unchanged. First writes the terminator of the previous line if it is missing.
    pub(super) fn write(&mut self, to: Stream, text: &[u8]) -> Result<(), Error> {
        let end = self.end;
        let unbuffered = self.unbuffered;
        match self.sink(to) {
            Some(sink) => {
                sink.write(end, text)?;
                if unbuffered {
                    _ = sink.writer.flush();
                }
            }
            None => {
                self.flush();
                _ = io::stderr().write_all(text);
            }
        }
        Ok(())
    }

    /// Returns the sink of a stream; `None` means standard error.
    fn sink(&mut self, to: Stream) -> Option<&mut Sink> {
        match to {
            Stream::Main => match &mut self.edited {
                Some(edited) => Some(&mut edited.sink),
                None => Some(&mut self.standard),
            },
            Stream::File(number) => match self.files.get_mut(number) {
                Some(Named::File(sink)) => Some(sink),
                Some(Named::Error) => None,
                Some(Named::Standard) | None => Some(&mut self.standard),
            },
        }
    }

    /// Starts editing a file in place.
    pub(super) fn edit(&mut self, path: &str) -> Result<(), Error> {
        let failed =
            |error: &io::Error| Error(format!("couldn't edit {path}: {}", words(error)), 4);
        let kind = fs::metadata(path).map_err(|error| failed(&error))?;
        if !kind.is_file() {
            return Err(Error(format!("couldn't edit {path}: not a regular file"), 4));
        }
        let mut made = Err(io::ErrorKind::AlreadyExists.into());
        let mut temporary = String::new();
        for number in 0..100 {
            temporary = format!("{path}.sed{number}");
            made = OpenOptions::new().write(true).create_new(true).open(&temporary);
            match &made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                _ => break,
            }
        }
        let file = made.map_err(|error| failed(&error))?;
        let sink = Sink::new(path, Box::new(BufWriter::new(file)));
        self.edited = Some(Edited { sink, path: path.to_owned(), temporary });
        Ok(())
    }

    /// Replaces the edited file with its new content. If the suffix `backup` is not empty, keeps
    /// the old file under its backup name.
    pub(super) fn end_edit(&mut self, backup: &str) -> Result<(), Error> {
        let Some(mut edited) = self.edited.take() else { return Ok(()) };
        let done = edited.sink.writer.flush().and_then(|()| {
            drop(edited.sink);
            if !backup.is_empty() {
                fs::rename(&edited.path, backup_name(&edited.path, backup))?;
            }
            fs::rename(&edited.temporary, &edited.path)
        });
        done.map_err(|error| {
            _ = fs::remove_file(&edited.temporary);
            Error(format!("couldn't edit {}: {}", edited.path, words(&error)), 4)
        })
    }

    /// Removes the temporary file of a failed edit.
    pub(super) fn abandon_edit(&mut self) {
        if let Some(edited) = self.edited.take() {
            _ = fs::remove_file(&edited.temporary);
        }
    }

    pub(super) fn flush(&mut self) {
        _ = self.standard.writer.flush();
        for file in &mut self.files {
            if let Named::File(sink) = file {
                _ = sink.writer.flush();
            }
        }
    }
}

/// Returns the path of a backup: the path plus the suffix or, if the suffix contains stars, the
/// suffix with each star replaced by the file's name. Such a suffix may name another folder.
fn backup_name(path: &str, suffix: &str) -> String {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    if !suffix.contains('*') {
        return format!("{path}{suffix}");
    }
    let made = suffix.replace('*', name);
    if folder.is_empty() || made.contains('/') { made } else { format!("{folder}/{made}") }
}

//! The output streams of a script.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};

use super::Error;
use crate::say::{out, words};

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
        let (end, unbuffered) = (self.end, self.unbuffered);
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

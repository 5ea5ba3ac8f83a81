//! The output of grep.

use std::io::{self, Write};

use grep_matcher::Matcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use super::matcher::Pattern;

/// The kind of output.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shown {
    Lines,
    Count,
    Names,
    NamesWithout,
    Nothing,
}

/// The treatment of binary files.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Binary {
    Told,
    Text,
    Skip,
}

/// The format of the output.
pub(crate) struct Look {
    pub shown: Shown,
    /// If true, prints only the matching parts.
    pub only: bool,
    pub invert: bool,
    pub named: bool,
    pub numbered: bool,
    pub offsets: bool,
    pub tab: bool,
    /// If true, prints a NUL after each file name.
    pub null: bool,
    /// The byte that ends a line.
    pub end: u8,
    pub binary: Binary,
    pub most: Option<u64>,
    /// The separator of groups of lines.
    pub separator: Option<String>,
    /// If true, flushes after each line.
    pub prompt: bool,
}

/// The results of one file.
pub(crate) struct Found<'a, W: Write> {
    look: &'a Look,
    pattern: &'a Pattern,
    name: &'a str,
    out: W,
    count: u64,
    binary: bool,
}

impl<'a, W: Write> Found<'a, W> {
    pub(crate) fn new(look: &'a Look, pattern: &'a Pattern, name: &'a str, out: W) -> Self {
        Found { look, pattern, name, out, count: 0, binary: false }
    }

    /// Prints the totals of a file. Returns true if anything was found.
    pub(crate) fn end(mut self) -> bool {
        let skipped = self.binary && self.look.binary == Binary::Skip;
        let found = self.count > 0 && !skipped;
        let done = match self.look.shown {
            Shown::Count => self.counted(),
            Shown::Names if found => self.names(),
            Shown::NamesWithout if !found => self.names(),
            _ => Ok(()),
        };
        _ = done.and_then(|()| self.out.flush());
        match self.look.shown {
            Shown::NamesWithout => !found,
            _ => found,
        }
    }

    fn counted(&mut self) -> io::Result<()> {
        if self.look.named {
            self.out.write_all(self.name.as_bytes())?;
            self.out.write_all(if self.look.null { b"\0" } else { b":" })?;
        }
        writeln!(self.out, "{}", self.count)
    }

    fn names(&mut self) -> io::Result<()> {
        self.out.write_all(self.name.as_bytes())?;
        self.out.write_all(if self.look.null { b"\0" } else { b"\n" })
    }

    fn head(&mut self, sign: char, line: Option<u64>, offset: u64) -> io::Result<()> {
        if self.look.named {
            self.out.write_all(self.name.as_bytes())?;
            if self.look.null {
                self.out.write_all(b"\0")?;
            } else {
                write!(self.out, "{sign}")?;
            }
        }
        if let (true, Some(line)) = (self.look.numbered, line) {
            write!(self.out, "{line}{sign}")?;
        }
        if self.look.offsets {
            write!(self.out, "{offset}{sign}")?;
        }
        if self.look.tab {
            self.out.write_all(b"\t")?;
        }
        Ok(())
    }

    fn line(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        if bytes.last() != Some(&self.look.end) {
            self.out.write_all(&[self.look.end])?;
        }
        if self.look.prompt {
            self.out.flush()?;
        }
        Ok(())
    }

    fn parts(&mut self, bytes: &[u8], line: Option<u64>, offset: u64) -> io::Result<()> {
        let text = bytes.strip_suffix(&[self.look.end]).unwrap_or(bytes);
        let mut at = 0;
        while at <= text.len() {
            let Ok(Some(found)) = self.pattern.find_at(text, at) else { break };
            if found.is_empty() {
                at = found.end() + 1;
                continue;
            }
            self.head(':', line, offset + found.start() as u64)?;
            self.line(text.get(found.start()..found.end()).unwrap_or_default())?;
            at = found.end();
        }
        Ok(())
    }
}

impl<W: Write> Sink for &mut Found<'_, W> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.look.most == Some(self.count) {
            return Ok(false);
        }
        if self.binary && self.look.binary == Binary::Skip {
            return Ok(false);
        }
        self.count += 1;
        match self.look.shown {
            Shown::Lines if self.binary => {
                self.out.flush()?;
                crate::say::say("grep", format_args!("{}: binary file matches", self.name));
                return Ok(false);
            }
            Shown::Lines if self.look.only => {
                if !self.look.invert {
                    self.parts(found.bytes(), found.line_number(), found.absolute_byte_offset())?;
                }
            }
            Shown::Lines => {
                self.head(':', found.line_number(), found.absolute_byte_offset())?;
                self.line(found.bytes())?;
            }
            Shown::Count => {}
            Shown::Names | Shown::NamesWithout | Shown::Nothing => return Ok(false),
        }
        // The lines behind the last one still come where they are asked for.
        Ok(self.look.most != Some(self.count) || self.look.separator.is_some())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.look.most == Some(self.count) && *context.kind() != SinkContextKind::After {
            return Ok(false);
        }
        if !self.binary {
            self.head('-', context.line_number(), context.absolute_byte_offset())?;
            self.line(context.bytes())?;
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.look.most == Some(self.count) {
            return Ok(false);
        }
        if let Some(separator) = &self.look.separator {
            writeln!(self.out, "{separator}")?;
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

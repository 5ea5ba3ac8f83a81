//! The output of grep.

use std::io::{self, Write};

use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use super::matcher::Pattern;

/// The kind of output: matching lines, a count, file names, or nothing.
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
    /// If true, prints only the matching parts of lines.
    pub only: bool,
    pub invert: bool,
    pub named: bool,
    pub numbered: bool,
    pub offsets: bool,
    pub tab: bool,
    /// If true, prints a NUL after each file name.
    pub null: bool,
    /// The line terminator.
    pub end: u8,
    pub binary: Binary,
    pub most: Option<u64>,
    /// The separator printed between groups of lines.
    pub separator: Option<String>,
    /// If true, matches, names and numbers are coloured.
    pub coloured: bool,
    /// If true, the output is flushed after each line.
    pub prompt: bool,
}

/// The sink for the matches in one file.
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

    /// Prints the count or the name of the file, if requested. Returns true if anything was found.
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
        found
    }

    fn counted(&mut self) -> io::Result<()> {
        if self.look.named {
            self.name(Some(':'))?;
        }
        writeln!(self.out, "{}", self.count)
    }

    fn names(&mut self) -> io::Result<()> {
        self.name(None)?;
        self.out.write_all(if self.look.null { b"" } else { b"\n" })
    }

    /// Prints the name of the file, followed by a NUL or by the separator `sign`.
    fn name(&mut self, sign: Option<char>) -> io::Result<()> {
        self.coloured(NAME, self.name.as_bytes())?;
        match sign {
            _ if self.look.null => self.out.write_all(b"\0"),
            Some(sign) => self.coloured(SIGN, sign.to_string().as_bytes()),
            None => Ok(()),
        }
    }

    fn coloured(&mut self, colour: &str, text: &[u8]) -> io::Result<()> {
        if !self.look.coloured {
            return self.out.write_all(text);
        }
        write!(self.out, "\x1b[{colour}m\x1b[K")?;
        self.out.write_all(text)?;
        self.out.write_all(b"\x1b[m\x1b[K")
    }

    fn head(&mut self, sign: char, line: Option<u64>, offset: u64) -> io::Result<()> {
        if self.look.named {
            self.name(Some(sign))?;
        }
        let line = line.filter(|_| self.look.numbered);
        let offset = Some(offset).filter(|_| self.look.offsets);
        for number in [line, offset].into_iter().flatten() {
            let width = if self.look.tab { ALIGNED } else { 0 };
            self.coloured(NUMBER, format!("{number:width$}").as_bytes())?;
            self.coloured(SIGN, sign.to_string().as_bytes())?;
        }
        if self.look.tab && (self.look.named || line.is_some() || offset.is_some()) {
            self.out.write_all(b"\t")?;
        }
        Ok(())
    }

    /// Prints a line. Colours its matches if `matches` is true and colours are enabled.
    fn line(&mut self, bytes: &[u8], matches: bool) -> io::Result<()> {
        let text = bytes.strip_suffix(&[self.look.end]).unwrap_or(bytes);
        if self.look.coloured && matches {
            let mut end = 0;
            for part in self.pattern.parts(text) {
                self.out.write_all(text.get(end..part.start).unwrap_or_default())?;
                end = part.end;
                self.coloured(MATCH, text.get(part).unwrap_or_default())?;
            }
            self.out.write_all(text.get(end..).unwrap_or_default())?;
        } else {
            self.out.write_all(text)?;
        }
        self.out.write_all(&[self.look.end])?;
        if self.look.prompt {
            self.out.flush()?;
        }
        Ok(())
    }

    /// Prints the matching parts of a line, each on its own line.
    fn parts(&mut self, bytes: &[u8], line: Option<u64>, offset: u64) -> io::Result<()> {
        let text = bytes.strip_suffix(&[self.look.end]).unwrap_or(bytes);
        for part in self.pattern.parts(text) {
            self.head(':', line, offset + part.start as u64)?;
            self.coloured(MATCH, text.get(part).unwrap_or_default())?;
            self.out.write_all(&[self.look.end])?;
        }
        Ok(())
    }
}

/// The default colours of GNU grep.
const MATCH: &str = "01;31";
const NAME: &str = "35";
const NUMBER: &str = "32";
const SIGN: &str = "36";

/// The minimum width of a line number or byte offset with `-T`, in characters.
const ALIGNED: usize = 19;

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
                self.line(found.bytes(), !self.look.invert)?;
            }
            Shown::Count => {}
            Shown::Names | Shown::NamesWithout | Shown::Nothing => return Ok(false),
        }
        // After the last match, the search continues only if context lines are requested.
        Ok(self.look.most != Some(self.count) || self.look.separator.is_some())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.look.most == Some(self.count) && *context.kind() != SinkContextKind::After {
            return Ok(false);
        }
        if !self.binary {
            self.head('-', context.line_number(), context.absolute_byte_offset())?;
            self.line(context.bytes(), self.look.invert)?;
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.look.most == Some(self.count) {
            return Ok(false);
        }
        if let Some(separator) = &self.look.separator {
            self.coloured(SIGN, separator.as_bytes())?;
            self.out.write_all(b"\n")?;
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

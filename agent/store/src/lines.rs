//! Line-based files: a reader that holds only one line in memory at a time, and an atomic append.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use wattle_capability::files::append_line;

/// Maximum length of a trace or ledger line, in bytes. A longer line is skipped.
pub const LINE_BYTES: usize = 4 << 20;

/// A line read from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The line's bytes, without the line break.
    Whole(&'a [u8]),
    /// A line longer than [`LINE_BYTES`]. Its bytes are dropped.
    Long,
}

/// A reader that returns the lines of a file one at a time.
pub struct LineReader<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
    is_ended: bool,
    position: u64,
}

impl LineReader<BufReader<File>> {
    /// Creates a reader that starts at the beginning of a file.
    pub fn of(file: File) -> Self {
        LineReader::new(BufReader::with_capacity(1 << 16, file))
    }

    /// Creates a reader that starts at the byte offset `position` in a file.
    ///
    /// # Errors
    /// If the file is not seekable.
    pub(crate) fn from(mut file: File, position: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(position))?;
        Ok(LineReader { position, ..LineReader::of(file) })
    }
}

impl<R: BufRead> LineReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        LineReader { reader, line: Vec::new(), number: 0, is_ended: true, position: 0 }
    }

    /// Returns true if the last line that was read ends with a line break.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Returns the byte offset of the end of the last line that was read.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the next line with its number, counted from 1, or `None` at the end of the file. The
    /// last line is returned even if it does not end with a line break.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, Line<'_>)>> {
        self.line.clear();
        let (mut is_long, mut has_any) = (false, false);
        self.is_ended = false;
        while !self.is_ended {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            has_any = true;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            is_long = is_long || self.line.len() + part.len() > LINE_BYTES;
            if is_long {
                self.line.clear()
            } else {
                self.line.extend_from_slice(part)
            }
            let used = part.len() + usize::from(end.is_some());
            self.is_ended = end.is_some();
            self.reader.consume(used);
            self.position += used as u64;
        }
        if !has_any {
            self.is_ended = true;
            return Ok(None);
        }
        self.number += 1;
        Ok(Some((self.number, if is_long { Line::Long } else { Line::Whole(&self.line) })))
    }
}

/// Appends a line in a single write, so that runs that share a file do not interleave their lines.
/// If the file was replaced with a link, the link is not followed, because the workdir may be
/// writable by others.
pub fn append(path: &Path, line: &[u8]) -> io::Result<()> {
    append_line(path, &[line, b"\n"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<(u64, Option<Vec<u8>>, bool)> {
        let mut lines = LineReader::new(BufReader::with_capacity(7, text));
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next_line().unwrap() {
            let bytes = if let Line::Whole(bytes) = line { Some(bytes.to_vec()) } else { None };
            found.push((number, bytes, lines.is_ended()));
        }
        found
    }

    #[test]
    fn lines_are_read_one_by_one_and_long_ones_are_skipped() {
        let line = |number, text: &str, ended| (number, Some(text.as_bytes().to_vec()), ended);
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\n"), [line(1, "", true)]);
        assert_eq!(
            all(b"a\n\nlonger than a chunk\r\nb"),
            [
                line(1, "a", true),
                line(2, "", true),
                line(3, "longer than a chunk\r", true),
                line(4, "b", false),
            ]
        );
        let long = [b"a\n".to_vec(), vec![b'x'; LINE_BYTES + 1], b"\nb\n".to_vec()].concat();
        assert_eq!(all(&long), [line(1, "a", true), (2, None, true), line(3, "b", true)]);
        let fits = [vec![b'x'; LINE_BYTES], b"\n".to_vec()].concat();
        assert_eq!(all(&fits)[0].1.as_ref().map(Vec::len), Some(LINE_BYTES));
    }
}

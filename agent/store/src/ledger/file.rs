//! The ledger file. It is locked while a line and its seal are added, so that lines and seals have
//! the same order even if several processes write them.

use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Error, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use wattle_capability::files::{lock_soon, open_lines, open_lines_to_read};

use super::rotate::{Before, before, complete, identity};
use crate::lines::{LINE_BYTES, Line, LineReader};

/// Number of bytes per read in a backward search for a line break.
const CHUNK: u64 = 4_096;
/// Number of bytes per step in a backward search from the end of the file.
const BACK: u64 = 1 << 16;

/// A ledger that can be read. Another process may append to it at the same time.
pub(super) struct Ledger(File);

impl Ledger {
    /// Opens the file without locking it. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// If the file is not a regular file, or cannot be read.
    pub(super) fn open(path: &Path) -> io::Result<Option<Ledger>> {
        Ok(open_lines_to_read(path)?.map(Ledger))
    }

    /// Returns the length of the file, in bytes.
    ///
    /// # Errors
    /// If the file's metadata cannot be read.
    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    /// Returns the device and the inode of the file.
    ///
    /// # Errors
    /// If the file's metadata cannot be read.
    pub(super) fn identity(&self) -> io::Result<(u64, u64)> {
        let meta = self.0.metadata()?;
        Ok((meta.dev(), meta.ino()))
    }

    /// Returns a reader of the lines from a byte position onwards.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn lines_from(&self, position: u64) -> io::Result<LineReader<BufReader<File>>> {
        LineReader::from(self.0.try_clone()?, position)
    }

    /// Returns a byte position such that all lines before it satisfy `is_older`. Lines are sorted
    /// by time, so the file is searched backwards in large steps, and the position may be earlier
    /// than necessary.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn position_after(&self, is_older: impl Fn(&[u8]) -> bool) -> io::Result<u64> {
        let mut from = self.length()?;
        while from > 0 {
            from = from.saturating_sub(BACK);
            let mut lines = self.lines_from(from)?;
            // The first line may be incomplete.
            if from > 0 {
                lines.next_line()?;
            }
            let begin = lines.position();
            if let Some((_, Line::Whole(line))) = lines.next_line()?
                && is_older(line)
            {
                return Ok(begin);
            }
        }
        Ok(0)
    }

    /// Returns the last line without its line break, or `None` if there is no line.
    ///
    /// # Errors
    /// If the line cannot be read, or is too long for a seal.
    pub(super) fn last(&mut self) -> io::Result<Option<Vec<u8>>> {
        let length = self.length()?;
        let Some(end) = length.checked_sub(1) else { return Ok(None) };
        self.last_line(end).map(|(_, line)| Some(line))
    }

    /// Finds the line that ends at the byte position `end`. Returns the byte position at which the
    /// line starts, and the line.
    fn last_line(&mut self, end: u64) -> io::Result<(u64, Vec<u8>)> {
        let mut line = Vec::new();
        let mut from = end;
        while from > 0 {
            let to = from;
            from = from.saturating_sub(CHUNK);
            let chunk = self.read(from, to)?;
            if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
                let begin = from + at as u64 + 1;
                line.splice(0..0, chunk.into_iter().skip(at + 1));
                return Ok((begin, line));
            }
            line.splice(0..0, chunk);
            if line.len() > LINE_BYTES {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    "its last line is too long to be a seal",
                ));
            }
        }
        Ok((0, line))
    }

    fn read(&mut self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        self.0.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        (&self.0).take(to.saturating_sub(from)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// A locked ledger. No other process can append to it.
pub(super) struct LockedLedger {
    ledger: Ledger,
    folder: PathBuf,
}

impl Deref for LockedLedger {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.ledger
    }
}

impl LockedLedger {
    /// Locks the file and creates it if it is absent. Removes an incomplete last line, which a
    /// stopped process may have left behind.
    ///
    /// # Errors
    /// If the file is not a regular file, cannot be written, or stays locked by another process for
    /// 100 ms. In the last case, the kind of the error is [`ErrorKind::WouldBlock`].
    pub(super) fn open(path: &Path) -> io::Result<LockedLedger> {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        loop {
            let ledger = Ledger(open_lines(path)?);
            lock_soon(&ledger.0, File::try_lock).map_err(|failed| match failed {
                TryLockError::Error(error) => error,
                TryLockError::WouldBlock => {
                    Error::new(ErrorKind::WouldBlock, "another process keeps it locked")
                }
            })?;
            // While this process waited, another one may have rotated the ledger, or was killed when it
            // had begun to.
            let meta = ledger.0.metadata()?;
            let is_current = identity(path)? == Some((meta.dev(), meta.ino()));
            if is_current && !(meta.nlink() > 1 && complete(&folder, &ledger)?) {
                let mut locked = LockedLedger { ledger, folder };
                locked.remove_incomplete_line()?;
                return Ok(locked);
            }
        }
    }

    fn remove_incomplete_line(&mut self) -> io::Result<()> {
        let length = self.length()?;
        let (begin, _) = self.ledger.last_line(length)?;
        let is_whole = length == 0 || self.ledger.read(length - 1, length)? == b"\n";
        if is_whole { Ok(()) } else { self.ledger.0.set_len(begin) }
    }

    /// Returns the last line without its line break, or `None` if there is no line. In an empty ledger,
    /// it is the last line of the rotated part before.
    ///
    /// # Errors
    /// If the line cannot be read, or is too long for a seal.
    pub(super) fn last(&mut self) -> io::Result<Option<Vec<u8>>> {
        Ok(match self.ledger.last()? {
            None => match before(&self.folder)? {
                Before::Line(line) => Some(line),
                Before::Nothing | Before::Removed => None,
            },
            last => last,
        })
    }

    /// Appends a line in one write and returns the byte position after the line.
    ///
    /// # Errors
    /// If the line cannot be written.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<u64> {
        self.ledger.0.write_all(&[line, b"\n"].concat())?;
        self.length()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_found_and_an_incomplete_one_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        assert_eq!(LockedLedger::open(&path).unwrap().last().unwrap(), None);
        let long = "x".repeat(10_000);
        for (text, last, left) in [
            ("a\n".to_owned(), Some("a"), "a\n".to_owned()),
            ("a\nb".to_owned(), Some("a"), "a\n".to_owned()),
            ("torn".to_owned(), None, String::new()),
            ("a\n\n".to_owned(), Some(""), "a\n\n".to_owned()),
            (format!("a\n{long}\n"), Some(long.as_str()), format!("a\n{long}\n")),
            (format!("a\n{long}"), Some("a"), "a\n".to_owned()),
        ] {
            std::fs::write(&path, &text).unwrap();
            let found = LockedLedger::open(&path).unwrap().last().unwrap();
            assert_eq!(found.as_deref(), last.map(str::as_bytes));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), left);
        }
        LockedLedger::open(&path).unwrap().append(b"c").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nc\n");
    }

    #[test]
    fn a_last_line_longer_than_the_limit_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger");
        std::fs::write(&path, "x".repeat(LINE_BYTES + 8_192)).unwrap();
        assert_eq!(LockedLedger::open(&path).err().unwrap().kind(), ErrorKind::InvalidData);
    }
}

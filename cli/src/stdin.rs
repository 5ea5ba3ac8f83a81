//! The one reader of stdin. Whoever needs input holds it while it reads: the line editor, a question
//! to the user, or a command that reads its input from a pipe.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal as _, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Maximum size of one read, in bytes.
const PIECE: usize = 8 << 10;

/// Maximum length of an answer, in bytes.
const ANSWER: u64 = 1 << 10;

static READER: Mutex<Reader> = Mutex::new(Reader { bytes: Vec::new(), used: 0 });

/// The reader, with the bytes that were read and are not used yet.
pub(crate) struct Reader {
    bytes: Vec<u8>,
    /// Number of bytes at the start of `bytes` that are used.
    used: usize,
}

/// Waits until nobody else reads stdin, and returns its reader.
pub(crate) fn lock() -> MutexGuard<'static, Reader> {
    READER.lock()
}

/// Returns true if stdin and stdout are terminals.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns true if stdin is a pipe or a file. A terminal, a device or a socket is neither.
pub(crate) fn is_pipe_or_file() -> bool {
    let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let kind = stdin.and_then(|stdin| stdin.metadata()).map(|about| about.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
}

/// Waits for input or its end, for at most `time`. Returns false if the time has passed first.
pub(crate) fn has_input(time: Duration) -> bool {
    let stdin = io::stdin();
    let time = Timespec::try_from(time).ok();
    poll(&mut [PollFd::new(&stdin, PollFlags::IN)], time.as_ref()) != Ok(0)
}

/// Returns the two ends of a connection. When the first one is dropped, a [`Reader::answer`] that
/// waits with the second one stops.
///
/// # Errors
/// If the process cannot open more files.
pub(crate) fn stopper() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}

impl Reader {
    /// Reads one line as the answer to a question. Returns `None` at the end of the input, or if
    /// the other end of `stop` is dropped. In that case, nothing is taken from stdin, so that the
    /// next reader gets whatever is typed.
    ///
    /// # Errors
    /// If stdin cannot be read.
    pub(crate) fn answer(&mut self, stop: Option<&UnixStream>) -> io::Result<Option<String>> {
        if let Some(stop) = stop
            && self.used == self.bytes.len()
            && !is_ready(stop)?
        {
            return Ok(None);
        }
        let mut line = Vec::new();
        self.take(ANSWER).read_until(b'\n', &mut line)?;
        Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned()))
    }
}

/// Waits for input. Returns false if the other end of `stop` is dropped first. A terminal provides
/// whole lines, so a line that has begun can be read to its end.
fn is_ready(stop: &UnixStream) -> io::Result<bool> {
    let stdin = io::stdin();
    loop {
        let mut fds = [PollFd::new(stop, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        let [stop, stdin] = fds.map(|fd| !fd.revents().is_empty());
        if stop || stdin {
            return Ok(!stop);
        }
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.bytes.len() {
            self.bytes.resize(PIECE, 0);
            self.used = 0;
            let read = loop {
                match rustix::io::read(io::stdin().as_fd(), self.bytes.as_mut_slice()) {
                    Err(Errno::INTR) => {}
                    read => break read,
                }
            };
            self.bytes.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        Ok(self.bytes.split_at(self.used).1)
    }

    fn consume(&mut self, count: usize) {
        self.used = self.bytes.len().min(self.used + count);
    }
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

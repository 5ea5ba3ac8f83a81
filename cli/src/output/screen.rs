//! The standard streams of a shell. On a terminal, control characters in the output are made
//! visible.

use std::io::{self, IsTerminal, stderr, stdin, stdout};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::fs::File;
use tokio::io::AsyncWrite;
use wattle_agent::host::shell::{Stdio, Stream};

use super::Visible;
use crate::fault::Fault;

/// Maximum size of one write, in bytes.
const PIECE: usize = 64 << 10;

/// The standard streams of the process, for the commands of a shell.
pub(crate) struct Screen {
    /// The streams. Output to a terminal is filtered.
    pub(crate) streams: Stdio,
    /// The incomplete characters that the filters withhold.
    pub(crate) rest: Rest,
}

impl Screen {
    /// Opens the streams. Output to a terminal passes through a filter.
    ///
    /// # Errors
    /// If one of the streams cannot be opened.
    pub(crate) fn open() -> Result<Screen, Fault> {
        let (stdout, out) = writer(stdout().as_fd(), stdout().is_terminal())?;
        let (stderr, err) = writer(stderr().as_fd(), stderr().is_terminal())?;
        let stdin = Stream::reader(opened(stdin().as_fd())?);
        Ok(Screen { streams: Stdio { stdin, stdout, stderr }, rest: Rest([out, err]) })
    }
}

/// A handle to the incomplete characters that the filters of stdout and stderr withhold.
pub(crate) struct Rest([Held; 2]);

impl Rest {
    /// Writes the withheld incomplete characters to their streams, escaped.
    ///
    /// # Errors
    /// If writing to stdout fails.
    pub(crate) fn show(self) -> Result<(), Fault> {
        let [out, err] =
            self.0.map(|held| held.map(|held| held.lock().finish()).unwrap_or_default());
        super::to_stderr(err.as_bytes());
        super::to_stdout(out.as_bytes())
    }
}

type Held = Option<Arc<Mutex<Visible>>>;

fn writer(stream: BorrowedFd<'_>, is_terminal: bool) -> Result<(Stream, Held), Fault> {
    let sink = opened(stream)?;
    if !is_terminal {
        return Ok((Stream::writer(sink), None));
    }
    let filter = Arc::new(Mutex::new(Visible::default()));
    let shown = Shown { sink, filter: Arc::clone(&filter), pending: Vec::new() };
    Ok((Stream::writer(shown), Some(filter)))
}

/// Wraps a duplicate of a standard stream. Reads and writes run on separate threads, so that they
/// do not block the threads that run commands.
fn opened(stream: BorrowedFd<'_>) -> Result<File, Fault> {
    let own = stream.try_clone_to_owned();
    let own =
        own.map_err(|error| Fault::failed(format!("failed to open a standard stream: {error}")))?;
    Ok(File::from_std(std::fs::File::from(own)))
}

/// A stream whose output passes through a filter that makes control characters visible.
struct Shown<W> {
    sink: W,
    filter: Arc<Mutex<Visible>>,
    /// The filtered output that has not been written yet.
    pending: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> Shown<W> {
    fn drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.pending.is_empty() {
            let written = ready!(Pin::new(&mut self.sink).poll_write(context, &self.pending))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.pending.drain(..written.min(self.pending.len()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Shown<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.drain(context))?;
        let piece = data.get(..PIECE).unwrap_or(data);
        let shown = self.filter.lock().feed(piece);
        self.pending = shown.into_bytes();
        // The next write or flush writes the remaining output.
        match self.drain(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(piece.len())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.drain(context))?;
        Pin::new(&mut self.sink).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.drain(context))?;
        Pin::new(&mut self.sink).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn what_a_command_writes_only_shows() {
        let filter = Arc::new(Mutex::new(Visible::default()));
        let mut shown =
            Shown { sink: Vec::new(), filter: Arc::clone(&filter), pending: Vec::new() };
        for piece in [&b"a\x1b"[..], b"]52;c;x\x07\xc2", b"\x9bb\xe2\x80"] {
            shown.write_all(piece).await.unwrap();
            shown.flush().await.unwrap();
        }
        shown.write_all("é".repeat(PIECE).as_bytes()).await.unwrap();
        shown.flush().await.unwrap();
        let text = String::from_utf8(shown.sink).unwrap();
        assert!(
            text.starts_with("a\\u{1b}]52;c;x\\u{7}\\u{9b}b\\xe2\\x80éé") && text.ends_with('é')
        );
        assert_eq!(text.matches('é').count(), PIECE);
    }
}

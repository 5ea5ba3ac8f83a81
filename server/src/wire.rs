//! The TCP stream under the HTTP layer. It enforces a time limit on slow readers and suppresses the
//! HTTP layer's error responses.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A shared TCP stream whose writes fail if the peer does not read in time. Writes before the first
/// request are discarded, because the HTTP layer would send an error without a body.
/// [`crate::connection`] sends its own error instead.
pub(crate) struct Wire {
    stream: Arc<TcpStream>,
    has_request: Arc<AtomicBool>,
    limit: Duration,
    /// The deadline of the pending write.
    overdue: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    pub(crate) fn new(
        stream: Arc<TcpStream>,
        has_request: Arc<AtomicBool>,
        limit: Duration,
    ) -> Self {
        Wire { stream, has_request, limit, overdue: None }
    }

    /// Fails a pending write that exceeds the time limit.
    fn in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.overdue = None;
            return written;
        }
        let overdue = self.overdue.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        overdue.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buf.initialize_unfilled()) {
                Ok(read) => {
                    buf.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Wire {
    fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_write(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.has_request.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(buf.len()));
        }
        let written = self.poll_send(cx, buf);
        self.in_time(cx, written)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // If no request was received, the server may still have to send an error, so the stream
        // stays open.
        Poll::Ready(match self.has_request.load(Ordering::Relaxed) {
            true => shutdown(&*self.stream, Shutdown::Write).map_err(io::Error::from),
            false => Ok(()),
        })
    }
}

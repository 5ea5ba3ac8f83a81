//! The TCP stream below HTTP: limits slow readers, and suppresses the error answers of the HTTP
//! layer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A TCP stream whose writes fail if the peer does not read in time. Before the first request,
/// writes are discarded: the HTTP layer would send an error without a body, which
/// [`crate::connection`] replaces.
pub(crate) struct Wire {
    stream: TcpStream,
    has_request: Arc<AtomicBool>,
    limit: Duration,
    /// The deadline of the pending write.
    overdue: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, has_request: Arc<AtomicBool>, limit: Duration) -> Self {
        Wire { stream, has_request, limit, overdue: None }
    }

    pub(crate) fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Limits the time of a pending write.
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
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
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
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.in_time(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.in_time(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

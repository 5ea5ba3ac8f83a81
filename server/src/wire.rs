//! The TCP stream under the HTTP layer. It enforces a time limit on slow readers and suppresses the
//! HTTP layer's error responses.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Minimum average rate at which a client must read a finite response, in bytes per second. The
/// average excludes a grace period equal to the time limit of one write.
const MIN_RATE: u64 = 16 << 10;

/// The time limits of a connection's writes.
pub(crate) struct Pace {
    /// Maximum time that a write waits for the client.
    limit: Duration,
    /// The progress of the current response, or `None` if the response is a stream of events.
    response: Mutex<Option<Progress>>,
}

/// The progress of a response.
struct Progress {
    started: Instant,
    /// Number of bytes sent so far.
    sent: u64,
}

impl Pace {
    pub(crate) fn new(limit: Duration) -> Pace {
        Pace { limit, response: Mutex::default() }
    }

    /// Starts measuring the progress of a response. Only a finite response must reach the minimum
    /// average rate.
    pub(crate) fn start(&self, is_finite: bool) {
        let progress = is_finite.then(|| Progress { started: Instant::now(), sent: 0 });
        *self.response() = progress;
    }

    fn add(&self, sent: usize) {
        if let Some(progress) = &mut *self.response() {
            progress.sent = progress.sent.saturating_add(sent as u64);
        }
    }

    /// Returns the deadline of a write that starts waiting now.
    fn deadline(&self) -> Instant {
        let latest = Instant::now() + self.limit;
        match &*self.response() {
            Some(Progress { started, sent }) => {
                let permitted = Duration::from_millis(sent.saturating_mul(1_000) / MIN_RATE);
                latest.min(*started + self.limit + permitted)
            }
            None => latest,
        }
    }

    fn response(&self) -> MutexGuard<'_, Option<Progress>> {
        self.response.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shared TCP stream whose writes fail if the peer does not read in time. Writes before the first
/// request are discarded, because the HTTP layer would send an error without a body.
/// [`crate::connection`] sends its own error instead.
pub(crate) struct Wire {
    stream: Arc<TcpStream>,
    has_request: Arc<AtomicBool>,
    pace: Arc<Pace>,
    /// The deadline of the pending write.
    overdue: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    pub(crate) fn new(
        stream: Arc<TcpStream>,
        has_request: Arc<AtomicBool>,
        pace: Arc<Pace>,
    ) -> Self {
        Wire { stream, has_request, pace, overdue: None }
    }

    /// Fails a pending write that exceeds a time limit.
    fn in_time(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            self.overdue = None;
            self.pace.add(*written.as_ref().unwrap_or(&0));
            return Poll::Ready(written);
        }
        let pace = &self.pace;
        let overdue = self.overdue.get_or_insert_with(|| Box::pin(sleep_until(pace.deadline())));
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
        Poll::Ready(if self.has_request.load(Ordering::Relaxed) {
            shutdown(&*self.stream, Shutdown::Write).map_err(io::Error::from)
        } else {
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_a_little_from_time_to_time_is_disconnected() {
        let limit = Duration::from_secs(60);
        let pace = Pace::new(limit);
        assert_eq!(pace.deadline() - Instant::now(), limit);
        pace.start(true);
        let started = Instant::now();
        // A part of the response every 50 seconds, at less than the minimum rate.
        for _ in 0..2 {
            advance(Duration::from_secs(50)).await;
            pace.add(64 << 10);
        }
        assert_eq!(pace.deadline(), started + limit + Duration::from_secs(8));
        assert!(pace.deadline() < Instant::now());
        // Faster clients wait at most as long as one write may.
        pace.start(true);
        pace.add(64 << 20);
        assert_eq!(pace.deadline() - Instant::now(), limit);
        // The rate of an event stream depends on the events.
        pace.start(false);
        pace.add(1);
        advance(Duration::from_secs(3_600)).await;
        assert_eq!(pace.deadline() - Instant::now(), limit);
    }
}

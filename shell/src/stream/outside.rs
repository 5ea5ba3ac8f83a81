//! Input and output streams outside the run, such as the terminal or a request's body.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

use crate::errno::Errno;

/// Number of bytes requested by one read of the source.
const CHUNK: usize = 64 << 10;

/// An input stream from a source outside the run.
pub(super) struct Input(Mutex<Source>);

struct Source {
    from: Pin<Box<dyn AsyncRead + Send>>,
    buffer: BytesMut,
    ended: bool,
}

impl Input {
    pub(super) fn new(source: impl AsyncRead + Send + 'static) -> Input {
        Input(Mutex::new(Source { from: Box::pin(source), buffer: BytesMut::new(), ended: false }))
    }

    pub(super) async fn read(&self, max: usize) -> Result<Bytes, Errno> {
        let mut source = self.0.lock().await;
        source.fill().await?;
        let len = max.min(source.buffer.len());
        Ok(source.buffer.split_to(len).freeze())
    }

    pub(super) async fn wait(&self) {
        // The next read returns the error.
        let _ = self.0.lock().await.fill().await;
    }
}

impl Source {
    /// Fills the buffer if it is empty and the source has not ended.
    async fn fill(&mut self) -> Result<(), Errno> {
        if self.buffer.is_empty() && !self.ended {
            self.buffer.reserve(CHUNK);
            let read = self.from.read_buf(&mut self.buffer).await.map_err(|_| Errno::IO)?;
            self.ended = read == 0;
        }
        Ok(())
    }
}

/// An output stream to a sink outside the run.
pub(super) struct Output(Mutex<Pin<Box<dyn AsyncWrite + Send>>>);

impl Output {
    pub(super) fn new(sink: impl AsyncWrite + Send + 'static) -> Output {
        Output(Mutex::new(Box::pin(sink)))
    }

    pub(super) async fn write(&self, data: &[u8]) -> Result<(), Errno> {
        let mut sink = self.0.lock().await;
        let errno = |cause: std::io::Error| match cause.kind() {
            std::io::ErrorKind::BrokenPipe => Errno::PIPE,
            _ => Errno::IO,
        };
        sink.write_all(data).await.map_err(errno)?;
        sink.flush().await.map_err(errno)
    }
}

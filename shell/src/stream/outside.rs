//! Streams that come from outside of the run and go there: the terminal, a request's body.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

use crate::errno::Errno;

/// The bytes that are asked for at once.
const PIECE: usize = 64 << 10;

/// A source outside.
pub(super) struct Input(Mutex<Source>);

struct Source {
    from: Pin<Box<dyn AsyncRead + Send>>,
    held: BytesMut,
    ended: bool,
}

impl Input {
    pub(super) fn new(source: impl AsyncRead + Send + 'static) -> Input {
        Input(Mutex::new(Source { from: Box::pin(source), held: BytesMut::new(), ended: false }))
    }

    pub(super) async fn read(&self, max: usize) -> Result<Bytes, Errno> {
        let mut source = self.0.lock().await;
        source.fill().await?;
        let most = max.min(source.held.len());
        Ok(source.held.split_to(most).freeze())
    }

    pub(super) async fn wait(&self) {
        // What went wrong is told to whoever reads.
        let _ = self.0.lock().await.fill().await;
    }
}

impl Source {
    /// Makes sure that something is held, but at the end.
    async fn fill(&mut self) -> Result<(), Errno> {
        if self.held.is_empty() && !self.ended {
            self.held.reserve(PIECE);
            let read = self.from.read_buf(&mut self.held).await.map_err(|_| Errno::IO)?;
            self.ended = read == 0;
        }
        Ok(())
    }
}

/// A sink outside.
pub(super) struct Output(Mutex<Pin<Box<dyn AsyncWrite + Send>>>);

impl Output {
    pub(super) fn new(sink: impl AsyncWrite + Send + 'static) -> Output {
        Output(Mutex::new(Box::pin(sink)))
    }

    pub(super) async fn write(&self, data: &[u8]) -> Result<(), Errno> {
        let mut sink = self.0.lock().await;
        let told = |cause: std::io::Error| match cause.kind() {
            std::io::ErrorKind::BrokenPipe => Errno::PIPE,
            _ => Errno::IO,
        };
        sink.write_all(data).await.map_err(told)?;
        sink.flush().await.map_err(told)
    }
}

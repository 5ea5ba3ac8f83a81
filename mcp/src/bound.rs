//! A reader that ends with an error when a line is too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Reads lines of at most `limit` bytes. A longer line is an error instead of an unbounded buffer or
/// of an answer that never arrives.
pub(crate) struct BoundedLines<R> {
    reader: R,
    limit: usize,
    length: usize,
}

impl<R> BoundedLines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> BoundedLines<R> {
        BoundedLines { reader, limit, length: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, buffer))?;
        for byte in buffer.filled().get(before..).unwrap_or_default() {
            self.length = if *byte == b'\n' { 0 } else { self.length + 1 };
            if self.length > self.limit {
                let why = format!("it sent a message of more than {} MiB", self.limit >> 20);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_an_error() {
        let mut text = String::new();
        let read = BoundedLines::new(&b"1234\n1234\n"[..], 4).read_to_string(&mut text).await;
        assert!(read.is_ok() && text == "1234\n1234\n");
        let why = BoundedLines::new(&b"1234\n12345"[..], 4).read_to_string(&mut text).await;
        assert!(why.unwrap_err().to_string().contains("more than"));
    }
}

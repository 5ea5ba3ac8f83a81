//! A pipe: a bounded queue of bytes between its two ends.

use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::errno::Errno;
use crate::lock::lock;

/// Capacity of a pipe, in bytes.
const CAPACITY: usize = 64 << 10;
/// Maximum size of an atomic write, in bytes. Such a write is never interleaved with others.
const ATOMIC: usize = 4096;

/// The reading end of a pipe. Dropping it breaks the pipe.
pub(super) struct PipeReader(Arc<Pipe>);

/// The writing end of a pipe. After it is dropped, the reader gets the remaining bytes and then
/// reaches the end.
pub(super) struct PipeWriter(Arc<Pipe>);

struct Pipe {
    state: Mutex<State>,
    /// A signal that there is data to read, or that the writer has been dropped.
    readable: Notify,
    /// A signal that there is room to write, or that the reader has been dropped.
    writable: Notify,
}

struct State {
    buffer: BytesMut,
    writer_gone: bool,
    reader_gone: bool,
}

pub(super) fn pipe() -> (PipeReader, PipeWriter) {
    let pipe = Arc::new(Pipe {
        state: Mutex::new(State {
            buffer: BytesMut::new(),
            writer_gone: false,
            reader_gone: false,
        }),
        readable: Notify::new(),
        writable: Notify::new(),
    });
    (PipeReader(Arc::clone(&pipe)), PipeWriter(pipe))
}

impl PipeReader {
    /// Reads the available bytes, at most `max`. At the end of the stream, returns an empty buffer.
    /// Returns `None` if a read would have to wait.
    pub(super) fn try_read(&self, max: usize) -> Option<Bytes> {
        let mut state = lock(&self.0.state);
        if state.buffer.is_empty() {
            return (state.writer_gone || max == 0).then(Bytes::new);
        }
        let len = max.min(state.buffer.len());
        let data = state.buffer.split_to(len).freeze();
        drop(state);
        self.0.writable.notify_waiters();
        Some(data)
    }

    pub(super) async fn read(&self, max: usize) -> Bytes {
        loop {
            if let Some(data) = self.try_read(max) {
                return data;
            }
            self.wait().await;
        }
    }

    /// Returns the number of available bytes, or `None` if a read would have to wait.
    pub(super) fn ready(&self) -> Option<usize> {
        let state = lock(&self.0.state);
        (state.writer_gone || !state.buffer.is_empty()).then_some(state.buffer.len())
    }

    /// Waits until there is data to read or the end is reached.
    pub(super) async fn wait(&self) {
        wait_until(&self.0.readable, || self.ready().is_some()).await;
    }
}

impl PipeWriter {
    /// Writes all data if there is room for it. Otherwise writes nothing and returns `None`.
    pub(super) fn try_write(&self, data: &[u8]) -> Option<Result<(), Errno>> {
        let mut state = lock(&self.0.state);
        if state.reader_gone {
            return Some(Err(Errno::PIPE));
        }
        if state.buffer.len() + data.len() > CAPACITY {
            return None;
        }
        state.buffer.extend_from_slice(data);
        drop(state);
        self.0.readable.notify_waiters();
        Some(Ok(()))
    }

    pub(super) async fn write(&self, mut data: &[u8]) -> Result<(), Errno> {
        let atomic = data.len() <= ATOMIC;
        while !data.is_empty() {
            let room = CAPACITY - lock(&self.0.state).buffer.len().min(CAPACITY);
            let len = if atomic { data.len() } else { data.len().min(room.max(ATOMIC)) };
            let (part, rest) = data.split_at(len);
            match self.try_write(part) {
                Some(written) => {
                    written?;
                    data = rest;
                }
                None => wait_until(&self.0.writable, || self.has_room(part.len())).await,
            }
        }
        Ok(())
    }

    fn has_room(&self, size: usize) -> bool {
        let state = lock(&self.0.state);
        state.reader_gone || state.buffer.len() + size <= CAPACITY
    }

    /// Returns true if a write would not have to wait, because there is room or no reader.
    pub(super) fn is_ready(&self) -> bool {
        self.has_room(ATOMIC)
    }

    /// Waits until there is room to write, or the reader has been dropped.
    pub(super) async fn wait(&self) {
        wait_until(&self.0.writable, || self.is_ready()).await;
    }
}

/// Waits until a condition is true. Checks it again at each notification.
async fn wait_until(notify: &Notify, condition: impl Fn() -> bool) {
    loop {
        let next = notify.notified();
        tokio::pin!(next);
        // From here on no notification is missed.
        next.as_mut().enable();
        if condition() {
            return;
        }
        next.await;
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.reader_gone = true;
        state.buffer = BytesMut::new();
        drop(state);
        self.0.writable.notify_waiters();
    }
}

impl Drop for PipeWriter {
    fn drop(&mut self) {
        lock(&self.0.state).writer_gone = true;
        self.0.readable.notify_waiters();
    }
}

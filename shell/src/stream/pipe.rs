//! A pipe: a bounded queue of bytes between its two ends.

use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::lock;
use crate::errno::Errno;

/// The bytes that a pipe holds.
const ROOM: usize = 64 << 10;
/// The bytes that are written as a whole, never mixed with what another writes.
const ATOMIC: usize = 4096;

/// The end to read from; the pipe has no reader any more when it is dropped.
pub(super) struct ReadEnd(Arc<Pipe>);

/// The end to write to; the pipe is at its end when it is dropped and what it holds is read.
pub(super) struct WriteEnd(Arc<Pipe>);

struct Pipe {
    state: Mutex<State>,
    /// Told when there is something to read, or the end.
    readable: Notify,
    /// Told when there is room, or no reader.
    writable: Notify,
}

struct State {
    held: BytesMut,
    written: bool,
    read: bool,
}

pub(super) fn pipe() -> (ReadEnd, WriteEnd) {
    let pipe = Arc::new(Pipe {
        state: Mutex::new(State { held: BytesMut::new(), written: false, read: false }),
        readable: Notify::new(),
        writable: Notify::new(),
    });
    (ReadEnd(Arc::clone(&pipe)), WriteEnd(pipe))
}

impl ReadEnd {
    /// What is there, or the end; `None` where it is to be waited for.
    pub(super) fn read_ready(&self, max: usize) -> Option<Bytes> {
        let mut state = lock(&self.0.state);
        if state.held.is_empty() {
            return (state.written || max == 0).then(Bytes::new);
        }
        let most = max.min(state.held.len());
        let data = state.held.split_to(most).freeze();
        drop(state);
        self.0.writable.notify_waiters();
        Some(data)
    }

    pub(super) async fn read(&self, max: usize) -> Bytes {
        loop {
            if let Some(data) = self.read_ready(max) {
                return data;
            }
            self.wait().await;
        }
    }

    /// The bytes that are there; `None` before the end where there are none.
    pub(super) fn ready(&self) -> Option<usize> {
        let state = lock(&self.0.state);
        (state.written || !state.held.is_empty()).then_some(state.held.len())
    }

    /// Waits until there is something to read, or the end.
    pub(super) async fn wait(&self) {
        wait_until(&self.0.readable, || self.ready().is_some()).await;
    }
}

impl WriteEnd {
    /// Writes all of it where there is room for it at once; nothing, else.
    pub(super) fn write_ready(&self, data: &[u8]) -> Option<Result<(), Errno>> {
        let mut state = lock(&self.0.state);
        if state.read {
            return Some(Err(Errno::PIPE));
        }
        if state.held.len() + data.len() > ROOM {
            return None;
        }
        state.held.extend_from_slice(data);
        drop(state);
        self.0.readable.notify_waiters();
        Some(Ok(()))
    }

    pub(super) async fn write(&self, mut data: &[u8]) -> Result<(), Errno> {
        let whole = data.len() <= ATOMIC;
        while !data.is_empty() {
            let room = ROOM - lock(&self.0.state).held.len().min(ROOM);
            let most = if whole { data.len() } else { data.len().min(room.max(ATOMIC)) };
            let (part, rest) = data.split_at(most);
            match self.write_ready(part) {
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
        state.read || state.held.len() + size <= ROOM
    }

    /// Whether a write finds room, or no reader.
    pub(super) fn is_ready(&self) -> bool {
        self.has_room(ATOMIC)
    }

    /// Waits until there is room, or no reader.
    pub(super) async fn wait(&self) {
        wait_until(&self.0.writable, || self.is_ready()).await;
    }
}

/// Waits to be told that a thing may have become so, until it is.
async fn wait_until(told: &Notify, so: impl Fn() -> bool) {
    loop {
        let next = told.notified();
        tokio::pin!(next);
        // From here on nothing that is told is missed.
        next.as_mut().enable();
        if so() {
            return;
        }
        next.await;
    }
}

impl Drop for ReadEnd {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.read = true;
        state.held = BytesMut::new();
        drop(state);
        self.0.writable.notify_waiters();
    }
}

impl Drop for WriteEnd {
    fn drop(&mut self) {
        lock(&self.0.state).written = true;
        self.0.readable.notify_waiters();
    }
}

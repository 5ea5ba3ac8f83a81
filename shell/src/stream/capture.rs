//! Keeping what is written: the result of a substitution, the output of a line.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::errno::Errno;

/// Where the bytes go; the other side of [`Captured`].
pub(super) struct Capture(Arc<Mutex<State>>);

/// What was written to a stream that keeps it.
#[derive(Clone, Debug)]
pub struct Captured(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    room: Room,
    total: u64,
}

#[derive(Clone, Copy, Debug)]
enum Room {
    Whole(usize),
    Ends(usize),
}

pub(super) fn whole(limit: usize) -> (Capture, Captured) {
    capture(Room::Whole(limit))
}

pub(super) fn ends(limit: usize) -> (Capture, Captured) {
    capture(Room::Ends(limit))
}

fn capture(room: Room) -> (Capture, Captured) {
    let state = Arc::new(Mutex::new(State { head: Vec::new(), tail: VecDeque::new(), room, total: 0 }));
    (Capture(Arc::clone(&state)), Captured(state))
}

impl Capture {
    pub(super) fn write(&self, data: &[u8]) -> Result<(), Errno> {
        let mut state = lock(&self.0);
        state.total = state.total.saturating_add(data.len() as u64);
        let (head, tail) = match state.room {
            Room::Whole(limit) => (limit, 0),
            Room::Ends(limit) => (limit / 2, limit - limit / 2),
        };
        let (first, rest) = data.split_at(data.len().min(head.saturating_sub(state.head.len())));
        state.head.extend_from_slice(first);
        if rest.is_empty() {
            return Ok(());
        }
        if let Room::Whole(_) = state.room {
            return Err(Errno::PIPE);
        }
        let last = rest.get(rest.len().saturating_sub(tail)..).unwrap_or_default();
        let over = (state.tail.len() + last.len()).saturating_sub(tail);
        state.tail.drain(..over);
        state.tail.extend(last);
        Ok(())
    }
}

impl Captured {
    /// Takes what is kept; what lies between its ends and was not kept is left out.
    #[must_use]
    pub fn take(&self) -> Vec<u8> {
        let mut state = lock(&self.0);
        let mut all = std::mem::take(&mut state.head);
        all.extend(std::mem::take(&mut state.tail));
        all
    }

    /// The bytes at the beginning and at the end that are kept, and how many in between are not.
    #[must_use]
    pub fn ends(&self) -> (Vec<u8>, u64, Vec<u8>) {
        let state = lock(&self.0);
        let kept = (state.head.len() + state.tail.len()) as u64;
        (state.head.clone(), state.total.saturating_sub(kept), state.tail.iter().copied().collect())
    }

    /// The bytes that were written in all, kept or not.
    #[must_use]
    pub fn total(&self) -> u64 {
        lock(&self.0).total
    }

    /// Whether more was written than is kept.
    #[must_use]
    pub fn overflowed(&self) -> bool {
        let state = lock(&self.0);
        state.total > (state.head.len() + state.tail.len()) as u64
    }
}

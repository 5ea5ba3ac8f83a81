//! Captures the output of a substitution or of a whole script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::errno::Errno;
use crate::ledger::Charge;
use crate::lock::lock;

/// The writing side of a capture.
pub(super) struct Capture(Arc<Mutex<State>>);

/// The reading side of a capture: the retained bytes of the output.
#[derive(Clone, Debug)]
pub struct CapturedBytes(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    retention: Retention,
    total: u64,
    /// The charge for `head`, if its bytes are counted.
    charge: Option<Charge>,
}

/// The part of the output that a capture retains. The number is its maximum size, in bytes.
#[derive(Clone, Copy, Debug)]
enum Retention {
    /// The first bytes. A write fails if it exceeds the maximum or if the charge has no room
    /// for it.
    Head(usize),
    /// The first and the last bytes. Each of the two parts may use half of the maximum.
    Ends(usize),
}

pub(super) fn head(limit: usize, charge: Option<Charge>) -> (Capture, CapturedBytes) {
    capture(Retention::Head(limit), charge)
}

pub(super) fn ends(limit: usize) -> (Capture, CapturedBytes) {
    capture(Retention::Ends(limit), None)
}

fn capture(retention: Retention, charge: Option<Charge>) -> (Capture, CapturedBytes) {
    let state = Arc::new(Mutex::new(State {
        head: Vec::new(),
        tail: VecDeque::new(),
        retention,
        total: 0,
        charge,
    }));
    (Capture(Arc::clone(&state)), CapturedBytes(state))
}

impl Capture {
    pub(super) fn write(&self, data: &[u8]) -> Result<(), Errno> {
        let mut state = lock(&self.0);
        state.total = state.total.saturating_add(data.len() as u64);
        let (head, tail) = match state.retention {
            Retention::Head(limit) => (limit, 0),
            Retention::Ends(limit) => (limit / 2, limit - limit / 2),
        };
        let (first, rest) = data.split_at(data.len().min(head.saturating_sub(state.head.len())));
        if state.charge.as_mut().is_some_and(|charge| !charge.grow(first.len() as u64)) {
            return Err(Errno::PIPE);
        }
        state.head.extend_from_slice(first);
        if rest.is_empty() {
            return Ok(());
        }
        if let Retention::Head(_) = state.retention {
            return Err(Errno::PIPE);
        }
        let last = rest.split_at(rest.len().saturating_sub(tail)).1;
        let over = (state.tail.len() + last.len()).saturating_sub(tail);
        state.tail.drain(..over);
        state.tail.extend(last);
        Ok(())
    }
}

impl CapturedBytes {
    /// Removes and returns the retained bytes. If bytes between the start and the end were dropped,
    /// the result does not show where.
    #[must_use]
    pub fn take(&self) -> Vec<u8> {
        let mut state = lock(&self.0);
        let mut all = std::mem::take(&mut state.head);
        all.extend(std::mem::take(&mut state.tail));
        all
    }

    /// Returns the retained start, the number of dropped bytes, and the retained end.
    #[must_use]
    pub fn ends(&self) -> (Vec<u8>, u64, Vec<u8>) {
        let state = lock(&self.0);
        let retained = (state.head.len() + state.tail.len()) as u64;
        (
            state.head.clone(),
            state.total.saturating_sub(retained),
            state.tail.iter().copied().collect(),
        )
    }

    /// Returns the number of bytes written, retained or not.
    #[must_use]
    pub fn total(&self) -> u64 {
        lock(&self.0).total
    }

    /// Returns true if more bytes were written than are retained.
    #[must_use]
    pub fn overflowed(&self) -> bool {
        let state = lock(&self.0);
        state.total > (state.head.len() + state.tail.len()) as u64
    }
}

//! The child runs that continue after the program that started them has ended.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cancel::Cancel;

/// The reason for cancelling a child run whose program has ended.
const PROGRAM_ENDED: &str = "the program that asked the agent has ended";

/// The child runs of a run whose programs ended while another child run was waiting for a person.
///
/// If the run is then suspended, it repeats its calls when it is resumed, and they find the child
/// runs again. If the run continues instead, it no longer needs the child runs, and they are
/// cancelled.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<State>);

#[derive(Default)]
struct State {
    /// If true, a child run waits for a person.
    is_waiting: bool,
    /// If true, this process no longer drives the run, although the run has not ended.
    is_abandoned: bool,
    /// The handles of the child runs whose programs ended while `is_waiting` was true.
    left: Vec<Cancel>,
}

impl Waiting {
    /// Records that a child run waits for a person.
    pub(crate) fn begin(&self) {
        self.lock().is_waiting = true;
    }

    /// Records that this process no longer drives the run, although the run has not ended. Its
    /// child runs are not cancelled, because the run continues in another process and calls them
    /// again.
    pub(crate) fn abandon(&self) {
        *self.lock() = State { is_abandoned: true, ..State::default() };
    }

    /// Returns true if this process no longer drives the run, although the run has not ended.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().is_abandoned
    }

    /// Cancels a child run whose program has ended. While another child run waits for a person, the
    /// cancellation is postponed, because the run may yet be suspended. Does nothing if this
    /// process no longer drives the run.
    pub(crate) fn leave(&self, child: Cancel) {
        let mut state = self.lock();
        if state.is_abandoned {
            return;
        }
        if state.is_waiting {
            state.left.push(child);
            return;
        }
        drop(state);
        child.cancel(PROGRAM_ENDED);
    }

    /// Returns to the initial state without cancelling child runs. Called when this process starts
    /// or resumes the run, and when the run is suspended.
    pub(crate) fn reset(&self) {
        *self.lock() = State::default();
    }

    /// Cancels the child runs whose cancellation was postponed, because the run continues without
    /// them.
    pub(crate) fn end(&self) {
        let State { left, .. } = std::mem::take(&mut *self.lock());
        left.iter().for_each(|child| child.cancel(PROGRAM_ENDED));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_run_is_cancelled_unless_its_run_is_suspended() {
        let waiting = Waiting::default();
        let children: Vec<Cancel> = (0..4).map(|_| Cancel::new()).collect();
        let cancelled = || children.iter().map(Cancel::is_cancelled).collect::<Vec<_>>();
        waiting.leave(children[0].clone());
        waiting.begin();
        waiting.leave(children[1].clone());
        assert_eq!(cancelled(), [true, false, false, false]);
        waiting.end();
        waiting.leave(children[2].clone());
        assert_eq!(cancelled(), [true, true, true, false]);
        assert_eq!(children[1].reason(), PROGRAM_ENDED);
        waiting.begin();
        waiting.leave(children[3].clone());
        waiting.reset();
        waiting.end();
        assert_eq!(cancelled(), [true, true, true, false]);
        waiting.abandon();
        waiting.leave(children[3].clone());
        assert!(waiting.is_abandoned() && !children[3].is_cancelled());
        waiting.reset();
        waiting.leave(children[3].clone());
        assert!(!waiting.is_abandoned() && children[3].is_cancelled());
    }
}

//! The deadline of a program. It is suspended while the program waits for another agent.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The time by which a program must end.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// The time from the start to the deadline, excluding pauses.
    time: Duration,
    /// The deadline, as long as it is not shared.
    end: Instant,
    /// The deadline of the parent program. It is suspended whenever this one is.
    parent: Option<SharedDeadline>,
    /// The same deadline, once other parts of the program can suspend or await it. Most programs
    /// end before that.
    shared: OnceLock<SharedDeadline>,
}

/// A deadline that can be suspended and awaited. Clones refer to the same deadline.
#[derive(Clone, Debug)]
pub(crate) struct SharedDeadline(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    parent: Option<SharedDeadline>,
    clock: Mutex<Clock>,
    /// A signal that the deadline has moved.
    moved: Notify,
}

#[derive(Debug)]
struct Clock {
    end: Instant,
    /// The number of pauses in effect.
    pauses: usize,
    /// The time at which the deadline was last suspended.
    since: Instant,
}

impl Clock {
    fn remaining(&self, now: Instant) -> Duration {
        let now = if self.pauses > 0 { self.since } else { now };
        self.end.saturating_duration_since(now)
    }
}

impl Deadline {
    /// Creates a deadline at `time` after `now` or at the parent program's deadline, whichever is
    /// earlier.
    pub(crate) fn new(now: Instant, time: Duration, parent: Option<SharedDeadline>) -> Deadline {
        let remaining = parent.as_ref().map_or(Duration::MAX, SharedDeadline::remaining);
        let time = time.min(remaining);
        let end = now.checked_add(time).unwrap_or(now);
        Deadline { time, end, parent, shared: OnceLock::new() }
    }

    /// Returns the running time that the program was granted at its start.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// Returns the time remaining until the deadline. It does not decrease during a pause.
    pub(crate) fn remaining(&self) -> Duration {
        match self.shared.get() {
            Some(shared) => shared.remaining(),
            None => self.end.saturating_duration_since(Instant::now()),
        }
    }

    /// Returns the time at which the deadline will pass unless a pause postpones it.
    pub(crate) fn instant(&self) -> Instant {
        self.shared.get().map_or(self.end, SharedDeadline::instant)
    }

    /// Returns the deadline in the form that others can suspend and await.
    pub(crate) fn shared(&self) -> &SharedDeadline {
        self.shared.get_or_init(|| {
            let clock = Mutex::new(Clock { end: self.end, pauses: 0, since: self.end });
            let parent = self.parent.clone();
            SharedDeadline(Arc::new(Inner { parent, clock, moved: Notify::new() }))
        })
    }
}

impl SharedDeadline {
    fn remaining(&self) -> Duration {
        self.clock().remaining(Instant::now())
    }

    fn instant(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.clock().remaining(now)).unwrap_or(now)
    }

    /// Waits until the deadline has passed.
    pub(crate) async fn passed(&self) {
        loop {
            let mut moved = pin!(self.0.moved.notified());
            moved.as_mut().enable();
            let (remaining, is_paused) = {
                let clock = self.clock();
                (clock.remaining(Instant::now()), clock.pauses > 0)
            };
            match (is_paused, remaining.is_zero()) {
                (false, true) => return,
                (true, _) => moved.await,
                (false, false) => {
                    tokio::select! {
                        () = tokio::time::sleep(remaining) => {}
                        () = moved => {}
                    }
                }
            }
        }
    }

    /// Suspends this deadline and those of all parent programs until the pause is dropped.
    pub(crate) fn pause(&self) -> Pause {
        let now = Instant::now();
        let mut each = Some(self);
        while let Some(deadline) = each {
            let mut clock = deadline.clock();
            if clock.pauses == 0 {
                clock.since = now;
            }
            clock.pauses += 1;
            drop(clock);
            deadline.0.moved.notify_waiters();
            each = deadline.0.parent.as_ref();
        }
        Pause(self.clone())
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.0.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that pauses a deadline. Dropping it resumes the deadline, extended by the duration of
/// the pause.
#[must_use]
pub struct Pause(SharedDeadline);

impl Drop for Pause {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut each = Some(&self.0);
        while let Some(deadline) = each {
            let mut clock = deadline.clock();
            clock.pauses = clock.pauses.saturating_sub(1);
            if clock.pauses == 0 {
                let length = now.saturating_duration_since(clock.since);
                clock.end = clock.end.checked_add(length).unwrap_or(clock.end);
            }
            drop(clock);
            deadline.0.moved.notify_waiters();
            each = deadline.0.parent.as_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_deadline_passes() {
        Deadline::new(Instant::now(), Duration::ZERO, None).shared().passed().await;
    }

    #[test]
    fn a_pause_stops_the_clocks_of_all_programs_above() {
        let now = Instant::now();
        let outer = Deadline::new(now, Duration::from_secs(100), None);
        let inner = Deadline::new(now, Duration::from_secs(900), Some(outer.shared().clone()));
        assert!(inner.remaining() <= Duration::from_secs(100));
        let (first, second) = (inner.shared().pause(), outer.shared().pause());
        let remaining = outer.remaining();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(outer.remaining(), remaining);
        drop(first);
        assert_eq!(outer.remaining(), remaining, "another pause goes on");
        assert!(inner.remaining() <= Duration::from_secs(100));
        drop(second);
        std::thread::sleep(Duration::from_millis(2));
        assert!(outer.remaining() < remaining);
    }
}

//! Measures the time that polls and other work on a thread take.

use std::cell::Cell;
use std::pin::pin;
use std::time::{Duration, Instant};

thread_local! {
    /// The meter of the poll or work in progress on this thread.
    static METER: Cell<Option<Meter>> = const { Cell::new(None) };
}

/// The start of a poll or of work that is charged when it ends.
#[derive(Clone, Copy)]
pub(super) enum Meter {
    /// The time at which a poll began.
    Wall(Instant),
    /// The processor time that the thread had used when the work began.
    Processor(Duration),
}

impl Meter {
    fn elapsed(self) -> Duration {
        match self {
            Meter::Wall(began) => began.elapsed(),
            Meter::Processor(before) => processor_time().saturating_sub(before),
        }
    }
}

/// Returns the time that the poll or work in progress on this thread has taken so far.
pub(super) fn in_progress() -> Duration {
    METER.get().map_or(Duration::ZERO, Meter::elapsed)
}

/// A guard for the meter of this thread. Dropping the guard removes the meter.
pub(super) struct Metering;

impl Metering {
    /// Sets the meter of this thread, or returns `None` if there is one already.
    pub(super) fn start(meter: Meter) -> Option<Metering> {
        if METER.get().is_some() {
            return None;
        }
        METER.set(Some(meter));
        Some(Metering)
    }
}

impl Drop for Metering {
    fn drop(&mut self) {
        METER.set(None);
    }
}

/// Polls a future to completion and reports the processor time of each poll to `spend`.
pub async fn timed<F: Future>(work: F, mut spend: impl FnMut(Duration)) -> F::Output {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        let before = processor_time();
        let polled = work.as_mut().poll(context);
        spend(processor_time().saturating_sub(before));
        polled
    })
    .await
}

/// Returns the processor time that this thread has used.
pub(super) fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

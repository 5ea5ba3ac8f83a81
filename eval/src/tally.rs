//! Counts a run's programs from its events.

use std::sync::{Mutex, PoisonError};

use wattle_agent::machine::{Envelope, Event};
use wattle_agent::rt::Runtime;

/// A tally of a run's programs, failed calls and repairs.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<TallyState>);

#[derive(Debug, Default)]
struct TallyState {
    /// The first program of each step, as the model wrote it.
    programs: Vec<String>,
    /// The step of the last program.
    step: Option<u32>,
    /// The step whose program has started and has no result yet.
    open: Option<u32>,
    failures: u32,
    repairs: u32,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) programs: u32,
    pub(crate) valid: u32,
    pub(crate) failures: u32,
    pub(crate) repairs: u32,
}

impl Tally {
    /// Records an event.
    pub(crate) fn record(&self, envelope: &Envelope) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &envelope.event {
            Event::ToolStart { step, body: Some(body), .. } => {
                if seen.step != Some(*step) {
                    seen.step = Some(*step);
                    seen.programs.push(body.clone());
                }
                seen.open = Some(*step);
            }
            Event::ToolResult { success, .. } => {
                seen.open = None;
                seen.failures += u32::from(!success);
            }
            // A retry before a program has started follows an empty answer, and is not a repair.
            Event::Retry { step, .. } if seen.open == Some(*step) => seen.repairs += 1,
            _ => {}
        }
    }

    /// Returns the counts. A program is valid if it compiles as written, without fixes.
    pub(crate) async fn count(self, runtime: &Runtime) -> Count {
        let TallyState { programs, failures, repairs, .. } =
            self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut count = Count { programs: 0, valid: 0, failures, repairs };
        for program in programs {
            count.programs += 1;
            count.valid += u32::from(runtime.prepare(&program).await.is_ok());
        }
        count
    }
}

//! The live view of a run: one line for each step, and below them a line for the call in progress.
//!
//! Output of models and programs is truncated to the terminal's width, and its control characters
//! are made visible.

mod answer;
mod bar;
mod line;
mod step;
mod view;

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use wattle_agent::host::machine::{Envelope, Event};

use crate::fault::Fault;
use crate::output;

pub(crate) use bar::Bar;
pub(crate) use line::{counted, ending, grouped, size, spent};
pub(crate) use step::Step;
pub(crate) use view::Mode;

use view::View;

/// Interval between two updates of the line for the call in progress.
const TICK: Duration = Duration::from_millis(100);

/// The live view of one run. Steps are printed to stderr.
pub(crate) struct Live(Arc<Mutex<View>>);

impl Live {
    /// Creates the view. If `verbose` is true, it shows programs and outputs in full.
    pub(crate) fn new(mode: Mode, verbose: bool) -> Live {
        let view = View::new(mode, verbose);
        let view = Arc::new(Mutex::new(view));
        if output::is_live() {
            let shared = Arc::downgrade(&view);
            std::thread::spawn(move || animate(&shared));
        }
        Live(view)
    }

    /// Shows an event.
    pub(crate) fn show(&self, event: &Event) {
        self.0.lock().show(event);
    }

    /// Shows an event and records the id of the root run.
    pub(crate) fn follow(&self, envelope: &Envelope) {
        let mut view = self.0.lock();
        view.record.run.get_or_insert_with(|| envelope.root_run_id.clone());
        view.show(&envelope.event);
    }

    /// Ends the view. Returns a summary of the run, and an error if the answer could not be
    /// printed.
    pub(crate) fn finish(self) -> (RunView, Result<(), Fault>) {
        let mut view = self.0.lock();
        view.end();
        (std::mem::take(&mut view.record), view.fault.take().map_or(Ok(()), Err))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.lock().end();
    }
}

/// A summary of a run, made from the events that the view received.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunView {
    /// The run's id.
    pub(crate) run: Option<String>,
    /// The calls in the run's steps.
    pub(crate) steps: Vec<Step>,
    /// If true, the answer was printed.
    pub(crate) has_answer: bool,
}

/// Updates the line for the call in progress until the view ends.
fn animate(view: &Weak<Mutex<View>>) {
    while let Some(view) = view.upgrade() {
        if !view.lock().tick() {
            break;
        }
        drop(view);
        std::thread::sleep(TICK);
    }
}

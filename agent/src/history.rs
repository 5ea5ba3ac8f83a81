//! What a run's programs are told about the run: its id, and its steps so far.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use wattle_capability::history::RunHistory;
use wattle_machine::Call;
use wattle_rt::truncate;

use crate::trace::Left;

/// The most steps that are told; the oldest give way.
const STEPS: usize = 100;
/// The most characters of a call's arguments and of its output.
const SHOWN: usize = 200;

/// The steps of one run as they are done.
pub(crate) struct JournalHistory {
    run_id: String,
    lines: Mutex<VecDeque<String>>,
}

impl JournalHistory {
    pub(crate) fn new(run_id: &str) -> JournalHistory {
        JournalHistory { run_id: run_id.to_owned(), lines: Mutex::default() }
    }

    /// Takes a call in that is done.
    pub(crate) fn add(&self, step: u32, call: &Call, left: &Left<'_>, dur_ms: u64) {
        let args: Vec<String> = call.args().iter().map(|arg| format!("{:?}", truncate(arg, SHOWN))).collect();
        let ended = match (left.exit_code, &left.error) {
            (Some(0), _) => truncate(&left.output, SHOWN).into_owned(),
            (_, Some(error)) => format!("FAILED: {}", truncate(error, SHOWN)),
            (code, None) => format!("FAILED: {}", code.map_or_else(|| "not run".to_owned(), |code| code.to_string())),
        };
        let line = format!("step {step}: {}({}) in {dur_ms} ms: {ended}", call.label(), args.join(", "));
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == STEPS {
            lines.pop_front();
        }
        lines.push_back(line.replace('\n', "\\n"));
    }
}

impl RunHistory for JournalHistory {
    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn steps(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

//! The history that a run's programs can read: the run's id and its steps so far.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use wattle_capability::history::RunHistory;
use wattle_machine::Call;
use wattle_rt::truncate;

use crate::trace::CallOutcome;

/// Maximum number of calls that are kept. The oldest calls are dropped first.
const MAX_STEPS: usize = 100;
/// Maximum length of an argument or an output of a call, in characters.
const MAX_CHARS: usize = 200;

/// The calls of one run, added as they finish.
pub(crate) struct StepHistory {
    run_id: String,
    lines: Mutex<VecDeque<String>>,
}

impl StepHistory {
    pub(crate) fn new(run_id: &str) -> StepHistory {
        StepHistory { run_id: run_id.to_owned(), lines: Mutex::default() }
    }

    /// Adds a finished call.
    pub(crate) fn add(&self, step: u32, call: &Call, outcome: &CallOutcome<'_>, dur_ms: u64) {
        let shown = |(name, arg): (Option<&str>, &str)| {
            let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
            format!("{name}{:?}", truncate(arg, MAX_CHARS))
        };
        let args: Vec<String> = call.named_args().map(shown).collect();
        let result = match (outcome.exit_code, &outcome.error) {
            (Some(0), _) => truncate(&outcome.output, MAX_CHARS).into_owned(),
            (_, Some(error)) => format!("FAILED: {}", truncate(error, MAX_CHARS)),
            (code, None) => format!(
                "FAILED: {}",
                code.map_or_else(|| "not run".to_owned(), |code| code.to_string())
            ),
        };
        let line =
            format!("step {step}: {}({}) in {dur_ms} ms: {result}", call.label(), args.join(", "));
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_STEPS {
            lines.pop_front();
        }
        lines.push_back(line.replace('\n', "\\n"));
    }
}

impl RunHistory for StepHistory {
    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn steps(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

//! The lines that a resumed run wrote in an earlier process. That process may have stopped after
//! writing a line and before recording the run's progress.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Step;

/// The lines that a run has written, each as the hash of its step, tool and arguments.
#[derive(Default)]
pub(super) struct WrittenLines(Vec<[u8; 32]>);

impl WrittenLines {
    /// Adds a line of the trace.
    pub(super) fn add(&mut self, line: &[u8]) {
        if let Ok(step) = serde_json::from_slice::<Step>(line) {
            self.0.push(digest(&step));
        }
    }

    /// Removes the line of a step from the set. Returns true if the line was in it.
    pub(super) fn take(&mut self, step: &Step) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let wanted = digest(step);
        let at = self.0.iter().position(|line| *line == wanted);
        at.map(|at| self.0.swap_remove(at)).is_some()
    }
}

fn digest(step: &Step) -> [u8; 32] {
    Sha256::digest(json!([step.step, step.tool, step.args]).to_string()).into()
}

//! The trace of a run that another process began: it may have been stopped between a line and whatever it did next.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Step;

/// The lines that a run has left, each as the hash of what it says: step, tool and arguments.
#[derive(Default)]
pub(super) struct Lines(Vec<[u8; 32]>);

impl Lines {
    /// Adds a line of the trace.
    pub(super) fn add(&mut self, line: &[u8]) {
        if let Ok(step) = serde_json::from_slice::<Step>(line) {
            self.0.push(said(&step));
        }
    }

    /// Returns true if the line of a step is there already; it then counts as met.
    pub(super) fn has(&mut self, step: &Step) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let said = said(step);
        let at = self.0.iter().position(|line| *line == said);
        at.map(|at| self.0.swap_remove(at)).is_some()
    }
}

fn said(step: &Step) -> [u8; 32] {
    Sha256::digest(json!([step.step, step.tool, step.args]).to_string()).into()
}

//! The trace of a run that another process began: it may have been stopped between a line and whatever it did next.

use serde_json::{Value as Json, json};

use super::Step;

/// What the lines of a run say: step, tool and arguments of each.
pub(super) fn said_in(lines: &[Vec<u8>]) -> Vec<Json> {
    lines.iter().filter_map(|line| serde_json::from_slice::<Step>(line).ok()).map(|step| said(&step)).collect()
}

/// Whether the line of a step is there already; it is then counted as met.
pub(super) fn is_there(there: &mut Vec<Json>, step: &Step) -> bool {
    if there.is_empty() {
        return false;
    }
    let said = said(step);
    let at = there.iter().position(|line| *line == said);
    at.inspect(|at| drop(there.swap_remove(*at))).is_some()
}

fn said(step: &Step) -> Json {
    json!([step.step, step.tool, step.args])
}

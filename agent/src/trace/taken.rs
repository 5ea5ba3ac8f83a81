//! The trace of a run that another process began: it may have been stopped in the middle of a line, and between a line and whatever it did next.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::Step;

/// What the whole lines of a run say: step, tool and arguments of each. A last line that breaks off is taken out of the file.
pub(super) fn lines_of(path: &Path, run_id: &str) -> std::io::Result<Vec<Json>> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() {
        OpenOptions::new().write(true).open(path)?.set_len(whole as u64)?;
    }
    let lines = bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
    let steps = lines.filter_map(|line| serde_json::from_slice::<Step>(line).ok());
    Ok(steps.filter(|step| step.run_id == run_id).map(|step| said(&step)).collect())
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

//! `events.org`: an outline of runs for human readers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Step, clip};
use crate::lines::append;

/// The name of the outline file in the workdir.
pub const EVENTS_FILE: &str = wattle_capability::files::EVENTS_FILE;

/// Maximum length of an output or an error in the outline, in characters.
const OUTPUT_CHARS: usize = 300;

/// The outline of one run, written when the run ends.
pub(super) struct Org {
    path: PathBuf,
    text: String,
}

impl Org {
    pub(super) fn new(workdir: &Path, run_id: &str, agent: &str) -> Org {
        let text = format!(
            "* Agent run :session:\n:PROPERTIES:\n:RUN: {run_id}\n:AGENT: {}\n:END:\n",
            one_line(agent)
        );
        Org { path: workdir.join(EVENTS_FILE), text }
    }

    pub(super) fn add(&mut self, step: &Step, output: &str) {
        let (tool, number) = (one_line(&step.tool), step.step);
        _ = write!(
            self.text,
            "** step {number}: {tool} :tool_call:\n:PROPERTIES:\n:ARGS: {}\n:DUR_MS: {}\n:END:\n",
            step.args, step.dur_ms
        );
        let output = clip(output, OUTPUT_CHARS);
        self.fixed(&output);
        if let Some(error) = &step.error {
            self.fixed(&format!("failed: {}", clip(error, OUTPUT_CHARS)));
        }
    }

    pub(super) fn end(&mut self, result: &str) -> std::io::Result<()> {
        self.result(result);
        let text = std::mem::take(&mut self.text);
        append(&self.path, text.trim_end_matches('\n').as_bytes())
    }

    pub(super) fn result(&mut self, result: &str) {
        self.text.push_str("* Result\n");
        self.fixed(result);
    }

    /// Returns the text so far.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Appends text as fixed-width lines, which Org never reads as a headline, a drawer or a
    /// keyword.
    fn fixed(&mut self, text: &str) {
        for line in text.lines() {
            _ = writeln!(self.text, ": {line}");
        }
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

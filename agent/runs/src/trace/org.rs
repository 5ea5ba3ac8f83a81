//! `events.org`: an outline of runs for human readers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use wattle_store::lines::append;

use super::{Step, clip};

/// The name of the outline file.
pub const EVENTS_FILE: &str = wattle_capability::files::EVENTS_FILE;

/// Maximum length of the arguments of a step in the outline, in characters. The trace contains them
/// in full.
const ARGS_CHARS: usize = 20_000;
/// Maximum length of an output or an error in the outline, in characters.
const OUTPUT_CHARS: usize = 300;
/// Length of the outline, in bytes, after which steps are only counted.
const MAX_TEXT: usize = 4 << 20;

/// The outline of one run, written when the run ends.
pub(super) struct Org {
    path: PathBuf,
    text: String,
    /// Number of steps that are left out.
    omitted: usize,
}

impl Org {
    pub(super) fn new(folder: &Path, run_id: &str, agent: &str) -> Org {
        let text = format!(
            "* Agent run :session:\n:PROPERTIES:\n:RUN: {run_id}\n:AGENT: {}\n:END:\n",
            one_line(agent)
        );
        Org { path: folder.join(EVENTS_FILE), text, omitted: 0 }
    }

    pub(super) fn add(&mut self, step: &Step, output: &str) {
        if self.text.len() > MAX_TEXT {
            self.omitted += 1;
            return;
        }
        let (tool, number) = (one_line(&step.tool), step.step);
        _ = write!(
            self.text,
            "** step {number}: {tool} :tool_call:\n:PROPERTIES:\n:ARGS: {}\n:DUR_MS: {}\n:END:\n",
            clip(&step.args.to_string(), ARGS_CHARS),
            step.dur_ms
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
        if self.omitted > 0 {
            _ = writeln!(self.text, "** {} more steps, which only the trace has", self.omitted);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outline_of_a_long_run_has_a_maximum_size() {
        let mut org = Org::new(Path::new(""), "r", "a");
        let step = Step { args: "x".repeat(100_000).into(), ..Step::default() };
        for _ in 0..400 {
            org.add(&step, "output");
        }
        assert!((150..250).contains(&org.omitted), "{}", org.omitted);
        org.result("done");
        let text = org.into_text();
        assert!(text.len() < MAX_TEXT + 30_000, "{}", text.len());
        assert!(text.ends_with("more steps, which only the trace has\n* Result\n: done\n"));
    }
}

//! The calls in a run's steps.

use super::line;
use crate::output::WARN;

/// A call in a step, and its result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    /// The number of the step, counted from 1.
    pub(crate) step: u32,
    /// The number of the call within the step, counted from 1.
    pub(crate) call: u32,
    /// The catalog program's name, or `wat` for an inline program.
    pub(crate) label: String,
    /// The source of an inline program.
    pub(crate) body: Option<String>,
    /// The arguments.
    pub(crate) args: Vec<String>,
    /// The model's reason for the step.
    pub(crate) thought: String,
    /// The errors of earlier attempts, which the model repaired.
    pub(crate) repairs: Vec<String>,
    /// The result, once the call has ended.
    pub(crate) result: Option<StepResult>,
}

/// The result of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepResult {
    /// If true, the program ran and succeeded.
    pub(crate) success: bool,
    /// The output that the model reads.
    pub(crate) output: String,
    /// The program's exit code, if it has one.
    pub(crate) exit_code: Option<i32>,
    /// Duration of the call, in milliseconds.
    pub(crate) dur_ms: u64,
    /// The fixes that were applied to the program before it ran.
    pub(crate) fixes: Vec<String>,
}

impl Step {
    /// Renders the call: one line for the call itself, and the first lines of its output. If
    /// `whole` is true, also renders the model's reason, the repaired errors, the source, and the
    /// whole output.
    pub(crate) fn shown(&self, whole: bool) -> String {
        let thought = if whole { line::thought(&self.thought, true) } else { String::new() };
        let repairs = self
            .repairs
            .iter()
            .enumerate()
            .filter(|_| whole)
            .map(|(at, error)| line::note(WARN, &format!("repair {}", at + 1), error, true));
        let repairs: String = repairs.collect();
        let ended = match &self.result {
            Some(result) => line::ended(self, result, whole),
            None => format!("{}  {}\n", self.step, line::call(self)),
        };
        format!("{thought}{repairs}{ended}")
    }
}

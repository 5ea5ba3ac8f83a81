//! Words what became of a call for the model, within a bound.

use std::fmt::Write as _;

use crate::call::{Execution, Failure, Ran};

/// What the model reads of one call.
pub(crate) struct Output {
    pub(crate) success: bool,
    /// The results or the reason, at most as long as the bound allows.
    pub(crate) text: String,
    /// What the author should know besides, one sentence each.
    pub(crate) warnings: Vec<String>,
    /// What was put right in the program before it ran.
    pub(crate) mended: Vec<String>,
}

impl Output {
    /// What the model reads of a call whose results stay out of the conversation.
    pub(crate) fn silent(label: &str) -> Self {
        let text = format!("(done; what `{label}` gives is not shown)");
        Self { success: true, text, warnings: Vec::new(), mended: Vec::new() }
    }
}

/// Words an execution in at most about `limit` characters.
pub(crate) fn output(execution: &Execution, limit: usize) -> Output {
    let (success, text, warnings) = match execution {
        Execution::Ran(ran) => (ran.failure.is_none(), ran_text(ran), ran.warnings.clone()),
        Execution::Rejected { diagnostic } => {
            (false, format!("the program does not compile:\n{diagnostic}"), Vec::new())
        }
        Execution::Refused { reason } => (false, reason.clone(), Vec::new()),
        Execution::Stopped { reason, results, .. } => (false, reason.clone() + &put_out(results), Vec::new()),
    };
    Output { success, text: bounded(&text, limit), warnings, mended: execution.mended().to_vec() }
}

/// Words a step's outputs as the message that goes back to the model; each note is a sentence of its own at the end.
pub(crate) fn message(step: u32, outputs: &[Output], notes: &[String]) -> String {
    let mut message = String::new();
    for output in outputs {
        let verdict = if output.success { "Execution result:" } else { "Execution FAILED:" };
        let gap = if message.is_empty() { "" } else { "\n\n" };
        _ = write!(message, "{gap}[Observation (step {step})] {verdict}\n{}{}", mended(&output.mended), output.text);
    }
    for note in outputs.iter().flat_map(|output| &output.warnings).chain(notes) {
        _ = write!(message, "\n[Note] {note}");
    }
    message
}

/// Says what was put right in a program before it ran: its author reads its own text, not the one that ran.
fn mended(mended: &[String]) -> String {
    match mended {
        [] => String::new(),
        mended => format!("[Note] mended before running: {}\n", mended.join("; ")),
    }
}

fn ran_text(ran: &Ran) -> String {
    match &ran.failure {
        Some(failure) => failure_text(failure) + &put_out(&ran.results),
        None if ran.results.is_empty() => "(no results)".to_owned(),
        None => ran.results.join("\n"),
    }
}

/// Words a failure: the code and its meaning, the host function and line it came from, the reason.
fn failure_text(failure: &Failure) -> String {
    let mut text = match &failure.name {
        Some(name) => format!("{name} ({})", failure.exit_code),
        None => format!("exit code {}", failure.exit_code),
    };
    if let Some(meaning) = &failure.meaning {
        _ = write!(text, ": {meaning}");
    }
    match (&failure.function, &failure.line) {
        (Some(function), Some(line)) => {
            _ = write!(text, "\nfrom {function} at line {}: {}", line.number, line.text.trim())
        }
        (Some(function), None) => _ = write!(text, "\nfrom {function}"),
        (None, Some(line)) => _ = write!(text, "\nat line {}: {}", line.number, line.text.trim()),
        (None, None) => {}
    }
    if let Some(reason) = &failure.reason {
        _ = write!(text, "\nreason: {reason}");
    }
    text
}

/// Words what a program that failed had put out before.
fn put_out(results: &[String]) -> String {
    if results.is_empty() { String::new() } else { format!("\nput out before that:\n{}", results.join("\n")) }
}

/// Cuts `text` in the middle where it has more than `limit` characters, and says what is missing and how to get at it.
pub(crate) fn bounded(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    let tail = limit / 3;
    let head = limit - tail;
    let left_out = length - limit;
    let offset = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let (before, after) = text.split_at(offset(head));
    let after = after.get(offset(head + left_out) - before.len()..).unwrap_or_default();
    format!(
        "{before}\n[… {left_out} of {length} characters left out: put out less, or a part at a time with \
         $str.slice, or run the next program on the data without putting all of it out …]\n{after}"
    )
}

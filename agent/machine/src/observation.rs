//! Renders the outcomes of calls as text for the model, within a length limit.

use std::fmt::Write as _;

use crate::call::{Completion, Execution, Failure};
use crate::mark::{Nonce, escape_marks};

/// Maximum length of the output of a program whose results are shown whole, in characters.
pub const WHOLE_LIMIT: usize = 64_000;

/// The text that the model reads about one call.
pub(crate) struct Output {
    pub(crate) success: bool,
    /// The results or the error reason, truncated to the limit.
    pub(crate) text: Excerpt,
    /// Warnings for the program's author, one sentence each.
    pub(crate) warnings: Vec<String>,
    /// Fixes made to the program before it ran.
    pub(crate) fixes: Vec<String>,
}

impl Output {
    /// Returns the output of a successful call whose results are not added to the conversation.
    pub(crate) fn silent(label: &str) -> Self {
        let text =
            Excerpt::of(&format!("(done; the results of `{label}` are not shown)"), usize::MAX);
        Self { success: true, text, warnings: Vec::new(), fixes: Vec::new() }
    }

    /// Returns true if parts of the output look like markers and must be escaped.
    pub(crate) fn has_marks(&self, nonce: &Nonce) -> bool {
        let mut others = self.warnings.iter().chain(&self.fixes);
        self.text.has_marks(nonce) || others.any(|text| *escape_marks(text, Some(nonce)) != **text)
    }
}

/// Renders an execution. Text longer than `limit` characters is truncated in the middle.
pub(crate) fn output(execution: &Execution, limit: usize) -> Output {
    let (success, text, warnings) = match execution {
        Execution::Ran(ran) => (ran.failure.is_none(), ran_text(ran), ran.warnings.clone()),
        Execution::Rejected { diagnostic } => {
            (false, format!("the program does not compile:\n{diagnostic}"), Vec::new())
        }
        Execution::Refused { reason } => (false, reason.clone(), Vec::new()),
        Execution::Stopped { reason, results, .. } => {
            (false, reason.clone() + &results_so_far(results), Vec::new())
        }
    };
    Output { success, text: Excerpt::of(&text, limit), warnings, fixes: execution.fixes().to_vec() }
}

/// Returns true if the conversation shows only a part of a call's results. `limit` is the maximum
/// length of a call's output, in characters.
pub fn is_cut(execution: &Execution, limit: usize) -> bool {
    !execution.results().is_empty() && output(execution, limit).text.omitted.is_some()
}

/// Renders the outputs of a step as a message for the model, followed by the notes. The host's own
/// lines begin with a marker, and markers within the outputs are escaped.
pub(crate) fn message(nonce: &Nonce, step: u32, outputs: &[Output], notes: &[String]) -> String {
    let mut message = String::new();
    for output in outputs {
        let verdict = if output.success { "Execution result:" } else { "Execution FAILED:" };
        let gap = if message.is_empty() { "" } else { "\n\n" };
        let (mark, fixes) = (nonce.observation(step), fixes_note(nonce, &output.fixes));
        _ = write!(message, "{gap}{mark} {verdict}\n{fixes}{}", output.text.escaped(nonce));
    }
    for note in outputs.iter().flat_map(|output| &output.warnings).chain(notes) {
        _ = write!(message, "\n{}", nonce.note(&escape_marks(note, Some(nonce))));
    }
    message
}

/// Returns a note that lists the fixes made to a program before it ran. The note is needed because
/// the conversation contains the unfixed program.
fn fixes_note(nonce: &Nonce, fixes: &[String]) -> String {
    match fixes {
        [] => String::new(),
        fixes => {
            let fixes = fixes.join("; ");
            nonce.note(&format!("fixed before running: {}\n", escape_marks(&fixes, Some(nonce))))
        }
    }
}

fn ran_text(ran: &Completion) -> String {
    match &ran.failure {
        Some(failure) => failure_text(failure) + &results_so_far(&ran.results),
        None if ran.results.is_empty() => "(no results)".to_owned(),
        None => ran.results.join("\n"),
    }
}

/// Renders a failure: its code and meaning, then the host function, line, call and reason, if
/// known.
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
    if let Some(call) = &failure.call {
        _ = write!(text, "\nin {call}");
    }
    if let Some(reason) = &failure.reason {
        _ = write!(text, "\nreason: {reason}");
    }
    text
}

/// Renders the results that a program returned before it was stopped or failed.
fn results_so_far(results: &[String]) -> String {
    if results.is_empty() {
        String::new()
    } else {
        format!("\nprinted before that:\n{}", results.join("\n"))
    }
}

/// A string truncated to a limit: either the whole string, or only its head and tail.
#[derive(Default)]
pub(crate) struct Excerpt {
    head: String,
    /// Number of omitted characters, and total number of characters before truncation.
    omitted: Option<(usize, usize)>,
    tail: String,
    /// The name under which the whole string is kept, if it is.
    kept: Option<String>,
}

impl Excerpt {
    /// Truncates `text` in the middle to `limit` characters. Text that is at most a tenth longer is
    /// kept whole, since reading the rest would cost the model another step.
    pub(crate) fn of(text: &str, limit: usize) -> Self {
        let length = text.chars().count();
        if length <= limit.saturating_add(limit / 10) {
            return Self { head: text.to_owned(), ..Self::default() };
        }
        let tail = limit / 3;
        let head = limit - tail;
        let omitted = length - limit;
        let offset = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
        let (before, after) = (text.get(..offset(head)), text.get(offset(head + omitted)..));
        let own = |part: Option<&str>| part.unwrap_or_default().to_owned();
        let (head, tail) = (own(before), own(after));
        Self { head, omitted: Some((omitted, length)), tail, kept: None }
    }

    /// Records that the whole string is kept under a name.
    pub(crate) fn is_kept_as(&mut self, name: &str) {
        self.kept = Some(name.to_owned());
    }

    /// Returns the excerpt for human readers. Brackets mark the omission.
    pub(crate) fn plain(&self) -> String {
        let Self { head, tail, .. } = self;
        match self.omission() {
            None => head.clone(),
            Some(omission) => format!("{head}\n[… {omission} …]\n{tail}"),
        }
    }

    /// Returns the excerpt for the model. A note marks the omission, and markers in the excerpt are
    /// escaped.
    pub(crate) fn escaped(&self, nonce: &Nonce) -> String {
        let head = escape_marks(&self.head, Some(nonce));
        match self.omission() {
            None => head.into_owned(),
            Some(omission) => {
                format!(
                    "{head}\n{}\n{}",
                    nonce.note(&format!("… {omission} …")),
                    escape_marks(&self.tail, Some(nonce))
                )
            }
        }
    }

    /// Returns true if parts of the excerpt look like markers and must be escaped.
    pub(crate) fn has_marks(&self, nonce: &Nonce) -> bool {
        [&self.head, &self.tail].into_iter().any(|text| *escape_marks(text, Some(nonce)) != **text)
    }

    /// Returns a phrase that states the number of omitted characters and tells the model how to
    /// read them. Returns `None` if nothing was omitted.
    fn omission(&self) -> Option<String> {
        let (omitted, length) = self.omitted?;
        if let Some(name) = &self.kept {
            return Some(format!(
                "{omitted} of {length} characters left out: the whole result is ${name}, a string, \
                 in the next program"
            ));
        }
        Some(format!(
            "{omitted} of {length} characters left out: print less, or a part at a time with \
             $str.slice, or run the next program on the data without printing all of it"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_up_to_a_tenth_over_its_limit_is_kept_whole() {
        for (length, is_whole) in [(100, true), (110, true), (111, false)] {
            let text = "ä".repeat(length);
            assert_eq!(Excerpt::of(&text, 100).plain() == text, is_whole, "{length}");
        }
        assert_eq!(Excerpt::of("x", usize::MAX).plain(), "x");
    }
}

//! Words what became of a call for the model, within a bound.

use std::fmt::Write as _;

use crate::call::{Execution, Failure, Ran};
use crate::mark::{Nonce, shown};

/// What the model reads of one call.
pub(crate) struct Output {
    pub(crate) success: bool,
    /// The results or the reason, at most as long as the bound allows.
    pub(crate) text: Excerpt,
    /// What the author should know besides, one sentence each.
    pub(crate) warnings: Vec<String>,
    /// What was put right in the program before it ran.
    pub(crate) mended: Vec<String>,
}

impl Output {
    /// What the model reads of a call whose results stay out of the conversation.
    pub(crate) fn silent(label: &str) -> Self {
        let text = Excerpt::of(&format!("(done; what `{label}` gives is not shown)"), usize::MAX);
        Self { success: true, text, warnings: Vec::new(), mended: Vec::new() }
    }

    /// If true, some of it could be taken for a mark, and is not shown as it is.
    pub(crate) fn imitates_marks(&self, nonce: &Nonce) -> bool {
        let mut others = self.warnings.iter().chain(&self.mended);
        self.text.imitates_marks(nonce) || others.any(|text| *shown(text, Some(nonce)) != **text)
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
    Output { success, text: Excerpt::of(&text, limit), warnings, mended: execution.mended().to_vec() }
}

/// Words a step's outputs as the message that goes back to the model; each note is a sentence of its own at the end. The host's own
/// lines begin with a mark; nothing of the outputs does.
pub(crate) fn message(nonce: &Nonce, step: u32, outputs: &[Output], notes: &[String]) -> String {
    let mut message = String::new();
    for output in outputs {
        let verdict = if output.success { "Execution result:" } else { "Execution FAILED:" };
        let gap = if message.is_empty() { "" } else { "\n\n" };
        let (mark, mended) = (nonce.observation(step), mended(nonce, &output.mended));
        _ = write!(message, "{gap}{mark} {verdict}\n{mended}{}", output.text.shown(nonce));
    }
    for note in outputs.iter().flat_map(|output| &output.warnings).chain(notes) {
        _ = write!(message, "\n{}", nonce.note(&shown(note, Some(nonce))));
    }
    message
}

/// Says what was put right in a program before it ran: its author reads its own text, not the one that ran.
fn mended(nonce: &Nonce, mended: &[String]) -> String {
    match mended {
        [] => String::new(),
        mended => {
            let mended = mended.join("; ");
            nonce.note(&format!("mended before running: {}\n", shown(&mended, Some(nonce))))
        }
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

/// Is a text within a bound: the whole of it, or its head and its tail.
pub(crate) struct Excerpt {
    head: String,
    /// How many characters are missing, and how many there were.
    cut: Option<(usize, usize)>,
    tail: String,
}

impl Excerpt {
    /// Cuts `text` in the middle if it has more than `limit` characters.
    pub(crate) fn of(text: &str, limit: usize) -> Self {
        let length = text.chars().count();
        if length <= limit {
            return Self { head: text.to_owned(), cut: None, tail: String::new() };
        }
        let tail = limit / 3;
        let head = limit - tail;
        let left_out = length - limit;
        let offset = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
        let (before, after) = (text.get(..offset(head)), text.get(offset(head + left_out)..));
        let own = |part: Option<&str>| part.unwrap_or_default().to_owned();
        Self { head: own(before), cut: Some((left_out, length)), tail: own(after) }
    }

    /// Returns it as people read it; what is missing is said between brackets.
    pub(crate) fn plain(&self) -> String {
        let Self { head, tail, .. } = self;
        match self.missing() {
            None => head.clone(),
            Some(missing) => format!("{head}\n[… {missing} …]\n{tail}"),
        }
    }

    /// Returns it as the model reads it: what is missing is said in a note, and nothing else begins with a mark.
    pub(crate) fn shown(&self, nonce: &Nonce) -> String {
        let head = shown(&self.head, Some(nonce));
        match self.missing() {
            None => head.into_owned(),
            Some(missing) => {
                format!("{head}\n{}\n{}", nonce.note(&format!("… {missing} …")), shown(&self.tail, Some(nonce)))
            }
        }
    }

    /// If true, some of it could be taken for a mark, and is not shown as it is.
    pub(crate) fn imitates_marks(&self, nonce: &Nonce) -> bool {
        [&self.head, &self.tail].into_iter().any(|text| *shown(text, Some(nonce)) != **text)
    }

    /// Says what is missing and how to get at it.
    fn missing(&self) -> Option<String> {
        let (left_out, length) = self.cut?;
        Some(format!(
            "{left_out} of {length} characters left out: put out less, or a part at a time with $str.slice, or run the next program on \
             the data without putting all of it out"
        ))
    }
}

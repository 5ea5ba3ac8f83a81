//! The line editor's help while a user types: colours, completions, hints, and a new line if the
//! input is incomplete.

use std::borrow::Cow;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter, HistoryHinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Context, Helper};

use super::commands;
use super::complete::{SharedKnown, complete, is_safe, signature};
use super::open::Input;
use crate::output::{self, BAD, DIM, NAME, highlight, paint};

/// A helper that highlights, completes and validates the input in the line editor.
pub(super) struct Hints {
    known: SharedKnown,
    /// If true, the helper does nothing, because the user is answering a question.
    pub(super) is_idle: bool,
}

impl Hints {
    /// Creates a helper that completes the known names.
    pub(super) fn new(known: SharedKnown) -> Hints {
        Hints { known, is_idle: false }
    }
}

impl Helper for Hints {}

/// The hint after the cursor.
pub(super) struct After {
    shown: String,
    /// The text that the right arrow key inserts.
    inserted: Option<String>,
}

impl Hint for After {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        self.inserted.as_deref()
    }
}

impl Hinter for Hints {
    type Hint = After;

    fn hint(&self, line: &str, at: usize, context: &Context<'_>) -> Option<After> {
        if self.is_idle || at < line.len() {
            return None;
        }
        let from_history = HistoryHinter::new().hint(line, at, context);
        // A string with control characters, or with several lines, cannot be shown after the
        // cursor.
        if let Some(rest) = from_history.filter(|rest| is_safe(rest)) {
            return Some(After { shown: rest.clone(), inserted: Some(rest) });
        }
        let usage = signature(line)?;
        Some(After { shown: format!("  {usage}"), inserted: None })
    }
}

impl Completer for Hints {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if self.is_idle {
            return Ok((at, Vec::new()));
        }
        Ok(complete(line.split_at(at).0, &self.known.lock()))
    }
}

impl Highlighter for Hints {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        // Highlighting must not change the width of the line, but escaped control characters would.
        let is_plain = output::visible(line) != line;
        let text = line.trim_start();
        if self.is_idle || is_plain || !output::is_styled() {
            return Cow::Borrowed(line);
        }
        if text.starts_with('(') {
            return Cow::Owned(output::for_editor(&highlight::program(line)));
        }
        let word = text.split_whitespace().next().unwrap_or_default();
        let Some(rest) = line.strip_prefix(word).filter(|_| word.starts_with('/')) else {
            return Cow::Borrowed(line);
        };
        let is_known = commands::find(word).is_some() || commands::begins(word);
        let style = if is_known { NAME } else { BAD };
        Cow::Owned(output::for_editor(&format!("{}{rest}", paint(style, word))))
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(output::for_editor(&paint(NAME.bold(), prompt)))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(output::for_editor(&paint(DIM, hint)))
    }

    fn highlight_candidate<'c>(&self, candidate: &'c str, _: CompletionType) -> Cow<'c, str> {
        match candidate.split_once("  ") {
            Some((name, about)) => {
                Cow::Owned(output::for_editor(&format!("{name}  {}", paint(DIM, about))))
            }
            None => Cow::Borrowed(candidate),
        }
    }

    fn highlight_char(&self, line: &str, _: usize, kind: CmdKind) -> bool {
        // A new character can change how everything after it is highlighted.
        kind != CmdKind::MoveCursor && line.trim_start().starts_with(['(', '/'])
    }
}

impl Validator for Hints {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        // Two blank lines end an input that would never become complete.
        let given_up = input.ends_with("\n\n");
        Ok(if !self.is_idle && !given_up && Input::of(input).is_open() {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

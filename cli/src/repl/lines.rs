//! The source of inputs: a line editor on a terminal, or stdin.

use std::io::{BufRead, Read};
use std::sync::Arc;

use parking_lot::Mutex;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Event as RlEvent, EventContext,
    EventHandler, KeyCode, KeyEvent, Modifiers,
};

use super::complete::SharedKnown;
use super::hints::Hints;
use super::open::Input;
use super::paste::Pastes;
use crate::fault::Fault;
use crate::line_editor::LineEditor;
use crate::output::highlight::{Kind, pieces};
use crate::output::{self, visible};
use crate::stdin::Reader;

/// Maximum size of an input from a pipe, in bytes.
const LARGEST: u64 = 16 << 20;
/// The prompt.
const PROMPT: &str = "› ";

/// An event from the source of inputs.
pub(super) enum Line {
    /// A complete input.
    Text(String),
    /// Text to edit in the user's editor, after Ctrl-X Ctrl-E.
    Edit(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of the pipe.
    End,
}

/// The source of inputs.
pub(super) struct Lines(Source);

enum Source {
    /// A line editor on a terminal.
    Terminal {
        editor: Box<LineEditor<Hints>>,
        /// The text that the user wants to edit in their own editor.
        wanted: Wanted,
        pastes: Pastes,
    },
    /// A pipe or a file on stdin. The lines of one input are joined.
    Pipe,
}

impl Lines {
    /// Opens a line editor with a history if stdin and stdout are terminals. Otherwise, opens
    /// stdin.
    ///
    /// # Errors
    /// If the terminal cannot be set up.
    pub(super) fn open(known: SharedKnown) -> Result<Lines, Fault> {
        if !crate::stdin::is_interactive() {
            return Ok(Lines(Source::Pipe));
        }
        let mut own = LineEditor::open("history", Hints::new(known), |config| {
            let config = config.history_ignore_dups(true)?;
            Ok(config.completion_type(CompletionType::List).completion_show_all_if_ambiguous(true))
        })?;
        let editor = &mut own.editor;
        if !output::is_styled() {
            editor.set_color_mode(ColorMode::Disabled);
        }
        let pastes = Pastes::default();
        pastes.bind(editor);
        let wanted = Wanted::default();
        let keys = ['x', 'e']
            .map(|key| KeyEvent(KeyCode::Char(key.to_ascii_uppercase()), Modifiers::CTRL));
        let handler = EventHandler::Conditional(Box::new(wanted.clone()));
        editor.bind_sequence(RlEvent::KeySeq(keys.to_vec()), handler);
        Ok(Lines(Source::Terminal { editor: Box::new(own), wanted, pastes }))
    }

    /// Returns true if a user can answer questions.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.0, Source::Terminal { .. })
    }

    /// Waits for the next input without blocking the threads that run programs, and adds the input
    /// to the history. The line editor starts with the text `initial`.
    ///
    /// # Errors
    /// If the terminal or stdin cannot be read.
    pub(super) async fn next(&mut self, initial: String) -> Result<Line, Fault> {
        self.away(move |source| {
            let line = source.read(PROMPT, &initial)?;
            if let (Source::Terminal { editor, .. }, Line::Text(text)) = (source, &line)
                && let Err(fault) = editor.remember(text)
            {
                output::warn(fault.message());
            }
            Ok(line)
        })
        .await
    }

    /// Asks a question and reads one line as the answer. The answer is not added to the history.
    ///
    /// # Errors
    /// If the terminal or stdin cannot be read.
    pub(super) async fn ask(&mut self, question: String) -> Result<Line, Fault> {
        self.away(move |source| source.read(&question, "")).await
    }

    /// Passes the source to `work`, which runs on a thread where blocking is allowed.
    async fn away<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Source) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let mut source = std::mem::replace(&mut self.0, Source::Pipe);
        let worked = tokio::task::spawn_blocking(move || {
            let done = work(&mut source);
            (source, done)
        });
        match worked.await {
            Ok((source, done)) => {
                self.0 = source;
                done
            }
            Err(_) => Err(Fault::failed("the line editor broke, which is a bug")),
        }
    }
}

impl Source {
    fn read(&mut self, prompt: &str, initial: &str) -> Result<Line, Fault> {
        let mut reader = crate::stdin::lock();
        let Source::Terminal { editor, wanted, pastes } = self else {
            return piped(&mut reader);
        };
        let editor = &mut editor.editor;
        // A question has no completions and no hints.
        if let Some(hints) = editor.helper_mut() {
            hints.is_idle = prompt != PROMPT;
        }
        let initial = safe_initial(initial);
        match editor.readline_with_initial(prompt, (initial.as_str(), "")) {
            Ok(text) => Ok(Line::Text(pastes.expand(&text))),
            Err(ReadlineError::Interrupted) => {
                Ok(wanted.take().map_or(Line::Interrupt, |text| Line::Edit(pastes.expand(&text))))
            }
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(Fault::failed(format!("failed to read from the terminal: {error}"))),
        }
    }
}

/// Returns the initial text of the line editor, with characters that control the terminal escaped.
/// If they cannot be escaped, returns an empty string. Prints a warning in both cases.
fn safe_initial(text: &str) -> String {
    let shown = visible(text);
    if shown == text {
        return shown;
    }
    if has_hostile_raw_string(text) {
        output::warn(
            "the text cannot be edited here: it contains control characters, and raw strings have \
             no escapes",
        );
        return String::new();
    }
    output::warn("control characters in the text were escaped, for example as `\\u{1b}`");
    shown
}

/// Returns true if a string is a program that contains control characters after the start of a raw
/// string literal. All text after the start of the literal counts, because the highlighter does not
/// know raw string literals and may misjudge where they end.
fn has_hostile_raw_string(text: &str) -> bool {
    if !text.trim_start().starts_with(['(', ';']) {
        return false;
    }
    let pieces = pieces(text);
    let raw = pieces.iter().zip(pieces.iter().skip(1));
    let mut raw = raw.filter(|(before, piece)| piece.kind == Kind::Text && before.text == "r");
    let rest = raw.next().map(|(before, _)| text.split_at(before.start).1);
    rest.is_some_and(|rest| visible(rest) != rest)
}

/// The text that the user wants to edit in their own editor. The line editor reports both Ctrl-X
/// Ctrl-E and Ctrl-C as an interrupt, but only the former sets the text.
#[derive(Clone, Default)]
struct Wanted(Arc<Mutex<Option<String>>>);

impl Wanted {
    fn take(&self) -> Option<String> {
        self.0.lock().take()
    }
}

impl ConditionalEventHandler for Wanted {
    fn handle(&self, _: &RlEvent, _: u16, _: bool, ctx: &EventContext<'_>) -> Option<Cmd> {
        *self.0.lock() = Some(ctx.line().to_owned());
        Some(Cmd::Interrupt)
    }
}

/// Reads lines until the input is complete or stdin ends.
fn piped(stdin: &mut Reader) -> Result<Line, Fault> {
    let (mut input, mut bytes) = (Input::default(), Vec::new());
    loop {
        let start = bytes.len();
        let room = LARGEST.saturating_sub(start as u64);
        let read = stdin.by_ref().take(room).read_until(b'\n', &mut bytes);
        if read.map_err(|error| Fault::failed(format!("failed to read stdin: {error}")))? == 0 {
            if room == 0 {
                return Err(Fault::failed(format!(
                    "an input on stdin is larger than {} MiB",
                    LARGEST >> 20
                )));
            }
            return if bytes.is_empty() { Ok(Line::End) } else { whole(bytes) };
        }
        let line = String::from_utf8_lossy(bytes.split_at(start).1);
        input.feed(line.trim_end_matches(['\n', '\r']));
        if !input.is_open() {
            return whole(bytes);
        }
    }
}

fn whole(bytes: Vec<u8>) -> Result<Line, Fault> {
    String::from_utf8(bytes)
        .map(Line::Text)
        .map_err(|_| Fault::failed("an input on stdin is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_initial_text_cannot_control_the_terminal() {
        for (text, shown) in [
            ("(out \"a\tb\")\n;; c", "(out \"a\tb\")\n;; c"),
            (
                ";; a\u{1b}]0;b\u{7}\u{1b}[2J\u{202e}\n",
                ";; a\\u{1b}]0;b\\u{7}\\u{1b}[2J\\u{202e}\n",
            ),
            ("(out \"\u{1b}[2J\")", "(out \"\\u{1b}[2J\")"),
            ("say \u{9b}2J", "say \\u{9b}2J"),
            ("(out r\"a\\d\")", "(out r\"a\\d\")"),
            ("(out \"\u{7}\" r\"a\")", "(out \"\\u{7}\" r\"a\")"),
            // A raw string has no escapes, so it is refused.
            ("(out r\"\u{1b}[2J\")", ""),
            ("(out r\"\"\"\u{202e}\"\"\")", ""),
            ("(out r\"\\\" \"\u{7}\")", ""),
        ] {
            assert_eq!(safe_initial(text), shown, "{text:?}");
        }
    }
}

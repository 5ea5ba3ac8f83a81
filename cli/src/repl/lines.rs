//! The source of inputs: an edited line on a terminal, or stdin.

use std::io::{BufRead, IsTerminal, Read, StdinLock, stdin, stdout};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Completer, Config, Editor, Helper, Highlighter, Hinter};

use super::open::Input;
use crate::fault::Fault;
use crate::output;
use crate::setup::make_private;

/// Maximum size of an input from a pipe, in bytes.
const LARGEST: u64 = 16 << 20;
/// Maximum number of inputs in the history.
const REMEMBERED: usize = 1_000;

/// An event of the source.
pub(super) enum Line {
    /// A complete input.
    Text(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of the pipe.
    End,
}

/// The source of inputs.
pub(super) enum Lines {
    /// A user who edits lines.
    Terminal { editor: Box<Editor<CompleteInput, FileHistory>>, history: Option<PathBuf> },
    /// A program or a file. Lines of one input are joined.
    Pipe,
}

/// Ends an input at a line that completes it.
#[derive(Completer, Helper, Highlighter, Hinter)]
pub(super) struct CompleteInput;

impl Validator for CompleteInput {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let input = context.input();
        // Two blank lines end an input that would never be complete.
        let given_up = input.ends_with("\n\n");
        Ok(if !given_up && Input::of(input).is_open() {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Lines {
    /// Opens an editor with a history if a user is at the terminal, otherwise stdin.
    ///
    /// # Errors
    /// If the terminal cannot be set up.
    pub(super) fn open() -> Result<Lines, Fault> {
        if !(stdin().is_terminal() && stdout().is_terminal()) {
            return Ok(Lines::Pipe);
        }
        let failed =
            |error: ReadlineError| Fault::failed(format!("failed to set up the terminal: {error}"));
        let config = Config::builder()
            .max_history_size(REMEMBERED)
            .and_then(|c| c.history_ignore_dups(true));
        let config =
            config.map_err(failed)?.history_ignore_space(true).bracketed_paste(true).build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(CompleteInput));
        let history = history_file();
        if let Some(path) = &history {
            // A missing history file counts as an empty history.
            drop(editor.load_history(path));
        }
        Ok(Lines::Terminal { editor: Box::new(editor), history })
    }

    /// Returns true if a user can answer questions.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Lines::Terminal { .. })
    }

    /// Waits for the next input without blocking the threads that run programs, and adds the input
    /// to the history.
    pub(super) async fn next(self) -> (Lines, Result<Line, Fault>) {
        self.away(|lines| {
            let line = lines.read("wattle> ")?;
            if let (Lines::Terminal { editor, history }, Line::Text(text)) = (lines, &line) {
                remember(editor, history.as_deref(), text);
            }
            Ok(line)
        })
        .await
    }

    /// Asks a question and reads one line as the answer. The answer is not added to the history.
    pub(super) async fn ask(self, question: String) -> (Lines, Result<Line, Fault>) {
        self.away(move |lines| lines.read(&question)).await
    }

    async fn away<T: Send + 'static>(
        self,
        work: impl FnOnce(&mut Lines) -> Result<T, Fault> + Send + 'static,
    ) -> (Lines, Result<T, Fault>) {
        let worked = tokio::task::spawn_blocking(move || {
            let mut lines = self;
            let done = work(&mut lines);
            (lines, done)
        });
        worked.await.unwrap_or_else(|_| {
            (Lines::Pipe, Err(Fault::failed("the line editor broke, which is a bug")))
        })
    }

    fn read(&mut self, prompt: &str) -> Result<Line, Fault> {
        match self {
            Lines::Terminal { editor, .. } => match editor.readline(prompt) {
                Ok(text) => Ok(Line::Text(text)),
                Err(ReadlineError::Interrupted) => Ok(Line::Interrupt),
                Err(ReadlineError::Eof) => Ok(Line::End),
                Err(error) => {
                    Err(Fault::failed(format!("failed to read from the terminal: {error}")))
                }
            },
            Lines::Pipe => piped(&mut stdin().lock()),
        }
    }
}

/// Reads lines until the input is complete or stdin ends.
fn piped(stdin: &mut StdinLock<'_>) -> Result<Line, Fault> {
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
        input.feed(
            String::from_utf8_lossy(bytes.get(start..).unwrap_or_default())
                .trim_end_matches(['\n', '\r']),
        );
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

fn remember(editor: &mut Editor<CompleteInput, FileHistory>, file: Option<&Path>, text: &str) {
    if !text.trim().is_empty()
        && editor.add_history_entry(text).unwrap_or(false)
        && let Some(file) = file
        && let Err(error) = editor.append_history(file)
    {
        output::warn(&format!("failed to write the history `{}`: {error}", file.display()));
    }
}

/// Returns the history file in the user's state folder. Creates the folder if it is missing.
fn history_file() -> Option<PathBuf> {
    let folder = etcetera::base_strategy::Xdg::new().ok()?.state_dir()?.join("wattle");
    make_private(&folder).ok()?;
    Some(folder.join("history"))
}

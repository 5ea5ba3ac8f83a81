//! Line editors with a history in the user's state folder.

use std::path::PathBuf;

use rustyline::config::Builder;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor, Helper};
use wattle_agent::host::create_folder;

use crate::config::Places;
use crate::fault::Fault;

/// Maximum number of inputs in a history.
const REMEMBERED: usize = 1_000;

/// A line editor, and the file of its history.
pub(crate) struct LineEditor<H: Helper> {
    pub(crate) editor: Editor<H, FileHistory>,
    /// The file, or `None` if the user has no state folder.
    history: Option<PathBuf>,
}

impl<H: Helper> LineEditor<H> {
    /// Opens an editor whose history is the file `history` in the user's state folder.
    ///
    /// # Errors
    /// If the terminal cannot be set up.
    pub(crate) fn open(
        history: &str,
        helper: H,
        settings: impl FnOnce(Builder) -> rustyline::Result<Builder>,
    ) -> Result<LineEditor<H>, Fault> {
        let failed =
            |error: ReadlineError| Fault::failed(format!("failed to set up the terminal: {error}"));
        let config = Config::builder().max_history_size(REMEMBERED).map_err(failed)?;
        let config =
            settings(config.history_ignore_space(true).bracketed_paste(true)).map_err(failed)?;
        let mut editor = Editor::with_config(config.build()).map_err(failed)?;
        editor.set_helper(Some(helper));
        // Without a state folder, the history ends with the process.
        let folder = Places::of_user().state.filter(|folder| create_folder(folder).is_ok());
        let history = folder.map(|folder| folder.join(history));
        if let Some(path) = &history {
            // A missing file counts as an empty history.
            drop(editor.load_history(path));
        }
        Ok(LineEditor { editor, history })
    }

    /// Adds an input to the history, unless it is empty or begins with a space.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn remember(&mut self, input: &str) -> Result<(), Fault> {
        if !input.trim().is_empty()
            && self.editor.add_history_entry(input).unwrap_or(false)
            && let Some(path) = &self.history
        {
            self.editor.append_history(path).map_err(|error| {
                Fault::failed(format!("failed to write the history `{}`: {error}", path.display()))
            })?;
        }
        Ok(())
    }
}

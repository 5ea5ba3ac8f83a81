//! `wattle repl`: an interactive session.
//!
//! [`lines`] reads inputs and uses [`open`] to determine whether each one is complete;
//! [`hints`] helps the user to type them. [`entry`] parses an input: a message goes to
//! [`session`], a program to [`execute`], and a command to its row in [`commands`]. No line is
//! edited while an input is processed, so output appears above the next prompt.

mod commands;
mod complete;
mod entry;
mod execute;
mod greeting;
mod hints;
mod history;
mod interrupt;
mod lines;
mod open;
mod paste;
mod program;
mod session;

use std::time::Instant;

use crate::args::ContextValue;
use crate::config::{Config, Layer};
use crate::confine::confine;
use crate::editor::EditorBroker;
use crate::fault::{Exit, Fault};
use crate::setup::Setup;
use crate::walls::Needs;
use crate::{keyboard, output, stdin, threads, trust};

use complete::SharedKnown;
use entry::Entry;
use interrupt::TWICE;
use lines::{Line, Lines};
use session::{Next, Session};

/// The program that runs a line of the shell.
const SHELL: &str = "shell";

/// The session, and the source of its inputs.
struct Repl {
    session: Session,
    lines: Lines,
    /// The user's editor, if the environment names one.
    editor: Option<EditorBroker>,
}

/// Runs the session until the user leaves. The agents receive the values of `context`.
pub(crate) fn run(context: Vec<ContextValue>, flags: &[Layer]) -> Result<Exit, Fault> {
    let config = trust::with_content(trust::gather(flags)?)?;
    let editor = stdin::is_interactive().then(EditorBroker::start).flatten();
    confine(&config, &Needs { trusted: config.exec.value, ..Needs::default() })?;
    threads::run(converse(config, context, editor))
}

async fn converse(
    config: Config,
    context: Vec<ContextValue>,
    editor: Option<EditorBroker>,
) -> Result<Exit, Fault> {
    let _returns = keyboard::keep_returns();
    let known = SharedKnown::default();
    let setup = Setup::new(config)?.with_new_servers().await.with_context(context);
    let session = Session::new(setup, known.clone()).await?;
    let mut repl = Repl { session, lines: Lines::open(known)?, editor };
    if repl.lines.is_terminal() {
        greeting::greet(&repl.session);
        repl.session.introduce().await?;
    }
    let mut interrupted: Option<Instant> = None;
    loop {
        repl.session.learn().await;
        let initial = std::mem::take(&mut repl.session.next);
        let text = match repl.lines.next(initial).await? {
            Line::Text(text) => text,
            Line::Edit(text) => {
                if let Err(fault) = repl.edit(text.clone()).await {
                    output::fault(&fault);
                    repl.session.next = text;
                }
                continue;
            }
            Line::End => return repl.leave(Exit::Done).await,
            Line::Interrupt if interrupted.is_some_and(|last| last.elapsed() < TWICE) => {
                return repl.leave(Exit::Interrupted).await;
            }
            Line::Interrupt => {
                interrupted = Some(Instant::now());
                output::aside("Ctrl-C again or Ctrl-D to leave");
                continue;
            }
        };
        interrupted = None;
        repl.session.refresh().await;
        match repl.perform(&text).await {
            Ok(Next::Go) => {}
            Ok(Next::Leave(exit)) => return repl.leave(exit).await,
            Err(Fault::ReaderGone) => return Err(Fault::ReaderGone),
            // A failed input leaves the session unchanged.
            Err(fault) => output::fault(&fault),
        }
    }
}

impl Repl {
    /// Opens `text` in the user's editor and pre-fills the next prompt with the result. Without an
    /// editor, the text is used unchanged.
    async fn edit(&mut self, text: String) -> Result<(), Fault> {
        let Some(mut editor) = self.editor.take() else {
            self.session.next = text;
            return Ok(());
        };
        let ending = if text.trim_start().starts_with(['(', ';']) { ".wat" } else { ".md" };
        // Interrupts are meant for the editor.
        let interrupt = tokio::signal::unix::SignalKind::interrupt();
        let _ignored = tokio::signal::unix::signal(interrupt);
        let edited = tokio::task::spawn_blocking(move || {
            let _reader = stdin::lock();
            let _keys = keyboard::question();
            let edited = editor.edit(&text, ending);
            (editor, edited)
        });
        let (editor, edited) = edited.await.map_err(Fault::failed)?;
        self.editor = Some(editor);
        self.session.next = edited?;
        Ok(())
    }

    /// Processes one input.
    async fn perform(&mut self, text: &str) -> Result<Next, Fault> {
        self.session.load_files().await?;
        let done = match entry::read(text)? {
            Entry::Nothing => return Ok(Next::Go),
            Entry::Command(command, arguments) => {
                let done = command.run(self, arguments).await;
                // Of all commands, only `/run` can leave changes that the user has not seen.
                if command.name != "/run" {
                    return done;
                }
                done
            }
            Entry::Program(source) => self.session.continue_program(&source).await,
            Entry::Shell(line) => self.session.call(SHELL, &[line]).await,
            Entry::Message(message) => self.session.say(message).await,
        };
        // The input may have written files even if it failed.
        match done {
            Ok(Next::Leave(_)) | Err(Fault::ReaderGone) => done,
            done => {
                if let Err(fault) = &done {
                    output::fault(fault);
                }
                self.session.offer(&mut self.lines).await.map(|()| Next::Go)
            }
        }
    }

    /// Ends the session. Unless the user interrupted it, asks about changes that would be lost.
    async fn leave(mut self, exit: Exit) -> Result<Exit, Fault> {
        if exit == Exit::Done {
            self.session.offer_last(&mut self.lines).await?;
        }
        match self.session.pending() {
            0 => {}
            1 => output::warn("1 change was not applied"),
            count => output::warn(&format!("{count} changes were not applied")),
        }
        if self.lines.is_terminal()
            && self.session.is_stored()
            && (self.session.pending() > 0 || !self.session.conversation().await?.is_empty())
        {
            let id = &self.session.kept.id;
            output::aside(&output::visible(&format!("continue with `wattle session resume {id}`")));
        }
        self.session.setup.flush().await;
        Ok(exit)
    }
}

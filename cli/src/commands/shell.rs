//! `wattle shell`: runs a command line, a script or interactive input in the shell, without a
//! model. The shell's output and exit status become those of the process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustyline::error::ReadlineError;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Completer, Helper, Highlighter, Hinter};
use wattle_agent::host::shell::{Bounds, Session, Shell, Stdio, Stream};

use crate::args::ShellArgs;
use crate::changes::{self, Fate, Rules};
use crate::config::{Config, Layer};
use crate::confine::confine;
use crate::fault::{Exit, Fault};
use crate::line_editor::LineEditor;
use crate::output::Screen;
use crate::setup::Setup;
use crate::walls::Needs;
use crate::{input, output, stdin, threads, trust, writers};

/// Runs a command line, a script or interactive input in the shell.
pub(crate) fn shell(args: ShellArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let config = trust::gather(flags)?;
    let script = args.args.first().filter(|_| args.command.is_none());
    let needs = Needs {
        reads: script.map(PathBuf::from).into_iter().collect(),
        workdir_stays: !config.writes_through() && !config.apply.value,
        trusted: config.exec.value,
        ..Needs::default()
    };
    confine(&config, &needs)?;
    threads::run(open_and_run(args, config))
}

async fn open_and_run(args: ShellArgs, config: Config) -> Result<Exit, Fault> {
    let setup = Setup::for_one_program(config)?;
    writers::set_name("`wattle shell`".to_owned());
    let files = setup.files()?;
    let shell = Shell::new(Arc::new(setup.host.toolbox().clone()), Bounds::default());
    let mut session = shell.session(setup.confined(&files));
    let deadline = setup.config.timeout.value.map(|span| span.0);
    let mut words = args.args;
    let script = match (args.command, words.first().cloned()) {
        (Some(line), name) => {
            session
                .set_arguments(name.unwrap_or_else(|| "wattle".into()), words.into_iter().skip(1));
            Some(line)
        }
        (None, Some(file)) => {
            session.set_arguments(file.clone(), words.drain(1..));
            Some(input::text(&PathBuf::from(file))?)
        }
        (None, None) if stdin::is_interactive() => None,
        (None, None) => Some(input::text(&PathBuf::from("-"))?),
    };
    let status = match script {
        Some(script) => {
            let cancel = crate::setup::interrupt();
            let Screen { streams, rest } = Screen::open()?;
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(Exit::Interrupted),
                status = session.run_script(&script, streams, deadline) => {
                    rest.show().map(|()| status.0)?
                }
            }
        }
        None => converse(session, deadline).await?,
    };
    let fate = Fate::of(&setup.config, status == 0, None);
    changes::settle(&files, &Rules::of(&setup.config), &fate)?;
    Ok(Exit::Status(status))
}

/// A validator that accepts the input once it is a complete script.
#[derive(Completer, Helper, Highlighter, Hinter)]
struct CompleteLine;

impl Validator for CompleteLine {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let open = Session::is_incomplete(context.input());
        Ok(if open { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

/// Reads and runs lines until one of them runs `exit`, or the user presses Ctrl-D. Ctrl-C discards
/// the line that is being edited, or interrupts the one that is running. Returns the exit status of
/// the last line.
async fn converse(mut session: Session, deadline: Option<Duration>) -> Result<u8, Fault> {
    let mut editor = LineEditor::open("shell_history", CompleteLine, Ok)?;
    let mut status = 0;
    while !session.has_exited() {
        let prompt = session.variable("PS1").unwrap_or_else(|| "$ ".into());
        // A script may have set the prompt, and a folder's name can contain any character.
        let prompt = output::visible(&prompt.replace("\\w", session.folder()).replace("\\$", "$"));
        let read = tokio::task::spawn_blocking(move || {
            let _reader = stdin::lock();
            let line = editor.editor.readline(&prompt);
            (editor, line)
        });
        let line;
        (editor, line) =
            read.await.map_err(|_| Fault::failed("the line editor broke, which is a bug"))?;
        let line = match line {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => {
                return Err(Fault::failed(format!("failed to read from the terminal: {error}")));
            }
        };
        // The shell works without a history.
        drop(editor.remember(&line));
        let Screen { streams, rest } = Screen::open()?;
        let streams = Stdio { stdin: Stream::null(), ..streams };
        tokio::select! {
            ran = session.run(&line, streams, deadline) => status = ran.0,
            interrupted = tokio::signal::ctrl_c() => {
                status = 130;
                if interrupted.is_err() {
                    output::warn("interrupts cannot be waited for");
                }
                output::note("interrupted");
            }
        }
        rest.show()?;
    }
    Ok(status)
}

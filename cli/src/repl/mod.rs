//! `wattle repl`: an interactive session.
//!
//! [`lines`] reads inputs, each complete according to [`open`]; [`entry`] parses an input, and
//! [`session`] processes it. No line is edited while an input is processed, so output appears above
//! the next prompt.

mod entry;
mod interrupt;
mod lines;
mod open;
mod session;

use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, NAME, paint};
use crate::setup::Setup;
use crate::threads;
use crate::walls::{self, Needs};

use entry::{COMMANDS, Command, Entry};
use lines::{Line, Lines};
use session::{Next, Session};

/// Runs the conversation until the user leaves.
pub(crate) fn run(flags: Layer, outer: Layer) -> Result<Exit, Fault> {
    let config = Config::gather(&[flags, outer])?;
    walls::raise(&config, &Needs { trusted: config.exec.value, ..Needs::default() })?;
    threads::run(converse(config))
}

async fn converse(config: Config) -> Result<Exit, Fault> {
    let setup = Setup::new(config)?;
    let (mut session, mut lines) = (Session::new(setup)?, Lines::open()?);
    if lines.is_terminal() {
        greet();
    }
    let mut interrupted = false;
    loop {
        let (back, line) = lines.next().await;
        lines = back;
        let text = match line {
            Ok(Line::Text(text)) => text,
            Ok(Line::End) => return Ok(leave(&session, Exit::Done).await),
            Ok(Line::Interrupt) if interrupted => {
                return Ok(leave(&session, Exit::Interrupted).await);
            }
            Ok(Line::Interrupt) => {
                interrupted = true;
                output::note(&paint(DIM, "Ctrl-C again or Ctrl-D to leave"));
                continue;
            }
            Err(fault) => return Err(fault),
        };
        interrupted = false;
        session.refresh().await;
        let next;
        (lines, next) = perform(&mut session, lines, &text).await;
        match next {
            Ok(Next::Go) => {}
            Ok(Next::Leave(exit)) => return Ok(leave(&session, exit).await),
            Err(Fault::ReaderGone) => return Err(Fault::ReaderGone),
            // A failed input leaves the session unchanged.
            Err(fault) => output::fault(&fault),
        }
    }
}

/// Processes one input.
async fn perform(session: &mut Session, lines: Lines, text: &str) -> (Lines, Result<Next, Fault>) {
    let done = match entry::read(text) {
        Ok(Entry::Nothing) => return (lines, Ok(Next::Go)),
        Ok(Entry::Command(Command::Quit)) => return (lines, Ok(Next::Leave(Exit::Done))),
        Ok(Entry::Command(Command::Help { topic: None })) => return (lines, help()),
        Ok(Entry::Command(Command::Help { topic: Some(topic) })) => {
            return (lines, session.explain(&topic).map(|()| Next::Go));
        }
        Ok(Entry::Command(Command::Catalog)) => {
            return (lines, session.catalog().map(|()| Next::Go));
        }
        Ok(Entry::Command(Command::Cost)) => return (lines, session.cost().map(|()| Next::Go)),
        Ok(Entry::Command(Command::Run { name, args })) => session.call(&name, &args).await,
        Ok(Entry::Program(source)) => session.program(&source, Vec::new(), None).await,
        Ok(Entry::Message(message)) => session.message(message).await,
        Err(fault) => return (lines, Err(fault)),
    };
    // The input may have written files even if it failed.
    match done {
        Ok(Next::Leave(_)) | Err(Fault::ReaderGone) => (lines, done),
        done => {
            if let Err(fault) = &done {
                output::fault(fault);
            }
            let (lines, offered) = session.offer(lines).await;
            (lines, offered.map(|()| Next::Go))
        }
    }
}

fn greet() {
    let hint = "type a message, or begin with ( to run a program; /help shows more";
    output::note(&format!(
        "{} {}",
        paint(NAME, concat!("wattle ", env!("CARGO_PKG_VERSION"))),
        paint(DIM, hint)
    ));
}

fn help() -> Result<Next, Fault> {
    let width = COMMANDS.iter().map(|(form, _)| form.chars().count()).max().unwrap_or(0);
    let commands: String =
        COMMANDS.iter().map(|(form, what)| format!("  {form:<width$}  {what}\n")).collect();
    output::text(&format!(
        "Type a message for the model. A line that begins with ( runs at once, as a \
         program.\n{commands}An input continues on the next line while a program's parentheses or \
         quotes, a fence or a message in \"\"\"\nare open; two blank lines always end it. Ctrl-C \
         stops the current work."
    ))?;
    Ok(Next::Go)
}

/// Warns about changes that are lost when the session ends.
async fn leave(session: &Session, exit: Exit) -> Exit {
    match session.pending() {
        0 => {}
        1 => output::warn("1 change was not applied"),
        count => output::warn(&format!("{count} changes were not applied")),
    }
    session.flush().await;
    exit
}

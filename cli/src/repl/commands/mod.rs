//! The table of slash commands, with one row for each.

mod files;
mod help;
mod model;
mod run;
mod save;
mod sessions;
mod turns;

use std::pin::Pin;

use super::Repl;
use super::session::Next;
use crate::fault::{Exit, Fault};

/// A slash command.
pub(super) struct Command {
    /// The name, with its slash.
    pub(super) name: &'static str,
    /// The arguments: `NAME` is required, `[NAME]` is optional, and an argument that ends with `…`
    /// can be repeated.
    pub(super) arguments: &'static str,
    /// The description: an imperative verb and an object.
    pub(super) about: &'static str,
    /// The completions of the arguments, in order. The last one also applies to any additional
    /// arguments.
    pub(super) completes: &'static [Argument],
    run: for<'a> fn(&'a mut Repl, Vec<String>) -> Work<'a>,
}

/// The future that runs a command.
type Work<'a> = Pin<Box<dyn Future<Output = Result<Next, Fault>> + 'a>>;

/// The kind of names that complete an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// Programs of the catalog.
    Program,
    /// Files of the workdir.
    File,
    /// Stored sessions.
    Session,
    /// Models.
    Model,
    /// MCP servers.
    Server,
    /// Paths of the session's changes.
    Change,
    /// Steps of the last run.
    Step,
    /// Namespaces of host functions.
    Namespace,
    /// Topics of the manual.
    Topic,
    /// A word from this list.
    Word(&'static [&'static str]),
}

/// Declares a command. The function receives the session and the arguments.
macro_rules! row {
    ($name:literal, $arguments:literal, $about:literal, [$($completes:expr),*], $run:path) => {
        Command {
            name: $name,
            arguments: $arguments,
            about: $about,
            completes: &[$($completes),*],
            run: |repl, arguments| Box::pin(async move { $run(repl, arguments).await.map(Next::from) }),
        }
    };
}

use Argument::Session as SessionId;
use Argument::{Change, File, Model, Namespace, Program, Server, Step, Topic, Word};

/// The commands, in the order of `/help`.
pub(super) const ALL: &[Command] = &[
    row!("/help", "[TOPIC…]", "Show this, or the manual's page about a topic", [Topic], help::help),
    row!("/model", "[NAME]", "Show the model, or switch to another one", [Model], model::model),
    row!("/agent", "[NAME]", "Show the agents", [Word(&["wattle"])], model::agent),
    row!("/tools", "[NAMESPACE]", "List the host functions", [Namespace], model::tools),
    row!("/catalog", "[WORDS…]", "List the programs, or search them", [Program], model::catalog),
    row!(
        "/mcp",
        "[SERVER] [PROMPT…]",
        "List MCP servers or tools, or use a prompt",
        [Server],
        model::mcp
    ),
    row!("/run", "NAME [ARG…]", "Run a program of the catalog", [Program, File], run::run),
    row!("/wat", "[new]", "Show the open program, or begin a new one", [Word(&["new"])], run::wat),
    row!("/source", "[STEP]", "Print the program of a step", [Step], run::source),
    row!("/trace", "[STEP]", "Show the steps of the last run, or one in full", [Step], run::trace),
    row!("/replay", "", "Replay the last run and compare it with its record", [], run::replay),
    row!("/cost", "", "Show the tokens of each run and their cost", [], turns::cost),
    row!("/context", "", "Show what the model will be sent, by part", [], turns::context),
    row!("/compact", "", "Replace old messages by a summary", [], turns::compact),
    row!("/undo", "", "Drop the last message and its changes of files", [], turns::undo),
    row!("/fork", "[STEP]", "Continue in a copy of the session", [Step], sessions::fork),
    row!("/sessions", "", "List the stored sessions", [], sessions::list),
    row!("/resume", "ID", "Continue a stored session", [SessionId], sessions::resume),
    row!("/vars", "", "List the variables of the session and of the tenant", [], sessions::vars),
    row!("/export", "FILE", "Write the conversation to a file", [File], sessions::export),
    row!("/save", "NAME [STEP]", "Save a program in the catalog", [Program, Step], save::save),
    row!("/files", "", "List the files that the session changed", [], files::list),
    row!("/diff", "[PATH…]", "Show the changes of files", [Change], files::diff),
    row!("/apply", "[PATH…]", "Apply changes to the workdir", [Change], files::apply),
    row!("/drop", "[PATH…]", "Drop changes of files", [Change], files::drop_changes),
    row!("/edit", "[STEP]", "Edit the last input, or a step's program", [Step], save::edit),
    row!("/copy", "", "Copy the last answer to the clipboard", [], turns::copy),
    row!("/new", "", "Begin a new session", [], sessions::new),
    row!("/clear", "", "Clear the screen and begin a new session", [], sessions::clear),
    row!("/status", "", "Show the model, the session and its changes", [], sessions::status),
    row!("/quit", "", "Leave; so do Ctrl-D, quit and exit", [], quit),
    row!("/exit", "", "Leave", [], quit),
];

impl Command {
    /// Checks the number of arguments.
    ///
    /// # Errors
    /// If there are too few or too many arguments.
    pub(super) fn check(&self, arguments: &[String]) -> Result<(), Fault> {
        let known: Vec<&str> = self.arguments.split_whitespace().collect();
        let required = known.iter().filter(|name| !name.starts_with('[')).count();
        let repeats = known.last().is_some_and(|last| last.ends_with("…]"));
        let hint = format!("{} {}", self.name, self.arguments);
        if let Some(missing) = known.get(arguments.len()).filter(|_| arguments.len() < required) {
            return Err(Fault::usage(format!("`{}` needs `{missing}`", self.name)).hint(hint));
        }
        if arguments.len() > known.len() && !repeats {
            let most = match known.len() {
                0 => "no arguments".to_owned(),
                1 => "at most 1 argument".to_owned(),
                count => format!("at most {count} arguments"),
            };
            return Err(Fault::usage(format!("`{}` takes {most}", self.name)).hint(hint.trim_end()));
        }
        Ok(())
    }

    /// Returns true if the command ends the session. It is also known by its name without the slash.
    pub(super) fn leaves(&self) -> bool {
        ["/quit", "/exit"].contains(&self.name)
    }

    /// Runs the command.
    pub(super) async fn run(&self, repl: &mut Repl, arguments: Vec<String>) -> Result<Next, Fault> {
        (self.run)(repl, arguments).await
    }
}

/// Returns the command with this name, or `None` if there is none.
pub(super) fn find(name: &str) -> Option<&'static Command> {
    ALL.iter().find(|command| command.name == name)
}

/// Returns true if a command's name begins with `word`.
pub(super) fn begins(word: &str) -> bool {
    ALL.iter().any(|command| command.name.starts_with(word))
}

/// Returns the error for an unknown command, with a hint that names the most similar command.
pub(super) fn unknown(word: &str) -> Fault {
    let distance = |command: &&Command| strsim::damerau_levenshtein(command.name, word);
    let near =
        ALL.iter().min_by_key(distance).filter(|command| distance(command) <= word.len() / 2);
    let fault = Fault::usage(format!("there is no command `{word}`"));
    match near {
        Some(near) => {
            fault.hint(format!("did you mean `{}`? `/help` lists the commands", near.name))
        }
        None => fault.hint("`/help` lists the commands"),
    }
}

/// Parses the number of a step.
fn step(argument: &str) -> Result<u32, Fault> {
    argument.parse().map_err(|_| {
        Fault::usage(format!("`{argument}` is not the number of a step"))
            .hint("`/trace` lists the steps of the last run")
    })
}

async fn quit(_: &mut Repl, _: Vec<String>) -> Result<Next, Fault> {
    Ok(Next::Leave(Exit::Done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_well_formed() {
        for (at, command) in ALL.iter().enumerate() {
            assert!(command.name.starts_with('/') && !command.about.ends_with('.'));
            assert!(command.about.chars().count() <= 70, "{}", command.name);
            assert!(ALL.iter().skip(at + 1).all(|other| other.name != command.name));
            assert_eq!(
                command.completes.is_empty(),
                command.arguments.is_empty(),
                "{}",
                command.name
            );
        }
    }
}

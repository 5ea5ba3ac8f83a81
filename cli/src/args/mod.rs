//! The command line: the commands, their arguments and their options.

mod author;
mod flags;
mod operate;
mod records;
mod run;
mod store;
#[cfg(test)]
mod tests;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

pub(crate) use author::{
    AgentsCommand, AgentsTestArgs, CatalogCommand, CheckArgs, ExpandArgs, FmtArgs, NewArgs,
    WorkbookCommand,
};
pub(crate) use flags::{AgentsFlags, CatalogFlags, Flags, StoreFlags};
pub(crate) use operate::{ConfigCommand, DemoArgs, DoctorArgs, InitArgs, StatusArgs, TrustArgs};
pub(crate) use records::{
    LedgerCommand, MemoryCommand, SessionCommand, TokenCommand, TokenScope, TraceArgs,
    TraceCommand, TraceSource, VarsCommand,
};
pub(crate) use run::{
    ContextValue, EvalArgs, ExecArgs, ReplArgs, ReplayArgs, RunArgs, ServeArgs, ShellArgs,
};
pub(crate) use store::{PruneArgs, StoreArgs, StoreCommand};

/// The text after the options in the help of `wattle`.
const AFTER: &str = "Each setting has a key in `wattle.toml` and a variable `WATTLE_…`.\n`wattle \
                     config show --origin` prints each value and its source.\nTry it without a \
                     key: wattle demo";

/// An agent runtime whose steps are small programs in a sandbox
#[derive(Debug, Parser)]
#[command(name = "wattle", version, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) flags: Flags,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// If true, `--verbose` was given before or after the command.
    #[arg(skip)]
    pub(crate) verbose: bool,
}

impl Cli {
    /// Parses the command line.
    ///
    /// # Errors
    /// If the command line is invalid, or asks for help or the version. An option that the command
    /// does not use is invalid, whether it is written before the command or after it.
    pub(crate) fn parse_checked(
        words: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
    ) -> Result<Cli, clap::Error> {
        let mut top = Cli::command();
        let matches = top.try_get_matches_from_mut(words)?;
        let (name, mut command, inner) = leaf(&top, &matches);
        let given = |arg: &&Arg| {
            matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let uses = |arg: &Arg| command.get_arguments().any(|own| own.get_long() == arg.get_long());
        if let Some(arg) = top.get_arguments().filter(given).find(|arg| !uses(arg)) {
            let long = arg.get_long().unwrap_or_default();
            let message = format!("`{name}` does not use the option `--{long}`");
            return Err(command.error(ErrorKind::UnknownArgument, message));
        }
        let verbose = |matches: &ArgMatches| {
            matches.try_get_one("verbose").is_ok_and(|value| value == Some(&true))
        };
        let cli = Cli::from_arg_matches(&matches)?;
        Ok(Cli { verbose: verbose(&matches) || verbose(inner), ..cli })
    }
}

/// Returns the innermost subcommand of a command line, with its full name and its matches.
fn leaf<'a>(
    top: &clap::Command,
    matches: &'a ArgMatches,
) -> (String, clap::Command, &'a ArgMatches) {
    let (mut name, mut command, mut matches) = (top.get_name().to_owned(), top, matches);
    while let Some((word, inner)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(word)
    {
        name = format!("{name} {word}");
        (command, matches) = (found, inner);
    }
    (name, command.clone(), matches)
}

/// The commands of `wattle`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one request and print the answer
    Run(Box<RunArgs>),
    /// Open an interactive session for messages, programs and commands
    Repl(ReplArgs),
    /// Serve runs over HTTP
    Serve(ServeArgs),
    /// Run one program without a model
    Exec(ExecArgs),
    /// Run a shell line or script, or open a shell
    Shell(ShellArgs),
    /// Check programs without running them
    Check(CheckArgs),
    /// Print the module that a program expands to
    Expand(ExpandArgs),
    /// Read a model's answer from stdin and print the action as JSON
    Parse,
    /// List, search, write and test the catalog's programs
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// List, show, check, test and write agents
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Run, list and check workbooks
    #[command(subcommand)]
    Workbook(WorkbookCommand),
    /// Replay a recorded run and compare it with the record
    Replay(ReplayArgs),
    /// List, show, copy and remove sessions and runs
    #[command(subcommand)]
    Session(SessionCommand),
    /// Run a set of tasks against models and score the answers
    Eval(EvalArgs),
    /// Show, query and summarize the traces of runs
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Print statistics of all traces in a folder
    Telemetry(TraceArgs),
    /// Verify the seals of traces
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Read and write the tenant's variables and secrets
    #[command(subcommand)]
    Vars(VarsCommand),
    /// List, search, add and remove items of the long-term memory
    #[command(subcommand)]
    Memory(MemoryCommand),
    /// Create, list and revoke tokens of the HTTP server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Copy, check, compact and measure stores
    #[command(subcommand)]
    Store(StoreCommand),
    /// Remove old runs and sessions, and unused cache files
    Prune(PruneArgs),
    /// Play demo runs with recorded model answers
    Demo(DemoArgs),
    /// Choose the model, try it and save the settings
    Init(InitArgs),
    /// Check the installation and suggest repairs
    Doctor(DoctorArgs),
    /// Trust the project file of a folder in its current state
    Trust(TrustArgs),
    /// Stop trusting the project file of a folder
    Untrust(TrustArgs),
    /// Show what the project file sets, and whether it is trusted
    Status(StatusArgs),
    /// Show the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

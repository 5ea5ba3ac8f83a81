//! The command line: the commands, their arguments and their options.

mod author;
mod help;
mod mcp;
mod operate;
mod records;
mod run;
mod store;
#[cfg(test)]
mod tests;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{Group, Layer, options};
use crate::output::width;

pub(crate) use author::{
    AgentsCommand, AgentsTestArgs, CatalogCommand, CheckArgs, ExpandArgs, ExportArgs, FmtArgs,
    NewArgs, NewSkillArgs, SkillsCommand, WorkbookCommand,
};
pub(crate) use mcp::{McpArgs, McpCommand};
pub(crate) use operate::{
    ConfigCommand, DemoArgs, DoctorArgs, InitArgs, StatusArgs, TrustArgs, WhichFile,
};
pub(crate) use records::{
    ChangesArgs, ChosenChangesArgs, LedgerCommand, MemoryCommand, RunsArgs, SessionCommand,
    ShowArgs, TokenCommand, TokenScope, TraceArgs, TraceCommand, VarsCommand,
};
pub(crate) use run::{
    ContextValue, EvalArgs, ExecArgs, ReplArgs, ReplayArgs, RunArgs, ServeArgs, ShellArgs,
};
pub(crate) use store::{PruneArgs, StoreArgs, StoreCommand};

/// The text after the options in the help of `wattle`.
const AFTER: &str = "`wattle help COMMAND` describes a command.\n`wattle config show --origin` \
                     prints each setting and its source.\nTry it without a key: wattle demo";

/// The version of the package, and the commit if the build knows it.
pub(crate) const VERSION: &str = env!("WATTLE_BUILD_VERSION");

/// An agent runtime whose steps are small programs in a sandbox
#[derive(Debug, Parser)]
#[command(name = "wattle", version = VERSION, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// The settings of the options: those after the command, then those before it.
    #[arg(skip)]
    pub(crate) flags: Vec<Layer>,
}

/// Returns true if a command accepts the options of a group. `command` is the full name of the
/// command, and empty for `wattle` itself.
fn accepts(command: &str, group: Group) -> bool {
    use Group::*;
    match command {
        "" | "run" | "repl" | "config show" | "config get" => true,
        // The session's id is an argument.
        "session resume" => group != Session,
        // The server's runs write nothing to the workdir, and each request names its session.
        "serve" => !matches!(group, Write | Session | Agent),
        // Its clients' runs are those of `run`, without a session.
        "mcp" => !matches!(group, Session | Form),
        // The program may ask a model, but there is no agent loop to limit.
        "exec" | "workbook run" => !matches!(group, Limits | Form | Engine | AgentFolders | Agent),
        // A script can access files, but neither a model nor the network. The options for the store
        // and for the folders of programs tell the command which files a script must not change.
        "shell" => matches!(
            group,
            Time | Write | Policy | Store | Tenant | Sandbox | Verbose | Root | Folders
        ),
        "doctor" => matches!(
            group,
            Model | Endpoint | Search | Hosts | Store | Tenant | Sandbox | Verbose | Root | Folders
        ),
        // A replay uses neither a model nor the network.
        "replay" => matches!(group, Engine | Store | Tenant | Verbose | Root | Folders),
        // The tasks themselves set the limits of their runs.
        "eval" => matches!(group, Endpoint | Engine | Verbose | Folders | AgentFolders | Agent),
        // Each example defines its own files.
        "agents test" => matches!(group, Endpoint | Root | Folders | AgentFolders),
        "changes" | "discard" => matches!(group, Store | Tenant | Sandbox | Root),
        "apply" => matches!(group, Store | Tenant | Sandbox | Root | Policy),
        "check" | "workbook lint" => matches!(group, Root | Folders),
        command => match command.split(' ').next() {
            // The workdir determines the project file.
            Some("config") => group == Root,
            Some("catalog" | "skills") => matches!(group, Root | Folders),
            Some("mcp") => matches!(group, Root | Hosts | Sandbox),
            Some("agents") => matches!(group, Root | Folders | AgentFolders),
            Some(
                "runs" | "show" | "session" | "trace" | "telemetry" | "ledger" | "vars" | "memory"
                | "token",
            ) => {
                matches!(group, Store | Tenant)
            }
            _ => false,
        },
    }
}

/// Returns the command line, with the options for settings that each command accepts.
pub(crate) fn command() -> clap::Command {
    with_options(help::in_groups(Cli::command(), width::layout()), "")
}

/// Adds the options to a command and to those below it. A command with others below it has none of
/// its own, except `wattle` and `wattle mcp`.
fn with_options(command: clap::Command, name: &str) -> clap::Command {
    let is_leaf = matches!(name, "" | "mcp") || !command.has_subcommands();
    let options = options(&|group| is_leaf && accepts(name, group));
    help::about_settings(command, !options.is_empty())
        .mut_subcommands(|below| {
            let name = below_name(name, below.get_name());
            with_options(below, &name)
        })
        .args(options)
}

/// Returns the full name of a command below another one.
pub(crate) fn below_name(name: &str, word: &str) -> String {
    format!("{name} {word}").trim_start().to_owned()
}

/// Returns the commands that have no subcommands, each with its full name.
#[cfg(test)]
pub(crate) fn leaves(command: &clap::Command, name: &str) -> Vec<(String, clap::Command)> {
    let below = command.get_subcommands().flat_map(|below| {
        let name = below_name(name, below.get_name());
        if below.has_subcommands() { leaves(below, &name) } else { vec![(name, below.clone())] }
    });
    below.collect()
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
        let mut top = command();
        let matches = top.try_get_matches_from_mut(words)?;
        let (name, mut command, inner) = leaf(&top, &matches);
        let given = |arg: &&Arg| {
            matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let uses = |arg: &Arg| command.get_arguments().any(|own| own.get_long() == arg.get_long());
        if let Some(arg) = top.get_arguments().filter(given).find(|arg| !uses(arg)) {
            let long = arg.get_long().unwrap_or_default();
            let message = format!("`wattle {name}` does not use the option `--{long}`");
            return Err(command.error(ErrorKind::UnknownArgument, message));
        }
        let mut flags = vec![Layer::of_options(&matches, &|group| accepts("", group))];
        if !name.is_empty() {
            flags.insert(0, Layer::of_options(inner, &|group| accepts(&name, group)));
        }
        Ok(Cli { flags, ..Cli::from_arg_matches(&matches)? })
    }

    /// Returns true if `--verbose` is given before or after the command.
    pub(crate) fn is_verbose(&self) -> bool {
        self.flags.iter().any(|layer| layer.verbose == Some(true))
    }
}

/// Returns the innermost subcommand of a command line, with its full name and its matches.
fn leaf<'a>(
    top: &clap::Command,
    matches: &'a ArgMatches,
) -> (String, clap::Command, &'a ArgMatches) {
    let mut name = String::new();
    let mut command = top;
    let mut matches = matches;
    while let Some((word, inner)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(word)
    {
        name = below_name(&name, word);
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
    /// List, show, check and write skills
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// Run, list and check workbooks
    #[command(subcommand)]
    Workbook(WorkbookCommand),
    /// Serve programs to an MCP client; list, check and approve MCP servers
    Mcp(McpArgs),
    /// Replay a recorded run and compare it with the record
    Replay(ReplayArgs),
    /// List the recorded runs, the newest first
    Runs(RunsArgs),
    /// Show the conversation and the answer of a recorded run
    Show(ShowArgs),
    /// List the changes of files that a run or a session has not applied
    Changes(ChangesArgs),
    /// Apply the changes of files of a run or a session
    Apply(ChosenChangesArgs),
    /// Discard the changes of files of a run or a session
    Discard(ChosenChangesArgs),
    /// List, show, copy and remove sessions
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
    /// Trust the project file, AGENTS.md and skills of a folder
    Trust(TrustArgs),
    /// Stop trusting the files of a folder
    Untrust(TrustArgs),
    /// Show the project file and the files for agents, and their trust
    Status(StatusArgs),
    /// Show, set and edit the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages to a folder, one for each command
    Man {
        /// The folder, such as ~/.local/share/man/man1
        folder: std::path::PathBuf,
    },
}

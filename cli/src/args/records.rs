//! The commands for stored data: sessions, traces, ledgers, variables and memory.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use wattle_agent::host::capability::secrets::SecretHost;

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run; `last` is the latest
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `changes`.
#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// The run or the session; `last` is the one that was used last
    #[arg(value_name = "RUN|SESSION", default_value = "last")]
    pub(crate) of: String,
    /// Show the changes as unified diffs
    #[arg(long)]
    pub(crate) diff: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "diff")]
    pub(crate) json: bool,
}

/// Arguments of `apply` and `discard`.
#[derive(Debug, Args)]
pub(crate) struct ChosenChangesArgs {
    /// The run or the session; `last` is the one that was used last
    #[arg(value_name = "RUN|SESSION", default_value = "last")]
    pub(crate) of: String,
    /// The paths of files and folders [default: all changes]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,
}

/// The commands of `session`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions, the last used first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the conversation of a session
    Show {
        /// The id of the session; `last` is the last used one
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Continue a session, like `repl --session`
    Resume {
        /// The id of the session; `last` is the last used one
        id: String,
    },
    /// Copy a session with its state
    Fork {
        /// The id of the session; `last` is the last used one
        id: String,
        /// The id of the copy [default: a new one]
        new: Option<String>,
        /// Print the id as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a session as JSON for `import`
    Export {
        /// The id of the session; `last` is the last used one
        id: String,
        /// Print Markdown to read, which cannot be imported
        #[arg(long)]
        markdown: bool,
    },
    /// Import an exported session
    Import {
        /// The file; `-` reads it from stdin
        file: PathBuf,
        /// Import the session under this id [default: its own]
        #[arg(long = "as", value_name = "ID")]
        id: Option<String>,
        /// Print the id as JSON
        #[arg(long)]
        json: bool,
    },
    /// Allow another attempt at a run that ended its process twice
    Release {
        /// The id of the run
        #[arg(required_unless_present = "all")]
        run: Option<String>,
        /// Release all such runs of the tenant
        #[arg(long, conflicts_with = "run")]
        all: bool,
    },
    /// Remove sessions with their state
    Rm {
        /// The ids of the sessions
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// The commands of `trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show the calls of runs in order
    Show {
        /// Select the run with this id or id prefix [default: all]
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        #[command(flatten)]
        trace: TraceArgs,
    },
    /// Apply a jq filter to the array of all calls
    Query {
        /// The filter, such as `map(select(.exit_code != 0)) | length`
        filter: String,
        /// A trace, or a folder: the runs in it and below
        #[arg(default_value = ".", value_name = "FILE|DIR")]
        path: PathBuf,
    },
    /// Summarize the calls, the failures and the open tickets
    Digest(TraceArgs),
    /// List the agents with their numbers of runs and calls
    Feed(TraceArgs),
    /// Move a folder's trace to its folder `_rotated`
    ///
    /// So its files stay small. `wattle ledger verify` and the other commands read the moved files, too.
    /// No run of the folder may be in progress. Do not move or rename the files by other means: their seals are a chain.
    Rotate {
        /// The folder of the runs, or the folder of a trace
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Act although a run has no end: it was stopped and will not be resumed
        #[arg(long)]
        force: bool,
    },
}

/// Arguments of the commands that read traces.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// A trace, or a folder: the runs in it and below
    #[arg(default_value = ".", value_name = "FILE|DIR")]
    pub(crate) path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The commands of `ledger`.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Verify the seals of a folder's trace
    Verify {
        /// The folder of the runs, or the folder of a trace
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Select the run with this id or id prefix
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        /// Verify with this public key: 64 hexadecimal digits
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the tenant's public key, which verifies its traces
    Key,
}

/// The commands of `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token for the HTTP server and print it once
    New {
        /// The token's name
        name: String,
        /// Set the scope; each scope includes the ones before it
        #[arg(long, value_enum, default_value = "run")]
        scope: TokenScope,
    },
    /// List the tokens, without their secrets
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token
    Revoke {
        /// The token's name
        name: String,
    },
}

/// The scope of a token, which determines its rights.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum TokenScope {
    /// Read runs, sessions, files and traces
    Read,
    /// Start, answer and cancel runs, and change sessions
    Run,
    /// Manage tokens and integrations
    Admin,
}

/// The commands of `memory`.
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the items, the newest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the items by keywords, the best match first
    Search {
        /// The words
        #[arg(required = true)]
        words: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add an item and print its id
    Add {
        /// The text, at most 4,000 characters; `-` reads it from stdin
        text: String,
    },
    /// Remove items
    Remove {
        /// The ids of the items
        #[arg(required = true, value_name = "ID")]
        ids: Vec<i32>,
    },
}

/// The commands of `vars`.
#[derive(Debug, Subcommand)]
pub(crate) enum VarsCommand {
    /// Print the value of a variable
    Get {
        /// The variable's name
        name: String,
    },
    /// Set a variable
    Set {
        /// The variable's name
        name: String,
        /// The value; `-` reads it from stdin
        value: String,
        /// Encrypt the value; requests refer to it by `${secret:NAME}`
        #[arg(long, requires = "host")]
        secret: bool,
        /// Send the secret only to this host; repeatable
        #[arg(long, value_name = "HOST", requires = "secret")]
        host: Vec<SecretHost>,
    },
    /// List the names of the variables
    List {
        /// The prefix of the names
        #[arg(default_value = "")]
        prefix: String,
        /// List the secrets, with the hosts that may receive them
        #[arg(long)]
        secret: bool,
        /// Print JSON, with the values of variables
        #[arg(long)]
        json: bool,
    },
    /// Remove a variable
    Rm {
        /// The variable's name
        name: String,
        /// Remove the secret with this name
        #[arg(long)]
        secret: bool,
    },
}

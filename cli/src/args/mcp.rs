//! The command `mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `mcp`. Without a subcommand, it serves an MCP client over its standard input and
/// output.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArgs {
    /// Add the servers in a client's configuration; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) upstream: Vec<PathBuf>,
    /// Serve a catalog program as a tool of its own; repeatable
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) expose: Vec<String>,
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
}

/// The commands of `mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the configured servers
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the tools of a server as they were accepted
    Show {
        /// The server
        server: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start servers and compare their tools with the accepted ones
    Check {
        /// The servers [default: all]
        servers: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a server changed about its tools, and accept it
    Approve {
        /// The server
        server: String,
        /// Accept without asking
        #[arg(long)]
        yes: bool,
    },
    /// Sign in to a server with a URL, in a browser
    Login {
        /// The server
        server: String,
        /// Ask for this scope, too; repeatable
        #[arg(long)]
        scope: Vec<String>,
        /// Listen for the browser on this port [default: a free one]
        #[arg(long, default_value_t = 0, hide_default_value = true)]
        port: u16,
    },
    /// Sign out: revoke and remove the tokens of a server
    Logout {
        /// The server
        server: String,
    },
}

//! The commands for setting up and trying Wattle.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::flags::{DoctorFlags, Flags};

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The demo to play [default: all]
    pub(crate) name: Option<String>,
    /// List the demos
    #[arg(long)]
    pub(crate) list: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: DoctorFlags,
}

/// Arguments of `trust` and `untrust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The folder [default: the workdir]
    pub(crate) dir: Option<PathBuf>,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The folder [default: the workdir]
    pub(crate) dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The commands of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show each setting
    Show {
        /// Print the source of each value
        #[arg(long)]
        origin: bool,
        /// Print the settings as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Box<Flags>,
    },
}

//! The commands for setting up and trying Wattle.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The demo to play [default: all]
    pub(crate) name: Option<String>,
    /// List the demos
    #[arg(long)]
    pub(crate) list: bool,
}

/// Arguments of `init`.
#[derive(Clone, Debug, Args)]
pub(crate) struct InitArgs {
    /// Use a well-known endpoint: openrouter, openai, ollama, …
    #[arg(long, value_name = "PRESET", conflicts_with = "base_url")]
    pub(crate) provider: Option<String>,
    /// Call this chat-completions endpoint, such as http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Read the API key from this environment variable
    #[arg(long, value_name = "VAR")]
    pub(crate) api_key_env: Option<String>,
    /// Use this model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Skip the test request
    #[arg(long)]
    pub(crate) no_test: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
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

/// The settings file that a command uses.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WhichFile {
    /// Use the project file instead of the user file
    #[arg(long)]
    pub(crate) project: bool,
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
    },
    /// Print the value of a setting
    Get {
        /// The key, such as `model` or `ai.calls`
        key: String,
        /// Print the value as JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a setting in the user file or the project file
    Set {
        /// The key, such as `model` or `ai.calls`
        key: String,
        /// The value; commas separate the items of a list
        #[arg(allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        file: WhichFile,
    },
    /// Remove a setting from the user file or the project file
    Unset {
        /// The key, such as `model` or `ai.calls`
        key: String,
        #[command(flatten)]
        file: WhichFile,
    },
    /// Print the path of the user file or the project file
    Path {
        #[command(flatten)]
        file: WhichFile,
    },
    /// Open the user file or the project file in your editor
    Edit {
        #[command(flatten)]
        file: WhichFile,
    },
}

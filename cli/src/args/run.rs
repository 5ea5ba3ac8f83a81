//! The commands that run programs and models.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use wattle_agent::host::DialectSetting;
use wattle_server::{HostName, Origin};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The request, followed by piped stdin; `-` reads it from stdin
    #[arg(required_unless_present_any = ["resume", "fork"])]
    pub(crate) prompt: Vec<String>,
    /// Skip piped stdin
    #[arg(long)]
    pub(crate) no_stdin: bool,
    /// Resume a stopped or parked run; `last` is the latest
    #[arg(long, value_name = "RUN", conflicts_with_all = ["prompt", "fork", "park"])]
    pub(crate) resume: Option<String>,
    /// Continue the session that was used last
    #[arg(short, long = "continue", conflicts_with_all = ["session", "resume", "fork"])]
    pub(crate) continue_last: bool,
    /// Approve a pending call, such as 2.1; repeatable
    #[arg(long, value_name = "CALL", requires = "resume")]
    pub(crate) approve: Vec<String>,
    /// Deny a pending call; repeatable
    #[arg(long, value_name = "CALL", requires = "resume")]
    pub(crate) refuse: Vec<String>,
    /// Retry a run that was parked because it ended its process twice
    #[arg(long, requires = "resume", conflicts_with_all = ["prompt", "fork"])]
    pub(crate) release: bool,
    /// Start a new run from a step of an earlier run
    #[arg(long, value_name = "RUN", requires = "step")]
    pub(crate) fork: Option<String>,
    /// Fork after this step; 0 is the beginning of the run
    #[arg(long, value_name = "N", requires = "fork")]
    pub(crate) step: Option<u32>,
    /// Park the run when a call needs approval, instead of asking
    #[arg(long)]
    pub(crate) park: bool,
    /// Show no progress, only the answer and warnings
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the run's events on stdout, one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the events of child runs, too
    #[arg(long, requires = "json")]
    pub(crate) tree: bool,
    /// Write the answer to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Require an answer that matches the JSON Schema in a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "fork"])]
    pub(crate) output_schema: Option<PathBuf>,
    /// Set a value for the agent's tools, traits and memory; repeatable
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["resume", "fork"])]
    pub(crate) context: Vec<ContextValue>,
    /// Write the artifacts of the run to a folder
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: Option<PathBuf>,
    /// Use the session as a label only, without its state
    #[arg(long, conflicts_with_all = ["resume", "fork"])]
    pub(crate) no_session_store: bool,
}

impl RunArgs {
    /// Returns the request, or `None` if there is none. Words without quotes are joined.
    pub(crate) fn request(&self) -> Option<String> {
        (!self.prompt.is_empty()).then(|| self.prompt.join(" "))
    }
}

/// A key and a value of a run's context, written as `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContextValue(pub(crate) String, pub(crate) String);

impl std::str::FromStr for ContextValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self(key.trim().to_owned(), value.to_owned()))
            }
            _ => Err("expected KEY=VALUE, such as user_id=ada".to_owned()),
        }
    }
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The run; `last` is the latest
    pub(crate) run: String,
    /// Skip the programs of the steps before this one
    #[arg(long, value_name = "STEP", default_value_t = 1)]
    pub(crate) from: u32,
    /// Print the comparison as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `repl`.
#[derive(Debug, Default, Args)]
pub(crate) struct ReplArgs {
    /// Continue the session that was used last
    #[arg(short, long = "continue", conflicts_with = "session")]
    pub(crate) continue_last: bool,
    /// Set a value for the agent's tools, traits and memory; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) context: Vec<ContextValue>,
}

/// The text after the options in the help of `serve`.
const AFTER_SERVE: &str = "The variable `WATTLE_TOKEN` sets the token, and `WATTLE_AGENT_EXEC=1` \
                           lets requests ask for trusted runs.\nRuns write nothing to the \
                           workdir, and each request names its session.";

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_SERVE)]
pub(crate) struct ServeArgs {
    /// Listen on this address; port 0 selects a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8787")]
    pub(crate) listen: String,
    /// Accept this name in the header `Host`; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_name: Vec<HostName>,
    /// Accept requests from a site, such as https://app.example; repeatable
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<Origin>,
}

/// Arguments of `exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// A file, the name of a catalog program, or `-` for stdin
    pub(crate) program: String,
    /// Write the artifacts of the program to a folder
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: Option<PathBuf>,
    /// The program's arguments
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    pub(crate) args: Vec<String>,
    /// Print the whole outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `shell`.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// Run this line
    #[arg(short, value_name = "LINE")]
    pub(crate) command: Option<String>,
    /// A script and its arguments; with `-c`, the values of `$0`, `$1`, …
    #[arg(value_name = "FILE|ARG", allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) args: Vec<String>,
}

/// Arguments of `eval`.
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// The folder of the tasks
    pub(crate) dir: PathBuf,
    /// Evaluate this model; repeatable
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) models: Vec<String>,
    /// Use this form of calls: text, native or auto; repeatable
    #[arg(long = "dialect", value_name = "DIALECT")]
    pub(crate) dialects: Vec<DialectSetting>,
    /// Start the prompt with the text of a file
    #[arg(long, value_name = "FILE")]
    pub(crate) preamble: Option<PathBuf>,
    /// Compare with a baseline, in which the model calls single tools
    #[arg(long, value_name = "WAY")]
    pub(crate) baseline: Option<Baseline>,
    /// Attempt each task this many times
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) repeat: NonZeroU32,
    /// Run this many attempts at once
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) jobs: NonZeroUsize,
    /// Select tasks whose name contains a text, such as `text/` or `csv`
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Write attempts to a file [default with a model: DIR/results.jsonl]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Continue an evaluation: keep the attempts in the file
    #[arg(long, conflicts_with = "fresh")]
    pub(crate) resume: bool,
    /// Discard the attempts in the file, and start over
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Compare with the attempts in another results file, task by task
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Write the conversation of each new attempt to a folder
    #[arg(long, value_name = "DIR")]
    pub(crate) save_transcripts: Option<PathBuf>,
    /// Check the tasks and their samples, without a model
    #[arg(long)]
    pub(crate) check: bool,
    /// Use the recordings, even if an endpoint is configured
    #[arg(long, conflicts_with = "record")]
    pub(crate) recorded: bool,
    /// Ask the models, and record their answers beside the tasks
    #[arg(long)]
    pub(crate) record: bool,
    /// Print the scorecard and all attempts as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The approach that programs are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Baseline {
    /// One JSON tool for each host function
    Tools,
}

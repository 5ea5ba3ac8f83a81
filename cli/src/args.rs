//! What can be said on the command line.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use wattle_agent::DialectSetting;
use wattle_agent::capability::egress::HostRule;
use wattle_agent::capability::policy::Rule;
use wattle_agent::capability::secrets::SecretHost;
use wattle_agent::capability::web::EngineKind;
use wattle_agent::machine::Dollars;
use wattle_server::{HostName, Origin};

use crate::config::{Layer, Span, count, dollars};

/// What stands below the help.
const AFTER: &str = "Each setting has a key in `wattle.toml` and a variable `WATTLE_…`; `wattle config show --origin` tells where \
                     its value comes from.\nTry it without a key: wattle demo";

/// An agent runtime whose steps are small programs in a sandbox.
#[derive(Debug, Parser)]
#[command(name = "wattle", version, max_term_width = 100, after_help = AFTER)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) flags: Flags,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Tells whether `--verbose` stands before or behind the command.
    pub(crate) fn is_verbose(&self) -> bool {
        let behind = match &self.command {
            Some(Command::Run(args)) => args.flags.verbose,
            Some(Command::Replay(args)) => args.flags.verbose,
            Some(Command::Repl(args)) => args.flags.verbose,
            Some(Command::Serve(args)) => args.flags.verbose,
            Some(Command::Exec(args)) => args.flags.verbose,
            Some(Command::Shell(args)) => args.flags.verbose,
            Some(Command::Eval(args)) => args.flags.verbose,
            Some(Command::Doctor(args)) => args.flags.verbose,
            Some(Command::Config(ConfigCommand::Show { flags, .. })) => flags.verbose,
            Some(Command::Ledger(command)) => command.flags().verbose,
            Some(Command::Vars(command)) => command.flags().verbose,
            _ => false,
        };
        self.flags.verbose || behind
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Carry out one request
    Run(RunArgs),
    /// Talk: messages, programs and commands, one after the other
    Repl(ReplArgs),
    /// Serve runs over HTTP
    Serve(ServeArgs),
    /// Run one program, without a model
    Exec(ExecArgs),
    /// The shell by itself: a line, a script, or a conversation
    Shell(ShellArgs),
    /// Check programs without running them
    Check(CheckArgs),
    /// Print a program as the module that runs
    Expand(ExpandArgs),
    /// Read a model's answer on stdin and print the action as JSON
    Parse,
    /// The programs that a model may call by name
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Play a run back, without a model and a network, and compare all that it does
    Replay(ReplayArgs),
    /// The sessions that are kept, and their runs
    #[command(subcommand)]
    Session(SessionCommand),
    /// Give a set of tasks to models and score them
    Eval(EvalArgs),
    /// What runs did: the lines of `_steps.jsonl`
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Traces in figures: all below a folder
    Telemetry(TraceArgs),
    /// Whether traces are as they were written
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// The tenant's variables
    #[command(subcommand)]
    Vars(VarsCommand),
    /// Play recorded runs: all real but the model's words
    Demo(DemoArgs),
    /// Tell what is missing and how to mend it
    Doctor(DoctorArgs),
    /// The settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What `run` takes.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` reads it from stdin
    #[arg(required_unless_present_any = ["resume", "fork"])]
    pub(crate) prompt: Option<String>,
    /// Take up a run that was stopped, or that waits for an answer; `last` is the newest
    #[arg(long, value_name = "RUN", conflicts_with_all = ["prompt", "fork", "park"])]
    pub(crate) resume: Option<String>,
    /// Approve a call that the run waits for, such as 2.1; may be repeated
    #[arg(long, value_name = "CALL", requires = "resume")]
    pub(crate) approve: Vec<String>,
    /// Deny a call that the run waits for; may be repeated
    #[arg(long, value_name = "CALL", requires = "resume")]
    pub(crate) refuse: Vec<String>,
    /// Try a run again that was parked because it ended its process twice
    #[arg(long, requires = "resume")]
    pub(crate) release: bool,
    /// Begin where another run stood at the end of a step, with a further message or without one
    #[arg(long, value_name = "RUN", requires = "step")]
    pub(crate) fork: Option<String>,
    /// The step that the other run is forked at; 0 is its beginning
    #[arg(long, value_name = "N", requires = "fork")]
    pub(crate) step: Option<u32>,
    /// Let the run wait in the store, for the answer to what the policy asks about, in place of asking now
    #[arg(long)]
    pub(crate) park: bool,
    /// Print the run's events on stdout, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the answer to a file in place of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What `replay` takes.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The run; `last` is the newest
    pub(crate) run: String,
    /// Do not run the programs of earlier steps again
    #[arg(long, value_name = "STEP", default_value_t = 1)]
    pub(crate) from: u32,
    /// Print what came of it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What `session` does.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions, the one used last first
    List(SessionFlags),
    /// List the runs that are kept, the newest first
    Runs(SessionFlags),
    /// Show a session's conversation
    Show {
        /// The session
        id: String,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// Go on with a session, as `repl --session` does
    Resume {
        /// The session
        id: String,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Copy a session with its state
    Fork {
        /// The session
        id: String,
        /// The copy's id [default: a new one]
        new: Option<String>,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// Print a session as JSON that `import` takes
    Export {
        /// The session
        id: String,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// Take in a session that was exported
    Import {
        /// The file; `-` reads it from stdin
        file: PathBuf,
        /// The id that it gets [default: its own]
        #[arg(long = "as", value_name = "ID")]
        id: Option<String>,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// Let a run be tried again that was parked because it ended its process twice
    Release {
        /// The run
        run: String,
        #[command(flatten)]
        flags: SessionFlags,
    },
    /// Remove sessions with their state
    Rm {
        /// The sessions
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        flags: SessionFlags,
    },
}

/// The flags of what is done with sessions.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SessionFlags {
    /// The file that keeps sessions
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// The tenant whose sessions and runs they are [default: default]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Print what comes of it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl From<SessionFlags> for Layer {
    fn from(flags: SessionFlags) -> Layer {
        Layer { store: flags.store.map(Some), tenant: flags.tenant, ..Layer::default() }
    }
}

/// What `repl` takes.
#[derive(Debug, Default, Args)]
pub(crate) struct ReplArgs {
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What `serve` takes.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8787")]
    pub(crate) listen: String,
    /// A name that requests may give as `Host`; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_name: Vec<HostName>,
    /// A site whose pages may use the server, such as `https://app.example`; may be repeated
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<Origin>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What `exec` takes.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// A file, the name of a catalog program, or `-` for stdin
    pub(crate) program: String,
    /// The program's arguments
    #[arg(value_name = "ARG", allow_negative_numbers = true)]
    pub(crate) args: Vec<String>,
    /// Print the whole outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What `shell` takes.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// Run this line
    #[arg(short, value_name = "LINE")]
    pub(crate) command: Option<String>,
    /// A script of the host and its arguments; with `-c`, the words of `$0`, `$1`, …
    #[arg(value_name = "FILE|ARG", allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) args: Vec<String>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What `check` takes.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The programs: files, names of catalog programs, or `-` for stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Put right in the files what can be for certain; `-` goes to stdout
    #[arg(long)]
    pub(crate) fix: bool,
    /// Tell what each program can touch, on stdout
    #[arg(long)]
    pub(crate) authority: bool,
    /// Print the findings as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: CatalogFlags,
}

/// What `expand` takes.
#[derive(Debug, Args)]
pub(crate) struct ExpandArgs {
    /// The program; `-` reads it from stdin
    pub(crate) file: PathBuf,
}

/// What `catalog` does.
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// List the programs
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: CatalogFlags,
    },
    /// Find programs by what they are about, the most relevant first
    Search {
        /// What to look for
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
        /// Print them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: CatalogFlags,
    },
    /// Write a new program that works, to begin with
    New(NewArgs),
    /// Run the examples of programs on their fixtures
    Test {
        /// Programs by name, files, and folders of files [default: the whole catalog]
        #[arg(value_name = "NAME|FILE|DIR")]
        what: Vec<String>,
        /// Print what became of them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: CatalogFlags,
    },
    /// Put files of programs in their standard layout
    Fmt(FmtArgs),
    /// Show one program: how it is called, its examples, and its text
    Show {
        /// The program's name
        name: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: CatalogFlags,
    },
}

/// What `eval` takes.
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// The folder of the tasks
    pub(crate) dir: PathBuf,
    /// A model that takes part; may be repeated
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) models: Vec<String>,
    /// Let each model do the tasks a second way, too: by single tool calls in place of programs
    #[arg(long, value_name = "WAY")]
    pub(crate) baseline: Option<Baseline>,
    /// How often each task is given
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) repeat: NonZeroU32,
    /// How many attempts are under way at once
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) jobs: NonZeroUsize,
    /// Only the tasks that have this in their name, such as `text/` or `csv`
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Keep the attempts in this file and do not make them again [live: DIR/results.jsonl]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Make all attempts anew, and drop what the results file holds
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Play the recordings, even where an endpoint is set up
    #[arg(long, conflicts_with = "record")]
    pub(crate) recorded: bool,
    /// Ask the models, and record their answers beside the tasks
    #[arg(long)]
    pub(crate) record: bool,
    /// Print the scorecard and all attempts as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: EvalFlags,
}

/// What the usual way of programs is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Baseline {
    /// One JSON tool for each host function
    Tools,
}

/// The settings that count for an evaluation; what a run may take is the tasks' own.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct EvalFlags {
    /// The chat-completions endpoint, such as http://127.0.0.1:11434/v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key
    #[arg(long, value_name = "VAR")]
    pub(crate) api_key_env: Option<String>,
    /// A well-known endpoint: openrouter, openai, ollama, …
    #[arg(long, value_name = "PRESET")]
    pub(crate) provider: Option<String>,
    /// A folder of programs; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) catalog: Vec<PathBuf>,
    /// Show what is done behind the scenes
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl From<EvalFlags> for Layer {
    fn from(flags: EvalFlags) -> Layer {
        Layer {
            base_url: flags.base_url.map(Some),
            api_key_env: flags.api_key_env.map(Some),
            provider: flags.provider.map(Some),
            catalog: given(flags.catalog),
            verbose: flags.verbose.then_some(true),
            ..Layer::default()
        }
    }
}

/// What `catalog new` takes.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// The program's name: small letters, digits, `_` and `.`
    pub(crate) name: String,
    /// The folder to write it to, made where it is absent [default: the last catalog folder, else .]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print the file's path as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: CatalogFlags,
}

/// What `catalog fmt` takes.
#[derive(Debug, Args)]
pub(crate) struct FmtArgs {
    /// Files, and folders of files; `-` formats stdin onto stdout [default: the catalog folders]
    #[arg(value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing; tell which files would change, and fail where there are any
    #[arg(long)]
    pub(crate) check: bool,
    /// Print what became of each file as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: CatalogFlags,
}

/// What `trace` does.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show the calls of runs, one after the other
    Show {
        /// The run, or how its id begins [default: all]
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        #[command(flatten)]
        trace: TraceArgs,
    },
    /// Put the calls through a jq filter; the input is an array of them
    Query {
        /// The filter, such as `map(select(.exit_code != 0)) | length`
        filter: String,
        /// The trace, or a folder with all that are below it
        #[arg(default_value = ".", value_name = "FILE|DIR")]
        path: PathBuf,
    },
    /// What was tried, what failed, and which tickets are open
    Digest(TraceArgs),
    /// Who was active, without arguments and outputs
    Feed(TraceArgs),
}

/// Which traces, and in which form.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The trace, or a folder with all that are below it
    #[arg(default_value = ".", value_name = "FILE|DIR")]
    pub(crate) path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `ledger` does.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Hold the trace in a folder against its seals
    Verify {
        /// The folder
        #[arg(default_value = ".")]
        dir: PathBuf,
        /// Only the run whose id begins so
        #[arg(long, value_name = "ID")]
        run: Option<String>,
        /// The public key of the tenant, where the trace was sealed elsewhere; 64 hexadecimal digits
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Print the tenant's public key, for those who verify elsewhere
    Key {
        #[command(flatten)]
        flags: Box<Flags>,
    },
}

impl LedgerCommand {
    fn flags(&self) -> &Flags {
        match self {
            LedgerCommand::Verify { flags, .. } | LedgerCommand::Key { flags } => flags,
        }
    }
}

/// What `vars` does.
#[derive(Debug, Subcommand)]
pub(crate) enum VarsCommand {
    /// Print the value of a variable
    Get {
        /// Its name
        name: String,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Set a variable
    Set {
        /// Its name
        name: String,
        /// Its value; `-` reads it from stdin
        value: String,
        /// Keep it as a secret: encrypted, shown to nobody, and put in place of `${secret:NAME}` in requests
        #[arg(long, requires = "host")]
        secret: bool,
        /// A host that the secret may go to, such as `api.example.com`; may be repeated
        #[arg(long, value_name = "HOST", requires = "secret")]
        host: Vec<SecretHost>,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// List the names of the variables
    List {
        /// Only those that begin so
        #[arg(default_value = "")]
        prefix: String,
        /// List the secrets, with the hosts that they may go to
        #[arg(long)]
        secret: bool,
        /// Print JSON, with the values of variables
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Remove a variable
    Rm {
        /// Its name
        name: String,
        /// Remove the secret of that name
        #[arg(long)]
        secret: bool,
        #[command(flatten)]
        flags: Box<Flags>,
    },
}

impl VarsCommand {
    fn flags(&self) -> &Flags {
        match self {
            VarsCommand::Get { flags, .. }
            | VarsCommand::Set { flags, .. }
            | VarsCommand::List { flags, .. }
            | VarsCommand::Rm { flags, .. } => flags,
        }
    }
}

/// What `demo` takes.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Play this one only
    pub(crate) name: Option<String>,
    /// List the demos
    #[arg(long)]
    pub(crate) list: bool,
}

/// What `doctor` takes.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// What `config` does.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show each setting
    Show {
        /// Tell where each value comes from
        #[arg(long)]
        origin: bool,
        /// Print them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        flags: Box<Flags>,
    },
}

/// The flags of settings. Each has a key in `wattle.toml` and a variable `WATTLE_…`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Flags {
    /// The model's name
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The chat-completions endpoint, such as http://127.0.0.1:11434/v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key
    #[arg(long, value_name = "VAR")]
    pub(crate) api_key_env: Option<String>,
    /// A well-known endpoint: openrouter, openai, ollama, …
    #[arg(long, value_name = "PRESET")]
    pub(crate) provider: Option<String>,
    /// Answer from a recording in place of a model
    #[arg(long, value_name = "FILE")]
    pub(crate) cassette: Option<PathBuf>,
    /// Record the model's answers
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// How many steps a run may take
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) max_steps: Option<NonZeroU32>,
    /// How long a run may take, such as 90s or 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
    /// How the model calls programs: text, native or auto [default: auto]
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectSetting>,
    /// How many tokens a run may take
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) max_tokens_total: Option<NonZeroU32>,
    /// What a run may cost in dollars, such as 0.50
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) max_cost: Option<Dollars>,
    /// How many requests to the model the programs of a run may make [default: 50]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) ai_calls: Option<NonZeroU32>,
    /// How many tokens those requests and their answers may take [default: 500000]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) ai_tokens: Option<NonZeroU32>,
    /// The model for embeddings, where it is another one
    #[arg(long, value_name = "NAME")]
    pub(crate) embed_model: Option<String>,
    /// The search engine for the web: searxng, brave, or page
    #[arg(long, value_name = "KIND")]
    pub(crate) search_engine: Option<EngineKind>,
    /// Where the search engine is asked
    #[arg(long, value_name = "URL")]
    pub(crate) search_url: Option<String>,
    /// The environment variable that holds its key [default: WATTLE_SEARCH_KEY]
    #[arg(long, value_name = "VAR")]
    pub(crate) search_key_env: Option<String>,
    /// Programs write to the workdir itself, not to the overlay
    #[arg(long)]
    pub(crate) write: bool,
    /// Carry out the overlay's changes at the end
    #[arg(long)]
    pub(crate) apply: bool,
    /// A trusted run; implies --write
    #[arg(long)]
    pub(crate) exec: bool,
    /// A host that may be reached even if it is not public; may be repeated
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow_host: Vec<HostRule>,
    /// What programs may touch, as a rule: `http`, `kv.set`, `host:*.example.com`, `write:notes`, `key:user.`; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<Rule>,
    /// What the user is asked about before a program runs; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) ask: Vec<Rule>,
    /// What programs may not touch; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<Rule>,
    /// The session whose conversation and state the run continues
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The tenant whose variables all its sessions share [default: default]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// The file that keeps sessions
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    /// Show programs and observations in full, and what is done behind the scenes
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) catalog: CatalogFlags,
}

/// The flags that decide which programs there are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct CatalogFlags {
    /// The workdir [default: .]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// A folder of programs; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) catalog: Vec<PathBuf>,
}

impl From<CatalogFlags> for Layer {
    fn from(flags: CatalogFlags) -> Layer {
        Layer { root: flags.root, catalog: given(flags.catalog), ..Layer::default() }
    }
}

impl From<Flags> for Layer {
    fn from(flags: Flags) -> Layer {
        Layer {
            model: flags.model.map(Some),
            base_url: flags.base_url.map(Some),
            api_key_env: flags.api_key_env.map(Some),
            provider: flags.provider.map(Some),
            cassette: flags.cassette.map(Some),
            record: flags.record.map(Some),
            max_steps: flags.max_steps.map(Some),
            timeout: flags.timeout.map(Some),
            dialect: flags.dialect,
            max_tokens_total: flags.max_tokens_total.map(Some),
            max_cost: flags.max_cost.map(Some),
            ai_calls: flags.ai_calls,
            ai_tokens: flags.ai_tokens,
            embed_model: flags.embed_model.map(Some),
            search_engine: flags.search_engine.map(Some),
            search_url: flags.search_url.map(Some),
            search_key_env: flags.search_key_env,
            write: flags.write.then_some(true),
            apply: flags.apply.then_some(true),
            exec: flags.exec.then_some(true),
            allow_host: given(flags.allow_host),
            allow: given(flags.allow),
            ask: given(flags.ask),
            deny: given(flags.deny),
            session: flags.session.map(Some),
            tenant: flags.tenant,
            store: flags.store.map(Some),
            verbose: flags.verbose.then_some(true),
            ..Layer::from(flags.catalog)
        }
    }
}

/// A list that was given; an empty one was not.
fn given<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

//! The command line of the Wattle agent runtime. This is the only crate that uses a terminal.
//!
//! The binary calls [`main`], and the packages of other languages call [`run`]. The fuzz targets
//! parse project files.

mod api_keys;
mod args;
mod ask;
mod bell;
mod broker;
mod changes;
mod commands;
mod config;
mod confine;
mod demo;
mod editor;
mod fault;
mod files;
mod gateway;
mod input;
mod invocation;
mod keyboard;
mod line_editor;
mod output;
mod progress;
mod repl;
mod serve;
mod setup;
mod stdin;
mod threads;
mod trust;
mod undone;
mod walls;
mod writers;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::error::ErrorKind;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Cli, Command, ReplArgs, SessionCommand};
use crate::config::Layer;
use crate::fault::{Exit, Fault};
use crate::setup::LAST;

pub use crate::invocation::Invocation;

/// Runs the command that the process's arguments specify, and returns its exit code.
pub fn main() -> ExitCode {
    ExitCode::from(run(Invocation::of_executable()))
}

/// Runs a command and returns its exit code. A process runs one command: the command confines the
/// process, and installs handlers for interrupts and panics. Help, and an interrupt that repeats, end
/// the process.
pub fn run(invocation: Invocation) -> u8 {
    invocation::set(invocation);
    if editor::is_broker() {
        return editor::serve().into();
    }
    if broker::is_broker() {
        return broker::serve().into();
    }
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::capture();
        let trace = match trace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
            _ => String::new(),
        };
        output::fault(&threads::denied(&panic.to_string()).unwrap_or_else(|| {
            Fault::failed(format!("{panic}{trace}")).hint("this is a bug; please report it")
        }));
    }));
    commands::completions::answer();
    let cli = match Cli::parse_checked(invocation::all_args()) {
        Ok(cli) => cli,
        Err(error) => return print_usage(&error),
    };
    log(&cli);
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| perform(cli)));
    let Ok(done) = done else {
        return if threads::are_denied() { Exit::Configuration.into() } else { PANICKED };
    };
    done.unwrap_or_else(|fault| {
        output::fault(&fault);
        fault.exit()
    })
    .into()
}

/// The exit code after a panic, as of every Rust program.
const PANICKED: u8 = 101;

/// Returns the settings of a project file that take effect without trust, as lines such as
/// `max_steps = 3`. Each line is paired with a flag that is true if the setting needs trust. A fuzz
/// target checks that all flags are false.
///
/// # Errors
/// If the bytes are not TOML, or set an unknown key or one that no project file may set.
#[doc(hidden)]
pub fn untrusted_project_settings(bytes: &[u8]) -> Result<Vec<(String, bool)>, String> {
    config::untrusted_settings(bytes).map_err(|fault| fault.to_string())
}

/// Prints the help, or the command-line error with control characters made visible.
fn print_usage(error: &clap::Error) -> u8 {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
        _ => output::note(output::visible(&error.render().to_string()).trim_end()),
    }
    Exit::Usage.into()
}

/// Sets up logging to stderr. Warnings are logged and, with `--verbose`, Wattle's own debug
/// messages, too. The log lines of a server start with a timestamp.
fn log(cli: &Cli) {
    let own = if cli.is_verbose() { LevelFilter::DEBUG } else { LevelFilter::WARN };
    // What `rmcp` logs may be text of an MCP server, and is in the errors of its calls.
    let levels = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("rmcp", LevelFilter::OFF)
        .with_target("wattle", own);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| output::Log)
        .with_ansi(false)
        .with_target(false);
    let log = tracing_subscriber::registry().with(levels);
    // Fails only if the process already has a logger.
    let _ = match cli.command {
        Some(Command::Serve(_)) => log.with(lines).try_init(),
        _ => log.with(lines.without_time()).try_init(),
    };
}

/// Returns the settings for a command that continues a session.
fn in_session(id: String, flags: &[Layer]) -> Vec<Layer> {
    let session = Layer { session: Some(Some(id)), ..Layer::default() };
    [&[session], flags].concat()
}

/// Runs the command with the settings of its options.
fn perform(cli: Cli) -> Result<Exit, Fault> {
    let flags = cli.flags.as_slice();
    match cli.command {
        Some(Command::Run(args)) if args.continue_last => {
            commands::run::run(*args, &in_session(LAST.to_owned(), flags))
        }
        Some(Command::Run(args)) => commands::run::run(*args, flags),
        Some(Command::Mcp(args)) => commands::mcp::mcp(args, flags),
        Some(Command::Replay(args)) => threads::run(commands::replay::replay(args, flags)),
        Some(Command::Runs(args)) => threads::run(commands::runs::runs(args, flags)),
        Some(Command::Show(args)) => threads::run(commands::runs::show(args, flags)),
        Some(Command::Changes(args)) => commands::changes::changes(args, flags),
        Some(Command::Apply(args)) => commands::changes::apply(args, flags),
        Some(Command::Discard(args)) => commands::changes::discard(args, flags),
        Some(Command::Session(SessionCommand::Resume { id })) => {
            repl::run(Vec::new(), &in_session(id, flags))
        }
        Some(Command::Session(command)) => threads::run(commands::session::session(command, flags)),
        Some(Command::Repl(ReplArgs { context, continue_last: true })) => {
            repl::run(context, &in_session(LAST.to_owned(), flags))
        }
        Some(Command::Repl(args)) => repl::run(args.context, flags),
        Some(Command::Serve(args)) => serve::serve(args, flags),
        Some(Command::Exec(args)) => commands::exec::exec(args, flags),
        Some(Command::Shell(args)) => commands::shell::shell(args, flags),
        Some(Command::Check(args)) => threads::run(commands::check::check(args, flags)),
        Some(Command::Expand(args)) => commands::expand::expand(&args),
        Some(Command::Parse) => commands::parse::parse().map(Exit::from),
        Some(Command::Catalog(command)) => threads::run(commands::catalog::catalog(command, flags)),
        Some(Command::Agents(command)) => threads::run(commands::agents::agents(command, flags)),
        Some(Command::Skills(command)) => threads::run(commands::skills::skills(command, flags)),
        Some(Command::Workbook(command)) => commands::workbook::workbook(command, flags),
        Some(Command::Eval(args)) => threads::run(commands::eval::eval(args, flags)),
        Some(Command::Trace(command)) => threads::run(commands::trace::trace(command, flags)),
        Some(Command::Telemetry(args)) => commands::trace::telemetry(args, flags).map(Exit::from),
        Some(Command::Ledger(command)) => threads::run(commands::ledger::ledger(command, flags)),
        Some(Command::Vars(command)) => threads::run(commands::vars::vars(command, flags)),
        Some(Command::Memory(command)) => threads::run(commands::memory::memory(command, flags)),
        Some(Command::Token(command)) => threads::run(commands::token::token(command, flags)),
        Some(Command::Store(command)) => threads::run(commands::store::store(command, flags)),
        Some(Command::Prune(args)) => threads::run(commands::prune::prune(args, flags)),
        Some(Command::Demo(args)) => threads::run(demo::demo(&args)),
        Some(Command::Init(args)) => commands::init::init(args, flags).map(Exit::from),
        Some(Command::Doctor(args)) => commands::doctor::doctor(args, flags),
        Some(Command::Trust(args)) => commands::trust::trust(args, flags).map(Exit::from),
        Some(Command::Untrust(args)) => commands::trust::untrust(args, flags).map(Exit::from),
        Some(Command::Status(args)) => commands::trust::status(args, flags).map(Exit::from),
        Some(Command::Config(command)) => commands::config::config(command, flags),
        Some(Command::Completions { shell }) => {
            commands::completions::completions(shell).map(Exit::from)
        }
        None if stdin::is_interactive() => repl::run(Vec::new(), flags),
        None => Err(Fault::usage("no command is given")
            .hint("`wattle --help` lists the commands, `wattle demo` plays recorded runs")),
    }
}

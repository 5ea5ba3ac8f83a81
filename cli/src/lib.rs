//! The command line of the Wattle agent runtime. This is the only crate that uses a terminal.
//!
//! The binary calls [`main`]. The crate is also a library, so that the fuzz targets can parse
//! project files.

mod args;
mod ask;
mod changes;
mod commands;
mod config;
mod demo;
mod editor;
mod fault;
mod input;
mod keyboard;
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

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::error::ErrorKind;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Cli, Command, SessionCommand};
use crate::config::Layer;
use crate::fault::{Exit, Fault};

/// Runs the command that the process's arguments specify, and returns its exit code.
pub fn main() -> ExitCode {
    if editor::is_broker() {
        return editor::serve();
    }
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::capture();
        let trace = match trace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
            _ => String::new(),
        };
        output::fault(
            &Fault::failed(format!("{panic}{trace}")).hint("this is a bug; please report it"),
        );
    }));
    let cli = match Cli::parse_checked(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return print_usage(&error),
    };
    log(&cli);
    perform(cli)
        .unwrap_or_else(|fault| {
            output::fault(&fault);
            fault.exit()
        })
        .into()
}

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
fn print_usage(error: &clap::Error) -> ExitCode {
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
    let own = if cli.verbose { LevelFilter::DEBUG } else { LevelFilter::WARN };
    let levels = Targets::new().with_default(LevelFilter::WARN).with_target("wattle", own);
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

/// Runs the command. Options before the command also apply to it.
fn perform(cli: Cli) -> Result<Exit, Fault> {
    let outer = Layer::from(cli.flags);
    match cli.command {
        Some(Command::Run(args)) => commands::run::run(*args, outer),
        Some(Command::Replay(args)) => threads::run(commands::replay::replay(args, outer)),
        Some(Command::Session(SessionCommand::Resume { id, flags })) => {
            let flags = Layer { session: Some(Some(id)), ..Layer::from(*flags) };
            repl::run(flags, Vec::new(), outer)
        }
        Some(Command::Session(command)) => threads::run(commands::session::session(command, outer)),
        Some(Command::Repl(args)) => repl::run(args.flags.into(), args.context, outer),
        Some(Command::Serve(args)) => serve::serve(args, outer),
        Some(Command::Exec(args)) => commands::exec::exec(args, outer),
        Some(Command::Shell(args)) => commands::shell::shell(args, outer),
        Some(Command::Check(args)) => threads::run(commands::check::check(args, outer)),
        Some(Command::Expand(args)) => commands::expand::expand(&args),
        Some(Command::Parse) => commands::parse::parse(),
        Some(Command::Catalog(command)) => threads::run(commands::catalog::catalog(command, outer)),
        Some(Command::Agents(command)) => threads::run(commands::agents::agents(command, outer)),
        Some(Command::Workbook(command)) => commands::workbook::workbook(command, outer),
        Some(Command::Eval(args)) => threads::run(commands::eval::eval(args, outer)),
        Some(Command::Trace(command)) => threads::run(commands::trace::trace(command, outer)),
        Some(Command::Telemetry(args)) => commands::trace::telemetry(args, outer),
        Some(Command::Ledger(command)) => threads::run(commands::ledger::ledger(command, outer)),
        Some(Command::Vars(command)) => threads::run(commands::vars::vars(command, outer)),
        Some(Command::Memory(command)) => threads::run(commands::memory::memory(command, outer)),
        Some(Command::Token(command)) => threads::run(commands::token::token(command, outer)),
        Some(Command::Store(command)) => threads::run(commands::store::store(command, outer)),
        Some(Command::Prune(args)) => threads::run(commands::prune::prune(args, outer)),
        Some(Command::Demo(args)) => threads::run(demo::demo(&args)),
        Some(Command::Init(args)) => commands::init::init(args, outer),
        Some(Command::Doctor(args)) => commands::doctor::doctor(args, outer),
        Some(Command::Trust(args)) => commands::trust::trust(args, &outer),
        Some(Command::Untrust(args)) => commands::trust::untrust(args, &outer),
        Some(Command::Status(args)) => commands::trust::status(args, &outer),
        Some(Command::Config(command)) => commands::config::config(command, outer),
        Some(Command::Completions { shell }) => commands::completions::completions(shell),
        None if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => {
            repl::run(Layer::default(), Vec::new(), outer)
        }
        None => Err(Fault::usage("no command is given")
            .hint("`wattle --help` lists the commands, `wattle demo` plays recorded runs")),
    }
}

//! The command line of the Wattle agent runtime: the only crate that knows a terminal.

mod args;
mod ask;
mod changes;
mod commands;
mod config;
mod demo;
mod fault;
mod input;
mod output;
mod progress;
mod repl;
mod serve;
mod setup;
mod trusted;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Cli, Command, ReplArgs};
use crate::config::Layer;
use crate::fault::{Exit, Fault};

fn main() -> ExitCode {
    let cli = Cli::parse();
    log(&cli);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::fault(&Fault::failed(format!("failed to start: {error}")));
            return Exit::Failed.into();
        }
    };
    let done = runtime.block_on(perform(cli));
    // What still runs is of no use to anybody now.
    runtime.shutdown_background();
    done.unwrap_or_else(|fault| {
        output::fault(&fault);
        fault.exit()
    })
    .into()
}

/// Lets what the libraries have to say come to stderr: warnings, and with `--verbose` what is done behind the scenes by our own.
/// A server's lines carry the time.
fn log(cli: &Cli) {
    let own = if cli.is_verbose() { LevelFilter::DEBUG } else { LevelFilter::WARN };
    let levels = Targets::new().with_default(LevelFilter::WARN).with_target("wattle", own);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    let log = tracing_subscriber::registry().with(levels);
    // Only a second call in the same process would find a log set up.
    let _ = match cli.command {
        Some(Command::Serve(_)) => log.with(lines).try_init(),
        _ => log.with(lines.without_time()).try_init(),
    };
}

/// Performs the command; flags that stand before it count for it too.
async fn perform(cli: Cli) -> Result<Exit, Fault> {
    let outer = Layer::from(cli.flags);
    match cli.command {
        Some(Command::Run(args)) => commands::run::run(args, outer).await,
        Some(Command::Replay(args)) => commands::replay::replay(args, outer).await,
        Some(Command::Session(command)) => commands::session::session(command, outer).await,
        Some(Command::Repl(args)) => repl::run(args, outer).await,
        Some(Command::Serve(args)) => serve::serve(args, outer).await,
        Some(Command::Exec(args)) => commands::exec::exec(args, outer).await,
        Some(Command::Shell(args)) => commands::shell::shell(args, outer).await,
        Some(Command::Check(args)) => commands::check::check(args, outer).await,
        Some(Command::Expand(args)) => commands::expand::expand(&args),
        Some(Command::Parse) => commands::parse::parse(),
        Some(Command::Catalog(command)) => commands::catalog::catalog(command, outer).await,
        Some(Command::Eval(args)) => commands::eval::eval(args, outer).await,
        Some(Command::Trace(command)) => commands::trace::trace(command).await,
        Some(Command::Telemetry(args)) => commands::trace::telemetry(&args),
        Some(Command::Ledger(command)) => commands::ledger::ledger(command, outer).await,
        Some(Command::Vars(command)) => commands::vars::vars(command, outer).await,
        Some(Command::Demo(args)) => demo::demo(&args).await,
        Some(Command::Doctor(args)) => commands::doctor::doctor(args, outer).await,
        Some(Command::Config(command)) => commands::config::config(command, outer),
        Some(Command::Completions { shell }) => commands::completions::completions(shell),
        None if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => {
            repl::run(ReplArgs::default(), outer).await
        }
        None => {
            Err(Fault::usage("no command is given")
                .hint("`wattle --help` shows them, `wattle demo` plays recorded runs"))
        }
    }
}

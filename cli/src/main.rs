//! The command line of the Wattle agent runtime: the only crate that knows a terminal.

mod args;
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

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command, ReplArgs};
use crate::config::Layer;
use crate::fault::{Exit, Fault};

fn main() -> ExitCode {
    let cli = Cli::parse();
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

/// Performs the command; flags that stand before it count for it too.
async fn perform(cli: Cli) -> Result<Exit, Fault> {
    let outer = Layer::from(cli.flags);
    match cli.command {
        Some(Command::Run(args)) => commands::run::run(args, outer).await,
        Some(Command::Repl(args)) => repl::run(args, outer).await,
        Some(Command::Serve(args)) => serve::serve(args, outer).await,
        Some(Command::Exec(args)) => commands::exec::exec(args, outer).await,
        Some(Command::Check(args)) => commands::check::check(args).await,
        Some(Command::Expand(args)) => commands::expand::expand(&args),
        Some(Command::Parse) => commands::parse::parse(),
        Some(Command::Catalog(command)) => commands::catalog::catalog(command, outer),
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

//! `wattle completions`: prints a script that completes commands and flags in a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::fault::{Exit, Fault};
use crate::output;

/// Prints the completion script for a shell.
pub(crate) fn completions(shell: Shell) -> Result<Exit, Fault> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "wattle", &mut script);
    output::data(&script)?;
    Ok(Exit::Done)
}

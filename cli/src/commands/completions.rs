//! `wattle completions`: prints a script that completes commands and flags in a shell.

use clap_complete::Shell;

use crate::fault::Fault;
use crate::{args, output};

/// Prints the completion script for a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Fault> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "wattle", &mut script);
    output::data(&script)
}

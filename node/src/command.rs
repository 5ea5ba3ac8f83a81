//! The command line.

use std::ffi::OsString;
use std::io::Write as _;

use napi_derive::napi;
use wattle_cli::Invocation;

/// Runs the command and returns its exit code. The first of `args` is the command's name. `program` is
/// the program that starts the command again, with the arguments before the command's own.
#[napi]
pub fn command(args: Vec<String>, program: Vec<String>) -> u32 {
    let texts = |texts: Vec<String>| texts.into_iter().map(OsString::from).collect();
    let code = wattle_cli::run(Invocation { args: texts(args), program: texts(program) });
    // Rust writes out the buffer of stdout only at the end of a program of its own.
    _ = std::io::stdout().flush();
    code.into()
}

//! Runs a command, such as `cargo nextest run`, with a PostgreSQL server that the tests share:
//! `with_postgres [--as-store] COMMAND ARGUMENT…`. The server stops when the command ends. With
//! `--as-store`, the store tests use PostgreSQL instead of SQLite.

use std::env::args_os;
use std::error::Error;
use std::process::{Command, ExitCode};

use wattle_cases::postgres;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = args_os().skip(1).peekable();
    let as_store = args.next_if(|arg| arg == "--as-store").is_some();
    let mut command = Command::new(args.next().ok_or("the command is missing")?);
    command.args(args).env(postgres::SHARED, postgres::folder().ok_or("PostgreSQL is missing")?);
    if as_store {
        command.env(postgres::SWITCH, "1");
    }
    let done = command.status()?;
    Ok(if done.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

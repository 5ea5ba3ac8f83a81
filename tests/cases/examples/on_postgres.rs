//! Runs a command, such as `cargo nextest run`, with a PostgreSQL server for the store tests:
//! `on_postgres COMMAND ARGUMENT…`. The tests share the server, which stops when the command ends.

use std::env::args_os;
use std::error::Error;
use std::process::{Command, ExitCode};

use wattle_cases::postgres;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let command = args_os().nth(1).ok_or("the command is missing")?;
    let folder = postgres::folder().ok_or("PostgreSQL is not installed")?;
    let done =
        Command::new(command).args(args_os().skip(2)).env(postgres::SWITCH, folder).status()?;
    Ok(if done.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

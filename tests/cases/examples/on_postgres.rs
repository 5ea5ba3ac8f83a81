//! Runs a command, such as `cargo nextest run`, with a PostgreSQL server for the store tests:
//! `on_postgres COMMAND ARGUMENT…`. The tests share the server, which ends with the command.

use std::env::args_os;
use std::process::{Command, ExitCode};

use wattle_cases::postgres;

fn main() -> ExitCode {
    let (Some(folder), Some(command)) = (postgres::folder(), args_os().nth(1)) else {
        eprintln!("error: this needs PostgreSQL and a command");
        return ExitCode::FAILURE;
    };
    let done =
        Command::new(&command).args(args_os().skip(2)).env(postgres::SWITCH, folder).status();
    match done {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: failed to start `{}`: {error}", command.display());
            ExitCode::FAILURE
        }
    }
}

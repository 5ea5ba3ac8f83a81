//! `wattle parse`: a model's answer, read.

use wattle_agent::machine::read;

use crate::fault::{Exit, Fault};
use crate::{input, output};

/// Reads an answer on stdin and puts out the action. Reading never fails, so bytes that are no text are replaced.
pub(crate) fn parse() -> Result<Exit, Fault> {
    let bytes = input::stdin()?;
    let reading = read(&String::from_utf8_lossy(&bytes));
    output::json(&reading.to_json())?;
    Ok(Exit::Done)
}

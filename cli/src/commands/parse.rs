//! `wattle parse`: parses a model's answer.

use wattle_agent::host::machine::read;

use crate::fault::Fault;
use crate::{input, output};

/// Reads an answer from stdin and prints the action. Parsing never fails: invalid UTF-8 is
/// replaced.
pub(crate) fn parse() -> Result<(), Fault> {
    let bytes = input::stdin()?;
    let reading = read(&String::from_utf8_lossy(&bytes));
    output::json(&reading.to_json())
}

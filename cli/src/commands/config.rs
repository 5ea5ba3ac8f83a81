//! `wattle config`: prints the settings and their sources.

use std::fmt::Write;

use serde_json::{Map, Value as Json, json};

use crate::args::ConfigCommand;
use crate::config::{Layer, Row};
use crate::fault::Fault;
use crate::{output, trust};

/// Prints the settings as TOML or JSON, also if a file has a fault, which is reported after them.
pub(crate) fn config(command: ConfigCommand, flags: &[Layer]) -> Result<(), Fault> {
    let ConfigCommand::Show { origin, json } = command;
    let (config, faults) = trust::gather_in_part(flags)?;
    let rows = config.rows();
    if json {
        output::json(&document(&rows, origin))?;
    } else {
        output::text(&lines(&rows, origin))?;
    }
    faults.into_iter().next().map_or(Ok(()), Err)
}

/// Renders the settings as lines of a `wattle.toml`. A setting without a value becomes a comment.
fn lines(rows: &[Row], origin: bool) -> String {
    let line = |row: &Row| match &row.value {
        Json::Null => format!("# {} is not set", row.name),
        value => format!("{} = {value}", row.name),
    };
    let width = rows.iter().map(|row| line(row).chars().count()).max().unwrap_or(0).min(48);
    let mut text = String::new();
    for row in rows {
        let _ = if origin && !row.value.is_null() {
            writeln!(text, "{:<width$}  # {}", line(row), row.origin)
        } else {
            writeln!(text, "{}", line(row))
        };
    }
    text
}

fn document(rows: &[Row], origin: bool) -> Json {
    let value = |row: &Row| {
        if origin {
            json!({
                "value": row.value,
                "origin": row.origin.layer(),
                "source": row.origin.to_string(),
            })
        } else {
            row.value.clone()
        }
    };
    Json::Object(rows.iter().map(|row| (row.name.to_owned(), value(row))).collect::<Map<_, _>>())
}

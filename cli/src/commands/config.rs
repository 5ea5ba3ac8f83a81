//! `wattle config`: prints the settings and their sources, and changes the settings files.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use crate::args::{ConfigCommand, WhichFile};
use crate::config::{Config, Layer, Origin, Row, SettingsFile, project_path, unknown, user_path};
use crate::fault::{Exit, Fault};
use crate::{editor, files, output, trust};

/// Shows or changes the settings.
pub(crate) fn config(command: ConfigCommand, flags: &[Layer]) -> Result<Exit, Fault> {
    match command {
        ConfigCommand::Show { origin, json } => show(origin, json, flags).map(Exit::from),
        ConfigCommand::Get { key, json } => get(&key, json, flags),
        ConfigCommand::Set { key, value, file } => {
            let mut settings = open(file, flags)?;
            settings.set(&key, &value)?;
            settings.save()?;
            output::note(&format!("set `{key}` in {}", settings.path().display()));
            note_effect(&key, settings.path(), flags);
            Ok(Exit::Done)
        }
        ConfigCommand::Unset { key, file } => {
            let mut settings = open(file, flags)?;
            let path = settings.path().display().to_string();
            if !settings.remove(&key) {
                output::note(&format!("`{key}` is not set in {path}"));
                return Ok(Exit::Failed);
            }
            settings.save()?;
            output::note(&format!("removed `{key}` from {path}"));
            Ok(Exit::Done)
        }
        ConfigCommand::Path { file: WhichFile { project: false } } => {
            output::text(&user_path()?.to_string_lossy()).map(Exit::from)
        }
        ConfigCommand::Path { file: WhichFile { project: true } } => {
            let path = project_path(&Config::workdir(flags)?);
            output::text(&path.to_string_lossy()).map(Exit::from)
        }
        ConfigCommand::Edit { file } => edit(file, flags).map(Exit::from),
    }
}

/// Prints the settings as TOML or JSON, also if a file has a fault, which is reported after them.
fn show(origin: bool, json: bool, flags: &[Layer]) -> Result<(), Fault> {
    let (config, faults) = trust::gather_in_part(flags)?;
    let rows = config.rows();
    if json {
        output::json(&document(&rows, origin))?;
    } else {
        output::text(&lines(&rows, origin))?;
    }
    faults.into_iter().next().map_or(Ok(()), Err)
}

/// Prints the value of a setting. A text is printed without quotes.
fn get(key: &str, json: bool, flags: &[Layer]) -> Result<Exit, Fault> {
    let config = trust::gather_with_warnings(flags)?;
    let row = config.rows().into_iter().find(|row| row.name == key);
    match row.ok_or_else(|| unknown(key))?.value {
        value if json => output::json(&value).map(Exit::from),
        Json::Null => {
            output::note(&format!("`{key}` is not set"));
            Ok(Exit::Failed)
        }
        Json::String(text) => output::text(&text).map(Exit::from),
        value => output::text(&value.to_string()).map(Exit::from),
    }
}

fn open(file: WhichFile, flags: &[Layer]) -> Result<SettingsFile, Fault> {
    if file.project {
        SettingsFile::of_project(&Config::workdir(flags)?)
    } else {
        SettingsFile::of_user()
    }
}

/// Notes if a setting that was written to a file has no effect yet, and why.
fn note_effect(key: &str, path: &Path, flags: &[Layer]) {
    let Ok((config, faults)) = trust::gather_in_part(flags) else { return };
    faults.iter().for_each(output::fault);
    let row = config.rows().into_iter().find(|row| row.name == key);
    match row.map(|row| row.origin) {
        Some(Origin::User(own) | Origin::Project(own)) if own == path => {}
        Some(Origin::Default) | None => {}
        Some(origin) => output::aside(&format!("it has no effect here: {origin} sets it, too")),
    }
}

/// Opens a settings file in the user's editor and reports its faults.
fn edit(file: WhichFile, flags: &[Layer]) -> Result<(), Fault> {
    let path = if file.project { project_path(&Config::workdir(flags)?) } else { user_path()? };
    if !path.exists() && !file.project {
        files::write_private(&path, b"").map_err(|error| {
            Fault::configuration(format!("failed to write `{}`: {error}", path.display()))
        })?;
    }
    editor::open(&path).map_err(|why| {
        let fault = Fault::failed(format!("failed to edit `{}`: {why}", path.display()));
        fault.hint("`VISUAL` or `EDITOR` names the editor, such as `EDITOR=nano`")
    })?;
    let (_, faults) = trust::gather_in_part(flags)?;
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

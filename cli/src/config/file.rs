//! Reads settings files.

use std::path::Path;

use wattle_agent::host::rt::{decode_text, truncate};

use super::{File, KEYS, Kind, Layer, Places, regular_file};
use crate::fault::Fault;

/// Reads the user file.
///
/// # Errors
/// If the file cannot be read, or contains an unknown key or an invalid value.
pub(super) fn user(places: &Places) -> Result<File, Fault> {
    let Some(path) = &places.user_file else { return Ok(File::default()) };
    let bytes = regular_file::of_user(path, regular_file::LARGEST);
    let Some(bytes) = bytes.map_err(|why| unreadable(path, &why))? else {
        return Ok(File::default());
    };
    let table = table(bytes, path)?;
    if table.contains_key("trusted") {
        let message =
            format!("the key `trusted` of `{}` is not a setting any more", path.display());
        return Err(Fault::configuration(message).hint(
            "remove it, and trust each folder by `wattle trust DIR`, which pins what the project \
             file sets",
        ));
    }
    known(&table, path)?;
    Ok(File { layer: Layer::of_table(&table, path)?, path: path.clone() })
}

/// Returns the error for a file that cannot be read.
pub(super) fn unreadable(path: &Path, why: &str) -> Fault {
    Fault::configuration(format!("failed to read `{}`: {why}", path.display()))
}

/// Maximum length of a TOML parser message, in characters. A longer message, which quotes a long
/// line of the file, is printed without the quotation.
const EXCERPT: usize = 400;

/// Parses the content of a file and flattens its tables into dotted keys. The TOML parser limits
/// the nesting of values.
///
/// # Errors
/// If the bytes are not UTF-8 or not TOML.
pub(super) fn table(bytes: Vec<u8>, path: &Path) -> Result<toml::Table, Fault> {
    let text = decode_text(bytes).map_err(|_| unreadable(path, "it is not UTF-8"))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let whole = error.to_string();
        if whole.chars().count() > EXCERPT {
            unreadable(path, error.message())
        } else {
            unreadable(path, whole.trim_end())
        }
    })?;
    Ok(table.into_iter().flat_map(|(key, value)| dotted(key, value)).collect())
}

/// Flattens a table into dotted keys, such as `ai.calls` for `calls` in `[ai]`. A table whose
/// dotted name is the key of a setting is not flattened.
fn dotted(key: String, value: toml::Value) -> Vec<(String, toml::Value)> {
    match value {
        toml::Value::Table(table) if kind(&key).is_none() && !table.is_empty() => {
            table.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)).collect()
        }
        value => vec![(key, value)],
    }
}

/// Returns the class of the setting with this key, or `None` if the key is unknown.
pub(super) fn kind(key: &str) -> Option<Kind> {
    KEYS.iter().find(|own| own.name == key).map(|own| own.kind)
}

/// Maximum length of an unknown key in a message, in characters.
const SHOWN_KEY: usize = 80;

/// Rejects unknown keys.
pub(super) fn known(table: &toml::Table, path: &Path) -> Result<(), Fault> {
    let Some(unknown) = table.keys().find(|key| kind(key).is_none()) else { return Ok(()) };
    let shown = truncate(unknown, SHOWN_KEY);
    let fault = Fault::configuration(format!("unknown key `{shown}` in `{}`", path.display()));
    let names = || KEYS.iter().map(|own| own.name);
    // The key may be right, but in the wrong table.
    let plain = unknown.rsplit('.').next().unwrap_or(unknown);
    let nearest = names()
        .max_by(|a, b| strsim::jaro_winkler(&shown, a).total_cmp(&strsim::jaro_winkler(&shown, b)))
        .filter(|name| strsim::jaro_winkler(&shown, name) > 0.7);
    Err(match names().find(|name| *name == plain).or(nearest) {
        Some(name) => fault.hint(format!("did you mean `{name}`?")),
        None => fault.hint(format!("the keys are {}", names().collect::<Vec<_>>().join(", "))),
    })
}

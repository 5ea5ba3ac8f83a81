//! Reads settings files.

use std::path::Path;

use toml::de::DeTable;
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
    let text = text(bytes, path)?;
    let table = table(&text, path)?;
    if table.contains_key("trusted") {
        let message =
            format!("the key `trusted` of `{}` is not a setting any more", path.display());
        return Err(Fault::configuration(message).hint(
            "remove it, and trust each folder by `wattle trust DIR`, which pins what the project \
             file sets",
        ));
    }
    known(&table, &text, path)?;
    Ok(File { layer: Layer::of_table(&table, path)?, path: path.clone() })
}

/// Returns the error for a file that cannot be read.
pub(super) fn unreadable(path: &Path, why: &str) -> Fault {
    Fault::configuration(format!("failed to read `{}`: {why}", path.display()))
}

/// Maximum length of a TOML parser message, in characters. A longer message, which quotes a long
/// line of the file, is printed without the quotation.
const EXCERPT: usize = 400;

/// Decodes the content of a file.
///
/// # Errors
/// If the bytes are not UTF-8.
pub(super) fn text(bytes: Vec<u8>, path: &Path) -> Result<String, Fault> {
    decode_text(bytes).map_err(|_| unreadable(path, "it is not UTF-8"))
}

/// Parses the text of a file and flattens its tables into dotted keys. The TOML parser limits the
/// nesting of values.
///
/// # Errors
/// If the text is not TOML.
pub(super) fn table(text: &str, path: &Path) -> Result<toml::Table, Fault> {
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

/// Rejects unknown keys. The error names the line of the key in the text of the file.
pub(super) fn known(table: &toml::Table, text: &str, path: &Path) -> Result<(), Fault> {
    let Some(unknown) = table.keys().find(|key| kind(key).is_none()) else { return Ok(()) };
    let shown = truncate(unknown, SHOWN_KEY);
    let line = line_of(unknown, text).map(|line| format!(", line {line}")).unwrap_or_default();
    let path = path.display();
    let fault = Fault::configuration(format!("unknown key `{shown}` in `{path}`{line}"));
    let names = || KEYS.iter().map(|own| own.name);
    // The key may be right, but in the wrong table.
    let plain = unknown.rsplit('.').next().unwrap_or(unknown);
    let nearest = names()
        .max_by(|a, b| strsim::jaro_winkler(&shown, a).total_cmp(&strsim::jaro_winkler(&shown, b)))
        .filter(|name| strsim::jaro_winkler(&shown, name) > 0.7);
    Err(match names().find(|name| *name == plain).or(nearest) {
        Some(name) => fault.hint(format!("did you mean `{name}`?")),
        None => fault.hint("docs/configuration.md lists the keys"),
    })
}

/// Returns the number of the line that contains a dotted key.
fn line_of(key: &str, text: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let start = table.get_ref().iter().find_map(|(name, value)| {
        let below = key.strip_prefix(name.get_ref().as_ref())?;
        let Some(below) = below.strip_prefix('.') else {
            return below.is_empty().then(|| name.span().start);
        };
        let inner = value.get_ref().as_table()?.iter();
        inner
            .map(|(name, _)| name)
            .find(|name| name.get_ref() == below)
            .map(|name| name.span().start)
    })?;
    Some(text.get(..start)?.matches('\n').count() + 1)
}
